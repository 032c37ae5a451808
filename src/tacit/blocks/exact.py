"""Passes over dense rows as exact sums: what solvers release of them has no slack.

Each method is a sum of whole numbers (`tacit.kernels.exact`), so a row that is absent changes the total by exactly its
own term. The total becomes a float64 in one rounding, which the grid of the noise charges (`tacit.privacy.noise.grid`).
What remains is that no term exceeds the bound that a sensitivity states. Clips are on whole steps, or are followed by
rounding towards zero, and they are tighter by `SHRINK` than what is stated, which covers norms and quotients.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from tacit._types import Floats, Integers
from tacit.blocks.agreement import POWER, agreement
from tacit.blocks.bounded import Bounded
from tacit.blocks.clip import SHRINK
from tacit.blocks.grid import GridTable, Part
from tacit.blocks.moves import Moves
from tacit.blocks.products import product
from tacit.blocks.source import Kept
from tacit.blocks.sums import Run, Total, cuts, in_turn, on_threads, sum_over
from tacit.kernels import exact as kernels
from tacit.kernels import stored
from tacit.kernels.exact import (
    BLOCK,
    CLASS_COEFFICIENTS,
    COEFFICIENTS,
    ENTRIES,
    FARTHEST,
    GRID,
    LONG_BLOCK,
    SHORT,
    WEIGHTS,
)
from tacit.kernels.given import Block
from tacit.privacy.mechanisms import Sensitivity
from tacit.problems.task import LinearTask

_WIDE = 256  # columns
_LARGEST = 2.0**1000  # l1 norm of weights, far below where margins overflow
_CELLS = 2**17  # of rows that are copied at a time, of which there are 512 or more
_FILLED = 1 / 8  # of the entries of sparse rows: above that, BLAS is as fast on dense ones
_AHEAD = 1.0 - 2.0**-20  # by which rows of `curvature_times` are shorter than is stated


class ExactPasses:
    """Passes over dense rows, each of which weighs what its class does; every sum is private until it has noise.

    `moves` and `blocked` have the sensitivities: the same, without slack. `weights` are of the two classes, or of each.
    """

    def __init__(self, task: LinearTask, data: Bounded, weights: Floats | None = None, run: Run = on_threads) -> None:
        self._task, self._run = task, run
        self.moves = self.blocked = Moves.exact(task.n)
        self._weights = np.ones(max(task.outputs, 2)) if weights is None else weights
        self.heaviest = float(self._weights.max())
        self._bias = 1.0 if task.fit_intercept else 0.0
        self._is_sparse, self._is_here = False, True
        self._parts: Sequence[Any]
        if isinstance(data.Z, Kept):
            self._parts, self._run, self._is_here = data.Z.parts, data.Z.run, data.Z.is_here
            return
        table = GridTable.of(data.Z)
        self._is_sparse = table.zero is not None
        n, norms = table.shape[0], np.empty(table.shape[0])
        self._parts = [Part(table, self._bias, data.targets, norms, cut.start, cut.stop) for cut in cuts(n, task.d)]
        for _ in run(_write_norms, self._parts):
            pass

    def gradient(self, w: Floats, clip: float, shape: float = 1.0) -> Floats:
        """The sum of clipped gradients; `shape` rounds the hinge."""
        return self._gradient(w, clip, shape, self._bias)

    def residuals(self, w: Floats) -> Floats:
        """The sum of the slopes of the loss, for each output: what gradients without a clip say of an intercept."""
        fixed = w.copy()
        fixed[:, -1] *= self._bias
        return self._gradient(fixed, math.inf, 1.0, 1.0)[:, -1]

    def residual_moves(self, norm: float, apart: float) -> Sensitivity:
        """Of `residuals`, whose terms are at most so long and so far apart before they are rounded to a grid.

        That moves each output of each of two terms by half a step at most.
        """
        outputs = self._task.outputs
        step = 2.0 ** -_coefficient_bits(self._largest_slope(0.0), outputs)
        return self.moves.apart(norm, apart, more=math.sqrt(outputs) * step)

    def second_moments(self, radius: float) -> Floats:
        """The sum of z z^T over rows clipped to `radius`, intercept last."""
        total, power = self._of_scaled(_outer, radius)
        return total.floats(power)

    def squares(self, radius: float) -> Floats:
        """The diagonal of `second_moments`."""
        total, power = self._of_scaled(_squares, radius)
        return total.floats(power)

    def curvature_times(self, v: Floats, diagonal: Floats, radius: float) -> Floats:
        """The sum of u (u.v), u = z / sqrt(diagonal) clipped to `radius` R, for |v| <= 1.

        u.v is rounded towards zero to steps of at most 2^-20 R. So a term is no longer than it was, and two of them are
        at most 2 2^-20 R^2 farther apart; as R is smaller by that much first, R^2 holds for both neighbour relations.
        """
        weights = 1.0 / np.sqrt(diagonal)
        weights[-1] *= self._bias
        reach = math.frexp(radius)[1]
        units = 2.0 ** (ENTRIES - reach)
        steps = CLASS_COEFFICIENTS - _power(radius * self.heaviest)
        power = WEIGHTS - _power(float(np.abs(v).sum()))
        fixed = np.ldexp(np.trunc(np.ldexp(v, power)), -power)
        public = weights, fixed, radius * SHRINK * _AHEAD, units, 2.0**steps / units, self._weights
        return sum_over(self._parts, _images, *public, run=self._run).floats(reach - ENTRIES - steps)

    def agreement(self, w: Floats, size: float) -> Floats:
        """The sums of `tacit.blocks.agreement`, for one output."""
        if not np.abs(w).sum() <= _LARGEST:
            return np.zeros(2)
        public = self._bias, _on_grid(w), size
        return sum_over(self._parts, _agreement, *public, run=self._run).floats(-POWER)

    # ---- how they are taken

    def _gradient(self, w: Floats, clip: float, shape: float, bias: float) -> Floats:
        size = float(np.abs(w).sum(axis=1).max())
        if not size <= _LARGEST:
            return np.zeros_like(w)  # weights are public, and margins of rows might overflow
        fixed = _on_grid(w)
        largest = self._largest_slope(size)
        if self._bias and clip < largest / self.heaviest:  # rows are at least as long as their intercept entry
            largest = clip * self.heaviest
        steps = _coefficient_bits(largest, len(w))
        most = COEFFICIENTS if len(w) == 1 else CLASS_COEFFICIENTS
        rule = kernels.Rule(self._task.loss.code, shape, clip, self._weights, 2.0**steps, 2.0**most)
        if len(w) == 1:
            total = sum_over(self._longer, _one_gradient, bias, fixed[0], rule, run=self._run, at_once=1)
            return total.floats(-GRID - steps)[None, :]
        return sum_over(self._parts, _class_gradient, bias, fixed, rule, run=self._run).floats(-GRID - steps)

    @cached_property
    def _longer(self) -> list[Any]:
        """The parts in blocks as long as compiled kernels take them."""
        return [replace(part, size=LONG_BLOCK) if hasattr(part, "size") else part for part in self._parts]

    def _largest_slope(self, size: float) -> float:
        """A bound on a slope of a row's loss times its weight, for weights of this l1 norm and targets within 4.

        Of losses with bounded slopes none exceeds 1 in one margin. A margin is at most 4 times the size.
        """
        loss = self._task.loss
        return self.heaviest * (1.0 if math.isfinite(loss.slope) else loss.curvature * FARTHEST * (size + 1.0))

    def _of_scaled(self, kernel: Any, radius: float) -> tuple[Total, int]:
        """A sum over rows clipped to `radius`, times the roots of their weights over 2^down so that none is above 1."""
        down = -(-_power(self.heaviest) // 2)
        roots = np.sqrt(self._weights) / 2.0**down
        run, parts = self._run, self._parts
        if kernel is _outer and self._task.d <= SHORT:
            parts = self._longer
        elif self._is_here and kernel is _outer and self._task.d >= _WIDE:
            run = in_turn  # a matrix of many columns is held once: BLAS has threads of its own for it
            if self._is_sparse:
                parts = [replace(parts[0], end=parts[-1].end, size=LONG_BLOCK)]
        return sum_over(parts, kernel, radius * SHRINK, roots, run=run), 2 * (down - GRID)


def _power(size: float) -> int:
    """The smallest power of two that is not below `size`; 0 for nothing."""
    if size == 0.0:
        return 0
    fraction, power = math.frexp(size)
    return power - 1 if fraction == 0.5 else power


def _on_grid(w: Floats) -> Floats:
    """Weights of each output on a grid on which margins are exact."""
    power = WEIGHTS - _power(float(np.abs(w).sum(axis=1).max()))
    return np.ldexp(np.rint(np.ldexp(w, power)), -power)


def _coefficient_bits(largest: float, outputs: int) -> int:
    """How many steps to 1, as a power of two, coefficients of this size have room for."""
    return (COEFFICIENTS if outputs == 1 else CLASS_COEFFICIENTS) - _power(largest)


def _write_norms(part: Part) -> None:
    """The norms of a part's rows, into its own place."""
    for block in part.blocks():
        norms = stored.sparse_norms if isinstance(block.rows, stored.Zeros) else kernels.dense_norms
        norms(block.rows, block.bias, block.norms)


