"""The logistic loss between three organisations, one of which has the labels: next to one table, and without slopes.

    python -m benchmarks.federated.logistic [--seeds 5 5 5]

Writes benchmarks/results/federated_logistic.md.
"""

import argparse
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import train_test_split

import tacit
from benchmarks.frame import Floats, sets
from tacit.federated import FederatedLogisticRegression, Marginals, Party
from tacit.federated.protocols.marginals.masked import MaskedProtocol

SETS = ("phishing", "adult", "elec2")
WAYS = ("not private", "one table", "masked", "masked, as for normal columns")
EPSILON, DELTA = 1.0, 1e-6
HOW: dict[str, Any] = {"labels": "held", "protocol": Marginals(products="masked"), "classes": [-1.0, 1.0]}
PAGE = Path(__file__).parents[1] / "results" / "federated_logistic.md"
ASKED = 0.01  # of test loss beyond that of one table
_PARTIES, _RADIUS, _MOST_ROWS = 3, 1000.0, 50_000


def columns(name: str) -> tuple[Floats, Floats]:
    """Columns on one scale, standardised and clipped to 3, and classes -1 and 1."""
    X, y, _ = sets.standardised(name, _MOST_ROWS)
    return X, y


def scores(name: str, seed: int, budget: tuple[float, float]) -> Iterator[tuple[str, float, float]]:
    """Each way, with its loss and its AUC on a quarter of the rows."""
    X, y = columns(name)
    train, test, told, truth = train_test_split(X, y, random_state=seed)
    best = LogisticRegression(C=1e4, max_iter=2_000).fit(train, told)
    yield "not private", *judged(best.decision_function(test), truth)
    central = tacit.LogisticRegression(*budget, random_state=seed).fit(train, told)
    yield "one table", *judged(central.decision_function(test), truth)
    blocks = np.array_split(train, _PARTIES, axis=1)
    parties = [Party(block, told if place == 1 else None) for place, block in enumerate(blocks)]
    model = FederatedLogisticRegression(*budget, l1_radius=_RADIUS, random_state=seed, **HOW)
    yield "masked", *judged(model.fit(parties).decision_function(test), truth)
    with mock.patch.object(MaskedProtocol, "has_slopes", False):
        yield "masked, as for normal columns", *judged(model.fit(parties).decision_function(test), truth)


def judged(margins: Floats, truth: Floats) -> tuple[float, float]:
    """Log-loss and AUC."""
    return float(log_loss(truth, expit(margins), labels=[-1.0, 1.0])), float(roc_auc_score(truth, margins))


def row(name: str, seeds: int) -> str:
    """A row of the page: means over splits and noise, and a standard error."""
    found: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
    for seed in range(seeds):
        for way, loss, auc in scores(name, seed, (EPSILON, DELTA)):
            found[way].append((loss, auc))
    cells = [f"{loss:.3f} / {auc:.3f}" for loss, auc in (np.mean(found[way], axis=0) for way in WAYS)]
    more = np.subtract(found["masked"], found["one table"])[:, 0]
    error = np.std(more, ddof=1) / np.sqrt(seeds) if seeds > 1 else np.nan
    return f"| {name} | {seeds} | {' | '.join(cells)} | {np.mean(more):+.3f} ± {error:.3f} | at most {ASKED} |"


def cost(rows: int) -> str:
    """Processor seconds of a whole fit on normal columns, and megabytes that a party sends."""
    rng = np.random.default_rng(0)
    blocks = [rng.standard_normal((rows, 20)) for _ in range(_PARTIES)]
    y = np.where(sum(block[:, 0] for block in blocks) > 0.0, 1.0, -1.0)
    held = [Party(block, y if place == 1 else None) for place, block in enumerate(blocks)]
    start = time.process_time()
    model = FederatedLogisticRegression(EPSILON, DELTA, l1_radius=50.0, **HOW).fit(held)
    spent = time.process_time() - start
    return f"{spent:.1f} s of processor time, and {max(model.uplink_bytes_.values()) / 1e6:.1f} MB that a party sends"


def page(seeds: dict[str, int]) -> str:
    """All of it."""
    return "\n".join(
        [
            "# The logistic loss under masks",
            "",
            f"`python -m benchmarks.federated.logistic`. Columns standardised and clipped to 3, in {_PARTIES} blocks in"
            f" their order, labels at the second party; epsilon = {EPSILON:g}, delta = {DELTA:g}, radius {_RADIUS:g}."
            " Log-loss / AUC on a quarter of the rows, means over seeds of split and noise. One table is"
            " `tacit.LogisticRegression` with the same budget. Constants were set with these sets in view, in other"
            " scalings: none of them judges.",
            "",
            f"| set | seeds | {' | '.join(WAYS)} | loss of masked, less one table | asked |",
            "|---|---|---|---|---|---|---|---|",
            *(row(name, count) for name, count in seeds.items()),
            "",
            f"A whole fit of 100,000 rows and 3 x 20 columns takes {cost(100_000)} (asked: under 60 s and 60 MB).",
            "",
        ]
    )


def main() -> None:
    """Measure, and write the page."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seeds", type=int, nargs=len(SETS), default=[5] * len(SETS), metavar=SETS)
    arguments.add_argument("--out", type=Path, default=PAGE)
    told = arguments.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        told.out.write_text(page(dict(zip(SETS, told.seeds, strict=True))), encoding="utf8")
    print(told.out.read_text(encoding="utf8"))


if __name__ == "__main__":
    main()
