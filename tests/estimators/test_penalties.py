"""Penalties, bounds on coefficients and options of solvers: what they mean, in the user's units."""

import math

import numpy as np
import pytest
from scipy import optimize, sparse
from sklearn.exceptions import NotFittedError

from tacit.solvers import Coordinate, Greedy

from .support import ELASTIC_NET, KINDS, LASSO, LINEAR, LOGISTIC, REGRESSORS, RIDGE, every, quiet, regressors

pytestmark = quiet
sparse_kinds = pytest.mark.parametrize("kind", [LASSO, ELASTIC_NET], ids=str)


def bounded(model, X, y):
    """What the model was fitted on: the columns standardised, with their scales, and the target clipped."""
    centre, scale = (model.clip_low_ + model.clip_high_) / 2, (model.clip_high_ - model.clip_low_) / 6
    return (np.clip(X, model.clip_low_, model.clip_high_) - centre) / scale, scale, np.clip(y, *model.y_bounds_)


def objective(w, Z, y, alpha, l1_ratio):
    """scikit-learn's, at the best intercept."""
    error = (y - Z @ w) - np.mean(y - Z @ w)
    return error @ error / (2 * len(y)) + alpha * (l1_ratio * np.abs(w).sum() + (1 - l1_ratio) / 2 * w @ w)


@sparse_kinds
@pytest.mark.parametrize("unit", [1.0, 1000.0, 1e-4])
@pytest.mark.parametrize("solver", ["auto", "sgd"])
def test_alpha_means_what_it_does_in_scikit_learn(kind, unit, solver):
    X, y = kind.problem(600, d=8)
    y = unit * y + 7.0
    own = {"alpha": 6.0 * unit} if kind is LASSO else {"alpha": 0.6, "l1_ratio": 0.8}
    model = kind.make(epsilon=math.inf, solver=solver, **own).fit(X, y)
    Z, scale, clipped = bounded(model, X, y)
    best = kind.peer(**own, tol=1e-10).fit(Z, clipped).coef_
    own.setdefault("l1_ratio", 1.0)
    least = objective(best, Z, clipped, **own)
    assert objective(model.coef_ * scale, Z, clipped, **own) <= least * 1.0001
    np.testing.assert_allclose(model.coef_ * scale, best, atol=0.02 * np.abs(best).max())


