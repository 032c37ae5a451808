"""Declared bounds of columns: what they save, that they hold, and that they are what the model says."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import config_context, linear_model
from sklearn.base import is_classifier

import tacit
from tacit.solvers import FrankWolfe

from .support import every, quiet

pytestmark = quiet
BOUNDS = [(-6.0, 6.0), (-200.0, 1200.0), (0.9, 1.1), (-7.0, 5.0)]


def names_of(model):
    return [release.name for release in model.plan_.plan.releases]


def noise_of(model):
    """The multipliers of the solver's own releases."""
    told = zip(names_of(model), model.plan_.multipliers, strict=True)
    return [multiplier for name, multiplier in told if not name.startswith(("scale", "label"))]


@every
def test_declared_columns_cost_nothing(kind):
    X, y = kind.problem(300)
    found = kind.make(random_state=0).fit(X, y)
    some = kind.make(random_state=0, bounds={1: BOUNDS[1], 3: BOUNDS[3]}).fit(X, y)
    every = kind.make(random_state=0, bounds=BOUNDS).fit(X, y)
    assert any(name.startswith("scale") for name in names_of(some))
    assert not any(name.startswith("scale") for name in names_of(every))
    for less, more in ((some, found), (every, some)):
        assert all(a <= b for a, b in zip(noise_of(less), noise_of(more), strict=True))
    assert noise_of(every)[-1] < noise_of(found)[-1]


@every
def test_columns_are_clipped_to_what_was_declared_to_the_last_bit(kind):
    X, y = kind.problem(300)
    model = kind.make(random_state=0, bounds={1: (0.1, 700.3)}).fit(X, y)
    assert (model.clip_low_[1], model.clip_high_[1]) == (0.1, 700.3)
    outside, inside = X[:5].copy(), X[:5].copy()
    outside[:, 1], inside[:, 1] = 1e6, 700.3
    np.testing.assert_array_equal(model.predict(outside), model.predict(inside))


@every
def test_names_numbers_and_lists_say_the_same(kind):
    X, y = kind.problem(200)
    frame = pd.DataFrame(X, columns=list("abcd"))
    told = [
        (frame, {"b": BOUNDS[1], "d": BOUNDS[3]}),
        (X, {3: BOUNDS[3], 1: BOUNDS[1]}),
        (X, [None, BOUNDS[1], None, BOUNDS[3]]),
    ]
    models = [kind.make(random_state=0, bounds=bounds).fit(table, y) for table, bounds in told]
    for other in models[1:]:
        np.testing.assert_array_equal(models[0].coef_, other.coef_)


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_declared_value_inside_its_bounds_is_never_clipped(store, fit_intercept):
    # Without noise and penalty least squares on the table as it is come out, though values reach the bounds.
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(300, 3)) * [3.0, 40.0, 0.2]
    X[0], X[1] = [3.0, 40.0, 0.2], [-3.0, -40.0, -0.2]
    y = X @ [1.0, 0.2, -3.0] + 2.0 * fit_intercept + rng.normal(size=300)
    model = tacit.LinearRegression(
        epsilon=math.inf, bounds=[(-3, 3), (-40, 40), (-0.2, 0.2)], y_bounds=(-50, 50), fit_intercept=fit_intercept
    ).fit(store(X), y)
    peer = linear_model.LinearRegression(fit_intercept=fit_intercept).fit(X, y)
    np.testing.assert_allclose(model.coef_, peer.coef_, rtol=1e-4)
    np.testing.assert_allclose(model.predict(store(X)), peer.predict(X), atol=1e-3)


@pytest.mark.parametrize(
    ("bounds", "message"),
    [({0: (1, 3)}, "must hold 0"), ([(1, 3), (-1, 1)], "must hold 0"), ((-3, -1), "must hold 0")],
)
def test_bounds_that_sparse_rows_cannot_have_are_refused(bounds, message, releases):
    X = sparse.csr_array(np.eye(40)[:, :2])
    with pytest.raises(ValueError, match=message):
        tacit.LogisticRegression(bounds=bounds, solver="text").fit(X, np.arange(40) % 2)
    assert releases == []


