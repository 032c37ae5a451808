"""The slopes of the losses on plain numbers, for compiled loops over rows.

A solver must not let one row touch another's arithmetic, as BLAS does in the last bits: it calls these in a loop over
the row. `tacit.problems.losses` applies the same formulas to arrays, so that each is written once.

A compiled function is told the loss by its code. `margin` is x.w, and slopes are derivatives in it. `target` is a real
number for the squared and Huber losses, and -1 or +1 for the logistic loss and the hinges. `shape` is one number
more, for two of them: where the Huber loss turns linear, and over which width the kink of the hinge is rounded.
"""

import math

import numpy as np

from tacit._types import Floats
from tacit.problems.compiled import kernel

IS_SQUARED, IS_LOGISTIC, IS_MULTINOMIAL, IS_HUBER, IS_HINGE, IS_SQUARED_HINGE = range(6)
"""The codes."""


@kernel
def slope(margin: float, target: float, loss: int, shape: float) -> float:
    """The derivative in the margin of a loss of one margin."""
    # NumPy's minimum and maximum, so that the same lines serve arrays.
    if loss == IS_LOGISTIC:
        z = target * margin
        # -y / (1 + exp(z)), in which no exponent is ever positive.
        falling: float = -target * np.exp(np.minimum(-z, 0.0)) / (1.0 + np.exp(-np.abs(z)))
        return falling
    if loss == IS_SQUARED_HINGE:
        slack: float = np.maximum(1.0 - target * margin, 0.0)
        return -2.0 * target * slack
    if loss == IS_HUBER:
        residual: float = np.minimum(np.maximum(margin - target, -shape), shape)
        return residual
    if loss == IS_HINGE:
        part: float = np.minimum(1.0, np.maximum(0.0, (1.0 - target * margin) / shape))
        return -target * part
    return margin - target


@kernel
def sigmoid(margin: float) -> float:
    """The logistic function 1 / (1 + exp(-margin)), with full relative accuracy in both tails."""
    # exp(min(m, 0)) / (1 + exp(-|m|)): neither exponent is ever positive.
    probability: float = np.exp(np.minimum(margin, 0.0)) / (1.0 + np.exp(-np.abs(margin)))
    return probability


@kernel
def softmax_row(margins: Floats, out: Floats) -> None:
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
def softmax_rows(margins: Floats, out: Floats) -> None:
    """`softmax_row` for every row of a table."""
    for i in range(margins.shape[0]):
        softmax_row(margins[i], out[i])


@kernel
def multinomial_slopes(margins: Floats, label: int, out: Floats) -> None:
    """Write the derivatives of one row's multinomial loss, softmax(m) - e_label, into `out`."""
    softmax_row(margins, out)
    # p_label - 1 = -(the sum of the others), which keeps its digits when p_label is close to 1.
    others = 0.0
    for k in range(margins.size):
        if k != label:
            others += out[k]
    out[label] = -others
