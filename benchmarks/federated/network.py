"""Whole studies between real processes on the Flower engine: a coordinator and three parties on one machine.

    python -m benchmarks.federated.network [--seed 0] [--rows 20000 100000] [--out FILE]

Needs the extras `cli` and `federated`: run it with the Python of `.venv-federated`, which `make test-federated` makes.
Each party reaches the coordinator through a relay of its own, which counts what a network would carry: the protocol's
messages, the engine's, and TLS. A process's seconds include the start of Python and the reading of its table, so those
of a party are also given less what it takes for products="local" on the same table. The model must be the one that
one process makes, bit for bit: so what is measured there over many seeds holds here.

Writes benchmarks/results/federated_network.md.
"""

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from benchmarks.federated.masked import AUC_LOST, COLUMNS, DELTA, EPSILON, PARTIES, TESTED, organisations
from benchmarks.frame import Floats
from benchmarks.frame.tables import lines
from tacit import load
from tacit.federated import Coordinator, Marginals, Member, Node, Party, Study
from tacit.federated.transports.in_process import InProcess

PAGE = Path(__file__).parents[1] / "results" / "federated_network.md"
NAMES = [f"party-{place}" for place in range(PARTIES)]
HOLDER = NAMES[1]
KINDS = {
    "squared loss, local products": ("squared", "local"),
    "squared loss, masked products": ("squared", "masked"),
    "logistic loss, masked products": ("logistic", "masked"),
}


class Relay:
    """Passes connections on, and counts the bytes each way."""

    def __init__(self, port: int) -> None:
        self._to, self.up, self.down = port, 0, 0
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            client, _ = self._server.accept()
            target = socket.create_connection(("127.0.0.1", self._to))
            threading.Thread(target=self._copy, args=[client, target, "up"], daemon=True).start()
            threading.Thread(target=self._copy, args=[target, client, "down"], daemon=True).start()

    def _copy(self, source: socket.socket, target: socket.socket, way: str) -> None:
        try:
            while data := source.recv(1 << 16):
                setattr(self, way, getattr(self, way) + len(data))
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # one side is gone


class Cost(NamedTuple):
    """What a study took."""

    wall: float  # seconds from the parties' start to the model
    parties: dict[str, float]  # processor seconds of all their processes
    coordinator: float
    up: float  # MB of the busiest party
    down: float
    sent: int  # bytes of its releases and answers alone
    rounds: int


def studied(name: str, rows: int, seed: int) -> tuple[Study, dict[str, Floats], Floats, Floats, Floats]:
    """A study, each party's columns, labels, and other rows to judge by."""
    loss, products = KINDS[name]
    X, margins, truth = organisations(rows + TESTED, seed)
    y = margins.round(6)
    if loss == "logistic":
        y = np.where(np.random.default_rng([seed, 26]).random(len(X)) < expit(margins), 1.0, -1.0)
    X = X.round(6)
    masked = products == "masked"
    members = tuple(Member(one, COLUMNS, labels=not masked or one == HOLDER) for one in NAMES)
    study = Study(
        "network", loss, members, rows, 2.0 * float(np.abs(truth).sum()), epsilon=EPSILON, delta=DELTA,
        protocol=Marginals(products=products), labels="held" if masked else "shared",
        classes=(-1.0, 1.0) if loss == "logistic" else None, random_state=seed,
    )  # fmt: skip
    blocks = dict(zip(NAMES, np.split(X[:rows], PARTIES, axis=1), strict=True))
    return study, blocks, y[:rows], X[rows:], y[rows:]


def in_one_process(study: Study, blocks: dict[str, Floats], y: Floats, secret: bytes) -> Any:
    """The model without a network."""
    holders = {member.name for member in study.members if member.labels}
    nodes = []
    for name, block in blocks.items():
        party = Party(block, y if name in holders else None, name=name, ids=ids(len(y)), secret=secret)
        nodes.append(Node(study, party, warn=False))
    return Coordinator(study).run(InProcess(nodes)).model


def ids(rows: int) -> list[str]:
    """Of people."""
    return [f"p{place}" for place in range(rows)]


def tacit(*words: Any) -> subprocess.Popen[str]:
    """A command of the study in processes of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "tacit.cli", "federate", *map(str, words)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def ended(process: subprocess.Popen[str], printed: str = "") -> float:
    """Its processor seconds, and those of its children."""
    assert process.stdout is not None
    printed += process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"a process failed:\n{printed}")
    return used.ru_utime + used.ru_stime


@contextmanager
def tables(study: Study, blocks: dict[str, Floats], y: Floats) -> Iterator[tuple[Path, int]]:
    """A folder with the keys and the parties' tables, and the coordinator's port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for member in study.members:
            table = pd.DataFrame(blocks[member.name], columns=[f"c{j}" for j in range(COLUMNS)])
            table["who"] = ids(study.n_rows)
            (table.assign(y=y) if member.labels else table).to_csv(folder / f"{member.name}.csv", index=False)
        written(study, folder, "study", port, port)
        if tacit("keys", "--config", folder / "study.toml", "--all").wait():
            raise SystemExit("no keys")
        yield folder, port


