"""The problems of the DP-SCD benchmark (Damaskinos et al. 2021, appendix E): data, splits, objective and scores.

Columns are divided by their largest absolute value and labels of regressions are centred, both taken for public as in
the paper; then every row is divided by its norm, which depends on that row alone. There is no intercept. Solvers of the
library expect rows of norm sqrt(d), so rows are kept at that norm and the strength of the penalty is multiplied by d,
which is the same problem.
"""

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from benchmarks.frame import Floats, sets
from benchmarks.frame.losses import Linear, fitted
from tacit.bounding.magnitudes import LIMIT

# The set, the loss and the paper's lambda for each. The first is the paper's own, and runs where it was put.
CASES: dict[str, tuple[str, str, float]] = {
    "Ridge, year_prediction_msd": ("year_prediction_msd", "squared", 1e-4),
    "Ridge, msd_subset_year": ("msd_subset_year", "squared", 1e-4),
    "Ridge, california_housing": ("california_housing", "squared", 1e-4),
    "Logistic, phishing": ("phishing", "logistic", 1e-4),
    "SVM, adult": ("adult", "hinge", 1e-5),
}
EPOCHS = {"Ridge, year_prediction_msd": 50}  # and 10 for all others
TRAIN_PART = 0.75  # of the rows for training and tuning, and of these for training


@dataclass(frozen=True, eq=False)
class Split(Linear):
    """Training and test rows of norm sqrt(d): min over w of mean loss + l2 / 2 |w|^2."""

    loss: str
    X: Floats
    y: Floats  # labels of regressions in deviations, clipped to `LIMIT`
    X_test: Floats
    y_test: Floats
    l2: float
    unit: float = 1.0  # of labels of regressions: their deviation
    epochs: int = 10
    l1: float = 0.0

    @property
    def largest_slope(self) -> float:
        """What no dual variable of a sensible model exceeds."""
        return LIMIT if self.loss == "squared" else 1.0

    @property
    def clip_unit(self) -> float:
        """The longest gradient of a row at a sensible model."""
        return self.largest_slope * math.sqrt(self.X.shape[1])

    @property
    def unit_rows(self) -> tuple[Floats, Floats]:
        """Training and test rows of norm 1."""
        root = math.sqrt(self.X.shape[1])
        return self.X / root, self.X_test / root

    def objective(self, w: Floats) -> float:
        """On the training rows; infinite where the weights are not numbers any more."""
        return float(self.objectives(w)[0])

    def score_of_margins(self, margins: Floats) -> float:
        """The mean squared error in the label's units, or the part of wrong signs, on the test rows."""
        if self.loss != "squared":
            return float(np.mean(np.where(margins > 0.0, 1.0, -1.0) != self.y_test))
        with np.errstate(all="ignore"):
            value = float(np.mean((margins - self.y_test) ** 2) * self.unit**2)
        return value if math.isfinite(value) else math.inf

    def score(self, w: Floats) -> float:
        """Of weights."""
        with np.errstate(all="ignore"):
            return self.score_of_margins(self.X_test @ w)

    def constant_score(self) -> float:
        """Of no model at all: the centre of the labels, or the class that is right more often."""
        if self.loss == "squared":
            return self.score(np.zeros(self.X.shape[1]))
        return min(self.score_of_margins(np.full(len(self.y_test), sign)) for sign in (-1.0, 1.0))

    def standardised_score(self) -> float:
        """Of scikit-learn's defaults on standardised columns with an intercept: what a whole fit of ours is after."""
        plain = {"squared": Ridge(), "logistic": LogisticRegression()}
        svc = LinearSVC(loss="hinge", max_iter=100, random_state=0)
        pipeline = fitted(make_pipeline(StandardScaler(), plain.get(self.loss, svc)), self.X, self.y)
        return self.score_of_margins(pipeline.predict(self.X_test))


@dataclass(frozen=True, eq=False)
class Problem:
    """All rows of norm sqrt(d), to be split: those of `is_test` test, part of the others trains, and the rest tunes."""

    name: str
    loss: str
    X: Floats
    y: Floats
    is_test: Any
    l2: float
    unit: float = 1.0

    @property
    def strength(self) -> float:
        """Lambda, for rows of norm 1."""
        return self.l2 / self.X.shape[1]

    @property
    def train_rows(self) -> int:
        """How many of them train."""
        return int(TRAIN_PART * np.sum(~self.is_test))

    @property
    def epochs(self) -> int:
        """The paper's."""
        return EPOCHS.get(self.name, 10)

    @cache  # noqa: B019
    def split(self, seed: int, tuning: bool = False) -> Split:
        """Other training rows for each seed. Where settings are tuned the rest of them test, else the test rows."""
        order = np.random.default_rng(seed).permutation(np.flatnonzero(~self.is_test))
        train, held = order[: self.train_rows], order[self.train_rows :]
        return self._parted(train, held if tuning else np.flatnonzero(self.is_test))

    def anew(self, seed: int) -> Split:
        """Other training rows of all and other test rows for each seed; none tune."""
        order, most = np.random.default_rng(seed).permutation(len(self.y)), int(TRAIN_PART * len(self.y))
        return self._parted(order[:most], order[most:])

    def _parted(self, train: Any, test: Any) -> Split:
        y = self.y[train]
        bounded = np.clip(y, -LIMIT, LIMIT) if self.loss == "squared" else y
        rows = self.X[train], bounded, self.X[test], self.y[test]
        return Split(self.loss, *rows, self.l2, self.unit, self.epochs)


def normalised(name: str, loss: str, X: Floats, y: Floats, strength: float, is_test: Any = None) -> Problem:
    """The paper's preparation of a table; without a published test set, a quarter of the rows is one."""
    X = X / np.maximum(np.abs(X).max(axis=0), 1e-12)
    n, d = X.shape
    X = X * (math.sqrt(d) / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12))
    if is_test is None:
        is_test = np.random.default_rng(1).permutation(n) >= int(TRAIN_PART * n)
    if loss == "squared":
        unit = float(y.std())
        return Problem(name, loss, X, (y - y.mean()) / unit, is_test, strength * d, unit)
    return Problem(name, loss, X, np.where(y == np.max(y), 1.0, -1.0), is_test, strength * d)


@cache
def problem(name: str, most_rows: int | None = None, paper: bool = True) -> Problem:
    """One of them, with the paper's columns or all; raises `sets.MissingSetError` if its data is not here."""
    source, loss, strength = CASES[name]
    read = sets.paper_bunch(source, features="dp-scd" if source == "adult" and paper else None)
    keep = np.random.default_rng(0).permutation(len(read.target))[:most_rows]
    X, y = np.asarray(read.data, dtype=np.float64)[keep], np.asarray(read.target, np.float64)[keep]
    return normalised(name, loss, X, y, strength, None if read.is_test is None else read.is_test[keep])
