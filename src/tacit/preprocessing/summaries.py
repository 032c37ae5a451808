"""A private mean and a private quantile, each with its guarantee."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.blocks import Moves, clip_rows
from tacit.privacy import Budget, Gate, Guarantee, Plan, Release, Unit, checks
from tacit.privacy.mechanisms import GaussianVector, Quantile


class Mean(NamedTuple):
    """A released mean, and what it cost."""

    value: NDArray[np.float64]
    guarantee: Guarantee


class QuantileValue(NamedTuple):
    """A released quantile, and what it cost."""

    value: float
    guarantee: Guarantee


def private_mean(
    X: ArrayLike,
    row_norm: float,
    epsilon: float = 1.0,
    delta: float | None = None,
    *,
    adjacency: str = "add-remove",
    random_state: int | None = None,
) -> Mean:
    """The mean of rows clipped to a public norm, with Gaussian noise.

    Privacy: one row moves the sum of clipped rows by at most `row_norm` (twice that for replace-one).

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.preprocessing import private_mean
    >>> value, guarantee = private_mean(np.ones((1000, 2)), row_norm=2.0)
    >>> value.shape
    (2,)
    """
    norm = checks.positive("row_norm", row_norm)
    table = _table(X)
    n = len(table)
    budget = Budget.for_rows(n, epsilon, delta, adjacency)  # type: ignore[arg-type]
    promise = Plan(Release("mean", "gaussian", share=1.0)).calibrate(budget, Unit("row", n), "mean")
    with Gate.open(promise, seed=random_state) as gate:
        total = released_sum(gate, table, n, norm)
    return Mean(total / n, gate.guarantee)


def released_sum(gate: Gate, table: NDArray[np.float64], n: int, norm: float) -> NDArray[np.float64]:
    """The release "mean": the sum of rows clipped to `norm`. The number of rows n is public."""
    mechanism = GaussianVector(Moves(n, depth=n).vector(norm), bound=n * norm)
    return gate.release("mean", mechanism, clip_rows(table, norm).sum(axis=0))


def private_quantile(
    values: ArrayLike,
    q: float,
    grid: ArrayLike,
    epsilon: float = 1.0,
    delta: float | None = None,
    *,
    adjacency: str = "add-remove",
    random_state: int | None = None,
) -> QuantileValue:
    """A quantile of private values among public candidates, by the exponential mechanism.

    Privacy: see `tacit.privacy.mechanisms.Quantile`; the scores move by a range of 2 under both adjacencies.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.preprocessing import private_quantile
    >>> value, guarantee = private_quantile(np.arange(10_000) % 100, 0.5, grid=np.arange(0, 101, 5))
    >>> 40 <= value <= 60
    True
    """
    column = _finite("values", values)
    if column.ndim != 1 or len(column) < 2:
        raise ValueError(f"values must be a vector of at least two numbers, got shape {column.shape}")
    mechanism = Quantile(q, grid, rows=len(column))
    budget = Budget.for_rows(len(column), epsilon, delta, adjacency)  # type: ignore[arg-type]
    plan, unit = Plan(Release("quantile", "exponential", share=1.0)), Unit("row", len(column))
    with Gate.open(plan.calibrate(budget, unit, "quantile"), seed=random_state) as gate:
        value = gate.release("quantile", mechanism, column)
    return QuantileValue(value, gate.guarantee)


def _table(X: ArrayLike) -> NDArray[np.float64]:
    table = _finite("X", X)
    if table.ndim != 2 or len(table) < 2:
        raise ValueError(f"X must be a table of at least two rows, got shape {table.shape}")
    return table


def _finite(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """`values` as finite floats; NumPy's own message would quote what is not a number."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must hold real numbers, in rows of one length") from None
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{name} must not hold NaN or infinity")
    return array
