"""Proximal DP-SGD in plain NumPy: the baseline of the benchmarks of coordinate descent.

Poisson samples, gradients clipped in their l2 norm, one Gaussian vector a step, a constant step size, the last iterate.
Steps are calibrated by our accountant (privacy loss distributions); noise and samples come from NumPy: it is here to
be compared with, not to protect anyone.
"""

import time
from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np

from benchmarks.frame import Floats
from tacit.privacy import Budget, Plan, Release, Unit


def steps_of(n: int, batch: int, passes: int) -> int:
    """How many steps see as many rows as these passes, on average."""
    return max(1, round(passes * n / batch))


@cache
def noise_multiplier(n: int, batch: int, epsilon: float, delta: float, steps: int) -> float:
    """Noise over clip."""
    plan = Plan(Release("steps", "gaussian", share=1.0, count=steps, sampling=batch / n))
    return plan.calibrate(Budget(epsilon, delta), Unit("row", n), "sgd").multiplier("steps")


class Descent:
    """DP-SGD with a column of weights for each pair of step and clip.

    All pairs see the same samples, each has its own noise.
    """

    def __init__(self, problem: Any, batch: int, steps: Floats, clips: Floats, multiplier: float, seed: int) -> None:
        self._problem, self._batch = problem, batch
        self._steps, self._clips, self._multiplier = steps, clips, multiplier
        self._rng = np.random.default_rng(seed)
        self._norms = np.linalg.norm(problem.X, axis=1)
        self.weights = np.zeros((problem.X.shape[1], len(steps)))

    def step(self) -> None:
        """Take one noisy step."""
        problem, rng, (n, p) = self._problem, self._rng, self._problem.X.shape
        rows = rng.choice(n, rng.binomial(n, self._batch / n), replace=False, shuffle=False)
        X = problem.X[rows]
        slopes = problem.slopes(X @ self.weights, problem.y[rows, None])
        limits = self._clips / self._norms[rows, None]
        total = X.T @ np.clip(slopes, -limits, limits)
        total += self._multiplier * self._clips * rng.standard_normal((p, len(self._clips)))
        moved = self.weights - self._steps * (total / self._batch)
        shrunk = np.maximum(np.abs(moved) - self._steps * problem.l1, 0.0)
        self.weights = np.sign(moved) * shrunk / (1.0 + self._steps * problem.l2)


def weights_along(
    problem: Any,
    passes: int,
    batch: int,
    points: Iterable[tuple[float, float]],
    seed: int,
    at: Iterable[int],
    *,
    noiseless: bool = False,
) -> tuple[list[Floats], list[float]]:
    """The weights after each of the passes `at`, of a run planned for `passes`; and the seconds until then.

    A point is a step, in units of one over the largest curvature, and a clip.
    """
    n, multiplier = len(problem.y), 0.0
    if not noiseless:
        multiplier = noise_multiplier(n, batch, problem.epsilon, problem.delta, steps_of(n, batch, passes))
    steps, clips = np.array(list(points)).T
    start, done = time.perf_counter(), 0
    descent = Descent(problem, batch, steps / problem.global_smoothness, clips, multiplier, seed)
    weights, seconds = [], []
    with np.errstate(all="ignore"):  # a bad setting may diverge
        for mark in at:
            for _ in range(done, steps_of(n, batch, mark)):
                descent.step()
            done = steps_of(n, batch, mark)
            seconds.append(time.perf_counter() - start)
            weights.append(descent.weights.copy())
    return weights, seconds
