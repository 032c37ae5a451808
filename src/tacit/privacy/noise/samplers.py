"""Bulk draws from a source: the compiled kernels, with `exact` behind them."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tacit.privacy import checks
from tacit.privacy.noise import exact, kernels
from tacit.privacy.noise.source import NoiseSource, Words
from tacit.privacy.noise.tables import strips

Integers = NDArray[np.int64]
Step = Callable[[Words, int, Integers, int], tuple[int, int, int]]


def normals(source: NoiseSource, size: int) -> Integers:
    """floor(2^40 Z) for independent standard normal Z."""
    table = strips()

    def step(words: Words, at: int, out: Integers, done: int) -> tuple[int, int, int]:
        return kernels.strip_normals(words, at, table, out, done)

    return _fill(source, size, step, lambda: exact.strip_normal(source.word, table))


def laplaces(source: NoiseSource, size: int) -> Integers:
    """floor(2^40 L) for independent Laplace L of scale 1."""
    return _fill(source, size, kernels.laplaces, lambda: exact.laplace(source.word))


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

        def step(words: Words, at: int, out: Integers, done: int) -> tuple[int, int, int]:
            return kernels.pick_candidates(words, at, self._gaps, self._counts, out, done)

        return _fill(source, size, step, lambda: self._pick_exactly(source))

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


def poisson_sample(source: NoiseSource, n: int, probability: float) -> Integers:
    """The rows of an independent coin flip each: row i takes part if its word is below floor(2^64 probability).

    Rounding down can only lower the probability, by less than 2^-64, and with it the privacy cost.
    """
    n = checks.count("n", n, least=0)
    probability = checks.probability("probability", probability)
    if probability == 1.0:
        return np.arange(n, dtype=np.int64)
    threshold = np.uint64(int(probability * 2.0**64))  # exact: scaling by a power of two, then truncation
    return np.flatnonzero(source.words(n) < threshold).astype(np.int64, copy=False)


def _fill(source: NoiseSource, size: int, step: Step, finish: Callable[[], int]) -> Integers:
    out = np.empty(checks.count("size", size, least=0), dtype=np.int64)
    done = 0
    while done < len(out):
        words, at = source.window()
        done, at, stopped = step(words, at, out, done)
        source.consume(at)
        if stopped == kernels.SHORT:
            source.refill()
        elif stopped == kernels.OPEN:
            out[done] = finish()
            done += 1
    return out
