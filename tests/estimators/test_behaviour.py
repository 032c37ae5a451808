"""What fitted models do and say."""

import math
import re
import warnings

import numpy as np
import pytest
from scipy import sparse

from tacit.estimators import FewRowsWarning
from tacit.privacy import Guarantee
from tacit.solvers import SOLVERS

from .support import CLASSIFIERS, LINEAR, LOGISTIC, RIDGE, SVC, classifiers, every, quiet, regressors

pytestmark = quiet


# --- classifiers -----------------------------------------------------------------------------------------------------


KINDS_OF_CLASSES = [(kind, classes) for kind in CLASSIFIERS for classes in (2, 3, 5)]


@pytest.mark.parametrize(("kind", "classes"), KINDS_OF_CLASSES, ids=str)
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_probabilities_margins_and_classes_agree(kind, classes, store):
    X, y = kind.problem(1000, classes=classes)
    X = store(X)
    model = kind.make(epsilon=20.0, random_state=0).fit(X, y)
    outputs = 1 if classes == 2 else classes
    assert model.coef_.shape == (outputs, 4)
    assert model.intercept_.shape == (outputs,)
    assert model.classes_.tolist() == list(range(classes))
    margins = model.decision_function(X)
    if classes == 2:
        assert margins.shape == (1000,)
        np.testing.assert_array_equal(margins > 0, model.predict(X) == 1)
    else:
        np.testing.assert_array_equal(margins.argmax(axis=1), model.predict(X))
    if not kind.has_probabilities:
        return
    chances = model.predict_proba(X)
    assert chances.shape == (1000, classes)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0, rtol=1e-12)
    assert np.all(chances >= 0)
    np.testing.assert_array_equal(model.classes_[chances.argmax(axis=1)], model.predict(X))
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(model.predict_log_proba(X), np.log(chances), rtol=1e-12)
    if classes == 2:
        np.testing.assert_array_equal(margins > 0, chances[:, 1] > 0.5)


@classifiers
def test_labels_come_back_as_they_went_in(kind):
    X, y = kind.problem()
    for names in (
        np.array(["no", "yes"]),
        np.array([-1, 1]),
        np.array([False, True]),
        np.array(["b", "a"], dtype=object),
    ):
        model = kind.make(epsilon=20.0, random_state=0).fit(X, names[y])
        assert model.classes_.tolist() == sorted(names.tolist())
        assert model.score(X, names[y]) > 0.8


@classifiers
def test_a_declared_class_may_be_missing_from_the_data(kind):
    X, y = kind.problem()
    model = kind.make(epsilon=20.0, classes=[0, 1, 7], random_state=0).fit(X, y)
    assert model.classes_.tolist() == [0, 1, 7]
    assert model.coef_.shape == (3, 4)
    assert np.mean(model.predict(X) == y) > 0.8


@classifiers
def test_declared_classes_may_be_strings_in_any_order(kind):
    X, y = kind.problem()
    model = kind.make(epsilon=20.0, classes=["yes", "no"], random_state=0).fit(X, np.array(["no", "yes"])[y])
    assert model.classes_.tolist() == ["no", "yes"]
    assert np.mean(model.predict(X) == np.array(["no", "yes"])[y]) > 0.8


@classifiers
def test_declared_classes_allow_data_of_one_class(kind):
    X, _ = kind.problem(50)
    model = kind.make(classes=[0, 1]).fit(X, np.ones(50, dtype=int))
    assert model.classes_.tolist() == [0, 1]


@classifiers
def test_with_declared_classes_no_warning_counts_the_labels(kind):
    # scikit-learn warns when there are about as many labels as rows, which would tell how many labels occur.
    X, _ = kind.problem(30)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", FewRowsWarning)
        kind.make(classes=range(30)).fit(X, np.arange(30))


# --- regressors ------------------------------------------------------------------------------------------------------


@regressors
def test_bounds_of_the_target_are_kept_or_found(kind):
    X, y = kind.problem(1500)
    declared = kind.make(epsilon=10.0, y_bounds=(0, 80), random_state=0, **kind.light).fit(X, y)
    assert declared.y_bounds_ == (0.0, 80.0)
    low, high = kind.make(epsilon=10.0, random_state=0).fit(X, y).y_bounds_
    assert low < np.quantile(y, 0.05) < np.quantile(y, 0.95) < high
    assert declared.score(X, y) > 0.8
    assert isinstance(declared.intercept_, float)


