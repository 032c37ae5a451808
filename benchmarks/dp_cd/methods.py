"""The methods of the DP-CD benchmark: each runs at a number of passes, a step and a clip.

DP-CD and greedy run as the library's solvers do, on columns in single precision; what an estimator would
do before (bounding, scales) is left out, because the problems are the paper's.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.dp_cd.problems import Problem
from benchmarks.frame import Floats, dp_sgd
from benchmarks.frame.solvers import Run, asked, slope_clock
from benchmarks.frame.timing import in_turns, seconds
from benchmarks.frame.tuning import Point
from tacit.bounding.magnitudes import LIMIT
from tacit.privacy import Budget, Plan, Promise, Release
from tacit.problems import LOSSES, Penalty
from tacit.solvers import SOLVERS

CLIPS = np.logspace(-3.0, 6.0, 100).tolist()
Grid = list[list[Point]]


def paper_multiplier(epsilon: float, delta: float, passes: int) -> float:
    """Noise over sensitivity of a pass by the paper's appendix B: Renyi DP of Gaussians, converted as in its (16).

    With u^2 the sum of (sensitivity / noise)^2 over all releases, the best order gives
    epsilon = u^2 / 2 + u sqrt(2 log(1 / delta)), its (18).
    """
    root = math.sqrt(2.0 * math.log(1.0 / delta))
    return math.sqrt(passes) / (math.sqrt(root**2 + 2.0 * epsilon) - root)


@dataclass(frozen=True)
class Coordinate:
    """DP-CD, or greedy: a solver of the library with the options of a variant."""

    label: str
    options: Mapping[str, Any] = field(default_factory=dict)
    column: str = ""  # what it is called over a column
    color: str = ""  # in figures; none for an average over the tail, which has no iterates to draw
    solver: str = "coordinate"
    private: bool = False  # the mean squares are found privately, inside the budget
    paper: bool = False  # replace-one neighbours and Renyi DP, as in the paper
    scaled: bool = False  # labels are divided by their scale, as estimators do and the solvers' own rules expect

    def serves(self, problem: Problem) -> bool:
        """Whether the solver has the loss; private mean squares need public bounds besides."""
        served = SOLVERS[self.solver].serves.losses
        return LOSSES[problem.loss] in served and (problem.bounds is not None or not self.private)

    def grid(self) -> Grid:
        """The paper's: for each of ten steps, a hundred points by growing clip."""
        return [[Point(0, clip, step) for clip in CLIPS] for step in np.logspace(-2.0, 1.0, 10).tolist()]

    def run(self, problem: Problem, passes: int | None, point: Point | None = None) -> Run:
        """The solver and its task; what is None is left to its own rules."""
        chosen = dict(self.options)
        if not self.private:
            chosen["smoothness"] = problem.smoothness
        chosen["n_iter" if self.solver == "greedy" else "n_passes"] = passes
        if point is not None:
            chosen |= {"step": point.step, "clip": point.clip}
        budget = replace(problem.budget, adjacency="replace-one") if self.paper else problem.budget
        penalty = Penalty(l1=problem.l1, l2=problem.l2)
        return Run(SOLVERS[self.solver](**chosen), asked(problem.shape, problem.loss, budget, penalty=penalty))

    def promise(self, problem: Problem, passes: int | None, batch: int = 0) -> Promise:  # noqa: ARG002
        """The releases of that many passes, with their noise."""
        run = self.run(problem, passes)
        if not self.paper or passes is None:
            return run.promise()
        noise = paper_multiplier(problem.epsilon, problem.delta, passes)
        (release,) = run.plan.releases
        return run.promised(Plan(Release(release.name, release.kind, count=release.count, multiplier=noise)))

    def fit(self, problem: Problem, run: Run, promise: Promise, seed: int) -> tuple[Floats, float]:
        """The weights in the problem's units, and the seconds that the solver took."""
        Z, scales = _columns(problem, self.private)
        label = problem.label_bound / LIMIT if self.scaled and problem.loss == "squared" else 1.0
        penalties = {"l2": problem.l2 * scales**2, "l1": problem.l1 * scales / label}
        weights, took = run.fit((Z, problem.y / label), promise, seed, **penalties)
        return weights[:-1] * scales * label, took

    def errors(self, problem: Problem, passes: int, points: Sequence[Point], seed: int) -> Floats:
        """The relative error of each point, by one fit for each."""
        promises = {batch: self.promise(problem, passes, batch) for batch in {point.batch for point in points}}
        runs = [(self.run(problem, passes, point), promises[point.batch]) for point in points]
        fits = [self.fit(problem, *run, seed)[0] for run in runs]
        return problem.relative_error(np.column_stack(fits))

    def noiseless_error(self, problem: Problem, passes: int, seed: int = 0) -> float:
        """The relative error at the best step of the grid, with next to no noise and clipping."""
        points = [row[0]._replace(clip=1e4) for row in self.grid()]
        return float(self.errors(replace(problem, epsilon=1e12), passes, points, seed).min())

    def trace(
        self, problem: Problem, passes: int, point: Point, seed: int, at: Sequence[int]
    ) -> tuple[list[float], list[float]]:
        """Relative errors and seconds after each of the passes `at`, of shorter runs with the noise of the whole."""
        whole, found = self.promise(problem, passes, point.batch), []
        for mark in at:
            run = self.run(problem, mark, point)
            weights, took = self.fit(problem, run, run.stopped(whole), seed)
            found.append((float(problem.relative_error(weights)[0]), took))
        errors, taken = zip(*found, strict=True)
        return list(errors), list(taken)

    def pass_clock(self, problem: Problem, short: int = 2, long: int = 22) -> Callable[[], float]:
        """Seconds of one more pass."""
        runs = [(self.run(problem, p, Point(0, 1.0, 1.0)), self.promise(problem, p)) for p in (short, long)]
        return slope_clock(long - short, *(lambda run=run: self.fit(problem, *run, 0)[1] for run in runs))


