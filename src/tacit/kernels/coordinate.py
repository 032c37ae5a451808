"""Proximal coordinate descent: one pass over some coordinates, with noise on every partial derivative.

A coordinate costs one column. The margins of all rows are kept up to date, so that the derivative in weight j is a sum
over column j alone; after the step the column moves the margins. For dense tables that move is done together with the
sum of the next coordinate, so that margins are read and written once.

A row's margin and derivative are functions of that row and of released numbers. Tables, and in which order sums over
their columns are taken, are those of `tacit.kernels.columns`.

For the squared loss the margins come less the targets, which are then not read: one array less to go through.

Bounds. The derivative of row i is clipped to `limits[0, i]`, for the intercept to `limits[1, i]`, and what it adds to a
sum to the cap of the coordinate, which may be infinite. What is not a number adds nothing.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit._types import Floats, Integers, Table
from tacit.kernels.any_order import add_in_any_order
from tacit.kernels.columns import moved, sparse_move
from tacit.kernels.rows import BLOCK
from tacit.kernels.sigmoid import falling_sigmoid
from tacit.privacy.noise.kernels import release_one
from tacit.problems.compiled import kernel
from tacit.problems.penalty import Penalty, separable_prox
from tacit.problems.slopes import IS_SQUARED, IS_SQUARED_HINGE, slope

CAP, UNIT, STEP, L1, L2, LOW, HIGH, MEAN = range(8)
"""The columns of a table of rules: what concerns each coordinate."""


def rules(caps: Floats, units: Floats, steps: Floats, penalty: Penalty, n: int) -> Floats:
    """The table of rules, a row for each coordinate; a released sum becomes a mean over the n rows that are public."""
    asked = penalty.l1, penalty.l2, penalty.low, penalty.high
    return np.column_stack(np.broadcast_arrays(caps, units, steps, *asked, units / n))


def _sums(capped: bool) -> Any:
    """The sum over a column, for each loss, after margins have moved by `change` times the column before.

    One compiled form caps what a row adds and leaves out what is not a number; the other is faster.
    """

    @kernel
    def squared(before: Table, change: float, residuals: Floats, column: Table, limits: Floats, cap: float) -> float:
        total = 0.0
        for i in range(len(column)):
            residual = residuals[i] + change * before[i]
            residuals[i] = residual
            limit = limits[i]
            product = min(max(residual, -limit), limit) * column[i]
            if capped:
                product = min(max(product, -cap), cap)
                product = product if product == product else 0.0
            total = add_in_any_order(total, product)
        return total

    @kernel
    def squared_hinge(
        before: Table, change: float, margins: Floats, targets: Floats, column: Table, limits: Floats, cap: float
    ) -> float:
        total = 0.0
        for i in range(len(column)):
            margin = margins[i] + change * before[i]
            margins[i] = margin
            limit = limits[i]
            steep = -2.0 * targets[i] * max(1.0 - targets[i] * margin, 0.0)
            product = min(max(steep, -limit), limit) * column[i]
            if capped:
                product = min(max(product, -cap), cap)
                product = product if product == product else 0.0
            total = add_in_any_order(total, product)
        return total

    @kernel
    def logistic(
        before: Table,
        change: float,
        margins: Floats,
        targets: Floats,
        column: Table,
        limits: Floats,
        cap: float,
        room: NDArray[np.float32],
    ) -> float:
        for i in range(len(column)):
            margin = margins[i] + change * before[i]
            margins[i] = margin
            room[i] = np.float32(targets[i] * margin)
        falling_sigmoid(room)
        total = 0.0
        for i in range(len(column)):
            product = min(float(room[i]), limits[i]) * (-targets[i] * column[i])
            if capped:
                product = min(max(product, -cap), cap)
                product = product if product == product else 0.0
            total = add_in_any_order(total, product)
        return total

    @kernel
    def column_sum(
        before: Table,
        change: float,
        margins: Floats,
        targets: Floats,
        column: Table,
        limits: Floats,
        cap: float,
        loss: int,
        room: NDArray[np.float32],
    ) -> float:
        total = 0.0
        n = len(column)
        for start in range(0, n, BLOCK):
            end = min(start + BLOCK, n)
            b, m, y = before[start:end], margins[start:end], targets[start:end]
            x, bounds = column[start:end], limits[start:end]
            if loss == IS_SQUARED:
                total += squared(b, change, m, x, bounds, cap)
            elif loss == IS_SQUARED_HINGE:
                total += squared_hinge(b, change, m, y, x, bounds, cap)
            else:
                total += logistic(b, change, m, y, x, bounds, cap, room[: end - start])
        return total

    return column_sum


_free_sum, _capped_sum = _sums(capped=False), _sums(capped=True)


@kernel
def _dense_sum(
    before: Table,
    change: float,
    margins: Floats,
    targets: Floats,
    column: Table,
    limits: Floats,
    cap: float,
    loss: int,
    room: NDArray[np.float32],
) -> float:
    """Move the margins by `change` times the column before, then sum over this one."""
    if cap == np.inf:
        total = _free_sum(before, change, margins, targets, column, limits, cap, loss, room)
        if total == total:
            return total
        change = 0.0  # the margins have moved; a row that is not a number is left out below
    return _capped_sum(before, change, margins, targets, column, limits, cap, loss, room)


@kernel
def _step(
    j: int, total: float, rules: Floats, noise: int, grid_step: float, bound: float, w: Floats
) -> tuple[float, float]:
    """Release the derivative in weight j, move the weight; returns what was released, and by how much it moved."""
    step = rules[j, STEP]
    released = release_one(total / rules[j, UNIT], noise, grid_step, bound)
    free = w[j] - step * (released * rules[j, MEAN])
    moved = separable_prox(free, step, rules[j, L1], rules[j, L2], rules[j, LOW], rules[j, HIGH])
    change = moved - w[j]
    w[j] = moved
    return released, change


@kernel
def dense_pass(
    columns: Table,
    ones: Table,
    targets: Floats,
    limits: Floats,
    loss: int,
    rules: Floats,
    order: Integers,
    noise: Integers,
    grid_step: float,
    bound: float,
    w: Floats,
    margins: Floats,
    released: Floats,
    changes: Floats,
) -> None:
    """One update for each coordinate of `order`, in that order; moves `w` and `margins`.

    Row j of `rules` has what concerns coordinate j, in the columns CAP to MEAN. The sum of its derivatives over its
    unit is released on a grid: noise[k] counts grid steps, and values are clipped to `bound`. Written down for each
    update: what was `released`, and by how much the weight moved.
    """
    d = len(columns)
    room = np.empty(min(BLOCK, len(margins)), dtype=np.float32)
    before, change = ones, 0.0
    for k in range(len(order)):
        j = order[k]
        column = columns[j] if j < d else ones
        own = limits[0] if j < d else limits[1]
        total = _dense_sum(before, change, margins, targets, column, own, rules[j, CAP], loss, room)
        released[k], change = _step(j, total, rules, noise[k], grid_step, bound, w)
        changes[k] = change
        before = column
    moved(before, change, margins)


@kernel
def _slope_of(i: int, margins: Floats, targets: Floats, loss: int) -> float:
    """The slope of row i, whose margin comes less the target for the squared loss."""
    return slope(margins[i], 0.0 if loss == IS_SQUARED else targets[i], loss, 1.0)


@kernel
def _sparse_sum(
    data: Floats, rows: Integers, margins: Floats, targets: Floats, limits: Floats, cap: float, loss: int
) -> float:
    total = 0.0
    for p in range(len(data)):
        i = rows[p]
        limit = limits[i]
        product = min(max(_slope_of(i, margins, targets, loss), -limit), limit) * data[p]
        product = min(max(product, -cap), cap)
        total += product if product == product else 0.0
    return total


@kernel
def sparse_pass(
    data: Floats,
    indices: Integers,
    indptr: Integers,
    ones: Table,
    targets: Floats,
    limits: Floats,
    loss: int,
    rules: Floats,
    order: Integers,
    noise: Integers,
    grid_step: float,
    bound: float,
    w: Floats,
    margins: Floats,
    released: Floats,
    changes: Floats,
) -> None:
    """`dense_pass` for the three arrays of a CSC table."""
    d = len(indptr) - 1
    room = np.empty(min(BLOCK, len(margins)), dtype=np.float32)
    for k in range(len(order)):
        j = order[k]
        cap = rules[j, CAP]
        if j < d:
            part = slice(indptr[j], indptr[j + 1])
            total = _sparse_sum(data[part], indices[part], margins, targets, limits[0], cap, loss)
        else:
            total = _dense_sum(ones, 0.0, margins, targets, ones, limits[1], cap, loss, room)
        released[k], change = _step(j, total, rules, noise[k], grid_step, bound, w)
        changes[k] = change
        sparse_move(data, indices, indptr, ones, j, change, margins)


@kernel
def slopes(margins: Floats, targets: Floats, limits: Floats, loss: int, out: Floats) -> None:
    """The derivative of each row's loss in its margin, clipped to its limit; what is not a number becomes zero."""
    for i in range(len(margins)):
        bounded = min(max(_slope_of(i, margins, targets, loss), -limits[i]), limits[i])
        out[i] = bounded if bounded == bounded else 0.0
