"""Which values occur often enough to be named: counts with noise, of values that nobody declared.

Every other release has a size that is known beforehand. Here the values themselves come from the data, so a value that
one person holds must not show, whatever its noise. So a value shows only where its noisy count is above a threshold
that lies far above one.

Privacy. There are p columns. A person votes for one value in each of them, or for none. A cell is a pair of a column
and a value. The counts of cells with votes get Gaussian noise of deviation s, and cells above tau are kept. Compare two
neighbours, and split the cells with votes into those of both worlds and those of one alone.

- A cell of one world alone has one vote, that of the person who differs: at most p of them in each world, one for each
  column. Each is kept with probability at most r = P(1 + s Z > tau), and some of them with q <= p r, in either world.
- On the cells of both worlds counts differ by an array of norm at most sqrt(p) under add-remove: one vote in each
  column. Under replace-one a vote may go and another come: sqrt(2 p). Let P and Q be the two laws of what is kept of
  these cells, and mu the norm over s. For t = e^epsilon >= 1 and any event E then P(E) - t Q(E) <= D(t), the delta of
  mu-GDP.

What is kept of the cells of one world alone is independent of the rest. So the two worlds show (1 - a) P + a P', and
(1 - b) Q + b Q', where a, b <= q, and where P' and Q' show a cell that the other world never shows. For an event E
without such cells, with q replaced by the larger of a and b,

    a + (1 - a) P(E) - t (1 - b) Q(E) <= q + (1 - q) D(t).

If b = q: the left side is a + (q - a) P(E) + (1 - q) (P(E) - t Q(E)). If a = q: it is at most
q + (1 - q) (P(E) - t Q(E)), as 1 - b >= 1 - q. By symmetry it holds in both directions and for both relations
(add-remove is a = 0 or b = 0). So the release is a coin that reveals everything with probability q, and mu-GDP. It
composes as these do: all releases of a plan cost what their events cost at delta - q.

With d0 = p r the threshold is tau = 1 + s Phi^-1(1 - d0 / p). Under replace-one 2 p cells of single votes may be
involved, but only p of them in one world: the same threshold will do.

On the grid (`tacit.privacy.noise.grid`) a count of one becomes at most 1 + g / 2 and a rounding of the product, and
noise is rounded down. A whole step g and a relative 2^-40 on tau cover this and the error of Phi^-1. At most 2 p cells
differ between the worlds, so rounding adds to sensitivity what it adds for 2 p values, however many cells there are:
the grid does not depend on their number, which is private.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import ndtri

from tacit.privacy import checks
from tacit.privacy.gate import Grant
from tacit.privacy.mechanisms.sensitivity import Sensitivity
from tacit.privacy.noise import samplers
from tacit.privacy.noise.grid import Grid
from tacit.privacy.plan import Kind

Values = tuple[tuple[str, ...], ...]
"""The values of each column that are named, in the order of texts."""


@dataclass(frozen=True)
class ThresholdedCounts:
    """The values of several columns that many people hold; how many there are is not known beforehand.

    In the non-private limit all values are kept.

    Parameters
    ----------
    columns : int
        In how many columns a person votes.
    rows : int
        The public number of people.
    most : int
        How many values of a column are kept at most: those with the largest noisy counts, and the first of equal ones.
    """

    columns: int
    rows: int
    most: int
    kind: ClassVar[Kind] = "thresholded"

    def __post_init__(self) -> None:
        for name in ("columns", "rows", "most"):
            object.__setattr__(self, name, checks.count(name, getattr(self, name)))

    @property
    def sensitivity(self) -> Sensitivity:
        """Of the counts of all columns, in the l2 norm."""
        return Sensitivity.one_hot(self.columns)

    def grid(self, grant: Grant) -> Grid | None:
        """What noise is added on; None in the non-private limit."""
        if grant.multiplier == 0.0:
            return None
        size = self.sensitivity.under(grant.adjacency)
        return Grid.for_noise(size, grant.multiplier, 2 * self.columns, float(self.rows), power=0.5)

    def threshold(self, grid: Grid | None, d0: float) -> float:
        """What a noisy count must exceed: one vote does so in some column with probability at most `d0`."""
        if grid is None:
            return 0.0
        above = -float(ndtri(checks.open_unit("d0", d0) / self.columns))
        return (1.0 + grid.step + max(above, 0.0) * grid.scale) * (1.0 + 2.0**-40)

    def counts(self, votes: Sequence[Iterable[str | None]]) -> list[dict[str, int]]:
        """How many people vote for each value, in the order of texts: private, and only for a release.

        `votes` has for each column the value of each person, or None; or how many people vote for each value. Nobody
        has two votes in a column.
        """
        if len(votes) != self.columns:
            raise ValueError(f"expected the votes of {self.columns} columns, got {len(votes)}")
        tallies = [
            column if isinstance(column, Counter) else Counter(value for value in column if value is not None)
            for column in votes
        ]
        if any(sum(tally.values()) > self.rows for tally in tallies):
            raise ValueError(f"there are more votes than the declared {self.rows} people")
        return [{value: tally[value] for value in sorted(tally)} for tally in tallies]

    def draw(self, grant: Grant, votes: Sequence[Iterable[str | None]]) -> Values:
        """The values of each column whose noisy count is above the threshold."""
        counts = self.counts(votes)
        source, grid = grant.take(), self.grid(grant)
        least = self.threshold(grid, grant.d0)
        kept = []
        for column in counts:
            noisy = np.array(list(column.values()), dtype=np.float64)
            if grid is not None and len(noisy):
                noisy = grid.release(noisy, samplers.normals(source, len(noisy)), strict=False)
            kept.append(self.kept(list(column), noisy.tolist(), least))
        return tuple(kept)

    def kept(self, values: Sequence[str], noisy: Sequence[float], least: float = -math.inf) -> tuple[str, ...]:
        """Of values in the order of texts: the `most` largest of those above `least`, again in that order."""
        passing = sorted((-count, value) for value, count in zip(values, noisy, strict=True) if count > least)
        return tuple(sorted(value for _, value in passing[: self.most]))
