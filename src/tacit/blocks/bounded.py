"""Bounded rows: what an algorithm is handed to work on, and the released units they are in."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tacit._types import Floats, Integers, Table
from tacit.blocks.grid import GridTable, TableRows
from tacit.blocks.source import Kept, Raw, class_numbers
from tacit.blocks.sums import cuts, on_threads
from tacit.kernels.exact import FARTHEST, GRID, dense_norms
from tacit.kernels.given import Block, Csr
from tacit.kernels.scaling import standardize, standardize_stored
from tacit.problems import Penalty
from tacit.problems.bounds import Bounds


@dataclass(frozen=True, eq=False)
class Scaling:
    """A released or declared centre and scale for each column.

    Values are clipped to `limit` scales from the centre, or to declared `bounds` where there are any. `lost` columns
    were not found and took a fallback; `pooled` says that no column was looked at by itself.
    """

    centre: Floats
    scale: Floats
    limit: float
    lost: int = 0
    pooled: bool = False
    bounds: Bounds | None = None

    @property
    def low(self) -> Floats:
        """What smaller values are clipped to."""
        found = self.centre - self.limit * self.scale
        return found if self.bounds is None else np.where(self.bounds.declared, self.bounds.low, found)

    @property
    def high(self) -> Floats:
        """What larger values are clipped to."""
        found = self.centre + self.limit * self.scale
        return found if self.bounds is None else np.where(self.bounds.declared, self.bounds.high, found)

    @property
    def limits(self) -> Floats:
        """How far a value of each column can be from the centre, in scales."""
        limits = np.full(len(self.scale), self.limit)
        if self.bounds is None:
            return limits
        farthest = np.maximum(self.bounds.high - self.centre, self.centre - self.bounds.low) / self.scale
        return np.where(self.bounds.declared, farthest, limits)

    @property
    def farthest(self) -> float:
        """How far a value of any column can be from the centre."""
        return self.limit if self.bounds is None else float(self.limits.max())

    def transform(self, X: Any, layout: str = "rows") -> Any:
        """Centred, scaled, clipped; stored by rows, or by "short rows" or "columns" in half as many bytes.

        For "grid" entries are whole multiples of a step as well, and CSR rows stay sparse. All rounding is part of the
        bounded data: a function of each entry alone.
        """
        if isinstance(X, TableRows):
            zero = np.empty((1, X.shape[1]), dtype=np.float32)
            standardize(np.zeros((1, X.shape[1])), *self._units("grid"), 2.0**GRID, zero)
            stored = np.empty(len(X.data), dtype=np.float32)
            standardize_stored(Csr(X.data, X.indices, X.indptr), *self._units("grid"), 2.0**GRID, stored)
            return GridTable(csr_array((stored, X.indices, X.indptr), shape=X.shape), zero[0])
        kind = np.float64 if layout == "rows" else np.float32
        out: Any = np.empty(X.shape, dtype=kind, order="F" if layout == "columns" else "C")
        units, step = self._units(layout), 2.0**GRID if layout == "grid" else 0.0
        on_threads(lambda cut: standardize(X[cut], *units, step, out[cut]), cuts(*X.shape))
        return GridTable(out) if layout == "grid" else out

    def on_grid(self, X: Table) -> NDArray[np.float32]:
        """The entries for "grid", on this thread."""
        out = np.empty(X.shape, dtype=np.float32)
        standardize(X, *self._units("grid"), 2.0**GRID, out)
        return out

    def _units(self, layout: str) -> tuple[tuple[Floats, Floats], Floats, Floats, Floats]:
        """What each column is clipped to, its centre and its scale, and what it is clipped to then.

        A grid holds no entry beyond `FARTHEST`, whatever was found or declared: exact sums rest on it.
        """
        d, declared = len(self.scale), self.bounds
        bounds = (np.full(d, -np.inf), np.full(d, np.inf)) if declared is None else (declared.low, declared.high)
        limits = np.minimum(self.limits, FARTHEST) if layout == "grid" else self.limits
        return bounds, self.centre, self.scale, limits


@dataclass(frozen=True, eq=False)
class TargetUnits:
    """How the target of a regression is bounded: clipped to what is declared and to what was found, then scaled."""

    declared: tuple[float, float] | None
    found: tuple[float, float]
    scaling: Scaling

    def of(self, y: Floats) -> Floats:
        """Targets, each by itself."""
        clipped = y if self.declared is None else np.clip(y, *self.declared)
        return np.asarray(self.scaling.transform(np.clip(clipped, *self.found)[:, None])[:, 0])


@dataclass(frozen=True, eq=False)
class Bounder:
    """Bounds blocks of rows on a grid, each row by itself: a function that is sent to where the rows are."""

    features: Scaling
    target: TargetUnits | None
    bias: float

    def __call__(self, raw: Raw) -> Block[Any]:
        """The block, with the norms of its rows."""
        rows = self.features.on_grid(raw.X)
        norms = np.empty(len(rows))
        dense_norms(rows, self.bias, norms)
        return Block(rows, self.bias, raw.y if self.target is None else self.target.of(raw.y), norms)


@dataclass(frozen=True, eq=False)
class Bounded:
    """Bounded rows, their targets, and the penalty on weights for them.

    `Z` is centred, scaled and clipped (dense), or clipped to norm sqrt(d) (sparse), and stored as the algorithm's
    `layout` asks: by rows, on a grid as a `GridTable`, or by short rows or columns in single precision; CSR or CSC if
    sparse. `targets` are -1 or +1, class numbers, or scaled and clipped values, by the loss; rows on a grid that are
    `Kept` in parts have theirs with them. Private, and only for an algorithm's `run`.

    For "entries" what is bounded is each entry, by `entry`, which is public: dense rows are short and clipped to it;
    sparse ones are as they came, in the user's units, and are the algorithm's to clip.

    `units` are released: what leads back to the user's units.
    """

    Z: Any
    targets: Floats
    penalty: Penalty
    entry: float = math.inf
    units: Any = None

    def some(self, places: Integers) -> "Bounded":
        """The rows at these places; which they are is as private as the rows."""
        targets = self.targets if isinstance(self.Z, Kept) else self.targets[places]
        return Bounded(self.Z[places], targets, self.penalty, self.entry, self.units)

    def class_counts(self, classes: int) -> Integers:
        """How many rows are of each class; as private as the rows."""
        if isinstance(self.Z, Kept):
            return self.Z.class_counts(classes)
        return np.bincount(class_numbers(self.targets, classes), minlength=classes)

    def __repr__(self) -> str:
        return "Bounded(private)"
