"""Bad input raises before anything is released, and no message quotes the data."""

import math
import pydoc
import re
import traceback

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from tacit.metrics import (
    R2,
    Accuracy,
    LogLoss,
    MeanSquaredError,
    RocAuc,
    Terms,
    accuracy_score,
    evaluate,
    log_loss,
    mean_squared_error,
    r2_score,
    roc_auc_score,
)
from tacit.privacy import Gate

SECRET, NUMBER = "diagnosis F32.1", 98765.4321
Y = [0, 1, 0, 1]
P = [0.1, 0.9, 0.2, 0.8]
CALLS = {
    "accuracy": lambda y=Y, p=Y, **terms: accuracy_score(y, p, **terms),
    "log_loss": lambda y=Y, p=P, **terms: log_loss(y, p, **terms),
    "roc_auc": lambda y=Y, p=P, **terms: roc_auc_score(y, p, **terms),
    "r2": lambda y=P, p=P, **terms: r2_score(y, p, **{"y_bounds": (0, 1), **terms}),
    "mean_squared_error": lambda y=P, p=P, **terms: mean_squared_error(y, p, **{"y_bounds": (0, 1), **terms}),
}
every_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())


@pytest.fixture(autouse=True)
def nothing_is_released(monkeypatch):
    def refuse(*_):
        raise AssertionError("a release was made")

    monkeypatch.setattr(Gate, "release", refuse)


def told_by(error):
    """All that a log could show: messages, arguments and the whole chain of causes."""
    texts = list(traceback.TracebackException.from_exception(error, lookup_lines=False).format_exception_only())
    while error is not None:
        texts += [str(error), repr(error.args)]
        error = error.__cause__ or error.__context__
    return " ".join(texts)


@every_call
@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be above 0"),
        ({"epsilon": -1.0}, "epsilon must be above 0"),
        ({"epsilon": math.nan}, "epsilon must be a number"),
        ({"epsilon": 1e-300}, "small for any useful noise"),
        ({"epsilon": 1e-14}, "small for any useful noise"),
        ({"epsilon": 1e300}, "large: use float"),
        ({"delta": 0.0}, "delta must lie"),
        ({"adjacency": "neighbour"}, "adjacency must be one of"),
        ({"mechanism": "uniform"}, "mechanism must be one of"),
        ({"mechanism": "laplace", "epsilon": 1e3}, "serves epsilon from 0.001 to 100"),
        ({"mechanism": "laplace", "delta": 0.1}, "delta up to 0.01"),
        ({"random_state": -1}, "random_state must be"),
    ],
    ids=str,
)
def test_bad_terms(call, terms, message):
    with pytest.raises(ValueError, match=message):
        call(**{"epsilon": 1.0, "delta": 1e-40 if "epsilon" in terms else 1e-3, **terms})


@every_call
def test_epsilon_must_be_said(call):
    with pytest.raises(TypeError, match="missing required keyword argument 'epsilon'"):
        call()


