"""The whole gradient of dense rows: that of sparse ones, and exact."""

import math

import numpy as np
import pytest

from tacit.kernels.frank_wolfe import dense as kernels
from tacit.kernels.frank_wolfe.rows import MOST_UNITS
from tacit.problems.slopes import IS_LOGISTIC, slope

from .support import CURVATURE, D, N, Run, either_loss, table, targets


@either_loss
@pytest.mark.parametrize("tolerance", [0.0, 0.05])
def test_both_forms_of_the_gradient_agree(loss, tolerance):
    """Dense rows are all looked at, and their slopes are as near as those of sparse ones."""
    run = Run(table(), targets(), loss, tolerance=tolerance, spare=1.0, radius=2.0, limit=99.0)
    n, state = N, (np.zeros(N), np.empty(N), np.zeros(N))
    entries, changes = (run.entries, 1.5, run.present), (np.empty(n, dtype=np.int64), np.empty(n))
    kernels.dense_slopes(run.present, run.rule, state[1])
    scores = np.empty_like(run.scores)
    kernels.dense_sum(entries, run.unit, state[1], scores)
    for t in range(1, 15):
        run.step(t, t % D, (-1) ** t)
        gain, allowed = (-1) ** t * run.gains[t], (CURVATURE[loss], tolerance)
        count = kernels.dense_look(t, t % D, gain, entries, run.rule, run.path, allowed, (state, changes))
        kernels.dense_add(count, entries, run.unit, state[1], changes, scores)
        assert np.abs(state[1] - run.exact_slopes).max() <= tolerance + 1e-12
        np.testing.assert_array_equal(scores, run.whole(state[1]))
    if tolerance == 0.0:  # the margins of the two are rounded differently, which may move a whole number by one
        np.testing.assert_allclose(scores, run.scores, atol=N, rtol=0)
    assert np.abs(run.scores).max() > 1e4


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_sums_of_dense_rows_are_exact(kind):
    rng = np.random.default_rng(6)
    n, unit = 3_000, float(MOST_UNITS)  # a sum in float64 would round
    Z, y = rng.normal(size=(n, 4)).astype(kind), targets(n)
    Z[5, 2], Z[9] = math.nan, math.inf
    present, scores = np.empty(n, dtype=bool), np.empty(4, dtype=np.int64)
    kernels.dense_presence(Z, y, present)
    assert np.flatnonzero(~present).tolist() == [5, 9]
    margins = rng.normal(size=n)
    slopes = np.array([slope(m, target, IS_LOGISTIC, 1.0) for m, target in zip(margins, y, strict=True)])
    kernels.dense_sum((Z, 1.0, present), unit, slopes, scores)
    expected = [0] * 4
    for i in np.flatnonzero(present):
        weight = unit * slopes[i]
        for j in range(4):
            expected[j] += int(weight * min(max(float(Z[i, j]), -1.0), 1.0))
    assert scores.tolist() == expected


def test_margins_are_those_of_clipped_entries():
    Z, chosen, weights = table(), np.array([0, 2, 7, 11]), np.array([0.5, -1.0, 2.0, 0.1])
    run, out = Run(Z, targets(), bits=2), np.empty(N)
    kernels.dense_margins(chosen, weights, (Z.toarray(), 1.5, run.present), out)
    np.testing.assert_allclose(out, run.entries[:, chosen] @ weights, atol=1e-12)
