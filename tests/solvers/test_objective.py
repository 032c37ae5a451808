import math
from dataclasses import replace
from unittest.mock import patch

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from tacit.privacy import Budget, events
from tacit.problems import LOGISTIC
from tacit.solvers import Objective
from tacit.solvers import objective as module

from .support import (
    bounded,
    check_against_scikit_learn,
    either,
    objective,
    promise,
    rows,
    scikit_learn,
    solve,
    table,
    task,
)

every_loss = pytest.mark.parametrize("loss", [loss.name for loss in Objective.serves.losses])
repeatable = settings(derandomize=True, deadline=None, max_examples=120, database=None)


@pytest.fixture(params=["full", "iterated"])
def form(request, monkeypatch):
    """The full Hessian, or the conjugate gradients that wide tables get."""
    if request.param == "iterated":
        monkeypatch.setattr(module, "FULL_MATRIX", 0)
    return request.param


def run(problem, data, **options):
    return solve(problem, data, solver="objective", **options)


# --- without noise it is an ordinary solver ----------------------------------------------------------------


@every_loss
@either.intercept
@either.table
@pytest.mark.usefixtures("form")
def test_without_noise_it_agrees_with_scikit_learn(loss, fit_intercept, sparse):
    check_against_scikit_learn(run, loss, fit_intercept, sparse, 1e-8)


@every_loss
@pytest.mark.usefixtures("form")
def test_sparse_and_dense_agree(loss):
    data = rows(loss, 400, 6, sparse=True, seed=2)
    for epsilon in (1.0, math.inf):
        one = run(task(loss, 400, 6, True, epsilon=epsilon), data, l2=0.01)
        other = run(task(loss, 400, 6, False, epsilon=epsilon), bounded(table(data), data.targets), l2=0.01)
        np.testing.assert_allclose(one.weights, other.weights, atol=1e-5)


@every_loss
def test_generous_budgets_come_close(loss):
    n, d = 8000, 6
    data = rows(loss, n, d, seed=5)
    best = objective(loss, data, scikit_learn(loss, data, 1e-3, True), 1e-3)
    gaps = []
    for epsilon in (0.3, 3.0, 30.0, 300.0):
        weights = run(task(loss, n, d, epsilon=epsilon), data, l2=1e-3).weights
        gaps.append((objective(loss, data, weights, 1e-3) - best) / (objective(loss, data, 0 * weights, 1e-3) - best))
    assert max(gaps) < 0.3
    assert gaps[-1] < min(0.001, gaps[0])


# --- the rules ---------------------------------------------------------------------------------------------


def found(loss, mu, n=10_000, d=20, fit_intercept=True):
    """The radius and the slope."""
    problem = replace(task(loss, n, d, fit_intercept=fit_intercept), budget=Budget.from_mu(mu, 1e-6))
    rules = Objective().at(problem)
    return rules.radius, rules.slope


@either.intercept
def test_usual_rules(fit_intercept):
    width = 20 + fit_intercept
    for loss in (loss.name for loss in Objective.serves.losses):
        for nu in (0.5, 0.01, 1e-3):  # up to where there is little noise
            assert found(loss, 21 / (10_000 * nu), fit_intercept=fit_intercept) == (
                pytest.approx(math.sqrt(width)),
                pytest.approx(1.0),
            )


def test_rules_grow_as_the_noise_vanishes():
    calm = found("squared", 21 / (10_000 * 1e-4))
    assert calm == (pytest.approx(3 * math.sqrt(21)), pytest.approx(math.sqrt(10)))  # rows are at most that long
    assert found("logistic", 21 / (10_000 * 1e-4))[1] == 1.0  # which is the loss's own
    assert Objective().at(task("squared", 100, 3, epsilon=math.inf)).slope == 1e6


@either.adjacency
@every_loss
def test_noise_and_penalty_are_those_of_the_theorem(loss, adjacency):
    """Deviation z L R and modulus h R^2 z / ratio; twice as much of both for replace-one."""
    problem = task(loss, 60, 3, epsilon=2.0, adjacency=adjacency)
    z, _ = promise(Objective(), problem).multipliers
    factor = 1.0 if adjacency == "add-remove" else 2.0
    h, squared_radius = (0.25 if loss == "logistic" else 1.0), 4.0
    seen = captured(problem, rows(loss, 60, 3))
    np.testing.assert_allclose(seen.problem._l2, factor * h * squared_radius * z / events.OBJECTIVE_RATIO)
    draws = [captured(problem, rows(loss, 60, 3), seed=seed).linear for seed in range(200)]
    assert np.std(draws) == pytest.approx(factor * math.sqrt(squared_radius) * z, rel=0.1)
    assert abs(np.mean(draws)) < 0.2 * np.std(draws)


