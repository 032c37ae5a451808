import math
from dataclasses import replace

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from dp_accounting.pld import PLDAccountant
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize
from sklearn.linear_model import Lasso
from sklearn.svm import SVC

from tacit.privacy import Budget, Gate
from tacit.problems import HINGE, LOSSES, MULTINOMIAL, Penalty
from tacit.solvers import Sgd
from tacit.solvers.sgd import _proximal
from tests.preprocessing.support import neighbours, transcript

from .support import bounded, either, objective, promise, rows, scikit_learn, solve, solved, spread_rows, table, task

every_loss = pytest.mark.parametrize("loss", [loss.name for loss in Sgd.serves.losses])
repeatable = settings(derandomize=True, deadline=None, max_examples=200, database=None)


def run(problem, data, solver="sgd", **options):
    return solve(problem, data, solver=solver, **options)


# --- without noise it is an ordinary solver ----------------------------------------------------------------


def smooth_optimum(loss, data, l2, l1, fit_intercept):
    """By a quasi-Newton method on the positive and the negative parts of the weights."""
    Z, n, d = table(data), len(data.targets), data.Z.shape[1]
    wide = np.hstack([Z, np.full((n, 1), float(fit_intercept))])
    ridge, lasso = np.append(np.full(d, l2), 0.0), np.append(np.full(d, l1), 0.0)

    def value_and_slope(parts):
        w = parts[: d + 1] - parts[d + 1 :]
        margins = wide @ w
        value = LOSSES[loss].value(margins, data.targets).mean() + ridge @ w**2 / 2
        slope = wide.T @ LOSSES[loss].derivative(margins, data.targets) / n + ridge * w
        return value + np.tile(lasso, 2) @ parts, np.concatenate([lasso + slope, lasso - slope])

    bounds = [(0, None)] * (2 * d + 2)
    options = {"maxiter": 10_000, "maxfun": 10_000, "ftol": 1e-15, "gtol": 1e-10}
    found = minimize(value_and_slope, np.zeros(2 * d + 2), jac=True, bounds=bounds, options=options)
    return (found.x[: d + 1] - found.x[d + 1 :])[None, :]


def hinge_optimum(data, l2, l1, fit_intercept):
    """Exact: a linear program for the l1 penalty, support vectors for l2 (rows turned around want no intercept)."""
    Z, y = table(data), data.targets
    n, d = Z.shape
    if l1 > 0:
        turned = y[:, None] * np.hstack([Z, -Z, np.full((n, 1), fit_intercept), np.full((n, 1), -1.0 * fit_intercept)])
        cost = np.concatenate([np.full(2 * d, l1), [0.0, 0.0], np.full(n, 1 / n)])
        found = linprog(cost, A_ub=-np.hstack([turned, np.eye(n)]), b_ub=-np.ones(n)).x
        return np.append(found[:d] - found[d : 2 * d], found[2 * d] - found[2 * d + 1])[None, :]
    if not fit_intercept:
        Z, y = np.vstack([Z, -Z]), np.concatenate([y, -y])
    model = SVC(kernel="linear", C=1 / len(Z) / l2, tol=1e-6).fit(Z, y)
    return np.append(model.coef_[0], model.intercept_ * fit_intercept)[None, :]


def optimum(loss, data, l2, l1, fit_intercept):
    if loss == "hinge":
        return hinge_optimum(data, l2, l1, fit_intercept)
    if loss == "multinomial":
        return scikit_learn(loss, data, l2, fit_intercept)
    return smooth_optimum(loss, data, l2, l1, fit_intercept)


