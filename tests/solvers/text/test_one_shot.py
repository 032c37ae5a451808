"""The one shot: its rule without noise, against NumPy; what it returns with noise; odd input."""

import math

import numpy as np
import pytest
from scipy.sparse import csr_array

from tacit import LogisticRegression
from tacit.solvers import OneShot, text
from tests.solvers.support import bounded, either, rows, solve, table, task
from tests.solvers.text.support import check_odd_rows, check_overflowing_row

quiet = pytest.mark.filterwarnings("ignore:.*(random_state is set|is not below 1/n):UserWarning")


def accuracy(data, weights):
    margins = table(data) @ weights[0, :-1] + weights[0, -1]
    return np.mean((margins > 0) == (data.targets > 0))


def reference(data, fit_intercept):
    """The rule without noise, from dense arrays."""
    Z, positive = table(data), data.targets > 0
    n, d = Z.shape
    X = Z / np.maximum(np.linalg.norm(Z, axis=1), math.sqrt(d))[:, None]
    p = min(max(positive.mean(), 1 / n), 1 - 1 / n) if fit_intercept else 0.5
    sizes = (np.abs(X) if isinstance(data.Z, csr_array) else X**2).sum(axis=0)
    with np.errstate(invalid="ignore"):
        coef = np.nan_to_num((positive - p) @ X / sizes) / (p * (1 - p)) / math.sqrt(d)
    if not fit_intercept:
        return np.append(coef, 0.0)
    thresholds = text.GRID * np.linalg.norm(coef)
    right = [np.count_nonzero((Z @ coef > t) == positive) for t in thresholds]
    return np.append(coef, -thresholds[int(np.argmax(right))])


@either.table
@either.intercept
def test_without_noise_it_is_the_rule(sparse, fit_intercept):
    data = rows("logistic", 200, 7, sparse)
    weights = solve(task("logistic", 200, 7, sparse, fit_intercept, math.inf), data, solver="one-shot").weights
    np.testing.assert_allclose(weights[0], reference(data, fit_intercept), rtol=1e-6)


@either.table
def test_noise_fades_into_the_rule(sparse):
    data = rows("logistic", 200, 7, sparse)
    apart = []
    for epsilon in (1e4, 1e7, 1e10):
        problem = task("logistic", 200, 7, sparse, fit_intercept=False, epsilon=epsilon)
        weights = solve(problem, data, solver="one-shot").weights[0]
        apart.append(np.abs(weights - reference(data, fit_intercept=False)).max())
    assert apart[0] > 5 * apart[1] > 25 * apart[2]
    assert apart[2] < 1e-2


def test_the_weight_of_a_common_word_is_the_difference_of_its_rates():
    n, d = 1_000, 2
    positive = np.arange(n) < 300
    Z = np.zeros((n, d))
    Z[:, 0] = np.where(np.arange(n) % 10 < np.where(positive, 6, 2), math.sqrt(d), 0.0)
    data = bounded(csr_array(Z), np.where(positive, 1.0, -1.0))
    coef = solve(task("logistic", n, d, True, epsilon=math.inf), data, solver="one-shot").weights[0, :-1] * math.sqrt(d)
    assert coef[0] == pytest.approx((0.6 - 0.2) / (0.3 * 0.6 + 0.7 * 0.2), rel=1e-6)
    assert coef[1] == 0.0


@either.table
@either.adjacency
def test_the_noise_it_states_is_that_of_its_weights(sparse, adjacency):
    problem = task("logistic", 400, 3, sparse, fit_intercept=False, epsilon=50.0, adjacency=adjacency)
    data = rows("logistic", 400, 3, sparse)
    runs = [solve(problem, data, seed=seed, solver="one-shot") for seed in range(300)]
    spread = np.std([run.weights[0, :-1] for run in runs], axis=0)
    np.testing.assert_allclose(spread, np.mean([run.noise[0, :-1] for run in runs], axis=0), rtol=0.15)


