import math
from functools import partial

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import Lasso

from tacit.solvers import Greedy
from tests.guarantees.recorder import transcript
from tests.solvers.support import bounded, either, objective, penalised, rows, scikit_learn, table, task

ALL = ("l2", "l1", "bounds")


solution = partial(penalised, Greedy)


def weights(*args, **given):
    return solution(*args, **given).weights


# --- without noise it is an ordinary solver ---------------------------------------------------------------------------


@either.intercept
@either.table
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_without_noise_it_agrees_with_scikit_learn(fit_intercept, sparse, kind):
    n, d = 500, 5
    data = rows("squared", n, d, sparse, seed=1)
    Z = data.Z if sparse else np.asfortranarray(data.Z, dtype=kind)
    found = weights(task("squared", n, d, sparse, fit_intercept, math.inf), bounded(Z, data.targets), l2=0.01)
    if not fit_intercept:
        assert found[0, -1] == 0.0
    best = objective("squared", data, scikit_learn("squared", data, 0.01, fit_intercept), 0.01)
    assert best * (1 - 1e-6) <= objective("squared", data, found, 0.01) <= best * (1 + 1e-5)


def test_without_noise_it_is_the_lasso_and_finds_its_support():
    n, d, l1 = 300, 40, 0.1
    rng = np.random.default_rng(2)
    Z = np.clip(rng.normal(size=(n, d)), -3, 3)
    data = bounded(np.asfortranarray(Z), Z[:, :3] @ [1.0, -0.7, 0.5] + 0.3 * rng.normal(size=n))
    model = Lasso(l1, tol=1e-10, max_iter=100_000).fit(Z, data.targets)
    found = weights(task("squared", n, d, epsilon=math.inf, penalties=ALL), data, l1=l1)
    best = objective("squared", data, np.append(model.coef_, model.intercept_)[None, :], 0.0, l1)
    assert objective("squared", data, found, 0.0, l1) <= best * (1 + 1e-5)
    assert set(np.flatnonzero(model.coef_)) == set(np.flatnonzero(np.abs(found[0, :d]) > 1e-4))


def greedy(Z, targets, constants, l1, rounds):
    """The textbook: the coordinate whose step is longest, over its unit, and that step."""
    n, d = Z.shape
    wide, w, picks = np.hstack([Z, np.ones((n, 1))]), np.zeros(d + 1), []
    for _ in range(rounds):
        free = w - wide.T @ (wide @ w - targets) / n / constants
        threshold = np.append(np.full(d, l1), 0.0) / constants
        moved = np.sign(free) * np.maximum(np.abs(free) - threshold, 0.0)
        j = int(np.argmax(np.abs(moved - w) * np.sqrt(constants)))
        w[j] = moved[j]
        picks.append(j)
    return w, picks


@either.table
def test_without_noise_each_round_takes_the_longest_step(sparse):
    n, d, l1, rounds = 200, 6, 0.05, 9
    data, declared = rows("squared", n, d, sparse, seed=3), (1.0, 0.5, 2.0, 1.0, 0.7, 1.3)
    problem = task("squared", n, d, sparse, epsilon=math.inf, penalties=ALL)
    with transcript() as steps:
        found = weights(problem, data, l1=l1, n_iter=rounds, clip=1e9, smoothness=declared)
    w, picks = greedy(table(data), data.targets, np.array([*declared, 1.0]), l1, rounds)
    assert [step.released for step in steps if step.is_selection] == picks
    np.testing.assert_allclose(found[0], w, rtol=1e-7, atol=1e-9)


# --- with noise -------------------------------------------------------------------------------------------------------


@either.intercept
@either.table
@either.adjacency
def test_a_run_makes_the_releases_of_its_plan(fit_intercept, sparse, adjacency):
    problem = task("squared", 60, 5, sparse, fit_intercept, 1.0, adjacency)
    with transcript() as steps:
        found = solution(problem, rows("squared", 60, 5, sparse), n_iter=3)
    assert [step.name for step in steps] == ["smoothness", *["selections", "derivatives"] * 3]
    assert [np.size(step.exact) for step in steps[1:3]] == [5 + fit_intercept, 1]
    assert found.weights.shape == found.noise.shape == (1, 6)
    np.testing.assert_array_equal(found.noise > 0.0, found.weights != 0.0)


def test_weights_that_were_never_drawn_stay_where_they_start():
    problem = task("squared", 60, 30, penalties=ALL)
    for seed in range(5):
        with transcript() as steps:
            found = weights(problem, rows("squared", 60, 30), seed=seed, n_iter=4)
        drawn = {step.released for step in steps if step.is_selection}
        assert set(np.flatnonzero(found[0])) <= drawn
    low = np.full(30, -math.inf)
    low[7] = 0.25
    assert weights(problem, rows("squared", 60, 30), low=low, n_iter=4)[0, 7] >= 0.25


