"""Products of whole numbers by BLAS, which are exact in any order of additions; checked once in each process.

BLAS may add in any order, fuse, and use any vector width: numbers of whole steps whose products add up to at most 2^53
leave nothing to round. A BLAS that multiplied by fewer or other products (Strassen's way, or emulation in shorter
numbers) would round. So the first product of a process is checked at the limit, and if it is not exact compiled loops
take the place of BLAS.
"""

import warnings
from functools import cache

import numpy as np

from tacit._types import Floats, Integers
from tacit.kernels.exact import BLOCK, ENTRIES, loop_product

_WIDEST = 256  # columns of a matrix that is checked: other ways to multiply begin to pay at such sizes


class InexactBlasWarning(UserWarning):
    """The BLAS of this machine does not compute exact products of whole numbers."""


def product(one: Floats, other: Floats) -> Floats:
    """`one @ other` of whole numbers in float64, exact."""
    if _is_exact():
        return np.asarray(one @ other)
    return loop_product(np.ascontiguousarray(one), np.ascontiguousarray(other))


@cache
def _is_exact() -> bool:
    """Whether BLAS keeps the promise here; says so if not."""
    if blas_is_exact():
        return True
    warnings.warn(
        "the BLAS that NumPy uses here rounds sums of whole numbers below 2^53, so compiled loops take its place: fits"
        " of several classes and of second moments are slower",
        InexactBlasWarning,
        stacklevel=2,
    )
    return False


def blas_is_exact() -> bool:
    """Products at the limit of 2^53, of a matrix with itself, another and a vector: times many numbers, as integers.

    A product that is off anywhere differs when it is multiplied by them, modulo 2^64, but for rare coincidences.
    """
    most = 2**ENTRIES
    for columns in (1, 7, 40, _WIDEST):
        mixed = _mixed(BLOCK * columns).reshape(BLOCK, columns)
        large = most - mixed % 4
        signed = np.where(mixed & 64, large, -large)
        pairs = [(large, large), (signed, signed), (large, signed), (signed, large[:, :1])]
        for one, other in pairs[: 1 if columns == _WIDEST else None]:
            left = one.astype(np.float64)
            right = left if other is one else other.astype(np.float64)  # the same array: a routine of its own
            factors = 1 + _mixed(right.shape[1])
            if not np.array_equal((left.T @ right).astype(np.int64) @ factors, one.T @ (other @ factors)):
                return False
    return True


def _mixed(count: int) -> Integers:
    """Numbers below 2^20 without a pattern that a product could follow: their places, mixed as by SplitMix64."""
    z = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return (z >> np.uint64(44)).astype(np.int64)
