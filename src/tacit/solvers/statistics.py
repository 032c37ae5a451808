"""`Statistics`: least squares from noisy sufficient statistics, two releases in all.

Algorithm. Release the second moments A of the bounded rows and their products b with the target; solve
`(A / n + lambda) w = b / n`. Where noise outweighs a direction of A its eigenvalue is lifted to the level of the noise,
which shrinks the weights there instead of letting them blow up.

Privacy
-------
Unit: one row. Neighbours: add-remove or replace-one. Released: A and b, both Gaussian, so the plan is exactly mu-GDP.

- A = sum z z^T, rows clipped to norm R for this matrix: Frobenius sensitivity R^2, and sqrt(2) R^2 for replace-one.
- b = sum of z t, each product clipped to norm C: C, and 2 C.
- The sums of dense rows are exact (`tacit.blocks.exact`); those of sparse rows are taken in float64, and their
  rounding is in the sensitivity (`tacit.blocks.Moves`).

Assumptions: the rows are bounded beforehand; the scales for that are releases of the same plan.

Rules (in n, d, epsilon and delta alone). R = sqrt(d') and C = sqrt(d'), and more where there is little noise; half of
mu^2 for each release; eigenvalues are lifted to sqrt(d') deviations of the noise in A / n, which is about 0.7 of the
largest eigenvalue that the noise alone would have.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.linalg import eigh

from tacit.blocks import SHRINK, Bounded, passes_over
from tacit.bounding.magnitudes import LIMIT
from tacit.privacy import Gate, Release
from tacit.privacy.mechanisms import GaussianMatrix, GaussianVector
from tacit.problems import SQUARED
from tacit.problems.task import LinearTask
from tacit.solvers.base import Algorithm, Layout, Serves, Solution, Solver

_FLOOR = 1e-10  # keeps the solution finite where a column is constant and nothing penalises it


@dataclass(eq=False, repr=False)
class Statistics(Solver):
    """Least squares from noisy sums of products: two releases, and no iteration.

    It serves the squared loss with an l2 penalty. Use it where the two sums are worth having by themselves: others can
    refit from them, with other penalties, at no further cost. `tacit.solvers.Gradient` finds better weights.

    Privacy: two noisy sums over rows, both Gaussian, and accounted exactly.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tacit import Ridge
    >>> from tacit.solvers import Statistics
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = Ridge(epsilon=10.0, solver=Statistics()).fit(X, y)
    >>> model.coef_.shape
    (10,)
    """

    name: ClassVar[str] = "statistics"
    serves: ClassVar[Serves] = Serves(losses=(SQUARED,), streams=True)

    def at(self, task: LinearTask) -> "_NormalEquations":
        """The rules, from n, d and mu alone."""
        width, growth = math.sqrt(task.width), max(1.0, math.sqrt(task.calm))
        return _NormalEquations(task, radius=width * min(growth, LIMIT), clip=width * min(growth, LIMIT**2))


@dataclass(frozen=True)
class _NormalEquations(Algorithm[LinearTask]):
    """Two releases, and the solution of what they say."""

    layout: ClassVar[Layout] = "grid"

    radius: float  # of a row, in the second moments
    clip: float  # of a row times its target

    def releases(self, share: float) -> tuple[Release, ...]:
        """The second moments, then the products with the target."""
        return (
            Release("second moments", "gaussian", share=0.5 * share),
            Release("products with the target", "gaussian", share=0.5 * share),
        )

    def run(self, data: Bounded, gate: Gate) -> Solution:
        """The solution of the noisy normal equations."""
        task, n, radius, clip = self.task, self.task.n, self.radius, self.clip
        passes = passes_over(task, data)

        moved = passes.moves.outer(radius)
        lift = gate.noise("second moments", moved) / n
        moments = gate.release(
            "second moments", GaussianMatrix(moved, bound=n * radius**2), passes.second_moments(radius)
        )

        moved = passes.moves.vector(clip)
        spread = gate.noise("products with the target", moved) / n
        start = np.zeros((1, task.d + 1))
        products = gate.release(
            "products with the target", GaussianVector(moved, bound=n * clip), -passes.gradient(start, clip * SHRINK)[0]
        )

        values, vectors = eigh(moments / n)
        lifted = np.maximum(values, math.sqrt(task.width) * lift + _FLOOR)
        l2 = np.append(data.penalty.l2, 0.0)
        inverse = np.linalg.inv((vectors * lifted) @ vectors.T + np.diag(l2))
        weights = inverse @ (products / n)
        noise = np.linalg.norm(inverse, axis=1) * math.hypot(spread, lift * float(np.linalg.norm(weights)))
        if not task.fit_intercept:
            weights[-1] = noise[-1] = 0.0
        return Solution(weights[None, :], noise[None, :])
