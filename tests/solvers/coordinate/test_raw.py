"""Columns as they are (`rescale=False`): declared bounds and no scales, penalties in the user's units."""

import math

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import Lasso as PlainLasso
from sklearn.linear_model import LogisticRegression as PlainLogisticRegression

from tacit import Lasso, LogisticRegression
from tacit.privacy import Gate, NoiseSource, Plan
from tacit.problems.bounds import Bounds
from tacit.solvers import Coordinate
from tacit.solvers.coordinate.columns import Columns, Smoothness
from tests.guarantees.recorder import transcript
from tests.solvers.support import bounded, either_adjacency, either_intercept, either_table, solved, task

pytestmark = pytest.mark.filterwarnings("ignore:.*(random_state is set|budget is too small):UserWarning")

SIZES = np.array([1.0, 50.0, 2_000.0, 0.1])
BOUNDS = [(-4.0 * size, 5.0 * size) for size in SIZES]


def problem(n=2_000, seed=0):
    """Columns of very different sizes, not centred."""
    rng = np.random.default_rng(seed)
    Z = np.clip(rng.normal([0.0, 1.0, 0.5, -0.5], size=(n, 4)), -4.0, 5.0)
    return Z * SIZES, np.clip(Z @ [1.0, -0.5, 0.3, 0.2] + 0.3 * rng.normal(size=n), -8.0, 8.0)


def stored(X, sparse):
    return csr_array(X) if sparse else X


def objective(X, y, coef, intercept, alpha):
    return 0.5 * np.mean((X @ coef + intercept - y) ** 2) + alpha * np.abs(coef).sum()


@either_table
@either_intercept
@pytest.mark.parametrize("alpha", [0.001, 0.1])
def test_without_noise_it_is_the_lasso_of_the_columns_as_they_are(alpha, fit_intercept, sparse):
    X, y = problem()
    solver = Coordinate(rescale=False, averaging="last")
    model = Lasso(math.inf, alpha=alpha, bounds=BOUNDS, y_bounds=(-8, 8), solver=solver, fit_intercept=fit_intercept)
    model.fit(stored(X, sparse), y)
    plain = PlainLasso(alpha, fit_intercept=fit_intercept, tol=1e-12, max_iter=100_000).fit(X, y)
    best = objective(X, y, plain.coef_, plain.intercept_, alpha)
    assert objective(X, y, model.coef_, model.intercept_, alpha) <= best * (1 + 1e-5)
    np.testing.assert_array_equal(model.coef_ == 0.0, plain.coef_ == 0.0)
    assert (model.coef_ == 0.0).any() == (alpha == 0.1)  # small columns are penalised most


def test_without_noise_a_strength_of_logistic_regression_is_for_the_columns_as_they_are():
    X, y = problem()
    solver = Coordinate(rescale=False, averaging="last", n_passes=500)
    model = LogisticRegression(math.inf, C=0.01, bounds=BOUNDS, solver=solver, fit_intercept=False).fit(X, y > 0)
    plain = PlainLogisticRegression(C=0.01, fit_intercept=False, solver="newton-cholesky", tol=1e-10).fit(X, y > 0)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-3)


@either_table
def test_a_private_fit_comes_close_on_columns_of_very_different_size(sparse):
    X, y = problem(n=20_000)
    alpha, errors = 0.001, []
    plain = PlainLasso(alpha, fit_intercept=False, tol=1e-12, max_iter=100_000).fit(X, y)
    best = objective(X, y, plain.coef_, 0.0, alpha)
    for seed in range(3):
        told = {"bounds": BOUNDS, "y_bounds": (-8, 8), "fit_intercept": False, "random_state": seed}
        model = Lasso(1.0, alpha=alpha, solver=Coordinate(rescale=False), **told).fit(stored(X, sparse), y)
        errors.append(objective(X, y, model.coef_, 0.0, alpha) / best - 1.0)
    assert np.mean(errors) < 0.02


def test_values_inside_the_bounds_are_kept_and_those_outside_are_clipped_in_fit_and_predict():
    X, y = problem(n=200)
    far = X.copy()
    far[0] = 1e6
    solver = Coordinate(rescale=False, smoothness=SIZES**2)
    models = [Lasso(2.0, bounds=BOUNDS, solver=solver, random_state=0).fit(table, y) for table in (X, far)]
    assert models[0].clip_low_.tolist() == [low for low, _ in BOUNDS]
    assert models[0].clip_high_.tolist() == [high for _, high in BOUNDS]
    edge = X.copy()
    edge[0] = models[0].clip_high_
    np.testing.assert_array_equal(models[1].coef_, models[0].set_params(random_state=0).fit(edge, y).coef_)
    np.testing.assert_array_equal(models[1].predict(far[:1]), models[1].predict(edge[:1]))


@either_table
@either_adjacency
@pytest.mark.parametrize("law", ["private", "laplace"])
def test_constants_are_released_over_the_largest_squares_that_are_declared(sparse, adjacency, law):
    n, reach = 300, np.array([2.0, 40.0, 1e-3])
    Z = np.random.default_rng(0).uniform(-1.0, 1.0, size=(n, 3))
    facts = task("squared", n, 3, sparse, adjacency=adjacency, epsilon=50.0, bounds=Bounds(-reach, reach / 2))
    smoothness = Smoothness.of(facts, law, raw=True)
    first, _ = smoothness.releases(1.0)
    promise = Plan(*first).calibrate(facts.budget, facts.unit, "test")
    with transcript() as steps, Gate(promise, NoiseSource(0)) as gate:
        found = smoothness.constants(Columns(facts, bounded(csr_array(Z) if sparse else Z, np.zeros(n))), gate)
    (step,) = steps
    assert step.sensitivity == pytest.approx(3.0 if law == "laplace" else math.sqrt(3.0), rel=1e-6)
    np.testing.assert_allclose(step.exact / n, (Z**2).mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(found[:3], (Z**2).mean(axis=0), rtol=0.3)


def test_declared_constants_are_in_the_users_units():
    X, y = problem(n=300)
    reach = 5.0 * SIZES
    facts = task("squared", 300, 4, fit_intercept=False, bounds=Bounds(-reach, reach))
    squares = np.mean(X**2, axis=0)
    raw = solved(Coordinate(rescale=False, smoothness=squares, n_passes=3), facts, bounded(X / reach, y))
    rescaled = solved(Coordinate(smoothness=squares / reach**2, n_passes=3), facts, bounded(X / reach, y))
    np.testing.assert_allclose(raw.weights, rescaled.weights, rtol=1e-12)


@pytest.mark.parametrize("bounds", [None, {0: (-1.0, 1.0)}])
def test_columns_without_bounds_are_refused_before_anything_is_released(bounds):
    model = Lasso(1.0, bounds=bounds, solver=Coordinate(rescale=False))
    with pytest.raises(ValueError, match="rescale=False needs `bounds` of all columns"):
        model.fit(*problem(n=50))
    assert not hasattr(model, "guarantee_")
    with pytest.raises(TypeError, match="rescale must be True or False"):
        Coordinate(rescale="no").check()
