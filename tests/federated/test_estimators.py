"""The estimators: scikit-learn's manners, a study from parameters, and predictions inside the clip of the fit."""

import math
import re

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from tacit.federated import (
    FeatureSharing,
    FederatedLasso,
    FederatedLinearSVC,
    FederatedLogisticRegression,
    Party,
    RefusedError,
    Sketching,
    estimators,
)
from tests.federated.conftest import SECRET

N = 400
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 5))
Y = X @ [1.0, 0.0, -0.5, 0.0, 1.0] + 0.2 * RNG.standard_normal(N) + 3.0
SIGNS = np.where(Y > 3.0, "yes", "no")
CLASSIFIERS = [FederatedLogisticRegression, FederatedLinearSVC]
ALL = [FederatedLasso, *CLASSIFIERS]


def parties_of(y, x=X, **more):
    return [Party(x[:, :2], **more), Party(x[:, 2:], y, **more)]


def model_of(kind, **changes):
    return kind(**({"epsilon": 20.0, "l1_radius": 2.5, "entry_bound": 3.0, "random_state": 0} | changes))


def labels_for(kind):
    return Y if kind is FederatedLasso else SIGNS


@pytest.mark.parametrize(
    ("kind", "protocol"),
    [(kind, protocol) for kind in ALL[:2] for protocol in ("marginals", "feature-sharing")]
    + [(FederatedLinearSVC, "feature-sharing")],
)
def test_a_model_between_two_parties(kind, protocol):
    y = labels_for(kind)
    model = model_of(kind, protocol=protocol).fit(parties_of(y))
    assert model.score([X[:, :2], X[:, 2:]], y) > 0.7
    assert list(model.coefs_) == ["party-1", "party-2"]
    np.testing.assert_array_equal(
        np.ravel(model.coef_), np.concatenate([model.coefs_["party-1"], model.coefs_["party-2"]])
    )
    assert model.n_features_in_ == 5
    assert np.abs(model.coef_).sum() <= 2.5 * (1 + 1e-9)
    assert all(set(np.flatnonzero(model.coefs_[name])) <= set(model.features_[name]) for name in model.coefs_)
    assert model.guarantee_.solver == f"federated {protocol}"
    assert model.guarantee_.seeded
    assert model.guarantee_.event == model.plan_.event
    assert set(model.uplink_bytes_) == set(model.coefs_)
    again = clone(model).fit(parties_of(y))
    np.testing.assert_array_equal(again.coef_, model.coef_)
    if kind is FederatedLasso:
        assert model.coef_.shape == (5,)
        assert isinstance(model.intercept_, float)
        low, high = model.y_bounds_
        assert low < high
    else:
        assert model.coef_.shape == (1, 5)
        assert model.intercept_.shape == (1,)
        assert model.classes_.tolist() == ["no", "yes"]


@pytest.mark.parametrize("kind", ALL)
def test_parameters_are_scikit_learns(kind):
    model = model_of(kind, labels="sketched", protocol=FeatureSharing(n_iter=3), sketch=Sketching())
    assert clone(model).get_params() == model.get_params()
    assert len(model.get_params(deep=False)) == 15
    other = clone(model).set_params(protocol__geometry="serial", sketch__size=9)
    assert (other.protocol, other.sketch) == (FeatureSharing(n_iter=3, geometry="serial"), Sketching(size=9))
    assert (model.protocol, model.sketch) == (FeatureSharing(n_iter=3), Sketching())
    assert "labels='sketched'" in repr(model)
    with pytest.raises(NotFittedError):
        model.predict(X)
    assert [party.name for party in parties_of(Y)] == [None, None]


