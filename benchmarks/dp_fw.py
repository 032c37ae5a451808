"""The tables and figures of the sparse DP Frank-Wolfe paper (Raff, Khanna, Lu 2023) again, honestly calibrated.

    python benchmarks/dp_fw.py [--quick] [--resume] [--render-only] [--parts speed accuracy ...] [--sets NAME ...]

"speed": whole fits against Algorithm 1 with brute-force selection on data of the paper's shapes and on real news20
(Table 3), with draws of the samplers and iterations as columns grow; it wants a quiet machine. "accuracy": scores
against epsilon on real sets. "table 4": the paper's own setting. "figures": gaps and operations without noise (Figures
1, 2 and 4). "signs": the problem with entries of -1 and +1. "kdda": the memory of a fit of KDDA's full shape, which
takes long and is not run unless named.

Results are kept as JSON lines in the folder `--out`, and the page and plots there are drawn from them. `--resume` runs
what is not there yet; without it what is asked for is run again.
"""

import argparse
import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass

import command
import dp_fw_figures as figures
import dp_fw_kdda as kdda
import dp_fw_methods as methods
import dp_fw_problems as problems
import dp_fw_render as render
import dp_fw_timing as timing
import sets
from dp_fw_problems import Split
from records import Record, Store

PARTS = ["accuracy", "table 4", "signs", "figures", "speed", "kdda"]
SIGNS = "signs"
DRAWS, GROWTH = "draws", "growth"
SPEED_EPSILONS = (1.0, 0.1)
TRACED = ("RCV1", "news20", "sms_spam")


@dataclass(frozen=True)
class Effort:
    """How much is run."""

    epsilons: tuple[float, ...] = (0.1, 1.0, 3.0, 10.0)
    seeds: int = 3
    rounds: int = 5  # of what is timed
    at_least: float = 5.0  # seconds of brute force that are timed, over all rounds
    iterations: int = methods.PAPER_ITERATIONS
    most_rows: int | None = None
    part: float | None = None  # of the rows and columns of the paper's shapes
    columns: tuple[int, ...] = (10**4, 10**5, 10**6, 10**7)  # of draws; of iterations from 1e5 on
    kdda_iterations: int = kdda.COUNT


FULL = Effort()
QUICK = Effort((0.1, 1.0), 1, 1, 0.2, 300, 3_000, 0.02, (10**4, 10**5), 50)


def shape_of(name: str, effort: Effort) -> problems.Shape:
    """As it is made: with part of the rows, or scaled down for a quick run."""
    shape = problems.SHAPES[name]
    return shape if effort.part is None else shape.scaled(effort.part * min(1.0, 2e4 / shape.rows))


def split_of(name: str, seed: int, effort: Effort) -> Split:
    """Of a shape of the paper, or of a real set."""
    if name in problems.SHAPES:
        return problems.synthetic(shape_of(name, effort), seed)
    return problems.split(name, seed, effort.most_rows)


def run_accuracy(store: Store, name: str, effort: Effort) -> None:
    """Every method at every budget on a split for each seed; scikit-learn and the majority next to them."""
    for seed in range(effort.seeds):
        split = split_of(name, seed, effort)
        scores, took, _ = methods.plain(split)
        store.add(Record("accuracy", name, methods.PLAIN, None, seed, scores, [round(took, 4)], size=split.size))
        most = {"accuracy": [methods.majority(split)], "auc": [0.5], "sparsity": [1.0]}
        store.add(Record("accuracy", name, methods.MAJORITY, None, seed, most, [], size=split.size))
        for epsilon in effort.epsilons:
            budget = methods.budget_for(split.size[0], epsilon)
            for model, method in methods.METHODS.items():
                scores, took, note = method.measure(split, budget, seed)
                taken = [round(took, 4)]
                store.add(Record("accuracy", name, model, epsilon, seed, scores, taken, note, size=split.size))


def run_table_4(store: Store, name: str, effort: Effort) -> None:
    """The paper's setting of its Table 4 at epsilon 0.1, and what else the same budget gives."""
    for seed in range(min(effort.seeds, 2)):
        split = split_of(name, seed, effort)
        budget = methods.budget_for(split.size[0], 0.1)
        longer = 100 * effort.iterations
        fits = {
            "long": methods.FrankWolfe(longer, 100.0 * methods.PAPER_RADIUS),
            "short": methods.FrankWolfe(effort.iterations),
        }
        for model, method in fits.items():
            weights, _, took = method.fit(split.X, split.y, budget, seed)
            scores = methods.scores_of(split.X_test @ weights, split.y_test, weights)
            taken = [round(took, 3)]
            store.add(Record("table 4", name, model, 0.1, seed, scores, taken, str(method.count), size=split.size))
        for model in ("frank-wolfe", "auto"):
            scores, took, note = methods.METHODS[model].measure(split, budget, seed)
            store.add(Record("table 4", name, model, 0.1, seed, scores, [round(took, 4)], note, size=split.size))
        most = {"accuracy": [methods.majority(split)], "auc": [0.5], "sparsity": [1.0]}
        store.add(Record("table 4", name, methods.MAJORITY, None, seed, most, [], size=split.size))


