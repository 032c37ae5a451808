"""The rows of a PCA: centred and bounded while they are read, in blocks, as often as a solver asks.

Sums over the rows are private, and only for a mechanism. How far one row moves each of them is public.

How a stream was cut changes no sum of dense rows: they are gathered until there is a whole block of a fixed size.
Sparse rows are added one after the other, and their slack is that of n additions.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from tacit._types import Floats, Integers
from tacit.blocks.moves import Moves
from tacit.blocks.table import Table, block_distances, csr_parts
from tacit.kernels import moments
from tacit.kernels.given import Csr
from tacit.privacy.mechanisms import Sensitivity

_STRIP = 512  # rows of a large matrix that are computed at a time
_WHOLE = 2_048  # columns up to which the matrix of a block is computed in one product


@dataclass(frozen=True, eq=False)
class Centre:
    """Where rows were centred, and the radius they were scaled down to: released or declared, so public.

    `lost` says that the scale of the rows did not stand out of the noise, and 1 took its place.
    """

    mean: Floats
    radius: float
    lost: bool = False


@dataclass(frozen=True, eq=False)
class CentredRows:
    """Rows x - mean, scaled down to norm at most `radius`; only `units`, which holds both, may leave."""

    table: Table
    units: Centre

    @property
    def mean(self) -> Floats:
        """What is taken off every row. Public."""
        return self.units.mean

    @property
    def radius(self) -> float:
        """The bound on the norm of a row. Public."""
        return self.units.radius

    # ---- sums over rows: private, for a mechanism

    def packed_moments(self) -> Floats:
        """The sum of x x^T, as a packed upper triangle."""
        d = self.table.d
        packed = np.zeros(d * (d + 1) // 2)
        if not self.table.sparse:
            for rows, _ in self._dense(size=moments.block_size(d)):
                width = d if d <= _WHOLE else _STRIP
                for first in range(0, d, width):
                    moments.add_upper(rows[:, first : first + width].T @ rows[:, first:], first, packed)
            return packed
        weighted, mass = np.zeros(d), 0.0
        for rows, factors, _ in self._sparse():
            moments.sparse_outer(csr_parts(rows), d, packed)
            if self._shift > 0.0:
                weighted += rows.T @ factors
                mass += float(factors @ factors)
        if self._shift > 0.0:
            moments.packed_minus_mean(packed, weighted, mass, self.mean)
        return packed

    def sum(self) -> Floats:
        """The sum of x, for rows that are not centred."""
        out = np.zeros(self.table.d)
        if self.table.sparse:
            for rows, factors, _ in self._sparse():
                out += rows.T @ np.ones(len(factors))
        else:
            for rows, _ in self._dense():
                out += rows.sum(axis=0)
        return out

    def products(self, V: Floats, clip: float | None = None, places: Integers | None = None) -> Floats:
        """The sum of x (x^T V) over all rows or some, each clipped in Frobenius norm; shape (d, p)."""
        out = np.zeros((self.table.d, V.shape[1]))
        if not self.table.sparse:
            for rows, norms in self._dense(places):
                projections = rows @ V
                if clip is not None:
                    moments.clip_contributions(projections, norms, clip)
                out += rows.T @ projections
            return out
        along_mean, limit = np.zeros(V.shape[1]), math.inf if clip is None else clip
        for block in [self.table.array] if places is not None else self.table.read():
            chosen = np.arange(block.shape[0]) if places is None else places
            parts = Csr(block.data, block.indices, block.indptr)
            moments.sparse_products(
                parts, chosen, self.mean, self.radius, np.ascontiguousarray(V), limit, out, along_mean
            )
        return out - np.outer(self.mean, along_mean) if self._shift > 0.0 else out

    def inner(self, V: Floats) -> Floats:
        """The sum of V^T x x^T V."""
        out = np.zeros((V.shape[1], V.shape[1]))
        for projections in self._all_projections(V):
            out += projections.T @ projections
        return out

    def lengths(self, V: Floats) -> Floats:
        """|x| |V^T x| of n rows, the norm of what each adds to `products`; NaN in place of rows that overflow."""
        found = np.full(self.table.n, np.nan)
        start = 0
        if self.table.sparse:
            for rows, factors, norms in self._sparse():
                end = start + len(norms)
                found[start:end] = norms * np.linalg.norm(self._projections(rows, factors, V), axis=1)
                start = end
            return found
        for rows, norms in self._dense():
            end = start + len(norms)
            moments.lengths(rows, norms, V, found[start:end])
            start = end
        return np.where(np.isfinite(self.table.distances(self.mean)), found, np.nan)

    def squares(self) -> float:
        """The sum of |x|^2."""
        if self.table.sparse:
            return sum(float(np.square(norms).sum()) for _, _, norms in self._sparse())
        return sum(float(np.square(rows).sum()) for rows, _ in self._dense())

    # ---- how far one row moves them: public

    def sum_sensitivity(self) -> Sensitivity:
        """Of `sum`."""
        return self._moves.apart(self.radius, 2.0 * self.radius)

    def moment_sensitivity(self) -> Sensitivity:
        """Of `packed_moments`, in Frobenius norm."""
        return self._moves.outer(self.radius, summed=self._summed(self.radius**2, self._spread**2))

    def product_sensitivity(self, p: int, clip: float | None = None, stretch: float = 1.0) -> Sensitivity:
        """Of `products` with a V of p columns, all of spectral norm at most `stretch`."""
        full = self.radius**2 * stretch
        summed = self._summed(full, self._spread * self.radius * stretch)
        return self._moves.outer(math.sqrt(full), clip, summed, stretch * self._product_slack(p))

    def inner_sensitivity(self, p: int) -> Sensitivity:
        """Of `inner`, in Frobenius norm."""
        return self._moves.outer(self.radius, more=2.0 * self._product_slack(p))

    def square_sensitivity(self) -> Sensitivity:
        """Of `squares`: a number between 0 and the squared radius."""
        return self._moves.between(0.0, self.radius**2, self._summed(self.radius**2, self._spread**2))

    @property
    def bound(self) -> float:
        """On the absolute value of an entry of any of these sums."""
        return 1.001 * self.table.n * self.radius**2

    @property
    def _shift(self) -> float:
        return float(np.linalg.norm(self.mean))

    @property
    def _spread(self) -> float:
        """The norms of the terms that a sparse row is summed in add up to this: f x is no longer than R + |m|."""
        return self.radius + 2.0 * self._shift

    @property
    def _moves(self) -> Moves:
        """Dense rows are added in blocks; sparse ones one by one, with a few roundings where the mean is put in."""
        n = self.table.n
        return Moves(n, depth=n, roundings=20.0) if self.table.sparse else Moves(n, moments.block_depth(n))

    def _summed(self, dense: float, sparse: float) -> float:
        """The longest of the parts that are added up."""
        return sparse if self.table.sparse else dense

    def _product_slack(self, p: int) -> float:
        return 0.0 if self.table.sparse else moments.product_slack(self.table.n, self.table.d, p, self.radius)

    # ---- one block at a time

    def _dense(self, places: Integers | None = None, size: int | None = None) -> Iterator[tuple[Floats, Floats]]:
        """The rows, and a bound on their norms; both are overwritten by the next block.

        Every block but the last is full, however short the blocks are that a stream gives.
        """
        most = size or moments.PASS_BLOCK
        buffer, norms = np.empty((most, self.table.d)), np.empty(most)
        held = 0
        for block in self.table.blocks(places, most):
            taken = 0
            while taken < block.shape[0]:
                part = np.ascontiguousarray(block[taken : taken + most - held])
                end = held + len(part)
                moments.dense_bounded(part, self.mean, self.radius, buffer[held:end], norms[held:end])
                taken, held = taken + len(part), end % most
                if held == 0:
                    yield buffer, norms
        if held:
            yield buffer[:held], norms[:held]

    def _sparse(self, places: Integers | None = None) -> Iterator[tuple[Any, Floats, Floats]]:
        """The rows f x as CSR, the factors f, and a bound on |f (x - m)|; without the rows that overflow."""
        for block in self.table.blocks(places):
            norms, factors = np.empty(block.shape[0]), np.empty(block.shape[0])
            block_distances(block, self.mean, norms)
            moments.bounding_factors(norms, self.radius, factors)
            fit = factors > 0.0
            if not np.all(fit):
                block, norms, factors = block[fit], norms[fit], factors[fit]
            data = block.data * np.repeat(factors, np.diff(block.indptr))
            rows = sparse.csr_array((data, block.indices, block.indptr), shape=block.shape)
            yield rows, factors, np.minimum(norms, self.radius)

    def _projections(self, rows: Any, factors: Floats, V: Floats) -> Floats:
        """V^T of the bounded rows, each from a loop over its own row."""
        projections = np.asarray(rows @ V)
        return projections - np.outer(factors, self.mean @ V) if self._shift > 0.0 else projections

    def _all_projections(self, V: Floats) -> Iterator[Floats]:
        if self.table.sparse:
            for sparse_rows, factors, _ in self._sparse():
                yield self._projections(sparse_rows, factors, V)
        else:
            for rows, _ in self._dense():
                yield rows @ V

    def __repr__(self) -> str:
        return "CentredRows(private)"
