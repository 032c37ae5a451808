"""The figures of the featurewise distributed Frank-Wolfe paper (Lou and Cheung 2020) again, honestly noised.

    python -m benchmarks.federated [--quick] [--resume] [--render-only] [--parts numbers "figure 4" ...]
        [--methods marginals ...]

"numbers": the numbers to reach, on 1% dense data. "correlated": columns of different parties that are correlated.
"labels": those that every party holds, or that one releases a sketch of.
"overhead": what a round costs besides the protocol's own work. "printed": the true epsilon of the paper's noise.
"promised": what its Theorem 4 and Corollary 1 come to.
"figure 1" and "figure 2": block-coordinate Frank-Wolfe without privacy. "figure 3": against central DP Frank-Wolfe.
"figure 4" to "figure 8": by rows, parties, epsilon, the split of the budget and the sketch size. "figure 9": real
sets, with the logistic loss; "hinge": with the squared hinge.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.federated import blocks, methods, paper, problems, theory, timing
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
from tacit.federated.protocols.feature_sharing.samplings import elementary

DENSE, LABELLED = "1% dense", ("a9a", "phishing")  # what the ways to hold labels are compared on
MOST_EXACT = 1_000  # columns up to which marginals without noise, which then takes all of them, is quick
RIVALS = tuple(method for method in METHODS if method != MARGINALS)


@dataclass(frozen=True)
class Data:
    """A problem for each seed, with so many rows."""

    rows: int
    make: Callable[[int], problems.Problem]


@dataclass(frozen=True)
class Point:
    """Fits on one problem with one setting."""

    at: Any  # the value of what is varied
    data: Data
    named: Sequence[str]  # methods
    setting: Setting = field(default_factory=Setting)
    called: str = ""  # what records call the method, if not by its name
    seeds: int | None = None  # if not as many as all

    def repeated(self, effort: Any) -> int:
        """With how many seeds: the paper's 20 where there are few rows."""
        return self.seeds or (effort.repetitions if self.data.rows <= effort.few_rows else effort.seeds)


def synthetic(
    size: Sequence[int], density: float = problems.DENSITY, active: int = 0, radius: float | None = problems.RADIUS
) -> Data:
    """The paper's data of that size; no number of active columns: the same share of columns as of entries."""
    active = active or max(1, round(density * size[1]))
    return Data(size[0], partial(problems.synthetic, *size, density, active, radius))


def real(name: str, effort: Any, loss: str = "logistic") -> Data:
    """The same for every seed."""
    found = problems.real(name, effort.most_rows, loss)
    return Data(found.size[0], lambda _: found)


def _numbers(name: str, effort: Any) -> Iterator[Point]:
    active, radius = effort.active[name]
    data = synthetic(effort.many, active=active, radius=radius or None)
    yield Point(ALL, data, (MARGINALS,), seeds=effort.number_seeds)
    yield Point(ALL, data, RIVALS, seeds=effort.rival_seeds)


def _correlated(name: str, effort: Any) -> Iterator[Point]:
    """Columns of different parties that say nearly the same; all ways to cross moments."""
    make = partial(problems.correlated, *effort.many, problems.DENSITY, PARTIES, int(name.split()[0]))
    data = Data(effort.many[0], make)
    yield Point(ALL, data, (MARGINALS,))
    yield Point(ALL, data, RIVALS, seeds=effort.rival_seeds)
    for cross in ("sketched", "zero"):
        setting = Setting(options={"protocol__cross": cross})
        yield Point(ALL, data, (MARGINALS,), setting, f"marginals, cross {cross}")


def _labels(name: str, effort: Any) -> Iterator[Point]:
    """Labels that every party holds, and labels that one party releases a sketch of."""
    active, _ = next(iter(effort.active.values()))
    data = real(name, effort) if name in problems.REAL else synthetic(effort.many, active=active, radius=None)
    for epsilon, labels in product([e for e in effort.epsilons if e >= 1.0], ("shared", "sketched")):
        setting = Setting(epsilon, options={"labels": labels})
        yield Point(f"{epsilon:g}", data, (MARGINALS,), setting, f"marginals, labels {labels}")


def _by_iterations(name: str, effort: Any) -> Iterator[Point]:
    *size, density = effort.compared[name]
    data = synthetic(size, density)
    yield Point(ALL, data, (MARGINALS, CENTRAL))
    for count in effort.iterations:
        yield Point(count, data, SHARING, Setting(options={"protocol__n_iter": count}))
        yield Point(count, data, (CENTRAL,), Setting(options={"n_iter": count}), "central, given")


def _by_rows(_: str, effort: Any) -> Iterator[Point]:
    for rows in effort.rows:
        data = synthetic((rows, effort.columns))
        yield Point(rows, data, (CENTRAL, SHORT))
        for count, method in product(effort.parties, (MARGINALS, PRODUCT, BEST)):
            yield Point(rows, data, (method,), Setting(parties=count), f"{method}, K = {count}")


