"""The logistic function in single precision, written so that a compiler turns a loop over it into vector code.

A call into the mathematics library takes a number at a time. Here exp(x) = 2^k 2^f with k the whole number nearest to
x / ln 2: adding 1.5 2^23 rounds to a whole number and leaves it in the low bits of the sum, the polynomial of degree 5
with the least relative error, 7e-8, gives 2^f for |f| <= 1/2, and shifting k into the exponent field gives 2^k.
Products are fused with sums, which is asked for each time, and so the same for every row. The result is within 2e-7 of
the truth, which as the derivative of a loss is far below what any noise or any stopping rule leaves.
"""

import numpy as np
from numpy.typing import NDArray

from tacit.problems.compiled import kernel
from tacit.problems.exponential import bits_of, from_bits, fused

_ONE, _FARTHEST = np.float32(1.0), np.float32(87.0)
_PER_OCTAVE, _REST = np.float32(1.4426950408889634), np.float32(1.92596298909e-08)  # their sum is 1 / ln 2
_ROUNDER = np.float32(1.5 * 2.0**23)
_C0, _C1 = np.float32(1.000000071989255), np.float32(0.6931470480152644)
_C2, _C3 = np.float32(0.24022109236770475), np.float32(0.05550580029961887)
_C4, _C5 = np.float32(0.009676097573193775), np.float32(0.001331776481439319)
_BIAS, _MANTISSA_BITS = np.int32(127), np.int32(23)


@kernel
def falling_sigmoid(values: NDArray[np.float32]) -> None:
    """Replace each value by 1 / (1 + exp(value))."""
    for i in range(len(values)):
        x = values[i]
        x = -_FARTHEST if x < -_FARTHEST else x  # what is not a number stays so
        x = _FARTHEST if x > _FARTHEST else x
        shifted = fused(x, _PER_OCTAVE, _ROUNDER)
        f = fused(x, _REST, fused(x, _PER_OCTAVE, _ROUNDER - shifted))
        p = fused(_C5, f, _C4)
        p = fused(p, f, _C3)
        p = fused(p, f, _C2)
        p = fused(p, f, _C1)
        p = fused(p, f, _C0)
        power = from_bits(np.int32(np.int32(bits_of(shifted) + _BIAS) << _MANTISSA_BITS))
        values[i] = _ONE / fused(p, power, _ONE)
