import math

import numpy as np
import pytest
from scipy.sparse import csr_array

from tacit.solvers import Statistics
from tests.preprocessing.support import neighbours, transcript

from .support import bounded, either, objective, rows, scikit_learn, solve, table, task


def run(problem, data, **options):
    return solve(problem, data, solver="statistics", **options)


# --- without noise it is least squares ---------------------------------------------------------------------


@either.intercept
@either.table
@pytest.mark.parametrize("l2", [0.0, 0.01])
def test_without_noise_it_is_least_squares(fit_intercept, sparse, l2):
    data = rows("squared", 1500, 9, sparse, seed=2)
    weights = run(task("squared", 1500, 9, sparse, fit_intercept, epsilon=math.inf), data, l2=l2).weights
    np.testing.assert_allclose(weights, scikit_learn("squared", data, l2, fit_intercept), atol=1e-7)


def test_a_constant_column_does_not_raise():
    data = rows("squared", 200, 3, seed=4)
    Z = data.Z.copy()
    Z[:, 1] = 0.0
    weights = run(task("squared", 200, 3, epsilon=math.inf), bounded(Z, data.targets)).weights
    assert np.all(np.isfinite(weights))
    assert abs(weights[0, 1]) < 1e-3


def test_sparse_and_dense_agree():
    data = rows("squared", 400, 6, sparse=True, seed=2)
    for epsilon in (1.0, math.inf):
        one = run(task("squared", 400, 6, True, epsilon=epsilon), data, l2=0.01).weights
        other = run(task("squared", 400, 6, epsilon=epsilon), bounded(table(data), data.targets), l2=0.01).weights
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_generous_budgets_come_close():
    n, d = 8000, 6
    data = rows("squared", n, d, seed=5)
    best = objective("squared", data, scikit_learn("squared", data, 0.0, True))
    gaps = []
    for epsilon in (0.1, 1.0, 30.0, 1e3):
        weights = run(task("squared", n, d, epsilon=epsilon), data).weights
        gaps.append((objective("squared", data, weights) - best) / (objective("squared", data, 0 * weights) - best))
    assert max(gaps) < 0.5
    assert gaps[-1] < min(0.01, gaps[0])


def test_noise_beyond_the_signal_leaves_small_weights():
    """Eigenvalues are lifted to the level of the noise, so that weights shrink where it outweighs them."""
    data = rows("squared", 100, 8, seed=6)
    for seed in range(10):
        weights = run(task("squared", 100, 8, epsilon=0.05), data, seed=seed).weights
        assert np.linalg.norm(weights) < 5.0


# --- plan and run ------------------------------------------------------------------------------------------


def test_the_plan_is_two_releases():
    releases = Statistics().at(task("squared", 100, 8)).releases(0.6)
    assert [(r.name, r.kind, r.count, r.share) for r in releases] == [
        ("second moments", "gaussian", 1, 0.3),
        ("products with the target", "gaussian", 1, 0.3),
    ]


@pytest.mark.parametrize(
    ("epsilon", "radius", "clip"),
    [(1.0, 1.0, 1.0), (1e9, 3.0, 9.0), (math.inf, 3.0, 9.0)],
    ids=["usual", "calm", "without noise"],
)
@either.intercept
@either.adjacency
def test_radius_and_clip(epsilon, radius, clip, fit_intercept, adjacency):
    """R = C = sqrt(d'), and as long as rows can be where there is no noise; the factors are sqrt(2) and 2."""
    width = 5 + fit_intercept
    problem = task("squared", 50, 5, fit_intercept=fit_intercept, epsilon=epsilon, adjacency=adjacency)
    with transcript() as steps:
        run(problem, rows("squared", 50, 5))
    factors = (1.0, 1.0) if adjacency == "add-remove" else (math.sqrt(2), 2.0)
    assert steps[0].sensitivity == pytest.approx(factors[0] * width * radius**2, rel=1e-6)
    assert steps[1].sensitivity == pytest.approx(factors[1] * math.sqrt(width) * clip, rel=1e-6)


