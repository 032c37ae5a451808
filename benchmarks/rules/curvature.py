"""The gradient solver's steps for several classes, and what is kept of their margins: its rules against safe steps.

    python -m benchmarks.rules.curvature [--quick] [--resume] [--render-only] [--sets NAME ...]

Whole fits with nothing declared, on the same splits and with the same seeds. The sets of "chose" were in view when the
first rule was chosen; the others judged that, and were seen before the rule of now was chosen. Some classes are made of
numbers, and some sets are made for the rule to fail on.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_classification

from benchmarks.dense.methods import split
from benchmarks.frame import Floats, sets
from benchmarks.frame.command import Benchmark, Job, Part
from benchmarks.rules.paired import PairedPage
from benchmarks.small.__main__ import scored
from tacit import LogisticRegression
from tacit.solvers import classes, gradient

RULE, BEFORE = "rule", "before"
Table = tuple[Floats, Any]


def _cut(name: str, *quantiles: float) -> Table:
    """A regression's target in as many classes as its quantiles give."""
    X, y, _ = sets.load(name)
    return np.asarray(X), np.digitize(y, np.quantile(y, quantiles))


def _clarity() -> Table:
    """Of diamonds, by all else and their price."""
    X, price, _ = sets.load("diamonds")
    return np.column_stack([X[:, :13], X[:, 21:], price]), X[:, 13:21].argmax(axis=1)


def two_of_ten() -> Table:
    """Two classes have all but 0.4% of the rows."""
    rng = np.random.default_rng(5)
    y = rng.choice(10, 20_000, p=[0.498, 0.498, *[0.0005] * 8])
    return 1.5 * rng.normal(size=(20_000, 20)) + rng.normal(size=(10, 20))[y], y


def ten_pairs() -> Table:
    """Columns that tell which pair a class is of, and columns that tell a little which of the pair it is."""
    rng = np.random.default_rng(7)
    y, every = rng.integers(0, 20, 20_000), np.arange(20_000)
    X = np.zeros((20_000, 20))
    X[every, y // 2] = 1.0
    X[every, 10 + y // 2] = rng.normal(size=20_000) + 0.7 * (2 * (y % 2) - 1)
    return X, y


def _twenty() -> Table:
    """One cluster for each of twenty classes."""
    shape = {"n_informative": 20, "n_redundant": 10, "n_clusters_per_class": 1, "class_sep": 1.5}
    X, y = make_classification(20_000, 60, n_classes=20, random_state=3, **shape)
    return X, y


MADE: dict[str, Callable[[], Table]] = {
    "california_housing in fifths": lambda: _cut("california_housing", 0.2, 0.4, 0.6, 0.8),
    "california_housing, uneven": lambda: _cut("california_housing", 0.6, 0.9, 0.97),
    "msd_subset_year in sixths": lambda: _cut("msd_subset_year", 1 / 6, 2 / 6, 3 / 6, 4 / 6, 5 / 6),
    "wages, uneven": lambda: _cut("wages", 0.5, 0.8, 0.95),
    "diamonds, clarity": _clarity,
    "two of ten": two_of_ten,
    "ten pairs": ten_pairs,
    "twenty clusters": _twenty,
}


@contextmanager
def steps_of(kind: str) -> Iterator[None]:
    """Those of the rule, or those that are safe for any data; of the latter all of the margins is kept."""
    rules = classes.curvature, gradient._Steps._kept
    if kind == BEFORE:
        classes.curvature = lambda task, _: task.loss.curvature
        gradient._Steps._kept = lambda *_: 1.0
    try:
        yield
    finally:
        classes.curvature, gradient._Steps._kept = rules


def run(job: Job) -> None:
    """Both on the same splits."""
    X, y = MADE[job.name]() if job.name in MADE else sets.load(job.name)[:2]
    X, y = np.asarray(X)[: job.effort.most_rows], np.asarray(y)[: job.effort.most_rows]
    job.size = (*X.shape, len(np.unique(y)))
    for seed in range(job.effort.seeds):
        parts = split(X, y, "classification", seed)
        for epsilon in job.effort.epsilons:
            for kind in (RULE, BEFORE):
                with steps_of(kind):
                    model = LogisticRegression(epsilon=epsilon, solver="gradient", random_state=seed)
                    job.keep(kind, epsilon, seed, *scored(model, parts, "classification"))


class CurvaturePage(PairedPage):
    """A section for the sets that judge and one for those that chose."""

    template = Path(__file__).with_name("curvature.md")

    def groups(self) -> Iterator[dict[str, Any]]:
        parts = {"Sets that judged the first rule": self.effort.judged, "Sets that chose": self.effort.chose}
        for part, names in parts.items():
            yield from self.group(part, "curvature", names, RULE, BEFORE)


BENCHMARK = Benchmark(
    "curvature_rule",
    __doc__,
    {"curvature": Part(run, lambda effort: effort.judged + effort.chose)},
    CurvaturePage,
    Path(__file__).with_suffix(".toml"),
)

if __name__ == "__main__":
    BENCHMARK.main()
