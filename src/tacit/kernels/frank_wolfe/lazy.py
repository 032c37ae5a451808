"""Frank-Wolfe on the squared loss of sparse rows: a gradient that is linear in the scale of the weights."""

import numpy as np

from tacit._types import Flags, Floats, Integers
from tacit.kernels.frank_wolfe.columns import Entries, Listed, entry
from tacit.kernels.frank_wolfe.follow import Notes, sum_columns
from tacit.kernels.frank_wolfe.rows import clipped
from tacit.problems.compiled import kernel

_DEARER = 0.6  # of all entries: more of them are put right one by one in more time than all are summed by columns


@kernel
def lazy_step(
    t: int, j: int, gain: float, listed: Listed, unit: float, margins: Floats, rates: Integers, notes: Notes
) -> int:
    """Add `gain` to weight j: what rows add to the sums of margin times entry, `rates`, changes.

    Margins and weights are over a common scale, which is kept by the caller. The places of rates that changed are left
    in `noted`; returns how many. Where a column has many rows, the sums are taken anew by columns, which are the same
    whole numbers; where its rows have more entries than there are columns, all places are noted.
    """
    entries, (bits, starts, rows, values) = listed
    data, indices, indptr, bound = entries
    noted, marks = notes
    first, last = starts[j >> bits], starts[(j >> bits) + 1]
    count, mask = 0, (1 << bits) - 1
    held = (last - first >> bits) * (len(rows) / len(margins))  # entries of its rows, were rows alike
    anew = len(values) > 0 and held > _DEARER * len(rows) + len(rates)
    all_noted = anew or held > len(rates)
    for p in range(np.uint64(first), np.uint64(last)):
        if rows[p] & mask != j & mask:
            continue
        row = rows[p] >> bits
        i = np.uint64(row)
        old = unit * margins[i]
        margins[i] += gain * (clipped(np.float64(values[p]), bound) if len(values) > 0 else entry(row, j, entries))
        if anew:
            continue
        new = unit * margins[i]
        for k in range(np.uint64(indptr[row]), np.uint64(indptr[row + 1])):
            x, place = clipped(np.float64(data[k]), bound), np.uint64(indices[k])
            change = int(new * x) - int(old * x)
            rates[place] += change
            if not all_noted and change != 0 and marks[place] != t:
                marks[place] = t
                noted[count] = place
                count += 1
    if anew:
        sum_columns(listed[1], bound, unit, margins, rates)
    if not all_noted:
        return count
    for k in range(len(rates)):
        noted[k] = k
    return len(rates)


@kernel
def lazy_rates(entries: Entries, present: Flags, unit: float, margins: Floats, rates: Integers) -> None:
    """The sums of margin times entry, in whole numbers, from all rows."""
    data, indices, indptr, bound = entries
    rates[:] = 0
    for i in range(len(present)):
        if present[i] and margins[i] != 0.0:
            weight = unit * margins[i]
            for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
                rates[np.uint64(indices[p])] += int(weight * clipped(np.float64(data[p]), bound))
