"""How far the rules of the coordinate solvers are from the best tuned setting, on sets that took no part in them.

    python benchmarks/coordinate_rule.py [--sets NAME ...] [--parts rule greedy] [--quick]

Rows are standardised and clipped beforehand, so that everything here is the solver's doing: the LASSO with alpha = 0.01
(target of unit scale) for regressions, and logistic regression with l2 = 1 / n for two classes. Reported is the excess
of the objective over its minimum, as a part of what the zero model has. Tuning is over passes, clip, step and averaging
for free, on seeds that the reported mean does not use. Writes `coordinate_rule.md` into the results.

The part "greedy" puts the two solvers next to each other where the truth is sparse: independent normal columns of which
a few matter. Writes `greedy_rule.md`.
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
from sklearn.linear_model import Lasso, LogisticRegression

import sets
from tacit.privacy import Budget, Gate, NoiseSource
from tacit.problems import LOGISTIC, SQUARED, Penalty
from tacit.solvers import SOLVERS, Options, Rows, Task, choose

Floats = NDArray[np.float64]

RESULTS = Path(__file__).resolve().parent / "results"
CHOSE = (
    *("california_housing", "ames", "diabetes", "msd_subset_year"),
    *("breast_cancer", "digits", "phishing", "churn", "wine"),
)
JUDGED = (
    *("hotel_rates", "diamonds", "deliveries", "wages"),
    *("elec2", "adult", "credit", "hpc", "vote2016", "lending_club"),
)
EPSILONS = (0.1, 1.0, 10.0)
SPARSE_TRUTHS = {  # rows, columns, columns that matter: those that chose the rule of "auto", and others
    True: ((1_000, 1_000, 10), (20_000, 100, 5), (5_000, 2_000, 10), (20_000, 1_000, 30)),
    False: ((3_000, 3_000, 15), (10_000, 500, 8), (2_000, 200, 20), (30_000, 1_500, 5)),
}
ALPHA = 0.01
MOST_ROWS = 20_000
GRID = {
    "n_passes": (1, 2, 4, 8, 16, 32, 64),
    "step": (0.1, 0.3, 1.0),
    "clip": (0.125, 0.25, 0.5, 1.0, 2.0, 4.0),  # times sqrt(d + 1)
    "averaging": ("last", "tail"),
}
QUICK_GRID = {"n_passes": (2, 16), "step": (1.0,), "clip": (0.25, 1.0), "averaging": ("tail",)}


@dataclass(frozen=True, eq=False)
class Problem:
    """Bounded rows with a penalty."""

    name: str
    Z: NDArray[np.float32]
    targets: Floats
    regression: bool

    @classmethod
    def of(cls, name: str, most_rows: int) -> "Problem":
        """A set, standardised; several classes become even against odd."""
        Z, targets, kind = sets.standardised(name, most_rows)
        return cls(name, np.asfortranarray(Z), targets, kind == "regression")

    @classmethod
    def sparse_truth(cls, n: int, d: int, active: int) -> "Problem":
        """Independent columns, of which the first few make four fifths of the target's variance."""
        rng = np.random.default_rng(n + d + active)
        Z = rng.normal(size=(n, d))
        signal = Z[:, :active] @ (rng.choice([-1.0, 1.0], active) * rng.uniform(0.5, 1.5, active))
        targets = signal / signal.std() + 0.5 * rng.normal(size=n)
        Z = np.asfortranarray(np.clip(Z, -3, 3), dtype=np.float32)
        return cls(f"{active} of {d:,}", Z, np.clip(targets / targets.std(), -3, 3), True)

    @property
    def l1(self) -> float:
        return ALPHA if self.regression else 0.0

    @property
    def l2(self) -> float:
        return 0.0 if self.regression else 1.0 / len(self.Z)

    def objective(self, w: Floats) -> float:
        """The mean loss and the penalty."""
        loss = SQUARED if self.regression else LOGISTIC
        value = loss.value(self.Z @ w[:-1] + w[-1], self.targets).mean()
        return float(value + self.l1 * np.abs(w[:-1]).sum() + self.l2 / 2 * np.square(w[:-1]).sum())

    @cached_property
    def least(self) -> float:
        """The minimum, by scikit-learn."""
        if self.regression:
            model = Lasso(alpha=self.l1, tol=1e-8, max_iter=50_000)
        else:
            model = LogisticRegression(C=1.0 / (len(self.Z) * self.l2), tol=1e-8, max_iter=5_000)
        model.fit(self.Z.astype(np.float64), self.targets)
        return self.objective(np.append(np.ravel(model.coef_), model.intercept_))

    def excess(self, w: Floats) -> float:
        """Over the minimum, as a part of the zero model's."""
        return (self.objective(w) - self.least) / (self.objective(np.zeros_like(w)) - self.least)

    def task(self, epsilon: float, options: Options) -> Task:
        """What a solver is told."""
        n, d = self.Z.shape
        loss = SQUARED if self.regression else LOGISTIC
        budget = Budget(epsilon, n**-1.5)
        return Task(n, d, loss, 1, False, True, budget, ("l1",) if self.regression else ("l2",), options)

    def run(self, solver: str, epsilon: float, seed: int, **options: object) -> float:
        """The excess of one run."""
        task, chosen = self.task(epsilon, Options(**options)), SOLVERS[solver]
        penalty = Penalty(l2=np.full(task.d, self.l2), l1=np.full(task.d, self.l1))
        with Gate(chosen.plan(task, 1.0).calibrate(task.budget, task.unit, chosen.name), NoiseSource(seed)) as gate:
            return self.excess(chosen.run(task, Rows(self.Z, self.targets), penalty, gate).weights[0])


