import math
import warnings

import numpy as np
import pandas
import pytest
from scipy.sparse import coo_array, csr_array
from sklearn import metrics as plain
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import tacit
from tacit.metrics import R2, LogLoss, MeanSquaredError, RocAuc, accuracy_score, evaluate

INF = math.inf
RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
MARGIN = X @ [1.0, -1.0, 0.5]
Y = np.where(MARGIN + RNG.normal(size=300) > 0, "yes", "no")
TARGET = MARGIN + RNG.normal(size=300)
MODELS = {
    "tacit": tacit.LogisticRegression(epsilon=5.0, row_norm=5.0, random_state=0),
    "scikit-learn": LogisticRegression(),
    "pipeline": make_pipeline(StandardScaler(), LogisticRegression()),
}


@pytest.mark.filterwarnings("ignore:random_state is set")
@pytest.mark.parametrize("name", MODELS)
def test_classifiers(name):
    model = MODELS[name].fit(X, Y)
    scores = evaluate(model, X, Y, epsilon=INF)
    p = model.predict_proba(X)[:, 1]
    exact = {
        "accuracy": plain.accuracy_score(Y, model.predict(X)),
        "log_loss": plain.log_loss(Y == "yes", np.clip(p, 0.01, 0.99)),
        "roc_auc": plain.roc_auc_score(Y == "yes", p),
    }
    assert list(scores) == list(exact)
    for metric, value in exact.items():
        assert scores[metric].value == pytest.approx(value, abs=1e-4)
    noisy = evaluate(model, X, Y, epsilon=1.0, random_state=1)
    for metric, value in exact.items():
        assert abs(noisy[metric].value - value) < 6 * noisy[metric].noise + 0.005


@pytest.mark.filterwarnings("ignore:random_state is set")
@pytest.mark.parametrize("model", [LinearRegression(), tacit.Ridge(epsilon=9.0, y_bounds=(-8, 8), random_state=0)])
def test_regressors(model):
    model.fit(X, TARGET)
    metrics = None if hasattr(model, "y_bounds_") else (R2((-8, 8)), "mean_squared_error")  # Tacit's carry bounds
    scores = evaluate(model, X, TARGET, epsilon=INF, metrics=metrics)
    guess = model.predict(X)
    assert list(scores) == ["r2", "mean_squared_error"]
    assert scores["r2"].value == pytest.approx(plain.r2_score(TARGET, guess), rel=1e-9)
    assert scores["mean_squared_error"].value == pytest.approx(plain.mean_squared_error(TARGET, guess), rel=1e-9)


def test_defaults_fit_the_model():
    three = LogisticRegression().fit(X, np.digitize(MARGIN, [-1, 1]))
    assert list(evaluate(three, X, np.digitize(MARGIN, [-1, 1]), epsilon=1.0)) == ["accuracy", "log_loss"]
    svm = LinearSVC().fit(X, Y)
    assert list(evaluate(svm, X, Y, epsilon=1.0)) == ["accuracy"]
    scores = evaluate(svm, X, Y, epsilon=INF, metrics=("accuracy", RocAuc(score_bounds=(-3, 3))))
    assert list(scores) == ["accuracy", "roc_auc"]
    assert scores["roc_auc"].value == pytest.approx(plain.roc_auc_score(Y, svm.decision_function(X)), abs=1e-3)
    with pytest.raises(ValueError, match="declare score_bounds"):
        evaluate(svm, X, Y, epsilon=1.0, metrics=("roc_auc",))


def test_rows_of_every_container():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    model = LogisticRegression().fit(X, Y)
    exact = evaluate(model, X, Y, epsilon=INF)["accuracy"].value
    assert evaluate(model, csr_array(X), Y, epsilon=INF)["accuracy"].value == exact
    names = list("abc")
    named = LogisticRegression().fit(pandas.DataFrame(X, columns=names), Y)
    for frame, y in (
        (pandas.DataFrame(X, columns=names), pandas.Series(Y)),
        (polars.DataFrame(X, schema=names), polars.Series(Y)),
    ):
        assert evaluate(named, frame, y, epsilon=INF)["accuracy"].value == exact


def test_one_metric_gets_the_whole_budget():
    model = LogisticRegression().fit(X, Y)
    alone = accuracy_score(Y, model.predict(X), epsilon=1.0)
    assert evaluate(model, X, Y, epsilon=1.0, metrics="accuracy")["accuracy"].noise == alone.noise
    assert evaluate(model, X, Y, epsilon=1.0)["accuracy"].noise > 2 * alone.noise


def test_shares_split_the_budget():
    """A share is one of mu^2: four times as much is half the noise."""
    model = LogisticRegression().fit(X, Y)
    shares = {"log_loss": 4.0, "accuracy": 1.0}
    scores = evaluate(model, X, Y, epsilon=1.0, metrics=shares, mechanism="gaussian")
    assert list(scores) == ["log_loss", "accuracy"]  # in the order asked for
    half = math.log(99) / 2
    assert scores["accuracy"].noise * 2 == pytest.approx(2 * scores["log_loss"].noise / half)
    assert scores["accuracy"].guarantee is scores["log_loss"].guarantee


