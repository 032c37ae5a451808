"""Counts in public bins, with Gaussian noise."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from tacit._types import Floats
from tacit.privacy import checks
from tacit.privacy.gate import Grant
from tacit.privacy.mechanisms.additive import GaussianVector
from tacit.privacy.mechanisms.sensitivity import Sensitivity
from tacit.privacy.plan import Kind


@dataclass(frozen=True, init=False)
class Histogram:
    """Noisy counts of the columns of a table between public edges.

    Each column has the same bins: [edges[k], edges[k + 1]), with values below the first edge in the first bin and
    values from the last edge on in the last; what is not a number is not counted. A row counts once in every column, so
    all columns together have sensitivity sqrt(columns) for add-remove and sqrt(2 columns) for replace-one.

    Parameters
    ----------
    edges : array-like of float
        Increasing, at least two, and chosen without looking at the data.
    columns : int
        How many columns are counted in the one release.
    rows : int, optional
        The public number of rows, which no count exceeds; by default the length of what is counted, which must then be
        public.
    """

    edges: tuple[float, ...]
    columns: int
    rows: int | None
    kind: ClassVar[Kind] = "gaussian"

    def __init__(self, edges: ArrayLike, columns: int = 1, *, rows: int | None = None) -> None:
        array = np.asarray(edges, dtype=np.float64)
        if array.ndim != 1 or len(array) < 2:
            raise ValueError(f"a histogram needs at least one bin, so two edges or more; got shape {array.shape}")
        if not np.all(np.isfinite(array)) or not np.all(np.diff(array) > 0):
            raise ValueError("edges must be finite and increasing")
        object.__setattr__(self, "edges", tuple(array.tolist()))
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "rows", rows if rows is None else checks.count("rows", rows))
        Sensitivity.one_hot(columns)

    @property
    def sensitivity(self) -> Sensitivity:
        """Of all counts together, in the l2 norm."""
        return Sensitivity.one_hot(self.columns)

    def counts(self, values: ArrayLike) -> Floats:
        """The exact counts, of shape (columns, bins): private, and only for a release."""
        table = np.asarray(values, dtype=np.float64)
        table = table[:, None] if table.ndim == 1 else table
        if table.ndim != 2 or table.shape[1] != self.columns:
            raise ValueError(f"expected a table of {self.columns} columns, got shape {table.shape}")
        bins = len(self.edges) - 1
        out = np.empty((self.columns, bins))
        for k in range(self.columns):
            column = table[:, k]
            column = column[~np.isnan(column)]
            index = np.clip(np.searchsorted(self.edges, column, side="right") - 1, 0, bins - 1)
            out[k] = np.bincount(index, minlength=bins)
        return out

    def bound(self, values: ArrayLike) -> float:
        """What no count exceeds: the number of rows, which is public."""
        return float(self.rows or max(len(np.asarray(values)), 1))

    def draw(self, grant: Grant, values: ArrayLike) -> Floats:
        """Noisy counts, of shape (columns, bins), or (bins,) for one column given as a vector."""
        counts = self.counts(values)
        noisy = GaussianVector(self.sensitivity, self.bound(values)).draw(grant, counts)
        return noisy[0] if np.ndim(values) == 1 else noisy
