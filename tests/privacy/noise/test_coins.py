"""Laplace draws, and the coins underneath: Bernoulli(a/b), Bernoulli(exp(-a/b)), Bernoulli(2^-f).

Every test of fit would fail a fresh seed with probability `FALSE_ALARM` at most.
"""

import math

import numpy as np
import pytest
from scipy import stats

from tacit.privacy.noise import NoiseSource, exact, samplers

from .support import FALSE_ALARM, binomial_tail, chi_square_tail, laplace_interval

UNIT = 2.0**40
FLIPS = 30_000


@pytest.fixture(scope="module")
def laplaces():
    return samplers.laplaces(NoiseSource(81), 3_000_000)


@pytest.mark.parametrize("shift", [39, 36, 33])
def test_cells_of_the_laplace_law(laplaces, shift):
    least = -(64 << (40 - shift))
    counts = np.bincount((laplaces >> shift) - least, minlength=-2 * least)
    edges = np.arange(least, -least + 1) * 2.0**shift / UNIT
    assert chi_square_tail(counts, laplace_interval(edges[:-1], edges[1:])) > FALSE_ALARM


@pytest.mark.parametrize("shift", [0, 8, 16, 24])
def test_bits_of_laplace_draws_are_uniform(laplaces, shift):
    """Over the 2^32 units of the highest byte the density falls by 2^-8, which adds 4 to a chi-square of 255 +- 23."""
    assert chi_square_tail(np.bincount(laplaces >> shift & 255, minlength=256), np.full(256, 1 / 256)) > FALSE_ALARM


def test_sign_of_laplace_draws_is_independent(laplaces):
    joint = (laplaces & 15) << 1 | (laplaces < 0)
    assert chi_square_tail(np.bincount(joint, minlength=32), np.full(32, 1 / 32)) > FALSE_ALARM


def test_successive_laplace_draws_are_uncorrelated(laplaces):
    for series in (laplaces / UNIT, np.abs(laplaces / UNIT), np.sign(laplaces)):
        series = (series - series.mean()) / series.std()
        assert abs(np.dot(series[:-1], series[1:])) / math.sqrt(len(series) - 1) < 6.0  # 2e-9


def test_tails_of_the_laplace_law(laplaces):
    for scales in (1, 2, 5, 8, 12, 16, 20):
        for count in (np.count_nonzero(laplaces >= scales << 40), np.count_nonzero(laplaces < -(scales << 40))):
            assert binomial_tail(int(count), len(laplaces), 0.5 * math.exp(-scales)) > FALSE_ALARM / 14


def test_whole_and_fractional_parts_are_independent(laplaces):
    magnitude = np.where(laplaces < 0, ~laplaces, laplaces)
    whole, part = np.minimum(magnitude >> 40, 5), magnitude >> 36 & 15
    counts = np.bincount(whole << 4 | part, minlength=96).reshape(6, 16)
    assert stats.chi2_contingency(counts).pvalue > FALSE_ALARM


def heads(coin, seed):
    words = iter(NoiseSource(seed).words(40 * FLIPS).tolist())
    return sum(coin(words.__next__) for _ in range(FLIPS))


@pytest.mark.parametrize(
    ("numerator", "denominator"),
    [
        (1, 1),
        (1, 2),
        (1, 10),
        (9, 10),
        (3, 2),
        (2, 1),
        (7, 3),
        (5, 1),
        (1, 10**6),
        (10**30, 10**30 + 1),
        (2**40 - 1,) * 2,
    ],
)
def test_bernoulli_exp(numerator, denominator):
    hits = heads(lambda read: exact.bernoulli_exp(read, numerator, denominator), 83)
    assert binomial_tail(hits, FLIPS, math.exp(-numerator / denominator)) > FALSE_ALARM


@pytest.mark.parametrize("fraction", [1, 2**20, 2**31, 3 * 2**30, 2**32 - 1, 123456789])
def test_bernoulli_octave(fraction):
    hits = heads(lambda read: exact.bernoulli_octave(read, fraction), 84)
    assert binomial_tail(hits, FLIPS, 2.0 ** -(fraction / 2**32)) > FALSE_ALARM


@pytest.mark.parametrize("word", [0, 1, 2**63, 2**64 - 1])
def test_coins_that_cannot_fall_otherwise(word):
    """Whatever the words are."""
    for denominator in (1, 3, 2**64, 10**40):
        assert exact.bernoulli_exp(lambda: word, 0, denominator)
    assert exact.bernoulli_octave(lambda: word, 0)


def test_coins_read_on_where_64_bits_leave_them_open():
    """1/3 is 0101...: words that agree with it are read until one does not."""
    third = (2**64 - 1) // 3
    words = iter([third] * 5 + [2**64 - 1])  # at least gamma = 1/3: kept without a run
    assert exact.bernoulli_exp(words.__next__, 1, 3)
    assert list(words) == []


@pytest.mark.parametrize(("numerator", "denominator"), [(-1, 2), (1, 0), (1, -1)])
def test_negative_exponents_are_refused(numerator, denominator):
    with pytest.raises(ValueError, match="numerator >= 0"):
        exact.bernoulli_exp(lambda: 0, numerator, denominator)
