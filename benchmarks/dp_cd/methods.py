"""The methods of the DP-CD benchmark: each runs at a number of passes, a step and a clip.

DP-CD and greedy run as the library's solvers do, on columns in single precision; what an estimator would
do before (bounding, scales) is left out, because the problems are the paper's.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.dp_cd import paper
from benchmarks.dp_cd.problems import Problem
from benchmarks.frame import Floats, dp_sgd
from benchmarks.frame.solvers import LIMIT, LOSSES, SOLVERS, Budget, Plan, Promise, Release, Run, asked
from benchmarks.frame.timing import in_turns, seconds
from tacit.problems import Penalty

CLIPS = np.logspace(-3.0, 6.0, 100).tolist()


class Point(NamedTuple):
    """What is tuned. `batch` is for DP-SGD alone."""

    step: float
    clip: float
    batch: int = 0


@dataclass(frozen=True)
class Coordinate:
    """DP-CD, or greedy: a solver of the library with the options of a variant."""

    label: str
    solver: str
    options: tuple[tuple[str, Any], ...] = ()
    private: bool = False  # the mean squares are found privately, inside the budget
    paper: bool = False  # replace-one neighbours and Renyi DP, as in the paper
    scaled: bool = False  # labels are divided by their scale, as estimators do and the solvers' own rules expect

    def serves(self, problem: Problem) -> bool:
        """Whether the solver has the loss; private mean squares need public bounds besides."""
        served = SOLVERS[self.solver].serves.losses
        return LOSSES[problem.loss] in served and (problem.bounds is not None or not self.private)

    def points(self) -> list[list[Point]]:
        """The paper's grid: for each of ten steps, a hundred points by growing clip."""
        return [[Point(step, clip) for clip in CLIPS] for step in np.logspace(-2.0, 1.0, 10).tolist()]

    def run(self, problem: Problem, passes: int | None, point: Point | None = None) -> Run:
        """The solver and its task; what is None is left to its own rules."""
        chosen: dict[str, Any] = dict(self.options)
        if not self.private:
            chosen["smoothness"] = problem.smoothness
        chosen["n_iter" if self.solver == "greedy" else "n_passes"] = passes
        if point is not None:
            chosen |= {"step": point.step, "clip": point.clip}
        budget = Budget(problem.epsilon, problem.delta, "replace-one" if self.paper else "add-remove")
        penalty = Penalty(l1=problem.l1, l2=problem.l2)
        return Run(SOLVERS[self.solver](**chosen), asked(problem.shape, problem.loss, budget, penalty=penalty))

    def promise(self, problem: Problem, passes: int | None) -> Promise:
        """The releases of that many passes, with their noise."""
        run = self.run(problem, passes)
        if not self.paper or passes is None:
            return run.promise()
        noise = paper.multiplier(problem.epsilon, problem.delta, passes)
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
        promise = self.promise(problem, passes)
        fits = [self.fit(problem, self.run(problem, passes, point), promise, seed)[0] for point in points]
        return problem.relative_error(np.column_stack(fits))

    def trace(
        self, problem: Problem, passes: int, point: Point, seed: int, at: Iterable[int]
    ) -> tuple[list[float], list[float]]:
        """Relative errors and seconds after each of the passes `at`, of shorter runs with the noise of the whole."""
        whole, errors, taken = self.promise(problem, passes), [], []
        for mark in at:
            run = self.run(problem, mark, point)
            weights, took = self.fit(problem, run, run.stopped(whole), seed)
            errors.append(float(problem.relative_error(weights)[0]))
            taken.append(took)
        return errors, taken

    def pass_clock(self, problem: Problem, short: int = 2, long: int = 22) -> Callable[[], float]:
        """Seconds of one more pass: between a short and a long fit, calibrated before."""
        runs = [(self.run(problem, p, Point(1.0, 1.0)), self.promise(problem, p)) for p in (short, long)]

        def measure() -> float:
            first, second = (self.fit(problem, run, promise, 0)[1] for run, promise in runs)
            return (second - first) / (long - short)

        return measure


@cache
def _columns(problem: Problem, bounded: bool) -> tuple[NDArray[np.float32], Floats]:
    """The columns as a solver reads them, and what they were multiplied by.

    A solver that finds mean squares expects entries of at most `LIMIT`.
    """
    scales = LIMIT / problem.bounds if bounded and problem.bounds is not None else np.ones(problem.X.shape[1])
    return np.asfortranarray(problem.X * scales, dtype=np.float32), scales


