"""The figures of the DP-SCD paper (Damaskinos et al. 2021) again: its form, ours and DP-SGD, all by one accountant.

    python benchmarks/dp_scd.py [--quick] [--resume] [--render-only] [--parts utility timing] [--problems NAME ...]

"utility": test scores against epsilon (Figure 1), after tuning each method on its grid, for free, on other splits; the
numbers to reach are among them. "convergence": the objective by epochs (Figure 2). "grid": batch against clip (Figure
3). "timing": one epoch against two products with the data, which wants a quiet machine and is not run unless named.

Results are kept as JSON lines in the folder `--out`, and the page and plots there are drawn from them. `--resume` runs
what is not there yet; without it what is asked for is run again.
"""

import argparse
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

import command
import dp_scd_problems as problems
import dp_scd_render as render
import dp_scd_timing as timing
import sets
from dp_scd_methods import METHODS, SGD, Dual, Method, Point
from dp_scd_problems import Problem
from records import Record, Store
from tacit.privacy import Budget

PARTS = ["utility", "convergence", "grid", "timing"]
DELTAS = {"1e-3": 0.0, "n^-1.5": -1.5, "n^-2": -2.0}  # powers of n
MARKS = (1, 2, 3, 5, 7, 10)
TRACED = ("tuned", "published", "sgd")
ONE_DELTA = ("sequential", "primal")  # far behind, and slow: only where the paper has them
GRID_EPSILON = 1.0
GRID_BATCHES = (30, 100, 300, 1_000, 3_000)
GRID_CLIPS = (0.0625, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)


@dataclass(frozen=True)
class Effort:
    """How much is run."""

    epsilons: tuple[float, ...] = (0.1, 0.5, 1.0, 2.0)
    deltas: tuple[str, ...] = ("1e-3", "n^-1.5")
    kept: int = 3  # points that are run on all tuning seeds; one run of every point chooses them
    runs: int = 3  # of a point that is kept
    seeds: int = 10  # fresh ones, to report
    traces: int = 5  # seeds of Figure 2
    cells: int = 2  # seeds of a cell of Figure 3
    trace_epsilons: tuple[float, ...] = (0.1, 1.0)
    most_rows: int | None = None
    points_apart: int = 1  # of a grid, every how many points are tried
    rounds: int = 9  # of timing


FULL = Effort()
QUICK = Effort((0.1, 1.0), ("1e-3",), 2, 2, 2, 1, 1, (1.0,), 4_000, 3, 3)


def budget_of(problem: Problem, epsilon: float, delta: str) -> Budget:
    """With delta by its name, in the number of training rows."""
    power = DELTAS[delta]
    return Budget(epsilon, problem.train_rows**power if power else 1e-3)


def tune(method: Method, problem: Problem, budget: Budget, effort: Effort) -> tuple[Point, float, int]:
    """The best point, its mean score on the tuning seeds, and the number of points tried."""
    points = method.grid[:: effort.points_apart]
    seeds = range(1_000, 1_000 + effort.runs)
    first = method.scores(problem.split(seeds[0]), budget, points, seeds[0])
    order = np.argsort(first, kind="stable")[: effort.kept]
    kept = [points[k] for k in order]
    scores = [[first[k] for k in order]]
    scores += [method.scores(problem.split(seed), budget, kept, seed) for seed in seeds[1:]]
    means = np.mean(scores, axis=0)
    best = int(np.argmin(means))
    return kept[best], float(means[best]), len(points)


def cells(problem: Problem, effort: Effort) -> list[tuple[float, str]]:
    """Epsilons and deltas; of the logistic problem also what one of the numbers to reach asks for."""
    found = list(product(effort.epsilons, effort.deltas))
    return [*found, (0.1, "n^-2")] if problem.loss == "logistic" else found


def run_utility(store: Store, problem: Problem, name: str, effort: Effort) -> None:
    """Tune a method at every budget, then run it on fresh seeds."""
    method, size = METHODS[name], problem.X.shape
    for epsilon, delta in cells(problem, effort):
        if name in ONE_DELTA and delta != "1e-3":
            continue
        budget, point, start = budget_of(problem, epsilon, delta), method.grid[0], time.perf_counter()
        if len(method.grid) > 1:
            point, mean, tried = tune(method, problem, budget, effort)
            scores = {"score": [mean], "tried": [float(tried)]}
            scores |= {"batch": [float(point.batch)], "clip": [point.clip], "step": [point.step]}
            took = [round(time.perf_counter() - start, 2)]
            store.add(Record(f"tuning, {delta}", problem.name, name, epsilon, 0, scores, took, size=size))
        for seed in range(effort.seeds):
            start = time.perf_counter()
            scores = {"score": method.scores(problem.split(seed), budget, [point], seed)}
            took = [round(time.perf_counter() - start, 3)]
            store.add(Record(f"utility, {delta}", problem.name, name, epsilon, seed, scores, took, size=size))


def run_plain(store: Store, problem: Problem, effort: Effort) -> None:
    """Scores without privacy: of the paper's problem, of scikit-learn's defaults and of no model at all.

    Of regressions also that of the whole estimator at an infinite epsilon, which bounds columns and labels as it does
    at any other; with the other losses that takes long.
    """
    for seed in range(effort.seeds):
        split, start = problem.split(seed), time.perf_counter()
        scores = {
            "optimum": split.score(split.solution),
            "standardised": split.standardised_score(),
            "zero": split.constant_score(),
        }
        if split.loss == "squared":
            (scores["limit"],) = METHODS["fit"].scores(split, Budget(math.inf, 1e-3), [Point()], seed)
        took = [round(time.perf_counter() - start, 3)]  # of all of them
        for name, score in scores.items():
            store.add(Record("plain", problem.name, name, None, seed, {"score": [score]}, took, size=problem.X.shape))


