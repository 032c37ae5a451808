"""Tables as people have them, column by column: pandas, polars and NumPy.

The type of a column decides what it is: text, or a number. Types are taken to be public. A message names a column and
its type, never a value. Neither pandas nor polars is imported unless it is what the table is made of.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import date, time, timedelta
from numbers import Number
from typing import Any, Literal

import numpy as np

from tacit._types import Floats
from tacit.blocks.validate import check_names, type_name

Kind = Literal["number", "text"]

_DATES = "column {name!r} holds dates, of type {kind}: give a number in their place, such as days since a public date"
_OTHER = "column {name!r} is of type {kind}, which is neither text nor a number: convert it or drop it"
_LIST = "X must be a data frame or an array, got {kind}: of a list a single cell decides which type all of it has"
_MIXED = "column {name!r} holds something that is neither text, a number nor a truth value: convert it or drop it"


class Frame(ABC):
    """A table whose columns can be read one at a time; `names` are the columns' names, or x0, x1 and so on."""

    names: tuple[str, ...]
    n: int

    @abstractmethod
    def kind(self, place: int) -> Kind:
        """What the type of a column says it is; refuses dates, and what is neither."""

    @abstractmethod
    def declared(self, place: int, trusted: bool) -> list[Any] | None:
        """The categories that the type of a column declares, if it does."""

    @abstractmethod
    def cells(self, place: int) -> Sequence[Any]:
        """The values of a column as they are."""

    @abstractmethod
    def numbers(self, place: int) -> Floats:
        """The values of a column of numbers; what is missing is NaN. Infinity is refused."""

    def texts(self, place: int) -> list[str | None]:
        """The values of a column as texts; what is missing is None."""
        try:
            return [cell if type(cell) is str else as_text(cell) for cell in self.cells(place)]
        except TypeError as error:
            told = str(error)
        words = _DATES if told == "date" else _MIXED
        raise TypeError(words.format(name=self.names[place], kind="object"))

    def _finite(self, place: int, values: Floats) -> Floats:
        if np.isinf(values).any():
            raise ValueError(f"column {self.names[place]!r} holds infinity; NaN stands for what is missing")
        return values


def as_text(cell: Any) -> str | None:
    """One value as a text, whole numbers without a point; None where it is missing, or too large for a number."""
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(cell, str):
        return str(cell)
    if isinstance(cell, bool | np.bool_):
        return str(bool(cell))
    if isinstance(cell, date | time | timedelta | np.datetime64 | np.timedelta64):
        raise TypeError("date")
    if not isinstance(cell, Number) or isinstance(cell, complex):
        raise TypeError("other")
    try:
        number = float(cell)  # type: ignore[arg-type]
    except (OverflowError, ValueError):  # a whole number of 400 digits, a signalling NaN
        return None
    if math.isnan(number):
        return None
    return str(int(number)) if number.is_integer() else repr(number)


def check_typed(X: Any) -> None:
    """Refuse a table without a type of its own: one that is read off the cells would tell of one person."""
    if not hasattr(X, "dtype") and not hasattr(X, "dtypes"):
        raise TypeError(_LIST.format(kind=type(X).__name__))
    if getattr(getattr(X, "dtype", None), "kind", "") == "S":
        raise TypeError("X holds bytes, of a type that tells how long the longest cell is: give texts, or objects")


def without_nulls(X: Any) -> Any:
    """A table whose columns of numbers have one type as arrays, whether or not a cell is null.

    NumPy has no null. Whole numbers become an array of whole numbers, and with a single null one of floats, in which
    the numbers of others round and overflow differently. So where a type allows nulls they are floats in any case.
    """
    room = type(X).__module__.partition(".")[0]
    if room == "polars" and hasattr(X, "get_columns"):
        import polars as pl

        typed = zip(X.columns, X.dtypes, strict=True)
        held = [name for name, dtype in typed if dtype.is_numeric() or dtype in (pl.Boolean, pl.Null)]
        return X.cast(dict.fromkeys(held, pl.Float64))
    if room == "pandas" and hasattr(X, "iloc") and X.ndim == 2:
        from pandas import SparseDtype
        from pandas.api import types

        numbers = (types.is_numeric_dtype, types.is_bool_dtype)
        typed = zip(X.columns, X.dtypes, strict=True)
        nullable = [pair for pair in typed if not isinstance(pair[1], np.dtype | SparseDtype)]
        return X.astype({name: np.float64 for name, dtype in nullable if any(check(dtype) for check in numbers)})
    return X


