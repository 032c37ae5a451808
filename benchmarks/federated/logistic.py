"""The logistic loss between three organisations, one of which has the labels: next to one table, and without slopes.

    python -m benchmarks.federated.logistic [--seeds 5 5 5] [--judging 5]

Writes benchmarks/results/federated_logistic.md.
"""

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import train_test_split

import tacit
from benchmarks.federated import masked
from benchmarks.frame import Floats, sets
from tacit.federated import FederatedLogisticRegression, Marginals, Party
from tacit.federated.protocols.marginals.masked import MaskedProtocol, logistic, rules

SETS = ("phishing", "adult", "elec2")
WAYS = ("not private", "one table", "masked", "masked, as for normal columns")
EPSILON, DELTA = 1.0, 1e-6
HOW: dict[str, Any] = {"labels": "held", "protocol": Marginals(products="masked"), "classes": [-1.0, 1.0]}
PAGE = Path(__file__).parents[1] / "results" / "federated_logistic.md"
ASKED = 0.01  # of test loss beyond that of one table
BEFORE = ((rules, "_SLOPES", 0.5), (logistic, "_CAUTION", 0.0), (logistic, "_PENALTY", 1.0))
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
    held = parties(train, told)
    model = FederatedLogisticRegression(*budget, l1_radius=_RADIUS, random_state=seed, **HOW)
    yield "masked", *judged(model.fit(held).decision_function(test), truth)
    with mock.patch.object(MaskedProtocol, "has_slopes", False):
        yield "masked, as for normal columns", *judged(model.fit(held).decision_function(test), truth)


def parties(X: Floats, y: Floats) -> list[Party]:
    """The columns in their order, split evenly; the second party has the labels."""
    blocks = np.array_split(X, _PARTIES, axis=1)
    return [Party(block, y if place == 1 else None) for place, block in enumerate(blocks)]


def categories(seed: int) -> tuple[Floats, Floats]:
    """12,000 rows of twelve columns of two to five categories that go together, as indicators; a logistic truth."""
    rng = np.random.default_rng([seed, 27])
    shared, columns, margins = rng.standard_normal((12_000, 3)), [], np.zeros(12_000)
    for _ in range(12):
        levels = int(rng.integers(2, 6))
        value = 0.8 * shared @ rng.standard_normal(3) + rng.standard_normal(12_000)
        level = np.digitize(value, np.sort(1.3 * rng.standard_normal(levels - 1)))
        columns += [level == each for each in range(levels)]
        margins += 1.6 * rng.standard_normal(levels)[level]
    X = np.column_stack(columns).astype(float)
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)
    return np.clip(X, -3.0, 3.0), drawn(margins - margins.mean(), seed)


