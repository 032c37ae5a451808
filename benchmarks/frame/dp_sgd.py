"""Proximal DP-SGD in plain NumPy: the baseline of the benchmarks of coordinate descent.

Poisson samples, gradients clipped in their l2 norm, one Gaussian vector a step, a constant step size, the last iterate.
Steps are calibrated by our accountant (privacy loss distributions); noise and samples come from NumPy: it is here to
be compared with, not to protect anyone.
"""

import time
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from benchmarks.frame import Floats
from benchmarks.frame.tuning import Point
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
    """DP-SGD with a column of weights for each pair of step and clip; of several classes, such columns for each.

    All pairs see the same samples, each has its own noise.
    """

    def __init__(self, problem: Any, batch: int, steps: Floats, clips: Floats, multiplier: float, seed: int) -> None:
        self._problem, self._batch = problem, batch
        self._steps, self._clips = np.tile(steps, problem.outputs), clips
        self._noise = multiplier * np.tile(clips, problem.outputs)
        self._rng = np.random.default_rng(seed)
        self._norms = np.linalg.norm(problem.X, axis=1)
        self.weights = np.zeros((problem.X.shape[1], len(self._steps)))

    def step(self) -> None:
        """Take one noisy step."""
        problem, rng, (n, p) = self._problem, self._rng, self._problem.X.shape
        rows = rng.choice(n, rng.binomial(n, self._batch / n), replace=False, shuffle=False)
        X = problem.X[rows]
        limits = self._clips / self._norms[rows, None]
        total = X.T @ problem.clipped_slopes(X @ self.weights, problem.y[rows, None], limits)
        total += self._noise * rng.standard_normal((p, len(self._noise)))
        moved = self.weights - self._steps * (total / self._batch)
        shrunk = np.maximum(np.abs(moved) - self._steps * problem.l1, 0.0)
        self.weights = np.sign(moved) * shrunk / (1.0 + self._steps * problem.l2)


class Iterates(NamedTuple):
    """Of some points: weights after some passes, the mean of those of the second half, the processor's seconds."""

    last: Floats  # by passes, weights (of several classes, those of a column next to each other) and points
    tail: Floats
    seconds: Floats


def descents(
    problem: Any, budget: Budget, points: Sequence[Point], seed: int, passes: int, marks: Sequence[int] = ()
) -> Iterates:
    """A run planned for these passes at each point, looked at after each of the marks (by default at the end).

    All points of a batch go together, on the same samples. Steps are in units of one over the largest curvature, clips
    in the problem's own unit. Without privacy there is no noise.
    """
    (n, d), marks = (len(problem.X), problem.X.shape[1] * problem.outputs), marks or (passes,)
    last, tail = np.empty((len(marks), d, len(points))), np.empty((d, len(points)))
    seconds = np.zeros(len(marks))
    for batch in sorted({point.batch for point in points}):
        places = [k for k, point in enumerate(points) if point.batch == batch]
        size, start = min(batch, n), time.process_time()
        count, ends = steps_of(n, size, passes), [steps_of(n, size, mark) for mark in marks]
        noise = noise_multiplier(n, size, budget.epsilon, budget.delta, count) if budget.is_private else 0.0
        steps = np.array([points[k].step for k in places]) / problem.global_smoothness
        clips = np.array([points[k].clip for k in places]) * problem.clip_unit
        descent, total = Descent(problem, size, steps, clips, noise, seed), np.zeros((d, len(places)))
        with np.errstate(all="ignore"):  # a bad setting may diverge
            for step in range(1, max(ends) + 1):
                descent.step()
                weights = descent.weights.reshape(total.shape)
                if step > count // 2:
                    total += weights
                for mark in (mark for mark, end in enumerate(ends) if end == step):
                    last[mark][:, places] = weights
                    seconds[mark] += time.process_time() - start
        tail[:, places] = total / (count - count // 2)
    return Iterates(last, tail, seconds)
