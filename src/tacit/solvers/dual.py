"""`solver="dual"`: stochastic dual coordinate steps (DP-SCD), with a dual vector that stays secret.

Algorithm. Every row i has dual variables alpha_i; the weights are theta_j = v_j / (n l2_j) with v = sum alpha_i x_i,
the intercept's entry of x_i being 1. Each step flips a coin for every row and moves the dual variables of those that
take part, each by itself, to the best place on a separable bound of the dual objective (equation 8 of the paper); what
they add to v is released with noise. The number of steps is fixed beforehand; no step looks at the objective or a gap.

Privacy
-------
Unit: one row. Neighbours: add-remove; replace-one is refused, because sampling changes its accounting. Released: T sums
of updates zeta_i x_i over Poisson samples with rate q, each row's clipped to norm C: T Poisson-sampled Gaussian events.
The dual variables are state that each row keeps to itself. They are never released; a row's enter a release through its
own clipped update and nowhere else, which is what the accounting of samples needs (docs/guarantees.md#dual). For
several classes, one against the rest, the updates of all classes are clipped together and released at once: the
sensitivity is C as well. Sums are taken in float64; their rounding is in the sensitivity (`float_sum_slack`).

Assumptions: rows are bounded by the driver; the scales it used were released in the same plan.

Rules (in n, d, epsilon and delta alone; nu = (d + 1) / (n mu)). Expected batches of L = 300 rows; damping L, with which
even rows that all point one way do not overshoot; C = k A R / (1 + L R^2 / (n l2)) with R^2 = d' and A = 1 (squared
loss: 3, the bound of the target): the longest update of a row of norm R. k = 1, but where noise is above what the loss
bears (nu above 0.3; squared loss 0.005) it falls as nu^-0.4. 10 passes over the rows, and up to 100 below nu = 0.1
(squared loss 0.01). The penalty is at least 0.01 (squared loss 0.003): with less, so few passes do not get far. Where
there is little noise (nu below 0.00016) every step takes all rows, with momentum and a damping that is released first,
and steps grow, the least penalty and the rounding of the hinge's corner vanish, so that without noise the problem is
solved. The intercept is penalised like the features; less and less where there is little noise.

Variants, for comparison with the paper. `variant="secret"` is the above. "published" noises the dual variables of a
batch as well, with the noise that sqrt(2) C asks for, and v with the same; v alone is released, so what leaves a step
has a public size, and the noise in a dual variable is that row's own secret, like its coins. "sequential" lets the
updates of a batch see each other, on fixed batches of L rows, one of which holds a given row: its batch's dual
variables and v move by at most 2 C sqrt(L (L + 1)), once in a pass. "primal" moves L weights at a time by at most C
each, from all rows: 2 C sqrt(L).
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tacit._types import Floats
from tacit.kernels import dual as kernels
from tacit.kernels import gradient as rowwise
from tacit.preprocessing.magnitudes import LIMIT
from tacit.privacy import Gate, Plan, Release, float_sum_slack
from tacit.privacy.checks import Adjacency
from tacit.privacy.mechanisms import Batches, GaussianSequence, GaussianVector, SampledSteps, Sensitivity, Tape
from tacit.problems import HINGE, LOGISTIC, SQUARED, SQUARED_HINGE, Loss, Penalty
from tacit.solvers.gradient import POWER_STEPS, largest_curvature
from tacit.solvers.passes import SHRINK, Passes
from tacit.solvers.task import Layout, PenaltyName, Rows, Solution, Task

_BATCH = 300
_PASSES = 10
_CALM = 2.5  # growth above which steps take all rows
_KINK = 0.5  # the width over which the hinge's corner is rounded in steps over all rows, at first
# How far a dual variable may be, the nu above which it is held back, that below which there are more passes, and the
# least penalty.
_FAR, _BOUNDED = (LIMIT, 0.005, 0.01, 0.003), (1.0, 0.3, 0.1, 0.01)
_MOST_STEPS = 3_000  # over all rows
_CURVATURE_SHARE = 0.05
_INTERCEPT = 2e-4  # the intercept's penalty where there is little noise: too small to move it, or the objective
_AT_ONCE = 2_000_000  # numbers that steps made at once may need: their noise and their samples
_SMALLEST = 1e-12  # strength of a penalty: without any there is no dual


@dataclass(frozen=True)
class Settings:
    """The rules, worked out for one task."""

    steps: int
    batch: float  # expected rows in a step
    sampling: float
    reach: float  # the longest that a dual variable moves in a step, but for the damping
    penalty: float  # the least strength of the l2 penalty
    momentum: bool
    kink: float  # the width over which the corner of the hinge is rounded

    @classmethod
    def of(cls, task: Task) -> "Settings":
        """From n, d, mu and what the user set."""
        options = task.options
        growth = max(1.0, math.sqrt(task.calm))
        whole = growth > _CALM and options.batch_size is None and options.variant == "secret"
        batch = task.n if whole else min(options.batch_size or _BATCH, task.n)
        most = _MOST_STEPS * (4 if task.loss == HINGE else 1)  # whose dual is not curved
        far, bearable, long, penalty = _FAR if task.loss == SQUARED else _BOUNDED
        nu = max(task.nu, 1e-300)
        passes = min(most, most / 100 * growth) if whole else _PASSES * min(max(1.0, math.sqrt(long / nu)), 10.0)
        return cls(
            steps=max(1, round((options.n_passes or passes) * task.n / batch)),
            batch=float(batch),
            sampling=batch / task.n,
            reach=far * min(1.0, (bearable / nu) ** 0.4) * (min(growth, 4.0) if whole and task.loss != HINGE else 1.0),
            penalty=max(penalty / growth**2, _SMALLEST) if whole else penalty,
            momentum=whole,
            kink=_KINK / growth**2 if whole else 0.0,
        )


@dataclass(frozen=True)
class DualSolver:
    """Stochastic dual coordinate steps with a secret dual vector."""

    name: ClassVar[str] = "dual"
    losses: ClassVar[tuple[Loss, ...]] = (SQUARED, LOGISTIC, HINGE, SQUARED_HINGE)
    multiclass: ClassVar[tuple[Loss, ...]] = (LOGISTIC, HINGE, SQUARED_HINGE)
    adjacencies: ClassVar[tuple[Adjacency, ...]] = ("add-remove",)
    penalties: ClassVar[tuple[PenaltyName, ...]] = ("l2",)
    options: ClassVar[tuple[str, ...]] = ("n_passes", "batch_size", "clip", "variant", "inner")
    layout: ClassVar[Layout] = "short rows"

    def plan(self, task: Task, share: float) -> Plan:
        """The updates; before them the curvature, where steps take all rows."""
        settings = Settings.of(task)
        variant = task.options.variant
        if variant == "sequential":  # a row's batch comes once in a pass
            passes = max(1, round(task.options.n_passes or _PASSES))
            return Plan(Release("updates", "gaussian", share=share, count=passes))
        if variant == "primal":
            if task.outputs > 1:
                raise ValueError("variant='primal' does not serve more than two classes; the others do")
            return Plan(Release("updates", "gaussian", share=share, count=_primal_steps(task)))
        updates = Release("updates", "gaussian", share=share, count=settings.steps, sampling=settings.sampling)
        if not settings.momentum:
            return Plan(updates)
        return Plan(
            Release("largest curvature", "gaussian", share=_CURVATURE_SHARE * share, count=POWER_STEPS),
            Release("updates", "gaussian", share=(1.0 - _CURVATURE_SHARE) * share, count=settings.steps),
        )

    def run(self, task: Task, rows: Rows, penalty: Penalty, gate: Gate) -> Solution:
        """The last iterate."""
        if task.options.variant == "primal":
            return _primal(task, rows, penalty, gate)
        settings = Settings.of(task)
        l2 = np.maximum(penalty.l2, settings.penalty)
        own = float(l2.mean())
        l2 = np.append(l2, min(own, _INTERCEPT) if settings.momentum else own)
        scale = 1.0 / (task.n * l2)
        damping = settings.batch
        if settings.momentum:
            radius = LIMIT * math.sqrt(task.width / float(l2.min()))
            slack = float_sum_slack(task.n, radius**2, rowwise.sum_depth(task.n))
            damping = largest_curvature(task, Passes(task, rows), l2, radius, slack, gate)
        pull = damping if settings.momentum else damping * task.width * float(scale.mean())
        clip = task.options.clip or settings.reach * math.sqrt(task.width) / (1.0 + pull)
        duals = _Duals(task, rows, scale, settings)
        loop = {"secret": _secret, "published": _published, "sequential": _sequential}[task.options.variant]
        v, spread = loop(task, settings, duals, scale, damping, clip, gate)
        if not task.fit_intercept:
            scale[-1] = 0.0  # of noise alone
        return Solution(v * scale, np.tile(spread * scale, (task.outputs, 1)))


def _secret(
    task: Task, settings: Settings, duals: "_Duals", scale: Floats, damping: float, clip: float, gate: Gate
) -> tuple[Floats, float]:
    """v, and the deviation of the noise in it."""
    if settings.momentum:
        return _whole(task, settings, duals, scale, damping, clip, gate)
    plain = _mechanism(task, clip)
    mechanism = SampledSteps(plain.sensitivity, task.n * clip)
    walk = _Walk(duals, np.zeros((task.outputs, task.d + 1)), scale, damping, clip * SHRINK)
    most = max(1, round(_AT_ONCE / (walk.v.size + settings.batch)))
    while gate.left("updates"):
        count = min(most, gate.left("updates"))
        gate.release("updates", mechanism, walk.v.size, count, walk)
    return walk.v, gate.noise("updates", plain.sensitivity) * math.sqrt(settings.steps)


def _whole(
    task: Task, settings: Settings, duals: "_Duals", scale: Floats, damping: float, clip: float, gate: Gate
) -> tuple[Floats, float]:
    """The same where every step takes all rows, with momentum."""
    mechanism = _mechanism(task, clip)
    v = before = np.zeros((task.outputs, task.d + 1))
    for step in range(settings.steps):
        beta = step / (step + 3)
        ahead = v + beta * (v - before)
        duals.look_ahead(beta)
        added = duals.move(duals.everyone, ahead * scale, damping, clip * SHRINK)
        before, v = v, ahead + gate.release("updates", mechanism, added)
    return v, gate.noise("updates", mechanism.sensitivity) * math.sqrt(settings.steps)


def _published(
    task: Task, settings: Settings, duals: "_Duals", scale: Floats, damping: float, clip: float, gate: Gate
) -> tuple[Floats, float]:
    """The paper's: dual variables get noise as well. It is state of each row, drawn for all of them, and stays here."""
    mechanism = _mechanism(task, math.sqrt(2.0) * clip)
    deviation = gate.noise("updates", mechanism.sensitivity)
    v = np.zeros((task.outputs, task.d + 1))
    for _ in range(settings.steps):
        rows = gate.sample("updates")
        added = duals.move(rows, v * scale, damping, clip * SHRINK)
        noise = gate.secret_normals((task.n, task.outputs))
        duals.put(rows, duals.at(rows) + deviation * noise[rows])
        v = v + gate.release("updates", mechanism, added)
    return v, deviation * math.sqrt(settings.steps)


