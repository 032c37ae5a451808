"""Gradient steps on text: the steps without noise, against NumPy; its limit; its rules; odd input."""

import math
import tracemalloc

import numpy as np
import pytest
from scipy.sparse import csr_array

from tacit import LogisticRegression
from tacit.privacy.mechanisms import GaussianVector, selection
from tacit.solvers import Gradient, OneShot, Text, choose, text
from tacit.solvers.text import steps as module
from tests.solvers.support import bounded, either, objective, promise, rows, scikit_learn, solve, table, task
from tests.solvers.text.support import check_odd_rows, check_overflowing_row

quiet = pytest.mark.filterwarnings("ignore:.*(random_state is set|is not below 1/n):UserWarning")


@pytest.fixture
def noiseless(monkeypatch):
    """Rules as for the budget that was asked for, but noise is left out."""

    def draw(self, grant, value):  # noqa: ARG001
        grant.take()
        return np.array(value, dtype=np.float64)

    monkeypatch.setattr(GaussianVector, "draw", draw)
    monkeypatch.setattr(selection, "_pick", lambda scores, *_: int(np.argmax(scores)))


def run(problem, data, l2=0.0, solver="text"):
    return solve(problem, data, l2, solver=solver)


def words(n, d, seed=0):
    """Rows of words, common ones first, with two classes that use them differently."""
    rng = np.random.default_rng(seed)
    rates = 1.0 / np.arange(2, d + 2)
    positive = rng.random(n) < 0.4
    lean = rng.choice([0.5, 2.0], size=d)
    Z = (rng.random((n, d)) < 2.0 * rates * np.where(positive[:, None], lean, 1.0 / lean)).astype(np.float64)
    Z *= math.sqrt(d) / np.maximum(np.linalg.norm(Z, axis=1), 1e-9)[:, None]
    return bounded(csr_array(Z), np.where(positive, 1.0, -1.0))


def reference(solver, problem, data, l2):
    """The weights without noise, from dense arrays: the module's rules in plain NumPy."""
    calibrated = promise(solver, problem)
    n, d, steps = problem.n, problem.d, solver.at(problem).steps
    Z, positive = table(data), data.targets > 0
    X = Z / np.maximum(np.linalg.norm(Z, axis=1), math.sqrt(d))[:, None]
    once, twice, root = (1.0, 2.0, math.sqrt(2)) if problem.budget.adjacency == "replace-one" else (1.0, 1.0, 1.0)
    p = 0.5
    if problem.fit_intercept:
        p += (positive.mean() - 0.5) / (1 + 12 * (once * calibrated.multiplier("class share") / n) ** 2)
    c, offset = max(p, 1 - p), math.log(p / (1 - p))
    m = np.abs(X).sum(axis=0)
    q = 1.7 * root * calibrated.multiplier("column sizes") * math.sqrt(2 * math.log(d))
    b = (q + m.min()) / (q + m)
    norms = np.linalg.norm(X * b, axis=1)
    R = min(1.0, math.sqrt(max((norms**2).sum(), calibrated.multiplier("row norms")) / n))
    V = X * b / np.maximum(norms, R)[:, None]
    V = np.hstack([V, np.full((n, 1), 0.1 * problem.fit_intercept)])
    size = c * math.hypot(1.0, 0.1 * problem.fit_intercept)
    deviation = twice * calibrated.multiplier("gradients") * size
    one = deviation / math.sqrt(steps)
    rate = min(0.35 * min(1.0, n * size / one / 4_000) / one / steps, 320 / n)
    penalty = np.append(0.1 * n * l2 / d * np.maximum(1.0, (b / R) ** 2), 0.0)
    w = before = at = np.zeros(d + 1)
    last = None
    for _ in range(steps):
        g = V.T @ np.clip(positive - 1 / (1 + np.exp(-(V @ at + offset))), -c, c) - penalty * at
        if last is not None:
            move = at - last[0]
            curvature = move @ (last[1] - g) / (move @ move) - 4 * deviation / np.linalg.norm(move)
            rate = min(rate, 1 / curvature) if curvature > 0 else rate
        last = at, g
        before, w = w, at + rate * g
        at = w + 0.5 * (w - before)
    noise = 2 * rate * deviation * math.sqrt(steps)
    coef = w[:-1] * b / R / math.sqrt(1 + math.pi / 8 * noise**2) / math.sqrt(d)
    if not problem.fit_intercept:
        return np.append(coef, 0.0)
    thresholds = text.GRID * np.linalg.norm(coef)
    return np.append(coef, -thresholds[np.argmax([np.sum((Z @ coef > t) == positive) for t in thresholds])])