@regressors
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_a_target_beyond_its_bounds_counts_as_the_bound(kind, fit_intercept, store):
    X, y = kind.problem(300)
    X = store(X)
    options = {"epsilon": math.inf, "fit_intercept": fit_intercept, "y_bounds": (30.0, 50.0), "random_state": 0}
    wild = kind.make(**options).fit(X, 100.0 * (y - 40.0))
    tame = kind.make(**options).fit(X, np.clip(100.0 * (y - 40.0), 30.0, 50.0))
    np.testing.assert_allclose(wild.coef_, tame.coef_, rtol=1e-9)
    assert wild.y_bounds_ == (30.0, 50.0)


# --- what all share --------------------------------------------------------------------------------------------------


@every
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("declared", [{}, {"row_norm": 700.0}])
def test_without_an_intercept_a_model_passes_through_zero(kind, store, declared):
    X, y = kind.problem()
    model = kind.make(epsilon=10.0, fit_intercept=False, **declared, random_state=0).fit(store(X), y)
    assert np.all(np.asarray(model.intercept_) == 0.0)
    at_zero = np.zeros((1, 4))
    values = model.decision_function(at_zero) if kind.classifies else model.predict(at_zero)
    np.testing.assert_array_equal(values, 0.0)


@every
def test_prediction_clips(kind):
    X, y = kind.problem()
    model = kind.make(epsilon=10.0, random_state=0).fit(X, y)
    at_bound, beyond = model.clip_high_[None, :], np.full((1, 4), 1e300)
    function = model.decision_function if kind.classifies else model.predict
    np.testing.assert_allclose(function(beyond), function(at_bound), rtol=1e-12)
    np.testing.assert_allclose(function(sparse.csr_array(beyond)), function(beyond), rtol=1e-9)
    np.testing.assert_allclose(function(-beyond), function(model.clip_low_[None, :]), rtol=1e-12)


@every
def test_weights_are_in_the_users_units(kind):
    X, y = kind.problem(2000)
    model = kind.make(epsilon=20.0, random_state=0).fit(X, y)
    inside = np.all((model.clip_low_ < X) & (model.clip_high_ > X), axis=1)
    assert inside.mean() > 0.5
    function = model.decision_function if kind.classifies else model.predict
    linear = (X @ np.atleast_2d(model.coef_).T + model.intercept_)[:, 0]
    np.testing.assert_allclose(function(X)[inside], linear[inside], rtol=1e-10)


@every
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_the_guarantee_is_a_sentence(kind, adjacency):
    X, y = kind.problem()
    served = adjacency in SOLVERS[kind.solver].serves.adjacencies
    solver = kind.solver if served else "coordinate"
    model = kind.make(epsilon=3.0, adjacency=adjacency, solver="auto" if served else solver).fit(X, y)
    guarantee = model.guarantee_
    assert isinstance(guarantee, Guarantee)
    words = "add-remove" if adjacency == "add-remove" else "replace"
    assert re.fullmatch(
        rf"\(3\.0, 6\.9e-05\)-DP, {words} one row of 600; {solver} solver,"
        r" \d+ Gaussian releases(, \d+ sampled Gaussian releases)?",
        str(guarantee),
    )
    assert guarantee.adjacency == adjacency
    assert guarantee.recompute() <= 3.0
    assert Guarantee.from_json(guarantee.to_json()) == guarantee
    assert not guarantee.seeded


@every
def test_delta_depends_on_the_rows_unless_given(kind):
    X, y = kind.problem(100)
    assert kind.make().fit(X, y).guarantee_.delta == 100**-1.5
    assert kind.make(delta=1e-7).fit(X, y).guarantee_.delta == 1e-7


@every
@pytest.mark.filterwarnings("default")
def test_warnings_say_what_to_do(kind):
    X, y = kind.problem(1500)
    with pytest.warns(UserWarning, match=r"delta=0\.001 is not below 1/n") as caught:
        kind.make(epsilon=10.0, delta=0.001).fit(X, y)
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="random_state is set"):
        seeded = kind.make(epsilon=10.0, random_state=0).fit(X, y)
    assert seeded.guarantee_.seeded
    assert "seeded" in str(seeded.guarantee_)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kind.make(epsilon=10.0).fit(X, y)


