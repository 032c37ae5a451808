"""What the dual solver is asked for, and what its rules make of a task: numbers that are public."""

from typing import NamedTuple

import numpy as np

from tacit.bounding.magnitudes import LIMIT
from tacit.problems import SQUARED
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
    bearable: float  # the nu above which it is held back
    long: float  # the nu below which there are more passes
    penalty: float  # the least strength of the penalty

    def reach(self, nu: float) -> float:
        """The longest that a dual variable moves in a step, but for the damping."""
        return self.far * min(1.0, (self.bearable / nu) ** 0.4)


def bearing_of(task: LinearTask) -> tuple[Bearing, float]:
    """What the loss of a task bears, and the task's nu."""
    bearing = Bearing(LIMIT, 0.005, 0.01, 0.003) if task.loss == SQUARED else Bearing(1.0, 0.3, 0.1, 0.01)
    return bearing, max(task.nu, 1e-300)
