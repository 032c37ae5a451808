"""What a user asks of the weights: a penalty on their sizes, and bounds."""

import math
from dataclasses import dataclass

import numpy as np

from tacit._types import Floats
from tacit.problems.compiled import Elementwise, kernel

LARGEST, SMALLEST = 1e100, 1e-100  # of a public number: squares and quotients of such numbers stay finite


@kernel
def separable_prox(value: float, step: float, l1: float, l2: float, low: float, high: float) -> float:
    """Minimiser over [low, high] of l1 |w| + l2 w^2 / 2 + (w - value)^2 / (2 step)."""
    # Without the interval: |w| moves the value towards 0 by step * l1, and w^2 divides what is left.
    threshold = step * l1
    shrunk = value - np.minimum(np.maximum(value, -threshold), threshold)
    free = shrunk / (1.0 + step * l2)
    # A convex function of one variable falls up to its minimiser and rises after it, so the best point of an
    # interval is the one nearest to the free minimiser: clipping last is exact, for any interval.
    nearest: float = np.minimum(np.maximum(free, low), high)
    return nearest


_prox = Elementwise(separable_prox)


@dataclass(frozen=True, eq=False)
class Penalty:
    """sum_j l1_j |w_j| + l2_j / 2 w_j^2 next to the mean loss, with low_j <= w_j <= high_j.

    Parameters
    ----------
    l1, l2 : float or array
        The strengths, at least 0: one for all weights, or one for each.
    low, high : float or array
        The bounds, infinite where there are none.

    Examples
    --------
    >>> from tacit.problems import Penalty
    >>> Penalty(l1=1.0).prox([3.0, 0.5, -3.0], step=1.0)
    array([ 2.,  0., -2.])
    >>> Penalty(l1=1.0, low=0.0).prox([3.0, 0.5, -3.0], step=1.0)
    array([2., 0., 0.])
    """

    l1: Floats | float = 0.0
    l2: Floats | float = 0.0
    low: Floats | float = -math.inf
    high: Floats | float = math.inf

    def on(self, units: Floats, target: float = 1.0, *, standardised: bool = False) -> "Penalty":
        """The same for weights on columns divided by `units` and a target divided by `target`, an array for each field.

        The loss is then in units of the target squared, which l1 and bounds are not. Where data is `standardised`, the
        strengths are meant for standardised columns, as they are: only bounds change their units.
        """
        columns = np.ones(len(units)) if standardised else units
        with np.errstate(over="ignore"):  # of numbers that are clipped right after: no weight is that large or small
            l1 = np.minimum(self.l1 / columns / target, LARGEST)
            to_weight = np.clip(units / target, SMALLEST, LARGEST)
        return Penalty(l1, self.l2 / columns**2, self.low * to_weight, self.high * to_weight)

    def with_intercept(self) -> "Penalty":
        """The same with one weight more, which is free."""
        free = (0.0, 0.0, -math.inf, math.inf)
        fields = np.broadcast_arrays(*self._fields)
        return Penalty(*(np.append(field, last) for field, last in zip(fields, free, strict=True)))

    def at(self, j: int) -> "Penalty":
        """The same for weight j alone."""
        return Penalty(*(np.asarray(field)[j] for field in self._fields))

    def prox(self, w: Floats, step: Floats | float) -> Floats:
        """The minimiser over v of the penalty of v plus sum_j (v_j - w_j)^2 / (2 step_j)."""
        return _prox(w, step, *self._fields)

    @property
    def _fields(self) -> "tuple[Floats | float, ...]":
        return self.l1, self.l2, self.low, self.high
