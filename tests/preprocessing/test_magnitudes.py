import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tacit.bounding.magnitudes import (
    ABOVE,
    BELOW,
    WIDEST,
    bin_values,
    centre_and_scale,
    other_value,
    rough_centre,
    surviving,
)

repeatable = settings(derandomize=True, deadline=None, max_examples=150, database=None)
BINS = 2 * (2 * WIDEST + 1) + 1
ZERO = 2 * WIDEST + 1


def wide(**counts):
    """A first histogram; p3=5 puts 5 into the bin of 2^3, n3 into that of -2^3, zero into the middle."""
    out = np.zeros(BINS)
    for name, count in counts.items():
        if name == "zero":
            out[ZERO] = count
        else:
            e = int(name[1:].replace("_", "-"))
            out[ZERO + (1 if name[0] == "p" else -1) * (e + WIDEST + 1)] = count
    return out


def narrow(top, masses):
    """A second histogram around zero for exponents top - 8 .. top + 1, from {value: count}."""
    values = bin_values(top - BELOW, top + ABOVE)
    out = np.zeros(len(values))
    for value, count in masses.items():
        out[int(np.flatnonzero(values == value)[0])] = count
    return out


def test_bins_are_in_increasing_order():
    values = bin_values(-2, 1)
    np.testing.assert_array_equal(values, [-2.0, -1.0, -0.5, -0.25, 0.0, 0.25, 0.5, 1.0, 2.0])
    assert len(bin_values(-WIDEST, WIDEST)) == BINS
    assert bin_values(-WIDEST, WIDEST)[ZERO] == 0.0


# --- which bins survive ------------------------------------------------------------------------------------


def test_without_noise_every_filled_bin_survives():
    counts = np.array([0.0, 1.0, 0.0, 3.0])
    np.testing.assert_array_equal(surviving(counts, 0.0, 7), [False, True, False, True])
    assert not surviving(np.zeros(5), 0.0, 1).any()


def test_seeds_stand_out_among_all_columns():
    bins, columns, noise = 9, 50, 2.0
    level = noise * (math.sqrt(2 * math.log(2 * columns * bins)) + 0.5)
    counts = np.zeros(bins)
    counts[1], counts[4], counts[7] = level * 1.001, level * 2, level * 0.999
    np.testing.assert_array_equal(np.flatnonzero(surviving(counts, noise, columns)), [1, 4])


@pytest.mark.parametrize(("columns", "own"), [(10_000, 3.4), (1, 5.0)])
def test_the_best_of_a_column_need_only_stand_out_by_itself(columns, own):
    counts = np.zeros(2_000)
    counts[3] = own * 1.001
    np.testing.assert_array_equal(np.flatnonzero(surviving(counts, 1.0, columns)), [3])
    counts[3] = own * 0.999
    assert not surviving(counts, 1.0, columns).any()


def test_three_bins_that_stand_out_together_survive():
    counts = np.zeros(2_000)
    counts[10:13] = 2.1, 1.1, 2.9  # none of them by itself; 6.1 / sqrt(3) = 3.5 together
    np.testing.assert_array_equal(np.flatnonzero(surviving(counts, 1.0, 10_000)), [10, 11, 12])
    counts[11] = 0.9  # still together, but this one could be noise
    np.testing.assert_array_equal(np.flatnonzero(surviving(counts, 1.0, 10_000)), [10, 12])
    counts[10] = 1.8
    assert not surviving(counts, 1.0, 10_000).any()


def test_a_bin_that_says_all_by_itself_plants_no_neighbours():
    counts = np.zeros(50)
    counts[20:23] = 1.9, 1_000.0, 1.9
    np.testing.assert_array_equal(np.flatnonzero(surviving(counts, 1.0, 30)), [21])


def test_noise_alone_seldom_survives():
    noise = np.random.default_rng(0).normal(size=(2_000, 99))
    assert sum(surviving(row, 1.0, 30).any() for row in noise) < 0.08 * len(noise)
    assert sum(surviving(row, 1.0, 1).any() for row in noise) == 0


def test_growth_is_through_adjacent_bins_above_twice_the_noise():
    counts = np.zeros(400)
    counts[100:109] = 2.1, 1.9, 2.1, 2.1, 100.0, 2.1, 2.1, 1.9, 2.1
    np.testing.assert_array_equal(np.flatnonzero(surviving(counts, 1.0, 1)), range(102, 107))


def test_growth_reaches_the_ends():
    np.testing.assert_array_equal(surviving(np.array([3.0, 3.0, 50.0, 3.0, 3.0]), 1.0, 1), True)


@pytest.mark.parametrize("signed", [False, True])
def test_growth_goes_from_bin_to_bin_in_each_row_by_itself(signed):
    rng = np.random.default_rng(0)
    counts = rng.choice([0.0, 2.1], p=[0.1, 0.9], size=(200, 21))
    counts[np.arange(200), rng.integers(0, 21, size=200)] = 50.0
    expected = counts > 40.0
    for row, kept in zip(counts, expected, strict=True):
        for step in (1, -1):
            for k in range(21)[::step][1:]:
                from_zero = signed and k - step == 10
                kept[k] |= kept[k - step] and row[k] > 2.0 and not from_zero
    np.testing.assert_array_equal(surviving(counts, 1.0, 10_000, signed=signed), expected)
    assert expected.sum() > 400


def test_counts_are_not_changed():
    counts = np.array([2.1, 100.0, -3.0])
    before = counts.copy()
    surviving(counts, 1.0, 1)
    np.testing.assert_array_equal(counts, before)


