"""`solver="statistics"`: least squares from noisy sufficient statistics, two releases in all.

Algorithm. Release the second moments A of the bounded rows and their products b with the target; solve
`(A / n + lambda) w = b / n`. Where noise outweighs a direction of A its eigenvalue is lifted to the level of the noise,
which shrinks the weights there instead of letting them blow up.

Privacy
-------
Unit: one row. Neighbours: add-remove or replace-one. Released: A and b, both Gaussian, so the plan is exactly mu-GDP.

- A = sum z z^T, rows clipped to norm R for this matrix: Frobenius sensitivity R^2, and sqrt(2) R^2 for replace-one.
- b = sum of z t, each product clipped to norm C: C, and 2 C.
- The sums are taken in float64; their rounding is in the sensitivity (`float_sum_slack`).

Assumptions: rows are bounded by the driver; the scales it used were released in the same plan.

Rules (in n, d, epsilon and delta alone). R = sqrt(d') and C = sqrt(d'), and more where there is little noise; half of
mu^2 for each release; eigenvalues are lifted to sqrt(d') deviations of the noise in A / n, about its largest eigenvalue
over sqrt(2).
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.linalg import eigh

from tacit.preprocessing.magnitudes import LIMIT
from tacit.privacy import Gate, Plan, Release, float_sum_slack
from tacit.privacy.checks import Adjacency
from tacit.privacy.mechanisms import GaussianMatrix, GaussianVector, Sensitivity
from tacit.problems import SQUARED, Loss, Penalty
from tacit.solvers.passes import SHRINK, Passes
from tacit.solvers.task import Layout, PenaltyName, Rows, Solution, Task

_FLOOR = 1e-10  # keeps the solution finite where a column is constant and nothing penalises it


@dataclass(frozen=True)
class StatisticsSolver:
    """Noisy sufficient statistics, with shrinkage."""

    name: ClassVar[str] = "statistics"
    losses: ClassVar[tuple[Loss, ...]] = (SQUARED,)
    multiclass: ClassVar[tuple[Loss, ...]] = ()
    adjacencies: ClassVar[tuple[Adjacency, ...]] = ("add-remove", "replace-one")
    penalties: ClassVar[tuple[PenaltyName, ...]] = ("l2",)
    options: ClassVar[tuple[str, ...]] = ()
    layout: ClassVar[Layout] = "rows"

    def plan(self, task: Task, share: float) -> Plan:  # noqa: ARG002
        """The second moments, then the products with the target."""
        return Plan(
            Release("second moments", "gaussian", share=0.5 * share),
            Release("products with the target", "gaussian", share=0.5 * share),
        )

    def run(self, task: Task, rows: Rows, penalty: Penalty, gate: Gate) -> Solution:
        """The solution of the noisy normal equations."""
        n, width = task.n, math.sqrt(task.width)
        growth = max(1.0, math.sqrt(task.calm))
        radius = width * min(growth, LIMIT)
        clip = width * min(growth, LIMIT**2)
        passes = Passes(task, rows)

        outer = Sensitivity.outer_product(radius)
        slack = float_sum_slack(n, radius**2, passes.depth)
        moved = Sensitivity(outer.add_remove + slack, outer.replace_one + slack)
        lift = gate.noise("second moments", moved) / n
        moments = gate.release(
            "second moments", GaussianMatrix(moved, bound=n * radius**2), passes.second_moments(radius)
        )

        moved = Sensitivity.vector(clip + float_sum_slack(n, clip, passes.depth))
        spread = gate.noise("products with the target", moved) / n
        start = np.zeros((1, task.d + 1))
        products = gate.release(
            "products with the target", GaussianVector(moved, bound=n * clip), -passes.gradient(start, clip * SHRINK)[0]
        )

        values, vectors = eigh(moments / n)
        lifted = np.maximum(values, math.sqrt(task.width) * lift + _FLOOR)
        l2 = np.append(penalty.l2, 0.0)
        inverse = np.linalg.inv((vectors * lifted) @ vectors.T + np.diag(l2))
        weights = inverse @ (products / n)
        noise = np.linalg.norm(inverse, axis=1) * math.hypot(spread, lift * float(np.linalg.norm(weights)))
        if not task.fit_intercept:
            weights[-1] = noise[-1] = 0.0
        return Solution(weights[None, :], noise[None, :])
