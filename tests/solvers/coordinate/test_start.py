"""A public start in the user's units, and the path that a fit tells, through the estimators."""

import math

import numpy as np
import pytest
from scipy.sparse import csr_array

from tacit import Lasso, LinearRegression, LogisticRegression
from tacit.blocks.bounded import Scaling
from tacit.bounding.linear import Units
from tacit.problems import Penalty
from tacit.solvers import Coordinate
from tacit.solvers.base import Solution
from tests.solvers.support import either_intercept, either_table

pytestmark = pytest.mark.filterwarnings("ignore:.*(random_state is set|budget is too small):UserWarning")

START = np.array([0.4, -0.02, 3.0])


def problem(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [1.0, 50.0, 0.1] + [0.0, 300.0, 1.0]
    return X, X @ [0.5, -0.03, 2.0] + 7.0 + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize("regression", [True, False])
def test_weights_in_bounded_units_are_the_way_back_of_a_model(regression):
    rng = np.random.default_rng(1)
    features = Scaling(rng.normal(size=3), rng.uniform(0.1, 9.0, size=3), 3.0)
    units = Units(features, Scaling(np.array([5.0]), np.array([2.5]), 3.0) if regression else None, None)
    weights = rng.normal(size=(1, 4))
    model = units.model(Solution(weights, np.zeros((1, 4)), weights), Penalty())
    np.testing.assert_allclose(units.weights(model.coef[0], float(model.intercept[0])), weights[0], rtol=1e-12)
    assert units.weights(model.coef[0], None)[-1] == 0.0
    for path, one in zip(model.path, (model.coef, model.intercept), strict=True):
        np.testing.assert_array_equal(path, one)


@either_table
@either_intercept
@pytest.mark.parametrize("kind", [LinearRegression, LogisticRegression])
def test_a_fit_that_hardly_moves_returns_its_start(kind, sparse, fit_intercept):
    X, y = problem()
    targets = y if kind is LinearRegression else np.where(y > np.median(y), 1, 0)
    intercept = {"intercept_init": -2.0} if fit_intercept else {}
    solver = Coordinate(n_passes=1, step=1e-12, coef_init=START, **intercept)
    penalty = {} if kind is LinearRegression else {"C": math.inf}
    model = kind(math.inf, solver=solver, fit_intercept=fit_intercept, **penalty)
    model.fit(csr_array(X) if sparse else X, targets)
    np.testing.assert_allclose(np.ravel(model.coef_), START, rtol=1e-6)
    assert np.ravel(model.intercept_)[0] == pytest.approx(-2.0 if fit_intercept else 0.0, rel=1e-6)


def test_a_start_at_the_truth_spares_the_updates_that_lead_there():
    X, y = problem(n=3_000)
    started, plain = (
        LinearRegression(1.0, solver=Coordinate(n_passes=0.25, **start), random_state=0).fit(X, y)
        for start in ({"coef_init": [0.5, -0.03, 2.0]}, {})
    )
    assert started.score(X, y) > 0.9 > plain.score(X, y) + 0.1


@pytest.mark.parametrize("passes", [4, 3.5, 0.5])
@pytest.mark.parametrize("kind", [Lasso, LogisticRegression])
def test_the_path_is_told_in_the_users_units_and_ends_at_the_last_iterate(kind, passes):
    X, y = problem()
    y = y if kind is Lasso else y > np.median(y)
    model = kind(2.0, solver=Coordinate(n_passes=passes, averaging="last", keep_path=True)).fit(X, y)
    assert model.coef_path_.shape == (math.ceil(passes), 3)
    assert model.intercept_path_.shape == (math.ceil(passes),)
    np.testing.assert_array_equal(model.coef_path_[-1], np.ravel(model.coef_))
    assert model.intercept_path_[-1] == pytest.approx(np.ravel(model.intercept_)[0], rel=1e-12)
    model.set_params(solver__keep_path=False).fit(X, y)
    assert not hasattr(model, "coef_path_")
    assert not hasattr(model, "intercept_path_")


def test_the_path_keeps_the_bounds_and_the_tail_is_its_average():
    X, y = problem()
    solver = Coordinate(n_passes=6, keep_path=True)
    model = LinearRegression(2.0, solver=solver, coef_bounds=(0.0, 1.0), random_state=0).fit(X, y)
    assert np.all((model.coef_path_ >= 0.0) & (model.coef_path_ <= 1.0))
    np.testing.assert_allclose(model.coef_path_[3:].mean(axis=0), model.coef_, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"coef_init": [1.0, 2.0]}, "coef_init must hold one number for each of 3 features, got 2"),
        ({"coef_init": [1.0, 2.0, np.nan]}, "coef_init must hold numbers, got NaN"),
        ({"intercept_init": np.inf}, "intercept_init must lie within"),
    ],
)
def test_a_bad_start_is_refused_before_anything_is_released(options, message):
    model = LinearRegression(1.0, solver=Coordinate(**options))
    with pytest.raises(ValueError, match=message):
        model.fit(*problem())
    assert not hasattr(model, "guarantee_")
