"""Parquet and CSV files, and what pyarrow holds, in parts: row groups of Parquet files, whole CSV files, batches.

A file is remembered by its size and time. One that changes while a fit reads it stops the fit.
"""

import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np

from tacit.blocks.reading import AT_ONCE, MISSING, ChangedRowsError, quietly, without


def file_parts(paths: Sequence[Any], target: str | None, texts: Sequence[Any] = ()) -> list[Any]:
    """The parts of files, each named once; `*` and `?` stand for any letters."""
    found = [name for path in paths for name in _named(str(path))]
    _check_once(found)
    return [part for name in found for part in _parts(File.now(name), target, texts)]


def _check_once(paths: Sequence[str]) -> None:
    """Refuse a file that is named twice, be it by a link; what is not on this machine goes by its name."""
    known = [(told.st_dev, told.st_ino) if (told := _told(path)) else path for path in paths]
    if len(set(known)) < len(known):
        raise ValueError("a file is named twice, and its rows would count twice")


def _told(path: str) -> os.stat_result | None:
    try:
        told = Path(path).stat()
    except OSError:
        return None
    return told if told.st_ino else None


def _named(path: str) -> list[str]:
    names = [path] if Path(path).exists() else sorted(glob(path, recursive=True))
    if not names:
        raise FileNotFoundError(f"there is no file {path}")
    inside = [sorted(map(str, Path(name).rglob("*.parquet"))) if Path(name).is_dir() else [name] for name in names]
    return [name for names in inside for name in names]


@dataclass(frozen=True)
class File:
    """A file, as it was when the fit began."""

    path: str
    size: int
    time: int

    @classmethod
    def now(cls, path: str) -> "File":
        told = Path(path).stat()
        return cls(path, told.st_size, told.st_mtime_ns)

    def check(self) -> None:
        """Stop if it is another one."""
        if not Path(self.path).exists() or File.now(self.path) != self:
            raise ChangedRowsError(f"{self.path} has changed since the fit began")


def _parts(file: File, target: str | None, texts: Sequence[Any]) -> list[Any]:
    name = file.path.lower()
    if name.endswith((".csv", ".csv.gz", ".csv.bz2", ".csv.xz", ".csv.zst")):
        return [CsvPart(file, target, texts)]
    if not name.endswith((".parquet", ".pq")):
        raise ValueError(f"{file.path}: files end in .parquet, .csv or .csv.gz")
    groups = _parquet().ParquetFile(file.path).metadata.num_row_groups
    return [ParquetPart(file, group, target) for group in range(groups)]


def _parquet() -> Any:
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError("reading Parquet needs pyarrow: pip install 'tacit[cli]'") from error
    return parquet


@dataclass(frozen=True, eq=False, repr=False)
class ParquetPart:
    """A row group of a Parquet file."""

    file: File
    group: int
    target: str | None
    is_typed = is_slow = True

    def tables(self) -> Iterator[tuple[Any, Any]]:
        """A few rows at a time."""
        self.file.check()
        with _parquet().ParquetFile(self.file.path) as opened:
            batches = opened.iter_batches(AT_ONCE, row_groups=[self.group], use_threads=False)
            for batch in quietly(self.file.path, batches):
                yield without(frame(batch), self.target)
        self.file.check()


