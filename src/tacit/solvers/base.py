"""What every solver is made of: options, the tasks it serves, and the algorithm that follows for one task.

A solver holds options and nothing else; users pass it to an estimator. `at(task)` works out the rules for one task,
from public numbers alone, and returns the algorithm: what it will release, and how it runs.
"""

from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, Protocol

from sklearn.base import BaseEstimator

from tacit._types import Floats
from tacit.privacy import Gate, Release, checks
from tacit.privacy.checks import Adjacency
from tacit.problems import Loss
from tacit.problems.declared import declared_size
from tacit.problems.task import PenaltyName

Layout = Literal["rows", "short rows", "columns", "entries"]
"""How an algorithm wants the rows stored; "entries" asks for each entry to be bounded, and not each row."""

BOTH: tuple[Adjacency, ...] = ("add-remove", "replace-one")


@dataclass(frozen=True)
class Serves:
    """What a solver can be asked for; everything else is refused before the data is read."""

    losses: tuple[Loss, ...]
    multiclass: tuple[Loss, ...] = ()
    adjacencies: tuple[Adjacency, ...] = BOTH
    penalties: tuple[PenaltyName, ...] = ("l2",)
    ball: bool = False  # an l1 ball in place of the penalty
    sparse_only: bool = False  # CSR rows and no others
    streams: bool = False  # blocks of rows that are read again for every pass (PCA)
    whole_matrix: bool = False  # it holds a d x d matrix, as a packed triangle (PCA)


@dataclass(frozen=True, eq=False)
class Solution:
    """What an algorithm returns: functions of what it released, and of public numbers.

    `weights` has shape (outputs, d + 1), the intercept last. `noise` has the same shape: the standard deviation that
    the noise alone gives each weight, to first order.
    """

    weights: Floats
    noise: Floats


class Algorithm(Protocol):
    """A solver's rules, worked out for one task."""

    @property
    def layout(self) -> Layout:
        """How it wants the rows stored."""

    def releases(self, share: float) -> tuple[Release, ...]:
        """Every release, with shares that add up to `share`."""

    def run(self, data: Any, gate: Gate) -> Any:
        """What it finds on bounded rows. All that leaves goes through the gate."""


class Solver(BaseEstimator):
    """The options of an algorithm. A subclass is a dataclass whose fields are the options."""

    name: ClassVar[str]
    serves: ClassVar[Serves]

    def __setattr__(self, name: str, value: object) -> None:
        """Set an option. What a solver serves and is called belongs to its class: a guarantee rests on it."""
        options = [field.name for field in fields(self)]  # type: ignore[arg-type]
        if name not in options:
            raise AttributeError(f"{type(self).__name__} has the options {', '.join(options) or 'none'}, not {name!r}")
        super().__setattr__(name, value)

    def check(self) -> None:
        """Refuse options that no task could have."""

    def at(self, task: Any) -> Algorithm:  # noqa: ARG002
        """The algorithm for one task; refuses what these options do not serve."""
        raise TypeError(f"{type(self).__name__} is no solver by itself")


AVERAGES = ("last", "tail")
"""What can be returned of released iterates: the last one, or the mean of the last ones."""

MOST_ITERATIONS = 100_000
MOST_PASSES = 100_000
_MOST_STEPS = 10_000_000  # of a few rows each


def iterations(value: object, solver: str, most: int = MOST_ITERATIONS) -> int | None:
    """`n_iter`: None for the rule. More steps than `most` are of no use, and a fit would run for hours."""
    if value is None:
        return None
    number = checks.count("n_iter", value, most=None)
    if number > most:
        raise ValueError(
            f"n_iter must be at most {most:,} for the {solver} solver, got {checks.shown(number)}: each step adds noise"
            " to all others"
        )
    return number


def passes(value: object) -> float | None:
    """`n_passes`: None for the rule."""
    if value is None:
        return None
    number = checks.positive("n_passes", value)
    if number > MOST_PASSES:
        raise ValueError(
            f"n_passes must be at most {MOST_PASSES:,}, got {number:g}: each pass adds noise to all others"
        )
    return number


def size(name: str, value: object) -> float | None:
    """`clip` or `step`: None for the rule."""
    return None if value is None else declared_size(name, value)


def batch(value: object, n: int | None = None) -> int | None:
    """`batch_size`: None for the rule; at most the number of rows, where it is known."""
    if value is None:
        return None
    size = checks.count("batch_size", value)
    if n is not None and size > n:
        raise ValueError(f"batch_size must be at most the number of rows, {n:,}, got {size!r}")
    return size


def check_steps(steps: int, n_passes: float | None, batch_size: int | None) -> None:
    """Refuse passes in too many small steps, where the user asked for them."""
    if steps > _MOST_STEPS and (n_passes is not None or batch_size is not None):
        raise ValueError(
            f"n_passes={n_passes!r} with batch_size={batch_size!r} would make {steps:,} steps, and at most"
            f" {_MOST_STEPS:,} are of use, as each adds noise to all others; lower n_passes or raise batch_size"
        )
