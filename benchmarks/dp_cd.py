"""The tables and figures of the DP-CD paper (Mangold et al. 2022) again: its form, ours, greedy and DP-SGD.

    python benchmarks/dp_cd.py [--quick] [--resume] [--render-only] [--parts table untuned] [--methods ours]

"table": relative errors to the non-private optimum at 2, 5, 10, 20 and 50 passes, tuned for each number of passes on
the paper's grid, for free, as the paper does; then ten fresh seeds at the best setting (Table 2). "untuned": the
library's own rules. "traces": errors and seconds along the run with the best number of passes (Figures 1 to 3).
"timing": the time of a pass (Table 3). Let the machine be quiet for these two, and leave OMP_NUM_THREADS alone: timing
takes one BLAS thread and then all, everything else takes one.

Results are kept as JSON lines in the folder `--out`, and the page and plots there are drawn from them. `--resume` runs
what is not there yet; without it what is asked for is run again.
"""

import argparse
import time
from collections.abc import Iterator

import command
import dp_cd_problems as problems
import dp_cd_render as render
import dp_cd_timing as timing
import dp_cd_untuned as untuned
import sets
from dp_cd_figures import TRACED
from dp_cd_methods import METHODS, SGD, Point
from dp_cd_paper import PASSES
from dp_cd_problems import Problem
from dp_cd_tuning import FULL, QUICK, Effort, tune
from records import Record, Store

PARTS = ["table", "untuned", "traces", "timing"]
QUICK_PROBLEMS = ("Electricity, imbalanced", "California, imbalanced", "Sparse LASSO")
QUICK_PASSES = (5, 20)
MARKS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 50)
TIMED_SIZE = (20_000, 100)


def run_table(store: Store, problem: Problem, name: str, effort: Effort, passes: tuple[int, ...]) -> None:
    """Tune a method at every number of passes, then run it on fresh seeds."""
    method, start = METHODS[name], time.perf_counter()
    found = [tune(method, problem, count, effort) for count in passes]
    points = [point for point, _ in found]
    scores = {
        "passes": list(map(float, passes)),
        "relative error": [mean for _, mean in found],
        "step": [point.step for point in points],
        "clip": [point.clip for point in points],
        "batch": [float(point.batch) for point in points],
    }
    took = [round(time.perf_counter() - start, 1)]
    note = f"{effort.runs} runs"
    store.add(Record("tuning", problem.name, name, problem.epsilon, 0, scores, took, note=note, size=problem.shape))
    for seed in effort.report_seeds:
        start = time.perf_counter()
        pairs = zip(passes, points, strict=True)
        errors = [float(method.errors(problem, count, [point], seed)[0]) for count, point in pairs]
        scores = {"passes": list(map(float, passes)), "relative error": errors}
        took = [round(time.perf_counter() - start, 3)]
        store.add(Record("table", problem.name, name, problem.epsilon, seed, scores, took, size=problem.shape))


def run_noiseless(store: Store, problem: Problem, method: SGD, passes: tuple[int, ...]) -> None:
    """How far DP-SGD would come without noise."""
    start = time.perf_counter()
    scores = {"passes": list(map(float, passes))}
    scores["relative error"] = [method.noiseless_error(problem, count) for count in passes]
    took = [round(time.perf_counter() - start, 1)]
    store.add(Record("noiseless", problem.name, "sgd", None, 0, scores, took, size=problem.shape))


def run_untuned(store: Store, problem: Problem, effort: Effort) -> None:
    """The library's own rules."""
    for rule in untuned.RULES:
        for seed in effort.report_seeds:
            start = time.perf_counter()
            error = untuned.error(rule, problem, seed)
            if error is None:
                break
            took = [round(time.perf_counter() - start, 3)]
            scores = {"relative error": [error]}
            store.add(Record("untuned", problem.name, rule, problem.epsilon, seed, scores, took, size=problem.shape))


