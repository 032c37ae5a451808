"""What holes in a table and rare events cost: `python -m benchmarks.tables.holes`.

Holes: a tenth of the entries of six columns of adult, at random, against the same splits without holes. Rare events: 1
in 200 of 50,000 rows with ten normal columns; the mean of predicted probabilities over the share of events among the
same rows, which would be 1.
"""

import math
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from benchmarks.frame.sets import load
from benchmarks.frame.tables import lines
from tacit import LogisticRegression

PAGE = Path(__file__).parents[1] / "results" / "holes.md"
SEEDS, RARE_SEEDS = 5, 10
HOLES, COLUMNS = 0.1, 6
RARE, ROWS = 0.005, 50_000


def with_holes(X: Any, seed: int) -> Any:
    """The same table; holes are in its first columns, which are the numbers."""
    out = X.copy()
    holes = np.random.default_rng(seed).random((len(X), COLUMNS)) < HOLES
    out[:, :COLUMNS][holes] = np.nan
    return out


def auc(X: Any, y: Any, epsilon: float, seed: int) -> float:
    """On held-out rows, which have holes as the others do."""
    train, test = train_test_split(np.arange(len(y)), test_size=0.25, stratify=y, random_state=seed)
    model = LogisticRegression(epsilon=epsilon, random_state=seed).fit(X[train], y[train])
    return float(roc_auc_score(y[test], model.decision_function(X[test])))


def rare(seed: int) -> tuple[Any, Any]:
    """Rows of which one in 200 or so is an event."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((ROWS, 10))
    margin = X @ (0.3 * rng.standard_normal(10))
    low, high = -20.0, 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if expit(margin + middle).mean() < RARE else (low, middle)
    return X, (rng.random(ROWS) < expit(margin + low)).astype(np.int64)


def excess(epsilon: float, seed: int) -> float:
    """The mean predicted probability over the truth."""
    X, y = rare(seed)
    model = LogisticRegression(epsilon=epsilon, random_state=seed).fit(X, y)
    return float(model.predict_proba(X)[:, 1].mean() / y.mean())


def _cell(found: list[float], digits: int) -> str:
    return f"{np.mean(found):.{digits}f} ± {np.std(found, ddof=1) / math.sqrt(len(found)):.{digits}f}"


def holes_rows() -> Iterable[list[str]]:
    """A row for each budget."""
    X, y, _ = load("adult")
    X = np.asarray(X, dtype=np.float64)
    for epsilon in (0.1, 1.0, 10.0):
        whole = [auc(X, y, epsilon, seed) for seed in range(SEEDS)]
        holes = [auc(with_holes(X, seed), y, epsilon, seed) for seed in range(SEEDS)]
        lost = [a - b for a, b in zip(whole, holes, strict=True)]
        yield [f"{epsilon:g}", _cell(whole, 4), _cell(holes, 4), _cell(lost, 4)]


def rare_rows() -> Iterable[list[str]]:
    """A row for each budget."""
    for epsilon in (0.3, 1.0, 3.0):
        yield [f"{epsilon:g}", _cell([excess(epsilon, seed) for seed in range(RARE_SEEDS)], 2)]


def main() -> None:
    """Measure, and write the page."""
    warnings.simplefilter("ignore")
    holes = lines(("epsilon", "AUC without holes", "AUC with holes", "lost"), holes_rows())
    events = lines(("epsilon", "mean probability over the truth"), rare_rows())
    PAGE.write_text(TOP.format(holes=holes, events=events), encoding="utf8")
    print(PAGE.read_text(encoding="utf8"))


TOP = """# Holes and rare events

Written by `python -m benchmarks.tables.holes`; nothing is declared. Means over seeds, and their standard errors.

A tenth of the entries of six columns of numbers of adult missing, at random, in the rows of the fit and in those it is
scored on (75/25, stratified, five seeds, the same splits and noise on both sides):

{holes}

One in 200 of 50,000 rows is an event, ten normal columns: the mean of the predicted probabilities over the share of
events, ten seeds.

{events}
"""

if __name__ == "__main__":
    main()
