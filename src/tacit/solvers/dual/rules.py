"""What the dual solver is asked for, and what its rules make of a task: numbers that are public."""

import math
from typing import NamedTuple

import numpy as np

from tacit.bounding.magnitudes import LIMIT
from tacit.problems import SQUARED, SQUARED_HINGE
from tacit.problems.task import LinearTask

PASSES = 10
_SMALLEST = 1e-12  # strength of a penalty: without any there is no dual


class Asked(NamedTuple):
    """What the user set; None leaves it to the rule."""

    n_passes: float | None = None
    batch_size: int | None = None
    clip: float | None = None
    newton: bool = False  # a row's step is a single Newton step
    averaging: str | None = None
    least_penalty: float | None = None
    damping: float | None = None

    def penalty(self, task: LinearTask, rule: float) -> float:
        """The least strength of the l2 penalty: what was set, or the rule's."""
        if self.least_penalty is None:
            return max(rule, _SMALLEST)
        if max(self.least_penalty, float(np.min(task.penalty.l2))) < _SMALLEST:
            raise ValueError(
                f"the dual solver cannot serve a penalty of strength below {_SMALLEST:g}, as weights are sums of dual"
                f" variables over n times the strength: set least_penalty to {_SMALLEST:g} or more, or penalise more"
            )
        return max(self.least_penalty, _SMALLEST)


class Bearing(NamedTuple):
    """What a loss bears."""

    far: float  # how far a dual variable may be
    damping: float  # the part of a sample whose rows are taken to pull one way
    bearable: float  # the nu above which dual variables are held back
    power: float  # of nu, with which they are
    long: float  # the nu below which there are more passes
    penalty: float  # what the least strength of the penalty is at most

    def reach(self, nu: float) -> float:
        """The longest that a dual variable moves in a step, but for the damping."""
        return self.far * min(1.0, (self.bearable / nu) ** self.power)

    def passes(self, nu: float) -> float:
        """Over the rows."""
        return PASSES * min(max(1.0, math.sqrt(self.long / nu)), 10.0)


_BEARINGS = {
    SQUARED: Bearing(LIMIT, 0.5, 0.006, 0.6, 0.05, 0.003),
    SQUARED_HINGE: Bearing(1.0, 0.5, 0.2, 0.8, 0.1, 0.01),
}
_FLAT = Bearing(1.0, 0.1, 0.03, 0.8, 0.1, 0.01)  # of losses with a slope of at most 1


def bearing_of(task: LinearTask) -> tuple[Bearing, float]:
    """What the loss of a task bears, and the task's nu."""
    return _BEARINGS.get(task.loss, _FLAT), max(task.nu, 1e-300)
