"""The kernels for text, against NumPy on dense arrays; absent rows; rows by themselves."""

import math

import numpy as np
import pytest

from tacit.kernels import rows as kernels
from tacit.kernels.given import Csr

from .support import csr

UNIT = 2.0**45
either_index = pytest.mark.parametrize("index", [np.int32, np.int64])


def problem(n=40, d=12, seed=0, index=np.int32):
    """Sparse rows, an empty one among them; factors, one of which is zero; weights."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.3)
    Z[3] = 0.0
    factors = rng.random(n)
    factors[5] = 0.0
    return Z, csr(Z, index), factors, rng.normal(size=d)


@either_index
def test_norms_are_those_of_weighted_rows(index):
    Z, rows, _, weights = problem(index=index)
    out = np.empty(len(Z))
    kernels.weighted_norms(rows, weights, out)
    np.testing.assert_allclose(out, np.linalg.norm(Z * weights, axis=1))


@either_index
def test_sums_of_sparse_rows(index):
    Z, rows, factors, _ = problem(index=index)
    values, out = np.random.default_rng(1).normal(size=len(Z)), np.full((2, Z.shape[1]), 7)
    kernels.sparse_sums(rows, factors, values, 0.3, UNIT, out)
    X = Z * factors[:, None]
    np.testing.assert_allclose(out / UNIT, [values @ X, 0.3 * np.abs(X).sum(axis=0)], atol=1e-12)


def test_sums_of_dense_rows():
    Z, _, factors, _ = problem()
    values, out = np.random.default_rng(1).normal(size=len(Z)), np.full((2, Z.shape[1]), 7)
    kernels.dense_sums(Z, factors, values, 0.3, UNIT, out)
    X = Z * factors[:, None]
    np.testing.assert_allclose(out / UNIT, [values @ X, 0.3 * np.square(X).sum(axis=0)], atol=1e-12)


def residuals(rows, factors, positive, weights, clip, bias=0.1, offset=0.7):
    out = np.full(len(weights) + 1, 7)
    kernels.residual_sums(rows, factors, positive, kernels.Residuals(weights, bias, offset, clip), UNIT, out)
    return out[:-1] / UNIT, out[-1] / UNIT


@either_index
@pytest.mark.parametrize("clip", [0.2, 0.6, 1.0])
@pytest.mark.parametrize("size", [1.0, 1e3])
def test_sums_of_residuals(index, clip, size):
    Z, rows, factors, weights = problem(index=index)
    positive = np.random.default_rng(1).random(len(Z)) < 0.4
    out, total = residuals(rows, factors, positive, size * weights, clip)
    X = Z * factors[:, None]
    with np.errstate(over="ignore"):
        likely = 1.0 / (1.0 + np.exp(-(X @ (size * weights) + 0.7)))
    residual = np.clip(positive - likely, -clip, clip) * (factors > 0)
    np.testing.assert_allclose(out, residual @ X, atol=1e-12)
    assert total == pytest.approx(0.1 * residual.sum())


def test_an_absent_row_adds_nothing_whatever_it_holds():
    Z, rows, factors, weights = problem()
    positive = np.ones(len(Z), dtype=bool)
    before = residuals(rows, factors, positive, weights, 1.0)
    rows.data[rows.indptr[5] : rows.indptr[6]] = 1e300
    positive[5] = False
    after = residuals(rows, factors, positive, weights, 1.0)
    np.testing.assert_array_equal(after[0], before[0])
    assert after[1] == before[1]


def test_a_row_that_is_absent_takes_its_own_whole_numbers_along_and_none_is_larger_for_the_steps():
    Z, _, factors, weights = problem(n=60)
    positive, order = np.random.default_rng(1).random(60) < 0.4, np.random.default_rng(2).permutation(60)
    fit = kernels.Residuals(weights, 0.1, 0.7, 0.6)

    def sums(places, unit=8.0):
        residual, both = np.empty(13, dtype=np.int64), np.empty((2, 12), dtype=np.int64)
        kernels.residual_sums(csr(Z[places]), factors[places], positive[places], fit, unit, residual)
        kernels.sparse_sums(csr(Z[places]), factors[places], np.where(positive, 0.6, -0.4)[places], 0.1, unit, both)
        return np.append(residual, both)

    whole = sums(np.arange(60))
    np.testing.assert_array_equal(sums(order), whole)
    for i in (0, 5, 20, 59):
        alone = sums(np.array([i]))
        np.testing.assert_array_equal(whole - sums(np.delete(np.arange(60), i)), alone)
        assert np.all(np.abs(alone) / 8.0 <= np.abs(sums(np.array([i]), 2.0**40)) / 2.0**40 + 2.0**-40)


@pytest.mark.parametrize("value", [1e160, 1e300])
def test_a_margin_that_overflows_leaves_a_residual_within_the_clip(value):
    rows = Csr(np.array([value, -value]), np.array([0, 1]), np.array([0, 2]))
    for weights in ([1e200, 1e200], [1e200, -1e200], [-1e200, 1e200]):
        out, total = residuals(rows, np.array([1.0 / value]), np.array([True]), np.array(weights), 0.6)
        assert np.all(np.abs(out) <= 0.6)
        assert abs(total) <= 0.06


def test_a_row_is_added_by_itself():
    """Its contribution to a sum of one row is the same to the last bit wherever it stands."""
    Z, _, factors, weights = problem()
    for i in (0, 7, 20):
        one = residuals(csr(Z[[i]]), factors[[i]], np.array([True]), weights, 1.0)
        silent = np.zeros_like(factors)
        silent[i] = factors[i]
        among = residuals(csr(Z), silent, np.ones(len(Z), dtype=bool), weights, 1.0)
        np.testing.assert_array_equal(one[0], among[0])
        assert one[1] == among[1]
        assert math.isfinite(one[1])
