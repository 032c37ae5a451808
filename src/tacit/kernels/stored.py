"""Sums over the rows of a sparse table, as whole numbers, with the bits of the dense table's (`tacit.kernels.exact`).

A row is the entries that are stored, and one row `zero` of what all others are: z = zero + e, where e has the stored
entries alone. So a margin is zero.w plus a few terms, and a sum of z z^T over m rows with s = sum e is

    m zero zero^T + zero s^T + s zero^T + sum e e^T,

in which no row is ever as long as the table is wide. All of it is whole numbers of steps. Entries of e are below 2^22,
so a sum over `LONG_BLOCK` rows stays below 2^60; the total is what it is for dense rows, below 2^57.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit._types import Floats, Integers
from tacit.kernels.any_order import add_product_in_any_order
from tacit.kernels.exact import UNIT, Rule, coefficients, kernel
from tacit.kernels.given import Block

_TILE = 4_096  # rows whose entries are read again from near memory


class Zeros(NamedTuple):
    """Sparse rows of a table: what is stored, in the order of columns, and what all other entries are."""

    data: NDArray[np.float32]
    indices: NDArray[np.int32]
    indptr: NDArray[np.int64]
    zero: NDArray[np.float32]


@kernel
def sparse_norms(rows: Zeros, bias: float, out: Floats) -> None:
    """`dense_norms` of a sparse table: the same bits for up to 2,048 columns, where both sums are exact."""
    data, indices, indptr, zero = rows
    whole = bias * bias
    for entry in zero:
        whole += np.float64(entry) * np.float64(entry)
    for i in range(len(out)):
        left, own = whole, 0.0
        for p in range(indptr[i], indptr[i + 1]):
            absent, entry = np.float64(zero[indices[p]]), np.float64(data[p])
            left -= absent * absent
            own += entry * entry
        out[i] = math.sqrt(left + own)


@kernel
def sparse_gradient(block: Block[Zeros], w: Floats, rule: Rule) -> Integers:
    """`dense_gradient` of a sparse table; what a row's entries differ by from `zero` is added up as whole numbers."""
    (data, indices, indptr, zero), bias, targets, norms = block
    n, d = len(indptr) - 1, len(zero)
    out, absent, held = np.zeros(d + 1, dtype=np.int64), np.empty(d, dtype=np.int64), np.empty(n)
    wide, base = zero.astype(np.float64), bias * w[d]
    for j in range(d):
        base += wide[j] * w[j]
        absent[j] = np.int64(wide[j] * UNIT)
    for i in range(n):
        margin = base
        for p in range(indptr[i], indptr[i + 1]):
            at = np.uint32(indices[p])  # which is not below zero
            margin = add_product_in_any_order(margin, np.float64(data[p]) - wide[at], w[at])
        held[i] = margin
    coefficients(held, targets, norms, rule)
    total = 0
    for i in range(n):
        factor = int(held[i])
        total += factor
        for p in range(indptr[i], indptr[i + 1]):
            at = np.uint32(indices[p])
            out[at] += factor * (np.int64(np.float64(data[p]) * UNIT) - absent[at])
    for j in range(d):
        out[j] += total * absent[j]
    out[d] = total * np.int64(bias * UNIT)
    return out


@kernel
def filled(rows: Zeros, places: Integers) -> Floats:
    """Some rows of a sparse table, dense."""
    data, indices, indptr, zero = rows
    out = np.empty((len(places), len(zero)))
    for i in range(len(out)):
        for j in range(len(zero)):
            out[i, j] = zero[j]
        for p in range(indptr[places[i]], indptr[places[i] + 1]):
            out[i, indices[p]] = data[p]
    return out


@kernel
def add_short(rows: Zeros, unit: float, limit: float, out: Integers) -> Integers:
    """Add the rows that `tacit.kernels.centred` does not shorten to the limit, in steps; the places of the others."""
    data, indices, indptr, zero = rows
    n, d = len(indptr) - 1, len(zero)
    norms, longer, count = np.empty(n), np.empty(n, dtype=np.int64), 0
    sparse_norms(rows, 0.0, norms)
    for i in range(n):
        if norms[i] * unit + 0.5 * math.sqrt(d) > limit:
            longer[count] = i
            count += 1
            continue
        for p in range(indptr[i], indptr[i + 1]):
            at = indices[p]
            out[at] += np.int64((np.float64(data[p]) - np.float64(zero[at])) * unit)
    for j in range(d):
        out[j] += (n - count) * np.int64(np.float64(zero[j]) * unit)
    return longer[:count]


@kernel
def add_outer(rows: Zeros, bias: float, places: Integers, factor: float, out: Integers) -> None:
    """Add the sum of z z^T over some rows, with their intercept entry, times a factor, to a symmetric matrix.

    The factor is at most 1. Entries times it are in steps, each towards zero, as `tacit.kernels.exact.scaled` has them.
    """
    d, units = len(rows.zero), factor * UNIT
    absent, total = np.empty(d + 1, dtype=np.int64), np.zeros(d + 1, dtype=np.int64)
    for j in range(d):
        absent[j] = np.int64(np.float64(rows.zero[j]) * units)
    absent[d] = np.int64(bias * units)
    for first in range(0, len(places), _TILE):
        _add_products(rows, places[first : first + _TILE], units, absent, total, out)
    for j in range(d + 1):
        whole = len(places) * absent[j] + total[j]
        for k in range(j, d + 1):
            out[j, k] += whole * absent[k] + absent[j] * total[k]
            out[k, j] = out[j, k]


@kernel
def _add_products(
    rows: Zeros, places: Integers, units: float, absent: Integers, total: Integers, out: Integers
) -> None:
    """Add e to `total`, and the upper half of e e^T to `out`, of which one line is written at a time."""
    data, indices, indptr, zero = rows
    d, size = len(zero), 0
    starts = np.zeros(d + 1, dtype=np.int64)
    for i in places:
        size += indptr[i + 1] - indptr[i]
        for p in range(indptr[i], indptr[i + 1]):
            starts[indices[p] + 1] += 1
    for j in range(d):
        starts[j + 1] += starts[j]
    entries, columns = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.uint32)
    at, end = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)  # of the entries of each column
    k = 0
    for i in places:
        stop = k + indptr[i + 1] - indptr[i]
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            entries[k], columns[k] = np.int64(np.float64(data[p]) * units) - absent[j], j
            total[j] += entries[k]
            at[starts[j]], end[starts[j]] = k, stop
            starts[j] += 1
            k += 1
    for j in range(d):
        line = out[j]
        for k in range(starts[j - 1] if j else 0, starts[j]):  # each start has moved to the next one
            entry = entries[at[k]]
            for q in range(at[k], end[k]):
                line[columns[q]] += entry * entries[q]
