"""`solver="mod-sulq"`: the second moments with independent noise on the triangle (MOD-SULQ), for comparison.

Privacy
-------
As `gauss`, except that the upper triangle of A = sum x x^T is noised as a vector: one row moves it by at most
|x x^T|_F <= R^2, and by sqrt(2) R^2 for replace-one, as taking the triangle brings nothing further apart. Noise of one
standard deviation s in every entry, mirrored to the lower triangle. Off the diagonal that is sqrt(2) times the noise of
`gauss` for the same guarantee, and it has no advantage over it. s is calibrated exactly, by Gaussian DP.

The Wishart mechanism, another matrix release in the literature, is not here: a Wishart matrix is added, so that the
difference of output and data must be positive semi-definite, and which outputs are possible then depends on the data.
That is not differentially private for any epsilon and delta below 1.
"""

from dataclasses import dataclass
from typing import ClassVar

from tacit.solvers.pca.gauss import GaussSolver


@dataclass(frozen=True)
class ModSulqSolver(GaussSolver):
    """`gauss` with noise of one standard deviation everywhere."""

    name: ClassVar[str] = "mod-sulq"
    isotropic: ClassVar[bool] = False
