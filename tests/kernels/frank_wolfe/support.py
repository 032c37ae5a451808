"""A run of Frank-Wolfe on sparse rows by the kernels alone, and what it should have found."""

import math

import numpy as np
import pytest
from scipy.sparse import csr_array

from tacit.kernels.frank_wolfe import columns as by_column
from tacit.kernels.frank_wolfe import steps
from tacit.kernels.frank_wolfe.rows import clipped
from tacit.privacy.noise.vertices import empty_buckets
from tacit.problems.slopes import IS_LOGISTIC, IS_SQUARED, IS_SQUARED_HINGE, slope
from tacit.solvers.frank_wolfe.path import Path

N, D, T = 30, 12, 40
CURVATURE = {IS_LOGISTIC: 0.25, IS_SQUARED: 1.0, IS_SQUARED_HINGE: 2.0}
either_loss = pytest.mark.parametrize("loss", CURVATURE, ids=["logistic", "squared", "squared_hinge"])


def table(seed=0, n=N, d=D, kind=np.float64):
    """Sparse rows; some rows and columns are empty, and one entry is a stored zero."""
    rng = np.random.default_rng(seed)
    dense = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.4)
    dense[3], dense[:, 5], dense[0, 0] = 0.0, 0.0, 7.0
    Z = csr_array(dense.astype(kind))
    Z.data[0] = 0.0
    return Z


def targets(n=N, seed=1):
    return np.where(np.random.default_rng(seed).random(n) < 0.5, 1.0, -1.0)


class Run:
    """The arrays of a run on sparse rows, by the kernels alone."""

    def __init__(
        self,
        Z,
        y,
        loss=IS_LOGISTIC,
        bound=1.5,
        limit=1.0,
        tolerance=0.05,
        spare=0.5,
        unit=1e6,
        offset=0.2,
        bits=0,
        radius=0.5,
        valued=True,
    ):
        n, d = Z.shape
        self.Z, self.y, self.loss, self.offset = Z, y, loss, offset
        self.entries = np.clip(Z.toarray().astype(np.float64), -bound, bound)
        self.rule, self.unit, self.limit = (y, offset, loss, limit, unit), unit, limit
        self.allowed = CURVATURE[loss], spare * tolerance
        self.room = (1.0 - spare) * tolerance  # for what shrinking does between sweeps
        place = Z.data, Z.indices, Z.indptr, bound
        self.slopes, self.present = np.empty(n), np.empty(n, dtype=bool)
        self.scores, counts = np.zeros(d, dtype=np.int64), np.zeros((2, -(-d // 2**bits)), dtype=np.int32)
        halves, seen = ((0, n // 2), (n // 2, n)), (self.present, self.slopes, self.scores)
        rises = [
            by_column.look_at_rows(*ends, place, bits, self.rule, (*seen, counts[k])) for k, ends in enumerate(halves)
        ]
        self.canonical = all(rises)
        starts = np.concatenate([[0], np.cumsum(counts.sum(axis=0))]).astype(np.int32)
        rows, values = np.empty(starts[-1], dtype=np.int32), np.empty(starts[-1] if valued else 0, dtype=Z.dtype)
        for ends, following in ((halves[1], starts[:-1] + counts[0]), (halves[0], starts[:-1].copy())):
            by_column.list_rows(*ends, place, bits, self.present, following, rows, values)
        self.listed, self.starts, self.rows = (place, (bits, starts, rows, values)), starts, rows
        path = Path(T, radius)
        self.lengths, self.gains = path.lengths, path.gains
        self.sweeps = path.sweeps(CURVATURE[loss] * bound, self.room)
        self.path = path.gains, *path.scales, self.sweeps
        # Side by side, as the solver keeps them.
        self.margins, self.slopes, self.anchors = np.column_stack([np.zeros(n), self.slopes, np.full(n, math.inf)]).T
        self.met = np.zeros(n + 1, dtype=np.int32)
        self.changes = np.empty(n, dtype=np.int32), np.empty(n)
        self.noted, self.marks = np.empty(d, dtype=np.int64), np.zeros(d, dtype=np.int32)
        self.w = np.zeros(d)

    def step(self, t, j, sign=1):
        gain = sign * self.gains[t]
        self.w = (1.0 - self.lengths[t]) * self.w
        self.w[j] += gain
        problem = self.listed, self.rule, self.path, self.allowed
        state = (self.margins, self.slopes, self.anchors), self.met, self.changes
        told = self.scores, empty_buckets(0, 0), (self.noted, self.marks)
        return steps.sparse_step(t, j, gain, steps.NOTED, problem, state, told)

    @property
    def exact_slopes(self):
        margins = self.entries @ self.w + self.offset
        exact = [clipped(slope(m, y, self.loss, 1.0), self.limit) for m, y in zip(margins, self.y, strict=True)]
        return np.where(self.present, exact, 0.0)

    def whole(self, slopes):
        return np.trunc((self.unit * slopes)[:, None] * self.entries).astype(np.int64).sum(axis=0)
