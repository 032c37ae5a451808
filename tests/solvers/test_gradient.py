import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from tacit.privacy import Budget
from tacit.problems import Penalty
from tacit.solvers import Gradient
from tacit.solvers import gradient as module
from tests.preprocessing.support import neighbours, transcript

from .support import (
    bounded,
    check_against_scikit_learn,
    either,
    objective,
    rows,
    scikit_learn,
    solve,
    solved,
    spread_rows,
    table,
    task,
)

every_loss = pytest.mark.parametrize("loss", [loss.name for loss in Gradient.serves.losses])


@pytest.fixture(params=["full", "diagonal"])
def form(request, monkeypatch):
    """The full matrix, or the diagonal form that wide tables get."""
    if request.param == "diagonal":
        monkeypatch.setattr(module, "FULL_MATRIX", 5)
    return request.param


# --- without noise it is an ordinary solver ----------------------------------------------------------------


@every_loss
@either.intercept
@either.table
@pytest.mark.usefixtures("form")
def test_without_noise_it_agrees_with_scikit_learn(loss, fit_intercept, sparse):
    check_against_scikit_learn(solve, loss, fit_intercept, sparse, 1e-6)


@either.intercept
@either.table
@pytest.mark.usefixtures("form")
def test_without_noise_or_penalty_it_is_least_squares(fit_intercept, sparse):
    data = rows("squared", 1500, 9, sparse, seed=2)
    weights = solve(task("squared", 1500, 9, sparse, fit_intercept, epsilon=math.inf), data).weights
    best = objective("squared", data, scikit_learn("squared", data, 0.0, fit_intercept), 0.0)
    assert objective("squared", data, weights, 0.0) <= best * (1 + 1e-6)


def test_without_noise_two_large_classes_of_ten_are_fitted():
    """They have all but 0.4% of the rows, and the curvature is five times that of equal classes."""
    rng = np.random.default_rng(5)
    labels = rng.choice(10, 4_000, p=[0.498, 0.498, *[0.0005] * 8])
    Z = (rng.normal(size=(4_000, 8)) + 0.7 * rng.normal(size=(10, 8))[labels]).clip(-3, 3)
    data = bounded(Z, np.unique(labels, return_inverse=True)[1].astype(float), l2=1.0 / 4_000)
    outputs = len(np.unique(labels))
    assert outputs > 5
    weights = solve(task("multinomial", 4_000, 8, epsilon=math.inf, outputs=outputs), data).weights
    best = objective("multinomial", data, scikit_learn("multinomial", data, 1.0 / 4_000, True), 1.0 / 4_000)
    assert objective("multinomial", data, weights, 1.0 / 4_000) <= best * (1 + 1e-5)


def test_each_feature_may_have_its_own_penalty():
    data = rows("squared", 500, 3, seed=3)
    problem = task("squared", 500, 3, epsilon=math.inf)
    data = replace(data, penalty=Penalty(l2=np.array([1e6, 0.0, 0.0]), l1=np.zeros(3)))
    weights = solved(Gradient(), problem, data).weights
    assert abs(weights[0, 0]) < 1e-5 < 1e-2 < abs(weights[0, 1])


def test_a_constant_column_does_not_raise():
    data = rows("squared", 200, 3, seed=4)
    Z = data.Z.copy()
    Z[:, 1] = 0.0
    weights = solve(task("squared", 200, 3, epsilon=math.inf), bounded(Z, data.targets)).weights
    assert np.all(np.isfinite(weights))


@every_loss
def test_generous_budgets_come_close(loss):
    n, d = 4000, 6
    data = rows(loss, n, d, seed=5)
    weights = solve(task(loss, n, d, epsilon=8.0), data, l2=1e-3).weights
    best = objective(loss, data, scikit_learn(loss, data, 1e-3, True), 1e-3)
    nothing = objective(loss, data, np.zeros_like(weights), 1e-3)
    assert objective(loss, data, weights, 1e-3) <= best + 0.1 * (nothing - best)


# --- the rules ---------------------------------------------------------------------------------------------


def rules(loss="logistic", n=10_000, d=20, nu=None, fit_intercept=True):
    """The rules for a given noise level nu = (d + 1) / (n mu), or for epsilon = infinity."""
    budget = Budget(math.inf, 1e-6) if nu is None else Budget.from_mu((d + 1) / (n * nu), 1e-6)
    return Gradient().at(replace(task(loss, n, d, fit_intercept=fit_intercept), budget=budget))


@pytest.mark.parametrize(
    ("nu", "kappa", "kappa_squared"),
    [
        (0.8, 0.3, 0.7),
        (0.1, 0.5 * 0.5**0.25, 0.7),
        (0.05, 0.5, 0.7),
        (0.05 / 16 * 6, 0.5 * (16 / 6) ** 0.25, 0.7 * (16 / 6) ** 0.25),
        (0.05 / 16, 1.0, 1.0),
        (0.002, 1.0, 1.0),
    ],
)
@pytest.mark.parametrize("d", [5, 100])
@either.intercept
def test_the_usual_rules(nu, kappa, kappa_squared, d, fit_intercept):
    width = math.sqrt(d + fit_intercept)
    for loss, expected in (("logistic", kappa), ("multinomial", kappa), ("squared", kappa_squared)):
        found = rules(loss, 10_000, d, nu, fit_intercept)
        assert found.clip == pytest.approx(min(1.0, expected) * width, rel=1e-6)
        assert found.radius == pytest.approx(width)


