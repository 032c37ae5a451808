"""Gaussian and Laplace noise on sums.

What holds: noise is drawn on a grid that public numbers fix (`tacit.privacy.noise.grid`), and rounding to it is part of
the sensitivity. Values that are not numbers count as zero, so that no error tells of them.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit._types import Floats
from tacit.privacy import checks
from tacit.privacy.gate import Grant
from tacit.privacy.mechanisms.sensitivity import Sensitivity
from tacit.privacy.noise import samplers
from tacit.privacy.noise.grid import MAX_BITS, Grid, noisy
from tacit.privacy.noise.source import Words
from tacit.privacy.plan import Kind

_RUN = 2**16  # entries of a matrix that get their noise at a time


@dataclass(frozen=True)
class _Vector:
    """Noise on an array, by the law that `kind` names."""

    sensitivity: Sensitivity
    bound: float | None = None
    kind: ClassVar[Kind]

    def draw(self, grant: Grant, value: ArrayLike) -> Floats:
        """The array with noise."""
        source, size = grant.take(), self.sensitivity.under(grant.adjacency)
        values = np.asarray(value, dtype=np.float64)
        return noisy(values, size, grant.multiplier, source, bound=self.bound, law=self.kind)


class GaussianVector(_Vector):
    """Gaussian noise on an array, for its l2 sensitivity.

    Parameters
    ----------
    sensitivity : Sensitivity
        Of the whole array, in the l2 norm.
    bound : float, optional
        Public bound on the absolute value of an entry, for instance rows times sensitivity; values are clipped to it.
        Without one, values beyond four million standard deviations raise.
    """

    kind: ClassVar[Kind] = "gaussian"


class LaplaceVector(_Vector):
    """Laplace noise on an array, for its sensitivity in the l1 norm. A `bound` is as for `GaussianVector`."""

    kind: ClassVar[Kind] = "laplace"


@dataclass(frozen=True)
class GaussianMatrix:
    """Gaussian noise on a symmetric matrix, which is symmetric too.

    Parameters
    ----------
    sensitivity : Sensitivity
        Of the whole matrix in the Frobenius norm; of its upper triangle in the l2 norm where not `isotropic`.
    bound : float, optional
        As for `GaussianVector`.
    isotropic : bool, default=True
        True: standard deviation s on the diagonal and s / sqrt(2) off it. In coordinates (A_ii, sqrt(2) A_ij), which
        keep the Frobenius norm, this is plain noise of standard deviation s. False: s everywhere, which is noise on the
        triangle as a vector. The triangle is no longer than the matrix, so its sensitivity is no larger.
    """

    sensitivity: Sensitivity
    bound: float | None = None
    isotropic: bool = True
    kind: ClassVar[Kind] = "gaussian"

    def draw(self, grant: Grant, value: ArrayLike, d: int | None = None) -> Floats:
        """The matrix with noise; of a square one only the upper triangle is read.

        With `d`, `value` is the triangle of d columns, packed row by row. It is then changed in place, and nothing else
        of its size is held: d = 20,000 fits in two gigabytes.
        """
        out = np.asarray(value)
        if d is None:
            if out.ndim != 2 or out.shape[0] != out.shape[1]:
                raise ValueError(f"a symmetric release needs a square matrix, got shape {out.shape}")
            columns = len(out)
            upper = np.triu_indices(columns)
            packed = out.astype(np.float64, copy=False)[upper]
        elif out.shape != (d * (d + 1) // 2,) or out.dtype != np.float64:
            raise ValueError(f"a packed matrix of {d} columns has {d * (d + 1) // 2} floats, got shape {out.shape}")
        else:
            columns, packed = d, out
        source, size = grant.take(), self.sensitivity.under(grant.adjacency)
        if grant.multiplier > 0.0 and size > 0.0:
            weight = math.sqrt(2.0) if self.isotropic else 1.0
            bound = None if self.bound is None else weight * checks.positive("bound", self.bound)
            grid = Grid.for_noise(size, grant.multiplier, len(packed), bound, power=0.5)
            for part, twice in _runs(packed, columns):
                np.multiply(part, weight, out=part, where=twice)
                part[:] = grid.release(part, samplers.normals(source, len(part)), strict=bound is None)
                np.divide(part, weight, out=part, where=twice)
        if d is not None:
            return packed
        square = np.zeros((columns, columns))
        square[upper] = packed
        return square + np.triu(square, 1).T


def _runs(packed: Floats, columns: int) -> Iterator[tuple[Floats, NDArray[np.bool_]]]:
    """The triangle in runs of whole rows, to be changed in place, and which of their entries stand for two.

    A draw takes the same words of the source however many are drawn at once, so runs change no result.
    """
    starts = np.concatenate([[0], np.cumsum(np.arange(columns, 0, -1))])  # where rows begin: at the diagonal
    first = 0
    while first < columns:
        end = max(first + 1, int(np.searchsorted(starts, starts[first] + _RUN, side="right")) - 1)
        part = packed[starts[first] : starts[end]]
        twice = np.ones(len(part), dtype=bool)
        twice[starts[first:end] - starts[first]] = False
        yield part, twice
        first = end


@dataclass(frozen=True)
class GaussianWords:
    """Gaussian noise on whole numbers modulo 2^64, for sums of which several parties hold shares.

    The noise is floor(2^bits Z), Z standard normal. With whole numbers q, q + floor(2^bits Z) = floor(q + 2^bits Z),
    so this is the Gaussian mechanism with a standard deviation of 2^bits, and a remainder after that. Nothing is
    rounded that depends on data.

    Two shares add up to q + floor(A) + floor(B). Given A + B, the fraction of A is uniform but for exp(-pi^2 4^bits),
    and with a uniform one the sum is a random function of q + A + B, whose deviation is sqrt(2) 2^bits. From 3 bits on
    that is nothing (e^-631), and fewer are refused.

    Parameters
    ----------
    sensitivity : Sensitivity
        Of the sum that the shares add up to, in whole numbers, in the l2 norm.
    bits : int
        The noise must not be less than the promise says: 2^bits is at least its multiplier times the sensitivity.
    """

    sensitivity: Sensitivity
    bits: int
    kind: ClassVar[Kind] = "gaussian"
    least_bits: ClassVar[int] = 3
    most_bits: ClassVar[int] = MAX_BITS

    def draw(self, grant: Grant, words: Words) -> Words:
        """The words with noise; in the non-private limit as they are."""
        if words.dtype != np.uint64 or not 0 <= self.bits <= self.most_bits:
            told = f"{words.dtype}, {self.bits}"
            raise TypeError(f"words with noise are uint64, with 0 to {self.most_bits} bits of noise, got {told}")
        if grant.multiplier * self.sensitivity.under(grant.adjacency) > math.ldexp(1.0, self.bits):
            raise ValueError(f"noise of 2^{self.bits} is less than the promise says of release {grant.name!r}")
        if grant.multiplier > 0.0 and self.bits < self.least_bits:
            raise ValueError(f"noise of 2^{self.bits} is too coarse: sums of two shares would not be Gaussian")
        source = grant.take()
        if grant.multiplier == 0.0:
            return words.copy()
        noise = samplers.normals(source, words.size) >> np.int64(MAX_BITS - self.bits)
        return words + noise.view(np.uint64).reshape(words.shape)
