"""Tables that are read in pieces, for a fit in bounded memory: the rows of `tables.read`, some of them at a time.

What a column is follows from the schema and the file's own types, as for a table that is read whole. A bar on the
terminal tells how many rows were read. That number is public, and so is how many are read at a time.
"""

import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from tacit.blocks.files import File
from tacit.blocks.reading import AT_ONCE
from tacit.commands import tables
from tacit.commands.asked import Asked
from tacit.commands.schema import Schema
from tacit.modelfiles.table import Column, pandas
from tacit.solvers import SOLVERS

LARGE = 2**26
"""Bytes of a file from which on it is read in pieces."""

_ROW_PARALLEL = ("logistic", "linear", "ridge")  # by their default solver


def are_due(arguments: Namespace, name: str) -> bool:
    """Whether a file is large, and the solver makes passes over rows; by the file's size, which is public."""
    solver = SOLVERS.get(arguments.solver)  # None for "auto", and for one that the model will refuse
    serves = solver.serves.streams if solver is not None else arguments.solver == "auto" and name in _ROW_PARALLEL
    if arguments.workers is not None:
        if arguments.public_categories:
            raise ValueError("--workers and --public-categories do not go together: declare the categories")
        return True  # a solver that does not serve it is refused by the model
    return bool(serves) and not arguments.public_categories and arguments.data.stat().st_size >= LARGE


class Progress:
    """A line that tells how many rows were read, of how many where that is known: whole multiples of `AT_ONCE`.

    So it does not tell how a file is cut into row groups, which some writers do by the sizes of cells.
    """

    def __init__(self, told: bool) -> None:
        self._told, self._lock = told, Lock()
        self.count, self.rows, self._line = 0, 0, ""

    def add(self, rows: int) -> None:
        """So many more."""
        with self._lock:
            self.count += rows
            passes = -(-self.count // self.rows) if self.rows else 1
            read = self.count - (passes - 1) * self.rows
            shown = read if read == self.rows else read // AT_ONCE * AT_ONCE
            whole = f" of {self.rows:,}, pass {passes}" if self.rows else ""
            line = f"\rtacit fit: read {shown:,} rows{whole}"
            if self._told and line != self._line:
                print(line, end="", file=sys.stderr, flush=True)
            self._line = line

    def __reduce__(self) -> tuple[Any, ...]:
        return Progress, (False,)  # workers have no terminal

    def end(self) -> None:
        """Leave the line."""
        if self._told and self.count:
            print(file=sys.stderr)


@dataclass(frozen=True, eq=False, repr=False)
class Piece:
    """A CSV file, or a row group of a Parquet file."""

    file: File
    group: int
    asked: Asked
    columns: Sequence[Column]
    separator: str | None
    progress: Progress
    is_slow = True

    def tables(self) -> Iterator[tuple[Any, Any]]:
        """Prepared rows, and their targets."""
        self.file.check()
        for frame in self._frames(Path(self.file.path)):
            y = tables.target_of(frame, self.asked.target)
            self.progress.add(len(y))
            labels = y.to_numpy() if tables.is_number(y) else y.to_numpy(dtype=str)
            yield tables.prepared(frame, self.columns, self.asked.found), labels
        self.file.check()

    def _frames(self, path: Path) -> Iterator[Any]:
        names, text = self.asked.names, self.asked.text
        if tables.is_typed(path):
            with tables.parquet_of_pyarrow().ParquetFile(path) as opened:
                batches = opened.iter_batches(AT_ONCE, row_groups=[self.group], columns=names, use_threads=False)
                yield from (tables.typed_frame(batch, names, text) for batch in _each(path, batches) if batch.num_rows)
            return
        options = tables.csv_options(path, names, text, self.separator)
        with tables.reading(path, lambda: pandas().read_csv(path, chunksize=AT_ONCE, **options)) as chunks:
            yield from (chunk[names] for chunk in _each(path, chunks))


def _each(path: Path, tables_of_file: Any) -> Iterator[Any]:
    """One after the other; errors without what they quote."""
    steps = iter(tables_of_file)
    while (one := tables.reading(path, lambda: next(steps, None))) is not None:
        yield one


@dataclass(frozen=True, eq=False)
class Pieces:
    """A table in pieces. Its `frame` has the types of the columns, and no rows."""

    frame: Any
    columns: tuple[Column, ...]
    found: tuple[str, ...]
    parts: Sequence[Piece]
    progress: Progress
    learned: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return "Pieces(private)"


def opened(arguments: Namespace, schema: Schema, target: str, *, classes: bool) -> Pieces:
    """The pieces of a file, each read again for every pass that needs it."""
    path, separator = arguments.data.resolve(), arguments.separator
    asked = tables.asked_of(path, schema, target, (), separator)
    columns, progress = asked.columns(schema), Progress(bool(arguments.verbose) or sys.stderr.isatty())
    if tables.is_typed(path):
        stored = tables.parquet_of_pyarrow().ParquetFile(path)
        frame = tables.typed_frame(stored.schema_arrow.empty_table(), asked.names, asked.text)
        groups, progress.rows = range(stored.metadata.num_row_groups), stored.metadata.num_rows
    else:
        kinds = {name: object if name in asked.text else np.float64 for name in asked.names}
        frame, groups = pandas().DataFrame({name: np.empty(0, kind) for name, kind in kinds.items()}), range(1)
        if classes and not _are_numbers(path, asked, separator):
            asked = replace(asked, text=asked.text | {target})
            frame[target] = frame[target].astype(object)
    target_is_number = tables.is_number(frame.pop(target))
    if not classes and not target_is_number:
        raise ValueError(f"a regression needs numbers, and the target {target!r} holds something else")
    if classes and not target_is_number and schema.classes is not None and not isinstance(schema.classes[0], str):
        raise ValueError(f"the declared classes are numbers, and the target {target!r} holds something else")
    file = File.now(str(path))
    parts = [Piece(file, group, asked, columns, separator, progress) for group in groups]
    return Pieces(frame, columns, asked.found, parts, progress)


def _are_numbers(path: Path, asked: Asked, separator: str | None) -> bool:
    """Whether all labels of a csv file look like numbers: a pass over one column. Labels are public."""
    if asked.target in asked.text:
        return False
    options = tables.csv_options(path, asked.names, asked.text, separator) | {"usecols": [asked.target]}
    with tables.reading(path, lambda: pandas().read_csv(path, chunksize=8 * AT_ONCE, **options)) as chunks:
        return all(tables.is_number(chunk[asked.target]) for chunk in _each(path, chunks))
