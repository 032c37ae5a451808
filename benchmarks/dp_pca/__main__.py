"""Figure 1 and Table 3 of the DP-PCA paper (Shang et al. 2021) again, honestly calibrated, with every solver.

    python -m benchmarks.dp_pca [--quick] [--resume] [--render-only] [--parts figure targets ...] [--sets NAME ...]
                                [--methods gauss power ...]

"figure": captured variance and subspace error against epsilon, "ranks": against k (Figure 1). "table": a linear SVM on
projected rows (Table 3). "printed": the paper's algorithms as printed, and "noise": the true epsilon of the noise that
they add. "targets": the numbers to reach. "settings": options of two solvers, on the sets that chose their constants.
"rules": the rule for the radius against the best of a grid of radii that saw the data. "timing": fits and passes
against plain products, by processor time. --methods names solvers of "figure", "ranks" and "table", to measure alone.
"""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.dp_pca import methods, paper, printed, problems
from benchmarks.dp_pca.page import PcaPage
from benchmarks.frame.command import Benchmark, Job, Part

ABOUT_ZERO = {"delta": paper.DELTA, "center": False, "row_norm": 1.0}
QUANTILES = (0.05, 0.25, 0.5, 0.75, 1.0)
RULE_K, RULE_DELTA = 5, 1e-5
LARGE_SEEDS = 2  # of fits that take seconds
LARGE, HUGE = 10**7, 10**8  # entries from which on there are as many, or one


def _seeds(X: Any, most: int) -> int:
    entries = X.shape[0] * X.shape[1]
    return most if entries < LARGE else min(most, 1 if entries > HUGE and X.shape[1] <= methods.WIDE else LARGE_SEEDS)


def _asked(job: Job, solvers: Iterable[str]) -> list[str]:
    """Of these solvers those that are to be measured."""
    return [solver for solver in solvers if solver in job.methods]


def run_figure(job: Job) -> None:
    """Every solver at every budget; delta = 1e-3, rows about zero, as in the paper."""
    effort = job.effort
    X, _ = problems.rows(job.name, effort.most_rows)
    problem, wide = problems.problem(X, 10, center=False), X.shape[1] > methods.WIDE
    seeds = _seeds(X, effort.seeds)
    job.size = problem.size
    for seed in range(seeds):
        job.keep(methods.RANDOM, None, seed, problem.scores(methods.random_components(X.shape[1], 10, seed)))
        for epsilon in effort.wide_epsilons if wide or seeds == 1 else effort.epsilons:
            for solver in _asked(job, effort.wide if wide else methods.SOLVERS):
                if wide and solver == "gauss" and (seed > 0 or epsilon != 1.0):
                    continue  # minutes each; the noise of one matrix of this size averages itself
                job.keep(solver, epsilon, seed, *methods.measured(problem, epsilon, seed, solver=solver, **ABOUT_ZERO))


def run_ranks(job: Job) -> None:
    """Every solver for several k, at the paper's epsilon. The first of many eigenvectors are those of fewer."""
    X, _ = problems.rows(job.name, job.effort.most_rows)
    ranks = [k for k in job.effort.ranks if k <= X.shape[1]]
    widest = problems.problem(X, max(ranks), center=False)
    job.size = widest.size
    for seed in range(_seeds(X, job.effort.seeds)):
        for solver in _asked(job, methods.SOLVERS):
            model = None
            for k in sorted(ranks, reverse=True):
                if model is None or solver not in methods.OF_A_MATRIX:
                    model, _ = methods.fitted(X, k, paper.EPSILON, seed, solver=solver, **ABOUT_ZERO)
                scores = widest.first(k).scores(model.components_[:k])
                job.keep(f"{solver}, k = {k}", paper.EPSILON, seed, scores)


