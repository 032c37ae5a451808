"""Gaussian and Laplace noise on sums."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.privacy import checks
from tacit.privacy.gate import Grant
from tacit.privacy.mechanisms.sensitivity import Sensitivity
from tacit.privacy.noise import samplers
from tacit.privacy.noise.grid import Grid, noisy
from tacit.privacy.plan import Kind

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class GaussianVector:
    """Gaussian noise on an array, for its l2 sensitivity.

    Parameters
    ----------
    sensitivity : Sensitivity
        Of the whole array, in the l2 norm.
    bound : float, optional
        Public bound on the absolute value of an entry, for instance rows times sensitivity; values are clipped to it.
        Without one, values beyond four million standard deviations raise.
    """

    sensitivity: Sensitivity
    bound: float | None = None
    kind: ClassVar[Kind] = "gaussian"

    def draw(self, grant: Grant, value: ArrayLike) -> Floats:
        """The array with noise."""
        source, size = grant.take(), self.sensitivity.under(grant.adjacency)
        return noisy(np.asarray(value, dtype=np.float64), size, grant.multiplier, source, bound=self.bound)


@dataclass(frozen=True)
class LaplaceVector:
    """Laplace noise on an array, for its l1 sensitivity."""

    sensitivity: Sensitivity
    bound: float | None = None
    kind: ClassVar[Kind] = "laplace"

    def draw(self, grant: Grant, value: ArrayLike) -> Floats:
        """The array with noise."""
        source, size = grant.take(), self.sensitivity.under(grant.adjacency)
        values = np.asarray(value, dtype=np.float64)
        return noisy(values, size, grant.multiplier, source, bound=self.bound, law=self.kind)


@dataclass(frozen=True)
class GaussianMatrix:
    """Symmetric Gaussian noise on a symmetric matrix, for its sensitivity in the Frobenius norm.

    The noise is isotropic on symmetric matrices: standard deviation s on the diagonal and s / sqrt(2) off it, half the
    variance of noising the triangle as a vector. In coordinates (A_ii, sqrt(2) A_ij), which keep the Frobenius norm, it
    is plain noise of standard deviation s.
    """

    sensitivity: Sensitivity
    bound: float | None = None
    kind: ClassVar[Kind] = "gaussian"

    def draw(self, grant: Grant, value: ArrayLike) -> Floats:
        """The matrix with noise; only the upper triangle of `value` is read."""
        matrix = np.asarray(value, dtype=np.float64)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"a symmetric release needs a square matrix, got shape {matrix.shape}")
        source, multiplier = grant.take(), grant.multiplier
        d = len(matrix)
        size = self.sensitivity.under(grant.adjacency)
        out = np.empty((d, d))
        if multiplier == 0.0 or size == 0.0:
            out[:] = np.triu(matrix) + np.triu(matrix, 1).T
            return out
        widest = None if self.bound is None else math.sqrt(2.0) * checks.positive("bound", self.bound)
        grid = Grid.for_noise(size, multiplier, d * (d + 1) // 2, widest, power=0.5)
        inside = True
        for i in range(d):
            row = matrix[i, i:] * math.sqrt(2.0)
            row[0] = matrix[i, i]
            released, fits = grid.release(row, samplers.normals(source, d - i))
            released[1:] /= math.sqrt(2.0)
            out[i, i:] = out[i:, i] = released
            inside = inside and fits
        if self.bound is None and not inside:
            raise OverflowError(
                "an entry lies beyond 2^22 times the noise and does not fit the grid; declare a public `bound`"
            )
        return out
