"""The bounding step of a PCA: a private scale, a private mean, a private radius.

Privacy
-------
All releases are Gaussian, so that a plan of `gauss`, `power` or `mod-sulq` is exactly mu-GDP.

- "row norm" (unless `row_norm`, or bounds of all columns, are declared): a histogram in powers of two of the norms of
  rows, without their declared columns. One row is in one bin: sensitivity 1, and sqrt(2) for replace-one.
- "mean" (if `center`): the sum of x - c, clipped to norm R_0: R_0, and 2 R_0. It is exact for dense rows; that of wide
  sparse ones has its rounding in the sensitivity. Of columns without declared bounds c is 0, and R_0 the row norm. A
  declared column is clipped to its bounds, c is their middle (0 where rows stay sparse), and no value is farther from c
  than h. So no row is longer than the root of R^2 and all h^2, with R the norm of what is not declared; R_0 is that.
- "radius" (unless `center_norm`, or `row_norm` without centring, is declared): a histogram of the rows' distances from
  the mean in units of R_0: 1, and sqrt(2).

A missing value stands at c for the mean, and at the mean after that: it adds nothing to a distance. Both are functions
of the row and of released numbers.

The mean is shrunk towards c by its own noise (James and Stein). The radius is a quantile read off the histogram; n is
public, so ranks are counted from both ends. Which quantile is a rule in n, d and the budget alone: a quarter where
there is much noise, as rows that are all scaled to one length show their directions with the least noise, and all rows
where there is none.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tacit._types import Floats
from tacit.blocks.centred import Centre, CentredRows, DenseRows
from tacit.blocks.source import Source
from tacit.blocks.stored_rows import CentredStored, StoredRows
from tacit.blocks.table import Table
from tacit.bounding import magnitudes
from tacit.privacy import Gate, Release
from tacit.privacy.mechanisms import GaussianVector, Sensitivity
from tacit.problems.bounds import Bounds
from tacit.problems.task import ComponentsTask

_NORM_SHARE, _MEAN_SHARE, _RADIUS_SHARE = 0.05, 0.15, 0.03
_NORMS = np.concatenate([[0.0], np.ldexp(1.0, np.arange(-64, 65))])
_RADII = 2.0 ** (np.arange(-24, 1) / 2.0)  # over the widest possible radius, down to 2^-12
_NORM_QUANTILE = 0.98
_LEAST_QUANTILE = 0.25
_SURE = 1.5  # deviations of its noise by which a rank must stand out
_NOISY = 0.05  # nu from which on the least quantile is taken

PcaRows = CentredRows | CentredStored
"""The rows that a solver of PCA is handed: exact sums of dense ones, float sums of sparse and wide ones."""


@dataclass(frozen=True)
class Centring:
    """Which of scale, mean and radius are released, and what is left of the budget."""

    task: ComponentsTask

    @property
    def radius(self) -> float | None:
        """The declared radius: of centred rows `center_norm`, else `row_norm`."""
        return self.task.center_norm if self.task.center else self.task.row_norm

    @property
    def quantile(self) -> float:
        """Which part of the rows lies within the radius."""
        return 1.0 - (1.0 - _LEAST_QUANTILE) * min(1.0, self.task.nu / _NOISY)

    @property
    def bounds(self) -> Bounds:
        """What columns are declared to lie between."""
        free = np.full(self.task.d, np.inf)
        return self.task.bounds or Bounds(-free, free)

    @cached_property
    def releases(self) -> tuple[Release, ...]:
        """In the order they are made: what is not declared."""
        known = self.task.row_norm is not None or self.bounds.are_whole
        norm = [] if known else [Release("row norm", "gaussian", share=_NORM_SHARE)]
        mean = [Release("mean", "gaussian", share=_MEAN_SHARE)] if self.task.center else []
        radius = [Release("radius", "gaussian", share=_RADIUS_SHARE)] if self.radius is None else []
        return (*norm, *mean, *radius)

    @property
    def left(self) -> float:
        """The part of the budget that is left for the algorithm."""
        return 1.0 - sum(release.share or 0.0 for release in self.releases)

    def run(self, table: Source | Table, gate: Gate) -> PcaRows:
        """Centred rows, with the mean and the radius that were declared or released."""
        middle = self._middle()
        n, bounds = self.task.n, self.task.bounds
        rows = DenseRows(table, n, bounds) if isinstance(table, Source) else StoredRows(table, n, bounds)
        norm, lost = self.task.row_norm, False
        if norm is None:
            norm, lost = self._norm(rows, gate)
        mean = self._mean(rows, Centre(middle, norm), gate) if self.task.center else middle
        radius = self.radius
        if radius is None:
            radius = self._radius(rows, mean, norm + float(np.linalg.norm(mean - middle)), gate)
        return rows.centred(Centre(mean, radius, lost))

    def _middle(self) -> Floats:
        """Where declared columns are centred for the mean: sparse rows, and rows that are not centred, at zero."""
        if self.task.bounds is None or self.task.sparse or not self.task.center:
            return np.zeros(self.task.d)
        return self.bounds.middle

    def _norm(self, rows: DenseRows | StoredRows, gate: Gate) -> tuple[float, bool]:
        """A bound on how far most rows are from the middle, and whether it was lost in the noise."""
        declared = self.bounds.declared
        farthest = np.maximum(self.bounds.high - self._middle(), self._middle() - self.bounds.low)
        inside = float(np.linalg.norm(farthest[declared]))
        if self.bounds.are_whole:
            return inside, False
        counts = rows.counts(np.zeros(self.task.d), _NORMS, without=declared, zeros=False)
        found = _scale(gate, counts, self.task.n)
        return math.hypot(found or 1.0, inside), found is None

    def _mean(self, rows: DenseRows | StoredRows, about: Centre, gate: Gate) -> Floats:
        """The mean, drawn towards the middle by its noise; of declared columns it lies between the bounds."""
        n, sensitivity = self.task.n, rows.sum_sensitivity(about)
        mechanism = GaussianVector(sensitivity, bound=1.001 * n * about.radius)
        mean = gate.release("mean", mechanism, rows.sum(about)) / n
        found = about.mean + magnitudes.shrunk(mean, gate.noise("mean", sensitivity) / n)
        return np.clip(found, self.bounds.low, self.bounds.high)

    def _radius(self, rows: DenseRows | StoredRows, mean: Floats, widest: float, gate: Gate) -> float:
        edges = np.concatenate([[0.0], widest * _RADII])
        mechanism = GaussianVector(Sensitivity.one_hot(), bound=self.task.n)
        counts = gate.release("radius", mechanism, rows.counts(mean, edges))
        if not self.task.budget.is_private:
            return float(edges[1 + int(np.flatnonzero(counts).max(initial=0))])
        bins = len(counts)
        place = np.arange(bins)
        below = np.cumsum(counts)
        above = self.task.n - (below[-1] - below)
        ranks = ((bins - 1 - place) * below + (place + 1) * above) / bins  # each weighed by its noise
        rising = (np.maximum.accumulate(ranks) + np.minimum.accumulate(ranks[::-1])[::-1]) / 2
        noise = gate.noise("radius", Sensitivity.one_hot())
        spread = noise * np.sqrt((place + 1) * (bins - 1 - place) / bins)
        wanted = np.maximum(self.quantile * self.task.n, _SURE * spread)
        reached = np.flatnonzero(rising >= wanted)
        if len(reached) == 0:
            return float(edges[-1])
        j = int(reached[0])
        start = float(rising[j - 1]) if j > 0 else 0.0
        part = (wanted[j] - start) / max(float(rising[j]) - start, 1e-300)
        return float(edges[j] + np.clip(part, 0.1, 1.0) * (edges[j + 1] - edges[j]))


def _scale(gate: Gate, counts: Floats, n: int) -> float | None:
    """A power of two that most row norms lie below; None if none stands out of the noise."""
    noise = gate.noise("row norm", Sensitivity.one_hot())
    # Rows of zeros have no scale, and are counted in no bin; the bound on counts is public all the same.
    counts = gate.release("row norm", GaussianVector(Sensitivity.one_hot(), bound=n), counts)
    mass = np.where(magnitudes.surviving(counts, noise, 1), np.maximum(counts, 0.0), 0.0)
    if mass.sum() <= 0.0:
        return None
    wanted = 1.0 if noise == 0.0 else _NORM_QUANTILE
    place = int(np.searchsorted(np.cumsum(mass), wanted * float(mass.sum()) * (1.0 - 1e-12)))
    return float(_NORMS[min(place, len(mass) - 1) + 1])
