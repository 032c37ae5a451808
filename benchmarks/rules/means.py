"""Centres of columns: what it is worth to release the mean of bounded rows once histograms have found units for them.

    python -m benchmarks.rules.means [--quick] [--resume] [--render-only] [--sets NAME ...]

Whole fits with nothing declared, on the same splits. A plan with another release has other noise, so fits of one seed
share their split alone. Sets of "chose" were in view when the part of the budget and the clip were chosen.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from unittest.mock import patch

from benchmarks.frame.command import Benchmark, Job, Part
from benchmarks.rules.paired import JudgedPage, both_ways
from benchmarks.small.__main__ import load
from tacit.bounding import linear
from tacit.bounding.scales import MagnitudeScale

WITH, WITHOUT = "with means", "without"


@contextmanager
def without_means() -> Iterator[None]:
    """Fits that leave centres where histograms have them."""

    def scale(n: int, d: int, *, means: bool = False) -> MagnitudeScale:
        del means
        return MagnitudeScale(n, d)

    with patch.object(linear, "MagnitudeScale", scale):
        yield


def run(job: Job) -> None:
    """Both ways on the same splits."""
    both_ways(job, *load(job.name), {WITH: nullcontext, WITHOUT: without_means})


class MeansPage(JudgedPage):
    """What it is worth on each set."""

    template = Path(__file__).with_name("means.md")
    table, ways = "means", (WITH, WITHOUT)


BENCHMARK = Benchmark(
    "means_rule",
    __doc__,
    {"means": Part(run, lambda effort: effort.judged + effort.chose)},
    MeansPage,
    Path(__file__).with_suffix(".toml"),
)

if __name__ == "__main__":
    BENCHMARK.main()
