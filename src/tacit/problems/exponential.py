"""An exponential function of our own: the same bits wherever it is computed.

The exp of a mathematics library is not one function. Its vector form rounds otherwise than its scalar form, one version
otherwise than the next, one processor otherwise than another. A row that is absent moves other rows from vector code to
what is left over at the end of a loop, and then their bits tell of it. Here exp(x) = 2^k exp(r), with k the whole
number nearest to x / ln 2, takes additions, products and shifts alone, in the order in which they are written. These
are rounded alike everywhere as long as no two of them are fused, and without fastmath the compiler fuses none.

Adding 1.5 2^52 rounds to a whole number and leaves it in the low bits of the sum. A Taylor polynomial of degree 13
gives exp(r) for |r| <= ln(2) / 2, where the rest of the series is below 2^-57. 2^k is built in its exponent field, in
two halves, so that results below the smallest normal number come out as well. The result is within one unit in the last
place.
"""

from typing import Any

from numba import types
from numba.extending import intrinsic

from tacit._types import Floats
from tacit.problems.compiled import kernel

_LOWEST, _HIGHEST = -746.0, 710.0  # beyond, the result is zero or infinite
_PER_OCTAVE = 1.4426950408889634
_ROUNDER, _ROUNDER_BITS = 1.5 * 2.0**52, 0x4338000000000000
_LN2_HIGH, _LN2_LOW = float.fromhex("0x1.62e42feep-1"), float.fromhex("0x1.a39ef35793c76p-33")  # the first has few bits
_BIAS, _MANTISSA_BITS = 1023, 52
_C2, _C3, _C4, _C5, _C6, _C7 = 1 / 2, 1 / 6, 1 / 24, 1 / 120, 1 / 720, 1 / 5040
_C8, _C9, _C10, _C11, _C12, _C13 = 1 / 40320, 1 / 362880, 1 / 3628800, 1 / 39916800, 1 / 479001600, 1 / 6227020800

_INTEGERS = {types.float32: types.int32, types.float64: types.int64}
_FLOATS = {whole: number for number, whole in _INTEGERS.items()}


def _same_bits(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return builder.bitcast(args[0], context.get_value_type(signature.return_type))


@intrinsic  # type: ignore[untyped-decorator]
def bits_of(_: Any, number: Any) -> Any:
    """The bits of a float, as a whole number of the same width."""
    return _INTEGERS[number](number), _same_bits


@intrinsic  # type: ignore[untyped-decorator]
def from_bits(_: Any, whole: Any) -> Any:
    """The float with these bits."""
    return _FLOATS[whole](whole), _same_bits


@intrinsic  # type: ignore[untyped-decorator]
def fused(_: Any, one: Any, other: Any, added: Any) -> Any:
    """One * other + added in one rounding, which is asked for and so the same everywhere."""
    return one(one, other, added), lambda _, builder, __, args: builder.fma(*args)


@kernel
def exp(x: float) -> float:
    """The exponential of x; what is not a number stays so."""
    x = _LOWEST if x < _LOWEST else x
    x = _HIGHEST if x > _HIGHEST else x
    shifted = x * _PER_OCTAVE + _ROUNDER
    k = shifted - _ROUNDER
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    p = _C13 * r + _C12
    p = p * r + _C11
    p = p * r + _C10
    p = p * r + _C9
    p = p * r + _C8
    p = p * r + _C7
    p = p * r + _C6
    p = p * r + _C5
    p = p * r + _C4
    p = p * r + _C3
    p = p * r + _C2
    p = (p * r) * r + r
    whole = bits_of(shifted) - _ROUNDER_BITS
    half = whole >> 1
    first = from_bits((half + _BIAS) << _MANTISSA_BITS)
    second = from_bits((whole - half + _BIAS) << _MANTISSA_BITS)
    power: float = ((1.0 + p) * first) * second
    return power


@kernel
def exponentials(values: Floats, out: Floats) -> None:
    """`exp` of each value, by itself."""
    for i in range(len(values)):
        out[i] = exp(values[i])
