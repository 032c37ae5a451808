"""What users hand over as blocks of rows, opened: parts that are read again for every pass.

A part gives tables (X, y), each of a few rows: arrays, CSR rows or data frames. A first pass checks all of them
(`Reading.seen`), before any budget is spent. Later passes turn them into numbers (`Reading.source`), and stop if the
rows are others than before. Errors that could quote a cell are told by their kind alone.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_array

from tacit._types import Floats
from tacit.blocks.here import ThisMachine
from tacit.blocks.source import Raw, Source
from tacit.blocks.table import canonical, is_sparse
from tacit.blocks.validate import is_lazy, validated
from tacit.problems.bounds import truths

FLOATS = [np.float64, np.float32]
ROWS: dict[str, Any] = {"accept_sparse": "csr", "dtype": FLOATS, "ensure_all_finite": "allow-nan"}
"""What a table may be: arrays or CSR, with NaN for what is missing."""

FREELY: dict[str, Any] = {"dtype": FLOATS, "ensure_all_finite": False, "ensure_min_samples": 0}
"""What rows may be that were checked before."""

AT_ONCE = 65_536
"""Rows of a file that are read at a time."""

MISSING = ("", "NA", "N/A", "NaN", "nan", "NULL", "null")
"""Cells of a column of numbers that stand for none; in one of text only the empty cell does."""

_MOST_LABELS = 1_000
UNLIKE = "blocks must have the same columns of the same types, in the same order"
AGAIN = "blocks must give the same rows whenever they are read again, and they have changed since the first pass"

Targets = Literal["labels", "numbers", "none"]


class Part(Protocol):
    """Some rows, which can be read again."""

    def tables(self) -> Iterator[tuple[Any, Any]]:
        """Tables of a few rows, and their targets, or None."""


class ChangedRowsError(ValueError):
    """Rows are others than they were in the first pass."""


class Seen(NamedTuple):
    """What the first pass tells of some rows. It is public, but for `holes` and `problem`, which quotes no cell."""

    rows: int = 0
    columns: int | None = None
    names: tuple[str, ...] | None = None
    truths: tuple[int, ...] = ()
    labels: NDArray[Any] | None = None
    sparse: bool = False
    problem: tuple[str, str] | None = None
    kinds: Any = None  # of columns that are not all numbers
    holes: tuple[int, ...] = ()  # columns of numbers in which something is missing: private

    @property
    def targets(self) -> NDArray[Any]:
        """The labels of all classes; numbers that stand for none where there are none."""
        return np.zeros(2) if self.labels is None else self.labels

    def joined(self, other: "Seen") -> "Seen":
        """Of both; one without columns has seen nothing yet."""
        problem = self.problem or other.problem
        if problem is not None or self.columns is None or other.columns is None:
            one = other if self.columns is None else self
            return one._replace(problem=problem)
        typed = tuple(place for place in self.truths if place in other.truths)
        labels = None
        if self.labels is not None and other.labels is not None:
            if (self.labels.dtype.kind in "biuf") != (other.labels.dtype.kind in "biuf"):
                return self._replace(problem=("ValueError", "y must hold labels of one kind: all numbers, or all text"))
            labels = np.unique(np.concatenate([self.labels, other.labels]))
            if len(labels) > _MOST_LABELS:
                problem = "ValueError", f"y holds more than {_MOST_LABELS:,} classes: a regressor is for numbers"
        if (self.columns, self.names, self.kinds) != (other.columns, other.names, other.kinds):
            problem = "ValueError", UNLIKE
        if self.sparse != other.sparse:
            problem = "ValueError", "blocks must be all dense or all sparse"
        rows, holes = self.rows + other.rows, tuple(sorted({*self.holes, *other.holes}))
        return Seen(rows, self.columns, self.names, typed, labels, self.sparse, problem, self.kinds, holes)


@dataclass(eq=False, repr=False)
class Reading:
    """Parts that were opened, and where they are. It is closed when a fit ends."""

    parts: Sequence[Any]
    place: Any = field(default_factory=ThisMachine)
    rows: tuple[int, ...] = ()

    def seen(self, targets: Targets, *, trusted: bool = False) -> Seen:
        """The first pass: what is bad in any block raises here."""
        self.parts = self.place.spooled(self.parts)
        return self.joined(self.place.run(partial(_seen, targets, trusted), self.parts))

    def joined(self, seen: Iterable[Seen]) -> Seen:
        """What was seen of all parts; raises what is bad in any of them."""
        found = list(seen)
        whole = found[0]
        for other in found[1:]:
            whole = whole.joined(other)
        if whole.problem is not None:
            kind, message = whole.problem
            raise {"TypeError": TypeError}.get(kind, ValueError)(message)
        if whole.rows < 2:
            raise ValueError(f"blocks must hold at least two rows together, got {whole.rows}")
        self.rows = tuple(one.rows for one in found)
        return whole

    def check_here(self, who: str) -> None:
        """Refuse rows that this process does not read by itself."""
        if not self.place.is_here:
            raise TypeError(
                f"{who} reads rows where the fit runs, and takes no partitions on the workers of a Dask client; without"
                " a client this machine computes them, a partition at a time"
            )

    def source(self, columns: int, encode: Callable[[Any], Floats]) -> Source:
        """The rows as numbers, for the passes of a fit."""
        held = self.place.hold(partial(Numbers, columns, encode), self.parts, self.rows)
        return Source(columns, held, self.rows, self.place)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.place.close()


def _seen(targets: Targets, trusted: bool, part: Part) -> Seen:
    """What a part holds; an error is told, not raised, as it may have to travel."""
    found = Seen()
    try:
        for X, y in part.tables():
            found = found.joined(seen_table(X, y, targets, trusted=trusted or bool(getattr(part, "is_typed", False))))
    except (TypeError, ValueError) as error:
        return Seen(problem=(type(error).__name__, str(error)))
    return found


def seen_table(X: Any, y: Any, targets: Targets, *, trusted: bool) -> Seen:
    """What a table holds; what is bad raises."""
    checker = BaseEstimator()
    options: dict[str, Any] = {**ROWS, "ensure_min_samples": 0}
    typed = truths(X, trusted=trusted)
    labels = None
    if targets == "none":
        checked = validated(checker, X, **options)
    else:
        if y is None:
            raise ValueError("blocks must be pairs (X, y), or name the column to predict with `target`")
        options |= {"y_numeric": True} if targets == "numbers" else {}
        checked, numbers = validated(checker, X, y, **options)
        if targets == "labels":
            labels = np.unique(numbers)
        elif numbers.dtype.kind not in "fiub":
            raise ValueError("y must hold real numbers")
    names = getattr(checker, "feature_names_in_", None)
    told = None if names is None else tuple(names)
    return Seen(checked.shape[0], checked.shape[1], told, typed, labels, is_sparse(checked))


@dataclass(frozen=True, eq=False, repr=False)
class Numbers:
    """A part as numbers: rows without a name, targets as `encode` makes them of labels."""

    columns: int
    encode: Callable[[Any], Floats]
    part: Part
    rows: int
    sparse: bool = False  # whether CSR rows stay so

    def blocks(self) -> Iterator[Raw]:
        """Its rows; stops if there are more or fewer than in the first pass, or others."""
        seen = 0
        for X, y in self.part.tables():
            raw = self._raw(X, y)
            seen += -1 if raw is None else raw.X.shape[0]
            if raw is None or seen > self.rows or raw.X.shape[1] != self.columns:
                raise ChangedRowsError(AGAIN)
            yield raw
        if seen != self.rows:
            raise ChangedRowsError(AGAIN)
        if self.rows == 0:
            yield Raw(np.empty((0, self.columns)), np.empty(0))

    def _raw(self, X: Any, y: Any) -> Raw | None:
        """Numbers; None if there are none, in place of an error that would quote what there is."""
        try:
            rows = check_array(X, accept_sparse="csr", **FREELY)
            if is_sparse(rows) < self.sparse:
                return None
            kept: Any = canonical(rows) if is_sparse(rows) else np.ascontiguousarray(rows)
            kept = kept.toarray() if is_sparse(rows) and not self.sparse else kept
            targets = np.empty(0) if y is None else self.encode(np.asarray(y))
        except (TypeError, ValueError, OverflowError):
            return None
        return Raw(kept, targets) if y is None or len(targets) == kept.shape[0] else None


# ---- what can be opened


def opened(blocks: Any, target: str | None = None, texts: Sequence[Any] = ()) -> Reading:
    """The parts of files, tables, or blocks of rows in an iterable that starts over.

    `texts` are the columns of a CSV file that are text. All others have to be numbers.
    """
    if isinstance(blocks, Reading):
        return blocks
    room, kind = type(blocks).__module__.partition(".")[0], type(blocks).__name__
    if target is not None and not isinstance(target, str):
        raise TypeError(f"target must be the name of a column, got {target!r}")
    if is_path(blocks) or (isinstance(blocks, list | tuple) and blocks and all(map(is_path, blocks))):
        from tacit.blocks.files import file_parts

        return Reading(file_parts([blocks] if is_path(blocks) else blocks, target, texts))
    if is_lazy(blocks):
        from tacit.blocks.partitions import opened_lazily

        return opened_lazily(blocks, target=target)
    if room == "pyarrow":
        from tacit.blocks.files import arrow_parts

        return Reading(arrow_parts(blocks, target))
    if room == "polars" and kind == "LazyFrame":
        return Reading([LazyPart(blocks, target)])
    if hasattr(blocks, "columns") and hasattr(blocks, "dtypes"):
        return Reading([BlockPart(lambda: [blocks], target)])
    if isinstance(blocks, Iterator):
        raise ValueError("blocks must be readable several times: pass a list or a function that returns a generator")
    if isinstance(blocks, np.ndarray) or not (callable(blocks) or isinstance(blocks, Iterable)):
        raise TypeError(f"blocks must be files, a table or an iterable of blocks of rows, got {kind}")
    return Reading([BlockPart(blocks if callable(blocks) else lambda: blocks, target, is_slow=callable(blocks))])


def is_path(value: Any) -> bool:
    """Whether it names a file."""
    return isinstance(value, str) or hasattr(value, "__fspath__")


@dataclass(frozen=True, eq=False, repr=False)
class BlockPart:
    """Blocks that somebody's iterable gives, in order: tables, or pairs (X, y)."""

    start: Callable[[], Iterable[Any]]
    target: str | None
    is_slow: bool = False

    def tables(self) -> Iterator[tuple[Any, Any]]:
        """The blocks."""
        for block in self.start():
            if isinstance(block, tuple) and len(block) == 2 and self.target is None:
                yield block
            else:
                yield without(block, self.target)


