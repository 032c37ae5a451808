"""`evaluate`: several scores of one model on private rows, under one budget and one guarantee.

Privacy
-------
Unit, neighbours and assumptions are those of `tacit.metrics`. Released: the sums of each metric asked for, in one plan
that splits the budget by public shares; R2 and the mean squared error come from the same sums. Each row is predicted by
itself. Tacit's own models do that in one call. Others are called once for each row: in a call for all of them BLAS may
round a row otherwise where another one is missing, and rows on a boundary then change sides together.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError

from tacit.metrics.classification import accuracy_question, log_loss_question
from tacit.metrics.ranking import roc_auc_question
from tacit.metrics.regression import squared_error_question
from tacit.metrics.release import Question, Terms, released_scores
from tacit.metrics.score import Score
from tacit.blocks.validate import without_data
from tacit.privacy import checks

METRICS = ("accuracy", "log_loss", "roc_auc", "r2", "mean_squared_error")


def evaluate(
    model: Any,
    X: Any,
    y: Any,
    *,
    epsilon: float,
    metrics: Sequence[str] | Mapping[str, float] | None = None,
    delta: float | None = None,
    adjacency: str = "add-remove",
    clip: float = 0.01,
    score_bounds: tuple[float, float] | None = None,
    bins: int | None = None,
    y_bounds: tuple[float, float] | None = None,
    mechanism: str = "auto",
    random_state: int | None = None,
) -> dict[str, Score]:
    """Scores of a fitted model on private rows, all within one budget.

    Parameters
    ----------
    model : estimator
        A fitted classifier or regressor, of Tacit or of scikit-learn. It is taken as public: what it was trained on is
        the matter of its own guarantee. Models that are not Tacit's predict one row at a time, which takes longer.
    X, y : array-like
        The evaluation rows and their labels or targets.
    epsilon : float
        Privacy budget of all scores together.
    metrics : sequence of str or mapping of str to float, default=None
        Among "accuracy", "log_loss", "roc_auc", "r2" and "mean_squared_error"; a mapping gives each its share of the
        budget, relative to the others. None: accuracy, and log-loss and (for two classes) the area under the ROC
        curve where the model gives probabilities; R2 and mean squared error for regressors.
    clip
        Of the log-loss: see `log_loss`.
    score_bounds, bins
        Of the area under the ROC curve: see `roc_auc_score`. With `score_bounds` rows are ranked by
        `decision_function` in place of `predict_proba`.
    y_bounds : (float, float), default=None
        Public bounds on the target of a regression. None: the model's `y_bounds_`.
    delta, adjacency, mechanism, random_state
        As for `accuracy_score`.

    Returns
    -------
    dict of str to Score
        In the order asked for. They share one guarantee, which covers all of them together.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from tacit import LogisticRegression
    >>> from tacit.metrics import evaluate
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LogisticRegression(epsilon=3.0).fit(X[:400], y[:400])
    >>> scores = evaluate(model, X[400:], y[400:], epsilon=1.0, metrics=("accuracy", "roc_auc"))
    >>> list(scores)
    ['accuracy', 'roc_auc']
    """
    shares = _shares(_defaults(model, score_bounds) if metrics is None else metrics)
    checks.positive("epsilon", epsilon, finite=False)
    questions: list[Question] = []
    if "accuracy" in shares:
        questions.append(accuracy_question(y, _predicted(model, "predict", X), shares["accuracy"]))
    given = None
    if "log_loss" in shares:
        given = _predicted(model, "predict_proba", X)
        questions.append(log_loss_question(y, given, _classes(model), clip, shares["log_loss"]))
    if "roc_auc" in shares:
        share = shares["roc_auc"]
        worth = epsilon * share / sum(shares.values())
        ranked = _ranked(model, X, score_bounds, given)
        questions.append(roc_auc_question(y, ranked, _classes(model), score_bounds, bins, worth, share))
    if errors := shares.keys() & {"r2", "mean_squared_error"}:
        bounds = getattr(model, "y_bounds_", None) if y_bounds is None else y_bounds
        if bounds is None:
            raise ValueError("y_bounds must be given: public bounds on the target")
        share = sum(shares[name] for name in errors)
        guess = _predicted(model, "predict", X)
        questions.append(squared_error_question(y, guess, bounds, r2="r2" in errors, share=share))
    scores = released_scores(questions, Terms(epsilon, delta, adjacency, mechanism, random_state))
    return {name: scores[name] for name in shares}


def _defaults(model: Any, score_bounds: tuple[float, float] | None) -> Sequence[str]:
    """The metrics that fit the model."""
    if not is_classifier(model):
        return ("r2", "mean_squared_error")
    gives = hasattr(model, "predict_proba")
    ranks = (gives or score_bounds is not None) and len(_classes(model)) == 2
    return ("accuracy", *(["log_loss"] if gives else []), *(["roc_auc"] if ranks else []))


def _shares(metrics: Sequence[str] | Mapping[str, float]) -> dict[str, float]:
    """Each metric's share of the budget."""
    named = (
        metrics
        if isinstance(metrics, Mapping)
        else dict.fromkeys([metrics] if isinstance(metrics, str) else metrics, 1.0)
    )
    if not named:
        raise ValueError(f"metrics must name at least one of {', '.join(map(repr, METRICS))}")
    return {checks.one_of("metrics", name, METRICS): checks.positive("share", share) for name, share in named.items()}


def _classes(model: Any) -> Any:
    if not hasattr(model, "classes_"):
        raise ValueError(f"the model must be a fitted classifier with classes_, got {type(model).__name__}")
    return model.classes_


def _ranked(model: Any, X: Any, score_bounds: tuple[float, float] | None, given: Any) -> Any:
    """What the rows of two classes are ranked by; `given` are their probabilities, if they were computed before."""
    if len(_classes(model)) != 2:
        raise ValueError(f"'roc_auc' is for two classes, and the model has {len(_classes(model))}")
    if score_bounds is not None:
        return _predicted(model, "decision_function", X)
    if not hasattr(model, "predict_proba"):
        raise ValueError("the model gives no probabilities; declare score_bounds, to rank by decision_function")
    return (_predicted(model, "predict_proba", X) if given is None else given)[:, 1]


def _predicted(model: Any, method: str, X: Any) -> Any:
    """What the model says of the rows; its errors without the data."""
    if not hasattr(model, method):
        raise ValueError(f"the model must have {method}, got {type(model).__name__}")
    predict = getattr(model, method)
    try:
        together = np.asarray(predict(X))
        if getattr(model, "predicts_rows_alone", False):
            return together
        rows = getattr(X, "iloc", X.tocsr() if hasattr(X, "tocsr") else X)
        with config_context(assume_finite=True):  # as the call above found
            return np.concatenate([np.asarray(predict(rows[i : i + 1])) for i in range(len(together))])
    except NotFittedError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        message = without_data(str(error))
    # Outside the handler, so that the error that quotes the data is not this one's context.
    raise ValueError(f"the model refused the rows: {message}")
