"""All slopes of a walk together: what weights that use every released gradient alike add to the mean iterate.

    python -m benchmarks.rules.walks [--quick] [--resume] [--render-only] [--sets NAME ...]

Whole fits with nothing declared, on the same splits and with the same noise: nothing else is released, so the seed of a
fit gives both ways the same slopes. Sets of "chose" were in view when the form of the rule was chosen.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from unittest.mock import patch

from benchmarks.frame import Floats
from benchmarks.frame.command import Benchmark, Job, Part
from benchmarks.rules.curvature import MADE
from benchmarks.rules.paired import JudgedPage, both_ways
from benchmarks.small.__main__ import load
from tacit.solvers.walk import Walk

TOGETHER, MEAN = "all slopes together", "mean iterate"


@contextmanager
def mean_alone() -> Iterator[None]:
    """Fits that return the mean of the second half of the iterates, with all of its noise."""

    def alone(walk: Walk, noise: float, part: float) -> tuple[Floats, float]:
        del noise, part
        return walk.mean.copy(), 1.0

    with patch.object(Walk, "together", alone):
        yield


def run(job: Job) -> None:
    """Both ways on the same splits."""
    X, y = MADE[job.name]() if job.name in MADE else load(job.name)[:2]
    both_ways(job, X, y, "classification", {TOGETHER: nullcontext, MEAN: mean_alone})


class WalksPage(JudgedPage):
    """What it is worth on each set."""

    template = Path(__file__).with_name("walks.md")
    table, ways = "walks", (TOGETHER, MEAN)


BENCHMARK = Benchmark(
    "walks_rule",
    __doc__,
    {"walks": Part(run, lambda effort: effort.judged + effort.chose)},
    WalksPage,
    Path(__file__).with_suffix(".toml"),
)

if __name__ == "__main__":
    BENCHMARK.main()