def test_metric_objects_carry_their_parameters():
    model = LogisticRegression().fit(X, Y)
    given = (LogLoss(clip=0.1), RocAuc(bins=2))
    scores = evaluate(model, X, Y, epsilon=INF, metrics=given)
    p = model.predict_proba(X)[:, 1]
    assert scores["log_loss"].value == pytest.approx(plain.log_loss(Y == "yes", np.clip(p, 0.1, 0.9)))
    assert scores["roc_auc"].value == pytest.approx(plain.roc_auc_score(Y == "yes", p > 0.5))
    # Two classes of the model by other names than its own.
    named = LogLoss(clip=0.1, labels=np.array(["-", "+"]))
    again = evaluate(model, X, np.where(Y == "yes", "+", "-"), epsilon=INF, metrics={named: 3.0, "accuracy": 1.0})
    assert again["log_loss"].value == scores["log_loss"].value


def test_names_are_short_forms_of_metrics_with_their_defaults():
    model = LogisticRegression().fit(X, Y)
    terms = {"epsilon": 1.0, "random_state": 0}
    short = evaluate(model, X, Y, metrics={"roc_auc": 2.0, "log_loss": 1.0}, **terms)
    assert short == evaluate(model, X, Y, metrics={RocAuc(): 2.0, LogLoss(): 1.0}, **terms)


def test_the_order_of_the_metrics_changes_no_score():
    model = LogisticRegression().fit(X, Y)
    terms = {"epsilon": 1.0, "random_state": 0}
    first = evaluate(model, X, Y, metrics=("roc_auc", "accuracy"), **terms)
    assert first == evaluate(model, X, Y, metrics=("accuracy", "roc_auc"), **terms)


def test_metrics_are_values():
    assert RocAuc(bins=50, labels=["a", "b"]) == RocAuc(50, labels=("a", "b"))
    assert hash(R2((0, 1))) == hash(R2(np.array([0.0, 1.0])))
    assert R2((0, 1)) != MeanSquaredError((0, 1))
    assert repr(R2((0, 1))) == "R2(y_bounds=(0.0, 1.0))"
    with pytest.raises(AttributeError):
        RocAuc().bins = 3


def test_r2_leaves_the_mean_squared_error_for_free():
    model = LinearRegression().fit(X, TARGET)
    r2, error = R2((-8, 8)), MeanSquaredError((-8, 8))
    both = evaluate(model, X, TARGET, epsilon=1.0, random_state=0, metrics=(error, r2))
    alone = evaluate(model, X, TARGET, epsilon=1.0, random_state=0, metrics=r2)
    assert list(both) == ["mean_squared_error", "r2"]
    assert list(alone) == ["r2"]
    assert both["r2"] == alone["r2"]


def test_the_inputs_are_left_as_they_were():
    model = LogisticRegression().fit(X, Y)
    rows, labels = X.copy(), Y.copy()
    rows.setflags(write=False)
    labels.setflags(write=False)
    evaluate(model, rows, labels, epsilon=1.0)
    np.testing.assert_array_equal(rows, X)


class Together(LinearRegression):
    """A model that rounds all rows together: what it says of a row depends on how many there are."""

    def predict(self, X):
        return np.full(len(X), float(len(X)))


def test_rows_are_predicted_one_by_one():
    model = Together().fit(X, TARGET)
    scores = evaluate(model, X[:50], np.ones(50), epsilon=math.inf, metrics=MeanSquaredError((0, 500)))
    assert scores["mean_squared_error"].value == 0.0


@pytest.mark.parametrize("make", [np.asarray, pandas.DataFrame, list, csr_array, coo_array])
def test_rows_of_any_container_are_predicted_one_by_one(make):
    model = LogisticRegression().fit(X, Y)
    rows = make(X[:50].tolist()) if make is list else make(X[:50])
    accuracy = evaluate(model, rows, Y[:50], epsilon=math.inf, metrics=("accuracy",))["accuracy"].value
    assert accuracy == pytest.approx(model.score(X[:50], Y[:50]))


def test_the_prediction_of_a_row_by_a_model_of_tacit_is_that_of_the_row_alone():
    """On the boundary, where BLAS would take equal rows to different sides by how many there are."""
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = tacit.LogisticRegression(epsilon=1.0, random_state=0).fit(rng.normal(size=(500, 8)), np.arange(500) % 2)
    model.clip_low_, model.clip_high_ = np.full(8, -1e9), np.full(8, 1e9)
    for _ in range(20):
        w = model.coef_[0]
        x = rng.normal(size=8)
        x[-1] = -(x[:-1] @ w[:-1] + model.intercept_[0]) / w[-1]
        alone = model.decision_function(x[None])
        for n in (2, 3, 7, 8, 41):
            assert np.all(model.decision_function(np.tile(x, (n, 1))) == alone)
    assert model.predicts_rows_alone