def normal(rows: int, seed: int) -> tuple[Floats, Floats]:
    """Normal columns that share factors, a quarter more of them than are trained on."""
    X, margins, _ = masked.organisations(rows * 4 // 3, seed)
    return X, drawn(margins, seed)


def drawn(margins: Floats, seed: int) -> Floats:
    """Classes by their probabilities."""
    return np.where(np.random.default_rng([seed, 28]).random(len(margins)) < expit(margins), 1.0, -1.0)


JUDGES: dict[str, Callable[[int], tuple[Floats, Floats]]] = {
    "elec2": lambda _: columns("elec2"),
    "categories, made": categories,
    "20,000 normal rows, made": lambda seed: normal(20_000, seed),
    "5,000 normal rows, made": lambda seed: normal(5_000, seed),
}


def changed(name: str, epsilon: float, seeds: int) -> str:
    """A row of the second table: the loss as it was, and what the rule of today adds to it."""
    losses = []
    for seed in range(seeds):
        train, test, told, truth = train_test_split(*JUDGES[name](seed), random_state=seed)
        model = FederatedLogisticRegression(epsilon, DELTA, l1_radius=_RADIUS, random_state=seed, **HOW)
        now, _ = judged(model.fit(parties(train, told)).decision_function(test), truth)
        with ExitStack() as patches:
            for module, constant, value in BEFORE:
                patches.enter_context(mock.patch.object(module, constant, value))
            before, _ = judged(model.fit(parties(train, told)).decision_function(test), truth)
        losses.append((before, now - before))
    (before, more), error = np.mean(losses, axis=0), np.std(losses, axis=0, ddof=1)[1] / np.sqrt(seeds)
    return f"| {name} | {epsilon:g} | {before:.4f} | {more:+.4f} ± {error:.4f} |"


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
    X = rng.standard_normal((rows, 20 * _PARTIES))
    held = parties(X, np.where(X[:, ::20].sum(axis=1) > 0.0, 1.0, -1.0))
    start = time.process_time()
    model = FederatedLogisticRegression(EPSILON, DELTA, l1_radius=50.0, **HOW).fit(held)
    spent = time.process_time() - start
    return f"{spent:.1f} s of processor time, and {max(model.uplink_bytes_.values()) / 1e6:.1f} MB that a party sends"


def page(seeds: dict[str, int], judging: int) -> str:
    """All of it."""
    return "\n".join(
        [
            "# The logistic loss under masks",
            "",
            f"`python -m benchmarks.federated.logistic`. Columns standardised and clipped to 3, in {_PARTIES} blocks in"
            f" their order, labels at the second party; epsilon = {EPSILON:g}, delta = {DELTA:g}, radius {_RADIUS:g}."
            " Log-loss / AUC on a quarter of the rows, means over seeds of split and noise. One table is"
            " `tacit.LogisticRegression` with the same budget. Constants were set with phishing and adult in view.",
            "",
            f"| set | seeds | {' | '.join(WAYS)} | loss of masked, less one table | asked |",
            "|---|---|---|---|---|---|---|---|",
            *(row(name, count) for name, count in seeds.items()),
            "",
            LOST,
            "",
            "What noise does to a step is held back by a ridge. Before, all of it was a penalty on weights, and slopes"
            " had half of the budget; now a sixth of a ridge of 1.8 is, the rest only shortens steps, and slopes have"
            " .3. That was set on phishing, adult, california_housing and msd_subset_year above their medians,"
            " indicators, rare_events and other tables of categories. The judges said only that a fourth round is one"
            f" too many (5,000 normal rows at 0.3); elec2 was seen in passing. {judging} seeds of split, noise and"
            " table, the same for both:",
            "",
            "| judge | epsilon | log-loss before | now, less that |",
            "|---|---|---|---|",
            *(changed(name, epsilon, judging) for name in JUDGES for epsilon in (0.3, 1.0, 3.0)),
            "",
            f"A whole fit of 100,000 rows and 3 x 20 columns takes {cost(100_000)} (asked: under 60 s and 60 MB).",
            "",
        ]
    )


LOST = (
    "What is left on phishing is noise, and what it makes of moments: by gradients that are exact but for as much noise"
    " as these products and slopes have, with the best ridge and steps without end, a prototype came to .167, and to"
    " .18 with the moments of this budget for a metric. Margins of others taken as normal within each class (a question"
    " with two offsets, the holder's rows looked at with their labels) gained .003 to .01 there, lost as much or more"
    " on california_housing and categories, and were not built. Nor were an l1 penalty of the size of the noise (adult"
    " -.004, phishing +.01), more weight for labels and less noise for products (phishing -.002, rare_events +.008,"
    " adult +.006), or eigenvalues of moments within the noise drawn to their mean (worse on phishing and adult)."
)


def main() -> None:
    """Measure, and write the page."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seeds", type=int, nargs=len(SETS), default=[5] * len(SETS), metavar=SETS)
    arguments.add_argument("--judging", type=int, default=5, help="seeds of the second table")
    arguments.add_argument("--out", type=Path, default=PAGE)
    told = arguments.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        told.out.write_text(page(dict(zip(SETS, told.seeds, strict=True)), told.judging), encoding="utf8")
    print(told.out.read_text(encoding="utf8"))


if __name__ == "__main__":
    main()
