"""What kernels are handed: sparse tables, blocks of rows, noise. And loops over one sparse row or column.

These are named tuples. A compiled function takes one as it takes its parts, and its code can be kept on disk, as the
classes live in a module. Dense rows, and dense columns, are plain arrays.

What they cost. Python needs a few microseconds more to hand over a named tuple: where a step is shorter than that,
plain tuples are used. To take an array out of a tuple, or a row out of an array, compiled code counts references: a
kernel does it once, and functions that it calls for each row are handed arrays.
"""

from typing import Generic, NamedTuple, TypeVar

from tacit._types import Floats, Integers, Places, Table
from tacit.problems.compiled import kernel

Rows = TypeVar("Rows")


class Csr(NamedTuple):
    """Sparse rows: row i has entries data[indptr[i] : indptr[i + 1]], in the columns that `indices` has there."""

    data: Table
    indices: Places
    indptr: Places


class Csc(NamedTuple):
    """Sparse columns, in the same way."""

    data: Table
    indices: Places
    indptr: Places


class Block(NamedTuple, Generic[Rows]):
    """Rows of a table, dense or `Csr`, and what belongs to each of them."""

    rows: Rows
    bias: float  # the entry of every row for the intercept: 1, or 0 where there is none
    targets: Floats
    norms: Floats  # with that entry


class Noise(NamedTuple):
    """Noise in whole steps of a grid: a value is clipped to the bound, rounded to the grid, and moved by its count.

    A step of 0 stands for no noise. `tacit.privacy.noise.kernels.release_one` does it.
    """

    counts: Integers
    step: float
    bound: float


@kernel
def sparse_dot(i: int, data: Table, indices: Places, indptr: Places, weights: Floats, start: float) -> float:
    """The inner product of sparse row or column i with the weights, added to `start` one entry after the other."""
    total = start
    for p in range(indptr[i], indptr[i + 1]):
        total += data[p] * weights[indices[p]]
    return total


@kernel
def sparse_add(i: int, data: Table, indices: Places, indptr: Places, factor: float, out: Floats) -> None:
    """Add `factor` times sparse row or column i."""
    for p in range(indptr[i], indptr[i + 1]):
        out[indices[p]] += factor * data[p]
