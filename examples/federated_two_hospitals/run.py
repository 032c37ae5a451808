"""Two hospitals train a model of how long a patient stays, each on its own columns of the same patients.

Starts three real processes on the loopback (a coordinator and two hospitals, with TLS and authenticated keys), waits
for them, and ends with one line: the guarantee, the rounds and the bytes. Needs the extras `cli` and `federated`.
"""

import argparse
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from tacit import load
from tacit.federated import FederatedLasso, Study

HERE = Path(__file__).parent


def main() -> int:
    """Prepare a folder, run the commands in it, and look at the model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("build/federated_two_hospitals"), help="default: %(default)s")
    folder = parser.parse_args().out
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    config = folder / "study.toml"
    config.write_text((HERE / "study.toml").read_text().replace(":8443", f":{free_port()}"))
    study = Study.from_toml(config)
    tables = patients(study)
    for name, table in tables.items():
        table.sample(frac=1.0, random_state=0).to_csv(folder / f"{name}.csv", index=False)  # in any order
    subprocess.run([*tacit("keys", config), "--all"], check=True)

    out = folder / "model.json"
    coordinator = subprocess.Popen([*tacit("coordinator", config), "--out", out], stdout=subprocess.PIPE, text=True)
    hospitals = [subprocess.Popen(hospital(config, name)) for name in study.names]
    printed, _ = coordinator.communicate()
    failed = [process.wait() for process in (coordinator, *hospitals)]
    if any(failed):
        return 1
    compare(load(out), tables)
    print(printed.splitlines()[-1])
    return 0


def tacit(part: str, config: Path) -> list[str]:
    """A command of the study."""
    return [sys.executable, "-m", "tacit.cli", "federate", part, "--config", str(config)]


def hospital(config: Path, name: str) -> list[str]:
    """The command that a hospital runs, with its own table."""
    folder = config.parent
    rows = ["--id", "patient_id", "--secret", str(folder / "keys" / "parties.secret")]
    return [*tacit("party", config), "--name", name, "--data", str(folder / f"{name}.csv"), "--label", "days", *rows]


def patients(study: Study) -> dict[str, pd.DataFrame]:
    """Made-up patients: what each hospital knows of them, and how many days they stayed."""
    rng = np.random.default_rng(7)
    n = study.n_rows
    frail = rng.normal(size=n)
    ids = [f"P{number:06d}" for number in rng.permutation(n)]
    known = {
        member.name: (0.4 * frail[:, None] + rng.normal(size=(n, member.n_features))) / np.hypot(1.0, 0.4)
        for member in study.members
    }
    a, b = known.values()
    days = np.clip(10 + 3 * a[:, 0] - 2 * a[:, 4] + 2.5 * b[:, 1] + 2 * rng.normal(size=n), 0, 30).round(1)
    return {
        name: pd.DataFrame(block.round(4), columns=[f"{name[-1]}{j}" for j in range(block.shape[1])]).assign(
            patient_id=ids, days=days
        )
        for name, block in known.items()
    }


def compare(model: FederatedLasso, tables: dict[str, pd.DataFrame]) -> None:
    """How much of the variance the model explains, next to what least squares does on all columns in one place."""
    days = next(iter(tables.values()))["days"].to_numpy()
    blocks = [table.drop(columns=["patient_id", "days"]).to_numpy() for table in tables.values()]
    predicted = model.predict(blocks)
    whole = np.column_stack([*blocks, np.ones(len(days))])
    best = whole @ np.linalg.lstsq(whole, days)[0]
    print(
        f"variance explained: {explained(days, predicted):.3f}; least squares in one place: {explained(days, best):.3f}"
    )


def explained(y: np.ndarray, predicted: np.ndarray) -> float:
    """The part of the variance that a prediction explains."""
    return 1 - np.var(y - predicted) / np.var(y)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


if __name__ == "__main__":
    sys.exit(main())
