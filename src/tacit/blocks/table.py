"""A table as blocks of rows: an array, a CSR matrix, or a stream that is read again for every pass.

What is in memory is one block of rows at a time, so a memory-mapped array or a stream of blocks may be larger than
memory. Everything here is private except the numbers of rows and columns.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from tacit._types import Floats, Integers
from tacit.kernels import moments
from tacit.kernels.given import Csr

_SPARSE_BLOCK = 8_192


@dataclass(frozen=True, eq=False)
class Table:
    """Rows in blocks. `read` starts a pass over all of them; `array` is there if single rows can be picked."""

    n: int
    d: int
    sparse: bool
    read: Callable[[], Iterable[Any]]
    array: Any = None

    @classmethod
    def of(cls, X: Any) -> "Table":
        """The rows of an array, in memory or mapped, or of a CSR matrix with sorted indices."""

        def read() -> Iterator[Any]:
            yield X

        return cls(X.shape[0], X.shape[1], is_sparse(X), read, X)

    def blocks(self, places: Integers | None = None, size: int | None = None) -> Iterator[Any]:
        """Blocks of a few rows, all of them or those at some places; dense ones have at most `size`."""
        step = _SPARSE_BLOCK if self.sparse else size or moments.PASS_BLOCK
        if places is None:
            for block in self.read():
                for start in range(0, block.shape[0], step):
                    yield block[start : start + step]
        else:
            for start in range(0, len(places), step):
                yield self.array[places[start : start + step]]

    def distances(self, centre: Floats) -> Floats:
        """|x - centre| of every row; NaN in place of rows that are not there."""
        out = np.full(self.n, np.nan)
        start = 0
        for block in self.blocks():
            end = start + block.shape[0]
            block_distances(block, centre, out[start:end])
            start = end
        return out

    def __repr__(self) -> str:
        return "Table(private)"


def is_sparse(X: Any) -> bool:
    """Whether it is one of SciPy's sparse kinds."""
    return bool(sparse.issparse(X))


def canonical(X: Any) -> Any:
    """CSR rows with increasing indices and no repeated entry; dense rows as they are."""
    if not is_sparse(X):
        return X
    rows: Any = sparse.csr_array(X)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def csr_parts(block: Any) -> Csr:
    """The three arrays of CSR rows, in the types that kernels are compiled for."""
    return Csr(
        block.data.astype(np.float64, copy=False),
        block.indices.astype(np.int64, copy=False),
        block.indptr.astype(np.int64, copy=False),
    )


def block_distances(block: Any, centre: Floats, out: Floats) -> None:
    """|x - centre| of the rows of one block, each from a loop over its own row."""
    if is_sparse(block):
        moments.sparse_distances(csr_parts(block), centre, out)
    else:
        moments.dense_distances(np.ascontiguousarray(block), centre, out)
