"""Columns with declared bounds, which cost nothing; the units of the others are found.

- `DeclaredScale`: dense. What lies between the bounds is brought to [-sqrt(3), sqrt(3)], or to [-1, 3] from a bound of
  0 on, as most of what starts at zero is small. Columns that are not declared have histograms, in which the declared
  ones take no part.
- `SparseScale`: sparse, and so not centred. Declared columns are divided by their largest size, and the others are
  bounded by their norm together.
- `RawScale`: for a solver that takes columns as they are.

Privacy. Bounds are enforced entry by entry and never trusted. The part of a sparse row that is not declared is clipped
to its norm alone, so that a whole row has norm sqrt(d) at most: declared columns have a part p of d, the others the
rest, (p d / m) m + (1 - p) d = d.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from tacit.blocks import Scaling, Source, clip_rows
from tacit.bounding.magnitudes import LIMIT
from tacit.bounding.norms import NormScale
from tacit.bounding.scales import MagnitudeScale, PooledScale
from tacit.kernels.given import Csr
from tacit.kernels.rows import sparse_norms
from tacit.privacy import Budget, Gate, Release
from tacit.problems.bounds import Bounds

_REACH = math.sqrt(3.0)  # what declared bounds are brought to: values spread evenly between them have deviation 1
_DECLARED_PART = 0.1  # of the squared norm of a sparse row, for declared columns that are few: as large as a word's


@dataclass(frozen=True, eq=False)
class DeclaredScale:
    """Dense columns, some or all of them with declared bounds."""

    n: int
    bounds: Bounds
    rest: MagnitudeScale | PooledScale | None

    @classmethod
    def of(cls, n: int, bounds: Bounds, pools: Budget | None = None, *, means: bool = False) -> "DeclaredScale":
        """With a scale for each column that is not declared, or one for all, where a budget `pools` so many."""
        others = int(np.count_nonzero(~bounds.declared))
        if not others:
            return cls(n, bounds, None)
        pooled = pools is not None and PooledScale.is_due(n, others, pools)
        return cls(n, bounds, PooledScale(n, others) if pooled else MagnitudeScale(n, others, means=means))

    def share(self, budget: Budget, columns: int) -> float:
        """That of the columns that are not declared."""
        return 0.0 if self.rest is None else self.rest.share(budget, columns - int(self.bounds.declared.sum()))

    def releases(self, share: float) -> tuple[Release, ...]:
        """Those of the columns that are not declared."""
        return () if self.rest is None else self.rest.releases(share)

    def run(self, gate: Gate, X: Any) -> Scaling:
        """Spend the releases, if any."""
        if self.rest is None:
            return self.known()
        others = ~self.bounds.declared
        cells: Any = X.some(others) if isinstance(X, Source) else X[:, others]
        return self._with(self.rest.run(gate, cells))

    def known(self) -> Scaling:
        """What is public where all columns are declared."""
        return self._with(Scaling(np.zeros(0), np.zeros(0), LIMIT))

    def _with(self, found: Scaling) -> Scaling:
        """The units of declared columns, among those that were found of the others."""
        low, high, declared = self.bounds.low, self.bounds.high, self.bounds.declared
        centre, scale = np.empty(len(low)), np.empty(len(low))
        start, end = low[declared], high[declared]
        below = np.select([start == 0.0, end == 0.0], [1.0, LIMIT], _REACH)
        above = np.select([start == 0.0, end == 0.0], [LIMIT, 1.0], _REACH)
        scale[declared] = (end - start) / (below + above)
        centre[declared] = start + below * scale[declared]
        centre[~declared], scale[~declared] = found.centre, found.scale
        if found.bounds is not None:
            low, high = low.copy(), high.copy()
            low[~declared], high[~declared] = found.bounds.low, found.bounds.high
        return Scaling(centre, scale, LIMIT, found.lost, found.pooled, Bounds(low, high))


@dataclass(frozen=True, eq=False)
class SparseScale:
    """Sparse columns, some or all of them with declared bounds that hold 0."""

    bounds: Bounds
    rest: NormScale | None

    @classmethod
    def of(cls, n: int, bounds: Bounds) -> "SparseScale":
        """With one norm for all columns that are not declared."""
        others = int(np.count_nonzero(~bounds.declared))
        return cls(bounds, NormScale(n, others) if others else None)

    def share(self, budget: Budget, columns: int) -> float:
        """That of the norm."""
        return 0.0 if self.rest is None else self.rest.share(budget, columns)

    def releases(self, share: float) -> tuple[Release, ...]:
        """That of the norm."""
        return () if self.rest is None else self.rest.releases(share)

    def run(self, gate: Gate, X: csr_array) -> float:
        """The bound on the norm of what is not declared; 0 where all of it is."""
        if self.rest is None:
            return 0.0
        norms = np.empty(X.shape[0])
        sparse_norms(Csr(self._others(X), X.indices, X.indptr), 0.0, norms)
        return self.rest.run(gate, norms)

    def rows(self, X: csr_array, bound: float) -> tuple[Scaling, csr_array]:
        """Entries clipped to declared bounds, others to the bound on their norm, and scaled; and how.

        Rows have norm sqrt(d) at most. What is not a number becomes zero: bounds are enforced, whatever was let
        through before.
        """
        d, reach, declared = len(self.bounds.low), self.bounds.reach, self.bounds.declared
        scaling = Scaling(np.zeros(d), reach, 1.0, bounds=self.bounds)
        clipped = np.clip(X.data, self.bounds.low[X.indices], self.bounds.high[X.indices])
        if self.rest is not None:
            count = d - self.rest.d
            part = max(_DECLARED_PART, count / d)
            scale = np.where(declared, reach / math.sqrt(part * d / count), bound / math.sqrt((1.0 - part) * d))
            scaling = Scaling(np.zeros(d), scale, math.inf, bounds=self.bounds)
            others: Any = clip_rows(csr_array((self._others(X), X.indices, X.indptr), shape=X.shape), bound)
            clipped = np.where(declared[X.indices], clipped, others.data)
        scaled = clipped / scaling.scale[X.indices]
        return scaling, csr_array((np.where(np.isnan(scaled), 0.0, scaled), X.indices, X.indptr), shape=X.shape)

    def _others(self, X: csr_array) -> Any:
        """The stored entries, with zeros in place of those of declared columns."""
        return np.where(self.bounds.declared[X.indices], 0.0, X.data)


@dataclass(frozen=True, eq=False)
class RawScale:
    """Columns as they are, clipped to their declared bounds and over the largest size there. Nothing is released.

    There is no centring, and what is asked of weights is meant for the user's units: the division is arithmetic.
    """

    bounds: Bounds

    def share(self, budget: Budget, columns: int) -> float:  # noqa: ARG002
        """Nothing."""
        return 0.0

    def releases(self, share: float) -> tuple[Release, ...]:  # noqa: ARG002
        """None."""
        return ()

    def run(self, gate: Gate, X: Any) -> Scaling:  # noqa: ARG002
        """Values of size 1 at most."""
        return Scaling(np.zeros(len(self.bounds.low)), self.bounds.reach, 1.0, bounds=self.bounds)
