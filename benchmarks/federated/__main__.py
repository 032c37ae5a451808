"""The figures of the featurewise distributed Frank-Wolfe paper (Lou and Cheung 2020) again, honestly noised.

    python -m benchmarks.federated [--quick] [--resume] [--render-only] [--parts numbers "figure 4" ...]
        [--methods marginals ...]

"numbers": the numbers to reach, on 1% dense data. "correlated": columns of different parties that are correlated.
"labels": those that every party holds, or that one releases a sketch of.
"overhead": what a round costs besides the protocol's own work. "printed": the true epsilon of the paper's noise.
"figure 1" and "figure 2": block-coordinate Frank-Wolfe without privacy. "figure 3": against central DP Frank-Wolfe.
"figure 4" to "figure 8": by rows, parties, epsilon, the split of the budget and the sketch size. "figure 9": real sets.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from benchmarks.federated import blocks, methods, paper, problems, timing
from benchmarks.federated.block_frank_wolfe import elementary
from benchmarks.federated.methods import (
    BEST,
    CENTRAL,
    MARGINALS,
    METHODS,
    PARTIES,
    PLAIN,
    PRODUCT,
    SHARING,
    SHORT,
    Setting,
)
from benchmarks.federated.page import ALL, FederatedPage
from benchmarks.frame.command import SPLIT, Benchmark, Job, Part

DENSE, LABELLED = "1% dense", ("a9a", "phishing")  # what the ways to hold labels are compared on
MOST_EXACT = 1_000  # columns up to which marginals without noise, which then takes all of them, is quick


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

    def named_sizes(self) -> dict[str, tuple[int, int]]:
        """As the page writes them."""
        return {_size_name(size): size for size in self.sizes}

    def named_active(self) -> dict[str, tuple[int, float | None]]:
        """Problems of the numbers to reach."""
        told = {pair: "of the truth" if pair[1] is None else f"{pair[1]:g}" for pair in self.active}
        return {f"{pair[0]} active columns, radius {told[pair]}": pair for pair in self.active}

    def named_compared(self) -> dict[str, tuple[tuple[int, int], float]]:
        """Sizes and densities of Figure 3."""
        pairs = [(size, density) for size in self.compared for density in (0.1, 0.05)]
        return {f"{_size_name(size)}, {density:.0%}": (size, density) for size, density in pairs}

    def named_ratios(self) -> list[str]:
        """Densities of entries and of the truth of Figure 1."""
        return [f"{density:g} / {active:g}" for active in self.ratios for density in self.ratios]


def _size_name(size: tuple[int, ...]) -> str:
    return f"{size[0]:,} x {size[1]:,}"


@dataclass(frozen=True)
class Point:
    """Fits on one problem with one setting."""

    at: Any  # the value of what is varied
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


def _numbers(name: str, effort: Effort) -> Iterator[Point]:
    active, radius = effort.named_active()[name]
    rivals = tuple(method for method in METHODS if method != MARGINALS)
    yield Point(ALL, effort.many, (MARGINALS,), active=active, radius=radius)
    yield Point(ALL, effort.many, rivals, active=active, radius=radius, most_seeds=effort.rival_seeds)


def _by_iterations(name: str, effort: Effort) -> Iterator[Point]:
    size, density = effort.named_compared()[name]
    yield Point(ALL, size, (MARGINALS, CENTRAL), density=density)
    for count in effort.iterations:
        yield Point(count, size, SHARING, Setting(options={"protocol__n_iter": count}), density)
        given = Setting(options={"n_iter": count})
        yield Point(count, size, (CENTRAL,), given, density, called="central, given")


def _by_rows(_: str, effort: Effort) -> Iterator[Point]:
    for rows in effort.rows:
        size = (rows, effort.sizes[0][1])
        yield Point(rows, size, (CENTRAL, SHORT))
        for count in effort.parties:
            for method in (MARGINALS, BEST):
                yield Point(rows, size, (method,), Setting(parties=count), called=f"{method}, K = {count}")


def _by_parties(name: str, effort: Effort) -> Iterator[Point]:
    size = effort.named_sizes()[name]
    yield Point(ALL, size, (CENTRAL, SHORT))
    for count in effort.parties:
        yield Point(count, size, (MARGINALS, *SHARING), Setting(parties=count))


def _by_epsilon(name: str, effort: Effort) -> Iterator[Point]:
    for epsilon in effort.epsilons:
        yield Point(f"{epsilon:g}", effort.named_sizes()[name], tuple(METHODS), Setting(epsilon=epsilon))


def _by_share(name: str, effort: Effort) -> Iterator[Point]:
    for share in effort.shares:
        yield Point(f"{share:g}", effort.named_sizes()[name], (MARGINALS, PRODUCT, BEST), share=share)


def _by_sketch(name: str, effort: Effort) -> Iterator[Point]:
    size = effort.named_sizes()[name]
    yield Point(ALL, size, (MARGINALS,))
    for length in dict.fromkeys(max(8, round(ratio * size[0])) for ratio in effort.sketches):
        yield Point(length, size, (PRODUCT, BEST), Setting(options={"sketch__size": length}))
        options = {"sketch__size": length, "protocol__cross": "sketched"}
        yield Point(length, size, (MARGINALS,), Setting(options=options), called="marginals, cross")


def _keep(
    job: Job, at: Any, seed: int, problem: problems.Problem, model: str, epsilon: float | None, measured: Any
) -> None:
    name = job.name if at is None else f"{job.name}{SPLIT}{at}"
    job.keep(model, epsilon, seed, *measured, set=name, size=(*problem.size, PARTIES))


def points_run(points: Callable[[str, Effort], Iterator[Point]]) -> Callable[[Job], None]:
    """Every point with every seed; what is not private once for each problem."""

    def run(job: Job) -> None:
        for seed in range(job.effort.number_seeds if job.part == "numbers" else job.effort.seeds):
            known = set()
            for point in points(job.name, job.effort):
                if point.most_seeds is not None and seed >= point.most_seeds:
                    continue
                problem = point.problem(seed)
                if point.at not in known:
                    known.add(point.at)
                    _keep(job, point.at, seed, problem, PLAIN, None, (methods.plain(problem), 0.0))
                for method in (method for method in point.named if method in job.methods):
                    setting = replace(point.setting, seed=seed)
                    with nullcontext() if point.share is None else methods.index_share(point.share):
                        measured = METHODS[method].measure(problem, setting)
                    _keep(job, point.at, seed, problem, point.called or method, setting.epsilon, measured)

    return run


def run_correlated(job: Job) -> None:
    """Columns of different parties that say nearly the same; all ways to cross moments."""
    for seed in range(job.effort.seeds):
        among = int(job.name.split()[0])
        problem = problems.correlated(*job.effort.many, problems.DENSITY, PARTIES, among, seed)
        _keep(job, None, seed, problem, PLAIN, None, (methods.plain(problem), 0.0))
        runs: list[tuple[str, str, dict[str, Any]]] = [(method, method, {}) for method in METHODS]
        runs = runs if seed < job.effort.rival_seeds else [(MARGINALS, MARGINALS, {})]
        runs += [(f"marginals, cross {cross}", MARGINALS, {"protocol__cross": cross}) for cross in ("sketched", "zero")]
        for model, method, options in runs:
            if method in job.methods:
                measured = METHODS[method].measure(problem, Setting(seed=seed, options=options))
                _keep(job, None, seed, problem, model, 1.0, measured)


def run_labels(job: Job) -> None:
    """Labels that every party holds, and labels that one party releases a sketch of."""
    effort = job.effort
    for seed in range(effort.seeds):
        if job.name in problems.REAL:
            problem = problems.real(job.name, effort.most_rows)
        else:
            problem = problems.synthetic(*effort.many, problems.DENSITY, effort.active[0][0], None, seed)
        for epsilon in (epsilon for epsilon in effort.epsilons if epsilon >= 1.0):
            for labels in ("shared", "sketched") if MARGINALS in job.methods else ():
                setting = Setting(seed=seed, epsilon=epsilon, options={"labels": labels})
                measured = METHODS[MARGINALS].measure(problem, setting)
                _keep(job, f"{epsilon:g}", seed, problem, f"marginals, labels {labels}", epsilon, measured)


def run_real(job: Job) -> None:
    """A real set split over parties."""
    problem = problems.real(job.name, job.effort.most_rows)
    for seed in range(job.effort.seeds):
        _keep(job, ALL, seed, problem, PLAIN, None, (methods.plain(problem), 0.0))
        if problem.size[1] <= MOST_EXACT and MARGINALS in job.methods and seed == 0:
            measured = METHODS[MARGINALS].measure(problem, Setting(epsilon=math.inf))
            _keep(job, ALL, seed, problem, "marginals, without noise", None, measured)
        for method in (name for name in (CENTRAL, SHORT, MARGINALS, PRODUCT, BEST) if name in job.methods):
            for count in job.effort.parties if method in (MARGINALS, *SHARING) else (1,):
                measured = METHODS[method].measure(problem, Setting(seed=seed, parties=count))
                _keep(job, ALL if count == 1 else count, seed, problem, method, 1.0, measured)


def run_samplings(job: Job) -> None:
    """Figure 1, for one density of entries and one of the truth."""
    density, active = map(float, job.name.split(" / "))
    rows, count = job.effort.block_size
    for seed in range(job.effort.seeds):
        problem = problems.synthetic(rows, count, density, max(1, round(active * count)), None, seed)
        for model, (_, sampling) in blocks.samplings().items():
            scores = blocks.trace(problem, blocks.group_domain(problem), sampling, job.effort.traced, seed)
            job.keep(model, None, seed, scores, size=problem.size)


def run_workers(job: Job) -> None:
    """Figure 2."""
    size = job.effort.block_size
    problem = problems.synthetic(*size, problems.DENSITY, max(1, size[1] // 100), 5.0)
    for count in job.effort.parties:
        for model in (blocks.PRINTED, blocks.SAME):
            domain = blocks.worker_domain(problem, count, model)
            scores: dict[str, Any] = blocks.trace(problem, domain, elementary(count), job.effort.traced, 0)
            scores |= {"norm": sum(ball.radius for ball in domain.balls), "best": problem.optimum}
            job.keep(model, None, 0, scores, set=f"{ALL}{SPLIT}{count}", size=problem.size)


def run_overhead(job: Job) -> None:
    """Some studies, one after the other, after one to warm up."""
    timing.overhead(PARTIES, 3, 0)
    for turn in range(job.effort.turns):
        found = timing.overhead(PARTIES, job.effort.rounds, turn)
        job.keep("in process", 1.0, turn, found, (), size=(PARTIES, job.effort.rounds))


def run_printed(job: Job) -> None:
    """What the paper's noise is worth, for one of its settings."""
    setting = paper.named()[job.name]
    job.keep("paper", setting["epsilon"], 0, paper.true_epsilons(**setting))


