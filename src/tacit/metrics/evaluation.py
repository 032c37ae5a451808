"""`evaluate`: several scores of one model on private rows, under one budget and one guarantee.

Privacy
-------
Unit, neighbours and assumptions are those of `tacit.metrics`. Released: the sums of each metric, in one plan that
splits the budget by public shares. R2 and the mean squared error come from the same sums. Each row is predicted by
itself (`tacit.metrics.predictions`).
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, Unpack, get_args

from sklearn.base import is_classifier

from tacit.blocks.partitions import without_seed
from tacit.blocks.reading import opened
from tacit.metrics.blocks import questions_of
from tacit.metrics.classification import Accuracy, LogLoss
from tacit.metrics.predictions import Predictions
from tacit.metrics.ranking import RocAuc
from tacit.metrics.regression import R2, MeanSquaredError
from tacit.metrics.release import released_scores, scored
from tacit.metrics.score import Score
from tacit.metrics.terms import Agreed, Terms
from tacit.preprocessing import PrivateEncoder
from tacit.preprocessing.blocks import texts_of
from tacit.privacy import checks

Metric: TypeAlias = Accuracy | LogLoss | RocAuc | R2 | MeanSquaredError

METRICS: dict[str, type[Metric]] = {kind.name: kind for kind in get_args(Metric)}  # in the order of release


def evaluate(
    model: Any,
    X: Any,
    y: Any,
    *,
    metrics: str | Metric | Sequence[str | Metric] | Mapping[str | Metric, float] | None = None,
    **terms: Unpack[Terms],
) -> dict[str, Score]:
    """Scores of a fitted model on private rows, all within one budget.

    Parameters
    ----------
    model : estimator
        A fitted classifier or regressor, of Tacit or of scikit-learn. It is taken as public: what it was trained on is
        covered by its own guarantee. Models that are not Tacit's predict one row at a time, which takes longer.
    X, y : array-like
        The evaluation rows and their labels or targets.
    metrics : sequence of str or metric, or mapping of these to float, default=None
        The metric objects `Accuracy`, `LogLoss`, `RocAuc`, `R2` and `MeanSquaredError`, or their names "accuracy",
        "log_loss", "roc_auc", "r2" and "mean_squared_error" where the defaults will do. A mapping gives each its share
        of the budget, relative to the others. None: "accuracy", and where the model gives probabilities "log_loss"
        and, for two classes, "roc_auc"; "r2" and "mean_squared_error" for regressors. Labels that a metric does not
        declare are the model's `classes_`, and bounds on the target its `y_bounds_`.
    epsilon : float
        Privacy budget of all scores together. See `Terms`, also for delta, adjacency, mechanism and random_state.

    Returns
    -------
    dict of str to Score
        By the name of the metric, in the order asked for. They share one guarantee, which covers all of them together.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from tacit import LogisticRegression
    >>> from tacit.metrics import RocAuc, evaluate
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LogisticRegression(epsilon=3.0).fit(X[:400], y[:400])
    >>> scores = evaluate(model, X[400:], y[400:], epsilon=1.0, metrics=("accuracy", RocAuc(bins=50)))
    >>> list(scores)
    ['accuracy', 'roc_auc']
    """
    agreed = Agreed.to(terms)
    predictions = Predictions(model, X)
    shares = _shares(_defaults(predictions) if metrics is None else metrics)
    scores = scored(y, [(*metric.of(predictions), share) for metric, share in _releases(shares).items()], agreed)
    return {metric.name: scores[metric.name] for metric in shares}


def evaluate_blocks(
    model: Any,
    blocks: Any,
    target: str | None = None,
    *,
    metrics: str | Metric | Sequence[str | Metric] | Mapping[str | Metric, float] | None = None,
    **terms: Unpack[Terms],
) -> dict[str, Score]:
    """`evaluate` on rows that together may be larger than memory, which are read twice.

    Parameters
    ----------
    model : estimator
        As for `evaluate`.
    blocks : files, table, or iterable of blocks
        As for `fit_blocks` of the estimators.
    target : str, optional
        The column that is predicted, where blocks are not pairs (X, y).
    metrics, epsilon, delta, adjacency, mechanism, random_state
        As for `evaluate`.

    Returns
    -------
    dict of str to Score
        Those of `evaluate` on the same rows. Sums over blocks may differ from theirs in the last bit.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from tacit import LogisticRegression
    >>> from tacit.metrics import evaluate_blocks
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LogisticRegression(epsilon=3.0).fit(X[:400], y[:400])
    >>> list(evaluate_blocks(model, [(X[400:500], y[400:500]), (X[500:], y[500:])], epsilon=1.0))
    ['accuracy', 'log_loss', 'roc_auc']
    """
    agreed = Agreed.to(terms)
    shares = _shares(_defaults(Predictions(model, None)) if metrics is None else metrics)
    with opened(blocks, target, _texts(model)) as reading:
        questions = questions_of(reading, without_seed(model), _releases(shares), agreed.epsilon)
    scores = released_scores(questions, agreed)
    return {metric.name: scores[metric.name] for metric in shares}


def _texts(model: Any) -> Sequence[Any]:
    """The columns that a model takes as text: those of its encoder, and those that a table of `tacit fit` names."""
    steps = getattr(getattr(model, "model", model), "steps_", ())
    encoders = [texts_of(step) for _, step in steps if type(step) is PrivateEncoder]
    named = [column.name for column in getattr(model, "columns", ()) if getattr(column, "is_text", False)]
    return [*dict.fromkeys([*(encoders[0] if encoders else ()), *named])]


def _defaults(predictions: Predictions) -> Sequence[str]:
    """The metrics that fit the model."""
    if not is_classifier(predictions.model):
        return ("r2", "mean_squared_error")
    if not hasattr(predictions.model, "predict_proba"):
        return ("accuracy",)
    return ("accuracy", "log_loss", "roc_auc") if len(predictions.classes) == 2 else ("accuracy", "log_loss")


def _shares(metrics: str | Metric | Sequence[str | Metric] | Mapping[str | Metric, float]) -> dict[Metric, float]:
    """Each metric's share of the budget."""
    asked = [metrics] if isinstance(metrics, str | Metric) else metrics
    given = asked if isinstance(asked, Mapping) else dict.fromkeys(asked, 1.0)
    if not given:
        raise ValueError(f"metrics must name at least one of {', '.join(map(repr, METRICS))}")
    shares = {_metric(metric): checks.positive("share", share) for metric, share in given.items()}
    if len({metric.name for metric in shares}) < len(given):
        raise ValueError("metrics must name each metric once: scores are returned by the metric's name")
    return shares


def _metric(metric: str | Metric) -> Metric:
    return metric if isinstance(metric, Metric) else METRICS[checks.one_of("metrics", metric, tuple(METRICS))]()


def _releases(shares: dict[Metric, float]) -> dict[Metric, float]:
    """The metrics that need a release, with their shares: the sums of R2 give the mean squared error too."""
    ordered = sorted(shares, key=lambda metric: list(METRICS).index(metric.name))
    errors = [metric for metric in ordered if isinstance(metric, R2 | MeanSquaredError)]
    if len(errors) < 2:
        return {metric: shares[metric] for metric in ordered}
    bounds = {metric.y_bounds for metric in errors} - {None}
    if len(bounds) > 1:
        raise ValueError("R2 and MeanSquaredError are read off one release: give both the same y_bounds")
    others = {metric: shares[metric] for metric in ordered if metric not in errors}
    return {**others, R2(*bounds): sum(shares[metric] for metric in errors)}
