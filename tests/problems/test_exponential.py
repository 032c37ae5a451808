"""The exponential function: right to the last place, and the same bits in any place of any array on any processor."""

import hashlib
import math

import mpmath
import numpy as np
import pytest

from tacit.problems.exponential import exp, exponentials

KNOWN = "6dc604b28a3af9124d5d0ded8fd29b0f5d5c1eba3fc20763defa160febaecbf3"


def arguments():
    """Of every size, as whole numbers of halves: no library has a part in making them."""
    steps = np.arange(-40_000, 40_000, dtype=np.float64)
    return np.concatenate([steps / 2.0**16, steps / 64.0, steps * 2.0**-30, steps / 3.0 * 2.0**-11])


def powers(values):
    out = np.empty(len(values))
    exponentials(np.ascontiguousarray(values), out)
    return out


def test_is_within_one_unit_in_the_last_place():
    values = np.concatenate([arguments()[::997], np.random.default_rng(0).uniform(-708.0, 709.0, 500)])
    with mpmath.workprec(120):
        for value, found in zip(values.tolist(), powers(values).tolist(), strict=True):
            truth = mpmath.exp(mpmath.mpf(value))
            assert abs(mpmath.mpf(found) - truth) <= math.ulp(float(truth))


def test_the_bits_are_known():
    """Additions, products and shifts are the same everywhere: fused or reordered ones would show here."""
    found = powers(arguments())
    assert hashlib.sha256(found.astype("<f8").tobytes()).hexdigest() == KNOWN


@pytest.mark.whole
@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13, 16, 31, 64, 1001])
def test_each_value_is_that_of_the_value_alone(size):
    """Permuted, shortened, padded, and off every boundary of memory."""
    rng = np.random.default_rng(size)
    values = rng.normal(scale=20.0, size=size)
    alone = [exp(value) for value in values.tolist()]
    order = rng.permutation(size)
    assert powers(values).tolist() == alone
    assert powers(values[order])[np.argsort(order)].tolist() == alone
    assert powers(np.concatenate([[0.5, -3.0, 700.0], values]))[3:].tolist() == alone
    assert powers(values[size // 2 :]).tolist() == alone[size // 2 :]
    room = np.empty(8 * size + 1, dtype=np.uint8)[1:].view(np.float64)
    room[:] = values
    assert [exp(value) for value in room.tolist()] == alone


def test_limits():
    assert exp(0.0) == exp(-0.0) == 1.0
    assert exp(-math.inf) == exp(-1e300) == exp(-746.0) == 0.0
    assert exp(math.inf) == exp(1e300) == exp(710.0) == math.inf
    assert math.isnan(exp(math.nan))
    assert exp(-745.0) == 5e-324
    assert exp(-720.0) == pytest.approx(math.exp(-720.0), rel=1e-9)


def test_never_falls_where_values_are_apart():
    values = np.sort(arguments())
    apart = np.flatnonzero(np.diff(values) > 1e-15 * np.abs(values[1:]))
    found = powers(values)
    assert np.all(found[apart + 1] >= found[apart])
