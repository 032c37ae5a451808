"""`sum_over`: one pass over the parts of a table, as an exact sum. And which cores it may use.

A part is something that can be read again: it yields blocks of at most 2,048 rows on the grid. A kernel is a function
of a block and of public numbers that gives the block's sum in whole steps (`tacit.kernels.exact`). Whole numbers add up
to the same total in any order, so it makes no difference how rows are cut into blocks and parts, and who adds them.

Totals outgrow 64 bits: 2^57 steps of a block times the blocks of a billion rows. They are held as two whole numbers,
`high` 2^32 + `low`, which hold 2^42 rows.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from threading import Lock
from typing import Any, Protocol

import numba
import numpy as np
from threadpoolctl import ThreadpoolController

from tacit._types import Floats, Integers
from tacit.kernels.exact import BLOCK

_LOW = 32
_LITTLE = 2**19  # cells, below which threads take longer to start than to add
_BLOCKS = 32  # whose sums of 2^57 fit in one int64, with what is left of the last ones


class Readable(Protocol):
    """A part of a table."""

    def blocks(self) -> Iterator[Any]:
        """Its rows, in blocks."""


Kernel = Callable[..., Integers]
Run = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]
"""Calls a function for every part, in any place and any order, and gives back what it returned for each."""


@dataclass(frozen=True, eq=False, repr=False)
class Total:
    """Whole numbers: high 2^32 + low, low from 0 to 2^32 - 1."""

    high: Integers
    low: Integers

    def __add__(self, other: "Total") -> "Total":
        low = self.low + other.low
        return Total(self.high + other.high + (low >> _LOW), low & (2**_LOW - 1))

    def floats(self, power: int) -> Floats:
        """Times 2^power: the nearest float64, in one rounding, as both numbers have fewer than 53 bits."""
        return np.ldexp(self.high.astype(np.float64) * 2.0**_LOW + self.low, power)


def sum_over(
    parts: Sequence[Readable], kernel: Kernel, *public: Any, run: Run | None = None, at_once: int = _BLOCKS
) -> Total:
    """The exact sum of `kernel(block, *public)` over all blocks of all parts. Private until it has noise.

    There is at least one part, and a row that is in two of them counts twice. The kernel gives int64 numbers of one
    shape, below 2^57; or larger ones, of which `at_once` add up to at most 2^62. `run` calls it for each part: by
    default the threads of this machine that may be used.
    """
    of_part, run = partial(_of_part, kernel, public, at_once), run or on_threads
    found: list[Total] = []
    lock = Lock()

    def add(total: Total) -> None:
        with lock:
            found[:] = [found[0] + total] if found else [total]

    if run is on_threads:
        on_threads(lambda part: add(of_part(part)), parts)  # no more totals are held than there are threads
    else:
        for total in run(of_part, parts):
            add(total)
    return found[0]


def _of_part(kernel: Kernel, public: tuple[Any, ...], at_once: int, part: Readable) -> Total:
    found: Total | None = None
    held: Integers | None = None
    for number, block in enumerate(part.blocks(), start=1):
        one = kernel(block, *public)
        held = one if held is None else np.add(held, one, out=held)
        if number % at_once == 0:
            found, held = _carried(found, held), None
    if held is not None:
        found = _carried(found, held)
    if found is None:
        raise ValueError("a part has no rows")
    return found


def _carried(found: Total | None, held: Integers) -> Total:
    low = held & (2**_LOW - 1)
    more = Total(np.right_shift(held, _LOW, out=held), low)
    return more if found is None else found + more


def in_turn(function: Callable[[Any], Any], parts: Sequence[Any]) -> Iterator[Any]:
    """Call the function for one part after the other, on this thread."""
    return map(function, parts)


def on_threads(function: Callable[[Any], Any], parts: Sequence[Any]) -> list[Any]:
    """Call the function for every part, on as many threads as may be used; BLAS has one in each of them.

    This thread is one of them. The others stay for the next pass, as to start one takes as long as to read some hundred
    thousand numbers; those that other passes keep busy are not waited for.
    """
    threads = 1 if len(parts) == 1 else min(cores(), len(parts))
    if threads <= 1:
        return [function(part) for part in parts]
    found: list[Any] = [None] * len(parts)
    left, lock = list(reversed(range(len(parts)))), Lock()
    held = [(function, parts, found)]  # and not by `work`, which may wait behind other passes when this one is done

    def work() -> None:
        while True:
            with lock:
                if not left:
                    return
                place, (of_part, those, results) = left.pop(), held[0]
            try:
                with np.errstate(all="ignore"):  # as inside a gate, which other threads do not know of
                    results[place] = of_part(those[place])
            except BaseException:
                with lock:
                    left.clear()
                raise

    others: list[Future[None]] = []
    with _one_thread_each:
        try:
            with suppress(RuntimeError):  # where no more threads are to be had fewer do the same
                for _ in range(threads - 1):
                    others.append(_helpers(os.getpid()).submit(work))
            work()
        finally:
            with lock:
                left.clear()
            begun = [other for other in others if not other.cancel()]
            wait(begun)
            held.clear()
    for other in begun:
        other.result()
    return found


@cache
def _helpers(_process: int) -> ThreadPoolExecutor:
    """Threads of this process, started as they are asked for: a fork has none of its parent's."""
    return ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="tacit-pass")


class _OneThreadEach:
    """Holds BLAS to one thread while any pass of this process runs: its limits are global, and passes may overlap."""

    def __init__(self) -> None:
        self._lock, self._passes = Lock(), 0
        self._before: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._passes == 0:
                self._before = _libraries().limit(limits=1, user_api="blas")
            self._passes += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._passes -= 1
            if self._passes == 0:
                self._before.restore_original_limits()


_one_thread_each = _OneThreadEach()


def cuts(n: int, d: int) -> list[slice]:
    """Where to cut n rows of d columns into parts for threads; one part, perhaps empty, where they would be short."""
    size = max(BLOCK, -(-n // (16 * cores()))) if n * d >= _LITTLE else max(n, 1)
    return [slice(start, min(start + size, n)) for start in range(0, max(n, 1), size)]


def cores() -> int:
    """How many threads a pass may use: no more than OpenMP, numba or the limits of threadpoolctl and joblib allow."""
    here = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    asked = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    limits = [here, numba.config.NUMBA_NUM_THREADS, *(one["num_threads"] for one in _libraries().info())]
    return max(1, min([*limits, int(asked)] if asked.isdigit() else limits))


@cache
def _libraries() -> ThreadpoolController:
    """The libraries with threads of their own, whose limits are read anew each time."""
    return ThreadpoolController()
