"""Many eigenvectors of a large noisy matrix, by products with blocks of columns: none of it sees more than the matrix.

Nearly all of a matrix released at a small budget is noise, whose eigenvalues fill an interval. The few that stand above
it are found to the last digits that noise left. Those inside it lie so close together that each of them alone says
nothing: what is asked of them is to be near the upper end, as eigenvectors are for which the matrix is a little larger.
"""

from collections.abc import Callable

import numpy as np
from scipy.linalg import eigh, qr

from tacit._types import Floats

MANY = 50  # eigenvectors, from which on blocks are faster than one column after the other
_STRIP = 512  # rows of the matrix that are unpacked at a time
_BLOCKS_BEFORE = 12  # that are made before a first look at what they have
_BLOCKS_BETWEEN = 4
_WIDEST = 16  # times as many columns as eigenvectors


def times_packed(packed: Floats, d: int, columns: Floats) -> Floats:
    """A symmetric matrix, of which the rows of the upper triangle are given, times columns."""
    out = np.zeros((d, columns.shape[1]))
    for first in range(0, d, _STRIP):
        height = min(_STRIP, d - first)
        strip = np.zeros((height, d - first))
        for i in range(height):
            row = first + i
            start = row * d - row * (row - 1) // 2
            strip[i, i:] = packed[start : start + d - row]
        here, own = slice(first, first + height), np.triu(strip[:, :height], 1)
        out[here] += strip @ columns[first:] + own.T @ columns[here]
        out[first + height :] += strip[:, height:].T @ columns[here]
    return out


def largest_by_blocks(
    packed: Floats, d: int, k: int, allowed: Callable[[Floats], Floats]
) -> tuple[Floats, Floats] | None:
    """The k largest eigenvalues, decreasing, and their eigenvectors as columns; None where they were not found.

    `allowed` says how long a residual may be, for eigenvalues. The space is that of A^j S, S some fixed columns, half
    as many as are looked for.
    """
    width = -(-k // 2)
    most = min(d, _WIDEST * k) // width
    basis, inner = np.empty((d, most * width), order="F"), np.zeros((most * width, most * width))
    block = qr(np.cos(np.outer(np.arange(d), 0.7 + np.arange(width)) + 0.1), mode="economic")[0]
    for made in range(1, most + 1):
        size = made * width
        basis[:, size - width : size] = block
        with np.errstate(over="ignore", invalid="ignore"):
            after = times_packed(packed, d, basis[:, size - width : size])
        if not np.all(np.isfinite(after)):
            return None
        inner[:size, size - width : size] = basis[:, :size].T @ after
        after -= basis[:, :size] @ inner[:size, size - width : size]
        block, left = qr(after, mode="economic")
        block, more = qr(block - basis[:, :size] @ (basis[:, :size].T @ block), mode="economic")
        if made < _BLOCKS_BEFORE or (made - _BLOCKS_BEFORE) % _BLOCKS_BETWEEN:
            continue
        values, turn = eigh(inner[:size, :size], lower=False, subset_by_index=[size - k, size - 1])
        residuals = np.linalg.norm(more @ left @ turn[size - width :], axis=0)
        if np.all(residuals <= allowed(values)):
            return values[::-1], (basis[:, :size] @ turn)[:, ::-1]
    return None
