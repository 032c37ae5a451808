"""Sparse rows in blocks: a CSR matrix, or a stream that is read again for every pass.

What is in memory is one block of rows at a time, so a stream may be larger than memory. Everything here is private
except the numbers of rows and columns.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from tacit._types import Floats
from tacit.kernels import moments
from tacit.kernels.given import Csr

WIDEST = 256
"""Columns of sparse rows that a PCA takes for dense ones: exact sums cost little more for so few."""

_BLOCK = 8_192


@dataclass(frozen=True, eq=False)
class Table:
    """CSR rows in blocks. `read` starts a pass over all of them; `array` is there if single rows can be picked."""

    n: int
    d: int
    read: Callable[[], Iterable[Any]]
    array: Any = None

    @classmethod
    def of(cls, X: Any) -> "Table":
        """The rows of a CSR matrix with sorted indices."""
        return cls(X.shape[0], X.shape[1], lambda: iter([X]), X)

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns, which are public."""
        return self.n, self.d

    def blocks(self) -> Iterator[Any]:
        """Blocks of a few rows."""
        for block in self.read():
            for start in range(0, block.shape[0], _BLOCK):
                yield block[start : start + _BLOCK]

    def changed(self, change: Callable[[Any], Any]) -> "Table":
        """The table with its blocks changed: rows in memory at once, others when they are read."""
        if self.array is None:
            return replace(self, read=lambda: map(change, self.read()))
        array = change(self.array)
        return replace(self, read=lambda: iter([array]), array=array)

    def distances(self, centre: Floats) -> Floats:
        """|x - centre| of every row; NaN in place of rows that are not there."""
        out = np.full(self.n, np.nan)
        start = 0
        for block in self.blocks():
            end = start + block.shape[0]
            moments.sparse_distances(csr_parts(block), centre, out[start:end])
            start = end
        return out

    def __repr__(self) -> str:
        return "Table(private)"


def is_sparse(X: Any) -> bool:
    """Whether it is one of SciPy's sparse kinds."""
    return bool(sparse.issparse(X))


def stays_sparse(X: Any) -> bool:
    """Whether a PCA sums such rows as they are stored; from the public number of columns alone."""
    return is_sparse(X) and X.shape[1] > WIDEST


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
