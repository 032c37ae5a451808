"""`BlockTable`: rows in parts, changed while they are read. The steps of a pipeline hand it on to each other.

A step that treats each row by itself changes a table of a few rows at a time. Nothing is changed before it is read, and
what is read is forgotten, unless it is `held`: then numbers are in the scratch of the fit from the first reading on.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, Self

import numpy as np

from tacit._types import Floats
from tacit.blocks.reading import AGAIN, ChangedRowsError, Numbers, Reading, Seen, Targets, seen_table
from tacit.blocks.source import Source
from tacit.blocks.table import WIDEST, Table, is_sparse

Change = Callable[[Any], Any]
"""Makes a table of a table, row by row. It can be sent to where the rows are."""

Look = Callable[[Any, bool], Seen]
"""What can be told of a table, whose types were declared or not."""


_SPARSE_ROWS = 8_192


def rows_in(table: Any) -> int:
    """How many rows there are: public."""
    shape = getattr(table, "shape", None)
    if shape is not None and len(shape) > 0:
        return int(shape[0])
    if hasattr(table, "__len__"):
        return len(table)
    raise TypeError(f"X must be a table, got {type(table).__name__}")


@dataclass(frozen=True, eq=False, repr=False)
class Changed:
    """A part whose tables are changed while they are read."""

    part: Any
    change: Change
    is_slow = True

    @property
    def is_typed(self) -> bool:
        """Whether a schema declares the types of what is read."""
        return bool(getattr(self.part, "is_typed", False))

    def tables(self) -> Iterator[tuple[Any, Any]]:
        """The tables, changed, and their targets; without those that have no rows, which not every step takes.

        Sparse rows come a few at a time, as they are made dense to be counted and bounded.
        """
        for X, y in self.part.tables():
            if rows_in(X) == 0:
                continue
            table = self.change(X)
            if not is_sparse(table):
                yield table, y
                continue
            for start in range(0, table.shape[0], _SPARSE_ROWS):
                cut = slice(start, start + _SPARSE_ROWS)
                yield table[cut], y if y is None else y.iloc[cut] if hasattr(y, "iloc") else y[cut]


@dataclass(frozen=True, eq=False)
class BlockTable:
    """Rows in parts, of `d` columns, and what the first pass has told of them."""

    reading: Reading
    seen: Seen
    d: int

    @classmethod
    def of(cls, reading: Reading, targets: Targets, *, trusted: bool, sparse: bool = False) -> "BlockTable":
        """The first pass over a table of numbers: what is bad raises here, and sparse rows unless they are served."""
        seen = reading.seen(targets, trusted=trusted)
        if seen.sparse and not sparse:
            raise ValueError("blocks of sparse rows are taken by linear models and PCA, with no private step before")
        return cls(reading, seen, seen.columns or 0)

    @classmethod
    def looked_at(cls, reading: Reading, look: Look, targets: Targets) -> "BlockTable":
        """The first pass over a table of any kind, which `look` checks; so does this the targets."""
        seen = reading.joined(reading.place.run(partial(_looked_at, look, targets), reading.parts))
        return cls(reading, seen, seen.columns or 0)

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns, which are public."""
        return self.seen.rows, self.d

    def changed(self, change: Change, d: int, *, held: bool = False) -> "BlockTable":
        """The table that `change` makes of this one, of d columns."""
        reading = self.reading
        parts = reading.place.hold(partial(_changed, change), reading.parts, reading.rows)
        parts = reading.place.spooled(parts) if held else parts
        return replace(self, reading=replace(reading, parts=parts), d=d)

    def source(self, encode: Callable[[Any], Floats]) -> Source:
        """The rows as numbers, for exact sums."""
        return self.reading.source(self.d, encode)

    def components_rows(self) -> Source | Table:
        """The rows of a PCA; those that stay sparse are read in their order by this process."""
        if not self.seen.sparse or self.d <= WIDEST:
            return self.source(no_targets)
        self.reading.check_here(f"PCA of sparse rows with more than {WIDEST} columns")
        parts, rows = self.reading.parts, self.reading.rows

        def read() -> Iterator[Any]:
            numbers = (Numbers(self.d, no_targets, *one, sparse=True) for one in zip(parts, rows, strict=True))
            return (block.X for part in numbers for block in part.blocks())

        return Table(*self.shape, read=read)

    def total(self, function: Callable[[Any], Any], add: Callable[[Any, Any], Any]) -> Any:
        """What a function says of the tables of all parts, added up. Private. Other numbers of rows stop it."""
        found = list(self.reading.place.run(partial(_total, function, add), self.reading.parts))
        if tuple(rows for rows, _ in found) != self.reading.rows:
            raise ChangedRowsError(AGAIN)
        return reduce(add, (total for _, total in found if total is not None))

    def tell(self, estimator: Any) -> Self:
        """Let an estimator know the columns, as validation would."""
        told(estimator, self.seen)
        return self

    def __repr__(self) -> str:
        return "BlockTable(private)"


def told(estimator: Any, seen: Seen) -> None:
    """Let an estimator know what a first pass has told of the columns."""
    estimator.n_features_in_, estimator._truths = seen.columns or 0, seen.truths
    estimator.__dict__.pop("feature_names_in_", None)
    if seen.names is not None:
        estimator.feature_names_in_ = np.array(seen.names, dtype=object)


def no_targets(y: Any) -> Floats:
    """Targets that nobody asks for."""
    return np.zeros(len(y))


def _changed(change: Change, part: Any, rows: int) -> Changed:
    del rows
    return Changed(part, change)


def _total(function: Callable[[Any], Any], add: Callable[[Any, Any], Any], part: Any) -> tuple[int, Any]:
    """The rows of a part, and its total; None where it has no tables."""
    rows, total = 0, None
    for X, _ in part.tables():
        rows += rows_in(X)
        total = function(X) if total is None else add(total, function(X))
    return rows, total


def _looked_at(look: Look, targets: Targets, part: Any) -> Seen:
    """What a part holds; an error is told, not raised, as it may have to travel."""
    found, trusted = Seen(), bool(getattr(part, "is_typed", False))
    try:
        for X, y in part.tables():
            one = look(X, trusted)
            if targets != "none":
                one = one._replace(labels=seen_table(np.zeros((one.rows, 1)), y, targets, trusted=False).labels)
            found = found.joined(one)
    except (TypeError, ValueError) as error:
        return Seen(problem=(type(error).__name__, str(error)))
    return found