@either.intercept
@either.adjacency
@pytest.mark.usefixtures("noiseless")
@pytest.mark.parametrize(("epsilon", "l2"), [(0.5, 0.0), (5.0, 0.01), (200.0, 0.0), (200.0, 1.0)])
def test_without_noise_its_steps_are_those_of_numpy(fit_intercept, adjacency, epsilon, l2):
    n, d = 300, module.WIDE + 1
    data = words(n, d)
    problem = task("logistic", n, d, True, fit_intercept, epsilon, adjacency)
    found = run(problem, data, l2, solver=Text(n_iter=12)).weights[0]
    np.testing.assert_allclose(found, reference(Text(n_iter=12), problem, data, l2), rtol=1e-6, atol=1e-9)
    assert np.linalg.norm(found[:-1]) > 0


@either.intercept
@pytest.mark.parametrize("l2", [1e-3, 0.1])
def test_at_infinite_epsilon_it_is_scikit_learn(fit_intercept, l2):
    n, d = 300, module.WIDE + 1
    data = words(n, d)
    l2 *= d  # of weights on unit rows
    ours = run(task("logistic", n, d, True, fit_intercept, math.inf), data, l2).weights
    best = objective("logistic", data, scikit_learn("logistic", data, l2, fit_intercept), l2)
    assert objective("logistic", data, ours, l2) == pytest.approx(best, rel=1e-6)


def test_noise_fades_into_the_limit():
    n, d, l2 = 600, 20, 0.01
    data = rows("logistic", n, d, sparse=True)
    best = objective("logistic", data, scikit_learn("logistic", data, l2, True), l2)
    above = [
        objective("logistic", data, run(task("logistic", n, d, True, epsilon=e), data, l2).weights, l2) / best - 1
        for e in (1.0, 1e3, 1e6, 1e9)
    ]
    assert above[0] > above[1] > above[2] > above[3]
    assert above[1] < 0.15  # with a tenth of the penalty
    assert above[2] < 1e-4
    assert above[3] < 1e-5


@pytest.mark.usefixtures("noiseless")
def test_no_weight_is_penalised_less_than_a_tenth_of_what_is_asked(monkeypatch):
    """The penalty on weights of rescaled rows, in the units of bounded rows, is at least l2 / 10 in each."""
    n, d, l2 = 400, 30, 0.3
    data = words(n, d)
    seen = {}
    descend = module._Descent.run

    def noted(descent, gate, penalty):
        seen.update(penalty=penalty, b=descent._b)
        return descend(descent, gate, penalty)

    monkeypatch.setattr(module._Descent, "run", noted)
    run(task("logistic", n, d, True, epsilon=20.0), data, l2)
    b = seen["b"]
    norms = np.linalg.norm(table(data) / math.sqrt(d) * b, axis=1)
    R = math.sqrt(np.mean(norms**2))
    # coef = w b / (R sqrt(d)), so penalty w^2 / 2 is penalty R^2 d / b^2 coef^2 / 2, next to the sum of n losses.
    tenfold = 10.0 * seen["penalty"] * R**2 * d / b**2 / n
    assert np.all(tenfold >= l2 * (1 - 1e-6))
    assert tenfold.max() > 1.5 * l2 > 1.4 * tenfold.min()


def test_a_stronger_penalty_gives_smaller_weights():
    data = words(300, 1_001)
    norms = [
        np.linalg.norm(run(task("logistic", 300, 1_001, True, epsilon=300.0), data, l2).weights[0, :-1])
        for l2 in (0.0, 1e2, 1e4)
    ]
    assert norms[0] > 1.05 * norms[1] > 2 * norms[2]


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [50.0, 1e4, 1e7])
def test_columns_that_always_come_together_do_not_upset_the_steps(epsilon):
    """The curvature is then as large as can be, far more than steps for text expect."""
    rng = np.random.default_rng(0)
    n, d = 2_000, 1_200
    positive = rng.random(n) < 0.5
    Z = np.zeros((n, d))
    Z[:, :600] = np.where(positive, 1.0, 0.6)[:, None]
    Z[:, 600:] = np.where(positive, 0.6, 1.0)[:, None]
    Z *= math.sqrt(d) / np.linalg.norm(Z, axis=1)[:, None]
    Z[:40] *= -1.0
    data = bounded(csr_array(Z), np.where(positive, 1.0, -1.0))
    weights = run(task("logistic", n, d, True, epsilon=epsilon), data).weights
    right = np.mean((Z @ weights[0, :-1] + weights[0, -1] > 0) == positive)
    assert right > 0.95
    assert np.linalg.norm(weights) < 1e3


