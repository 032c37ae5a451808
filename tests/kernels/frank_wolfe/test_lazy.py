"""Sums of margin times entry for the squared loss: changed row by row, or taken anew, they are the same numbers."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from tacit.kernels.frank_wolfe import lazy
from tacit.problems import SQUARED
from tacit.solvers.frank_wolfe.rows import Scoring, SparseRows

from .support import D, N, table, targets


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("valued", [True, False], ids=["values by column", "no values"])
def test_steps_along_frequent_and_rare_columns_leave_the_sums_of_all_rows(kind, valued):
    dense = table(kind=kind).toarray()
    dense[:, 1] = np.linspace(-2.0, 2.0, N)  # all rows have it: sums are taken anew
    dense[1:, 2] = 0.0  # one row has it
    dense[0, 2], dense[4, 7] = 0.3, 1e30
    scoring = Scoring(SQUARED.code, bound=0.7, limit=4.0, curvature=1.0, units=2**40)
    rows = SparseRows.of(csr_array(dense), targets(), scoring)
    entries, (bits, starts, places, values) = rows.listed
    listed = entries, (bits, starts, places, values if valued else values[:0])
    v, sums, expected = np.zeros(N), np.zeros(D, dtype=np.int64), np.zeros(D, dtype=np.int64)
    notes, told = (np.empty(D, dtype=np.int64), np.zeros(D, dtype=np.int32)), []
    for t, j in enumerate([1, 2, 7, 1, 4, 2, 1], start=1):
        before = sums.copy()
        count = lazy.lazy_step(t, j, 0.1 * t, listed, scoring.unit, v, sums, notes)
        lazy.lazy_rates(entries, rows.present, scoring.unit, v, expected)
        np.testing.assert_array_equal(sums, expected)
        assert set(np.flatnonzero(sums != before)) <= set(notes[0][:count])
        told.append(count)
    assert told[0] == D  # many entries: all places are told
    assert max(told[1], told[5]) < D
