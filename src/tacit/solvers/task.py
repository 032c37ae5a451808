"""What a solver may know before the data is read, and what it is handed to work on."""

import math
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit._types import Floats
from tacit.privacy import Budget, Gate, Plan, Unit
from tacit.privacy.checks import Adjacency
from tacit.problems import Loss, Penalty

PenaltyName = Literal["l2", "l1", "bounds"]
Layout = Literal["rows", "short rows", "columns", "entries"]


@dataclass(frozen=True)
class Options:
    """What a user may set in place of a solver's own rule; None leaves it to the rule."""

    n_iter: int | None = None
    n_passes: float | None = None
    batch_size: int | None = None
    order: str = "permuted"
    clipping: str = "row"
    clip: float | None = None
    step: float | None = None
    averaging: str | int | None = None
    smoothness: str | tuple[float, ...] = "private"
    variant: str = "secret"
    inner: str = "exact"
    l1_radius: float | None = None
    entry_bound: float | None = None
    sampler: str = "bucket"

    @property
    def given(self) -> tuple[str, ...]:
        """The names of those that were set."""
        return tuple(field.name for field in fields(self) if getattr(self, field.name) != field.default)


@dataclass(frozen=True)
class Task:
    """The public facts of one fit."""

    n: int
    d: int
    loss: Loss
    outputs: int
    sparse: bool
    fit_intercept: bool
    budget: Budget
    penalties: tuple[PenaltyName, ...] = ("l2",)
    options: Options = field(default_factory=Options)

    @property
    def width(self) -> int:
        """The length of a row with its intercept entry."""
        return self.d + self.fit_intercept

    @property
    def unit(self) -> Unit:
        """Whom the guarantee protects."""
        return Unit("row", self.n)

    @property
    def nu(self) -> float:
        """The noise that one parameter meets, over the signal of n rows: (d + 1) / (n mu)."""
        return (self.d + 1) / (self.n * self.budget.mu)

    @property
    def calm(self) -> float:
        """How far the noise is below what matters: above 1, rules may give up what they hold against noise."""
        return 1e-3 / self.nu if self.nu > 0 else math.inf


@dataclass(frozen=True, eq=False)
class Rows:
    """Bounded rows and their targets.

    `Z` is centred, scaled and clipped (dense), or clipped to norm sqrt(d) (sparse), and stored as the solver's `layout`
    asks: by rows, or by short rows or columns in single precision; CSR or CSC if sparse. `targets` are -1 or +1, class
    numbers, or scaled and clipped values, by the loss. Private, and only for a solver's `run`.

    For "entries" what is bounded is each entry, by `entry`, which is public: dense rows are short and clipped to it;
    sparse ones are as they came, in the user's units, and are the solver's to clip.
    """

    Z: Any
    targets: Floats
    entry: float = math.inf

    def some(self, places: NDArray[np.int64]) -> "Rows":
        """The rows at these places; which they are is as private as the rows."""
        return Rows(self.Z[places], self.targets[places])

    def __repr__(self) -> str:
        return "Rows(private)"


@dataclass(frozen=True, eq=False)
class Solution:
    """What a solver returns: functions of what it released, and of public numbers.

    `weights` has shape (outputs, d + 1), the intercept last. `noise` has the same shape: the standard deviation that
    the noise alone gives each weight, to first order.
    """

    weights: Floats
    noise: Floats


class Solver(Protocol):
    """An algorithm: what it will release, and how it runs."""

    @property
    def name(self) -> str:
        """What users call it."""

    @property
    def losses(self) -> tuple[Loss, ...]:
        """The losses it serves."""

    @property
    def multiclass(self) -> tuple[Loss, ...]:
        """Those of them that it serves for more than two classes."""

    @property
    def adjacencies(self) -> tuple[Adjacency, ...]:
        """The neighbour relations it serves."""

    @property
    def penalties(self) -> tuple[PenaltyName, ...]:
        """The penalties it serves."""

    @property
    def options(self) -> tuple[str, ...]:
        """The fields of `Options` it reads."""

    @property
    def layout(self) -> Layout:
        """How it wants the rows stored."""

    def plan(self, task: Task, share: float) -> Plan:
        """Every release, for this part of the budget."""

    def run(self, task: Task, rows: Rows, penalty: Penalty, gate: Gate) -> Solution:
        """The weights. A solver may penalise more than the user asked for."""
