"""The figures of the featurewise distributed Frank-Wolfe paper (Lou and Cheung 2020) again, honestly noised.

    python benchmarks/federated.py [--quick] [--resume] [--render-only] [--parts numbers "figure 4" ...]
        [--methods marginals ...]

"numbers": the numbers to reach, on 1% dense data. "correlated": columns of different parties that are correlated.
"labels": those that every party holds, or that one releases a sketch of.
"overhead": what a round costs besides the protocol's own work. "printed": the true epsilon of the paper's noise.
"figure 1" and "figure 2": block-coordinate Frank-Wolfe without privacy. "figure 3": against central DP Frank-Wolfe.
"figure 4" to "figure 8": by rows, parties, epsilon, the split of the budget and the sketch size. "figure 9": real sets.

Results are kept as JSON lines in the folder `--out`, and the page and plots there are drawn from them. `--resume` runs
what is not there yet; without it what is asked for is run again.
"""

import argparse
import math
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import command
import federated_blocks as blocks
import federated_methods as methods
import federated_paper as paper
import federated_problems as problems
import federated_render as render
import federated_timing as timing
import sets
from federated_methods import BEST, CENTRAL, MARGINALS, METHODS, PARTIES, PLAIN, PRODUCT, SHARING, SHORT, Setting
from records import Record, Store
from tacit.federated.block_frank_wolfe import elementary

PARTS = ["numbers", "correlated", "labels", "overhead", "printed", *(f"figure {number}" for number in range(1, 10))]
DENSE, LABELLED = "1% dense", ("a9a", "phishing")  # what the ways to hold labels are compared on
MOST_EXACT = 1_000  # columns up to which marginals without noise, which then takes all of them, is quick
SPLIT = " | "  # between the name of a case and the value of what is varied in it
ALL = "all"  # in place of a value: a method that does not depend on it


@dataclass(frozen=True)
class Effort:
    """How much is run. Sizes are rows and columns."""

    seeds: int = 3  # of data and noise
    number_seeds: int = 6  # of marginals in the numbers to reach
    rival_seeds: int = 1  # of what stands next to marginals where a fit is slow: the numbers to reach
    sizes: tuple[tuple[int, int], ...] = ((800, 8_000), (100_000, 8_000))  # Figures 5 to 8: the paper's, and ours
    many: tuple[int, int] = (100_000, 40_000)  # of the numbers to reach
    active: tuple[tuple[int, float | None], ...] = (
        (8, None), (16, None), (40, None), (400, None), (40, problems.RADIUS), (400, problems.RADIUS),
    )  # fmt: skip
    compared: tuple[tuple[int, int], ...] = ((2_000, 20_000), (200, 2_000))  # Figure 3
    iterations: tuple[int, ...] = (4, 8, 16, 32)
    rows: tuple[int, ...] = (500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 100_000)  # Figure 4
    parties: tuple[int, ...] = (2, 4, 8, 16)
    epsilons: tuple[float, ...] = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)
    shares: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.9)
    sketches: tuple[float, ...] = (0.001, 0.01, 0.1, 1.0)  # of the rows
    block_size: tuple[int, int] = (1_000, 10_000)  # Figures 1 and 2
    ratios: tuple[float, ...] = (0.1, 0.01, 0.001)
    traced: int = 300
    most_rows: int | None = None
    rounds: int = 200  # that overhead is measured over
    turns: int = 5
    methods: tuple[str, ...] = tuple(METHODS)


FULL = Effort()
QUICK = Effort(
    1, 1, 1, ((400, 600), (4_000, 600)), (4_000, 800), ((8, None),), ((300, 600),), (4, 8), (500, 2_000, 8_000), (2, 4),
    (0.1, 1.0, 10.0), (0.1, 0.5, 0.9), (0.05, 1.0), (200, 1_000), (0.1, 0.01), 50, 2_000, 40, 2,
)  # fmt: skip


def size_name(size: tuple[int, ...]) -> str:
    """Rows and columns as the page writes them."""
    return f"{size[0]:,} x {size[1]:,}"


