import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.kernels.scaling import magnitude_bin, magnitude_histograms, standardize

from .support import repeatable

SMALLEST = 5e-324


def standardized(X, centre, scale, limit, low=-np.inf, high=np.inf):
    out, d = np.empty(X.shape), X.shape[1]
    bounds = np.full(d, low), np.full(d, high)
    standardize(X, bounds, np.asarray(centre), np.asarray(scale), np.full(d, limit), 0.0, out)
    return out


def test_standardize_clips_to_bounds_first():
    X = np.array([[5.0, -7.0, 0.3], [np.nan, 2.0, 1.0]])
    got = standardized(X, [1.0, 1.0, 0.0], np.ones(3), 3.0, low=[-2.0, -np.inf, 0.5], high=[3.0, np.inf, 0.75])
    np.testing.assert_array_equal(got, [[2.0, -3.0, 0.5], [0.0, 1.0, 0.75]])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["C", "F"])
def test_standardize_is_the_textbook_formula(dtype, order):
    rng = np.random.default_rng(0)
    X = np.asarray(rng.normal(size=(50, 3)) * [1.0, 1e6, 1e-4], dtype=dtype, order=order)
    centre, scale = np.array([0.1, -1e6, 0.0]), np.array([0.2, 3e5, 2e-5])
    expected = np.clip((X.astype(np.float64) - centre) / scale, -3.0, 3.0)
    np.testing.assert_array_equal(standardized(X, centre, scale, 3.0), expected)


def test_standardize_takes_what_is_not_a_number_to_zero_and_infinity_to_the_limit():
    X = np.array([[np.nan, np.inf, -np.inf, 1e308, -1e308]])
    np.testing.assert_array_equal(standardized(X, np.zeros(5), np.full(5, 0.1), 3.0), [[0.0, 3.0, -3.0, 3.0, -3.0]])


def test_standardize_overflow_is_clipped():
    X = np.array([[1.7e308, -1.7e308, 1.0, 0.0]])
    got = standardized(X, [-1.7e308, 1.7e308, 0.0, 0.0], [1.0, 1.0, SMALLEST, SMALLEST], 3.0)
    np.testing.assert_array_equal(got, [[3.0, -3.0, 3.0, 0.0]])


@given(st.floats(), st.floats(allow_nan=False), st.floats(SMALLEST, 1e308), st.floats(0.0, 10.0))
@repeatable
def test_standardize_stays_within_the_limit(x, centre, scale, limit):
    assert abs(standardized(np.array([[x]]), [centre], [scale], limit)[0, 0]) <= limit


# --- bins --------------------------------------------------------------------------------------------------


def exponent(size):
    """round(log2 size) in 60 digits; no float lies on a boundary, which is irrational."""
    with mpmath.workdps(60):
        return int(mpmath.nint(mpmath.log(mpmath.mpf(size), 2)))


def expected_bin(value, low, high):
    exponents = high - low + 1
    if math.isnan(value) or value == 0.0:
        return exponents
    e = high if math.isinf(value) else min(exponent(abs(value)), high)
    if e < low:
        return exponents
    return exponents + (e - low + 1) * (1 if value > 0 else -1)


edges = st.builds(
    lambda k, ulps, sign: sign * math.ldexp(math.sqrt(0.5) + ulps * 2.0**-53, k),
    st.integers(-1020, 1000),
    st.integers(-2, 2),
    st.sampled_from([-1.0, 1.0]),
)


@given(
    st.one_of(st.floats(), st.floats(-1e300, 1e300), st.floats(-1e-300, 1e-300), st.floats(-100.0, 100.0), edges),
    st.sampled_from([(-24, 24), (-8, 1), (0, 0), (-1020, 1020), (3, 12)]),
)
@repeatable
def test_bin_is_the_rounded_logarithm(value, ends):
    assert magnitude_bin(value, *ends) == expected_bin(value, *ends)


@pytest.mark.parametrize("value", [SMALLEST, 2.5e-320, 2.2250738585072014e-308, 1e300, 1.7976931348623157e308])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_bin_of_the_ends_of_float64(value, sign):
    assert magnitude_bin(sign * value, -1020, 1020) == expected_bin(sign * value, -1020, 1020)


@pytest.mark.parametrize("k", [-24, -3, 0, 1, 24])
def test_bin_changes_half_way_between_powers(k):
    below = math.ldexp(math.sqrt(0.5), k)  # sqrt(1/2) as a float is just above the real one
    assert magnitude_bin(below, -30, 30) - magnitude_bin(math.nextafter(below, 0.0), -30, 30) == 1
    assert magnitude_bin(below, -30, 30) == magnitude_bin(math.ldexp(1.0, k), -30, 30)


@given(st.integers(-30, 20), st.integers(0, 20), st.floats())
@repeatable
def test_bin_is_inside_the_histogram(low, more, value):
    assert 0 <= magnitude_bin(value, low, low + more) <= 2 * (more + 1)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_each_row_counts_once_in_each_column(dtype):
    rng = np.random.default_rng(1)
    X = np.asarray(rng.normal(size=(300, 4)) * [1.0, 1e9, 1e-9, 0.0], dtype=dtype)
    X[7] = [np.nan, np.inf, -np.inf, np.nan]
    shift = np.array([0.0, 5.0, 0.0, -1.0])
    low, high = np.array([-24, -8, 0, -8]), np.array([-4, 12, 20, 12])
    counts = np.full((4, 43), 99.0)  # what was there before must not show
    magnitude_histograms(X, shift, low, high, counts)
    np.testing.assert_array_equal(counts.sum(axis=1), [299.0, 300.0, 300.0, 299.0])  # what is missing counts nowhere
    expected = np.zeros((4, 43))
    for i, j in np.ndindex(*X.shape):
        if not np.isnan(X[i, j]):
            expected[j, expected_bin(float(X[i, j]) - shift[j], low[j], high[j])] += 1.0
    np.testing.assert_array_equal(counts, expected)
