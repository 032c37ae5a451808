"""How close two subspaces are, and how much variance one captures.

These are plain functions of their arguments, without noise: they are for components and reference data that are public,
in benchmarks and simulations. A number computed from private rows with them is a release that nobody paid for.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.linalg import eigh, qr, svdvals

from tacit._types import Floats
from tacit.blocks.table import is_sparse
from tacit.metrics import inputs

_SQUARE = 2_000  # up to this many columns the optimum is found from the d x d matrix


def captured_variance_ratio(components: ArrayLike, X: Any, *, center: bool = True) -> float:
    """The variance of X inside the span of the components, over the most that as many components can capture.

    Parameters
    ----------
    components : array-like of shape (k, d)
        Rows that span the subspace; they need not be orthonormal.
    X : array-like or sparse matrix of shape (n, d)
        Public reference data.
    center : bool, default=True
        Whether variance is taken about the mean of X; False takes second moments about zero.

    Returns
    -------
    float
        Between 0 and 1; NaN if X has no variance at all.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.metrics import captured_variance_ratio
    >>> X = np.diag([2.0, 1.0])
    >>> captured_variance_ratio([[0.0, 1.0]], X, center=False)
    0.25
    """
    basis = _basis("components", components)
    table = _sparse_table(X) if is_sparse(X) else inputs.numbers("X", X, dimensions=(2,))
    d = table.shape[1]
    if d != len(basis):
        raise ValueError(f"components must have as many columns as X, {d}, got {len(basis)}")
    mean = np.asarray(table.mean(axis=0)).ravel() if center else np.zeros(d)
    projected = np.asarray(table @ basis) - mean @ basis
    optimum = _optimum(table, mean, basis.shape[1])
    return float(np.square(projected).sum()) / optimum if optimum > 0.0 else math.nan


def principal_angles(first: ArrayLike, second: ArrayLike) -> Floats:
    """The angles between two subspaces, in radians, in increasing order.

    Parameters
    ----------
    first, second : array-like of shape (k, d) and (l, d)
        Rows that span each subspace.

    Returns
    -------
    ndarray of shape (min(k, l),)
        All zero if one subspace lies in the other. Small angles keep their digits.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.metrics import principal_angles
    >>> np.degrees(principal_angles([[1.0, 0.0]], [[1.0, 1.0]])).round(6)
    array([45.])
    """
    a, b = _pair(first, second)
    if a.shape[1] < b.shape[1]:
        a, b = b, a
    inner = a.T @ b
    cosines = np.clip(svdvals(inner), 0.0, 1.0)  # decreasing
    sines = np.clip(svdvals(b - a @ inner)[::-1], 0.0, 1.0)  # increasing
    # A cosine near 1 has lost the angle, and so has a sine near 1.
    return np.where(cosines**2 > 0.5, np.arcsin(sines), np.arccos(cosines))


def subspace_distance(first: ArrayLike, second: ArrayLike) -> float:
    """The sine of the largest principal angle: the spectral norm of the difference of the two projections.

    Both subspaces must have the same dimension.

    Examples
    --------
    >>> from tacit.metrics import subspace_distance
    >>> round(subspace_distance([[1.0, 0.0]], [[0.0, 2.0]]), 6)
    1.0
    """
    a, b = _pair(first, second)
    if a.shape[1] != b.shape[1]:
        raise ValueError(f"both subspaces must have one dimension, got {a.shape[1]} and {b.shape[1]}")
    return float(np.sin(principal_angles(a.T, b.T)[-1]))


def _optimum(table: Any, mean: Floats, k: int) -> float:
    """The sum of the k largest eigenvalues of the second moments about `mean`, times n."""
    n, d = table.shape
    if d <= _SQUARE:
        gram = table.T @ table
        square = (gram.toarray() if is_sparse(gram) else gram) - n * np.outer(mean, mean)
        return float(np.sum(eigh(square, eigvals_only=True, subset_by_index=[d - min(k, d), d - 1])))
    centred = sparse.linalg.LinearOperator(
        (n, d),
        matvec=lambda v: table @ v.ravel() - mean @ v.ravel(),
        rmatvec=lambda u: table.T @ u.ravel() - mean * u.sum(),
        dtype=np.float64,
    )
    if k >= min(n, d):
        return float(table.power(2).sum() if is_sparse(table) else np.square(table).sum()) - n * float(mean @ mean)
    start = np.ones(min(n, d))
    return float(np.square(sparse.linalg.svds(centred, k, return_singular_vectors=False, v0=start)).sum())


def _sparse_table(X: Any) -> Any:
    table = sparse.csr_array(X, dtype=np.float64)
    inputs.numbers("X", table.data)
    return table


def _pair(first: ArrayLike, second: ArrayLike) -> tuple[Floats, Floats]:
    a, b = _basis("first", first), _basis("second", second)
    if len(a) != len(b):
        raise ValueError(f"both subspaces must lie in one space, got {len(a)} and {len(b)} columns")
    return a, b


def _basis(name: str, rows: ArrayLike) -> Floats:
    """An orthonormal basis of the span of the rows, as columns."""
    matrix = inputs.numbers(name, rows, dimensions=(2,))
    k, d = matrix.shape
    if not 1 <= k <= d:
        raise ValueError(f"{name} must have between 1 and {d} rows, one for each direction, got {k}")
    q, r, _ = qr(matrix.T, mode="economic", pivoting=True)
    diagonal = np.abs(np.diag(r))
    if diagonal[-1] <= 1e-12 * diagonal[0]:
        raise ValueError(f"{name} must have linearly independent rows")
    return np.asarray(q)
