"""Numbers of steps that are of no use are refused before the data is looked at."""

import numpy as np
import pytest

from tacit import Lasso, LinearSVC, LogisticRegression
from tacit.privacy import Budget, Unit
from tacit.problems import SQUARED
from tacit.problems.task import LinearTask
from tacit.solvers import Dual, FrankWolfe, Gradient, Greedy, Sgd, Text

UNREADABLE = object()  # data that cannot be looked at without another error
X = np.random.default_rng(0).normal(size=(40, 2))
Y = np.arange(40) % 2


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (LogisticRegression(solver=Gradient(n_iter=10**6)), "n_iter must be at most 100,000 for the gradient solver"),
        (Lasso(solver=Greedy(n_iter=10**6)), "n_iter must be at most 100,000 for the greedy solver"),
        (LogisticRegression(solver=Text(n_iter=10**6)), "n_iter must be at most 100,000 for the text solver"),
        (Lasso(solver=FrankWolfe(n_iter=10**6 + 1)), "n_iter must be at most 1,000,000 for the frank-wolfe solver"),
        (Lasso(solver=FrankWolfe(n_iter=10**400)), "n_iter must be at most 1,000,000 for the frank-wolfe solver"),
        (LinearSVC(solver=Sgd(n_passes=10**6)), "n_passes must be at most 100,000, got 1e"),
        (LinearSVC(solver=Dual(n_passes=10**400)), "n_passes must be within what float64 holds"),
        (LinearSVC(solver=Dual(batch_size=10**400)), "batch_size must be at most"),
        (Lasso(alpha=10**400), "alpha must be within what float64 holds"),
        (LogisticRegression(C=10**400), "C must be within what float64 holds"),
        (LogisticRegression(epsilon=10**400), "epsilon must be within what float64 holds"),
        (LogisticRegression(row_norm=10**400), "row_norm must be within what float64 holds"),
        (LogisticRegression(coef_bounds=(0, 10**400)), r"coef_bounds\[1\] must be within what float64 holds"),
    ],
)
def test_refused_before_the_data_is_looked_at(model, told):
    with pytest.raises(ValueError, match=told):
        model.fit(UNREADABLE, UNREADABLE)


def test_passes_in_too_many_steps_are_refused():
    rows = np.zeros((2_000, 1))
    with pytest.raises(ValueError, match="would make 20,000,000 steps, and at most 10,000,000 are of use"):
        LinearSVC(solver=Sgd(n_passes=10_000, batch_size=1), classes=[0, 1]).fit(rows, np.arange(2_000) % 2)


def test_as_many_steps_as_papers_make_are_planned():
    task = LinearTask(unit=Unit("row", 100), d=5, budget=Budget(1.0, 1e-6), loss=SQUARED, l1_radius=1.0)
    [release] = FrankWolfe(n_iter=400_000).at(task).releases(1.0)
    assert release.count == 400_000
