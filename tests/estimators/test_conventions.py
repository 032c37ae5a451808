"""scikit-learn's conventions, for every estimator."""

import inspect
import math

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

import tacit
from tacit.solvers import Coordinate
from tacit.utils import expected_failed_checks

from .support import every, quiet

COMMON = {
    "epsilon": 1.0,
    "delta": None,
    "adjacency": "add-remove",
    "bounds": None,
    "trust_dtypes": False,
    "row_norm": None,
    "solver": "auto",
    "fit_intercept": True,
    "coef_bounds": None,
    "random_state": None,
    "verbose": 0,
}
OWN = {
    "LogisticRegression": {"C": 1.0, "l1_ratio": 0.0, "classes": None, "class_weight": None, "l1_radius": None},
    "LinearSVC": {"C": 1.0, "loss": "squared_hinge", "classes": None, "class_weight": None, "l1_radius": None},
    "LinearRegression": {"y_bounds": None, "l1_radius": None},
    "Ridge": {"alpha": 1.0, "y_bounds": None},
    "Lasso": {"alpha": 1.0, "y_bounds": None, "l1_radius": None},
    "ElasticNet": {"alpha": 1.0, "l1_ratio": 0.5, "y_bounds": None},
}

pytestmark = quiet


@pytest.mark.whole
@every
def test_scikit_learns_own_checks(kind):
    expected = expected_failed_checks(kind.make())
    assert len(expected) <= 5
    assert all(len(reason) > 10 for reason in expected.values())
    done = check_estimator(kind.make(), expected_failed_checks=expected, on_skip=None, on_fail="raise")
    assert sum(result["status"] == "passed" for result in done) > 40


@every
def test_signature_and_defaults(kind):
    signature = inspect.signature(kind.make)
    assert {name: p.default for name, p in signature.parameters.items()} == COMMON | OWN[str(kind)]
    assert list(signature.parameters)[:3] == ["epsilon", "delta", "adjacency"]
    for name, parameter in list(signature.parameters.items())[3:]:
        assert parameter.kind is inspect.Parameter.KEYWORD_ONLY, name


@every
def test_parameters_that_would_mislead_are_not_there(kind):
    for method in (kind.make, kind.make.fit):
        assert not {"sample_weight", "warm_start", "tol"} & set(inspect.signature(method).parameters)
    X, y = kind.problem()
    with pytest.raises(TypeError, match="sample_weight"):
        kind.make().fit(X, y, sample_weight=np.ones(len(y)))


@every
def test_is_public_and_documented(kind):
    assert getattr(tacit, str(kind)) is kind.make
    text = inspect.getdoc(kind.make)
    assert all(f"{name} : " in text for name in inspect.signature(kind.make).parameters)
    for word in ("Unit: one row", "Neighbours", "Mechanism", "Released", "Assumed"):
        assert word in text[text.index("Privacy\n~~~~~~~") :]
    assert is_classifier(kind.make()) == kind.classifies
    assert is_regressor(kind.make()) != kind.classifies


@every
def test_parameters_are_kept_as_given(kind):
    model = kind.make(epsilon=2, delta=1e-6, solver=kind.solver, random_state=3)
    before = model.get_params()
    copy = clone(model)
    assert copy.get_params() == before
    assert copy.set_params(epsilon=3.0).epsilon == 3.0
    model.fit(*kind.problem())
    assert model.get_params() == before
    assert not hasattr(clone(model), "coef_")
    with pytest.raises(ValueError, match="Invalid parameter"):
        model.set_params(sample_weight=1)


@every
def test_arrays_are_kept_as_given(kind):
    low, high, smoothness = np.full(4, -1e6), [1e6, np.inf, 1e6, 1e6], np.ones(4)
    model = kind.make(coef_bounds=(low, high), solver=Coordinate(smoothness=smoothness), random_state=3)
    again = clone(model)
    assert again.coef_bounds[0] is not low
    for fitted in (model, again):
        fitted.fit(*kind.problem())
        np.testing.assert_array_equal(fitted.coef_bounds[0], np.full(4, -1e6))
        assert fitted.coef_bounds[1] == [1e6, np.inf, 1e6, 1e6]
        np.testing.assert_array_equal(fitted.solver.smoothness, np.ones(4))
        assert set(vars(fitted.solver)) == set(fitted.solver.get_params())  # options and no state
    assert model.coef_bounds[0] is low
    assert model.solver.smoothness is smoothness
    np.testing.assert_array_equal(model.coef_, again.coef_)


@every
def test_fit_returns_the_model_and_can_be_repeated(kind):
    X, y = kind.problem()
    model = kind.make(random_state=0)
    assert model.fit(X, y) is model
    first = model.coef_.copy()
    assert model.fit(X[:, :2], y).coef_.shape[-1] == model.n_features_in_ == 2
    np.testing.assert_array_equal(model.fit(X, y).coef_, first)


@every
def test_in_a_pipeline(kind):
    X, y = kind.problem()
    pipeline = make_pipeline(FunctionTransformer(np.copy), kind.make(epsilon=10.0, random_state=0))
    assert pipeline.fit(X, y).score(X, y) > 0.5
    assert pipeline[-1].guarantee_.epsilon == 10.0


