"""The share of the budget that finds units, where there are weights of many classes to find in them.

    python -m benchmarks.rules.units [--quick] [--resume] [--render-only] [--sets NAME ...]

Whole fits with nothing declared, on the same splits. Other shares have other noise, so fits of one seed share their
split alone. Sets of "chose" were in view when the rule was chosen. Some tables are made: clusters, each column in a
unit of its own and half of them far from zero.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.datasets import make_classification

from benchmarks.frame import Floats
from benchmarks.frame.command import Benchmark, Job, Part
from benchmarks.rules import curvature, solvers
from benchmarks.rules.paired import JudgedPage, both_ways
from benchmarks.small.__main__ import load
from tacit.bounding import linear
from tacit.problems.task import LinearTask

RULE, BEFORE = "rule", "before"
Table = tuple[Floats, Any]


def clusters(classes: int, rows: int, columns: int, informative: int, seed: int) -> Table:
    """One cluster for each class."""
    rng = np.random.default_rng(seed)
    shape = {"n_informative": informative, "n_redundant": columns // 4, "n_clusters_per_class": 1, "class_sep": 1.5}
    X, y = make_classification(rows, columns, n_classes=classes, random_state=seed, **shape)
    far = 10 ** rng.uniform(-2, 4, columns) * rng.integers(0, 2, columns)
    return X * 10 ** rng.uniform(-2, 4, columns) + far, y


MADE: dict[str, Callable[[], Table]] = curvature.MADE | {
    "eight clusters": partial(clusters, 8, 1_500, 20, 12, 1),
    "twelve clusters": partial(clusters, 12, 3_000, 40, 20, 2),
    "six clusters": partial(clusters, 6, 800, 12, 8, 3),
    "twenty-five clusters": partial(clusters, 25, 6_000, 50, 25, 4),
    solvers.GREY: partial(solvers.table, solvers.GREY),
}


@contextmanager
def share_of_two() -> Iterator[None]:
    """Fits that give units what they get where there are two classes."""

    def share(task: LinearTask, found: float) -> float:
        del task
        return found

    with patch.object(linear, "_beside_weights", share):
        yield


def run(job: Job) -> None:
    """Both ways on the same splits."""
    X, y = MADE[job.name]() if job.name in MADE else load(job.name)[:2]
    both_ways(job, X, y, "classification", {RULE: nullcontext, BEFORE: share_of_two})


class UnitsPage(JudgedPage):
    """What it is worth on each set."""

    template = Path(__file__).with_name("units.md")
    table, ways = "units", (RULE, BEFORE)


BENCHMARK = Benchmark(
    "units_rule",
    __doc__,
    {"units": Part(run, lambda effort: effort.judged + effort.chose)},
    UnitsPage,
    Path(__file__).with_suffix(".toml"),
)

if __name__ == "__main__":
    BENCHMARK.main()
