"""The private scale, mean and radius of a PCA."""

import math

import numpy as np
import pytest
from scipy import sparse

from tacit.privacy import Budget, Gate, NoiseSource, Plan, Release
from tacit.solvers.pca.bounding import Bounds
from tacit.solvers.pca.rows import Table
from tacit.solvers.pca.task import PcaTask


def bounded(X, epsilon=math.inf, seed=0, center=True, adjacency="add-remove", **options):
    n, d = X.shape
    task = PcaTask(n, d, 1, sparse.issparse(X), center, Budget(epsilon, 1e-6, adjacency), **options)
    releases = Bounds(task).releases()
    plan = Plan(*releases, Release("rest", "gaussian", share=1.0 - sum(r.share for r in releases)))
    with Gate(plan.calibrate(task.budget, task.unit, "test"), NoiseSource(seed)) as gate:
        rows, lost = Bounds(task).run(Table.of(X), gate)
        gate.skip("rest")
    return rows, lost


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
    task = PcaTask(100, 3, 1, False, options.pop("center", True), Budget(1.0, 1e-6), **options)
    assert [release.name for release in Bounds(task).releases()] == names


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_without_noise_nothing_is_clipped(kind, scale):
    X = rows_at([5.0, -3.0, 0.0], 1.0) * scale
    rows, lost = bounded(kind(X))
    assert not lost
    np.testing.assert_allclose(rows.mean, X.mean(axis=0), atol=1e-9 * scale)
    farthest = np.linalg.norm(X - rows.mean, axis=1).max()
    assert farthest <= rows.radius <= 1.5 * farthest


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_finds_the_scale_the_mean_and_the_radius(scale, adjacency):
    X = rows_at([5.0, -3.0, 0.0], 1.0, n=20_000) * scale
    rows, lost = bounded(X, 2.0, adjacency=adjacency)
    assert not lost
    assert np.linalg.norm(rows.mean - X.mean(axis=0)) < 0.1 * scale
    norms = np.linalg.norm(X - rows.mean, axis=1)
    assert 0.5 < np.mean(norms <= rows.radius) <= 1.0
    assert rows.radius < 2.0 * norms.max()


def test_the_radius_is_the_quantile_of_the_rule():
    X = rows_at(np.zeros(3), 1.0, n=20_000)
    task = PcaTask(20_000, 3, 1, False, True, Budget(2.0, 1e-6), row_norm=5.0)
    rows, _ = bounded(X, 2.0, row_norm=5.0)
    inside = np.mean(np.linalg.norm(X - rows.mean, axis=1) <= rows.radius)
    assert inside == pytest.approx(Bounds(task).quantile, abs=0.05)


def test_the_quantile_falls_with_noise():
    tasks = [PcaTask(n, 20, 1, False, True, Budget(1.0, 1e-6)) for n in (50, 5_000, 500_000)]
    low, middle, high = (Bounds(task).quantile for task in tasks)
    assert low == 0.25 < middle < high < 1.0
    assert Bounds(PcaTask(50, 20, 1, False, True, Budget(math.inf, 1e-6))).quantile == 1.0


def test_a_mean_that_is_all_noise_is_shrunk_to_zero():
    X = rows_at(np.zeros(50), 1e-3, n=100, d=50)
    found = [np.linalg.norm(bounded(X, 0.1, seed, row_norm=1.0)[0].mean) for seed in range(10)]
    noise = math.sqrt(50) / (100 * Budget(0.1, 1e-6).mu * math.sqrt(0.15))
    assert np.median(found) < 0.5 * noise


def test_a_scale_that_is_lost_is_said():
    rows, lost = bounded(rows_at(np.zeros(3), 1e3, n=20), 0.1)
    assert lost
    assert rows.radius <= 1.0 + np.linalg.norm(rows.mean)


def test_private_things_do_not_show():
    rows, _ = bounded(rows_at(np.zeros(3), 1.0))
    assert repr(rows) == "BoundedRows(private)"
    assert repr(rows.table) == "Table(private)"
