"""Frank-Wolfe on an l1 ball, with a gradient in whole numbers that changes only where a step changes it.

Row i has entries x_ij, clipped to [-bound, bound], a margin m_i and the slope q_i of its loss there. It adds
trunc(unit q_i x_ij) to entry j of the whole gradient `scores`, so their sums are exact and do not depend on the order
of rows. A step shrinks all weights and adds to one of them. Only rows with an entry there are looked at; the margins of
all others shrink by a public factor, which is kept once for all of them: m_i is as of iteration `since[i]`, and
shrink[t] is the logarithm of the product of all factors up to t.

Due dates. A row's slope is left as it is until the shrinking could have moved it by `tolerance`: shrinking m to r m
moves it by at most curvature |m| (1 - r). The iteration at which that is passed is the row's due date, and the rows
of one due date form a doubly linked list. So between two looks a slope is off by at most `tolerance`. When a row is
looked at, and what it then adds, depends on that row and on public history alone.

A row whose norm is not finite, or whose target is not, is absent: no column lists it, and its slope stays 0.

Columns. Next to the CSR rows stand their rows by column: in runs of 2^bits columns, 2^bits i + (j mod 2^bits) for each
entry (i, j), rows in order. A look at a column reads its run, which is short; a sort into fewer runs than columns is
several times as fast, and values are looked up in the rows.
"""

import math

import numba
import numpy as np
from numpy.typing import NDArray

from tacit.kernels.gradient import LOGISTIC, SQUARED_HINGE
from tacit.privacy.noise.vertices import Buckets, promote, whole_octave
from tacit.problems.compiled import kernel
from tacit.problems.scalar import logistic_derivative, squared_hinge_derivative

Floats = NDArray[np.float64]
Table = NDArray[np.floating]
Integers = NDArray[np.int64]
Places = NDArray[np.integer]
Short = NDArray[np.int32]
Flags = NDArray[np.bool_]

IN_BUCKETS, NOTED = 0, 1  # what becomes of a score that changed
_BLOCK = 1024
MOST_UNITS = 2**43  # that a row may add to a score: a block of dense rows then adds up exactly in float64


@kernel
def slope_at(margin: float, target: float, loss: int, limit: float) -> float:
    """The derivative of the loss in the margin, clipped to [-limit, limit]."""
    if loss == LOGISTIC:
        slope = logistic_derivative(margin, target)
    elif loss == SQUARED_HINGE:
        slope = squared_hinge_derivative(margin, target)
    else:
        slope = margin - target
    return min(max(slope, -limit), limit)


@kernel
def _clipped(entry: float, bound: float) -> float:
    return min(max(entry, -bound), bound)


# Columns of sparse rows


# The three passes over all rows take ranges of rows or of columns, so that threads can share them: whole numbers add up
# to the same in any order, and a column is written by one thread.
_free = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=False)


@_free  # type: ignore[misc]
def look_at_rows(
    first: int,
    last: int,
    data: Table,
    indices: Places,
    indptr: Places,
    targets: Floats,
    offset: float,
    loss: int,
    limit: float,
    slopes: Floats,
    present: Flags,
) -> bool:
    """Which rows are present, and their slopes at margin 0. False if the places of a row do not rise."""
    for i in range(first, last):
        norm, before = 0.0, -1
        for p in range(indptr[i], indptr[i + 1]):
            norm += np.float64(data[p]) * np.float64(data[p])
            if indices[p] <= before:
                return False
            before = indices[p]
        present[i] = math.isfinite(norm) and math.isfinite(targets[i])
        slopes[i] = slope_at(offset, targets[i], loss, limit) if present[i] else 0.0
    return True


@kernel
def _not_below(column: int, i: int, indices: Places, indptr: Places) -> int:
    """The place of row i's first entry in this column or a later one."""
    low, high = indptr[i], indptr[i + 1]
    while low < high:
        middle = (low + high) >> 1
        if indices[middle] < column:
            low = middle + 1
        else:
            high = middle
    return low


