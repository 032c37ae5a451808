"""Private area under the ROC curve.

Privacy
-------
Unit, neighbours and assumptions are those of `tacit.metrics`. Released: how many rows of each class have a score in
each of B public bins, 2B counts at once. A row is one count, so it moves them by 1 in the l1 and in the l2 norm;
replacing it moves two of them, by 2 in l1 and sqrt(2) in l2. Counts are whole numbers: adding them up is exact.

The area follows from the noisy counts: for p_b positives and m_b negatives in bin b it is

    sum_b p_b (m_1 + ... + m_{b-1} + m_b / 2) / (sum p  sum m).

The noise of p and of m is independent, so it does not bias the numerator. Counts below zero stay as they are: raising
them to zero would bias it. Rows of one bin count as ties, which moves the area by at most half the probability that a
positive and a negative share a bin. For smooth scores that falls with 1 / B^2, while the noise grows with sqrt(B);
B = (n epsilon)^0.4 balances the two. Probabilities are binned on the scale arcsin(sqrt(p)): bins are fine near 0 and 1,
where a rare class has its scores.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit._types import Floats
from tacit.metrics import inputs
from tacit.metrics.predictions import Predictions
from tacit.metrics.release import Asked, BoundedSums, Law, Reading, scored
from tacit.metrics.score import Score
from tacit.metrics.terms import Agreed, Terms
from tacit.privacy import checks
from tacit.privacy.mechanisms import Sensitivity
from tacit.problems.declared import interval
from tacit.problems.penalty import SMALLEST

_FEWEST, _MOST = 8, 512  # bins chosen by the rule
_MOST_BINS = 100_000  # asked for: no noise lets more be told apart
_STANDS_OUT = 2.0  # a class is there if its noisy count is more than this many deviations of its noise


@dataclass(frozen=True)
class ClassCounts(BoundedSums):
    """How many of n rows of each class have a score in each bin."""

    n: int
    edges: tuple[float, ...]  # between the bins
    name: str = "roc_auc"

    @property
    def bins(self) -> int:
        """Of each class."""
        return len(self.edges) + 1

    @property
    def weights(self) -> tuple[float, ...]:
        """A row adds at most one to each count."""
        return (1.0,) * (2 * self.bins)

    def sensitivity(self, law: Law) -> Sensitivity:
        """A row is a one in a single bin, and two rows may be in two of them. Counts are exact: no slack."""
        return Sensitivity(1.0, 2.0) if law == "laplace" else Sensitivity.one_hot()

    def sums(self, positive: NDArray[np.bool_], scores: Floats) -> Floats:
        """Counts of the negatives in each bin, then of the positives."""
        places = np.searchsorted(self.edges, scores, side="right") + self.bins * positive
        return np.bincount(places, minlength=self.size).astype(np.float64)

    def scores(self, sums: Floats, deviation: float) -> dict[str, Reading]:
        """The area, in [0, 1]; undefined unless both classes stand out of the noise."""
        negatives, positives = sums.reshape(2, self.bins)
        m, p = negatives.sum(), positives.sum()
        if min(m, p) <= _STANDS_OUT * deviation * math.sqrt(self.bins):
            return {"roc_auc": Reading(math.nan, math.inf)}
        below = (np.cumsum(negatives) - negatives / 2) / m  # of the negatives, at each positive
        above = 1.0 - (np.cumsum(positives) - positives / 2) / p  # of the positives, at each negative
        area = float(positives @ below) / p
        # The derivatives by each count, which the noise of that count is multiplied with.
        noise = deviation * math.hypot(np.linalg.norm(below - area) / p, np.linalg.norm(above - area) / m)
        return {"roc_auc": Reading(min(max(area, 0.0), 1.0), noise)}


def chosen_bins(n: int, epsilon: float) -> int:
    """The number of bins, from public numbers."""
    if math.isinf(epsilon):
        return _MOST
    return int(min(max(round((n * epsilon) ** 0.4), _FEWEST), _MOST))


@dataclass(frozen=True)
class RocAuc:
    """The area under the ROC curve: how often a positive row has a higher score than a negative one. Ties count half.

    Parameters
    ----------
    bins : int, default=None
        How many bins of scores the rows of each class are counted in, at most 100,000. Fewer bins mean less noise and
        more ties. None: (n epsilon)^0.4, from 8 to 512, where epsilon is the part of the budget that this metric gets.
    score_bounds : (float, float), default=None
        None: scores are probabilities. For other scores, the public range that is cut into equal bins; scores outside
        it count with the outermost bins. In `evaluate` rows are then ranked by `decision_function` in place of
        `predict_proba`.
    labels : pair, default=None
        The negative and the positive label. None: (0, 1); in `evaluate`, the model's `classes_`. They are never read
        off the rows.
    """

    bins: int | None = None
    score_bounds: tuple[float, float] | None = None
    labels: ArrayLike | None = None
    name: ClassVar[str] = "roc_auc"

    def __post_init__(self) -> None:
        if self.bins is not None:
            checks.count("bins", self.bins, least=2, most=_MOST_BINS)
        if self.score_bounds is not None:
            object.__setattr__(self, "score_bounds", interval("score_bounds", self.score_bounds, SMALLEST))
        object.__setattr__(self, "labels", inputs.declared(self.labels))

    def of(self, predictions: Predictions) -> tuple["RocAuc", Any]:
        """The metric for a model of two classes, and what ranks the rows."""
        if len(predictions.classes) != 2:
            raise ValueError(f"'roc_auc' is for two classes, and the model has {len(predictions.classes)}")
        metric = self if self.labels is not None else replace(self, labels=predictions.classes)
        if self.score_bounds is not None:
            return metric, predictions.by("decision_function")
        if not hasattr(predictions.model, "predict_proba"):
            raise ValueError(
                "the model gives no probabilities; declare score_bounds, to rank by decision_function:"
                " RocAuc(score_bounds=(low, high))"
            )
        return metric, predictions.by("predict_proba")[:, 1]

    def asked(self, y_true: ArrayLike, y_score: ArrayLike, epsilon: float, rows: int | None = None) -> Asked:
        """What to release: counts by class and bin. `epsilon` is this metric's part of the budget; the bins need it."""
        scores = inputs.numbers("y_score", y_score)
        positive = inputs.encoded("y_true", y_true, self.labels, 2) == 1
        n = inputs.same_rows(positive, scores, "y_true and y_score", rows)
        if self.score_bounds is None and not np.all((scores >= 0.0) & (scores <= 1.0)):
            raise ValueError("y_score must hold probabilities, from 0 to 1; declare score_bounds for other scores")
        query = ClassCounts(n, self._edges(chosen_bins(n, epsilon) if self.bins is None else self.bins))
        return Asked(query, query.sums(positive, scores))

    def _edges(self, bins: int) -> tuple[float, ...]:
        """The public edges between the bins."""
        parts = np.arange(1, bins) / bins
        if self.score_bounds is None:
            return tuple((np.sin(np.pi / 2 * parts) ** 2).tolist())
        low, high = self.score_bounds
        return tuple((low + (high - low) * parts).tolist())


def roc_auc_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    score_bounds: tuple[float, float] | None = None,
    bins: int | None = None,
    **terms: Unpack[Terms],
) -> Score:
    """The area under the ROC curve of private rows of two classes, in [0, 1], with noise.

    It is NaN if the noisy counts do not show that both classes are there.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Class labels.
    y_score : array-like of shape (n,)
        Probabilities of the positive class, or other scores that grow with it.
    labels, score_bounds, bins
        The negative and the positive label, by default (0, 1); the public range of scores that are not probabilities;
        and how many bins they are counted in. See `RocAuc`.
    epsilon : float
        Privacy budget of this score. See `Terms`, also for delta, adjacency, mechanism and random_state.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.metrics import roc_auc_score
    >>> scores = np.arange(2_000) / 2_000
    >>> score = roc_auc_score(scores > 0.5, scores, labels=(False, True), epsilon=1.0)
    >>> score.value > 0.9
    True
    """
    return scored(y_true, [(RocAuc(bins, score_bounds, labels), y_score, 1.0)], Agreed.to(terms))["roc_auc"]
