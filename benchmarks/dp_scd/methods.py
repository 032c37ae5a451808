"""The methods of the DP-SCD benchmark: each has a grid to tune over, and runs at a point of it."""

import math
import time
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
from benchmarks.frame.solvers import Run, asked, slope_clock
from benchmarks.frame.timing import seconds
from benchmarks.frame.tuning import Point
from tacit import solvers
from tacit.bounding.magnitudes import LIMIT
from tacit.privacy import Budget
from tacit.problems import LOSSES, Penalty

AUTHORS = Point(1_000, 0.1)  # of the run that the authors' repository names, for YearPredictionMSD at epsilon 0.1


def longest(split: Split, damping: float) -> float:
    """The longest update of a row where so many rows are taken to pull one way."""
    n, d = split.shape
    return split.clip_unit / (1.0 + damping * d / (n * split.l2))


@dataclass(frozen=True)
class Dual:
    """A variant of the solver "dual" on the paper's problem, with its lambda.

    Clips are in units of the longest update of a row, steps in units of the paper's, where all rows of a batch are
    taken to pull one way. "sequential" and "primal" have other clips: the longest update of a row of norm 1, and a
    weight. The authors' setting has theirs: a dual variable in the units of the label.
    """

    label: str
    color: str  # in figures
    variant: str
    batches: tuple[int, ...] = ()
    clips: tuple[float, ...] = ()
    steps: tuple[float, ...] = (0.0,)
    options: tuple[tuple[str, Any], ...] = ()  # more of the solver's
    passes: int | None = None  # None: the paper's, and where nothing is tuned the rule's

    @property
    def grid(self) -> list[Point]:
        """Batches by clips by steps."""
        return [Point(*values) for values in product(self.batches, self.clips, self.steps)] or [Point()]

    def run(self, split: Split, budget: Budget, point: Point, stop_after: int | None = None) -> Run:
        """The solver and its task; what is not tuned is left to its rules."""
        chosen: dict[str, Any] = {"variant": self.variant, "n_passes": stop_after or self.passes, **dict(self.options)}
        n, d = split.shape
        if point.batch:
            batch = min(point.batch, n)
            damping = max(1.0 / batch, 1.0 / (point.step or 1.0))
            unit = {"sequential": split.clip_unit, "primal": 1.0}.get(self.variant, longest(split, batch * damping))
            if point == AUTHORS:
                unit = math.sqrt(d) / split.unit
            chosen |= {"batch_size": batch, "clip": point.clip * unit, "least_penalty": 0.0}
            chosen["n_passes"] = chosen["n_passes"] or split.epochs
            if self.variant == "secret":
                chosen["damping"] = damping
        return Run(solvers.Dual(**chosen), asked((n, d), split.loss, budget, penalty=Penalty(l2=split.l2)))

    def strength(self, split: Split, budget: Budget, point: Point) -> float:
        """Lambda of the problem that is solved, for rows of norm 1: the paper's, or what the rule raises it to."""
        least = getattr(self.run(split, budget, point).algorithm, "penalty", 0.0)
        return max(split.l2, least) / split.shape[1]

    def weights(self, split: Split, budget: Budget, point: Point, seed: int, stop_after: int | None = None) -> Floats:
        """The weights; those after fewer passes have the noise of the whole run."""
        run = self.run(split, budget, point, stop_after)
        whole = self.run(split, budget, point) if budget.is_private else run
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
    batches: tuple[int, ...] = (10, 30, 100, 300, 1_000, 3_000)
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
    return dp_sgd.descents(split, budget, points, seed, split.epochs, marks)


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


_BATCHES, _FEW = (10, 30, 100, 300, 1_000, 3_000), (100, 300, 1_000, 3_000)
_CLIPS, _MORE, _STEPS = (0.25, 0.5, 1.0, 2.0, 4.0), (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0), (1.0, 3.0, 10.0, 30.0)
_LAST = (("averaging", "last"),)

METHODS: dict[str, Estimator | Dual | SGD] = {
    "fit": Estimator("ours, the whole estimator, untuned", "C3"),
    "rule": Dual("ours, untuned", "black", "secret"),
    "tuned": Dual("ours, tail average, tuned", "C0", "secret", _BATCHES, _CLIPS, _STEPS),
    "paper's step": Dual("ours, tail average and the paper's step, tuned", "C7", "secret", _BATCHES, _CLIPS, (1.0,)),
    "last": Dual("ours, last iterate, tuned", "C8", "secret", _BATCHES, _CLIPS, _STEPS, _LAST),
    "newton": Dual(
        "ours, the paper's Newton step, tuned", "C6", "secret", _FEW, _CLIPS, _STEPS, (("inner", "newton"),)
    ),
    "published": Dual("the published variant, tuned", "C9", "published", _FEW, _MORE),
    "authors": Dual("the published variant, the authors' setting", "grey", "published", (AUTHORS[0],), (AUTHORS[1],)),
    "sequential": Dual(
        "sequential, one epoch, tuned", "C4", "sequential", (10,), (1e-7, 1e-6, 1e-5, 1e-4, 1e-3), passes=1
    ),
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
    products = lambda: seconds(lambda: [(Z @ v, Z.T @ z) for _ in range(10)], time.process_time) / 10  # noqa: E731
    return {"epoch": slope_clock(long - short, clock(short), clock(long)), "products": products}