@dataclass(frozen=True)
class Row:
    """One set at one epsilon: mean excess and its spread."""

    problem: str
    chose: bool
    shape: tuple[int, int]
    epsilon: float
    ours: tuple[float, float]
    tuned: tuple[float, float]
    best: str
    greedy: tuple[float, float] | None
    auto: str

    @property
    def ratio(self) -> float:
        return self.ours[0] / self.tuned[0]


def measure(problem: Problem, epsilon: float, grid: dict[str, tuple], tuning: int, seeds: int) -> Row:
    """Tune on some seeds; report on others."""
    root = math.sqrt(problem.Z.shape[1] + 1)
    settings = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    settings = [s | {"clip": s["clip"] * root} for s in settings if s["n_passes"] > 1 or s["averaging"] == "last"]

    def over_seeds(solver: str, first: int, count: int, **options: object) -> tuple[float, float]:
        values = [problem.run(solver, epsilon, first + k, **options) for k in range(count)]
        return float(np.mean(values)), float(np.std(values))

    best = min(settings, key=lambda s: over_seeds("coordinate", 1_000, tuning, **s)[0])
    told = (
        f"{best['n_passes']} passes, clip {best['clip'] / root:g} sqrt(d'), step {best['step']:g}, {best['averaging']}"
    )
    return Row(
        problem.name,
        problem.name in CHOSE,
        problem.Z.shape,
        epsilon,
        over_seeds("coordinate", 0, seeds),
        over_seeds("coordinate", 0, seeds, **best),
        told,
        over_seeds("greedy", 0, seeds) if problem.regression else None,
        choose("auto", problem.task(epsilon, Options())).name,
    )


def sparse_page(quick: bool) -> str:
    """Both solvers by their rules on sparse truths, as Markdown."""
    seeds, most = (2, 2_000) if quick else (10, 10**9)
    lines = [
        "# Greedy or coordinate, where the truth is sparse",
        "",
        "`python benchmarks/coordinate_rule.py --parts greedy`: excess of the LASSO objective over its minimum, as a"
        " part of the zero model's; independent normal columns, of which a few make four fifths of the variance of the"
        f" target, alpha = {ALPHA}, delta = n^-1.5; mean and spread of {seeds} seeds, nothing tuned.",
        "",
    ]
    for chose, words in ((False, "Took no part in the choice of the rules"), (True, "Chose")):
        lines += [
            f"## {words}",
            "",
            "| columns that matter | rows | epsilon | coordinate | greedy | auto |",
            "|---|---|---|---|---|---|",
        ]
        for n, d, active in SPARSE_TRUTHS[chose]:
            problem = Problem.sparse_truth(min(n, most), min(d, most), active)
            for epsilon in EPSILONS:
                cells = []
                for solver in ("coordinate", "greedy"):
                    values = [problem.run(solver, epsilon, seed) for seed in range(seeds)]
                    cells.append(f"{np.mean(values):.4f} ± {np.std(values):.4f}")
                auto = choose("auto", problem.task(epsilon, Options())).name
                rows = f"{len(problem.Z):,}"
                lines.append(f"| {problem.name} | {rows} | {epsilon:g} | {cells[0]} | {cells[1]} | {auto} |")
            print(lines[-1], flush=True)
        lines.append("")
    return "\n".join(lines)


