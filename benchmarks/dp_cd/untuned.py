"""The library's own rules on the problems of the DP-CD benchmark: no passes, no step and no clip are given."""

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.dp_cd.methods import Coordinate
from benchmarks.dp_cd.problems import Problem
from benchmarks.frame import Floats
from tacit import Lasso, LogisticRegression
from tacit.problems import LOSSES
from tacit.solvers import SOLVERS
from tacit.solvers import Coordinate as CoordinateSolver

Rule = Callable[[Problem, int], Floats | None]


def _solver(solver: str, private: bool = False) -> Rule:
    """A solver with its own rules, on the paper's problem; labels are in units of their public scale."""
    method = Coordinate(solver, solver=solver, private=private, scaled=True)

    def fit(problem: Problem, seed: int) -> Floats | None:
        if not method.serves(problem):
            return None
        return method.fit(problem, method.run(problem, None), method.promise(problem, None), seed)[0]

    return fit


def _estimator(solver: str, declared: bool = False, raw: bool = False) -> Rule:
    """A whole fit on standardised columns; or on imbalanced ones, left as they are within their public bounds."""

    def fit(problem: Problem, seed: int) -> Floats | None:
        if (problem.bounds is not None) != raw or LOSSES[problem.loss] not in SOLVERS[solver].serves.losses:
            return None
        logistic = problem.loss == "logistic"
        known: dict[str, Any] = {"solver": CoordinateSolver(rescale=False) if raw else solver}
        if raw:
            known["bounds"] = [(-bound, bound) for bound in problem.bounds]
        elif declared:
            known["row_norm"] = math.sqrt(problem.X.shape[1])
        if (raw or declared) and not logistic:
            known["y_bounds"] = (-problem.label_bound, problem.label_bound)
        known |= {"epsilon": problem.epsilon, "delta": problem.delta, "random_state": seed}
        penalty = {"C": 1.0 / (problem.l2 * len(problem.y))} if logistic else {"alpha": problem.l1}
        model: Any = (LogisticRegression if logistic else Lasso)(fit_intercept=False, **penalty, **known)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the seed, and of a budget too small to find scales
            return np.ravel(model.fit(problem.X, problem.y).coef_)

    return fit


_DECLARED = "`row_norm` and `y_bounds` declared"
RULES: dict[str, tuple[str, Rule]] = {
    "coordinate": ("DP-CD, constants declared", _solver("coordinate")),
    "coordinate private": ("DP-CD, private constants, column bounds declared", _solver("coordinate", private=True)),
    "greedy": ("greedy, constants declared", _solver("greedy")),
    "greedy private": ("greedy, private constants, column bounds declared", _solver("greedy", private=True)),
    "coordinate fit raw": (
        "`solver=Coordinate(rescale=False)`, column bounds and `y_bounds` declared",
        _estimator("coordinate", raw=True),
    ),
    "coordinate fit": ('`solver="coordinate"`, nothing declared', _estimator("coordinate")),
    "coordinate fit declared": (f'`solver="coordinate"`, {_DECLARED}', _estimator("coordinate", declared=True)),
    "greedy fit": ('`solver="greedy"`, nothing declared', _estimator("greedy")),
    "greedy fit declared": (f'`solver="greedy"`, {_DECLARED}', _estimator("greedy", declared=True)),
}


def error(rule: str, problem: Problem, seed: int) -> float | None:
    """The relative error of one fit, or None if the problem cannot be asked of it."""
    weights = RULES[rule][1](problem, seed)
    return None if weights is None else float(problem.relative_error(weights)[0])
