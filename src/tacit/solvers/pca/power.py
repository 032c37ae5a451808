"""`solver="power"`: noisy block power iterations, then Rayleigh and Ritz (private power iteration).

V <- orthonormal(A V + noise), T times, from a public random start.

Privacy
-------
Unit: one row. Neighbours: add-remove or replace-one. Released: T products A V = sum x (x^T V), V orthonormal of p
columns and a function of earlier releases. A row's x x^T V has Frobenius norm at most |x|^2 <= R^2, and two of them are
at most sqrt(2) R^2 apart, as multiplying by V brings outer products no further apart. Then the small matrix and the
total of `iterative`. All Gaussian, so the plan is exactly mu-GDP. The rounding of the sums is in the sensitivity.

T is a rule in n, d and the budget: few steps, as each costs a T-th of the budget, and more as noise vanishes.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from tacit.privacy import Gate, Plan, Release
from tacit.privacy.checks import Adjacency
from tacit.privacy.mechanisms import GaussianVector
from tacit.solvers.pca.iterative import STEPS_SHARE, last_releases, orthonormal, random_start, spectrum_in
from tacit.solvers.pca.rows import BoundedRows
from tacit.solvers.pca.task import PcaTask, Spectrum


@dataclass(frozen=True)
class PowerSolver:
    """Noisy block power iterations."""

    name: ClassVar[str] = "power"
    adjacencies: ClassVar[tuple[Adjacency, ...]] = ("add-remove", "replace-one")
    picks_rows: ClassVar[bool] = False
    clips: ClassVar[bool] = False

    @staticmethod
    def steps(task: PcaTask) -> int:
        """Four, and more where noise is small."""
        if not task.budget.is_private:
            return task.steps_without_noise
        return min(task.steps_without_noise, 4 + math.floor(4.0 * max(0.0, math.log10(0.01 / task.nu))))

    def plan(self, task: PcaTask, share: float) -> Plan:
        """The products, the small matrix and the total."""
        products = Release("products", "gaussian", share=STEPS_SHARE * share, count=self.steps(task))
        return Plan(products, *last_releases(share))

    def run(self, task: PcaTask, rows: BoundedRows, gate: Gate) -> Spectrum:
        """Components in the span of the last iterate."""
        V = random_start(task, gate)
        sensitivity = rows.product_sensitivity(task.columns)
        mechanism = GaussianVector(sensitivity, bound=rows.bound)
        for _ in range(self.steps(task)):
            M = gate.release("products", mechanism, rows.products(V))
            V = orthonormal(M)
        return spectrum_in(task, rows, M, gate.noise("products", sensitivity), gate)
