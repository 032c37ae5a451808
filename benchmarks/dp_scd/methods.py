"""The methods of the DP-SCD benchmark: each has a grid to tune over, and runs at a point of it."""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
from scipy.sparse import csr_array

import tacit
from benchmarks.dp_scd.problems import Split
from benchmarks.frame import Floats, dp_sgd
from benchmarks.frame.solvers import LIMIT, LOSSES, Budget, Run, asked, slope_clock
from benchmarks.frame.timing import seconds
from benchmarks.frame.tuning import Point
from tacit import solvers

EPOCHS = 10


def rule_clip(split: Split, batch: int) -> float:
    """The rule's clip of an update for batches of that size: the longest update of a row."""
    n, d = split.shape
    return split.clip_unit / (1.0 + batch * d / (n * split.l2))


@dataclass(frozen=True)
class Dual:
    """A variant of the solver "dual" on the paper's problem. Clips are in units of the rule's for the batch.

    "sequential" and "primal" have other units: the longest update of a row of norm 1, and a weight.
    """

    label: str
    color: str  # in figures
    variant: str
    batches: tuple[int, ...] = ()
    clips: tuple[float, ...] = ()
    passes: int | None = EPOCHS

    @property
    def grid(self) -> list[Point]:
        """Batches by clips."""
        return [Point(*pair) for pair in product(self.batches, self.clips)] or [Point()]

    def run(self, split: Split, budget: Budget, point: Point, passes: int | None) -> Run:
        """The solver and its task; what is not tuned is left to its rules."""
        chosen: dict[str, Any] = {"variant": self.variant, "n_passes": passes}
        n, d = split.shape
        if point.batch:
            chosen["batch_size"] = min(point.batch, n)
        if point.clip:
            unit = {"sequential": split.clip_unit, "primal": 1.0}.get(self.variant)
            chosen["clip"] = point.clip * (rule_clip(split, chosen["batch_size"]) if unit is None else unit)
        return Run(solvers.Dual(**chosen), asked((n, d), split.loss, budget))

    def weights(self, split: Split, budget: Budget, point: Point, seed: int, stop_after: int | None = None) -> Floats:
        """The weights; those after fewer passes have the noise of the whole run."""
        run = self.run(split, budget, point, stop_after or self.passes)
        whole = self.run(split, budget, point, self.passes) if budget.is_private else run
        promise = whole.promise()
        if run.plan != whole.plan:
            promise = run.stopped(promise)
        return run.fit((split.X, split.y), promise, seed, l2=split.l2)[0][:-1]

    def scores(self, split: Split, budget: Budget, points: Sequence[Point], seed: int) -> list[float]:
        """One run for each point."""
        return [split.score(self.weights(split, budget, point, seed)) for point in points]

    def objectives(self, split: Split, budget: Budget, point: Point, seed: int, marks: Sequence[int]) -> list[float]:
        """On the training rows, after each of these passes."""
        return [split.objective(self.weights(split, budget, point, seed, mark)) for mark in marks]


@dataclass(frozen=True)
class SGD:
    """DP-SGD in NumPy. Clips are in units of the longest gradient at a sensible model, steps of 1 / curvature."""

    label: str
    color: str
    tail: bool
    batches: tuple[int, ...] = (100, 300, 1_000, 3_000)
    clips: tuple[float, ...] = (0.03, 0.1, 0.3, 1.0)
    steps: tuple[float, ...] = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)

    @property
    def grid(self) -> list[Point]:
        """Batches by clips by steps."""
        return [Point(*values) for values in product(self.batches, self.clips, self.steps)]

    def scores(self, split: Split, budget: Budget, points: Sequence[Point], seed: int) -> list[float]:
        """All points of a batch go together, on the same samples."""
        found = _descents(split, budget, tuple(points), seed)
        weights = found.tail if self.tail else found.last[0]
        return [split.score(weights[:, k]) for k in range(len(points))]

    def objectives(self, split: Split, budget: Budget, point: Point, seed: int, marks: Sequence[int]) -> list[float]:
        """On the training rows, after each of these passes; of the last iterate."""
        found = _descents(split, budget, (point,), seed, tuple(marks))
        return [split.objective(weights[:, 0]) for weights in found.last]


@lru_cache(maxsize=1024)  # the last iterate and the tail are of the same run
def _descents(
    split: Split, budget: Budget, points: tuple[Point, ...], seed: int, marks: tuple[int, ...] = ()
) -> dp_sgd.Iterates:
    return dp_sgd.descents(split, budget, points, seed, EPOCHS, marks)