@_free  # type: ignore[misc]
def count_columns(
    first: int,
    last: int,
    bits: int,
    data: Table,
    indices: Places,
    indptr: Places,
    bound: float,
    unit: float,
    slopes: Floats,
    present: Flags,
    scores: Integers,
    starts: Places,
) -> None:
    """The whole gradient of these runs of columns, and how many entries run r has, which goes to starts[r + 2]."""
    for i in range(len(present)):
        if present[i]:
            weight = unit * slopes[i]
            for p in range(_not_below(first << bits, i, indices, indptr), indptr[i + 1]):
                j = indices[p]
                run = j >> bits
                if run >= last:
                    break
                starts[run + 2] += 1
                scores[j] += int(weight * _clipped(data[p], bound))


@_free  # type: ignore[misc]
def list_rows(
    first: int, last: int, bits: int, indices: Places, indptr: Places, present: Flags, starts: Places, rows: Places
) -> None:
    """The entries of these runs of columns, one run after the other; run r is rows[starts[r] : starts[r + 1]].

    A counting sort without a second set of counters: starts[r + 1] is where the next entry of run r goes. It is called
    with starts[r + 1] the sum of the counts of all runs before r.
    """
    mask = (1 << bits) - 1
    for i in range(len(present)):
        if present[i]:
            for p in range(_not_below(first << bits, i, indices, indptr), indptr[i + 1]):
                j = indices[p]
                run = j >> bits
                if run >= last:
                    break
                at = starts[run + 1]
                rows[at] = (i << bits) | (j & mask)
                starts[run + 1] = at + 1


@kernel
def _entry(i: int, j: int, data: Table, indices: Places, indptr: Places) -> float:
    """The entry of row i in column j, which it has."""
    return np.float64(data[_not_below(j, i, indices, indptr)])


# Due dates


@kernel
def due_date(margin: float, t: int, shrink: Floats, curvature: float, tolerance: float) -> int:
    """The first iteration after t at which a slope could be off by more than the tolerance; 0 if there is none."""
    move = curvature * abs(margin)
    if not move > tolerance:
        return 0
    least = shrink[t] + math.log1p(-tolerance / move)
    low, high = t + 1, len(shrink)
    while low < high:
        middle = (low + high) >> 1
        if shrink[middle] < least:
            high = middle
        else:
            low = middle + 1
    return low if low < len(shrink) else 0


@kernel
def _unlink(i: int, due: Places, heads: Places, after: Places, before: Places) -> None:
    if due[i] == 0:
        return
    if before[i] >= 0:
        after[before[i]] = after[i]
    else:
        heads[due[i]] = after[i]
    if after[i] >= 0:
        before[after[i]] = before[i]
    due[i] = 0


@kernel
def _link(i: int, date: int, due: Places, heads: Places, after: Places, before: Places) -> None:
    due[i] = date
    if date == 0:
        return
    first = heads[date]
    after[i], before[i] = first, -1
    if first >= 0:
        before[first] = i
    heads[date] = i


# Steps on sparse rows


@kernel
def other_octave(one: int, other: int) -> bool:
    """True where two scores have different whole octaves, and where their signs differ; false for nearly all others.

    Octaves end with a whole multiple of 2^32 above zero, and begin with one below.
    """
    return ((one ^ other) | ((one - 1) ^ (other - 1))) >> 32 != 0


