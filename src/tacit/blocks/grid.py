"""Bounded rows on a grid: what exact sums are taken over, in parts that are read again for every pass."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tacit._types import Floats
from tacit.blocks.sums import cuts
from tacit.kernels.exact import BLOCK, FARTHEST, GRID
from tacit.kernels.given import Block
from tacit.kernels.stored import Zeros


class TableRows(csr_array):
    """CSR rows of a table, such as encoders make: its zeros are values like others, which are centred and scaled."""


@dataclass(frozen=True, eq=False, repr=False)
class Slice:
    """Some rows as they came: of an array, or of a sparse table."""

    X: Any
    cut: slice

    def blocks(self) -> Iterator[Any]:
        """Blocks of rows; an empty one where there are none."""
        for start in range(self.cut.start, max(self.cut.stop, self.cut.start + 1), BLOCK):
            yield self.X[start : min(start + BLOCK, self.cut.stop)]


def in_parts(X: Any) -> list[Slice]:
    """Rows as parts that threads can read."""
    return [Slice(X, cut) for cut in cuts(*X.shape)]


@dataclass(frozen=True, eq=False)
class GridTable:
    """Rows whose entries are whole multiples of 2^-19, and at most 4: single precision holds them as they are.

    `rows` is an array, or the stored entries of a sparse table; then `zero` is what all other entries of a column are.
    """

    rows: Any
    zero: NDArray[np.float32] | None = None

    @classmethod
    def of(cls, Z: Any) -> "GridTable":
        """Bounded rows, each entry rounded to the grid towards zero; what is no number becomes zero."""
        if isinstance(Z, GridTable):
            return Z
        steps = np.trunc(np.ldexp(np.clip(np.asarray(Z, dtype=np.float64), -FARTHEST, FARTHEST), GRID))
        return cls(np.ldexp(np.where(np.isnan(steps), 0.0, steps), -GRID).astype(np.float32))

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns, which are public."""
        return self.rows.shape[0], self.rows.shape[1]

    def __getitem__(self, places: Any) -> "GridTable":
        return GridTable(self.rows[places], self.zero)

    def between(self, start: int, end: int) -> "NDArray[np.float32] | Zeros":
        """Rows as kernels take them; they are not copied."""
        if self.zero is None:
            return self.rows[start:end]  # type: ignore[no-any-return]
        starts = self.rows.indptr[start : end + 1].astype(np.int64)
        first, last = starts[0], starts[-1]
        indices = self.rows.indices[first:last].astype(np.int32, copy=False)
        return Zeros(self.rows.data[first:last], indices, starts - first, self.zero)

    def __repr__(self) -> str:
        return "GridTable(private)"


@dataclass(frozen=True, eq=False, repr=False)
class Part:
    """Some rows of a table in memory, in blocks."""

    table: GridTable
    bias: float
    targets: Floats
    norms: Floats
    start: int
    end: int
    size: int = BLOCK

    def blocks(self) -> Iterator[Block[Any]]:
        """Blocks of at most `size` rows; an empty one where there are none."""
        for start in range(self.start, max(self.end, self.start + 1), self.size):
            end = min(start + self.size, self.end)
            rows = self.table.between(start, end)
            yield Block(rows, self.bias, self.targets[start:end], self.norms[start:end])
