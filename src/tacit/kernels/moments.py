"""Second moments of bounded rows: clipped outer products, packed triangles, products with a few vectors.

A bounded row is f (x - m): m is a public centre and f, at most 1, brings the norm to at most the radius R. Each row's
f comes from a loop over that row alone. A row whose numbers overflow gets f = 0.

Two kinds of sums, each with its rounding:

- dense rows are bounded here and multiplied by BLAS. Any order of additions, and what one row does to the last bits of
  another's product, is covered by `float_sum_slack` with the depth that `block_depth` gives and by `product_slack`.
- sparse rows are multiplied by loops over one row after the other, here and in SciPy, so that no row sees another. f x
  and f m are summed apart, and m is put in at the end: a depth of n, on terms of norm up to (R + |m|)^2.

A symmetric matrix is stored as the rows of its upper triangle, one after the other: (A_00, A_01, ..., A_11, ...).
"""

import math

import numpy as np

from tacit._types import Floats, Integers, Places, Table
from tacit.kernels.given import Csr
from tacit.kernels.rows import dot
from tacit.kernels.scaling import row_norm
from tacit.problems.compiled import kernel

BLOCK = 2048  # dense rows whose outer products are summed by one call of BLAS; fewer where rows are very long
PASS_BLOCK = 256  # the same for products with a few vectors, where rows should still be in the cache when they return
_SHRINK = 1.0 - 2.0**-30
_LEAST_FACTOR = 1e-290  # numbers near the smallest that there are have few digits, and would round past the radius
_CANCELLATION = 2.0**-40  # |x - m|^2 of sparse rows is found from differences that may lose this part of |m|^2


