"""The columns of a fit: what coordinate solvers read of the rows, and the margins they keep.

Everything a method returns is private until it has noise; a `Walk` adds it as it goes. A row's margin, norm and
derivative come from that row alone; sums over a column are taken in float64, and `depth` is the longest chain of
additions in them.
"""

import math
from typing import Any, NamedTuple, cast

import numpy as np
from scipy.sparse import csc_array, issparse

from tacit._types import Floats, Integers
from tacit.kernels import columns as kernels
from tacit.kernels import coordinate
from tacit.kernels.gradient import sum_depth
from tacit.privacy.mechanisms import Tape
from tacit.problems import SQUARED
from tacit.solvers.passes import SHRINK
from tacit.solvers.task import Rows, Task

_NO_LIMIT = 1e300
_SHORTEST = 1e-100  # length that a row is taken to have at least: squares of entries far below it would vanish


class _Kernels(NamedTuple):
    """The compiled functions for one kind of table; each takes its parts first."""

    square_norms: Any
    largest: Any
    squares: Any
    products: Any
    margins: Any
    move: Any
    steps: Any


_DENSE = _Kernels(
    kernels.dense_square_norms,
    kernels.dense_largest,
    kernels.dense_squares,
    kernels.dense_products,
    kernels.dense_margins,
    kernels.dense_move,
    coordinate.dense_pass,
)
_SPARSE = _Kernels(
    kernels.sparse_square_norms,
    kernels.sparse_largest,
    kernels.sparse_squares,
    kernels.sparse_products,
    kernels.sparse_margins,
    kernels.sparse_move,
    coordinate.sparse_pass,
)


class Columns:
    """A table by columns, with the intercept's column of ones last."""

    def __init__(self, task: Task, rows: Rows) -> None:
        self._task = task
        self._targets = rows.targets
        self._code = task.loss.code
        self._count = len(rows.targets)
        self.margins = np.zeros(self._count)  # less the targets, for the squared loss
        self._parts: tuple[Any, ...]
        if issparse(rows.Z):
            table: Any = csc_array(cast(Any, rows.Z))
            places = (part.astype(np.int64, copy=False) for part in (table.indices, table.indptr))
            self._parts = table.data.astype(np.float64, copy=False), *places
            self._kernels = _SPARSE
        else:
            self._parts = (np.asfortranarray(rows.Z).T,)
            self._kernels = _DENSE
        self._ones = np.full(self._count, float(task.fit_intercept), dtype=self._parts[0].dtype)

    @property
    def depth(self) -> int:
        """The longest chain of additions in a sum over a column."""
        return self._task.n if self._kernels is _SPARSE else sum_depth(self._task.n)

    def limits(self, clip: float, metric: Floats, intercept: float, norm: float = 2.0) -> Floats:
        """What to clip each row's derivative to: for the weights of features, and for the intercept.

        The first so that the row's gradient in the features, over `metric`, has at most norm `clip`: the Euclidean one,
        or the largest entry. The second as given. Where a row's norm overflows, the row is silenced.
        """
        norms = np.empty(self._count)
        weights = np.append(1.0 / metric[: self._task.d], 0.0)
        if norm == 2.0:
            self._kernels.square_norms(*self._parts, weights, norms)
            np.sqrt(norms, out=norms)
        else:
            self._kernels.largest(*self._parts, weights, norms)
        out = np.empty((2, self._count))
        out[0] = _NO_LIMIT if math.isinf(clip) else clip * SHRINK / np.maximum(norms, _SHORTEST)
        out[1] = intercept
        out[:, ~np.isfinite(norms)] = 0.0
        return out

    def squares(self, largest: float, total: float) -> Floats:
        """The sum of z_j^2 over rows, each at most `largest`, rows scaled so that theirs add up to at most `total`."""
        norms, out = np.empty(self._count), np.empty(self._task.d)
        self._kernels.square_norms(*self._parts, np.append(np.ones(self._task.d), 0.0), norms)
        factors = np.where(np.isfinite(norms), np.minimum(1.0, total / np.maximum(norms, 1e-300)), 0.0) * SHRINK
        self._kernels.squares(*self._parts, factors, largest, out)
        return out

    def derivatives(self, limits: Floats) -> Floats:
        """The derivative in each weight at the present margins, summed over rows; the intercept's last."""
        slopes, out = np.empty(self._count), np.empty(self._task.d + 1)
        coordinate.slopes(self.margins, self._targets, limits[0], self._code, slopes)
        self._kernels.products(*self._parts, slopes, out)
        coordinate.slopes(self.margins, self._targets, limits[1], self._code, slopes)
        out[-1] = kernels.block_sum(slopes)
        return out

    def move_to(self, w: Floats) -> None:
        """Take the margins of these weights."""
        self._kernels.margins(*self._parts, w, self.margins)
        if self._task.loss == SQUARED:
            self.margins -= self._targets

    def move(self, j: int, change: float) -> None:
        """Move the margins as weight j moves by `change`."""
        self._kernels.move(*self._parts, self._ones, j, change, self.margins)

    def advance(self, tape: Tape, limits: Floats, rules: Floats, order: Integers, w: Floats, changes: Floats) -> Floats:
        """Update the weights of `order` one after the other; returns what was released on the way.

        `rules` has a row for each coordinate (see `tacit.kernels.coordinate`). `w` and the margins are moved; `changes`
        is told by how much each update moved its weight.
        """
        released = np.empty(len(order))
        fixed = self._ones, self._targets, limits, self._code, rules
        place = tape.noise, tape.step, tape.bound, w, self.margins, released, changes
        self._kernels.steps(*self._parts, *fixed, order, *place)
        return released


class Walk:
    """The updates of one pass, as many at a time as there is noise for."""

    def __init__(self, columns: Columns, limits: Floats, rules: Floats, order: Integers, w: Floats) -> None:
        self._columns, self._limits, self._rules, self._order, self._w = columns, limits, rules, order, w
        self._done = 0
        self.changes = np.empty(len(order))

    def __call__(self, tape: Tape) -> Floats:
        """The next updates; returns what they released."""
        part = slice(self._done, self._done + len(tape.noise))
        self._done = part.stop
        return self._columns.advance(tape, self._limits, self._rules, self._order[part], self._w, self.changes[part])
