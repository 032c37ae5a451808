"""The cost model of a fit of files: seconds of single operations, put together as a fit makes them.

A logistic fit of n rows by d columns, with nothing declared, reads a file once and holds its numbers, 8 n d bytes. It
makes two passes over these for scales. It bounds the rows and holds them, 4 n d + 16 n bytes, and makes a pass over
those for each step. Everything but a constant grows with n, and everything that grows is shared by the cores.
"""

import mmap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.cost.one_pass import exact_passes
from benchmarks.frame.timing import least
from tacit.blocks import Scaling
from tacit.blocks import scratch as scratches
from tacit.blocks.reading import opened
from tacit.kernels.exact import dense_norms
from tacit.kernels.scaling import magnitude_histograms
from tacit.problems import LOGISTIC

SAMPLE = 131_072  # rows: two row groups
_ROUNDS = 3


class Rates(NamedTuple):
    """Seconds of one core a cell, and a byte."""

    read: float
    check: float
    count: float
    bound: float
    gradient: float
    write: float  # a byte, to the scratch file
    again: float  # a byte, from it
    fixed: float  # seconds of a fit of few rows


def rates(some: Callable[..., Any], make: Callable[..., str], folder: Path, d: int) -> Rates:
    """Measured on a sample of the rows."""
    X, y = some(0, SAMPLE, d)
    where, cells = make(folder, SAMPLE, d), SAMPLE * d
    low, high = np.full(d, -100), np.full(d, 100)
    counts, norms = np.empty((d, 2 * 201 + 1)), np.empty(SAMPLE)
    scaling = Scaling(np.zeros(d), np.full(d, 50.0), 3.0)
    Z = scaling.on_grid(X)
    passes = exact_passes(LOGISTIC, 1, Z, np.where(y, 1.0, -1.0))
    w = np.zeros((1, d + 1))

    def bounding() -> None:
        dense_norms(scaling.on_grid(X), 1.0, norms)

    took = least(
        _ROUNDS,
        {
            "read": lambda: _read(where),
            "seen": lambda: _seen(where),
            "count": lambda: magnitude_histograms(X, np.zeros(d), low, high, counts),
            "bound": bounding,
            "gradient": lambda: passes.gradient(w, 1.0),
        },
    )
    written, again = _scratch(X)
    return Rates(
        took["read"] / cells,
        max(took["seen"] - took["read"], 0.0) / cells,
        took["count"] / cells,
        took["bound"] / cells,
        took["gradient"] / cells,
        written / X.nbytes,
        again / X.nbytes,
        _fixed(some, d),
    )


def predicted(known: Rates, n: int, d: int, steps: int) -> float:
    """Seconds of the processor, of all cores together, that a fit takes."""
    cells = n * d
    raw, kept = 8.0 * cells, 4.0 * cells + 16.0 * n
    held = float(scratches.IN_MEMORY)
    on_disk = max(raw + kept - held, 0.0)
    each = known.read + known.check + 2.0 * known.count + known.bound + (steps + 1) * known.gradient
    # Histograms and bounding read the numbers three times; each step reads the bounded rows, where they are on disk.
    bytes_again = 3.0 * max(raw - held, 0.0) + (steps + 1) * min(kept, on_disk)
    return known.fixed + cells * each + on_disk * known.write + bytes_again * known.again


def _read(where: str) -> None:
    with opened(where, "readmitted") as reading:
        for part in reading.parts:
            for _ in part.tables():
                pass


def _seen(where: str) -> None:
    with opened(where, "readmitted") as reading:
        reading.place.spooled = lambda parts: parts  # without holding them
        reading.place.run = lambda function, parts: map(function, parts)
        reading.seen("labels")


def _scratch(X: Any) -> tuple[float, float]:
    """Seconds that it takes to write an array to a scratch file, and to read it again."""
    before, scratches.IN_MEMORY = scratches.IN_MEMORY, 0
    try:
        held = scratches.Scratch()
        start = time.process_time()
        filed = held.put(X)
        middle = time.process_time()
        for array in filed.read():
            array.reshape(-1)[:: mmap.PAGESIZE // array.itemsize].sum()  # a page is there when it is first looked at
        end = time.process_time()
        held.close()
    finally:
        scratches.IN_MEMORY = before
    return middle - start, end - middle


def _fixed(some: Callable[..., Any], d: int) -> float:
    """Seconds of a fit of few rows: plan, noise and what is done for each column."""
    from tacit import LogisticRegression

    X, y = some(0, 5_000, d)
    LogisticRegression(classes=[0, 1]).fit(X, y)
    start = time.process_time()
    LogisticRegression(classes=[0, 1]).fit(X, y)
    return time.process_time() - start