def test_declared_constants_are_not_released():
    with transcript() as steps:
        weights(task("squared", 60, 3), rows("squared", 60, 3), smoothness=(1.0, 0.5, 2.0), n_iter=2)
    assert {step.name for step in steps} == {"selections", "derivatives"}


def test_it_finds_a_few_of_many_columns():
    """A budget that tells the strong columns from the rest, where a step in all of them would be noise."""
    n, d = 5_000, 200
    rng = np.random.default_rng(4)
    Z = np.clip(rng.normal(size=(n, d)), -3, 3)
    Z /= Z.std(axis=0)
    data = bounded(np.asfortranarray(Z), np.clip(Z[:, :2] @ [1.0, -1.0] / 1.5 + 0.2 * rng.normal(size=n), -3, 3))
    found = weights(task("squared", n, d, epsilon=3.0, penalties=ALL), data, l1=0.02)
    assert set(np.argsort(-np.abs(found[0, :d]))[:2]) == {0, 1}
    nothing = objective("squared", data, np.zeros((1, d + 1)))
    assert objective("squared", data, found) < 0.5 * nothing


def test_it_comes_closer_as_the_budget_grows():
    n, d = 2_000, 5
    data = rows("squared", n, d, seed=5)
    excess = [
        np.mean([objective("squared", data, weights(task("squared", n, d, epsilon=e), data, seed=s)) for s in range(3)])
        for e in (0.1, 3.0, 1e3, math.inf)
    ]
    assert excess == sorted(excess, reverse=True)


def test_the_stated_noise_is_what_is_seen():
    """Of weights that are drawn in nearly every run; the deviation of one step's noise."""
    n, d = 2_000, 2
    rng = np.random.default_rng(6)
    Z = rng.choice([-1.0, 1.0], size=(n, d))
    data = bounded(np.asfortranarray(Z), 0.5 * Z.sum(axis=1) + 0.3 * rng.normal(size=n))
    problem = task("squared", n, d, fit_intercept=False, epsilon=2.0)
    runs = [solution(problem, data, seed=seed, n_iter=12) for seed in range(40)]
    seen = np.array([run.weights[0, :d] for run in runs]).std(axis=0).mean()
    told = np.mean([run.noise[0, :d] for run in runs])
    assert 1 / 3 < seen / told < 3


def test_a_seed_repeats_a_run():
    problem, data = task("squared", 50, 4), rows("squared", 50, 4)
    first, again, other = (weights(problem, data, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_a_sparse_table_is_the_dense_one():
    data = rows("squared", 80, 4, sparse=True, seed=7)
    problem, options = task("squared", 80, 4, True), {"n_iter": 6, "smoothness": (1.0, 0.5, 2.0, 1.0)}
    sparse, dense = (weights(problem, bounded(Z, data.targets), **options) for Z in (data.Z, table(data)))
    np.testing.assert_allclose(sparse, dense, rtol=1e-9, atol=1e-12)
    assert isinstance(data.Z, csr_array)


# --- rules ------------------------------------------------------------------------------------------------------------


def test_options_take_the_place_of_rules():
    found = Greedy(n_iter=17, clip=0.3, step=0.7).at(task("squared", 1000, 8))
    assert (found.rounds, found.clip, found.step) == (17, 0.3, 0.7)
    assert {release.count for release in found.releases(1.0)[1:]} == {17}


def test_rounds_and_clip_grow_as_the_noise_vanishes():
    budgets = (0.01, 0.1, 1.0, 10.0, 1e4, 1e7, math.inf)
    found = [Greedy().at(task("squared", 10_000, 20, epsilon=epsilon)) for epsilon in budgets]
    for name in ("rounds", "clip"):
        values = [getattr(algorithm, name) for algorithm in found]
        assert values == sorted(values)
        assert values[0] < values[-1]


@pytest.mark.parametrize("share", [1.0, 0.4])
def test_the_plan_spends_its_share(share):
    releases = Greedy().at(task("squared", 100, 8)).releases(share)
    assert sum(release.share for release in releases) == pytest.approx(share)
    assert [release.kind for release in releases] == ["gaussian", "exponential", "gaussian"]


@pytest.mark.parametrize(
    ("option", "value"), [("n_iter", 0), ("n_iter", 100_001), ("clip", -1.0), ("step", 0.0), ("smoothness", "public")]
)
def test_options_out_of_range_are_refused_without_a_task(option, value):
    with pytest.raises(ValueError, match=f"{option} must"):
        Greedy(**{option: value}).check()


def test_smoothness_has_one_number_for_each_feature():
    with pytest.raises(ValueError, match="smoothness must hold one number for each of 3 features, got 2"):
        Greedy(smoothness=[1.0, 2.0]).at(task("squared", 50, 3))