@every
def test_in_cross_validation(kind):
    X, y = kind.problem(1500)
    scores = cross_val_score(kind.make(epsilon=20.0, random_state=0), X, y, cv=3)
    assert scores.shape == (3,)
    assert scores.min() > 0.5
    assert cross_val_predict(kind.make(epsilon=20.0, random_state=0), X, y, cv=3).shape == (1500,)


@every
def test_in_a_grid_search(kind):
    X, y = kind.problem()
    grid = {"C": [0.1, 10.0]} if kind.classifies else {"y_bounds": [(-10.0, 90.0), (0.0, 80.0)]}
    search = GridSearchCV(kind.make(epsilon=10.0, random_state=0), grid, cv=2).fit(X, y)
    assert set(search.best_params_) == set(grid)
    assert search.predict(X).shape == y.shape


@every
def test_metadata_routing_changes_nothing(kind):
    X, y = kind.problem()
    plain = kind.make(epsilon=10.0, random_state=0).fit(X, y).coef_
    with sklearn.config_context(enable_metadata_routing=True):
        routed = make_pipeline(kind.make(epsilon=10.0, random_state=0)).fit(X, y)
        assert cross_val_score(kind.make(epsilon=10.0, random_state=0), X, y, cv=2).shape == (2,)
        routed.get_metadata_routing()
    np.testing.assert_array_equal(routed[-1].coef_, plain)


def _pandas(X):
    return pytest.importorskip("pandas").DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])


def _polars(X):
    return pytest.importorskip("polars").DataFrame(X, schema=[f"c{j}" for j in range(X.shape[1])])


INPUTS = {
    "list": np.ndarray.tolist,
    "Fortran order": np.asfortranarray,
    "every second row of a larger table": lambda X: np.repeat(X, 2, axis=0)[::2],
    "float32": lambda X: X.astype(np.float32),
    "integers": lambda X: np.rint(X).astype(np.int64),
    "objects": lambda X: X.astype(object),
    "CSR matrix": sparse.csr_matrix,
    "CSR array": sparse.csr_array,
    "CSC": sparse.csc_array,
    "COO with repeated entries": lambda X: sparse.coo_array(
        (np.tile(X.ravel() / 2, 2), tuple(np.tile(np.indices(X.shape).reshape(2, -1), 2))), shape=X.shape
    ),
    "pandas": _pandas,
    "polars": _polars,
}


@every
@pytest.mark.parametrize("name", INPUTS)
def test_kinds_of_input(kind, name):
    X, y = kind.problem()
    given = INPUTS[name](X)
    model = kind.make(epsilon=10.0, random_state=0).fit(given, y)
    assert model.coef_.shape == ((1, 4) if kind.classifies else (4,))
    assert model.coef_.dtype == np.float64
    assert np.all(np.isfinite(model.coef_))
    assert np.all(np.isfinite(model.intercept_))
    assert model.n_features_in_ == 4
    assert model.clip_low_.shape == model.clip_high_.shape == (4,)
    assert np.all(model.clip_low_ < model.clip_high_)
    assert model.predict(given).shape == (len(y),)
    if name in ("pandas", "polars"):
        assert model.feature_names_in_.tolist() == ["c0", "c1", "c2", "c3"]
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict(given.rename({"c0": "other"}) if name == "polars" else given.rename(columns={"c0": "other"}))
    else:
        assert not hasattr(model, "feature_names_in_")


@every
def test_the_same_rows_in_another_container_give_the_same_model(kind):
    X, y = kind.problem()
    X = X.astype(np.float32).astype(np.float64)
    dense = [
        kind.make(random_state=0).fit(INPUTS[k](X), y).coef_ for k in ("list", "Fortran order", "float32", "objects")
    ]
    sparse_ = [
        kind.make(random_state=0).fit(INPUTS[k](X), y).coef_ for k in ("CSR matrix", "CSC", "COO with repeated entries")
    ]
    for coef in dense[1:]:
        np.testing.assert_allclose(coef, dense[0], rtol=1e-9, atol=1e-9)
    for coef in sparse_[1:]:
        np.testing.assert_allclose(coef, sparse_[0], rtol=1e-9, atol=1e-9)


@every
def test_prediction_takes_any_container(kind):
    X, y = kind.problem(300)
    for fitted in (X, sparse.csr_array(X)):
        model = kind.make(epsilon=10.0, random_state=0).fit(fitted, y)
        expected = model.predict(X)
        for given in (X.tolist(), sparse.csr_array(X), sparse.csc_matrix(X), np.asfortranarray(X)):
            np.testing.assert_allclose(model.predict(given), expected, rtol=1e-9, atol=1e-9)


@every
def test_a_model_must_be_fitted_and_columns_must_match(kind):
    X, y = kind.problem(100)
    with pytest.raises(sklearn.exceptions.NotFittedError):
        kind.make().predict(X)
    with pytest.raises(sklearn.exceptions.NotFittedError):
        kind.make().to_sklearn()
    with pytest.raises(ValueError, match="4 features"):
        kind.make().fit(X, y).predict(X[:, :3])


@every
def test_the_limit_of_an_infinite_epsilon(kind):
    X, y = kind.problem(300)
    model = kind.make(epsilon=math.inf, **kind.light).fit(X, y)
    assert model.score(X, y) > 0.9
    assert "not private" in str(model.guarantee_)
