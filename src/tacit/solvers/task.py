"""What a solver may know before the data is read, and what it is handed to work on."""

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tacit.privacy import Budget, Meter, Plan
from tacit.privacy.checks import Adjacency

Floats = NDArray[np.float64]
LossName = Literal["squared", "logistic", "multinomial"]


@dataclass(frozen=True)
class Task:
    """The public facts of one fit."""

    n: int
    d: int
    loss: LossName
    outputs: int
    sparse: bool
    fit_intercept: bool
    budget: Budget


@dataclass(frozen=True, eq=False)
class Rows:
    """Bounded rows and their targets.

    `Z` is centred, scaled and clipped (dense), or clipped to norm sqrt(d) (CSR). `targets` are -1 or +1, class numbers,
    or scaled and clipped values, by the loss. Private, and only for a solver's `run`.
    """

    Z: Floats | csr_array
    targets: Floats

    def __repr__(self) -> str:
        return "Rows(private)"


class Solver(Protocol):
    """An algorithm: what it will release, and how it runs."""

    @property
    def name(self) -> str:
        """What users call it."""

    @property
    def losses(self) -> tuple[LossName, ...]:
        """The losses it serves."""

    @property
    def adjacencies(self) -> tuple[Adjacency, ...]:
        """The neighbour relations it serves."""

    def plan(self, task: Task, share: float) -> Plan:
        """Every release, for this part of the budget."""

    def run(self, task: Task, rows: Rows, ridge: Floats, meter: Meter) -> Floats:
        """The weights, of shape (outputs, d + 1), the intercept last.

        `ridge` holds for each feature the l2 penalty that the user asked for, per row: lambda_j / 2 w_j^2 next to the
        mean loss. A solver may use more.
        """
