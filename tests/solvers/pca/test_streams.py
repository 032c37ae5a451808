"""Streams of blocks: sums of sparse rows stay within the slack that is charged, and rows are counted alike."""

import math

import numpy as np
import pytest
from scipy import sparse

import tacit
from tacit.blocks import StoredRows, Table

from .support import centred

ONE = np.ones((1, 1))
SUMS = {
    "second moments": (lambda rows: rows.packed_moments(), lambda rows: rows.moment_sensitivity()),
    "sum": (lambda rows: rows.sum(), lambda rows: StoredRows(rows.table, rows.n).sum_sensitivity(rows.units)),
    "products": (lambda rows: rows.products(ONE), lambda rows: rows.product_sensitivity(1)),
    "clipped products": (lambda rows: rows.products(ONE, 2.0), lambda rows: rows.product_sensitivity(1, 2.0)),
    "inner products": (lambda rows: rows.inner(ONE), lambda rows: rows.inner_sensitivity()),
    "squares": (lambda rows: rows.squares(), lambda rows: rows.square_sensitivity()),
}


def stream_of(X, n, lengths):
    """A stream of blocks of these numbers of sparse rows, with n as declared."""
    ends = np.cumsum(lengths)

    def read():
        for end, length in zip(ends, lengths, strict=True):
            yield sparse.csr_array(X[end - length : end])

    return Table(n, X.shape[1], read)


def hostile_column(power, squared):
    """2^power ones, then as many tiny numbers, which single additions all round up if no row is missing before them.

    The ones add up to 2^power. A tiny row adds a little more than half of what separates that number from the next:
    it is rounded to the whole of it. Where one row is missing numbers lie twice as close, and nothing is lost.
    """
    tiny = half = 2.0 ** (power - 53)
    if squared:
        tiny = math.sqrt(half)
        while tiny * tiny <= half:
            tiny = math.nextafter(tiny, 1.0)
    else:
        tiny = math.nextafter(tiny, 1.0)
    return np.concatenate([np.ones(2**power), np.full(2**power, tiny)])[:, None]


@pytest.mark.slow
@pytest.mark.parametrize("name", SUMS)
def test_single_sparse_rows_stay_within_the_sensitivity(name):
    """2^11 of them, one present or absent."""
    value, sensitivity = SUMS[name]
    X = hostile_column(10, squared=name != "sum")
    n, terms = len(X), X[:, 0] if name == "sum" else X[:, 0] ** 2
    found = []
    for Y, exact in ((X, math.fsum(terms)), (X[1:], math.fsum(terms[1:]))):
        rows = centred(stream_of(Y, n, [1] * len(Y)), np.zeros(1), 1.0 + 2.0**-29)
        found.append(float(np.ravel(value(rows))[0]))
        charged = sensitivity(rows).add_remove
        assert abs(found[-1] - exact) <= (charged - 1.0) / 2
    assert found[0] - found[1] <= charged


@pytest.mark.parametrize("d", [3, 40])
def test_no_sparse_row_is_counted_otherwise_because_another_is_missing(d):
    """Bit for bit: many rows may lie on the edge of a bin. They move to other places and into blocks of other sizes."""
    rng = np.random.default_rng(d)
    X, V = rng.normal(size=(520, d)), np.linalg.qr(rng.normal(size=(d, 2)))[0]

    def values(places, lengths):
        rows = centred(stream_of(X[places], 520, lengths), np.full(d, 0.1), 1.5)
        lengths = np.concatenate(
            [norms * np.linalg.norm(rows._projections(*one, V), axis=1) for *one, norms in rows._bounded()]
        )
        return lengths, rows.table.distances(rows.units.mean)[: len(places)]

    whole = values(np.arange(520), [520])
    for missing in ([0], [100], [519], [0, *range(257, 520)], range(1, 520)):
        left = np.delete(np.arange(520), missing)
        for lengths in ([len(left)], [1] * len(left)):
            for found, expected in zip(values(left, lengths), whole, strict=True):
                np.testing.assert_array_equal(found, expected[left])


class Passes:
    """Blocks that are others in each pass."""

    def __init__(self, passes):
        self.passes = iter(passes)

    def __iter__(self):
        return iter(next(self.passes))


def test_rows_that_change_between_readings_are_refused():
    X = np.random.default_rng(0).normal(size=(60, 3))
    for later in ([X, X[:1]], [X[:-1]], [X[:, :2]]):
        with pytest.raises(ValueError, match="the same rows whenever they are read again"):
            tacit.PCA(1, center=False).fit_blocks(Passes([[X], [X], later]))


def test_text_in_a_later_reading_is_refused_and_not_quoted():
    rows, text = np.arange(20.0).reshape(10, 2), np.array([["SECRET", "1"]] * 10)
    with pytest.raises(ValueError, match="the same rows whenever they are read again") as caught:
        tacit.PCA(1, epsilon=1.0).fit_blocks(Passes([[rows], [rows], [text]]))
    assert "SECRET" not in str(caught.value)
    assert caught.value.__context__ is None