@dataclass(frozen=True)
class Estimator:
    """A whole fit of an estimator: an intercept, its own default penalty, row_norm declared and nothing tuned."""

    label: str
    color: str
    grid = (Point(),)

    def scores(self, split: Split, budget: Budget, points: Sequence[Point], seed: int) -> list[float]:
        """One fit."""
        shared: dict[str, Any] = {"epsilon": budget.epsilon, "delta": budget.delta, "solver": "dual"}
        shared |= {"row_norm": 1.0, "random_state": seed}
        model: Any
        if split.loss == "squared":
            model = tacit.Ridge(y_bounds=(-LIMIT, LIMIT), **shared)
        elif split.loss == "logistic":
            model = tacit.LogisticRegression(classes=[-1.0, 1.0], **shared)
        else:
            model = tacit.LinearSVC(loss="hinge", classes=[-1.0, 1.0], **shared)
        train, test = split.unit_rows
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the seed
            margins = model.fit(train, split.y).predict(test)
        return [split.score_of_margins(margins)] * len(points)


_BATCHES = (100, 300, 1_000, 3_000)
_CLIPS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)

METHODS: dict[str, Estimator | Dual | SGD] = {
    "fit": Estimator("ours, the whole estimator, untuned", "C3"),
    "rule": Dual("ours, untuned", "black", "secret", passes=None),
    "tuned": Dual("ours, tuned", "C0", "secret", _BATCHES, _CLIPS),
    "published": Dual("the published variant, tuned", "C9", "published", _BATCHES, _CLIPS),
    "sequential": Dual("sequential, one epoch, tuned", "C4", "sequential", (10,), (1e-7, 1e-6, 1e-5, 1e-4, 1e-3), 1),
    "primal": Dual("primal, tuned", "C5", "primal", (50,), (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)),
    "sgd": SGD("DP-SGD, last iterate, tuned", "C1", tail=False),
    "tail": SGD("DP-SGD, tail average, tuned", "C2", tail=True),
}
"""By the names that records have."""


# The time of one epoch, against `X @ v` plus `X.T @ z` on the same rows in double precision. The solver has dense rows
# in single precision, as an estimator stores them for it.

DENSITY = 0.1  # of the sparse rows
LIMITS = {"squared": 2.5, "hinge": 2.5, "logistic": 4.5, "squared_hinge": math.inf}
TIMED = tuple(f"{kind}, {LOSSES[loss].words}" for kind in ("dense", "CSR") for loss in LIMITS)


def named(timed: str) -> tuple[str, str]:
    """How the rows of a timed case are stored, and its loss."""
    kind, words = timed.split(", ")
    return kind, words.replace(" ", "_")


def _rows(kind: str, loss: str, size: tuple[int, int]) -> tuple[Any, Floats]:
    """Random rows of norm sqrt(d) at most, and targets."""
    rng, (n, d) = np.random.default_rng(0), size
    Z: Any = rng.standard_normal((n, d))
    if kind == "CSR":
        Z *= rng.random((n, d)) < DENSITY
    Z *= math.sqrt(d) / np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), 1e-12)
    signal = Z @ rng.standard_normal(d) / math.sqrt(d) + rng.standard_normal(n)
    targets = np.clip(signal, -3, 3) if loss == "squared" else np.where(signal > 0, 1.0, -1.0)
    return csr_array(Z) if kind == "CSR" else Z, targets


def clocks(name: str, size: tuple[int, int], short: int = 1, long: int = 11) -> dict[str, Callable[[], float]]:
    """Seconds of one more epoch, between a short and a long run that are calibrated before, and of the products."""
    kind, loss = named(name)
    Z, targets = _rows(kind, loss, size)
    data = (Z if kind == "CSR" else Z.astype(np.float32), targets)

    def clock(epochs: int) -> Callable[[], float]:
        solver = solvers.Dual(n_passes=epochs, batch_size=min(300, size[0]))
        run = Run(solver, asked(size, loss, Budget(1.0, 1e-3), sparse=kind == "CSR", intercept=True))
        promise = run.promise()
        return lambda: run.fit(data, promise, 0, l2=1.0 / size[0])[1]

    v, z = np.ones(size[1]), np.ones(size[0])
    products = lambda: seconds(lambda: [(Z @ v, Z.T @ z) for _ in range(10)]) / 10  # noqa: E731
    return {"epoch": slope_clock(long - short, clock(short), clock(long)), "products": products}
