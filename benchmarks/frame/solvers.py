"""How benchmarks run a solver of the library on rows that are bounded already, without the driver of an estimator."""

import time
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from benchmarks.frame import Floats
from tacit.preprocessing.magnitudes import LIMIT
from tacit.privacy import Budget, CalibratedPlan, NoiseSource, Plan, Release
from tacit.solvers import SOLVERS, Options, Rows, Strengths, Task, choose
from tacit.solvers.passes import CURVATURE
from tacit.solvers.task import LossName

__all__ = ["CURVATURE", "LIMIT", "SOLVERS", "Budget", "CalibratedPlan", "LossName", "Plan", "Release", "Task", "choose"]


def asked(shape: tuple[int, ...], loss: LossName, budget: Budget, penalty: Any = "l2", **more: Any) -> Task:
    """What a solver is told: whether rows are sparse and models have an intercept, and its options."""
    n, d = shape
    sparse, intercept = more.pop("sparse", False), more.pop("intercept", False)
    return Task(n, d, loss, 1, sparse, intercept, budget, (penalty,), Options(**more))


def planned(solver: str, task: Task) -> Plan:
    """All releases of a run, with the whole budget."""
    return SOLVERS[solver].plan(task, 1.0)


@cache
def calibrated(solver: str, task: Task) -> CalibratedPlan:
    """The same, with their noise."""
    return planned(solver, task).calibrate(task.budget)


def stopped(solver: str, whole: CalibratedPlan, task: Task) -> CalibratedPlan:
    """The plan of a shorter run, with the noise of the whole one."""
    counts = {release.name: release.count for release in planned(solver, task).releases}
    parts = (
        replace(release, share=None, multiplier=whole.multiplier(release.name), count=counts[release.name])
        for release in whole.plan.releases
    )
    return Plan(*parts).calibrate(whole.budget)


def fitted(
    solver: str, task: Task, data: tuple[Any, ...], plan: CalibratedPlan, seed: int, l2: Any = 0.0, l1: Any = 0.0
) -> tuple[Floats, float]:
    """Weights, the intercept being the last, and the seconds of the run. The penalty is one number or one a column."""
    strengths = Strengths(np.broadcast_to(l2, task.d).astype(float), np.broadcast_to(l1, task.d).astype(float))
    start = time.perf_counter()
    with plan.meter(NoiseSource(seed)) as meter:
        weights = SOLVERS[solver].run(task, Rows(*data), strengths, meter).weights
    return weights[0], time.perf_counter() - start
