"""What runs on the workers of a Dask cluster: rows that stay there, and answers that are sent back.

A worker has no noise and no model. What fails there is told by its kind alone, since its words may quote a cell.
"""

import hashlib
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from dask.sizeof import sizeof
from distributed import get_worker

from tacit.blocks.here import between, joined
from tacit.blocks.partitions import tables
from tacit.blocks.source import Blocks
from tacit.kernels.exact import BLOCK
from tacit.kernels.fingerprint import fingerprint
from tacit.kernels.given import Block

VERSION = str(sys.modules["tacit"].__version__)
"""Workers must bound rows as the client would."""

Marks = tuple[bytes, ...]


class Home(NamedTuple):
    """A worker that has some rows: its address, its threads, and the bytes of these rows."""

    address: str
    threads: int
    size: int


class Answer(NamedTuple):
    """What a worker sends back: which rows it is of, where they are, what failed, or the result."""

    version: str
    marks: Marks
    home: Home | None
    failed: str | None
    result: Any


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """Rows as they came, and their fingerprint."""

    held: Sequence[tuple[Any, Any]]
    target: str | None
    is_typed: bool
    marks: Marks

    def tables(self) -> Iterator[tuple[Any, Any]]:
        """A few at a time."""
        return (table for X, y in self.held for table in tables(X, y, self.target))

    def __sizeof__(self) -> int:
        return int(sum(sizeof(X) + sizeof(y) for X, y in self.held))


@dataclass(frozen=True, eq=False, repr=False)
class BoundedRows:
    """Bounded rows, and the fingerprints of the partitions that they were."""

    block: Block[Any]
    marks: Marks

    def blocks(self, size: int = BLOCK) -> Iterator[Block[Any]]:
        """In blocks for exact sums."""
        count = len(self.block.targets)
        return (between(self.block, start, start + size) for start in range(0, max(count, 1), size))

    def __sizeof__(self) -> int:
        return int(self.block.rows.nbytes + self.block.targets.nbytes + self.block.norms.nbytes)


@dataclass(frozen=True, eq=False, repr=False)
class InBlocks:
    """Bounded rows in blocks of at most `size` rows, which a pass may choose."""

    part: Any
    size: int = BLOCK

    def blocks(self) -> Iterator[Block[Any]]:
        """They."""
        found: Iterator[Block[Any]] = self.part.blocks(self.size)
        return found


@dataclass(frozen=True)
class Failed:
    """In place of rows that could not be had."""

    kind: str
    marks: Marks = ()


def computed(X: Any, y: Any, target: str | None) -> Rows | Failed:
    """The rows of a partition."""
    try:
        return Rows([(X, y)], target, is_typed=False, marks=(_mark([(X, y)]),))
    except Exception as error:
        return Failed(type(error).__name__)


def read(part: Any, rows: Rows | Failed | None = None) -> Rows | Failed:
    """The rows of a file, or of a part that is made of rows."""
    if isinstance(rows, Failed):
        return rows
    try:
        part = part if rows is None else _filled(part, rows)
        held = list(part.tables())
        return Rows(held, None, bool(getattr(part, "is_typed", False)), (_mark(held),))
    except Exception as error:
        return Failed(type(error).__name__)


def bounded(blocks: Blocks, shells: Sequence[Any], rows: Sequence[Rows | Failed]) -> BoundedRows | Failed:
    """One block of all these rows, bounded."""
    for one in rows:
        if isinstance(one, Failed):
            return one
    try:
        made = [block for shell, one in zip(shells, rows, strict=True) for block in blocks(_filled(shell, one))]
        marks = tuple(mark for one in rows for mark in one.marks)
        return BoundedRows(made[0] if len(made) == 1 else joined(made), marks)
    except Exception as error:
        return Failed(type(error).__name__)


def answers(function: Callable[[Any], Any], shells: Sequence[Any], rows: Sequence[Any]) -> list[Answer]:
    """What the function returns for each part, or the kind of error that it raised."""
    return [_answer(function, shell, one) for shell, one in zip(shells, rows, strict=True)]


def _answer(function: Callable[[Any], Any], shell: Any, rows: Any) -> Answer:
    if isinstance(rows, Failed):
        return Answer(VERSION, (), None, rows.kind, None)
    worker = get_worker()
    home = Home(worker.address, worker.state.nthreads, sizeof(rows))
    try:
        return Answer(VERSION, rows.marks, home, None, function(_filled(shell, rows)))
    except Exception as error:
        return Answer(VERSION, rows.marks, home, type(error).__name__, None)


def _filled(shell: Any, rows: Any) -> Any:
    """The part, with its rows."""
    return rows if shell is None else replace(shell, part=_filled(shell.part, rows))


def _mark(held: Sequence[tuple[Any, Any]]) -> bytes:
    """A fingerprint of the rows, in their order."""
    digest = hashlib.sha1(usedforsecurity=False)
    for X, y in held:
        for table in (X, y):
            for array in _arrays(table):
                digest.update(str(array.shape).encode())
                digest.update(fingerprint(array))
    return digest.digest()


def _arrays(table: Any) -> Iterator[Any]:
    """The numbers of a table; of text, numbers that stand for it."""
    if table is None:
        return
    if hasattr(table, "columns") and hasattr(table, "iloc"):
        for place in range(table.shape[1]):
            yield from _arrays(table.iloc[:, place].to_numpy())
    elif hasattr(table, "tocsr"):
        rows = table.tocsr()
        yield from (rows.data, rows.indices, rows.indptr)
    else:
        array = np.asarray(table)
        if array.dtype.kind in "biufc":
            yield array
        else:
            from pandas.util import hash_array

            yield hash_array(array.ravel().astype(object), categorize=False)
