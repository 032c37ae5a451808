"""The tables and figures of the sparse DP Frank-Wolfe paper (Raff, Khanna, Lu 2023) again, honestly calibrated.

    python -m benchmarks.dp_fw [--quick] [--resume] [--render-only] [--parts speed accuracy ...] [--sets NAME ...]

"speed": whole fits against Algorithm 1 on data of the paper's shapes and on real news20 (Table 3); "grid": the same by
the solver's rules, over epsilon and iterations; "inputs": the same from dense to very sparse rows; "squared": the same
for the squared loss. These, "draws" of the samplers and "growth", iterations as columns grow, want a quiet machine.
"steps": iterations by the rule and by the paper's Appendix B. "accuracy": scores against epsilon on real sets. "table
4": the paper's own setting, and what its signs give away. "trace": gaps, operations and heap pops without noise
(Figures 1 to 4). These two also take the paper's own sets, where LIBSVM's files of them are in the data folder.
"signs": the problem with entries of -1 and +1; "auto": others of dense bounded rows. "kdda": the memory of a fit of
KDDA, which takes long and is not run unless named.
"""

import math
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.dp_fw import methods, problems, timing
from benchmarks.dp_fw.page import FrankWolfePage
from benchmarks.dp_fw.problems import Split
from benchmarks.frame.command import Benchmark, Job, Part
from tacit.solvers import FrankWolfe

SPEED_EPSILONS = (1.0, 0.1)


def split_of(job: Job, seed: int) -> Split:
    """Of a shape of the paper, scaled down for a quick run, of a real set, or of signs."""
    part, shape = job.effort.part, problems.SHAPES.get(job.name)
    if shape is not None:
        made = shape if part is None else shape.scaled(part * min(1.0, 2e4 / shape.rows))
        split = problems.synthetic(made, seed)
    elif job.name == "signs":
        split = problems.few_of_many(seed)
    else:
        split = problems.split(job.name, seed, job.effort.most_rows)
    job.size = split.size
    return split


def run_accuracy(job: Job) -> None:
    """Every method at every budget on a split for each seed; scikit-learn and the majority next to them."""
    for seed in range(job.effort.seeds):
        split = split_of(job, seed)
        job.keep(methods.PLAIN, None, seed, *methods.plain(split))
        job.keep(methods.MAJORITY, None, seed, methods.majority(split), ())
        for epsilon, (model, method) in product(job.effort.epsilons, methods.METHODS.items()):
            job.keep(model, epsilon, seed, *method.measure(split, split.budget(epsilon), seed))


def run_table_4(job: Job) -> None:
    """The paper's setting of its Table 4 at epsilon 0.1, and what else the same budget gives.

    "leaky" is not private: it takes the exact sign of the gradient, as the paper prints.
    """
    count = job.effort.iterations
    long = methods.FrankWolfe(100 * count, 100.0 * methods.PAPER_RADIUS)
    runs: dict[str, Any] = {"long": long, "short": methods.FrankWolfe(count)}
    runs |= {name: methods.METHODS[name] for name in ("frank-wolfe", "auto")}
    once = problems.is_cut(job.name) or job.name in problems.WIDEST
    for seed in range(1 if once else min(job.effort.seeds, 2)):
        split = split_of(job, seed)
        job.keep(methods.PLAIN, None, seed, *methods.plain(split))
        job.keep("leaky", 0.1, seed, *long.exact_signs(split, split.budget(0.1), seed))
        for model, method in runs.items():
            job.keep(model, 0.1, seed, *method.measure(split, split.budget(0.1), seed))
        job.keep(methods.MAJORITY, None, seed, methods.majority(split), ())


def run_signs(job: Job) -> None:
    """The +-1 problem at epsilon 1; the bound on entries, 1, is declared for Frank-Wolfe and `auto`."""
    ours = methods.Estimator("frank-wolfe", FrankWolfe(entry_bound=1.0))
    auto = methods.Estimator("auto", "auto", {"bounds": (-1.0, 1.0)})
    for seed in range(job.effort.seeds):
        split = split_of(job, seed)
        job.keep("frank-wolfe", 1.0, seed, *ours.measure(split, split.budget(1.0), seed, row_norm=None))
        job.keep("auto", 1.0, seed, *auto.measure(split, split.budget(1.0), seed, row_norm=None))
        for model in ("mean difference", "one-shot", "gradient"):
            found = methods.METHODS[model].measure(split, split.budget(1.0), seed, split.size[1] ** 0.5)
            job.keep(model, 1.0, seed, *found)
        job.keep(methods.PLAIN, None, seed, *methods.plain(split))


def run_auto(job: Job) -> None:
    """Dense rows with entries that are declared to lie in (-1, 1), at epsilon 1."""
    for seed in range(job.effort.seeds):
        split = problems.bounded_rows(job.name, seed)
        job.size = split.size
        for solver in ("gradient", "frank-wolfe", "auto"):
            model = methods.Estimator(solver, solver, {"bounds": (-1.0, 1.0)})
            job.keep(solver, 1.0, seed, *model.measure(split, split.budget(1.0), seed, row_norm=None))


def run_trace(job: Job) -> None:
    """A trace of each form."""
    split = split_of(job, 0)
    for form in timing.TRACED:
        job.keep(form, None, 0, timing.trace(split, form, job.effort.iterations))


