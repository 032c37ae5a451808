"""`solver="gauss"` and `solver="mod-sulq"`: the second moments with noise, then their eigenvectors.

Privacy
-------
Unit: one row. Neighbours: add-remove or replace-one. Released once: A = sum x x^T over rows bounded to norm R, in
Frobenius norm of sensitivity R^2 (a row's contribution is x x^T, of norm |x|^2), and sqrt(2) R^2 for replace-one (two
outer products have a non-negative inner product). Gaussian, so the plan is exactly mu-GDP. The sum over dense rows is
exact (`tacit.blocks.centred`); that over wide sparse ones is of floats, and its rounding is in the sensitivity.

- "gauss" (Analyze-Gauss): noise E = s (Z + Z^T) / 2 is isotropic on symmetric matrices: variance s^2 on the diagonal
  and s^2 / 2 off it, half of what noise on the triangle as a vector would need.
- "mod-sulq" (MOD-SULQ): the upper triangle of A is noised as a vector, with one standard deviation s in every entry,
  and mirrored to the lower triangle. One row moves the triangle by no more than it moves A, so the sensitivity is the
  same. Off the diagonal that is sqrt(2) times the noise of "gauss" for the same guarantee.

The eigenvectors are those of the released matrix. The matrix is kept as a packed triangle, which takes the noise in
place: 8 d (d + 1) / 2 bytes and no second copy of that size, except up to 2,000 columns; from 50 components on their
search takes 128 d k bytes more.

Assumptions: mean and radius were declared or released in the same plan.

The Wishart mechanism, another matrix release in the literature, is not here: a Wishart matrix is added, so that the
difference of output and data must be positive semi-definite, and which outputs are possible then depends on the data.
That is not differentially private for any epsilon and delta below 1.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from tacit.bounding.centring import PcaRows
from tacit.privacy import Gate, Release
from tacit.privacy.mechanisms import GaussianMatrix
from tacit.problems.task import ComponentsTask
from tacit.solvers.base import Algorithm, Serves, Solver
from tacit.solvers.examples import on_digits
from tacit.solvers.pca.spectrum import Spectrum, spectrum_of_packed


@on_digits()
@dataclass(eq=False, repr=False)
class Gauss(Solver):
    """Eigenvectors of the second moments, released once with symmetric noise (Analyze-Gauss).

    The default wherever the d x d matrix fits into `memory_limit`, except for sparse rows of more than 4,000 columns.
    It takes streams of blocks, and serves both neighbour relations.

    Privacy: the matrix leaves once, with Gaussian noise that is accounted exactly.
    """

    name: ClassVar[str] = "gauss"
    serves: ClassVar[Serves] = Serves(losses=(), streams=True, whole_matrix=True)

    def at(self, task: ComponentsTask) -> "_SecondMoments":
        """One release of the whole matrix."""
        return _SecondMoments(task, isotropic=True)


@on_digits()
@dataclass(eq=False, repr=False)
class ModSulq(Solver):
    """Eigenvectors of the second moments, released once with noise of one size in every entry (MOD-SULQ).

    For comparison with the literature: `Gauss` gives the same guarantee with less noise.

    Privacy: the matrix leaves once, with Gaussian noise that is accounted exactly.
    """

    name: ClassVar[str] = "mod-sulq"
    serves: ClassVar[Serves] = Gauss.serves

    def at(self, task: ComponentsTask) -> "_SecondMoments":
        """One release of the whole matrix."""
        return _SecondMoments(task, isotropic=False)


@dataclass(frozen=True)
class _SecondMoments(Algorithm[ComponentsTask]):
    """One release of the matrix, with noise that is isotropic on symmetric matrices or the same in every entry."""

    isotropic: bool

    def releases(self, share: float) -> tuple[Release, ...]:
        """The second moments."""
        return (Release("second moments", "gaussian", share=share),)

    def run(self, data: PcaRows, gate: Gate) -> Spectrum:
        """Eigenvectors of the noisy matrix."""
        d = self.task.d
        sensitivity = data.moment_sensitivity()
        mechanism = GaussianMatrix(sensitivity, data.bound, self.isotropic)
        noisy = gate.release("second moments", mechanism, data.packed_moments(), d)
        deviation = gate.noise("second moments", sensitivity)
        if self.isotropic:
            deviation /= math.sqrt(2.0)
        return spectrum_of_packed(noisy, d, self.task.k, deviation)
