"""Private centres and scales where the norm of a row bounds it: declared, or found as a quantile.

- `MomentScale`: a row norm is declared, dense. One noisy pair (sum x, sum x^2).
- `NormScale`: sparse. One scale for all columns, from the declared row norm or from a private quantile of row norms; no
  centring, which would fill the zeros.

Privacy. The pair (sum x / B, sum x^2 / B^2) of rows clipped to norm B moves by at most sqrt(2), or by sqrt(4.5) under
replace-one (`tacit.blocks.Moves`). A quantile is drawn by the exponential mechanism.
"""

from dataclasses import dataclass

import numpy as np

from tacit._types import Floats, Integers, Table
from tacit.blocks import Moves, Scaling, Source, clip_rows
from tacit.blocks.grid import in_parts
from tacit.blocks.sums import sum_over
from tacit.bounding import magnitudes
from tacit.kernels.exact import BLOCK
from tacit.privacy import Budget, Gate, Release
from tacit.privacy.mechanisms import GaussianVector, Quantile

_BITS = 22  # of an entry of a row that is at most 1 long
_NORM_QUANTILE = 0.95
_NORM_GRID = tuple(float(v) for v in 2.0 ** (np.arange(-80, 81) / 4))


@dataclass(frozen=True)
class MomentScale:
    """Centre and scale of every column of a dense table whose row norms are declared."""

    n: int
    d: int
    row_norm: float
    name: str = "scale"

    def share(self, budget: Budget, columns: int) -> float:  # noqa: ARG002
        """A twentieth: the moments of bounded rows are easy to find."""
        return 0.05

    def releases(self, share: float) -> tuple[Release, ...]:
        """One joint release of first and second moments."""
        return (Release(f"{self.name}: moments", "gaussian", share=share),)

    def run(self, gate: Gate, X: Table | Source) -> Scaling:
        """Spend the release; rows are clipped to the declared norm, never trusted."""
        sensitivity = Moves.exact(self.n).moments()
        name = f"{self.name}: moments"
        error = gate.noise(name, sensitivity) / self.n
        if isinstance(X, Source):
            total = X.sum(_moments, self.row_norm)
        else:
            total = sum_over(in_parts(X), _moments, self.row_norm)
        sums = total.floats(-2 * _BITS)
        first, second = gate.release(name, GaussianVector(sensitivity, bound=float(self.n)), sums) / self.n
        # Shrink the means together, and variances towards their average by how noisy they are. Single means that stand
        # out of the noise by chance would move rows farther than no centring does.
        mean = magnitudes.shrunk(first, error)
        weight = 1.0 / (1.0 + (error * self.d) ** 2)
        variance = weight * np.maximum(second - mean**2, 0.0) + (1.0 - weight) / self.d
        floor = 0.09 * float(variance.mean())
        scale = np.sqrt(np.maximum(variance, floor if floor > 0.0 else 1.0 / self.d))
        return Scaling(self.row_norm * mean, self.row_norm * scale, magnitudes.LIMIT)


def _moments(cells: Table, row_norm: float) -> Integers:
    """The sums of x and of x^2, in whole steps; what is missing adds nothing.

    Rows are clipped, divided by the norm, and then brought to a grid towards zero, so that none is longer than 1.
    Entries have up to 2^22 steps: the sizes of what 2^11 rows add up to are at most 2^55.
    """
    sums = np.zeros((2, cells.shape[1]), dtype=np.int64)
    for start in range(0, len(cells), BLOCK):
        block = cells[start : start + BLOCK]
        present = np.where(np.isnan(block), 0.0, block)
        rows = np.asarray(clip_rows(present, row_norm), dtype=np.float64) / row_norm
        steps = np.trunc(np.ldexp(rows, _BITS)).astype(np.int64)
        sums += (steps << _BITS).sum(axis=0), np.square(steps).sum(axis=0)
    return sums


@dataclass(frozen=True)
class NormScale:
    """One scale for all columns of a sparse table: the row norm over sqrt(d), so that rows get norm sqrt(d)."""

    n: int
    d: int
    row_norm: float | None = None
    name: str = "scale"

    def share(self, budget: Budget, columns: int) -> float:  # noqa: ARG002
        """Nothing where the norm is declared; a quantile costs little."""
        return 0.0 if self.row_norm is not None else 0.05

    def releases(self, share: float) -> tuple[Release, ...]:
        """A private selection, unless the norm is declared."""
        return () if self.row_norm is not None else (Release(f"{self.name}: row norm", "exponential", share=share),)

    def run(self, gate: Gate, norms: Floats) -> float:
        """The bound on row norms, from the norms of the rows."""
        if self.row_norm is not None:
            return self.row_norm
        name = f"{self.name}: row norm"
        # Every bound above the longest row scores alike, so lower ones are preferred: as steeply as leaves the whole
        # preference, over the grid, half of what the scores of the data can say.
        e0 = 1.0 / max(gate.multiplier(name), 1e-9)
        steepness = min(2.0, e0 * _NORM_QUANTILE * self.n / (4 * len(_NORM_GRID)))
        return gate.release(name, Quantile(_NORM_QUANTILE, _NORM_GRID, steepness, rows=self.n), norms)
