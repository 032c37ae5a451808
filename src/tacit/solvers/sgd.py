"""`solver="sgd"`: clipped stochastic gradient steps on Poisson samples, the baseline of every paper (DP-SGD).

Algorithm. Each step flips a coin for every row, sums the clipped gradients of the rows that take part, adds noise,
divides by the *expected* size of a sample, and moves with momentum; a proximal step serves the l1 penalty. Returned is
the mean of the second half of the iterates, of fewer where there is little noise. No step looks at the objective, and
the number of steps is fixed beforehand.

Privacy
-------
Unit: one row. Neighbours: add-remove; replace-one is refused, because sampling changes its accounting. Released: T sums
of clipped gradients over Poisson samples with rate q, each with sensitivity C (clip), so T Poisson-sampled Gaussian
events; the accountant composes their privacy loss distributions. The sample itself, and its size, stay secret. For
several classes the whole (K, d') gradient of a row is clipped and released at once. Sums are taken in float64; their
rounding is in the sensitivity (`float_sum_slack`). Each row's gradient comes from a loop over that row alone.

Assumptions: rows are bounded by the driver; the scales it used were released in the same plan.

Rules (in n, d, epsilon and delta alone). T = 200 steps, and more where there is little noise; q so that the noise
multiplier of a step is near 2, where sampling costs nothing against full batches; clip sqrt(d') / 2, and more where
there is little noise; the step is the safe one for standardised columns, 1 / (h d') with h the loss's curvature, unless
noise times all steps would move a margin by more than a few tenths.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tacit._types import Floats
from tacit.privacy import Gate, Plan, Release, float_sum_slack
from tacit.privacy.checks import Adjacency
from tacit.privacy.mechanisms import GaussianVector, Sensitivity
from tacit.problems import HINGE, LOGISTIC, MULTINOMIAL, SQUARED, SQUARED_HINGE, Loss, Penalty
from tacit.solvers.passes import SHRINK, Passes
from tacit.solvers.task import Layout, PenaltyName, Rows, Solution, Task

_STEPS = 200
_MOMENTUM = 0.9
_MULTIPLIER = 2.0  # of the noise of a step, where sampling is still free
_LEAST_BATCH = 64
_NO_CLIP = 1e6  # times the usual clip: no gradient of a standardised row is that long
_SHARPEST = 0.002  # the least width of the hinge's kink


@dataclass(frozen=True)
class Settings:
    """The rules, worked out for one task."""

    steps: int
    tail: int  # the last steps, whose iterates are averaged
    sampling: float
    clip: float
    momentum: float
    step: float
    longest: float  # step that noise allows
    kink: float  # the width over which the hinge is rounded; 1 for other losses

    @classmethod
    def of(cls, task: Task) -> "Settings":
        """From n, d, mu and what the user set."""
        n, options = task.n, task.options
        growth = max(1.0, math.sqrt(task.calm))
        steps = round(_STEPS * min(10.0, growth))
        if options.batch_size is not None:
            sampling = min(1.0, options.batch_size / n)
        else:
            wanted = _MULTIPLIER * task.budget.mu / math.sqrt(steps)
            sampling = min(1.0, max(wanted, _LEAST_BATCH / n))
        if options.n_passes is not None:
            steps = max(1, round(options.n_passes / sampling))
        kink = max(_SHARPEST, 1.0 / growth**2) if task.loss == HINGE else 1.0
        momentum = max(_MOMENTUM, 1.0 - 10.0 / steps)
        safe = kink / (task.loss.curvature * task.width)
        # All steps together move a weight by `travel` times the gradient; noise then moves a margin by travel nu / 2.
        travel = 0.6 / max(task.nu, 1e-300)
        longest = travel * (1.0 - momentum) / steps
        return cls(
            steps,
            tail=max(1, steps - math.floor(steps * (1.0 - 0.5 / min(growth, 5.0)))),
            sampling=sampling,
            clip=0.5 * math.sqrt(task.width) * min(growth, _NO_CLIP),
            momentum=momentum,
            step=min(safe, longest),
            longest=longest,
            kink=kink,
        )

    def at(self, k: int) -> tuple[float, float, float]:
        """The momentum, the step and the kink of step k.

        Where there is little noise the momentum rises from 0.95, and the kink narrows from 1 until iterates are
        averaged, with steps as long as it allows. Under usual noise all three are constant.
        """
        kink = self.kink ** min(1.0, k / max(1, self.steps - self.tail))
        return min(self.momentum, (k + 57) / (k + 60)), min(self.longest, self.step * kink / self.kink), kink


@dataclass(frozen=True)
class SGDSolver:
    """Clipped stochastic gradient steps on Poisson samples."""

    name: ClassVar[str] = "sgd"
    losses: ClassVar[tuple[Loss, ...]] = (SQUARED, LOGISTIC, MULTINOMIAL, HINGE, SQUARED_HINGE)
    multiclass: ClassVar[tuple[Loss, ...]] = (MULTINOMIAL,)
    adjacencies: ClassVar[tuple[Adjacency, ...]] = ("add-remove",)
    penalties: ClassVar[tuple[PenaltyName, ...]] = ("l2", "l1")
    options: ClassVar[tuple[str, ...]] = ("n_passes", "batch_size")
    layout: ClassVar[Layout] = "rows"

    def plan(self, task: Task, share: float) -> Plan:
        """The gradients."""
        settings = Settings.of(task)
        return Plan(
            Release("gradients", "gaussian", share=share, count=settings.steps, sampling=settings.sampling),
        )

    def run(self, task: Task, rows: Rows, penalty: Penalty, gate: Gate) -> Solution:
        """The mean of the last iterates."""
        settings = Settings.of(task)
        steps, tail, clip = settings.steps, settings.tail, settings.clip
        depth = Passes.depth_of(task)
        sensitivity = Sensitivity.vector(clip + float_sum_slack(task.n, clip, depth))
        mechanism = GaussianVector(sensitivity, bound=task.n * clip)
        expected = settings.sampling * task.n
        whole = Passes(task, rows) if settings.sampling == 1.0 else None
        w = np.zeros((task.outputs, task.d + 1))
        velocity, mean = np.zeros_like(w), np.zeros_like(w)
        l2, l1 = np.append(penalty.l2, 0.0), np.append(penalty.l1, 0.0)
        for k in range(steps):
            passes = whole or Passes(task, rows.some(gate.sample("gradients")))
            momentum, step, kink = settings.at(k)
            ahead = w + momentum * velocity
            total = gate.release("gradients", mechanism, passes.gradient(ahead, clip * SHRINK, kink))
            free = ahead - step * total / expected
            moved = _proximal(free, step, l2, l1)
            if not task.fit_intercept:
                moved[:, -1] = 0.0
            velocity, w = moved - w, moved
            if k >= steps - tail:
                mean += w / tail
        spread = gate.noise("gradients", sensitivity) / expected
        noise = np.full_like(mean, spread * _amplification(task, settings, float(np.mean(penalty.l2))))
        if not task.fit_intercept:
            noise[:, -1] = 0.0
        return Solution(mean, noise)


def _proximal(w: Floats, step: float, l2: Floats, l1: Floats) -> Floats:
    """The minimiser of the penalty plus |v - w|^2 / (2 step)."""
    return np.sign(w) * np.maximum(np.abs(w) - step * l1, 0.0) / (1.0 + step * l2)


def _amplification(task: Task, settings: Settings, l2: float) -> float:
    """The deviation of a weight in the returned mean over that of a gradient's noise, for an uncorrelated column."""
    own = _reach(settings, task.loss.typical, l2)
    if task.outputs == 1:
        return own
    shared = _reach(settings, 0.0, l2)  # what all classes have in common changes no probability, so nothing holds it
    return math.sqrt((1.0 - 1.0 / task.outputs) * own**2 + shared**2 / task.outputs)


def _reach(settings: Settings, curvature: float, l2: float) -> float:
    """The same for one weight whose loss has this curvature.

    The steps are linear in the noise; each noise's weight in the mean is found by running them once, backwards in time,
    on a single impulse.
    """
    tail = settings.tail
    response = np.empty(settings.steps)
    w = velocity = 0.0
    for k in range(settings.steps):
        ahead = w + settings.momentum * velocity
        moved = ahead - settings.step * (curvature * ahead + (1.0 if k == 0 else 0.0))
        moved /= 1.0 + settings.step * l2
        velocity, w = moved - w, moved
        response[k] = w
    total = np.cumsum(response)  # an impulse k steps before the end adds total[k] to the sum of iterates
    reach = total - np.concatenate([np.zeros(tail), total[: settings.steps - tail]])
    return float(np.linalg.norm(reach)) / tail
