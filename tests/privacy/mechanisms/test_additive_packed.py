"""Noise on a packed triangle is the noise of the whole matrix, draw for draw, in place."""

import math

import numpy as np
import pytest
from scipy import stats

from tacit.privacy import Budget, Gate, NoiseSource, Plan, Release
from tacit.privacy.mechanisms import GaussianMatrix, Sensitivity, additive
from tests.units import ROWS

ALARM = 1e-6


def open_gate(multiplier=1.0, adjacency="add-remove", seed=0):
    fixed = {"share": 1.0} if multiplier == 0 else {"multiplier": multiplier}
    plan = Plan(Release("r", "gaussian", **fixed))
    return Gate(plan.calibrate(Budget(math.inf, 1e-6, adjacency), ROWS, "test"), NoiseSource(seed))


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_same_as_the_full_matrix(adjacency):
    d = 12
    full = np.random.default_rng(0).normal(size=(d, d))
    full += full.T
    upper = np.triu_indices(d)
    packed = full[upper].copy()
    sensitivity = Sensitivity.outer_product(1.5)
    expected = open_gate(2.0, adjacency).release("r", GaussianMatrix(sensitivity, bound=9.0), full)[upper]
    out = open_gate(2.0, adjacency).release("r", GaussianMatrix(sensitivity, 9.0), packed, d)
    assert out is packed
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("isotropic", [True, False])
def test_how_many_rows_get_their_noise_at_a_time_changes_nothing(isotropic, monkeypatch):
    d, made = 12, []
    value = np.random.default_rng(0).normal(size=d * (d + 1) // 2)
    for run in (1, 12, 13, 40, 10**6):  # single rows, of which the first is longer than the run, up to all of them
        monkeypatch.setattr(additive, "_RUN", run)
        made.append(
            open_gate(2.0).release("r", GaussianMatrix(Sensitivity.vector(1.0), 9.0, isotropic), value.copy(), d)
        )
    for other in made[1:]:
        np.testing.assert_array_equal(other, made[0])
    assert np.all(made[0] != value)


@pytest.mark.parametrize(("isotropic", "off"), [(True, math.sqrt(0.5)), (False, 1.0)])
def test_variances(isotropic, off):
    # GOE: s^2 on the diagonal and s^2 / 2 off it; the plain triangle has s^2 everywhere. A fresh seed fails with 4e-6.
    d = 400
    packed = np.zeros(d * (d + 1) // 2)
    open_gate(2.0, seed=1).release("r", GaussianMatrix(Sensitivity.vector(3.0), 1.0, isotropic), packed, d)
    rows, columns = np.triu_indices(d)
    for values, scale in ((packed[rows == columns], 6.0), (packed[rows != columns], 6.0 * off)):
        place = stats.chi2(len(values)).cdf(np.sum((values / scale) ** 2))
        assert ALARM < place < 1 - ALARM


def test_without_noise_the_matrix_is_as_it_was():
    packed = np.arange(6.0)
    out = open_gate(0).release("r", GaussianMatrix(Sensitivity.vector(1.0), 1.0), packed, 3)
    np.testing.assert_array_equal(out, np.arange(6.0))


def test_shape_is_checked_before_anything_is_spent():
    gate = open_gate()
    with pytest.raises(ValueError, match="3 columns has 6 floats"):
        gate.release("r", GaussianMatrix(Sensitivity.vector(1.0), 1.0), np.zeros(5), 3)
    assert gate.left("r") == 1
