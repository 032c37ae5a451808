"""Steps inside an l1 ball: the weights are a function of the vertices picked, and of nothing else."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tacit._types import Flags, Floats, Integers

_DEEPEST = -200.0  # logarithm of the smallest scale


@dataclass(frozen=True)
class Path:
    """The lengths of steps: iteration t takes the weights w to (1 - eta_t) w + eta_t radius sign e_j.

    Parameters
    ----------
    count : int
        How many iterations.
    radius : float
        Of the ball.
    step : float
        Below 1: eta_t is this number. From 1 on: eta_t = step / (t + step); t counts from 1, so that eta_t < 1.
    """

    count: int
    radius: float
    step: float = 2.0

    @cached_property
    def lengths(self) -> Floats:
        """Of eta_1, ..., eta_count; that at place 0 is no step."""
        t = np.arange(self.count + 1, dtype=np.float64)
        lengths = self.step / (t + self.step) if self.step >= 1.0 else np.full(self.count + 1, self.step)
        lengths[0] = 0.0
        return lengths

    @cached_property
    def gains(self) -> Floats:
        """What each iteration adds to a weight, but for the sign."""
        return self.lengths * self.radius

    @cached_property
    def shrink(self) -> Floats:
        """Logarithms of the product of 1 - eta up to each iteration."""
        return np.cumsum(np.log1p(-self.lengths))

    @cached_property
    def scales(self) -> tuple[Floats, Floats]:
        """The product of 1 - eta up to each iteration, which begins again at 1 before it underflows; and what was left
        of it there, 0 elsewhere.
        """
        scales, anew, base = np.exp(self.shrink), np.zeros(self.count + 1), 0
        while self.shrink[-1] - self.shrink[base] < _DEEPEST:
            begun, base = base, int(np.searchsorted(-self.shrink, -self.shrink[base] - _DEEPEST))
            anew[base] = math.exp(self.shrink[base] - self.shrink[begun])
            scales[base:] = np.exp(self.shrink[base:] - self.shrink[base])
        return scales, anew

    def gain(self, t: int, sign: int) -> float:
        """What iteration t adds to a weight."""
        return float(self.gains[t]) * sign

    def sweeps(self, steepness: float, allowed: float) -> Flags:
        """The iterations at which all rows are looked at, so that slopes move by no more than allowed between two.

        `steepness` is what a slope changes by, at most, for weights of norm 1. After a look at iteration s what is left
        of a margin by t is exp(shrink[t] - shrink[s]). The part that is gone moves the slope by the steepness times the
        radius at most.
        """
        sweeps = np.zeros(self.count + 1, dtype=np.bool_)
        most = steepness * self.radius
        if most <= allowed:
            return sweeps
        least, falling, t = math.log1p(-allowed / most), -self.shrink, 0
        while t < self.count:
            t = max(t + 1, int(np.searchsorted(falling, falling[t] - least, side="right")))
            sweeps[t : t + 1] = True
        return sweeps

    def weights(self, picks: list[tuple[int, int]], averaging: str = "last") -> tuple[Integers, Floats]:
        """The columns picked, and their weights: after the last iteration, or on average over the later half ("tail").

        An average of iterates is a sum over picks, each with the mean over those iterates of what is left of it.
        """
        count = len(picks)
        first = count // 2 + 1 if averaging == "tail" else count
        sums = np.zeros(count + 2)  # over iterates from `first` on of what is left of a weight of 1 added at t
        for t in range(count, first - 1, -1):
            sums[t] = 1.0 + (1.0 - self.lengths[t + 1]) * sums[t + 1] if t < count else 1.0
        sums[1:first] = np.exp(self.shrink[first] - self.shrink[1:first]) * sums[first]
        signs = np.array([sign for _, sign in picks], dtype=np.float64)
        parts = self.lengths[1 : count + 1] * self.radius * signs * sums[1 : count + 1] / (count - first + 1)
        chosen, which = np.unique(np.array([j for j, _ in picks], dtype=np.int64), return_inverse=True)
        weights: Floats = np.zeros(len(chosen))
        np.add.at(weights, which, parts)
        return chosen, weights
