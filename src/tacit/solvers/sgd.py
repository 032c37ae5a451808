"""`Sgd`: clipped stochastic gradient steps on Poisson samples, the baseline of every paper (DP-SGD).

Algorithm. Each step flips a coin for every row, sums the clipped gradients of the rows that take part, adds noise,
divides by the *expected* size of a sample, and moves with momentum; a proximal step serves the l1 penalty. Returned is
the mean of the second half of the iterates, of fewer where there is little noise. No step looks at the objective, and
the number of steps is fixed beforehand.

Privacy
-------
Unit: one row. Neighbours: add-remove; replace-one is refused, because sampling changes its accounting. Released: T sums
of clipped gradients over Poisson samples with rate q, each with sensitivity C (clip), so T Poisson-sampled Gaussian
events; the accountant composes their privacy loss distributions. The sample itself, and its size, stay secret. For
several classes the whole (K, d') gradient of a row is clipped and released at once. Sums over
dense rows are exact (`tacit.blocks.exact`); those over sparse rows are taken in float64, and their rounding is in the
sensitivity (`tacit.blocks.Moves`). A row's gradient depends on that row alone.

Assumptions: the rows are bounded beforehand; the scales for that are releases of the same plan.

Rules (in n, d, epsilon and delta alone; each can be set). T = 200 steps, and more where there is little noise; q so
that the noise multiplier of a step is near 2, where sampling costs nothing against full batches; clip sqrt(d') / 2, and
more where there is little noise; the step is the safe one for standardised columns, 1 / (h d') with h the loss's
curvature, unless noise times all steps would move a margin by more than a few tenths.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tacit._types import Floats
from tacit.blocks import SHRINK, Bounded, gradient_moves, passes_over
from tacit.privacy import Gate, Release, checks
from tacit.privacy.mechanisms import GaussianVector
from tacit.problems import HINGE, LOGISTIC, MULTINOMIAL, SQUARED, SQUARED_HINGE
from tacit.problems.declared import declared_size
from tacit.problems.task import LinearTask
from tacit.solvers import classes
from tacit.solvers.base import Algorithm, Layout, Serves, Solution, Solver, batch, check_steps, option, pass_count, word
from tacit.solvers.examples import on_cancer

_STEPS = 200
_MOMENTUM = 0.9
_MULTIPLIER = 2.0  # of the noise of a step, where sampling is still free
_LEAST_BATCH = 64
_NO_CLIP = 1e6  # times the usual clip: no gradient of a standardised row is that long
_SHARPEST = 0.002  # the least width of the hinge's kink


def _below_one(name: str, value: object) -> float:
    """A momentum."""
    number = checks.closed_unit(name, value)
    if number == 1.0:
        raise ValueError(f"{name} must be below 1, where no step would ever end")
    return number


@on_cancer("n_passes=50, batch_size=100", score=0.7)
@dataclass(eq=False, repr=False)
class Sgd(Solver):
    """Clipped gradient steps on random samples of the rows: DP-SGD, the baseline of every paper.

    It serves every loss, and both the l2 and the l1 penalty; add-remove only. It is the default for the hinge, and for
    many classes on sparse rows.

    Privacy: each step is a noisy sum of clipped gradients over a random sample of the rows, which stays secret.

    Parameters
    ----------
    n_passes : float, optional
        How often each row takes part, on average. By default 200 steps are made, and more where there is little noise.
    batch_size : int, optional
        The expected size of a sample. By default as small as costs nothing against steps on all rows.
    clip : float, optional
        What a row's gradient is clipped to, on rows that are bounded: about sqrt(d) long, or within 3 in each column.
        By default sqrt(d) / 2, and more where there is little noise.
    learning_rate : float, optional
        How far a step goes along the gradient of the mean loss, on such rows. By default as far as is safe for
        standardised columns, and less where noise would be too much. What is set stays so in all steps.
    momentum : float, optional
        From 0, which is plain DP-SGD, to below 1; the first steps have at most 0.95. By default 0.9, and more in more
        than 100 steps.
    averaging : {"last", "tail"}, default=None
        Whether the last iterate is returned or the mean of the last ones. None: "tail".
    """

    name: ClassVar[str] = "sgd"
    serves: ClassVar[Serves] = Serves(
        losses=(SQUARED, LOGISTIC, MULTINOMIAL, HINGE, SQUARED_HINGE),
        multiclass=(MULTINOMIAL,),
        adjacencies=("add-remove",),
        penalties=("l2", "l1"),
        weights=True,
        streams=True,
    )

    n_passes: float | None = option(None, pass_count)
    batch_size: int | None = option(None, checks.count)
    clip: float | None = option(None, declared_size)
    learning_rate: float | None = option(None, declared_size)
    momentum: float | None = option(None, _below_one)
    averaging: str | None = option(None, word("last", "tail"))

    def at(self, task: LinearTask) -> "_Steps":
        """The steps for one task; refuses more of them than are of use, and samples larger than the table."""
        asked = self.check()
        batch(asked.batch_size, task.n)
        found = _Steps.of(task, asked)
        check_steps(found.steps, self.n_passes, self.batch_size)
        return found


@dataclass(frozen=True)
class _Steps(Algorithm[LinearTask]):
    """Steps on samples."""

    layout: ClassVar[Layout] = "grid"

    steps: int
    tail: int  # the last steps, whose iterates are averaged
    sampling: float
    clip: float
    momentum: float
    step: float
    longest: float  # step that noise allows
    kink: float  # the width over which the hinge is rounded; 1 for other losses

    @classmethod
    def of(cls, task: LinearTask, asked: Sgd) -> "_Steps":
        """From n, d and mu alone, and what was asked for."""
        n = task.n
        growth = max(1.0, math.sqrt(task.calm))
        steps = round(_STEPS * min(10.0, growth))
        if asked.batch_size is not None:
            sampling = min(1.0, asked.batch_size / n)
        else:
            wanted = _MULTIPLIER * task.budget.mu / math.sqrt(steps)
            sampling = min(1.0, max(wanted, _LEAST_BATCH / n))
        if asked.n_passes is not None:
            steps = max(1, round(asked.n_passes / sampling))
        kink = max(_SHARPEST, 1.0 / growth**2) if task.loss == HINGE else 1.0
        momentum = max(_MOMENTUM, 1.0 - 10.0 / steps) if asked.momentum is None else asked.momentum
        safe = kink / (task.loss.curvature * task.width)
        # All steps together move a weight by `travel` times the gradient; noise then moves a margin by travel nu / 2.
        travel = 0.6 / max(task.nu, 1e-300)
        longest = travel * (1.0 - momentum) / steps if asked.learning_rate is None else asked.learning_rate
        tail = max(1, steps - math.floor(steps * (1.0 - 0.5 / min(growth, 5.0))))
        return cls(
            task,
            steps,
            tail=1 if asked.averaging == "last" else tail,
            sampling=sampling,
            clip=asked.clip or 0.5 * math.sqrt(task.width) * min(growth, _NO_CLIP),
            momentum=momentum,
            step=min(safe, longest) if asked.learning_rate is None else longest,
            longest=longest,
            kink=kink,
        )

    def pace(self, k: int) -> tuple[float, float, float]:
        """The momentum, the step and the kink of step k.

        Where there is little noise the momentum rises from 0.95, and the kink narrows from 1 until iterates are
        averaged, with steps as long as it allows. Under usual noise all three are constant.
        """
        kink = self.kink ** min(1.0, k / max(1, self.steps - self.tail))
        return min(self.momentum, (k + 57) / (k + 60)), min(self.longest, self.step * kink / self.kink), kink

    def releases(self, share: float) -> tuple[Release, ...]:
        """The class counts, where weights are to balance classes; the gradients."""
        steps = Release("gradients", "gaussian", share=1.0, count=self.steps, sampling=self.sampling)
        return classes.planned(self.task, share, steps, counted=False, calibrated=False)

    def run(self, data: Bounded, gate: Gate) -> Solution:
        """The mean of the last iterates."""
        task, steps, tail, clip = self.task, self.steps, self.tail, self.clip
        known = classes.classes_of(task, data, gate, counted=False)
        heaviest = float(known.weights.max())
        weights = None if task.class_weight is None else known.weights
        sensitivity = gradient_moves(task, weighted=weights is not None).vector(clip * heaviest)
        mechanism = GaussianVector(sensitivity, bound=task.n * clip * heaviest)
        expected = self.sampling * task.n
        whole = passes_over(task, data, weights) if self.sampling == 1.0 else None
        w = np.zeros((task.outputs, task.d + 1))
        velocity, mean = np.zeros_like(w), np.zeros_like(w)
        l2, l1 = np.append(data.penalty.l2, 0.0), np.append(data.penalty.l1, 0.0)
        for k in range(steps):
            passes = whole or passes_over(task, data.some(gate.sample("gradients")), weights)
            momentum, step, kink = self.pace(k)
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
        noise = np.full_like(mean, spread * self._amplification(float(np.mean(data.penalty.l2))))
        if not task.fit_intercept:
            noise[:, -1] = 0.0
        return Solution(mean, noise)

    def _amplification(self, l2: float) -> float:
        """The deviation of a returned weight over that of the noise in a gradient, for an uncorrelated column."""
        own, outputs = self.reach(self.task.loss.typical, l2), self.task.outputs
        if outputs == 1:
            return own
        shared = self.reach(0.0, l2)  # what all classes have in common changes no probability, so nothing holds it
        return math.sqrt((1.0 - 1.0 / outputs) * own**2 + shared**2 / outputs)

    def reach(self, curvature: float, l2: float) -> float:
        """The same for one weight whose loss has this curvature.

        The steps are linear in the noise. One run on a single impulse tells how much of any noise is left after so many
        steps, and so the weight of each step's noise in the mean. Steps so long that an impulse would grow are held
        back by clipping; here by a curvature of at most 1 / step.
        """
        curvature = min(curvature, 1.0 / self.step)
        response = np.empty(self.steps)
        w = velocity = 0.0
        for k in range(self.steps):
            ahead = w + self.momentum * velocity
            moved = ahead - self.step * (curvature * ahead + (1.0 if k == 0 else 0.0))
            moved /= 1.0 + self.step * l2
            velocity, w = moved - w, moved
            response[k] = w
        total = np.cumsum(response)  # an impulse k steps before the end adds total[k] to the sum of iterates
        reach = total - np.concatenate([np.zeros(self.tail), total[: self.steps - self.tail]])
        return float(np.linalg.norm(reach)) / self.tail


def _proximal(w: Floats, step: float, l2: Floats, l1: Floats) -> Floats:
    """The minimiser of the penalty plus |v - w|^2 / (2 step)."""
    return np.sign(w) * np.maximum(np.abs(w) - step * l1, 0.0) / (1.0 + step * l2)