def _sequential(
    task: Task, settings: Settings, duals: "_Duals", scale: Floats, damping: float, clip: float, gate: Gate
) -> tuple[Floats, float]:
    """Updates of a batch see each other; batches are fixed, and all of them are seen once in a pass."""
    del damping  # one row at a time does not overshoot
    size = math.ceil(settings.batch)
    sensitivity = 2.0 * clip * math.sqrt(size * (size + 1.0))
    slack = float_sum_slack(task.n, clip, task.n)
    mechanism = GaussianSequence(Sensitivity(sensitivity + slack, sensitivity + slack), bound=task.n * clip)
    order = gate.publicly(task.n)
    batches = [order[start : start + size] for start in range(0, task.n, size)]
    v = np.zeros((task.outputs, task.d + 1))
    passes = gate.left("updates")
    for _ in range(passes):

        def walk(tape: Tape) -> Floats:
            nonlocal v
            at, released = 0, []
            for rows in batches:
                old, added = duals.at(rows), np.zeros_like(v)
                for i in rows:  # summed by itself: beside a large v its rounding would count
                    added += duals.move(np.array([i]), (v + added) * scale, 1.0, clip * SHRINK)
                both = np.concatenate([(duals.at(rows) - old).ravel(), added.ravel()])
                noisy = tape.put(both, at)
                at += both.size
                duals.put(rows, old + noisy[: old.size].reshape(old.shape))
                v = v + noisy[old.size :].reshape(v.shape)
                released.append(noisy)
            return np.concatenate(released)

        gate.release("updates", mechanism, task.n * task.outputs + len(batches) * v.size, walk)
    return v, gate.noise("updates", mechanism.sensitivity) * math.sqrt(passes * len(batches))


