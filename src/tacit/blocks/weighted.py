"""Passes over rows that weigh what their class does: the sums of each class by itself, times its weight.

Weights are public. A row is of one class, so it moves a sum by its own term times its weight: `heaviest` times what it
would move the sum of plain rows by. Each sum passes through one product and one addition more for each class. Where
rows are added one after the other n roundings are enough all the same: a class of n - j rows takes n - j - 1 additions
and one product, and at most j other classes have rows to add; the sum of none is zero, and adding it is exact.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tacit._types import Floats
from tacit.blocks.bounded import Bounded
from tacit.blocks.exact import ExactPasses
from tacit.blocks.moves import Moves
from tacit.blocks.passes import Passes
from tacit.problems.task import LinearTask


def deeper(moves: Moves, classes: int) -> Moves:
    """The same sums, taken for each class and added up with weights."""
    return replace(moves, depth=moves.depth + 1 + classes)


def passes_over(task: LinearTask, data: Bounded, weights: Floats | None = None) -> "Passes | ExactPasses":
    """Over rows that weigh what their class does: exact sums of dense rows, float sums of sparse ones."""
    if not task.sparse:
        return ExactPasses(task, data, weights)
    return Passes(task, data) if weights is None else WeightedPasses(task, data, weights)


def gradient_moves(task: LinearTask, *, weighted: bool) -> Moves:
    """Of the sums of gradients of `passes_over`."""
    if not task.sparse:
        return Moves.exact(task.n)
    return deeper(Moves.of(task), task.classes) if weighted else Moves.of(task)


class WeightedPasses(Passes):
    """`Passes`, with a weight for each class."""

    def __init__(self, task: LinearTask, data: Bounded, weights: Floats) -> None:
        self._task = task
        numbers = data.targets > 0.0 if task.outputs == 1 else data.targets
        self._classes = [Passes(task, data.some(np.flatnonzero(numbers == k))) for k in range(len(weights))]
        self._weights, self.heaviest = weights, float(weights.max())
        self.moves, self.blocked = (deeper(one, len(weights)) for one in (Moves.of(task), Moves.in_blocks(task.n)))

    def gradient(self, w: Floats, clip: float, shape: float = 1.0, code: int | None = None) -> Floats:
        """The weighted sum of clipped gradients."""
        return self._total(lambda one: one.gradient(w, clip, shape, code))

    def residuals(self, w: Floats) -> Floats:
        """The weighted sum of the slopes of the loss."""
        return self._total(lambda one: one.residuals(w))

    def second_moments(self, radius: float) -> Floats:
        """The weighted sum of z z^T over rows clipped to `radius`."""
        return self._total(lambda one: one.second_moments(radius))

    def squares(self, radius: float) -> Floats:
        """The diagonal of `second_moments`."""
        return self._total(lambda one: one.squares(radius))

    def curvature_times(self, v: Floats, diagonal: Floats, radius: float) -> Floats:
        """The weighted sum of u (u.v), u = z / sqrt(diagonal) clipped to `radius`."""
        return self._total(lambda one: one.curvature_times(v, diagonal, radius))

    def _total(self, of: Callable[[Passes], Floats]) -> Floats:
        """What all classes add up to."""
        return np.sum([weight * of(one) for weight, one in zip(self._weights, self._classes, strict=True)], axis=0)
