"""Sums over rows of per-row gradients, each clipped to a norm.

The gradient of row i is `residual_i z_i^T`, residual_i the derivative of the loss in the row's K margins, and z_i the
row with its intercept entry. Its norm is |residual_i| |z_i|, so it is clipped by scaling the residual. A row whose
numbers overflow contributes zero.

`loss` and `shape` are those of `tacit.problems.slopes`.

Rows are added in blocks of `BLOCK`, and the blocks to the total: the longest chain of additions is BLOCK + n / BLOCK,
which bounds the rounding error of the sum (`sum_depth`).
"""

import math

import numpy as np
from numpy.typing import NDArray

from tacit._types import Floats
from tacit.problems.compiled import kernel
from tacit.problems.slopes import IS_MULTINOMIAL, multinomial_slopes, slope

BLOCK = 1024


def sum_depth(n: int) -> int:
    """The longest chain of additions in a sum over n rows."""
    return min(n, BLOCK) + -(-n // BLOCK)


@kernel
def _dot(row: Floats, weights: Floats) -> float:
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
def dense_norms(Z: Floats, bias: float, out: Floats) -> None:
    """The norm of each row with its intercept entry."""
    for i in range(len(Z)):
        out[i] = math.sqrt(_dot(Z[i], Z[i]) + bias * bias)


@kernel
def dense_gradient(
    Z: Floats,
    norms: Floats,
    bias: float,
    targets: Floats,
    W: Floats,
    loss: int,
    shape: float,
    clip: float,
    out: Floats,
) -> None:
    """out[k] = sum over rows of the clipped gradient in W[k]; the last entry is the intercept's."""
    n, d = Z.shape
    K = len(W)
    margins, residual = np.empty(K), np.empty(K)
    block = np.zeros((K, d + 1))
    out[:] = 0.0
    for i in range(n):
        for k in range(K):
            margins[k] = _dot(Z[i], W[k, :d]) + bias * W[k, d]
        factor = _clip_factor(_slopes(margins, targets[i], loss, shape, residual) * norms[i], clip)
        if factor > 0.0:
            for k in range(K):
                step = factor * residual[k]
                for j in range(d):
                    block[k, j] += step * Z[i, j]
                block[k, d] += step * bias
        if (i + 1) % BLOCK == 0 or i + 1 == n:
            out += block
            block[:] = 0.0


@kernel
def sparse_norms(data: Floats, indptr: NDArray[np.integer], bias: float, out: Floats) -> None:
    """The norm of each CSR row with its intercept entry."""
    for i in range(len(out)):
        row = data[indptr[i] : indptr[i + 1]]
        out[i] = math.sqrt(_dot(row, row) + bias * bias)


@kernel
def sparse_gradient(
    data: Floats,
    indices: NDArray[np.int64],
    indptr: NDArray[np.int64],
    norms: Floats,
    bias: float,
    targets: Floats,
    W: Floats,
    loss: int,
    shape: float,
    clip: float,
    out: Floats,
) -> None:
    """`dense_gradient` for CSR rows; adds straight into the total, so the chain of additions is n long."""
    n = len(indptr) - 1
    K, d = W.shape[0], W.shape[1] - 1
    margins, residual = np.empty(K), np.empty(K)
    out[:] = 0.0
    for i in range(n):
        start, end = indptr[i], indptr[i + 1]
        for k in range(K):
            total = bias * W[k, d]
            for p in range(start, end):
                total += data[p] * W[k, indices[p]]
            margins[k] = total
        factor = _clip_factor(_slopes(margins, targets[i], loss, shape, residual) * norms[i], clip)
        if factor > 0.0:
            for k in range(K):
                step = factor * residual[k]
                for p in range(start, end):
                    out[k, indices[p]] += step * data[p]
                out[k, d] += step * bias


@kernel
def dense_margins(Z: Floats, bias: float, w: Floats, out: Floats) -> None:
    """The margin of each row."""
    d = Z.shape[1]
    for i in range(len(Z)):
        out[i] = _dot(Z[i], w[:d]) + bias * w[d]


@kernel
def sparse_margins(
    data: Floats, indices: NDArray[np.int64], indptr: NDArray[np.int64], bias: float, w: Floats, out: Floats
) -> None:
    """The margin of each CSR row."""
    for i in range(len(out)):
        total = bias * w[-1]
        for p in range(indptr[i], indptr[i + 1]):
            total += data[p] * w[indices[p]]
        out[i] = total
