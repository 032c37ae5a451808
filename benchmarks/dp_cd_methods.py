"""The methods of the DP-CD benchmark: each runs at a number of passes, a step and a clip.

DP-CD and greedy run as the library's solvers do, on columns in single precision; what the driver of an estimator would
do before (bounding, scales) is left out, because the problems are the paper's.
"""

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

import dp_sgd
from dp_cd_problems import Problem
from tacit.preprocessing.magnitudes import LIMIT
from tacit.privacy import Budget, Gate, NoiseSource, Plan, Promise, Release
from tacit.problems import LOSSES, Penalty
from tacit.solvers import SOLVERS, Options, Rows, Task

Floats = NDArray[np.float64]


class Point(NamedTuple):
    """What is tuned. `batch` is for DP-SGD alone."""

    step: float
    clip: float
    batch: int = 0


class Method(Protocol):
    """Something that can be tuned and run."""

    @property
    def label(self) -> str:
        """What tables call it."""

    def serves(self, problem: Problem) -> bool:
        """Whether it runs on this problem."""

    def points(self) -> list[list[Point]]:
        """The paper's grid: for each step (and batch), the points by growing clip."""

    def errors(self, problem: Problem, passes: int, points: Sequence[Point], seed: int) -> Floats:
        """The relative error of each point."""

    def trace(
        self, problem: Problem, passes: int, point: Point, seed: int, at: Iterable[int]
    ) -> tuple[list[float], list[float]]:
        """Relative errors and seconds after each of the passes `at`, of a run planned for `passes`."""


CLIPS = np.logspace(-3.0, 6.0, 100).tolist()


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
    solver: str
    options: tuple[tuple[str, Any], ...] = ()
    private: bool = False  # the mean squares are found privately, inside the budget
    paper: bool = False  # replace-one neighbours and Renyi DP, as in the paper
    scaled: bool = False  # labels are divided by their scale, as estimators do and the solvers' own rules expect

    def serves(self, problem: Problem) -> bool:
        """Whether the solver has the loss; private mean squares need public bounds besides."""
        return LOSSES[problem.loss] in SOLVERS[self.solver].losses and (problem.bounds is not None or not self.private)

    def points(self) -> list[list[Point]]:
        """Ten steps by a hundred clips."""
        return [[Point(step, clip) for clip in CLIPS] for step in np.logspace(-2.0, 1.0, 10).tolist()]

    def task(self, problem: Problem, passes: int | None, point: Point | None = None) -> Task:
        """What the solver is asked for; what is None is left to its own rules."""
        chosen: dict[str, Any] = dict(self.options)
        if not self.private:
            chosen["smoothness"] = problem.smoothness
        chosen["n_iter" if self.solver == "greedy" else "n_passes"] = passes
        if point is not None:
            chosen |= {"step": point.step, "clip": point.clip}
        budget = Budget(problem.epsilon, problem.delta, "replace-one" if self.paper else "add-remove")
        penalty = "l1" if problem.l1 > 0.0 else "l2"
        n, p = problem.shape
        return Task(n, p, LOSSES[problem.loss], 1, False, False, budget, (penalty,), Options(**chosen))

    def calibrated(self, problem: Problem, passes: int | None) -> Promise:
        """The releases of that many passes, with their noise."""
        return _calibrated(self, problem, passes)

    def fit(self, problem: Problem, task: Task, calibrated: Promise, seed: int) -> tuple[Floats, float]:
        """The weights in the problem's units, and the seconds that the solver took."""
        Z, scales = _columns(problem, self.private)
        label = problem.label_bound / LIMIT if self.scaled and problem.loss == "squared" else 1.0
        penalty = Penalty(l2=problem.l2 * scales**2, l1=problem.l1 * scales / label)
        rows = Rows(Z, problem.y / label)
        start = time.perf_counter()
        with Gate(calibrated, NoiseSource(seed)) as gate:
            weights = SOLVERS[self.solver].run(task, rows, penalty, gate).weights
        return weights[0, :-1] * scales * label, time.perf_counter() - start

    def errors(self, problem: Problem, passes: int, points: Sequence[Point], seed: int) -> Floats:
        """One fit for each point."""
        calibrated = self.calibrated(problem, passes)
        fits = [self.fit(problem, self.task(problem, passes, point), calibrated, seed)[0] for point in points]
        return problem.relative_error(np.column_stack(fits))

    def trace(
        self, problem: Problem, passes: int, point: Point, seed: int, at: Iterable[int]
    ) -> tuple[list[float], list[float]]:
        """Shorter runs, with the noise of the whole one."""
        whole = self.calibrated(problem, passes)
        errors, seconds = [], []
        for mark in at:
            task = self.task(problem, mark, point)
            counts = {r.name: r.count for r in SOLVERS[self.solver].plan(task, 1.0).releases}
            parts = (
                replace(r, share=None, multiplier=whole.multiplier(r.name), count=counts[r.name])
                for r in whole.plan.releases
            )
            weights, took = self.fit(
                problem, task, Plan(*parts).calibrate(whole.budget, whole.unit, whole.solver), seed
            )
            errors.append(float(problem.relative_error(weights)[0]))
            seconds.append(took)
        return errors, seconds


@cache
def _calibrated(method: Coordinate, problem: Problem, passes: int | None) -> Promise:
    task = method.task(problem, passes)
    plan = SOLVERS[method.solver].plan(task, 1.0)
    if method.paper and passes is not None:
        multiplier = paper_multiplier(problem.epsilon, problem.delta, passes)
        (release,) = plan.releases
        plan = Plan(Release(release.name, release.kind, count=release.count, multiplier=multiplier))
    return plan.calibrate(task.budget, task.unit, method.solver)


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
        weights, seconds = dp_sgd.weights_along(problem, passes, point.batch, [point[:2]], seed, at)
        return [float(problem.relative_error(w)[0]) for w in weights], seconds

    def noiseless_error(self, problem: Problem, passes: int) -> float:
        """The relative error at the best step and batch, without noise and clipping: what noise is not to blame for."""
        errors = []
        for batch in self.batches:
            pairs = [(row[0].step, 1e12) for row in self.points() if row[0].batch == batch]
            (weights,), _ = dp_sgd.weights_along(problem, passes, batch, pairs, 0, [passes], noiseless=True)
            errors.append(float(problem.relative_error(weights).min()))
        return min(errors)


_PAPER = (("clipping", "coordinate"), ("order", "random"), ("averaging", "last"))
_LAST, _TAIL = (("averaging", "last"),), (("averaging", "tail"),)

METHODS: dict[str, Method] = {
    "paper": Coordinate("DP-CD, the paper's form and accounting", "coordinate", _PAPER, paper=True),
    "form": Coordinate("DP-CD, the paper's form, our accounting", "coordinate", _PAPER),
    "ours": Coordinate("DP-CD, ours, last iterate", "coordinate", _LAST),
    "tail": Coordinate("DP-CD, ours, tail average", "coordinate", _TAIL),
    "private": Coordinate("DP-CD, ours, private constants", "coordinate", _LAST, private=True),
    "greedy": Coordinate("greedy", "greedy"),
    "sgd": SGD("DP-SGD"),
}
