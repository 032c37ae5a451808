"""What a row adds to the whole gradient of Frank-Wolfe: its slope times its entry, both clipped."""

import numpy as np
from numpy.typing import NDArray

from tacit.kernels.gradient import LOGISTIC, SQUARED_HINGE
from tacit.problems.compiled import kernel
from tacit.problems.scalar import logistic_derivative, squared_hinge_derivative

Floats = NDArray[np.float64]
Table = NDArray[np.floating]
Integers = NDArray[np.int64]
Places = NDArray[np.integer]
Flags = NDArray[np.bool_]

MOST_UNITS = 2**43  # that a row may add to a score: a block of dense rows then adds up exactly in float64


@kernel
def slope_at(margin: float, target: float, loss: int, limit: float) -> float:
    """The derivative of the loss in the margin, clipped to [-limit, limit]."""
    if loss == LOGISTIC:
        slope = logistic_derivative(margin, target)
    elif loss == SQUARED_HINGE:
        slope = squared_hinge_derivative(margin, target)
    else:
        slope = margin - target
    return min(max(slope, -limit), limit)


@kernel
def clipped(entry: float, bound: float) -> float:
    """The entry, within [-bound, bound]."""
    return min(max(entry, -bound), bound)
