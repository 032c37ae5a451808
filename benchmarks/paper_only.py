"""Algorithm 1 of the Frank-Wolfe paper: the whole gradient from all rows in every iteration, for comparison only."""

import numpy as np
from tacit.solvers.frank_wolfe.ball_sparse import SparseRows

from tacit._types import Flags, Floats, Integers
from tacit.kernels.frank_wolfe_columns import Entries
from tacit.kernels.frank_wolfe_rows import clipped
from tacit.problems.compiled import kernel
from tacit.problems.slopes import slope


@kernel
def sparse_gradient(
    entries: Entries,
    present: Flags,
    targets: Floats,
    offset: float,
    loss: int,
    limit: float,
    unit: float,
    weights: Floats,
    scores: Integers,
) -> None:
    """The whole gradient at these weights, from all rows: what Algorithm 1 does in every iteration."""
    data, indices, indptr, bound = entries
    scores[:] = 0
    for i in range(len(present)):
        if present[i]:
            margin = offset
            for p in range(indptr[i], indptr[i + 1]):
                margin += weights[indices[p]] * clipped(data[p], bound)
            weight = unit * clipped(slope(margin, targets[i], loss, 1.0), limit)
            for p in range(indptr[i], indptr[i + 1]):
                scores[indices[p]] += int(weight * clipped(data[p], bound))


class RecomputedGradient(SparseRows):
    """Of CSR rows, computed anew from all of them after every step: Algorithm 1."""

    def _state(self, n: int) -> None:  # noqa: ARG002
        self._weights, self._all = np.zeros(len(self.scores)), np.arange(len(self.scores))

    def step(self, t: int, j: int, sign: int) -> None:
        """Make iteration t; all scores may have changed."""
        self._weights *= 1.0 - self._path.lengths[t]
        self._weights[j] += self._path.gain(t, sign)
        sparse_gradient(self._entries, self._present, *self._rule, self._weights, self.scores)
        self.sampler.changed(self._all)
