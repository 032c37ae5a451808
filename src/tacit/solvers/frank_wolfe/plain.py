"""Without noise: the textbook algorithm in floating point, one product with all rows a step.

Nothing here is private, and nothing of it runs where a budget is finite.
"""

import math
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from tacit._types import Floats, Integers
from tacit.problems import LOGISTIC, LOSSES, SQUARED
from tacit.solvers.frank_wolfe.path import Path
from tacit.solvers.frank_wolfe.rows import Scoring

_BY_CODE = {loss.code: loss for loss in LOSSES.values()}


class PlainScores:
    """The gradient of all rows after every step, and its largest entry."""

    def __init__(self, Z: Any, targets: Floats, scoring: Scoring, path: Path) -> None:
        self._turned, self._present = _turned(Z, targets, scoring.bound)
        kind, self._is_sparse = self._turned.dtype, isinstance(Z, csr_array)
        self._absent, self._targets = np.flatnonzero(~self._present), np.where(self._present, targets, 0.0).astype(kind)
        self._scoring, self._path, self._loss = scoring, path, _BY_CODE[scoring.loss]
        self._now = np.zeros(len(targets), dtype=kind)
        self._gather()

    def _gather(self) -> None:
        slopes, limit = self._slopes(), self._scoring.limit
        np.clip(slopes, -limit, limit, out=slopes)
        slopes[self._absent] = 0.0
        self._gradient = self._turned @ slopes

    def _slopes(self) -> Floats:
        """Of all rows, in their precision: by one difference or one exponential where that is all it takes."""
        targets = self._targets
        if self._loss == SQUARED:
            return np.asarray(self._now - targets)  # a regression has no offset
        margins = self._now + self._now.dtype.type(self._scoring.offset)
        if self._loss == LOGISTIC:
            with np.errstate(over="ignore"):
                return np.asarray(-targets / (1.0 + np.exp(targets * margins)))
        return self._loss.derivative(margins, targets).astype(margins.dtype)

    def best(self) -> tuple[int, int]:
        """(j, sign) of the vertex along which the gradient falls most steeply."""
        j = int(np.abs(self._gradient).argmax())
        return j, -1 if self._gradient[j] > 0.0 else 1

    def step(self, t: int, j: int, sign: int) -> None:
        """Make iteration t."""
        self._now *= self._now.dtype.type(1.0 - self._path.lengths[t])
        self._add(j, self._path.gain(t, sign), self._now)
        self._gather()

    def _add(self, j: int, gain: float, margins: Floats) -> None:
        if self._is_sparse:
            low, high = self._turned.indptr[j : j + 2]
            margins[self._turned.indices[low:high]] += margins.dtype.type(gain) * self._turned.data[low:high]
        else:
            margins += margins.dtype.type(gain) * self._turned[j]

    def margins(self, chosen: Integers, weights: Floats) -> Floats:
        """Of all rows, for weights on these columns; absent rows have none."""
        out = np.zeros(len(self._present))
        for j, weight in zip(chosen.tolist(), weights.tolist(), strict=True):
            self._add(j, weight, out)
        out[~self._present] = math.nan
        return out


def _turned(Z: Any, targets: Floats, bound: float) -> tuple[Any, Any]:
    """The clipped rows by column, and which are present: those whose norm and target are finite."""
    if not isinstance(Z, csr_array):
        present = np.isfinite(targets) & np.isfinite(np.einsum("ij,ij->i", Z, Z, dtype=np.float64))
        return np.clip(np.where(present[:, None], Z, 0.0), -bound, bound).astype(Z.dtype, copy=False).T, present
    rows: Any = csr_array(Z, copy=True)
    rows.sum_duplicates()
    squares: Any = csr_array((rows.data.astype(np.float64) ** 2, rows.indices, rows.indptr), shape=rows.shape)
    present = np.isfinite(targets) & np.isfinite(np.asarray(squares.sum(axis=1)).ravel())
    kept = np.repeat(present, np.diff(rows.indptr))
    rows.data = np.where(kept, np.clip(rows.data, -bound, bound), 0.0).astype(rows.dtype)
    return rows.T.tocsr(), present
