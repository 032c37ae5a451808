"""Sums over rows as whole numbers: the same total in any order, for any blocks, on any number of threads.

Numbers on a grid are whole multiples of its step, and float64 computes with them without rounding as long as the sizes
of all terms of a sum add up to at most 2^53 steps. So a sum of such products may be taken in any order, by vector code,
by BLAS or by fused instructions: the bits are the same. What is on a grid, and how large it may be in steps:

    entries of rows             2^21    `GRID`: steps of 2^-19 for entries up to 4
    public weights              2^30    of all columns together: margins stay below 3 * 2^51 in every form below
    coefficients of rows        2^24    gradients of one output: 128 rows at a time are at most 2^52
                                2^21    products by BLAS, which takes up to `BLOCK` = 2^11 rows: 2^53
    rows, twice                 2^21    second moments: 2^42 for a product, 2^53 for a block

A coefficient is what a row's entries are multiplied by: the slope of its loss, times the weight of its class, times
what clips its gradient. It is a function of that row and of public numbers, by operations that are rounded alike
everywhere. It is rounded to the nearest step, and then clipped: to whole steps, downwards. Rows that are clipped or
weighted as a whole come back to a grid entry by entry, towards zero. So no bound on a row is exceeded by a rounding.

Every kernel returns the sum over one block in whole steps, below 2^57: 64 of them fit in an int64. Gradients of one
output become whole numbers every 128 rows, or after each one: at most 2^46 for a row, so 2^61 for `LONG_BLOCK`.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit._types import Floats, Integers, Table
from tacit.compilation import compiled
from tacit.kernels.ahead import ask_for
from tacit.kernels.any_order import add_product_in_any_order, dot_in_any_order
from tacit.kernels.given import Block
from tacit.problems.exponential import exp
from tacit.problems.slopes import IS_LOGISTIC, sigmoid, slope

BLOCK = 2_048
"""Rows of a block at most."""

LONG_BLOCK = 2**15
"""Rows of a block at most, for gradients of one output: a call for each short one would take as long as its rows."""

GRID = 19
"""Entries of bounded rows are whole multiples of 2^-19, and at most 4."""

FARTHEST = 4.0
ENTRIES, COEFFICIENTS, CLASS_COEFFICIENTS, WEIGHTS = 21, 24, 21, 30
"""The most that each of these may be, as powers of two, in steps of its grid."""

_TILE, _CLASS_TILE, _COLUMN_TILE = 64, 256, 128  # rows
_HELD = 2 * _TILE  # rows that are added up in double precision, before they become whole numbers
_LANES = 8
_AHEAD = 4_096  # entries, which near memory has room for
UNIT = 2.0**GRID

SHORT = 64
"""Entries of a row at most, where rows are added up four at a time."""

kernel = compiled(nogil=True)


class Rule(NamedTuple):
    """How a row's coefficient is found. All of it is public."""

    loss: int
    shape: float
    clip: float  # of a gradient of a class that weighs 1
    weights: Floats  # of the classes
    units: float  # steps of the grid of coefficients to 1
    most: float  # steps


# Norms


@kernel
def dense_norms(Z: Table, bias: float, out: Floats) -> None:
    """The norm of each row with its intercept entry."""
    for i in range(len(Z)):
        total = bias * bias
        for j in range(Z.shape[1]):
            entry = np.float64(Z[i, j])  # a product in single precision would be rounded
            total += entry * entry
        out[i] = math.sqrt(total)


# Coefficients


@kernel
def coefficients(margins: Floats, targets: Floats, norms: Floats, rule: Rule) -> None:
    """Turn the margins of a few rows into their coefficients, in steps.

    Loops that do one thing become vector code; the logistic loss has one of its own, as others have branches.
    """
    loss, shape, clip, weights, units, most = rule
    first, second = weights[0] * units, weights[1] * units
    if loss == IS_LOGISTIC:
        for i in range(len(margins)):
            margins[i] = -targets[i] * sigmoid(-targets[i] * margins[i])
    else:
        for i in range(len(margins)):
            margins[i] = slope(margins[i], targets[i], loss, shape)
    for i in range(len(margins)):
        weight = second if targets[i] > 0.0 else first
        wanted = np.rint(margins[i] * weight)
        limit = np.floor(clip * weight / norms[i])
        limit = limit if limit < most else most
        wanted = wanted if wanted == wanted else 0.0
        wanted = wanted if wanted < limit else limit
        margins[i] = wanted if wanted > -limit else -limit