def run_convergence(store: Store, problem: Problem, effort: Effort) -> None:
    """The objective along the runs that tuned best; without noise, that of our variant with the same batch."""
    for name, epsilon in product(TRACED, effort.trace_epsilons):
        tuned = store.get(("tuning, 1e-3", problem.name, name, repr(epsilon), 0))
        if tuned is None:
            continue
        found = (tuned.scores[key][0] for key in ("batch", "clip", "step"))
        batch, clip, step = found
        point, method = Point(int(batch), clip, step), METHODS[name]
        assert isinstance(method, Dual | SGD)
        runs = [(name, epsilon, point)]
        if name == "tuned":
            runs.append((f"noiseless {epsilon:g}", math.inf, Point(int(batch), 1e6)))
        for model, at, where in runs:
            for seed in range(effort.traces):
                split, start = problem.split(seed), time.perf_counter()
                values = method.objectives(split, budget_of(problem, at, "1e-3"), where, seed, MARKS)
                scores = {"epochs": list(map(float, MARKS)), "objective": values}
                scores |= {"optimum": [split.objective(split.solution)], "zero": [split.objective(0 * split.solution)]}
                took = [round(time.perf_counter() - start, 3)]
                store.add(Record("convergence", problem.name, model, at, seed, scores, took, size=problem.X.shape))


def run_grid(store: Store, problem: Problem, effort: Effort) -> None:
    """Batch against clip, of our variant and of the published one."""
    budget = budget_of(problem, GRID_EPSILON, "1e-3")
    batches = [batch for batch in GRID_BATCHES if batch <= problem.train_rows][:: effort.points_apart]
    points = [Point(*pair) for pair in product(batches, GRID_CLIPS[:: effort.points_apart])]
    for model in ("tuned", "published"):
        for seed in range(effort.cells):
            start = time.perf_counter()
            scores = {"score": METHODS[model].scores(problem.split(seed), budget, points, seed)}
            scores |= {"batch": [float(point.batch) for point in points], "clip": [point.clip for point in points]}
            took = [round(time.perf_counter() - start, 3)]
            store.add(Record("grid", problem.name, model, GRID_EPSILON, seed, scores, took, size=problem.X.shape))


def run_timing(store: Store, name: str, effort: Effort) -> None:
    """One epoch, in rounds."""
    for turn, model, took in timing.rounds(name, effort.rounds):
        store.add(Record("timing", name, model, None, turn, {}, [took], size=timing.SIZE))


def cases(arguments: argparse.Namespace) -> Iterator[tuple[str, str, str]]:
    """Part, problem and method of everything asked for."""
    for part in arguments.parts:
        for name in timing.NAMES if part == "timing" else arguments.problems:
            for method in arguments.methods if part == "utility" else [""]:
                yield part, name, method


def made_by(record: Record, case: tuple[str, str, str]) -> bool:
    """Whether a case writes this record."""
    part, name, method = case
    tables = {"utility": ("plain",) if method == "plain" else ("tuning", "utility")}.get(part, (part,))
    return record.table.split(",")[0] in tables and record.set == name and method in ("", "plain", record.model)


def run(store: Store, arguments: argparse.Namespace, effort: Effort) -> list[str]:
    """Measure what was asked for. Returns what was skipped, by name."""
    skipped: dict[str, None] = {}
    for case in cases(arguments):
        part, name, method = case
        if arguments.resume and any(made_by(record, case) for record in store):
            continue
        start = time.perf_counter()
        if part == "timing":
            store.drop(lambda record, case=case: made_by(record, case))
            run_timing(store, name, effort)
        else:
            try:
                problem = problems.problem(name, effort.most_rows)
            except sets.MissingSetError as error:
                skipped[f"skipped: {name} ({error})"] = None
                continue
            store.drop(lambda record, case=case: made_by(record, case))
            if method == "plain":
                run_plain(store, problem, effort)
            elif part == "utility":
                run_utility(store, problem, method, effort)
            elif part == "convergence":
                run_convergence(store, problem, effort)
            else:
                run_grid(store, problem, effort)
        print(f"{part}, {name} {method}: {time.perf_counter() - start:.1f} s", flush=True)
    return list(skipped)


def main(argv: list[str] | None = None) -> None:
    """Measure, and draw the page."""
    parser = command.parser(__doc__, PARTS, "few rows, budgets and seeds", default=PARTS[:-1])
    parser.add_argument("--problems", nargs="+", choices=problems.NAMES, default=problems.NAMES)
    names = (*METHODS, "plain")
    parser.add_argument("--methods", nargs="+", choices=names, default=names, help="plain is without privacy")
    arguments = command.parsed(parser, argv)
    effort = QUICK if arguments.quick else FULL
    command.carry_out(
        "dp_scd",
        arguments,
        lambda store: run(store, arguments, effort),
        lambda store: render.pages(store, arguments.out, effort.most_rows, effort.kept, effort.runs, effort.seeds),
    )


if __name__ == "__main__":
    main()