@every_call
def test_other_terms_are_refused(call):
    with pytest.raises(TypeError, match="unexpected keyword argument 'epsilom'"):
        call(epsilon=1.0, epsilom=2.0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'sample_weight'"):
        call(sample_weight=[1.0] * 4)


@pytest.mark.parametrize("function", [accuracy_score, log_loss, roc_auc_score, r2_score, mean_squared_error, evaluate])
def test_help_says_what_the_terms_are(function):
    shown = pydoc.render_doc(function, renderer=pydoc.plaintext)
    assert re.search(r"epsilon\W.*?rivacy budget of (this score|all scores together)", shown, re.DOTALL)
    for name in ("delta", "adjacency", "mechanism", "random_state", "`Terms`"):
        assert name in shown
    for name in Terms.__annotations__:
        assert f"\n    {name} : " in Terms.__doc__


@every_call
@pytest.mark.parametrize(
    ("y", "p"),
    [
        (Y, [0, 1]),
        ([0], [0]),
        ([], []),
        ([Y, Y], Y),
        (Y, [[Y]]),
        (0, 0),
        ([0, 1, None, 1], P),
        (Y, [0.0, 1.0, math.nan, 1.0]),
        ([0, 1, math.nan, 1], Y),
        (Y, [0.0, 1.0, math.inf, 1.0]),
        ([[0, 1], [0]], Y),
        (Y, [0j, 1j, 0j, 1j]),
        (Y, np.array(["2020-01-01"] * 4, dtype="datetime64[D]")),
        ([SECRET] * 4, [NUMBER] * 4),
        ([NUMBER] * 4, [SECRET] * 4),
        ([object()] * 4, [object()] * 4),
        ([{SECRET: NUMBER}] * 4, Y),
    ],
    ids=range(17),
)
def test_bad_rows(call, y, p):
    with pytest.raises(ValueError, match=r"must|name every label") as caught:
        call(y, p, epsilon=1.0, delta=1e-3)
    told = told_by(caught.value)
    assert SECRET not in told
    assert "98765" not in told


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda **t: accuracy_score(Y, P, **t), "y_pred must hold class labels"),
        (lambda **t: accuracy_score(["0", "1"], [0, 1], **t), "both be text or both be numbers"),
        (lambda **t: log_loss(Y, [1.1, 0.0, 0.0, 0.0], **t), "probabilities, from 0 to 1"),
        (lambda **t: log_loss([0, 1, 2, 1], P, **t), "a label that `labels` does not name"),
        (lambda **t: log_loss(["0", "1"], [0.5, 0.5], **t), "a label that `labels` does not name"),
        (lambda **t: log_loss(Y, P, labels=("a", "b"), **t), "a label that `labels` does not name"),
        (lambda **t: log_loss(Y, P, labels=(0, 1, 2), **t), "labels must list 2 different classes"),
        (lambda **t: log_loss(Y, P, labels=(1, 1), **t), "labels must list 2 different classes"),
        (lambda **t: log_loss(Y, [[0.5, 0.4]] * 4, **t), "add up to 1"),
        (lambda **t: log_loss(Y, [[1.0]] * 4, **t), "two classes or more"),
        (lambda **t: log_loss(Y, P, clip=0.0, **t), "clip must be above 0"),
        (lambda **t: log_loss(Y, P, clip=0.5, **t), "clip must lie strictly between 0 and 0.5"),
        (lambda **t: roc_auc_score(Y, [1.0, 2.0, 3.0, 4.0], **t), "declare score_bounds"),
        (lambda **t: roc_auc_score([-1, 1], [0.5, 0.5], **t), "a label that `labels` does not name"),
        (lambda **t: roc_auc_score(Y, P, labels=(0, 1, 2), **t), "labels must list 2"),
        (lambda **t: roc_auc_score(Y, P, bins=1, **t), "bins must be at least 2"),
        (lambda **t: roc_auc_score(Y, P, bins=10**6, **t), "bins must be at most 100,000"),
        (lambda **t: roc_auc_score(Y, P, score_bounds=(1, 0), **t), "low < high"),
        (lambda **t: roc_auc_score(Y, P, score_bounds=1, **t), "must be a pair"),
        (lambda **t: r2_score(P, P, y_bounds=None, **t), "y_bounds must be a pair"),
        (lambda **t: r2_score(P, P, y_bounds=(0, math.inf), **t), "y_bounds must lie within"),
        (lambda **t: r2_score(P, P, y_bounds=(0, 1e-200), **t), "apart or more"),
        (lambda **t: mean_squared_error(P, P, y_bounds=(1, 1), **t), "low < high"),
    ],
    ids=range(23),
)
def test_what_a_metric_needs(call, message):
    with pytest.raises(ValueError, match=message):
        call(epsilon=1.0, delta=1e-3)


# --- evaluate ----------------------------------------------------------------------------------------------

X = np.random.default_rng(0).normal(size=(60, 2))
LABELS = (X[:, 0] > 0).astype(int)
CLASSIFIER = LogisticRegression().fit(X, LABELS)
THREE = LogisticRegression().fit(X, np.arange(60) % 3)
REGRESSOR = LinearRegression().fit(X, X[:, 0])


