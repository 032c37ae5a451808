"""Gaussian and Laplace releases: the right noise, in the right shape, on the right sensitivity.

Seeds are fixed; a fresh seed would fail a statistical test with probability below 1e-6 (`ALARM`).
"""

import math

import numpy as np
import pytest
from scipy import stats

from tacit.privacy import Budget, Gate, NoiseSource, Plan, Release
from tacit.privacy.mechanisms import GaussianMatrix, GaussianVector, LaplaceVector, Sensitivity
from tacit.privacy.noise.grid import Grid
from tests.units import ROWS

ALARM = 1e-6
ADJACENCIES = ("add-remove", "replace-one")


def open_gate(kind, multiplier=1.0, adjacency="add-remove", count=1, seed=0):
    """A gate whose releases have exactly this multiplier (0: the non-private limit)."""
    fixed = {"share": 1.0} if multiplier == 0 else {"multiplier": multiplier}
    plan = Plan(Release("r", kind, count=count, **fixed))
    return Gate(plan.calibrate(Budget(math.inf, 1e-6, adjacency), ROWS, "test"), NoiseSource(seed))


def has_scale(noise, scale):
    """Chi-square: whether centred Gaussian noise has this standard deviation."""
    p = stats.chi2(noise.size).cdf(np.sum((noise / scale) ** 2))
    return ALARM / 2 < p < 1 - ALARM / 2


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_gaussian_noise_level(adjacency):
    value = np.linspace(-5, 5, 40_000)
    gate = open_gate("gaussian", 2.5, adjacency, seed=1)
    noise = gate.release("r", GaussianVector(Sensitivity.vector(3.0)), value) - value
    scale = 2.5 * (3.0 if adjacency == "add-remove" else 6.0)
    assert has_scale(noise, scale)
    assert not has_scale(noise, 1.05 * scale)
    assert stats.kstest(noise / scale, "norm").pvalue > ALARM


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_laplace_noise_level(adjacency):
    value = np.linspace(-5, 5, 40_000)
    gate = open_gate("laplace", 2.5, adjacency, seed=2)
    noise = gate.release("r", LaplaceVector(Sensitivity.vector(3.0)), value) - value
    scale = 2.5 * (3.0 if adjacency == "add-remove" else 6.0)
    assert stats.kstest(noise / scale, "laplace").pvalue > ALARM
    assert stats.kstest(noise / (1.2 * scale), "laplace").pvalue < ALARM


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_matrix_noise_is_symmetric_and_isotropic(adjacency):
    d, rng = 250, np.random.default_rng(0)
    value = rng.normal(size=(d, d))
    value += value.T
    gate = open_gate("gaussian", 2.0, adjacency, seed=3)
    out = gate.release("r", GaussianMatrix(Sensitivity.outer_product(1.5)), value)
    scale = 2.0 * 1.5**2 * (1.0 if adjacency == "add-remove" else math.sqrt(2))
    np.testing.assert_array_equal(out, out.T)
    noise = out - value
    above = noise[np.triu_indices(d, 1)]
    assert has_scale(np.diag(noise), scale)
    assert has_scale(above, scale / math.sqrt(2))
    assert not has_scale(above, scale)
    assert stats.kstest(above * math.sqrt(2) / scale, "norm").pvalue > ALARM
    # Isotropic: the Frobenius norm has d (d + 1) / 2 degrees of freedom of standard deviation `scale`.
    p = stats.chi2(d * (d + 1) / 2).cdf(np.sum(noise**2) / scale**2)
    assert ALARM / 2 < p < 1 - ALARM / 2


def test_only_the_upper_triangle_of_a_matrix_is_read():
    value = np.array([[1.0, 2.0], [99.0, 3.0]])
    mechanism = GaussianMatrix(Sensitivity.outer_product(1.0))
    expected = np.array([[1.0, 2.0], [2.0, 3.0]])
    np.testing.assert_array_equal(open_gate("gaussian", 0).release("r", mechanism, value), expected)
    for value_again in (value, expected):
        noisy = open_gate("gaussian", 1.0).release("r", mechanism, value_again)
        np.testing.assert_array_equal(noisy, open_gate("gaussian", 1.0).release("r", mechanism, value))


@pytest.mark.parametrize("mechanism", [GaussianVector, LaplaceVector])
@pytest.mark.parametrize("value", [3.0, [1.0, 2.0], [[1.0, 2.0, 3.0]], np.zeros((2, 0)), np.zeros((2, 3, 4))])
def test_shapes_are_kept(mechanism, value):
    released = open_gate(mechanism.kind).release("r", mechanism(Sensitivity.vector(1.0)), value)
    assert released.shape == np.shape(value)
    assert released.dtype == np.float64


