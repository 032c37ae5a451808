"""The multinomial loss: K margins a row, one of K classes."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.privacy import checks
from tacit.problems.compiled import FloatArray, kernel


@kernel
def softmax_row(margins: FloatArray, out: FloatArray) -> None:
    """Write exp(m_k) / sum_j exp(m_j) of one row into `out`."""
    top = margins[0]
    for margin in margins:
        top = max(top, margin)
    total = 0.0
    for k in range(margins.size):
        out[k] = math.exp(margins[k] - top)
        total += out[k]
    for k in range(margins.size):
        out[k] /= total


@kernel
def multinomial_derivative_row(margins: FloatArray, label: int, out: FloatArray) -> None:
    """Write softmax(m) - e_label of one row into `out`."""
    softmax_row(margins, out)
    # p_label - 1 = -(the sum of the others), which keeps its digits when p_label is close to 1.
    others = 0.0
    for k in range(margins.size):
        if k != label:
            others += out[k]
    out[label] = -others


@kernel
def multinomial_value_row(margins: FloatArray, label: int) -> float:
    """The loss log sum_j exp(m_j) - m_label of one row."""
    # (m_top - m_label) + log(1 + sum of exp(m_j - m_top) over j != top): small losses keep their digits.
    top = 0
    for k in range(margins.size):
        if margins[k] > margins[top]:
            top = k
    others = 0.0
    for k in range(margins.size):
        if k != top:
            others += math.exp(margins[k] - margins[top])
    value: float = margins[top] - margins[label] + math.log1p(others)
    return value


@kernel
def _softmax_rows(margins: FloatArray, out: FloatArray) -> None:
    for i in range(margins.shape[0]):
        softmax_row(margins[i], out[i])


@kernel
def _value_rows(margins: FloatArray, labels: NDArray[np.int64], out: FloatArray) -> None:
    for i in range(margins.shape[0]):
        out[i] = multinomial_value_row(margins[i], labels[i])


@kernel
def _derivative_rows(margins: FloatArray, labels: NDArray[np.int64], out: FloatArray) -> None:
    for i in range(margins.shape[0]):
        multinomial_derivative_row(margins[i], labels[i], out[i])


@dataclass(frozen=True)
class MultinomialLoss:
    """l(m, y) = log sum_k exp(m_k) - m_y, for margins m in R^K and a class index y in 0 .. K - 1.

    The gradient in m is p - e_y with p = softmax(m), and the Hessian is diag(p) - p p^T. For one row of data
    the gradient in the K x d coefficients is the outer product of p - e_y and x, whose Frobenius norm is at
    most `lipschitz * |x|`.

    Parameters
    ----------
    n_classes : int
        K, at least 2.

    Examples
    --------
    >>> from tacit.problems import MultinomialLoss
    >>> MultinomialLoss(n_classes=2).derivative([[0.0, 0.0]], [1])
    array([[ 0.5, -0.5]])
    """

    n_classes: int

    # v^T (diag(p) - p p^T) v is the variance of v under p: at most (max v - min v)^2 / 4 <= |v|^2 / 2.
    curvature: ClassVar[float] = 0.5
    # |p - e_y|^2 = (1 - p_y)^2 + the sum of p_k^2 over k != y <= 2 (1 - p_y)^2 <= 2.
    lipschitz: ClassVar[float] = math.sqrt(2.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_classes", checks.count("n_classes", self.n_classes, least=2))

    def value(self, margin: ArrayLike, y: ArrayLike) -> FloatArray:
        """The loss of each row: margins of shape (n, K), class indices of shape (n,)."""
        margins, labels = self._rows(margin), self._labels(y, margin)
        out = np.empty(labels.size)
        _value_rows(margins, labels, out)
        return out

    def derivative(self, margin: ArrayLike, y: ArrayLike) -> FloatArray:
        """softmax(m) - e_y of each row, of shape (n, K)."""
        margins, labels = self._rows(margin), self._labels(y, margin)
        out = np.empty_like(margins)
        _derivative_rows(margins, labels, out)
        return out

    def probability(self, margin: ArrayLike) -> FloatArray:
        """The probability of each class: the inverse link softmax(m), of shape (n, K)."""
        margins = self._rows(margin)
        out = np.empty_like(margins)
        _softmax_rows(margins, out)
        return out

    def _rows(self, margin: ArrayLike) -> FloatArray:
        margins = np.ascontiguousarray(margin, dtype=np.float64)
        if margins.ndim != 2 or margins.shape[1] != self.n_classes:
            raise ValueError(f"margin must have shape (n, {self.n_classes}), got {margins.shape}")
        return margins

    def _labels(self, y: ArrayLike, margin: ArrayLike) -> NDArray[np.int64]:
        # A label indexes memory in compiled code, so it is checked here, without quoting it.
        given = np.asarray(y)
        if given.shape != np.shape(margin)[:1]:
            raise ValueError(f"y must have one class index per row of margin, got shape {given.shape}")
        if given.dtype.kind not in "iu" or (given.size and not 0 <= given.min() <= given.max() < self.n_classes):
            raise ValueError(f"y must hold integer class indices from 0 to {self.n_classes - 1}")
        return np.ascontiguousarray(given, dtype=np.int64)
