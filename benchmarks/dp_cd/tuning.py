"""Tuning over the paper's grid, as the paper does it: on the data, for free, by the mean error of a few runs."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.dp_cd import paper, problems
from benchmarks.dp_cd.methods import Point


@dataclass(frozen=True)
class Effort:
    """How much is run. The grid is searched from coarse to fine."""

    steps_apart: int = 1  # of the steps of the grid, every how many are tried
    clips_apart: int = 4  # of the 100 clips, every how many are tried at first
    kept: int = 25  # points that are run on all tuning seeds
    refined: int = 2  # points whose neighbours in the full grid are run too
    runs: int = 5  # of a point, to tune
    seeds: int = 10  # fresh ones, to report
    passes: tuple[int, ...] = paper.PASSES
    sets: tuple[str, ...] = problems.NAMES
    timed: tuple[str, ...] = ("20,000 x 100, squared", "20,000 x 100, logistic")
    rounds: int = 9  # of timing

    @property
    def tuning_seeds(self) -> range:
        """Of the runs that choose."""
        return range(1_000, 1_000 + self.runs)

    @property
    def report_seeds(self) -> range:
        """Of the runs that are reported."""
        return range(self.seeds)


FULL = Effort()
QUICK = Effort(2, 9, 5, 0, 2, 3, (5, 20), (*problems.NAMES[::2],), rounds=3)


def tune(method: Any, problem: Any, passes: int, effort: Effort) -> tuple[Point, float]:
    """The point with the lowest mean error over the tuning seeds, and that mean.

    One run of every point of the coarse grid; the best of them run on all seeds; then the clips next to the very best.
    """
    grid = method.points()[:: effort.steps_apart]
    seeds = effort.tuning_seeds

    def means(places: list[tuple[int, int]], runs: range) -> dict[tuple[int, int], float]:
        points = [grid[row][clip] for row, clip in places]
        if not points:
            return {}
        errors = np.mean([method.errors(problem, passes, points, seed) for seed in runs], axis=0)
        return dict(zip(places, errors.tolist(), strict=True))

    coarse = [(row, clip) for row in range(len(grid)) for clip in range(0, len(grid[row]), effort.clips_apart)]
    once = means(coarse, seeds[:1])
    found = means(sorted(once, key=once.__getitem__)[: effort.kept], seeds)
    reach = range(-(effort.clips_apart // 2), effort.clips_apart // 2 + 1)
    best = sorted(found, key=found.__getitem__)[: effort.refined]
    near = {(row, clip + k) for row, clip in best for k in reach if 0 <= clip + k < len(grid[row])}
    found |= means(sorted(near - found.keys()), seeds)
    row, clip = min(found, key=found.__getitem__)
    return grid[row][clip], found[row, clip]
