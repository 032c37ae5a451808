"""The whole gradient of dense rows: that of sparse ones, and exact."""

import math

import numpy as np
import pytest

from tacit.kernels.frank_wolfe import dense as kernels
from tacit.kernels.frank_wolfe.rows import MOST_UNITS
from tacit.problems.slopes import IS_LOGISTIC, slope

from .support import D, N, Run, either_loss, table, targets


@either_loss
def test_both_forms_of_the_gradient_agree(loss):
    run = Run(table(), targets(), loss, tolerance=0.0)
    for t in range(1, 15):
        run.step(t, t % D, 5.0 * (-1) ** t)
    dense = np.empty_like(run.scores)
    margins = run.entries @ run.w
    kernels.dense_gradient((run.entries, 1.5, run.present), run.rule, margins, dense)
    # The margins of the two are rounded differently, which may move a whole number by one.
    np.testing.assert_allclose(dense, run.scores, atol=N, rtol=0)
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
    kernels.dense_gradient((Z, 1.0, present), (y, 0.0, IS_LOGISTIC, 1.0, unit), margins, scores)
    expected = [0] * 4
    for i in np.flatnonzero(present):
        weight = unit * slope(margins[i], y[i], IS_LOGISTIC, 1.0)
        for j in range(4):
            expected[j] += int(weight * min(max(float(Z[i, j]), -1.0), 1.0))
    assert scores.tolist() == expected


def test_margins_are_those_of_clipped_entries():
    Z, chosen, weights = table(), np.array([0, 2, 7, 11]), np.array([0.5, -1.0, 2.0, 0.1])
    run, out = Run(Z, targets(), bits=2), np.empty(N)
    kernels.dense_margins(chosen, weights, (Z.toarray(), 1.5, run.present), out)
    np.testing.assert_allclose(out, run.entries[:, chosen] @ weights, atol=1e-12)