@kernel
def sparse_step(
    t: int,
    j: int,
    gain: float,
    data: Table,
    indices: Places,
    indptr: Places,
    bound: float,
    bits: int,
    starts: Places,
    rows: Places,
    targets: Floats,
    offset: float,
    loss: int,
    limit: float,
    curvature: float,
    tolerance: float,
    unit: float,
    shrink: Floats,
    margins: Floats,
    since: Places,
    slopes: Floats,
    due: Places,
    heads: Places,
    after: Places,
    before: Places,
    scores: Integers,
    order: Short,
    place: Short,
    octave: Short,
    at_least: Short,
    noted: Integers,
    marks: Places,
    kind: int,
) -> int:
    """Iteration t: shrink all weights, add `gain` to weight j, and bring the whole gradient up to date.

    Scores that changed are put right in `buckets` at once, or their places are left in `noted`; returns how many.
    """
    buckets = Buckets(order, place, octave, at_least)
    count = 0
    mask = (1 << bits) - 1
    p, end = starts[j >> bits], starts[(j >> bits) + 1]
    while True:
        # The rows of column j, then those that are due. One loop for both: a call for each row would cost as much as
        # what it does.
        while p < end and rows[p] & mask != j & mask:
            p += 1
        if p < end:
            i = rows[p] >> bits
            added = gain * _clipped(_entry(i, j, data, indices, indptr), bound)
            p += 1
        elif heads[t] >= 0:
            i = heads[t]
            added = 0.0
        else:
            return count
        _unlink(i, due, heads, after, before)
        margin = margins[i] * math.exp(shrink[t] - shrink[since[i]]) + added
        margins[i], since[i] = margin, t
        _link(i, due_date(margin, t, shrink, curvature, tolerance), due, heads, after, before)
        old, slopes[i] = unit * slopes[i], slope_at(margin + offset, targets[i], loss, limit)
        new = unit * slopes[i]
        for k in range(indptr[i], indptr[i + 1]):
            # What the row adds now, less what it added before.
            x = _clipped(data[k], bound)
            change = int(new * x) - int(old * x)
            column = indices[k]
            was = scores[column]
            now = was + change
            scores[column] = now
            if kind == IN_BUCKETS:
                # A bucket is never below its score, so most need not be looked up.
                if other_octave(was, now) and whole_octave(now) > whole_octave(was):
                    promote(column, now, buckets)
            elif change != 0 and marks[column] != t:
                marks[column] = t
                noted[count] = column
                count += 1


@kernel
def lazy_step(
    t: int,
    j: int,
    gain: float,
    data: Table,
    indices: Places,
    indptr: Places,
    bound: float,
    bits: int,
    starts: Places,
    rows: Places,
    unit: float,
    margins: Floats,
    rates: Integers,
    noted: Integers,
    marks: Places,
) -> int:
    """Add `gain` to weight j: what rows add to the sums of margin times entry, `rates`, changes.

    Margins and weights are over a common scale, which is kept by the caller. The places of rates that changed are left
    in `noted`; returns how many.
    """
    count, mask = 0, (1 << bits) - 1
    for p in range(starts[j >> bits], starts[(j >> bits) + 1]):
        if rows[p] & mask != j & mask:
            continue
        i = rows[p] >> bits
        x = _clipped(_entry(i, j, data, indices, indptr), bound)
        old = unit * margins[i]
        margins[i] += gain * x
        new = unit * margins[i]
        for k in range(indptr[i], indptr[i + 1]):
            x = _clipped(data[k], bound)
            change = int(new * x) - int(old * x)
            if change != 0:
                rates[indices[k]] += change
                if marks[indices[k]] != t:
                    marks[indices[k]] = t
                    noted[count] = indices[k]
                    count += 1
    return count


@kernel
def lazy_rates(
    data: Table,
    indices: Places,
    indptr: Places,
    bound: float,
    present: Flags,
    unit: float,
    margins: Floats,
    rates: Integers,
) -> None:
    """The sums of margin times entry, in whole numbers, from all rows."""
    rates[:] = 0
    for i in range(len(present)):
        if present[i] and margins[i] != 0.0:
            weight = unit * margins[i]
            for p in range(indptr[i], indptr[i + 1]):
                rates[indices[p]] += int(weight * _clipped(data[p], bound))


@kernel
def sparse_gradient(
    data: Table,
    indices: Places,
    indptr: Places,
    bound: float,
    present: Flags,
    targets: Floats,
    offset: float,
    loss: int,
    limit: float,
    unit: float,
    weights: Floats,
    scores: Integers,
) -> None:
    """The whole gradient at these weights, from all rows: what Algorithm 1 does in every iteration."""
    scores[:] = 0
    for i in range(len(present)):
        if present[i]:
            margin = offset
            for p in range(indptr[i], indptr[i + 1]):
                margin += weights[indices[p]] * _clipped(data[p], bound)
            weight = unit * slope_at(margin, targets[i], loss, limit)
            for p in range(indptr[i], indptr[i + 1]):
                scores[indices[p]] += int(weight * _clipped(data[p], bound))


@kernel
def sparse_margins(
    chosen: Integers,
    weights: Floats,
    data: Table,
    indices: Places,
    indptr: Places,
    bound: float,
    bits: int,
    starts: Places,
    rows: Places,
    out: Floats,
) -> None:
    """Margins of rows for weights that are zero outside the chosen columns."""
    out[:] = 0.0
    mask = (1 << bits) - 1
    for k in range(len(chosen)):
        j = chosen[k]
        for p in range(starts[j >> bits], starts[(j >> bits) + 1]):
            if rows[p] & mask == j & mask:
                i = rows[p] >> bits
                out[i] += weights[k] * _clipped(_entry(i, j, data, indices, indptr), bound)