@pytest.mark.parametrize(
    ("loss", "l2", "l1"),
    [(loss.name, 0.01, 0.0) for loss in Sgd.serves.losses]
    + [(loss.name, 0.0, 0.02) for loss in Sgd.serves.losses if loss != MULTINOMIAL],  # for which there is no peer
)
@either.intercept
@either.table
def test_without_noise_it_finds_the_optimum(loss, fit_intercept, sparse, l2, l1):
    n, d = 300, 4
    data = rows(loss, n, d, sparse, seed=1)
    problem = task(loss, n, d, sparse, fit_intercept, epsilon=math.inf, penalties=("l1",) if l1 else ("l2",))
    weights = run(problem, data, l2=l2, l1=l1).weights
    if not fit_intercept:
        assert not weights[:, -1].any()
    best = objective(loss, data, optimum(loss, data, l2, l1, fit_intercept), l2, l1)
    # The hinge's kink is rounded a little.
    assert best - 1e-9 <= objective(loss, data, weights, l2, l1) <= best * (1 + (1e-3 if loss == "hinge" else 1e-6))


def test_l1_makes_exact_zeros_where_the_lasso_has_them():
    n, d = 400, 12
    data = rows("squared", n, d, seed=2)
    rng = np.random.default_rng(3)
    data = bounded(data.Z, data.Z[:, :3] @ [1.0, -1.0, 0.5] + 0.3 * rng.normal(size=n))
    lasso = Lasso(alpha=0.2, tol=1e-12, max_iter=100_000).fit(data.Z, data.targets)
    weights = run(task("squared", n, d, epsilon=math.inf, penalties=("l1",)), data, l1=0.2).weights[0]
    assert 0 < np.sum(lasso.coef_ == 0) < d
    np.testing.assert_array_equal(weights[:-1] == 0.0, lasso.coef_ == 0.0)
    np.testing.assert_allclose(weights, np.append(lasso.coef_, lasso.intercept_), atol=1e-6)


def test_the_intercept_is_not_penalised():
    data = rows("logistic", 300, 3, seed=4)
    weights = run(task("logistic", 300, 3, epsilon=math.inf, penalties=("l1",)), data, l1=1e3).weights[0]
    assert not weights[:-1].any()
    share = np.mean(data.targets > 0)
    assert weights[-1] == pytest.approx(math.log(share / (1 - share)), abs=1e-6)


def test_each_feature_may_have_its_own_penalty():
    data, problem = rows("squared", 500, 3, seed=3), task("squared", 500, 3, epsilon=math.inf)
    penalty = Penalty(l2=np.array([1e6, 0.0, 0.0]), l1=np.array([0.0, 1e6, 0.0]))
    weights = solved(Sgd(), problem, replace(data, penalty=penalty)).weights[0]
    assert abs(weights[0]) < 1e-5
    assert weights[1] == 0.0
    assert abs(weights[2]) > 1e-2


@every_loss
def test_sparse_and_dense_agree(loss):
    data = rows(loss, 200, 6, sparse=True, seed=2)
    whole = Sgd(batch_size=200, n_passes=40)
    one = run(task(loss, 200, 6, True, epsilon=math.inf), data, whole, l2=0.01).weights
    other = run(task(loss, 200, 6, epsilon=math.inf), bounded(table(data), data.targets), whole, l2=0.01).weights
    np.testing.assert_allclose(one, other, atol=2e-6)


@every_loss
def test_generous_budgets_come_close(loss):
    n, d = 4000, 6
    data = rows(loss, n, d, seed=5)
    best = objective(loss, data, optimum(loss, data, 1e-3, 0.0, True), 1e-3)
    weights = run(task(loss, n, d, epsilon=8.0), data, l2=1e-3).weights
    nothing = objective(loss, data, np.zeros_like(weights), 1e-3)
    assert objective(loss, data, weights, 1e-3) <= best + 0.2 * (nothing - best)


# --- the proximal step -------------------------------------------------------------------------------------

numbers = st.floats(-1e6, 1e6)
strengths = st.floats(0.0, 1e3)


@given(numbers, st.floats(1e-6, 1e3), strengths, strengths)
@repeatable
def test_the_proximal_step_is_that_of_the_penalty(w, step, l2, l1):
    expected = Penalty(l1, l2).prox([w], step)[0]
    found = _proximal(np.array([w]), step, np.array([l2]), np.array([l1]))[0]
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-12 * (1 + abs(w)))
    assert (found == 0.0) == (expected == 0.0)