def test_every_parameter_reaches_the_study(monkeypatch):
    told = {
        "epsilon": 2.0, "delta": 1e-5, "adjacency": "replace-one", "l1_radius": 3.0, "labels": "sketched",
        "protocol": FeatureSharing(n_iter=5, n_shared=3, geometry="serial"), "entry_bound": 4.0, "y_bounds": (0.0, 6.0),
        "fit_intercept": False, "sketch": Sketching(kind="gaussian", size=16, seed=9), "random_state": 4,
    }  # fmt: skip

    class StopError(Exception):
        pass

    def caught(study, *_, warn):
        assert {name: getattr(study, name) for name in told} == told
        assert [(m.name, m.n_features, m.labels) for m in study.members] == [
            ("party-1", 2, False),
            ("party-2", 3, True),
        ]
        assert not warn  # whoever fits has written the study
        raise StopError

    monkeypatch.setattr(estimators, "Node", caught)
    assert set(told) | {"directory", "verbose", "align", "evaluation"} == set(FederatedLasso().get_params(deep=False))
    with pytest.raises(StopError):
        FederatedLasso(**told).fit(parties_of(Y))


@pytest.fixture(scope="module")
def fitted():
    return {kind: model_of(kind).fit(parties_of(labels_for(kind))) for kind in ALL}


@pytest.mark.parametrize("kind", ALL)
def test_blocks_and_tables_give_the_same_predictions(kind, fitted):
    model = fitted[kind]
    expected = model.predict(X)
    blocks = [X[:, :2], X[:, 2:]]
    for other in (blocks, tuple(blocks), X.tolist(), sparse.csr_array(X), [sparse.csc_array(b) for b in blocks]):
        found = model.predict(other)
        if kind is FederatedLasso:
            np.testing.assert_allclose(found, expected, rtol=1e-12)
        else:
            np.testing.assert_array_equal(found, expected)


def test_predictions_clip_as_the_fit_did(fitted):
    model = clone(fitted[FederatedLasso])
    model.__dict__.update(fitted[FederatedLasso].__dict__)
    model.entry_bounds_ = {"party-1": 1.0, "party-2": math.inf}
    model.row_norms_ = {"party-1": math.inf, "party-2": 2.0}
    model.features_ = {"party-1": np.arange(2), "party-2": np.array([0, 2])}
    model.coefs_ = {"party-1": np.array([1.0, 10.0]), "party-2": np.array([100.0, 0.0, 1000.0])}
    model.intercept_ = 0.5
    rows = np.array([[5.0, -5.0, 3.0, 9.0, 4.0], [0.5, 0.25, 0.0, 9.0, 1.0], [0.0, 0.0, 0.0, 0.0, 0.0]])
    expected = [0.5 + 1 - 10 + 0.4 * 4300, 0.5 + 0.5 + 2.5 + 1000, 0.5]
    for table in (rows, sparse.csr_array(rows)):
        np.testing.assert_allclose(model.predict(table), expected)


def test_probabilities(fitted):
    model = fitted[FederatedLogisticRegression]
    margins = model.decision_function(X)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], expit(margins))
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict(X), np.where(margins > 0, "yes", "no"))


@pytest.mark.parametrize(
    ("table", "match"),
    [
        (X[:, :4], "4 columns, and the model has 5"),
        ([X[:, :3], X[:, 3:]], "one block for each party"),
        ([X[:, :2], X[:, 2:4], X[:, 4:]], "one block for each party"),
        ([X[:3, :2], X[:4, 2:]], "same rows"),
        (X * np.nan, "NaN"),
    ],
    ids=["columns", "sizes", "number", "rows", "nan"],
)
def test_tables_that_do_not_fit(fitted, table, match):
    with pytest.raises(ValueError, match=match):
        fitted[FederatedLasso].predict(table)


def test_rows_are_matched_by_ids():
    """Parties that hold their rows in other orders give the model of parties that do not."""
    turned = RNG.permutation(N)
    ids = np.arange(N)
    one, other = parties_of(Y, ids=ids, secret=SECRET)
    mixed = Party(X[turned, :2], ids=ids[turned], secret=SECRET)
    expected = model_of(FederatedLasso).fit([one, other])
    np.testing.assert_array_equal(model_of(FederatedLasso).fit([mixed, other]).coef_, expected.coef_)
    missing = Party(X[:, :2], ids=[*ids[1:], N], secret=SECRET)
    with pytest.raises(RefusedError, match="ids do not match"):
        model_of(FederatedLasso).fit([missing, other])


