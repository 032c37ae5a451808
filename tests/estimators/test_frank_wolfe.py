"""Estimators with an l1 ball: what they take, refuse, store and predict."""

import numpy as np
import pytest
from scipy.sparse import csc_array, csr_array, csr_matrix

from tacit import ElasticNet, Lasso, LinearRegression, LinearSVC, LogisticRegression, Ridge
from tacit.solvers import FrankWolfe, Gradient

from .support import quiet

pytestmark = quiet


def problem(n=300, d=40, seed=0, density=0.3):
    """Rows with about a third of their entries; the first column decides."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < density)
    return X, np.where(X[:, 0] + 0.01 * rng.normal(size=n) > 0, 1, 0)


OPTIONS = ("n_iter", "entry_bound", "sampler")


def make(kind=LogisticRegression, **parameters):
    options = {"entry_bound": 1.0} | {name: parameters.pop(name) for name in OPTIONS if name in parameters}
    return kind(**{"epsilon": 2.0, "solver": FrankWolfe(**options), "random_state": 0} | parameters)


def targets_of(kind, X, y):
    return y if kind in (LogisticRegression, LinearSVC) else X[:, 0]


# --- what it fits ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [LogisticRegression, LinearSVC, LinearRegression, Lasso])
@pytest.mark.parametrize("store", [np.asarray, csr_array])
def test_it_learns_and_uses_few_features(kind, store):
    X, y = problem(3_000, seed=1)
    model = make(kind, epsilon=8.0, l1_radius=3.0, n_iter=12).fit(store(X), targets_of(kind, X, y))
    assert model.guarantee_.solver == "frank-wolfe"
    assert np.count_nonzero(model.coef_) <= 12
    assert np.abs(model.coef_).sum() <= 3.0 * (1 + 1e-12)
    assert np.argmax(np.abs(np.ravel(model.coef_))) == 0
    assert model.score(store(X), targets_of(kind, X, y)) > 0.6


def test_a_radius_is_all_that_auto_needs_to_know():
    X, y = problem()
    model = make(solver="auto", l1_radius=2.0).fit(X, y)
    assert model.guarantee_.solver == "frank-wolfe"
    scales = (model.clip_high_ - model.clip_low_) / 3.0  # entries are clipped to one and a half of them
    assert 0.0 < np.abs(model.coef_ * scales).sum() <= 2.0 * (1 + 1e-12)


@pytest.mark.parametrize("store", [np.asarray, csr_array])
def test_the_penalty_is_not_read(store):
    X, y = problem()
    one, other = (make(C=C).fit(store(X), y) for C in (0.01, 100.0))
    np.testing.assert_array_equal(one.coef_, other.coef_)


@pytest.mark.parametrize("sampler", ["bucket", "two-level", "gumbel"])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_samplers_and_adjacencies(sampler, adjacency):
    X, y = problem()
    model = make(sampler=sampler, adjacency=adjacency).fit(csr_array(X), y)
    assert model.guarantee_.adjacency == adjacency
    assert np.all(np.isfinite(model.coef_))


def test_without_declared_bounds_they_are_found_inside_the_budget():
    X, y = problem()
    for store, name in ((np.asarray, "scale"), (csr_array, "scale: row norm")):
        model = make(entry_bound=None).fit(store(X), y)
        assert any(release.name.startswith(name) for release in model.plan_.plan.releases)
        assert np.all(np.isfinite(model.clip_high_))
    declared = make(entry_bound=None, row_norm=5.0).fit(csr_array(X), y)
    np.testing.assert_allclose(declared.clip_high_, 0.5)
    assert [r.name for r in declared.plan_.plan.releases] == ["class share", "vertices", "threshold"]


# --- what it predicts, and how it is stored --------------------------------------------------------------------------


@pytest.mark.parametrize("store", [np.asarray, csr_array, csc_array])
def test_entries_are_clipped_in_predict_as_in_fit(store):
    X, y = problem()
    model = make(entry_bound=0.25).fit(csr_array(X), y)
    np.testing.assert_array_equal(model.clip_high_, 0.25)
    expected = np.clip(X, -0.25, 0.25) @ model.coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(store(X)), expected, atol=1e-12)


@pytest.mark.parametrize("kind", [LogisticRegression, LinearSVC])
def test_coefficients_can_be_stored_without_their_zeros(kind):
    X, y = problem()
    model = make(kind).fit(csr_array(X), y)
    before, kept = model.decision_function(X), model.coef_.copy()
    assert 0 < model.n_nonzero_coefs_ == np.count_nonzero(kept) < kept.size
    assert model.sparsify() is model
    assert isinstance(model.coef_, csr_array)
    assert model.coef_.nnz == np.count_nonzero(kept) == model.n_nonzero_coefs_
    for store in (np.asarray, csr_array):
        np.testing.assert_allclose(model.decision_function(store(X)), before, atol=1e-12)
    np.testing.assert_allclose(model.to_sklearn().decision_function(X), before, atol=1e-12)
    np.testing.assert_array_equal(model.densify().coef_, kept)
    np.testing.assert_array_equal(model.densify().coef_, kept)


@pytest.mark.parametrize("kind", [LogisticRegression, LinearSVC, Lasso])
@pytest.mark.parametrize("store", [np.asarray, csr_array])
def test_scikit_learn_predicts_the_same_with_the_same_clip(kind, store):
    X, y = problem()
    model = make(kind, entry_bound=0.5).fit(store(X), targets_of(kind, X, y))
    plain = model.to_sklearn()
    assert "tacit" not in {type(step).__module__.partition(".")[0] for _, step in plain.steps}
    np.testing.assert_allclose(plain.predict(store(3 * X)), model.predict(store(3 * X)), atol=1e-9)


# --- bad and odd input -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["l1_radius", "entry_bound"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf"), "wide"])
def test_sizes_that_are_not_positive_are_refused(name, value, releases):
    X, y = problem()
    with pytest.raises((ValueError, TypeError), match=name):
        make(**{name: value}).fit(X, y)
    assert not releases


def test_a_sampler_that_is_unknown_is_refused(releases):
    X, y = problem()
    with pytest.raises(ValueError, match="bucket"):
        make(sampler="alias").fit(X, y)
    assert not releases


@pytest.mark.parametrize("kind", [Ridge, ElasticNet])
def test_an_l2_penalty_has_no_ball(kind, releases):
    X, y = problem()
    for solver in ("frank-wolfe", FrankWolfe()):
        with pytest.raises(ValueError, match="l2 penalty"):
            kind(solver=solver).fit(X, y)
    with pytest.raises(TypeError, match="l1_radius"):
        kind(l1_radius=1.0)
    assert not releases


def test_other_solvers_do_not_take_its_parameters(releases):
    X, y = problem()
    with pytest.raises(ValueError, match="these do: frank-wolfe"):
        LogisticRegression(solver="gradient", l1_radius=1.0).fit(X, y)
    for option in ("entry_bound", "sampler"):
        with pytest.raises(TypeError, match=option):
            Gradient(**{option: 1.0})
    with pytest.raises(ValueError, match="more than two classes"):
        make().fit(X, np.arange(300) % 3)
    with pytest.raises(ValueError, match="hinge"):
        make(LinearSVC, loss="hinge").fit(X, y)
    assert not releases


def odd_forms(X):
    """The same table in forms that are stored oddly."""
    plain = csr_array(X)
    zeros = csr_array(X)
    zeros.data[::3] = 0.0  # explicit ones
    yield "explicit zeros", zeros, zeros.toarray()
    wide = csr_array((plain.data, plain.indices.astype(np.int64), plain.indptr.astype(np.int64)), shape=X.shape)
    yield "64-bit indices", wide, X
    backwards = [np.arange(a, b)[::-1] for a, b in zip(plain.indptr[:-1], plain.indptr[1:], strict=True)]
    order = np.concatenate(backwards)
    yield "unsorted", csr_array((plain.data[order], plain.indices[order], plain.indptr), shape=X.shape), X
    twice = csr_matrix((np.repeat(plain.data / 2, 2), np.repeat(plain.indices, 2), 2 * plain.indptr), shape=X.shape)
    yield "duplicates", twice, X


@pytest.mark.parametrize(
    "place",
    [0, pytest.param(1, marks=pytest.mark.slow), 2, 3],  # indices of 64 bits are compiled anew
    ids=["explicit zeros", "64-bit indices", "unsorted", "duplicates"],
)
def test_how_rows_are_stored_does_not_matter_and_they_are_left_alone(place):
    X, y = problem()
    X[5], X[:, 7] = 0.0, 0.0  # an empty row and an empty column
    _, table, same = list(odd_forms(X))[place]
    kept = [array.copy() for array in (table.data, table.indices, table.indptr)]
    model, plain = make().fit(table, y), make().fit(csr_array(same), y)
    np.testing.assert_allclose(model.coef_, plain.coef_)
    for array, copy in zip((table.data, table.indices, table.indptr), kept, strict=True):
        np.testing.assert_array_equal(array, copy)


@pytest.mark.parametrize("kind", [np.float32, np.int32, np.int64])
@pytest.mark.parametrize("store", [np.asarray, csr_array])
def test_numbers_of_other_kinds(kind, store):
    X, y = problem()
    table = store(np.rint(3 * X).astype(kind))
    kept = table.copy()
    model, plain = make().fit(table, y), make().fit(store(np.rint(3 * X)), y)
    np.testing.assert_allclose(model.coef_, plain.coef_)
    assert np.abs(table - kept).max() == 0


# --- what auto takes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bounds", "n", "taken"),
    [
        ((-1.0, 1.0), 100, "frank-wolfe"),
        ((-1.0, 1.0), 40_000, "gradient"),
        ((0.0, 1.0), 100, "gradient"),
        ([(-1.0, 1.0)] * 39 + [(-2.0, 2.0)], 100, "gradient"),
        (None, 100, "gradient"),
    ],
)
def test_auto_draws_columns_where_they_are_bounded_alike_and_many(bounds, n, taken):
    X, y = problem()
    X, y = np.resize(X, (n, 40)), np.resize(y, n)
    model = LogisticRegression(epsilon=1.0, bounds=bounds, random_state=0).fit(
        np.abs(X) if bounds == (0.0, 1.0) else X, y
    )
    assert model.guarantee_.solver == taken
    if taken == "frank-wolfe":
        np.testing.assert_array_equal(model.clip_high_, 1.0)  # the bound on entries
        assert [r.name for r in model.plan_.plan.releases] == ["class share", "vertices", "threshold"]