# --- the rules ---------------------------------------------------------------------------------------------


def rules(loss="logistic", n=10_000, d=20, mu=0.5, fit_intercept=True, **options):
    budget = Budget.from_mu(mu, 1e-6) if math.isfinite(mu) else Budget(math.inf, 1e-6)
    return Sgd(**options).at(replace(task(loss, n, d, fit_intercept=fit_intercept, outputs=1), budget=budget))


@either.intercept
def test_usual_rules(fit_intercept):
    width = 20 + fit_intercept
    for loss, curvature in {"squared": 1, "logistic": 0.25, "multinomial": 0.5, "hinge": 1, "squared_hinge": 2}.items():
        found = rules(loss, mu=0.5, fit_intercept=fit_intercept)
        assert (found.steps, found.tail, found.kink) == (200, 100, 1.0)
        assert found.sampling == pytest.approx(2.0 * 0.5 / math.sqrt(200))
        assert found.clip == pytest.approx(math.sqrt(width) / 2)
        assert found.momentum == pytest.approx(0.95)
        assert found.step == pytest.approx(min(1 / (curvature * width), 0.6 * 10_000 * 0.5 / 21 * 0.05 / 200))
        assert [found.pace(k) for k in (0, 57, 199)] == [(found.momentum, found.step, 1.0)] * 3


def test_a_small_table_is_taken_whole_and_a_large_one_has_a_least_sample():
    assert rules(n=60).sampling == 1.0
    assert rules(n=10**6, mu=1e-5).sampling == pytest.approx(64 / 10**6)


def test_the_noise_of_a_step_is_near_twice_its_sensitivity():
    problem = task("logistic", 10**5, 20, epsilon=1.0)
    calibrated = promise(Sgd(), problem)
    assert 1.5 < calibrated.multiplier("gradients") < 3.0


def test_rules_grow_as_the_noise_vanishes():
    found = [rules("hinge", mu=mu) for mu in (0.01, 0.1, 1.0, 10.0, 100.0, 1e4, math.inf)]
    for name in ("steps", "clip", "momentum", "sampling"):
        values = [getattr(rule, name) for rule in found]
        assert values == sorted(values)
    kinks = [rule.kink for rule in found]
    assert kinks == sorted(kinks, reverse=True)
    assert (found[-1].steps, found[-1].tail, found[-1].sampling) == (2000, 200, 1.0)
    assert found[-1].kink == 0.002
    assert found[-1].clip >= 1e6


def test_without_noise_the_kink_narrows_and_steps_shorten_with_it():
    rule = rules("hinge", mu=math.inf)
    momenta, steps, kinks = zip(*(rule.pace(k) for k in range(rule.steps)), strict=True)
    assert kinks[0] == 1.0
    assert kinks[-rule.tail :] == (rule.kink,) * rule.tail
    assert list(kinks) == sorted(kinks, reverse=True)
    assert list(momenta) == sorted(momenta)
    assert momenta[0] == 0.95
    assert momenta[-1] == rule.momentum
    np.testing.assert_allclose(np.array(steps) / kinks, 1 / 21)


@pytest.mark.parametrize("loss", [loss.name for loss in Sgd.serves.losses if loss != HINGE])
def test_other_losses_have_no_kink(loss):
    assert {rules(loss, mu=math.inf).pace(k)[1:] for k in (0, 500, 1999)} == {(rules(loss, mu=math.inf).step, 1.0)}


@pytest.mark.parametrize(
    ("options", "steps", "sampling"),
    [
        ({"batch_size": 500}, 200, 0.05),
        ({"batch_size": 10_000}, 200, 1.0),
        ({"batch_size": 500, "n_passes": 2}, 40, 0.05),
        ({"batch_size": 10_000, "n_passes": 7}, 7, 1.0),
        ({"batch_size": 10_000, "n_passes": 0.01}, 1, 1.0),
        ({"n_passes": 3.0}, round(3.0 / (2.0 * 0.5 / math.sqrt(200))), 2.0 * 0.5 / math.sqrt(200)),
    ],
)
def test_users_may_set_the_sample_and_the_passes(options, steps, sampling):
    found = rules(**options)
    assert (found.steps, found.sampling) == (steps, pytest.approx(sampling))
    assert 1 <= found.tail <= found.steps


