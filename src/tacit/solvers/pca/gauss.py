"""`solver="gauss"`: the second moments with symmetric noise, then their eigenvectors (Analyze-Gauss).

Privacy
-------
Unit: one row. Neighbours: add-remove or replace-one. Released once: A = sum x x^T over rows bounded to norm R, in
Frobenius norm of sensitivity R^2 (a row's contribution is x x^T, of norm |x|^2), and sqrt(2) R^2 for replace-one (two
outer products have a non-negative inner product). Noise E = s (Z + Z^T) / 2 is isotropic on symmetric matrices:
variance s^2 on the diagonal and s^2 / 2 off it, half of what noise on the triangle as a vector would need. Gaussian, so
the plan is exactly mu-GDP. The sum is taken by BLAS (dense) or a loop over rows (sparse) in float64; its rounding is in
the sensitivity.

The eigenvectors are those of the released matrix. The matrix is kept as a packed triangle, which takes the noise in
place: 8 d (d + 1) / 2 bytes and no second copy of that size, except up to 2,000 columns.

Assumptions: mean and radius were declared or released in the same plan.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from tacit.privacy import Gate, Plan, Release
from tacit.privacy.checks import Adjacency
from tacit.privacy.mechanisms.packed import PackedGaussianMatrix
from tacit.solvers.pca.rows import BoundedRows
from tacit.solvers.pca.task import PcaTask, Spectrum, spectrum_of_packed


@dataclass(frozen=True)
class GaussSolver:
    """One release of the whole matrix."""

    name: ClassVar[str] = "gauss"
    adjacencies: ClassVar[tuple[Adjacency, ...]] = ("add-remove", "replace-one")
    picks_rows: ClassVar[bool] = False
    clips: ClassVar[bool] = False
    isotropic: ClassVar[bool] = True

    def plan(self, task: PcaTask, share: float) -> Plan:  # noqa: ARG002
        """The second moments."""
        return Plan(Release("second moments", "gaussian", share=share))

    def run(self, task: PcaTask, rows: BoundedRows, gate: Gate) -> Spectrum:
        """Eigenvectors of the noisy matrix."""
        sensitivity = rows.moment_sensitivity()
        mechanism = PackedGaussianMatrix(sensitivity, rows.bound, self.isotropic)
        noisy = gate.release("second moments", mechanism, rows.packed_moments(), task.d)
        deviation = gate.noise("second moments", sensitivity)
        if self.isotropic:
            deviation /= math.sqrt(2.0)
        return spectrum_of_packed(noisy, task.d, task.k, deviation)
