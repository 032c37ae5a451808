"""Private accuracy and private log-loss.

Privacy
-------
Unit, neighbours and assumptions are those of `tacit.metrics`. Both scores are the mean of one number a row, which lies
in a public interval. With m the middle and h half the width of that interval, the sum of (number - m) / h is released.
Each term lies in [-1, 1]. So a row moves the sum by at most 1, and replacing it by at most 2.

- accuracy: the number is 1 for a correct row and 0 for a wrong one, the terms are +1 and -1. The sum is a whole number,
  so that adding it up is exact. The score moves by 1 / (2 n), and by 1 / n for a replaced row.
- log-loss: the number is the loss, in [-log(1 - clip), -log(clip)]. The score moves by h / n, and by 2 h / n for a
  replaced row. The sum is one of floats: its rounding is in the sensitivity.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import ArrayLike

from tacit._types import Floats
from tacit.metrics import inputs
from tacit.metrics.predictions import Predictions
from tacit.metrics.release import Asked, BoundedSums, Reading, scored
from tacit.metrics.score import Score
from tacit.metrics.terms import Agreed, Terms
from tacit.privacy import checks


@dataclass(frozen=True)
class BoundedMean(BoundedSums):
    """The mean over n rows of one number a row, which lies between `low` and `high`."""

    name: str
    n: int
    low: float
    high: float

    @property
    def half(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2

    def sums(self, values: Floats) -> Floats:
        """The sum of the numbers, each measured from the middle in units of `half`."""
        return self.weighted((values - self.low) / self.half - 1.0)

    def scores(self, sums: Floats, deviation: float) -> dict[str, Reading]:
        """The mean, inside the interval."""
        (mean,) = np.clip(self.means(sums), -1.0, 1.0)
        return {self.name: Reading(self.low + (1.0 + mean) * self.half, self.half * deviation / self.n)}


@dataclass(frozen=True)
class Accuracy:
    """The part of the rows that is predicted correctly. It has no parameters."""

    name: ClassVar[str] = "accuracy"

    def of(self, predictions: Predictions) -> tuple["Accuracy", Any]:
        """The metric for a model, and the predictions that it takes."""
        return self, predictions.by("predict")

    def asked(self, y_true: ArrayLike, y_pred: ArrayLike, _epsilon: float, rows: int | None = None) -> Asked:
        """What to release: how many more rows are correct than wrong."""
        truth, guess = inputs.labels_of("y_true", y_true), inputs.labels_of("y_pred", y_pred)
        query = BoundedMean(self.name, inputs.same_rows(truth, guess, "y_true and y_pred", rows), 0.0, 1.0)
        if {isinstance(label, str) for label in truth}.isdisjoint(isinstance(label, str) for label in guess):
            raise ValueError("y_true and y_pred must both be text or both be numbers")
        return Asked(query, query.sums(np.array([float(a == b) for a, b in zip(truth, guess, strict=True)])))


@dataclass(frozen=True)
class LogLoss:
    """The mean over the rows of minus the logarithm of the probability that was given to the true class.

    Parameters
    ----------
    clip : float, default=0.01
        Probabilities below `clip` count as `clip`, and those above 1 - `clip` as 1 - `clip`. Without it one confident
        mistake could move the score without limit. The noise grows with log(1 / clip). The score is that of a model
        that never claims more than 1 - `clip`. With 0.01 the loss of a row is at most 4.6.
    labels : array-like, default=None
        The class labels, in the order of the columns of probabilities. None: 0, 1 and so on; in `evaluate`, the
        model's `classes_`. They are never read off the rows.
    """

    clip: float = 0.01
    labels: ArrayLike | None = None
    name: ClassVar[str] = "log_loss"

    def __post_init__(self) -> None:
        if checks.positive("clip", self.clip) >= 0.5:
            raise ValueError(f"clip must lie strictly between 0 and 0.5, got {self.clip!r}")
        object.__setattr__(self, "clip", float(self.clip))
        object.__setattr__(self, "labels", inputs.declared(self.labels))

    def of(self, predictions: Predictions) -> tuple["LogLoss", Any]:
        """The metric for a model, and the predictions that it takes."""
        given = predictions.by("predict_proba")
        return self if self.labels is not None else replace(self, labels=predictions.classes), given

    def asked(self, y_true: ArrayLike, y_prob: ArrayLike, _epsilon: float, rows: int | None = None) -> Asked:
        """What to release: the sum of the losses."""
        table = inputs.probabilities("y_prob", y_prob)
        truth = inputs.encoded("y_true", y_true, self.labels, table.shape[1])
        n = inputs.same_rows(truth, table, "y_true and y_prob", rows)
        query = BoundedMean(self.name, n, -math.log1p(-self.clip), -math.log(self.clip))
        given = np.clip(table[np.arange(len(truth)), truth], self.clip, 1.0 - self.clip)
        return Asked(query, query.sums(-np.log(given)))


def accuracy_score(y_true: ArrayLike, y_pred: ArrayLike, **terms: Unpack[Terms]) -> Score:
    """The part of private rows that is predicted correctly, in [0, 1], with noise.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        Class labels: text or whole numbers.
    epsilon : float
        Privacy budget of this score. See `Terms`, also for delta, adjacency, mechanism and random_state.

    Examples
    --------
    >>> from tacit.metrics import accuracy_score
    >>> score = accuracy_score([0, 1, 1, 0] * 500, [0, 1, 1, 1] * 500, epsilon=1.0)
    >>> abs(score.value - 0.75) < 0.01
    True
    """
    return scored(y_true, [(Accuracy(), y_pred, 1.0)], Agreed.to(terms))["accuracy"]


def log_loss(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    clip: float = 0.01,
    **terms: Unpack[Terms],
) -> Score:
    """The mean log-loss of private rows, with noise. Lower is better.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Class labels.
    y_prob : array-like of shape (n,) or (n, n_classes)
        Probabilities: of the second class, or of every class in the order of `labels`.
    labels, clip
        The class labels, by default 0, 1 and so on; and the limit on probabilities. See `LogLoss`.
    epsilon : float
        Privacy budget of this score. See `Terms`, also for delta, adjacency, mechanism and random_state.

    Examples
    --------
    >>> from tacit.metrics import log_loss
    >>> 0.17 < log_loss([0, 1, 1, 0] * 500, [0.2, 0.8, 0.8, 0.2] * 500, epsilon=1.0).value < 0.27
    True
    """
    return scored(y_true, [(LogLoss(clip, labels), y_prob, 1.0)], Agreed.to(terms))["log_loss"]