def run_table(job: Job) -> None:
    """Components from half of the rows at epsilon 0.1, linear SVMs on the other half."""
    effort = job.effort
    X, y = problems.rows(job.name, effort.most_rows)
    n, d = X.shape
    wide = d > methods.WIDE
    k = min(effort.wide_k if wide else 10, d)
    job.size = (n // 2, d, k)
    solvers = _asked(job, effort.wide_table if wide else methods.SOLVERS)
    for arrangement in range(effort.arrangements if solvers else 0):
        first, second = methods.halves(X, arrangement)
        bases: dict[str, Any] = {} if wide else {methods.ALL: None}
        bases[methods.PLAIN] = problems.problem(X[first], k, center=False).best
        bases[methods.RANDOM] = methods.random_components(d, k, arrangement)
        for solver in solvers:
            model, _ = methods.fitted(X[first], k, paper.EPSILON, arrangement, solver=solver, **ABOUT_ZERO)
            bases[solver] = model.components_
        for name, components in bases.items():
            for repetition in range(effort.repetitions):
                seed = effort.repetitions * arrangement + repetition
                scores = {"accuracy": methods.svm_accuracy(components, X[second], y[second], seed)}
                job.keep(name, paper.EPSILON if name in solvers else None, seed, scores)


def run_printed(job: Job) -> None:
    """Algorithms 1 and 2 as printed, with the noise they name for epsilon 0.1 and without any."""
    X, _ = problems.rows(job.name, job.effort.most_rows)
    X = X[: paper.ROWS[job.name]]
    problem = problems.problem(X, 10, center=False)
    job.size = problem.size
    for seed in range(_seeds(X, job.effort.seeds)):
        job.keep(methods.RANDOM, None, seed, problem.scores(methods.random_components(X.shape[1], 10, seed)))
        for name, algorithm in printed.ALGORITHMS.items():
            for epsilon in (None, paper.EPSILON):
                job.keep(name, epsilon, seed, problem.scores(algorithm(X, 10, epsilon, seed)))


def run_settings(job: Job) -> None:
    """Options on the sets that chose the constants: none of them judges."""
    X, _ = problems.rows(job.name, job.effort.most_rows)
    problem = problems.problem(X, 10, center=False)
    job.size = problem.size
    for epsilon in job.effort.rule_epsilons:
        for seed in range(job.effort.rule_seeds):
            for name, solver in methods.SETTINGS.items():
                job.keep(name, epsilon, seed, *methods.measured(problem, epsilon, seed, solver=solver, **ABOUT_ZERO))


def run_noise(job: Job) -> None:
    """What the paper's own noise gives, its sampling taken at its best."""
    n = paper.ROWS[job.name]
    for model, (multiplier, sensitivity) in paper.multipliers(n).items():
        scores = {"multiplier": multiplier, "epsilon": paper.true_epsilon(n, multiplier / sensitivity, n)}
        job.keep(model, paper.EPSILON, 0, scores, size=(n, n))


def run_targets(job: Job) -> None:
    """`auto` with `row_norm=1` declared."""
    asked, seeds = paper.WANTED[job.name], job.effort.target_seeds
    X, _ = problems.rows(job.name.removesuffix(", centred"), job.effort.most_rows)
    problem = problems.problem(X, asked["k"], asked["center"])
    job.size = problem.size
    options = {"delta": asked["delta"], "center": asked["center"], "row_norm": 1.0}
    for epsilon in (0.1, 1.0):
        for seed in range(seeds if X.shape[0] < 30_000 else min(seeds, LARGE_SEEDS)):
            job.keep("auto", epsilon, seed, *methods.measured(problem, epsilon, seed, **options))


def run_rules(job: Job) -> None:
    """Nothing declared, against radii at quantiles of the true distances, which cost the budget nothing."""
    X = problems.raw(job.name, min(job.effort.most_rows or problems.RULE_ROWS, problems.RULE_ROWS))
    problem = problems.problem(X, min(RULE_K, X.shape[1] - 1), center=True)
    job.size = problem.size
    distances = np.linalg.norm(X - X.mean(axis=0), axis=1)
    norm = float(2.0 ** math.ceil(math.log2(np.quantile(np.linalg.norm(X, axis=1), 0.98))))
    settings: dict[str, dict[str, float]] = {"rule": {}}
    for quantile in QUANTILES:
        radius = max(float(np.quantile(distances, quantile)), 1e-12)
        settings[f"{quantile:g}"] = {"row_norm": norm, "center_norm": radius}
    for epsilon in job.effort.rule_epsilons:
        for seed in range(job.effort.rule_seeds):
            for model, options in settings.items():
                job.keep(model, epsilon, seed, *methods.measured(problem, epsilon, seed, delta=RULE_DELTA, **options))
        chance = methods.random_components(X.shape[1], problem.k, 0)
        job.keep(methods.RANDOM, epsilon, 0, problem.scores(chance))


def run_timing(job: Job) -> None:
    """On MNIST a fit and a dense pass, on news20 a sparse pass; whole fits of every solver on a9a and MNIST."""
    X, _ = problems.rows(job.name, job.effort.most_rows)
    measured = {} if job.name == "a9a" else {"pass": methods.pass_seconds(X, 4 * job.effort.rounds)}
    if job.name != "news20":
        measured |= methods.solver_seconds(X, job.effort.rounds)
    if job.name == "MNIST":
        measured["fit"] = methods.fit_seconds(X, job.effort.rounds)
    for model, found in measured.items():
        job.keep(model, None, 0, found, found["private"], size=X.shape)


BENCHMARK = Benchmark(
    "dp_pca",
    __doc__,
    {
        "figure": Part(run_figure, problems.PAPER),
        "ranks": Part(run_ranks, ("a9a", "MNIST", "CIFAR-10")),
        "table": Part(run_table, problems.TABLE),
        "printed": Part(run_printed, tuple(paper.ROWS)),
        "noise": Part(run_noise, tuple(paper.ROWS)),
        "targets": Part(run_targets, tuple(paper.WANTED)),
        "settings": Part(run_settings, problems.CHOSE),
        "rules": Part(run_rules, problems.RULE_SETS),
        "timing": Part(run_timing, ("a9a", "MNIST", "news20")),
    },
    PcaPage,
    Path(__file__).with_name("effort.toml"),
    methods.SOLVERS,
)

if __name__ == "__main__":
    BENCHMARK.main()
