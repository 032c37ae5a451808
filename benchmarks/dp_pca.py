"""Figure 1 and Table 3 of the DP-PCA paper (Shang et al. 2021) again, honestly calibrated, with every solver.

    python benchmarks/dp_pca.py [--quick] [--resume] [--render-only] [--parts figure targets ...] [--sets NAME ...]

"figure": captured variance and subspace error against epsilon (Figure 1). "table": a linear SVM on projected rows
(Table 3). "noise": the true epsilon of the noise that the paper adds. "targets": the numbers to reach. "rules": the
rule for the radius against the best of a grid of radii that saw the data. "timing": a fit and a pass against plain
products; it wants a quiet machine.

Results are kept as JSON lines in the folder `--out`, and the page and the plot there are drawn from them. `--resume`
runs what is not there yet; without it what is asked for is run again.
"""

import argparse
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

import command
import dp_pca_methods as methods
import dp_pca_problems as problems
import dp_pca_render as render
import dp_pca_timing as timing
import sets
from records import Record, Store

TARGETS = {  # set: k, center, delta
    "a9a": (10, False, 1e-3),
    "MNIST": (10, False, 1e-3),
    "digits": (10, True, 1e-5),
    "digits, bounds alone": (10, True, 1e-5),
    "breast_cancer": (5, True, 1e-5),
    "breast_cancer, bounds alone": (5, True, 1e-5),
    "California": (2, True, 1e-5),
    "MNIST, centred": (10, True, 1e-5),
}
PAPER_EPSILON = 0.1
PAPER_ROWS = {"a9a": 32_561, "MNIST": 60_000}
QUANTILES = (0.05, 0.25, 0.5, 0.75, 1.0)
RULE_K, RULE_DELTA = 5, 1e-5
LARGE_SEEDS = 2  # of fits that take seconds


@dataclass(frozen=True)
class Effort:
    """How much is run."""

    epsilons: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0)
    seeds: int = 3
    target_seeds: int = 20
    rule_epsilons: tuple[float, ...] = (0.1, 1.0, 10.0)
    rule_seeds: int = 3
    rounds: int = 5
    most_rows: int | None = None
    wide: tuple[str, ...] = ("stochastic", "variance-reduced", "power", "gauss")  # what is run on news20
    wide_epsilons: tuple[float, ...] = (0.1, 1.0)


FULL = Effort()
QUICK = Effort((0.1, 1.0), 1, 1, (1.0,), 1, 1, 3_000, ("stochastic", "power"), (1.0,))


def run_figure(store: Store, name: str, effort: Effort) -> None:
    """Every solver at every budget; delta = 1e-3, rows about zero, as in the paper."""
    X, y = problems.rows(name, effort.most_rows)
    problem = problems.problem(X, y, 10, center=False)
    wide = X.shape[1] > methods.WIDE
    for seed in range(effort.seeds if X.shape[0] * X.shape[1] < 10**7 else min(effort.seeds, LARGE_SEEDS)):
        chance = problem.scores(methods.random_components(X.shape[1], 10, seed))
        store.add(Record("figure", name, methods.RANDOM, None, seed, chance, [], size=problem.size))
        for epsilon in effort.wide_epsilons if wide else effort.epsilons:
            for solver in effort.wide if wide else methods.SOLVERS:
                if wide and solver == "gauss" and (seed > 0 or epsilon != 1.0):
                    continue  # minutes each; the noise of one matrix of this size averages itself
                options = {"delta": methods.DELTA, "center": False, "row_norm": 1.0, "solver": solver}
                model, took = methods.fitted(X, 10, epsilon, seed, **options)
                scores = problem.scores(model.components_)
                store.add(Record("figure", name, solver, epsilon, seed, scores, [round(took, 3)], size=problem.size))


def run_table(store: Store, name: str, effort: Effort) -> None:
    """Components from half of the rows at epsilon 0.1, a linear SVM on the other half."""
    X, y = problems.rows(name, effort.most_rows)
    wide = X.shape[1] > methods.WIDE
    for seed in range(effort.seeds):
        first, second = methods.halves(X, seed)
        d = X.shape[1]
        bases = {
            methods.PLAIN: problems.problem(X[first], None, 10, center=False).best,
            methods.RANDOM: methods.random_components(d, 10, seed),
        }
        for solver in effort.wide if wide else methods.SOLVERS:
            if wide and solver == "gauss":
                continue
            options = {"delta": methods.DELTA, "center": False, "row_norm": 1.0, "solver": solver}
            bases[solver] = methods.fitted(X[first], 10, PAPER_EPSILON, seed, **options)[0].components_
        for model, components in bases.items():
            scores = {"accuracy": [methods.svm_accuracy(components, X[second], y[second], seed)]}
            epsilon = PAPER_EPSILON if model in methods.SOLVERS else None
            store.add(Record("table", name, model, epsilon, seed, scores, [], size=(len(first), d, 10)))


def run_noise(store: Store, name: str) -> None:
    """What the paper's own noise gives, its sampling taken at its best."""
    n = PAPER_ROWS[name]
    settings = {
        "DP-SPCA": (methods.spca_multiplier(n, PAPER_EPSILON), 1.0),
        "DP-VRPCA": (methods.vrpca_multiplier(n, PAPER_EPSILON), 1.0),
        "DP-VRPCA, real sensitivity": (methods.vrpca_multiplier(n, PAPER_EPSILON), 2.0),
    }
    for model, (multiplier, sensitivity) in settings.items():
        scores = {"multiplier": [multiplier], "epsilon": [methods.true_epsilon(n, multiplier / sensitivity, n)]}
        store.add(Record("noise", name, model, PAPER_EPSILON, 0, scores, [], size=(n, n)))