@dataclass(frozen=True, eq=False, repr=False)
class CsvPart:
    """A CSV file, which has to be read from its start. It declares no types, and no cell decides on any.

    Columns in `texts`, by name or number, are text whatever they hold, and the others are floats.
    """

    file: File
    target: str | None
    texts: Sequence[Any] = ()
    is_slow = True

    def tables(self) -> Iterator[tuple[Any, Any]]:
        """A few rows at a time."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError("reading CSV needs pandas: pip install 'tacit[cli]'") from error
        self.file.check()
        told = self._kinds(pandas.read_csv(self.file.path, nrows=0, index_col=False).columns)
        with pandas.read_csv(self.file.path, chunksize=AT_ONCE, **told) as chunks:
            for chunk in quietly(self.file.path, chunks):
                if not isinstance(chunk.index, pandas.RangeIndex):
                    raise ValueError(f"{self.file.path} cannot be read: its first row has more cells than columns")
                yield without(_by_kind(chunk, self.target, told["dtype"]), self.target)
        self.file.check()

    def _kinds(self, names: Any) -> dict[str, Any]:
        """What pandas is told of the columns, so that it takes no cell for a reason to choose a type."""
        features = [name for name in names if name != self.target]
        texts = {name if isinstance(name, str) else features[name] for name in self.texts}
        empty = {name: list(MISSING) if name in features and name not in texts else [""] for name in names}
        return {
            "dtype": {name: str for name in features if name in texts},
            "keep_default_na": False,
            "na_values": empty,
            "low_memory": False,
        }


def _by_kind(table: Any, target: str | None, texts: Collection[str]) -> Any:
    """Texts as objects, whatever version of pandas read them, and the others as floats; what is none raises."""
    kept = {}
    for name in table.columns:
        column = table[name]
        try:
            if name in texts:
                column = column.astype(object).where(column.notna(), None)
            elif name != target:
                column = column.astype(np.float64)
        except (TypeError, ValueError):
            column = None  # its error may quote a cell
        if column is None:
            raise ValueError(f"column {name!r} holds something else than numbers: name it in `parse` or `categories`")
        kept[name] = column
    return type(table)(kept, copy=False)


def arrow_parts(table: Any, target: str | None) -> list[Any]:
    """Of a pyarrow table, or the fragments of a dataset."""
    if hasattr(table, "get_fragments"):
        options = {"schema": table.schema, "batch_size": AT_ONCE, "use_threads": False}
        fragments = list(table.get_fragments())
        _check_once([fragment.path for fragment in fragments if getattr(fragment, "path", None)])
        return [ArrowPart(one, options, target, is_typed=_declares(one)) for one in fragments]
    if not hasattr(table, "to_batches"):
        raise ValueError(f"a {type(table).__name__} can be read once only: pass a Table or a Dataset")
    return [ArrowPart(table, {"max_chunksize": AT_ONCE}, target)]


def _declares(fragment: Any) -> bool:
    """Whether the types of a file are in it: those of text files are read off its first rows."""
    return getattr(getattr(fragment, "format", None), "default_extname", "") not in ("csv", "json")


@dataclass(frozen=True, eq=False, repr=False)
class ArrowPart:
    """A pyarrow table in memory, or a fragment of a dataset: a file, mostly."""

    table: Any
    options: dict[str, Any]
    target: str | None
    is_typed: bool = True
    is_slow = True

    def tables(self) -> Iterator[tuple[Any, Any]]:
        """Its batches."""
        for batch in quietly("the table", self.table.to_batches(**self.options)):
            yield without(frame(batch), self.target)


def frame(batch: Any) -> Any:
    """Some rows as a data frame, whose types follow from the schema alone and not from a null among the rows.

    Numbers are floats; truth values are `boolean`, which allows nulls. What is text or a date stays what it is.
    """
    import pandas

    names = batch.schema.names
    held = [column.dictionary_decode() if hasattr(column, "dictionary_decode") else column for column in batch.columns]
    numbers = [is_number(column.type) for column in held]
    if all(numbers):
        short = all(str(column.type) == "float" for column in held)
        table = np.empty((batch.num_rows, len(names)), dtype=np.float32 if short else np.float64)
        for place, column in enumerate(held):
            table[:, place] = column.to_numpy(zero_copy_only=False)
        return pandas.DataFrame(table, columns=names, copy=False)
    columns = {}
    for place, (name, column) in enumerate(zip(names, held, strict=True)):
        if numbers[place]:
            columns[name] = np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)
        elif str(column.type) == "bool":
            columns[name] = pandas.array(column.to_pylist(), dtype="boolean")
        else:
            columns[name] = column.to_pandas()
    return pandas.DataFrame(columns, copy=False)


def is_number(kind: Any) -> bool:
    """Whether a type of pyarrow is one of numbers; truth values are not."""
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_null(kind))
