"""Second moments of bounded sparse rows: clipped outer products, products with a few vectors. And packed triangles.

A bounded row is f (x - m): m is a public centre and f, at most 1, brings the norm to at most the radius R. Each row's
f comes from a loop over that row alone. A row whose numbers overflow gets f = 0.

Rows are multiplied by loops over one row after the other, here and in SciPy, so that no row sees another. f x and f m
are summed apart, and m is put in at the end: a depth of n, on terms of norm up to (R + |m|)^2.

A symmetric matrix is stored as the rows of its upper triangle, one after the other: (A_00, A_01, ..., A_11, ...).
"""

import math

import numpy as np

from tacit._types import Floats, Integers, Places, Table
from tacit.kernels.given import Csr
from tacit.kernels.scaling import row_norm
from tacit.problems.compiled import kernel

_SHRINK = 1.0 - 2.0**-30
_LEAST_FACTOR = 1e-290  # numbers near the smallest that there are have few digits, and would round past the radius
_CANCELLATION = 2.0**-40  # |x - m|^2 of sparse rows is found from differences that may lose this part of |m|^2


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
