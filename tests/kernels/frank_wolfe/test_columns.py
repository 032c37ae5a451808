"""Columns list their rows; rows that are not finite are absent; margins are those of the rows."""

import math

import numpy as np
import pytest
from scipy.sparse import csr_array

from tacit.kernels.frank_wolfe import columns as by_column

from .support import D, N, Run, T, table, targets


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("places", [np.int32, np.int64])
def test_columns_list_their_rows_in_order(kind, places):
    Z = table(kind=kind)
    Z.indices, Z.indptr = Z.indices.astype(places), Z.indptr.astype(places)
    run = Run(Z, targets())
    assert run.canonical
    assert run.present.all()
    theirs = Z.tocsc()
    theirs.eliminate_zeros()
    np.testing.assert_array_equal(run.starts, theirs.indptr)
    np.testing.assert_array_equal(run.rows, theirs.indices)
    np.testing.assert_array_equal(run.scores, run.whole(run.exact_slopes))
    assert np.count_nonzero(run.scores) == D - 1  # but for the empty column


@pytest.mark.parametrize("bits", [1, 2, 4])
def test_runs_of_columns_list_the_rows_of_each(bits):
    Z = table()
    run, mask = Run(Z, targets(), bits=bits), 2**bits - 1
    theirs = Z.tocsc()
    theirs.eliminate_zeros()
    for j in range(D):
        codes = run.rows[run.starts[j >> bits] : run.starts[(j >> bits) + 1]]
        np.testing.assert_array_equal(codes[codes & mask == j & mask] >> bits, theirs[:, [j]].indices)
    plain = Run(Z, targets(), valued=False)  # entries are looked up in the rows
    for t in range(1, T):
        np.testing.assert_array_equal(run.scores, plain.scores)
        assert run.step(t, t % D) == plain.step(t, t % D)


@pytest.mark.parametrize("indices", [[2, 1, 3], [1, 1, 3]], ids=["not sorted", "twice"])
def test_places_that_do_not_rise_are_told(indices):
    Z = csr_array((np.ones(3), np.array(indices, dtype=np.int32), np.array([0, 0, 3], dtype=np.int32)), shape=(2, 4))
    assert not Run(Z, np.ones(2)).canonical


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e200])
def test_a_row_that_is_not_finite_is_absent(bad):
    Z, y = table(), targets()
    without = Z.tolil()
    without[7] = 0.0
    Z.data[Z.indptr[7]] = bad
    run, other = Run(Z, y), Run(csr_array(without), y)
    assert np.flatnonzero(~run.present).tolist() == [7]
    assert 7 not in run.rows
    for t in range(1, 20):
        np.testing.assert_array_equal(run.scores, other.scores)
        for each in (run, other):
            each.step(t, t % D)


def test_a_target_that_is_not_finite_makes_its_row_absent():
    y = targets()
    y[7] = math.nan
    assert np.flatnonzero(~Run(table(), y).present).tolist() == [7]


def test_margins_are_those_of_clipped_entries():
    chosen, weights = np.array([0, 2, 7, 11]), np.array([0.5, -1.0, 2.0, 0.1])
    run, out = Run(table(), targets(), bits=2), np.empty(N)
    by_column.sparse_margins(chosen, weights, run.listed, out)
    np.testing.assert_allclose(out, run.entries[:, chosen] @ weights, atol=1e-12)