def run_speed(job: Job) -> None:
    """Whole fits; brute force runs once where rows are fewer than the paper's, which are the widest shapes."""
    timing.warm_up()
    effort, split = job.effort, split_of(job, 0)
    rounds = effort.rounds
    for epsilon in SPEED_EPSILONS:
        for turn, rung in product(range(rounds), timing.LADDER):  # in turns: a busy machine slows all
            if turn > 0 and rung in timing.BRUTE and problems.is_cut(job.name):
                continue
            found = timing.fit_times(split, epsilon, rung, turn, effort.at_least / rounds, effort.iterations)
            job.keep(rung, epsilon, turn, *found)


def run_grid(job: Job) -> None:
    """Whole fits with the solver's ball, over epsilon and the number of iterations; the rule's own is called 0."""
    timing.warm_up()
    split = split_of(job, 0)
    cells = [*product(job.effort.epsilons, (None, *job.effort.counts)), (math.inf, None)]
    for epsilon, count in cells:
        for seed in range(job.effort.seeds if epsilon < math.inf else 1):
            scores, took, method = timing.own_fit(split, epsilon, count, seed)
            job.keep(f"{count or 0}", epsilon, seed, scores, took, str(method.count))
        found, slow = timing.algorithm_one(split, epsilon, method, job.effort.at_least / 10)
        job.keep(f"{count or 0}, algorithm 1", epsilon, 0, found, slow, str(method.count))


def run_inputs(job: Job) -> None:
    """Whole fits by the solver's rules, from dense rows to very sparse ones."""
    timing.warm_up()
    split = problems.even_input(job.name, job.effort.most_rows)
    job.size = split.size
    for epsilon in (*job.effort.input_epsilons, math.inf):
        for seed in range(job.effort.rounds if epsilon < math.inf else 1):
            scores, took, method = timing.own_fit(split, epsilon, None, seed)
            job.keep("ours", epsilon, seed, scores, took, str(method.count))
        found, slow = timing.algorithm_one(split, epsilon, method, job.effort.at_least / 10)
        job.keep("algorithm 1", epsilon, 0, found, slow, str(method.count))


def run_squared(job: Job) -> None:
    """The squared loss on classes of -1 and 1, and the logistic loss, both by the solver's rules."""
    timing.warm_up()
    split = split_of(job, 0)
    for epsilon, loss in product((*job.effort.input_epsilons, math.inf), ("squared", "logistic")):
        for seed in range(job.effort.seeds if epsilon < math.inf else 1):
            scores, took, method = timing.own_fit(split, epsilon, None, seed, loss)
            job.keep(loss, epsilon, seed, scores, took, str(method.count))
        found, slow = timing.algorithm_one(split, epsilon, method, job.effort.at_least / 10)
        job.keep(f"{loss}, algorithm 1", epsilon, 0, found, slow, str(method.count))


def run_steps(job: Job) -> None:
    """The number of iterations by the rule, and by the paper's Appendix B for the same ball."""
    for seed in range(job.effort.seeds):
        split = split_of(job, seed)
        for epsilon in job.effort.epsilons:
            scores, took, method = timing.own_fit(split, epsilon, None, seed)
            job.keep("rule", epsilon, seed, scores, took, str(method.count))
            count = methods.appendix_b(split, method, epsilon)
            scores, took, _ = timing.own_fit(split, epsilon, count, seed)
            job.keep("appendix B", epsilon, seed, scores, took, str(count))


def run_draws(job: Job) -> None:
    """Draws of all samplers."""
    for sampler in timing.SAMPLERS:
        took, made = timing.draw_seconds(sampler, int(job.name), job.effort.at_least / 5)
        job.keep(sampler, None, 0, {"made": float(made)}, took, size=(int(job.name),))


def run_growth(job: Job) -> None:
    """Iterations as columns grow."""
    timing.warm_up()
    scores, took, size = timing.growing(int(job.name), job.effort.at_least / 5, job.effort.rounds)
    job.keep("bucket", 1.0, 0, scores, took, size=size)


def run_kdda(job: Job) -> None:
    """All rows of the shape, in a process of its own."""
    shape, count = replace(problems.SHAPES["KDDA"], part=1.0), job.effort.kdda_iterations
    if job.effort.part is not None:
        shape = shape.scaled(job.effort.part / 100)
    found = timing.fit_apart(shape, count) | {"iterations": float(count)}
    size = (shape.rows, shape.columns, shape.rows * shape.entries)
    job.keep("frank-wolfe", 1.0, 0, found, found["fit"], size=size)


BENCHMARK = Benchmark(
    "dp_fw",
    __doc__,
    {
        "accuracy": Part(run_accuracy, tuple(problems.REAL)),
        "table 4": Part(run_table_4, ("rcv1", "news20", *problems.PAPER_SETS, *problems.SHAPES)),
        "signs": Part(run_signs, ("signs",)),
        "auto": Part(run_auto, (*problems.WIDE_SIGNS, *problems.PIXELS)),
        "trace": Part(run_trace, ("rcv1", "news20", "sms_spam", *problems.PAPER_SETS)),
        "grid": Part(run_grid, ("news20", "rcv1")),
        "inputs": Part(run_inputs, (*problems.INPUTS, "a9a")),
        "squared": Part(run_squared, ("news20", "rcv1", "a9a")),
        "steps": Part(run_steps, ("news20", "rcv1", "a9a")),
        "speed": Part(run_speed, lambda _: (*problems.SHAPES, "news20")),
        "draws": Part(run_draws, lambda effort: [f"{columns}" for columns in effort.columns]),
        "growth": Part(run_growth, lambda effort: [f"{d}" for d in effort.columns if d >= 10**5]),
        "kdda": Part(run_kdda, ("KDDA",), by_default=False),
    },
    FrankWolfePage,
    Path(__file__).with_name("effort.toml"),
)

if __name__ == "__main__":
    BENCHMARK.main()