@dataclass(frozen=True)
class SGD:
    """Proximal DP-SGD; its batch is tuned too, because the paper does not say what it took."""

    label: str
    batches: tuple[int, ...] = (64, 256)

    def serves(self, problem: Problem) -> bool:  # noqa: ARG002
        """Everywhere."""
        return True

    def points(self) -> list[list[Point]]:
        """Ten steps and one beyond, because the largest is often the best, by a hundred clips, for each batch."""
        steps = np.logspace(-6.0, 6.0 / 9.0, 11).tolist()
        return [[Point(step, clip, batch) for clip in CLIPS] for batch in self.batches for step in steps]

    def errors(self, problem: Problem, passes: int, points: Sequence[Point], seed: int) -> Floats:
        """All points of a batch size go together, on the same samples."""
        out = np.empty(len(points))
        for batch in {point.batch for point in points}:
            places = [k for k, point in enumerate(points) if point.batch == batch]
            pairs = [points[k][:2] for k in places]
            (weights,), _ = dp_sgd.weights_along(problem, passes, batch, pairs, seed, [passes])
            out[places] = problem.relative_error(weights)
        return out

    def trace(
        self, problem: Problem, passes: int, point: Point, seed: int, at: Iterable[int]
    ) -> tuple[list[float], list[float]]:
        """Along one run."""
        weights, taken = dp_sgd.weights_along(problem, passes, point.batch, [point[:2]], seed, at)
        return [float(problem.relative_error(w)[0]) for w in weights], taken

    def noiseless_error(self, problem: Problem, passes: int) -> float:
        """The relative error at the best step and batch, without noise and clipping: what noise is not to blame for."""
        errors = []
        for batch in self.batches:
            pairs = [(row[0].step, 1e12) for row in self.points() if row[0].batch == batch]
            (weights,), _ = dp_sgd.weights_along(problem, passes, batch, pairs, 0, [passes], noiseless=True)
            errors.append(float(problem.relative_error(weights).min()))
        return min(errors)

    def pass_clock(self, problem: Problem, batch: int = 256) -> Callable[[], float]:
        """Seconds of one pass."""
        steps = dp_sgd.steps_of(len(problem.y), batch, 1)
        descent = dp_sgd.Descent(problem, batch, np.array([1e-3]), np.array([1.0]), 1.0, 0)
        return lambda: seconds(lambda: [descent.step() for _ in range(steps)])


_PAPER = (("clipping", "coordinate"), ("order", "random"), ("averaging", "last"))
_LAST, _TAIL = (("averaging", "last"),), (("averaging", "tail"),)

METHODS: dict[str, Coordinate | SGD] = {
    "paper": Coordinate("DP-CD, the paper's form and accounting", "coordinate", _PAPER, paper=True),
    "form": Coordinate("DP-CD, the paper's form, our accounting", "coordinate", _PAPER),
    "ours": Coordinate("DP-CD, ours, last iterate", "coordinate", _LAST),
    "tail": Coordinate("DP-CD, ours, tail average", "coordinate", _TAIL),
    "private": Coordinate("DP-CD, ours, private constants", "coordinate", _LAST, private=True),
    "greedy": Coordinate("greedy", "greedy"),
    "sgd": SGD("DP-SGD"),
}
TRACED = tuple(name for name in METHODS if name != "tail")
"""Those with iterates to draw; an average over the tail has none."""


def _product_clock(problem: Problem, dtype: type[np.floating]) -> Callable[[], float]:
    """Seconds of one `X.T @ r`, with `X` by columns as DP-CD reads it."""
    X, r = np.asfortranarray(problem.X, dtype=dtype), problem.y.astype(dtype)
    repeats = min(100, max(1, 20_000_000 // X.size))
    return lambda: seconds(lambda: [X.T @ r for _ in range(repeats)]) / repeats


def timings(problem: Problem, rounds: int) -> Iterator[tuple[int, int, str, float]]:
    """Number of BLAS threads (one, and one for each core), round, model and seconds of a pass or product; in turns."""
    timed = [name for name in ("ours", "form", "greedy", "sgd") if METHODS[name].serves(problem)]
    clocks = {name: METHODS[name].pass_clock(problem) for name in timed}
    clocks |= {f"{kind.__name__} product": _product_clock(problem, kind) for kind in (np.float64, np.float32)}
    for threads in sorted({1, os.cpu_count() or 1}):
        with threadpool_limits(threads):
            for turn, name, took in in_turns(rounds, clocks):
                yield threads, turn, name, took