@every
def test_few_rows_name_what_to_declare(kind):
    X, y = kind.problem(12)
    told = []
    for seed in range(20):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            kind.make(epsilon=0.01, random_state=seed).fit(X, y)
        few = [w for w in caught if w.category is FewRowsWarning]
        assert len(few) <= 1
        assert all(w.filename == __file__ for w in caught)
        told += [str(w.message) for w in few]
    assert any("columns (declare row_norm)" in message for message in told)
    assert any("y_bounds" in message for message in told) != kind.classifies
    declared = {"row_norm": 1000.0} | ({} if kind.classifies else {"y_bounds": (0.0, 80.0)})
    with warnings.catch_warnings():
        warnings.simplefilter("error", FewRowsWarning)
        kind.make(epsilon=0.01, **declared).fit(X, y)


@every
def test_progress_tells_only_counts(kind, capsys):
    printed = []
    for seed in (0, 1):
        X, y = kind.problem(200, seed=seed)
        kind.make(verbose=1).fit(X * (1 + seed), y)
        printed.append(capsys.readouterr())
    assert printed[0] == printed[1]
    lines = printed[0].err.splitlines()
    assert printed[0].out == ""
    assert 5 <= len(lines) <= 12
    assert all(re.fullmatch(r"tacit: \d+ of \d+ releases \([a-z: ]+\)", line) for line in lines)
    kind.make().fit(X, y)
    assert capsys.readouterr() == ("", "")


@every
def test_a_declared_norm_is_enforced(kind):
    # Rows are clipped for finding scales; a row of any size changes them no more than a row of that norm.
    X, y = kind.problem(400)
    X[0] = 1e300
    model = kind.make(epsilon=10.0, row_norm=700.0, random_state=0).fit(X, y)
    assert np.all(np.abs(model.clip_high_) < 1e4)
    assert np.all(np.isfinite(model.coef_))


def test_regularisation_means_what_it_does_in_scikit_learn():
    X, y = LOGISTIC.problem(500)
    sizes = [np.linalg.norm(LOGISTIC.make(epsilon=math.inf, C=C).fit(X, y).coef_) for C in (1e-3, 1.0, 100.0)]
    assert sizes == sorted(sizes)
    X, y = RIDGE.problem(500)
    sizes = [np.linalg.norm(RIDGE.make(epsilon=math.inf, alpha=a).fit(X, y).coef_) for a in (1e4, 100.0, 0.0)]
    assert sizes == sorted(sizes)
    plain = LINEAR.make(epsilon=math.inf).fit(X, y).coef_
    np.testing.assert_allclose(RIDGE.make(epsilon=math.inf, alpha=0.0).fit(X, y).coef_, plain)
    np.testing.assert_allclose(
        LOGISTIC.make(epsilon=math.inf, C=math.inf, random_state=0).fit(X, y > 40).coef_,
        LOGISTIC.make(epsilon=math.inf, C=1e12, random_state=0).fit(X, y > 40).coef_,
        rtol=1e-3,
    )


@pytest.mark.parametrize(
    ("loss", "solver"), [("squared_hinge", "coordinate"), ("squared_hinge", "sgd"), ("hinge", "sgd")], ids=str
)
@pytest.mark.parametrize("C", [0.01, 1.0])
def test_a_support_vector_machine_minimises_what_scikit_learns_does(loss, solver, C):
    # On sparse rows within their norm nothing is bounded; without an intercept nothing else differs.
    X, y = SVC.problem(300)
    X /= np.abs(X).max(axis=0)
    options = {"C": C, "loss": loss, "fit_intercept": False}
    ours = SVC.make(epsilon=math.inf, row_norm=10.0, solver=solver, **options).fit(sparse.csr_array(X), y)
    theirs = SVC.peer(**options, tol=1e-8, max_iter=100_000).fit(X, y)

    def objective(w):
        short = np.maximum(0.0, 1.0 - (2 * y - 1) * (X @ w))
        return C * np.sum(short**2 if loss == "squared_hinge" else short) + w @ w / 2

    assert objective(ours.coef_[0]) == pytest.approx(objective(theirs.coef_[0]), rel=1e-3)


def test_the_intercept_of_a_support_vector_machine_is_not_penalised():
    X, y = SVC.problem(400)
    y = np.where(np.arange(400) % 5 == 0, y, 1)  # one class is rare, and the penalty is all but infinite
    model = SVC.make(epsilon=math.inf, C=1e-6).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), 2 * y.mean() - 1, atol=0.01)
