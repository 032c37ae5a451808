"""The columns of a fit: what coordinate solvers read of the rows, the margins they keep, and smoothness constants.

Everything a method of `Columns` returns is private until it has noise; a `Walk` adds it as it goes. A row's margin,
norm and derivative come from that row alone; sums over a column are taken in float64, in the order of `Moves.of`.

Smoothness constants. The mean loss has curvature at most h M_j in weight j, where h is the curvature of the loss and
M_j the mean of z_ij^2. Coordinate solvers take steps of 1 / (h M_j), and measure derivatives in units of sqrt(M_j).

Privacy
-------
The mean squares M_j are released once, unless they are declared. With z_ij^2 cut at b and rows scaled so that their
squares add up to at most T, the squares of one row are a non-negative vector with largest entry b and sum T, hence of
norm at most sqrt(b T): one Gaussian release of all columns has that sensitivity, and sqrt(2 b T) for replace-one,
because two non-negative vectors are never further apart than orthogonal ones; or b sqrt(d) if that is less, as no entry
changes by more than b. Dense columns are standardised and clipped to 3: b = 9, T = max(d, 9). Sparse rows have norm
sqrt(d) at most: b = T = d.

Declared bounds of columns (`rescale=False`, or sparse rows) bring every column to [-1, 1] by a division: b = 1 and
T = d, where no row is cut, so that both relations have sensitivity sqrt(d). In the user's units the noise on M_j is
proportional to the largest square B_j^2 that is declared of column j, so that small columns are not lost next to large
ones: a release in the user's units would have the norm of all B_j^2 on each of them.

Laplace noise (`smoothness="laplace"`) is for the sum of absolute changes: at most T, and for replace-one 2 T, or b d if
that is less, as no entry changes by more than b. The paper on DP-CD releases each constant by itself with an epsilon'
/ d of its own, for a change of 2 b: noise of scale 2 b d / epsilon', where here it is at most b d / epsilon' and mostly
T / epsilon'. Next to Gaussian releases the share is one of rho (zCDP), epsilon'^2 / 2 for this one.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
from scipy.sparse import csc_array, issparse

from tacit._types import Floats, Integers, Table
from tacit.blocks import SHRINK, Bounded, Moves
from tacit.bounding.magnitudes import LIMIT
from tacit.kernels import columns as kernels
from tacit.kernels import coordinate
from tacit.kernels.given import Csc, Noise
from tacit.privacy import Gate, Release
from tacit.privacy.mechanisms import GaussianVector, LaplaceVector, Tape
from tacit.privacy.plan import Kind
from tacit.problems import LOGISTIC, SQUARED
from tacit.problems.declared import smoothness_constants
from tacit.problems.task import LinearTask

NO_CLIP = 1e6
"""Times the usual clip: no gradient of a standardised row is that long."""

_SHARE = 0.02  # of the budget, for the smoothness constants
_NO_LIMIT = float(np.finfo(np.float32).max)
_SHORTEST = 1e-100  # length that a row is taken to have at least: squares of entries far below it would vanish


class _Kernels(NamedTuple):
    """The compiled functions for one kind of table; each takes the table first."""

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

    def __init__(self, task: LinearTask, data: Bounded) -> None:
        self._task = task
        self._targets = data.targets
        self._labels: Table = data.targets.astype(np.float32 if task.loss == LOGISTIC else np.float64, copy=False)
        self._code = task.loss.code
        self._count = len(data.targets)
        self.margins = np.zeros(self._count)  # less the targets, for the squared loss
        self._table: Any
        kind: Any = np.float64
        if issparse(data.Z):
            table: Any = csc_array(cast(Any, data.Z))
            places = (part.astype(np.int64, copy=False) for part in (table.indices, table.indptr))
            self._table, self._kernels = Csc(table.data.astype(kind, copy=False), *places), _SPARSE
        else:
            self._table, self._kernels = np.asfortranarray(data.Z).T, _DENSE
            kind = self._table.dtype
        self._ones = np.full(self._count, float(task.fit_intercept), dtype=kind)

    def limits(self, clip: float, metric: Floats, intercept: float, norm: float = 2.0) -> Table:
        """What to clip each row's derivative to: for the weights of features, and for the intercept.

        The first so that the row's gradient in the features, over `metric`, has at most norm `clip`: the Euclidean one,
        or the largest entry. The second as given. Where a row's norm overflows, the row is silenced. Rounded downwards.
        """
        norms = np.empty(self._count)
        weights = np.append(1.0 / metric[: self._task.d], 0.0)
        if norm == 2.0:
            self._kernels.square_norms(self._table, weights, norms)
            np.sqrt(norms, out=norms)
        else:
            self._kernels.largest(self._table, weights, norms)
        out = np.empty((2, self._count), dtype=self._labels.dtype)
        limits = _NO_LIMIT if math.isinf(clip) else clip * SHRINK / np.maximum(norms, _SHORTEST)
        out[0] = _downwards(limits, out.dtype)
        out[1] = _downwards(intercept, out.dtype)
        out[:, ~np.isfinite(norms)] = 0.0
        return out

    def squares(self, largest: float, total: float) -> Floats:
        """The sum of z_j^2 over rows, each at most `largest`, rows scaled so that theirs add up to at most `total`."""
        norms, out = np.empty(self._count), np.empty(self._task.d)
        self._kernels.square_norms(self._table, np.append(np.ones(self._task.d), 0.0), norms)
        factors = np.where(np.isfinite(norms), np.minimum(1.0, total / np.maximum(norms, 1e-300)), 0.0) * SHRINK
        self._kernels.squares(self._table, factors, largest, out)
        return out

    def derivatives(self, limits: Table) -> Floats:
        """The derivative in each weight at the present margins, summed over rows; the intercept's last."""
        slopes, out = np.empty(self._count), np.empty(self._task.d + 1)
        of = self._slopes(limits)
        coordinate.clipped_slopes(of, 0, slopes)
        self._kernels.products(self._table, slopes, out)
        coordinate.clipped_slopes(of, 1, slopes)
        out[-1] = kernels.block_sum(slopes)
        return out

    def move_to(self, w: Floats) -> None:
        """Take the margins of these weights."""
        self._kernels.margins(self._table, w, self.margins)
        if self._task.loss == SQUARED:
            self.margins -= self._targets

    def move(self, j: int, change: float) -> None:
        """Move the margins as weight j moves by `change`."""
        self._kernels.move(self._table, self._ones, j, change, self.margins)

    def advance(self, tape: Tape, limits: Table, rules: Floats, order: Integers, w: Floats, changes: Floats) -> Floats:
        """Update the weights of `order` one after the other; returns what was released on the way.

        `rules` has a row for each coordinate (see `tacit.kernels.coordinate`). `w` and the margins are moved; `changes`
        is told by how much each update moved its weight.
        """
        released = np.empty(len(order))
        noise, out = Noise(tape.noise, tape.step, tape.bound), coordinate.Written(released, changes)
        self._kernels.steps(self._table, self._ones, self._slopes(limits), rules, order, noise, w, out)
        return released

    def _slopes(self, limits: Table) -> coordinate.Slopes:
        return coordinate.Slopes(self.margins, self._labels, limits, self._code)


