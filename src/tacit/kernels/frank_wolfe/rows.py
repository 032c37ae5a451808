"""What a row adds to the whole gradient of Frank-Wolfe: its slope times its entry, both clipped.

A `Rule` is targets, offset, loss, limit, unit: the slope of a margin, and what it is counted in.
"""

import math

from tacit._types import Floats
from tacit.problems.compiled import kernel
from tacit.problems.slopes import IS_LOGISTIC, slope

Rule = tuple[Floats, float, int, float, float]

MOST_UNITS = 2**43  # that a row may add to a score: a block of dense rows then adds up exactly in float64


@kernel
def clipped(number: float, bound: float) -> float:
    """A slope or an entry, within [-bound, bound]."""
    return min(max(number, -bound), bound)


@kernel
def slope_at(i: int, margin: float, rule: Rule) -> float:
    """The clipped slope of row i at this margin."""
    targets, offset, loss, limit, _ = rule
    if loss == IS_LOGISTIC:  # the same number by one exponential: the two of `slope` are this one and 1
        z = targets[i] * (margin + offset)
        small = math.exp(-abs(z))
        return clipped(-targets[i] * (small if z > 0.0 else 1.0) / (1.0 + small), limit)
    return clipped(slope(margin + offset, targets[i], loss, 1.0), limit)
