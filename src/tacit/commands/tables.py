"""Reading csv and parquet by declared columns.

A table that cannot be read raises before any budget is spent. Messages name columns, which are public, never a cell.
"""

import warnings
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tacit.blocks.reading import MISSING
from tacit.commands.asked import Asked, asked
from tacit.commands.schema import Schema, number, quoted
from tacit.modelfiles.table import Categories, Column, pandas
from tacit.preprocessing.coding import Coded

_WHOLE = tuple(f"{sign}{bits}" for sign in ("Int", "UInt") for bits in (8, 16, 32, 64))
_WORDS = {"true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0}


@dataclass(frozen=True, eq=False)
class Frame:
    """The features, the target, and what was not declared."""

    frame: Any
    columns: tuple[Column, ...]
    y: Any
    found: tuple[str, ...]  # columns of which nothing is declared: what they are is found privately
    learned: tuple[str, ...]  # columns whose categories were read off the data, by leave of the user

    def __repr__(self) -> str:
        return "Frame(private)"


def read(path: Path, schema: Schema, target: str, public: Collection[str] = (), separator: str | None = None) -> Frame:
    """A table to fit on; `public` columns may tell their categories."""
    told = asked_of(path, schema, target, public, separator)
    frame = _frame(path, told.names, told.text, separator)
    for name in told.learned:
        if not is_number(frame[name]):
            frame[name] = _as_text(frame[name])
    columns = told.columns(schema, {name: _distinct(frame[name], schema.fill.get(name)) for name in told.learned})
    y = target_of(frame, target)
    return Frame(prepared(frame, columns, told.found), columns, y, told.found, told.learned)


def asked_of(
    path: Path, schema: Schema, target: str, public: Collection[str] = (), separator: str | None = None
) -> Asked:
    """What is read of a file; where it has no types, what is found out is read as text."""
    names = header(path, separator)
    if target not in names:
        raise ValueError(f"{path} has no column {target!r}; its first line must hold the names of the columns")
    told = asked(names, schema, target, public)
    return told if is_typed(path) else replace(told, text=told.text | set(told.found))


def target_of(frame: Any, target: str) -> Any:
    """The column to predict, taken off the others."""
    y = frame.pop(target)
    if y.isna().any():
        raise ValueError(f"the target {target!r} has missing values; leave those rows out before")
    return y.astype(
        getattr(y.dtype, "numpy_dtype", y.dtype)
    )  # without holes, so whole numbers and truth values as such


def read_features(path: Path, columns: Sequence[Column], separator: str | None = None) -> Any:
    """A table to predict on: the columns that the model was fitted on, in any order; others are not read."""
    present = header(path, separator)
    lacking = [column.name for column in columns if column.name not in present]
    if lacking:
        raise ValueError(f"{path} lacks columns of the model: {quoted(lacking)}")
    text = {column.name for column in columns if column.is_text}
    return prepared(_frame(path, [column.name for column in columns], text, separator), columns)


def read_undeclared(path: Path, columns: Sequence[Coded], separator: str | None = None) -> Any:
    """A table to predict on with a model that found out what its columns are."""
    names = [column.name for column in columns]
    lacking = sorted(set(names) - set(header(path, separator)))
    if lacking:
        raise ValueError(f"{path} lacks columns of the model: {quoted(lacking)}")
    text = {column.name for column in columns if column.is_text or column.parsed}
    return prepared(_frame(path, names, text, separator), [Column(name) for name in names], tuple(text))


def read_column(path: Path, name: str, separator: str | None = None) -> Any:
    """One column as text, to be carried along."""
    if name not in header(path, separator):
        raise ValueError(f"{path} has no column {name!r}")
    return _frame(path, [name], {name}, separator)[name]


def is_number(values: Any) -> bool:
    """Whether a column holds numbers, or truth values."""
    return bool(pandas().api.types.is_numeric_dtype(values))


def is_typed(path: Path) -> bool:
    """Whether the file itself says what its columns are."""
    return _is_parquet(path)


def is_truth(values: Any) -> bool:
    """Whether a column holds truth values."""
    return bool(pandas().api.types.is_bool_dtype(values))


def header(path: Path, separator: str | None = None) -> list[str]:
    """The names of the columns."""
    pd = pandas()
    if separator is not None and len(separator) != 1:
        raise ValueError(f"the separator must be one character, got {separator!r}")
    if _is_parquet(path):
        parquet = parquet_of_pyarrow()
        stored = reading(path, lambda: parquet.read_schema(path).names)
        names = [name for name in stored if not name.startswith("__index_level_")]  # of pandas, no column of the table
    else:
        options = {"sep": separator or _separator(path), "encoding": "utf-8-sig", "skipinitialspace": True}
        options |= {"header": None, "nrows": 1, "dtype": str, "keep_default_na": False}
        names = reading(path, lambda: pd.read_csv(path, **options).iloc[0].tolist())
    if len(set(names)) < len(names) or "" in names:
        raise ValueError(
            f"{path}: the names of the columns, in its first line, must be distinct and not empty (pandas leaves that"
            " of its index empty: to_csv(index=False))"
        )
    return list(names)


def write(frame: Any, path: Path) -> None:
    """A table of predictions, as csv or parquet."""
    if _is_parquet(path):
        frame.to_parquet(path, index=False)
    else:
        frame.to_csv(path, index=False, sep=_separator(path))


def _frame(path: Path, names: list[str], text: Collection[str], separator: str | None) -> Any:
    """The named columns in this order: those in `text` as text, others as what they look like."""
    pd = pandas()
    if _is_parquet(path):
        parquet = parquet_of_pyarrow()
        return typed_frame(reading(path, lambda: parquet.read_table(path, columns=names)), names, text)
    return reading(path, lambda: pd.read_csv(path, **csv_options(path, names, text, separator))[names])


def csv_options(path: Path, names: Sequence[str], text: Collection[str], separator: str | None) -> dict[str, Any]:
    """What pandas is told of a csv file: without `usecols`, which would let lines with too many fields pass."""
    return {
        "sep": separator or _separator(path),
        "encoding": "utf-8-sig",
        "skipinitialspace": True,
        "index_col": False,
        "dtype": dict.fromkeys(text, str),
        "keep_default_na": False,
        "na_values": {name: [""] if name in text else list(MISSING) for name in names},
        "low_memory": False,
    }


def typed_frame(table: Any, names: Sequence[str], text: Collection[str]) -> Any:
    """Columns of a table of pyarrow: those in `text` as text, others by their type."""
    columns = {name: _typed(name, table.column(name), as_text=name in text) for name in names}
    return pandas().DataFrame({name: _as_text(held) if name in text else held for name, held in columns.items()})


def _typed(name: str, values: Any, *, as_text: bool) -> Any:
    """A column of parquet by its type, which is public; what pandas makes of values may turn on a single null.

    A column of nothing but nulls that has no other type is a number.
    """
    import pyarrow as pa

    pd, of = pandas(), pa.types
    if of.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    kind = values.type
    if of.is_decimal(kind) or (of.is_null(kind) and not as_text):
        values = values.cast(pa.float64())
    known = (of.is_boolean, of.is_integer, of.is_floating, of.is_decimal, of.is_null, of.is_string, of.is_large_string)
    dated = of.is_date(kind) or of.is_timestamp(kind) or of.is_duration(kind)  # whose types pandas has, too
    if not as_text and not dated and not any(check(kind) for check in known):
        kept = str(kind).partition("<")[0]  # a struct lists its fields, which may be read off the rows
        raise ValueError(
            f"column {name!r} is of type {kept}, which is neither text nor a number: convert it or leave it out"
        )
    whole = {getattr(pa, word.lower())(): getattr(pd, f"{word}Dtype")() for word in _WHOLE}
    mapper = (whole | {pa.bool_(): pd.BooleanDtype()}).get
    return values.to_pandas(types_mapper=mapper, date_as_object=as_text)


def reading(path: Path, read: Any) -> Any:
    """What `read` gives; its errors without what they quote."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", pandas().errors.ParserWarning)  # fields would be left out
            return read()
    except (FileNotFoundError, PermissionError, IsADirectoryError):
        raise
    except UnicodeDecodeError:
        message = "it is not text in UTF-8"
    except Exception:  # parsers quote the line they stop at
        message = "lines may differ in their number of fields, or it may be of another kind"
    # Outside the handler, so that the error that quotes the data is not this one's context.
    raise ValueError(f"{path} cannot be read as a {'parquet' if _is_parquet(path) else 'csv'} table: {message}")


def prepared(frame: Any, columns: Iterable[Column], undeclared: Collection[str] = ()) -> Any:
    """The columns as numbers or text, with holes where values are missing; undeclared ones stay as they are."""
    pd = pandas()
    if len(frame) == 0:
        raise ValueError("the table has no rows")
    out: dict[str, Any] = {}
    wrong, infinite = [], []
    for column in columns:
        values = frame[column.name]
        if column.name in undeclared:
            if values.dtype.kind in "mM":
                raise ValueError(f"column {column.name!r} holds dates: give a number in their place, or leave it out")
            out[column.name] = values if is_number(values) else values.astype(object).where(values.notna(), None)
        elif column.is_text:
            out[column.name] = values.astype(object).where(values.notna(), np.nan)
        elif not is_number(values := _said(values)):
            wrong.append(column.name)
        else:
            out[column.name] = values.to_numpy(dtype=np.float64, na_value=np.nan)
            if np.isinf(out[column.name]).any():
                infinite.append(column.name)
    if wrong:
        raise ValueError(
            f"declared as numbers but with other values: {quoted(wrong)}; categories are compared as text once one of"
            " them is not a number"
        )
    if infinite:
        raise ValueError(f"infinite values in {quoted(infinite)}")
    return pd.DataFrame(out)


def _said(values: Any) -> Any:
    """A declared column of words for truth values as numbers; any other as it is."""
    if is_number(values):
        return values
    numbers = values.map(lambda cell: _WORDS.get(str(cell).lower()), na_action="ignore")
    return values if numbers.isna().ne(values.isna()).any() else numbers.astype(np.float64)


def _as_text(values: Any) -> Any:
    return values.astype(object).map(str, na_action="ignore")


def _distinct(values: Any, fill: str | None) -> Categories:
    """The categories that a column shows, and the constant for its missing values."""
    found = set(values.dropna().unique().tolist())
    if is_number(values):
        constant = None if fill is None else number(fill)
        return tuple(sorted(map(float, found if constant is None else found | {constant})))
    return tuple(sorted(found if fill is None else found | {fill}))


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() in (".parquet", ".pq")


def _separator(path: Path) -> str:
    return "\t" if ".tsv" in path.suffixes else ","


def parquet_of_pyarrow() -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise ImportError("reading parquet needs pyarrow: pip install 'tacit[cli]'") from None
    return pyarrow.parquet
