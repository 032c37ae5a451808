"""Private scales, centres and clips: how the rows of a fit get bounded, inside its own budget.

linear       `LinearBounding`: which scales a linear model needs, and the way back to the user's units
scales       centres and scales of columns, nothing declared
target       those of a regression's target, declared or found
norms        the same where the norm of a row bounds it
declared     columns with declared bounds
centring     the mean and the radius of a PCA
means        centres read once more, off the mean of bounded rows
magnitudes   reading scales off noisy histograms (released numbers only)
templates    reading the histograms of all columns together, where they are noisy
laws         reading those of a target, where they are noisy
"""

from typing import Any, Protocol

from tacit.bounding.centring import Centring
from tacit.bounding.linear import LinearBounding, LinearModel, Units
from tacit.privacy import Gate, Release
from tacit.problems.task import ComponentsTask, LinearTask


class Bounding(Protocol):
    """How rows will be bounded: what that releases, what is left of the budget, and how it runs."""

    @property
    def releases(self) -> tuple[Release, ...]:
        """Every release of the bounding."""

    @property
    def left(self) -> float:
        """The part of the budget that is left for the algorithm."""

    def run(self, table: Any, gate: Gate) -> Any:
        """Bounded rows, with the released `units` they are in."""


def bounding_for(task: LinearTask | ComponentsTask, algorithm: Any) -> Bounding:
    """The bounding that a task and its algorithm ask for."""
    if isinstance(task, ComponentsTask):
        return Centring(task)
    asked = getattr(algorithm, "entry_bound", None)
    return LinearBounding.of(task, algorithm.layout, asked, raw=getattr(algorithm, "raw", False))


__all__ = ["Bounding", "Centring", "LinearBounding", "LinearModel", "Units", "bounding_for"]
