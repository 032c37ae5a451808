"""`ThisMachine`: parts that this process reads, on all cores. Bounded rows are held in memory, or in a scratch file.

A scratch file has no name that another process could open, and is gone when the fit ends. It holds private numbers all
the same: it belongs on a disk of the data holder's (`TMPDIR` says where).
"""

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, Self

import numpy as np

from tacit.blocks.source import Blocks, Kept
from tacit.blocks.sums import cores, on_threads
from tacit.kernels.exact import BLOCK
from tacit.kernels.given import Block

IN_MEMORY = 2**28
"""Bytes of bounded rows up to which they are held in memory."""

_AT_ONCE = 16  # blocks that are read from the file together


class ThisMachine:
    """The place of rows that this process reads. It is closed when a fit ends."""

    def __init__(self) -> None:
        self._scratch: _Scratch | None = None

    def run(self, function: Callable[[Any], Any], parts: Sequence[Any]) -> Iterable[Any]:
        """On as many threads as may be used."""
        return on_threads(function, parts)

    def hold(self, function: Callable[[Any, int], Any], parts: Sequence[Any], rows: Sequence[int]) -> Sequence[Any]:
        """In a list."""
        return [function(part, count) for part, count in zip(parts, rows, strict=True)]

    def keep(self, blocks: Blocks, parts: Sequence[Any], rows: Sequence[int]) -> Kept:
        """Blocks of rows in memory, if all of them fit there, or in a scratch file."""

        def hold(part: Any) -> list[_InMemory | _OnDisk]:
            return [self._held(block, sum(rows)) for block in _gathered(blocks(part))]

        found = [block for held in self.run(hold, parts) for block in held]
        size = max(1, min(_AT_ONCE, -(-len(found) // (4 * cores()))))
        groups = [_Group(found[start : start + size]) for start in range(0, max(len(found), 1), size)]
        return Kept(groups, [sum(one.rows for one in group.held) for group in groups], on_threads)

    def _held(self, block: Block[Any], n: int) -> "_InMemory | _OnDisk":
        if n * block.rows.shape[1] * block.rows.itemsize <= IN_MEMORY:
            return _InMemory(block)
        with _opening:
            self._scratch = self._scratch or _Scratch()
        return self._scratch.write(block)

    def close(self) -> None:
        """Give the scratch file back."""
        if self._scratch is not None:
            self._scratch.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_opening = Lock()


def _gathered(blocks: Iterator[Block[Any]]) -> Iterator[Block[Any]]:
    """The same rows in blocks that are full, but for the last; an empty one where there are none."""
    held: list[Block[Any]] = []
    count, empty = 0, True
    for block in blocks:
        start = 0
        while start < len(block.targets) or (empty and start == 0):
            end = start + BLOCK - count
            held.append(_between(block, start, end))
            count, start, empty = count + len(held[-1].targets), end, False
            if count == BLOCK:
                yield _joined(held)
                held, count = [], 0
    if held:
        yield _joined(held)


def _between(block: Block[Any], start: int, end: int) -> Block[Any]:
    return Block(block.rows[start:end], block.bias, block.targets[start:end], block.norms[start:end])


def _joined(blocks: Sequence[Block[Any]]) -> Block[Any]:
    """One block of its own memory: what it was cut from is not held."""
    rows, targets, norms = (
        np.concatenate(arrays)
        for arrays in ([b.rows for b in blocks], [b.targets for b in blocks], [b.norms for b in blocks])
    )
    return Block(rows, blocks[0].bias, targets, norms)


@dataclass(frozen=True, eq=False, repr=False)
class _InMemory:
    """A block in memory."""

    block: Block[Any]

    @property
    def rows(self) -> int:
        return len(self.block.targets)

    def read(self) -> Block[Any]:
        return self.block


@dataclass(frozen=True, eq=False, repr=False)
class _OnDisk:
    """A block in a scratch file."""

    scratch: "_Scratch"
    offset: int
    rows: int
    columns: int
    bias: float

    def read(self) -> Block[Any]:
        """Targets, norms, then the rows: as they were written."""
        n, d = self.rows, self.columns
        data = self.scratch.read(self.offset, n * (16 + 4 * d))
        numbers = np.frombuffer(data, dtype=np.float64, count=2 * n)
        rows = np.frombuffer(data, dtype=np.float32, offset=16 * n).reshape(n, d)
        return Block(rows, self.bias, numbers[:n], numbers[n:])


@dataclass(frozen=True, eq=False, repr=False)
class _Group:
    """A few blocks, which one thread reads."""

    held: Sequence[_InMemory | _OnDisk]

    def blocks(self) -> Iterator[Block[Any]]:
        """One after the other."""
        return (one.read() for one in self.held)


class _Scratch:
    """A file without a name, which threads write to the end of, and read anywhere."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="tacit-", buffering=0)  # noqa: SIM115
        self._lock, self._end = Lock(), 0

    def write(self, block: Block[Any]) -> _OnDisk:
        """Append a block."""
        rows = np.ascontiguousarray(block.rows, dtype=np.float32)
        data = block.targets.tobytes() + block.norms.tobytes() + rows.tobytes()
        with self._lock:
            offset = self._end
            self._end += len(data)
            self._file.seek(offset)
            left = memoryview(data)
            while left:
                left = left[self._file.write(left) :]
        return _OnDisk(self, offset, rows.shape[0], rows.shape[1], block.bias)

    def read(self, offset: int, size: int) -> bytearray:
        """What was written there."""
        data = bytearray(size)
        left = memoryview(data)
        while left:
            if hasattr(os, "preadv"):
                count = os.preadv(self._file.fileno(), [left], offset)
            else:
                with self._lock:
                    self._file.seek(offset)
                    count = self._file.readinto(left) or 0
            if count == 0:
                raise OSError("the scratch file of this fit is shorter than what was written to it")
            left, offset = left[count:], offset + count
        return data

    def close(self) -> None:
        """Delete it."""
        self._file.close()