@pytest.mark.parametrize("loss", ["squared", "hinge"])
@pytest.mark.parametrize("mu", [0.5, math.inf])
def test_users_may_set_clip_step_momentum_and_what_is_averaged(loss, mu):
    found = rules(loss, mu=mu, clip=2, learning_rate=7.0, momentum=0, averaging="last")
    assert (found.clip, found.momentum, found.tail) == (2.0, 0.0, 1)
    assert {found.pace(k)[:2] for k in range(found.steps)} == {(0.0, 7.0)}
    usual = rules(loss, mu=mu)
    for options, changed in (({"averaging": "tail"}, {}), ({"clip": 2.0},) * 2, ({"averaging": "last"}, {"tail": 1})):
        assert replace(rules(loss, mu=mu, **options), task=usual.task) == replace(usual, **changed)


def test_bad_options_are_refused():
    for options, message in (
        ({"n_passes": 0.0}, "n_passes must be"),
        ({"n_passes": 100_001}, "n_passes must be at most 100,000"),
        ({"batch_size": 0}, "batch_size must be"),
        ({"batch_size": 2.5}, "batch_size must be"),
        ({"clip": 0.0}, "clip must be"),
        ({"clip": math.inf}, "clip must be"),
        ({"learning_rate": -1.0}, "learning_rate must be"),
        ({"learning_rate": 1e200}, "learning_rate must lie between"),
        ({"momentum": 1.0}, "momentum must be below 1"),
        ({"momentum": -0.1}, "momentum must lie in"),
        ({"averaging": "periodic"}, "averaging must be one of 'last', 'tail'"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            Sgd(**options).check()
    with pytest.raises(ValueError, match=r"batch_size must be at most the number of rows, 10,000, got 20000"):
        rules(batch_size=20_000)
    with pytest.raises(ValueError, match=r"n_passes=2000 with batch_size=1 would make 20,000,000 steps"):
        rules(batch_size=1, n_passes=2_000)


# --- plan and run ------------------------------------------------------------------------------------------


def test_the_plan_is_one_release_on_samples():
    (release,) = Sgd(batch_size=20, n_passes=6).at(task("logistic", 100, 3)).releases(0.4)
    assert (release.name, release.kind, release.share) == ("gradients", "gaussian", 0.4)
    assert (release.count, release.sampling) == (30, 0.2)


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
@pytest.mark.parametrize("n", [500, 50_000])
def test_another_accountant_finds_the_same_epsilon(n, epsilon):
    """The event built by hand from the rules, through dp_accounting alone."""
    problem = task("logistic", n, 10, epsilon=epsilon)
    calibrated = promise(Sgd(), problem)
    rule = Sgd().at(problem)
    event = PoissonSampledDpEvent(rule.sampling, GaussianDpEvent(calibrated.multiplier("gradients")))
    assert calibrated.event == SelfComposedDpEvent(event, rule.steps)
    found = PLDAccountant().compose(event, rule.steps).get_epsilon(problem.budget.delta)
    assert 0.99 * epsilon <= found <= epsilon


@every_loss
@either.intercept
@either.table
@pytest.mark.parametrize("batch_size", [10, 60])
def test_a_run_makes_the_releases_of_its_plan(loss, fit_intercept, sparse, batch_size, monkeypatch):
    problem, solver = task(loss, 60, 4, sparse, fit_intercept), Sgd(batch_size=batch_size, n_passes=2)
    samples, sample = [], Gate.sample
    monkeypatch.setattr(Gate, "sample", lambda *a: samples.append(sample(*a)) or samples[-1])
    with transcript() as steps:
        solution = run(problem, rows(loss, 60, 4, sparse), solver)
    assert len(steps) == solver.at(problem).steps == (12 if batch_size == 10 else 2)
    assert len(samples) == (12 if batch_size == 10 else 0)  # all rows need no coins
    for array in (solution.weights, solution.noise):
        assert array.shape == (problem.outputs, 5)
        assert np.all(np.isfinite(array))
        assert fit_intercept or not array[:, -1].any()


def test_samples_are_new_each_time_and_of_the_size_that_was_asked_for(monkeypatch):
    problem, solver = task("logistic", 2000, 2), Sgd(batch_size=100, n_passes=10)
    samples, sample = [], Gate.sample
    monkeypatch.setattr(Gate, "sample", lambda *a: samples.append(sample(*a)) or samples[-1])
    run(problem, rows("logistic", 2000, 2), solver)
    assert len({tuple(places) for places in samples}) == 200
    sizes = [len(places) for places in samples]
    assert len(set(sizes)) > 5  # independent coins: the size is random, and secret
    assert np.mean(sizes) == pytest.approx(100, abs=3)


def take(monkeypatch, places):
    """Make every sample that of these rows."""

    def sample(gate, name):
        gate._sampled[name] = 1
        return places

    monkeypatch.setattr(Gate, "sample", sample)


def test_sums_are_over_the_sample_and_divided_by_its_expected_size(monkeypatch):
    """Without noise, one step from zero: the step times the sum over the sample, over the expected size."""
    data = rows("squared", 50, 3, seed=6)
    problem, solver = task("squared", 50, 3, epsilon=math.inf), Sgd(batch_size=10, n_passes=0.2)
    places = np.array([1, 4, 20])
    take(monkeypatch, places)
    weights = run(problem, data, solver).weights[0]
    wide = np.hstack([data.Z, np.ones((50, 1))])[places]
    np.testing.assert_allclose(weights, solver.at(problem).step * wide.T @ data.targets[places] / 10, atol=2.0**-20)


@pytest.mark.parametrize("averaging", ["last", "tail"])
def test_without_momentum_it_is_the_papers_dp_sgd(averaging):
    """The papers' baseline by hand, on all rows: clipped gradients, a constant step, one iterate after the other."""
    n, d, clip, step, l2 = 60, 3, 0.3, 0.5, 0.1
    data = rows("logistic", n, d, seed=8)
    solver = Sgd(batch_size=n, n_passes=30, clip=clip, learning_rate=step, momentum=0.0, averaging=averaging)
    weights = run(task("logistic", n, d, epsilon=math.inf), data, solver, l2=l2).weights[0]
    wide, path = np.hstack([data.Z, np.ones((n, 1))]), [np.zeros(d + 1)]
    for _ in range(30):
        gradients = LOSSES["logistic"].derivative(wide @ path[-1], data.targets)[:, None] * wide
        gradients *= np.minimum(1.0, clip / np.linalg.norm(gradients, axis=1))[:, None]
        path.append((path[-1] - step * gradients.mean(axis=0)) / np.append(np.full(d, 1.0 + step * l2), 1.0))
    tail = solver.at(task("logistic", n, d, epsilon=math.inf)).tail
    assert tail == (1 if averaging == "last" else 3)
    np.testing.assert_allclose(weights, np.mean(path[-tail:], axis=0), atol=2.0**-20)


@every_loss
def test_a_step_that_is_far_too_long_ends_in_numbers(loss):
    data, problem = rows(loss, 60, 4), task(loss, 60, 4)
    for learning_rate in (100.0, 1e100):
        found = run(problem, data, Sgd(batch_size=20, n_passes=20, learning_rate=learning_rate), l2=0.01)
        assert np.all(np.isfinite(found.weights))
        assert np.all(np.isfinite(found.noise))


@either.table
def test_an_empty_sample_is_a_step_of_noise_alone(sparse, monkeypatch):
    take(monkeypatch, np.array([], dtype=np.int64))
    with transcript() as steps:
        run(task("logistic", 50, 3, sparse), rows("logistic", 50, 3, sparse), Sgd(batch_size=5, n_passes=1))
    assert len(steps) == 10
    assert not any(step.value.any() for step in steps)
    assert all(np.all(step.released != 0.0) for step in steps)


def test_a_seed_repeats_a_run():
    problem, data, solver = task("logistic", 80, 4), rows("logistic", 80, 4), Sgd(batch_size=20, n_passes=3)
    first, again, other = (run(problem, data, solver, seed=seed).weights for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert np.all(first != other)


@every_loss
@either.table
@pytest.mark.parametrize("epsilon", [1.0, 1e6], ids=["usual", "calm"])
def test_one_row_moves_a_release_within_its_sensitivity(loss, sparse, epsilon):
    """On all rows: what a sampled release sees when the row takes part."""
    n, d = 15, 4
    problem, solver = task(loss, n, d, sparse, epsilon=epsilon), Sgd(batch_size=n, n_passes=5)
    data = rows(loss, n, d, sparse, seed=7)
    low, high = {"squared": (-3.0, 3.0), "multinomial": (0.0, 2.0)}.get(loss, (-1.0, 1.0))
    closest = 0.0
    for row, target in ((np.full(d, 1e4), low), (-np.full(d, 1e4), high), (np.eye(d)[0] * 1e-5, low)):
        Z, targets = table(data).copy(), data.targets.copy()
        Z[3], targets[3] = row, target
        rows_there = np.arange(n), np.delete(np.arange(n), 3)
        worlds = [bounded(type(data.Z)(Z[k]) if sparse else Z[k], targets[k]) for k in rows_there]
        for one, other in neighbours(lambda world: run(problem, world, solver, seed=9), *worlds):
            assert one.distance(other) <= one.sensitivity
            closest = max(closest, one.distance(other) / one.sensitivity)
    assert closest > 0.999 or epsilon > 1.0  # without noise hardly anything is clipped


# --- the stated noise --------------------------------------------------------------------------------------


@every_loss
@pytest.mark.parametrize(("n", "d"), [(400, 3), (1000, 10)])
def test_the_stated_noise_is_right_within_a_factor_of_two(loss, n, d):
    """On all rows, so that noise is all that differs between runs."""
    problem, solver = task(loss, n, d, epsilon=1.0), Sgd(batch_size=n)
    runs = [run(problem, spread_rows(loss, n, d), solver, seed=seed) for seed in range(25)]
    seen = np.sqrt(np.mean(np.var([solution.weights for solution in runs], axis=0)))
    assert 0.5 < seen / runs[0].noise.mean() < 2.0


@pytest.mark.parametrize("mu", [0.1, 1.0, 30.0])
@pytest.mark.parametrize(("curvature", "l2"), [(0.0, 0.0), (0.3, 0.0), (0.1, 0.2)])
@pytest.mark.parametrize("options", [{}, {"learning_rate": 0.4, "momentum": 0.0, "averaging": "last"}], ids=str)
def test_the_reach_of_noise_is_that_of_the_steps(curvature, l2, mu, options):
    """The steps themselves, on noise alone and one column of variance 1."""
    rule = rules(n=2000, d=4, mu=mu, **options)
    noise = np.random.default_rng(1).normal(size=(rule.steps, 4000))
    w, velocity, mean = np.zeros(4000), np.zeros(4000), np.zeros(4000)
    for k in range(rule.steps):
        momentum, step, _ = rule.pace(k)
        ahead = w + momentum * velocity
        moved = _proximal(ahead - step * (curvature * ahead + noise[k]), step, l2, 0.0)
        velocity, w = moved - w, moved
        if k >= rule.steps - rule.tail:
            mean += w / rule.tail
    # With little noise the momentum rises to its final value, which is taken for all steps.
    assert rule.reach(curvature, l2) == pytest.approx(mean.std(), rel=0.05 if mu <= 1.0 else 0.3)