def test_a_fit_goes_on_from_its_directory(tmp_path):
    model = model_of(FederatedLasso, directory=tmp_path, random_state=None).fit(parties_of(Y))
    assert {path.name for path in tmp_path.rglob("*.sqlite")} == {
        "coordinator.sqlite",
        "party-1.sqlite",
        "party-2.sqlite",
    }
    again = clone(model).fit(parties_of(Y))
    np.testing.assert_array_equal(again.coef_, model.coef_)
    assert again.uplink_bytes_ == model.uplink_bytes_
    with pytest.raises(ValueError, match="begun with other data"):
        clone(model).fit(parties_of(Y + 1.0))


@pytest.mark.parametrize(
    ("kind", "changes", "parties", "match"),
    [
        (FederatedLasso, {"l1_radius": None}, parties_of(Y), "declare l1_radius"),
        (FederatedLasso, {}, parties_of(None), "no party holds the labels"),
        (FederatedLasso, {}, [Party(X[1:, :2]), Party(X[:, 2:], Y)], "'party-1' has 399, and 'party-2' has 400"),
        (FederatedLasso, {}, [Party(X, name="a"), Party(X, Y, name="a")], "twice: a"),
        (FederatedLasso, {"labels": "sketched"}, [Party(X, Y), Party(X, Y)], "exactly one"),
        (FederatedLasso, {"epsilon": 0.0}, parties_of(Y), "epsilon"),
        (FederatedLasso, {"y_bounds": (1.0, 1.0)}, parties_of(Y), "y_bounds"),
        (FederatedLasso, {"random_state": -1}, parties_of(Y), "random_state"),
        (FederatedLogisticRegression, {}, parties_of(np.full(N, "yes")), "two classes"),
        (FederatedLogisticRegression, {"classes": ["a", "b"]}, parties_of(SIGNS), "not one of the study's classes"),
        (FederatedLinearSVC, {"classes": ["a", "b", "c"]}, parties_of(SIGNS), "more than two classes are served by"),
        (FederatedLinearSVC, {"protocol": "marginals"}, parties_of(SIGNS), "feature-sharing"),
    ],
    ids=[
        "radius",
        "labels",
        "rows",
        "names",
        "holders",
        "epsilon",
        "bounds",
        "seed",
        "one-class",
        "other-classes",
        "three-classes",
        "hinge",
    ],
)
def test_bad_input_is_refused(kind, changes, parties, match):
    with pytest.raises(ValueError, match=re.escape(match)):
        model_of(kind, **changes).fit(parties)


def test_fit_takes_parties():
    with pytest.raises(TypeError, match="list of Party objects"):
        model_of(FederatedLasso).fit([X, Y])


def test_a_seed_warns_and_fresh_noise_does_not_repeat():
    with pytest.warns(UserWarning, match="random_state is set") as caught:
        model_of(FederatedLasso).fit(parties_of(Y))
    assert caught[0].filename == __file__
    first, second = (model_of(FederatedLasso, random_state=None).fit(parties_of(Y)) for _ in range(2))
    assert not np.array_equal(first.coef_, second.coef_)
    assert not first.guarantee_.seeded


def test_progress_tells_rounds(capsys):
    model = model_of(FederatedLasso, verbose=1).fit(parties_of(Y))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "tacit: round 0 (hello)"
    assert len(lines) == model.n_rounds_


@pytest.mark.parametrize("protocol", ["marginals", "feature-sharing"])
def test_without_an_intercept_there_is_none(protocol):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(2_000, 4))
    y = 5.0 + X[:, 0]
    model = FederatedLasso(50.0, l1_radius=3.0, fit_intercept=False, protocol=protocol, random_state=0)
    assert model.fit([Party(X[:, :2]), Party(X[:, 2:], y)]).intercept_ == 0.0
