"""A private mean and a private quantile, each with its guarantee."""

from typing import Any, NamedTuple, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from tacit._types import Floats
from tacit.blocks import Moves, clip_rows
from tacit.blocks.validate import refuse_lazy
from tacit.privacy import Gate, Guarantee, Plan, Release, checks
from tacit.privacy.mechanisms import GaussianVector, Quantile
from tacit.privacy.path import opened


class Summary(NamedTuple):
    """A released number or array, and what it cost."""

    value: Any
    guarantee: Guarantee


class Terms(TypedDict, total=False):
    """The keyword arguments that both summaries take.

    Parameters
    ----------
    adjacency : {"add-remove", "replace-one"}, default="add-remove"
        What one person may change: whether their row is there, or what it holds.
    random_state : int, default=None
        None draws fresh cryptographic noise. Everyone who knows an integer can remove the noise.
    """

    adjacency: str
    random_state: int | None


def private_mean(
    X: ArrayLike, row_norm: float, epsilon: float = 1.0, delta: float | None = None, **terms: Unpack[Terms]
) -> Summary:
    """The mean of rows clipped to a public norm, with Gaussian noise.

    Privacy: one row moves the sum of clipped rows by at most `row_norm` (twice that for replace-one).

    Parameters
    ----------
    X : array-like of shape (n, d)
        The rows.
    row_norm : float
        The bound on the l2 norm of a row.
    epsilon, delta : float
        Privacy budget. Without delta it is `n ** -1.5`.
    adjacency, random_state
        See `Terms`.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.preprocessing import private_mean
    >>> value, guarantee = private_mean(np.ones((1000, 2)), row_norm=2.0)
    >>> value.shape
    (2,)
    """
    norm = checks.positive("row_norm", row_norm)
    table = _finite("X", X)
    if table.ndim != 2 or len(table) < 2:
        raise ValueError(f"X must be a table of at least two rows, got shape {table.shape}")
    n, d = table.shape
    with opened(Plan(Release("mean", "gaussian", share=1.0)), n, "mean", epsilon, delta, values=d, **terms) as gate:
        total = released_sum(gate, table, n, norm)
    return Summary(total / n, gate.guarantee)


def released_sum(gate: Gate, table: Floats, n: int, norm: float) -> Floats:
    """The release "mean": the sum of rows clipped to `norm`. The number of rows n is public."""
    mechanism = GaussianVector(Moves(n, depth=n).vector(norm), bound=n * norm)
    return gate.release("mean", mechanism, clip_rows(table, norm).sum(axis=0))


def private_quantile(
    values: ArrayLike,
    q: float,
    grid: ArrayLike,
    epsilon: float = 1.0,
    delta: float | None = None,
    **terms: Unpack[Terms],
) -> Summary:
    """A quantile of private values among public candidates, by the exponential mechanism.

    Privacy: see `tacit.privacy.mechanisms.Quantile`; the scores move by a range of 2 under both adjacencies.

    Parameters
    ----------
    values : array-like of shape (n,)
        The numbers.
    q : float
        Which quantile, from 0 to 1.
    grid : array-like
        The public candidates, in increasing order.
    epsilon, delta, adjacency, random_state
        As for `private_mean`.

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
    plan = Plan(Release("quantile", "exponential", share=1.0))
    with opened(plan, len(column), "quantile", epsilon, delta, **terms) as gate:
        value = gate.release("quantile", mechanism, column)
    return Summary(value, gate.guarantee)


def _finite(name: str, values: ArrayLike) -> Floats:
    """`values` as finite floats; NumPy's own message would quote what is not a number."""
    refuse_lazy("a summary", values)
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must hold real numbers, in rows of one length") from None
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{name} must not hold NaN or infinity")
    return array