def run_trace(store: Store, problem: Problem, name: str, effort: Effort) -> None:
    """Errors and seconds along the run with the number of passes that tuned best."""
    (tuned,) = [r for r in store if (r.table, r.set, r.model) == ("tuning", problem.name, name)] or [None]
    if tuned is None:
        return
    best = min(range(len(tuned.scores["passes"])), key=lambda k: tuned.scores["relative error"][k])
    passes = int(tuned.scores["passes"][best])
    point = Point(tuned.scores["step"][best], tuned.scores["clip"][best], int(tuned.scores["batch"][best]))
    marks = [mark for mark in MARKS if mark <= passes]
    METHODS[name].trace(problem, passes, point, 0, marks[:1])  # kernels are compiled now
    for seed in effort.report_seeds:
        errors, seconds = METHODS[name].trace(problem, passes, point, seed, marks)
        scores = {"passes": list(map(float, marks)), "relative error": errors}
        took = [round(value, 5) for value in seconds]
        store.add(Record("trace", problem.name, name, problem.epsilon, seed, scores, took, size=problem.shape))


def run_timing(store: Store, problem: Problem, count: int) -> None:
    """The time of a pass, in rounds."""
    for number, turn, model, took in timing.rounds(problem, count):
        table = f"timing, {number} thread{'s' if number > 1 else ''}"
        store.add(Record(table, problem.name, model, None, turn, {}, [took], size=problem.shape))


def cases(arguments: argparse.Namespace) -> Iterator[tuple[str, str, str]]:
    """Part, problem and method of everything asked for; untuned rules and timings take all methods at once."""
    traced = [method for method in arguments.methods if method in TRACED]
    for part in arguments.parts:
        names = list(arguments.problems)
        if part == "timing":
            names += [f"{TIMED_SIZE[0]:,} x {TIMED_SIZE[1]}, {loss}" for loss in ("squared", "logistic")]
        for name in names:
            for method in {"table": arguments.methods, "traces": traced}.get(part, ("",)):
                yield part, name, method


def made_by(record: Record, case: tuple[str, str, str]) -> bool:
    """Whether a case writes this record."""
    part, name, method = case
    tables = {"table": ("tuning", "table", "noiseless"), "traces": ("trace",)}.get(part, (part,))
    return record.table.split(",")[0] in tables and record.set == name and method in ("", record.model)


def run(store: Store, arguments: argparse.Namespace) -> list[str]:
    """Measure what was asked for. Returns what was skipped, by name."""
    effort = QUICK if arguments.quick else FULL
    skipped: dict[str, None] = {}
    for case in cases(arguments):
        part, name, method = case
        if arguments.resume and any(made_by(record, case) for record in store):
            continue
        try:
            synthetic = name not in problems.NAMES
            loss = "squared" if name.endswith("squared") else "logistic"
            problem = problems.synthetic(*TIMED_SIZE, loss) if synthetic else problems.problem(name)
        except sets.MissingSetError as error:
            skipped[f"skipped: {name} ({error})"] = None
            continue
        if method and not METHODS[method].serves(problem):
            continue
        store.drop(lambda record, case=case: made_by(record, case))
        start = time.perf_counter()
        if part == "table":
            run_table(store, problem, method, effort, arguments.passes)
            if isinstance(METHODS[method], SGD):
                run_noiseless(store, problem, METHODS[method], arguments.passes)
        elif part == "untuned":
            run_untuned(store, problem, effort)
        elif part == "traces":
            run_trace(store, problem, method, effort)
        else:
            run_timing(store, problem, 3 if arguments.quick else 9)
        print(f"{part}, {name} {method}: {time.perf_counter() - start:.1f} s", flush=True)
    return list(skipped)


def main(argv: list[str] | None = None) -> None:
    """Measure, and draw the page."""
    parser = command.parser(__doc__, PARTS, "three problems on a coarse grid")
    parser.add_argument("--problems", nargs="+", choices=problems.NAMES, help="default: all")
    parser.add_argument("--methods", nargs="+", choices=tuple(METHODS), default=tuple(METHODS))
    parser.add_argument("--passes", nargs="+", type=int, help="default: 2 5 10 20 50")
    arguments = command.parsed(parser, argv)
    arguments.problems = arguments.problems or (QUICK_PROBLEMS if arguments.quick else problems.NAMES)
    arguments.passes = tuple(arguments.passes or (QUICK_PASSES if arguments.quick else PASSES))
    command.carry_out(
        "dp_cd",
        arguments,
        lambda store: run(store, arguments),
        lambda store: render.pages(store, arguments.out, QUICK if arguments.quick else FULL),
    )


if __name__ == "__main__":
    main()