def _downwards(limits: Any, kind: Any) -> Table:
    """In this precision, and no larger than they were."""
    exact = np.minimum(limits, _NO_LIMIT, dtype=np.float64)
    rounded: Table = exact.astype(kind)
    return np.where(rounded > exact, np.nextafter(rounded, rounded.dtype.type(0.0)), rounded)


class Walk:
    """The updates of one pass, as many at a time as there is noise for."""

    def __init__(self, columns: Columns, limits: Table, rules: Floats, order: Integers, w: Floats) -> None:
        self._columns, self._limits, self._rules, self._order, self._w = columns, limits, rules, order, w
        self._done = 0
        self.changes = np.empty(len(order))

    def __call__(self, tape: Tape) -> Floats:
        """The next updates; returns what they released."""
        part = slice(self._done, self._done + len(tape.noise))
        self._done = part.stop
        return self._columns.advance(tape, self._limits, self._rules, self._order[part], self._w, self.changes[part])


@dataclass(frozen=True)
class Smoothness:
    """The mean square of each column: released once, or declared.

    Parameters
    ----------
    task : LinearTask
        The public facts of the fit.
    declared : tuple of float, optional
        One positive number for each feature; None: they are released.
    share : float
        Of the solver's budget, for the release.
    laplace : bool
        Whether it has Laplace noise, as in the paper, and not Gaussian.
    over_bounds : bool
        Whether columns were divided by the largest size that is declared of each.
    """

    task: LinearTask
    declared: tuple[float, ...] | None
    share: float = _SHARE
    laplace: bool = False
    over_bounds: bool = False

    @classmethod
    def of(cls, task: LinearTask, asked: Any, share: float | None = None, *, raw: bool = False) -> "Smoothness":
        """From the options `smoothness` and `smoothness_share`; of `raw` columns what is declared is in their units."""
        constants, part = smoothness_constants(asked, task.d), _SHARE if share is None else share
        over_bounds = task.bounds is not None and task.bounds.are_whole and (raw or task.sparse)
        if isinstance(constants, str):
            return cls(task, None, part, constants == "laplace", over_bounds)
        if raw and task.bounds is not None:
            constants = tuple((np.array(constants) / task.bounds.reach**2).tolist())
        return cls(task, constants, part, over_bounds=over_bounds)

    def releases(self, share: float) -> tuple[tuple[Release, ...], float]:
        """The release of the constants, if there is one, and the share that is left for others."""
        if self.declared is not None:
            return (), share
        kind: Kind = "laplace" if self.laplace else "gaussian"
        return (Release("smoothness", kind, share=self.share * share),), (1.0 - self.share) * share

    def constants(self, columns: Columns, gate: Gate) -> Floats:
        """M_j of every coordinate, the intercept's 1 last.

        Noisy ones are drawn towards their mean by how noisy they are next to how much they differ, and none is left
        below one standard deviation of the noise: a constant too small makes steps that diverge, one too large only
        slow ones.
        """
        if self.declared is not None:
            return np.append(np.asarray(self.declared, dtype=np.float64), 1.0)
        n, d, sparse = self.task.n, self.task.d, self.task.sparse
        largest = 1.0 if self.over_bounds else float(d) if sparse else LIMIT**2
        total, moves = max(float(d), largest), Moves.of(self.task)
        mechanism: GaussianVector | LaplaceVector
        if self.laplace:
            mechanism = LaplaceVector(moves.sizes(largest, total, d), bound=n * largest)
        else:
            mechanism = GaussianVector(moves.squares(largest, total, d), bound=n * largest)
        deviation = math.sqrt(2.0) if self.laplace else 1.0  # of noise of scale 1
        noisy = gate.release("smoothness", mechanism, columns.squares(largest, total)) / n
        error = deviation * gate.noise("smoothness", mechanism.sensitivity) / n
        mean = max(float(noisy.mean()), 1e-12)
        differ = max(float(noisy.var()) - error**2, 0.0)
        weight = differ / (differ + error**2) if error > 0.0 else 1.0
        return np.append(np.maximum(mean + weight * (noisy - mean), max(error, 1e-6 * mean)), 1.0)
