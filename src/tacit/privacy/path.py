"""The path to a gate of all that releases something by itself: a fit, a scaler, a mean, a score.

A plan is calibrated to a budget, and the gate is opened on the promise. All of this sees public numbers only.
"""

import math

from tacit.privacy.budget import Budget
from tacit.privacy.gate import Gate
from tacit.privacy.plan import Plan, Promise, Unit

_LEAST_MU = 1e-30  # squares of smaller ones leave the range of floats
_MOST_NOISE, _MOST_ROWS = 2.0**38, 2.0**58  # over a sensitivity, and over the noise: what fits the grids of releases


def useful(budget: Budget) -> Budget:
    """The budget, unless it is too small for the rules of a fit to work with."""
    if budget.mu < _LEAST_MU:
        raise ValueError(_too("small for any useful noise", budget))
    return budget


def promised(plan: Plan, budget: Budget, unit: Unit, solver: str, values: int) -> Promise:
    """Every release with its noise, unless that does not fit the grid of a release of so many values.

    Rounding errors add up in the l2 norm. Those of Laplace releases do so in the l1 norm, as if of values squared.
    """
    promise = plan.calibrate(budget, unit, solver)
    if max(promise.multipliers) * math.sqrt(values) > _MOST_NOISE:
        raise ValueError(_too("small for any useful noise", budget))
    if budget.is_private and unit.n / min(promise.multipliers) > _MOST_ROWS:
        raise ValueError(_too("large: use float('inf') for the non-private limit", budget))
    return promise


def opened(
    plan: Plan,
    n: int,
    solver: str,
    epsilon: float,
    delta: float | None = None,
    *,
    adjacency: str = "add-remove",
    random_state: int | None = None,
    values: int = 1,
) -> Gate:
    """The gate of a plan on n rows, for a function that users call: warnings point to the line that called it."""
    budget = Budget.for_rows(n, epsilon, delta, adjacency, stacklevel=4)  # type: ignore[arg-type]
    return Gate.open(promised(plan, budget, Unit("row", n), solver, values), seed=random_state, stacklevel=4)


def _too(what: str, budget: Budget) -> str:
    return f"epsilon={budget.epsilon!r} with delta={budget.delta!r} is too {what}"
