"""Laws of a target: what they say of bins, and how they are told from noisy counts."""

import numpy as np
import pytest

from tacit.bounding import laws
from tacit.bounding.laws import Laws
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


@pytest.mark.parametrize("shape", SHAPES)
def test_a_law_says_what_values_of_its_shape_do(shape):
    values = drawn(shape, 200_000)
    law = Laws(np.array([shape]), np.array([values.mean()]), np.array([values.std()]), np.zeros(1))
    for shift in (0.0, 0.7):
        parts = law.parts(laws.edges(-6, 4), shift)[0]
        assert parts.sum() == pytest.approx(1.0)
        assert np.all(parts >= 0.0)
        np.testing.assert_allclose(counted(values, shift, -6, 4) / 200_000, parts, atol=0.01)


@pytest.mark.parametrize("shape", range(laws._FREE + 4))  # a tenth of the rows, in many bins, is too few
@pytest.mark.parametrize("unit", [1e-3, 1.0, 3e4])
def test_mean_and_deviation_are_found_where_bins_have_little_noise(shape, unit):
    n, noise, rng = 5000, 10.0, np.random.default_rng(3)
    values = unit * drawn(shape, n)
    first = counted(values, 0.0, -WIDEST, WIDEST) + noise * rng.normal(size=4 * WIDEST + 3)
    rough, top = laws.rough(first, noise, n)
    second = counted(values, rough, top - BELOW, top + ABOVE)
    second += noise * rng.normal(size=len(second))
    found = laws.likely((first, noise), (second, noise), n, rough, top)
    assert found.mean == pytest.approx(values.mean(), abs=0.3 * values.std())
    assert abs(np.log2(found.deviation / values.std())) < 0.6
    assert 0.0 <= found.error < 0.5 * values.std()
    assert found.parts.sum() == pytest.approx(1.0)


def test_counts_of_nothing_but_noise_give_numbers():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        first = 1e4 * rng.normal(size=4 * WIDEST + 3)
        rough, top = laws.rough(first, 1e4, 2)
        second = 1e4 * rng.normal(size=2 * (BELOW + ABOVE + 1) + 1)
        found = laws.likely((first, 1e4), (second, 1e4), 2, rough, top)
        assert np.isfinite([rough, found.mean, found.error]).all()
        assert found.deviation > 0.0
        assert abs(top) < WIDEST
