"""Figure 1 and Table 3 of the DP-PCA paper (Shang et al. 2021) again, honestly calibrated, with every solver.

    python -m benchmarks.dp_pca [--quick] [--resume] [--render-only] [--parts figure targets ...] [--sets NAME ...]

"figure": captured variance and subspace error against epsilon (Figure 1). "table": a linear SVM on projected rows
(Table 3). "noise": the true epsilon of the noise that the paper adds. "targets": the numbers to reach. "rules": the
rule for the radius against the best of a grid of radii that saw the data. "timing": a fit and a pass against plain
products; it wants a quiet machine.
"""

import math
from pathlib import Path

import numpy as np

from benchmarks.dp_pca import methods, paper, problems
from benchmarks.dp_pca.page import PcaPage
from benchmarks.frame.command import Benchmark, Job, Part

ABOUT_ZERO = {"delta": paper.DELTA, "center": False, "row_norm": 1.0}
QUANTILES = (0.05, 0.25, 0.5, 0.75, 1.0)
RULE_K, RULE_DELTA = 5, 1e-5
LARGE_SEEDS = 2  # of fits that take seconds


def run_figure(job: Job) -> None:
    """Every solver at every budget; delta = 1e-3, rows about zero, as in the paper."""
    effort = job.effort
    X, _ = problems.rows(job.name, effort.most_rows)
    problem, wide = problems.problem(X, 10, center=False), X.shape[1] > methods.WIDE
    job.size = problem.size
    for seed in range(effort.seeds if X.shape[0] * X.shape[1] < 10**7 else min(effort.seeds, LARGE_SEEDS)):
        job.keep(methods.RANDOM, None, seed, problem.scores(methods.random_components(X.shape[1], 10, seed)))
        for epsilon in effort.wide_epsilons if wide else effort.epsilons:
            for solver in effort.wide if wide else methods.SOLVERS:
                if wide and solver == "gauss" and (seed > 0 or epsilon != 1.0):
                    continue  # minutes each; the noise of one matrix of this size averages itself
                job.keep(solver, epsilon, seed, *methods.measured(problem, epsilon, seed, solver=solver, **ABOUT_ZERO))


def run_table(job: Job) -> None:
    """Components from half of the rows at epsilon 0.1, a linear SVM on the other half."""
    X, y = problems.rows(job.name, job.effort.most_rows)
    n, d = X.shape
    job.size = (n // 2, d, 10)
    solvers = methods.SOLVERS if d <= methods.WIDE else [name for name in job.effort.wide if name != "gauss"]
    for seed in range(job.effort.seeds):
        first, second = methods.halves(X, seed)
        bases = {methods.PLAIN: problems.problem(X[first], 10, center=False).best}
        bases[methods.RANDOM] = methods.random_components(d, 10, seed)
        for solver in solvers:
            model, _ = methods.fitted(X[first], 10, paper.EPSILON, seed, solver=solver, **ABOUT_ZERO)
            bases[solver] = model.components_
        for model, components in bases.items():
            scores = {"accuracy": methods.svm_accuracy(components, X[second], y[second], seed)}
            job.keep(model, paper.EPSILON if model in solvers else None, seed, scores)


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
    """On MNIST a fit and a dense pass, on news20 a sparse pass."""
    X, _ = problems.rows(job.name, job.effort.most_rows)
    measured = {"pass": methods.pass_seconds(X, 4 * job.effort.rounds)}
    if job.name == "MNIST":
        measured["fit"] = methods.fit_seconds(X, job.effort.rounds)
    for model, found in measured.items():
        job.keep(model, None, 0, found, found["private"], size=X.shape)


BENCHMARK = Benchmark(
    "dp_pca",
    __doc__,
    {
        "figure": Part(run_figure, problems.PAPER),
        "table": Part(run_table, problems.PAPER),
        "noise": Part(run_noise, tuple(paper.ROWS)),
        "targets": Part(run_targets, tuple(paper.WANTED)),
        "rules": Part(run_rules, problems.RULE_SETS),
        "timing": Part(run_timing, ("MNIST", "news20")),
    },
    PcaPage,
    Path(__file__).with_name("effort.toml"),
)

if __name__ == "__main__":
    BENCHMARK.main()
