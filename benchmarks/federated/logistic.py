"""The logistic loss between three organisations, one of which has the labels: next to one table, and without slopes."""

from collections.abc import Iterator
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
    how: dict[str, Any] = {"labels": "held", "protocol": Marginals(products="masked"), "classes": [-1.0, 1.0]}
    model = FederatedLogisticRegression(*budget, l1_radius=_RADIUS, random_state=seed, **how)
    yield "masked", *judged(model.fit(parties).decision_function(test), truth)
    with mock.patch.object(MaskedProtocol, "has_slopes", False):
        yield "masked, as for normal columns", *judged(model.fit(parties).decision_function(test), truth)


def judged(margins: Floats, truth: Floats) -> tuple[float, float]:
    """Log-loss and AUC."""
    return float(log_loss(truth, expit(margins), labels=[-1.0, 1.0])), float(roc_auc_score(truth, margins))


def table(seeds: int, budget: tuple[float, float]) -> list[str]:
    """Rows of the page, means and standard errors over splits and noise."""
    lines = [f"| set | {' | '.join(WAYS)} | masked less one table | asked |", "|---|---|---|---|---|---|---|"]
    for name in SETS:
        found: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
        for seed in range(seeds):
            for way, loss, auc in scores(name, seed, budget):
                found[way].append((loss, auc))
        cells = [f"{loss:.3f} / {auc:.3f}" for loss, auc in (np.mean(found[way], axis=0) for way in WAYS)]
        more = np.subtract(found["masked"], found["one table"])[:, 0]
        error = np.std(more, ddof=1) / np.sqrt(seeds) if seeds > 1 else np.nan
        cells.append(f"{np.mean(more):+.3f} ± {error:.3f}")
        lines.append(f"| {name} | {' | '.join(cells)} | at most {ASKED} |")
    return lines