@dataclass(frozen=True)
class Point:
    """Fits on one problem with one setting."""

    at: str  # the value of what is varied
    size: tuple[int, int]
    named: tuple[str, ...]  # methods
    setting: Setting = field(default_factory=Setting)
    density: float = problems.DENSITY
    active: int | None = None  # None: the same share of columns as of entries
    radius: float | None = problems.RADIUS
    share: float | None = None  # of the budget, for choosing columns
    called: str = ""  # what records call the method, if not by its name
    most_seeds: int | None = None

    def problem(self, seed: int) -> problems.Problem:
        """The paper's data of that size."""
        active = self.active or max(1, round(self.density * self.size[1]))
        return problems.synthetic(*self.size, self.density, active, self.radius, seed)


def points(part: str, name: str, effort: Effort) -> Iterator[Point]:
    """What is fitted for a case of Figures 3 to 8 and of the numbers to reach."""
    size = {size_name(size): size for size in effort.sizes}.get(name, effort.sizes[0])
    if part == "numbers":
        active, radius = {active_name(*pair): pair for pair in effort.active}[name]
        yield Point(ALL, effort.many, (MARGINALS,), active=active, radius=radius)
        rivals = tuple(method for method in METHODS if method != MARGINALS)
        yield Point(ALL, effort.many, rivals, active=active, radius=radius, most_seeds=effort.rival_seeds)
    elif part == "figure 3":
        size, density = {compared_name(*pair): pair for pair in compared(effort)}[name]
        yield Point(ALL, size, (MARGINALS, CENTRAL), density=density)
        for count in effort.iterations:
            yield Point(str(count), size, SHARING, Setting(options={"protocol__n_iter": count}), density)
            yield Point(
                str(count), size, (CENTRAL,), Setting(options={"n_iter": count}), density, called="central, given"
            )
    elif part == "figure 4":
        for rows in effort.rows:
            at = (rows, effort.sizes[0][1])
            yield Point(str(rows), at, (CENTRAL, SHORT))
            for count in effort.parties:
                for method in (MARGINALS, BEST):
                    called = f"{method}, K = {count}"
                    yield Point(str(rows), at, (method,), Setting(parties=count), called=called)
    elif part == "figure 5":
        yield Point(ALL, size, (CENTRAL, SHORT))
        for count in effort.parties:
            yield Point(str(count), size, (MARGINALS, *SHARING), Setting(parties=count))
    elif part == "figure 6":
        for epsilon in effort.epsilons:
            yield Point(f"{epsilon:g}", size, tuple(METHODS), Setting(epsilon=epsilon))
    elif part == "figure 7":
        for share in effort.shares:
            yield Point(f"{share:g}", size, (MARGINALS, PRODUCT, BEST), share=share)
    else:
        yield Point(ALL, size, (MARGINALS,))
        for length in dict.fromkeys(max(8, round(ratio * size[0])) for ratio in effort.sketches):
            yield Point(str(length), size, (PRODUCT, BEST), Setting(options={"sketch__size": length}))
            options = {"sketch__size": length, "protocol__cross": "sketched"}
            yield Point(str(length), size, (MARGINALS,), Setting(options=options), called="marginals, cross")


def active_name(active: int, radius: float | None) -> str:
    """A problem of the numbers to reach."""
    return f"{active} active columns, radius {'of the truth' if radius is None else f'{radius:g}'}"


def compared(effort: Effort) -> list[tuple[tuple[int, int], float]]:
    """Sizes and densities of Figure 3."""
    return [(size, density) for size in effort.compared for density in (0.1, 0.05)]


def compared_name(size: tuple[int, int], density: float) -> str:
    """A case of Figure 3."""
    return f"{size_name(size)}, {density:.0%}"


def run_points(store: Store, part: str, name: str, effort: Effort) -> None:
    """Every point with every seed; what is not private once for each problem."""
    for seed in range(effort.number_seeds if part == "numbers" else effort.seeds):
        for point in points(part, name, effort):
            if point.most_seeds is not None and seed >= point.most_seeds:
                continue
            problem = point.problem(seed)
            keep = partial(kept, store, part, f"{name}{SPLIT}{point.at}", seed, problem)
            if store.get((part, f"{name}{SPLIT}{point.at}", PLAIN, repr(None), seed)) is None:
                keep(PLAIN, None, methods.plain(problem), 0.0)
            for method in chosen(point.named, effort):
                setting = replace(point.setting, seed=seed)
                with nullcontext() if point.share is None else methods.index_share(point.share):
                    measured = METHODS[method].measure(problem, setting)
                keep(point.called or method, setting.epsilon, *measured)


