"""Rows clipped to a public norm.

A privacy proof starts from the most that one row can contribute, so bounds are enforced and never trusted:

- **Each row by itself.** What becomes of a row depends on that row and the bounds, to the last bit. A norm is
  summed in a loop over its row; BLAS would let the other rows change its last digits.
- **In real arithmetic.** A clipped row has norm at most the bound, not merely up to rounding: a row is kept
  as it is if its computed norm is at most norm (1 - 2^-31), and is otherwise scaled to norm (1 - 2^-30). In a
  row of up to 2^22 stored values the rounding of its norm, below (values / 2 + 3) 2^-53, fits in these
  margins, and clipping twice changes nothing. float32 values are rounded towards zero.
- **No value raises.** A row whose norm is not finite (overflow, infinity, NaN) becomes zero. Validation that
  refuses such data comes before, outside the guarantee.

An input is copied once and never changed, and sparse data stays sparse; repeated CSR entries are added up
first, since the norm is that of the row they stand for. float32 stays float32, all else becomes float64.
"""

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from tacit._types import Table
from tacit.kernels.scaling import row_norm
from tacit.privacy import checks
from tacit.problems.compiled import kernel

if TYPE_CHECKING:
    Sparse = sp.csr_array[Any] | sp.csr_matrix[Any]
else:  # older versions of SciPy take no brackets at run time
    Sparse = sp.csr_array | sp.csr_matrix
Matrix = Table | Sparse

_KEEP = 1.0 - 2.0**-31
SHRINK = 1.0 - 2.0**-30
"""Clips are this much tighter than what a sensitivity says, which covers rounding."""


@kernel
def _scale_row(values: Table, norm: float, target: float) -> None:
    """Scale a row of the given norm to `target`, rounding towards zero where the row is float32."""
    for k in range(values.size):
        # The quotient is at most 1, so neither operation overflows and a tiny target keeps its digits.
        scaled = values[k] / norm * target
        values[k] = scaled
        if abs(np.float64(values[k])) > abs(scaled):
            values[k] = np.nextafter(values[k], np.float32(0.0))


@kernel
def _clip_rows(values: Table, starts: NDArray[np.int64], bound: float) -> None:
    """Clip, in place, the rows values[starts[i] : starts[i + 1]] to the bound."""
    for i in range(starts.size - 1):
        row = values[starts[i] : starts[i + 1]]
        norm = row_norm(row)
        if not math.isfinite(norm):
            row[:] = 0.0
        elif norm > bound * _KEEP:
            _scale_row(row, norm, bound * SHRINK)


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
    >>> from tacit.blocks.clip import clip_rows
    >>> clip_rows([[3.0, 4.0], [0.3, 0.4]], norm=1.0).round(6)
    array([[0.6, 0.8],
           [0.3, 0.4]])
    """
    bound = _norm("norm", norm)
    copy = _copy(X)
    _clip_rows(copy.values, copy.starts, bound)
    return copy.matrix


class _Copy(NamedTuple):
    """A matrix of our own, its stored values as one flat view, and where each row starts among them."""

    matrix: Matrix
    values: Table
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


def _floats(values: NDArray[Any]) -> Table:
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
