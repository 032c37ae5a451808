"""A private step of a pipeline, and what is known of the table that will reach it."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

from tacit._types import Floats
from tacit.blocks.lazy import BlockTable
from tacit.privacy import Gate, Guarantee, Promise, Release


@dataclass(frozen=True, eq=False)
class Facts:
    """What is known of the table that will reach a step.

    Parameters
    ----------
    n, d : int
        Rows, and the most columns that there can be.
    X : table or None
        The table itself, where no private step comes before.
    known : array
        Columns that will be among it, for checks that must come before any release.
    names : tuple of str, optional
        Of the columns, where an encoder made them.
    low, high : array, optional
        What columns lie between; infinite where that is not known.
    is_exact : bool, default=True
        Whether there will be `d` columns, and not fewer.
    has_holes : bool, default=False
        Whether cells can be NaN that the checks do not see: those of columns on which the rows vote.
    in_parts : bool, default=False
        Whether rows are in parts, and not all in memory.
    """

    n: int
    d: int
    X: Any
    known: Any
    names: tuple[str, ...] | None = None
    low: Floats | None = None
    high: Floats | None = None
    is_exact: bool = True
    has_holes: bool = False
    in_parts: bool = False


_SENT = ("name", "step", "rows", "_scaling", "_table")


class Stage(ABC):
    """A private step in a pipeline."""

    solver: str  # in the words of the guarantee
    releases: tuple[Release, ...]  # with shares that add up to 1
    values: int  # no release holds more numbers
    out: Facts  # what is known of the table that it hands on

    def __init__(self, name: str, step: Any) -> None:
        self.name, self.step = name, step

    def __getstate__(self) -> dict[str, Any]:
        """What goes to where rows are: all that `transform` needs, and nothing of the plan or the table."""
        return {name: value for name, value in vars(self).items() if name in _SENT}

    @abstractmethod
    def follows(self, facts: Facts) -> bool:
        """Whether the planned releases can be made on a table of fewer columns, of which these facts hold."""

    def follow(self, facts: Facts) -> None:
        """Work on such a table, or on one as planned: there is nothing to change but for a model."""
        del facts

    def after(self, facts: Facts) -> Facts:  # noqa: ARG002
        """What it then hands on."""
        return self.out

    @abstractmethod
    def run(self, X: Any, gate: Gate) -> None:
        """Make the releases."""

    def handed_on(self, X: Any) -> Any:
        """The table for the next step; of rows in parts, one that is changed while it is read."""
        if not isinstance(X, BlockTable):
            return self.transform(X)
        return X.changed(self.transform, self.width, held=type(self.step).__name__ == "PrivateEncoder")

    @property
    def width(self) -> int:
        """How many columns it hands on, once it has run."""
        return self.out.d

    def transform(self, X: Any) -> Any:
        """The table for the next step, as an array."""
        out = self.step.transform(X)
        return out.to_numpy() if hasattr(out, "to_numpy") else out

    def keep(self, promise: Promise, guarantee: Guarantee) -> None:
        """What the step states: the guarantee of the whole, with its own solver."""
        self.step.plan_ = replace(promise, solver=self.solver)
        self.step.guarantee_ = replace(guarantee, solver=self.solver)
