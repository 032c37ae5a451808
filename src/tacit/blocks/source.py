"""Rows that are not all in memory: parts that are read again, wherever they are.

A `Source` is the rows of a fit as they come: slices of a memory map, row groups of files, partitions of a cluster. A
`Place` is where its parts are and who reads them: `tacit.blocks.here` is this machine. Sums over the parts are exact
(`tacit.blocks.sums`), so it makes no difference how rows are cut into parts.

Rows are bounded once, and held as `Kept` parts next to where they came from: in memory, in a scratch file, on workers.
Everything here is private except the numbers of rows and columns.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from tacit._types import Flags, Floats, Integers, Places, Table
from tacit.blocks.sums import Kernel, Readable, Run, Total, sum_over
from tacit.kernels.given import Block

TARGET: Literal["target"] = "target"


class Raw(NamedTuple):
    """Some rows as they come, and their targets as numbers: classes are -1 and 1, or 0, 1, 2 ..."""

    X: Table
    y: Floats

    def cells(self, which: "Places | Literal['target'] | None") -> Table:
        """All columns, some of them, or the target as the only one."""
        if which is None:
            return self.X
        return self.y[:, None] if isinstance(which, str) else self.X[:, which]


Blocks = Callable[[Any], Iterator[Block[Any]]]
"""Reads a part, and bounds its rows a block at a time. It can be sent to where the part is."""


class Place(Protocol):
    """Where parts are, and who reads them. `is_here` says that this process does, and may read them by itself too."""

    is_here: bool

    def run(self, function: Callable[[Any], Any], parts: Sequence[Any]) -> Iterable[Any]:
        """What the function returns for every part, in the order of the parts."""

    def hold(self, function: Callable[[Any, int], Any], parts: Sequence[Any], rows: Sequence[int]) -> Sequence[Any]:
        """Other parts: what the function makes of every part and its number of rows. They stay where they are."""

    def keep(self, blocks: Blocks, parts: Sequence[Any], rows: Sequence[int]) -> "Kept":
        """The blocks that are made of every part, held where they can be read many times."""

    def spooled(self, parts: Sequence[Any]) -> Sequence[Any]:
        """The same parts, which may hold what they have read, to read it faster the next time."""

    def close(self) -> None:
        """Let go of what is held: the fit has ended."""


@dataclass(frozen=True, eq=False)
class Source:
    """Rows in parts, of which `rows` says how many are in each; `which` of their columns a release looks at."""

    d: int
    parts: Sequence[Any]
    rows: Sequence[int]
    place: Place
    which: "Places | Literal['target'] | None" = None

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns, which are public."""
        return sum(self.rows), self.d

    def some(self, columns: Flags) -> "Source":
        """The columns that are flagged."""
        return replace(self, which=np.flatnonzero(columns), d=int(np.count_nonzero(columns)))

    @property
    def target(self) -> "Source":
        """The target, as a column."""
        return replace(self, which=TARGET, d=1)

    def sum(self, kernel: Kernel, *public: Any) -> Total:
        """The exact sum of `kernel(cells, *public)` over blocks of the cells that are looked at. Private."""
        return sum_over(self.parts, partial(_of_cells, kernel, self.which), *public, run=self.place.run)

    def kept(self, change: Callable[[Raw], Block[Any]]) -> "Kept":
        """The rows as `change` bounds them, block by block."""
        return self.place.keep(partial(_changed, change), self.parts, self.rows)

    def __repr__(self) -> str:
        return "Source(private)"


def _of_cells(kernel: Kernel, which: Any, block: Raw, *public: Any) -> Integers:
    return kernel(block.cells(which), *public)


def _changed(change: Callable[[Raw], Block[Any]], part: Readable) -> Iterator[Block[Any]]:
    return map(change, part.blocks())


@dataclass(frozen=True, eq=False)
class Kept:
    """Bounded rows in parts, whose blocks `tacit.kernels.exact` can sum.

    `is_here` says that one process reads all of them, so that BLAS may use its own threads for a wide matrix.
    """

    parts: Sequence[Any]
    rows: Sequence[int]
    run: Run
    is_here: bool = True

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of rows."""
        return (sum(self.rows),)

    def __getitem__(self, places: Integers) -> "Kept":
        """The rows at these places, which increase. How many of them are in each part is as private as the rows."""
        starts = np.concatenate([[0], np.cumsum(self.rows)])
        cuts = np.searchsorted(places, starts)
        picked = [
            Picked(part, places[first:last] - start)
            for part, start, first, last in zip(self.parts, starts, cuts, cuts[1:], strict=False)
        ]
        return replace(self, parts=picked, rows=np.diff(cuts).tolist())

    def class_counts(self, classes: int) -> Integers:
        """How many rows are of each class."""
        return sum_over(self.parts, _class_counts, classes, run=self.run).floats(0).astype(np.int64)

    def __repr__(self) -> str:
        return "Kept(private)"


def class_numbers(targets: Floats, classes: int) -> Integers:
    """Targets as the numbers of their classes."""
    return (targets > 0.0 if classes == 2 else targets).astype(np.int64)


def _class_counts(block: Block[Any], classes: int) -> Integers:
    return np.bincount(class_numbers(block.targets, classes), minlength=classes)


@dataclass(frozen=True, eq=False, repr=False)
class Picked:
    """Some rows of a part, by their places in it."""

    part: Readable
    places: Integers

    def blocks(self) -> Iterator[Block[Any]]:
        """Those rows, in blocks; an empty one where there are none."""
        start = 0
        for block in self.part.blocks():
            end = start + len(block.targets)
            first, last = np.searchsorted(self.places, [start, end])
            if first < last or start == 0:
                chosen = self.places[first:last] - start
                yield Block(block.rows[chosen], block.bias, block.targets[chosen], block.norms[chosen])
            start = end
