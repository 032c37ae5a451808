"""What a row adds to the scores is a function of that row and of the history, and never more than its units.

On any history the scores of a table are, to the last unit, the sum of those of its rows, each alone: so whichever way
scores are brought up to date, by changed rows or from all of them, and whatever others are there, nobody's part moves.
"""

import numpy as np
import pytest
from scipy.sparse import csr_array

from tacit.problems import LOGISTIC, SQUARED, SQUARED_HINGE
from tacit.solvers import FrankWolfe
from tacit.solvers.frank_wolfe import rows, scores
from tacit.solvers.frank_wolfe.path import Path
from tacit.solvers.frank_wolfe.rows import Scoring

N, T = 9, 25
LIMITS = {LOGISTIC: 0.9, SQUARED: 6.0, SQUARED_HINGE: 2.0}


def walked(Z, targets, scoring, path, history, lazy):
    """The scores after each step of a history."""
    state = scores.scores_for(Z, targets, scoring, path, "bucket", exact=lazy)
    found = [state.scores.copy()]
    for t, (j, sign) in enumerate(history, 1):
        state.step(t, j, sign)
        if lazy:
            found.append(np.rint(state._scale * state._rates).astype(np.int64) + state._constants)
        else:
            found.append(state.scores.copy())
    return np.array(found)


def table(rng, d, dtype, bound):
    """Entries of many sizes, most of them beyond the bound; one column is in every row."""
    Z = rng.normal(size=(N, d)) * 10.0 ** rng.uniform(-2.0, 2.0, size=(N, 1)) * (rng.random((N, d)) < 0.4)
    Z[:, 0] = 2.0 * bound
    return csr_array(Z.astype(dtype))


@pytest.mark.whole
@pytest.mark.parametrize("by_column", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", LIMITS, ids=lambda loss: loss.name)
def test_scores_are_the_sum_of_those_of_rows_alone(loss, dtype, by_column, monkeypatch):
    if not by_column:
        monkeypatch.setattr(rows, "_MOST_VALUES", -1)
    units = 2**40
    for seed in range(4):
        rng = np.random.default_rng(seed)
        bound, d = (0.1, 3.3, 1.0 + 2.0**-24 + 2.0**-40, 0.7)[seed], (2, 5, 40, 5)[seed]
        Z, targets = table(rng, d, dtype, bound), rng.choice([-1.0, 1.0], N)
        scoring = Scoring(loss.code, bound, LIMITS[loss], loss.curvature, units, 0.3, (1e-4, 0.2)[seed % 2])
        history = [(int(rng.integers(d)) if rng.random() < 0.6 else 0, int(rng.choice([-1, 1]))) for _ in range(T - 1)]
        path = Path(T, 3.0 / bound, 2.0)
        whole = walked(Z, targets, scoring, path, history, lazy=False)
        alone = [
            walked(Z, np.where(np.arange(N) == i, targets, np.nan), scoring, path, history, lazy=False)
            for i in range(N)
        ]
        np.testing.assert_array_equal(whole, sum(alone))
        assert max(np.abs(one).max() for one in alone) <= units


@pytest.mark.whole
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_row_adds_more_than_its_units_to_scores_that_are_linear_in_the_scale(dtype):
    units = 2**40
    for bound in (0.1, 1.0 + 2.0**-24 + 2.0**-40):
        Z = csr_array(np.full((2, 2), 5.0, dtype=dtype))
        scoring = Scoring(SQUARED.code, bound, 3.0 + 1.0, SQUARED.curvature, units, 0.0, 0.0)
        history = [(0, -1)] * (T - 1)
        found = walked(Z, np.array([1.0, np.nan]), scoring, Path(T, 3.0 / bound, 2.0), history, lazy=True)
        assert np.abs(found).max() <= units


def test_steps_that_never_shorten_are_refused_before_anything_is_spent():
    with pytest.raises(ValueError, match="step must be at most"):
        FrankWolfe(step=1e17).check()
