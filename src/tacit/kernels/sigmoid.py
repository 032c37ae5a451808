"""The logistic function in single precision, written so that a compiler turns a loop over it into vector code.

A call into the mathematics library takes a number at a time. Here exp(x) = 2^k exp(r) with k the nearest whole number
to x / ln 2: adding 1.5 2^23 rounds to a whole number and leaves it in the low bits of the sum, the polynomial of degree
5 with the least relative error, 8e-8, gives exp(r) for |r| <= ln(2) / 2, and shifting k into the exponent field gives
2^k. The result is within 2e-7 of the truth, which as the derivative of a loss is far below what any noise or any
stopping rule leaves.
"""

import numpy as np
from numpy.typing import NDArray

from tacit.problems.compiled import kernel
from tacit.problems.exponential import bits_of, from_bits

_ONE, _FARTHEST = np.float32(1.0), np.float32(87.0)
_PER_OCTAVE = np.float32(1.4426950408889634)
_ROUNDER = np.float32(1.5 * 2.0**23)
_LN2_HIGH, _LN2_LOW = np.float32(0.693359375), np.float32(-2.1219444e-4)  # their sum is ln 2; the first has few bits
_C0, _C1 = np.float32(1.0000000717394897), np.float32(0.9999996916225632)
_C2, _C3 = np.float32(0.49998893973654435), np.float32(0.16667575454339173)
_C4, _C5 = np.float32(0.04191548109924889), np.float32(0.00829764087843746)
_BIAS, _MANTISSA_BITS = np.int32(127), np.int32(23)


@kernel
def _exp(x: np.float32) -> np.float32:
    x = -_FARTHEST if x < -_FARTHEST else x  # what is not a number stays so
    x = _FARTHEST if x > _FARTHEST else x
    shifted = x * _PER_OCTAVE + _ROUNDER
    k = shifted - _ROUNDER
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    p = _C5 * r + _C4
    p = p * r + _C3
    p = p * r + _C2
    p = p * r + _C1
    p = p * r + _C0
    return p * from_bits(np.int32(np.int32(bits_of(shifted) + _BIAS) << _MANTISSA_BITS))


@kernel
def falling_sigmoid(values: NDArray[np.float32]) -> None:
    """Replace each value by 1 / (1 + exp(value))."""
    for i in range(len(values)):
        values[i] = _ONE / (_ONE + _exp(values[i]))
