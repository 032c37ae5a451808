"""`solver="gradient"`: noisy gradient steps with a private preconditioner, the default on dense data.

Algorithm. Release the second-moment matrix A of the bounded rows once; take T full-batch steps
`w <- w - Q (noisy mean of clipped gradients + lambda w)` with Q the inverse of the curvature bound that A gives;
return the mean of the second half of the iterates. No step looks at the objective, and T is fixed beforehand.

Privacy
-------
Unit: one row. Neighbours: add-remove or replace-one. Released: A (or, above `FULL_MATRIX` columns, its diagonal and a
few noisy power iterations), then T sums of gradients; all Gaussian, so the plan is exactly mu-GDP.

- A = sum z z^T, rows clipped to norm R = sqrt(d') (more where there is little noise) for this matrix only: Frobenius
  sensitivity R^2, and sqrt(2) R^2 for replace-one. Its diagonal has non-negative entries that add up to at most R^2:
  the same.
- A power iteration sums z (z.v) for |v| = 1 over rows clipped to R: R^2, and R^2 for replace-one as well, because the
  eigenvalues of x x^T - z z^T lie between -R^2 and R^2.
- A gradient is clipped to norm C: C, and 2 C. For several classes it is the whole (K, d') gradient that is clipped and
  released at once.
- The sums are taken in float64; their rounding is in the sensitivity (`float_sum_slack`). Each row's margin and
  gradient come from a loop over that row alone.

Assumptions: rows are bounded by the driver; the scales it used were released in the same plan.

Rules (in n, d, epsilon and delta alone). nu = (d + 1) / (n mu); C = kappa sqrt(d') with kappa falling from 1 to 1/2
as the noise grows, and rising without limit as it vanishes; T = 30, and more where there is little noise; the penalty
is at least 0.2 C sqrt(d') / (n mu_g).
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.sparse import csr_array

from tacit.kernels import gradient as kernels
from tacit.preprocessing.magnitudes import LIMIT
from tacit.privacy import Meter, Plan, Release, float_sum_slack
from tacit.privacy.checks import Adjacency
from tacit.privacy.mechanisms import GaussianMatrix, GaussianVector, Sensitivity
from tacit.solvers.task import LossName, Rows, Task

Floats = NDArray[np.float64]

FULL_MATRIX = 2_000
_CODES = {"squared": kernels.SQUARED, "logistic": kernels.LOGISTIC, "multinomial": kernels.MULTINOMIAL}
_CURVATURE = {"squared": 1.0, "logistic": 0.25, "multinomial": 0.5}
_SHRINK = 1.0 - 2.0**-30
_POWER_STEPS = 4
_STEPS = 30
_NO_CLIP = 1e6  # times the usual clip: no gradient of a standardised row is that long


@dataclass(frozen=True)
class Settings:
    """The rules, worked out for one task."""

    steps: int
    clip: float  # of a gradient
    radius: float  # of a row, in the second moments
    momentum: float

    @classmethod
    def of(cls, task: Task) -> "Settings":
        """From n, d and mu alone."""
        width = math.sqrt(task.d + task.fit_intercept)
        nu = (task.d + 1) / (task.n * task.budget.mu)
        calm = 1e-3 / nu if nu > 0 else math.inf  # above 1 where the noise hardly matters
        kappa = min(1.0, max(0.5, 0.5 * (0.05 / max(nu, 1e-12)) ** 0.25))
        if task.loss == "squared":
            kappa = min(1.0, 1.4 * kappa)
        steps = round(_STEPS * min(40.0, max(1.0, math.sqrt(calm))))
        growth = max(1.0, math.sqrt(calm))
        return cls(
            steps,
            clip=kappa * width * min(growth, _NO_CLIP),
            radius=width * min(growth, LIMIT),  # no standardised row is longer than LIMIT times the width
            momentum=1.0 - _STEPS / steps,
        )


@dataclass(frozen=True)
class GradientSolver:
    """Noisy gradient steps with a private preconditioner."""

    name: ClassVar[str] = "gradient"
    losses: ClassVar[tuple[LossName, ...]] = ("squared", "logistic", "multinomial")
    adjacencies: ClassVar[tuple[Adjacency, ...]] = ("add-remove", "replace-one")

    def plan(self, task: Task, share: float) -> Plan:
        """The curvature, then the gradients."""
        steps = Release("gradients", "gaussian", share=0.85 * share, count=Settings.of(task).steps)
        if task.d <= FULL_MATRIX:
            return Plan(Release("second moments", "gaussian", share=0.15 * share), steps)
        return Plan(
            Release("second moments", "gaussian", share=0.05 * share),
            Release("largest curvature", "gaussian", share=0.10 * share, count=_POWER_STEPS),
            steps,
        )

    def run(self, task: Task, rows: Rows, ridge: Floats, meter: Meter) -> Floats:
        """The mean of the second half of the iterates."""
        settings = Settings.of(task)
        steps, width = settings.steps, task.d + task.fit_intercept
        passes = _Passes(task, rows)
        clip = settings.clip
        noise = meter.multiplier("gradients")
        penalty = np.zeros(task.d + 1)
        penalty[: task.d] = np.maximum(ridge, 0.2 * clip * math.sqrt(width) * noise / math.sqrt(steps) / task.n)
        descend = _preconditioner(task, passes, penalty, meter)
        sensitivity = Sensitivity.vector(clip + float_sum_slack(task.n, clip, passes.depth))
        mechanism = GaussianVector(sensitivity, bound=task.n * clip)
        w = np.zeros((task.outputs, task.d + 1))
        ahead, mean = w, np.zeros_like(w)
        tail = steps - steps // 2
        for step in range(steps):
            total = mechanism.release(meter, "gradients", passes.gradient(ahead, clip * _SHRINK))
            before, w = w, ahead - descend(total / task.n + penalty * ahead)
            if not task.fit_intercept:
                w[:, -1] = 0.0
            ahead = w + settings.momentum * step / (step + 3) * (w - before)
            if step >= steps - tail:
                mean += w / tail
        return mean


class _Passes:
    """Passes over the rows; every sum it returns is private until it has noise."""

    def __init__(self, task: Task, rows: Rows) -> None:
        self._task = task
        self._Z = rows.Z
        self._targets = rows.targets
        self._bias = 1.0 if task.fit_intercept else 0.0
        self._norms = np.empty(task.n)
        if isinstance(rows.Z, csr_array):
            self._indices, self._indptr = rows.Z.indices.astype(np.int64), rows.Z.indptr.astype(np.int64)
            kernels.sparse_norms(rows.Z.data, self._indptr, self._bias, self._norms)
            self.depth = task.n
        else:
            kernels.dense_norms(rows.Z, self._bias, self._norms)
            self.depth = kernels.sum_depth(task.n)

    def gradient(self, w: Floats, clip: float) -> Floats:
        """The sum of clipped gradients."""
        out = np.empty_like(w)
        code = _CODES[self._task.loss]
        if isinstance(self._Z, csr_array):
            kernels.sparse_gradient(
                self._Z.data, self._indices, self._indptr, self._norms, self._bias, self._targets, w, code, clip, out
            )
        else:
            kernels.dense_gradient(self._Z, self._norms, self._bias, self._targets, w, code, clip, out)
        return out

    def second_moments(self, radius: float) -> Floats:
        """The sum of z z^T over rows clipped to `radius`, intercept last."""
        d = self._task.d
        total = np.zeros((d + 1, d + 1))
        for block, scale in self._blocks(radius):
            clipped = _times(block, scale[:, None])
            product = clipped.T @ clipped
            total[:d, :d] += product.toarray() if isinstance(block, csr_array) else product
            total[:d, d] += (clipped.T @ scale) * self._bias
            total[d, d] += float(scale @ scale) * self._bias
        total[d, :d] = total[:d, d]
        return total

    def squares(self, radius: float) -> Floats:
        """The diagonal of `second_moments`."""
        d = self._task.d
        total = np.zeros(d + 1)
        for block, scale in self._blocks(radius):
            total[:d] += _times(block, block).T @ np.square(scale)
            total[d] += float(scale @ scale) * self._bias
        return total

    def curvature_times(self, v: Floats, diagonal: Floats, radius: float) -> Floats:
        """The sum of u (u.v), u = z / sqrt(diagonal) clipped to `radius`."""
        d = self._task.d
        weights = 1.0 / np.sqrt(diagonal)
        total = np.zeros(d + 1)
        for block, _ in self._blocks(math.inf):
            scaled = _times(block, weights[:d])
            bias = self._bias * weights[d]
            norm = np.sqrt(_row_sums(_times(scaled, scaled)) + bias**2)
            factor = np.minimum(1.0, radius * _SHRINK / np.maximum(norm, 1e-300)) ** 2
            inner = (_row_sums(_times(scaled, v[:d])) + bias * v[d]) * factor
            total[:d] += scaled.T @ inner
            total[d] += bias * float(inner.sum())
        return total

    def _blocks(self, radius: float) -> Iterator[tuple[Any, Floats]]:
        """Blocks of rows, and what to scale each row by so that its norm stays within `radius`."""
        for start in range(0, self._task.n, kernels.BLOCK):
            end = min(start + kernels.BLOCK, self._task.n)
            norms = self._norms[start:end]
            yield self._Z[start:end], np.minimum(1.0, radius * _SHRINK / np.maximum(norms, 1e-300))


def _times(table: Any, factor: Any) -> Any:
    """Elementwise product, sparse where the table is."""
    return csr_array(table.multiply(factor)) if isinstance(table, csr_array) else table * factor


def _row_sums(table: Any) -> Floats:
    """The sum of each row, taken over that row alone."""
    return np.asarray(table.sum(axis=1)).ravel()


def _preconditioner(task: Task, passes: _Passes, penalty: Floats, meter: Meter) -> Callable[[Floats], Floats]:
    """A function that multiplies a gradient by the inverse of a bound on the curvature."""
    n, width = task.n, task.d + task.fit_intercept
    radius = Settings.of(task).radius
    h = _CURVATURE[task.loss]
    slack = float_sum_slack(n, radius**2, kernels.sum_depth(n))
    outer = Sensitivity.outer_product(radius)
    sensitivity = Sensitivity(outer.add_remove + slack, outer.replace_one + slack)
    deviation = meter.multiplier("second moments") * sensitivity.under(meter.adjacency) / n
    floor = 1e-10  # keeps the inverse finite where a column is constant and nothing penalises it
    if task.d <= FULL_MATRIX:
        mechanism = GaussianMatrix(sensitivity, bound=n * radius**2)
        moments = mechanism.release(meter, "second moments", passes.second_moments(radius)) / n
        values, vectors = eigh(moments)
        bound = (vectors * (np.maximum(values, 0.0) + math.sqrt(2 * width) * deviation + floor)) @ vectors.T
        factor = cho_factor(h * bound + np.diag(penalty))
        return lambda g: cho_solve(factor, g.T).T
    squares = (
        GaussianVector(sensitivity, bound=n * radius**2).release(meter, "second moments", passes.squares(radius)) / n
    )
    diagonal = np.maximum(squares, 0.0) + 2.0 * deviation + floor
    largest = _largest_curvature(task, passes, diagonal, radius, slack, meter)
    inverse = 1.0 / (h * max(largest, 1.0) * diagonal + penalty)
    return lambda g: g * inverse


def _largest_curvature(
    task: Task, passes: _Passes, diagonal: Floats, radius: float, slack: float, meter: Meter
) -> float:
    """The largest eigenvalue of the second moments scaled by their diagonal, from above: noisy power iterations."""
    sensitivity = Sensitivity(radius**2 + slack, radius**2 + slack)
    mechanism = GaussianVector(sensitivity, bound=task.n * radius**2)
    v = np.full(task.d + 1, 1.0 / math.sqrt(task.d + 1))
    for _ in range(_POWER_STEPS):
        image = mechanism.release(meter, "largest curvature", passes.curvature_times(v, diagonal, radius)) / task.n
        largest = float(np.linalg.norm(image))
        v = image / max(largest, 1e-300)
    return 1.5 * largest
