"""The tables and figures of the DP-CD paper (Mangold et al. 2022) again: its form, ours, greedy and DP-SGD.

    python -m benchmarks.dp_cd [--quick] [--resume] [--render-only] [--parts table untuned] [--methods ours]

"table": relative errors to the non-private optimum at 2, 5, 10, 20 and 50 passes, tuned for each number of passes on
the paper's grid, for free, as the paper does; then ten fresh seeds at the best setting (Table 2). "untuned": the
library's own rules. "plain": SGD without noise, on more batch sizes. "bare": DP-CD in cyclic order without noise.
"trace": errors and seconds along the run with the best number of passes (Figures 1 to 3). "timing": the time of a pass
(Table 3). Seconds are the processor's.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks.dp_cd import problems, untuned
from benchmarks.dp_cd.methods import METHODS, SGD, SGD_HERE, TRACED, Scd, timings
from benchmarks.dp_cd.page import CoordinatePage
from benchmarks.frame.command import Benchmark, Job, Part
from benchmarks.frame.tuning import Point, tune

MARKS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 50)


def run_table(job: Job) -> None:
    """Tune a method at every number of passes, then run it on fresh seeds; DP-SGD also without noise."""
    method, problem, effort = METHODS[job.method], problems.problem(job.name), job.effort
    if not method.serves(problem):
        return
    passes, shared = effort.passes, {"size": problem.shape}
    grid = method.grid()[:: effort.steps_apart]
    search = effort.but(**effort.dual) if isinstance(method, Scd) else effort
    found = [tune(grid, partial(method.errors, problem, count), search) for count in passes]
    points = [tuned.point for tuned in found]
    scores = {"passes": list(map(float, passes)), "relative error": [tuned.score for tuned in found]}
    tuned = scores | {key: [float(getattr(point, key)) for point in points] for key in ("step", "clip", "batch")}
    job.keep(job.method, problem.epsilon, 0, tuned, table="tuning", note=f"{search.runs} runs", **shared)
    for seed in range(effort.seeds):
        pairs = zip(passes, points, strict=True)
        scores["relative error"] = [float(method.errors(problem, count, [point], seed)[0]) for count, point in pairs]
        job.keep(job.method, problem.epsilon, seed, scores, **shared)
    if isinstance(method, SGD):
        scores["relative error"] = [method.noiseless_error(problem, count) for count in passes]
        job.keep(job.method, None, 0, scores, table="noiseless", **shared)


def run_untuned(job: Job) -> None:
    """The library's own rules."""
    problem = problems.problem(job.name)
    for rule in untuned.RULES:
        for seed in range(job.effort.seeds):
            error = untuned.error(rule, problem, seed)
            if error is None:
                break
            job.keep(rule, problem.epsilon, seed, {"relative error": error}, size=problem.shape)


def run_bare(job: Job) -> None:
    """DP-CD in cyclic order without noise and clipping: what noise is not to blame for."""
    problem, method, passes = problems.problem(job.name), METHODS[job.method], job.effort.passes
    errors = [method.noiseless_error(problem, count) for count in passes]
    scores = {"passes": list(map(float, passes)), "relative error": errors}
    job.keep(job.method, None, 0, scores, size=problem.shape)


def run_plain(job: Job) -> None:
    """SGD without noise and clipping at the best step of each batch size, at the most passes."""
    problem, batches, passes = problems.problem(job.name), job.effort.plain_batches, max(job.effort.passes)
    for seed in range(job.effort.plain_seeds):
        errors = [replace(SGD_HERE, batches=(batch,)).noiseless_error(problem, passes, seed) for batch in batches]
        scores = {"batch": list(map(float, batches)), "relative error": errors, "passes": float(passes)}
        job.keep("sgd", None, seed, scores, size=problem.shape)


def run_trace(job: Job) -> None:
    """Errors and seconds along the run with the number of passes that tuned best."""
    problem, method = problems.problem(job.name), METHODS[job.method]
    for tuned in [r for r in job.store if (r.table, r.set, r.model) == ("tuning", job.name, job.method)]:
        columns = (tuned.scores[key] for key in ("relative error", "passes", "batch", "clip", "step"))
        _, passes, batch, clip, step = min(zip(*columns, strict=True))
        point, marks = Point(int(batch), clip, step), [mark for mark in MARKS if mark <= passes]
        method.trace(problem, int(passes), point, 0, marks[:1])  # kernels are compiled now
        for seed in range(job.effort.seeds):
            errors, seconds = method.trace(problem, int(passes), point, seed, marks)
            scores = {"passes": list(map(float, marks)), "relative error": errors}
            job.keep(job.method, problem.epsilon, seed, scores, seconds, size=problem.shape)


def run_timing(job: Job) -> None:
    """The time of a pass, in rounds."""
    problem = problems.problem(job.name)
    for turn, model, took in timings(problem, job.effort.rounds):
        job.keep(model, None, turn, {}, took, size=problem.shape)


BENCHMARK = Benchmark(
    "dp_cd",
    __doc__,
    {
        "table": Part(run_table, "sets", ("tuning", "table", "noiseless"), tuple(METHODS)),
        "untuned": Part(run_untuned, "sets"),
        "plain": Part(run_plain, "plain"),
        "bare": Part(run_bare, "sets", methods=("paper-cyclic", "ours-cyclic")),
        "trace": Part(run_trace, "sets", methods=TRACED),
        "timing": Part(run_timing, lambda effort: (*effort.sets, *effort.timed)),
    },
    CoordinatePage,
    Path(__file__).with_name("effort.toml"),
    tuple(METHODS),
)

if __name__ == "__main__":
    BENCHMARK.main()