def written(study: Study, folder: Path, name: str, address: int, listen: int) -> Path:
    """A study file."""
    path = folder / f"{name}.toml"
    network = f'\n[network]\naddress = "127.0.0.1:{address}"\nlisten = "127.0.0.1:{listen}"\ntimeout = 600\n'
    path.write_text(study.to_toml() + network, encoding="utf8")
    return path


def between_processes(study: Study, blocks: dict[str, Floats], y: Floats) -> tuple[Any, Any, Cost]:
    """The model, the one of a single process, and what the first took."""
    with tables(study, blocks, y) as (folder, port):
        coordinator = tacit("coordinator", "--config", folder / "study.toml", "--out", folder / "model.json")
        assert coordinator.stdout is not None
        printed = ""
        while "listening on" not in printed:
            line = coordinator.stdout.readline()
            printed += line
            if not line:
                ended(coordinator, printed)
        secret = folder / "keys" / "parties.secret"
        relays = {member.name: Relay(port) for member in study.members}
        start = time.perf_counter()
        parties = {}
        for member in study.members:
            config = written(study, folder, member.name, relays[member.name].port, port)
            labels = ["--label", "y"] if member.labels else []
            data = ["--data", folder / f"{member.name}.csv", "--id", "who", "--secret", secret, *labels]
            parties[member.name] = tacit("party", "--config", config, "--name", member.name, *data)
        used = {name: ended(process) for name, process in parties.items()}
        spent = ended(coordinator, printed)
        wall = time.perf_counter() - start
        model = load(folder / "model.json")
        alone = in_one_process(study, blocks, y, secret.read_bytes().strip())
        return model, alone, Cost(
            wall, used, spent, max(one.up for one in relays.values()) / 1e6,
            max(one.down for one in relays.values()) / 1e6, max(model.uplink_bytes_.values()), model.n_rounds_,
        )  # fmt: skip


def rows_of_page(sizes: list[int], seed: int) -> Iterator[list[str]]:
    """Every study at every size."""
    for rows in sizes:
        local: dict[str, float] = {}
        for name in KINDS:
            study, blocks, y, others, answers = studied(name, rows, seed)
            model, alone, cost = between_processes(study, blocks, y)
            same = all(np.array_equal(model.coefs_[one], alone.coefs[one]) for one in NAMES)
            if not same or model.intercept_ != alone.intercept:
                raise SystemExit(f"{name}: the model differs from that of one process")
            local = local or cost.parties
            score = "-"
            if study.loss == "logistic":
                plain = LogisticRegression(C=1e4, max_iter=200).fit(np.column_stack(list(blocks.values())), y)
                found = float(roc_auc_score(answers, model.decision_function(others)))
                lost = float(roc_auc_score(answers, plain.decision_function(others))) - found
                score = f"{found:.4f}, {lost:.4f} less than without privacy (asked: {AUC_LOST.get(rows, '-')})"
            busiest = max(cost.parties, key=lambda one: cost.parties[one])
            more = max(cost.parties[one] - local[one] for one in NAMES)
            yield [
                f"{name}, {rows:,} rows", f"{cost.wall:.1f}", f"{cost.parties[busiest]:.1f}", f"{more:.1f}",
                f"{cost.coordinator:.1f}", f"{cost.sent / 1e6:.3g}", f"{cost.up:.3g}", f"{cost.down:.3g}",
                str(cost.rounds), score,
            ]  # fmt: skip


def main() -> None:
    """Measure, print, and write the page."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--rows", type=int, nargs="+", default=list(AUC_LOST))
    arguments.add_argument("--out", type=Path, default=PAGE)
    told = arguments.parse_args()
    head = ["study", "seconds", "party, processor s", "more than local", "coordinator, processor s"]
    head += ["answers, MB", "up, MB", "down, MB", "rounds", "AUC on 50,000 other rows"]
    text = "\n".join(
        [
            "# Studies between real processes",
            "",
            f"`python -m benchmarks.federated.network`. A coordinator and {PARTIES} parties with {COLUMNS} columns each"
            f" on one machine of {os.cpu_count()} cores, on the Flower engine with TLS; labels at every party for local"
            f" products, at the second one for masked ones; epsilon = {EPSILON:g}, delta = {DELTA:g}. Of parties, the"
            " busiest. *Up* and *down* are a relay's count of what went over the network; *seconds* begin when the"
            " parties are started, and end when all processes have. Every model was that of one process, bit for bit.",
            "",
            lines(head, rows_of_page(told.rows, told.seed)),
            "",
        ]
    )
    told.out.write_text(text, encoding="utf8")
    print(text)


if __name__ == "__main__":
    main()
