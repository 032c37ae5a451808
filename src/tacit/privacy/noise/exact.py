"""The samplers in unbounded integers: the specification of the compiled ones.

Every function reads 64-bit words through `read` and draws from its law exactly, refining random numbers by further
words for as long as a comparison stays open. The kernels make the same decisions from the first 64 bits, and hand a
draw to these functions when those bits do not settle it: about once in 2^54 draws, for coins once in 2^51 at most.
"""

from bisect import bisect_left
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

Read = Callable[[], int]

STRIP_BITS = 35  # a strip of width 1/32 on a grid of 2^-40
LAPLACE_BITS = 40
OCTAVE_BITS = 32  # scores of the exponential mechanism count in 2^-32 octaves


class LazyUniform:
    """A uniform number in [0, 1) of which only the leading bits are known: value / 2^bits and up."""

    __slots__ = ("_read", "bits", "value")

    def __init__(self, read: Read, bits: int = 0, value: int = 0) -> None:
        self._read, self.bits, self.value = read, bits, value

    def refine(self) -> None:
        """Read 64 further bits."""
        self.value = self.value << 64 | self._read()
        self.bits += 64

    def is_below(self, other: "LazyUniform") -> bool:
        """Compare with another, refining the less known of the two while they agree."""
        while True:
            mine, theirs = self.value << other.bits, other.value << self.bits
            if mine + (1 << other.bits) <= theirs:
                return True
            if theirs + (1 << self.bits) <= mine:
                return False
            (self if self.bits <= other.bits else other).refine()


def run_is_even(read: Read, first: LazyUniform) -> bool:
    """Whether the longest descending run U1 > U2 > ... that starts with `first` has even length.

    Von Neumann: with U1 < gamma given or counted as a run of length 0 otherwise, an even length has probability
    exp(-gamma), for gamma in [0, 1].
    """
    length, last = 1, first
    while True:
        new = LazyUniform(read)
        new.refine()
        if not new.is_below(last):
            return length % 2 == 0
        length, last = length + 1, new


def strip_normal(read: Read, table: NDArray[np.uint64]) -> int:
    """floor(2^40 Z) for a standard normal Z, cut off at 13.5 standard deviations."""
    while True:
        word = read()
        strip = _strip(read, word, table)
        negative = word >> 9 & 1
        second = read()
        x = LazyUniform(read, STRIP_BITS, second & ((1 << STRIP_BITS) - 1))  # position in the strip, as a part of it
        u = LazyUniform(read, 64 - STRIP_BITS, second >> STRIP_BITS)
        position = x.value
        if u.value << 17 >= (position + 1) * (2 * strip + 1) or _strip_accepts(read, strip, x, u):
            magnitude = strip << STRIP_BITS | position
            return ~magnitude if negative else magnitude


def _strip(read: Read, word: int, table: NDArray[np.uint64]) -> int:
    """The alias method with a threshold of 246 bits, read as far as it is needed."""
    column = word & 511
    head, *tail = (int(w) for w in table[column])
    bits, threshold = word >> 10, head >> 10
    for more in tail:
        if bits != threshold:
            break
        bits, threshold = read(), more
    return column if bits < threshold else head & 511


def _strip_accepts(read: Read, strip: int, x: LazyUniform, u: LazyUniform) -> bool:
    """True with probability exp(-gamma), gamma = y (2 strip + y) / 2048, y in [0, 1) the position in the strip."""
    while True:
        x.refine()
        u.refine()
        low = x.value * ((2 * strip << x.bits) + x.value)
        high = (x.value + 1) * ((2 * strip << x.bits) + x.value + 1)
        shift = 2 * x.bits + 11  # gamma lies between low and high over 2^shift
        if u.value << shift >= high << u.bits:
            return True
        if (u.value + 1) << shift <= low << u.bits:
            return run_is_even(read, u)


def laplace(read: Read) -> int:
    """floor(2^40 L) for a Laplace variable L of scale 1."""
    while True:
        word = read()
        fraction = word >> (64 - LAPLACE_BITS)
        if bernoulli_exp(read, fraction, 1 << LAPLACE_BITS):
            break
    whole = 0
    while bernoulli_exp(read, 1, 1):
        whole += 1
    magnitude = whole << LAPLACE_BITS | fraction
    return ~magnitude if word & 1 else magnitude


def tails(read: Read, tail: tuple[int, int], most: int) -> int:
    """How many tails come before the first head, of at most `most` coins whose tails have probability a / 2^e.

    There are at least k with probability (a / 2^e)^k: as many as there are powers above a uniform number.
    """
    u = LazyUniform(read)
    u.refine()
    return bisect_left(range(1, most + 1), True, key=lambda k: not _is_below_power(u, tail, k))


def _is_below_power(u: LazyUniform, base: tuple[int, int], power: int) -> bool:
    """Whether u lies below (a / 2^e)^power, refining it while that is open."""
    numerator, shift = base[0] ** power, base[1] * power
    while True:
        if (u.value + 1) << shift <= numerator << u.bits:
            return True
        if u.value << shift >= numerator << u.bits:
            return False
        u.refine()


def bernoulli_exp(read: Read, numerator: int, denominator: int) -> bool:
    """True with probability exp(-numerator / denominator), for a fraction of at least 0."""
    if numerator < 0 or denominator <= 0:
        raise ValueError("an exponent needs numerator >= 0 and denominator > 0")
    while numerator > denominator:  # exp(-a/b) = exp(-1) exp(-(a-b)/b)
        if not bernoulli_exp(read, 1, 1):
            return False
        numerator -= denominator
    u = LazyUniform(read)
    while True:
        u.refine()
        if u.value * denominator >= numerator << u.bits:
            return True
        if (u.value + 1) * denominator <= numerator << u.bits:
            return run_is_even(read, u)


def bernoulli_octave(read: Read, fraction: int) -> bool:
    """True with probability 2^-(fraction / 2^32), for 0 <= fraction < 2^32."""
    u = LazyUniform(read)
    while True:
        u.refine()
        low = fraction * ln2(u.bits)  # gamma = fraction ln 2 / 2^32 lies between low and high over 2^(bits + 32)
        high = fraction * (ln2(u.bits) + 1)
        if u.value << OCTAVE_BITS >= high:
            return True
        if (u.value + 1) << OCTAVE_BITS <= low:
            return run_is_even(read, u)


@cache
def ln2(bits: int) -> int:
    """floor(2^bits ln 2), from ln 2 = sum of 1 / (k 2^k)."""
    guard = bits + 64
    total = sum((1 << (guard - k)) // k for k in range(1, guard + 1))
    return total >> 64
