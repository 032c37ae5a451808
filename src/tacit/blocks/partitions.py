"""Dask arrays and data frames: told from what is in memory, cut into parts for a fit, mapped over for a prediction.

Rows of X and y belong together by their places, as everywhere in scikit-learn; an index has no say. Nothing here runs a
task of the collections, but for the lengths of partitions where these are not known and X and y are cut differently.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from tacit.blocks.reading import AT_ONCE, Reading, quietly, without
from tacit.blocks.validate import is_lazy

Method = TypeVar("Method", bound=Callable[..., Any])

_CUT_APART = (
    "a partition of y has more or fewer rows than that of X; call compute_chunk_sizes() on both arrays, or pass data"
    " frames with the same partitions"
)


def opened_lazily(X: Any, y: Any = None, target: str | None = None) -> Reading:
    """The parts of a fit: on the workers of the active client, or on this machine if there is no client."""
    client = active_client()
    parts = [Partition(rows, targets, target) for rows, targets in _aligned(X, y, client)]
    if client is None:
        return Reading(parts)
    from tacit.blocks.cluster import Cluster

    return Reading(parts, Cluster(client))


def active_client() -> Any:
    """The client that Dask would use here, or None."""
    distributed = sys.modules.get("distributed")
    if distributed is None:  # nobody has made a client
        return None
    try:
        distributed.get_worker()
    except ValueError:
        pass
    else:
        raise RuntimeError(
            "a fit on Dask collections cannot run in a task of a worker, where it would wait for itself and draw its"
            " noise: call it where the client is"
        )
    try:
        client = distributed.default_client()
    except ValueError:
        return None
    if client.asynchronous:
        raise RuntimeError("the active Dask client is asynchronous, and fits are not: make a Client without it")
    return client


@dataclass(frozen=True, eq=False, repr=False)
class Partition:
    """Some rows that Dask computes, and their targets; here, or where a place says."""

    X: Any
    y: Any
    target: str | None
    is_slow = True

    def tables(self) -> Iterator[tuple[Any, Any]]:
        """Computed on this thread, a few at a time."""
        import dask

        for X, y in quietly("a partition", _once(lambda: dask.compute(self.X, self.y, scheduler="synchronous"))):
            yield from tables(X, y, self.target)


def _once(function: Callable[[], Any]) -> Iterator[Any]:
    yield function()


def tables(X: Any, y: Any, target: str | None) -> Iterator[tuple[Any, Any]]:
    """A few rows of a partition at a time; an empty table where there are none."""
    rows = X.shape[0]
    if y is not None and len(y) != rows:
        raise ValueError(_CUT_APART)
    for start in range(0, max(rows, 1), AT_ONCE):
        cut = slice(start, start + AT_ONCE)
        some = X.iloc[cut] if hasattr(X, "iloc") else X[cut]
        if y is None:
            yield without(some, target)
        else:
            yield some, y.iloc[cut] if hasattr(y, "iloc") else y[cut]


# ---- partitions of X and y, the same rows in each


def _aligned(X: Any, y: Any, client: Any) -> list[tuple[Any, Any]]:
    """Pairs of what is still to be computed."""
    rows = _partitions("X", X)
    if y is None:
        return [(one, None) for one in rows]
    targets, sizes, others = _partitions("y", y), _sizes(X), _sizes(y)
    if (sizes is None and others is None and len(rows) == len(targets)) or (sizes is not None and sizes == others):
        return list(zip(rows, targets, strict=True))
    sizes = sizes or _counted(rows, client)
    others = others or _counted(targets, client)
    if sum(sizes) != sum(others):
        raise ValueError(f"Found input variables with inconsistent numbers of samples: [{sum(sizes)}, {sum(others)}]")
    if sizes != others:
        targets = _recut(targets, others, sizes, y.dtype)
    return list(zip(rows, targets, strict=True))


def _partitions(name: str, table: Any) -> list[Any]:
    """Whole rows, or targets, as Dask's delayed values."""
    if not is_lazy(table):
        raise TypeError(
            f"X and y must both be Dask collections or both in memory, and {name} is a {type(table).__name__};"
            " dask.array.from_array makes a collection of an array"
        )
    if not hasattr(table, "to_delayed") or not hasattr(table, "ndim"):
        raise TypeError(f"{name} is a Dask {type(table).__name__}; fits take Dask arrays and data frames")
    if table.ndim != 2 - (name == "y"):
        raise ValueError(f"{name} must have {2 - (name == 'y')} dimensions, got a Dask collection with {table.ndim}")
    whole = table.rechunk({1: -1}) if hasattr(table, "rechunk") and table.ndim == 2 else table
    return list(np.ravel(whole.to_delayed()))


