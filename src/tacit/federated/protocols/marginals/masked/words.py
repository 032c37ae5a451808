"""Whole numbers modulo 2^64: exact products of tables, by float64 products of their 16-bit limbs.

With a = sum_i a_i 2^16i and b = sum_j b_j 2^16j, the products of limbs with i + j < 4 are all that is left modulo 2^64.
Sums over a block of rows stay below 2^46, which float64 holds exactly in any order: BLAS may take them as it likes.
"""

import numpy as np
from numpy.typing import NDArray

from tacit._types import Floats

Words = NDArray[np.uint64]

_BITS, _LIMBS = 16, 4
_BLOCK = 1 << 14  # rows; 2^16 * 2^16 * 2^14 is far below 2^53


def product(left: Words, right: Words) -> Words:
    """left^T right modulo 2^64, for tables of n rows."""
    total = np.zeros((left.shape[1], right.shape[1]), dtype=np.uint64)
    for start in range(0, len(left), _BLOCK):
        lefts, rights = _limbs(left[start : start + _BLOCK]), _limbs(right[start : start + _BLOCK])
        for weight in range(_LIMBS):
            for i in range(weight + 1):
                part = (lefts[i].T @ rights[weight - i]).astype(np.uint64)
                total += part << np.uint64(_BITS * weight)
    return total


def signed(words: Words) -> Floats:
    """Words as numbers from -2^63 on, rounded to float64."""
    return words.view(np.int64).astype(np.float64)


def _limbs(block: Words) -> list[Floats]:
    mask = np.uint64((1 << _BITS) - 1)
    return [((block >> np.uint64(_BITS * i)) & mask).astype(np.float64) for i in range(_LIMBS)]
