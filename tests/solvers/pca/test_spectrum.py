"""The theory of noisy eigenvectors, and how they are found in large matrices."""

import math

import numpy as np
import pytest

from tacit.solvers.pca.spectrum import spectrum_of_packed


@pytest.mark.slow
def test_captured_variance_follows_the_spiked_wigner_law():
    # v^T A v = sqrt(w^2 - 2 d s^2) and cos^2 = 1 - d s^2 / (2 theta^2); a mean of 10 runs has deviations of about 1%.
    d, s, theta = 300, 1.0, 22.0
    rng = np.random.default_rng(0)
    upper = np.triu_indices(d)
    captured, cosine, predicted = [], [], []
    for _ in range(10):
        Z = rng.normal(size=(d, d))
        noisy = s * (Z + Z.T) / 2
        noisy[0, 0] += theta
        found = spectrum_of_packed(noisy[upper], d, 1, s / math.sqrt(2.0))
        cosine.append(found.components[0, 0] ** 2)
        captured.append(found.captured[0] / theta)
        predicted.append(found.reliability[0])
    assert np.mean(cosine) == pytest.approx(1.0 - d * s**2 / 2 / theta**2, abs=0.03)
    assert np.mean(captured) == pytest.approx(np.mean(cosine), abs=0.03)
    assert np.mean(predicted) == pytest.approx(np.mean(cosine), abs=0.03)


def test_noise_alone_stays_at_the_floor():
    d = 300
    Z = np.random.default_rng(1).normal(size=(d, d))
    found = spectrum_of_packed(((Z + Z.T) / 2)[np.triu_indices(d)], d, 3, math.sqrt(0.5))
    top = np.linalg.eigvalsh((Z + Z.T) / 2)[-1]
    assert top == pytest.approx(found.floor, rel=0.03)


def test_large_matrices_converge_to_the_same_eigenvectors(monkeypatch):
    d = 60
    Z = np.random.default_rng(2).normal(size=(d, d))
    packed = (Z + Z.T)[np.triu_indices(d)]
    exact = [spectrum_of_packed(packed, d, 4, deviation) for deviation in (0.0, 0.1)]
    monkeypatch.setattr("tacit.solvers.pca.spectrum.FULL_MATRIX", 10)
    found = [spectrum_of_packed(packed, d, 4, deviation) for deviation in (0.0, 0.1)]
    np.testing.assert_allclose(found[0].components, exact[0].components, atol=1e-6)
    np.testing.assert_allclose(found[0].captured, exact[0].captured, rtol=1e-9)
    np.testing.assert_allclose(found[1].components, exact[1].components, atol=0.01)
    np.testing.assert_allclose(found[1].captured, exact[1].captured, rtol=1e-3)