# Dense rows


@kernel
def dense_presence(Z: Table, targets: Floats, present: Flags) -> None:
    """Which rows have finite numbers, and a finite norm."""
    for i in range(len(present)):
        norm = 0.0
        for j in range(Z.shape[1]):
            norm += np.float64(Z[i, j]) * np.float64(Z[i, j])
        present[i] = math.isfinite(norm) and math.isfinite(targets[i])


@kernel
def dense_move(j: int, keep: float, gain: float, Z: Table, bound: float, present: Flags, margins: Floats) -> None:
    """Shrink all weights, and add `gain` to weight j."""
    for i in range(len(margins)):
        if present[i]:
            margins[i] = keep * margins[i] + gain * _clipped(Z[i, j], bound)


@kernel
def dense_gradient(
    Z: Table,
    bound: float,
    present: Flags,
    targets: Floats,
    offset: float,
    loss: int,
    limit: float,
    unit: float,
    margins: Floats,
    scores: Integers,
) -> None:
    """The whole gradient at these margins. Whole numbers add up exactly in float64 within a block of rows."""
    d = Z.shape[1]
    block = np.empty(d)
    scores[:] = 0
    for start in range(0, len(present), _BLOCK):
        block[:] = 0.0
        for i in range(start, min(start + _BLOCK, len(present))):
            if present[i]:
                weight = unit * slope_at(margins[i] + offset, targets[i], loss, limit)
                for j in range(d):
                    block[j] += math.trunc(weight * min(max(np.float64(Z[i, j]), -bound), bound))
        for j in range(d):
            scores[j] += int(block[j])


@kernel
def dense_margins(chosen: Integers, weights: Floats, Z: Table, bound: float, present: Flags, out: Floats) -> None:
    """Margins of rows for weights that are zero outside the chosen columns."""
    out[:] = 0.0
    for i in range(len(out)):
        if present[i]:
            for k in range(len(chosen)):
                out[i] += weights[k] * _clipped(Z[i, chosen[k]], bound)


# The largest entry of the gradient


@kernel
def _swap(one: int, other: int, heap: Places, place: Places) -> None:
    heap[one], heap[other] = heap[other], heap[one]
    place[heap[one]], place[heap[other]] = one, other


@kernel
def _sink(at: int, heap: Places, place: Places, keys: Integers) -> None:
    while True:
        child = 2 * at + 1
        if child >= len(heap):
            return
        if child + 1 < len(heap) and keys[heap[child + 1]] > keys[heap[child]]:
            child += 1
        if keys[heap[child]] <= keys[heap[at]]:
            return
        _swap(at, child, heap, place)
        at = child


@kernel
def heapify(scores: Integers, heap: Places, place: Places, keys: Integers) -> None:
    """A binary heap of all coordinates by |score|, the largest on top."""
    for j in range(len(scores)):
        heap[j] = place[j] = j
        keys[j] = abs(scores[j])
    for at in range(len(heap) // 2 - 1, -1, -1):
        _sink(at, heap, place, keys)


@kernel
def lift(places: Integers, scores: Integers, heap: Places, place: Places, keys: Integers) -> None:
    """Bring up coordinates whose |score| rose. Those whose |score| fell keep their old key, which is too large."""
    for j in places:
        if abs(scores[j]) > keys[j]:
            keys[j] = abs(scores[j])
            at = place[j]
            while at > 0 and keys[heap[(at - 1) >> 1]] < keys[j]:
                _swap(at, (at - 1) >> 1, heap, place)
                at = (at - 1) >> 1


@kernel
def largest(scores: Integers, heap: Places, place: Places, keys: Integers) -> int:
    """The coordinate of the largest |score|.

    Keys are never too small. So once the key on top is true, it is at least as large as all others are.
    """
    while True:
        j = heap[0]
        if keys[j] == abs(scores[j]):
            return j
        keys[j] = abs(scores[j])
        _sink(0, heap, place, keys)