def _sizes(table: Any) -> tuple[int, ...] | None:
    """The lengths of partitions, if they are known."""
    chunks = table.chunks[0] if hasattr(table, "chunks") else (np.nan,)
    return None if np.isnan(chunks).any() else tuple(map(int, chunks))


def _counted(partitions: Sequence[Any], client: Any) -> tuple[int, ...]:
    """The lengths of partitions, by computing them."""
    import dask

    lengths = [dask.delayed(_length)(one) for one in partitions]
    found = _once(lambda: dask.compute(*lengths, scheduler=client or "synchronous"))
    return tuple(next(quietly("a partition", found)))


def _length(rows: Any) -> int:
    return int(rows.shape[0])


def _recut(targets: Sequence[Any], sizes: Sequence[int], wanted: Sequence[int], dtype: Any) -> list[Any]:
    """The same targets in partitions of other lengths."""
    import dask
    import dask.array as da

    flat = dask.delayed(np.asarray)
    kind = dtype if isinstance(dtype, np.dtype) else np.dtype(object)  # pandas has types of its own
    pieces = [da.from_delayed(flat(one), (size,), kind) for one, size in zip(targets, sizes, strict=True)]
    return list(da.concatenate(pieces).rechunk((tuple(wanted),)).to_delayed())


# ---- predictions


def lazily(method: Method) -> Method:
    """A method that gives one result for each row: of a Dask collection it is computed when that is.

    The result is a Dask array. Workers get the model without its seed.
    """

    @wraps(method)
    def called(self: Any, X: Any, *given: Any, **named: Any) -> Any:
        if not is_lazy(X):
            return method(self, X, *given, **named)
        return _mapped(_Rowwise(without_seed(self), method.__name__, given, named), X)

    return called  # type: ignore[return-value]


def without_seed(model: Any) -> Any:
    """A copy that may go to workers."""
    other = copy(model)
    if hasattr(other, "random_state"):
        other.random_state = None
    return other


def _mapped(function: "_Rowwise", X: Any) -> Any:
    if hasattr(X, "map_partitions"):
        from dask.dataframe.utils import meta_nonempty

        return X.map_partitions(function.over(meta_nonempty(X._meta)), meta=function.empty)
    if not hasattr(X, "map_blocks") or X.ndim != 2:
        raise TypeError(
            f"X is a Dask {type(X).__name__}; models predict for Dask arrays and data frames of two dimensions"
        )
    whole = X.rechunk({1: -1})
    empty = function.over(np.zeros((1, X.shape[1]), dtype=X.dtype)).empty
    if empty.ndim == 1:
        return whole.map_blocks(function, drop_axis=1, dtype=empty.dtype, meta=empty)
    return whole.map_blocks(function, chunks=(whole.chunks[0], (empty.shape[1],)), dtype=empty.dtype, meta=empty)


class _Rowwise:
    """A method of a fitted model, for one partition; `empty` is what it gives for no rows."""

    empty: Any = None

    def __init__(self, model: Any, method: str, given: Sequence[Any], named: dict[str, Any]) -> None:
        self._model, self._method, self._given, self._named = model, method, given, named
        self.__name__ = method  # by which Dask names its tasks

    def over(self, sample: Any) -> "_Rowwise":
        """Learn what the result looks like from a row that holds no data; what is wrong with X raises here."""
        self.empty = self(sample)[:0]
        if not isinstance(self.empty, np.ndarray):
            raise TypeError("of Dask collections results are arrays; set_output(transform='default') asks for them")
        return self

    def __call__(self, rows: Any) -> Any:
        if rows.shape[0] == 0 and self.empty is not None:
            return self.empty
        return getattr(self._model, self._method)(rows, *self._given, **self._named)
