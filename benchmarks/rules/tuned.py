"""What benchmarks of rules share: problems of standardised rows, tuning for free, pages with both.

Rows are standardised and clipped beforehand, so that everything is the solver's doing. Reported is the excess of the
objective over its minimum, as a part of what the zero model has. Tuning is on seeds that no reported mean uses.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.linear_model import Lasso

from benchmarks.frame import Floats, losses
from benchmarks.frame.page import Page
from benchmarks.frame.records import Record
from benchmarks.frame.solvers import Run, asked
from tacit.privacy import Budget
from tacit.problems import Penalty
from tacit.problems.task import LinearTask
from tacit.solvers import SOLVERS

SMALLEST = 0.1  # epsilon
TUNING = 1_000  # the first seed that tunes
_CORNERS = (1e-1, 1e-2, 1e-3, 1e-4)  # over which the hinge is rounded to find its minimum: off by less than half of it
Pair = tuple[float, float]


def settings(effort: Any) -> list[dict[str, Any]]:
    """All points of the grid."""
    return [dict(zip(effort.grid, values, strict=True)) for values in itertools.product(*effort.grid.values())]


@dataclass(frozen=True, eq=False)
class Problem:
    """Bounded rows with an intercept: min of mean loss + l1 |w|_1 + l2 / 2 |w|^2."""

    loss: str
    Z: NDArray[np.float32]
    targets: Floats
    l1: float = 0.0
    l2: float = 0.0

    @cached_property
    def rows(self) -> Floats:
        """In double precision, for the objective."""
        return self.Z.astype(np.float64)

    def value(self, w: Floats, corner: float = 0.0) -> float:
        """The objective."""
        loss = losses.values(self.loss, self.rows @ w[:-1] + w[-1], self.targets, corner).mean()
        return float(loss + self.l1 * np.abs(w[:-1]).sum() + self.l2 / 2 * w[:-1] @ w[:-1])

    def objective(self, w: Floats, corner: float = 0.0) -> tuple[float, Floats]:
        """Its value, and the slope where there is no l1 penalty."""
        slopes = losses.slopes(self.loss, self.rows @ w[:-1] + w[-1], self.targets, corner)
        return self.value(w, corner), np.append(self.rows.T @ slopes / len(slopes) + self.l2 * w[:-1], slopes.mean())

    @cached_property
    def least(self) -> float:
        """The minimum, by scikit-learn or by a quasi-Newton method."""
        if self.l1:
            model = Lasso(alpha=self.l1, tol=1e-8, max_iter=50_000).fit(self.rows, self.targets)
            return self.value(np.append(np.ravel(model.coef_), model.intercept_))
        w = np.zeros(self.Z.shape[1] + 1)
        for corner in _CORNERS if self.loss == "hinge" else (0.0,):
            limits = {"maxiter": 5_000, "maxfun": 10_000, "ftol": 1e-14, "gtol": 1e-9}
            w = minimize(self.objective, w, args=(corner,), jac=True, method="L-BFGS-B", options=limits).x
        return self.value(w)

    @cached_property
    def zero(self) -> float:
        """The objective of the zero model."""
        return self.value(np.zeros(self.Z.shape[1] + 1))

    def excess(self, w: Floats) -> float:
        """Over the minimum, as a part of the zero model's."""
        return (self.value(w) - self.least) / (self.zero - self.least)

    def task(self, epsilon: float) -> LinearTask:
        """What a solver is told."""
        budget = Budget(epsilon, len(self.Z) ** -1.5)
        return asked(self.Z.shape, self.loss, budget, intercept=True, penalty=Penalty(l1=self.l1, l2=self.l2))

    def run(self, solver: str, epsilon: float, seeds: range, **options: Any) -> Pair:
        """The mean excess and its spread."""
        run = Run(SOLVERS[solver](**options), self.task(epsilon))
        promise, rows = run.promise(), (self.Z, self.targets)
        fits = (run.fit(rows, promise, seed, l2=self.l2, l1=self.l1)[0] for seed in seeds)
        found = [self.excess(w) for w in fits]
        return float(np.mean(found)), float(np.std(found))


def compared(run: Callable[..., Pair], settings: Sequence[dict[str, Any]], effort: Any) -> tuple[Any, Any]:
    """Scores of the rule and of the setting that tunes best, and that setting: by one run of each, then of the best."""
    tuning, seeds = range(TUNING, TUNING + effort.tuning), range(effort.seeds)
    kept = sorted(settings, key=lambda setting: run(tuning[:1], **setting)[0])[: effort.kept]
    best = min(kept, key=lambda setting: run(tuning, **setting)[0])
    rule, tuned = run(seeds), run(seeds, **best)
    return {"rule": rule, "tuned": tuned, "ratio": rule[0] / tuned[0]}, best


def pair(record: Record, score: str, digits: int = 4) -> str:
    """Mean and spread."""
    return f"{record.scores[score][0]:.{digits}f} ± {record.scores[score][1]:.{digits}f}"


class RulePage(Page):
    """A section for the sets that judge and one for those that chose."""

    words = ("Sets that took no part in the choice of the rule", "Sets that chose")

    def settings(self) -> int:
        return math.prod(map(len, self.effort.grid.values()))

    def row(self, record: Record) -> dict[str, Any]:
        """What is told of a record."""
        told = {"rule": pair(record, "rule"), "tuned": pair(record, "tuned"), "ratio": record.scores["ratio"][0]}
        return vars(record) | told

    def groups(self) -> Iterator[dict[str, Any]]:
        records = [r for r in self.results.rows("rule") if "tuned" in r.scores]
        for chose, words in enumerate(self.words):
            part = [r for r in records if (r.set in self.effort.chose) == chose]
            if part:
                ratios = [r.scores["ratio"][0] for r in part]
                worst = max((r.scores["rule"][0] for r in part if r.epsilon == SMALLEST), default=math.nan)
                found = {"median": np.median(ratios), "largest": max(ratios), "cells": len(part), "worst": worst}
                yield {"part": words, **found, "rows": map(self.row, part)}
