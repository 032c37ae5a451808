"""The columns of a fit: bounds on what a row adds, to the last bit; what is stored, and what is left alone."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csc_array, csr_array

from tacit.blocks import Moves
from tacit.kernels import coordinate as kernels
from tacit.kernels.rows import BLOCK, sum_depth
from tacit.privacy.mechanisms import Tape
from tacit.problems import Penalty
from tacit.solvers.coordinate.columns import Columns, Walk
from tests.solvers.support import bounded, either, rows, table, task

FREE = float(np.finfo(np.float32).max)
repeatable = settings(derandomize=True, deadline=None, max_examples=200, database=None)
wild = st.one_of(
    st.floats(-3.0, 3.0), st.just(0.0), st.floats(-1e150, 1e150), st.floats(-1e-140, 1e-140), st.just(1e200)
)
rows_of = st.integers(1, 6).flatmap(lambda d: st.lists(wild, min_size=d, max_size=d))


def columns(Z, sparse=False, fit_intercept=True, loss="squared", targets=None):
    Z = np.atleast_2d(Z)
    n, d = Z.shape
    targets = np.zeros(n) if targets is None else targets
    return Columns(task(loss, n, d, sparse, fit_intercept), bounded(csr_array(Z) if sparse else Z, targets))


def exact(values):
    return [Fraction(float(value)) for value in values]


# --- what a row adds --------------------------------------------------------------------------------------------------


@given(rows_of, st.floats(1e-6, 1e6), st.booleans(), st.sampled_from(["squared", "logistic"]), st.data())
@repeatable
def test_a_derivative_at_its_limit_has_a_gradient_within_the_clip(row, clip, sparse, loss, data):
    """In the norm asked for, over the metric; in exact arithmetic. The intercept has a limit of its own."""
    d = len(row)
    metric = np.array(data.draw(st.lists(st.floats(1e-6, 1e6), min_size=d + 1, max_size=d + 1)))
    one = columns(row, sparse, loss=loss, targets=np.ones(1))
    single = loss == "logistic"
    for norm in (2.0, math.inf):
        limit, intercept = one.limits(clip, metric, 0.7, norm)[:, 0]
        assert limit >= 0.0
        sizes = [abs(Fraction(float(limit)) * z) / Fraction(float(s)) for z, s in zip(exact(row), metric, strict=False)]
        size = max(sizes) ** 2 if math.isinf(norm) else sum(part**2 for part in sizes)
        assert size <= Fraction(clip) ** 2
        finite = max(abs(value) for value in row) / metric[:d].min() < 1e150
        if finite and float(size) > 0.0 and 1e-37 < limit < FREE:  # and is used up
            assert float(size) >= clip**2 * (1 - (4e-7 if single else 1e-8))
        below = np.nextafter(np.float32(0.7), np.float32(0.0)) if np.float32(0.7) > 0.7 else np.float32(0.7)
        full = float(below) if single else 0.7
        assert intercept in ({0.0, full} if limit == 0.0 else {full})


@given(rows_of, st.floats(0.5, 20.0), st.floats(0.5, 20.0), st.booleans())
@repeatable
def test_the_squares_of_a_row_stay_within_their_bounds(row, largest, total, sparse):
    found = exact(columns(row, sparse).squares(largest, total))
    assert all(0 <= value <= Fraction(largest) for value in found)
    assert sum(found) <= Fraction(total)
    assert sum(value**2 for value in found) <= Fraction(largest) * Fraction(total)


@given(st.integers(1, 6), st.floats(0.5, 20.0), st.floats(0.5, 20.0), st.data())
@repeatable
def test_two_rows_have_squares_at_most_sqrt_two_bounds_apart(d, largest, total, data):
    one, other = (columns(data.draw(st.lists(wild, min_size=d, max_size=d))).squares(largest, total) for _ in range(2))
    assert sum((a - b) ** 2 for a, b in zip(exact(one), exact(other), strict=True)) <= 2 * Fraction(largest) * Fraction(
        total
    )


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_rows_on_the_bounds_come_close_to_them_and_no_further(kind):
    """As many entries at the largest square as the sum allows, or a little more than that, in either precision."""
    rng = np.random.default_rng(0)
    for largest, total in ((9.0, 9.0), (9.0, 36.0), (4.0, 8.0)):
        closest = 0.0
        for _ in range(100):
            row = np.zeros((1, 8), dtype=kind)
            row[0, : round(total / largest)] = math.sqrt(largest) * (1 + rng.choice([-1e-7, 0, 1e-7, 1e-6]))
            found = exact(columns(row).squares(largest, total))
            size = sum(value**2 for value in found)
            assert size <= Fraction(largest) * Fraction(total)
            closest = max(closest, float(size) / (largest * total))
        assert closest > 1 - 1e-6


def test_rows_without_a_norm_are_silenced():
    Z = np.ones((4, 3))
    Z[1] = 1e200
    one = columns(Z)
    limits = one.limits(1.0, np.ones(4), 5.0)
    assert limits[:, 1].tolist() == [0.0, 0.0]
    assert limits[1].tolist() == [5.0, 0.0, 5.0, 5.0]
    assert one.limits(math.inf, np.ones(4), math.inf)[0].tolist() == [FREE, 0.0, FREE, FREE]
    np.testing.assert_allclose(one.squares(9.0, 9.0), 3.0, rtol=1e-8)
    one.move_to(np.array([1.0, -1.0, 1.0, 0.0]))
    assert np.all(np.isfinite(one.derivatives(limits)))


def test_a_row_of_zeros_has_no_limit_but_that_of_the_intercept():
    assert columns(np.zeros((1, 3))).limits(1.0, np.ones(4), 0.5)[:, 0].tolist() == [FREE, 0.5]
    short = columns(np.full((1, 3), 6e-195))  # whose squares vanish
    assert short.limits(1.0, np.ones(4), 0.5)[0, 0] * 6e-195 <= 1.0


# --- sums -------------------------------------------------------------------------------------------------------------


@either.intercept
@either.table
@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge"])
def test_derivatives_are_sums_of_clipped_gradients(loss, fit_intercept, sparse):
    n, d = BLOCK + 200, 5
    data = rows(loss, n, d, sparse, seed=1)
    wide = np.hstack([table(data), np.full((n, 1), float(fit_intercept))])
    rng = np.random.default_rng(2)
    w, metric = rng.normal(size=d + 1), rng.uniform(0.5, 2.0, size=d + 1)
    one = Columns(task(loss, n, d, sparse, fit_intercept), data)
    w[d] *= fit_intercept
    one.move_to(w)
    kept = wide @ w - data.targets * (loss == "squared")
    np.testing.assert_allclose(one.margins, kept, rtol=1e-12, atol=1e-12)
    clip = 0.8
    limits = one.limits(clip, metric, 0.3)
    lengths = np.maximum(np.linalg.norm(table(data) / metric[:d], axis=1), 1e-100)
    precision = np.float32 if loss == "logistic" else np.float64
    assert limits.dtype == precision
    expected = [np.minimum(clip / lengths, FREE), np.full(n, 0.3)]
    np.testing.assert_allclose(limits, expected, rtol=max(1e-8, 2 * np.finfo(precision).eps))
    assert np.all(limits <= np.array([clip / lengths, np.full(n, 0.3)]))
    y, m = data.targets, wide @ w
    slopes = {
        "squared": m - y,
        "logistic": -y / (1 + np.exp(y * m)),
        "squared_hinge": -2 * y * np.maximum(1 - y * m, 0),
    }[loss]
    found = one.derivatives(limits)
    np.testing.assert_allclose(found[:d], table(data).T @ np.clip(slopes, -limits[0], limits[0]), rtol=1e-9, atol=1e-9)
    if fit_intercept:
        assert found[d] == pytest.approx(np.clip(slopes, -limits[1], limits[1]).sum(), rel=1e-9)
    assert Moves.of(task(loss, n, d, sparse)).depth == (n if sparse else sum_depth(n))


@either.table
def test_moving_one_weight_is_moving_to_the_new_weights(sparse):
    data = rows("squared", 60, 4, sparse, seed=3)
    one, w = Columns(task("squared", 60, 4, sparse), data), np.array([0.3, -1.0, 0.0, 2.0, 0.5])
    one.move_to(w)
    for j in range(5):
        one.move(j, 0.25)
        w[j] += 0.25
    other = Columns(task("squared", 60, 4, sparse), data)
    other.move_to(w)
    np.testing.assert_allclose(one.margins, other.margins, rtol=1e-12, atol=1e-13)


@either.table
def test_a_walk_may_be_taken_in_parts(sparse):
    n, d = 50, 4
    data = rows("squared", n, d, sparse, seed=4)
    rules = kernels.rules(*np.tile([[math.inf, 1.0, 0.7]], (d + 1, 1)).T, Penalty(0.01, 0.1, -1.0, 1.0), n)
    order, noise = np.array([4, 2, 0, 1, 3]), np.array([3, -20, 7, 11, 0])
    ends = []
    for parts in ([5], [1] * 5, [2, 3]):
        one, w = Columns(task("squared", n, d, sparse), data), np.zeros(d + 1)
        walk = Walk(one, one.limits(0.9, np.ones(d + 1), 0.9), rules, order, w)
        pieces = np.split(noise, np.cumsum(parts)[:-1])
        released = np.concatenate([walk(Tape(piece, 1e-2, 100.0)) for piece in pieces])
        ends.append(np.concatenate([released, walk.changes, w, one.margins]))
    for end in ends[1:]:
        np.testing.assert_array_equal(end, ends[0])


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge"])
def test_no_row_adds_more_to_a_pass_than_its_limit_allows(loss, kind):
    """To the last bit, for rows at their limit: a product in single precision would round some of them up."""
    d, step = 7, 2.0**-60
    rng = np.random.default_rng(6)
    rules = kernels.rules(*np.tile([[math.inf, 1.0, 0.0]], (d + 1, 1)).T, Penalty(), 1)
    closest = 0.0
    for _ in range(100):
        Z = rng.normal(size=(1, d)).astype(kind)
        one = Columns(task(loss, 1, d), bounded(Z, np.ones(1)))
        limits = one.limits(rng.uniform(0.1, 0.4), rng.uniform(0.5, 2.0, size=d + 1), 0.3)
        w = np.append(np.zeros(d), -40.0)
        one.move_to(w)
        released = Walk(one, limits, rules, np.arange(d + 1), w)(Tape(np.zeros(d + 1, dtype=np.int64), step, 100.0))
        most = [Fraction(float(limits[0, 0])) * abs(z) for z in exact(Z[0])] + [Fraction(float(limits[1, 0]))]
        for found, allowed in zip(exact(released), most, strict=True):
            assert abs(found) <= allowed * (1 + Fraction(1, 2**52)) + Fraction(step)
            closest = max(closest, float(abs(found) / allowed))
    assert closest > 1 - 1e-15


# --- storage ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_columns_in_order_are_not_copied_and_rows_in_order_once(kind):
    Z = np.random.default_rng(0).normal(size=(30, 4)).astype(kind)
    by_columns = columns(np.asfortranarray(Z))._table
    assert by_columns.dtype == kind
    assert by_columns.flags.c_contiguous
    fortran = np.asfortranarray(Z)
    assert np.shares_memory(columns(fortran)._table, fortran)
    copied = columns(Z)._table
    assert copied.dtype == kind
    assert copied.flags.c_contiguous
    np.testing.assert_array_equal(copied.T, Z)


def test_a_table_of_compressed_columns_keeps_its_numbers_where_they_are():
    Z = csc_array(np.eye(5))
    one = Columns(task("squared", 5, 5, True), bounded(Z, np.zeros(5)))
    assert np.shares_memory(one._table.data, Z.data)


@pytest.mark.parametrize("store", [np.ascontiguousarray, np.asfortranarray, csr_array, csc_array])
def test_rows_are_never_written_to(store):
    rng = np.random.default_rng(1)
    Z, targets = store(np.round(rng.normal(size=(20, 4)), 2)), rng.normal(size=20)
    held = [targets, Z] if isinstance(Z, np.ndarray) else [targets, Z.data, Z.indices, Z.indptr]
    before = [array.copy() for array in held]
    one = Columns(task("squared", 20, 4, not isinstance(Z, np.ndarray)), bounded(Z, targets))
    w, metric = np.zeros(5), np.ones(5)
    limits = one.limits(1.0, metric, 1.0)
    one.squares(9.0, 9.0)
    one.derivatives(limits)
    one.move(0, 1.0)
    one.move_to(w)
    rules = kernels.rules(*np.tile([[0.5, 1.0, 0.7]], (5, 1)).T, Penalty(0.0, 0.1, -1.0, 1.0), len(one.margins))
    Walk(one, limits, rules, np.arange(5), w)(Tape(np.arange(5), 0.1, 100.0))
    assert np.all(w != 0.0)
    for array, copy in zip(held, before, strict=True):
        np.testing.assert_array_equal(array, copy)