def run_signs(store: Store, effort: Effort) -> None:
    """The +-1 problem at epsilon 1; the bound on entries, 1, is declared for Frank-Wolfe."""
    for seed in range(effort.seeds):
        split = problems.few_of_many(seed)
        root = split.size[1] ** 0.5
        budget = methods.budget_for(split.size[0], 1.0)
        for model in ("frank-wolfe", "mean difference", "one-shot", "gradient"):
            method = methods.METHODS[model]
            if isinstance(method, methods.Estimator) and model == "frank-wolfe":
                method = methods.Estimator(method.label, method.solver, (("entry_bound", 1.0),))
            scores, took, note = method.measure(split, budget, seed, None if model == "frank-wolfe" else root)
            store.add(Record(SIGNS, SIGNS, model, 1.0, seed, scores, [round(took, 4)], note, size=split.size))
        scores, took, _ = methods.plain(split)
        store.add(Record(SIGNS, SIGNS, methods.PLAIN, None, seed, scores, [round(took, 4)], size=split.size))


def run_figures(store: Store, name: str, effort: Effort) -> None:
    """A trace of each form."""
    split = split_of(name, 0, effort)
    for form in figures.TRACED:
        start = time.perf_counter()
        scores = figures.trace(split, form, effort.iterations)
        took = [round(time.perf_counter() - start, 3)]
        store.add(Record("trace", name, form, None, 0, scores, took, size=split.size))


def run_speed(store: Store, name: str, effort: Effort) -> None:
    """Fits, or draws, or iterations as columns grow."""
    timing.warm_up()
    if name == DRAWS:
        for columns in effort.columns:
            for sampler in timing.SAMPLERS:
                took, made = timing.draw_seconds(sampler, columns, effort.at_least / 5)
                scores = {"made": [float(made)]}
                store.add(Record("draws", f"{columns}", sampler, None, 0, scores, [took], size=(columns,)))
    elif name == GROWTH:
        columns = [d for d in effort.columns if d >= 10**5 or (d == effort.columns[0] and effort.part)]
        for d, (scores, took), size in timing.growing(columns, effort.at_least / 5, effort.rounds):
            store.add(Record("growth", f"{d}", "bucket", 1.0, 0, scores, took, size=size))
    else:
        split = split_of(name, 0, effort)
        rounds = effort.rounds if name not in problems.SHAPES or problems.SHAPES[name].part == 1.0 else 1
        brute = effort.at_least / rounds
        for epsilon in SPEED_EPSILONS:
            for turn, rung in itertools.product(range(rounds), timing.LADDER):  # in turns: a busy machine slows all
                scores, took = timing.fit_times(split, epsilon, rung, turn, brute, effort.iterations)
                store.add(Record("speed", name, rung, epsilon, turn, scores, took, size=split.size))


def run_kdda(store: Store, effort: Effort) -> None:
    """All rows of the shape, in a process of its own."""
    shape = problems.SHAPES["KDDA"]
    full = problems.Shape(shape.rows, shape.columns, shape.entries)
    shape = full if effort.part is None else full.scaled(effort.part / 100)
    found = kdda.measure(shape, effort.kdda_iterations)
    scores = {key: [value] for key, value in found.items()} | {"iterations": [float(effort.kdda_iterations)]}
    size = (shape.rows, shape.columns, shape.rows * shape.entries)
    store.add(Record("kdda", "KDDA", "frank-wolfe", 1.0, 0, scores, [found["fit"]], size=size))


def cases(arguments: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Part and set of everything asked for."""
    named = {
        "accuracy": tuple(problems.REAL),
        "table 4": ("RCV1", "News20", "news20"),
        "signs": (SIGNS,),
        "figures": TRACED,
        "speed": (*problems.SHAPES, "news20", DRAWS, GROWTH),
        "kdda": ("KDDA",),
    }
    for part in arguments.parts:
        for name in named[part]:
            if arguments.sets is None or name in arguments.sets:
                yield part, name


def made_by(record: Record, case: tuple[str, str]) -> bool:
    """Whether a case writes this record."""
    part, name = case
    if name in (DRAWS, GROWTH):
        return record.table == name
    table = {"figures": "trace"}.get(part, part)
    return record.table == table and record.set == name


def run(store: Store, arguments: argparse.Namespace, effort: Effort) -> list[str]:
    """Measure what was asked for. Returns what was skipped, by name."""
    skipped: dict[str, None] = {}
    for case in cases(arguments):
        part, name = case
        if arguments.resume and any(made_by(record, case) for record in store):
            continue
        start = time.perf_counter()
        try:
            if name in problems.REAL:
                problems.real(name, effort.most_rows)
        except sets.MissingSetError as error:
            skipped[f"skipped: {name} ({error})"] = None
            continue
        store.drop(lambda record, case=case: made_by(record, case))
        if part == "accuracy":
            run_accuracy(store, name, effort)
        elif part == "table 4":
            run_table_4(store, name, effort)
        elif part == "signs":
            run_signs(store, effort)
        elif part == "figures":
            run_figures(store, name, effort)
        elif part == "speed":
            run_speed(store, name, effort)
        else:
            run_kdda(store, effort)
        print(f"{part}, {name}: {time.perf_counter() - start:.1f} s", flush=True)
    return list(skipped)


def main(argv: list[str] | None = None) -> None:
    """Measure, and draw the page."""
    parser = command.parser(__doc__, PARTS, "few rows, columns, budgets and seeds", default=PARTS[:-1])
    names = (*problems.SHAPES, *problems.REAL, SIGNS, DRAWS, GROWTH)
    parser.add_argument("--sets", nargs="+", choices=names, help="of these parts, only these (default: all)")
    arguments = command.parsed(parser, argv)
    effort = QUICK if arguments.quick else FULL
    command.carry_out(
        "dp_fw",
        arguments,
        lambda store: run(store, arguments, effort),
        lambda store: render.pages(store, arguments.out, quick=arguments.quick),
    )


if __name__ == "__main__":
    main()
