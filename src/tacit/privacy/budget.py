"""The privacy budget of one fit: how much may be given away about one row, under which neighbour relation.

What holds: a budget is checked when it is made, and frozen. Its mu and rho are on the safe side: what meets them meets
(epsilon, delta).
"""

import math
import warnings
from dataclasses import dataclass
from functools import cached_property

from tacit.privacy import checks, gdp
from tacit.privacy.accounting import rho_from_budget
from tacit.privacy.checks import ADJACENCIES, Adjacency


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
        Neighbours differ by one row being present or absent (n is public), or by one row changed to any other.

    Examples
    --------
    >>> from tacit.privacy import Budget
    >>> budget = Budget(epsilon=1.0, delta=1e-6)
    >>> round(budget.mu, 4), round(budget.rho, 5)
    (0.2367, 0.02436)
    """

    epsilon: float
    delta: float
    adjacency: Adjacency = "add-remove"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checks.positive("epsilon", self.epsilon, finite=False))
        object.__setattr__(self, "delta", checks.open_unit("delta", self.delta))
        object.__setattr__(self, "adjacency", checks.one_of("adjacency", self.adjacency, ADJACENCIES))

    @classmethod
    def from_mu(cls, mu: float, delta: float, adjacency: Adjacency = "add-remove") -> "Budget":
        """The smallest budget with this delta that mu-GDP fits in."""
        epsilon = gdp.epsilon_from_mu(checks.positive("mu", mu, finite=False), delta)
        if epsilon == 0.0:
            raise ValueError(
                f"mu={mu!r} is (0, delta)-DP at delta={delta!r}, and a budget needs an epsilon; lower delta"
            )
        return cls(epsilon, delta, adjacency)

    @classmethod
    def for_rows(
        cls,
        n: int,
        epsilon: float,
        delta: float | None = None,
        adjacency: Adjacency = "add-remove",
        *,
        stacklevel: int = 3,
    ) -> "Budget":
        """The budget of a fit on n rows: delta is n^-1.5 unless given, and one that is not below 1/n warns."""
        budget = cls(epsilon, n**-1.5 if delta is None else delta, adjacency)
        if budget.delta >= 1.0 / n:
            warnings.warn(
                f"delta={budget.delta:g} is not below 1/n = {1.0 / n:g}: it would allow publishing one row outright",
                stacklevel=stacklevel,
            )
        return budget

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
