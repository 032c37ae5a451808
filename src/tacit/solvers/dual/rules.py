"""What the dual solver is asked for, and what its rules make of a task: numbers that are public."""

import math
from typing import NamedTuple

import numpy as np

from tacit.bounding.magnitudes import LIMIT
from tacit.problems import HINGE, LOGISTIC, SQUARED, SQUARED_HINGE
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
    bearable: float  # the noise above which dual variables are held back
    power: float  # of the noise, with which they are
    least: float  # part of the way that they may always go
    most: float  # part of the way that they may go at most
    long: float  # the nu below which there are more passes
    penalty: float  # what the least strength of the penalty is at most

    def reach(self, noise: float) -> float:
        """The longest that a dual variable moves in a step, but for the damping."""
        return self.far * min(self.most, max(self.least, (self.bearable / max(noise, 1e-300)) ** self.power))

    def passes(self, nu: float) -> float:
        """Over the rows."""
        return PASSES * min(max(1.0, math.sqrt(self.long / max(nu, 1e-300))), 10.0)


BEARINGS = {
    SQUARED: Bearing(LIMIT, 0.5, 0.006, 0.6, 0.08, 0.5, 0.05, 0.003),
    LOGISTIC: Bearing(1.0, 0.1, 0.03, 0.8, 0.2, 0.7, 0.1, 0.01),
    HINGE: Bearing(1.0, 0.1, 0.055, 0.8, 0.0, 1.0, 0.1, 0.01),
    SQUARED_HINGE: Bearing(1.0, 0.5, 0.086, 0.8, 0.0, 1.0, 0.1, 0.01),
}
"""Of each loss that is served."""


def noise_of(task: LinearTask, damping: float) -> float:
    """What holds dual variables back: nu. For the hinges the geometric mean with the noise in the weights of a pass.

    That is of norm 1 / (mu damping) if dual variables move as far as they may.
    """
    if task.loss in (HINGE, SQUARED_HINGE):
        return math.sqrt(task.nu / (task.budget.mu * damping))
    return task.nu
