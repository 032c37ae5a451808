"""What a party of "feature-sharing" computes of its rows: residuals from public numbers and its own data, row by row.

A question says what the model is: the weights of this party's own columns, which it multiplies itself, and what the
columns of the others predict, as a sketch. Whatever it says, the residual of a row is clipped to the limit that it
names, and depends on that row and the question alone. Nothing here is released.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit._types import Floats
from tacit.federated.protocols import columns
from tacit.federated.protocols.base import Arrays, RefusedError
from tacit.federated.sketches import Sketch
from tacit.federated.study import Study
from tacit.problems import LOSSES

_SMALLEST, _LARGEST = 1e-60, 1e60  # of bounds and numbers that a question may name: no sum or square overflows


@dataclass(frozen=True, eq=False)
class View:
    """The model as a question shows it to one party, checked for its form and for nothing else."""

    bound: float  # that entries are clipped to
    low: float  # that targets are clipped to
    high: float
    intercept: float
    columns: Any  # own ones in the model, and their weights
    weights: Floats
    others: Floats | None  # the sketched predictions of other parties' columns, if there are others
    labels: Floats | None  # sketched, for parties without labels
    limit: float  # that residuals are clipped to

    @classmethod
    def read(cls, arrays: Arrays, n_features: int, sketch: Sketch | None, *, labels: bool) -> "View":
        """Read the arrays of a question; those of another form are refused."""
        sizes = {"numbers": 5}
        if sketch is not None:
            sizes |= {"others": sketch.size} | ({"labels": sketch.size} if labels else {})
        if set(arrays) != {*sizes, "columns", "weights"}:
            raise RefusedError("the question does not hold what its step takes")
        numbers = {name: _numbers(arrays[name], size) for name, size in sizes.items()}
        columns = np.asarray(arrays["columns"])
        if columns.ndim != 1 or columns.dtype.kind != "i" or np.any((columns < 0) | (columns >= n_features)):
            raise RefusedError("the question names columns that this party does not have")
        weights = _numbers(arrays["weights"], len(columns))
        bound, low, high, intercept, limit = numbers["numbers"].tolist()
        if not high - low > _SMALLEST:
            raise RefusedError("the question names a range that is empty")
        return cls(
            bound=_limit(bound),
            low=low,
            high=high,
            intercept=intercept,
            columns=columns,
            weights=weights,
            others=numbers.get("others"),
            labels=numbers.get("labels"),
            limit=_limit(limit),
        )


def limit_of(array: Any) -> float:
    """A number that a question wants entries to be clipped to."""
    return _limit(float(_numbers(array, 1)[0]))


def _limit(limit: float) -> float:
    if limit < _SMALLEST:
        raise RefusedError("the question names a bound outside what is accepted")
    return limit


@dataclass(frozen=True, eq=False)
class Residuals:
    """Clipped derivatives of the loss in the margin, by row, and the predictions without the intercept."""

    values: Floats
    predictions: Floats


def residuals(study: Study, X: Any, targets: Floats | None, view: View, sketch: Sketch | None) -> Residuals:
    """The residuals of all rows; X is bounded, and a row that overflows has residual zero."""
    predictions = np.zeros(X.shape[0])
    with np.errstate(over="ignore", invalid="ignore"):
        if sketch is not None and view.others is not None:
            predictions += sketch.back(view.others)
        for column, weight in zip(view.columns, view.weights, strict=True):
            columns.add_column(predictions, X, int(column), float(weight))
        margins = predictions + view.intercept
        if view.labels is None:
            assert targets is not None
            raw = LOSSES[study.loss].derivative(margins, centred(study, targets, view.low, view.high))
        else:
            assert sketch is not None
            raw = _expected_derivative(study, margins, sketch.back(view.labels))
    return Residuals(np.where(np.isnan(raw), 0.0, np.clip(raw, -view.limit, view.limit)), predictions)


def middle(study: Study, low: float, high: float) -> float:
    """What targets are counted from: the middle of their range, or zero for labels and without an intercept."""
    return (low + high) / 2.0 if study.loss == "squared" and study.fit_intercept else 0.0


def centred(study: Study, targets: Floats, low: float, high: float) -> Floats:
    """Targets clipped to a range and counted from its `middle`; labels as they are."""
    return np.clip(targets, low, high) - middle(study, low, high) if study.loss == "squared" else targets


def half_width(study: Study, low: float, high: float) -> float:
    """The largest absolute value of `centred` targets."""
    if study.loss != "squared":
        return 1.0
    centre = middle(study, low, high)
    return max(abs(low - centre), abs(high - centre))


def _expected_derivative(study: Study, margins: Floats, guesses: Floats) -> Floats:
    """The derivative with an unbiased guess in place of y: it is linear in y, as it stands or between -1 and 1."""
    loss = LOSSES[study.loss]
    if study.loss == "squared":
        return loss.derivative(margins, guesses)
    up, down = loss.derivative(margins, 1.0), loss.derivative(margins, -1.0)
    return 0.5 * ((1.0 + guesses) * up + (1.0 - guesses) * down)


def _numbers(array: Any, size: int) -> Floats:
    values = np.asarray(array)
    if values.dtype != np.float64 or values.shape != (size,) or not np.all(np.abs(values) < _LARGEST):
        raise RefusedError("the question holds an array of the wrong kind or size")
    return values