@cache
def _columns(problem: Problem, bounded: bool) -> tuple[NDArray[np.float32], Floats]:
    """The columns as a solver reads them, and what they were multiplied by.

    A solver that finds mean squares expects entries of at most `LIMIT`.
    """
    scales = LIMIT / problem.bounds if bounded and problem.bounds is not None else np.ones(problem.X.shape[1])
    return np.asfortranarray(problem.X * scales, dtype=np.float32), scales


@dataclass(frozen=True)
class Scd(Coordinate):
    """DP-SCD: dual coordinates, of batches of rows as they are.

    Clips are in units of the longest update of a row of the usual norm: the paper's smallest, 1e-3, is far above it.
    """

    solver: str = "dual"
    batches: tuple[int, ...] = (10_000, 45_312)

    def serves(self, problem: Problem) -> bool:
        """It has no l1 penalty."""
        return super().serves(problem) and not problem.l1

    def grid(self) -> Grid:
        """From a hundredth of that update to ten of it."""
        return [[Point(batch, clip, 1.0) for clip in np.logspace(-2.0, 1.0, 13).tolist()] for batch in self.batches]

    def run(self, problem: Problem, passes: int | None, point: Point | None = None) -> Run:
        """The solver at a point, with the paper's step and the problem's own penalty."""
        n, told, squares = len(problem.y), point or Point(self.batches[0], 1.0), sum(problem.smoothness)
        batch = min(told.batch or self.batches[0], n)
        longest = math.sqrt(squares) / (1.0 + batch * squares / (n * problem.l2))
        chosen = dict(self.options) | {"n_passes": passes, "batch_size": batch, "damping": 1.0, "least_penalty": 0.0}
        task = asked(problem.shape, problem.loss, problem.budget, penalty=Penalty(l2=problem.l2))
        return Run(SOLVERS[self.solver](**chosen, clip=longest * (told.clip or 1.0)), task)

    def promise(self, problem: Problem, passes: int | None, batch: int = 0) -> Promise:
        """It depends on the batch, which is a sample of the rows."""
        return self.run(problem, passes, Point(batch)).promise()

    def fit(self, problem: Problem, run: Run, promise: Promise, seed: int) -> tuple[Floats, float]:
        """The weights, and the seconds that the solver took."""
        weights, took = run.fit((problem.X, problem.y), promise, seed, l2=problem.l2)
        return weights[:-1], took


