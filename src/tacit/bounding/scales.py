"""Private centres and scales of dense columns: what a fit needs to know about units, released inside its own budget.

Each way has `releases` (its part of the plan, from public numbers alone) and `run`, which spends them and returns a
`Scaling`:

- `MagnitudeScale`: nothing declared, dense. Two noisy histograms of signed powers of two per column: the first finds
  each column's rough centre and magnitude, the second its mean and spread around that. Of a
  classifier whose sums of rows are exact, means are released as well (`tacit.bounding.means`).
- `PooledScale`: nothing declared, dense, too many columns for the budget. One noisy histogram of all entries, one scale
  for all columns, and no centring.

For the target of a regression see `tacit.bounding.target`. Where a row norm bounds the rows see
`tacit.bounding.norms`, where columns have declared bounds `tacit.bounding.declared`.

Privacy. A row counts once in each of d histograms: l2 sensitivity sqrt(d) (add-remove), sqrt(2 d) (replace-one). In the
one histogram of all entries it counts d times, in bins that may differ or not: its counts c are non-negative and add up
to d, so that |c|^2 <= d^2, attained by d equal entries; of two rows c.c' >= 0, so that |c - c'|^2 <= 2 d^2.
Everything after a release reads released numbers only. Results say when a column was lost in the noise, which is
public.
"""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from tacit._types import Floats, Integers, Table
from tacit.blocks import Scaling, Source, TableRows
from tacit.blocks.sums import cuts, on_threads
from tacit.bounding import magnitudes
from tacit.bounding.magnitudes import LIMIT
from tacit.bounding.means import PART, Means
from tacit.bounding.templates import Reader, Reading
from tacit.kernels.given import Csr
from tacit.kernels.scaling import magnitude_histograms, pooled_magnitudes, stored_histograms
from tacit.privacy import Budget, Gate, Release
from tacit.privacy.mechanisms import GaussianVector, Sensitivity
from tacit.problems.bounds import Bounds

LEAST_SHARE = 0.15
_JOINED = 4.0  # deviations of the noise, below which a bin may be there by chance next to one that is not
_MANY_COLUMNS = 500  # tables with fewer tend to have a unit for each column, which one scale cannot serve
_NOISE_OF_MANY = 0.4  # of (d + 1) / (n mu), from which on scales of single columns are not worth their cost


@dataclass(frozen=True)
class MagnitudeScale:
    """Centre and scale of every column of a dense table, nothing declared; with `means` centres are read once more."""

    n: int
    d: int
    name: str = "scale"
    means: bool = False

    def share(self, budget: Budget, columns: int) -> float:
        """The part of mu^2 that finding scales is worth: more where the histograms are noisy.

        700 m / (n mu)^2 keeps the noise of a bin near a twentieth of the rows.
        """
        return min(0.40, max(LEAST_SHARE, 700.0 * columns / (self.n * budget.mu) ** 2))

    def releases(self, share: float) -> tuple[Release, ...]:
        """Two histograms, and the means of what they bound."""
        half = (1.0 - PART if self.means else 1.0) * share / 2
        histograms = (
            Release(f"{self.name}: magnitudes", "gaussian", share=half),
            Release(f"{self.name}: spread", "gaussian", share=half),
        )
        return (*histograms, self._means.release(PART * share)) if self.means else histograms

    def run(self, gate: Gate, X: Table | Source) -> Scaling:
        """Spend the releases; where they are noisy, the histograms of all columns are read together."""
        d, wide = self.d, np.full(self.d, magnitudes.WIDEST)
        rough, top = np.zeros(d), np.zeros(d, dtype=np.int64)
        counts, noise = self.histograms(gate, f"{self.name}: magnitudes", X, rough, -wide, wide)
        read = self._outstanding(counts, noise)
        lost = np.flatnonzero(~read.any(axis=1))
        reader = Reader(self.n) if Reader.is_due(self.n, d, noise) else None
        read = read if reader is None else reader.first(counts, noise)
        for j in np.flatnonzero(read.any(axis=1)).tolist():
            rough[j], top[j] = magnitudes.rough_centre(read[j], read[j] > 0.0)
        pooled = _fallback_scale(counts, noise)
        counts, noise = self.histograms(
            gate, f"{self.name}: spread", X, rough, top - magnitudes.BELOW, top + magnitudes.ABOVE
        )
        if reader is None:
            found = _read_alone(self._outstanding(counts, noise), rough, top, _JOINED * noise)
        else:
            found = reader.second(counts, noise, rough, top)
        scaling = _of_columns(found, rough, top)
        if reader is None:
            scaling.centre[lost], scaling.scale[lost] = 0.0, pooled
            if scaling.bounds is not None:  # in units that a lost column no longer has
                scaling.bounds.low[lost], scaling.bounds.high[lost] = -np.inf, np.inf
        scaling = replace(scaling, lost=len(lost))
        return self._means.run(gate, X, scaling) if self.means else scaling

    @property
    def _means(self) -> Means:
        return Means(self.n, self.d, f"{self.name}: means")

    def _outstanding(self, counts: Floats, noise: float) -> Floats:
        """The counts that stand out of the noise, each column by itself; zero in place of the others."""
        keep = magnitudes.surviving(counts, noise, self.d, signed=True)
        return np.where(keep, np.maximum(counts, 0.0), 0.0)

    def histograms(
        self, gate: Gate, name: str, X: Table | Source, shift: Floats, low: Integers, high: Integers
    ) -> tuple[Floats, float]:
        """Noisy counts, and the standard deviation of their noise."""
        sensitivity = Sensitivity.one_hot(self.d)
        noise = gate.noise(name, sensitivity)
        counts = self.exact_counts(X, shift, low, high)
        return gate.release(name, GaussianVector(sensitivity, bound=float(self.n)), counts), noise

    def exact_counts(self, X: Table | Source, shift: Floats, low: Integers, high: Integers) -> Floats:
        """Counts without noise, and only for a release. Whole numbers, so the sums are exact."""

        def counted(table: Any, cut: slice) -> Floats:
            if not isinstance(table, TableRows):
                return _counts(table[cut], shift, low, high)
            counts = np.empty((self.d, 2 * int(high[0] - low[0] + 1) + 1))
            starts = table.indptr[cut.start : cut.stop + 1]
            stored_histograms(Csr(table.data, table.indices, starts), shift, low, high, counts)
            return counts

        if isinstance(X, Source):
            return X.sum(_whole_counts, shift, low, high).floats(0)
        return np.asarray(np.sum(on_threads(partial(counted, X), cuts(*X.shape)), axis=0))


