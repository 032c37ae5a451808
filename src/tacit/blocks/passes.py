"""Passes over the rows of a fit: the sums that solvers release.

Everything a pass returns is private until it has noise. A row's margin and gradient come from a loop over that row
alone. Rows are added in blocks, and the blocks in their order.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from tacit._types import Floats
from tacit.blocks.agreement import POWER, agreement
from tacit.blocks.bounded import Bounded
from tacit.blocks.clip import SHRINK
from tacit.blocks.moves import Moves
from tacit.kernels import rows as kernels
from tacit.kernels.given import Block, Csr
from tacit.privacy.mechanisms import Sensitivity
from tacit.problems.task import LinearTask


class Passes:
    """Passes over the rows; every sum it returns is private until it has noise.

    `moves` has the sensitivity of `gradient`, `blocked` those of `second_moments`, `squares` and `curvature_times`.
    """

    heaviest: float = 1.0  # what a row weighs at most: it moves every sum by so many times its own term

    def __init__(self, task: LinearTask, data: Bounded) -> None:
        self._task = task
        self.moves, self.blocked = Moves.of(task), Moves.in_blocks(task.n)
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

    def gradient(self, w: Floats, clip: float, shape: float = 1.0, code: int | None = None) -> Floats:
        """The sum of clipped gradients; `shape` rounds the hinge, `code` names another loss than the task's."""
        out = np.empty_like(w)
        code = self._task.loss.code if code is None else code
        gradient = kernels.sparse_gradient if isinstance(self._Z, csr_array) else kernels.dense_gradient
        gradient(self._block, w, code, shape, clip, out)
        return out

    def residual_moves(self, norm: float, apart: float) -> Sensitivity:
        """Of `residuals`, whose terms are so long and so far apart at most: row by row, then the classes."""
        return Moves(self._task.n, depth=self._task.n + self._task.classes + 1).apart(norm, apart)

    def agreement(self, w: Floats, size: float) -> Floats:
        """The sums of `tacit.blocks.agreement`, for one output: whole numbers, so that they are exact."""
        margins, targets = self._margins(w)[0], self._block.targets
        blocks = [slice(start, start + kernels.BLOCK) for start in range(0, len(margins), kernels.BLOCK)]
        found = [agreement(margins[rows], targets[rows], size).tolist() for rows in blocks]
        return np.ldexp([float(sum(one[k] for one in found)) for k in (0, 1)], -POWER)  # of Python's integers

    def _margins(self, w: Floats) -> Floats:
        """Of each output, row by row."""
        margins = np.empty((len(w), len(self._norms)))
        fill = kernels.sparse_margins if isinstance(self._Z, csr_array) else kernels.dense_margins
        for weights, out in zip(w, margins, strict=True):
            fill(self._block.rows, self._bias, weights, out)
        return margins

    def residuals(self, w: Floats) -> Floats:
        """The sum of the slopes of the loss, for each output, row by row; one whose numbers overflow adds nothing."""
        margins = self._margins(w)
        slopes = self._task.loss.derivative(margins.T if len(w) > 1 else margins[0], self._block.targets)
        slopes = slopes.reshape(-1, len(w)) * SHRINK
        return np.asarray(np.where(np.isfinite(slopes).all(axis=1, keepdims=True), slopes, 0.0).sum(axis=0))

    def second_moments(self, radius: float) -> Floats:
        """The sum of z z^T over rows clipped to `radius`, intercept last."""
        d = self._task.d

        def add(rows: Any, factors: Floats, total: Floats) -> None:
            clipped = _times(rows, factors[:, None])
            product = clipped.T @ clipped
            total[:d, :d] += product.toarray() if isinstance(rows, csr_array) else product
            total[:d, d] += (clipped.T @ factors) * self._bias
            total[d, d] += float(factors @ factors) * self._bias

        total = self._sum(add, (d + 1, d + 1), radius)
        total[d, :d] = total[:d, d]
        return total

    def squares(self, radius: float) -> Floats:
        """The diagonal of `second_moments`."""
        d = self._task.d

        def add(rows: Any, factors: Floats, total: Floats) -> None:
            total[:d] += _times(rows, rows).T @ np.square(factors)
            total[d] += float(factors @ factors) * self._bias

        return self._sum(add, (d + 1,), radius)

    def curvature_times(self, v: Floats, diagonal: Floats, radius: float) -> Floats:
        """The sum of u (u.v), u = z / sqrt(diagonal) clipped to `radius`."""
        d = self._task.d
        weights = 1.0 / np.sqrt(diagonal)
        bias = self._bias * weights[d]

        def add(rows: Any, _: Floats, total: Floats) -> None:
            scaled = _times(rows, weights[:d])
            norm = np.sqrt(_row_sums(_times(scaled, scaled)) + bias**2)
            factor = np.minimum(1.0, radius * SHRINK / np.maximum(norm, 1e-300)) ** 2
            inner = (_row_sums(_times(scaled, v[:d])) + bias * v[d]) * factor
            total[:d] += scaled.T @ inner
            total[d] += bias * float(inner.sum())

        return self._sum(add, (d + 1,), math.inf)

    def _sum(self, add: Callable[[Any, Floats, Floats], None], shape: tuple[int, ...], radius: float) -> Floats:
        """The total of all blocks of rows, each of which `add` adds to it, in their order.

        It is handed the rows, and what to scale each of them by so that its norm stays within `radius`.
        """
        total = np.zeros(shape)
        for start in range(0, len(self._norms), kernels.BLOCK):
            norms = self._norms[start : start + kernels.BLOCK]
            factors = np.minimum(1.0, radius * SHRINK / np.maximum(norms, 1e-300))
            add(self._Z[start : start + kernels.BLOCK], factors, total)
        return total


def _times(table: Any, factor: Any) -> Any:
    """Elementwise product, sparse where the table is."""
    return csr_array(table.multiply(factor)) if isinstance(table, csr_array) else table * factor


def _row_sums(table: Any) -> Floats:
    """The sum of each row, taken over that row alone."""
    return np.asarray(table.sum(axis=1)).ravel()