def frame_of(X: Any) -> Frame | None:
    """A table by columns; None for an array."""
    room = type(X).__module__.partition(".")[0]
    if room == "pandas" and hasattr(X, "iloc") and X.ndim == 2:
        return PandasFrame(X)
    if room == "polars" and type(X).__name__ == "LazyFrame":
        raise TypeError("X is a LazyFrame, which has no rows yet: call collect() first")
    if room == "polars" and hasattr(X, "dtypes"):
        return PolarsFrame(X)
    check_typed(X)
    return None


def _unique(names: Sequence[Any]) -> tuple[str, ...]:
    check_names(names)
    return tuple(map(str, names))


class PandasFrame(Frame):
    """A pandas DataFrame."""

    def __init__(self, X: Any) -> None:
        self._X, self.n = X, len(X)
        self.names = _unique(X.columns)

    def kind(self, place: int) -> Kind:
        """By the dtype; categories, objects and strings are text."""
        from pandas import CategoricalDtype
        from pandas.api import types

        dtype = self._X.dtypes.iloc[place]
        if isinstance(dtype, CategoricalDtype) or types.is_object_dtype(dtype) or types.is_string_dtype(dtype):
            return "text"
        if types.is_numeric_dtype(dtype) and not types.is_complex_dtype(dtype):
            return "number"
        dates = types.is_datetime64_any_dtype(dtype) or types.is_timedelta64_dtype(dtype) or dtype.kind in "mM"
        raise TypeError((_DATES if dates else _OTHER).format(name=self.names[place], kind=type_name(dtype)))

    def declared(self, place: int, trusted: bool) -> list[Any] | None:
        """Those of a categorical dtype, if it is trusted: pandas reads them off the rows where nobody names them."""
        dtype = self._X.dtypes.iloc[place]
        return list(dtype.categories) if trusted and hasattr(dtype, "categories") else None

    def cells(self, place: int) -> Sequence[Any]:
        """As Python objects."""
        return self._X.iloc[:, place].to_numpy(dtype=object).tolist()  # type: ignore[no-any-return]

    def numbers(self, place: int) -> Floats:
        """As floats."""
        return self._finite(place, self._X.iloc[:, place].to_numpy(dtype=np.float64, na_value=np.nan))


class PolarsFrame(Frame):
    """A polars DataFrame."""

    def __init__(self, X: Any) -> None:
        self._X, self.n = X, X.height
        self.names = _unique(X.columns)

    def kind(self, place: int) -> Kind:
        """By the dtype; a column of nothing but nulls is a number."""
        import polars as pl

        dtype = self._X.dtypes[place]
        if dtype in (pl.String, pl.Categorical, pl.Enum, pl.Object):
            return "text"
        if dtype.is_numeric() or dtype in (pl.Boolean, pl.Null):
            return "number"
        words = _DATES if dtype.is_temporal() else _OTHER
        raise TypeError(words.format(name=self.names[place], kind=type_name(dtype)))

    def declared(self, place: int, trusted: bool) -> list[Any] | None:
        """Those of an Enum, which has to be made with its categories; a Categorical has those of the rows."""
        import polars as pl

        del trusted
        dtype = self._X.dtypes[place]
        return dtype.categories.to_list() if dtype == pl.Enum else None

    def cells(self, place: int) -> Sequence[Any]:
        """As Python objects."""
        return self._X.to_series(place).to_list()  # type: ignore[no-any-return]

    def numbers(self, place: int) -> Floats:
        """As floats; nulls are NaN."""
        import polars as pl

        return self._finite(place, self._X.to_series(place).cast(pl.Float64).fill_null(math.nan).to_numpy())


class ArrayFrame(Frame):
    """An array of two dimensions: all of it numbers, or all of it text, as an array has one type."""

    def __init__(self, X: Any, names: Sequence[str] | None = None) -> None:
        self._X, self.n = X, len(X)
        self.names = _unique(range(X.shape[1])) if names is None else _unique(names)
        self.names = self.names if names is not None else tuple(f"x{name}" for name in self.names)

    def kind(self, place: int) -> Kind:
        """By the type of the array."""
        kind = self._X.dtype.kind
        if kind in "biuf":
            return "number"
        if kind in "UTO":
            return "text"
        raise TypeError(
            (_DATES if kind in "mM" else _OTHER).format(name=self.names[place], kind=type_name(self._X.dtype))
        )

    def declared(self, place: int, trusted: bool) -> list[Any] | None:  # noqa: ARG002
        """None: types of arrays declare nothing."""
        return None

    def cells(self, place: int) -> Sequence[Any]:
        """As Python objects."""
        return self._X[:, place].tolist()  # type: ignore[no-any-return]

    def numbers(self, place: int) -> Floats:
        """As floats."""
        return self._finite(place, self._X[:, place].astype(np.float64))
