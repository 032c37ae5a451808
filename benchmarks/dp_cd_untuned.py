"""The library's own rules on the problems of the DP-CD benchmark: no passes, no step and no clip are given."""

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_cd_methods import Coordinate
from dp_cd_problems import Problem
from tacit import Lasso, LogisticRegression
from tacit.problems import LOSSES
from tacit.solvers import SOLVERS

Floats = NDArray[np.float64]


def _solver(solver: str, private: bool = False) -> Callable[[Problem, int], Floats | None]:
    """A solver with its own rules, on the paper's problem; labels are in units of their public scale."""
    method = Coordinate(solver, solver, private=private, scaled=True)

    def fit(problem: Problem, seed: int) -> Floats | None:
        if not method.serves(problem):
            return None
        return method.fit(problem, method.task(problem, None), method.calibrated(problem, None), seed)[0]

    return fit


def _estimator(solver: str, declared: bool) -> Callable[[Problem, int], Floats | None]:
    """A whole fit. Estimators penalise standardised columns, so that imbalanced problems cannot be asked of them."""

    def fit(problem: Problem, seed: int) -> Floats | None:
        if problem.bounds is not None or LOSSES[problem.loss] not in SOLVERS[solver].losses:
            return None
        logistic = problem.loss == "logistic"
        known: dict[str, Any] = {"row_norm": math.sqrt(problem.X.shape[1])} if declared else {}
        if declared and not logistic:
            known["y_bounds"] = (-problem.label_bound, problem.label_bound)
        known |= {"epsilon": problem.epsilon, "delta": problem.delta, "solver": solver, "random_state": seed}
        model: Any = (
            LogisticRegression(C=1.0 / (problem.l2 * len(problem.y)), fit_intercept=False, **known)
            if logistic
            else Lasso(alpha=problem.l1, fit_intercept=False, **known)
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the seed, and of a budget too small to find scales
            return np.ravel(model.fit(problem.X, problem.y).coef_)

    return fit


RULES: dict[str, tuple[str, Callable[[Problem, int], Floats | None]]] = {
    "coordinate": ("DP-CD, constants declared", _solver("coordinate")),
    "coordinate private": ("DP-CD, private constants, column bounds declared", _solver("coordinate", private=True)),
    "greedy": ("greedy, constants declared", _solver("greedy")),
    "greedy private": ("greedy, private constants, column bounds declared", _solver("greedy", private=True)),
    "coordinate fit": ('`solver="coordinate"`, nothing declared', _estimator("coordinate", declared=False)),
    "coordinate fit declared": (
        '`solver="coordinate"`, `row_norm` and `y_bounds` declared',
        _estimator("coordinate", declared=True),
    ),
    "greedy fit": ('`solver="greedy"`, nothing declared', _estimator("greedy", declared=False)),
    "greedy fit declared": (
        '`solver="greedy"`, `row_norm` and `y_bounds` declared',
        _estimator("greedy", declared=True),
    ),
}


def error(rule: str, problem: Problem, seed: int) -> float | None:
    """The relative error of one fit, or None if the problem cannot be asked of it."""
    weights = RULES[rule][1](problem, seed)
    return None if weights is None else float(problem.relative_error(weights)[0])