def run_targets(store: Store, name: str, effort: Effort) -> None:
    """`auto` with `row_norm=1` declared."""
    k, center, delta = TARGETS[name]
    X, y = problems.rows(name.removesuffix(", centred"), effort.most_rows)
    problem = problems.problem(X, y, k, center)
    for epsilon in (0.1, 1.0):
        for seed in range(effort.target_seeds if X.shape[0] < 30_000 else min(effort.target_seeds, LARGE_SEEDS)):
            model, took = methods.fitted(X, k, epsilon, seed, delta=delta, center=center, row_norm=1.0)
            scores, note = problem.scores(model.components_), model.guarantee_.solver
            store.add(Record("targets", name, "auto", epsilon, seed, scores, [round(took, 3)], note, size=problem.size))


def run_rules(store: Store, name: str, effort: Effort) -> None:
    """Nothing declared, against radii at quantiles of the true distances, which cost the budget nothing."""
    X = problems.raw(name, min(effort.most_rows or problems.RULE_ROWS, problems.RULE_ROWS))
    k = min(RULE_K, X.shape[1] - 1)
    problem = problems.problem(X, None, k, center=True)
    distances = np.linalg.norm(X - X.mean(axis=0), axis=1)
    norm = float(2.0 ** math.ceil(math.log2(np.quantile(np.linalg.norm(X, axis=1), 0.98))))
    for epsilon in effort.rule_epsilons:
        for seed in range(effort.rule_seeds):
            settings: dict[str, dict[str, float]] = {"rule": {}}
            for quantile in QUANTILES:
                radius = max(float(np.quantile(distances, quantile)), 1e-12)
                settings[f"{quantile:g}"] = {"row_norm": norm, "center_norm": radius}
            for model, options in settings.items():
                found, took = methods.fitted(X, k, epsilon, seed, delta=RULE_DELTA, **options)
                scores = {"captured": [problem.captured(found.components_)]}
                store.add(Record("rules", name, model, epsilon, seed, scores, [round(took, 3)], size=problem.size))
        chance = problem.captured(methods.random_components(X.shape[1], k, 0))
        store.add(Record("rules", name, methods.RANDOM, epsilon, 0, {"captured": [chance]}, [], size=problem.size))


def run_timing(store: Store, name: str, effort: Effort) -> None:
    """On MNIST a fit and a dense pass, on news20 a sparse pass."""
    X, _ = problems.rows(name, effort.most_rows)
    measured = {"pass": timing.one_pass(X, 4 * effort.rounds)}
    if name == "MNIST":
        measured["fit"] = timing.whole_fit(X, effort.rounds)
    for model, found in measured.items():
        scores = {key: [value] for key, value in found.items()}
        store.add(Record("timing", name, model, None, 0, scores, [found["private"]], size=X.shape))


NAMED = {
    "figure": problems.PAPER,
    "table": problems.PAPER,
    "noise": tuple(PAPER_ROWS),
    "targets": tuple(TARGETS),
    "rules": problems.RULE_SETS,
    "timing": ("MNIST", "news20"),
}


def cases(arguments: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Part and set of everything asked for."""
    for part in arguments.parts:
        for name in NAMED[part]:
            if arguments.sets is None or name in arguments.sets:
                yield part, name


def run(store: Store, arguments: argparse.Namespace, effort: Effort) -> list[str]:
    """Measure what was asked for. Returns what was skipped."""
    runners: dict[str, Callable[[str], None]] = {
        "figure": lambda name: run_figure(store, name, effort),
        "table": lambda name: run_table(store, name, effort),
        "noise": lambda name: run_noise(store, name),
        "targets": lambda name: run_targets(store, name, effort),
        "rules": lambda name: run_rules(store, name, effort),
        "timing": lambda name: run_timing(store, name, effort),
    }
    skipped = []
    for part, name in cases(arguments):
        mine = [record for record in store if (record.table, record.set) == (part, name)]
        if arguments.resume and mine:
            continue
        store.drop(lambda record, part=part, name=name: (record.table, record.set) == (part, name))
        start = time.perf_counter()
        try:
            runners[part](name)
        except sets.MissingSetError as error:
            skipped.append(f"skipped: {part}, {name} ({error})")
            continue
        print(f"{part}, {name}: {time.perf_counter() - start:.1f} s", flush=True)
    return skipped


def main(argv: list[str] | None = None) -> None:
    """Measure, and draw the page."""
    parser = command.parser(__doc__, list(NAMED), "few rows, budgets and seeds")
    names = sorted({name for group in NAMED.values() for name in group})
    parser.add_argument("--sets", nargs="+", choices=names, help="of these parts, only these (default: all)")
    arguments = command.parsed(parser, argv)
    command.carry_out(
        "dp_pca",
        arguments,
        lambda store: run(store, arguments, QUICK if arguments.quick else FULL),
        lambda store: render.pages(store, arguments.out, quick=arguments.quick),
    )


if __name__ == "__main__":
    main()