@pytest.mark.parametrize(
    ("loss", "nu", "steps"),
    [
        ("squared", 0.8, 30),
        ("squared", 0.011, 30),
        ("squared", 0.009, 20),
        ("squared", None, 20),
        ("logistic", 0.8, 16),
        ("multinomial", 1e-3 / 7, 32),
        ("logistic", 1e-6, 160),
        ("multinomial", None, 1200),
    ],
)
def test_the_number_of_steps_and_their_momentum(loss, nu, steps):
    found = rules(loss, nu=nu)
    assert found.steps == steps
    assert found.momentum == pytest.approx(0.0 if steps == 30 else 1.0 - 2.0 / math.sqrt(steps))


def test_least_squares_with_a_diagonal_alone_take_more_steps(monkeypatch):
    monkeypatch.setattr(module, "FULL_MATRIX", 5)
    assert [rules("squared", nu=nu).steps for nu in (0.8, 1e-3 / 7, None)] == [16, 32, 1200]


def test_rules_grow_as_the_noise_vanishes():
    levels = [1.0, 0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-6]
    found = [rules(nu=nu) for nu in levels] + [rules()]
    for name in ("steps", "clip", "radius", "momentum"):
        values = [getattr(s, name) for s in found]
        assert values == sorted(values)
    assert found[4].steps == round(16 * math.cbrt(11))
    assert found[-1].steps == 1200
    assert found[-1].clip >= 1e6
    assert found[-1].radius == pytest.approx(3.0 * math.sqrt(21))
    assert all(0.0 <= s.momentum < 1.0 for s in found)


def test_rules_grow_with_the_rows():
    found = [rules(n=n, nu=21 / (n * 0.2)) for n in (100, 10_000, 1_000_000, 100_000_000)]
    assert [s.steps for s in found] == sorted(s.steps for s in found)
    assert found[0].steps == 16 < found[-1].steps


def test_the_plan_is_fixed_by_public_numbers(form):
    problem = task("logistic", 100, 8)
    releases = Gradient().at(problem).releases(0.8)
    shares = {r.name: r.share for r in releases}
    counts = {r.name: r.count for r in releases}
    assert sum(shares.values()) == pytest.approx(0.8)
    assert shares["gradients"] > 0.6
    assert counts["gradients"] == 16
    assert ("largest curvature" in counts) == (form == "diagonal")
    assert {r.kind for r in releases} == {"gaussian"}


def test_users_may_set_the_number_of_steps():
    found = Gradient(n_iter=7).at(task("logistic", 100, 8))
    assert found.steps == found.releases(1.0)[-1].count == 7
    for wrong in (0, 2.5, 100_001):
        with pytest.raises((TypeError, ValueError), match="n_iter must be"):
            Gradient(n_iter=wrong).check()


def test_the_noise_sets_a_least_penalty():
    """0.2 C sqrt(d') / (n mu_g), so a budget near zero leaves weights near zero."""
    data, problem = rows("logistic", 200, 4, seed=6), task("logistic", 200, 4, epsilon=0.01)
    found = [solve(problem, data, seed=seed).weights for seed in range(9)]
    assert np.median([np.linalg.norm(weights[:, :-1]) for weights in found]) < 3.0


# --- plan and run ------------------------------------------------------------------------------------------


@every_loss
@either.intercept
@either.table
@either.adjacency
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_a_run_makes_the_releases_of_its_plan(form, loss, fit_intercept, sparse, adjacency, epsilon):
    problem = task(loss, 60, 7, sparse, fit_intercept, epsilon, adjacency)
    with transcript() as steps:
        weights = solve(problem, rows(loss, 60, 7, sparse)).weights
    planned = Gradient().at(problem).releases(1.0)
    assert [step.name for step in steps] == [r.name for r in planned for _ in range(r.count)]
    assert weights.shape == (problem.outputs, 8)
    assert np.all(np.isfinite(weights))
    if not fit_intercept:
        assert not weights[:, -1].any()
    assert (form == "diagonal") == any(r.name == "largest curvature" for r in planned)