BENCHMARK = Benchmark(
    "federated",
    __doc__,
    {
        "numbers": Part(points_run(_numbers), lambda effort: tuple(effort.named_active())),
        "correlated": Part(run_correlated, [f"{among} parties" for among in (2, PARTIES)]),
        "labels": Part(run_labels, lambda _: [DENSE, *(name for name in LABELLED if name in problems.REAL)]),
        "overhead": Part(run_overhead, (ALL,)),
        "printed": Part(run_printed, lambda _: tuple(paper.named())),
        "figure 1": Part(run_samplings, lambda effort: effort.named_ratios()),
        "figure 2": Part(run_workers, (ALL,)),
        "figure 3": Part(points_run(_by_iterations), lambda effort: tuple(effort.named_compared())),
        "figure 4": Part(points_run(_by_rows), (ALL,)),
        "figure 5": Part(points_run(_by_parties), lambda effort: tuple(effort.named_sizes())),
        "figure 6": Part(points_run(_by_epsilon), lambda effort: tuple(effort.named_sizes())),
        "figure 7": Part(points_run(_by_share), lambda effort: tuple(effort.named_sizes())),
        "figure 8": Part(points_run(_by_sketch), lambda effort: tuple(effort.named_sizes())),
        "figure 9": Part(run_real, lambda _: tuple(problems.REAL)),
    },
    FederatedPage,
    Effort(),
    Effort(
        1, 1, 1, ((400, 600), (4_000, 600)), (4_000, 800), ((8, None),), ((300, 600),), (4, 8), (500, 2_000, 8_000),
        (2, 4), (0.1, 1.0, 10.0), (0.1, 0.5, 0.9), (0.05, 1.0), (200, 1_000), (0.1, 0.01), 50, 2_000, 40, 2,
    ),
    tuple(METHODS),
)  # fmt: skip

if __name__ == "__main__":
    BENCHMARK.main()
