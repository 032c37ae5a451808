"""Laws of a target: what they say of bins, and how they are told from noisy counts."""

import numpy as np
import pytest

from tacit.bounding import laws
from tacit.bounding.laws import Laws, Look
from tacit.bounding.magnitudes import ABOVE, BELOW, WIDEST

SHAPES = range(len(laws._OFTEN))


def drawn(shape, n, seed=0):
    """Values of mean `centre` and deviation 1, by another way than the one that is tested."""
    rng = np.random.default_rng(seed)
    if shape < laws._FREE:
        skewed = rng.exponential(size=n) - 1.0
        tail = np.exp(laws._SPREAD * rng.normal(size=n))
        long = (tail - np.exp(laws._SPREAD**2 / 2)) / np.sqrt(np.exp(2 * laws._SPREAD**2) - np.exp(laws._SPREAD**2))
        return 3.0 + [rng.normal(size=n), skewed, -skewed, long][shape]
    zeros, sign = laws._ZEROS[(shape - laws._FREE) // 2], (1.0, -1.0)[(shape - laws._FREE) % 2]
    values = sign * rng.exponential(size=n) * (rng.uniform(size=n) >= zeros)
    return values / np.sqrt((1 - zeros) * (1 + zeros))


def counted(values, shift, low, high):
    places = np.searchsorted(laws.edges(low, high), values - shift)
    return np.bincount(places, minlength=2 * (high - low + 1) + 1).astype(float)


def looked(values, shift, low, high, noise, rng, width=1):
    windows = np.convolve(counted(values, shift, low, high), np.ones(width))
    return Look(windows + noise * rng.normal(size=len(windows)), noise, laws.edges(low, high), shift, width)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_law_says_what_values_of_its_shape_do(shape):
    values = drawn(shape, 200_000)
    law = Laws(np.array([shape]), np.array([values.mean()]), np.array([values.std()]), np.zeros(1))
    for shift in (0.0, 0.7):
        parts = law.parts(laws.edges(-6, 4), shift)[0]
        assert parts.sum() == pytest.approx(1.0)
        assert np.all(parts >= 0.0)
        np.testing.assert_allclose(counted(values, shift, -6, 4) / 200_000, parts, atol=0.01)


@pytest.mark.parametrize("width", [1, 2, 4])
def test_what_laws_say_of_windows_is_what_they_say_of_the_bins_in_them(width):
    found, _, _ = laws._first_laws(1)
    found, edges = found.some(np.arange(len(found.mean)) % 97 == 0), laws.edges(-5, 6)
    windows = found.parts(edges, 0.3, width)
    for bins, sums in zip(found.parts(edges, 0.3), windows, strict=True):
        np.testing.assert_allclose(np.convolve(bins, np.ones(width)), sums, atol=1e-12)


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("shape", range(laws._FREE + 4))  # a tenth of the rows, in many bins, is too few
@pytest.mark.parametrize("unit", [1e-3, 1.0, 3e4])
def test_mean_and_deviation_are_found_where_bins_have_little_noise(shape, unit, width):
    n, noise, rng = 5000, 10.0, np.random.default_rng(3)
    values = unit * drawn(shape, n)
    first = looked(values, 0.0, -WIDEST, WIDEST, noise, rng, width)
    rough, top = laws.rough(first, n)
    second = looked(values, rough, top - BELOW, top + ABOVE, noise, rng, width)
    found = laws.likely(first, second, n, top)
    assert found.mean == pytest.approx(values.mean(), abs=0.3 * values.std())
    assert abs(np.log2(found.deviation / values.std())) < 0.6
    assert 0.0 <= found.error < 0.5 * values.std()
    assert found.parts.sum() == pytest.approx(width)


@pytest.mark.parametrize("width", [1, 4])
def test_counts_of_nothing_but_noise_give_numbers(width):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        first = looked(np.zeros(0), 0.0, -WIDEST, WIDEST, 1e4, rng, width)
        rough, top = laws.rough(first, 2)
        second = looked(np.zeros(0), rough, top - BELOW, top + ABOVE, 1e4, rng, width)
        found = laws.likely(first, second, 2, top)
        assert np.isfinite([rough, found.mean, found.error]).all()
        assert found.deviation > 0.0
        assert abs(top) < WIDEST


def test_a_unit_that_is_far_too_large_is_taken_back():
    """Around 2^12 all rows near zero are in one bin, and no law that is told apart there is narrower than 2^6."""
    n, noise, rng = 330, 40.0, np.random.default_rng(4)
    values = rng.normal(size=n)
    first = looked(values, 0.0, -WIDEST, WIDEST, 2.0 * noise, rng, 4)
    second = looked(values, 2.0**12, 14 - BELOW, 14 + ABOVE, np.sqrt(2.0) * noise, rng, 2)
    found = laws.likely(first, second, n, 14)
    assert abs(found.mean) < 1.0
    assert found.deviation < 2.0
