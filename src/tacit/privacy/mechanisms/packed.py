"""Symmetric Gaussian noise on a symmetric matrix that is stored as its packed upper triangle, in place.

The law, the coordinates and the sensitivity are those of `GaussianMatrix`; d columns take d (d + 1) / 2 numbers and
nothing else of that size, so that d = 20,000 fits in two gigabytes.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.privacy import checks
from tacit.privacy.gate import Grant
from tacit.privacy.mechanisms.sensitivity import Sensitivity
from tacit.privacy.noise import samplers
from tacit.privacy.noise.grid import Grid
from tacit.privacy.plan import Kind

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PackedGaussianMatrix:
    """Noise on the rows (A_ii, A_i,i+1, ...) of a packed symmetric matrix.

    Parameters
    ----------
    sensitivity : Sensitivity
        Of the whole matrix in the Frobenius norm; of the triangle in the l2 norm if not `isotropic`.
    bound : float
        Public bound on the absolute value of an entry, to which values are clipped.
    isotropic : bool, default=True
        True: standard deviation s on the diagonal and s / sqrt(2) off it. False: s everywhere, which is noise on the
        triangle as a vector; the triangle of a matrix is no longer than the matrix, so its sensitivity is no larger.
    """

    sensitivity: Sensitivity
    bound: float
    isotropic: bool = True
    kind: ClassVar[Kind] = "gaussian"

    def draw(self, grant: Grant, packed: Floats, d: int) -> Floats:
        """The same array, with noise where the exact matrix was."""
        if packed.shape != (d * (d + 1) // 2,) or packed.dtype != np.float64:
            raise ValueError(f"a packed matrix of {d} columns has {d * (d + 1) // 2} floats, got shape {packed.shape}")
        source, multiplier = grant.take(), grant.multiplier
        size = self.sensitivity.under(grant.adjacency)
        if multiplier == 0.0 or size == 0.0:
            return packed
        weight = math.sqrt(2.0) if self.isotropic else 1.0
        grid = Grid.for_noise(size, multiplier, len(packed), weight * checks.positive("bound", self.bound), power=0.5)
        start = 0
        for i in range(d):
            row = packed[start : start + d - i]
            row[1:] *= weight
            released, _ = grid.release(row, samplers.normals(source, d - i))
            released[1:] /= weight
            row[:] = released
            start += d - i
        return packed
