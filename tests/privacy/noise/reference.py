"""The samplers once more, in exact fractions, written from the documents and not from the code under test.

They follow the specification (strips of width 1/32, von Neumann's test, buckets of one octave), the layout described in
`tools/make_strip_table.py`, and two rules for ties: of two numbers that cannot yet be told apart, the one known to
fewer bits gets the next word, and the newer one if they are known equally well; ln 2 is known to as many bits as the
number it is compared with. Nothing here imports tacit.
"""

from bisect import bisect_right
from fractions import Fraction
from itertools import accumulate

import mpmath

WORD = 2**64


def _ln2(bits):
    """Ln 2, rounded down to this many bits."""
    with mpmath.workprec(bits + 100):
        return Fraction(int(mpmath.floor(mpmath.ln(2) * mpmath.mpf(2) ** bits)), 2**bits)


LN2 = {Fraction(1, 2**bits): _ln2(bits) for bits in range(64, 64 * 30, 64)}  # by the width of what it is compared with


class Uniform:
    """A number of which it is known that low <= number < low + width."""

    def __init__(self, read, low=Fraction(0), width=Fraction(1)):
        self.read, self.low, self.width = read, low, width

    @property
    def high(self):
        return self.low + self.width

    def refine(self):
        self.low += self.width * Fraction(self.read(), WORD)
        self.width /= WORD


def is_below(new, last):
    while True:
        if new.high <= last.low:
            return True
        if last.high <= new.low:
            return False
        (new if new.width >= last.width else last).refine()


def run_has_even_length(read, first):
    length, last = 1, first
    while True:
        new = Uniform(read)
        new.refine()
        if not is_below(new, last):
            return length % 2 == 0
        length, last = length + 1, new


def keep_with_exp(read, gamma):
    """A fresh von Neumann test of exp(-gamma), gamma in [0, 1]."""
    return keep_with_bounds(read, lambda _: (gamma, gamma))


def keep_with_bounds(read, bounds):
    """The same for a gamma of which only bounds are known, the better the narrower the first uniform is known."""
    first = Uniform(read)
    while True:
        first.refine()
        low, high = bounds(first.width)
        if first.low >= high:
            return True
        if first.high <= low:
            return run_has_even_length(read, first)


def columns_of(table):
    """The table's columns as (digits of the threshold: 54 bits, then three words; alias)."""
    rows = [[int(word) for word in row] for row in table]
    return [((row[0] >> 10, *row[1:]), row[0] % 512) for row in rows]


def normal(read, columns):
    """floor(2^40 Z)."""
    while True:
        word = read()
        strip, negative = _strip(read, word, columns), word >> 9 & 1
        second = read()
        position = second % 2**35
        y = Uniform(read, Fraction(position, 2**35), Fraction(1, 2**35))  # place in the strip, as a part of it
        u = Uniform(read, Fraction(second >> 35, 2**29), Fraction(1, 2**29))
        if u.low >= y.high * (2 * strip + 1) / 2048 or _keep_in_strip(read, strip, y, u):
            cell = strip * 2**35 + position
            return -1 - cell if negative else cell


def _strip(read, word, columns):
    digits, alias = columns[word % 512]
    drawn = [word >> 10]
    while drawn[-1] == digits[len(drawn) - 1] and len(drawn) < len(digits):
        drawn.append(read())
    return word % 512 if drawn[-1] < digits[len(drawn) - 1] else alias


def _keep_in_strip(read, strip, y, u):
    """Gamma = x c + x^2/2 with c = strip/32 and x = y/32: exp(-gamma) is the density over that at the strip's start."""

    def gamma(place):
        x = place / 32
        return x * Fraction(strip, 32) + x * x / 2

    while True:
        y.refine()
        u.refine()
        if u.low >= gamma(y.high):
            return True
        if u.high <= gamma(y.low):
            return run_has_even_length(read, u)


def laplace(read):
    """floor(2^40 L): a fraction of 40 bits kept with its exponential, then whole steps of probability 1/e, a sign."""
    while True:
        word = read()
        part = Fraction(word >> 24, 2**40)
        if keep_with_exp(read, part):
            break
    whole = 0
    while keep_with_exp(read, Fraction(1)):
        whole += 1
    cell = whole * 2**40 + (word >> 24)
    return -1 - cell if word & 1 else cell


class Picker:
    """Buckets of one octave, 31 the last; a candidate holds 2^(31 - bucket) tickets, and is kept with the rest."""

    def __init__(self, scores):
        best = max(scores)
        self.gaps = [best - score for score in scores]
        self.buckets = [min(gap >> 32, 31) for gap in self.gaps]
        self.order = sorted(range(len(scores)), key=lambda j: (self.buckets[j], j))
        self.ends = list(accumulate(2 ** (31 - self.buckets[j]) for j in self.order))

    def pick(self, read):
        tickets = self.ends[-1]
        while True:
            word = read()
            if word < WORD % tickets:
                continue
            candidate = self.order[bisect_right(self.ends, word % tickets)]
            if self._keep(read, self.gaps[candidate], self.buckets[candidate]):
                return candidate

    @staticmethod
    def _keep(read, gap, bucket):
        coins = (gap >> 32) - bucket
        while coins > 0:  # up to 64 fair coins from the leading bits of a word, all of which must fall one way
            if read() >> (64 - min(coins, 64)):
                return False
            coins -= 64
        part = Fraction(gap % 2**32, 2**32)
        return keep_with_bounds(read, lambda width: (part * LN2[width], part * (LN2[width] + width)))