@pytest.mark.parametrize(
    ("model", "y", "options", "message"),
    [
        (CLASSIFIER, LABELS, {"metrics": ()}, "at least one of 'accuracy'"),
        (CLASSIFIER, LABELS, {"metrics": ("f1",)}, "metrics must be one of"),
        (CLASSIFIER, LABELS, {"metrics": {"accuracy": 0.0}}, "share must be above 0"),
        (CLASSIFIER, LABELS, {"epsilon": 0.0}, "epsilon must be above 0"),
        (CLASSIFIER, LABELS[:-1], {}, "one entry for each row"),
        (CLASSIFIER, LABELS + 1, {}, "does not name"),
        (THREE, np.arange(60) % 3, {"metrics": ("roc_auc",)}, "for two classes, and the model has 3"),
        (REGRESSOR, X[:, 0], {}, "y_bounds must be given"),
        (REGRESSOR, X[:, 0], {"metrics": ("accuracy",)}, "must hold class labels"),
        (REGRESSOR, X[:, 0], {"metrics": ("log_loss",)}, "must have predict_proba"),
        (REGRESSOR, LABELS, {"metrics": ("roc_auc",)}, "a fitted classifier"),
        (REGRESSOR, X[:, 0], {"metrics": (R2((0, 1)), MeanSquaredError((0, 2)))}, "the same y_bounds"),
        (CLASSIFIER, LABELS, {"metrics": ("accuracy", Accuracy())}, "each metric once"),
        (CLASSIFIER, LABELS, {"metrics": {RocAuc(bins=9): 1, RocAuc(bins=8): 1}}, "each metric once"),
        (CLASSIFIER, LABELS, {"metrics": (RocAuc,)}, "metrics must be one of"),
        (CLASSIFIER, LABELS, {"metrics": LogLoss(labels=(0, 1, 2))}, "labels must list 2"),
    ],
    ids=range(16),
)
def test_what_evaluate_needs(model, y, options, message):
    with pytest.raises(ValueError, match=message):
        evaluate(model, X, y, **{"epsilon": 1.0, **options})


@pytest.mark.parametrize("name", ["clip", "score_bounds", "bins", "y_bounds"])
def test_parameters_of_a_metric_are_no_terms(name):
    with pytest.raises(TypeError, match=rf"unexpected keyword argument '{name}'.*a metric's own parameters"):
        evaluate(CLASSIFIER, X, LABELS, epsilon=1.0, **{name: 0.1})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LogLoss(clip=0.5), "clip must lie strictly between 0 and 0.5"),
        (lambda: LogLoss(labels=[["a", "b"]]), "labels must hold one class label"),
        (lambda: RocAuc(bins=1), "bins must be at least 2"),
        (lambda: RocAuc(score_bounds=(1, 0)), "low < high"),
        (lambda: R2((1, 0)), "low < high"),
        (lambda: MeanSquaredError(3.0), "y_bounds must be a pair"),
    ],
    ids=range(6),
)
def test_a_metric_refuses_bad_parameters_when_it_is_made(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_model_that_is_not_fitted_says_so():
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        evaluate(LogisticRegression(), X, LABELS, epsilon=1.0, metrics="accuracy")


@pytest.mark.parametrize("bad", [SECRET, math.nan, math.inf])
def test_errors_of_a_model_do_not_quote_the_rows(bad):
    def quoting(table):
        raise ValueError(f"cannot read '{SECRET}' at\n{table}")

    rows = X.astype(object)
    rows[3, 1], rows[4, 0] = bad, NUMBER
    loud = make_pipeline(FunctionTransformer(quoting), StandardScaler(), CLASSIFIER)
    for model in (CLASSIFIER, loud):
        with pytest.raises(ValueError, match="the model refused the rows") as caught:
            evaluate(model, rows, LABELS, epsilon=1.0, metrics=("accuracy",))
        told = told_by(caught.value)
        assert SECRET not in told
        assert "98765" not in told
