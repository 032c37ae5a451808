"""Rows inside their declared bounds and without holes, while they are read: each row by itself.

Holes of dense rows stay: what reads them takes the difference to a centre, and takes a hole for zero there.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from tacit._types import Flags, Floats
from tacit.blocks.table import Table
from tacit.problems.bounds import Bounds

Change = Callable[[Any], Any]


def mended(table: Table, bounds: Bounds | None, centre: Floats) -> Table:
    """The rows, with values clipped to their bounds and holes of sparse rows at the centre."""
    if table.sparse:

        def of_sparse(block: Any) -> Any:
            data = block.data
            if bounds is not None:
                data = np.clip(data, bounds.low[block.indices], bounds.high[block.indices])
            return _with(block, np.where(np.isnan(data), centre[block.indices], data))

        return _changed(table, of_sparse)
    return table if bounds is None else _changed(table, lambda block: np.clip(block, bounds.low, bounds.high))


def without(table: Table, columns: Flags) -> Table:
    """The rows, with zeros in place of some columns."""
    if not columns.any():
        return table
    if table.sparse:
        return _changed(table, lambda block: _with(block, np.where(columns[block.indices], 0.0, block.data)))
    return _changed(table, lambda block: np.where(columns, 0.0, block))


def _with(block: Any, data: Any) -> Any:
    return csr_array((data, block.indices, block.indptr), shape=block.shape)


def _changed(table: Table, change: Change) -> Table:
    """The table with its blocks changed: sparse rows in memory at once, others when they are read."""

    def read() -> Iterator[Any]:
        for block in table.read():
            yield change(block) if table.sparse else _View(block, change)

    if table.array is None:
        return replace(table, read=read)
    array = change(table.array) if table.sparse else _View(table.array, change)
    return replace(table, read=lambda: iter([array]), array=array)


@dataclass(frozen=True, eq=False)
class _View:
    """Dense rows that are changed when they are picked; an array may be larger than memory."""

    rows: Any
    change: Change

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.rows.shape)

    def __getitem__(self, places: Any) -> Any:
        return self.change(self.rows[places])

    def __repr__(self) -> str:
        return "View(private)"