def test_a_seed_repeats_a_run():
    problem, data = task("logistic", 50, 4), rows("logistic", 50, 4)
    first, again, other = (solve(problem, data, seed=seed).weights for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


# --- one row moves a release by no more than its stated sensitivity ----------------------------------------


def with_row(data, place, row, target):
    """The same table with one row and its target replaced."""
    Z, targets = table(data).copy(), data.targets.copy()
    Z[place], targets[place] = row, target
    return bounded(csr_array(Z) if isinstance(data.Z, csr_array) else Z, targets)


def pairs_of_rows(loss, d, seed, sparse):
    """Pairs of rows and targets: opposite, orthogonal, empty, long, and random; dense rows have no entry beyond 4."""
    rng = np.random.default_rng(seed)
    first, second, random = np.eye(d)[0], np.eye(d)[1], rng.normal(size=(4, d))
    low, high = {"squared": (-3.0, 3.0), "logistic": (-1.0, 1.0), "multinomial": (0.0, 2.0)}[loss]
    random *= 1e4 if sparse else 3.5 / np.abs(random).max(axis=1, keepdims=True)
    yield (1e4 * first, low), (1e4 * second, high)
    yield (random[0], low), (random[0], high)
    yield (random[1], low), (-random[1], low)
    yield (np.zeros(d), low), (random[2], high)
    yield (np.full(d, 3.0), high), (np.full(d, -3.0), high)
    yield (random[3], low), (random[2], high)
    yield (np.full(d, 1e-200), low), (np.full(d, 1e100), high)


# A budget with noise as usual, and one where the clip and the radius have grown.
BUDGETS = {"usual": 1.0, "calm": 1e6}


@pytest.mark.slow
@every_loss
@either.intercept
@either.table
@pytest.mark.parametrize("epsilon", BUDGETS.values(), ids=BUDGETS)
def test_replacing_a_row_moves_each_release_within_its_sensitivity(form, loss, fit_intercept, sparse, epsilon):
    n, d = 15, 6
    problem = task(loss, n, d, sparse, fit_intercept, epsilon, "replace-one")
    data = rows(loss, n, d, sparse, seed=7)
    closest = {}
    for trial, (one, other) in enumerate(pairs_of_rows(loss, d, 8, sparse)):
        tables = (with_row(data, trial, *one), with_row(data, trial, *other))
        for a, b in neighbours(lambda world: solve(problem, world, seed=9), *tables):
            assert a.distance(b) <= a.sensitivity
            closest[a.name] = max(closest.get(a.name, 0.0), a.distance(b) / a.sensitivity)
    # Dense rows may be too short for a clip that has grown; a sensitivity over sqrt(2) would be below 0.71.
    assert closest["gradients"] > (0.999 if sparse else 0.85)
    assert closest["second moments"] > (0.99 if sparse else 0.75)
    if form == "diagonal":  # the public direction v is not the worst one for a given pair
        assert closest["largest curvature"] > 0.2


@every_loss
@either.intercept
@either.table
@pytest.mark.usefixtures("form")
def test_one_row_contributes_within_the_add_remove_sensitivity(loss, fit_intercept, sparse):
    """In a table of one row, what is released is that row's contribution."""
    d = 6
    problem = task(loss, 1, d, sparse, fit_intercept, epsilon=3.0)
    largest = {}
    for pair in pairs_of_rows(loss, d, 10, sparse):
        for row, target in pair:
            Z = np.atleast_2d(row)
            data = bounded(csr_array(Z) if sparse else Z, np.array([target]))
            with transcript() as steps:
                solve(problem, data)
            for step in steps:
                assert np.linalg.norm(step.value) <= step.sensitivity
                largest[step.name] = max(largest.get(step.name, 0.0), np.linalg.norm(step.value) / step.sensitivity)
    assert largest["gradients"] > 0.999
    assert largest["second moments"] > 0.94  # of the diagonal of a row that has an entry of 4, and 1 for the intercept


@either.adjacency
def test_the_first_step_is_noised_by_its_multiplier(adjacency):
    """Same seed, other adjacency: the same normals, scaled by the ratio of the sensitivities."""
    data = rows("logistic", 40, 5)
    noise = {}
    for relation in ("add-remove", adjacency):
        with transcript() as steps:
            solve(task("logistic", 40, 5, adjacency=relation), data)
        noise[relation] = steps[0].released - steps[0].value, steps[0].sensitivity
    (base, unit), (other, size) = noise["add-remove"], noise[adjacency]
    assert size / unit == pytest.approx(1.0 if adjacency == "add-remove" else math.sqrt(2.0))
    np.testing.assert_allclose(other, base * size / unit, rtol=1e-5, atol=1e-6)


# --- the stated noise --------------------------------------------------------------------------------------


@every_loss
@pytest.mark.usefixtures("form")
def test_the_stated_noise_is_right_within_a_factor_of_two(loss):
    n, d = 4000, 8
    data = spread_rows(loss, n, d)
    runs = [solve(task(loss, n, d, epsilon=1.0), data, seed=seed) for seed in range(25)]
    weights = np.array([solution.weights for solution in runs])
    if loss == "multinomial":  # what all classes share changes no probability; nothing holds it, and it is left out
        weights -= weights.mean(axis=1, keepdims=True)
    seen = np.sqrt(np.mean(np.var(weights, axis=0)))
    assert 0.5 < seen / np.mean([solution.noise for solution in runs]) < 2.0
