"""Bounded rows, tasks and runs for tests of solvers."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge

from tacit.blocks import Bounded, GridTable
from tacit.privacy import Budget, Gate, NoiseSource, Plan, Unit
from tacit.problems import LOSSES, Penalty
from tacit.problems.task import LinearTask
from tacit.solvers import SOLVERS

CLASSES = 3
either = SimpleNamespace(
    intercept=pytest.mark.parametrize("fit_intercept", [True, False], ids=["intercept", "no intercept"]),
    table=pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"]),
    adjacency=pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"]),
)


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
    **facts,
):
    """A task that asks for these penalties; `facts` are further fields of `LinearTask`."""
    return LinearTask(
        unit=Unit("row", n),
        d=d,
        budget=Budget(epsilon, delta, adjacency),
        sparse=sparse,
        loss=LOSSES[loss],
        fit_intercept=fit_intercept,
        **({"outputs": CLASSES if loss == "multinomial" else 1, "penalty": asking_for(penalties)} | facts),
    )


def asking_for(penalties):
    """A penalty of these kinds."""
    return Penalty(
        l1=1.0 if "l1" in penalties else 0.0,
        l2=1.0 if "l2" in penalties else 0.0,
        high=1.0 if "bounds" in penalties else math.inf,
    )


def bounded(Z, targets, l2=0.0, l1=0.0, **fields):
    """Rows as an algorithm is handed them, with the same strengths for all weights."""
    d = Z.shape[1]
    return Bounded(Z, targets, Penalty(l2=np.full(d, l2), l1=np.full(d, l1)), **fields)


def table(data):
    """The rows as a plain array."""
    return data.Z.toarray() if isinstance(data.Z, csr_array) else data.Z


def on_grid(Z):
    """Rows rounded as bounding does it."""
    return GridTable.of(Z).rows.astype(np.float64)


def rows(loss, n, d, sparse=False, seed=0):
    """Rows as a fit would hand them over, with targets that a linear model explains in part."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, d)) @ (np.eye(d) + 0.3 * rng.normal(size=(d, d)))
    if sparse:
        Z *= rng.random((n, d)) < 0.5
        Z *= np.minimum(1.0, math.sqrt(d) / np.maximum(np.linalg.norm(Z, axis=1), 1e-9))[:, None]
    else:
        Z = np.clip(Z / Z.std(axis=0), -3.0, 3.0)
    Z = on_grid(Z)
    margins = 0.3 + Z @ rng.normal(size=(d, CLASSES)) / math.sqrt(d) + 0.5 * rng.normal(size=(n, CLASSES))
    if loss == "squared":
        targets = margins[:, 0].copy()  # in a row, as a fit has them
    elif loss == "multinomial":
        targets = margins.argmax(axis=1).astype(np.float64)
    else:
        targets = np.where(margins[:, 0] > 0, 1.0, -1.0)
    return bounded(csr_array(Z) if sparse else Z, targets)


def spread_rows(loss, n, d):
    """Rows of independent columns, with targets of either kind that follow their sum."""
    rng = np.random.default_rng(0)
    Z = np.clip(rng.normal(size=(n, d)), -3, 3)
    margins = 0.5 * Z.sum(axis=1) / math.sqrt(d) + rng.normal(size=n)
    if loss == "squared":
        targets = np.clip(margins / margins.std(), -3, 3)
    elif loss == "multinomial":
        targets = np.digitize(margins, [-0.5, 0.5]).astype(np.float64)
    else:
        targets = np.where(margins > 0, 1.0, -1.0)
    return bounded(on_grid(Z / Z.std(axis=0)), targets)


def check_against_scikit_learn(run, loss, fit_intercept, sparse, within):
    """Without noise the objective is that of scikit-learn's minimum, but for this part of it."""
    n, d = 1500, 9
    data = rows(loss, n, d, sparse, seed=1)
    weights = run(task(loss, n, d, sparse, fit_intercept, epsilon=math.inf), data, l2=0.01).weights
    if not fit_intercept:
        assert not weights[:, -1].any()
    best = objective(loss, data, scikit_learn(loss, data, 0.01, fit_intercept), 0.01)
    assert objective(loss, data, weights, 0.01) <= best * (1 + within)


def promise(solver, problem):
    """What a solver with the whole budget will release, and with which noise."""
    return Plan(*solver.at(problem).releases(1.0)).calibrate(problem.budget, problem.unit, solver.name)


def solved(solver, problem, data, seed=0):
    """Run a solver on the whole budget; the gate checks that the plan was kept."""
    with Gate(promise(solver, problem), NoiseSource(seed)) as gate:
        return solver.at(problem).run(data, gate)


def penalised(kind, problem, data, l2=0.0, l1=0.0, low=-math.inf, high=math.inf, seed=0, **options):
    """Run a solver of this kind, with these options and penalties, on the whole budget."""
    penalty = Penalty(l2=np.full(problem.d, l2), l1=np.full(problem.d, l1), low=low, high=high)
    return solved(kind(**options), problem, replace(data, penalty=penalty), seed)


def solve(problem, data, l2=0.0, l1=0.0, seed=0, solver="gradient"):
    """Run a solver, given by its name or as an object; strengths above 0 take the place of those that data has."""
    chosen = SOLVERS[solver]() if isinstance(solver, str) else solver
    if l2 or l1:
        data = replace(data, penalty=Penalty(l2=np.full(problem.d, l2), l1=np.full(problem.d, l1)))
    return solved(chosen, problem, data, seed)


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
