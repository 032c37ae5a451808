"""Masked products: labels at one party of three, correlated columns with a known truth; and what a party's work costs.

    python -m benchmarks.federated.masked [--seeds 5] [--rows 20000 100000]

Writes benchmarks/results/federated_masked.md. The weights and rules of `products="masked"` were set on other seeds
(100 to 105) of a generator like this one.
"""

import argparse
import math
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

import tacit
from benchmarks.frame import Floats
from tacit.federated import FederatedLasso, FederatedLogisticRegression, Marginals, Party
from tacit.federated.protocols.marginals import masked
from tacit.privacy import gdp
from tacit.solvers import Statistics

EPSILON, DELTA, PARTIES, COLUMNS, FACTORS, TESTED = 1.0, 1e-6, 3, 20, 6, 50_000
MORE_NOISE, MOST = 1.25, 1.3  # of the central fit, and of its relative excess loss
AUC_LOST = {20_000: 0.018, 100_000: 0.008}
PAGE = Path(__file__).parents[1] / "results" / "federated_masked.md"

Data = tuple[Floats, Floats, Floats, Floats]


def organisations(rows: int, seed: int) -> tuple[Floats, Floats, Floats]:
    """Columns of variance 1 that share six factors across all parties, margins of a known truth, and the truth.

    Margins have a deviation of 1.5 and a mean of -0.5.
    """
    rng = np.random.default_rng([seed, 25])
    d = PARTIES * COLUMNS
    loadings = 0.5 * rng.standard_normal((FACTORS, d))
    X = rng.standard_normal((rows, FACTORS)) @ loadings + rng.standard_normal((rows, d))
    deviations = np.sqrt(1.0 + np.square(loadings).sum(axis=0))
    covariance = (loadings.T @ loadings + np.eye(d)) / np.outer(deviations, deviations)
    truth = rng.standard_normal(d)
    truth *= 1.5 / math.sqrt(truth @ covariance @ truth)
    X /= deviations
    return X, X @ truth - 0.5, truth


def parties(X: Floats, y: Floats) -> list[Party]:
    """The columns split evenly; the second party has the labels."""
    blocks = np.split(X, PARTIES, axis=1)
    return [Party(block, y if place == 1 else None) for place, block in enumerate(blocks)]


def classified(rows: int, seed: int) -> Iterator[tuple[str, float]]:
    """AUC on other rows: without privacy, with masked products, and with sketched labels."""
    X, margins, truth = organisations(rows + TESTED, seed)
    y = np.where(np.random.default_rng([seed, 26]).random(len(X)) < expit(margins), 1.0, -1.0)
    told = {"l1_radius": 2.0 * float(np.abs(truth).sum()), "classes": [-1.0, 1.0], "random_state": seed}
    models: dict[str, Any] = {"not private": LogisticRegression(C=1e4, max_iter=200).fit(X[:rows], y[:rows])}
    for name, labels, products in (("masked", "held", "masked"), ("sketched", "sketched", "local")):
        model = FederatedLogisticRegression(
            EPSILON, DELTA, labels=labels, protocol=Marginals(products=products), **told
        )
        models[name] = model.fit(parties(X[:rows], y[:rows]))
    for name, model in models.items():
        yield name, float(roc_auc_score(y[rows:], model.decision_function(X[rows:])))


def regressed(rows: int, seed: int) -> Iterator[tuple[str, float]]:
    """Relative excess loss on the same rows: with masked products, and of central `statistics` with more noise."""
    X, margins, truth = organisations(rows, seed)
    y = margins + 1.5 * np.random.default_rng([seed, 27]).standard_normal(rows)
    with_one = np.column_stack([X, np.ones(rows)])
    best = float(np.mean(np.square(y - with_one @ np.linalg.lstsq(with_one, y, rcond=None)[0])))
    less = gdp.epsilon_from_mu(gdp.mu_from_budget(EPSILON, DELTA) / MORE_NOISE, DELTA)
    radius = 2.0 * float(np.abs(truth).sum())
    protocol = Marginals(products="masked")
    masked_fit = FederatedLasso(EPSILON, DELTA, l1_radius=radius, labels="held", protocol=protocol, random_state=seed)
    central = tacit.LinearRegression(less, DELTA, solver=Statistics(), random_state=seed)
    for name, predicted in (
        ("masked", masked_fit.fit(parties(X, y)).predict(X)),
        ("central", central.fit(X, y).predict(X)),
    ):
        yield name, (float(np.mean(np.square(y - predicted))) - best) / (float(np.var(y)) - best)


