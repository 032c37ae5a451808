"""Bounded data: rows, entries and labels clipped to declared public bounds.

A privacy proof starts from the most that one row can contribute, so bounds are enforced and never trusted:

- **Each row by itself.** What becomes of a row depends on that row and the bounds, to the last bit. A norm is
  summed in a loop over its row; BLAS would let the other rows change its last digits.
- **In real arithmetic.** A clipped row has norm at most the bound, not merely up to rounding: a row is kept
  as it is if its computed norm is at most norm (1 - 2^-31), and is otherwise scaled to norm (1 - 2^-30). In a
  row of up to 2^22 stored values the rounding of its norm, below (values / 2 + 3) 2^-53, fits in these
  margins, and clipping twice changes nothing. float32 values are rounded towards zero.
- **No value raises.** A row whose norm is not finite (overflow, infinity, NaN) becomes zero, and so does a
  NaN entry when entries are clipped. Validation that refuses such data comes before, outside the guarantee.

An input is copied once and never changed, and sparse data stays sparse; repeated CSR entries are added up
first, since the norm is that of the row they stand for. float32 stays float32, all else becomes float64.
"""

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from tacit.privacy import checks
from tacit.problems.compiled import FloatArray, kernel

Values = NDArray[np.floating[Any]]
if TYPE_CHECKING:
    Sparse = sp.csr_array[Any] | sp.csr_matrix[Any]
else:  # older versions of SciPy take no brackets at run time
    Sparse = sp.csr_array | sp.csr_matrix
Matrix = Values | Sparse

_KEEP = 1.0 - 2.0**-31
_SHRINK = 1.0 - 2.0**-30


@kernel
def row_norm(values: Values) -> float:
    """The l2 norm of one row, in float64; infinite if it overflows or a value is not finite."""
    total = 0.0
    for value in values:
        total += np.float64(value) * np.float64(value)
    if 1e-280 < total < 1e280:
        return math.sqrt(total)
    # Squares that overflow or vanish: |x| = m |x / m| with m the largest absolute value.
    largest = 0.0
    for value in values:
        if not math.isfinite(value):
            return math.inf
        largest = max(largest, abs(np.float64(value)))
    if largest == 0.0:
        return 0.0
    total = 0.0
    for value in values:
        ratio = value / largest
        total += ratio * ratio
    return largest * math.sqrt(total)


@kernel
def _scale_row(values: Values, norm: float, target: float) -> None:
    """Scale a row of the given norm to `target`, rounding towards zero where the row is float32."""
    for k in range(values.size):
        # The quotient is at most 1, so neither operation overflows and a tiny target keeps its digits.
        scaled = values[k] / norm * target
        values[k] = scaled
        if abs(np.float64(values[k])) > abs(scaled):
            values[k] = np.nextafter(values[k], np.float32(0.0))


@kernel
def _clip_rows(values: Values, starts: NDArray[np.int64], bound: float) -> None:
    """Clip, in place, the rows values[starts[i] : starts[i + 1]] to the bound."""
    for i in range(starts.size - 1):
        row = values[starts[i] : starts[i + 1]]
        norm = row_norm(row)
        if not math.isfinite(norm):
            row[:] = 0.0
        elif norm > bound * _KEEP:
            _scale_row(row, norm, bound * _SHRINK)


def _clip_values(values: Values, bound: float) -> None:
    """Clip, in place, values to [-bound, bound] and NaN to 0."""
    limit = values.dtype.type(min(bound, float(np.finfo(values.dtype).max)))
    if float(limit) > bound:  # the float32 nearest to the bound may lie above it
        limit = np.nextafter(limit, values.dtype.type(0.0))
    np.clip(values, -limit, limit, out=values)
    values[np.isnan(values)] = 0.0


def clip_rows(X: ArrayLike | Sparse, norm: float) -> Matrix:
    """Return a copy of X in which every row has l2 norm at most `norm`.

    Parameters
    ----------
    X : array or CSR matrix
        Of shape (n, d).
    norm : float
        Finite and at least the smallest normal number, 2.3e-308.

    Examples
    --------
    >>> from tacit.problems import clip_rows
    >>> clip_rows([[3.0, 4.0], [0.3, 0.4]], norm=1.0).round(6)
    array([[0.6, 0.8],
           [0.3, 0.4]])
    """
    bound = _norm("norm", norm)
    copy = _copy(X)
    _clip_rows(copy.values, copy.starts, bound)
    return copy.matrix


def clip_entries(X: ArrayLike | Sparse, bound: float) -> Matrix:
    """Return a copy of X in which every entry lies in [-bound, bound], for a finite bound above 0."""
    limit = checks.positive("bound", bound)
    copy = _copy(X)
    _clip_values(copy.values, limit)
    return copy.matrix


def clip_labels(y: ArrayLike, low: float, high: float) -> FloatArray:
    """Return a float64 copy of y with every label in [low, high]; NaN goes to the point nearest to 0."""
    interval = _interval("low and high", low, high)
    labels = _numbers("y", y)
    if labels.ndim != 1:
        raise ValueError(f"y must have one dimension, got shape {labels.shape}")
    floats = labels.astype(np.float64)
    floats[np.isnan(floats)] = 0.0
    return np.clip(floats, *interval, out=floats)


