"""Bounded rows, tasks and runs for tests of solvers."""

import math

import numpy as np
from scipy.sparse import csr_array

from tacit.privacy import Budget, NoiseSource
from tacit.solvers import GradientSolver, Rows, Task

LOSSES = ("squared", "logistic", "multinomial")
CLASSES = 3


def task(loss, n, d, sparse=False, fit_intercept=True, epsilon=1.0, adjacency="add-remove", delta=1e-6):
    outputs = CLASSES if loss == "multinomial" else 1
    return Task(n, d, loss, outputs, sparse, fit_intercept, Budget(epsilon, delta, adjacency))


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
    targets = {
        "squared": margins[:, 0],
        "logistic": np.where(margins[:, 0] > 0, 1.0, -1.0),
        "multinomial": margins.argmax(axis=1).astype(np.float64),
    }[loss]
    return Rows(csr_array(Z) if sparse else Z, targets)


def solve(problem, data, ridge=0.0, seed=0):
    """Run the solver on the whole budget; the meter checks that the plan was kept."""
    solver = GradientSolver()
    with solver.plan(problem, 1.0).calibrate(problem.budget).meter(NoiseSource(seed)) as meter:
        return solver.run(problem, data, np.full(problem.d, ridge), meter)
