"""What the sparse DP Frank-Wolfe paper prints, and its Algorithm 1: the whole gradient from all rows in every step."""

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

SPEED = {  # Table 3: at epsilon 1 and 0.1, Algorithm 2 + 4 and Algorithm 2
    "News20": {1.0: (81.69, 17.83), 0.1: (93.51, 19.05)},
    "URL": {1.0: (9.99, 1.02), 0.1: (2451.80, 95.58)},
    "RCV1": {1.0: (19.44, 1.36), 0.1: (20.37, 1.82)},
    "Web": {1.0: (581.25, 21.24), 0.1: (537.65, 20.79)},
    "KDDA": {1.0: (1239.64, 206.50), 0.1: (2245.56, 368.96)},
}
SCORES = {  # Table 4: accuracy, AUC, sparsity
    "RCV1": (0.9053, 0.9729, 0.0581),
    "News20": (0.9237, 0.9865, 0.7519),
    "news20": (0.9237, 0.9865, 0.7519),  # of the paper's News20, which has the same texts
}


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