@dataclass(frozen=True)
class DataBounds:
    """The declared, public bounds of a data set; None where nothing is declared.

    Parameters
    ----------
    row_norm : float, optional
        The largest l2 norm of a row; finite, at least 2.3e-308.
    entry_bound : float, optional
        The largest absolute value of an entry; finite, above 0.
    y_bounds : (float, float), optional
        The lowest and the highest label, finite.
    """

    row_norm: float | None = None
    entry_bound: float | None = None
    y_bounds: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.row_norm is not None:
            object.__setattr__(self, "row_norm", _norm("row_norm", self.row_norm))
        if self.entry_bound is not None:
            object.__setattr__(self, "entry_bound", checks.positive("entry_bound", self.entry_bound))
        if self.y_bounds is not None:
            object.__setattr__(self, "y_bounds", _interval("y_bounds", *self.y_bounds))


@dataclass(frozen=True, eq=False)
class BoundedData:
    """A copy of (X, y) that lies within `bounds`: it is clipped when it is made, so there is no other kind.

    Entries are clipped first, then rows: scaling a row down leaves its entries within their bound.

    Parameters
    ----------
    X : array or CSR matrix
        Of shape (n, d).
    y : array, optional
        Of shape (n,). Clipped, and float64, if the bounds have `y_bounds`; otherwise copied as it is.
    bounds : DataBounds
        What to clip to.

    Examples
    --------
    >>> from tacit.problems import BoundedData, DataBounds
    >>> data = BoundedData([[3.0, -4.0]], [7.0], DataBounds(entry_bound=2.0, y_bounds=(0.0, 5.0)))
    >>> data.X, data.y
    (array([[ 2., -2.]]), array([5.]))
    """

    X: Matrix = field(repr=False)
    y: NDArray[Any] | None = field(repr=False)
    bounds: DataBounds

    def __init__(self, X: ArrayLike | Sparse, y: ArrayLike | None, bounds: DataBounds) -> None:
        copy = _copy(X)
        if bounds.entry_bound is not None:
            _clip_values(copy.values, bounds.entry_bound)
        if bounds.row_norm is not None:
            _clip_rows(copy.values, copy.starts, bounds.row_norm)
        labels = None if y is None else np.array(y)
        if labels is not None and labels.shape != copy.matrix.shape[:1]:
            raise ValueError(f"y must have one label per row of X, got shapes {labels.shape} and {copy.matrix.shape}")
        if labels is not None and bounds.y_bounds is not None:
            labels = clip_labels(labels, *bounds.y_bounds)
        object.__setattr__(self, "X", copy.matrix)
        object.__setattr__(self, "y", labels)
        object.__setattr__(self, "bounds", bounds)


class _Copy(NamedTuple):
    """A matrix of our own, its stored values as one flat view, and where each row starts among them."""

    matrix: Matrix
    values: Values
    starts: NDArray[np.int64]


def _copy(X: ArrayLike | Sparse) -> _Copy:
    """Copy X into a C-ordered array, or into a CSR matrix without repeated entries."""
    if sp.issparse(X):
        if X.format != "csr" or X.ndim != 2:
            raise ValueError(f"X must be dense or CSR with two dimensions, got {X.ndim}-dimensional {X.format}")
        data = _floats(_numbers("X", X.data))
        matrix: Any = type(X)((data, X.indices.copy(), X.indptr.copy()), shape=X.shape)
        matrix.sum_duplicates()
        matrix.prune()
        return _Copy(matrix, matrix.data, matrix.indptr.astype(np.int64))
    given = _numbers("X", X)
    if given.ndim != 2:
        raise ValueError(f"X must have two dimensions, got shape {given.shape}")
    dense = _floats(given)
    n_rows, n_columns = dense.shape
    return _Copy(dense, dense.reshape(-1), np.arange(n_rows + 1, dtype=np.int64) * n_columns)


def _numbers(name: str, values: Any) -> NDArray[Any]:
    """`values` as an array of real numbers; the message must not quote them."""
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold real numbers, got dtype {array.dtype}")
    return array


def _floats(values: NDArray[Any]) -> Values:
    """A C-ordered copy: float32 stays float32, everything else becomes float64."""
    single = values.dtype.kind == "f" and values.dtype.itemsize == 4
    with np.errstate(over="ignore"):  # a long double beyond float64 becomes infinite, and its row zero
        return np.array(values, dtype=np.float32 if single else np.float64, order="C")


def _norm(name: str, value: object) -> float:
    number = checks.positive(name, value)
    smallest = np.finfo(np.float64).smallest_normal
    if number < smallest:
        raise ValueError(f"{name} must be at least {smallest:.3g}, got {number}")
    return number


def _interval(name: str, low: object, high: object) -> tuple[float, float]:
    lowest, highest = checks.real(name, low), checks.real(name, high)
    if not -math.inf < lowest <= highest < math.inf:
        raise ValueError(f"{name} must be finite and in order, low <= high, got {lowest} and {highest}")
    return lowest, highest