def _by_parties(name: str, effort: Any) -> Iterator[Point]:
    data = synthetic(effort.sizes[name])
    yield Point(ALL, data, (CENTRAL, SHORT))
    for count in effort.parties:
        yield Point(count, data, (MARGINALS, *SHARING), Setting(parties=count))


def _by_epsilon(name: str, effort: Any) -> Iterator[Point]:
    for epsilon in effort.epsilons:
        yield Point(f"{epsilon:g}", synthetic(effort.sizes[name]), tuple(METHODS), Setting(epsilon))


def _by_share(name: str, effort: Any) -> Iterator[Point]:
    for share in effort.shares:
        yield Point(f"{share:g}", synthetic(effort.sizes[name]), (MARGINALS, PRODUCT, BEST), Setting(choosing=share))


def _by_sketch(name: str, effort: Any) -> Iterator[Point]:
    data, rows = synthetic(effort.sizes[name]), effort.sizes[name][0]
    yield Point(ALL, data, (MARGINALS,))
    for length in dict.fromkeys(max(8, round(ratio * rows)) for ratio in effort.sketches):
        yield Point(length, data, (PRODUCT, BEST), Setting(options={"sketch__size": length}))
        options = {"sketch__size": length, "protocol__cross": "sketched"}
        yield Point(length, data, (MARGINALS,), Setting(options=options), "marginals, cross")


def _real(name: str, effort: Any) -> Iterator[Point]:
    """A real set split over parties."""
    data = real(name, effort)
    if data.make(0).size[1] <= MOST_EXACT:
        yield Point(ALL, data, (MARGINALS,), Setting(math.inf), "marginals, without noise", seeds=1)
    yield Point(ALL, data, (CENTRAL, SHORT))
    for count in effort.parties:
        yield Point(count, data, (MARGINALS, PRODUCT, BEST), Setting(parties=count))


def _hinge(name: str, effort: Any) -> Iterator[Point]:
    """The same with the squared hinge, which marginals does not serve."""
    data = real(name, effort, "squared_hinge")
    yield Point(ALL, data, (CENTRAL, SHORT))
    for count in effort.parties:
        yield Point(count, data, (PRODUCT, BEST), Setting(parties=count))


def points_run(points: Callable[[str, Any], Iterator[Point]]) -> Callable[[Job], None]:
    """Every point with every seed; what is not private once for each problem."""

    def run(job: Job) -> None:
        made = [(point, point.repeated(job.effort)) for point in points(job.name, job.effort)]
        for seed in range(max(seeds for _, seeds in made)):
            known = set()
            for point in (point for point, seeds in made if seed < seeds):
                problem, where = point.data.make(seed), f"{job.name}{SPLIT}{point.at}"
                job.size = (*problem.size, PARTIES)
                if where not in known:
                    known.add(where)
                    job.keep(PLAIN, None, seed, methods.plain(problem), 0.0, set=where)
                for method in (method for method in point.named if method in job.methods):
                    scores, took = METHODS[method].measure(problem, replace(point.setting, seed=seed))
                    job.keep(point.called or method, point.setting.epsilon, seed, scores, took, set=where)

    return run


def densities(effort: Any) -> list[str]:
    """Of entries and of the truth, for Figure 1."""
    return [f"{density:g} / {active:g}" for active, density in product(effort.ratios, repeat=2)]


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


def run_promised(job: Job) -> None:
    """What the theorems come to on the data of Figure 4."""
    for rows in job.effort.rows:
        found = theory.promised(rows, job.effort.columns, PARTIES, problems.DENSITY, problems.RADIUS)
        job.keep("paper", None, 0, found, (), set=f"{job.name}{SPLIT}{rows}")


BENCHMARK = Benchmark(
    "federated",
    __doc__,
    {
        "numbers": Part(points_run(_numbers), "active"),
        "correlated": Part(points_run(_correlated), [f"{among} parties" for among in (2, PARTIES)]),
        "labels": Part(points_run(_labels), lambda _: [DENSE, *(name for name in LABELLED if name in problems.REAL)]),
        "overhead": Part(run_overhead, (ALL,)),
        "printed": Part(run_printed, lambda _: paper.named()),
        "promised": Part(run_promised, (ALL,)),
        "figure 1": Part(run_samplings, densities),
        "figure 2": Part(run_workers, (ALL,)),
        "figure 3": Part(points_run(_by_iterations), "compared"),
        "figure 4": Part(points_run(_by_rows), (ALL,)),
        "figure 5": Part(points_run(_by_parties), "sizes"),
        "figure 6": Part(points_run(_by_epsilon), "sizes"),
        "figure 7": Part(points_run(_by_share), "sizes"),
        "figure 8": Part(points_run(_by_sketch), "sizes"),
        "figure 9": Part(points_run(_real), lambda _: problems.REAL),
        "hinge": Part(points_run(_hinge), lambda _: problems.REAL),
    },
    FederatedPage,
    Path(__file__).with_name("effort.toml"),
    tuple(METHODS),
)

if __name__ == "__main__":
    BENCHMARK.main()
