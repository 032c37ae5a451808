"""The five problems of the DP-CD paper (Mangold et al. 2022, section 6): data, objective and optimum.

The paper's squared loss is (w.x - y)^2 and ours half of it, so its lambda is halved here; relative errors are the same.
No problem has an intercept. "imbalanced" is the data in its own units, "balanced" has standardised columns, which the
paper does not account for either.
"""

import math
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np

from benchmarks.frame import Floats, sets
from benchmarks.frame.losses import Linear
from tacit.datasets import make_dp_cd
from tacit.privacy import Budget

SIGNAL = 33.54
"""What the labels of `make_dp_cd(random_state=0)` are multiplied by: the paper does not say how large its own are. At
this size the zero model is as far from the optimum as in the paper's table, .7551 relative."""

# Round numbers that no row exceeds, for those who find the mean squares privately.
_BOUNDS = {
    "elec2": [1, 7, 1, 1, 1, 1, 1, 1],
    # income, age, rooms, bedrooms, population, occupants, latitude, longitude
    "california_housing": [20, 60, 200, 50, 50_000, 2_000, 50, 150],
}


class Case(NamedTuple):
    """Where a problem comes from, and what the paper asks of it. Classes have an l2 penalty of 1 / n."""

    source: str
    balanced: bool = False
    strength: float = 0.0  # of the l1 penalty, as the paper counts it
    epsilon: float = 1.0
    label_bound: float = 1.0
    label_unit: float = 1.0


CASES = {
    "Electricity, imbalanced": Case("elec2"),
    "Electricity, balanced": Case("elec2", balanced=True),
    "California, imbalanced": Case("california_housing", strength=1.0, label_bound=5.0),
    "California, balanced": Case("california_housing", balanced=True, strength=0.1, label_bound=5.0),
    "Sparse LASSO": Case("synthetic", strength=30.0, epsilon=10.0, label_bound=300.0, label_unit=SIGNAL),
}


@dataclass(frozen=True, eq=False)
class Problem(Linear):
    """min over w of mean loss + l1 |w|_1 + l2 / 2 |w|^2, to be solved at (epsilon, 1 / n^2)."""

    name: str
    loss: str
    X: Floats
    y: Floats
    l1: float
    l2: float
    epsilon: float
    bounds: Floats | None = None  # of imbalanced columns: what no absolute value exceeds, taken for public
    label_bound: float = 1.0  # of a squared loss: about what no label exceeds

    @property
    def delta(self) -> float:
        """The paper's, 1 / n^2."""
        return len(self.y) ** -2.0

    @property
    def budget(self) -> Budget:
        """Of a row that is added or removed."""
        return Budget(self.epsilon, self.delta)

    @cached_property
    def smoothness(self) -> tuple[float, ...]:
        """The mean square of each column: 1 but for imbalanced columns.

        Taken for public there, as in the paper, unless a method finds them privately.
        """
        if self.bounds is None:
            return (1.0,) * self.X.shape[1]
        return tuple(np.mean(self.X**2, axis=0).tolist())

    def relative_error(self, w: Floats) -> Floats:
        """(F(w) - F*) / F* for each column of `w`."""
        return (self.objectives(w) - self.optimum) / self.optimum

    @property
    def zero_error(self) -> float:
        """The relative error of the zero model."""
        return float(self.relative_error(np.zeros(self.X.shape[1]))[0])


@cache
def problem(name: str) -> Problem:
    """One of the cases; raises `sets.MissingSetError` if its data is not here. Any other name is one for timing."""
    if name not in CASES:
        return _dense(name)
    case = CASES[name]
    table, y, kind = (
        (*make_dp_cd(random_state=0), "regression") if case.source == "synthetic" else sets.load(case.source)
    )
    X, bounds = np.asarray(table, dtype=np.float64), None
    if case.balanced:
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    elif case.source in _BOUNDS:
        bounds = np.array(_BOUNDS[case.source], dtype=np.float64)
    if kind == "classification":
        labels = np.where(np.asarray(y) == np.max(y), 1.0, -1.0)
        return Problem(name, "logistic", X, labels, 0.0, 1.0 / len(labels), case.epsilon, bounds)
    labels = case.label_unit * np.asarray(y, dtype=np.float64)
    return Problem(name, "squared", X, labels, case.strength / 2.0, 0.0, case.epsilon, bounds, case.label_bound)


def _dense(name: str) -> Problem:
    """Of the size and the loss in its name."""
    size, _, loss = name.partition(", ")
    n, p = (int(part.replace(",", "")) for part in size.split(" x "))
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    y = X @ rng.standard_normal(p) / math.sqrt(p) + rng.standard_normal(n)
    return Problem(name, loss, X, y if loss == "squared" else np.where(y > 0, 1.0, -1.0), 0.0, 1.0 / n, epsilon=1.0)
