"""One measurement: a split, a model, its fit and its test scores."""

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

from benchmarks.frame.solvers import fitted
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


def estimator(name: str, epsilon: float | None, X: Any, kind: str, declared: dict[str, Any]) -> Any:
    """One of ours, with what is declared and nothing tuned; or scikit-learn without privacy, on standardised columns.

    Ridge, because one-hot columns are collinear.
    """
    if epsilon is not None:
        ours = LogisticRegression if kind == "classification" else LinearRegression
        return ours(epsilon=epsilon, solver=name, **declared)
    scaler = MaxAbsScaler() if sparse.issparse(X) else StandardScaler()
    return make_pipeline(scaler, PlainLogisticRegression(max_iter=200) if kind == "classification" else PlainRidge())


def measure(model: Any, parts: Sequence[Any], kind: str) -> tuple[dict[str, float], float]:
    """Scores on the test rows, and the seconds of the fit."""
    X_train, X_test, y_train, y_test = parts
    seconds = fitted(model, X_train, y_train)
    scores = evaluate(model, X_test, y_test, kind)
    return {name: round(float(value), 5) for name, value in scores.items()}, round(seconds, 4)


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
