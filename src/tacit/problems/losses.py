"""Losses of a margin: what a prediction costs, and how fast that cost can change.

A loss l(m, y) is convex in the margin m = x.w. The gradient of one row in w is l'(m, y) x, of norm at most `slope` |x|.
The multinomial loss has K margins a row, and what is said of derivatives holds for the gradient in all of them.

The arrays here are for looking at a problem as a whole. What a row contributes to a private release is computed with
the same formulas from `tacit.problems.slopes`, in a loop over that row.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit._types import Floats
from tacit.problems import slopes


@dataclass(frozen=True)
class Loss:
    """One loss, and what is known of it.

    Parameters
    ----------
    name : str
        What users call it.
    code : int
        What compiled functions call it (`tacit.problems.slopes`).
    curvature : float
        An upper bound on the second derivative in the margin.
    typical : float
        The second derivative to expect on standardised columns, where many gradients are clipped. It goes into the
        noise that a fit states.
    slope : float
        An upper bound on the absolute derivative in the margin; infinite for a loss that grows faster.

    Examples
    --------
    >>> from tacit.problems import LOGISTIC, SQUARED
    >>> SQUARED.value([0.0, 3.0], [1.0, 1.0])
    array([0.5, 2. ])
    >>> LOGISTIC.derivative([0.0, 1e4], [1.0, -1.0])
    array([-0.5,  1. ])
    """

    name: str
    code: int
    curvature: float
    typical: float
    slope: float

    @property
    def words(self) -> str:
        """The name in a sentence."""
        return self.name.replace("_", " ")

    def value(self, margins: ArrayLike, targets: ArrayLike, shape: float = 1.0) -> Floats:
        """The loss of each row; `shape` is that of `tacit.problems.slopes`."""
        m, y = np.asarray(margins, dtype=np.float64), np.asarray(targets, dtype=np.float64)
        if self == MULTINOMIAL:
            return _multinomial(m, y.astype(np.int64))
        if self == LOGISTIC:
            return np.maximum(-y * m, 0.0) + np.log1p(np.exp(-np.abs(y * m)))
        if self == SQUARED_HINGE:
            return np.square(np.maximum(1.0 - y * m, 0.0))
        if self == HUBER:
            return _rounded(m - y, np.clip(m - y, -shape, shape))
        if self == HINGE:
            return _rounded(1.0 - y * m, np.clip(1.0 - y * m, 0.0, shape)) / shape
        return 0.5 * np.square(m - y)

    def derivative(self, margins: ArrayLike, targets: ArrayLike, shape: float = 1.0) -> Floats:
        """The derivative of each row's loss in its margin, or in each of its margins."""
        if self == MULTINOMIAL:
            chances = softmax(margins)
            place = np.arange(len(chances)), np.asarray(targets, dtype=np.int64)
            chances[place] = 0.0
            chances[place] = -chances.sum(axis=1)
            return chances
        m, y = np.broadcast_arrays(np.asarray(margins, dtype=np.float64), np.asarray(targets, dtype=np.float64))
        out = np.empty(m.shape)
        slopes.slope_each(np.ravel(m), np.ravel(y), self.code, shape, out.ravel())
        return out


def _multinomial(margins: Floats, labels: NDArray[np.int64]) -> Floats:
    # (m_top - m_label) + log(1 + sum of exp(m_j - m_top) over the others): small losses keep their digits.
    rows, top = np.arange(len(margins)), margins.argmax(axis=1)
    behind = np.exp(margins - margins[rows, top, None])
    behind[rows, top] = 0.0
    value: Floats = margins[rows, top] - margins[rows, labels] + np.log1p(behind.sum(axis=1))
    return value


def _rounded(slack: Floats, within: Floats) -> Floats:
    """slack^2 / 2 as far as it is within a range, and its tangent beyond."""
    return within * (slack - 0.5 * within)


def sigmoid(margins: ArrayLike) -> Floats:
    """The probability of the label +1 at each margin of a logistic model."""
    m = np.asarray(margins, dtype=np.float64)
    out = np.empty(m.shape)
    slopes.sigmoid_each(np.ravel(m), out.ravel())
    return out


def softmax(margins: ArrayLike) -> Floats:
    """The probability of each class, for each row of margins."""
    rows = np.ascontiguousarray(margins, dtype=np.float64)
    out = np.empty_like(rows)
    slopes.softmax_rows(rows, out)
    return out


SQUARED = Loss("squared", slopes.IS_SQUARED, curvature=1.0, typical=0.45, slope=math.inf)
"""(m - y)^2 / 2, for real y."""

LOGISTIC = Loss("logistic", slopes.IS_LOGISTIC, curvature=0.25, typical=0.13, slope=1.0)
"""log(1 + exp(-y m)), for y in {-1, +1}. Its second derivative is p (1 - p)."""

# The Hessian of a row is diag(p) - p p^T. v^T (diag(p) - p p^T) v is the variance of v under p: at most
# (max v - min v)^2 / 4 <= |v|^2 / 2. And |p - e_y|^2 = (1 - p_y)^2 + the sum of the other p_k^2 <= 2 (1 - p_y)^2 <= 2.
MULTINOMIAL = Loss("multinomial", slopes.IS_MULTINOMIAL, curvature=0.5, typical=0.11, slope=math.sqrt(2.0))
"""log sum_k exp(m_k) - m_y, for K margins and a class number y. Its gradient is softmax(m) - e_y."""

HUBER = Loss("huber", slopes.IS_HUBER, curvature=1.0, typical=0.45, slope=1.0)
"""r^2 / 2 for |r| up to the shape, then its tangent, with r = m - y: the squared loss with clipped residuals.

Its slope is at most the shape; no estimator asks for it.
"""

HINGE = Loss("hinge", slopes.IS_HINGE, curvature=1.0, typical=0.25, slope=1.0)
"""max(0, 1 - y m), for y in {-1, +1}, its kink rounded over a width: the shape. The curvature is for a width of 1."""

SQUARED_HINGE = Loss("squared_hinge", slopes.IS_SQUARED_HINGE, curvature=2.0, typical=0.2, slope=math.inf)
"""max(0, 1 - y m)^2, for y in {-1, +1}."""

LOSSES = {loss.name: loss for loss in (SQUARED, LOGISTIC, MULTINOMIAL, HINGE, SQUARED_HINGE)}
"""Those that an estimator may ask for, by name."""
