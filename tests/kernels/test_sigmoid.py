import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from tacit.kernels.sigmoid import falling_sigmoid

from .support import repeatable


def fallen(values):
    out = np.array(values, dtype=np.float32)
    falling_sigmoid(out)
    return out


def test_is_the_logistic_function_of_minus_the_value():
    values = np.linspace(-100.0, 100.0, 400_001, dtype=np.float32)
    error = np.abs(fallen(values) - expit(-values.astype(np.float64)))
    assert error.max() <= 2e-7


def test_has_few_errors_in_its_last_bits_where_the_result_is_small():
    """Relative to the result, which as the weight of a row is what counts far out."""
    values = np.linspace(0.0, 80.0, 100_001, dtype=np.float32)
    expected = expit(-values.astype(np.float64))
    assert np.max(np.abs(fallen(values) - expected) / expected) <= 1e-6


@given(st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=50))
@repeatable
def test_never_leaves_the_unit_interval_and_never_rises(values):
    values = np.sort(np.array(values, dtype=np.float32))
    out = fallen(values)
    assert np.all((out >= 0.0) & (out <= 1.0))
    assert np.all(np.diff(out.astype(np.float64)) <= 2e-7)


@pytest.mark.parametrize("size", [1, 3, 8, 64, 1001])
def test_each_value_is_replaced_by_itself(size):
    """Bit for bit as alone: what stands beside a value, and how long the array is, does not matter."""
    values = np.random.default_rng(size).normal(scale=5.0, size=size).astype(np.float32)
    together = fallen(values)
    assert [fallen([value])[0] for value in values] == together.tolist()


def test_infinities_are_limits():
    low, high = fallen([-math.inf, math.inf])
    assert low == 1.0
    assert 0.0 <= high <= 1e-37


def test_what_is_not_a_number_gives_no_number_or_one_between_zero_and_one():
    out = fallen([math.nan, 0.0, math.nan])
    assert out[1] == 0.5
    assert np.all(np.isnan(out[[0, 2]]) | ((out[[0, 2]] >= 0.0) & (out[[0, 2]] <= 1.0)))
