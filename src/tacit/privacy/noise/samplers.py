"""Bulk draws from a source: the compiled kernels, with `exact` behind them.

What holds: each draw has its law exactly, and the words that it uses do not depend on how many are drawn at once.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from tacit._types import Integers
from tacit.privacy import checks
from tacit.privacy.noise import exact, kernels
from tacit.privacy.noise.source import NoiseSource, Words
from tacit.privacy.noise.tables import strips


def normals(source: NoiseSource, size: int) -> Integers:
    """floor(2^40 Z) for independent standard normal Z."""
    table = strips()
    return _fill(source, size, kernels.strip_normals, (table,), lambda: exact.strip_normal(source.word, table))


def laplaces(source: NoiseSource, size: int) -> Integers:
    """floor(2^40 L) for independent Laplace L of scale 1."""
    return _fill(source, size, kernels.laplaces, (), lambda: exact.laplace(source.word))


class Candidates:
    """Candidates with weights 2^(score / 2^32), ready to be drawn from.

    Parameters
    ----------
    scores : array of int64
        Whole scores, in 2^-32 octaves; only their differences matter.
    """

    def __init__(self, scores: Integers) -> None:
        self._gaps = np.empty(len(scores), dtype=np.int64)
        self._counts = np.empty(kernels.LAST_OCTAVE + 1, dtype=np.int64)
        kernels.octave_counts(scores, self._gaps, self._counts)

    def pick(self, source: NoiseSource, size: int = 1) -> Integers:
        """`size` independent draws, with probabilities exactly in proportion to the weights."""
        given = self._gaps, self._counts
        return _fill(source, size, kernels.pick_candidates, given, lambda: self._pick_exactly(source))

    def _pick_exactly(self, source: NoiseSource) -> int:
        weights = [int(count) << (kernels.LAST_OCTAVE - octave) for octave, count in enumerate(self._counts)]
        envelope = sum(weights)
        while True:
            word = source.word()
            if word < 2**64 % envelope:
                continue
            rest, octave = word % envelope, 0
            while rest >= weights[octave]:
                rest -= weights[octave]
                octave += 1
            octaves = np.minimum(self._gaps >> exact.OCTAVE_BITS, kernels.LAST_OCTAVE)
            candidate = int(np.flatnonzero(octaves == octave)[rest >> (kernels.LAST_OCTAVE - octave)])
            if self._accepts_exactly(source, int(self._gaps[candidate]), octave):
                return candidate

    @staticmethod
    def _accepts_exactly(source: NoiseSource, gap: int, octave: int) -> bool:
        coins = (gap >> exact.OCTAVE_BITS) - octave
        while coins > 0:
            some = min(coins, 64)
            if source.word() >> (64 - some):
                return False
            coins -= some
        return exact.bernoulli_octave(source.word, gap & (2**exact.OCTAVE_BITS - 1))


class Coins:
    """Independent coins that show heads with probability exactly q, at one random word for each head.

    There are at least k tails before the first head with probability (1-q)^k. So a uniform number is drawn, and there
    are as many tails as there are such powers above it, k = 1, 2 and so on. Its leading 64 bits settle how many, except
    next to a power, where `exact` reads further bits: no rounded number decides. Only the first powers are used, at
    most `MOST_TAILS`. After that many tails, as after a head, a new uniform number begins a new run. Independent coins
    have no memory, so the next ones have the law of the first.

    Parameters
    ----------
    probability : float
        q, above 0 and below 1, taken as the fraction that the float is.
    """

    MOST_TAILS = 4096

    def __init__(self, probability: float) -> None:
        numerator, denominator = (1 - Fraction(probability)).as_integer_ratio()
        self._probability = probability
        self._tail = numerator, denominator.bit_length() - 1  # 1-q = a / 2^e
        most = math.ceil(min(self.MOST_TAILS, 8.0 / probability))
        self._thresholds = _power_thresholds(self._tail, most)
        largest = np.arange(1024, dtype=np.uint64) << np.uint64(54) | np.uint64(2**54 - 1)  # by the leading ten bits
        self._guide: Integers = most - np.searchsorted(self._thresholds[::-1], largest, side="right")

    def heads(self, source: NoiseSource, flips: int) -> Integers:
        """The places of heads among so many flips, in increasing order."""
        expected = flips * self._probability
        out = np.empty(int(expected + 6.0 * math.sqrt(expected)) + 16, dtype=np.int64)
        done = flip = 0
        while flip < flips:
            if done == len(out):
                out = np.concatenate([out, np.empty_like(out)])
            words, at = source.window()
            done, flip, at, stopped = kernels.coin_flips(
                words, at, self._thresholds, self._guide, flips, flip, out, done
            )
            source.consume(at)
            if stopped == kernels.SHORT:
                source.refill()
            elif stopped == kernels.OPEN:
                tails = exact.tails(source.word, self._tail, len(self._thresholds))
                flip += tails
                if tails < len(self._thresholds) and flip < flips:
                    out[done] = flip
                    done, flip = done + 1, flip + 1
        return out[:done]


def _power_thresholds(base: tuple[int, int], most: int) -> Words:
    """2^64 (a / 2^e)^k for k = 1 to `most`, rounded down to whole numbers that lie less than 2 below.

    Each product is cut to 128 bits: the k-th power lacks less than k 2^-128, and its threshold less than 1 + k 2^-64.
    """
    numerator, shift = base
    thresholds = np.empty(most, dtype=np.uint64)
    power = 1 << 128
    for k in range(most):
        power = power * numerator >> shift
        thresholds[k] = power >> 64
    return thresholds


def poisson_sample(source: NoiseSource, n: int, probability: float) -> Integers:
    """The rows that take part, in order: each by an independent coin of exactly this probability."""
    n = checks.count("n", n, least=0)
    probability = checks.probability("probability", probability)
    if probability == 1.0:
        return np.arange(n, dtype=np.int64)
    return _coins(probability).heads(source, n)


def poisson_samples(source: NoiseSource, n: int, probability: float, count: int) -> tuple[Integers, Integers]:
    """Several samples of n rows in one array: sample t lies between places starts[t] and starts[t + 1] of it."""
    flips = poisson_sample(source, n * count, probability)  # coins that follow each other are as independent
    starts = np.searchsorted(flips, n * np.arange(count + 1, dtype=np.int64))
    return flips if count == 1 else flips % n, starts.astype(np.int64, copy=False)


@lru_cache(maxsize=64)
def _coins(probability: float) -> Coins:
    """The same table for every sample of a fit."""
    return Coins(probability)


def _fill(
    source: NoiseSource, size: int, kernel: Callable[..., Any], given: tuple[Any, ...], finish: Callable[[], int]
) -> Integers:
    """So many draws of a kernel, which is `given` its tables; `finish` makes one that 64 bits did not settle."""
    out = np.empty(checks.count("size", size, least=0), dtype=np.int64)
    done = 0
    while done < len(out):
        words, at = source.window()
        done, at, stopped = kernel(words, at, *given, out, done)
        source.consume(at)
        if stopped == kernels.SHORT:
            source.refill()
        elif stopped == kernels.OPEN:
            out[done] = finish()
            done += 1
    return out
