"""Tuning as papers do it: on the data, for free, by the mean score of a few runs."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np


class Point(NamedTuple):
    """What is tuned; 0 is not tuned."""

    batch: int = 0
    clip: float = 0.0
    step: float = 0.0


class Tuned(NamedTuple):
    """The best point, its mean score, and how many points were tried."""

    point: Point
    score: float
    tried: int


def tune(grid: Sequence[Sequence[Point]], scores: Callable[[list[Point], int], Sequence[float]], effort: Any) -> Tuned:
    """The point with the lowest mean score over the tuning seeds, which no reported run has.

    One run of some points of every row of the grid, `apart` from each other; the best of them, `kept`, have all `runs`;
    then those next to the best `refined` in their row.
    """
    seeds = range(1_000, 1_000 + effort.runs)

    def means(places: list[tuple[int, int]], runs: range) -> dict[tuple[int, int], float]:
        points = [grid[row][place] for row, place in places]
        found = np.mean([scores(points, seed) for seed in runs], axis=0).tolist() if points else []
        return dict(zip(places, found, strict=True))

    coarse = [(row, place) for row in range(len(grid)) for place in range(0, len(grid[row]), effort.apart)]
    once = means(coarse, seeds[:1])
    found = means(sorted(once, key=once.__getitem__)[: effort.kept], seeds)
    best = sorted(found, key=found.__getitem__)[: effort.refined]
    reach = range(-(effort.apart // 2), effort.apart // 2 + 1)
    near = {(row, place + k) for row, place in best for k in reach if 0 <= place + k < len(grid[row])}
    found |= means(sorted(near - found.keys()), seeds)
    row, place = min(found, key=found.__getitem__)
    return Tuned(grid[row][place], found[row, place], len(coarse))
