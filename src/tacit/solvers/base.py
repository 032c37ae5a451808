"""What every solver is made of: options, the tasks it serves, and the algorithm that follows for one task.

A solver holds options and nothing else; users pass it to an estimator. `at(task)` works out the rules for one task,
from public numbers alone, and returns the algorithm: what it will release, and how it runs.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Generic, Literal, Self, TypeVar

from sklearn.base import BaseEstimator

from tacit._types import Floats
from tacit.privacy import Gate, Release, checks
from tacit.privacy.checks import Adjacency
from tacit.problems import Loss
from tacit.problems.task import PenaltyName, Task

Layout = Literal["rows", "grid", "short rows", "columns", "entries"]
"""How an algorithm wants the rows stored; "entries" asks for each entry to be bounded, and not each row.

"grid" asks for a `tacit.blocks.GridTable`, whose sums are exact; sparse rows that are no table come as for "rows".
"""

BOTH: tuple[Adjacency, ...] = ("add-remove", "replace-one")

Check = Callable[[str, Any], Any]
"""What an option must be: takes its name and its value, and returns it as a plain number or word, or raises."""

Facts = TypeVar("Facts", bound=Task)


@dataclass(frozen=True)
class Serves:
    """What a solver can be asked for; everything else is refused before the data is read."""

    losses: tuple[Loss, ...]
    multiclass: tuple[Loss, ...] = ()
    adjacencies: tuple[Adjacency, ...] = BOTH
    penalties: tuple[PenaltyName, ...] = ("l2",)
    ball: bool = False  # an l1 ball in place of the penalty
    sparse_only: bool = False  # CSR rows and no others
    weights: bool = False  # classes that weigh differently
    streams: bool = False  # rows that are not all in memory, and are read again for every pass
    whole_matrix: bool = False  # it holds a d x d matrix, as a packed triangle (PCA)


@dataclass(frozen=True, eq=False)
class Solution:
    """What an algorithm returns: functions of what it released, and of public numbers.

    `weights` has shape (outputs, d + 1), the intercept last. `noise` has the same shape: the standard deviation that
    the noise alone gives each weight, to first order. `path`, of shape (iterates, d + 1), are the weights on the way to
    a single output, where an algorithm tells them: as many as its plan says.
    """

    weights: Floats
    noise: Floats
    path: Floats | None = None


@dataclass(frozen=True)
class Algorithm(ABC, Generic[Facts]):
    """A solver's rules, worked out for one task, and how it runs. A subclass is a frozen dataclass of these rules.

    `layout` is how it wants the rows stored.
    """

    layout: ClassVar[Layout] = "rows"

    task: Facts

    @abstractmethod
    def releases(self, share: float) -> tuple[Release, ...]:
        """Every release, with shares that add up to `share`."""

    def narrowed(self, task: Facts) -> "Algorithm[Facts] | None":  # noqa: ARG002
        """The same releases for a task with fewer columns, or None: columns of zeros then stand for those left out."""
        return None

    @abstractmethod
    def run(self, data: Any, gate: Gate) -> Any:
        """What it finds on bounded rows. All that leaves goes through the gate."""


@dataclass(eq=False, repr=False)
class Solver(BaseEstimator):
    """The options of an algorithm. A subclass is a dataclass whose fields are made by `option`."""

    name: ClassVar[str]
    serves: ClassVar[Serves]

    def __setattr__(self, name: str, value: object) -> None:
        """Set an option. What a solver serves and is called belongs to its class: a guarantee rests on it."""
        options = [known.name for known in fields(self)]
        if name not in options:
            raise AttributeError(f"{type(self).__name__} has the options {', '.join(options) or 'none'}, not {name!r}")
        super().__setattr__(name, value)

    def check(self) -> Self:
        """The same options as plain numbers and words; refuses what no task could have."""
        found = {}
        for known in fields(self):
            value = getattr(self, known.name)
            by_rule = value is None and known.default is None
            found[known.name] = None if by_rule else known.metadata["check"](known.name, value)
        return type(self)(**found)

    def at(self, task: Any) -> Algorithm[Any]:  # noqa: ARG002
        """The algorithm for one task; refuses what these options do not serve."""
        raise TypeError(f"{type(self).__name__} is no solver by itself")


def option(default: Any, check: Check) -> Any:
    """An option, and what it must be. Where the default is None, None leaves it to a rule and is not checked."""
    return field(default=default, metadata={"check": check})


MOST_ITERATIONS = 100_000
MOST_PASSES = 100_000
_MOST_STEPS = 10_000_000  # of a few rows each


def iterations(solver: str, most: int = MOST_ITERATIONS) -> Check:
    """A number of steps. More than `most` are of no use, and a fit would run for hours."""

    def check(name: str, value: object) -> int:
        number = checks.count(name, value, most=None)
        if number > most:
            raise ValueError(
                f"{name} must be at most {most:,} for the {solver} solver, got {checks.shown(number)}: each step adds"
                " noise to all others"
            )
        return number

    return check


def pass_count(name: str, value: object) -> float:
    """A number of passes over all rows or columns."""
    number = checks.positive(name, value)
    if number > MOST_PASSES:
        raise ValueError(f"{name} must be at most {MOST_PASSES:,}, got {number:g}: each pass adds noise to all others")
    return number


def word(*accepted: str) -> Check:
    """One of a few words."""
    return lambda name, value: checks.one_of(name, value, accepted)


def batch(size: int | None, n: int) -> int | None:
    """`batch_size`, for a table of so many rows."""
    if size is not None and size > n:
        raise ValueError(f"batch_size must be at most the number of rows, {n:,}, got {size!r}")
    return size


def check_steps(steps: int, n_passes: float | None, batch_size: int | None) -> None:
    """Refuse passes in too many small steps, where the user asked for them."""
    if steps > _MOST_STEPS and (n_passes is not None or batch_size is not None):
        raise ValueError(
            f"n_passes={n_passes!r} with batch_size={batch_size!r} would make {steps:,} steps, and at most"
            f" {_MOST_STEPS:,} are of use, as each adds noise to all others; lower n_passes or raise batch_size"
        )
