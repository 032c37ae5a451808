"""Steps on the dual variables of rows: of samples of them, or of all of them with momentum.

The dual variables are private. They are held by `Duals`, which hands out what rows add to v for a release, and nothing
else of them leaves.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.sparse import csr_array

from tacit._types import Floats, Integers
from tacit.blocks import SHRINK, Bounded, Moves, Passes
from tacit.bounding.magnitudes import LIMIT
from tacit.kernels import dual as kernels
from tacit.kernels.given import Block, Csr, Noise
from tacit.privacy import Gate, Release
from tacit.privacy.mechanisms import Batches, GaussianVector, SampledSteps
from tacit.problems import HINGE
from tacit.problems.task import LinearTask
from tacit.solvers import classes, two_classes
from tacit.solvers.base import Algorithm, Layout, Solution
from tacit.solvers.curvature import POWER_STEPS, largest_curvature
from tacit.solvers.dual.rules import BEARINGS, Asked, noise_of

_BATCH = 300
_KINK = 0.5  # the width over which the hinge's corner is rounded in steps over all rows, at first
_MOST_STEPS = 3_000  # over all rows
_CURVATURE_SHARE = 0.05
_INTERCEPT = 2e-4  # the intercept's penalty where there is little noise: too small to move it, or the objective
_AT_ONCE = 2_000_000  # numbers that steps made at once may need: their noise and their samples


@dataclass(frozen=True)
class _Steps(Algorithm[LinearTask]):
    """What both forms of the steps go by."""

    layout: ClassVar[Layout] = "short rows"

    steps: int
    tail: int  # the last steps, whose iterates are averaged
    reach: float  # the longest that a dual variable moves in a step, but for the damping
    penalty: float  # the least strength of the l2 penalty
    clip: float | None  # of an update; None: the longest of a row of the usual norm
    newton: bool


@dataclass(frozen=True)
class Sampled(_Steps):
    """Steps on samples of the rows."""

    counts: ClassVar[bool] = True  # whether classes are, where that is due

    batch: float  # expected rows in a step
    damping: float  # rows of a batch that are taken to pull one way

    @classmethod
    def of(cls, task: LinearTask, asked: Asked) -> Self:
        """From n, d, mu and what the user set."""
        bearing = BEARINGS[task.loss]
        batch = min(asked.batch_size or _BATCH, task.n)
        passes = asked.n_passes or bearing.passes(task.nu)
        steps = max(1, round(passes * task.n / batch))
        damping = max(1.0, batch * (asked.damping or bearing.damping))
        enough = 2.0 * damping * task.width / (task.n * passes)  # penalty with which dual variables get all their way
        return cls(
            task,
            steps=steps,
            batch=float(batch),
            damping=damping,
            tail=1 if asked.averaging == "last" else steps - steps // 2,
            reach=bearing.reach(noise_of(task, damping)),
            penalty=asked.penalty(task, min(bearing.penalty, enough)),
            clip=asked.clip,
            newton=asked.newton,
        )

    @property
    def sampling(self) -> float:
        """The probability with which a row takes part in a step."""
        return self.batch / self.task.n

    def releases(self, share: float) -> tuple[Release, ...]:
        """What the samples add to v; of two classes their counts before and their surplus after, if due."""
        updates = Release("updates", "gaussian", share=1.0, count=self.steps, sampling=self.sampling)
        return classes.planned(self.task, share, updates, counted=self._is_counted, calibrated=self._is_counted)

    @property
    def _is_counted(self) -> bool:
        return self.counts and two_classes.are_due(self.task)

    def run(self, data: Bounded, gate: Gate) -> Solution:
        """The mean of the last iterates. All of them are sums of what was released, so it costs nothing."""
        scale, clip = self._scale_and_clip(data)
        plain = mechanism(self.task, clip)
        sampled = SampledSteps(plain.sensitivity, self.task.n * clip)
        duals = Duals(self.task, data, newton=self.newton, scale=scale)
        v = np.zeros((self.task.outputs, self.task.d + 1))
        known = classes.classes_of(self.task, data, gate, counted=self._is_counted)
        if self._is_counted:  # the intercept's penalty pulls to where it starts
            v[:, -1] = known.log_odds / scale[-1]
        walk = _Walk(duals, v.copy(), scale, self.damping, clip * SHRINK)
        most, mean = max(1, round(_AT_ONCE / (v.size + self.batch))), np.zeros_like(v)
        while left := gate.left("updates"):
            moved = gate.release("updates", sampled, v.size, min(most, left), walk)
            iterates = v.ravel() + np.cumsum(moved, axis=0)
            v = iterates[-1].reshape(v.shape)
            mean += iterates[max(0, left - self.tail) :].sum(axis=0).reshape(v.shape) / self.tail
        noise = gate.noise("updates", plain.sensitivity) * added(self.steps, self.tail)
        found = solution(self.task, mean, scale, noise)
        if self._is_counted:
            found.weights[:, -1] += classes.shift(self.task, known, Passes(self.task, data), found.weights, gate)
        return found

    def _scale_and_clip(self, data: Bounded) -> tuple[Floats, float]:
        """What turns v into weights, 1 / (n l2), and what an update is clipped to."""
        l2 = np.maximum(data.penalty.l2, self.penalty)
        scale = 1.0 / (self.task.n * np.append(l2, float(l2.mean())))
        pull = self.damping * self.task.width * float(scale.mean())
        return scale, self.clip or self.reach * math.sqrt(self.task.width) / (1.0 + pull)


@dataclass(frozen=True)
class AllRows(_Steps):
    """Steps over all rows, with momentum, where there is little noise."""

    kink: float  # the width over which the corner of the hinge is rounded

    @classmethod
    def of(cls, task: LinearTask, asked: Asked) -> Self:
        """From n, d, mu and what the user set."""
        bearing = BEARINGS[task.loss]
        growth = max(1.0, math.sqrt(task.calm))
        most = _MOST_STEPS * (4 if task.loss == HINGE else 1)  # whose dual is not curved
        steps = max(1, round(asked.n_passes or min(most, most / 100 * growth)))
        return cls(
            task,
            steps=steps,
            reach=bearing.far * (min(growth, 4.0) if task.loss != HINGE else 1.0),
            penalty=asked.penalty(task, bearing.penalty / growth**2),
            kink=_KINK / growth**2,
            clip=asked.clip,
            newton=asked.newton,
            tail=steps - steps // 2 if asked.averaging == "tail" else 1,
        )

    def releases(self, share: float) -> tuple[Release, ...]:
        """The curvature, then what all rows add to v."""
        return (
            Release("largest curvature", "gaussian", share=_CURVATURE_SHARE * share, count=POWER_STEPS),
            Release("updates", "gaussian", share=(1.0 - _CURVATURE_SHARE) * share, count=self.steps),
        )

    def run(self, data: Bounded, gate: Gate) -> Solution:
        """The last iterate; the mean of the last ones only where that was asked for, as there is little noise."""
        task = self.task
        l2 = np.maximum(data.penalty.l2, self.penalty)
        l2 = np.append(l2, min(float(l2.mean()), _INTERCEPT))
        scale = 1.0 / (task.n * l2)
        radius = LIMIT * math.sqrt(task.width / float(l2.min()))
        damping = largest_curvature(task, Passes(task, data), l2, radius, gate)
        clip = self.clip or self.reach * math.sqrt(task.width) / (1.0 + damping)
        plain = mechanism(task, clip)
        duals = Duals(task, data, newton=self.newton, kink=self.kink)
        v = before = mean = np.zeros((task.outputs, task.d + 1))
        for step in range(self.steps):
            beta = step / (step + 3)
            ahead = v + beta * (v - before)
            duals.look_ahead(beta)
            moved = duals.move(duals.everyone, ahead * scale, damping, clip * SHRINK)
            before, v = v, ahead + gate.release("updates", plain, moved)
            if step >= self.steps - self.tail:
                mean = mean + v / self.tail
        return solution(task, mean, scale, gate.noise("updates", plain.sensitivity) * added(self.steps, self.tail))


def mechanism(task: LinearTask, clip: float) -> GaussianVector:
    """For the sum of updates of norm `clip`."""
    return GaussianVector(Moves(task.n, depth=task.n).vector(clip), bound=task.n * clip)


def added(steps: int, tail: int) -> float:
    """The deviation of the mean of the last iterates of v, over that of the noise in one step.

    A step's noise is in all iterates from then on; in the mean it is whole, but for that of the last steps.
    """
    return math.sqrt(steps - tail + float(np.sum(np.square(np.arange(1, tail + 1) / tail))))


def solution(task: LinearTask, v: Floats, scale: Floats, spread: float) -> Solution:
    """The weights of v, each of whose entries has noise of this deviation."""
    if not task.fit_intercept:
        scale[-1] = 0.0  # of noise alone
    return Solution(v * scale, np.tile(spread * scale, (task.outputs, 1)))


class _Kernels(NamedTuple):
    """The compiled functions for one kind of table."""

    pulls: Any
    batch: Any
    steps: Any


_DENSE = _Kernels(kernels.dense_pulls, kernels.dense_batch, kernels.dense_steps)
_SPARSE = _Kernels(kernels.sparse_pulls, kernels.sparse_batch, kernels.sparse_steps)


class Duals:
    """The dual variables of all rows; they never leave the solver.

    Parameters
    ----------
    task, data
        The fit, and its rows.
    newton : bool
        A row's step is a single Newton step.
    scale : array, optional
        What turns v into weights: a row then knows how far its own step moves its margin.
    kink : float
        The width over which the corner of the hinge is rounded.
    least_norm : float
        Rows are taken to have at least this norm; with 1 no dual variable moves by more than the clip.
    """

    def __init__(
        self,
        task: LinearTask,
        data: Bounded,
        *,
        newton: bool,
        scale: Floats | None = None,
        kink: float = 0.0,
        least_norm: float = 0.0,
    ) -> None:
        self._loss, self._inner = task.loss.code, kernels.NEWTON if newton else kernels.EXACT
        self._kink = kink
        self._alpha = self._before = np.zeros((task.n, task.outputs))
        rows: Any = data.Z
        self._kernels = _DENSE
        if isinstance(data.Z, csr_array):
            rows = Csr(data.Z.data, data.Z.indices, data.Z.indptr)
            self._kernels = _SPARSE
        bias = 1.0 if task.fit_intercept else 0.0
        norms, self._pulls = np.empty(len(data.targets)), np.ones(len(data.targets))
        self._kernels.pulls(rows, bias, np.ones(task.d + 1), norms)
        if scale is not None:
            self._kernels.pulls(rows, bias, scale, self._pulls)
        self._block = Block(rows, bias, data.targets, np.maximum(np.sqrt(norms), least_norm))

    def look_ahead(self, beta: float) -> None:
        """Go on in the direction of the last step."""
        if beta > 0.0:
            self._alpha, self._before = self._alpha + beta * (self._alpha - self._before), self._alpha
        else:
            self._before = self._alpha.copy()  # which moves in place

    @property
    def everyone(self) -> Integers:
        """All rows."""
        return np.arange(len(self._block.targets))

    def at(self, rows: Integers) -> Floats:
        """The dual variables of these rows."""
        return self._alpha[rows]

    def put(self, rows: Integers, values: Floats) -> None:
        """Set them."""
        self._alpha[rows] = values

    def move(self, rows: Integers, theta: Floats, damping: float, clip: float) -> Floats:
        """Move the dual variables of these rows; returns what they add to v, private until it has noise."""
        out = np.empty_like(theta)
        self._kernels.batch(self._block, self._own, rows, theta, self._rule(damping, clip), out)
        return out

    def steps(self, batches: Batches, v: Floats, scale: Floats, damping: float, clip: float) -> Floats:
        """Move those of one batch after the other, and v by what that adds, with noise; returns what v moved by."""
        released = np.empty(batches.noise.shape)
        samples = kernels.Samples(batches.rows, batches.starts)
        noise = Noise(batches.noise, batches.step, batches.bound)
        rule = self._rule(damping, clip)
        self._kernels.steps(self._block, self._own, samples, scale, rule, noise, v, released)
        return released

    @property
    def _own(self) -> kernels.Alphas:
        return kernels.Alphas(self._alpha, self._pulls)

    def _rule(self, damping: float, clip: float) -> kernels.Rule:
        return kernels.Rule(damping, self._loss, self._inner, self._kink, clip)

    def __repr__(self) -> str:
        return "Duals(private)"


@dataclass(eq=False)
class _Walk:
    """Steps on samples: `v` is where they have come to, and released."""

    duals: Duals
    v: Floats
    scale: Floats
    damping: float
    clip: float

    def __call__(self, batches: Batches) -> Floats:
        return self.duals.steps(batches, self.v, self.scale, self.damping, self.clip)
