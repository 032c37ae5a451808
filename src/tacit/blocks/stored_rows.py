"""The rows of a PCA that are sparse and wide, such as text: centred and bounded while they are read, as float sums.

A row about a mean has no zeros: on a grid every one of its columns would have to be rounded. So x and the mean are
summed apart in float64, one row after the other, and put together at the end. The slack is that of n additions, and is
in every sensitivity. Sums over the rows are private, and only for a mechanism.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from tacit._types import Flags, Floats, Integers
from tacit.blocks.centred import Centre, counts_between
from tacit.blocks.moves import Moves
from tacit.blocks.table import Table, csr_parts
from tacit.kernels import moments
from tacit.kernels.given import Csr
from tacit.privacy.mechanisms import Sensitivity
from tacit.problems.bounds import Bounds


@dataclass(frozen=True, eq=False)
class StoredRows:
    """The rows as they come, inside their declared bounds. Counts and sums of them are private."""

    table: Table
    n: int  # as it is public
    bounds: Bounds | None = None

    def counts(self, centre: Floats, edges: Floats, *, without: Flags | None = None, zeros: bool = True) -> Floats:
        """As of `DenseRows`."""
        rows = self._mended(centre, without)
        return counts_between(rows.distances(centre), edges, zeros).astype(np.float64)

    def sum(self, about: Centre) -> Floats:
        """The sum of x - centre, clipped to the radius; the centre is zero."""
        return self.centred(about).sum()

    def sum_sensitivity(self, about: Centre) -> Sensitivity:
        """Of `sum`."""
        return _moves(self.n).apart(about.radius, 2.0 * about.radius)

    def centred(self, units: Centre) -> "CentredStored":
        """The rows about a mean."""
        return CentredStored(self._mended(units.mean), self.n, units)

    def _mended(self, centre: Floats, without: Flags | None = None) -> Table:
        """Values inside their bounds, what is missing at the centre, and zeros in place of some columns."""
        return self.table.changed(partial(_mended, self.bounds, centre, without))

    def __repr__(self) -> str:
        return "StoredRows(private)"


@dataclass(frozen=True, eq=False)
class CentredStored:
    """Rows x - mean, scaled down to norm at most `radius`; only `units`, which holds both, may leave."""

    table: Table
    n: int
    units: Centre

    @property
    def radius(self) -> float:
        """The bound on the norm of a row. Public."""
        return self.units.radius

    # ---- sums over rows: private, for a mechanism

    def packed_moments(self) -> Floats:
        """The sum of x x^T, as a packed upper triangle."""
        d = self.table.d
        packed, weighted, mass = np.zeros(d * (d + 1) // 2), np.zeros(d), 0.0
        for rows, factors, _ in self._bounded():
            moments.sparse_outer(csr_parts(rows), d, packed)
            if self._shift > 0.0:
                weighted += rows.T @ factors
                mass += float(factors @ factors)
        if self._shift > 0.0:
            moments.packed_minus_mean(packed, weighted, mass, self.units.mean)
        return packed

    def sum(self) -> Floats:
        """The sum of x, for rows that are not centred."""
        out = np.zeros(self.table.d)
        for rows, factors, _ in self._bounded():
            out += rows.T @ np.ones(len(factors))
        return out

    def products(self, V: Floats, clip: float | None = None, places: Integers | None = None) -> Floats:
        """The sum of x (x^T V) over all rows or some, each clipped in Frobenius norm; shape (d, p)."""
        out, along_mean = np.zeros((self.table.d, V.shape[1])), np.zeros(V.shape[1])
        limit = math.inf if clip is None else clip
        for block in [self.table.array] if places is not None else self.table.read():
            chosen = np.arange(block.shape[0]) if places is None else places
            parts = Csr(block.data, block.indices, block.indptr)
            moments.sparse_products(
                parts, chosen, self.units.mean, self.radius, np.ascontiguousarray(V), limit, out, along_mean
            )
        return out - np.outer(self.units.mean, along_mean) if self._shift > 0.0 else out

    def inner(self, V: Floats) -> Floats:
        """The sum of V^T x x^T V."""
        out = np.zeros((V.shape[1], V.shape[1]))
        for rows, factors, _ in self._bounded():
            projections = self._projections(rows, factors, V)
            out += projections.T @ projections
        return out

    def length_counts(self, V: Floats, edges: Floats) -> Floats:
        """How many rows have which |x| |V^T x| over the squared radius, the norm of what each adds to `products`."""
        found = np.zeros(len(edges) - 1)
        for rows, factors, norms in self._bounded():
            lengths = norms * np.linalg.norm(self._projections(rows, factors, V), axis=1)
            found += counts_between(lengths / self.radius**2, edges, zeros=True)
        return found

    def squares(self) -> float:
        """The sum of |x|^2."""
        return sum(float(np.square(norms).sum()) for _, _, norms in self._bounded())

    # ---- how far one row moves them: public

    def moment_sensitivity(self) -> Sensitivity:
        """Of `packed_moments`, in Frobenius norm."""
        return _moves(self.n).outer(self.radius, summed=self._spread**2)

    def product_sensitivity(self, p: int, clip: float | None = None, stretch: float = 1.0) -> Sensitivity:
        """Of `products` with a V of p columns, all of spectral norm at most `stretch`."""
        del p
        full = self.radius**2 * stretch
        return _moves(self.n).outer(math.sqrt(full), clip, summed=self._spread * self.radius * stretch)

    def inner_sensitivity(self) -> Sensitivity:
        """Of `inner`, in Frobenius norm."""
        return _moves(self.n).outer(self.radius)

    def square_sensitivity(self) -> Sensitivity:
        """Of `squares`: a number between 0 and the squared radius."""
        return _moves(self.n).between(0.0, self.radius**2, self._spread**2)

    @property
    def bound(self) -> float:
        """On the absolute value of an entry of any of these sums."""
        return 1.001 * self.n * self.radius**2

    @property
    def _shift(self) -> float:
        return float(np.linalg.norm(self.units.mean))

    @property
    def _spread(self) -> float:
        """The norms of the terms that a row is summed in add up to this: f x is no longer than R + |m|."""
        return self.radius + 2.0 * self._shift

    # ---- one block at a time

    def _bounded(self) -> Iterator[tuple[Any, Floats, Floats]]:
        """The rows f x as CSR, the factors f, and a bound on |f (x - m)|; without the rows that overflow."""
        for block in self.table.blocks():
            norms, factors = np.empty(block.shape[0]), np.empty(block.shape[0])
            moments.sparse_distances(csr_parts(block), self.units.mean, norms)
            moments.bounding_factors(norms, self.radius, factors)
            fit = factors > 0.0
            if not np.all(fit):
                block, norms, factors = block[fit], norms[fit], factors[fit]
            data = block.data * np.repeat(factors, np.diff(block.indptr))
            rows = csr_array((data, block.indices, block.indptr), shape=block.shape)
            yield rows, factors, np.minimum(norms, self.radius)

    def _projections(self, rows: Any, factors: Floats, V: Floats) -> Floats:
        """V^T of the bounded rows, each from a loop over its own row."""
        projections = np.asarray(rows @ V)
        return projections - np.outer(factors, self.units.mean @ V) if self._shift > 0.0 else projections

    def __repr__(self) -> str:
        return "CentredStored(private)"


def _moves(n: int) -> Moves:
    """Rows are added one by one, with a few roundings where the mean is put in."""
    return Moves(n, depth=n, roundings=20.0)


def _mended(bounds: Bounds | None, centre: Floats, without: Flags | None, block: Any) -> Any:
    data = block.data
    if bounds is not None:
        data = np.clip(data, bounds.low[block.indices], bounds.high[block.indices])
    data = np.where(np.isnan(data), centre[block.indices], data)
    if without is not None:
        data = np.where(without[block.indices], 0.0, data)
    return csr_array((data, block.indices, block.indptr), shape=block.shape)