@pytest.mark.whole
@pytest.mark.parametrize("bounds", [None, {0: (-3, 3)}, [(1, 3), None, (0, 1)], (-3, 3)])
def test_sparse_rows_of_few_columns_are_a_table(bounds):
    """The same model as of the same rows as an array, whatever is declared; also with holes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)) * [1.0, 100.0, 1.0] * (rng.random((300, 3)) < 0.5)
    X[3, 1] = math.nan
    y = rng.integers(0, 2, 300)
    one, other = (
        tacit.LogisticRegression(bounds=bounds, random_state=0).fit(store(X), y)
        for store in (np.asarray, sparse.csr_array)
    )
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.fill_, other.fill_)
    np.testing.assert_allclose(other.predict_proba(sparse.csr_array(X)), one.predict_proba(X), rtol=1e-9)


def test_text_stays_text():
    """By its many columns, or by the solver or the row norm that say so."""
    rng = np.random.default_rng(0)
    few = sparse.random_array((60, 5), density=0.5, rng=rng, format="csr")
    many = sparse.random_array((60, 2_001), density=0.01, rng=rng, format="csr")
    y = np.arange(60) % 2
    for X, options in ((few, {"solver": "text"}), (few, {"row_norm": 1.0}), (many, {})):
        assert np.all(np.isinf(tacit.LogisticRegression(random_state=0, **options).fit(X, y).clip_low_))


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_one_symmetric_pair_is_the_bound_on_entries_of_frank_wolfe(store):
    rng = np.random.default_rng(0)
    X, y = store(rng.normal(size=(200, 5))), rng.integers(0, 2, 200)
    solver = FrankWolfe(n_iter=20, entry_bound=2.0)
    told = tacit.LogisticRegression(solver=solver, l1_radius=3.0, random_state=0).fit(X, y)
    same = tacit.LogisticRegression(solver=FrankWolfe(n_iter=20), bounds=(-2, 2), l1_radius=3.0, random_state=0)
    np.testing.assert_array_equal(same.fit(X, y).coef_, told.coef_)


@every
@pytest.mark.parametrize(("d", "store"), [(60, np.asarray), (60, sparse.csr_array), (2_001, sparse.csr_array)])
def test_one_symmetric_pair_is_served_by_whatever_auto_takes_and_is_clipped_to(kind, d, store):
    rng = np.random.default_rng(0)
    X = 3.0 * rng.normal(size=(40, d)) * (rng.random((40, d)) < 0.1)
    y = np.arange(40) % 2 if is_classifier(kind.make()) else rng.normal(size=40)
    model = kind.make(bounds=(-1.0, 1.0), random_state=0).fit(store(X), y)
    np.testing.assert_array_equal(model.predict(store(X)), model.predict(store(np.clip(X, -1.0, 1.0))))
    if isinstance(model, tacit.LogisticRegression):
        assert model.guarantee_.solver == ("frank-wolfe" if d == 60 else "one-shot")


@pytest.mark.parametrize("key", ["a", 0])
def test_bounds_are_kept_in_a_model_file(tmp_path, key):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 2)), columns=["a", "b"])
    model = tacit.LogisticRegression(bounds={key: (-3, 3)}, l1_ratio=0.25).fit(frame, rng.integers(0, 2, 200))
    tacit.save(model, tmp_path / "model.json")
    again = tacit.load(tmp_path / "model.json")
    assert again.bounds == {key: (-3, 3)}
    assert again.l1_ratio == 0.25
    np.testing.assert_array_equal(again.clip_low_, model.clip_low_)


def test_what_is_no_number_counts_for_nothing_where_nobody_checks():
    """scikit-learn's own check can be turned off; declared bounds of sparse rows hold all the same."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(300, 3))
    y = X @ [1.0, -1.0, 0.5]
    holed, without = X.copy(), X.copy()
    holed[0, 0], without[0, 0] = np.nan, 0.0
    told = {"bounds": (-1, 1), "y_bounds": (-3, 3), "solver": "statistics", "random_state": 1}
    with config_context(assume_finite=True):
        models = [tacit.Ridge(**told).fit(sparse.csr_array(table), y) for table in (holed, without)]
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)


@pytest.mark.parametrize("solver", ["text", "coordinate", "frank-wolfe"])
def test_some_columns_of_text_can_be_declared(solver):
    """They are clipped to their bounds; the others take part in the norm, and they do not."""
    rng = np.random.default_rng(0)
    words = sparse.random_array((400, 2_100), density=0.01, rng=rng, format="csr")
    length = rng.uniform(0.0, 100.0, size=(400, 1))
    y = (length[:, 0] > 50.0).astype(int)
    kind, options = tacit.LogisticRegression, {"solver": solver, "random_state": 0}
    if solver == "coordinate":
        kind = tacit.LinearSVC

    def fitted(lengths, epsilon=50.0):
        X = sparse.csr_array(sparse.hstack([lengths, words]))
        return kind(epsilon, bounds={0: (0, 100)}, **options).fit(X, y), X

    model, X = fitted(length)
    outside, _ = fitted(np.where(length > 99.0, 1e9, length))
    inside, _ = fitted(np.where(length > 99.0, 100.0, length))
    if solver == "frank-wolfe":  # which has one bound for all entries
        assert model.clip_high_[0] == 100.0 == model.clip_high_.max()
    else:
        np.testing.assert_array_equal(outside.coef_, inside.coef_)
        assert (model.clip_low_[0], model.clip_high_[0]) == (0.0, 100.0)
    assert any(name == "scale: row norm" for name in names_of(model))
    if solver == "text":
        assert model.score(X, y) > 0.7
        with pytest.raises(TypeError, match="some text columns"):
            model.to_sklearn()


@every
def test_truth_values_are_declared_by_their_type_where_it_is_trusted(kind):
    X, y = kind.problem(200)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(b=X[:, 1] > 0.0)
    trusted = kind.make(random_state=0, trust_dtypes=True).fit(frame, y)
    told = kind.make(random_state=0, bounds={"b": (0, 1)}).fit(frame, y)
    np.testing.assert_array_equal(trusted.coef_, told.coef_)
    assert (trusted.clip_low_[1], trusted.clip_high_[1]) == (0.0, 1.0)
    assert names_of(trusted) == names_of(kind.make(random_state=0).fit(frame, y))
