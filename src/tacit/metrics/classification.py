"""Private accuracy and private log-loss.

Privacy
-------
Unit, neighbours and assumptions are those of `tacit.metrics`. Both scores are the mean of one bounded number a row, and
that number is measured from the middle of its range, so that a row that is zeroed out counts as the middle:

- accuracy: +1 for a correct row and -1 for a wrong one. A row moves the sum by 1, replacing it by 2. The sum is a
  whole number, so that adding it up is exact; the score (1 + sum / n) / 2 moves by 1 / (2 n) and 1 / n.
- log-loss: the loss of a row lies in [-log(1 - clip), -log(clip)]; with m the middle and h half the width of that
  interval, (loss - m) / h lies in [-1, 1]. A row moves that sum by 1, replacing it by 2, and the score by h / n and
  2 h / n. The sum is one of floats: its rounding is in the sensitivity.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from tacit._types import Floats
from tacit.metrics import inputs
from tacit.metrics.release import BoundedSums, Question, Reading, Terms, released_scores
from tacit.metrics.score import Score
from tacit.privacy import checks


@dataclass(frozen=True)
class Accuracy(BoundedSums):
    """The part of n rows that is predicted correctly."""

    n: int
    name: ClassVar[str] = "accuracy"

    def sums(self, y_true: list[Any], y_pred: list[Any]) -> Floats:
        """How many more rows are correct than wrong."""
        correct = np.array([a == b for a, b in zip(y_true, y_pred, strict=True)], dtype=bool)
        return self.weighted(np.where(correct, 1.0, -1.0))

    def scores(self, sums: Floats, deviation: float) -> dict[str, Reading]:
        """The accuracy, in [0, 1]."""
        (mean,) = self.means(sums)
        return {"accuracy": Reading(np.clip((1.0 + mean) / 2, 0.0, 1.0), deviation / (2 * self.n))}


@dataclass(frozen=True)
class LogLoss(BoundedSums):
    """The mean over n rows of minus the log of what the true class was given, between `clip` and 1 - `clip`."""

    n: int
    clip: float
    name: ClassVar[str] = "log_loss"

    @property
    def lowest(self) -> float:
        """Of a row's loss."""
        return -math.log1p(-self.clip)

    @property
    def half(self) -> float:
        """Half the distance from the lowest loss to the highest."""
        return (-math.log(self.clip) - self.lowest) / 2

    def sums(self, given: Floats) -> Floats:
        """Of losses measured from the middle of their range; `given` is the probability given to the true class."""
        losses = -np.log(np.clip(given, self.clip, 1.0 - self.clip))
        return self.weighted((losses - self.lowest) / self.half - 1.0)

    def scores(self, sums: Floats, deviation: float) -> dict[str, Reading]:
        """The log-loss, inside its range."""
        (mean,) = np.clip(self.means(sums), -1.0, 1.0)
        return {"log_loss": Reading(self.lowest + (1.0 + mean) * self.half, self.half * deviation / self.n)}


def accuracy_question(y_true: ArrayLike, y_pred: ArrayLike, share: float = 1.0) -> Question:
    """What to release for the accuracy."""
    truth, guess = inputs.labels_of("y_true", y_true), inputs.labels_of("y_pred", y_pred)
    query = Accuracy(inputs.same_rows(truth, guess, "y_true and y_pred"))
    if {isinstance(label, str) for label in truth}.isdisjoint(isinstance(label, str) for label in guess):
        raise ValueError("y_true and y_pred must both be text or both be numbers")
    return Question(query, query.sums(truth, guess), share)


def log_loss_question(
    y_true: ArrayLike, y_prob: ArrayLike, labels: ArrayLike | None, clip: float, share: float = 1.0
) -> Question:
    """What to release for the log-loss."""
    if checks.positive("clip", clip) >= 0.5:
        raise ValueError(f"clip must lie strictly between 0 and 0.5, got {clip!r}")
    table = inputs.probabilities("y_prob", y_prob)
    truth = inputs.encoded("y_true", y_true, inputs.declared_classes(labels, table.shape[1]))
    query = LogLoss(inputs.same_rows(truth, table, "y_true and y_prob"), float(clip))
    return Question(query, query.sums(table[np.arange(query.n), truth]), share)


def accuracy_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    epsilon: float,
    delta: float | None = None,
    adjacency: str = "add-remove",
    mechanism: str = "auto",
    random_state: int | None = None,
) -> Score:
    """The part of private rows that is predicted correctly, with noise.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        Class labels: text or whole numbers.
    epsilon : float
        Privacy budget of this score; `float("inf")` is the non-private limit.
    delta : float, default=None
        None: `n ** -1.5`.
    adjacency : {"add-remove", "replace-one"}, default="add-remove"
        What one person may change: their row's presence, or its content.
    mechanism : {"auto", "laplace", "gaussian"}, default="auto"
        The law of the noise. "auto" takes the one with less noise at this budget. Where many scores are to be
        composed, "gaussian" adds up more slowly.
    random_state : int, default=None
        None draws fresh cryptographic noise. An integer makes the score reproducible, and the noise known to those
        who know the integer.

    Returns
    -------
    Score
        Its value lies in [0, 1].

    Examples
    --------
    >>> from tacit.metrics import accuracy_score
    >>> score = accuracy_score([0, 1, 1, 0] * 500, [0, 1, 1, 1] * 500, epsilon=1.0)
    >>> abs(score.value - 0.75) < 0.01
    True
    """
    question = accuracy_question(y_true, y_pred)
    terms = Terms(epsilon, delta, adjacency, mechanism, random_state)
    return released_scores([question], terms)["accuracy"]


def log_loss(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    epsilon: float,
    labels: ArrayLike | None = None,
    clip: float = 0.01,
    delta: float | None = None,
    adjacency: str = "add-remove",
    mechanism: str = "auto",
    random_state: int | None = None,
) -> Score:
    """The mean log-loss of private rows, with noise.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Class labels.
    y_prob : array-like of shape (n,) or (n, n_classes)
        Probabilities: of the second class, or of every class in the order of `labels`.
    labels : array-like, default=None
        The class labels, in the order of the columns. None: 0, 1 and so on. They are never read off y_true.
    clip : float, default=0.01
        What the true class is given counts as at least `clip` and at most 1 - `clip`. Without it one confident
        mistake could move the score without limit. The noise grows with log(1 / clip) and the score is that of a model
        that never claims more than 1 - `clip`: 0.01 allows a loss of 4.6 a row, and half of that range is 2.3.
    epsilon, delta, adjacency, mechanism, random_state
        As for `accuracy_score`.

    Returns
    -------
    Score
        Lower is better.

    Examples
    --------
    >>> from tacit.metrics import log_loss
    >>> score = log_loss([0, 1, 1, 0] * 500, [0.2, 0.8, 0.8, 0.2] * 500, epsilon=1.0)
    >>> abs(score.value - 0.22) < 0.05
    True
    """
    question = log_loss_question(y_true, y_prob, labels, clip)
    terms = Terms(epsilon, delta, adjacency, mechanism, random_state)
    return released_scores([question], terms)["log_loss"]
