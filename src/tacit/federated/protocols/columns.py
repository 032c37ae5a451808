"""Work on a party's columns, dense or CSC; sparse ones are not filled.

Rows are treated one by one, and an overflow leaves a row out: what a row contributes depends on that row alone.
"""

from typing import Any

import numpy as np
from scipy import sparse

from tacit._types import Floats
from tacit.blocks.table import is_sparse

_BLOCK = 1 << 14


def clipped(X: Any, bound: float) -> Any:
    """Entries clipped to [-bound, bound]."""
    if not is_sparse(X):
        return np.clip(X, -bound, bound)
    return sparse.csc_array((np.clip(X.data, -bound, bound), X.indices, X.indptr), shape=X.shape)


def clipped_products(X: Any, target: Floats, bound: float) -> Floats:
    """Every column's sum over rows of its entry, clipped to [-bound, bound], times the target, or each of several."""
    if is_sparse(X):
        return np.asarray(clipped(X, bound).T @ target, dtype=np.float64)
    blocks = (slice(start, start + _BLOCK) for start in range(0, len(X), _BLOCK))
    start = np.zeros((X.shape[1], *target.shape[1:]))
    return sum((np.clip(X[rows], -bound, bound).T @ target[rows] for rows in blocks), start)


def row_norms(X: Any) -> Floats:
    """The l2 norm of every row; infinite where its square is."""
    with np.errstate(over="ignore"):
        if is_sparse(X):
            return np.sqrt(np.bincount(X.indices, weights=np.square(X.data), minlength=X.shape[0]))
        return np.sqrt(np.einsum("ij,ij->i", X, X))


def unit_rows(X: Any, norm: float) -> Any:
    """Rows over `norm`, those longer than it over their own norm: none is longer than 1, but for rounding."""
    factors = 1.0 / np.maximum(row_norms(X), norm)
    if is_sparse(X):
        return sparse.csc_array((X.data * factors[X.indices], X.indices, X.indptr), shape=X.shape)
    return X * factors[:, None]


def add_column(total: Floats, X: Any, column: int, weight: float) -> None:
    """Add weight X[:, column], each row by itself."""
    if isinstance(X, np.ndarray):
        total += weight * X[:, column]
    else:
        part = slice(X.indptr[column], X.indptr[column + 1])
        total[X.indices[part]] += weight * X.data[part]


def images(X: Any, weights: Floats) -> Floats:
    """X w, each row by itself: a product by BLAS may round a row otherwise where another one is absent.

    Where a question may be anything, large weights that cancel would turn such a rounding into another sign.
    """
    total = np.zeros(X.shape[0])
    for column, weight in enumerate(weights.tolist()):
        add_column(total, X, column, weight)
    return total


def margins(X: Any, coef: Floats, features: Any, bound: float, norm: float) -> Floats:
    """The linear function of rows whose entries, and then norms over some columns, are clipped; or several."""
    within = clipped(X, bound)
    found = np.asarray(within @ coef.T, dtype=np.float64)
    if np.isfinite(norm):
        found.T[...] *= norm / np.maximum(row_norms(within[:, features]), norm)
    return found


def product(left: Any, right: Any) -> Floats:
    """left^T right, dense."""
    out = left.T @ right
    return np.asarray(out.toarray() if is_sparse(out) else out, dtype=np.float64)


def one_entry_per_row(X: Any) -> Floats:
    """One entry of each row: of the k that are not zero in row i, number i modulo k; 0 if there is none."""
    if not is_sparse(X):
        blocks = range(0, len(X), _BLOCK)
        return np.concatenate([_one_of_each(np.asarray(X[start : start + _BLOCK]), start) for start in blocks])
    by_row = sparse.csr_array(X, dtype=np.float64, copy=True)
    by_row.eliminate_zeros()
    counts = np.diff(by_row.indptr)
    filled = np.flatnonzero(counts)
    out = np.zeros(len(counts))
    out[filled] = by_row.data[by_row.indptr[filled] + filled % counts[filled]]
    return out


def _one_of_each(block: Floats, start: int) -> Floats:
    order = np.cumsum(block != 0.0, axis=1)
    number = np.arange(start, start + len(block)) % np.maximum(order[:, -1], 1)
    place = np.argmax(order == number[:, None] + 1, axis=1)
    return np.asarray(block[np.arange(len(block)), place], dtype=np.float64)
