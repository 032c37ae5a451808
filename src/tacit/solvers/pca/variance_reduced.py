"""`solver="variance-reduced"`: snapshots of the product and cheap corrections between them (DP-VRPCA, corrected).

m times: a snapshot S = A V~ + noise over all rows, at V~ = V; then J - 1 steps

    G = S B + (1 / q) (sum over a Poisson sample of x x^T (V - V~ B) + noise),    V <- polar(G),

B the rotation that brings V~ nearest to V.

Privacy
-------
Unit: one row. Neighbours: add-remove only. Released:

- "snapshots": m sums of x (x^T V~): sensitivity R^2.
- "corrections": m (J - 1) sums over fresh Poisson samples of x x^T D, D = V - V~ B the matrix that is multiplied. A
  row's contribution has Frobenius norm at most |x|^2 |D|_2. |D|_2 is a function of earlier releases, so public: noise
  is a fixed multiplier of R^2 |D|_2 and shrinks as the iterates settle. Where D is 0 the release is skipped.
- the small matrix and the total of `iterative`.

Accounted by the privacy loss distribution of [(1, z_s) m times, (q, z_c) m (J - 1) times] and the last two. The
rounding of the sums is in the sensitivity. It is sound but was never the best solver on any data tried: it is here
because the paper on DP-VRPCA has it.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from scipy.linalg import svd, svdvals

from tacit.privacy import Gate, Plan, Release
from tacit.privacy.checks import Adjacency
from tacit.privacy.mechanisms import GaussianVector
from tacit.solvers.pca.iterative import STEPS_SHARE, last_releases, orthonormal, random_start, spectrum_in
from tacit.solvers.pca.rows import BoundedRows
from tacit.solvers.pca.task import PcaTask, Spectrum

_SNAPSHOTS = 4
_CORRECTIONS = 1  # after each snapshot: J - 1
_SAMPLING = 0.5
_SNAPSHOT_SHARE = 0.7


@dataclass(frozen=True)
class VarianceReducedSolver:
    """Snapshots and corrections."""

    name: ClassVar[str] = "variance-reduced"
    adjacencies: ClassVar[tuple[Adjacency, ...]] = ("add-remove",)
    picks_rows: ClassVar[bool] = True
    clips: ClassVar[bool] = False

    @staticmethod
    def schedule(task: PcaTask) -> tuple[int, float]:
        """How many snapshots, and the probability that a row takes part in a correction."""
        if not task.budget.is_private:
            return task.steps_without_noise // (1 + _CORRECTIONS), 1.0
        return _SNAPSHOTS, _SAMPLING

    def plan(self, task: PcaTask, share: float) -> Plan:
        """Snapshots, corrections, small matrix, total."""
        count, sampling = self.schedule(task)
        part = STEPS_SHARE * share
        return Plan(
            Release("snapshots", "gaussian", share=_SNAPSHOT_SHARE * part, count=count),
            Release(
                "corrections",
                "gaussian",
                share=(1.0 - _SNAPSHOT_SHARE) * part,
                count=count * _CORRECTIONS,
                sampling=sampling,
            ),
            *last_releases(share),
        )

    def run(self, task: PcaTask, rows: BoundedRows, gate: Gate) -> Spectrum:
        """Components in the span of the last iterate."""
        count, sampling = self.schedule(task)
        p = task.columns
        V = random_start(task, gate)
        sensitivity = rows.product_sensitivity(p)
        kept = gate.noise("snapshots", sensitivity)  # the noise of a snapshot
        for _ in range(count):
            anchor = V
            snapshot = gate.release("snapshots", GaussianVector(sensitivity, bound=rows.bound), rows.products(anchor))
            M, added = snapshot, 0.0
            V = orthonormal(M)
            for _ in range(_CORRECTIONS):
                left, _, right = svd(anchor.T @ V)
                turned = left @ right
                change = V - anchor @ turned
                size = float(svdvals(change)[0]) * (1.0 + 1e-12)
                if size == 0.0:
                    gate.skip("corrections")
                    continue
                places = gate.sample("corrections") if sampling < 1.0 else None
                mechanism = GaussianVector(rows.product_sensitivity(p, stretch=size), bound=rows.bound * size)
                moved = gate.release("corrections", mechanism, rows.products(change, places=places)) / sampling
                M = snapshot @ turned + moved
                V = orthonormal(M)
                added = gate.noise("corrections", mechanism.sensitivity) / sampling
        return spectrum_in(task, rows, M, math.hypot(kept, added), gate)