def cost(rows: int) -> dict[str, float]:
    """Processor seconds of the busiest party and of the coordinator in a fit, and megabytes that a party sends."""
    X, margins, _ = organisations(rows, 0)
    spent: dict[str, float] = defaultdict(float)
    answer, opened = masked.MaskedProtocol.answer, masked.coordinator.opened

    def timed(agreed: Any, holding: Any, *given: Any) -> Any:
        start = time.process_time()
        found = answer(agreed, holding, *given)
        spent[holding.name] += time.process_time() - start
        return found

    def opening(*given: Any) -> Any:
        start = time.process_time()
        found = opened(*given)
        spent["coordinator"] += time.process_time() - start
        return found

    with ExitStack() as patched:
        patched.enter_context(mock.patch.object(masked.MaskedProtocol, "answer", timed))
        patched.enter_context(mock.patch.object(masked.coordinator, "opened", opening))
        model = FederatedLasso(EPSILON, DELTA, l1_radius=50.0, labels="held", protocol=Marginals(products="masked"))
        model.fit(parties(X, margins))  # compiles, and is not counted
        spent.clear()
        model.fit(parties(X, margins))
    coordinator = spent.pop("coordinator")
    return {
        "party": max(spent.values()),
        "coordinator": coordinator,
        "sent": max(model.uplink_bytes_.values()) / 1e6,
    }


def mean(values: list[float]) -> str:
    """Mean and standard error."""
    error = np.std(values, ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return f"{np.mean(values):.4f} ± {error:.4f}"


def page(sizes: list[int], seeds: int) -> str:
    """All tables."""
    auc = ["| rows | not private | masked | sketched labels | masked loses | asked |", "|---|---|---|---|---|---|"]
    loss = ["| rows | masked | central, 1.25 of the noise | ratio of means | asked |", "|---|---|---|---|---|"]
    for rows in sizes:
        found: dict[str, list[float]] = defaultdict(list)
        for seed in range(seeds):
            for name, value in (*classified(rows, seed), *(("loss " + n, v) for n, v in regressed(rows, seed))):
                found[name].append(value)
        lost = [one - other for one, other in zip(found["not private"], found["masked"], strict=True)]
        cells = [mean(found[name]) for name in ("not private", "masked", "sketched")]
        auc.append(f"| {rows:,} | {' | '.join(cells)} | {mean(lost)} | at most {AUC_LOST.get(rows, '-')} |")
        ratio = np.mean(found["loss masked"]) / np.mean(found["loss central"])
        loss.append(
            f"| {rows:,} | {mean(found['loss masked'])} | {mean(found['loss central'])} | {ratio:.2f} | {MOST} |"
        )
    spent = cost(100_000)
    return "\n".join(
        [
            "# Products between parties under masks",
            "",
            f"`python -m benchmarks.federated.masked`. {PARTIES} parties with {COLUMNS} columns each that share"
            f" {FACTORS} factors, labels at the second one; epsilon = {EPSILON:g}, delta = {DELTA:g}, add-remove."
            f" Mean ± standard error over {seeds} seeds of data and noise. In one process, by the bytes of a network.",
            "",
            "**Two classes.** AUC on 50,000 other rows.",
            "",
            *auc,
            "",
            "**Squared loss.** Relative excess loss on the training rows: 0 is least squares, 1 is the mean.",
            "",
            *loss,
            "",
            "**Cost** of 100,000 rows, 3 x 20 columns and labels, processor seconds in the protocol's own work.",
            "",
            "| busiest party, s | coordinator, s | sent by a party, MB | asked |",
            "|---|---|---|---|",
            f"| {spent['party']:.2f} | {spent['coordinator']:.2f} | {spent['sent']:.1f} | under 5 s, under 25 MB |",
            "",
        ]
    )


def write(description: str | None, rows: list[int], out: Path, measured: Callable[[list[int], int], str]) -> None:
    """Read the command line, measure, and write a page."""
    arguments = argparse.ArgumentParser(description=description)
    arguments.add_argument("--seeds", type=int, default=5)
    arguments.add_argument("--rows", type=int, nargs="+", default=rows)
    arguments.add_argument("--out", type=Path, default=out)
    told = arguments.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        told.out.write_text(measured(told.rows, told.seeds), encoding="utf8")
    print(told.out.read_text(encoding="utf8"))


if __name__ == "__main__":
    write(__doc__, list(AUC_LOST), PAGE, page)
