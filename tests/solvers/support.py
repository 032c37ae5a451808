"""Bounded rows, tasks and runs for tests of solvers."""

import math

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge

from tacit.privacy import Budget, Gate, NoiseSource
from tacit.problems import LOSSES, Penalty
from tacit.solvers import SOLVERS, Options, Rows, Task

CLASSES = 3
either_intercept = pytest.mark.parametrize("fit_intercept", [True, False], ids=["intercept", "no intercept"])
either_table = pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
either_adjacency = pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])


def task(
    loss,
    n,
    d,
    sparse=False,
    fit_intercept=True,
    epsilon=1.0,
    adjacency="add-remove",
    delta=1e-6,
    penalties=("l2",),
    **options,
):
    outputs = CLASSES if loss == "multinomial" else 1
    budget = Budget(epsilon, delta, adjacency)
    return Task(n, d, LOSSES[loss], outputs, sparse, fit_intercept, budget, penalties, Options(**options))


def table(data):
    """The rows as a plain array."""
    return data.Z.toarray() if isinstance(data.Z, csr_array) else data.Z


def rows(loss, n, d, sparse=False, seed=0):
    """Rows as the driver would hand them over, with targets that a linear model explains in part."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, d)) @ (np.eye(d) + 0.3 * rng.normal(size=(d, d)))
    if sparse:
        Z *= rng.random((n, d)) < 0.5
        Z *= np.minimum(1.0, math.sqrt(d) / np.maximum(np.linalg.norm(Z, axis=1), 1e-9))[:, None]
    else:
        Z = np.clip(Z / Z.std(axis=0), -3.0, 3.0)
    margins = 0.3 + Z @ rng.normal(size=(d, CLASSES)) / math.sqrt(d) + 0.5 * rng.normal(size=(n, CLASSES))
    if loss == "squared":
        targets = margins[:, 0]
    elif loss == "multinomial":
        targets = margins.argmax(axis=1).astype(np.float64)
    else:
        targets = np.where(margins[:, 0] > 0, 1.0, -1.0)
    return Rows(csr_array(Z) if sparse else Z, targets)


def solve(problem, data, l2=0.0, l1=0.0, seed=0, solver="gradient"):
    """Run a solver on the whole budget; the gate checks that the plan was kept."""
    chosen = SOLVERS[solver]
    penalty = Penalty(l2=np.full(problem.d, l2), l1=np.full(problem.d, l1))
    with Gate(chosen.plan(problem, 1.0).calibrate(problem.budget, problem.unit, "test"), NoiseSource(seed)) as gate:
        return chosen.run(problem, data, penalty, gate)


def objective(loss, data, weights, l2=0.0, l1=0.0):
    """The mean loss plus the penalty; the intercept is not penalised."""
    margins = table(data) @ weights[:, :-1].T + weights[:, -1]
    if loss == "hinge":  # without the rounding of its kink
        values = np.maximum(1.0 - data.targets * margins[:, 0], 0.0)
    else:
        values = LOSSES[loss].value(margins if loss == "multinomial" else margins[:, 0], data.targets)
    coef = weights[:, :-1]
    return float(values.mean() + l2 / 2 * np.sum(coef**2) + l1 * np.sum(np.abs(coef)))


def scikit_learn(loss, data, l2, fit_intercept):
    """The weights of the non-private peer."""
    Z = table(data)
    n = len(data.targets)
    if loss != "squared":
        model = LogisticRegression(C=1.0 / (n * l2), fit_intercept=fit_intercept, tol=1e-10, max_iter=5000)
    elif l2 > 0:
        model = Ridge(alpha=n * l2, fit_intercept=fit_intercept)
    else:
        model = LinearRegression(fit_intercept=fit_intercept)
    model.fit(Z, data.targets)
    coef = np.atleast_2d(model.coef_)
    return np.hstack([coef, np.broadcast_to(np.reshape(model.intercept_, (-1, 1)), (len(coef), 1))])
