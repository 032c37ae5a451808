"""Numbers of steps that are of no use are refused before the data is looked at."""

import numpy as np
import pytest

from tacit import Lasso, LinearSVC, LogisticRegression
from tacit.problems import SQUARED

UNREADABLE = object()  # data that cannot be looked at without another error
X = np.random.default_rng(0).normal(size=(40, 2))
Y = np.arange(40) % 2


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (LogisticRegression(n_iter=10**6, solver="gradient"), "n_iter must be at most 100,000 for the gradient solver"),
        (Lasso(n_iter=10**6, solver="greedy"), "n_iter must be at most 100,000 for the greedy solver"),
        (Lasso(n_iter=10**6 + 1, l1_radius=1.0), "n_iter must be at most 1,000,000 for any solver"),
        (Lasso(n_iter=10**400, solver="frank-wolfe"), "n_iter must be at most 1,000,000 for the frank-wolfe solver"),
        (LinearSVC(n_passes=10**6), "n_passes must be at most 100,000, got 1e"),
        (LinearSVC(n_passes=10**400), "n_passes must be within what float64 holds"),
        (LinearSVC(batch_size=10**400), "batch_size must be at most"),
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


def test_auto_refuses_what_the_solver_that_it_chooses_would():
    with pytest.raises(ValueError, match="n_iter must be at most 100,000 for the gradient solver"):
        LogisticRegression(n_iter=200_000, classes=[0, 1]).fit(X, Y)


def test_passes_in_too_many_steps_are_refused():
    rows = np.zeros((2_000, 1))
    with pytest.raises(ValueError, match="would make 20,000,000 steps, and at most 10,000,000 are of use"):
        LinearSVC(solver="sgd", n_passes=10_000, batch_size=1, classes=[0, 1]).fit(rows, np.arange(2_000) % 2)


def test_as_many_steps_as_papers_make_are_planned():
    from tacit.privacy import Budget
    from tacit.solvers import Options, Task, choose

    task = Task(100, 5, SQUARED, 1, False, False, Budget(1.0, 1e-6), options=Options(n_iter=400_000, l1_radius=1.0))
    assert choose("frank-wolfe", task).plan(task, 1.0).releases[0].count == 400_000
