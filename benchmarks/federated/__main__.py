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
from pathlib import Path
from typing import Any

from benchmarks.federated import blocks, methods, paper, problems, timing
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
from tacit.federated.block_frank_wolfe import elementary

DENSE, LABELLED = "1% dense", ("a9a", "phishing")  # what the ways to hold labels are compared on
MOST_EXACT = 1_000  # columns up to which marginals without noise, which then takes all of them, is quick


def named_sizes(effort: Any) -> dict[str, tuple[int, int]]:
    """As the page writes them."""
    return {_size_name(size): tuple(size) for size in effort.sizes}


def named_active(effort: Any) -> dict[str, tuple[int, float | None]]:
    """Problems of the numbers to reach."""
    return {
        f"{active} active columns, radius {f'{radius:g}' if radius else 'of the truth'}": (active, radius or None)
        for active, radius in effort.active
    }


def named_compared(effort: Any) -> dict[str, tuple[tuple[int, int], float]]:
    """Sizes and densities of Figure 3."""
    pairs = [(tuple(size), density) for size in effort.compared for density in (0.1, 0.05)]
    return {f"{_size_name(size)}, {density:.0%}": (size, density) for size, density in pairs}


def named_ratios(effort: Any) -> list[str]:
    """Densities of entries and of the truth of Figure 1."""
    return [f"{density:g} / {active:g}" for active in effort.ratios for density in effort.ratios]


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


def _numbers(name: str, effort: Any) -> Iterator[Point]:
    active, radius = named_active(effort)[name]
    rivals = tuple(method for method in METHODS if method != MARGINALS)
    yield Point(ALL, effort.many, (MARGINALS,), active=active, radius=radius)
    yield Point(ALL, effort.many, rivals, active=active, radius=radius, most_seeds=effort.rival_seeds)


def _by_iterations(name: str, effort: Any) -> Iterator[Point]:
    size, density = named_compared(effort)[name]
    yield Point(ALL, size, (MARGINALS, CENTRAL), density=density)
    for count in effort.iterations:
        yield Point(count, size, SHARING, Setting(options={"protocol__n_iter": count}), density)
        given = Setting(options={"n_iter": count})
        yield Point(count, size, (CENTRAL,), given, density, called="central, given")


def _by_rows(_: str, effort: Any) -> Iterator[Point]:
    for rows in effort.rows:
        size = (rows, effort.sizes[0][1])
        yield Point(rows, size, (CENTRAL, SHORT))
        for count in effort.parties:
            for method in (MARGINALS, BEST):
                yield Point(rows, size, (method,), Setting(parties=count), called=f"{method}, K = {count}")


def _by_parties(name: str, effort: Any) -> Iterator[Point]:
    size = named_sizes(effort)[name]
    yield Point(ALL, size, (CENTRAL, SHORT))
    for count in effort.parties:
        yield Point(count, size, (MARGINALS, *SHARING), Setting(parties=count))


def _by_epsilon(name: str, effort: Any) -> Iterator[Point]:
    for epsilon in effort.epsilons:
        yield Point(f"{epsilon:g}", named_sizes(effort)[name], tuple(METHODS), Setting(epsilon=epsilon))


def _by_share(name: str, effort: Any) -> Iterator[Point]:
    for share in effort.shares:
        yield Point(f"{share:g}", named_sizes(effort)[name], (MARGINALS, PRODUCT, BEST), share=share)


def _by_sketch(name: str, effort: Any) -> Iterator[Point]:
    size = named_sizes(effort)[name]
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


def points_run(points: Callable[[str, Any], Iterator[Point]]) -> Callable[[Job], None]:
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
        "numbers": Part(points_run(_numbers), named_active),
        "correlated": Part(run_correlated, [f"{among} parties" for among in (2, PARTIES)]),
        "labels": Part(run_labels, lambda _: [DENSE, *(name for name in LABELLED if name in problems.REAL)]),
        "overhead": Part(run_overhead, (ALL,)),
        "printed": Part(run_printed, lambda _: tuple(paper.named())),
        "figure 1": Part(run_samplings, named_ratios),
        "figure 2": Part(run_workers, (ALL,)),
        "figure 3": Part(points_run(_by_iterations), named_compared),
        "figure 4": Part(points_run(_by_rows), (ALL,)),
        "figure 5": Part(points_run(_by_parties), named_sizes),
        "figure 6": Part(points_run(_by_epsilon), named_sizes),
        "figure 7": Part(points_run(_by_share), named_sizes),
        "figure 8": Part(points_run(_by_sketch), named_sizes),
        "figure 9": Part(run_real, lambda _: tuple(problems.REAL)),
    },
    FederatedPage,
    Path(__file__).with_name("effort.toml"),
    tuple(METHODS),
)

if __name__ == "__main__":
    BENCHMARK.main()
