import math

import numpy as np
import pytest
from scipy.sparse import csr_array

from tacit.blocks import Passes
from tacit.kernels.rows import BLOCK
from tests.solvers.support import bounded, either, rows, table, task

# --- one row never touches another -------------------------------------------------------------------------


@either.intercept
@either.table
@pytest.mark.parametrize("d", [7, 130])
def test_what_a_row_contributes_does_not_depend_on_the_rows_beside_it(d, fit_intercept, sparse):
    """A row among empty ones, and the same row alone: the same bits, whatever BLAS does with the shapes."""
    n = 40
    whole = table(rows("squared", n, d, sparse, seed=11))
    rng = np.random.default_rng(12)
    v = rng.normal(size=d + 1)
    v /= np.linalg.norm(v)
    diagonal, radius = 0.5 + rng.random(d + 1), 0.8 * math.sqrt(d)

    def passes(Z):
        Z = csr_array(Z) if sparse else np.ascontiguousarray(Z)
        n_rows = Z.shape[0]
        return Passes(task("squared", n_rows, d, sparse, fit_intercept), bounded(Z, np.zeros(n_rows)))

    for i in range(0, n, 3):
        Z = np.zeros((n, d))
        Z[i] = whole[i]
        among, alone = passes(Z), passes(whole[i : i + 1])
        for call in (
            lambda p: p.second_moments(radius)[:d, :d],
            lambda p: p.squares(radius)[:d],
            lambda p: p.curvature_times(v, diagonal, radius)[:d],
        ):
            np.testing.assert_array_equal(call(among), call(alone))


@either.intercept
@either.table
def test_passes_are_the_textbook_sums(fit_intercept, sparse):
    n, d = BLOCK + 200, 5
    data = rows("squared", n, d, sparse, seed=13)
    bias = 1.0 if fit_intercept else 0.0
    wide = np.hstack([table(data), np.full((n, 1), bias)])
    radius = float(np.median(np.linalg.norm(wide, axis=1)))  # half of the rows are longer
    clipped = wide * np.minimum(1.0, radius / np.maximum(np.linalg.norm(wide, axis=1), 1e-9))[:, None]
    passes = Passes(task("squared", n, d, sparse, fit_intercept), data)
    np.testing.assert_allclose(passes.second_moments(radius), clipped.T @ clipped, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(passes.squares(radius), (clipped**2).sum(axis=0), rtol=1e-8, atol=1e-8)
    rng = np.random.default_rng(14)
    v, diagonal = rng.normal(size=d + 1), 0.5 + rng.random(d + 1)
    scaled = wide / np.sqrt(diagonal)
    scaled *= np.minimum(1.0, radius / np.maximum(np.linalg.norm(scaled, axis=1), 1e-9))[:, None]
    expected = scaled.T @ (scaled @ v)
    np.testing.assert_allclose(passes.curvature_times(v, diagonal, radius), expected, rtol=1e-8, atol=1e-8)


def test_long_finite_rows_do_not_overflow_the_second_moments():
    Z = np.ones((5, 3))
    Z[2] = 1e300
    moments = Passes(task("squared", 5, 3), bounded(Z, np.zeros(5))).second_moments(2.0)
    np.testing.assert_allclose(moments, np.full((4, 4), 4.0), rtol=1e-8)