def _pieces(block: Block[Any], some: Integers | None = None) -> Iterator[tuple[Any, Any]]:
    """Rows of the block, or some of them, dense, a few at a time where they are long: each is copied in float64."""
    sparse, n = isinstance(block.rows, stored.Zeros), len(block.norms)
    width = len(block.rows.zero) if sparse else block.rows.shape[1]
    size = min(max(512, _CELLS // width), BLOCK)
    for start in range(0, max(n, 1) if some is None else len(some), size):
        cut = slice(start, min(start + size, n))
        places = np.arange(cut.start, cut.stop) if some is None else some[start : start + size]
        if sparse:
            yield places, stored.filled(block.rows, places)
        else:
            yield cut, block.rows[cut]


def _of_class(weights: Floats, targets: Floats) -> Floats:
    """What each row weighs."""
    return weights[(targets > 0.0).astype(np.int64) if len(weights) == 2 else targets.astype(np.int64)]


def _whole(sums: Floats) -> Integers:
    return sums.astype(np.int64)


def _one_gradient(block: Block[Any], bias: float, w: Floats, rule: kernels.Rule) -> Integers:
    """The sum of clipped gradients of one output, with another entry for the intercept."""
    gradient = stored.sparse_gradient if isinstance(block.rows, stored.Zeros) else kernels.dense_gradient
    return gradient(block._replace(bias=bias), w, rule)


def _agreement(block: Block[Any], bias: float, w: Floats, size: float) -> Integers:
    total = np.zeros(2, dtype=np.int64)
    for cut, rows in _pieces(block):
        margins = product(w[:, :-1], rows.astype(np.float64, copy=False).T)[0] + bias * w[0, -1]
        total += agreement(margins, block.targets[cut], size)
    return total


def _class_gradient(block: Block[Any], bias: float, W: Floats, rule: kernels.Rule) -> Integers:
    """The sum of clipped gradients of several outputs, with another entry for the intercept."""
    total: Any = 0.0
    for cut, rows in _pieces(block):
        Z = rows.astype(np.float64, copy=False)  # in single precision products would be rounded
        held = product(W[:, :-1], Z.T)
        held += bias * W[:, -1:]
        kernels.class_coefficients(held, block.targets[cut], block.norms[cut], rule)
        total += np.column_stack([product(held, Z), bias * held.sum(axis=1)])
    return _whole(np.ldexp(total, GRID))


def _factors(block: Block[Any], radius: float, roots: Floats) -> Floats:
    """What rows are multiplied by: for the clip, and for their class."""
    return np.minimum(1.0, radius / np.maximum(block.norms, 1e-300)) * _of_class(roots, block.targets)


def _scaled(block: Block[Any], factors: Floats, some: Integers | None = None) -> Iterator[Floats]:
    """Rows of the block in steps."""
    for cut, rows in _pieces(block, some):
        yield kernels.scaled(rows, block.bias, factors[cut])


def _outer(block: Block[Any], radius: float, roots: Floats) -> Integers:
    factors = _factors(block, radius, roots)
    if isinstance(block.rows, stored.Zeros):
        return _outer_of_stored(block, factors, roots)
    if block.rows.shape[1] <= SHORT:
        return kernels.dense_outer(block.rows, block.bias, factors)
    total: Any = 0.0
    for rows in _scaled(block, factors):
        total += product(rows.T, rows)
    return _whole(np.asarray(total))


def _outer_of_stored(block: Block[Any], factors: Floats, roots: Floats) -> Integers:
    """By stored entries, but for rows that are clipped, which differ in all columns, and where most are stored."""
    n, d = len(factors), len(block.rows.zero)
    total, left = np.zeros((d + 1, d + 1), dtype=np.int64), np.ones(n, dtype=np.bool_)
    for root in np.unique(roots) if len(block.rows.data) <= _FILLED * n * d else ():
        alike = factors == root
        stored.add_outer(block.rows, block.bias, np.flatnonzero(alike), root, total)
        left &= ~alike
    for rows in _scaled(block, factors, np.flatnonzero(left)):
        total += _whole(product(rows.T, rows))
    return total


def _squares(block: Block[Any], radius: float, roots: Floats) -> Integers:
    factors = _factors(block, radius, roots)
    return _whole(np.sum([np.square(rows).sum(axis=0) for rows in _scaled(block, factors)], axis=0))


def _images(
    block: Block[Any], weights: Floats, v: Floats, radius: float, units: float, steps: float, classes: Floats
) -> Integers:
    total: Any = 0.0
    most = 2.0**CLASS_COEFFICIENTS
    for cut, piece in _pieces(block):
        rows = kernels.whitened(piece, weights, radius, units)
        images = np.trunc(product(rows, v[:, None])[:, 0] * (_of_class(classes, block.targets[cut]) * steps))
        total += product(np.clip(images, -most, most)[None, :], rows)[0]
    return _whole(total)
