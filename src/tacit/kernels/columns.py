"""A table by columns: margins from weights, norms of rows, sums over columns.

Rows and sums. No row touches another's. Sums over a dense column are taken in blocks of `BLOCK` rows, inside a block in
any order that the compiler likes, so the longest chain of additions is BLOCK + n / BLOCK (`sum_depth`); over a sparse
column in order.

A table comes as `columns`: of shape (d, n) and contiguous, or `Csc`. Coordinate d is the intercept, a column of ones.
"""

import numpy as np

from tacit._types import Floats, Table
from tacit.kernels.any_order import add_in_any_order, dot_in_any_order
from tacit.kernels.given import Csc, sparse_add, sparse_dot
from tacit.kernels.rows import BLOCK
from tacit.problems.compiled import kernel


@kernel
def moved(column: Table, change: float, margins: Floats) -> None:
    """Add `change` times the column."""
    for i in range(len(column)):
        margins[i] += change * column[i]


@kernel
def dense_margins(columns: Table, w: Floats, out: Floats) -> None:
    """The margin of each row."""
    out[:] = w[len(columns)]
    for j in range(len(columns)):
        if w[j] != 0.0:
            moved(columns[j], w[j], out)


@kernel
def sparse_margins(columns: Csc, w: Floats, out: Floats) -> None:
    """`dense_margins` for sparse columns."""
    data, indices, indptr = columns
    d = len(indptr) - 1
    out[:] = w[d]
    for j in range(d):
        sparse_add(j, data, indices, indptr, w[j], out)


@kernel
def dense_move(columns: Table, ones: Table, j: int, change: float, margins: Floats) -> None:
    """Move the margins by `change` times column j."""
    moved(columns[j] if j < len(columns) else ones, change, margins)


@kernel
def sparse_move(columns: Csc, ones: Table, j: int, change: float, margins: Floats) -> None:
    """`dense_move` for sparse columns."""
    data, indices, indptr = columns
    if j < len(indptr) - 1:
        sparse_add(j, data, indices, indptr, change, margins)
    else:
        moved(ones, change, margins)


@kernel
def _add_squares(column: Table, weight: float, out: Floats) -> None:
    for i in range(len(column)):
        entry = weight * column[i]
        out[i] += entry * entry


@kernel
def dense_square_norms(columns: Table, weights: Floats, out: Floats) -> None:
    """The sum over j of (weights[j] z_ij)^2, of each row, the intercept's entry last."""
    d = len(columns)
    out[:] = weights[d] * weights[d]
    for j in range(d):
        _add_squares(columns[j], weights[j], out)


@kernel
def sparse_square_norms(columns: Csc, weights: Floats, out: Floats) -> None:
    """`dense_square_norms` for sparse columns."""
    data, indices, indptr = columns
    d = len(indptr) - 1
    out[:] = weights[d] * weights[d]
    for j in range(d):
        for p in range(indptr[j], indptr[j + 1]):
            entry = weights[j] * data[p]
            out[indices[p]] += entry * entry


@kernel
def _raise_to(column: Table, weight: float, out: Floats) -> None:
    for i in range(len(column)):
        out[i] = max(out[i], abs(weight * column[i]))


@kernel
def dense_largest(columns: Table, weights: Floats, out: Floats) -> None:
    """The largest weights[j] |z_ij| of each row, the intercept's entry among them."""
    d = len(columns)
    out[:] = abs(weights[d])
    for j in range(d):
        _raise_to(columns[j], weights[j], out)


@kernel
def sparse_largest(columns: Csc, weights: Floats, out: Floats) -> None:
    """`dense_largest` for sparse columns."""
    data, indices, indptr = columns
    d = len(indptr) - 1
    out[:] = abs(weights[d])
    for j in range(d):
        for p in range(indptr[j], indptr[j + 1]):
            out[indices[p]] = max(out[indices[p]], abs(weights[j] * data[p]))


@kernel
def _sum_of_squares(column: Table, factors: Floats, largest: float) -> float:
    total = 0.0
    for i in range(len(column)):
        entry = np.float64(column[i])  # in numba, float() of a single-precision number stays one
        total = add_in_any_order(total, factors[i] * min(entry * entry, largest))
    return total


@kernel
def dense_squares(columns: Table, factors: Floats, largest: float, out: Floats) -> None:
    """out[j] = sum over rows of factors[i] min(z_ij^2, largest)."""
    for j in range(len(columns)):
        total = 0.0
        for start in range(0, len(factors), BLOCK):
            rows = slice(start, min(start + BLOCK, len(factors)))
            total += _sum_of_squares(columns[j][rows], factors[rows], largest)
        out[j] = total


@kernel
def sparse_squares(columns: Csc, factors: Floats, largest: float, out: Floats) -> None:
    """`dense_squares` for sparse columns."""
    data, indices, indptr = columns
    for j in range(len(indptr) - 1):
        total = 0.0
        for p in range(indptr[j], indptr[j + 1]):
            total += factors[indices[p]] * min(data[p] * data[p], largest)
        out[j] = total


@kernel
def dense_products(columns: Table, values: Floats, out: Floats) -> None:
    """out[j] = sum over rows of z_ij values[i], the intercept's entry last."""
    d, n = columns.shape
    for j in range(d):
        total = 0.0
        for start in range(0, n, BLOCK):
            rows = slice(start, min(start + BLOCK, n))
            total += dot_in_any_order(columns[j][rows], values[rows])
        out[j] = total
    out[d] = block_sum(values)


@kernel
def sparse_products(columns: Csc, values: Floats, out: Floats) -> None:
    """`dense_products` for sparse columns."""
    data, indices, indptr = columns
    d = len(indptr) - 1
    for j in range(d):
        out[j] = sparse_dot(j, data, indices, indptr, values, 0.0)
    out[d] = block_sum(values)


@kernel
def block_sum(values: Floats) -> float:
    """The sum, a block at a time."""
    total = 0.0
    for start in range(0, len(values), BLOCK):
        part = 0.0
        for i in range(start, min(start + BLOCK, len(values))):
            part += values[i]
        total += part
    return total