def test_it_learns_where_there_is_little_budget():
    rng = np.random.default_rng(0)
    n, d = 4_000, 3_000
    Z = np.zeros((n, d))
    positive = rng.random(n) < 0.3
    for word in range(10):
        Z[:, word] = rng.random(n) < np.where(positive == (word < 5), 0.5, 0.1)
    Z[np.arange(n)[:, None], rng.integers(10, d, size=(n, 5))] = 1.0
    Z *= math.sqrt(d) / np.maximum(np.linalg.norm(Z, axis=1), 1e-9)[:, None]
    data = bounded(csr_array(Z), np.where(positive, 1.0, -1.0))
    scores = [
        accuracy(data, solve(task("logistic", n, d, True, epsilon=0.3), data, seed=k, solver="one-shot").weights)
        for k in range(3)
    ]
    assert np.mean(scores) > 0.8  # the larger class is 0.7 of the rows


# --- odd input --------------------------------------------------------------------------------------------------------


@either.table
@either.adjacency
@either.intercept
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, math.inf])
def test_odd_rows_give_finite_weights(sparse, adjacency, fit_intercept, epsilon):
    problem = task("logistic", 5, 3, sparse, fit_intercept, epsilon, adjacency)
    check_odd_rows(lambda data: solve(problem, data, solver="one-shot"), sparse)


def test_a_row_that_overflows_is_as_good_as_absent():
    check_overflowing_row(lambda data: solve(task("logistic", 50, 4, True), data, solver="one-shot"))


@pytest.mark.parametrize("solver", ["one-shot", "text", "gradient"])
@quiet
def test_how_rows_are_stored_does_not_matter(solver):
    rng = np.random.default_rng(0)
    dense = (rng.random((60, 300)) < 0.03) * rng.random((60, 300))
    y = rng.integers(0, 2, size=60)
    plain = csr_array(dense)
    back = np.concatenate([np.arange(plain.indptr[i], plain.indptr[i + 1])[::-1] for i in range(60)])
    unsorted = csr_array((plain.data[back], plain.indices[back], plain.indptr), shape=plain.shape)
    halves = csr_array((np.repeat(plain.data / 2, 2), np.repeat(plain.indices, 2), plain.indptr * 2), shape=plain.shape)
    zeros = csr_array(dense)
    zeros.data = np.append(zeros.data, 0.0)
    zeros.indices = np.append(zeros.indices, np.setdiff1d(np.arange(300), plain[[59]].indices)[0])
    zeros.indptr = np.append(zeros.indptr[:-1], zeros.indptr[-1] + 1)
    wide = csr_array((plain.data, plain.indices.astype(np.int64), plain.indptr.astype(np.int64)), shape=plain.shape)
    whole = csr_array((np.ceil(plain.data).astype(np.int32), plain.indices, plain.indptr), shape=plain.shape)

    def fitted(X):
        before = X.copy()
        model = LogisticRegression(epsilon=1.0, row_norm=1.0, solver=solver, random_state=0).fit(X, y)
        for part in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(X, part), getattr(before, part))
        return np.append(model.coef_[0], model.intercept_)

    usual, numbers = fitted(plain), fitted(whole.astype(np.float64))
    for other in (unsorted, halves, zeros, wide):
        np.testing.assert_allclose(fitted(other), usual, rtol=1e-9)
    np.testing.assert_allclose(fitted(whole), numbers, rtol=1e-9)
    np.testing.assert_allclose(fitted(whole.astype(np.float32)), numbers, rtol=1e-4, atol=1e-6)


@quiet
def test_what_it_does_not_serve_is_refused_before_data_is_read():
    X, y = csr_array(np.eye(30)), np.arange(30) % 3
    with pytest.raises(ValueError, match="does not serve the multinomial loss of more than two classes"):
        LogisticRegression(solver="one-shot").fit(X, y)
    with pytest.raises(TypeError, match="unexpected keyword argument 'n_iter'"):
        OneShot(n_iter=3)
    with pytest.raises(ValueError, match="does not serve bounds on coefficients"):
        LogisticRegression(solver="one-shot", coef_bounds=(0, 1)).fit(X, y == 0)
