"""Centres of columns: what it is worth to release the mean of bounded rows once histograms have found units for them.

    python -m benchmarks.rules.means [--quick] [--resume] [--render-only] [--sets NAME ...]

Whole fits with nothing declared, on the same splits. A plan with another release has other noise, so fits of one seed
share their split alone. Sets of "chose" were in view when the part of the budget and the clip were chosen.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.dense.methods import estimator, split
from benchmarks.frame.command import Benchmark, Job, Part
from benchmarks.rules.paired import PairedPage
from benchmarks.small.__main__ import load, scored
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
    X, y, kind = load(job.name)
    effort = job.effort
    X, y = (np.asarray(part)[: effort.most_rows] for part in (X, y))
    job.size = (*X.shape, len(np.unique(y)))
    for seed in range(effort.some.get(job.name, effort.seeds)):
        parts = split(X, y, kind, seed)
        for epsilon in effort.epsilons:
            for model in (WITH, WITHOUT):
                ours = estimator("gradient", epsilon, X, kind, {"random_state": seed})
                with nullcontext() if model == WITH else without_means():
                    job.keep(model, epsilon, seed, *scored(ours, parts, kind))


class MeansPage(PairedPage):
    """A section for the sets that judge and one for those that chose."""

    template = Path(__file__).with_name("means.md")

    def groups(self) -> Iterator[dict[str, Any]]:
        parts = {"Sets that judge": self.effort.judged, "Sets that chose": self.effort.chose}
        for part, names in parts.items():
            yield from self.group(part, "means", names, WITH, WITHOUT)


BENCHMARK = Benchmark(
    "means_rule",
    __doc__,
    {"means": Part(run, lambda effort: effort.judged + effort.chose)},
    MeansPage,
    Path(__file__).with_suffix(".toml"),
)

if __name__ == "__main__":
    BENCHMARK.main()
