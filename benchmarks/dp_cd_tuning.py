"""Tuning over the paper's grid, as the paper does it: on the data, for free, by the mean error of a few runs."""

from dataclasses import dataclass

import numpy as np

from dp_cd_methods import Method, Point
from dp_cd_problems import Problem


@dataclass(frozen=True)
class Effort:
    """How much is run. The grid is searched from coarse to fine."""

    steps_apart: int = 1  # of the steps of the grid, every how many are tried
    clips_apart: int = 4  # of the 100 clips, every how many are tried at first
    kept: int = 25  # points that are run on all tuning seeds
    refined: int = 2  # points whose neighbours in the full grid are run too
    runs: int = 5  # of a point, to tune
    seeds: int = 10  # fresh ones, to report

    @property
    def tuning_seeds(self) -> range:
        """Of the runs that choose."""
        return range(1_000, 1_000 + self.runs)

    @property
    def report_seeds(self) -> range:
        """Of the runs that are reported."""
        return range(self.seeds)


FULL = Effort()
QUICK = Effort(steps_apart=2, clips_apart=9, kept=5, refined=0, runs=2, seeds=3)


def tune(method: Method, problem: Problem, passes: int, effort: Effort) -> tuple[Point, float]:
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
