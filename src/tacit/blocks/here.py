"""`ThisMachine`: parts that this process reads, on all cores. What is read again is held in a scratch."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from tacit._types import Floats
from tacit.blocks.scratch import Filed, Held, Scratch
from tacit.blocks.source import Blocks, Kept, Raw, Source
from tacit.blocks.sums import cores, cuts, on_threads
from tacit.blocks.table import Table, stays_sparse
from tacit.kernels.exact import BLOCK
from tacit.kernels.given import Block

_CELLS = 2**19  # of rows that are read from the scratch at a time: eight blocks at most


class ThisMachine:
    """The place of rows that this process reads. It is closed when a fit ends.

    `in_memory` says how many bytes it holds before it writes a scratch file.
    """

    is_here = True

    def __init__(self, in_memory: float | None = None) -> None:
        self._scratch = Scratch(in_memory)

    def run(self, function: Callable[[Any], Any], parts: Sequence[Any]) -> Iterable[Any]:
        """On as many threads as may be used."""
        return on_threads(function, parts)

    def hold(self, function: Callable[[Any, int], Any], parts: Sequence[Any], rows: Sequence[int]) -> Sequence[Any]:
        """In a list."""
        return [function(part, count) for part, count in zip(parts, rows, strict=True)]

    def keep(self, blocks: Blocks, parts: Sequence[Any], rows: Sequence[int]) -> Kept:
        """Full blocks of rows, in the scratch."""
        del rows

        def hold(part: Any) -> list[_Bounded]:
            return [self._held(rows) for rows in _gathered(blocks(part))]

        found = [one for held in self.run(hold, parts) for one in held]
        size = max(1, -(-len(found) // (4 * cores())))
        groups = [_Group(found[start : start + size]) for start in range(0, max(len(found), 1), size)]
        return Kept(groups, [sum(one.rows for one in group.held) for group in groups], on_threads)

    def spooled(self, parts: Sequence[Any]) -> list[Any]:
        """The same parts; of those that take long to read, tables of numbers are held when they were read once."""
        return [Spooled(part, self._scratch) if getattr(part, "is_slow", False) else part for part in parts]

    def _held(self, block: Block[Any]) -> "_Bounded":
        return _Bounded(self._scratch.put(block.targets, block.norms, block.rows), len(block.targets), block.bias)

    def close(self) -> None:
        """Give the scratch back."""
        self._scratch.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _gathered(blocks: Iterator[Block[Any]]) -> Iterator[Block[Any]]:
    """The same rows, some blocks of them at a time; none where there are none."""
    held: list[Block[Any]] = []
    count, empty = 0, True
    for block in blocks:
        start, most = 0, BLOCK * max(1, min(8, _CELLS // (BLOCK * block.rows.shape[1])))
        while start < len(block.targets) or (empty and start == 0):
            end = start + most - count
            held.append(between(block, start, end))
            count, start, empty = count + len(held[-1].targets), end, False
            if count == most:
                yield joined(held)
                held, count = [], 0
    if held:
        yield joined(held)


def between(block: Block[Any], start: int, end: int) -> Block[Any]:
    """The rows from one place to another."""
    return Block(block.rows[start:end], block.bias, block.targets[start:end], block.norms[start:end])


def joined(blocks: Sequence[Block[Any]]) -> Block[Any]:
    """One block of its own memory: what it was cut from is not held."""
    rows, targets, norms = (
        np.concatenate(arrays)
        for arrays in ([b.rows for b in blocks], [b.targets for b in blocks], [b.norms for b in blocks])
    )
    return Block(rows, blocks[0].bias, targets, norms)


@dataclass(frozen=True, eq=False, repr=False)
class _Bounded:
    """Some bounded rows in the scratch."""

    arrays: Held | Filed
    rows: int
    bias: float

    def blocks(self, size: int) -> Iterator[Block[Any]]:
        targets, norms, rows = self.arrays.read()
        whole = Block(rows, self.bias, targets, norms)
        return (between(whole, start, start + size) for start in range(0, max(self.rows, 1), size))


@dataclass(frozen=True, eq=False, repr=False)
class _Group:
    """Rows that one thread reads."""

    held: Sequence[_Bounded]
    size: int = BLOCK

    def blocks(self) -> Iterator[Block[Any]]:
        """One after the other, of at most `size` rows."""
        return (block for one in self.held for block in one.blocks(self.size))


def rows_of(X: Any, place: ThisMachine) -> Source | Table:
    """The rows of a PCA: in slices, or as they are stored where they are sparse and wide."""
    if stays_sparse(X):
        return Table.of(X)
    return in_slices(X, np.broadcast_to(0.0, X.shape[0]), place)


def in_slices(X: Any, targets: Floats, place: ThisMachine) -> Source:
    """The rows of an array, which may be mapped from a file, or of CSR, which are made dense a few at a time."""
    places = cuts(*X.shape)
    parts = [_Slice(X, targets, cut) for cut in places]
    return Source(X.shape[1], parts, [cut.stop - cut.start for cut in places], place)


@dataclass(frozen=True, eq=False, repr=False)
class _Slice:
    """Some rows of a table."""

    X: Any
    targets: Floats
    cut: slice

    def blocks(self) -> Iterator[Raw]:
        """A few at a time."""
        for start in range(self.cut.start, max(self.cut.stop, self.cut.start + 1), 8_192):
            end = min(start + 8_192, self.cut.stop)
            rows = self.X[start:end]
            yield Raw(rows.toarray() if hasattr(rows, "toarray") else rows, self.targets[start:end])


class Spooled:
    """A part that is read once: its tables of numbers are in the scratch from then on, those with text are not."""

    def __init__(self, part: Any, scratch: Scratch) -> None:
        self.part, self._scratch = part, scratch
        self.is_typed = bool(getattr(part, "is_typed", False))
        self._held: list[tuple[Held | Filed, NDArray[Any]]] | None = None

    def tables(self) -> Iterator[tuple[Any, Any]]:
        """As the part gives them; without the names of columns when they are read again."""
        if self._held is not None:
            for arrays, labels in self._held:
                X, *y = arrays.read()
                yield X, None if not y else labels[y[0]] if len(labels) else y[0]
            return
        held: list[Any] = []
        for X, y in self.part.tables():
            if None not in held[-1:]:
                held.append(self._put(X, y))
            yield X, y
        self._held = None if None in held[-1:] else held

    def _put(self, X: Any, y: Any) -> tuple[Held | Filed, NDArray[Any]] | None:
        """Rows and targets in the scratch, and what the numbers of labels mean; None for what is no numbers."""
        if hasattr(X, "tocsr"):
            return None
        try:
            rows = check_array(X, ensure_all_finite=False, dtype=[np.float64, np.float32], ensure_min_samples=0)
            if y is None:
                return self._scratch.put(np.ascontiguousarray(rows)), np.empty(0)
            labels, targets = np.empty(0), np.asarray(y)
            if targets.dtype.kind not in "biuf":
                labels, targets = np.unique(targets, return_inverse=True)
        except (TypeError, ValueError, OverflowError):
            return None
        return self._scratch.put(np.ascontiguousarray(rows), np.ascontiguousarray(targets)), labels