@kernel
def class_coefficients(margins: Floats, targets: Floats, norms: Floats, rule: Rule) -> None:
    """Turn the margins of rows, which are columns here, into coefficients, those of one row clipped together.

    The slopes are those of `multinomial_slopes`, for some rows a class at a time, which is vector code.
    """
    for start in range(0, len(targets), _CLASS_TILE):
        end = min(start + _CLASS_TILE, len(targets))
        _class_slopes(margins, start, targets[start:end])
        _clip_together(margins, start, targets[start:end], norms[start:end], rule)


@kernel
def _class_slopes(margins: Floats, start: int, targets: Floats) -> None:
    """Turn the margins of some rows into slopes."""
    n, K = len(targets), len(margins)
    top, total, others = margins[0, start : start + n].copy(), np.zeros(n), np.zeros(n)
    for k in range(1, K):
        one = margins[k, start : start + n]
        for i in range(n):
            top[i] = max(top[i], one[i])
    for k in range(K):
        one = margins[k, start : start + n]
        for i in range(n):
            one[i] = exp(one[i] - top[i])
        for i in range(n):
            total[i] += one[i]
    for k in range(K):
        one = margins[k, start : start + n]
        for i in range(n):
            one[i] /= total[i]
            others[i] += 0.0 if targets[i] == k else one[i]
    for k in range(K):
        one = margins[k, start : start + n]
        for i in range(n):
            # p - 1 = -(the sum of the others), which keeps its digits where p is close to 1
            one[i] = -others[i] if targets[i] == k else one[i]


@kernel
def _clip_together(slopes: Floats, start: int, targets: Floats, norms: Floats, rule: Rule) -> None:
    """Turn the slopes of some rows into coefficients."""
    _, _, clip, weights, units, most = rule
    n, K = len(targets), len(slopes)
    scale, factor = np.empty(n), np.zeros(n)
    for i in range(n):
        scale[i] = weights[int(targets[i])]
    for k in range(K):
        one = slopes[k, start : start + n]
        for i in range(n):
            wanted = np.rint(one[i] * scale[i] * units)
            one[i] = max(min(wanted, most), -most) if wanted == wanted else 0.0
            factor[i] += one[i] * one[i]
    for i in range(n):
        length, limit = math.sqrt(factor[i]) * norms[i], clip * scale[i] * units
        factor[i] = limit / length if length > limit else 1.0
    for k in range(K):
        one = slopes[k, start : start + n]
        for i in range(n):
            one[i] = np.trunc(one[i] * factor[i])


# Gradients of one output


@kernel
def dense_gradient(block: Block[NDArray[np.float32]], w: Floats, rule: Rule) -> Integers:
    """The sum of clipped gradients; the last entry is the intercept's.

    Rows are read twice, the second time from near memory. From far memory they come fastest one after the other, as one
    stream: four at a time take up to twice as long, but where rows are so short that four of them are one stream. Long
    ones are asked for ahead of it.
    """
    Z, bias, targets, norms = block
    n, d = Z.shape
    out, part, held = np.zeros(d + 1, dtype=np.int64), np.zeros(d), np.empty(_TILE)
    for start in range(0, n, _TILE):
        end = min(start + _TILE, n)
        rows, own = Z[start:end], held[: end - start]
        if d <= SHORT:
            _short_margins(rows, bias, w, own)
        else:
            _margins(rows, float(bias * w[d]), w, own, _AHEAD)
        coefficients(own, targets[start:end], norms[start:end], rule)
        total = 0.0
        for i in range(len(own)):
            total += own[i]
        out[d] += np.int64(total * bias * UNIT)
        _add_rows(rows, own, part)
        if end % _HELD == 0 or end == n:
            for j in range(d):
                out[j] += np.int64(part[j] * UNIT)
                part[j] = 0.0
    return out


@kernel
def _margins(Z: NDArray[np.float32], base: float, w: Floats, out: Floats, ahead: int = 0) -> None:
    """The margin of each row. Asks for what is so many entries farther on, if any."""
    n, d = Z.shape
    for i in range(n):
        total = base
        if ahead > 0:
            ask_for(Z, i * d + ahead, (i + 1) * d + ahead)
        for j in range(d):
            total = add_product_in_any_order(total, np.float64(Z[i, j]), w[j])
        out[i] = total


