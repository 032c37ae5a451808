"""How many steps the gradient solver needs: its rule against the steps it made before, and against three times as many.

    python -m benchmarks.rules.steps [--quick] [--resume] [--render-only] [--parts noisy limit] [--sets NAME ...]

Whole fits with nothing declared, and the objective on the rows as that fit bounded them. The sets of "chose" were in
view when the rule was chosen; the others judge it.
"""

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from benchmarks.frame import Floats, sets
from benchmarks.frame.command import Benchmark, Job, Part
from benchmarks.frame.page import Page
from benchmarks.frame.solvers import asked
from tacit.blocks import Bounded
from tacit.estimators.fit import private_fit
from tacit.privacy import Budget, Gate
from tacit.problems import MULTINOMIAL, SQUARED, Penalty
from tacit.problems.task import LinearTask
from tacit.solvers import Gradient
from tacit.solvers.base import Algorithm, Solution

_UNITS = 1e5


@dataclass(frozen=True, eq=False)
class Objective:
    """Mean loss and penalty on the bounded rows of a fit, in the weights of all outputs."""

    task: LinearTask
    data: Bounded

    def __call__(self, flat: Floats) -> tuple[float, Floats]:
        """Its value and its slope."""
        task, t = self.task, self.data.targets
        w = flat.reshape(task.outputs, task.d + 1)
        Z = self.data.Z.rows.astype(np.float64)
        margins = Z @ w[:, :-1].T + w[:, -1]
        if task.loss == SQUARED:
            loss, slopes = np.square(margins[:, 0] - t) / 2, margins - t[:, None]
        elif task.loss == MULTINOMIAL:
            own = np.arange(len(t)), t.astype(int)
            loss, slopes = logsumexp(margins, axis=1) - margins[own], softmax(margins, axis=1)
            slopes[own] -= 1.0
        else:
            against = -t * margins[:, 0]
            loss, slopes = np.logaddexp(0.0, against), (-t * np.exp(-np.logaddexp(0.0, -against)))[:, None]
        l2 = np.append(np.broadcast_to(self.data.penalty.l2, task.d), 0.0)
        slope = np.column_stack([slopes.T @ Z, slopes.sum(axis=0)]) / len(t) + l2 * w
        return float(loss.mean() + (l2 * np.square(w)).sum() / 2), slope.ravel()

    def least(self, start: Floats) -> float:
        """The minimum, by a quasi-Newton method."""
        limits = {"maxiter": 5_000, "maxfun": 10_000, "ftol": 1e-15, "gtol": 1e-9}
        return float(minimize(self, start.ravel(), jac=True, method="L-BFGS-B", options=limits).fun)


@dataclass(frozen=True)
class _Told(Algorithm[LinearTask]):
    """An algorithm that says what it was given and what it found: for a benchmark, where the data is no secret."""

    layout = "grid"

    whole: Any
    told: list[tuple[Objective, Floats]]

    def releases(self, share: float) -> Any:
        return self.whole.releases(share)

    def run(self, data: Bounded, gate: Gate) -> Solution:
        found = self.whole.run(data, gate)
        self.told.append((Objective(self.task, data), found.weights))
        return found


class Watched(Gradient):
    """The solver with other steps, and with what it finds told."""

    def at(self, task: LinearTask) -> Any:
        found = super().at(task)
        if KIND[0] == "before":
            steps = round(30 * min(40.0, max(1.0, math.sqrt(task.calm))))
            found = replace(found, steps=steps, momentum=max(0.0, 1.0 - 30.0 / steps))
        elif KIND[0] == "three times":
            found = Gradient(n_iter=3 * found.steps).at(task)
        STEPS[KIND[0]] = found.steps
        return _Told(task, found, TOLD)


KIND, STEPS = ["rule"], dict[str, int]()  # how it is run, and how many steps that makes
TOLD: list[tuple[Objective, Floats]] = []


