"""The private scale, mean and radius of a PCA."""

import math

import numpy as np
import pytest
from scipy import sparse

from tacit.bounding import Centring
from tacit.privacy import Budget, Gate, NoiseSource, Plan, Release
from tests.solvers.pca.support import table_of, task_of


def bounded(X, epsilon=math.inf, seed=0, **asked):
    n, d = X.shape
    task = task_of(n, d, epsilon=epsilon, sparse=sparse.issparse(X), **asked)
    bounding = Centring(task)
    plan = Plan(*bounding.releases, Release("rest", "gaussian", share=bounding.left))
    with Gate(plan.calibrate(task.budget, task.unit, "test"), NoiseSource(seed)) as gate:
        rows = bounding.run(table_of(X), gate)
        gate.skip("rest")
    return rows


def rows_at(centre, spread, n=5000, d=3, seed=0):
    return np.asarray(centre) + spread * np.random.default_rng(seed).normal(size=(n, d))


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({}, ["row norm", "mean", "radius"]),
        ({"row_norm": 1.0}, ["mean", "radius"]),
        ({"center_norm": 1.0}, ["row norm", "mean"]),
        ({"row_norm": 1.0, "center_norm": 1.0}, ["mean"]),
        ({"center": False}, ["row norm", "radius"]),
        ({"center": False, "row_norm": 1.0}, []),
    ],
)
def test_only_what_is_not_declared_is_released(options, names):
    bounding = Centring(task_of(100, 3, **options))
    assert [release.name for release in bounding.releases] == names
    assert bounding.left == 1.0 - sum(release.share for release in bounding.releases)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_without_noise_nothing_is_clipped(kind, scale):
    X = rows_at([5.0, -3.0, 0.0], 1.0) * scale
    rows = bounded(kind(X))
    assert not rows.units.lost
    np.testing.assert_allclose(rows.units.mean, X.mean(axis=0), atol=1e-9 * scale)
    farthest = np.linalg.norm(X - rows.units.mean, axis=1).max()
    assert farthest <= rows.radius <= 1.5 * farthest


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_finds_the_scale_the_mean_and_the_radius(scale, adjacency):
    X = rows_at([5.0, -3.0, 0.0], 1.0, n=20_000) * scale
    rows = bounded(X, 2.0, adjacency=adjacency)
    assert not rows.units.lost
    assert np.linalg.norm(rows.units.mean - X.mean(axis=0)) < 0.1 * scale
    norms = np.linalg.norm(X - rows.units.mean, axis=1)
    assert 0.5 < np.mean(norms <= rows.radius) <= 1.0
    assert rows.radius < 2.0 * norms.max()


def test_the_radius_is_the_quantile_of_the_rule():
    X = rows_at(np.zeros(3), 1.0, n=20_000)
    task = task_of(20_000, 3, epsilon=2.0, row_norm=5.0)
    rows = bounded(X, 2.0, row_norm=5.0)
    inside = np.mean(np.linalg.norm(X - rows.units.mean, axis=1) <= rows.radius)
    assert inside == pytest.approx(Centring(task).quantile, abs=0.05)


def test_the_quantile_falls_with_noise():
    low, middle, high = (Centring(task_of(n, 20)).quantile for n in (50, 5_000, 500_000))
    assert low == 0.25 < middle < high < 1.0
    assert Centring(task_of(50, 20, epsilon=math.inf)).quantile == 1.0


def test_a_mean_that_is_all_noise_is_shrunk_to_zero():
    X = rows_at(np.zeros(50), 1e-3, n=100, d=50)
    found = [np.linalg.norm(bounded(X, 0.1, seed, row_norm=1.0).units.mean) for seed in range(10)]
    noise = math.sqrt(50) / (100 * Budget(0.1, 1e-6).mu * math.sqrt(0.15))
    assert np.median(found) < 0.5 * noise


def test_a_scale_that_is_lost_is_said():
    units = bounded(rows_at(np.zeros(3), 1e3, n=20), 0.1).units
    assert units.lost
    assert units.radius <= 1.0 + np.linalg.norm(units.mean)


def test_private_things_do_not_show():
    rows = bounded(rows_at(np.zeros(3), 1.0))
    assert repr(rows) == "CentredRows(private)"
    assert repr(rows.rows) == "DenseRows(private)"
    assert repr(rows.rows.source) == "Source(private)"