def block_depth(n: int) -> int:
    """The longest chain of roundings in a sum over n rows, taken by BLAS in blocks of a size between these."""
    return max(min(n, size) + -(-n // size) + 1 for size in (BLOCK, PASS_BLOCK))


def block_size(d: int) -> int:
    """How many rows of d columns to sum outer products of at a time: 64 MB of them, or a few."""
    return max(min(BLOCK, 2**23 // d), min(BLOCK, PASS_BLOCK))


def product_slack(n: int, d: int, p: int, radius: float) -> float:
    """How far n rows' contributions x (x^T V) can move by the rounding of BLAS in x^T V, between two worlds.

    An entry of x^T V is off by at most gamma |x| |v|, gamma = d u / (1 - d u), so the p entries are off by
    gamma sqrt(p) |x|, V having orthonormal columns up to rounding; clipping the contribution moves it no further.
    """
    unit = (d + 2) * 2.0**-53
    return 2.0 * n * 1.01 * math.sqrt(p) * radius**2 * unit / (1.0 - unit)


@kernel
def _norm(row: Floats) -> float:
    """The norm of a row, in four partial sums; infinite if it overflows or a value is not finite."""
    total = dot(row, row)
    return math.sqrt(total) if 1e-280 < total < 1e280 else row_norm(row)


@kernel
def dense_distances(X: Floats, mean: Floats, out: Floats) -> None:
    """|x - mean| of each row; infinite where it is not finite. What is missing is at the mean."""
    d = X.shape[1]
    row = np.empty(d)
    for i in range(len(X)):
        for j in range(d):
            row[j] = np.float64(X[i, j]) - mean[j] if X[i, j] == X[i, j] else 0.0
        out[i] = _norm(row)


@kernel
def _factor(norm: float, radius: float) -> float:
    """What brings a norm to at most the radius; zero where it is not finite, or so large that f would lose digits."""
    if norm <= radius * _SHRINK:
        return 1.0
    f = radius / norm * _SHRINK
    return f if f > _LEAST_FACTOR else 0.0


@kernel
def bounding_factors(norms: Floats, radius: float, out: Floats) -> None:
    """What to scale rows of these norms by so that none is longer than the radius; zero for those that overflow."""
    for i in range(len(norms)):
        out[i] = _factor(norms[i], radius)


@kernel
def dense_bounded(X: Floats, mean: Floats, radius: float, out: Floats, norms: Floats) -> None:
    """Rows x - mean, scaled to norm at most the radius, and a bound on their norms after that.

    What is missing is at the mean.
    """
    d = X.shape[1]
    for i in range(len(X)):
        row = out[i]
        for j in range(d):
            row[j] = np.float64(X[i, j]) - mean[j] if X[i, j] == X[i, j] else 0.0
        norm = _norm(row)
        f = _factor(norm, radius)
        norms[i] = min(norm, radius)
        if f == 0.0:
            row[:] = 0.0
            norms[i] = 0.0
        elif f < 1.0:
            for j in range(d):
                row[j] *= f


@kernel
def add_upper(square: Floats, first: int, packed: Floats) -> None:
    """Add the upper triangle of rows first, first + 1, ... of a symmetric matrix; column 0 of `square` is `first`."""
    width = square.shape[1]
    d = first + width
    place = first * d - first * (first - 1) // 2
    for i in range(square.shape[0]):
        for j in range(i, width):
            packed[place] += square[i, j]
            place += 1


@kernel
def unpacked(packed: Floats, d: int, out: Floats) -> None:
    """The full symmetric matrix."""
    place = 0
    for i in range(d):
        for j in range(i, d):
            out[i, j] = packed[place]
            out[j, i] = packed[place]
            place += 1


@kernel
def packed_diagonal(packed: Floats, d: int, out: Floats) -> None:
    """The diagonal."""
    place = 0
    for i in range(d):
        out[i] = packed[place]
        place += d - i


@kernel
def _sparse_distance(values: Table, columns: Places, mean: Floats, square: float) -> float:
    """|x - mean| of one CSR row, never less than it is; infinite where it is not finite. `square` is |mean|^2."""
    if square == 0.0:
        return row_norm(values)
    near, seen = 0.0, 0.0
    for p in range(len(values)):
        m = mean[columns[p]]
        near += (values[p] - m) * (values[p] - m)
        seen += m * m
    total = near + max(square - seen, 0.0) + square * _CANCELLATION
    return math.sqrt(total) if total < np.inf else np.inf


@kernel
def _square(values: Floats) -> float:
    total = 0.0
    for value in values:
        total += value * value
    return total


@kernel
def sparse_distances(rows: Csr, mean: Floats, out: Floats) -> None:
    """|x - mean| of each CSR row, never less than it is; infinite where it is not finite."""
    data, indices, indptr = rows
    square = _square(mean)
    for i in range(len(out)):
        start, end = indptr[i], indptr[i + 1]
        out[i] = _sparse_distance(data[start:end], indices[start:end], mean, square)


@kernel
def sparse_products(
    rows: Csr,
    places: Integers,
    mean: Floats,
    radius: float,
    V: Floats,
    clip: float,
    out: Floats,
    along_mean: Floats,
) -> None:
    """Add f x u^T of the CSR rows at some places to `out`, and f u to `along_mean`; u = f V^T (x - m).

    |f (x - m)| |u| is at most the clip, which may be infinite. V and `out` are row-major, and places in them are
    unsigned: a compiler that knows that no place is negative makes loops over a row of V nearly twice as fast.
    """
    data, indices, indptr = rows
    p = V.shape[1]
    width = np.uint64(p)
    flat, sums = V.ravel(), out.ravel()
    square = _square(mean)
    shift = np.zeros(p)
    if square > 0.0:
        for j in range(len(mean)):
            for k in range(p):
                shift[k] += mean[j] * V[j, k]
    u = np.empty(p)
    for i in places:
        start, end = indptr[i], indptr[i + 1]
        norm = _sparse_distance(data[start:end], indices[start:end], mean, square)
        f = _factor(norm, radius)
        if f == 0.0:
            continue
        for k in range(p):
            u[k] = -shift[k]
        for e in range(np.uint64(start), np.uint64(end)):
            first, value = np.uint64(indices[e]) * width, np.float64(data[e])
            for k in range(width):
                u[k] += value * flat[first + k]
        for k in range(p):
            u[k] *= f
        length = min(norm, radius) * row_norm(u)
        if not length < np.inf:
            continue
        if length > clip * _SHRINK:
            for k in range(p):
                u[k] *= clip / length * _SHRINK
        for e in range(np.uint64(start), np.uint64(end)):
            first, value = np.uint64(indices[e]) * width, f * np.float64(data[e])
            for k in range(width):
                sums[first + k] += value * u[k]
        for k in range(p):
            along_mean[k] += f * u[k]


@kernel
def sparse_outer(rows: Csr, d: int, packed: Floats) -> None:
    """Add x x^T of each CSR row, whose indices increase, to the packed triangle."""
    data, indices, indptr = rows
    for i in range(len(indptr) - 1):
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            start = j * d - j * (j - 1) // 2 - j
            for q in range(p, indptr[i + 1]):
                packed[start + indices[q]] += data[p] * data[q]


@kernel
def packed_minus_mean(packed: Floats, weighted: Floats, mass: float, mean: Floats) -> None:
    """Turn sum f^2 x x^T into sum f^2 (x - m)(x - m)^T: less w m^T and m w^T, plus the mass times m m^T."""
    d = len(mean)
    place = 0
    for i in range(d):
        for j in range(i, d):
            packed[place] += mass * mean[i] * mean[j] - weighted[i] * mean[j] - mean[i] * weighted[j]
            place += 1


@kernel
def lengths(rows: Floats, norms: Floats, V: Floats, out: Floats) -> None:
    """|x| |V^T x| of each row, by a loop over that row alone: a row is counted by it, and BLAS may round it otherwise.

    A sum may be off by its slack, but no other row may go to another bin because one is missing.
    """
    p = V.shape[1]
    u = np.empty(p)
    for i in range(len(rows)):
        u[:] = 0.0
        for j in range(rows.shape[1]):
            for k in range(p):
                u[k] += rows[i, j] * V[j, k]
        out[i] = norms[i] * row_norm(u)


@kernel
def clip_contributions(projections: Floats, norms: Floats, clip: float) -> None:
    """Scale each row of projections u so that |x| |u|, the norm of x u^T, is at most the clip."""
    for i in range(len(projections)):
        norm = norms[i] * row_norm(projections[i])
        if not norm < np.inf:
            projections[i, :] = 0.0
        elif norm > clip * _SHRINK:
            for k in range(projections.shape[1]):
                projections[i, k] *= clip / norm * _SHRINK
