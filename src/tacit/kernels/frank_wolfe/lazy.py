"""Frank-Wolfe on the squared loss of sparse rows: a gradient that is linear in the scale of the weights."""

import numpy as np

from tacit._types import Flags, Floats, Integers
from tacit.kernels.frank_wolfe.columns import Entries, Listed, entry
from tacit.kernels.frank_wolfe.follow import Notes, sum_columns
from tacit.kernels.frank_wolfe.rows import clipped
from tacit.problems.compiled import kernel


@kernel
def lazy_step(
    t: int, j: int, gain: float, listed: Listed, unit: float, margins: Floats, rates: Integers, notes: Notes
) -> int:
    """Add `gain` to weight j: what rows add to the sums of margin times entry, `rates`, changes.

    Margins and weights are over a common scale, which is kept by the caller. The places of rates that changed are left
    in `noted`; returns how many. Where a column has many rows, the sums are taken anew by columns, which are the same
    whole numbers.
    """
    entries, (bits, starts, rows, values) = listed
    data, indices, indptr, bound = entries
    noted, marks = notes
    first, last = starts[j >> bits], starts[(j >> bits) + 1]
    count, mask = 0, (1 << bits) - 1
    held = (last - first >> bits) * (len(rows) / len(margins))  # entries of its rows, were rows alike
    anew = len(values) > 0 and 2 * held > len(rows) + len(rates)
    for p in range(first, last):
        if rows[p] & mask != j & mask:
            continue
        i = rows[p] >> bits
        old = unit * margins[i]
        margins[i] += gain * (clipped(np.float64(values[p]), bound) if len(values) > 0 else entry(i, j, entries))
        if anew:
            continue
        new = unit * margins[i]
        for k in range(indptr[i], indptr[i + 1]):
            x = clipped(np.float64(data[k]), bound)
            change = int(new * x) - int(old * x)
            if change != 0:
                rates[indices[k]] += change
                if marks[indices[k]] != t:
                    marks[indices[k]] = t
                    noted[count] = indices[k]
                    count += 1
    if anew:
        sum_columns(listed[1], bound, unit, margins, rates)
        for k in range(len(rates)):
            noted[k] = k
        return len(rates)
    return count


@kernel
def lazy_rates(entries: Entries, present: Flags, unit: float, margins: Floats, rates: Integers) -> None:
    """The sums of margin times entry, in whole numbers, from all rows."""
    data, indices, indptr, bound = entries
    rates[:] = 0
    for i in range(len(present)):
        if present[i] and margins[i] != 0.0:
            weight = unit * margins[i]
            for p in range(indptr[i], indptr[i + 1]):
                rates[indices[p]] += int(weight * clipped(np.float64(data[p]), bound))
