"""The figures of the DP-SCD paper (Damaskinos et al. 2021) again: its form, ours and DP-SGD, all by one accountant.

    python -m benchmarks.dp_scd [--quick] [--resume] [--render-only] [--parts utility timing] [--sets NAME ...]

"utility": test scores against epsilon (Figure 1), after tuning each method on its grid, for free, on rows that are held
out of the training rows; the numbers to reach are among them. "smaller": the same at delta = n^-1.5. "limits": two of
these numbers on the rows and columns that they were set for. "plain": scores without privacy. "noiseless": of SGD and
SCD without noise. "convergence": the objective by epochs (Figure 2). "grid": batch against clip (Figure 3). "ablation":
the rule with one part replaced at a time. "timing": one epoch against two products with the data, by the processor's
time; it is not run unless named.
"""

import math
from collections.abc import Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.dp_scd import ablation, methods, problems
from benchmarks.dp_scd.methods import METHODS, SGD, Dual
from benchmarks.dp_scd.page import PLAIN, TRACED, DualPage
from benchmarks.dp_scd.problems import Problem
from benchmarks.dp_scd.wanted import WANTED
from benchmarks.frame.command import Benchmark, Job, Part
from benchmarks.frame.timing import in_turns
from benchmarks.frame.tuning import Point, tune
from tacit.privacy import Budget

DELTAS = {"1e-3": 0.0, "n^-1.5": -1.5, "n^-2": -2.0}  # powers of n
SMALLER = "n^-1.5"
MARKS = (1, 2, 3, 5, 7, 10, 20, 35, 50)  # epochs, up to those of a problem
ONE_DELTA = ("paper's step", "last", "newton", "authors", "sequential", "primal")  # only where the paper has them
COMPARED = tuple(name for name in METHODS if name not in ONE_DELTA)
LIMITED = ("Logistic, phishing", "SVM, adult")  # whose number to reach was set on other rows
RULE_STEP = {"squared": 2.0, "logistic": 10.0, "hinge": 10.0}  # of the rule, in units of the paper's
GRID_EPSILON = 1.0
UNCLIPPED = 1e6
SMALLEST = 100  # batch of the published variant, which draws noise for all rows in every step


def budget_of(rows: int, epsilon: float, delta: str) -> Budget:
    """With delta by its name, in the number of training rows."""
    power = DELTAS[delta]
    return Budget(epsilon, rows**power if power else 1e-3)


def tuned_scores(method: Any, problem: Problem, budget: Budget, points: list[Point], seed: int) -> Sequence[float]:
    """On the rows that a seed holds out of the training rows."""
    return method.scores(problem.split(seed, tuning=True), budget, points, seed)


def run_utility(job: Job) -> None:
    """Every method at every budget of the paper's delta."""
    loss = problems.CASES[job.name][1]
    if job.method == "newton" and loss != "logistic":
        return  # for which the paper's steps are exact
    _utility(job, [(epsilon, "1e-3") for epsilon in job.effort.epsilons])
    if loss == "logistic" and job.method not in ONE_DELTA:
        _utility(job, [(0.1, "n^-2")])  # which one of the numbers to reach asks for


def run_smaller(job: Job) -> None:
    """The methods that are compared, at a delta that falls with the rows."""
    _utility(job, [(epsilon, SMALLER) for epsilon in job.effort.smaller_epsilons])


def _utility(job: Job, cells: list[tuple[float, str]]) -> None:
    """Tune a method at every budget, then run it on fresh seeds."""
    problem, effort, method = problems.problem(job.name, job.effort.most_rows), job.effort, METHODS[job.method]
    for epsilon, delta in cells:
        budget, point = budget_of(problem.train_rows, epsilon, delta), method.grid[0]
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


def run_limits(job: Job) -> None:
    """A number to reach as it was set: on other training rows for each seed, three quarters of all, all columns."""
    problem = problems.problem(job.name, job.effort.most_rows, paper=False)
    (wanted,) = (wanted for wanted in WANTED if wanted.problem == job.name)
    for seed in range(job.effort.seeds):
        split = problem.anew(seed)
        job.keep("optimum", None, seed, {"score": split.score(split.solution)}, size=problem.X.shape)
        budget = budget_of(len(split.y), wanted.epsilon, wanted.delta)
        for model in ("fit", "rule"):
            scores = {"score": METHODS[model].scores(split, budget, [Point()], seed)}
            job.keep(model, wanted.epsilon, seed, scores, size=problem.X.shape)


