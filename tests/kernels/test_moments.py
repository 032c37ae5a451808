"""Kernels of second moments against plain NumPy, and bounds on what one row adds."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from tacit.blocks import Table
from tacit.kernels import moments
from tests.solvers.pca.support import centred

NUMBERS = st.floats(-1e6, 1e6)


def bounded(X, mean, radius):
    Z = np.asarray(X, dtype=float) - mean
    norms = np.linalg.norm(Z, axis=1)
    return Z * np.minimum(1.0, radius / np.maximum(norms, 1e-300))[:, None]


def table(n=70, d=9, seed=0):
    rng = np.random.default_rng(seed)
    return np.where(rng.random((n, d)) < 0.4, rng.normal(size=(n, d)), 0.0)


def both(X, mean, radius):
    for kind in (np.asarray, sparse.csr_array):
        yield centred(kind(X), mean, radius)


@pytest.mark.parametrize("shift", [0.0, 0.7])
def test_sums_are_those_of_bounded_rows(shift):
    X = table()
    mean = np.linspace(-1, 1, 9) * shift
    Z = bounded(X, mean, 1.3)
    V = np.linalg.qr(np.random.default_rng(1).normal(size=(9, 3)))[0]
    places = np.array([3, 7, 50, 69])
    for rows in both(X, mean, 1.3):
        close = {"rtol": 1e-5, "atol": 1e-5}
        np.testing.assert_allclose(rows.packed_moments(), (Z.T @ Z)[np.triu_indices(9)], **close)
        np.testing.assert_allclose(rows.products(V), Z.T @ Z @ V, **close)
        np.testing.assert_allclose(rows.products(V, places=places), Z[places].T @ Z[places] @ V, **close)
        np.testing.assert_allclose(rows.inner(V), V.T @ Z.T @ Z @ V, **close)
        np.testing.assert_allclose(rows.squares(), np.sum(Z**2), **close)
        lengths = np.linalg.norm(Z, axis=1) * np.linalg.norm(Z @ V, axis=1)
        edges = np.linspace(0.0, 1.3**2, 6)
        np.testing.assert_array_equal(rows.length_counts(V, edges / 1.3**2), np.histogram(lengths, edges)[0])
        clip = float(np.median(lengths))
        factors = np.minimum(1.0, clip / np.maximum(lengths, 1e-300))
        np.testing.assert_allclose(rows.products(V, clip), (Z * factors[:, None]).T @ Z @ V, **close)


def test_strips_give_the_whole_matrix(monkeypatch):
    X = table(d=11)
    expected = centred(X, np.zeros(11), 1.0).packed_moments()
    monkeypatch.setattr("tacit.blocks.centred._WHOLE", 3)
    monkeypatch.setattr("tacit.blocks.centred._STRIP", 4)
    np.testing.assert_array_equal(centred(X, np.zeros(11), 1.0).packed_moments(), expected)


def test_unpacking_and_the_diagonal():
    full = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 5.0], [3.0, 5.0, 6.0]])
    packed, out, diagonal = full[np.triu_indices(3)].copy(), np.empty((3, 3)), np.empty(3)
    moments.unpacked(packed, 3, out)
    moments.packed_diagonal(packed, 3, diagonal)
    np.testing.assert_array_equal(out, full)
    np.testing.assert_array_equal(diagonal, [1.0, 4.0, 6.0])


@given(arrays(float, (2, 4), elements=NUMBERS), arrays(float, 4, elements=NUMBERS), st.floats(1e-3, 1e3))
@settings(max_examples=60, deadline=None)
def test_no_row_exceeds_the_sensitivity(pair, mean, radius):
    # One row against none, and one against another: the matrix, a product, a clipped product and the rest.
    V = np.linalg.qr(np.arange(12.0).reshape(4, 3) ** 2 + np.eye(4)[:, :3])[0][:, :2]
    clip = 0.3 * radius**2
    alone = [[centred(kind(pair[i : i + 1]), mean, radius) for i in range(2)] for kind in KINDS]
    for first, second in alone:
        sums = [
            (lambda r: _full(r.packed_moments()), first.moment_sensitivity()),
            (lambda r: r.products(V), first.product_sensitivity(2)),
            (lambda r: r.products(V, clip), first.product_sensitivity(2, clip)),
            (lambda r: r.products(0.1 * V, 0.1 * radius**2), first.product_sensitivity(2, 0.1 * radius**2, 0.1)),
            (lambda r: r.inner(V), first.inner_sensitivity()),
            (lambda r: np.array([r.squares()]), first.square_sensitivity()),
        ]
        for value, sensitivity in sums:
            assert np.linalg.norm(value(first)) <= sensitivity.add_remove
            assert np.linalg.norm(value(first) - value(second)) <= sensitivity.replace_one * (1 + 1e-12)


KINDS = (np.asarray, sparse.csr_array)


def _full(packed):
    out = np.empty((4, 4))
    moments.unpacked(packed, 4, out)
    return out


def test_the_sensitivity_is_attained():
    rows = [centred(np.eye(4)[i : i + 1] * 5.0, np.zeros(4), 2.0) for i in range(2)]
    first, second = (_full(r.packed_moments()) for r in rows)
    assert np.linalg.norm(first) == pytest.approx(4.0, rel=2e-6)
    assert np.linalg.norm(first - second) == pytest.approx(4.0 * math.sqrt(2.0), rel=2e-6)
    assert rows[0].moment_sensitivity().replace_one == pytest.approx(4.0 * math.sqrt(2.0), rel=1e-8)


@pytest.mark.parametrize("kind", KINDS, ids=["dense", "sparse"])
def test_a_row_that_overflows_adds_nothing(kind):
    X = np.array([[1.0, 2.0], [1e200, 1e308], [np.inf, 0.0], [np.nan, 1.0]])
    rows = centred(kind(X), np.array([0.5, 0.0]), 10.0)
    found = rows.packed_moments()
    assert np.all(np.isfinite(found))
    assert np.all(np.isfinite(rows.products(np.eye(2))))


@pytest.mark.parametrize("kind", KINDS, ids=["dense", "sparse"])
def test_no_row_is_too_long_for_its_factor(kind):
    # 2.6e-324 would round to the smallest number there is, 4.9e-324, and the row to almost twice the radius.
    for size in (1e307, 3.8e307, 1e200):
        rows = centred(kind(np.array([[size, 0.0], [0.0, 1e-16]])), np.zeros(2), 1e-16)
        assert rows.packed_moments()[0] <= rows.moment_sensitivity().add_remove
        assert np.abs(rows.products(np.eye(2))[0, 0]) <= rows.product_sensitivity(2).add_remove
        assert rows.packed_moments()[2] > 0.9e-32


def test_sparse_distances_are_never_too_small():
    rng = np.random.default_rng(0)
    mean = rng.normal(size=9) * 1e8
    X = np.tile(mean, (50, 1)) + rng.normal(size=(50, 9)) * 1e-6
    exact = np.array([math.sqrt(math.fsum((x - m) ** 2 for x, m in zip(row, mean, strict=True))) for row in X])
    assert np.all(Table.of(sparse.csr_array(X)).distances(mean) >= exact)


@pytest.mark.parametrize("kind", KINDS, ids=["dense", "sparse"])
def test_float32_and_mapped_rows(kind, tmp_path):
    X = table().astype(np.float32)
    if kind is np.asarray:
        mapped = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", np.float32, X.shape)
        mapped[:] = X
        given_rows = np.load(tmp_path / "X.npy", mmap_mode="r")
    else:
        given_rows = kind(X)
    exact = centred(kind(X.astype(np.float64)), np.zeros(9), 1.0).packed_moments()
    found = centred(given_rows, np.zeros(9), 1.0).packed_moments()
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, exact, rtol=1e-12, atol=1e-12)
