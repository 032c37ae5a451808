"""A whole gradient that follows the slopes of sparse rows: what a row adds now, less what it added before.

Several ways lead to the same whole numbers: row by row, for the rows whose slope changed, or anew from all rows. Which
one is taken changes the time alone, as sums of whole numbers are exact: so it may follow from the data.

What belongs together comes in plain tuples, in this order:
changes    moved, were: the rows whose slope changed in this step, and their slopes before
told       scores, held, notes: the whole gradient, and where it is told what changed
held       the memory of a `Buckets`
notes      noted, marks: places of the scores that changed, and when each was noted last
"""

import numpy as np

from tacit._types import Floats, Integers, Places
from tacit.kernels.frank_wolfe.columns import Columns, Entries, Listed
from tacit.kernels.frank_wolfe.rows import clipped
from tacit.kernels.prefetch import prefetch
from tacit.privacy.noise.vertices import Held, buckets_in, promote, whole_octave
from tacit.problems.compiled import kernel

Notes = tuple[Integers, Places]
Told = tuple[Integers, Held, Notes]
Changes = tuple[Places, Floats]

IN_BUCKETS, NOTED = 0, 1  # what becomes of a score that changed
_NEAR = 2**18  # scores, that fit a fast memory: they need not be asked for


@kernel
def other_octave(one: int, other: int) -> bool:
    """True where two scores have different whole octaves, and where their signs differ; false for nearly all others.

    Octaves end with a whole multiple of 2^32 above zero, and begin with one below.
    """
    return ((one ^ other) | ((one - 1) ^ (other - 1))) >> 32 != 0


@kernel
def put_right(
    t: int, count: int, kind: int, entries: Entries, unit: float, slopes: Floats, changes: Changes, told: Told
) -> int:
    """Row by row, for the first `count` changes: scores go to their buckets at once, or their places to `noted`.

    Returns how many places are there.
    """
    data, indices, indptr, bound = entries
    moved, were = changes
    scores, (standing, at_least), (noted, marks) = told
    buckets = buckets_in(standing, at_least)
    far, noticed = len(scores) > _NEAR, 0
    for m in range(count):
        i = moved[m]
        if far:
            for k in range(indptr[i], indptr[i + 1]):
                prefetch(scores, indices[k])
        old, new = unit * were[m], unit * slopes[i]
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            x = clipped(np.float64(data[k]), bound)
            change = int(new * x) - int(old * x)
            column = np.uint64(indices[k])
            was = scores[column]
            now = was + change
            scores[column] = now
            if kind == IN_BUCKETS:
                # A bucket is never below its score, so most need not be looked up.
                if other_octave(was, now) and whole_octave(now) > whole_octave(was):
                    promote(indices[k], now, buckets)
            elif change != 0 and marks[column] != t:
                marks[column] = t
                noted[noticed] = column
                noticed += 1
    return noticed


@kernel
def add_rows(count: int, entries: Entries, unit: float, slopes: Floats, changes: Changes, scores: Integers) -> None:
    """The same for the scores alone."""
    data, indices, indptr, bound = entries
    moved, were = changes
    for m in range(count):
        i = moved[m]
        old, new = unit * were[m], unit * slopes[i]
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            x = clipped(np.float64(data[k]), bound)
            scores[np.uint64(indices[k])] += int(new * x) - int(old * x)


@kernel
def sum_rows(entries: Entries, unit: float, slopes: Floats, scores: Integers) -> None:
    """The whole gradient from the rows; those that are absent have slopes of zero."""
    data, indices, indptr, bound = entries
    scores[:] = 0
    for i in range(len(slopes)):
        weight = unit * slopes[i]
        if weight != 0.0:
            for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
                scores[np.uint64(indices[k])] += int(weight * clipped(np.float64(data[k]), bound))


@kernel
def sum_columns(columns: Columns, bound: float, unit: float, slopes: Floats, scores: Integers) -> None:
    """The same from columns that have their values: each sum is written once.

    Places are unsigned here and in all loops over entries: a compiler that knows that none is negative makes them up to
    twice as fast.
    """
    bits, starts, rows, values = columns
    weights = np.empty(len(slopes))
    for i in range(len(slopes)):
        weights[i] = unit * slopes[i]
    if bits == 0:
        for j in range(len(scores)):
            total = 0
            for p in range(np.uint64(starts[j]), np.uint64(starts[j + 1])):
                total += int(weights[np.uint64(rows[p])] * clipped(np.float64(values[p]), bound))
            scores[j] = total
        return
    mask, sums = (1 << bits) - 1, np.empty(1 << bits, dtype=np.int64)
    for run in range(len(starts) - 1):
        sums[:] = 0
        for p in range(np.uint64(starts[run]), np.uint64(starts[run + 1])):
            weight = weights[np.uint64(rows[p] >> bits)]
            sums[np.uint64(rows[p] & mask)] += int(weight * clipped(np.float64(values[p]), bound))
        first = run << bits
        for k in range(min(mask + 1, len(scores) - first)):
            scores[first + k] = sums[k]


@kernel
def tell_all(kind: int, told: Told) -> int:
    """Put every score right in its bucket, or all places into `noted`; returns how many are there."""
    scores, (standing, at_least), (noted, _) = told
    if kind == NOTED:
        for j in range(len(scores)):
            noted[j] = j
        return len(scores)
    buckets = buckets_in(standing, at_least)
    for j in range(len(scores)):
        if whole_octave(scores[j]) > buckets.octave[j]:
            promote(j, scores[j], buckets)
    return 0


@kernel
def follow(
    t: int,
    changed: tuple[int, int],
    kind: int,
    listed: Listed,
    unit: float,
    slopes: Floats,
    changes: Changes,
    told: Told,
) -> int:
    """Bring the whole gradient up to date, in the cheapest way: `changed` slopes, of rows with that many entries.

    To put an entry right takes three times as long as to read it, and a part of that goes into looking after its score.
    """
    entries, columns = listed
    scores, rows, values = told[0], columns[2], columns[3]
    count, held = changed
    if 3 * held > len(rows) + len(scores):
        if len(values) > 0:
            sum_columns(columns, entries[3], unit, slopes, scores)
        else:
            sum_rows(entries, unit, slopes, scores)
        return tell_all(kind, told)
    if held > len(scores):
        add_rows(count, entries, unit, slopes, changes, scores)
        return tell_all(kind, told)
    return put_right(t, count, kind, entries, unit, slopes, changes, told)
