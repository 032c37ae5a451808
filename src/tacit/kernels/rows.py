"""Sums over rows: of gradients, each clipped to a norm, and of what text needs. Margins and norms of rows.

The gradient of row i is `residual_i z_i^T`, residual_i the derivative of the loss in the row's K margins, and z_i the
row with its intercept entry. Its norm is |residual_i| |z_i|, so it is clipped by scaling the residual. A row whose
numbers overflow contributes zero. `loss` and `shape` are those of `tacit.problems.slopes`.

For text each row has one factor, which bounds its norm, and no table of scaled rows is made. A row whose factor is zero
is absent: it adds nothing to any sum. No entry of a term is above 1: each is cut towards zero to whole steps, `unit` of
which are 1, and added as a whole number, so that sums are exact and no term is longer than before.

Gradients of dense rows are added in blocks of `BLOCK`, and the blocks to the total: the longest chain of additions is
BLOCK + n / BLOCK, which bounds the rounding error of the sum (`sum_depth`). Those of sparse rows are added straight
into the total, so their chain is n long.
"""

import math
from typing import NamedTuple

import numpy as np

from tacit._types import Flags, Floats, Integers, Places, Table
from tacit.kernels.given import Block, Csr, sparse_dot
from tacit.problems.compiled import kernel
from tacit.problems.slopes import IS_MULTINOMIAL, multinomial_slopes, sigmoid, slope

BLOCK = 1024