def chosen(named: Iterable[str], effort: Effort) -> list[str]:
    """Those of the methods that are to be run."""
    return [method for method in named if method in effort.methods]


def kept(
    store: Store, table: str, name: str, seed: int, problem: problems.Problem, model: str, epsilon: float | None,
    scores: Mapping[str, Any], took: float,
) -> None:  # fmt: skip
    """One fit, as a record."""
    size = (*problem.size, PARTIES)
    store.add(Record(table, name, model, epsilon, seed, dict(scores), [round(took, 4)], size=size))


def run_correlated(store: Store, name: str, effort: Effort) -> None:
    """Columns of different parties that say nearly the same; all ways to cross moments."""
    among = int(name.split()[0])
    for seed in range(effort.seeds):
        problem = problems.correlated(*effort.many, problems.DENSITY, PARTIES, among, seed)
        keep = partial(kept, store, "correlated", name, seed, problem)
        keep(PLAIN, None, methods.plain(problem), 0.0)
        for method in chosen(METHODS if seed < effort.rival_seeds else (MARGINALS,), effort):
            keep(method, 1.0, *METHODS[method].measure(problem, Setting(seed=seed)))
        for cross in ("sketched", "zero") if MARGINALS in effort.methods else ():
            measured = METHODS[MARGINALS].measure(problem, Setting(seed=seed, options={"protocol__cross": cross}))
            keep(f"marginals, cross {cross}", 1.0, *measured)


def run_labels(store: Store, name: str, effort: Effort) -> None:
    """Labels that every party holds, and labels that one party releases a sketch of."""
    for seed in range(effort.seeds):
        if name in problems.REAL:
            problem = problems.real(name, effort.most_rows)
        else:
            problem = problems.synthetic(*effort.many, problems.DENSITY, effort.active[0][0], None, seed)
        for epsilon in (epsilon for epsilon in effort.epsilons if epsilon >= 1.0):
            keep = partial(kept, store, "labels", f"{name}{SPLIT}{epsilon:g}", seed, problem)
            for labels in ("shared", "sketched") if MARGINALS in effort.methods else ():
                setting = Setting(seed=seed, epsilon=epsilon, options={"labels": labels})
                keep(f"marginals, labels {labels}", epsilon, *METHODS[MARGINALS].measure(problem, setting))


def run_real(store: Store, name: str, effort: Effort) -> None:
    """A real set split over parties."""
    problem = problems.real(name, effort.most_rows)
    for seed in range(effort.seeds):
        keep = partial(kept, store, "figure 9", seed=seed, problem=problem)
        keep(f"{name}{SPLIT}{ALL}", model=PLAIN, epsilon=None, scores=methods.plain(problem), took=0.0)
        if problem.size[1] <= MOST_EXACT and MARGINALS in effort.methods and seed == 0:
            scores, took = METHODS[MARGINALS].measure(problem, Setting(epsilon=math.inf))
            keep(f"{name}{SPLIT}{ALL}", model="marginals, without noise", epsilon=None, scores=scores, took=took)
        for method in chosen((CENTRAL, SHORT, MARGINALS, PRODUCT, BEST), effort):
            for count in effort.parties if method in (MARGINALS, *SHARING) else [1]:
                scores, took = METHODS[method].measure(problem, Setting(seed=seed, parties=count))
                at = ALL if count == 1 else count
                keep(f"{name}{SPLIT}{at}", model=method, epsilon=1.0, scores=scores, took=took)


def run_samplings(store: Store, name: str, effort: Effort) -> None:
    """Figure 1, for one density of entries and one of the truth."""
    density, active = map(float, name.split(" / "))
    rows, count = effort.block_size
    for seed in range(effort.seeds):
        problem = problems.synthetic(rows, count, density, max(1, round(active * count)), None, seed)
        for model, (_, sampling) in blocks.samplings().items():
            start = time.perf_counter()
            scores = blocks.trace(problem, blocks.group_domain(problem), sampling, effort.traced, seed)
            took = round(time.perf_counter() - start, 3)
            store.add(Record("figure 1", name, model, None, seed, scores, [took], size=problem.size))