def run_noiseless(job: Job) -> None:
    """SCD one row at a time, which has nothing to tune, and SGD, both without noise and clipping."""
    problem, budget, effort = problems.problem(job.name, job.effort.most_rows), Budget(math.inf, 1e-3), job.effort
    scd, sgd = METHODS["last"], METHODS["sgd"]
    grid = [Point(batch, UNCLIPPED, step) for batch, step in product(effort.sgd_batches, effort.sgd_steps)]
    point = tune([grid], partial(tuned_scores, sgd, problem, budget), effort).point
    for seed in range(effort.seeds):
        split = problem.split(seed)
        for model, method, at in (("scd", scd, Point(1, UNCLIPPED)), ("sgd", sgd, point)):
            scores = {"score": method.scores(split, budget, [at], seed), "batch": float(at.batch), "step": at.step}
            job.keep(model, None, seed, scores, size=problem.X.shape)


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


def run_ablation(job: Job) -> None:
    """The rule with one part replaced at a time."""
    problem = problems.problem(job.name, job.effort.most_rows)
    for epsilon, seed in product(job.effort.trace_epsilons, range(job.effort.replaced)):
        found = ablation.scores(problem.split(seed), budget_of(problem.train_rows, epsilon, "1e-3"), seed)
        for name, scores in found.items():
            job.keep(name, epsilon, seed, {"score": scores}, size=problem.X.shape)


def run_convergence(job: Job) -> None:
    """The objective along the runs that tuned best; without noise, that of ours and of SGD there, and of plain SCD."""
    problem = problems.problem(job.name, job.effort.most_rows)
    marks = [mark for mark in MARKS if mark <= problem.epochs]
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
            runs.append((f"{PLAIN[name]} {epsilon:g}", math.inf, Point(int(batch), UNCLIPPED, safe)))
        if name == "tuned":
            runs.append((f"{PLAIN['scd']} {epsilon:g}", math.inf, Point(1, UNCLIPPED)))
        for model, at, where in runs:
            for seed in range(job.effort.traces):
                split = problem.split(seed)
                budget = budget_of(problem.train_rows, at, "1e-3")
                values = method.objectives(split, budget, where, seed, marks)
                scores: dict[str, Any] = {"epochs": list(map(float, marks)), "objective": values}
                scores |= {"optimum": split.objective(split.solution), "zero": split.objective(0 * split.solution)}
                job.keep(model, at, seed, scores, size=problem.X.shape)


def run_grid(job: Job) -> None:
    """Batch against clip, of our variant and of the published one."""
    problem, effort = problems.problem(job.name, job.effort.most_rows), job.effort
    budget = budget_of(problem.train_rows, GRID_EPSILON, "1e-3")
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


def _tables(*deltas: str) -> tuple[str, ...]:
    """What is written at these."""
    return tuple(f"{table}, {delta}" for table, delta in product(("tuning", "utility"), deltas))


BENCHMARK = Benchmark(
    "dp_scd",
    __doc__,
    {
        "utility": Part(run_utility, tuple(problems.CASES), _tables("1e-3", "n^-2"), tuple(METHODS)),
        "smaller": Part(run_smaller, tuple(problems.CASES), _tables(SMALLER), COMPARED),
        "limits": Part(run_limits, LIMITED),
        "plain": Part(run_plain, tuple(problems.CASES)),
        "noiseless": Part(run_noiseless, tuple(problems.CASES)),
        "convergence": Part(run_convergence, tuple(problems.CASES)),
        "grid": Part(run_grid, tuple(problems.CASES)),
        "ablation": Part(run_ablation, tuple(problems.CASES)),
        "timing": Part(run_timing, methods.TIMED, by_default=False),
    },
    DualPage,
    Path(__file__).with_name("effort.toml"),
    tuple(METHODS),
)

if __name__ == "__main__":
    BENCHMARK.main()