def test_a_strength_that_the_user_asked_for_is_kept_where_it_is_larger():
    problem = task("logistic", 60, 3)
    seen = captured(problem, rows("logistic", 60, 3), l2=1e4)
    np.testing.assert_array_equal(seen.problem._l2[:3], 60 * 1e4)
    assert 0 < seen.problem._l2[3] < 60 * 1e4  # the intercept has the modulus that privacy needs


def test_the_plan_is_fixed_by_public_numbers():
    releases = Objective().at(task("logistic", 100, 8)).releases(0.5)
    assert [(r.name, r.kind, r.count) for r in releases] == [
        ("linear term", "objective", 1),
        ("stopping point", "gaussian", 1),
    ]
    assert sum(r.share for r in releases) == pytest.approx(0.5)
    assert releases[1].share < 0.05 * 0.5


def test_a_seed_repeats_a_run():
    problem, data = task("logistic", 50, 4), rows("logistic", 50, 4)
    first, again, other = (run(problem, data, seed=seed).weights for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert np.all(first != other)


# --- noise -------------------------------------------------------------------------------------------------


def uncorrelated(loss, n=4000, d=5):
    """Standardised columns without correlation, and targets that follow them a little."""
    rng = np.random.default_rng(0)
    Z = np.clip(rng.normal(size=(n, d)), -3, 3)
    Z /= Z.std(axis=0)
    margins = 0.3 * Z.sum(axis=1) + rng.normal(size=n)
    return bounded(Z, np.where(margins > 0, 1.0, -1.0) if loss == "logistic" else np.clip(margins, -3, 3))


@every_loss
@either.adjacency
def test_the_stated_noise_is_right_within_a_factor_of_two(loss, adjacency):
    problem, data = task(loss, 4000, 5, adjacency=adjacency), uncorrelated(loss)
    runs = [run(problem, data, seed=seed) for seed in range(40)]
    seen = np.std([solution.weights for solution in runs], axis=0)
    assert np.all(seen / runs[0].noise > 0.5)
    assert np.all(seen / runs[0].noise < 2.0)


def test_the_noise_on_the_stopping_point_is_a_small_part():
    problem = task("logistic", 500, 5)
    seen = captured(problem, rows("logistic", 500, 5))
    solution = run(problem, rows("logistic", 500, 5))
    assert np.linalg.norm(seen.found - solution.weights[0]) < 1e-3 * np.linalg.norm(solution.noise)
    assert np.all(seen.found != solution.weights[0])


def test_without_an_intercept_there_is_none():
    solution = run(task("logistic", 50, 3, fit_intercept=False), rows("logistic", 50, 3))
    assert solution.weights[0, -1] == solution.noise[0, -1] == 0.0
    assert np.all(solution.noise[0, :-1] > 0.0)


# --- the search finds what it says, and ends ---------------------------------------------------------------


class Seen:
    """The perturbed problem of a run, its tolerance, what was found, and how many gradients that took."""

    problem = tolerance = found = None
    gradients = 0


def captured(problem, data, most=2_000, **options):
    seen = Seen()
    minimiser, gradient = module._Problem.minimiser, module._Problem.gradient

    def counted(self, w, linear):
        seen.gradients += 1
        assert seen.gradients <= most, "the search does not end"
        return gradient(self, w, linear)

    def watched(self, linear):
        seen.problem, seen.linear = self, linear
        seen.found = minimiser(self, linear)
        return seen.found

    with patch.object(module._Problem, "minimiser", watched), patch.object(module._Problem, "gradient", counted):
        run(problem, data, **options)
    return seen


def exact_gradient(seen):
    """The gradient of the perturbed objective at what was found, in 50 digits, from the definitions."""
    problem, w = seen.problem, [mpmath.mpf(float(v)) for v in seen.found]
    Z = table(problem._data)
    wide = np.hstack([Z, np.ones((len(Z), 1))]) if problem._task.fit_intercept else Z
    total = [
        mpmath.mpf(float(p)) * v + mpmath.mpf(float(b)) for p, v, b in zip(problem._l2, w, seen.linear, strict=True)
    ]
    for row, target in zip(wide.tolist(), problem._data.targets.tolist(), strict=True):
        margin = mpmath.fdot(zip(map(mpmath.mpf, row), w, strict=True))
        if problem._task.loss == LOGISTIC:
            slope = -target / (1 + mpmath.exp(target * margin))
        else:
            bound = problem._rules.slope
            slope = min(max(margin - mpmath.mpf(target), -bound), bound)
        total = [t + slope * mpmath.mpf(z) for t, z in zip(total, row, strict=True)]
    norm = mpmath.norm(w)
    if norm > 300:
        steep = len(Z) * problem._h * problem._rules.radius**2
        total = [t + steep * (1 - 300 / norm) * v for t, v in zip(total, w, strict=True)]
    return mpmath.norm(total)


def awkward(kind, n, d, seed):
    rng = np.random.default_rng(seed)
    Z = np.clip(rng.normal(size=(n, d)), -3, 3)
    if kind == "columns of all sizes":
        Z *= 10 ** rng.uniform(-6, 0, size=d)
    elif kind == "rows of all sizes":
        Z *= 10 ** rng.uniform(-8, 8, size=(n, 1))
    elif kind == "overflowing":
        Z *= 10 ** rng.uniform(0, 300, size=(n, 1))
    elif kind == "duplicates":
        Z[:] = Z[0]
    elif kind == "zeros":
        Z[rng.random(n) < 0.7] = 0.0
    elif kind == "one direction":
        Z = np.outer(rng.normal(size=n), Z[0])
    elif kind == "corners":
        Z = 3.0 * np.sign(Z)
    return Z


KINDS = (
    "plain",
    "columns of all sizes",
    "rows of all sizes",
    "overflowing",
    "duplicates",
    "zeros",
    "one direction",
    "corners",
)


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("kind", KINDS)
@given(
    loss=st.sampled_from([loss.name for loss in Objective.serves.losses]),
    n=st.integers(1, 12),
    d=st.integers(1, 15),
    seed=st.integers(0, 10**6),
    epsilon=st.one_of(st.floats(-2.0, 10.0).map(lambda x: 10.0**x), st.just(math.inf)),
    l2=st.sampled_from([0.0, 0.0, 1e-6, 1.0, 1e4]),
    fit_intercept=st.booleans(),
    sparse=st.booleans(),
    separable=st.booleans(),
)
@settings(repeatable, max_examples=15)
def test_the_search_ends_at_a_gradient_within_its_bound(
    kind, loss, n, d, seed, epsilon, l2, fit_intercept, sparse, separable
):
    Z = awkward(kind, n, d, seed)
    rng = np.random.default_rng(seed + 1)
    margins = Z @ rng.normal(size=d) * 10.0 ** rng.integers(-3, 3)
    targets = margins + (0.0 if separable else 1.0) * rng.normal(size=n)
    targets = np.where(targets > 0, 1.0, -1.0) if loss == "logistic" else np.clip(targets, -3.0, 3.0)
    data = bounded(csr_array(Z) if sparse else Z, targets)
    seen = captured(task(loss, n, d, sparse, fit_intercept, epsilon), data, most=50_000, l2=l2, seed=seed)
    with mpmath.workdps(50):
        assert exact_gradient(seen) <= seen.problem.tolerance + seen.problem.rounding
    assert np.all(np.isfinite(seen.found))


@every_loss
def test_a_usual_search_takes_few_gradients(loss, form):
    for epsilon in (0.1, 1.0, 10.0, math.inf):
        data = rows(loss, 1000, 12, seed=4)
        assert captured(task(loss, 1000, 12, epsilon=epsilon), data).gradients <= (12 if form == "full" else 20)


@every_loss
@either.adjacency
def test_what_was_found_is_as_near_to_the_minimiser_as_its_noise_covers(loss, adjacency):
    """The minimiser itself, by Newton's method in 50 digits: twice the distance to it is within the sensitivity."""
    problem, data = task(loss, 6, 2, fit_intercept=False, adjacency=adjacency), rows(loss, 6, 2)
    sizes = []
    draw = module.GaussianVector.draw
    with patch.object(module.GaussianVector, "draw", lambda self, *a: sizes.append(self.sensitivity) or draw(self, *a)):
        seen = captured(problem, data)
    with mpmath.workdps(50):
        Z = [[mpmath.mpf(v) for v in row] for row in table(seen.problem._data).tolist()]
        w = [mpmath.mpf(float(v)) for v in seen.found]
        for _ in range(6):
            g = [
                mpmath.mpf(float(p)) * v + mpmath.mpf(float(b))
                for p, v, b in zip(seen.problem._l2, w, seen.linear, strict=True)
            ]
            H = mpmath.diag([mpmath.mpf(float(p)) for p in seen.problem._l2])
            for row, target in zip(Z, seen.problem._data.targets.tolist(), strict=True):
                margin = mpmath.fdot(zip(row, w, strict=True))
                if loss == "logistic":
                    probability = 1 / (1 + mpmath.exp(target * margin))
                    slope, curvature = -target * probability, probability * (1 - probability)
                else:
                    slope, curvature = min(max(margin - target, -1), 1), int(abs(margin - target) < 1)
                for i in range(2):
                    g[i] += slope * row[i]
                    for j in range(2):
                        H[i, j] += curvature * row[i] * row[j]
            step = mpmath.lu_solve(H, mpmath.matrix(g))
            w = [v - s for v, s in zip(w, step, strict=True)]
        assert mpmath.norm(step) < 1e-40
        distance = mpmath.norm([mpmath.mpf(float(v)) - u for v, u in zip(seen.found, w, strict=True)])
    assert 2 * distance <= sizes[0].under(adjacency)
    assert sizes[0].add_remove == sizes[0].replace_one  # any two worlds