def run_workers(store: Store, effort: Effort) -> None:
    """Figure 2."""
    problem = problems.synthetic(*effort.block_size, problems.DENSITY, max(1, effort.block_size[1] // 100), 5.0)
    for count in effort.parties:
        for model in (blocks.PRINTED, blocks.SAME):
            domain = blocks.worker_domain(problem, count, model)
            start = time.perf_counter()
            scores = blocks.trace(problem, domain, elementary(count), effort.traced, 0)
            scores["norm"] = [sum(ball.radius for ball in domain.balls)]
            scores["best"] = [problem.optimum]
            took = round(time.perf_counter() - start, 3)
            store.add(Record("figure 2", f"{ALL}{SPLIT}{count}", model, None, 0, scores, [took], size=problem.size))


def run_overhead(store: Store, effort: Effort) -> None:
    """Some studies, one after the other, after one to warm up."""
    timing.overhead(PARTIES, 3, 0)
    for turn in range(effort.turns):
        found = timing.overhead(PARTIES, effort.rounds, turn)
        scores = {key: [value] for key, value in found.items()}
        store.add(Record("overhead", ALL, "in process", 1.0, turn, scores, [], size=(PARTIES, effort.rounds)))


def run_printed(store: Store) -> None:
    """What the paper's noise is worth, for its own settings."""
    for setting in paper.SETTINGS:
        scores = {key: [float(value)] for key, value in paper.true_epsilons(**setting).items()}
        name = ", ".join(f"{key} = {value:g}" for key, value in setting.items())
        store.add(Record("printed", name, "paper", setting["epsilon"], 0, scores, []))


def cases(arguments: argparse.Namespace, effort: Effort) -> Iterator[tuple[str, str]]:
    """Part and name of everything asked for."""
    sizes = [size_name(size) for size in effort.sizes]
    named = {
        "numbers": [active_name(*pair) for pair in effort.active],
        "correlated": [f"{among} parties" for among in (2, PARTIES)],
        "labels": [DENSE, *(name for name in LABELLED if name in problems.REAL)],
        "figure 1": [f"{density:g} / {active:g}" for active in effort.ratios for density in effort.ratios],
        "figure 3": [compared_name(*pair) for pair in compared(effort)],
        **{f"figure {number}": sizes for number in range(5, 9)},
        "figure 9": list(problems.REAL),
    }
    for part in arguments.parts:
        for name in named.get(part, [ALL]):
            yield part, name


def made_by(record: Record, case: tuple[str, str], effort: Effort) -> bool:
    """Whether a case writes this record with the methods that are to be run."""
    part, name = case
    method = record.model.split(", ")[0]
    if method in METHODS and method not in effort.methods:
        return False
    return record.table == part and (part == "printed" or record.set.split(SPLIT)[0] == name)


def run(store: Store, arguments: argparse.Namespace, effort: Effort) -> list[str]:
    """Measure what was asked for. Returns what was skipped, by name."""
    skipped = []
    for case in cases(arguments, effort):
        part, name = case
        if arguments.resume and any(made_by(record, case, effort) for record in store):
            continue
        start = time.perf_counter()
        try:
            if name in problems.REAL:
                problems.real(name, effort.most_rows)
        except sets.MissingSetError as error:
            skipped.append(f"skipped: {name} ({error})")
            continue
        store.drop(lambda record, case=case: made_by(record, case, effort))
        if part == "correlated":
            run_correlated(store, name, effort)
        elif part == "labels":
            run_labels(store, name, effort)
        elif part == "overhead":
            run_overhead(store, effort)
        elif part == "printed":
            run_printed(store)
        elif part == "figure 1":
            run_samplings(store, name, effort)
        elif part == "figure 2":
            run_workers(store, effort)
        elif part == "figure 9":
            run_real(store, name, effort)
        else:
            run_points(store, part, name, effort)
        print(f"{part}, {name}: {time.perf_counter() - start:.1f} s", flush=True)
    return skipped


def main(argv: list[str] | None = None) -> None:
    """Measure, and draw the page."""
    parser = command.parser(__doc__, PARTS, "few rows, columns, budgets and seeds")
    parser.add_argument(
        "--methods", nargs="+", default=list(METHODS), choices=METHODS, help="only these (default: all)"
    )
    arguments = command.parsed(parser, argv)
    effort = replace(QUICK if arguments.quick else FULL, methods=tuple(arguments.methods))
    command.carry_out(
        "federated",
        arguments,
        lambda store: run(store, arguments, effort),
        lambda store: render.pages(store, arguments.out, quick=arguments.quick),
    )


if __name__ == "__main__":
    main()
