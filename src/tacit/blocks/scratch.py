"""Arrays that are held for a fit: in memory while there are few of them, then in a scratch file.

A scratch file has no name that another process could open, and is gone when the fit ends. It holds private numbers all
the same: it belongs on a disk of the data holder's (`TMPDIR` says where).
"""

import math
import mmap
import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

IN_MEMORY = 2**28
"""Bytes that are held in memory, if nothing else is said."""

_AT_ONCE = 2**28  # bytes of the file that are asked for together
_APART = 64  # bytes: what is put begins at a multiple of them, where numbers of any length may lie

Arrays = tuple[NDArray[Any], ...]


class Scratch:
    """Takes arrays and gives them back, to any number of threads."""

    def __init__(self, in_memory: float | None = None) -> None:
        self._file: Any = None
        self._most = IN_MEMORY if in_memory is None else in_memory
        self._lock, self._held, self._end, self._room = Lock(), 0, 0, 0

    def put(self, *arrays: NDArray[Any]) -> "Held | Filed":
        """Hold arrays of numbers."""
        size = sum(array.nbytes for array in arrays)
        with self._lock:
            if self._held + size <= self._most:
                self._held += size
                return Held(arrays)
            offset = -(-self._end // _APART) * _APART
            self._end = offset + size
            self._grow()
        end = offset
        for array in arrays:
            self._write(memoryview(cast(Any, np.ascontiguousarray(array).reshape(-1).view(np.uint8))), end)
            end += array.nbytes
        return Filed(self, offset, size, tuple((array.dtype, array.shape) for array in arrays))

    def read(self, offset: int, size: int) -> NDArray[np.uint8]:
        """What was written there: pages of the file as the system holds them, which no one copies.

        They are not kept as part of this process: what reads them lets them go.
        """
        start = offset - offset % mmap.ALLOCATIONGRANULARITY
        pages = mmap.mmap(self._file.fileno(), offset + size - start, access=mmap.ACCESS_COPY, offset=start)
        return np.frombuffer(pages, dtype=np.uint8, count=size, offset=offset - start)

    def _grow(self) -> None:
        """Have room on the disk for all that was put: some systems are slow to find it write by write."""
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="tacit-", buffering=0)  # noqa: SIM115
        if self._end > self._room and hasattr(os, "posix_fallocate"):
            more = max(_AT_ONCE, self._end - self._room)
            with suppress(OSError):  # where a whole piece is too much, what is written may still fit
                os.posix_fallocate(self._file.fileno(), self._room, more)
            self._room += more

    def _write(self, left: memoryview, offset: int) -> None:
        """To the file; many threads at once where the system lets each say its place."""
        while left:
            if hasattr(os, "pwrite"):
                count = os.pwrite(self._file.fileno(), left, offset)
            else:
                with self._lock:
                    self._file.seek(offset)
                    count = self._file.write(left) or 0
            left, offset = left[count:], offset + count

    def close(self) -> None:
        """Delete the file, if there is one."""
        if self._file is not None:
            self._file.close()


@dataclass(frozen=True, eq=False, repr=False)
class Held:
    """Arrays in memory."""

    arrays: Arrays

    def read(self) -> Arrays:
        """Them."""
        return self.arrays


@dataclass(frozen=True, eq=False, repr=False)
class Filed:
    """Arrays in the scratch file."""

    scratch: Scratch
    offset: int
    size: int
    kinds: Sequence[tuple[Any, tuple[int, ...]]]

    def read(self) -> Arrays:
        """Them, from the file; the longest numbers come first, so that all lie where numbers of their length may."""
        data, start, found = self.scratch.read(self.offset, self.size), 0, []
        for kind, shape in self.kinds:
            end = start + kind.itemsize * math.prod(shape)
            found.append(data[start:end].view(kind).reshape(shape))
            start = end
        return tuple(found)
