"""Algorithm 1 of the sparse DP Frank-Wolfe paper: the whole gradient from all rows in every step."""

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from benchmarks.frame import Floats
from tacit._types import Flags, Integers
from tacit.kernels.frank_wolfe.columns import Entries
from tacit.kernels.frank_wolfe.rows import Rule, clipped
from tacit.privacy.mechanisms.vertices import SAMPLERS
from tacit.problems.compiled import kernel
from tacit.problems.slopes import slope
from tacit.solvers.frank_wolfe.path import Path
from tacit.solvers.frank_wolfe.rows import Scoring, SparseRows
from tacit.solvers.frank_wolfe.scores import Queue


@kernel
def sparse_gradient(entries: Entries, present: Flags, rule: Rule, weights: Floats, scores: Integers) -> None:
    """The whole gradient at these weights, from all rows."""
    data, indices, indptr, bound = entries
    targets, offset, loss, limit, unit = rule
    scores[:] = 0
    for i in range(len(present)):
        if present[i]:
            margin = offset
            for p in range(indptr[i], indptr[i + 1]):
                margin += weights[indices[p]] * clipped(data[p], bound)
            weight = unit * clipped(slope(margin, targets[i], loss, 1.0), limit)
            for p in range(indptr[i], indptr[i + 1]):
                scores[indices[p]] += int(weight * clipped(data[p], bound))


class RecomputedScores:
    """Of CSR rows, computed anew from all of them after every step; for comparison only."""

    rounds = None

    def __init__(self, rows: SparseRows, rule: Rule, path: Path, sampler: Any) -> None:
        self._rows, self._rule, self._path, self.sampler = rows, rule, path, sampler
        self.scores, self.margins = rows.scores, rows.margins
        self._weights, self._all = np.zeros(len(rows.scores)), np.arange(len(rows.scores))

    @classmethod
    def of(cls, Z: csr_array, targets: Floats, scoring: Scoring, path: Path, sampler: str | None) -> "RecomputedScores":
        """From the rows."""
        rows = SparseRows.of(Z, targets, scoring)
        limit = len(targets) * scoring.units
        told = Queue(rows.scores) if sampler is None else SAMPLERS[sampler](rows.scores, limit)
        return cls(rows, scoring.rule(targets), path, told)

    def step(self, t: int, j: int, sign: int) -> None:
        """Make iteration t; all scores may have changed."""
        self._weights *= 1.0 - self._path.lengths[t]
        self._weights[j] += self._path.gain(t, sign)
        sparse_gradient(self._rows.listed[0], self._rows.present, self._rule, self._weights, self.scores)
        self.sampler.changed(self._all)