def test_the_noise_it_states_is_that_of_its_weights():
    """Of a column that no row has, where nothing draws noise back; it is what a step leaves, by the rule."""
    n, d = 500, 1_001
    Z = np.zeros((n, d))
    Z[:, 0] = math.sqrt(d)
    data = bounded(csr_array(Z), np.resize([1.0, -1.0], n))
    solution = run(task("logistic", n, d, True, epsilon=2.0), data)
    # Momentum is not there yet in the last steps.
    assert np.std(solution.weights[0, 1:-1]) == pytest.approx(np.mean(solution.noise[0, 1:-1]), rel=0.1)


def test_its_releases():
    def names(solver, loss, d, sparse, **facts):
        return [release.name for release in solver.at(task(loss, 500, d, sparse, **facts)).releases(1.0)]

    full = ["class share", "column sizes", "row norms", "gradients", "threshold"]
    assert names(Text(), "logistic", module.WIDE + 1, True) == full
    assert names(Text(), "logistic", module.WIDE + 1, True, fit_intercept=False) == full[1:-1]
    for other in (
        ("logistic", module.WIDE + 1, True),
        ("logistic", module.WIDE, True),
        ("logistic", module.WIDE + 1, False),
        ("multinomial", module.WIDE + 1, True),
        ("squared", module.WIDE + 1, True),
    ):
        assert "second moments" in names(Gradient(), *other)


def test_it_serves_sparse_rows_of_two_classes():
    assert isinstance(choose("text", task("logistic", 500, 5, True)), Text)
    for problem, missing in (
        (task("logistic", 500, 5), "dense rows"),
        (task("multinomial", 500, 5, True), "the multinomial loss"),
        (task("squared", 500, 5, True), "the squared loss"),
    ):
        with pytest.raises(ValueError, match=f"solver='text' does not serve {missing}"):
            choose("text", problem)


def test_the_number_of_steps_is_the_users_or_grows_as_noise_vanishes():
    def steps(n_iter=None, **given):
        found = Text(n_iter).at(task("logistic", 2_000, 5_000, True, **given))
        assert found.releases(1.0)[3].count == found.steps
        return found.steps

    counts = [steps(epsilon=e) for e in (0.1, 10.0, 1e4, 1e6, math.inf)]
    assert counts == sorted(counts)
    assert (counts[0], counts[1], counts[-1]) == (30, 30, 600)
    assert steps(7) == steps(7, epsilon=math.inf) == 7
    for wrong in (0, 2.5, 100_001):
        with pytest.raises((TypeError, ValueError), match="n_iter must be"):
            Text(n_iter=wrong).check()


@either.adjacency
@either.intercept
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 1e4, math.inf])
def test_odd_rows_give_finite_weights(adjacency, fit_intercept, epsilon):
    problem = task("logistic", 5, 3, True, fit_intercept, epsilon, adjacency)
    check_odd_rows(lambda data: run(problem, data), sparse=True)


def test_a_row_that_overflows_is_as_good_as_absent():
    check_overflowing_row(lambda data: run(task("logistic", 50, 4, True), data))


@pytest.mark.parametrize("solver", [Text(n_iter=2), OneShot()], ids=lambda solver: solver.name)
def test_no_array_of_the_size_of_the_rows_is_made(solver):
    rng = np.random.default_rng(0)
    n, d, each = 10_000, 1_001, 50
    place = rng.integers(0, d, size=n * each), np.arange(n + 1) * each
    data = bounded(csr_array((rng.random(n * each), *place), shape=(n, d)), np.resize([1.0, -1.0], n))
    before = data.Z.data.copy()
    problem = task("logistic", n, d, True)
    run(problem, data, solver=solver)  # which compiles
    tracemalloc.start()
    run(problem, data, solver=solver)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < data.Z.data.nbytes / 2
    np.testing.assert_array_equal(data.Z.data, before)


@quiet
def test_auto_learns_text_and_predicts_by_a_linear_rule():
    data = words(3_000, 1_500)
    X, y = csr_array(data.Z / math.sqrt(1_500)), data.targets
    model = LogisticRegression(epsilon=3.0, row_norm=1.0, random_state=0).fit(X, y)
    assert model.guarantee_.solver == "text"
    assert model.score(X, y) > 0.8
    margins = X @ model.coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(X), margins)
    np.testing.assert_array_equal(model.predict(X), np.where(margins > 0, 1.0, -1.0))
    little = LogisticRegression(epsilon=0.1, row_norm=1.0, random_state=0).fit(X, y)
    assert little.guarantee_.solver == "one-shot"
