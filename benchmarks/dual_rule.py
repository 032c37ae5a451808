"""How far the rule of the dual solver is from the best tuned setting, on sets that took no part in it.

    python benchmarks/dual_rule.py [--sets NAME ...] [--quick]

Rows are standardised and clipped beforehand, so that everything here is the solver's doing: ridge regression, and for
two classes logistic regression, the hinge and the squared hinge, each with l2 = 1 / n. Reported is the excess of the
objective over its minimum, as a part of what the zero model has. Tuning is over batch, passes and clip for free, on
seeds that the reported mean does not use. Writes `dual_rule.md` into the results.
"""

import argparse
import itertools
import math
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

import sets
from tacit.privacy import Budget, Gate, NoiseSource
from tacit.problems import LOSSES, Penalty
from tacit.solvers import SOLVERS, Options, Rows, Task
from tacit.solvers.dual import Settings

Floats = NDArray[np.float64]

RESULTS = Path(__file__).resolve().parent / "results"
CHOSE = (
    *("california_housing", "msd_subset_year", "hotel_rates", "ames"),
    *("adult", "phishing", "elec2", "churn", "credit", "breast_cancer"),
)
JUDGED = ("diamonds", "deliveries", "wages", "diabetes", "vote2016")
CLASS_LOSSES: tuple[str, ...] = ("logistic", "hinge", "squared_hinge")
EPSILONS = (0.1, 1.0, 10.0)
MOST_ROWS = 20_000
GRID = {"batch_size": (100, 300), "n_passes": (3, 10, 30, 100), "clip": (0.1, 0.3, 1.0, 3.0)}
QUICK_GRID = {"batch_size": (300,), "n_passes": (10,), "clip": (0.3, 1.0)}
_CORNER = 1e-4  # over which the hinge is rounded to find its minimum: off by less than half of this


@dataclass(frozen=True, eq=False)
class Problem:
    """Bounded rows with a loss."""

    name: str
    loss: str
    Z: NDArray[np.float32]
    targets: Floats

    @classmethod
    def all_of(cls, name: str, most_rows: int) -> "list[Problem]":
        """A set, standardised, with each loss; several classes become even against odd."""
        Z, targets, kind = sets.standardised(name, most_rows)
        losses: tuple[str, ...] = ("squared",) if kind == "regression" else CLASS_LOSSES
        return [cls(name, loss, Z, targets) for loss in losses]

    def objective(self, w: Floats, corner: float = 0.0) -> tuple[float, Floats]:
        """The mean loss and the penalty, and their slope."""
        l2, n = 1.0 / len(self.Z), len(self.Z)
        margins = self.Z @ w[:-1] + w[-1]
        room = 1.0 - self.targets * margins
        if self.loss == "squared":
            values, slopes = np.square(margins - self.targets) / 2, margins - self.targets
        elif self.loss == "logistic":
            values = np.logaddexp(0.0, -self.targets * margins)
            slopes = -self.targets * np.exp(-np.logaddexp(0.0, self.targets * margins))
        elif self.loss == "squared_hinge":
            values, slopes = np.square(np.maximum(room, 0.0)), -2 * self.targets * np.maximum(room, 0.0)
        else:
            inside = np.clip(room / max(corner, 1e-300), 0.0, 1.0)
            values, slopes = inside * (room - corner * inside / 2), -self.targets * inside
        value = values.mean() + l2 / 2 * w[:-1] @ w[:-1]
        return float(value), np.append(self.Z.T @ slopes / n + l2 * w[:-1], slopes.mean())

    @cached_property
    def least(self) -> float:
        """The minimum, by a quasi-Newton method."""
        w = np.zeros(self.Z.shape[1] + 1)
        for corner in (1e-1, 1e-2, 1e-3, _CORNER) if self.loss == "hinge" else (0.0,):
            limits = {"maxiter": 5_000, "maxfun": 10_000, "ftol": 1e-14, "gtol": 1e-9}
            w = minimize(self.objective, w, args=(corner,), jac=True, method="L-BFGS-B", options=limits).x
        return self.objective(w)[0]

    def excess(self, w: Floats) -> float:
        """Over the minimum, as a part of the zero model's."""
        zero = self.objective(np.zeros_like(w))[0]
        return (self.objective(w)[0] - self.least) / (zero - self.least)

    def task(self, epsilon: float, options: Options) -> Task:
        """What the solver is told."""
        n, d = self.Z.shape
        return Task(n, d, LOSSES[self.loss], 1, False, True, Budget(epsilon, n**-1.5), ("l2",), options)

    def clip(self, task: Task, times: float) -> float:
        """So many times the clip that the rule gives for this batch."""
        settings = Settings.of(task)
        n, width = task.n, task.width
        l2 = max(1.0 / n, settings.penalty)
        return times * settings.reach * math.sqrt(width) / (1.0 + settings.batch * width / (n * l2))

    def run(self, epsilon: float, seeds: range, **options: float) -> tuple[float, float]:
        """The mean excess and its spread; `clip` is in units of the rule's."""
        if "clip" in options:
            given = {name: value for name, value in options.items() if name != "clip"}
            task = self.task(epsilon, Options(**given))  # type: ignore[arg-type]
            options["clip"] = self.clip(task, options["clip"])
        task, solver = self.task(epsilon, Options(**options)), SOLVERS["dual"]  # type: ignore[arg-type]
        penalty = Penalty(l2=np.full(task.d, 1.0 / task.n), l1=np.zeros(task.d))
        promise, found = solver.plan(task, 1.0).calibrate(task.budget, task.unit, solver.name), []
        for seed in seeds:
            with Gate(promise, NoiseSource(seed)) as gate:
                found.append(self.excess(solver.run(task, Rows(self.Z, self.targets), penalty, gate).weights[0]))
        return float(np.mean(found)), float(np.std(found))


