"""Distances between subspaces against their definitions, and captured variance against eigenvalues."""

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import orthogonal_procrustes, subspace_angles
from sklearn.decomposition import PCA

from tacit.metrics import (
    basis_distance,
    captured_variance_ratio,
    principal_angles,
    projection_distance,
    subspace_distance,
    subspaces,
)


def directions(k, d, seed=0):
    return np.random.default_rng(seed).normal(size=(k, d))


def test_angles_agree_with_scipy():
    a, b = directions(3, 8), directions(5, 8, 1)
    expected = np.sort(subspace_angles(a.T, b.T))
    np.testing.assert_allclose(principal_angles(a, b), expected, atol=1e-12)
    np.testing.assert_allclose(principal_angles(b, a), expected, atol=1e-12)


@pytest.mark.parametrize("angle", [0.0, 1e-7, 1e-3, 0.3, np.pi / 2 - 1e-9, np.pi / 2])
def test_small_and_large_angles_keep_their_digits(angle):
    turned = [[np.cos(angle), np.sin(angle), 0.0]]
    assert principal_angles([[2.0, 0.0, 0.0]], turned)[0] == pytest.approx(angle, rel=1e-6, abs=1e-14)


def test_distance_is_the_norm_of_the_difference_of_projections():
    a, b = np.linalg.qr(directions(3, 8).T)[0], np.linalg.qr(directions(3, 8, 1).T)[0]
    expected = np.linalg.norm(a @ a.T - b @ b.T, 2)
    mixed = directions(3, 3, 2) @ a.T  # another basis of the same space
    assert subspace_distance(mixed, b.T) == pytest.approx(expected, rel=1e-12)
    assert subspace_distance(mixed, a.T) < 1e-12


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("square", [0, 100], ids=["krylov", "matrix"])
def test_captured_variance(kind, square, monkeypatch):
    monkeypatch.setattr(subspaces, "_SQUARE", square)
    X = directions(60, 8) * np.arange(1, 9) + 3.0
    best = PCA(3).fit(X)
    assert captured_variance_ratio(best.components_, kind(X)) == pytest.approx(1.0, abs=1e-9)
    other = PCA(8).fit(X)
    expected = other.explained_variance_[5:].sum() / best.explained_variance_.sum()
    assert captured_variance_ratio(other.components_[5:], kind(X)) == pytest.approx(expected, rel=1e-9)
    assert captured_variance_ratio(np.eye(8), kind(X), center=False) == pytest.approx(1.0, abs=1e-9)
    plain = np.linalg.svd(X)[2][:1]
    assert captured_variance_ratio(plain, kind(X), center=False) == pytest.approx(1.0, abs=1e-9)
    assert captured_variance_ratio(plain, kind(X)) < 0.999


def test_no_variance_is_not_a_number():
    assert np.isnan(captured_variance_ratio([[1.0, 0.0]], np.ones((5, 2))))


def test_bad_input():
    with pytest.raises(ValueError, match="as many columns as X, 3, got 2"):
        captured_variance_ratio(np.eye(2), np.ones((5, 3)))
    with pytest.raises(ValueError, match="first must have linearly independent rows"):
        principal_angles([[1.0, 1.0], [2.0, 2.0]], np.eye(2))
    with pytest.raises(ValueError, match="must lie in one space, got 2 and 3"):
        principal_angles(np.eye(2), np.eye(3))
    with pytest.raises(ValueError, match="one dimension, got 1 and 2"):
        subspace_distance(np.eye(2)[:1], np.eye(2))
    with pytest.raises(ValueError, match="between 1 and 2 rows"):
        principal_angles(np.ones((3, 2)), np.eye(2))
    with pytest.raises(ValueError, match="must not hold NaN"):
        principal_angles([[np.nan, 1.0]], np.eye(2))
    with pytest.raises(ValueError, match="X must not hold NaN"):
        captured_variance_ratio(np.eye(2), sparse.csr_array([[np.nan, 1.0]]))


def test_frobenius_distances_are_those_of_the_definitions():
    a, b = np.linalg.qr(directions(3, 8).T)[0], np.linalg.qr(directions(3, 8, 1).T)[0]
    mixed = directions(3, 3, 2) @ a.T
    assert projection_distance(mixed, b.T) == pytest.approx(np.linalg.norm(a @ a.T - b @ b.T), rel=1e-12)
    assert projection_distance(a.T[:2], b.T) == pytest.approx(np.linalg.norm(a[:, :2] @ a[:, :2].T - b @ b.T))
    assert projection_distance(mixed, a.T) < 1e-12
    assert basis_distance(a.T, b.T) == pytest.approx(np.linalg.norm(a - b) ** 2, rel=1e-12)
    turned = orthogonal_procrustes(b, a)[0]
    assert basis_distance(mixed, b.T, aligned=True) == pytest.approx(np.linalg.norm(a - b @ turned) ** 2, rel=1e-9)


@pytest.mark.parametrize("angle", [1e-9, 1e-4, 0.3, 1.5])
def test_of_one_direction_all_distances_follow_from_the_angle(angle):
    first, second = [[1.0, 0.0]], [[np.cos(angle), np.sin(angle)]]
    assert projection_distance(first, second) == pytest.approx(np.sqrt(2.0) * np.sin(angle), rel=1e-6)
    aligned = basis_distance(first, second, aligned=True)
    assert aligned == pytest.approx(4.0 * np.sin(angle / 2.0) ** 2, rel=1e-6)
    assert aligned <= np.sqrt(2.0) * projection_distance(first, second)  # the lemma of the paper on DP-PCA
    assert basis_distance(first, [[-second[0][0], -second[0][1]]]) == pytest.approx(4.0 - aligned)  # and no such bound


def test_distances_of_bases_want_bases():
    with pytest.raises(ValueError, match="as many rows"):
        basis_distance(np.eye(3)[:1], np.eye(3)[:2])
    with pytest.raises(ValueError, match="second must have orthonormal rows"):
        basis_distance(np.eye(3)[:2], 2.0 * np.eye(3)[:2])