@sparse_kinds
def test_alpha_on_sparse_rows_is_in_the_users_units(kind):
    rng = np.random.default_rng(0)
    X = sparse.random_array((800, 6), density=0.4, rng=rng, format="csr", data_sampler=rng.standard_normal)
    X = sparse.csr_array(X * np.array([1.0, 3.0, 1.0, 0.5, 1.0, 2.0]))
    y = X @ np.array([5.0, -2.0, 0.0, 4.0, 0.1, 0.0]) + 20.0 + 0.1 * rng.standard_normal(800)
    norm = float(np.sqrt(X.multiply(X).sum(axis=1)).max()) * 1.001
    model = kind.make(epsilon=math.inf, alpha=0.3, row_norm=norm, y_bounds=(-50.0, 90.0)).fit(X, y)
    best = kind.peer(alpha=0.3, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(model.coef_, best.coef_, atol=0.01 * np.abs(best.coef_).max())
    np.testing.assert_allclose(model.intercept_, best.intercept_, rtol=0.01)


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_the_ends_of_the_elastic_net(store, epsilon):
    X, y = ELASTIC_NET.problem()
    X = store(X)
    options = {"epsilon": epsilon, "random_state": 0}

    def coef(kind, **more):
        return kind.make(**options, **more).fit(X, y).coef_

    np.testing.assert_array_equal(coef(ELASTIC_NET, alpha=0.7, l1_ratio=1), coef(LASSO, alpha=0.7))
    np.testing.assert_allclose(coef(ELASTIC_NET, alpha=0.7, l1_ratio=0), coef(RIDGE, alpha=0.7 * len(y)), rtol=1e-10)
    for kind in (ELASTIC_NET, LASSO):
        np.testing.assert_array_equal(coef(kind, alpha=0), coef(LINEAR))


@sparse_kinds
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("solver", ["auto", "sgd"])
def test_a_huge_alpha_gives_the_zero_model(kind, store, solver):
    X, y = kind.problem(3000)
    model = kind.make(alpha=1e6, solver=solver, random_state=0).fit(store(X), y)
    assert not np.any(model.coef_)
    assert model.sparse_coef_.nnz == 0
    assert abs(model.intercept_ - np.mean(y)) < 0.2 * np.std(y)


@sparse_kinds
def test_sparse_coef(kind):
    X, y = kind.problem(2000, d=30)
    with pytest.raises(NotFittedError):
        _ = kind.make().sparse_coef_
    model = kind.make(alpha=12.0, l1_ratio=0.9) if kind is ELASTIC_NET else kind.make(alpha=12.0)
    model.set_params(epsilon=math.inf).fit(X, y)
    stored = model.sparse_coef_
    assert isinstance(stored, sparse.csr_array)
    np.testing.assert_array_equal(stored.toarray(), model.coef_[None, :])
    assert 0 < stored.nnz == np.count_nonzero(model.coef_) < 30


# --- bounds on coefficients ------------------------------------------------------------------------------------------

LOW, HIGH = np.array([-0.3, -0.01, 12.7, -math.inf]), np.array([0.7, 0.03, 123.4, 1e-3])
BOUNDS = {
    "non-negative": (0, None),
    "at most zero": (None, -0.0),
    "a box": (-0.1, 0.3),
    "a box for each": (LOW, HIGH),
    "lists": (LOW.tolist(), 200.0),
    "one array": np.array([LOW, HIGH]),
    "one value": (1 / 3, 1 / 3),
}


@pytest.mark.parametrize(
    ("kind", "solver"),
    [*((kind, "coordinate") for kind in KINDS), *((kind, "greedy") for kind in REGRESSORS)],
    ids=str,
)
@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("store", [np.asarray, pytest.param(sparse.csr_array, marks=pytest.mark.slow)])
def test_coefficients_lie_within_their_bounds(kind, solver, name, store):
    X, y = kind.problem(300)
    low, high = (none if side is None else side for side, none in zip(BOUNDS[name], (-math.inf, math.inf), strict=True))
    for seed, epsilon in enumerate((0.1, 1.0, 10.0, math.inf)):
        model = kind.make(epsilon=epsilon, coef_bounds=BOUNDS[name], solver=solver, random_state=seed).fit(store(X), y)
        assert np.all((low <= model.coef_) & (model.coef_ <= high))


@regressors
def test_bounds_in_the_users_units_reach_the_best_model_within_them(kind):
    X, y = kind.problem(600)
    X[:, 3] += X[:, 0] + X[:, 1] / 100.0  # what a bound takes from one column moves others
    box = np.array([-30.0, -0.05, 0.0, -5.0]), np.array([5.0, 0.2, 900.0, math.inf])
    model = kind.make(epsilon=math.inf, coef_bounds=box, **kind.light).fit(X, y)
    Z, scale, clipped = bounded(model, X, y)
    own = {"alpha": kind.light.get("alpha", 0.0), "l1_ratio": 1.0 if kind is LASSO else 0.5}
    if kind is RIDGE:
        own = {"alpha": 1.0 / len(y), "l1_ratio": 0.0}
    limits = optimize.Bounds(box[0] * scale, box[1] * scale)
    best = optimize.minimize(objective, model.coef_ * scale, (Z, clipped, *own.values()), "L-BFGS-B", bounds=limits)
    assert objective(model.coef_ * scale, Z, clipped, **own) <= best.fun * 1.0001


@pytest.mark.parametrize("kind", [LASSO, ELASTIC_NET], ids=str)
def test_non_negative_is_scikit_learns_positive(kind):
    X, y = kind.problem(600)
    model = kind.make(epsilon=math.inf, coef_bounds=(0, None)).fit(X, y)
    Z, scale, clipped = bounded(model, X, y)
    best = kind.peer(positive=True, tol=1e-10).fit(Z, clipped)
    np.testing.assert_allclose(model.coef_ * scale, best.coef_, atol=0.01 * best.coef_.max())
    assert np.count_nonzero(model.coef_) == 3


def test_bounds_of_a_classifier():
    X, y = LOGISTIC.problem(1000)
    model = LOGISTIC.make(epsilon=math.inf, coef_bounds=(0, [math.inf, 1, 1, 1])).fit(X, y)
    assert model.coef_[0, 0] > 0.1
    assert model.coef_[0, 1] == 0.0
    assert model.score(X, y) > 0.8


@every
def test_bounds_that_bound_nothing_are_none(kind):
    X, y = kind.problem(200)
    plain = kind.make(random_state=0).fit(X, y)
    for bounds in ((None, None), (-math.inf, math.inf), (np.full(4, -math.inf), None)):
        model = kind.make(random_state=0, coef_bounds=bounds).fit(X, y)
        np.testing.assert_array_equal(model.coef_, plain.coef_)
        assert model.guarantee_ == plain.guarantee_


# --- options of solvers ----------------------------------------------------------------------------------------------

OPTIONS = (
    {"n_passes": 3},
    {"order": "cyclic"},
    {"order": "random", "clipping": "coordinate"},
    {"clipping": "coordinate"},
    {"clip": 0.4},
    {"step": 0.3},
    {"averaging": "last"},
    {"averaging": "tail"},
    {"averaging": "periodic"},
    {"averaging": np.int64(2)},
    {"smoothness": [1.5, 0.5, 1.0, 2.0]},
    {"smoothness": np.array([1, 2, 1, 2])},
)


@every
def test_options_reach_the_coordinate_solver(kind):
    X, y = kind.problem(300)
    fits = [
        kind.make(epsilon=10.0, solver=Coordinate(**options), random_state=0).fit(X, y) for options in ({}, *OPTIONS)
    ]
    assert all(model.guarantee_.solver == "coordinate" for model in fits)
    assert all(model.guarantee_.recompute() <= 10.0 for model in fits)
    assert all(np.all(np.isfinite(model.coef_)) for model in fits)
    # averaging=None is one of the three words; all others differ.
    different = {model.coef_.tobytes() for model in fits}
    assert len(different) >= len(OPTIONS)


@regressors
def test_options_reach_the_greedy_solver(kind):
    X, y = kind.problem(300)
    changes = ({}, {"n_iter": 7}, {"clip": 0.4}, {"step": 0.3}, {"smoothness": [1.5, 0.5, 1.0, 2.0]})
    fits = [kind.make(epsilon=10.0, solver=Greedy(**options), random_state=0).fit(X, y) for options in changes]
    assert all(model.guarantee_.solver == "greedy" for model in fits)
    assert len({model.coef_.tobytes() for model in fits}) == len(changes)
