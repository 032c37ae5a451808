"""Scripted words, and tests of fit that say how often they cry wolf."""

import numpy as np
from scipy import special, stats

# A fresh seed would fail a test of fit once in ten million runs; seeds are fixed, so a test passes always or never.
FALSE_ALARM = 1e-7


class OutOfWordsError(Exception):
    """A scripted stream has ended."""


class ScriptedSource:
    """Stands in for a `NoiseSource`: given words, of which `portion` more come into view at every refill."""

    def __init__(self, words, portion=None):
        self.script = np.array(words, dtype=np.uint64)
        self.portion = len(self.script) if portion is None else portion
        self.visible = self.at = 0
        self.refills = self.single_words = 0

    def window(self):
        return self.script[: self.visible], self.at

    def consume(self, at):
        assert self.at <= at <= self.visible
        self.at = at

    def refill(self):
        if self.visible == len(self.script):
            raise OutOfWordsError
        self.visible = min(self.visible + self.portion, len(self.script))
        self.refills += 1

    def word(self):
        if self.at == len(self.script):
            raise OutOfWordsError
        self.at += 1
        self.visible = max(self.visible, self.at)
        self.single_words += 1
        return int(self.script[self.at - 1])


def draw_until_the_end(draw, words):
    """All draws a stream holds, by draw(read), and how many words each had used when it was finished."""
    source = ScriptedSource(words)
    draws, used = [], []
    try:
        while True:
            draws.append(draw(source.word))
            used.append(source.at)
    except OutOfWordsError:
        return draws, used


def awkward_words(seed, size, special, repeated):
    """A stream full of ties: a part of repeated words, special ones and short ones, between random ones."""
    rng = np.random.default_rng(seed)
    words = random_words(seed + 1000, size)
    kind = rng.random(size)
    for i in range(1, size):
        if kind[i] < repeated:
            words[i] = words[i - 1]
        elif kind[i] < 0.5:
            words[i] = special[rng.integers(len(special))]
        elif kind[i] < 0.6:
            words[i] >>= np.uint64(rng.integers(1, 60))
    return words


def random_words(seed, size):
    """Words of NumPy's generator, for scripts; the noise under test never comes from here."""
    return np.random.default_rng(seed).integers(0, 2**64, size, dtype=np.uint64)


def chi_square_tail(counts, probabilities, least=25.0):
    """P(chi-square at least as large), cells merged with their neighbours until `least` is expected in each."""
    counts, probabilities = np.asarray(counts, dtype=float), np.asarray(probabilities, dtype=float)
    assert abs(probabilities.sum() - 1.0) < 1e-9
    expected = probabilities * counts.sum()
    group = np.minimum(np.floor(np.cumsum(expected) / least), np.floor(expected.sum() / least) - 1)
    group = np.unique(group, return_inverse=True)[1]
    counts, expected = np.bincount(group, counts), np.bincount(group, expected)
    return stats.chi2.sf(np.sum((counts - expected) ** 2 / expected), len(counts) - 1)


def binomial_tail(hits, trials, probability):
    """Two-sided tail of a binomial count."""
    return min(
        1.0,
        2.0 * min(stats.binom.cdf(hits, trials, probability), stats.binom.sf(hits - 1, trials, probability)),
    )


def normal_interval(low, high):
    """P(low <= Z < high), without cancellation in the upper tail."""
    low, high = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    return np.where(low >= 0, special.ndtr(-low) - special.ndtr(-high), special.ndtr(high) - special.ndtr(low))


def laplace_interval(low, high):
    """P(low <= L < high) for a Laplace variable of scale 1."""
    return stats.laplace.cdf(high) - stats.laplace.cdf(low)