@dataclass(frozen=True, eq=False, repr=False)
class LazyPart:
    """A lazy frame of polars, in batches."""

    frame: Any
    target: str | None
    is_slow = True

    def tables(self) -> Iterator[tuple[Any, Any]]:
        """The batches."""
        if not hasattr(self.frame, "collect_batches"):
            raise TypeError("this version of polars gives no batches of a LazyFrame: update it, or call collect()")
        for batch in quietly("the lazy frame", self.frame.collect_batches(chunk_size=AT_ONCE, maintain_order=True)):
            yield without(batch, self.target)


def quietly(what: str, tables: Iterable[Any]) -> Iterator[Any]:
    """The same tables; an error of who reads them is told by its kind alone, as its words may quote a cell."""
    steps = iter(tables)
    while True:
        try:
            table = next(steps)
        except StopIteration:
            return
        except Exception as error:
            kind = type(error).__name__
        else:
            yield table
            continue
        raise ValueError(f"{what} cannot be read: {kind}")


def without(table: Any, target: str | None) -> tuple[Any, Any]:
    """A table without the column to predict, and that column."""
    if target is None:
        return table, None
    if not hasattr(table, "columns"):
        raise TypeError(f"target={target!r} is a column of data frames; blocks of arrays are pairs (X, y)")
    if target not in list(table.columns):
        raise ValueError(f"there is no column {target!r} to predict")
    rest = table.drop(columns=target) if hasattr(table, "iloc") else table.drop(target)
    return rest, table[target]
