"""Labels, predictions and scores as arrays; what is bad raises here, before anything is released.

Messages name the argument and what would be accepted. They never quote the data. Errors of NumPy and of models may do
so: they are neither shown nor kept as a cause.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit._types import Floats, Integers
from tacit.blocks.validate import refuse_lazy

_SUM_TOLERANCE = 1e-3


def numbers(name: str, values: ArrayLike, *, dimensions: tuple[int, ...] = (1,)) -> Floats:
    """Finite numbers: one for each row, or in two dimensions several."""
    refuse_lazy("an evaluation", values)
    array = None
    with suppress(TypeError, ValueError, OverflowError):
        given = np.asarray(values)
        array = given.astype(np.float64) if given.dtype.kind in "fiubO" else None
    if array is None:
        raise ValueError(f"{name} must hold real numbers, one for each row")
    if array.ndim not in dimensions:
        raise ValueError(f"{name} must have {' or '.join(map(str, dimensions))} dimensions, got shape {array.shape}")
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{name} must not hold NaN or infinity")
    return array


def labels_of(name: str, values: ArrayLike) -> list[Any]:
    """Class labels, one for each row: text, whole numbers or truth values."""
    refuse_lazy("an evaluation", values)
    array = None
    with suppress(TypeError, ValueError):
        array = np.asarray(values)
    if array is None or array.ndim != 1:
        raise ValueError(f"{name} must hold one class label for each row")
    if array.dtype.kind not in "biufUSO" or not all(map(_is_label, labels := array.tolist())):
        raise ValueError(f"{name} must hold class labels: text or whole numbers, and no missing value")
    return labels


def encoded(name: str, values: ArrayLike, labels: Any, count: int) -> Integers:
    """Each row's class as its place among `count` public labels: those declared, or 0, 1 and so on."""
    classes = range(count) if labels is None else labels
    places = {label: place for place, label in enumerate(classes)}
    if not len(places) == len(classes) == count:
        raise ValueError(f"labels must list {count} different classes, got {labels!r}")
    found = [places.get(label, -1) for label in labels_of(name, values)]
    if -1 in found:
        raise ValueError(f"{name} holds a label that `labels` does not name; name every label that can occur")
    return np.array(found, dtype=np.int64)


def declared(labels: ArrayLike | None) -> tuple[Any, ...] | None:
    """Public class labels as a tuple; None where none are declared."""
    return None if labels is None else tuple(labels_of("labels", labels))


def probabilities(name: str, values: ArrayLike) -> Floats:
    """Probabilities of the classes, of shape (n, classes); one column stands for the second of two classes."""
    table = numbers(name, values, dimensions=(1, 2))
    if not np.all((table >= 0.0) & (table <= 1.0)):
        raise ValueError(f"{name} must hold probabilities, from 0 to 1")
    if table.ndim == 1:
        return np.column_stack([1.0 - table, table])
    if table.shape[1] < 2 or not np.all(np.abs(table.sum(axis=1) - 1.0) <= _SUM_TOLERANCE):
        raise ValueError(f"{name} must hold a probability for each of two classes or more, which add up to 1")
    return table


def same_rows(
    first: Sequence[Any] | NDArray[Any], second: Sequence[Any] | NDArray[Any], names: str, rows: int | None = None
) -> int:
    """The number of rows, which both have; if they are some of `rows`, that."""
    if len(first) != len(second):
        raise ValueError(f"{names} must have one entry for each row, got {len(first)} and {len(second)}")
    if rows is not None:
        return rows
    if len(first) < 2:
        raise ValueError(f"{names} must have at least two rows, got {len(first)}")
    return len(first)


def _is_label(value: Any) -> bool:
    if isinstance(value, str | bytes | int | np.bool_ | np.integer):
        return True
    return isinstance(value, float | np.floating) and float(value).is_integer()
