"""The dense rows of a PCA: centred and bounded while they are read, on a grid, as exact sums.

Sums over the rows are private, and only for a mechanism. How far one row moves each of them is public. They are sums of
whole numbers (`tacit.kernels.centred`), so a row that is absent changes a total by exactly its own term, however rows
are cut into blocks and parts. Sensitivities have no slack.

A public V is rounded to a grid first. Products x u^T are clipped, and so are not longer than is stated for any V.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from tacit._types import Flags, Floats, Integers
from tacit.blocks.moves import Moves
from tacit.blocks.products import product
from tacit.blocks.source import Kept, Raw, Source
from tacit.blocks.sums import Total, in_turn, sum_over
from tacit.kernels import centred as kernels
from tacit.kernels.centred import MEAN, PRODUCT, ROW, VECTOR
from tacit.kernels.exact import BLOCK
from tacit.kernels.given import Block
from tacit.privacy.mechanisms import Sensitivity
from tacit.problems.bounds import Bounds

_STRIP = 512  # rows of a large matrix that are computed at a time
_WHOLE = 2_000  # columns up to which the matrix is computed in one pass
_WIDE = 256  # columns from which on a matrix is held once, and not by each thread
_PIECE = 256  # rows that are copied at a time: they should still be in the cache when they are multiplied again
_CELLS = 2**22  # that are copied at a time for a matrix, or `_PIECE` rows


@dataclass(frozen=True, eq=False)
class Centre:
    """Where rows were centred, and the radius they were scaled down to: released or declared, so public.

    `lost` says that the scale of the rows did not stand out of the noise, and 1 took its place.
    """

    mean: Floats
    radius: float
    lost: bool = False


@dataclass(frozen=True, eq=False)
class Cleared:
    """Values inside their bounds, and zeros in place of some columns: a function of each row alone."""

    bounds: Bounds | None = None
    without: Flags | None = None

    def __call__(self, X: Any) -> Any:
        """The rows, changed."""
        if self.bounds is not None:
            X = np.clip(X, self.bounds.low, self.bounds.high)
        X = X if self.without is None else np.where(self.without, 0.0, X)
        return np.ascontiguousarray(X)


@dataclass(frozen=True, eq=False)
class OnGrid:
    """Rows about a centre in whole steps of 2^-power: a function that is sent to where the rows are."""

    cleared: Cleared
    centre: Centre
    power: int
    kind: type = np.float32

    def __call__(self, raw: Raw) -> Block[Any]:
        """The rows of a block."""
        rows: Any = np.empty(raw.X.shape, dtype=self.kind)
        norms = np.empty(len(raw.X))
        unit = math.ldexp(1.0, self.power)
        kernels.on_grid(self.cleared(raw.X), self.centre.mean, self.centre.radius, unit, rows, norms)
        return Block(rows, 0.0, np.zeros(len(rows)), norms)


@dataclass(frozen=True, eq=False, repr=False)
class Seen:
    """A part as its rows are seen through a change, in short blocks; nothing is held."""

    change: Callable[[Raw], Any]
    part: Any

    def blocks(self) -> Iterator[Any]:
        """The blocks, changed."""
        for raw in self.part.blocks():
            for start in range(0, max(len(raw.X), 1), BLOCK):
                yield self.change(Raw(raw.X[start : start + BLOCK], raw.y[start : start + BLOCK]))


@dataclass(frozen=True, eq=False)
class DenseRows:
    """The rows of a PCA as they come, inside their declared bounds. Counts and sums of them are private."""

    source: Source
    n: int  # as it is public
    bounds: Bounds | None = None

    def counts(self, centre: Floats, edges: Floats, *, without: Flags | None = None, zeros: bool = True) -> Floats:
        """How many rows are how far from the centre, by bins between edges; farther ones are in the last bin.

        Some columns may be left out, and so may rows that are at the centre, if not `zeros`. What overflows is not
        counted.
        """
        cleared = Cleared(self.bounds, without)
        return _sum(self._seen(partial(_far, cleared, centre)), counts_between, edges, zeros).floats(0)

    def sum(self, about: Centre) -> Floats:
        """The sum of x - centre, clipped to the radius."""
        power = MEAN - _power(about.radius)
        return _sum(self._seen(partial(_rows_of, Cleared(self.bounds))), _column_sums, about, power).floats(-power)

    def sum_sensitivity(self, about: Centre) -> Sensitivity:
        """Of `sum`."""
        return Moves.exact(self.n).vector(about.radius)

    def centred(self, units: Centre) -> "CentredRows":
        """The rows about a mean."""
        change = OnGrid(Cleared(self.bounds), units, ROW - _power(units.radius))
        return CentredRows(self, change, units)

    def _seen(self, change: Callable[[Raw], Any]) -> Kept:
        source = self.source
        return Kept([Seen(change, part) for part in source.parts], source.rows, source.place.run, source.place.is_here)

    def __repr__(self) -> str:
        return "DenseRows(private)"


@dataclass(frozen=True, eq=False)
class CentredRows:
    """Rows x - mean, scaled down to norm at most `radius`; only `units`, which holds both, may leave."""

    rows: DenseRows
    change: OnGrid
    units: Centre

    @property
    def radius(self) -> float:
        """The bound on the norm of a row. Public."""
        return self.units.radius

    # ---- sums over rows: private, for a mechanism

    def packed_moments(self) -> Floats:
        """The sum of x x^T, as a packed upper triangle; of many columns a strip at a time."""
        d = self.rows.source.d
        packed, place = np.empty(d * (d + 1) // 2), 0
        seen = self.rows._seen(replace(self.change, kind=np.float64)) if d <= _WHOLE else self._kept
        width = d if d <= _WHOLE else _STRIP
        for first in range(0, d, width):
            last = min(first + width, d)
            strip = _sum(seen, _outer, first, last, at_once=d >= _WIDE).floats(-2 * self.change.power)
            for i in range(last - first):
                packed[place : place + d - first - i] = strip[i, i:]
                place += d - first - i
        return packed

    def products(self, V: Floats, clip: float | None = None, places: Integers | None = None) -> Floats:
        """The sum of x u^T, u = V^T x, over all rows or some, each clipped in Frobenius norm; shape (d, p).

        Rows at some places: the places increase. Without a clip it is R^2, which no term exceeds for V of norm 1.
        """
        clip = self.radius**2 if clip is None else clip
        steps = math.ldexp(clip, 2 * self.change.power)
        power = PRODUCT - _power(steps)
        kept = self._kept if places is None else self._kept[places]
        total = _sum(kept, _products, on_vector_grid(V), steps, math.ldexp(1.0, power))
        return total.floats(-2 * self.change.power - power)

    def inner(self, V: Floats) -> Floats:
        """The sum of u u^T, u = V^T x."""
        limit = math.ldexp(self.radius, self.change.power)
        return _sum(self._kept, _inner, on_vector_grid(V), limit).floats(-2 * self.change.power)

    def length_counts(self, V: Floats, edges: Floats) -> Floats:
        """How many rows have which |x| |V^T x| over the squared radius, the norm of what each adds to `products`."""
        unit = math.ldexp(self.radius, self.change.power) ** 2
        return _sum(self._kept, _length_counts, on_vector_grid(V), unit, edges).floats(0)

    def squares(self) -> float:
        """The sum of |x|^2."""
        return float(_sum(self._kept, _squares).floats(-2 * self.change.power)[0])

    # ---- how far one row moves them: public

    def moment_sensitivity(self) -> Sensitivity:
        """Of `packed_moments`, in Frobenius norm."""
        return self._moves.outer(self.radius)

    def product_sensitivity(self, p: int, clip: float | None = None, stretch: float = 1.0) -> Sensitivity:
        """Of `products` with a V of p columns, all of spectral norm at most `stretch` S.

        A term is clipped to C, or else to R^2: it moves the sum by so much. Replace-one: two terms are images of outer
        products, brought to a ball, which moves them no farther apart: min(2 C, sqrt(2) R^2 S). The grids add to it: V
        is off by sqrt(d p) S 2^-30 at most, and each entry of u by one step, which |x| is multiplied by.
        """
        d, full = self.rows.source.d, self.radius**2 * stretch
        clip = self.radius**2 if clip is None else clip
        apart = min(2.0 * clip, math.sqrt(2.0) * full)
        step = math.ldexp(1.0, _power(math.ldexp(clip, 2 * self.change.power)) - PRODUCT - self.change.power)
        grids = 2.0 * math.sqrt(p) * self.radius * step + full * 2.0 ** (1 - VECTOR) * (1.0 + math.sqrt(d * p))
        return self._moves.apart(clip, apart + grids)

    def inner_sensitivity(self) -> Sensitivity:
        """Of `inner`, in Frobenius norm: u is any vector that is not longer than the radius."""
        return self._moves.outer(self.radius)

    def square_sensitivity(self) -> Sensitivity:
        """Of `squares`: a number between 0 and the squared radius."""
        return self._moves.between(0.0, self.radius**2)

    @property
    def bound(self) -> float:
        """On the absolute value of an entry of any of these sums."""
        return self.rows.n * self.radius**2

    @property
    def _moves(self) -> Moves:
        return Moves.exact(self.rows.n)

    @cached_property
    def _kept(self) -> Kept:
        """The rows as whole numbers, for several passes."""
        return self.rows.source.kept(self.change)

    def __repr__(self) -> str:
        return "CentredRows(private)"


def on_vector_grid(V: Floats) -> Floats:
    """V rounded to whole steps, 2^30 or 2^29 of which are as long as its longest column."""
    power = VECTOR - _power(float(np.sqrt(np.square(V).sum(axis=0).max())))
    return np.ldexp(np.rint(np.ldexp(V, power)), -power)


def _power(size: float) -> int:
    """The smallest power of two that is not below `size`."""
    fraction, power = math.frexp(size)
    return power - 1 if fraction == 0.5 else power


def _sum(kept: Kept, kernel: Callable[..., Integers], *public: Any, at_once: bool = False) -> Total:
    """Over all blocks; `at_once` where a sum is so large that not every thread should have its own."""
    return sum_over(kept.parts, kernel, *public, run=in_turn if at_once and kept.is_here else kept.run)


def _far(cleared: Cleared, centre: Floats, raw: Raw) -> Floats:
    found = np.empty(len(raw.X))
    kernels.distances(cleared(raw.X), centre, found)
    return found


def counts_between(values: Floats, edges: Floats, zeros: bool) -> Integers:
    """How many values are in each bin [edges[k], edges[k + 1]); those beyond the last one are in the last."""
    counted = values[np.isfinite(values) & (zeros | (values > 0.0))]
    bins = len(edges) - 1
    places = np.clip(np.searchsorted(edges, counted, side="right") - 1, 0, bins - 1)
    return np.bincount(places, minlength=bins).astype(np.int64)


def _rows_of(cleared: Cleared, raw: Raw) -> Any:
    return cleared(raw.X)


def _column_sums(X: Any, about: Centre, power: int) -> Integers:
    return kernels.summed(X, about.mean, about.radius, math.ldexp(1.0, power)).astype(np.int64)


def _pieces(block: Block[Any], size: int = _PIECE) -> Iterator[tuple[Floats, Floats]]:
    """Rows of the block in double precision, and their norms, a few at a time; none where there are none."""
    for start in range(0, max(len(block.norms), 1), size):
        cut = slice(start, start + size)
        yield block.rows[cut].astype(np.float64, copy=False), block.norms[cut]


def _outer(block: Block[Any], first: int, last: int) -> Integers:
    """Some rows of the sum of x x^T, from the diagonal of the first of them on."""
    total: Any = 0.0
    for rows, _ in _pieces(block, max(_PIECE, _CELLS // block.rows.shape[1])):
        left, right = rows[:, first:last], rows[:, first:]
        total += product(left.T, left if left.shape == right.shape else right)
    return np.asarray(total).astype(np.int64)


def _products(block: Block[Any], V: Floats, clip: float, unit: float) -> Integers:
    total: Any = 0.0
    for rows, norms in _pieces(block):
        images = product(rows, V)
        kernels.clipped_products(images, norms, clip, unit)
        total += product(rows.T, images)
    return np.asarray(total).astype(np.int64)


def _inner(block: Block[Any], V: Floats, limit: float) -> Integers:
    total: Any = 0.0
    for rows, _ in _pieces(block):
        images = product(rows, V)
        kernels.bounded_images(images, limit)
        total += product(images.T, images)
    return np.asarray(total).astype(np.int64)


def _length_counts(block: Block[Any], V: Floats, unit: float, edges: Floats) -> Integers:
    found = np.empty(len(block.norms))
    images = product(block.rows.astype(np.float64), V)
    kernels.lengths(images, block.norms, found)
    return counts_between(found / unit, edges, True)


def _squares(block: Block[Any]) -> Integers:
    flat = block.rows.astype(np.float64).reshape(1, -1)
    return product(flat, flat.T)[0].astype(np.int64)
