"""Second moments as released, what they say of the curvature of an objective, and whether steps have met more of it."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from tacit._types import Floats
from tacit.blocks import ExactPasses, Passes
from tacit.privacy import Gate
from tacit.privacy.mechanisms import GaussianVector
from tacit.problems.task import LinearTask

POWER_STEPS = 4
_BEYOND_DOUBT = 3.0  # deviations of the noise
_NEARLY = 0.8  # of the curvature that steps are made for: on most data they meet less than that


@dataclass(frozen=True, eq=False)
class Curvature:
    """A bound on the curvature of an objective: `h` times the second moments at their most, and the penalty.

    In the directions `vectors` (columns), `moments` is what the second moments are likely to be, `least` and `most`
    what they are at least and at most. `l2` is of each feature, and `h` the second derivative of the loss in a margin.
    """

    vectors: Any
    moments: Floats
    least: Floats
    most: Floats
    l2: Floats
    h: float

    def of(self, h: float) -> "Curvature":
        """The same for another `h`."""
        return replace(self, h=h)

    def spared(self, steps: int, top: float) -> "Curvature":
        """The same for an `h` that is larger, up to the geometric mean with `top`, where so many steps still arrive.

        `most` is above `moments` by what noise may hide, so steps are shorter than `h` says. Where they are so short
        that all of them together go no farther than one without noise, each should be as long as `h` allows. Where they
        would go farther, long ones only forget the gradients before them, and noise is averaged over fewer.
        """
        times = steps * float(np.mean(self.moments / self.most))
        return self.of(max(self.h, min(math.sqrt(self.h * top), self.h * times)))

    def square_of_margins(self, w: Floats) -> float:
        """The mean square of the margins that these weights (rows) are likely to give."""
        return float(np.mean(np.square(w @ self.vectors) @ self.moments))

    @property
    def _full(self) -> bool:
        """Whether directions mix the features."""
        return isinstance(self.vectors, np.ndarray)

    @property
    def penalty(self) -> Any:
        """In these directions; as if every feature had the same, where directions mix them."""
        return float(self.l2[:-1].mean()) if self._full else self.l2

    @cached_property
    def inverse(self) -> Floats:
        """Of the bound, in these directions."""
        return np.asarray(1.0 / (self.h * self.most + self.penalty))

    @cached_property
    def _factor(self) -> Any:
        return cho_factor(self.h * (self.vectors * self.most) @ self.vectors.T + np.diag(self.l2))

    def inverse_times(self, g: Floats) -> Floats:
        """The inverse of the bound times each row of `g`."""
        return np.asarray(cho_solve(self._factor, g.T).T if self._full else g * self.inverse)

    def is_exceeded(self, move: Floats, change: Floats, noise: float, momentum: float) -> bool:
        """Whether the slope of the loss changed by more than is allowed for, where a step of these bounds moved.

        move . change is the curvature along the move, times its length squared. Both slopes are noisy, with deviation
        `noise` in each entry. The move has the earlier slope in it, -(1 + momentum) times the inverse of the bound, and
        `change` has it too, with a minus: that noise meets itself, and is taken off. What is left has a deviation of
        about `noise` times the length of the move.
        """
        along = move @ self.vectors if self._full else move
        allowed = self.h * float(np.sum(np.square(along) * self.most))
        itself = (1.0 + momentum) * len(move) * noise**2 * float(self.inverse.sum())
        met = float(np.sum(move * change)) - itself
        return met - _BEYOND_DOUBT * noise * float(np.linalg.norm(move)) > _NEARLY * allowed


def largest_curvature(
    task: LinearTask, passes: Passes | ExactPasses, diagonal: Floats, radius: float, gate: Gate
) -> float:
    """The largest eigenvalue of the second moments scaled by their diagonal, from above: noisy power iterations."""
    reach = radius * math.sqrt(passes.heaviest)
    mechanism = GaussianVector(passes.blocked.image(reach), bound=task.n * reach**2)
    v = np.full(task.d + 1, 1.0 / math.sqrt(task.d + 1))
    for _ in range(POWER_STEPS):
        image = gate.release("largest curvature", mechanism, passes.curvature_times(v, diagonal, radius)) / task.n
        largest = float(np.linalg.norm(image))
        v = image / max(largest, 1e-300)
    return 1.5 * largest
