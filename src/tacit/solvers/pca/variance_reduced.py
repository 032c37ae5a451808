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
- the small matrix and the total of `steps`.

Accounted by the privacy loss distribution of [(1, z_s) m times, (q, z_c) m (J - 1) times] and the last two. The
rounding of the sums is in the sensitivity. It is sound but was never the best solver on any data tried: it is here
because the paper on DP-VRPCA has it.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from scipy.linalg import svd, svdvals

from tacit.blocks.centred import CentredRows
from tacit.privacy import Gate, Release
from tacit.privacy.mechanisms import GaussianVector
from tacit.problems.task import ComponentsTask
from tacit.solvers.base import Algorithm, Serves, Solver
from tacit.solvers.examples import on_digits
from tacit.solvers.pca.spectrum import Spectrum
from tacit.solvers.pca.steps import (
    STEPS_SHARE,
    STEPS_WITHOUT_NOISE,
    columns,
    last_releases,
    orthonormal,
    random_start,
    spectrum_in,
)

_SNAPSHOTS = 4
_CORRECTIONS = 1  # after each snapshot: J - 1
_SAMPLING = 0.5
_SNAPSHOT_SHARE = 0.7


@on_digits()
@dataclass(eq=False, repr=False)
class VarianceReduced(Solver):
    """Noisy products over all rows, with corrections over samples between them (DP-VRPCA, corrected).

    For comparison with the literature: it was never the best solver on any data tried. It needs rows that can be
    picked one by one, so no stream, and serves add-remove only.

    Privacy: noisy products over all rows, and noisy corrections over random samples, which stay secret; then a small
    noisy matrix and a noisy total.
    """

    name: ClassVar[str] = "variance-reduced"
    serves: ClassVar[Serves] = Serves(losses=(), adjacencies=("add-remove",))

    def at(self, task: ComponentsTask) -> "_Snapshots":
        """How many snapshots, and corrections over which samples: over all rows, where there is no noise."""
        if not task.budget.is_private:
            return _Snapshots(task, STEPS_WITHOUT_NOISE // (1 + _CORRECTIONS), 1.0)
        return _Snapshots(task, _SNAPSHOTS, _SAMPLING)


@dataclass(frozen=True)
class _Snapshots(Algorithm[ComponentsTask]):
    """Snapshots and corrections."""

    snapshots: int
    sampling: float  # the probability that a row takes part in a correction

    def releases(self, share: float) -> tuple[Release, ...]:
        """Snapshots, corrections, small matrix, total."""
        part = STEPS_SHARE * share
        return (
            Release("snapshots", "gaussian", share=_SNAPSHOT_SHARE * part, count=self.snapshots),
            Release(
                "corrections",
                "gaussian",
                share=(1.0 - _SNAPSHOT_SHARE) * part,
                count=self.snapshots * _CORRECTIONS,
                sampling=self.sampling,
            ),
            *last_releases(share),
        )

    def run(self, data: CentredRows, gate: Gate) -> Spectrum:
        """Components in the span of the last iterate."""
        p = columns(self.task)
        V = random_start(self.task, gate)
        sensitivity = data.product_sensitivity(p)
        kept = gate.noise("snapshots", sensitivity)  # the noise of a snapshot
        for _ in range(self.snapshots):
            anchor = V
            snapshot = gate.release("snapshots", GaussianVector(sensitivity, bound=data.bound), data.products(anchor))
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
                places = gate.sample("corrections") if self.sampling < 1.0 else None
                mechanism = GaussianVector(data.product_sensitivity(p, stretch=size), bound=data.bound * size)
                moved = gate.release("corrections", mechanism, data.products(change, places=places)) / self.sampling
                M = snapshot @ turned + moved
                V = orthonormal(M)
                added = gate.noise("corrections", mechanism.sensitivity) / self.sampling
        return spectrum_in(self.task, data, M, math.hypot(kept, added), gate)
