"""One measurement: a split, a model, its fit and its test scores."""

import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression as PlainLogisticRegression
from sklearn.linear_model import Ridge as PlainRidge
from sklearn.metrics import accuracy_score, log_loss, r2_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from benchmarks.frame.records import Record
from tacit import LinearRegression, LogisticRegression
from tacit.problems import LOSSES
from tacit.solvers import SOLVERS

PLAIN = "not private"
MAIN_SCORE = {"classification": "accuracy", "regression": "r2"}


def split(X: Any, y: Any, kind: str, seed: int) -> list[Any]:
    """X_train, X_test, y_train, y_test: 75/25, stratified for classes."""
    stratify = y if kind == "classification" else None
    return train_test_split(X, y, test_size=0.25, random_state=seed, stratify=stratify)


def model_names(X: Any, y: Any, kind: str) -> list[str]:
    """scikit-learn, "auto", and every registered solver that serves the loss and the rows of this set."""
    loss = "squared" if kind == "regression" else "logistic" if len(np.unique(y)) == 2 else "multinomial"
    serves = {name: solver.serves for name, solver in SOLVERS.items() if LOSSES[loss] in solver.serves.losses}
    return [PLAIN, "auto", *(name for name, able in serves.items() if sparse.issparse(X) or not able.sparse_only)]


def plain(X: Any, kind: str) -> Any:
    """scikit-learn without privacy, on standardised columns. Ridge, because one-hot columns are collinear."""
    scaler = MaxAbsScaler() if sparse.issparse(X) else StandardScaler()
    model = PlainLogisticRegression(max_iter=200) if kind == "classification" else PlainRidge()
    return make_pipeline(scaler, model)


def private(name: str, epsilon: float, kind: str, **declared: Any) -> Any:
    """One of ours, with what is declared and nothing tuned."""
    estimator = LogisticRegression if kind == "classification" else LinearRegression
    return estimator(epsilon=epsilon, solver=name, **declared)


def measure(model: Any, parts: Sequence[Any], kind: str) -> tuple[dict[str, list[float]], list[float]]:
    """Scores on the test rows, and the seconds of the fit."""
    X_train, X_test, y_train, y_test = parts
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few rows and of lbfgs: the scores show it
        start = time.perf_counter()
        model.fit(X_train, y_train)
        seconds = time.perf_counter() - start
        scores = evaluate(model, X_test, y_test, kind)
    return {name: [round(float(value), 5)] for name, value in scores.items()}, [round(seconds, 4)]


def evaluate(model: Any, X: Any, y: Any, kind: str) -> dict[str, float]:
    """Accuracy, AUC (one class against the rest if there are more than two) and log-loss; or R2."""
    if kind == "regression":
        return {"r2": r2_score(y, model.predict(X))}
    probability = model.predict_proba(X)
    ranked = probability[:, 1] if probability.shape[1] == 2 else probability
    return {
        "accuracy": accuracy_score(y, model.predict(X)),
        "auc": roc_auc_score(y, ranked, multi_class="ovr", labels=model.classes_),
        "log_loss": log_loss(y, probability, labels=model.classes_),
    }


def record(
    table: str,
    name: str,
    model: str,
    epsilon: float | None,
    seed: int,
    data: tuple[Any, Any, str],
    declared: dict[str, Any],
) -> Record:
    """Fit one model on one split of a set, and write down what it reached or why it was refused."""
    X, y, kind = data
    size = (*X.shape, len(np.unique(y)) if kind == "classification" else 0)
    estimator = plain(X, kind) if epsilon is None else private(model, epsilon, kind, **declared)
    try:
        scores, seconds = measure(estimator, split(X, y, kind, seed), kind)
    except ValueError as error:
        return Record(table, name, model, epsilon, seed, {}, [], refused=str(error), size=size)
    taken = "" if epsilon is None else estimator.guarantee_.solver
    return Record(table, name, model, epsilon, seed, scores, seconds, note=taken, size=size)
