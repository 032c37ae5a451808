"""The figures of the DP-SCD paper (Damaskinos et al. 2021) again: its form, ours and DP-SGD, all by one accountant.

    python -m benchmarks.dp_scd [--quick] [--resume] [--render-only] [--parts utility timing] [--sets NAME ...]

"utility": test scores against epsilon (Figure 1), after tuning each method on its grid, for free, on other splits; the
numbers to reach are among them. "plain": the same without privacy. "convergence": the objective by epochs (Figure 2).
"grid": batch against clip (Figure 3). "timing": one epoch against two products with the data, which wants a quiet
machine and is not run unless named.
"""

import math
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from benchmarks.dp_scd import methods, problems
from benchmarks.dp_scd.methods import METHODS, SGD, Dual, Point
from benchmarks.dp_scd.page import TRACED, DualPage
from benchmarks.dp_scd.problems import Problem
from benchmarks.frame.command import Benchmark, Job, Part
from benchmarks.frame.solvers import Budget
from benchmarks.frame.timing import in_turns

DELTAS = {"1e-3": 0.0, "n^-1.5": -1.5, "n^-2": -2.0}  # powers of n
MARKS = (1, 2, 3, 5, 7, 10)
ONE_DELTA = ("sequential", "primal")  # far behind, and slow: only where the paper has them
GRID_EPSILON = 1.0


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
    grid_batches: tuple[int, ...] = (30, 100, 300, 1_000, 3_000)
    grid_clips: tuple[float, ...] = (0.0625, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
    timed_size: tuple[int, int] = methods.TIMED_SIZE


def budget_of(problem: Problem, epsilon: float, delta: str) -> Budget:
    """With delta by its name, in the number of training rows."""
    power = DELTAS[delta]
    return Budget(epsilon, problem.train_rows**power if power else 1e-3)


def tune(method: Any, problem: Problem, budget: Budget, effort: Effort) -> tuple[Point, float, int]:
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


def run_utility(job: Job) -> None:
    """Tune a method at every budget, then run it on fresh seeds."""
    problem, effort, method = problems.problem(job.name, job.effort.most_rows), job.effort, METHODS[job.method]
    cells = list(product(effort.epsilons, effort.deltas))
    if problem.loss == "logistic":
        cells.append((0.1, "n^-2"))  # which one of the numbers to reach asks for
    for epsilon, delta in cells:
        if job.method in ONE_DELTA and delta != "1e-3":
            continue
        budget, point = budget_of(problem, epsilon, delta), method.grid[0]
        if len(method.grid) > 1:
            point, mean, tried = tune(method, problem, budget, effort)
            scores: dict[str, Any] = {"score": mean, "tried": float(tried), **point._asdict()}
            job.keep(job.method, epsilon, 0, scores, table=f"tuning, {delta}", size=problem.X.shape)
        for seed in range(effort.seeds):
            scores = {"score": method.scores(problem.split(seed), budget, [point], seed)}
            job.keep(job.method, epsilon, seed, scores, table=f"utility, {delta}", size=problem.X.shape)


def run_plain(job: Job) -> None:
    """Scores without privacy: of the paper's problem, of scikit-learn's defaults and of no model at all.

    Of regressions also that of the whole estimator at an infinite epsilon, which bounds columns and labels as it does
    at any other; with the other losses that takes long.
    """
    problem = problems.problem(job.name, job.effort.most_rows)
    for seed in range(job.effort.seeds):
        split = problem.split(seed)
        scores = {"optimum": split.score(split.solution), "standardised": split.standardised_score()}
        scores["zero"] = split.constant_score()
        if split.loss == "squared":
            (scores["limit"],) = METHODS["fit"].scores(split, Budget(math.inf, 1e-3), [Point()], seed)
        for name, score in scores.items():
            job.keep(name, None, seed, {"score": score}, size=problem.X.shape)


def run_convergence(job: Job) -> None:
    """The objective along the runs that tuned best; without noise, that of our variant with the same batch."""
    problem = problems.problem(job.name, job.effort.most_rows)
    for name, epsilon in product(TRACED, job.effort.trace_epsilons):
        tuned = job.store.get(("tuning, 1e-3", problem.name, name, repr(epsilon), 0))
        if tuned is None:
            continue
        batch, clip, step = (tuned.scores[key][0] for key in ("batch", "clip", "step"))
        method = METHODS[name]
        assert isinstance(method, Dual | SGD)
        runs = [(name, epsilon, Point(int(batch), clip, step))]
        if name == "tuned":
            runs.append((f"noiseless {epsilon:g}", math.inf, Point(int(batch), 1e6)))
        for model, at, where in runs:
            for seed in range(job.effort.traces):
                split = problem.split(seed)
                values = method.objectives(split, budget_of(problem, at, "1e-3"), where, seed, MARKS)
                scores: dict[str, Any] = {"epochs": list(map(float, MARKS)), "objective": values}
                scores |= {"optimum": split.objective(split.solution), "zero": split.objective(0 * split.solution)}
                job.keep(model, at, seed, scores, size=problem.X.shape)


def run_grid(job: Job) -> None:
    """Batch against clip, of our variant and of the published one."""
    problem, effort = problems.problem(job.name, job.effort.most_rows), job.effort
    budget = budget_of(problem, GRID_EPSILON, "1e-3")
    batches = [batch for batch in effort.grid_batches if batch <= problem.train_rows][:: effort.points_apart]
    points = [Point(*pair) for pair in product(batches, effort.grid_clips[:: effort.points_apart])]
    for model in ("tuned", "published"):
        for seed in range(effort.cells):
            scores = {"score": METHODS[model].scores(problem.split(seed), budget, points, seed)}
            scores |= {"batch": [float(point.batch) for point in points], "clip": [point.clip for point in points]}
            job.keep(model, GRID_EPSILON, seed, scores, size=problem.X.shape)


def run_timing(job: Job) -> None:
    """One epoch, in rounds."""
    size = job.effort.timed_size
    for turn, model, took in in_turns(job.effort.rounds, methods.clocks(job.name, size)):
        job.keep(model, None, turn, {}, took, size=size)


BENCHMARK = Benchmark(
    "dp_scd",
    __doc__,
    {
        "utility": Part(run_utility, problems.NAMES, ("tuning", "utility"), tuple(METHODS)),
        "plain": Part(run_plain, problems.NAMES),
        "convergence": Part(run_convergence, problems.NAMES),
        "grid": Part(run_grid, problems.NAMES),
        "timing": Part(run_timing, methods.TIMED, by_default=False),
    },
    DualPage,
    Effort(),
    Effort((0.1, 1.0), ("1e-3",), 2, 2, 2, 1, 1, (1.0,), 4_000, 3, 3),
    tuple(METHODS),
)

if __name__ == "__main__":
    BENCHMARK.main()
