"""The slopes of the losses on plain numbers, for compiled loops over rows.

A solver must not let one row touch another's arithmetic, as BLAS does in the last bits: it calls these in a loop over
the row. `tacit.problems.losses` runs the same loops over arrays, so that each formula is written once.

A compiled function is told the loss by its code. `margin` is x.w, and slopes are derivatives in it. `target` is a real
number for the squared and Huber losses, and -1 or +1 for the logistic loss and the hinges. `shape` is one number
more, for two of them: where the Huber loss turns linear, and over which width the kink of the hinge is rounded.
"""

import numpy as np

from tacit._types import Floats
from tacit.problems.compiled import kernel
from tacit.problems.exponential import exp

IS_SQUARED, IS_LOGISTIC, IS_MULTINOMIAL, IS_HUBER, IS_HINGE, IS_SQUARED_HINGE = range(6)
"""The codes."""


@kernel
def sigmoid(margin: float) -> float:
    """The logistic function 1 / (1 + exp(-margin)), with full relative accuracy in both tails."""
    small = exp(-abs(margin))  # whose exponent is never positive
    return (small if margin < 0.0 else 1.0) / (1.0 + small)


@kernel
def sigmoid_each(margins: Floats, out: Floats) -> None:
    """`sigmoid` of each margin, by itself."""
    for i in range(len(margins)):
        out[i] = sigmoid(margins[i])


@kernel
def slope(margin: float, target: float, loss: int, shape: float) -> float:
    """The derivative in the margin of a loss of one margin."""
    # NumPy's minimum and maximum keep what is not a number, which callers count as zero.
    if loss == IS_LOGISTIC:
        return -target * sigmoid(-target * margin)
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
def slope_each(margins: Floats, targets: Floats, loss: int, shape: float, out: Floats) -> None:
    """`slope` of each margin, by itself."""
    for i in range(len(margins)):
        out[i] = slope(margins[i], targets[i], loss, shape)


@kernel
def softmax_row(margins: Floats, out: Floats) -> None:
    """Write exp(m_k) / sum_j exp(m_j) of one row into `out`."""
    top = margins[0]
    for margin in margins:
        top = max(top, margin)
    total = 0.0
    for k in range(margins.size):
        out[k] = exp(margins[k] - top)
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
