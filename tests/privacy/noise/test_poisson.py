"""Poisson sampling: one independent coin for every row, never more probable than asked.

Every test of fit would fail a fresh seed with probability `FALSE_ALARM` at most.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from tacit.privacy.noise import NoiseSource
from tacit.privacy.noise.samplers import poisson_sample

from .support import FALSE_ALARM, binomial_tail, chi_square_tail


class GivenWords:
    """A source of chosen words."""

    def __init__(self, words):
        self.given = np.array(words, dtype=np.uint64)

    def words(self, size):
        assert size == len(self.given)
        return self.given


@pytest.mark.parametrize("probability", [0.5, 0.01, 1e-4, 0.3, 0.999, 1 / 3])
def test_frequency(probability):
    rows = poisson_sample(NoiseSource(101), 1_000_000, probability)
    assert binomial_tail(len(rows), 1_000_000, probability) > FALSE_ALARM


def test_rows_are_equally_likely_and_independent():
    n, rounds, q = 64, 20_000, 0.2
    source = NoiseSource(102)
    taken = np.zeros((rounds, n), dtype=bool)
    for row in taken:
        row[poisson_sample(source, n, q)] = True
    per_row = taken.sum(axis=0)
    scores = (per_row - rounds * q) / math.sqrt(rounds * q * (1 - q))
    assert stats.chi2.sf(np.sum(scores**2), n) > FALSE_ALARM
    sizes = np.bincount(taken.sum(axis=1), minlength=n + 1)  # independent rows: the batch size is binomial
    assert chi_square_tail(sizes, stats.binom.pmf(np.arange(n + 1), n, q)) > FALSE_ALARM
    standard = (taken - q) / math.sqrt(q * (1 - q))
    products = standard.T @ standard / math.sqrt(rounds)
    assert np.abs(products[np.triu_indices(n, 1)]).max() < 7.0  # 2016 pairs at 3e-12
    between = np.sum(standard[:-1] * standard[1:]) / math.sqrt(standard[1:].size)
    assert abs(between) < 6.0  # 2e-9


@pytest.mark.parametrize(
    "probability", [0.5, 0.1, 1 / 3, 1e-3, 1e-18, 2.0**-64, 1 - 2.0**-53, 0.75 + 2.0**-53, np.nextafter(0.5, 0)]
)
def test_threshold_is_the_probability_rounded_down(probability):
    """A row takes part exactly if its word is below floor(2^64 q): checked one word on either side."""
    threshold = math.floor(Fraction(float(probability)) * 2**64)
    assert Fraction(threshold, 2**64) <= Fraction(float(probability)) < Fraction(threshold + 1, 2**64)
    words = [0, threshold - 1, threshold, min(threshold + 1, 2**64 - 1), 2**64 - 1]
    expected = [i for i, word in enumerate(words) if word < threshold]
    assert poisson_sample(GivenWords(words), len(words), probability).tolist() == expected


@pytest.mark.parametrize("probability", [2.0**-65, 5e-324, 1e-300])
def test_below_the_resolution_nobody_is_drawn(probability):
    assert poisson_sample(GivenWords([0, 1, 2**64 - 1]), 3, probability).tolist() == []


def test_just_below_one_leaves_2_to_the_11_words():
    words = [2**64 - 2**11 - 1, 2**64 - 2**11]
    assert poisson_sample(GivenWords(words), 2, 1 - 2.0**-53).tolist() == [0]


def test_certain_rows():
    rows = poisson_sample(NoiseSource(103), 1000, 1.0)
    assert rows.tolist() == list(range(1000))
    assert rows.dtype == np.int64
    assert poisson_sample(NoiseSource(103), 1000, 1).tolist() == list(range(1000))


def test_rows_come_in_order_as_integers():
    rows = poisson_sample(NoiseSource(104), 1000, 0.5)
    assert rows.dtype == np.int64
    assert np.all(np.diff(rows) > 0)
    assert rows.min() >= 0
    assert rows.max() < 1000


def test_no_rows():
    assert poisson_sample(NoiseSource(105), 0, 0.5).tolist() == []
    assert poisson_sample(NoiseSource(105), 0, 1.0).tolist() == []


def test_every_call_is_a_fresh_sample():
    source = NoiseSource(106)
    assert poisson_sample(source, 1000, 0.5).tolist() != poisson_sample(source, 1000, 0.5).tolist()


@pytest.mark.parametrize("probability", [0.0, -0.1, 1.0000001, math.nan, math.inf])
def test_probabilities_outside_0_to_1_are_refused(probability):
    with pytest.raises(ValueError, match="probability must"):
        poisson_sample(NoiseSource(107), 10, probability)


@pytest.mark.parametrize("n", [-1, 2.5, True])
def test_row_counts_that_are_not_counts_are_refused(n):
    with pytest.raises((TypeError, ValueError), match="n must be"):
        poisson_sample(NoiseSource(108), n, 0.5)
