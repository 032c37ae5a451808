"""Centres of columns read once more: the mean of the bounded rows, released, becomes where columns are centred.

Histograms of powers of two tell the size of a column far better than its centre: what is between two powers is one bin,
and the mean of a column is a sum of noisy bins times what they stand for. Rows that are off centre are longer for
nothing, and the gradients that are clipped hold less of what tells classes apart. A row in the units that were found is
short, and its sum over all rows has noise of about sqrt(d) / mu in each column: a fraction of that of the histograms.

Where few rows are left over from that noise its means are moved towards zero, which leaves the centre where it was
(James and Stein). Columns of two values, whose mean tends to be well read, are moved by their own rule. What is clipped
stays as it was, so a column that was misread and lies at the clip with most of its rows becomes one that is nearly
always zero, in place of one that makes all rows longer.

Privacy. The sum of rows in the units that were released before, each clipped to norm R: R, and 2 R for replace-one, as
two rows can be opposite. Entries are on the grid of bounded rows, rows are clipped in whole steps of a finer one, and
their sum is exact (`tacit.kernels.centred`); what is missing is at the centre and adds nothing. What is moved is a
function of the released sum.

Rules. R^2 = d + 8: a single column has no row that is clipped, and of many columns few rows are much longer than
sqrt(d). The release gets a part of what finding scales is worth, and the histograms the rest. It is made by solvers
whose sums are exact, for classifiers with an intercept: a regression loses more by what the histograms lose
(`benchmarks.rules.means`).
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tacit._types import Floats, Integers, Table
from tacit.blocks import Moves, Scaling, Source, TableRows
from tacit.blocks.grid import in_parts
from tacit.blocks.sums import sum_over
from tacit.bounding import magnitudes
from tacit.bounding.magnitudes import LIMIT
from tacit.kernels.centred import MEAN, SHRINK, summed
from tacit.kernels.exact import BLOCK
from tacit.kernels.stored import add_short, filled
from tacit.privacy import Gate, Release
from tacit.privacy.mechanisms import GaussianVector
from tacit.problems.bounds import Bounds

PART = 0.15
"""Of what finding scales is worth."""


@dataclass(frozen=True)
class Means:
    """The means of columns, in units that were found."""

    n: int
    d: int
    name: str

    @property
    def radius(self) -> float:
        """What rows are clipped to."""
        return math.sqrt(self.d + LIMIT**2 - 1.0)

    def release(self, share: float) -> Release:
        """One sum of rows."""
        return Release(self.name, "gaussian", share=share)

    def run(self, gate: Gate, X: Table | Source, found: Scaling) -> Scaling:
        """The units, with centres moved to the released means."""
        power = MEAN - math.ceil(math.log2(self.radius))
        public = found, self.radius, power
        total = X.sum(_summed, *public) if isinstance(X, Source) else sum_over(in_parts(X), _summed, *public)
        sensitivity = Moves.exact(self.n).vector(self.radius)
        mechanism = GaussianVector(sensitivity, bound=1.001 * self.n * self.radius)
        mean = gate.release(self.name, mechanism, total.floats(-power)) / self.n
        return moved(found, mean, gate.noise(self.name, sensitivity) / self.n)


def moved(found: Scaling, mean: Floats, error: float) -> Scaling:
    """Units whose centres are moved by noisy means of what they bound; nothing lies beyond `LIMIT` scales of them."""
    pairs = np.zeros(len(mean), dtype=bool) if found.bounds is None else found.bounds.declared
    steps = np.empty(len(mean))
    for alike in (pairs, ~pairs):
        steps[alike] = magnitudes.shrunk(mean[alike], error)
    low, high = found.low, found.high
    centre = np.clip(found.centre + steps * found.scale, low, high)
    reach = np.maximum(high - centre, centre - low) / LIMIT
    scale = np.where(pairs, np.maximum(found.scale, reach), found.scale)  # neither of two values is clipped
    bounds = Bounds(np.maximum(low, centre - LIMIT * scale), np.minimum(high, centre + LIMIT * scale))
    return replace(found, centre=centre, scale=scale, bounds=bounds)


def _summed(cells: Any, found: Scaling, radius: float, power: int) -> Integers:
    """The sum of rows in these units, each clipped to the radius, in whole steps of 2^-power.

    A row has up to 2^40 steps, and the sum over the 2^11 rows of a block up to 2^51.
    """
    total, unit = np.zeros(cells.shape[1], dtype=np.int64), math.ldexp(1.0, power)
    for start in range(0, cells.shape[0], BLOCK):
        block = cells[start : start + BLOCK]
        if isinstance(block, TableRows):  # only what is clipped is filled
            stored: Any = found.transform(block, "grid").between(0, block.shape[0])
            rows: Table = filled(stored, add_short(stored, unit, radius * SHRINK * unit, total))
        else:
            rows = found.on_grid(block)
        total += summed(rows, np.zeros(len(total)), radius, unit).astype(np.int64)
    return total
