"""Checks of declared numbers; tests/estimators/test_bad_input.py has what each estimator refuses."""

import math

import numpy as np
import pytest

from tacit.problems.declared import averaging_rule, coefficient_bounds, per_feature, smoothness_constants


@pytest.mark.parametrize(
    ("given", "low", "high"),
    [
        ((0, None), 0.0, math.inf),
        ([None, 2], -math.inf, 2.0),
        ((-math.inf, np.float32(1.5)), -math.inf, 1.5),
        ((1, 1), 1.0, 1.0),
        ((-1e100, 1e100), -1e100, 1e100),
        (([0, 1], 3), [0.0, 1.0], 3.0),
        (((-math.inf, 0), [1.0, math.inf]), [-math.inf, 0.0], [1.0, math.inf]),
        (np.array([[0.0, 1.0], [2.0, 3.0]]), [0.0, 1.0], [2.0, 3.0]),
        ((np.array(0), np.array([1, 2], dtype=np.uint8)), 0.0, [1.0, 2.0]),
    ],
    ids=str,
)
def test_bounds_on_coefficients_become_a_pair(given, low, high):
    for d in (None, 2):
        first, second = coefficient_bounds(given, d)
        np.testing.assert_array_equal(first, low)
        np.testing.assert_array_equal(second, high)
        assert np.asarray(first).dtype == np.asarray(second).dtype == np.float64


@pytest.mark.parametrize("given", [None, (None, None), (-math.inf, None), ([-math.inf] * 3, [math.inf] * 3)], ids=str)
def test_bounds_that_bound_nothing_are_none(given):
    assert coefficient_bounds(given, 3) is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (5, r"coef_bounds must be a pair \(low, high\), got 5"),
        (np.zeros((3, 2)), r"coef_bounds must be a pair \(low, high\), got an array of shape \(3, 2\)"),
        ((2, 1), "coef_bounds must be a pair with low <= high, got low > high$"),
        (([0, 3, 0], 1), "low > high for feature 1"),
        ((0, [1, 1, -1]), "low > high for feature 2"),
        ((math.nan, 1), r"coef_bounds\[0\] must be a number, got NaN"),
        ((0, [1, 1, math.nan]), r"coef_bounds\[1\] must hold numbers, got NaN"),
        ((math.inf, None), r"coef_bounds\[0\] must hold .* or None or -inf for no bound, got inf"),
        ((0, -math.inf), r"coef_bounds\[1\] must hold .* or None or inf for no bound, got -inf"),
        ((0, 1e101), r"coef_bounds\[1\] must hold numbers within 1e\+100 of zero"),
        (([0, 1], None), r"coef_bounds\[0\] must hold one number for each of 3 features, got 2"),
        ((0, [0, None, 1]), r"coef_bounds\[1\] must be an array with one real number for each feature"),
        ((0, [[1], [2, 3]]), r"coef_bounds\[1\] must be an array .* got \[\[1\], \[2, 3\]\]"),
        ((0, [[1] * 500]), r"coef_bounds\[1\] must be an array .* got .{203}$"),
        ((0, np.array([True, False, True])), r"got an array of shape \(3,\) and type bool"),
        ((0, "1"), r"coef_bounds\[1\] must be a real number, got '1'"),
    ],
    ids=str,
)
def test_bad_bounds_are_refused_with_words(given, message):
    with pytest.raises((ValueError, TypeError), match=message):
        coefficient_bounds(given, 3)


def test_bounds_of_two_lengths_are_refused_before_the_features_are_known():
    with pytest.raises(ValueError, match="as many lower as upper bounds, got 2 and 3 numbers"):
        coefficient_bounds(([0, 0], [1, 1, 1]))


def test_arrays_are_copied():
    given = np.ones(3)
    kept = per_feature("weights", given, 3)
    given[0] = 7.0
    assert kept[0] == 1.0


def test_smoothness_is_a_word_or_a_tuple():
    assert smoothness_constants("private", 3) == "private"
    assert smoothness_constants(np.array([1, 2, 3]), 3) == (1.0, 2.0, 3.0)
    assert all(type(value) is float for value in smoothness_constants(np.float32([0.5, 2]), 2))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            "public",
            "smoothness must be 'private', 'laplace' or an array with one positive number for each feature",
        ),
        (2.0, "smoothness must be 'private', 'laplace' or an array"),
        (None, "smoothness must be 'private', 'laplace' or an array"),
        ([1, 2], "smoothness must hold one number for each of 3 features, got 2"),
        ([1, 2, 0], "smoothness must hold positive numbers"),
        ([1, 2, math.inf], "smoothness must hold positive numbers between"),
        ([1, 2, math.nan], "smoothness must hold numbers, got NaN"),
    ],
    ids=str,
)
def test_bad_smoothness_is_refused_with_words(given, message):
    with pytest.raises(ValueError, match=message):
        smoothness_constants(given, 3)


@pytest.mark.parametrize("given", [None, "last", "tail", "periodic", 1, np.int64(4)], ids=str)
def test_rules_of_averaging(given):
    assert averaging_rule(given) == given
    assert not isinstance(averaging_rule(given), np.integer)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("mean", "averaging must be None, an integer of at least 1 or one of 'last', 'tail', 'periodic', got 'mean'"),
        (0, "averaging must be at least 1, got 0"),
        (1.5, "averaging must be an integer, got 1.5"),
        (True, "averaging must be an integer, got True"),
    ],
    ids=str,
)
def test_bad_averaging_is_refused_with_words(given, message):
    with pytest.raises((ValueError, TypeError), match=message):
        averaging_rule(given)