def page(rows: list[Row], grid: dict[str, tuple], seeds: int, tuning: int) -> str:
    """The results as Markdown."""
    lines = [
        "# The rules of the coordinate solvers, against the best tuned setting",
        "",
        "`python benchmarks/coordinate_rule.py`: excess of the objective over its minimum, as a part of the zero"
        f" model's (1 is the zero model, 0 the minimum); mean and spread of {seeds} seeds, delta = n^-1.5, rows"
        f" standardised and clipped beforehand, at most {MOST_ROWS:,} of them. LASSO with alpha = {ALPHA} for"
        " regressions, logistic"
        " regression with l2 = 1 / n for two classes. *Tuned* is the best of"
        f" {math.prod(len(v) for v in grid.values())} settings of passes, step, clip and averaging, found for free on"
        f' {tuning} other seeds. *Greedy* is `solver="greedy"` by its own rule; *auto* is what `Lasso` takes.',
        "",
    ]
    for chose, words in ((False, "Sets that took no part in the choice of the rules"), (True, "Sets that chose")):
        part = [r for r in rows if r.chose == chose]
        if not part:
            continue
        ratios = [r.ratio for r in part]
        lines += [
            f"## {words}",
            "",
            f"Rule over tuned: median {np.median(ratios):.2f}, largest {max(ratios):.2f}, over {len(part)} cells."
            f" The largest mean excess at epsilon = 0.1 is"
            f" {max((r.ours[0] for r in part if r.epsilon == 0.1), default=math.nan):.3f} of the zero model's.",
            "",
            "| data | rows x columns | epsilon | rule | tuned | rule / tuned | tuned setting | greedy | auto |",
            "|---|---|---|---|---|---|---|---|---|",
        ]
        for r in part:
            greedy = "" if r.greedy is None else f"{r.greedy[0]:.4f} ± {r.greedy[1]:.4f}"
            auto = r.auto if r.greedy is not None else ""
            lines.append(
                f"| {r.problem} | {r.shape[0]:,} x {r.shape[1]} | {r.epsilon:g} | {r.ours[0]:.4f} ± {r.ours[1]:.4f} |"
                f" {r.tuned[0]:.4f} ± {r.tuned[1]:.4f} | {r.ratio:.2f} | {r.best} | {greedy} | {auto} |"
            )
        lines.append("")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sets", nargs="*", default=[*JUDGED, *CHOSE])
    parser.add_argument("--parts", nargs="*", default=["rule", "greedy"], choices=["rule", "greedy"])
    parser.add_argument("--quick", action="store_true", help="few settings, seeds and rows")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    grid, tuning, seeds = (QUICK_GRID, 1, 2) if options.quick else (GRID, 2, 10)
    options.out.mkdir(parents=True, exist_ok=True)
    if "greedy" in options.parts:
        (options.out / "greedy_rule.md").write_text(sparse_page(options.quick), encoding="utf8")
    if "rule" not in options.parts:
        return
    rows: list[Row] = []
    for name in options.sets:
        start = time.perf_counter()
        try:
            problem = Problem.of(name, 2_000 if options.quick else MOST_ROWS)
        except sets.MissingSetError as error:
            print(f"{name}: skipped, {error}")
            continue
        rows += [measure(problem, epsilon, grid, tuning, seeds) for epsilon in EPSILONS]
        ratios = ", ".join(f"{r.ratio:.2f}" for r in rows[-len(EPSILONS) :])
        print(f"{name}: rule over tuned {ratios} ({time.perf_counter() - start:.0f} s)", flush=True)
    (options.out / "coordinate_rule.md").write_text(page(rows, grid, seeds, tuning), encoding="utf8")


if __name__ == "__main__":
    main()