def _primal(task: Task, rows: Rows, penalty: Penalty, gate: Gate) -> Solution:
    """Some weights at a time, each moved by at most C from all rows; margins are computed anew and stay secret."""
    size = _primal_size(task)
    clip = task.options.clip or 0.1
    sensitivity = 2.0 * clip * math.sqrt(size)
    mechanism = GaussianVector(Sensitivity(sensitivity, sensitivity), bound=clip)
    passes = Passes(task, rows)
    curvature = task.loss.curvature * np.maximum(passes.squares(math.inf) / task.n, 1e-12)
    l2 = np.append(penalty.l2, 0.0)
    theta = np.zeros((1, task.d + 1))
    left: NDArray[np.int64] = np.empty(0, dtype=np.int64)
    for _ in range(_primal_steps(task)):
        if len(left) == 0:
            left = gate.publicly(task.width)
        now, left = left[:size], left[size:]
        slope = passes.gradient(theta, math.inf)[0] / task.n + l2 * theta[0]
        moves = np.clip(-slope[now] / (len(now) * curvature[now] + l2[now]), -clip, clip)
        theta[0, now] += gate.release("updates", mechanism, moves)
    spread = gate.multiplier("updates") * sensitivity * math.sqrt(task.options.n_passes or _PASSES)
    return Solution(theta, np.full_like(theta, spread))


