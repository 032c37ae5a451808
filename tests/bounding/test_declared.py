"""Sparse rows with declared columns: none is longer than the root of d, whatever it holds."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array

from tacit.bounding.declared import SparseScale
from tacit.problems.bounds import Bounds

D = 12
SIGNS = {"to both sides": (-3.0, 0.7), "from zero": (0.0, 1e30), "to zero": (-1e-30, 0.0)}


def hostile(bounds, bound):
    """Rows that go as far as they may in all columns, and beyond; stored zeros, and what is no number."""
    farthest = np.where(np.abs(bounds.high) > np.abs(bounds.low), bounds.high, bounds.low)
    rest = np.where(bounds.declared, 0.0, bound / np.sqrt(max(np.count_nonzero(~bounds.declared), 1)))
    full = np.where(bounds.declared, farthest, rest)
    rows = np.stack([full, 2.0 * full, -full, np.full(D, 1e300), np.full(D, -1e300), np.zeros(D), full, full, full])
    rows[6, ::3], rows[7, ::3], rows[8, 1::3] = np.nan, np.inf, -np.inf
    places = np.tile(np.arange(D), len(rows))
    return csr_array((rows.ravel(), places, D * np.arange(len(rows) + 1)), shape=rows.shape)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("sides", SIGNS)
@pytest.mark.parametrize("count", [1, 5, D - 1, D])
def test_no_sparse_row_is_longer_than_the_root_of_the_number_of_columns(sides, count):
    low, high = np.full(D, -np.inf), np.full(D, np.inf)
    low[:count], high[:count] = SIGNS[sides]
    bounds = Bounds(low, high)
    longest = 0.0
    for bound in (1e-20, 1.7, 1e20):
        _, rows = SparseScale.of(100, bounds).rows(hostile(bounds, bound), bound)
        squares = [sum(Fraction(value) ** 2 for value in row) for row in rows.toarray().tolist()]
        assert max(squares) <= D
        longest = max(longest, float(max(squares)))
    assert longest > 0.999 * D  # so a bound that is smaller would be caught