def sum_depth(n: int) -> int:
    """The longest chain of additions in a sum over n rows."""
    return min(n, BLOCK) + -(-n // BLOCK)


@kernel
def dot(row: Table, weights: Table) -> float:
    """The inner product, in four partial sums."""
    a = b = c = d = 0.0
    size = len(row)
    whole = size - size % 4
    for j in range(0, whole, 4):
        a += row[j] * weights[j]
        b += row[j + 1] * weights[j + 1]
        c += row[j + 2] * weights[j + 2]
        d += row[j + 3] * weights[j + 3]
    for j in range(whole, size):
        a += row[j] * weights[j]
    return (a + b) + (c + d)


# Norms and margins


@kernel
def dense_norms(Z: Floats, bias: float, out: Floats) -> None:
    """The norm of each row with its intercept entry."""
    for i in range(len(Z)):
        out[i] = math.sqrt(dot(Z[i], Z[i]) + bias * bias)


@kernel
def sparse_norms(rows: Csr, bias: float, out: Floats) -> None:
    """The norm of each row with its intercept entry."""
    data, _, indptr = rows
    for i in range(len(out)):
        row = data[indptr[i] : indptr[i + 1]]
        out[i] = math.sqrt(dot(row, row) + bias * bias)


@kernel
def dense_margins(Z: Floats, bias: float, w: Floats, out: Floats) -> None:
    """The margin of each row."""
    d = Z.shape[1]
    for i in range(len(Z)):
        out[i] = dot(Z[i], w[:d]) + bias * w[d]


@kernel
def sparse_margins(rows: Csr, bias: float, w: Floats, out: Floats) -> None:
    """The margin of each row."""
    data, indices, indptr = rows
    for i in range(len(out)):
        out[i] = sparse_dot(i, data, indices, indptr, w, bias * w[-1])


@kernel
def sparse_outputs(i: int, data: Table, indices: Places, indptr: Places, bias: float, W: Floats, out: Floats) -> None:
    """The margins of row i, one for each row of W."""
    for k in range(len(out)):
        total = bias * W[k, -1]
        for p in range(indptr[i], indptr[i + 1]):
            total += data[p] * W[k, indices[p]]
        out[k] = total


@kernel
def sparse_add_outer(
    i: int, data: Table, indices: Places, indptr: Places, bias: float, factors: Floats, out: Floats
) -> None:
    """Add factors[k] times row i, with its intercept entry, to each out[k]."""
    for k in range(len(factors)):
        factor = factors[k]
        for p in range(indptr[i], indptr[i + 1]):
            out[k, indices[p]] += factor * data[p]
        out[k, -1] += factor * bias


# Gradients


@kernel
def _slopes(margins: Floats, target: float, loss: int, shape: float, out: Floats) -> float:
    """Derivative of the loss in the margins, into `out`; returns its norm."""
    if loss == IS_MULTINOMIAL:
        multinomial_slopes(margins, int(target), out)
        total = 0.0
        for k in range(len(out)):
            total += out[k] * out[k]
        return math.sqrt(total)
    out[0] = slope(margins[0], target, loss, shape)
    return abs(out[0])


@kernel
def _clip_factor(norm: float, clip: float) -> float:
    """What to scale a gradient of this norm by; zero where the norm is not finite."""
    if not norm <= clip:
        return clip / norm if norm < np.inf else 0.0
    return 1.0


@kernel
def dense_gradient(block: Block[Floats], W: Floats, loss: int, shape: float, clip: float, out: Floats) -> None:
    """out[k] = sum over rows of the clipped gradient in W[k]; the last entry is the intercept's."""
    Z, bias, targets, norms = block
    n, d = Z.shape
    K = len(W)
    margins, residual = np.empty(K), np.empty(K)
    part = np.zeros((K, d + 1))
    out[:] = 0.0
    for i in range(n):
        for k in range(K):
            margins[k] = dot(Z[i], W[k, :d]) + bias * W[k, d]
        factor = _clip_factor(_slopes(margins, targets[i], loss, shape, residual) * norms[i], clip)
        if factor > 0.0:
            for k in range(K):
                step = factor * residual[k]
                for j in range(d):
                    part[k, j] += step * Z[i, j]
                part[k, d] += step * bias
        if (i + 1) % BLOCK == 0 or i + 1 == n:
            out += part
            part[:] = 0.0


@kernel
def sparse_gradient(block: Block[Csr], W: Floats, loss: int, shape: float, clip: float, out: Floats) -> None:
    """`dense_gradient` for CSR rows; adds straight into the total."""
    (data, indices, indptr), bias, targets, norms = block
    K = len(W)
    margins, residual = np.empty(K), np.empty(K)
    out[:] = 0.0
    for i in range(len(indptr) - 1):
        sparse_outputs(i, data, indices, indptr, bias, W, margins)
        factor = _clip_factor(_slopes(margins, targets[i], loss, shape, residual) * norms[i], clip)
        if factor > 0.0:
            for k in range(K):
                residual[k] *= factor
            sparse_add_outer(i, data, indices, indptr, bias, residual, out)


# Text


class Residuals(NamedTuple):
    """What a residual is: the class, 1 or 0, less its probability by the weights on x and the offset; clipped.

    The intercept's entry of every row is `bias`.
    """

    weights: Floats
    bias: float
    offset: float
    clip: float


@kernel
def weighted_norms(rows: Csr, weights: Floats, out: Floats) -> None:
    """The norm of each row with its entries times the weights of their columns."""
    data, indices, indptr = rows
    for i in range(len(out)):
        total = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            entry = data[p] * weights[indices[p]]
            total += entry * entry
        out[i] = math.sqrt(total)


@kernel
def sparse_sums(rows: Csr, factors: Floats, values: Floats, ratio: float, unit: float, out: Integers) -> None:
    """out[0] = sum of value x and out[1] = ratio times the sum of |x|, over rows x times their factors; in steps."""
    data, indices, indptr = rows
    out[:] = 0
    for i in range(len(factors)):
        if factors[i] > 0.0:
            signed, size = values[i] * factors[i], ratio * factors[i]
            for p in range(indptr[i], indptr[i + 1]):
                out[0, indices[p]] += np.int64(signed * data[p] * unit)
                out[1, indices[p]] += np.int64(size * abs(data[p]) * unit)


@kernel
def dense_sums(Z: Floats, factors: Floats, values: Floats, ratio: float, unit: float, out: Integers) -> None:
    """out[0] = sum of value x and out[1] = ratio times the sum of x^2, over rows x times their factors; in steps."""
    out[:] = 0
    for i in range(len(factors)):
        if factors[i] > 0.0:
            for j in range(Z.shape[1]):
                entry = Z[i, j] * factors[i]
                out[0, j] += np.int64(values[i] * entry * unit)
                out[1, j] += np.int64(ratio * entry * entry * unit)


@kernel
def residual_sums(rows: Csr, factors: Floats, positive: Flags, fit: Residuals, unit: float, out: Integers) -> None:
    """Sum residual x over rows x times their factors, in steps; the last entry is the intercept's."""
    data, indices, indptr = rows
    weights, bias, offset, clip = fit
    out[:] = 0
    for i in range(len(factors)):
        if factors[i] > 0.0:
            margin = sparse_dot(i, data, indices, indptr, weights, 0.0) * factors[i] + offset
            likely = sigmoid(margin)
            residual = max(-clip, min(clip, (1.0 if positive[i] else 0.0) - likely))
            if math.isfinite(residual):
                out[-1] += np.int64(residual * bias * unit)
                factor = residual * factors[i]
                for p in range(indptr[i], indptr[i + 1]):
                    out[indices[p]] += np.int64(factor * data[p] * unit)
