"""Whole gradients that follow the steps: columns, due dates, sums and the queue, each against a direct computation."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from tacit.kernels import frank_wolfe as kernels
from tacit.kernels import frank_wolfe_columns as by_column
from tacit.kernels import frank_wolfe_dense as dense_rows
from tacit.kernels import frank_wolfe_queue as queue
from tacit.kernels.frank_wolfe_rows import MOST_UNITS, clipped
from tacit.privacy.noise.vertices import empty_buckets
from tacit.problems.slopes import IS_LOGISTIC, IS_SQUARED, IS_SQUARED_HINGE, slope

N, D, T = 30, 12, 40
CURVATURE = {IS_LOGISTIC: 0.25, IS_SQUARED: 1.0, IS_SQUARED_HINGE: 2.0}
either_loss = pytest.mark.parametrize("loss", CURVATURE, ids=["logistic", "squared", "squared_hinge"])


def table(seed=0, n=N, d=D, kind=np.float64):
    """Sparse rows; some rows and columns are empty, and one entry is a stored zero."""
    rng = np.random.default_rng(seed)
    dense = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.4)
    dense[3], dense[:, 5], dense[0, 0] = 0.0, 0.0, 7.0
    Z = csr_array(dense.astype(kind))
    Z.data[0] = 0.0
    return Z


def targets(n=N, seed=1):
    return np.where(np.random.default_rng(seed).random(n) < 0.5, 1.0, -1.0)


class Run:
    """The arrays of a run on sparse rows, by the kernels alone."""

    def __init__(
        self, Z, y, loss=IS_LOGISTIC, bound=1.5, limit=1.0, tolerance=0.05, spare=0.5, unit=1e6, offset=0.2, bits=0
    ):
        n, d = Z.shape
        self.Z, self.y, self.loss, self.offset = Z, y, loss, offset
        self.entries = np.clip(Z.toarray().astype(np.float64), -bound, bound)
        self.rules = offset, loss, limit
        self.tolerances, self.unit, self.limit = (tolerance, spare * tolerance), unit, limit
        self.place = Z.data, Z.indices, Z.indptr, bound
        self.slopes, self.present = np.empty(n), np.empty(n, dtype=bool)
        self.scores, counts = np.zeros(d, dtype=np.int64), np.zeros((2, -(-d // 2**bits)), dtype=np.int32)
        halves, seen = ((0, n // 2), (n // 2, n)), (self.slopes, self.present)
        rises = [
            by_column.look_at_rows(*ends, self.place, bits, y, *self.rules, unit, *seen, self.scores, counts[k])
            for k, ends in enumerate(halves)
        ]
        self.canonical = all(rises)
        starts = np.concatenate([[0], np.cumsum(counts.sum(axis=0))]).astype(np.int32)
        rows = np.empty(starts[-1], dtype=np.int32)
        for ends, following in ((halves[1], starts[:-1] + counts[0]), (halves[0], starts[:-1].copy())):
            by_column.list_rows(*ends, self.place, bits, self.present, following, rows)
        self.columns, self.starts, self.rows = (bits, starts, rows), starts, rows
        self.lengths = 2.0 / (np.arange(T + 1) + 2.0)
        self.lengths[0] = 0.0
        self.shrink = np.cumsum(np.log1p(-self.lengths))
        self.margins, self.since, self.due = np.zeros(n), np.zeros(n, dtype=np.int32), np.zeros(n, dtype=np.int32)
        self.heads = np.full(T + 1, -1, dtype=np.int32)
        self.after, self.before = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
        self.noted, self.marks = np.empty(d, dtype=np.int64), np.zeros(d, dtype=np.int32)
        self.w = np.zeros(d)

    def step(self, t, j, radius):
        gain = self.lengths[t] * radius
        self.w = (1.0 - self.lengths[t]) * self.w
        self.w[j] += gain
        rule, dates = (self.y, *self.rules, self.unit), (self.shrink, CURVATURE[self.loss], *self.tolerances)
        state = self.margins, self.since, self.slopes, self.due, self.heads, self.after, self.before
        none = empty_buckets(0, 0)
        given = self.place, self.columns, rule, dates, state, self.scores, none, (self.noted, self.marks)
        return kernels.sparse_step(t, j, gain, kernels.NOTED, *given)

    @property
    def exact_slopes(self):
        margins = self.entries @ self.w + self.offset
        exact = [clipped(slope(m, y, self.loss, 1.0), self.limit) for m, y in zip(margins, self.y, strict=True)]
        return np.where(self.present, exact, 0.0)

    def whole(self, slopes):
        return np.trunc((self.unit * slopes)[:, None] * self.entries).astype(np.int64).sum(axis=0)


# --- columns ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("places", [np.int32, np.int64])
def test_columns_list_their_rows_in_order(kind, places):
    Z = table(kind=kind)
    Z.indices, Z.indptr = Z.indices.astype(places), Z.indptr.astype(places)
    run = Run(Z, targets())
    assert run.canonical
    assert run.present.all()
    theirs = Z.tocsc()
    np.testing.assert_array_equal(run.starts, theirs.indptr)
    np.testing.assert_array_equal(run.rows, theirs.indices)
    np.testing.assert_array_equal(run.scores, run.whole(run.exact_slopes))
    assert np.count_nonzero(run.scores) == D - 1  # but for the empty column


@pytest.mark.parametrize("bits", [1, 2, 4])
def test_runs_of_columns_list_the_rows_of_each(bits):
    Z = table()
    run, mask = Run(Z, targets(), bits=bits), 2**bits - 1
    theirs = Z.tocsc()
    for j in range(D):
        codes = run.rows[run.starts[j >> bits] : run.starts[(j >> bits) + 1]]
        np.testing.assert_array_equal(codes[codes & mask == j & mask] >> bits, theirs[:, [j]].indices)
    plain = Run(Z, targets())
    for t in range(1, T):
        np.testing.assert_array_equal(run.scores, plain.scores)
        assert run.step(t, t % D, 4.0) == plain.step(t, t % D, 4.0)


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
            each.step(t, t % D, 4.0)


def test_a_target_that_is_not_finite_makes_its_row_absent():
    y = targets()
    y[7] = math.nan
    assert np.flatnonzero(~Run(table(), y).present).tolist() == [7]


# --- due dates -------------------------------------------------------------------------------------------------------


@given(
    margin=st.floats(-20, 20),
    t=st.integers(1, T - 1),
    tolerance=st.sampled_from([0.0, 1e-3, 0.05, 1.0]),
    curvature=st.sampled_from([0.25, 1.0, 2.0]),
    step=st.sampled_from([0.02, 0.9, 1.0, 2.0]),
)
def test_a_due_date_is_the_first_at_which_the_bound_is_passed(margin, t, tolerance, curvature, step):
    lengths = step / (np.arange(T + 1) + step) if step >= 1 else np.full(T + 1, step)
    shrink = np.cumsum(np.log1p(-lengths * (np.arange(T + 1) > 0)))
    moved = curvature * abs(margin) * -np.expm1(shrink - shrink[t])
    due = kernels.due_date(margin, t, shrink, curvature, tolerance)
    end = due or T + 1
    assert np.all(moved[t:end] <= tolerance * (1 + 1e-9))
    assert due == 0 or moved[due] >= tolerance * (1 - 1e-9)


@either_loss
@pytest.mark.parametrize("tolerance", [0.0, 0.05, 0.3])
@pytest.mark.parametrize("spare", [0.0, 0.5])
def test_slopes_are_never_off_by_more_than_the_tolerance(loss, tolerance, spare):
    rng = np.random.default_rng(3)
    run = Run(table(), targets(), loss, tolerance=tolerance, spare=spare, limit=3.0)
    off = []
    for t in range(1, T):
        run.step(t, rng.integers(D), rng.choice([-0.5, 0.5]) / CURVATURE[loss])
        off.append(np.abs(run.slopes - run.exact_slopes).max())
        np.testing.assert_array_equal(run.scores, run.whole(run.slopes))
    assert max(off) <= tolerance + 1e-12
    assert tolerance == 0.0 or max(off) > tolerance / 10  # rows are left alone in between


def test_a_look_leaves_slopes_that_are_near_enough():
    """With part of the tolerance to spare fewer scores change; margins are up to date all the same."""
    changed = []
    for spare in (0.0, 0.5):
        rng = np.random.default_rng(8)
        run = Run(table(), targets(), tolerance=0.1, spare=spare)
        changed.append(sum(run.step(t, rng.integers(D), rng.choice([-0.5, 0.5])) for t in range(1, T)))
        kept = np.exp(run.shrink[T - 1] - run.shrink[run.since])
        np.testing.assert_allclose(kept * run.margins, run.entries @ run.w, atol=1e-12)
    assert 0 < 2 * changed[1] < changed[0]


def test_every_list_holds_the_rows_due_then():
    rng = np.random.default_rng(4)
    run = Run(table(), targets())
    for t in range(1, T):
        run.step(t, rng.integers(D), rng.choice([-6.0, 6.0]))
        for date in range(T + 1):
            listed, i, last = [], run.heads[date], -1
            while i >= 0:
                assert run.before[i] == last
                listed.append(int(i))
                last, i = i, run.after[i]
            assert sorted(listed) == (np.flatnonzero(run.due == date).tolist() if date else [])
        assert not np.any((run.due > 0) & (run.due <= t))


def test_a_step_notes_every_score_that_it_changes_once():
    rng = np.random.default_rng(5)
    run = Run(table(), targets())
    for t in range(1, T):
        before = run.scores.copy()
        noted = run.noted[: run.step(t, rng.integers(D), 5.0)].tolist()
        assert len(noted) == len(set(noted))
        assert set(np.flatnonzero(run.scores != before)) <= set(noted)


# --- all rows --------------------------------------------------------------------------------------------------------


@either_loss
def test_both_forms_of_the_gradient_agree(loss):
    run = Run(table(), targets(), loss, tolerance=0.0)
    for t in range(1, 15):
        run.step(t, t % D, 5.0 * (-1) ** t)
    dense = np.empty_like(run.scores)
    margins = run.entries @ run.w
    dense_rows.dense_gradient(run.entries, 1.5, run.present, run.y, *run.rules, run.unit, margins, dense)
    # The margins of the two are rounded differently, which may move a whole number by one.
    np.testing.assert_allclose(dense, run.scores, atol=N, rtol=0)
    assert np.abs(run.scores).max() > 1e4


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_sums_of_dense_rows_are_exact(kind):
    rng = np.random.default_rng(6)
    n, unit = 3_000, float(MOST_UNITS)  # a sum in float64 would round
    Z, y = rng.normal(size=(n, 4)).astype(kind), targets(n)
    Z[5, 2], Z[9] = math.nan, math.inf
    present, scores = np.empty(n, dtype=bool), np.empty(4, dtype=np.int64)
    dense_rows.dense_presence(Z, y, present)
    assert np.flatnonzero(~present).tolist() == [5, 9]
    margins = rng.normal(size=n)
    dense_rows.dense_gradient(Z, 1.0, present, y, 0.0, IS_LOGISTIC, 1.0, unit, margins, scores)
    expected = [0] * 4
    for i in np.flatnonzero(present):
        weight = unit * slope(margins[i], y[i], IS_LOGISTIC, 1.0)
        for j in range(4):
            expected[j] += int(weight * min(max(float(Z[i, j]), -1.0), 1.0))
    assert scores.tolist() == expected


def test_margins_are_those_of_clipped_entries():
    Z, chosen, weights = table(), np.array([0, 2, 7, 11]), np.array([0.5, -1.0, 2.0, 0.1])
    run, out = Run(Z, targets(), bits=2), np.empty(N)
    by_column.sparse_margins(chosen, weights, run.place, run.columns, out)
    expected = run.entries[:, chosen] @ weights
    np.testing.assert_allclose(out, expected, atol=1e-12)
    dense_rows.dense_margins(chosen, weights, Z.toarray(), 1.5, run.present, out)
    np.testing.assert_allclose(out, expected, atol=1e-12)


def test_octaves_that_differ_are_told():
    edges = [s * (h * 2**32 + e) for s in (-1, 1) for h in (0, 1, 2, 5) for e in (-2, -1, 0, 1, 2)]
    for one, other in itertools.product(edges, repeat=2):
        if kernels.whole_octave(one) != kernels.whole_octave(other):
            assert kernels.other_octave(one, other)
    assert not kernels.other_octave(3, 2**32 - 1)
    assert not kernels.other_octave(-1, 1 - 2**32)


# --- the queue -------------------------------------------------------------------------------------------------------


def test_the_queue_finds_the_largest_after_every_change():
    rng = np.random.default_rng(7)
    d = 57
    scores = rng.integers(-100, 100, d)
    heap, place, keys = np.empty(d, dtype=np.int32), np.empty(d, dtype=np.int32), np.empty(d, dtype=np.int64)
    queue.heapify(scores, heap, place, keys)
    for _ in range(500):
        places = rng.integers(0, d, rng.integers(1, 8))
        scores[places] = rng.integers(-100, 100, len(places)) // rng.choice([1, 10, 100])
        queue.lift(places, scores, heap, place, keys)
        found = queue.largest(scores, heap, place, keys)
        assert abs(scores[found]) == np.abs(scores).max()
        np.testing.assert_array_equal(place[heap], np.arange(d))