@kernel
def _short_margins(Z: NDArray[np.float32], bias: float, w: Floats, out: Floats) -> None:
    """The margin of each row, four at a time."""
    n, d = Z.shape
    base = bias * w[d]
    whole = n - n % 4
    for i in range(0, whole, 4):
        a = b = c = e = base
        for j in range(d):
            weight = w[j]
            a = add_product_in_any_order(a, np.float64(Z[i, j]), weight)
            b = add_product_in_any_order(b, np.float64(Z[i + 1, j]), weight)
            c = add_product_in_any_order(c, np.float64(Z[i + 2, j]), weight)
            e = add_product_in_any_order(e, np.float64(Z[i + 3, j]), weight)
        out[i], out[i + 1], out[i + 2], out[i + 3] = a, b, c, e
    _margins(Z[whole:], float(base), w, out[whole:])


@kernel
def _add_rows(Z: Table, factors: Floats, out: Floats) -> None:
    """Add each row times its factor, four at a time."""
    n, d = Z.shape
    whole = n - n % 4
    for i in range(0, whole, 4):
        f, g, h, k = factors[i], factors[i + 1], factors[i + 2], factors[i + 3]
        for j in range(d):
            total = add_product_in_any_order(out[j], f, np.float64(Z[i, j]))
            total = add_product_in_any_order(total, g, np.float64(Z[i + 1, j]))
            total = add_product_in_any_order(total, h, np.float64(Z[i + 2, j]))
            out[j] = add_product_in_any_order(total, k, np.float64(Z[i + 3, j]))
    for i in range(whole, n):
        for j in range(d):
            out[j] = add_product_in_any_order(out[j], factors[i], np.float64(Z[i, j]))


# Rows in double precision


@kernel
def scaled(Z: Table, bias: float, factors: Floats) -> Floats:
    """Rows with their intercept entry times their factors, at most 1, in steps: each entry towards zero."""
    n, d = Z.shape
    out = np.empty((n, d + 1))
    for i in range(n):
        factor = factors[i] * UNIT
        for j in range(d):
            out[i, j] = np.trunc(np.float64(Z[i, j]) * factor)
        out[i, d] = np.trunc(bias * factor)
    return out


@kernel
def dense_outer(Z: Table, bias: float, factors: Floats) -> Integers:
    """The sum of z z^T over `scaled` rows, in steps: for few columns, where BLAS takes as long to call as to add."""
    n, d = Z.shape
    out, part = np.zeros((d + 1, d + 1), dtype=np.int64), np.zeros((d + 1, d + 1))
    columns = np.empty((d + 1, _COLUMN_TILE + _LANES))  # apart by no power of two, which would share few cache lines
    for start in range(0, n, _COLUMN_TILE):
        end = min(start + _COLUMN_TILE, n)
        _scaled_columns(Z[start:end], bias, factors[start:end], columns)
        for j in range(d + 1):
            for k in range(j + 1):
                part[j, k] += dot_in_any_order(columns[j, : end - start], columns[k, : end - start])
        if end % BLOCK == 0 or end == n:
            for j in range(d + 1):
                for k in range(j + 1):
                    out[j, k] += np.int64(part[j, k])
                    part[j, k] = 0.0
    for j in range(d + 1):
        for k in range(j):
            out[k, j] = out[j, k]
    return out


@kernel
def _scaled_columns(Z: Table, bias: float, factors: Floats, out: Floats) -> None:
    """The columns of `scaled` rows."""
    n, d = Z.shape
    for i in range(n):
        factor = factors[i] * UNIT
        for j in range(d):
            out[j, i] = np.trunc(np.float64(Z[i, j]) * factor)
        out[d, i] = np.trunc(bias * factor)


@kernel
def whitened(Z: Table, weights: Floats, radius: float, units: float) -> Floats:
    """Rows with an intercept entry of 1, times the weights of the columns, clipped to the radius, in `units` to 1."""
    n, d = Z.shape
    out = np.empty((n, d + 1))
    for i in range(n):
        square = weights[d] * weights[d]
        for j in range(d):
            entry = np.float64(Z[i, j]) * weights[j]
            square += entry * entry
        factor = units * min(1.0, radius / max(math.sqrt(square), 1e-300))
        for j in range(d):
            out[i, j] = np.trunc(np.float64(Z[i, j]) * weights[j] * factor)
        out[i, d] = np.trunc(weights[d] * factor)
    return out


@kernel
def loop_product(one: Floats, other: Floats) -> Floats:
    """`one @ other`, where BLAS does not keep its promise."""
    out = np.zeros((one.shape[0], other.shape[1]))
    for i in range(one.shape[0]):
        for k in range(one.shape[1]):
            for j in range(other.shape[1]):
                out[i, j] += one[i, k] * other[k, j]
    return out
