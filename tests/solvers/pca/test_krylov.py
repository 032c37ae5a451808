"""Many eigenvectors by blocks of columns, next to those of a whole eigen-decomposition."""

import numpy as np
import pytest
from scipy.linalg import eigh, qr

from tacit.solvers.pca import krylov, spectrum

D, K = 700, 50
SPIKES = np.array([3.0, 1.6, 0.9, 0.9, 0.9, 0.9])  # over the deviation of the noise and the root of D


@pytest.fixture(scope="module")
def noisy():
    """A matrix of six directions, two of which stand above noise of deviation 1; and the six."""
    rng = np.random.default_rng(0)
    normal = rng.normal(size=(D, D))
    directions = qr(rng.normal(size=(D, len(SPIKES))), mode="economic")[0]
    return (normal + normal.T) / np.sqrt(2.0) + np.sqrt(D) * (directions * SPIKES) @ directions.T, directions


def upper(A):
    return A[np.triu_indices(len(A))]


@pytest.mark.parametrize("strip", [512, 700, 33])
def test_products_of_a_packed_triangle(noisy, strip, monkeypatch):
    monkeypatch.setattr(krylov, "_STRIP", strip)
    columns = np.random.default_rng(1).normal(size=(D, 4))
    np.testing.assert_allclose(krylov.times_packed(upper(noisy[0]), D, columns), noisy[0] @ columns, atol=1e-9)


def test_what_stands_above_the_noise_is_exact_and_the_others_are_near_the_upper_end(noisy, monkeypatch):
    A, directions = noisy
    monkeypatch.setattr(spectrum, "FULL_MATRIX", 10)
    monkeypatch.setattr(spectrum, "_of_full_matrix", None)  # not called
    monkeypatch.setattr(spectrum, "_searched", None)
    found = spectrum.spectrum_of_packed(upper(A), D, K, 1.0)
    values, vectors = eigh(A)
    values, vectors = values[::-1], vectors[:, ::-1]
    np.testing.assert_allclose(found.components @ found.components.T, np.eye(K), atol=1e-10)
    np.testing.assert_allclose(np.square(np.sum(found.components[:2] * vectors[:, :2].T, axis=1)), 1.0, atol=1e-3)
    assert np.all(found.reliability[:2] > 0.0)
    assert np.sum(found.reliability > 0.0) == np.sum(values > found.floor)
    reached = np.einsum("ij,jk,ik->i", found.components, A, found.components)
    residuals = np.linalg.norm(found.components @ A - reached[:, None] * found.components, axis=1)
    assert np.all(residuals <= 0.0501 * found.floor)
    assert np.all(reached >= values[:K] - 0.05 * found.floor)
    kept = np.square(found.components @ directions).sum()
    assert kept > 0.95 * np.square(vectors[:, :K].T @ directions).sum()


def test_what_is_not_found_is_left_to_others(noisy):
    assert krylov.largest_by_blocks(upper(noisy[0]), D, K, np.zeros_like) is None
    assert krylov.largest_by_blocks(upper(noisy[0]) * np.inf, D, K, np.ones_like) is None