def _counts(cells: Table, shift: Floats, low: Integers, high: Integers) -> Floats:
    """The histograms of some rows."""
    counts = np.empty((cells.shape[1], 2 * int(high[0] - low[0] + 1) + 1))
    magnitude_histograms(cells, shift, low.astype(np.int64), high.astype(np.int64), counts)
    return counts


def _whole_counts(cells: Table, shift: Floats, low: Integers, high: Integers) -> Integers:
    return _counts(cells, shift, low, high).astype(np.int64)


def _read_alone(counts: Floats, rough: Floats, top: Integers, joined: float) -> Reading:
    """What counts without noise show by themselves."""
    others = [magnitudes.other_value(counts[j], float(rough[j]), int(top[j]), joined) for j in range(len(rough))]
    values = np.array([np.nan if other is None else other for other in others])
    return Reading(counts, values, np.ones(len(rough)), trust=0.0)


def _of_columns(found: Reading, rough: Floats, top: Integers) -> Scaling:
    """Units from what was read. Nothing lies beyond two values, and neither of them is clipped."""
    d, read = len(rough), found.counts
    centre, scale = np.empty(d), np.empty(d)
    bounds = Bounds(np.full(d, -np.inf), np.full(d, np.inf))
    for j in range(d):
        centre[j], scale[j] = magnitudes.centre_and_scale(read[j], read[j] > 0.0, float(rough[j]), int(top[j]))
        other = found.others[j]
        if np.isnan(other):
            scale[j] = scale[j] ** (1.0 - found.trust) * found.scales[j] ** found.trust
            continue
        bounds.low[j], bounds.high[j] = min(0.0, other), max(0.0, other)
        centre[j] = min(max(centre[j], bounds.low[j]), bounds.high[j])
        scale[j] = max(scale[j], (bounds.high[j] - centre[j]) / LIMIT, (centre[j] - bounds.low[j]) / LIMIT)
    return Scaling(centre, scale, LIMIT, bounds=bounds if bounds.declared.any() else None)


def _fallback_scale(counts: Floats, noise: float) -> float:
    """One scale for columns that were not found: the root mean square over all columns' histograms, or 1."""
    pooled = counts.sum(axis=0)
    keep = magnitudes.surviving(pooled, noise * math.sqrt(len(counts)), 1)
    mass = np.where(keep, np.maximum(pooled, 0.0), 0.0)
    values = magnitudes.bin_values(-magnitudes.WIDEST, magnitudes.WIDEST)
    square = float(mass @ values**2) / max(float(mass.sum()), 1e-300)
    return math.sqrt(square) if square > 0.0 else 1.0


@dataclass(frozen=True)
class PooledScale:
    """One scale for all columns of a dense table, nothing declared."""

    n: int
    d: int
    name: str = "scale"

    @staticmethod
    def is_due(n: int, d: int, budget: Budget) -> bool:
        """Whether there are too many columns to look for the scale of each; from public numbers alone.

        The histograms of single columns have noise of sqrt(d) / mu rows in a bin, and may cost 40% of the budget.
        """
        return d >= _MANY_COLUMNS and d + 1 > _NOISE_OF_MANY * n * budget.mu

    def share(self, budget: Budget, columns: int) -> float:
        """A twentieth, and more where few rows are left over from the noise; thrice that with a target to find."""
        histograms = 1 + 2 * (columns - self.d)
        return min(0.40, max(0.05, 700.0 * histograms / (self.n * budget.mu) ** 2))

    def releases(self, share: float) -> tuple[Release, ...]:
        """One histogram."""
        return (Release(f"{self.name}: magnitudes", "gaussian", share=share),)

    def run(self, gate: Gate, X: Table) -> Scaling:
        """Spend the release. Counts are whole numbers, so their sums are exact."""
        name, widest = f"{self.name}: magnitudes", magnitudes.WIDEST
        counts = np.empty(4 * widest + 3, dtype=np.int64)
        pooled_magnitudes(X, -widest, widest, counts)
        sensitivity = Sensitivity(float(self.d), math.sqrt(2.0) * self.d)
        noise = gate.noise(name, sensitivity)
        noisy = gate.release(name, GaussianVector(sensitivity, bound=float(self.n) * self.d), counts)
        scale = magnitudes.pooled_scale(noisy, magnitudes.surviving(noisy, noise, 1))
        lost = self.d if scale is None else 0
        return Scaling(np.zeros(self.d), np.full(self.d, scale or 1.0), magnitudes.LIMIT, lost, pooled=True)