@dataclass(frozen=True)
class Row:
    """One problem at one epsilon: mean excess and its spread."""

    problem: Problem
    epsilon: float
    ours: tuple[float, float]
    tuned: tuple[float, float]
    best: dict[str, float]

    @property
    def ratio(self) -> float:
        return self.ours[0] / self.tuned[0]

    def __str__(self) -> str:
        n, d = self.problem.Z.shape
        best = f"batch {self.best['batch_size']:g}, {self.best['n_passes']:g} passes, clip {self.best['clip']:g}"
        return (
            f"| {self.problem.name} | {n:,} x {d} | {LOSSES[self.problem.loss].words} | {self.epsilon:g} |"
            f" {self.ours[0]:.4f} ± {self.ours[1]:.4f} | {self.tuned[0]:.4f} ± {self.tuned[1]:.4f} |"
            f" {self.ratio:.2f} | {best} |"
        )


def measure(problem: Problem, epsilon: float, grid: dict[str, tuple], tuning: int, seeds: int) -> Row:
    """Tune on some seeds; report on others."""
    n = len(problem.Z)
    settings = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    settings = [s for s in settings if s["batch_size"] < n] or [s | {"batch_size": n} for s in settings]
    best = min(settings, key=lambda s: problem.run(epsilon, range(1_000, 1_000 + tuning), **s)[0])
    every = range(seeds)
    return Row(problem, epsilon, problem.run(epsilon, every), problem.run(epsilon, every, **best), best)


def page(rows: list[Row], grid: dict[str, tuple], seeds: int, tuning: int) -> str:
    """The results as Markdown."""
    lines = [
        "# The rule of the dual solver, against the best tuned setting",
        "",
        "`python benchmarks/dual_rule.py`: excess of the objective over its minimum, as a part of the zero model's (1"
        f" is the zero model, 0 the minimum); mean and spread of {seeds} seeds, delta = n^-1.5, rows standardised and"
        f" clipped beforehand, at most {MOST_ROWS:,} of them, l2 = 1 / n. *Tuned* is the best of"
        f" {math.prod(len(v) for v in grid.values())} settings of batch, passes and clip (in units of the rule's),"
        f" found for free on {tuning} other seeds.",
        "",
    ]
    for chose, words in ((False, "Sets that took no part in the choice of the rule"), (True, "Sets that chose")):
        part = [row for row in rows if (row.problem.name in CHOSE) == chose]
        if not part:
            continue
        ratios = [row.ratio for row in part]
        worst = max((row.ours[0] for row in part if row.epsilon == EPSILONS[0]), default=math.nan)
        lines += [
            f"## {words}",
            "",
            f"Rule over tuned: median {np.median(ratios):.2f}, largest {max(ratios):.2f}, over {len(part)} cells. The"
            f" largest mean excess at epsilon = {EPSILONS[0]} is {worst:.3f} of the zero model's.",
            "",
            "| data | rows x columns | loss | epsilon | rule | tuned | rule / tuned | tuned setting |",
            "|---|---|---|---|---|---|---|---|",
            *map(str, part),
            "",
        ]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sets", nargs="*", default=JUDGED, help="those that chose the rule may be named, too")
    parser.add_argument("--quick", action="store_true", help="few settings, seeds and rows")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    grid, tuning, seeds = (QUICK_GRID, 1, 2) if options.quick else (GRID, 1, 5)
    options.out.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    for name in options.sets:
        start = time.perf_counter()
        try:
            problems = Problem.all_of(name, 2_000 if options.quick else MOST_ROWS)
        except sets.MissingSetError as error:
            print(f"{name}: skipped, {error}")
            continue
        rows += [measure(problem, epsilon, grid, tuning, seeds) for problem in problems for epsilon in EPSILONS]
        ratios = ", ".join(f"{row.ratio:.2f}" for row in rows[-len(EPSILONS) * len(problems) :])
        print(f"{name}: rule over tuned {ratios} ({time.perf_counter() - start:.0f} s)", flush=True)
        (options.out / "dual_rule.md").write_text(page(rows, grid, seeds, tuning), encoding="utf8")


if __name__ == "__main__":
    main()
