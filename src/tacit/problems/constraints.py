"""Constraints on the coefficients as a whole: sets a solver projects onto, or asks for their best vertex."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tacit._types import Floats
from tacit.privacy import checks


@dataclass(frozen=True)
class L1Ball:
    """The set |w|_1 <= radius, whose vertices are the 2 d points +-radius e_j.

    Parameters
    ----------
    radius : float
        Finite and above 0.

    Examples
    --------
    >>> from tacit.problems import L1Ball
    >>> ball = L1Ball(radius=2.0)
    >>> ball.project([3.0, -2.0, 0.5])
    array([ 1.5, -0.5,  0. ])
    >>> ball.linear_oracle([0.1, -7.0, 2.0])
    (1, 1)
    """

    radius: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", checks.positive("radius", self.radius))

    def project(self, w: ArrayLike) -> Floats:
        """The point of the ball nearest to w in Euclidean distance."""
        # Outside the ball the answer is sign(w) max(|w| - theta, 0), with theta such that |w|_1 = radius.
        point = np.array(w, dtype=np.float64)
        sizes = np.abs(point)
        with np.errstate(over="ignore"):
            if sizes.sum() <= self.radius:
                return point
        # As theta >= max |w| - radius, sizes may count from the maximum, and all that lie more than a radius
        # below it are alike. This keeps every digit when |w| is far larger than the radius.
        depth = np.maximum(sizes - sizes.max(), -self.radius)
        nearest: Floats = np.copysign(np.maximum(depth - self._threshold(depth), 0.0), point)
        return nearest

    def _threshold(self, depth: Floats) -> float:
        """The t for which max(depth - t, 0) adds up to the radius."""
        # If the k largest stay positive, t = (their sum - radius) / k; k is the last one for which they do.
        falling = np.sort(depth)[::-1]
        candidates = (np.cumsum(falling) - self.radius) / np.arange(1, falling.size + 1)
        kept = np.count_nonzero(falling > candidates)
        return float(candidates[kept - 1])

    def linear_oracle(self, gradient: ArrayLike) -> tuple[int, int]:
        """The vertex v = sign radius e_index with the smallest gradient.v, as (index, sign); the first on a tie."""
        g = np.asarray(gradient, dtype=np.float64)
        index = int(np.argmax(np.abs(g)))
        return index, -1 if g[index] > 0.0 else 1
