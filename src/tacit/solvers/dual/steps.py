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
from tacit.problems import HINGE, SQUARED
from tacit.problems.task import LinearTask
from tacit.solvers.base import Algorithm, Layout, Solution
from tacit.solvers.gradient import POWER_STEPS, largest_curvature

PASSES = 10
_BATCH = 300
_KINK = 0.5  # the width over which the hinge's corner is rounded in steps over all rows, at first
_MOST_STEPS = 3_000  # over all rows
_CURVATURE_SHARE = 0.05
_INTERCEPT = 2e-4  # the intercept's penalty where there is little noise: too small to move it, or the objective
_AT_ONCE = 2_000_000  # numbers that steps made at once may need: their noise and their samples
_SMALLEST = 1e-12  # strength of a penalty: without any there is no dual


class Asked(NamedTuple):
    """What the user set; None leaves it to the rule."""

    n_passes: float | None
    batch_size: int | None
    clip: float | None
    newton: bool  # a row's step is a single Newton step


class _Bearing(NamedTuple):
    """What a loss bears."""

    far: float  # how far a dual variable may be
    bearable: float  # the nu above which it is held back
    long: float  # the nu below which there are more passes
    penalty: float  # the least strength of the penalty

    def reach(self, nu: float) -> float:
        """The longest that a dual variable moves in a step, but for the damping."""
        return self.far * min(1.0, (self.bearable / nu) ** 0.4)


def _bearing(task: LinearTask) -> tuple[_Bearing, float]:
    """What the loss of a task bears, and the task's nu."""
    bearing = _Bearing(LIMIT, 0.005, 0.01, 0.003) if task.loss == SQUARED else _Bearing(1.0, 0.3, 0.1, 0.01)
    return bearing, max(task.nu, 1e-300)


@dataclass(frozen=True)
class _Steps(Algorithm[LinearTask]):
    """What both forms of the steps go by."""

    layout: ClassVar[Layout] = "short rows"

    steps: int
    reach: float  # the longest that a dual variable moves in a step, but for the damping
    penalty: float  # the least strength of the l2 penalty
    clip: float | None  # of an update; None: the longest of a row of the usual norm
    newton: bool


@dataclass(frozen=True)
class Sampled(_Steps):
    """Steps on samples of the rows."""

    batch: float  # expected rows in a step

    @classmethod
    def of(cls, task: LinearTask, asked: Asked) -> Self:
        """From n, d, mu and what the user set."""
        bearing, nu = _bearing(task)
        batch = min(asked.batch_size or _BATCH, task.n)
        passes = PASSES * min(max(1.0, math.sqrt(bearing.long / nu)), 10.0)
        return cls(
            task,
            steps=max(1, round((asked.n_passes or passes) * task.n / batch)),
            batch=float(batch),
            reach=bearing.reach(nu),
            penalty=bearing.penalty,
            clip=asked.clip,
            newton=asked.newton,
        )

    @property
    def sampling(self) -> float:
        """The probability with which a row takes part in a step."""
        return self.batch / self.task.n

    def releases(self, share: float) -> tuple[Release, ...]:
        """What the samples add to v."""
        return (Release("updates", "gaussian", share=share, count=self.steps, sampling=self.sampling),)

    def run(self, data: Bounded, gate: Gate) -> Solution:
        """The last iterate."""
        scale, clip = self._scale_and_clip(data)
        plain = mechanism(self.task, clip)
        sampled = SampledSteps(plain.sensitivity, self.task.n * clip)
        duals = Duals(self.task, data, newton=self.newton, scale=scale)
        walk = _Walk(duals, np.zeros((self.task.outputs, self.task.d + 1)), scale, self.batch, clip * SHRINK)
        most = max(1, round(_AT_ONCE / (walk.v.size + self.batch)))
        while gate.left("updates"):
            count = min(most, gate.left("updates"))
            gate.release("updates", sampled, walk.v.size, count, walk)
        return solution(self.task, walk.v, scale, gate.noise("updates", plain.sensitivity) * math.sqrt(self.steps))

    def _scale_and_clip(self, data: Bounded) -> tuple[Floats, float]:
        """What turns v into weights, 1 / (n l2), and what an update is clipped to. The damping is the batch."""
        l2 = np.maximum(data.penalty.l2, self.penalty)
        scale = 1.0 / (self.task.n * np.append(l2, float(l2.mean())))
        pull = self.batch * self.task.width * float(scale.mean())
        return scale, self.clip or self.reach * math.sqrt(self.task.width) / (1.0 + pull)


@dataclass(frozen=True)
class AllRows(_Steps):
    """Steps over all rows, with momentum, where there is little noise."""

    kink: float  # the width over which the corner of the hinge is rounded

    @classmethod
    def of(cls, task: LinearTask, asked: Asked) -> Self:
        """From n, d, mu and what the user set."""
        bearing, nu = _bearing(task)
        growth = max(1.0, math.sqrt(task.calm))
        most = _MOST_STEPS * (4 if task.loss == HINGE else 1)  # whose dual is not curved
        return cls(
            task,
            steps=max(1, round(asked.n_passes or min(most, most / 100 * growth))),
            reach=bearing.reach(nu) * (min(growth, 4.0) if task.loss != HINGE else 1.0),
            penalty=max(bearing.penalty / growth**2, _SMALLEST),
            kink=_KINK / growth**2,
            clip=asked.clip,
            newton=asked.newton,
        )

    def releases(self, share: float) -> tuple[Release, ...]:
        """The curvature, then what all rows add to v."""
        return (
            Release("largest curvature", "gaussian", share=_CURVATURE_SHARE * share, count=POWER_STEPS),
            Release("updates", "gaussian", share=(1.0 - _CURVATURE_SHARE) * share, count=self.steps),
        )

    def run(self, data: Bounded, gate: Gate) -> Solution:
        """The last iterate."""
        task = self.task
        l2 = np.maximum(data.penalty.l2, self.penalty)
        l2 = np.append(l2, min(float(l2.mean()), _INTERCEPT))
        scale = 1.0 / (task.n * l2)
        radius = LIMIT * math.sqrt(task.width / float(l2.min()))
        damping = largest_curvature(task, Passes(task, data), l2, radius, gate)
        clip = self.clip or self.reach * math.sqrt(task.width) / (1.0 + damping)
        plain = mechanism(task, clip)
        duals = Duals(task, data, newton=self.newton, kink=self.kink)
        v = before = np.zeros((task.outputs, task.d + 1))
        for step in range(self.steps):
            beta = step / (step + 3)
            ahead = v + beta * (v - before)
            duals.look_ahead(beta)
            added = duals.move(duals.everyone, ahead * scale, damping, clip * SHRINK)
            before, v = v, ahead + gate.release("updates", plain, added)
        return solution(task, v, scale, gate.noise("updates", plain.sensitivity) * math.sqrt(self.steps))


def mechanism(task: LinearTask, clip: float) -> GaussianVector:
    """For the sum of updates of norm `clip`."""
    return GaussianVector(Moves(task.n, depth=task.n).vector(clip), bound=task.n * clip)


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