# --- the first histogram -----------------------------------------------------------------------------------


def test_rough_centre_is_the_median_bin_and_the_top_exponent():
    counts = wide(n2=10, zero=5, p0=30, p5=20)
    assert rough_centre(counts, counts > 0) == (1.0, 5)
    counts = wide(n4=40, p1=10)
    assert rough_centre(counts, counts > 0) == (-16.0, 4)


def test_rough_centre_reads_kept_bins_only():
    counts = wide(p0=30, p20=1000)
    assert rough_centre(counts, wide(p0=1) > 0) == (1.0, 0)


def test_rough_centre_of_zeros_is_zero():
    counts = wide(zero=100)
    assert rough_centre(counts, counts > 0) == (0.0, 0)


def test_rough_centre_of_mostly_zeros_knows_the_magnitude_of_the_rest():
    counts = wide(zero=90, p_7=10)
    assert rough_centre(counts, counts > 0) == (0.0, -7)


# --- the second histogram ----------------------------------------------------------------------------------


def test_mean_and_deviation():
    counts = narrow(0, {0.0: 70, 1.0: 30})
    centre, scale = centre_and_scale(counts, counts > 0, 5.0, 0)
    assert centre == pytest.approx(5.3)
    assert scale == pytest.approx(math.sqrt(0.21))


def test_the_far_two_hundredths_set_the_scale_of_a_heavy_tail():
    counts = narrow(3, {0.0: 980, 16.0: 20})
    centre, scale = centre_and_scale(counts, counts > 0, 0.0, 3)
    assert centre == pytest.approx(0.32)
    assert scale == pytest.approx(0.3 * (16 - 0.32))
    counts = narrow(3, {0.0: 981, 16.0: 19})  # too few to count: the deviation sets it
    centre, scale = centre_and_scale(counts, counts > 0, 0.0, 3)
    assert scale == pytest.approx(16 * math.sqrt(0.019 * 0.981))


def test_both_tails_count_together():
    counts = narrow(3, {-16.0: 12, 0.0: 976, 16.0: 12})
    _, scale = centre_and_scale(counts, counts > 0, 0.0, 3)
    assert scale == pytest.approx(0.3 * 16)


def test_a_constant_column_gets_a_fifth_of_its_distance():
    counts = narrow(2, {-1.0: 500})
    assert centre_and_scale(counts, counts > 0, 8.0, 2) == (7.0, pytest.approx(0.2))


def test_fallbacks_are_a_third_of_the_magnitude():
    only_zero = narrow(5, {0.0: 500})
    assert centre_and_scale(only_zero, only_zero > 0, 32.0, 5) == (32.0, 32.0 / 3.0)
    nothing = np.zeros(2 * (BELOW + ABOVE + 1) + 1)
    assert centre_and_scale(nothing, nothing > 0, 4.0, 2) == (4.0, 4.0 / 3.0)
    kept_but_negative = np.full(len(nothing), -1.0)
    assert centre_and_scale(kept_but_negative, nothing == 0, 4.0, 2) == (4.0, 4.0 / 3.0)


def test_noise_below_the_threshold_does_not_move_the_answer():
    rng = np.random.default_rng(0)
    exact = narrow(0, {0.0: 7000, 1.0: 3000})
    noisy = exact + rng.normal(size=len(exact))
    centre, scale = centre_and_scale(noisy, surviving(noisy, 1.0, 20), 0.0, 0)
    assert centre == pytest.approx(0.3, abs=0.001)
    assert scale == pytest.approx(math.sqrt(0.21), abs=0.001)


@given(
    arrays(np.float64, BINS, elements=st.floats(-50.0, 1000.0)),
    arrays(np.float64, 2 * (BELOW + ABOVE + 1) + 1, elements=st.floats(-50.0, 1000.0)),
    st.floats(0.0, 20.0),
    st.integers(1, 100),
)
@repeatable
def test_whatever_comes_out_of_the_noise_is_finite_and_positive(first, second, noise, columns):
    keep = surviving(first, noise, columns)
    if keep.any():
        rough, top = rough_centre(first, keep)
        assert -WIDEST <= top <= WIDEST
        centre, scale = centre_and_scale(second, surviving(second, noise, columns), rough, top)
        assert math.isfinite(centre)
        assert 0.0 < scale <= 2.0 ** (WIDEST + ABOVE + 1)
        assert abs(centre - rough) <= 2.0 ** (top + ABOVE) * (1 + 1e-12)


def test_the_smallest_size_does_not_join_many_zeros():
    counts = np.zeros(99)
    counts[49], counts[50] = 5000.0, 2.5  # zeros, and a bin of 2^-24 that noise alone fills so far
    assert np.array_equal(np.flatnonzero(surviving(counts, 1.0, 100, signed=True)), [49])
    assert 50 in np.flatnonzero(surviving(counts, 1.0, 100))


def test_a_column_of_two_values_names_the_other_one():
    counts = np.zeros(2 * (BELOW + ABOVE + 1) + 1)
    middle = len(counts) // 2
    counts[middle], counts[middle + 1 + BELOW] = 900.0, 100.0  # 0, and 2^0
    assert other_value(counts, 0.0, 0, least=0.0) == 1.0
    counts[middle + BELOW] = 3.0  # a half, which may be noise
    assert other_value(counts, 0.0, 0, least=4.0) == 1.0
    assert other_value(counts, 0.0, 0, least=2.0) is None
    assert other_value(counts, 0.25, 0, least=4.0) is None  # neither of them is zero