@dataclass(frozen=True)
class SGD:
    """Proximal DP-SGD; its batch is tuned too, because the paper does not say what it took."""

    label: str
    column: str
    color: str
    batches: tuple[int, ...] = (64, 256)

    def serves(self, problem: Problem) -> bool:  # noqa: ARG002
        """Everywhere."""
        return True

    def grid(self) -> Grid:
        """Ten steps and one beyond, because the largest is often the best, by a hundred clips, for each batch."""
        steps = np.logspace(-6.0, 6.0 / 9.0, 11).tolist()
        return [[Point(batch, clip, step) for clip in CLIPS] for batch in self.batches for step in steps]

    def errors(self, problem: Problem, passes: int, points: Sequence[Point], seed: int) -> Floats:
        """All points of a batch size go together, on the same samples."""
        return problem.relative_error(dp_sgd.descents(problem, problem.budget, points, seed, passes).last[0])

    def trace(
        self, problem: Problem, passes: int, point: Point, seed: int, at: Sequence[int]
    ) -> tuple[list[float], list[float]]:
        """Along one run."""
        found = dp_sgd.descents(problem, problem.budget, [point], seed, passes, at)
        return [float(problem.relative_error(w)[0]) for w in found.last], found.seconds.tolist()

    def noiseless_error(self, problem: Problem, passes: int, seed: int = 0) -> float:
        """The relative error at the best step and batch, without noise and clipping: what noise is not to blame for."""
        points = [row[0]._replace(clip=1e12) for row in self.grid()]
        weights = dp_sgd.descents(problem, Budget(math.inf, problem.delta), points, seed, passes).last[0]
        return float(problem.relative_error(weights).min())

    def pass_clock(self, problem: Problem, batch: int = 256) -> Callable[[], float]:
        """Seconds of one pass."""
        steps = dp_sgd.steps_of(len(problem.y), batch, 1)
        descent = dp_sgd.Descent(problem, batch, np.array([1e-3]), np.array([1.0]), 1.0, 0)
        return lambda: seconds(lambda: [descent.step() for _ in range(steps)], time.process_time)


def _form(order: str) -> dict[str, Any]:
    """The paper's algorithm, with coordinates in that order."""
    return {"clipping": "coordinate", "order": order, "averaging": "last"}


def _paper(order: str, color: str) -> Coordinate:
    """Its form and its accounting."""
    told = f"form and accounting, {order}"
    return Coordinate(f"DP-CD, the paper's {told} order", _form(order), f"DP-CD, paper's {told}", color, paper=True)


def _own(order: str, what: str = "last iterate", color: str = "", averaging: str = "last") -> Coordinate:
    """The library's form, in that order."""
    told, options = f"ours, {what}, {order}", {"order": order, "averaging": averaging}
    return Coordinate(f"DP-CD, {told} order", options, told, color, private=what == "private constants")


_ORDERS = {"": "permuted", "-jittered": "jittered", "-cyclic": "cyclic"}
_COLORS = dict(zip(_ORDERS, (("black", "C2"), ("C5", "olive"), ("C6", "darkgreen")), strict=True))
SGD_HERE = SGD("DP-SGD", "DP-SGD, here", "C1")
METHODS: dict[str, Coordinate | SGD] = {
    "paper": _paper("random", "C0"),
    "paper-cyclic": _paper("cyclic", "C4"),
    "form": Coordinate(
        "DP-CD, the paper's form, our accounting, random order",
        _form("random"),
        "paper's form, our accounting, random",
        "C9",
    ),
    **{f"ours{key}": _own(order, color=_COLORS[key][0]) for key, order in _ORDERS.items()},
    **{f"tail{key}": _own(order, "tail average", averaging="tail") for key, order in _ORDERS.items()},
    **{f"private{key}": _own(order, "private constants", _COLORS[key][1]) for key, order in _ORDERS.items()},
    "greedy": Coordinate("greedy", {}, "greedy", "C3", solver="greedy"),
    "scd": Scd("DP-SCD, the published variant", {"variant": "published"}, "DP-SCD, published", "brown"),
    "scd-ours": Scd("DP-SCD, ours, tail average", {}, "DP-SCD, ours, tail average", "tan"),
    "sgd": SGD_HERE,
}
"""By the names that records have."""
TRACED = tuple(name for name, method in METHODS.items() if method.color)
CLOCKED = ("ours", "ours-jittered", "ours-cyclic", "form", "paper-cyclic", "greedy", "sgd")
"""Those whose passes are timed: every form and order once."""


def _product_clock(problem: Problem, dtype: type[np.floating]) -> Callable[[], float]:
    """Seconds of one `X.T @ r`, with `X` by columns as DP-CD reads it."""
    X, r = np.asfortranarray(problem.X, dtype=dtype), problem.y.astype(dtype)
    repeats = min(100, max(1, 20_000_000 // X.size))
    return lambda: seconds(lambda: [X.T @ r for _ in range(repeats)], time.process_time) / repeats


def timings(problem: Problem, rounds: int) -> Iterator[tuple[int, str, float]]:
    """Round, model and the processor's seconds of a pass or product; in turns."""
    clocks = {name: METHODS[name].pass_clock(problem) for name in CLOCKED if METHODS[name].serves(problem)}
    clocks |= {f"{kind.__name__} product": _product_clock(problem, kind) for kind in (np.float64, np.float32)}
    return in_turns(rounds, clocks)
