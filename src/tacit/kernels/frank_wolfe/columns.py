"""Sparse rows by column, for Frank-Wolfe: which rows have an entry in a column, and sums over all rows.

Next to the CSR rows stand their rows by column: in runs of 2^bits columns, 2^bits i + (j mod 2^bits) for each entry
(i, j), rows in order, and the entry, where there is memory for it. A look at a column reads its run, which is short; a
sort into fewer runs than columns is several times as fast. Where there is none, it is looked up in the rows.

An entry stands by column as it does in its row, and is clipped in double precision whenever it is read. The bound
itself may have no place in single precision: kept there it would be rounded, and a row would add other numbers by
column than by row.

A row whose norm is not finite, or whose target is not, is absent: no column lists it, and its slope stays 0. Nor does a
column list entries that are zeros.

What belongs together comes in plain tuples, in this order:
listed     entries, columns
entries    data, indices, indptr, and the bound that values are clipped to
columns    bits, starts, rows, values: run r is rows[starts[r] : starts[r + 1]]; values is as long as rows, or empty
seen       present, slopes, scores, counts: what a first look at rows writes down
"""

import math

import numpy as np

from tacit._types import Flags, Floats, Integers, Places, Table
from tacit.compilation import compiled
from tacit.kernels.frank_wolfe.rows import Rule, clipped, slope_at
from tacit.problems.compiled import kernel

Entries = tuple[Table, Places, Places, float]
Columns = tuple[int, Places, Places, Table]
Listed = tuple[Entries, Columns]
Seen = tuple[Flags, Floats, Integers, Places]

# The two passes over all rows take ranges of rows, and sums of their own for each, so that threads can share them:
# whole numbers add up to the same in any order.
_free = compiled(nogil=True)


@_free  # type: ignore[misc]
def look_at_rows(first: int, last: int, entries: Entries, bits: int, rule: Rule, seen: Seen) -> bool:
    """Which of these rows are present, and their slopes at margin 0; False if the places of a row do not rise.

    What the rows add to the whole gradient goes to `scores`, and how many entries run r has to counts[r].
    """
    data, indices, indptr, bound = entries
    targets, unit = rule[0], rule[-1]
    present, slopes, scores, counts = seen
    for i in range(first, last):
        norm, before = 0.0, -1
        for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            norm += np.float64(data[p]) * np.float64(data[p])
            if indices[p] <= before:
                return False
            before = indices[p]
            counts[np.uint64(indices[p] >> bits)] += data[p] != 0.0
        present[i] = math.isfinite(norm) and math.isfinite(targets[i])
        slopes[i] = slope_at(i, 0.0, rule) if present[i] else 0.0
        weight = unit * slopes[i]
        # The second loop finds the row near at hand; both in one, with sums in two arrays, take much longer.
        for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            if present[i]:
                scores[np.uint64(indices[p])] += int(weight * clipped(np.float64(data[p]), bound))
            else:
                counts[indices[p] >> bits] -= data[p] != 0.0
    return True


@_free  # type: ignore[misc]
def list_rows(
    first: int, last: int, entries: Entries, bits: int, present: Flags, following: Integers, rows: Places, values: Table
) -> None:
    """Write the entries of these rows into their runs; following[r] is where the next one of run r goes."""
    data, indices, indptr, _ = entries
    mask = (1 << bits) - 1
    for i in range(first, last):
        if present[i]:
            for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
                if data[p] == 0.0:
                    continue
                run = np.uint64(indices[p] >> bits)
                at = np.uint64(following[run])
                rows[at] = (i << bits) | (indices[p] & mask)
                if len(values) > 0:
                    values[at] = data[p]
                following[run] += 1


@kernel
def entry(i: int, j: int, entries: Entries) -> float:
    """The entry of row i in column j, which it has, clipped."""
    data, indices, indptr, bound = entries
    low, high = indptr[i], indptr[i + 1]
    while low < high:
        middle = (low + high) >> 1
        if indices[middle] < j:
            low = middle + 1
        else:
            high = middle
    return clipped(np.float64(data[low]), bound)


@kernel
def sparse_margins(chosen: Integers, weights: Floats, listed: Listed, out: Floats) -> None:
    """Margins of rows for weights that are zero outside the chosen columns."""
    entries, (bits, starts, rows, values) = listed
    out[:] = 0.0
    mask = (1 << bits) - 1
    for k in range(len(chosen)):
        j = chosen[k]
        for p in range(starts[j >> bits], starts[(j >> bits) + 1]):
            if rows[p] & mask == j & mask:
                i = rows[p] >> bits
                x = clipped(np.float64(values[p]), entries[3]) if len(values) > 0 else entry(i, j, entries)
                out[i] += weights[k] * x
