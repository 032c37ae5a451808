"""The data of the federated benchmark: the paper's synthetic sets, correlated columns, real sets; and their optima.

The loss of a model is that of the paper: |A x - y|^2 / (2 n), the mean logistic loss or the mean squared hinge. What is
reported is mostly the relative excess loss (f(x) - f*) / (f(0) - f*), with f* the least loss in the l1 ball: 0 is the
best model of the ball, 1 is no better than predicting zero, and more is worse than that.
"""

import math
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.dp_fw import problems as texts
from benchmarks.frame import Floats, losses, sets
from tacit.datasets import make_featurewise_frank_wolfe
from tacit.federated import Party
from tacit.problems import LOSSES, L1Ball

DENSITY = 0.01
RADIUS = 5.0
NOISE_VARIANCE = 0.001
CORRELATION = 0.9
GROUPS = 4  # of correlated columns, each with one column at every party
REAL = {
    "colon": ("colon", 5.0, 3.0),
    "leukemia": ("leukemia_golub", 5.0, 3.0),
    "news20": ("news20", 50.0, 0.1),
    "a9a": ("a9a", 5.0, 3.0),
    "phishing": ("phishing", 5.0, 3.0),
    "rcv1": ("rcv1", 50.0, 0.1),
}
"""Name in the data folder, l1 radius and bound on entries."""
TEXT, NEWS_BITS = ("news20", "rcv1"), 17
_GAP = 1e-5  # of an optimum, relative to what is gained
_MOST_STEPS, _MOST_SETS, _COLUMNS = 5_000, 20, 500


@dataclass(frozen=True, eq=False)
class Problem:
    """Columns A (CSC), targets y (classes: -1 and 1), a loss and an l1 ball; what is declared of the entries."""

    A: Any
    y: Floats
    radius: float
    loss: str = "squared"
    entry_bound: float | None = None
    truth: Floats | None = None  # what y was made from
    intercepted: bool = False  # also a regression

    @property
    def size(self) -> tuple[int, int, int]:
        """Rows, columns and stored entries."""
        return *self.A.shape, self.A.nnz

    @property
    def intercept(self) -> bool:
        """Models of two classes have one; the paper's synthetic sets need none."""
        return self.intercepted or self.loss != "squared"

    def parties(self, count: int) -> list[Party]:
        """The columns split evenly; the last party has the labels."""
        return _parties(self, count)

    def value(self, predictions: Floats) -> float:
        """The loss of these predictions."""
        return float(np.mean(losses.values(self.loss, predictions, self.y)))

    def slopes(self, predictions: Floats) -> Floats:
        """The derivative of the loss in each prediction."""
        return losses.slopes(self.loss, predictions, self.y) / len(self.y)

    @cached_property
    def at_zero(self) -> float:
        """The loss of predicting zero for everyone."""
        return self.value(np.zeros(len(self.y)))

    @cached_property
    def optimum(self) -> float:
        """The least loss in the ball."""
        return self.value(self.A @ self.best[:-1] + self.best[-1])

    @cached_property
    def best(self) -> Floats:
        """The weights of the least loss, and the intercept."""
        return least_loss(self)

    def relative(self, loss: float) -> float:
        """The relative excess loss."""
        return (loss - self.optimum) / (self.at_zero - self.optimum)


@lru_cache(maxsize=2)
def _parties(problem: Problem, count: int) -> list[Party]:
    parts = np.array_split(np.arange(problem.A.shape[1]), count)
    return [Party(problem.A[:, part], problem.y if part is parts[-1] else None) for part in parts]


def least_loss(problem: Problem) -> Floats:
    """Weights and intercept, on growing sets of columns, until the Frank-Wolfe gap over all columns is small."""
    A = problem.A
    found = np.zeros(A.shape[1] + 1)
    kept, most = np.zeros(0, dtype=np.int64), _COLUMNS
    for _ in range(_MOST_SETS):
        predictions = A[:, kept] @ found[kept] + found[-1]
        gradient = np.abs(A.T @ problem.slopes(predictions))
        gain = problem.at_zero - problem.value(predictions)
        inside = float(gradient[kept].max(initial=0.0))
        if problem.radius * (float(gradient.max()) - inside) <= _GAP * gain:
            break
        kept = np.union1d(kept[found[kept] != 0.0], np.argsort(-gradient, kind="stable")[:most])
        most *= 2
        found[np.append(kept, -1)] = _least_loss_within(problem, A[:, kept], found[np.append(kept, -1)])
    return found


