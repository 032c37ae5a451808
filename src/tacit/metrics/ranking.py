"""Private area under the ROC curve.

Privacy
-------
Unit, neighbours and assumptions are those of `tacit.metrics`. Released: how many rows of each class have a score in
each of B public bins, 2B counts at once. A row is one count, so it moves them by 1 in the l1 and in the l2 norm;
replacing it moves two of them, by 2 in l1 and sqrt(2) in l2. Counts are whole numbers, so that adding them up is exact,
and a row's bin depends on that row and the public edges alone.

The area follows from the noisy counts: for p_b positives and m_b negatives in bin b it is

    sum_b p_b (m_1 + ... + m_{b-1} + m_b / 2) / (sum p  sum m).

The noise of p and of m is independent, so noise does not bias the numerator; counts below zero stay as they are, which
keeps it so. Rows of one bin count as ties. That is off by at most half the probability that a positive and a negative
share a bin; for a smooth distribution of scores it falls with 1 / B^2, while the noise grows with sqrt(B).
B = (n epsilon)^0.4 balances the two.

Probabilities are binned on the scale arcsin(sqrt(p)), on which a rate has about the same error everywhere: bins are
fine near 0 and 1, where a rare class has its scores.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit._types import Floats
from tacit.metrics import inputs
from tacit.metrics.release import Law, Question, Reading, Terms, released_scores
from tacit.metrics.score import Score
from tacit.privacy import checks
from tacit.privacy.mechanisms import Sensitivity

_FEWEST, _MOST = 8, 512  # bins chosen by the rule
_MOST_BINS = 100_000  # asked for: no noise lets more be told apart
_STANDS_OUT = 2.0  # a class is there if its noisy count is more than this many deviations of its noise


@dataclass(frozen=True)
class RocAuc:
    """The chance that a positive row has a higher score than a negative one, ties counting half."""

    n: int
    edges: tuple[float, ...]  # between the bins
    name: ClassVar[str] = "roc_auc"

    @property
    def bins(self) -> int:
        """Of each class."""
        return len(self.edges) + 1

    @property
    def size(self) -> int:
        """Counts of both classes."""
        return 2 * self.bins

    @property
    def bound(self) -> float:
        """All rows in one bin."""
        return float(self.n)

    def sensitivity(self, law: Law) -> Sensitivity:
        """A one in one of the bins; two rows may be in two of them."""
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


def roc_auc_question(
    y_true: ArrayLike,
    y_score: ArrayLike,
    labels: ArrayLike | None,
    score_bounds: tuple[float, float] | None,
    bins: int | None,
    epsilon: float,
    share: float = 1.0,
) -> Question:
    """What to release for the area; `epsilon` is what this release is worth, for choosing the bins."""
    scores = inputs.numbers("y_score", y_score)
    positive = inputs.encoded("y_true", y_true, inputs.declared_classes(labels, 2)) == 1
    n = inputs.same_rows(positive, scores, "y_true and y_score")
    count = chosen_bins(n, checks.positive("epsilon", epsilon, finite=False)) if bins is None else bins
    parts = np.arange(1, checks.count("bins", count, least=2, most=_MOST_BINS)) / count
    if score_bounds is not None:
        low, high = inputs.interval("score_bounds", score_bounds)
        edges = low + (high - low) * parts
    elif np.all((scores >= 0.0) & (scores <= 1.0)):
        edges = np.sin(np.pi / 2 * parts) ** 2
    else:
        raise ValueError("y_score must hold probabilities, from 0 to 1; declare score_bounds for other scores")
    query = RocAuc(n, tuple(edges.tolist()))
    return Question(query, query.sums(positive, scores), share)


def roc_auc_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    epsilon: float,
    labels: ArrayLike | None = None,
    score_bounds: tuple[float, float] | None = None,
    bins: int | None = None,
    delta: float | None = None,
    adjacency: str = "add-remove",
    mechanism: str = "auto",
    random_state: int | None = None,
) -> Score:
    """The area under the ROC curve of private rows of two classes, with noise.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Class labels.
    y_score : array-like of shape (n,)
        Probabilities of the positive class, or other scores that grow with it.
    labels : pair, default=None
        The negative and the positive label. None: (0, 1). They are never read off y_true.
    score_bounds : (float, float), default=None
        None: scores are probabilities. For others (margins), the public range that is cut into equal bins; scores
        outside it count with the outermost bins.
    bins : int, default=None
        How many bins to count in, at most 100,000. None: (n epsilon)^0.4, from 8 to 512.
    epsilon, delta, adjacency, mechanism, random_state
        As for `accuracy_score`.

    Returns
    -------
    Score
        In [0, 1]. NaN if the noisy counts do not show that both classes are there.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.metrics import roc_auc_score
    >>> scores = np.arange(2_000) / 2_000
    >>> score = roc_auc_score(scores > 0.5, scores, labels=(False, True), epsilon=1.0)
    >>> score.value > 0.9
    True
    """
    question = roc_auc_question(y_true, y_score, labels, score_bounds, bins, epsilon)
    terms = Terms(epsilon, delta, adjacency, mechanism, random_state)
    return released_scores([question], terms)["roc_auc"]