@either.intercept
@either.table
def test_what_is_released_are_the_clipped_sums(fit_intercept, sparse):
    data = rows("squared", 80, 4, sparse, seed=3)
    with transcript() as steps:
        run(task("squared", 80, 4, sparse, fit_intercept), data)
    wide = np.hstack([table(data), np.full((80, 1), float(fit_intercept))])
    bound = math.sqrt(4 + fit_intercept)
    norms = np.linalg.norm(wide, axis=1)
    clipped = wide * np.minimum(1, bound / np.maximum(norms, 1e-300))[:, None]
    np.testing.assert_allclose(steps[0].value, clipped.T @ clipped, atol=80 * 2.0**-18)
    products = wide * data.targets[:, None]
    products *= np.minimum(1, bound / np.maximum(np.linalg.norm(products, axis=1), 1e-300))[:, None]
    np.testing.assert_allclose(steps[1].value, products.sum(axis=0), atol=80 * 2.0**-18)


def test_a_seed_repeats_a_run():
    problem, data = task("squared", 50, 4), rows("squared", 50, 4)
    first, again, other = (run(problem, data, seed=seed).weights for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert np.all(first != other)


PAIRS = {
    "opposite": ((1e4, 1e4, 1e4), 3.0, (-1e4, -1e4, -1e4), 3.0),
    "orthogonal": ((1e4, 0.0, 0.0), 3.0, (0.0, 1e4, 0.0), 3.0),
    "long and orthogonal": ((4.0, -4.0, 2.0), 3.0, (4.0, 4.0, -0.5), 3.0),
    "other target": ((2.0, -2.0, 2.0), -3.0, (2.0, -2.0, 2.0), 3.0),
    "small": ((1e-200, 0.0, 0.0), 3.0, (1e100, 1.0, 1.0), -3.0),
}


@either.intercept
@either.table
@pytest.mark.parametrize("epsilon", [1.0, 1e6], ids=["usual", "calm"])
def test_replacing_a_row_moves_each_release_within_its_sensitivity(fit_intercept, sparse, epsilon):
    problem = task("squared", 15, 3, sparse, fit_intercept, epsilon, "replace-one")
    data, closest = rows("squared", 15, 3, sparse, seed=7), {}
    for one, target, other, target_there in PAIRS.values():
        worlds = []
        for row, value in ((one, target), (other, target_there)):
            Z, targets = table(data).copy(), data.targets.copy()
            Z[4], targets[4] = row, value
            worlds.append(bounded(csr_array(Z) if sparse else Z, targets))
        for a, b in neighbours(lambda world: run(problem, world, seed=9), *worlds):
            assert a.distance(b) <= a.sensitivity
            closest[a.name] = max(closest.get(a.name, 0.0), a.distance(b) / a.sensitivity)
    assert closest["second moments"] > 0.96
    assert closest["products with the target"] > 0.99


# --- the stated noise --------------------------------------------------------------------------------------


@either.adjacency
@pytest.mark.parametrize("epsilon", [0.5, 5.0])
def test_the_stated_noise_is_right_within_a_factor_of_two(adjacency, epsilon):
    n, d = 4000, 5
    rng = np.random.default_rng(0)
    Z = np.clip(rng.normal(size=(n, d)), -3, 3)
    data = bounded(Z / Z.std(axis=0), np.clip(0.4 * Z.sum(axis=1) + 0.5 * rng.normal(size=n), -3, 3))
    problem = task("squared", n, d, epsilon=epsilon, adjacency=adjacency)
    runs = [run(problem, data, seed=seed) for seed in range(40)]
    seen = np.std([solution.weights for solution in runs], axis=0)
    assert np.all(seen / runs[0].noise > 0.5)
    assert np.all(seen / runs[0].noise < 2.0)


def test_without_an_intercept_there_is_none():
    solution = run(task("squared", 50, 3, fit_intercept=False), rows("squared", 50, 3))
    assert solution.weights[0, -1] == solution.noise[0, -1] == 0.0
    assert np.all(solution.noise[0, :-1] > 0.0)