def _least_loss_within(problem: Problem, A: Any, start: Floats) -> Floats:
    """By accelerated projected gradients from a start, until the Frank-Wolfe gap is small beside what was gained."""
    ball, by_row = L1Ball(problem.radius), A.tocsr()
    curvature = LOSSES[problem.loss].curvature
    rate = 1.0 / (curvature * _largest_square(by_row, A) / len(problem.y) * 1.02)
    tilt = min(rate, 0.5 / curvature) if problem.intercept else 0.0
    x, b = start[:-1], float(start[-1])
    moved, shifted, momentum = x, b, 1.0
    for step in range(_MOST_STEPS):
        predictions = by_row @ moved + shifted
        slopes = problem.slopes(predictions)
        gradient = A.T @ slopes
        if step % 10 == 0 and np.abs(moved).sum() <= problem.radius * (1 + 1e-9):
            gap = float(gradient @ moved + problem.radius * np.abs(gradient).max())
            if gap <= _GAP * (problem.at_zero - problem.value(predictions)):
                return np.append(moved, shifted)
        new, b_new = ball.project(moved - rate * gradient), shifted - tilt * float(slopes.sum())
        if float((moved - new) @ (new - x)) > 0.0:
            momentum = 1.0  # it went too far
        following = (1.0 + math.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
        weight = (momentum - 1.0) / following
        moved, shifted = new + weight * (new - x), b_new + weight * (b_new - b)
        x, b, momentum = new, b_new, following
    return np.append(x, b)


def _largest_square(by_row: Any, A: Any) -> float:
    """The largest squared singular value, by power iterations."""
    v = np.random.default_rng(0).standard_normal(A.shape[1])
    size = 1.0
    for _ in range(30):
        v = A.T @ (by_row @ (v / np.linalg.norm(v)))
        size = float(np.linalg.norm(v))
    return size


@lru_cache(maxsize=6)
def columns(rows: int, count: int, density: float, seed: int) -> Any:
    """The paper's columns."""
    A, _ = make_featurewise_frank_wolfe(rows, count, density=density, random_state=seed)
    return A.tocsc()


@lru_cache(maxsize=4)
def synthetic(rows: int, count: int, density: float, active: int, radius: float | None, seed: int = 0) -> Problem:
    """The paper's set with so many active columns; radius None is the l1 norm of the truth."""
    A = columns(rows, count, density, seed)
    rng = np.random.default_rng([seed, active])
    x = np.zeros(count)
    x[rng.choice(count, size=active, replace=False)] = rng.standard_normal(active)
    return _with_noise(A, x, radius, rng)


def _with_noise(A: Any, x: Floats, radius: float | None, rng: np.random.Generator) -> Problem:
    y = A @ x + math.sqrt(NOISE_VARIANCE) * rng.standard_normal(A.shape[0])
    return Problem(A, y, float(np.abs(x).sum()) if radius is None else radius, truth=x)


@lru_cache(maxsize=1)
def correlated(rows: int, count: int, density: float, parties: int, among: int, seed: int = 0) -> Problem:
    """Groups of active columns, each with one column at `among` of the parties, on the same rows and correlated by 0.9.

    The truth has normal weights on all of them, and its own l1 norm is the radius.
    """
    A = columns(rows, count, density, seed)
    rng = np.random.default_rng([seed, 9])
    parts = np.array_split(np.arange(count), parties)
    taken, x = {}, np.zeros(count)
    for group in range(GROUPS):
        support = np.flatnonzero(rng.random(rows) < density)
        common = rng.standard_normal(len(support))
        for turn in range(among):
            place = int(parts[(group + turn) % parties][group])
            own = rng.standard_normal(len(support))
            values = math.sqrt(CORRELATION) * common + math.sqrt(1.0 - CORRELATION) * own
            column = (values, (support, np.zeros(len(support), dtype=np.int64)))
            taken[place] = sparse.csc_array(column, shape=(rows, 1))
            x[place] = rng.standard_normal()
    pieces, start = [], 0
    for place in sorted(taken):
        pieces += [A[:, start:place], taken[place]]
        start = place + 1
    return _with_noise(sparse.hstack([*pieces, A[:, start:]], format="csc"), x, None, rng)


@cache
def real(name: str, most_rows: int | None = None, loss: str = "logistic") -> Problem:
    """A real set. Rows of text have norm 1, columns of the others are standardised. All are then clipped."""
    stored, radius, bound = REAL[name]
    if name in TEXT:
        A, y = texts.real(stored) if name == "rcv1" else sets.paper_set(stored, n_hashed=2**NEWS_BITS)
        A = sparse.csr_array(A, dtype=np.float64)
        np.clip(A.data, -bound, bound, out=A.data)
    else:
        A, y = sets.paper_set(stored)
        A = np.asarray(A.toarray() if sparse.issparse(A) else A, dtype=np.float64)
        A = np.clip((A - A.mean(axis=0)) / np.where(A.std(axis=0) > 0, A.std(axis=0), 1.0), -bound, bound)
    rows = np.random.default_rng(0).permutation(len(y))[:most_rows]
    labels = np.where(np.asarray(y)[rows] > 0, 1.0, -1.0)
    return Problem(sparse.csc_array(A[rows], dtype=np.float64), labels, radius, loss, bound)
