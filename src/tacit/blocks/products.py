"""Products of whole numbers by BLAS, which are exact in any order of additions; checked once in each process.

BLAS may add in any order, fuse, and use any vector width: numbers of whole steps whose products add up to at most 2^53
leave nothing to round. A BLAS that multiplied by fewer or other products (Strassen's way, or emulation in shorter
numbers) would round. So the first product of a process is checked at the limit, and if it is not exact compiled loops
take the place of BLAS.
"""

import warnings
from functools import cache

import numpy as np

from tacit._types import Floats
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
    """Products at the limit of 2^53, of a matrix with itself, another and a vector: times random numbers, as integers.

    A product that is off anywhere differs when it is multiplied by them, modulo 2^64, but for one time in 2^20.
    """
    rng = np.random.default_rng(0)
    most = 2**ENTRIES
    for columns in (1, 7, 40, _WIDEST):
        large = most - rng.integers(0, 4, size=(BLOCK, columns))
        signed = large * rng.choice([-1, 1], size=large.shape)
        pairs = [(large, large), (signed, signed), (large, signed), (signed, large[:, :1])]
        for one, other in pairs[: 1 if columns == _WIDEST else None]:
            left = one.astype(np.float64)
            right = left if other is one else other.astype(np.float64)  # the same array: a routine of its own
            factors = rng.integers(1, 2**20, size=right.shape[1])
            if not np.array_equal((left.T @ right).astype(np.int64) @ factors, one.T @ (other @ factors)):
                return False
    return True
