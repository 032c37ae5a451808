"""Rows of a PCA as whole numbers: centred, no longer than a radius, and what they add to products with a few vectors.

The grid is a power of two under the radius, `ROW` powers or one more, so that no row is longer than 2^21 steps. Terms
of sums over `BLOCK` = 2^11 rows then add up to at most 2^53 steps, in which float64 rounds nothing (`kernels.exact`):

    second moments       products of two entries of a row: their sizes add up to at most 2^42 a row
    x^T v                2^21 for the row, 2^31 for a vector that is public (`VECTOR`): 2^52, by Cauchy and Schwarz
    x u^T, u = V^T x     clipped to at most 2^42 a row, in steps of u that are as fine as the clip allows
    sums of x            rows on a finer grid (`MEAN`): 2^40 a row, 2^51 for a block

A vector is rounded to the nearest steps where it is short enough for its bound after that, whatever the roundings; else
it is shortened to the bound and each entry is cut towards zero. So no bound is exceeded by a rounding. Which of both is
a function of that vector alone. Bounds are tighter by `SHRINK` than what is stated, which covers norms and quotients.
"""

import math

import numpy as np

from tacit._types import Floats, Table
from tacit.kernels.exact import kernel
from tacit.kernels.rows import dot
from tacit.kernels.scaling import row_norm

ROW, MEAN, VECTOR = 21, 40, 30
"""Powers of two: the longest row in steps, the same for sums of rows, and the longest vector."""

PRODUCT = 42
"""And the longest x u^T."""

SHRINK = 1.0 - 2.0**-30


@kernel
def norm_of(row: Floats) -> float:
    """The norm of a row, in four partial sums; infinite if it overflows or a value is not finite."""
    total = dot(row, row)
    return math.sqrt(total) if 1e-280 < total < 1e280 else row_norm(row)


@kernel
def distances(X: Table, centre: Floats, out: Floats) -> None:
    """|x - centre| of each row; infinite where it is not finite. What is missing is at the centre."""
    d = X.shape[1]
    row = np.empty(d)
    for i in range(len(X)):
        _centred(X[i], centre, row)
        out[i] = norm_of(row)


@kernel
def _centred(x: Table, centre: Floats, out: Floats) -> None:
    for j in range(len(x)):
        far = np.float64(x[j]) - centre[j]
        out[j] = far if far == far else 0.0


@kernel
def _to_steps(vector: Floats, norm: float, unit: float, limit: float) -> None:
    """A vector of this norm in whole steps, `unit` of which are 1; not longer than the limit. Zero if it overflows."""
    length = norm * unit
    if not length < np.inf:
        vector[:] = 0.0
    elif length + 0.5 * math.sqrt(len(vector)) <= limit:
        for j in range(len(vector)):
            vector[j] = np.rint(vector[j] * unit)
    else:
        factor = unit * min(1.0, limit / length)
        for j in range(len(vector)):
            vector[j] = np.trunc(vector[j] * factor)


@kernel
def on_grid(X: Table, centre: Floats, radius: float, unit: float, out: Table, norms: Floats) -> None:
    """Rows x - centre, no longer than the radius, in steps, and their norms."""
    row = np.empty(X.shape[1])
    for i in range(len(X)):
        _centred(X[i], centre, row)
        _to_steps(row, norm_of(row), unit, radius * SHRINK * unit)
        out[i, :] = row
        norms[i] = math.sqrt(dot(row, row))


@kernel
def summed(X: Table, centre: Floats, radius: float, unit: float) -> Floats:
    """The sum of the rows of `on_grid`."""
    row, out = np.empty(X.shape[1]), np.zeros(X.shape[1])
    for i in range(len(X)):
        _centred(X[i], centre, row)
        _to_steps(row, norm_of(row), unit, radius * SHRINK * unit)
        for j in range(len(row)):
            out[j] += row[j]
    return out


@kernel
def clipped_products(images: Floats, norms: Floats, clip: float, unit: float) -> None:
    """Turn u = V^T x of each row, in its steps, into finer ones; |x| |u|, the norm of x u^T, is at most the clip."""
    for i in range(len(images)):
        limit = clip * SHRINK / norms[i] * unit if norms[i] > 0.0 else 0.0
        _to_steps(images[i], norm_of(images[i]), unit, limit)


@kernel
def bounded_images(images: Floats, limit: float) -> None:
    """Turn u = V^T x of each row, in its steps, into whole ones; |u| is at most the limit."""
    for i in range(len(images)):
        _to_steps(images[i], norm_of(images[i]), 1.0, limit * SHRINK)


@kernel
def lengths(images: Floats, norms: Floats, out: Floats) -> None:
    """|x| |V^T x| of each row."""
    for i in range(len(images)):
        out[i] = norms[i] * norm_of(images[i])
