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
from benchmarks.small.page import standard_error
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
    effort, classes = job.effort, len(np.unique(y)) if kind == "classification" else 0
    X, y = np.asarray(X)[: effort.most_rows], np.asarray(y)[: effort.most_rows]
    job.size = (*X.shape, classes)
    for seed in range(effort.some.get(job.name, effort.seeds)):
        parts = split(X, y, kind, seed)
        for epsilon in effort.epsilons:
            for model in (WITH, WITHOUT):
                ours = estimator("gradient", epsilon, X, kind, {"random_state": seed})
                with nullcontext() if model == WITH else without_means():
                    job.keep(model, epsilon, seed, *scored(ours, parts, kind))


class MeansPage(PairedPage):
    """A section for the sets that judge and one for those that chose; of classes and of numbers."""

    template = Path(__file__).with_name("means.md")

    def groups(self) -> Iterator[dict[str, Any]]:
        parts = {"Classes, sets that judge": self.effort.judged, "Classes, sets that chose": self.effort.chose}
        for part, names in parts.items():
            yield from self.group(part, "means", names, WITH, WITHOUT)

    def numbers(self) -> Iterator[dict[str, Any]]:
        """The R2 of regressions, all of which judge."""
        for name in (name for name in self.results.sets("means") if name in self.effort.numbers):
            rows, columns, _ = self.results.size("means", name)
            for epsilon in self.results.epsilons("means", name):
                new, old = (np.array(self.results.values("r2", "means", name, way, epsilon)) for way in (WITH, WITHOUT))
                added = f"{(new - old).mean():+.3f} ± {standard_error(new - old):.3f}"
                size = f"{rows:,} x {columns}"
                yield {
                    "set": name,
                    "size": size,
                    "epsilon": epsilon,
                    "seeds": len(new),
                    "r2": f"{old.mean():.3f}",
                    "added": added,
                }


BENCHMARK = Benchmark(
    "means_rule",
    __doc__,
    {"means": Part(run, lambda effort: effort.judged + effort.chose + effort.numbers)},
    MeansPage,
    Path(__file__).with_suffix(".toml"),
)

if __name__ == "__main__":
    BENCHMARK.main()
