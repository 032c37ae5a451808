"""Arrays that are held for a fit: in memory while there are few of them, then in a scratch file.

A scratch file has no name that another process could open, and is gone when the fit ends. It holds private numbers all
the same: it belongs on a disk of the data holder's (`TMPDIR` says where).
"""

import math
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

IN_MEMORY = 2**28
"""Bytes that are held in memory, if nothing else is said."""

Arrays = tuple[NDArray[Any], ...]


class Scratch:
    """Takes arrays and gives them back, to any number of threads."""

    def __init__(self, in_memory: float | None = None) -> None:
        self._file: Any = None
        self._most = IN_MEMORY if in_memory is None else in_memory
        self._lock, self._held, self._end = Lock(), 0, 0

    def put(self, *arrays: NDArray[Any]) -> "Held | Filed":
        """Hold arrays of numbers."""
        size = sum(array.nbytes for array in arrays)
        with self._lock:
            if self._held + size <= self._most:
                self._held += size
                return Held(arrays)
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="tacit-", buffering=0)  # noqa: SIM115
            offset = self._end
            self._end += size
            self._file.seek(offset)
            for array in arrays:
                left = memoryview(cast(Any, np.ascontiguousarray(array).reshape(-1).view(np.uint8)))
                while left:
                    left = left[self._file.write(left) :]
        return Filed(self, offset, size, tuple((array.dtype, array.shape) for array in arrays))

    def read(self, offset: int, size: int) -> NDArray[np.uint8]:
        """What was written there."""
        data = np.empty(size, dtype=np.uint8)
        left = memoryview(cast(Any, data))
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
