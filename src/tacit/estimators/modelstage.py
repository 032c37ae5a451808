"""A linear model as the last step of a pipeline: what is declared of it, and what the steps before it know."""

import math
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tacit._types import Floats
from tacit.blocks.lazy import BlockTable
from tacit.estimators.base import PrivateLinearModel
from tacit.estimators.fit import Arranged, Fitted, arranged
from tacit.estimators.stage import Facts, Stage
from tacit.privacy import Budget, Gate, Guarantee, Promise
from tacit.problems.bounds import declared_pairs
from tacit.problems.task import LinearTask
from tacit.solvers import Solver, choose


class LinearStage(Stage):
    """A linear model, which comes last."""

    def __init__(self, name: str, step: PrivateLinearModel, facts: Facts, y: Any, budget: Budget) -> None:
        super().__init__(name, step)
        self._bounds, self._budget, self._facts = step.bounds, budget, facts
        self._table = None
        if facts.in_parts:
            step._check_parameters()
            self._y = y
            if isinstance(facts.X, BlockTable):
                facts.X.tell(step)
                self._facts = replace(facts, d=facts.X.d)
            else:
                step.n_features_in_, step._truths = facts.d, ()
        else:
            X, self._y = step._validated(facts.known, y)
            self._table = X if facts.X is not None else None
        if not facts.is_exact:
            _check_same_for_all(name, step)
        self._task, self._targets = self._asked(self._facts)
        solver = choose(step.solver, self._task)
        self._fit = arranged(self._task, solver)
        self.solver, self.releases, self.values = solver.name, self._fit.releases, self._task.most_values
        self.out = facts

    def follows(self, facts: Facts) -> bool:
        """Where the algorithm does, with the same releases."""
        return facts.d == self._facts.d or self._narrowed(facts) is not None

    def follow(self, facts: Facts) -> None:
        """With clips and scales for the columns that there are."""
        self._task, _ = self._asked(facts)
        self._fit = self._fit if facts.d == self._facts.d else self._narrowed(facts) or self._fit

    def run(self, X: Any, gate: Gate) -> None:
        """Find the weights."""
        table = X if self._table is None else self._table
        self.step.n_features_in_ = table.shape[1]
        rows = X.source(self.step._encoder()) if isinstance(X, BlockTable) else (table, self._targets)
        result, units = self._fit.run(rows, gate)
        self._fitted = Fitted(result, units, gate.promise, gate.guarantee)

    def keep(self, promise: Promise, guarantee: Guarantee) -> None:
        """And the model."""
        super().keep(promise, guarantee)
        fitted = replace(self._fitted, promise=self.step.plan_, guarantee=self.step.guarantee_)
        self.step._learned(self._task, fitted)

    def _asked(self, facts: Facts) -> tuple[LinearTask, Floats]:
        """The public facts of the fit, for the model's own part of the budget."""
        shape = self._table
        if shape is None:
            shape = np.broadcast_to(0.0, (facts.n, facts.d))
            self.step.bounds = merged(self.step, self._bounds, facts, strict=facts is self._facts)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of delta, of which the pipeline has warned
            task, targets = self.step._asked(shape, self._y)
        return replace(task, budget=self._budget, streamed=self._facts.in_parts), targets

    def _narrowed(self, facts: Facts) -> Arranged | None:
        task, _ = self._asked(facts)
        return self._fit.narrowed(task)


def _check_same_for_all(name: str, step: PrivateLinearModel) -> None:
    """Refuse what is told of each feature where nobody knows beforehand how many there will be."""
    options = step.solver.get_params() if isinstance(step.solver, Solver) else {}
    low, high = (0.0, 0.0) if step.coef_bounds is None else step.coef_bounds
    told: dict[str, Any] = {key: getattr(step, key, 0.0) for key in ("C", "alpha")} | options
    told["coef_bounds"] = low if np.ndim(low) else high
    for key, value in told.items():
        if np.ndim(value):
            raise ValueError(
                f"step {name!r} has {key} with a number for each feature, and how many there are is not known before"
                " PrivateEncoder has found the categories: give one number, or declare the categories"
            )


def merged(step: Any, told: Any, facts: Facts, *, strict: bool) -> Any:
    """What is declared of a model's columns, with what the steps before it know: by the numbers of columns.

    Where `strict`, before anything is released, bounds of a column that cannot be there are refused.
    """
    pairs = declared_pairs(told)
    if facts.low is None or facts.high is None or step.row_norm is not None:
        return told
    if facts.names is None and pairs is not None:
        raise ValueError("bounds of columns that PrivateScaler scales are -3 and 3: declare none on the model")
    known = {k: (float(low), float(high)) for k, (low, high) in enumerate(zip(facts.low, facts.high, strict=True))}
    known = {k: pair for k, pair in known.items() if math.isfinite(pair[0])}
    free = {name: k for k, name in enumerate(facts.names or ()) if name}
    if isinstance(pairs, tuple):
        known = dict.fromkeys(range(facts.d), pairs) | known
    elif pairs:
        if not isinstance(told, Mapping) or not all(isinstance(key, str) for key in pairs):
            raise ValueError("bounds of what PrivateEncoder makes go by name, or are one pair: {'age': (17, 90)}")
        unknown = sorted(set(pairs) - set(free))
        if unknown and strict:
            raise ValueError(f"bounds names the column {unknown[0]!r}, which is not a number that reaches the model")
        known |= {free[name]: pair for name, pair in pairs.items() if name in free}
    return known or None
