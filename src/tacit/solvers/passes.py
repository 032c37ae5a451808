"""Passes over the rows of a fit: the sums that solvers release.

Everything a pass returns is private until it has noise. A row's margin and gradient come from a loop over that row
alone; sums are taken in float64, and `depth` is the longest chain of additions in them, for the slack in a sensitivity.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from tacit._types import Floats
from tacit.blocks import Bounded
from tacit.kernels import rows as kernels
from tacit.kernels.given import Block, Csr
from tacit.problems.task import LinearTask

SHRINK = 1.0 - 2.0**-30  # clips are this much tighter than their sensitivity says, which covers rounding


class Passes:
    """Passes over the rows; every sum it returns is private until it has noise."""

    def __init__(self, task: LinearTask, data: Bounded) -> None:
        self._task = task
        self._Z = data.Z
        self._bias = 1.0 if task.fit_intercept else 0.0
        self._norms = np.empty(len(data.targets))
        rows: Any = data.Z
        if isinstance(data.Z, csr_array):
            rows = Csr(data.Z.data, data.Z.indices.astype(np.int64), data.Z.indptr.astype(np.int64))
            kernels.sparse_norms(rows, self._bias, self._norms)
        else:
            kernels.dense_norms(data.Z, self._bias, self._norms)
        self._block = Block(rows, self._bias, data.targets, self._norms)

    @property
    def depth(self) -> int:
        """The longest chain of additions in a sum over the task's rows."""
        return self.depth_of(self._task)

    @staticmethod
    def depth_of(task: LinearTask) -> int:
        """The same, before there are rows."""
        return task.n if task.sparse else kernels.sum_depth(task.n)

    def gradient(self, w: Floats, clip: float, shape: float = 1.0, code: int | None = None) -> Floats:
        """The sum of clipped gradients; `shape` rounds the hinge, `code` names another loss than the task's."""
        out = np.empty_like(w)
        code = self._task.loss.code if code is None else code
        gradient = kernels.sparse_gradient if isinstance(self._Z, csr_array) else kernels.dense_gradient
        gradient(self._block, w, code, shape, clip, out)
        return out

    def second_moments(self, radius: float) -> Floats:
        """The sum of z z^T over rows clipped to `radius`, intercept last."""
        d = self._task.d
        total = np.zeros((d + 1, d + 1))
        for block, scale in self._blocks(radius):
            clipped = _times(block, scale[:, None])
            product = clipped.T @ clipped
            total[:d, :d] += product.toarray() if isinstance(block, csr_array) else product
            total[:d, d] += (clipped.T @ scale) * self._bias
            total[d, d] += float(scale @ scale) * self._bias
        total[d, :d] = total[:d, d]
        return total

    def squares(self, radius: float) -> Floats:
        """The diagonal of `second_moments`."""
        d = self._task.d
        total = np.zeros(d + 1)
        for block, scale in self._blocks(radius):
            total[:d] += _times(block, block).T @ np.square(scale)
            total[d] += float(scale @ scale) * self._bias
        return total

    def curvature_times(self, v: Floats, diagonal: Floats, radius: float) -> Floats:
        """The sum of u (u.v), u = z / sqrt(diagonal) clipped to `radius`."""
        d = self._task.d
        weights = 1.0 / np.sqrt(diagonal)
        total = np.zeros(d + 1)
        for block, _ in self._blocks(math.inf):
            scaled = _times(block, weights[:d])
            bias = self._bias * weights[d]
            norm = np.sqrt(_row_sums(_times(scaled, scaled)) + bias**2)
            factor = np.minimum(1.0, radius * SHRINK / np.maximum(norm, 1e-300)) ** 2
            inner = (_row_sums(_times(scaled, v[:d])) + bias * v[d]) * factor
            total[:d] += scaled.T @ inner
            total[d] += bias * float(inner.sum())
        return total

    def _blocks(self, radius: float) -> Iterator[tuple[Any, Floats]]:
        """Blocks of rows, and what to scale each row by so that its norm stays within `radius`."""
        for start in range(0, len(self._norms), kernels.BLOCK):
            end = min(start + kernels.BLOCK, len(self._norms))
            norms = self._norms[start:end]
            yield self._Z[start:end], np.minimum(1.0, radius * SHRINK / np.maximum(norms, 1e-300))


def _times(table: Any, factor: Any) -> Any:
    """Elementwise product, sparse where the table is."""
    return csr_array(table.multiply(factor)) if isinstance(table, csr_array) else table * factor


def _row_sums(table: Any) -> Floats:
    """The sum of each row, taken over that row alone."""
    return np.asarray(table.sum(axis=1)).ravel()