def _primal_size(task: Task) -> int:
    return min(task.options.batch_size or 10, task.width)


def _primal_steps(task: Task) -> int:
    return max(1, round((task.options.n_passes or _PASSES) * math.ceil(task.width / _primal_size(task))))


def _mechanism(task: Task, clip: float) -> GaussianVector:
    size = clip + float_sum_slack(task.n, clip, task.n)
    return GaussianVector(Sensitivity.vector(size), bound=task.n * clip)


class _Kernels(NamedTuple):
    """The compiled functions for one kind of table."""

    pulls: Any
    batch: Any
    steps: Any


_DENSE = _Kernels(kernels.dense_pulls, kernels.dense_batch, kernels.dense_steps)
_SPARSE = _Kernels(kernels.sparse_pulls, kernels.sparse_batch, kernels.sparse_steps)


class _Duals:
    """The dual variables of all rows; they never leave this module."""

    def __init__(self, task: Task, rows: Rows, scale: Floats, settings: Settings) -> None:
        self._targets = rows.targets
        self._loss = task.loss.code
        self._inner = kernels.NEWTON if task.options.inner == "newton" else kernels.EXACT
        self._kink = settings.kink
        self._bias = 1.0 if task.fit_intercept else 0.0
        self._alpha = self._before = np.zeros((task.n, task.outputs))
        self._norms, self._pulls = np.empty(len(rows.targets)), np.ones(len(rows.targets))
        self._parts: tuple[Any, ...]
        if isinstance(rows.Z, csr_array):
            self._kernels = _SPARSE
            self._parts = rows.Z.data, rows.Z.indices, rows.Z.indptr
        else:
            self._kernels = _DENSE
            self._parts = (rows.Z,)
        self._kernels.pulls(*self._parts, self._bias, np.ones_like(scale), self._norms)
        np.sqrt(self._norms, out=self._norms)
        if not settings.momentum:
            self._kernels.pulls(*self._parts, self._bias, scale, self._pulls)
        if task.options.variant != "secret":  # a dual variable must not move by more than the clip either
            self._norms = np.maximum(self._norms, 1.0)

    def look_ahead(self, beta: float) -> None:
        """Go on in the direction of the last step."""
        if beta > 0.0:
            self._alpha, self._before = self._alpha + beta * (self._alpha - self._before), self._alpha
        else:
            self._before = self._alpha.copy()  # which moves in place

    @property
    def everyone(self) -> NDArray[np.int64]:
        """All rows."""
        return np.arange(len(self._targets))

    def at(self, rows: NDArray[np.int64]) -> Floats:
        """The dual variables of these rows."""
        return self._alpha[rows]

    def put(self, rows: NDArray[np.int64], values: Floats) -> None:
        """Set them."""
        self._alpha[rows] = values

    def move(self, rows: NDArray[np.int64], theta: Floats, damping: float, clip: float) -> Floats:
        """Move the dual variables of these rows; returns what they add to v, private until it has noise."""
        out = np.empty_like(theta)
        fixed = self._targets, self._pulls, self._norms, theta, self._alpha
        how = damping, self._loss, self._inner, self._kink, clip
        self._kernels.batch(*self._parts, self._bias, rows, *fixed, *how, out)
        return out

    def steps(self, batches: Batches, v: Floats, scale: Floats, damping: float, clip: float) -> Floats:
        """Move those of one batch after the other, and v by what that adds, with noise; returns what v moved by."""
        released = np.empty(batches.noise.shape)
        fixed = self._targets, self._pulls, self._norms, scale, self._alpha
        how = damping, self._loss, self._inner, self._kink, clip
        noise = batches.noise, batches.step, batches.bound
        rows = batches.rows, batches.starts
        self._kernels.steps(*self._parts, self._bias, *rows, *fixed, *how, *noise, v, released)
        return released

    def __repr__(self) -> str:
        return "_Duals(private)"


@dataclass(eq=False)
class _Walk:
    """Steps on samples: `v` is where they have come to, and released."""

    duals: _Duals
    v: Floats
    scale: Floats
    damping: float
    clip: float

    def __call__(self, batches: Batches) -> Floats:
        return self.duals.steps(batches, self.v, self.scale, self.damping, self.clip)
