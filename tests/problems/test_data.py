import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tacit.problems import clip_rows, row_norm

from .support import repeatable

FLOATS = [np.float64, np.float32]


def matrices(dtype):
    """Matrices of any finite values, denormals and overflowing norms included."""
    values = st.floats(width=np.finfo(dtype).bits, allow_nan=False, allow_infinity=False)
    ordinary = st.floats(-8.0, 8.0, width=np.finfo(dtype).bits)
    return st.tuples(st.integers(1, 5), st.integers(1, 7)).flatmap(
        lambda shape: arrays(dtype, shape, elements=st.one_of(ordinary, values))
    )


any_matrix = st.sampled_from(FLOATS).flatmap(matrices)
norms = st.one_of(st.floats(0.1, 10.0), st.floats(1e-300, 1e300))


def exact_square(row):
    """The squared norm in rational arithmetic."""
    return sum(Fraction(float(value)) ** 2 for value in row)


def bits(array):
    return np.ascontiguousarray(array).tobytes()


@given(any_matrix, norms)
@repeatable
def test_every_row_is_within_the_bound_in_exact_arithmetic(X, norm):
    for row in clip_rows(X, norm):
        assert exact_square(row) <= Fraction(norm) ** 2
        assert row_norm(row) <= norm


@given(any_matrix, norms)
@repeatable
def test_rows_keep_their_direction_and_lose_no_more_than_they_must(X, norm):
    for row, clipped in zip(X, clip_rows(X, norm), strict=True):
        before = row_norm(row)
        if before == math.inf:
            assert not clipped.any()
        elif before <= norm * (1 - 1e-9):
            assert bits(clipped) == bits(row)
        else:
            ulp = float(np.finfo(X.dtype).eps)
            smallest = float(np.finfo(X.dtype).smallest_subnormal)
            expected = row.astype(np.float64) / before * norm
            np.testing.assert_allclose(clipped, expected, rtol=2 * ulp + 2e-9, atol=smallest)


@given(any_matrix, norms)
@repeatable
def test_clipping_rows_twice_changes_nothing(X, norm):
    once = clip_rows(X, norm)
    assert bits(clip_rows(once, norm)) == bits(once)


@given(any_matrix, norms, st.data())
@repeatable
def test_a_row_does_not_depend_on_any_other_row(X, norm, data):
    others = data.draw(arrays(X.dtype, X.shape, elements=st.floats(-(2.0**100), 2.0**100, width=32)))
    i = data.draw(st.integers(0, X.shape[0] - 1))
    others[i] = X[i]
    expected = bits(clip_rows(X[[i]], norm))
    expected_sparse = bits(clip_rows(sp.csr_array(X[[i]]), norm).data)
    for neighbour in (X, others, np.asfortranarray(X)):
        assert bits(clip_rows(neighbour, norm)[i]) == expected
        assert bits(clip_rows(sp.csr_array(neighbour), norm)[[i]].data) == expected_sparse


@given(any_matrix, norms)
@repeatable
def test_sparse_and_dense_rows_agree(X, norm):
    sparse = clip_rows(sp.csr_array(X), norm)
    assert sp.issparse(sparse)
    assert sparse.dtype == X.dtype
    np.testing.assert_array_equal(sparse.toarray(), clip_rows(X, norm))


@given(any_matrix, norms)
@repeatable
def test_inputs_are_left_alone(X, norm):
    sparse = sp.csr_array(X)
    before, sparse_before = bits(X), bits(sparse.data)
    out, sparse_out = clip_rows(X, norm), clip_rows(sparse, norm)
    out[:], sparse_out.data[:], sparse_out.indices[:] = 7.0, 7.0, 0
    assert bits(X) == before
    assert bits(sparse.data) == sparse_before


def test_a_long_row_at_the_bound():
    row = np.full((1, 100_000), 0.1)
    norm = row_norm(row[0])
    clipped = clip_rows(row, norm)
    assert exact_square(clipped[0]) <= Fraction(norm) ** 2
    np.testing.assert_allclose(clipped, row, rtol=1e-9)


