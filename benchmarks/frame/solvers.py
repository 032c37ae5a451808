"""How benchmarks run a solver of the library on rows that are bounded already, without an estimator."""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from benchmarks.frame import Floats
from tacit.blocks import Bounded
from tacit.privacy import Budget, Gate, NoiseSource, Plan, Promise, Unit
from tacit.problems import LOSSES, Penalty
from tacit.problems.task import LinearTask
from tacit.solvers import Algorithm, Solver


def asked(shape: tuple[int, ...], loss: str, budget: Budget, *, intercept: bool = False, **more: Any) -> LinearTask:
    """What a solver is told: the size, the loss and the budget; `more` are other fields of a task."""
    n, d = shape
    return LinearTask(unit=Unit("row", n), d=d, loss=LOSSES[loss], budget=budget, fit_intercept=intercept, **more)


@dataclass(frozen=True, eq=False)
class Run:
    """A solver with its options, and the task that it is run on."""

    solver: Solver
    task: LinearTask

    @cached_property
    def algorithm(self) -> Algorithm:
        """The solver's rules, worked out for the task."""
        return self.solver.at(self.task)

    @cached_property
    def plan(self) -> Plan:
        """All releases, with the whole budget."""
        return Plan(*self.algorithm.releases(1.0))

    def promise(self) -> Promise:
        """The same, with their noise."""
        return self.promised(self.plan)

    def promised(self, plan: Plan) -> Promise:
        """Another plan for the same task, with its noise."""
        return plan.calibrate(self.task.budget, self.task.unit, self.solver.name)

    def stopped(self, whole: Promise) -> Promise:
        """The promise of this run, which is shorter than the whole one and has its noise."""
        counts = {release.name: release.count for release in self.plan.releases}
        parts = (
            replace(release, share=None, multiplier=whole.multiplier(release.name), count=counts[release.name])
            for release in whole.plan.releases
        )
        return self.promised(Plan(*parts))

    def fit(
        self, rows: tuple[Any, ...], promise: Promise, seed: int, *, l2: Any = 0.0, l1: Any = 0.0
    ) -> tuple[Floats, float]:
        """Weights, the intercept being the last, and the processor's seconds. Strengths are one, or one a column.

        `rows` are bounded rows, their targets and, where entries are bounded, that bound.
        """
        weights, seconds = self.solve(rows, promise, seed, l2=l2, l1=l1)
        return weights[0], seconds

    def solve(
        self, rows: tuple[Any, ...], promise: Promise, seed: int, *, l2: Any = 0.0, l1: Any = 0.0
    ) -> tuple[Floats, float]:
        """The same with a row of weights for each output."""
        Z, targets, *entry = rows
        d = self.task.d
        penalty = Penalty(l1=np.broadcast_to(l1, d).astype(float), l2=np.broadcast_to(l2, d).astype(float))
        start = time.process_time()
        with Gate(promise, NoiseSource(seed)) as gate:
            weights = self.algorithm.run(Bounded(Z, targets, penalty, *entry), gate).weights
        return weights, time.process_time() - start


def fitted(model: Any, *data: Any, clock: Callable[[], float] = time.perf_counter) -> float:
    """The seconds of a fit, without the warnings that a benchmark knows of: of its seed, and of few rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = clock()
        model.fit(*data)
        return clock() - start


def margins(model: Any, X: Any) -> Floats:
    """What a classifier decides by, or what a regression predicts."""
    tell = model.decision_function if hasattr(model, "decision_function") else model.predict
    return np.asarray(tell(X), dtype=np.float64)


def slope_clock(count: int, short: Callable[[], float], long: Callable[[], float]) -> Callable[[], float]:
    """Seconds of one more pass: between those of a short fit and of one that is so many passes longer."""

    def measure() -> float:
        before = short()
        return (long() - before) / count

    return measure
