"""Proximal coordinate descent: one pass over some coordinates, with noise on every partial derivative.

A coordinate costs one column. The margins of all rows are kept up to date, so that the derivative in weight j is a sum
over column j alone; after the step the column moves the margins. For dense tables that move is done together with the
sum of the next coordinate, so that margins are read and written once.

A row's margin and derivative are functions of that row and of released numbers. Tables, and in which order sums over
their columns are taken, are those of `tacit.kernels.columns`.

For the squared loss the margins come less the targets, which are then not read: one array less to go through. For the
logistic loss labels and limits are in single precision, as slopes are.

Bounds. The derivative of row i is clipped to `limits[0, i]`, for the intercept to `limits[1, i]`, and what it adds to a
sum to the cap of the coordinate, which may be infinite. What is not a number adds nothing.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit._types import Floats, Integers, Places, Table
from tacit.kernels.any_order import add_in_any_order
from tacit.kernels.columns import moved, sparse_move
from tacit.kernels.given import Csc, Noise
from tacit.kernels.rows import BLOCK
from tacit.kernels.sigmoid import falling_sigmoid
from tacit.privacy.noise.kernels import release_one
from tacit.problems.compiled import kernel
from tacit.problems.penalty import Penalty, separable_prox
from tacit.problems.slopes import IS_SQUARED, IS_SQUARED_HINGE, slope

CAP, UNIT, STEP, L1, L2, LOW, HIGH, MEAN = range(8)
"""The columns of a table of rules: what concerns each coordinate."""

_LONG = 8 * BLOCK  # rows whose slopes are found at a time: vector code takes a while to start


class Slopes(NamedTuple):
    """What the clipped slopes of all rows come from: the derivatives of their losses in their margins."""

    margins: Floats  # less the targets, for the squared loss
    targets: Table
    limits: Table  # of shape (2, n): for the weights of features, and for the intercept; or one of the two
    loss: int


class Written(NamedTuple):
    """What a pass writes down of each update: the derivative released, and by how much the weight moved."""

    released: Floats
    changes: Floats


def rules(caps: Floats, units: Floats, steps: Floats, penalty: Penalty, n: int) -> Floats:
    """The table of rules, a row for each coordinate; a released sum becomes a mean over the n rows that are public."""
    asked = penalty.l1, penalty.l2, penalty.low, penalty.high
    return np.column_stack(np.broadcast_arrays(caps, units, steps, *asked, units / n))


@kernel
def _part(of: Slopes, start: int, end: int) -> Slopes:
    """Those of some rows."""
    return Slopes(of.margins[start:end], of.targets[start:end], of.limits[start:end], of.loss)


@kernel
def _within(value: float, limit: float) -> float:
    """The value within [-limit, limit]; 0 where it is not a number."""
    bounded = min(max(value, -limit), limit)
    return bounded if bounded == bounded else 0.0


def _sums(capped: bool) -> Any:
    """The sum over a column, after margins have moved by `change` times the column before.

    One compiled form caps what a row adds and leaves out what is not a number; the other is faster.
    """

    def plain(loss: int) -> Any:
        @kernel
        def plain_sum(before: Table, change: float, column: Table, of: Slopes, cap: float) -> float:
            margins, targets, limits, _ = of
            total = 0.0
            for i in range(len(column)):
                margin = margins[i] + change * before[i]
                margins[i] = margin
                y, limit = targets[i], limits[i]
                steep = margin if loss == IS_SQUARED else -2.0 * y * max(1.0 - y * margin, 0.0)
                product = min(max(steep, -limit), limit) * column[i]
                total = add_in_any_order(total, _within(product, cap) if capped else product)
            return total

        return plain_sum

    squared, squared_hinge = plain(IS_SQUARED), plain(IS_SQUARED_HINGE)

    @kernel
    def fall(before: Table, change: float, of: Slopes, room: NDArray[np.float32]) -> None:
        margins, targets, _, _ = of
        for i in range(len(room)):
            margin = margins[i] + change * before[i]
            margins[i] = margin
            room[i] = np.float32(margin) * np.float32(targets[i])
        falling_sigmoid(room)

    @kernel
    def logistic_sum(column: Table, of: Slopes, cap: float, room: NDArray[np.float32]) -> float:
        _, targets, limits, _ = of
        total = 0.0
        for i in range(len(column)):
            product = np.float64(min(room[i], limits[i])) * np.float64(-targets[i] * column[i])
            total = add_in_any_order(total, _within(product, cap) if capped else product)
        return total

    @kernel
    def column_sum(
        before: Table, change: float, column: Table, of: Slopes, cap: float, room: NDArray[np.float32]
    ) -> float:
        total, n = 0.0, len(column)
        for start in range(0, n, BLOCK):
            end = min(start + BLOCK, n)
            part = _part(of, start, end)
            if of.loss == IS_SQUARED:
                total += squared(before[start:end], change, column[start:end], part, cap)
            elif of.loss == IS_SQUARED_HINGE:
                total += squared_hinge(before[start:end], change, column[start:end], part, cap)
            else:
                at = start % _LONG
                if at == 0:
                    last = min(start + _LONG, n)
                    fall(before[start:last], change, _part(of, start, last), room[: last - start])
                total += logistic_sum(column[start:end], part, cap, room[at : at + end - start])
        return total

    return column_sum


_free_sum, _capped_sum = _sums(capped=False), _sums(capped=True)


@kernel
def _dense_sum(
    before: Table, change: float, column: Table, of: Slopes, own: int, cap: float, room: NDArray[np.float32]
) -> float:
    """Move the margins by `change` times the column before, then sum over this one, with the limits limits[own]."""
    these = Slopes(of.margins, of.targets, of.limits[own], of.loss)
    if cap == np.inf:
        total = _free_sum(before, change, column, these, cap, room)
        if total == total:
            return total
        change = 0.0  # the margins have moved; a row that is not a number is left out below
    return _capped_sum(before, change, column, these, cap, room)


@kernel
def _step(j: int, total: float, rules: Floats, k: int, noise: Noise, w: Floats) -> tuple[float, float]:
    """Release the derivative in weight j, move the weight; returns what was released, and by how much it moved."""
    step = rules[j, STEP]
    released = release_one(total / rules[j, UNIT], noise.counts[k], noise.step, noise.bound)
    free = w[j] - step * (released * rules[j, MEAN])
    moved = separable_prox(free, step, rules[j, L1], rules[j, L2], rules[j, LOW], rules[j, HIGH])
    change = moved - w[j]
    w[j] = moved
    return released, change


@kernel
def dense_pass(
    columns: Table, ones: Table, of: Slopes, rules: Floats, order: Integers, noise: Noise, w: Floats, out: Written
) -> None:
    """One update for each coordinate of `order`, in that order; moves `w` and the margins.

    Row j of `rules` has what concerns coordinate j, in the columns CAP to MEAN. Update k releases the sum of the
    derivatives over its unit, with the noise of place k.
    """
    d = len(columns)
    room = np.empty(min(_LONG, len(of.margins)), dtype=np.float32)
    before, change = ones, 0.0
    for k in range(len(order)):
        j = order[k]
        column, own = (columns[j], 0) if j < d else (ones, 1)
        total = _dense_sum(before, change, column, of, own, rules[j, CAP], room)
        out.released[k], change = _step(j, total, rules, k, noise, w)
        out.changes[k] = change
        before = column
    moved(before, change, of.margins)


@kernel
def _slope_of(i: int, margins: Floats, targets: Table, loss: int) -> float:
    """The slope of row i, whose margin comes less the target for the squared loss."""
    return slope(margins[i], 0.0 if loss == IS_SQUARED else targets[i], loss, 1.0)


@kernel
def _sparse_sum(data: Table, rows: Places, of: Slopes, cap: float) -> float:
    margins, targets, limits, loss = of
    own = limits[0]
    total = 0.0
    for p in range(len(data)):
        i = rows[p]
        limit = own[i]
        total += _within(min(max(_slope_of(i, margins, targets, loss), -limit), limit) * data[p], cap)
    return total


@kernel
def sparse_pass(
    columns: Csc, ones: Table, of: Slopes, rules: Floats, order: Integers, noise: Noise, w: Floats, out: Written
) -> None:
    """`dense_pass` for sparse columns."""
    data, indices, indptr = columns
    room = np.empty(min(_LONG, len(of.margins)), dtype=np.float32)
    for k in range(len(order)):
        j = order[k]
        if j < len(indptr) - 1:
            part = slice(indptr[j], indptr[j + 1])
            total = _sparse_sum(data[part], indices[part], of, rules[j, CAP])
        else:
            total = _dense_sum(ones, 0.0, ones, of, 1, rules[j, CAP], room)
        out.released[k], change = _step(j, total, rules, k, noise, w)
        out.changes[k] = change
        sparse_move(columns, ones, j, change, of.margins)


@kernel
def clipped_slopes(of: Slopes, own: int, out: Floats) -> None:
    """The slope of each row, clipped to limits[own]; what is not a number becomes zero."""
    margins, targets, limits, loss = of
    for i in range(len(margins)):
        out[i] = _within(_slope_of(i, margins, targets, loss), limits[own, i])
