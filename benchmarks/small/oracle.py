"""What could be had if units cost nothing and settings were known: our own steps, and DP-SGD, in such a place.

Both are told the true centre and scale of every column and of the target, over the training rows, and all of the budget
goes to their steps. Of each the best of eight settings *on the test rows* counts. Nobody can have that: it says how
much is left to gain. Ours is `gradient`, by its own rules but for the clip and the number of steps; DP-SGD is
`benchmarks.frame.dp_sgd`, the mean of the second half of its iterates. The better of both is the oracle of the page.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.metrics import accuracy_score, r2_score, roc_auc_score

from benchmarks.frame import Floats
from benchmarks.frame.dp_sgd import descents
from benchmarks.frame.losses import Linear
from benchmarks.frame.solvers import Run, asked
from benchmarks.frame.tuning import Point
from tacit.bounding.magnitudes import LIMIT
from tacit.privacy import Budget
from tacit.solvers import Algorithm, Gradient

CLIPS, STEPS = (0.2, 0.5, 1.0, 2.0), (None, 50)  # of ours: over the rule's, and how many (None: the rule's)
RATES, LONGEST = (0.1, 0.3, 1.0, 3.0), (0.3, 1.0)  # of DP-SGD: over 1 / curvature, and clips over a row's norm
PASSES, SAMPLES = 20, 5  # of DP-SGD: passes over the rows, and samples in one of them
_FAR, _OF_FAR = 0.98, 0.3  # as the library reads scales off histograms


@dataclass(frozen=True, eq=False)
class Told(Linear):
    """Training and test rows in true units, the last column of ones, and targets as solvers take them."""

    loss: str
    X: Floats
    y: Floats
    X_test: Floats
    y_test: Any
    l2: float
    outputs: int = 1
    unit: tuple[float, float] = (0.0, 1.0)  # centre and scale of the target of a regression
    l1: float = 0.0

    @property
    def clip_unit(self) -> float:
        """The norm of a usual row."""
        return float(np.sqrt(self.X.shape[1]))

    def clipped_slopes(self, margins: Any, y: Any, limits: Floats) -> Any:
        """Of several classes the norm of a row's slopes is held."""
        if self.outputs == 1:
            return super().clipped_slopes(margins, y, limits)
        each = softmax(margins.reshape(len(margins), self.outputs, -1), axis=1)
        each[np.arange(len(y)), y[:, 0].astype(int)] -= 1.0
        each *= np.minimum(1.0, limits / np.maximum(np.linalg.norm(each, axis=1), 1e-300))[:, None]
        return each.reshape(margins.shape)

    def score(self, name: str, weights: Floats) -> float:
        """Of a column of weights for each output, on the test rows; below any other where they are not numbers."""
        margins = self.X_test @ weights
        if not np.isfinite(margins).all():
            return -np.inf
        if name == "r2":
            return float(r2_score(self.y_test, self.unit[0] + self.unit[1] * margins[:, 0]))
        if name == "auc":
            return float(roc_auc_score(self.y_test, expit(margins[:, 0])))
        found = margins.argmax(axis=1) if self.outputs > 1 else margins[:, 0] > 0.0
        return float(accuracy_score(self.y_test, found))


def units(table: Floats) -> tuple[Floats, Floats]:
    """The centres of columns, and the larger of their deviation and 0.3 of the far 2%."""
    centre = table.mean(axis=0)
    far = np.quantile(np.abs(table - centre), _FAR, axis=0)
    size = np.maximum(table.std(axis=0), _OF_FAR * far)
    return centre, np.where(size > 0.0, size, 1.0)


def told(parts: list[Any], kind: str) -> Told:
    """A split in true units, with the penalty that the estimators have by default."""
    train, test = (np.asarray(part, dtype=np.float64) for part in parts[:2])
    centre, size = units(train)
    rows = [np.clip((part - centre) / size, -LIMIT, LIMIT) for part in (train, test)]
    X, X_test = (np.column_stack([part, np.ones(len(part))]) for part in rows)
    if kind == "regression":
        y = np.asarray(parts[2], dtype=np.float64)
        middle, scale = units(y)
        bounded = np.clip((y - middle) / scale, -LIMIT, LIMIT)
        return Told("squared", X, bounded, X_test, parts[3], 0.0, unit=(float(middle), float(scale)))
    classes, numbers = np.unique(parts[2], return_inverse=True)
    y_test = np.searchsorted(classes, parts[3])
    if len(classes) == 2:
        return Told("logistic", X, 2.0 * numbers - 1.0, X_test, y_test, 1.0 / len(X))
    return Told("multinomial", X, numbers.astype(np.float64), X_test, y_test, 1.0 / len(X), len(classes))


@dataclass(frozen=True, eq=False)
class _Changed(Run):
    """The solver by its rules, with another clip."""

    times: float = 1.0

    @cached_property
    def algorithm(self) -> Algorithm:
        usual: Any = self.solver.at(self.task)
        return replace(usual, clip=self.times * usual.clip)


def oracle(problem: Told, epsilon: float, name: str, seed: int) -> list[float]:
    """The score of each setting."""
    n, width = problem.X.shape
    budget = Budget(epsilon, n**-1.5)
    task = asked((n, width - 1), problem.loss, budget, intercept=True, outputs=problem.outputs)
    rows = problem.X[:, :-1].astype(np.float32), problem.y
    found = []
    for steps, times in product(STEPS, CLIPS):
        run = _Changed(Gradient(n_iter=steps), task, times)
        weights, _ = run.solve(rows, run.promise(), seed, l2=problem.l2)
        found.append(problem.score(name, weights.T))
    return found


def dp_sgd(problem: Told, epsilon: float, name: str, seed: int) -> list[float]:
    """The score of each setting."""
    n = len(problem.y)
    points = [Point(max(1, n // SAMPLES), clip, rate) for clip, rate in product(LONGEST, RATES)]
    tail = descents(problem, Budget(epsilon, n**-1.5), points, seed, PASSES).tail
    shape = (problem.X.shape[1], problem.outputs)
    return [problem.score(name, tail[:, place].reshape(shape)) for place in range(len(points))]