@pytest.mark.parametrize("mechanism", [GaussianVector, LaplaceVector, GaussianMatrix])
def test_the_non_private_limit_is_exact(mechanism):
    value = np.array([[0.1, -2.0], [-2.0, 1e300]])
    released = open_gate(mechanism.kind, 0).release("r", mechanism(Sensitivity.vector(1.0)), value)
    np.testing.assert_array_equal(released, value)
    released[0, 0] = 7.0
    assert value[0, 0] == 0.1  # a copy


@pytest.mark.parametrize("mechanism", [GaussianVector, LaplaceVector, GaussianMatrix])
def test_what_no_row_can_change_needs_no_noise(mechanism):
    value = np.eye(2)
    released = open_gate(mechanism.kind).release("r", mechanism(Sensitivity(0.0, 0.0)), value)
    np.testing.assert_array_equal(released, value)
    # Zero for add-remove only: the other adjacency still gets its noise.
    gate = open_gate(mechanism.kind, adjacency="replace-one")
    assert np.all(gate.release("r", mechanism(Sensitivity(0.0, 1.0)), value) != value)


@pytest.mark.parametrize("mechanism", [GaussianVector, LaplaceVector, GaussianMatrix])
def test_values_are_clipped_to_a_public_bound(mechanism):
    value = np.array([[1e30, -1e30], [-1e30, -np.inf]])
    noise_free = np.array([[5.0, -5.0], [-5.0, -5.0]])
    mechanism = mechanism(Sensitivity.vector(1e-3), bound=5.0)
    released = open_gate(mechanism.kind).release("r", mechanism, value)
    if isinstance(mechanism, GaussianMatrix):  # clipped in coordinates that keep the Frobenius norm
        noise_free[0, 0], noise_free[1, 1] = 5 * math.sqrt(2), -5 * math.sqrt(2)
    assert np.abs(released - noise_free).max() < 0.05


@pytest.mark.parametrize("mechanism", [GaussianVector, LaplaceVector, GaussianMatrix])
def test_without_a_bound_huge_values_raise(mechanism):
    with pytest.raises(OverflowError, match=r"beyond 2\^22 times the noise .* declare a public `bound`"):
        open_gate(mechanism.kind).release("r", mechanism(Sensitivity.vector(1.0)), np.full((2, 2), 1e9))


@pytest.mark.parametrize("mechanism", [GaussianVector, LaplaceVector, GaussianMatrix])
def test_not_a_number_does_not_raise(mechanism):
    # An error would tell that a row holds one; it counts as zero.
    mechanism = mechanism(Sensitivity.vector(1e-3), bound=5.0)
    released = open_gate(mechanism.kind).release("r", mechanism, np.full((2, 2), np.nan))
    assert np.abs(released).max() < 0.05


@pytest.mark.parametrize("bound", [0.0, -1.0, math.inf, math.nan])
def test_a_bound_must_be_a_positive_number(bound):
    for mechanism in (GaussianVector, LaplaceVector, GaussianMatrix):
        with pytest.raises(ValueError, match="bound must be"):
            open_gate(mechanism.kind).release("r", mechanism(Sensitivity.vector(1.0), bound=bound), np.eye(2))


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 2, 2), ()])
def test_a_matrix_must_be_square(shape):
    gate = open_gate("gaussian")
    with pytest.raises(ValueError, match="a symmetric release needs a square matrix, got shape"):
        gate.release("r", GaussianMatrix(Sensitivity.vector(1.0)), np.zeros(shape))
    assert gate.left("r") == 1


def test_fresh_noise_for_every_release():
    gate = open_gate("gaussian", count=50)
    mechanism = GaussianVector(Sensitivity.vector(1.0))
    assert len({float(gate.release("r", mechanism, 1.0)) for _ in range(50)}) == 50


def test_outputs_lie_on_a_grid_that_the_data_does_not_choose():
    mechanism = GaussianVector(Sensitivity.vector(1.0), bound=10.0)
    step = Grid.for_noise(1.0, 1.0, 1, 10.0, power=0.5).step
    for value in (0.0, 0.1, 1 / 3):
        for seed in range(20):
            units = open_gate("gaussian", seed=seed).release("r", mechanism, value).item() / step
            assert abs(units - round(units)) < 1e-3
