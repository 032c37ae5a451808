"""scikit-learn's validation, with messages that do not quote the data.

An error may end up in a log. scikit-learn prints the table when it is complex or has one dimension, and NumPy prints
the string that is not a number; what is raised here keeps the kind of error and what to do about it.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from tacit.blocks.sums import cuts, on_threads

_QUOTED = re.compile(r"""(?<!dtype\()(['"]).*\1""")
_WORDS = ("object", "str", "category", "categorical", "enum")
_NUMBERS = re.compile(r"(u?int|float)\d|bool|double|decimal|null|sparse", re.IGNORECASE)
_NOT_NUMBERS = (
    *("could not convert", "The DType", "setting an array element", "float() argument", "Complex data", "must be real"),
    *("can't convert", "Cannot cast", "Cannot convert", "cannot convert"),
)
_LONG = {"S": "bytes", "U": "str", "V": "struct"}
_DATES = ("datetime", "date", "time", "duration", "period")
_RESHAPE = (
    " Reshape your data either using array.reshape(-1, 1) if it has a single feature"
    " or array.reshape(1, -1) if it holds a single row."
)


def validated(estimator: Any, *data: Any, **options: Any) -> Any:
    """`validate_data`; its errors without the data.

    Where numbers are asked for dates are refused by their type: some frames would turn them into numbers. A sum of the
    largest numbers is no reason to warn: it would tell of the rows.
    """
    refuse_lazy(estimator, *data)
    if hasattr(data[0], "columns") and hasattr(data[0], "dtypes"):
        check_names(data[0].columns)
    if options.get("dtype") is not None:
        _refuse_dates(data[0])
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            if options.get("ensure_all_finite", True) and _is_finite(data[0]):
                options["ensure_all_finite"] = False
            return validate_data(estimator, *data, **options)
    except (TypeError, ValueError, OverflowError) as error:
        told = type(error) if type(error) in (TypeError, ValueError) else ValueError
        message = _of_column(data[0], str(error)) or without_data(str(error))
    # Outside the handler, so that the error that quotes the data is not this one's context.
    raise told(message)


def _is_finite(X: Any) -> bool:
    """Whether sums on all cores say so of an array: False also where they overflow, or nothing is known.

    Arrays of other classes may add up something else than all of their cells.
    """
    if type(X) not in (np.ndarray, np.memmap) or X.ndim != 2 or X.dtype not in (np.float64, np.float32):
        return False
    return all(on_threads(lambda cut: bool(np.isfinite(np.sum(X[cut]))), cuts(*X.shape)))


def is_lazy(value: Any) -> bool:
    """Whether it is a collection of Dask, whose rows are not there yet."""
    return hasattr(type(value), "__dask_graph__")


def refuse_lazy(who: Any, *data: Any) -> None:
    """Refuse collections of Dask where they would be pulled into memory whole."""
    if any(map(is_lazy, data)):
        name = who if isinstance(who, str) else type(who).__name__
        raise TypeError(
            f"{name} takes no Dask collections here, and does not pull them into memory by itself: call compute() on"
            " what fits there"
        )


def _refuse_dates(X: Any) -> None:
    """Name the first column of dates in a data frame."""
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        for name, dtype in zip(X.columns, X.dtypes, strict=True):
            kind = type_name(dtype)
            if kind.lower().startswith(_DATES):
                raise ValueError(f"column {str(name)!r} of dtype {kind}: turn it into numbers, or drop it")


def type_name(dtype: Any) -> str:
    """A type without what was read off the rows: fields of a struct, a fill value, the length of the longest text."""
    if isinstance(dtype, np.dtype) and dtype.kind in _LONG:
        return _LONG[dtype.kind]
    return re.split(r"[(<\[{]", str(dtype), maxsplit=1)[0]


def types_of(X: Any) -> tuple[Any, ...]:
    """The names and types of a frame's columns, or the type of an array."""
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        return tuple((name, type_name(dtype)) for name, dtype in zip(X.columns, X.dtypes, strict=True))
    return (type_name(getattr(X, "dtype", type(X).__name__)),)


def _of_column(X: Any, message: str) -> str | None:
    """Which column is to blame that a frame cannot be taken as numbers, and what to do about it.

    What is no number is named by the type of its column alone, never by what it holds. Names of columns are public.
    """
    if not hasattr(X, "columns") or not hasattr(X, "dtypes"):
        return None
    if message.startswith("Input X contains infinity"):
        return _infinite(X)
    if not message.startswith(_NOT_NUMBERS):
        return None
    for name, dtype in zip(X.columns, X.dtypes, strict=True):
        kind = type_name(dtype)
        if kind.lower().startswith(_WORDS) and kind.lower() != "struct":
            return f"column {str(name)!r} of dtype {kind}: encode it with PrivateEncoder, or drop it"
        if not _NUMBERS.match(kind):
            return f"column {str(name)!r} of dtype {kind}: convert it to numbers or text, or drop it"
    return None


def check_names(names: Iterable[Any]) -> None:
    """Refuse columns of one name: nobody could say which of them is meant."""
    twice = sorted(name for name, count in Counter(map(str, names)).items() if count > 1)
    if twice:
        raise ValueError(f"columns must have different names, got twice: {', '.join(map(repr, twice))}")


def _infinite(X: Any) -> str | None:
    """The first column of a frame that holds infinity."""
    for place, name in enumerate(X.columns):
        column = X.iloc[:, place] if hasattr(X, "iloc") else X.to_series(place)
        values = column.to_numpy()
        if any(map(_is_infinite, values)) if values.dtype == object else np.isinf(values).any():
            return f"column {str(name)!r} holds infinity; NaN stands for what is missing"
    return None


def _is_infinite(cell: Any) -> bool:
    """Of an object that was taken as a number; of one that is missing, no."""
    return isinstance(cell, float) and math.isinf(cell)


def without_data(message: str) -> str:
    """The first line, without what it quotes: tables come on later lines, strings in quotes."""
    if message.startswith("The feature names"):  # names of columns are public
        return message
    first = _QUOTED.sub("'...'", message.partition("\n")[0])
    return first.rstrip(":.") + "." + _RESHAPE if "Reshape your data" in message else first
