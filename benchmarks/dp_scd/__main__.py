"""The figures of the DP-SCD paper (Damaskinos et al. 2021) again: its form, ours and DP-SGD, all by one accountant.

    python -m benchmarks.dp_scd [--quick] [--resume] [--render-only] [--parts utility timing] [--sets NAME ...]

"utility": test scores against epsilon (Figure 1), after tuning each method on its grid, for free, on rows that are held
out of the training rows; the numbers to reach are among them. "plain": the same without privacy. "convergence": the
objective by epochs (Figure 2). "grid": batch against clip (Figure 3). "timing": one epoch against two products with the
data, which wants a quiet machine and is not run unless named.
"""

import math
from collections.abc import Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.dp_scd import methods, problems
from benchmarks.dp_scd.methods import METHODS, SGD, Dual
from benchmarks.dp_scd.page import PLAIN, TRACED, DualPage
from benchmarks.dp_scd.problems import Problem
from benchmarks.frame.command import Benchmark, Job, Part
from benchmarks.frame.timing import in_turns
from benchmarks.frame.tuning import Point, tune
from tacit.privacy import Budget

DELTAS = {"1e-3": 0.0, "n^-1.5": -1.5, "n^-2": -2.0}  # powers of n
MARKS = (1, 2, 3, 5, 7, 10)
ONE_DELTA = ("paper's step", "last", "newton", "authors", "sequential", "primal")  # only where the paper has them
RULE_STEP = {"squared": 2.0, "logistic": 10.0, "hinge": 10.0}  # of the rule, in units of the paper's
GRID_EPSILON = 1.0
SMALLEST = 100  # batch of the published variant, which draws noise for all rows in every step


def budget_of(problem: Problem, epsilon: float, delta: str) -> Budget:
    """With delta by its name, in the number of training rows."""
    power = DELTAS[delta]
    return Budget(epsilon, problem.train_rows**power if power else 1e-3)


def tuned_scores(method: Any, problem: Problem, budget: Budget, points: list[Point], seed: int) -> Sequence[float]:
    """On the rows that a seed holds out of the training rows."""
    return method.scores(problem.split(seed, tuning=True), budget, points, seed)


def run_utility(job: Job) -> None:
    """Tune a method at every budget, then run it on fresh seeds."""
    problem, effort, method = problems.problem(job.name, job.effort.most_rows), job.effort, METHODS[job.method]
    cells = list(product(effort.epsilons, effort.deltas))
    if job.method == "newton" and problem.loss != "logistic":
        return  # for which the paper's steps are exact
    if problem.loss == "logistic":
        cells.append((0.1, "n^-2"))  # which one of the numbers to reach asks for
    for epsilon, delta in cells:
        if job.method in ONE_DELTA and delta != "1e-3":
            continue
        budget, point = budget_of(problem, epsilon, delta), method.grid[0]
        if len(method.grid) > 1:
            point, mean, tried = tune([method.grid], partial(tuned_scores, method, problem, budget), effort)
            scores: dict[str, Any] = {"score": mean, "tried": float(tried), **point._asdict()}
            job.keep(job.method, epsilon, 0, scores, table=f"tuning, {delta}", size=problem.X.shape)
        for seed in range(effort.seeds):
            split = problem.split(seed)
            scores = {"score": method.scores(split, budget, [point], seed)}
            if isinstance(method, Dual):
                scores["lambda"] = method.strength(split, budget, point)
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
    """The objective along the runs that tuned best; without noise, that of ours and of SGD there, and of plain SCD."""
    problem = problems.problem(job.name, job.effort.most_rows)
    for name, epsilon in product(TRACED, job.effort.trace_epsilons):
        tuned = job.store.get(("tuning, 1e-3", problem.name, name, repr(epsilon), 0))
        if tuned is None:
            continue
        batch, clip, step = (tuned.scores[key][0] for key in ("batch", "clip", "step"))
        method = METHODS[name]
        assert isinstance(method, Dual | SGD)
        runs = [(name, epsilon, Point(int(batch), clip, step))]
        if name in PLAIN:
            safe = 1.0 if name == "tuned" else step  # longer ones of ours are held back by the clip
            runs.append((f"{PLAIN[name]} {epsilon:g}", math.inf, Point(int(batch), 1e6, safe)))
        if name == "tuned":
            runs.append((f"{PLAIN['scd']} {epsilon:g}", math.inf, Point(1, 1e6)))
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
    batches = [batch for batch in effort.grid_batches if batch <= problem.train_rows][:: effort.apart]
    clips = effort.grid_clips[:: effort.apart]
    points = [Point(*pair, RULE_STEP[problem.loss]) for pair in product(batches, clips)]
    few = [point for point in points if point.batch >= SMALLEST] or points
    for model, run in (("tuned", points), ("published", few)):
        for seed in range(effort.cells):
            scores = {"score": METHODS[model].scores(problem.split(seed), budget, run, seed)}
            scores |= {"batch": [float(point.batch) for point in run], "clip": [point.clip for point in run]}
            job.keep(model, GRID_EPSILON, seed, scores, size=problem.X.shape)


def run_timing(job: Job) -> None:
    """One epoch, in rounds."""
    size = tuple(job.effort.timed_size)
    for turn, model, took in in_turns(job.effort.rounds, methods.clocks(job.name, size)):
        job.keep(model, None, turn, {}, took, size=size)


BENCHMARK = Benchmark(
    "dp_scd",
    __doc__,
    {
        "utility": Part(run_utility, tuple(problems.CASES), ("tuning", "utility"), tuple(METHODS)),
        "plain": Part(run_plain, tuple(problems.CASES)),
        "convergence": Part(run_convergence, tuple(problems.CASES)),
        "grid": Part(run_grid, tuple(problems.CASES)),
        "timing": Part(run_timing, methods.TIMED, by_default=False),
    },
    DualPage,
    Path(__file__).with_name("effort.toml"),
    tuple(METHODS),
)

if __name__ == "__main__":
    BENCHMARK.main()
