"""Columns with declared bounds: what they cost, and the units they are brought to.

`DeclaredScale` looks a little at how values fill their bounds: its mean and its square in units of the bounds, for all
declared columns in one release. `RawScale` takes columns as they are, and releases nothing.

Privacy. With u the value in [-1, 1] that stands for a declared column's value between its bounds, a row adds (u, u^2)
for each of m columns. No entry exceeds 1, so the vector has norm at most sqrt(2 m). Of two rows the distance in one
column is t^2 (1 + s^2) at most, t = u - v and s = u + v with |s| + |t| <= 2: that is largest at t = 2, s = 0, so a
replaced row moves the sums by at most 2 sqrt(m) (`tacit.blocks.Moves.declared`). Values are clipped to their bounds
before, entry by entry, and what is not a number stands for the middle, u = 0.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from tacit._types import Floats
from tacit.blocks import Moves, Scaling
from tacit.bounding.magnitudes import LIMIT
from tacit.bounding.scales import MagnitudeScale, PooledScale
from tacit.privacy import Budget, Gate, Release
from tacit.privacy.mechanisms import GaussianVector
from tacit.problems.bounds import Bounds

_SHARE = 0.03  # of the budget: how values fill their bounds
_FARTHEST = 8.0  # scales: no declared value is farther from the centre, where whole rows are clipped
_BLOCK = 1 << 14


@dataclass(frozen=True, eq=False)
class DeclaredScale:
    """Columns with declared bounds, and one of the other scales for those that are left.

    Sparse columns are not centred; all of them must be declared, and nothing is released.
    """

    n: int
    bounds: Bounds
    rest: "MagnitudeScale | PooledScale | None"
    sparse: bool = False
    farthest: float = _FARTHEST
    name: str = "scale"

    @classmethod
    def of(cls, n: int, bounds: Bounds, budget: Budget, layout: str, *, sparse: bool) -> "DeclaredScale":
        """By how the algorithm wants the rows: those that work by columns or entries want no value far away.

        By columns, one scale serves all columns that are not declared, if they are many.
        """
        others = int(np.count_nonzero(~bounds.declared))
        pooled = layout == "columns" and PooledScale.is_due(n, others, budget)
        rest = None if not others else PooledScale(n, others) if pooled else MagnitudeScale(n, others)
        return cls(n, bounds, rest, sparse, LIMIT if layout in ("columns", "entries") else _FARTHEST)

    def share(self, budget: Budget, columns: int) -> float:
        """A few hundredths, and that of the columns that are not declared."""
        own = 0.0 if self.sparse else _SHARE
        return own + (0.0 if self.rest is None else self.rest.share(budget, columns - int(self.bounds.declared.sum())))

    def releases(self, share: float) -> tuple[Release, ...]:
        """How values fill their bounds, then those of the columns that are not declared."""
        own = () if self.sparse else (Release(f"{self.name}: declared", "gaussian", share=min(share, _SHARE)),)
        return own + (() if self.rest is None else self.rest.releases(share - min(share, _SHARE)))

    def run(self, gate: Gate, X: Any) -> Scaling:
        """Spend the releases. No declared value is clipped, nor farther than `farthest` scales from the centre."""
        low, high, declared = self.bounds.low.copy(), self.bounds.high.copy(), self.bounds.declared
        if issparse(X):
            return Scaling(np.zeros(len(low)), self.bounds.reach, 1.0, bounds=self.bounds)
        half = (high[declared] - low[declared]) / 2
        middle = low[declared] + half
        mean, deviation = self._filled(gate, X, declared, middle, half)
        found = Scaling(np.zeros(0), np.zeros(0), LIMIT) if self.rest is None else self.rest.run(gate, X[:, ~declared])
        centre, scale = np.empty(len(low)), np.empty(len(low))
        centre[declared] = middle + half * mean
        scale[declared] = half * np.maximum(deviation, (1.0 + np.abs(mean)) / self.farthest)
        centre[~declared], scale[~declared] = found.centre, found.scale
        if found.bounds is not None:
            low[~declared], high[~declared] = found.bounds.low, found.bounds.high
        return Scaling(centre, scale, LIMIT, found.lost, found.pooled, Bounds(low, high))

    def _filled(self, gate: Gate, X: Any, declared: Any, middle: Floats, half: Floats) -> tuple[Floats, Floats]:
        """The mean and the deviation of declared columns, in units of their bounds."""
        sums = np.zeros((2, len(half)))
        for start in range(0, len(X), _BLOCK):
            u = np.clip((X[start : start + _BLOCK, declared].astype(np.float64) - middle) / half, -1.0, 1.0)
            u = np.where(np.isnan(u), 0.0, u)
            sums += u.sum(axis=0), np.square(u).sum(axis=0)
        sensitivity, name = Moves(self.n, depth=self.n).declared(len(half)), f"{self.name}: declared"
        error = gate.noise(name, sensitivity) / self.n
        first, second = gate.release(name, GaussianVector(sensitivity, bound=float(self.n)), sums) / self.n
        mean = np.clip(first, -1.0, 1.0)
        # Between what the bounds allow and, where noise hides it, values spread evenly: deviation 1 / sqrt(3).
        weight = 1.0 / (1.0 + (3.0 * error) ** 2)
        variance = weight * np.clip(second - mean**2, 0.0, 1.0) + (1.0 - weight) / 3.0
        return weight * mean, np.sqrt(variance)


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