@dataclass(frozen=True, eq=False)
class Table:
    """Some rows of a set with targets as solvers take them, and the model that is asked for, with a penalty of 1."""

    X: Floats
    targets: Floats
    loss: str
    outputs: int = 1

    @classmethod
    def of(cls, name: str, most_rows: int) -> "Table":
        """Of a set."""
        X, y, kind = sets.load(name)
        keep = np.random.default_rng(0).permutation(len(y))[:most_rows]
        X, y = np.asarray(X, dtype=np.float64)[keep], np.asarray(y)[keep]
        if kind == "regression":
            return cls(X, y.astype(np.float64), "squared")
        classes, numbers = np.unique(y, return_inverse=True)
        if len(classes) == 2:
            return cls(X, 2.0 * numbers - 1.0, "logistic")
        return cls(X, numbers.astype(np.float64), "multinomial", len(classes))

    def fitted(self, kind: str, epsilon: float, seed: int) -> tuple[Objective, Floats]:
        """The objective of a fit, and the weights that it found."""
        KIND[0], n = kind, len(self.X)
        penalty = Penalty(l2=1.0 / n)
        budget = Budget(epsilon, n**-1.5)
        task = asked(self.X.shape, self.loss, budget, intercept=True, penalty=penalty, outputs=self.outputs)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the seed, and of few rows
            private_fit(task, Watched(), (self.X, self.targets), seed=seed)
        return TOLD.pop()


def run_noisy(job: Job) -> None:
    """The three of them, with the same seeds."""
    table = Table.of(job.name, job.effort.most_rows)
    for epsilon in job.effort.epsilons:
        for seed in range(job.effort.seeds):
            values = {}
            for kind in ("rule", "before", "three times"):
                objective, weights = table.fitted(kind, epsilon, seed)
                values[kind] = objective(weights)[0]
            scores = values | {"quiet": objective.task.calm, "steps": STEPS["rule"], "earlier": STEPS["before"]}
            job.keep("gradient", epsilon, seed, scores, (), size=table.X.shape)


def run_limit(job: Job) -> None:
    """Without noise: over the minimum."""
    table = Table.of(job.name, job.effort.most_rows)
    objective, weights = table.fitted("rule", math.inf, 0)
    least = min(objective.least(weights), objective.least(np.zeros_like(weights)))
    job.keep("gradient", None, 0, {"over": objective(weights)[0] / least - 1.0}, (), size=table.X.shape)


class StepsPage(Page):
    """A section for the sets that judge and one for those that chose."""

    template = Path(__file__).with_name("steps.md")

    def _row(self, name: str, epsilon: float) -> dict[str, Any]:
        records = self.results.rows("noisy", name, "gradient", epsilon)
        found = {key: np.array([r.scores[key][0] for r in records]) for key in records[0].scores}
        row: dict[str, Any] = {"set": name, "size": records[0].size, "epsilon": epsilon}
        row |= {key: float(found[key].mean()) for key in ("quiet", "steps", "earlier")}
        for key, kind in (("before", "before"), ("thrice", "three times")):
            more = _UNITS * (found[kind] - found["rule"])
            mean, error = float(more.mean()), float(more.std(ddof=1)) / math.sqrt(len(more))
            row |= {key: f"{mean:.1f} ± {error:.1f}", f"{key}_mean": mean, f"{key}_error": error + 1.0}
        return row | {"objective": float(found["rule"].mean())}

    def groups(self) -> Iterator[dict[str, Any]]:
        for chose, part in ((False, "Sets that took no part in the choice of the rule"), (True, "Sets that chose")):
            records = [r for r in self.results.rows("noisy") if (r.set in self.effort.chose) == chose]
            rows = [self._row(*cell) for cell in dict.fromkeys((r.set, r.epsilon) for r in records)]
            calm = [row for row in rows if row["quiet"] > 1.0]
            if rows:
                yield {
                    "part": part,
                    "rows": rows,
                    "cells": len(rows),
                    "level": sum(row["before_mean"] >= -row["before_error"] for row in rows),
                    "ahead": sum(row["before_mean"] > row["before_error"] for row in rows),
                    "passes": sum(row["steps"] for row in rows) / sum(row["earlier"] for row in rows),
                    "calm": len(calm),
                    "short": sum(row["thrice_mean"] < -row["thrice_error"] for row in calm),
                }

    def limits(self) -> Iterator[dict[str, Any]]:
        for record in self.results.rows("limit"):
            yield {"set": record.set, "over": record.scores["over"][0]}


BENCHMARK = Benchmark(
    "steps_rule",
    __doc__,
    {
        "noisy": Part(run_noisy, lambda effort: effort.judged + effort.chose),
        "limit": Part(run_limit, lambda effort: effort.judged + effort.chose),
    },
    StepsPage,
    Path(__file__).with_suffix(".toml"),
)

if __name__ == "__main__":
    BENCHMARK.main()
