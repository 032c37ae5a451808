"""Public sketches: random matrices J with few rows, by which a column of n entries becomes m numbers.

J is drawn from a public seed, so that all parties hold the same one. Entries have mean zero and E[J^T J] is the
identity: J a keeps the norm of a column up to a relative error of about sqrt(2 / m), and a.b is estimated by
(J a).(J b) with an error of about |a| |b| / sqrt(m). A sketch compresses; it hides nothing. Whoever releases J a adds
noise for `Sketch.sensitivity`, and as J keeps norms, that noise is as large in a product as it would be without one.

Privacy. Row i of the data enters J A through the outer product of J's column i and the row's entries, whose Frobenius
norm is the product of the two norms: at most c_J r, where c_J is the largest column norm of J and r bounds the norm of
the row over the columns sketched. There is no 1/n in it. Summing in float64 adds at most gamma n c_J r in each world
(gamma of n + 1 operations, in any order).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from scipy import sparse

from tacit._types import Floats
from tacit.federated.options import SketchKind
from tacit.federated.study import Study
from tacit.privacy import Budget, Gate, checks, float_sum_slack
from tacit.privacy.mechanisms import GaussianVector, Sensitivity
from tacit.privacy.public import PublicDraws

_ENTRIES = 4  # of a sparse column, each +-1/2: a square number, so that the column's norm is exactly 1
_LEAST_SIZE = 64
_BLOCK_ENTRIES = 1 << 20  # of a Gaussian sketch that are drawn at a time
_KEPT_ENTRIES = 1 << 24  # a Gaussian sketch up to this size is kept in memory; larger ones are drawn again each time


class Sketch(ABC):
    """A public matrix of shape (size, n_rows)."""

    def __init__(self, n_rows: int, size: int, seed: int = 0) -> None:
        self.n_rows = checks.count("n_rows", n_rows)
        self.size = checks.count("size", size)
        self._seed = seed

    @property
    @abstractmethod
    def column_norm(self) -> float:
        """c_J, the largest norm of a column: how much one row of the data is enlarged."""

    @abstractmethod
    def _product(self, columns: Any) -> Floats:
        """J times dense or CSC columns."""

    @abstractmethod
    def _transposed_product(self, values: Floats) -> Floats:
        """J^T times a vector or matrix."""

    def apply(self, columns: Any) -> Floats:
        """The sketch of each column of a dense array or a sparse one, of shape (size, k)."""
        if np.ndim(columns) != 2 or columns.shape[0] != self.n_rows:
            raise ValueError(f"a sketch of {self.n_rows} rows takes columns of that length, got {np.shape(columns)}")
        return self._product(columns)

    def back(self, values: Floats) -> Floats:
        """J^T q of a vector or of each column of a matrix: an estimate of what was sketched."""
        if np.ndim(values) not in (1, 2) or len(values) != self.size:
            raise ValueError(f"expected a vector or matrix of {self.size} rows, got shape {np.shape(values)}")
        return self._transposed_product(np.asarray(values, dtype=np.float64))

    def sensitivity(self, row_norm: float) -> Sensitivity:
        """How far one row moves J A in Frobenius norm; rows of A have norm at most `row_norm`. Float sums included."""
        contribution = checks.non_negative("row_norm", row_norm) * self.column_norm
        return Sensitivity.vector(contribution + float_sum_slack(self.n_rows + 1, contribution))

    def release(self, gate: Gate, name: str, columns: Any, row_norm: float, rounding: float = 1.0) -> Floats:
        """J A with noise, for rows of A of norm at most `row_norm`, times `rounding` as they are stored."""
        largest = self.n_rows * row_norm * self.column_norm
        mechanism = GaussianVector(self.sensitivity(row_norm * rounding), bound=largest)
        return gate.release(name, mechanism, self.apply(columns))


class Identity(Sketch):
    """No compression: what a sketch with as many rows as the data becomes."""

    def __init__(self, n_rows: int) -> None:
        super().__init__(n_rows, n_rows)

    column_norm = 1.0

    def _product(self, columns: Any) -> Floats:
        return np.array(_dense(columns), dtype=np.float64)

    def _transposed_product(self, values: Floats) -> Floats:
        return values.copy()


class SparseSign(Sketch):
    """Four entries of +-1/2 in each column, one in each quarter of the rows (one entry of +-1 if size < 4).

    The entries of a column are in distinct rows, so its norm is exactly 1.
    """

    column_norm = 1.0

    @cached_property
    def _matrix(self) -> sparse.csr_array:
        count = _ENTRIES if self.size >= _ENTRIES else 1
        edges = np.arange(count + 1, dtype=np.int64) * self.size // count
        words = PublicDraws(self._seed).words(self.n_rows * count).reshape(self.n_rows, count)
        # The lowest bit is the sign; the others a place in the part, uneven by less than size / 2^63.
        place = ((words >> np.uint64(1)) % np.diff(edges).astype(np.uint64)).astype(np.int64) + edges[:-1]
        sign = (1.0 - 2.0 * (words & np.uint64(1))) / math.sqrt(count)
        starts = np.arange(self.n_rows + 1) * count
        by_column = sparse.csc_array((sign.ravel(), place.ravel(), starts), shape=(self.size, self.n_rows))
        return by_column.tocsr()

    @cached_property
    def _transposed(self) -> Any:
        return self._matrix.T  # of the same numbers; making it anew takes longer than a small product

    def _product(self, columns: Any) -> Floats:
        return np.asarray(_dense(self._matrix @ columns), dtype=np.float64)

    def _transposed_product(self, values: Floats) -> Floats:
        return np.asarray(self._transposed @ values)


class Gaussian(Sketch):
    """Independent normal entries of variance 1 / size, in blocks of columns."""

    def _blocks(self) -> Iterable[tuple[slice, Floats]]:
        """J by blocks of columns, each transposed: one row for a row of the data."""
        return self._kept if self.n_rows * self.size <= _KEPT_ENTRIES else self._drawn()

    @cached_property
    def _kept(self) -> list[tuple[slice, Floats]]:
        return list(self._drawn())

    def _drawn(self) -> Iterator[tuple[slice, Floats]]:
        draws = PublicDraws(self._seed)
        width = max(1, _BLOCK_ENTRIES // self.size)
        unit = 2.0**-40 / math.sqrt(self.size)
        for start in range(0, self.n_rows, width):
            stop = min(start + width, self.n_rows)
            whole = draws.normals((stop - start) * self.size)
            yield slice(start, stop), np.multiply(whole.reshape(stop - start, self.size), unit, dtype=np.float64)

    @cached_property
    def column_norm(self) -> float:
        """The largest norm of a column of this J, not of the law it was drawn from; rounded up."""
        largest = max(float(np.einsum("ij,ij->i", block, block).max()) for _, block in self._blocks())
        return math.sqrt(largest) * (1.0 + 2.0**-30)

    def _product(self, columns: Any) -> Floats:
        by_row = columns.tocsr() if hasattr(columns, "tocsr") else np.asarray(columns, dtype=np.float64)
        total = np.zeros((self.size, columns.shape[1]))
        for rows, block in self._blocks():
            total += (by_row[rows].T @ block).T
        return total

    def _transposed_product(self, values: Floats) -> Floats:
        return np.concatenate([block @ values for _, block in self._blocks()])


def sketch_for(study: Study, size: int | None = None) -> Sketch:
    """The sketch that all parties of a study hold; one with at least n_rows rows is the identity.

    Its size is the study's, if it fixes one, then the one that is asked for, then `default_size`.
    """
    size = study.sketch.size or size or default_size(study.n_rows, study.budget)
    if size >= study.n_rows:
        return Identity(study.n_rows)
    return _drawn_sketch(study.sketch.kind, study.n_rows, size, study.sketch.seed)


@lru_cache(maxsize=4)
def _drawn_sketch(kind: SketchKind, n_rows: int, size: int, seed: int) -> Sketch:
    """One object for all parties in one process."""
    return (SparseSign if kind == "sparse-sign" else Gaussian)(n_rows, size, seed)


def default_size(n_rows: int, budget: Budget) -> int:
    """Rows of a sketch, by a rule in public numbers.

    A column released alone with the whole budget would have noise of about B / mu in a product with a unit vector, and
    a sketch of m rows an error of about B sqrt(n / m). Both are equal at m = n mu^2; columns share the budget, and a
    thirty-second of that leaves the sketch's error below the noise from 16 columns on. Without noise, nothing is
    compressed.
    """
    if not budget.is_private:
        return n_rows
    return min(n_rows, max(_LEAST_SIZE, math.ceil(n_rows * budget.mu**2 / 32.0)))


def _dense(columns: Any) -> Any:
    return columns.toarray() if hasattr(columns, "toarray") else columns