@pytest.mark.parametrize("scale", [1e300, 1e-300, 5e-324, 1.0])
def test_norms_of_extreme_rows(scale):
    row = np.array([3.0, -4.0]) * scale
    assert row_norm(row) == pytest.approx(5.0 * scale, rel=1e-15, abs=0)
    np.testing.assert_allclose(clip_rows([row], 1.0)[0], row if scale < 1 else [0.6, -0.8], rtol=2e-9)


@given(arrays(np.float64, st.integers(1, 8), elements=st.floats(-1e300, 1e300)))
@repeatable
def test_row_norm_is_the_norm(row):
    square = exact_square(row)
    computed = Fraction(row_norm(row))
    assert abs(computed**2 - square) <= square * Fraction(1, 2**48) or row_norm(row) < 1e-307


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("dtype", FLOATS)
def test_rows_without_a_finite_norm_become_zero(bad, dtype):
    X = np.array([[bad, 0.0], [0.0, bad], [0.3, 0.4]], dtype=dtype)
    for clipped in (clip_rows(X, 1.0), clip_rows(sp.csr_array(X), 1.0).toarray()):
        np.testing.assert_array_equal(clipped, np.array([[0.0, 0.0], [0.0, 0.0], [0.3, 0.4]], dtype=dtype))


def test_rows_whose_norm_overflows_become_zero():
    assert row_norm(np.full(4, 1.7e308)) == math.inf
    assert not clip_rows(np.full((1, 4), 1.7e308), 1.0).any()


def test_repeated_sparse_entries_count_as_their_sum():
    # One row (2, 0) stored as 1 + 1: its norm is 2, not sqrt(2).
    repeated = sp.csr_array((np.ones(2), np.zeros(2, dtype=int), [0, 2]), shape=(1, 2))
    np.testing.assert_allclose(clip_rows(repeated, 1.0).toarray(), [[1.0, 0.0]], rtol=1e-8)
    assert repeated.nnz == 2


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix])
def test_sparse_kinds_and_empty_rows_are_kept(kind):
    X = kind(np.array([[0.0, 0.0, 0.0], [0.0, 3.0, 4.0]]))
    clipped = clip_rows(X, 1.0)
    assert type(clipped) is kind
    assert clipped.nnz == 2
    np.testing.assert_allclose(clipped.toarray(), [[0.0, 0.0, 0.0], [0.0, 0.6, 0.8]], rtol=1e-8)


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.bool_, np.float16, np.longdouble, ">f8"])
def test_other_numbers_become_float64(dtype):
    X = np.array([[0, 1], [1, 1]], dtype=dtype)
    assert clip_rows(X, 1.0).dtype == np.float64
    assert clip_rows(np.asfortranarray(X), 1.0).flags.c_contiguous
    if dtype not in (np.float16, ">f8"):  # SciPy knows neither
        assert clip_rows(sp.csr_array(X), 1.0).dtype == np.float64


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_empty_data(shape):
    assert clip_rows(np.empty(shape), 1.0).shape == shape
    assert clip_rows(sp.csr_array(shape), 1.0).shape == shape


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_bad_bounds_are_refused(bad):
    with pytest.raises(ValueError, match=r"^norm must be .*got"):
        clip_rows([[1.0]], bad)


def test_a_subnormal_norm_is_refused():
    with pytest.raises(ValueError, match=r"^norm must be at least 2.23e-308, got 1e-310$"):
        clip_rows([[1.0]], 1e-310)


def test_data_of_a_wrong_kind_is_refused_without_being_quoted():
    with pytest.raises(ValueError, match=r"^X must have two dimensions, got shape \(1,\)$"):
        clip_rows([42.0], 1.0)
    with pytest.raises(ValueError, match=r"^X must hold real numbers, got dtype <U2$"):
        clip_rows([["42"]], 1.0)
    with pytest.raises(ValueError, match=r"^X must be dense or CSR with two dimensions, got 2-dimensional csc$"):
        clip_rows(sp.csc_array([[42.0]]), 1.0)
