"""The privacy budget of one fit: what may be given away about one row, and to which neighbour relation."""

import math
from dataclasses import dataclass
from functools import cached_property

from tacit.privacy import checks, gdp
from tacit.privacy.accounting import rho_from_budget
from tacit.privacy.checks import Adjacency


@dataclass(frozen=True)
class Budget:
    """An (epsilon, delta) budget under a neighbour relation.

    Parameters
    ----------
    epsilon : float
        Above 0; `float("inf")` is the non-private limit.
    delta : float
        Strictly between 0 and 1, and well below one over the number of rows.
    adjacency : {"add-remove", "replace-one"}
        Neighbours differ by one row being present or zeroed out, or by one row changed to any other.

    Examples
    --------
    >>> from tacit.privacy import Budget
    >>> budget = Budget(epsilon=1.0, delta=1e-6)
    >>> round(budget.mu, 4), round(budget.rho, 5)
    (0.2359, 0.01869)
    """

    epsilon: float
    delta: float
    adjacency: Adjacency = "add-remove"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checks.positive("epsilon", self.epsilon, finite=False))
        object.__setattr__(self, "delta", checks.open_unit("delta", self.delta))
        object.__setattr__(self, "adjacency", checks.adjacency(self.adjacency))

    @classmethod
    def from_mu(cls, mu: float, delta: float, adjacency: Adjacency = "add-remove") -> "Budget":
        """The smallest budget with this delta that mu-GDP fits in."""
        return cls(gdp.epsilon_from_mu(checks.positive("mu", mu, finite=False), delta), delta, adjacency)

    @cached_property
    def mu(self) -> float:
        """The largest mu whose mu-GDP implies this budget (exact)."""
        return gdp.mu_from_budget(self.epsilon, self.delta)

    @cached_property
    def rho(self) -> float:
        """The largest rho whose rho-zCDP implies this budget (best order of a dense grid)."""
        return rho_from_budget(self.epsilon, self.delta)

    @property
    def is_private(self) -> bool:
        """False in the non-private limit of an infinite epsilon."""
        return math.isfinite(self.epsilon)
