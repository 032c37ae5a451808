"""Steps inside an l1 ball: the weights as a function of the vertices picked, and a gradient kept up to date by steps.

All that a gradient holds is private. What leaves it is a vertex at a time, drawn from its `scores`.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit._types import Floats, Integers
from tacit.kernels import frank_wolfe_dense as dense
from tacit.kernels import frank_wolfe_queue as queue
from tacit.privacy.mechanisms.vertices import SAMPLERS, Rounds, VertexSampler
from tacit.solvers.passes import SHRINK


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

    def gain(self, t: int, sign: int) -> float:
        """What iteration t adds to a weight."""
        return float(self.gains[t]) * sign

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


@dataclass(frozen=True)
class Scoring:
    """How a row adds to the whole gradient.

    Its entries are clipped to `bound`; its slope, that of the loss with this code at the margin plus `offset`, is
    clipped to `limit`, and may be off by `tolerance`. It adds at most `units` to an entry.
    """

    loss: int
    bound: float
    limit: float
    curvature: float
    units: int
    offset: float = 0.0
    tolerance: float = 0.0

    @property
    def unit(self) -> float:
        """Units for a slope and an entry of 1, by a shade less than the bounds allow, which covers rounding."""
        return self.units / (self.limit * self.bound) * SHRINK

    @property
    def spare(self) -> float:
        """By how much a slope may be off when its row is looked at: half of the tolerance.

        Without due dates, where the tolerance is infinite, a look always puts it right: the paper's Algorithm 2.
        """
        return 0.5 * self.tolerance if math.isfinite(self.tolerance) else 0.0


def zeros(size: int, kind: Any) -> NDArray[Any]:
    """Zeros that are written, not left to the system: huge pages are then used."""
    zeros = np.empty(size, dtype=kind)
    zeros[:] = 0
    return zeros


class Queue:
    """Finds the best vertex where there is no noise: a binary heap of |score| with stale keys (Algorithm 3).

    The paper uses a Fibonacci heap, for its cheap way to raise a key. A binary heap raises one in log d steps at most,
    and in fewer as a rule; both leave keys that are too large in place until they come to the top.
    """

    def __init__(self, scores: Integers) -> None:
        self._scores = scores
        self._heap, self._place = (np.empty(len(scores), dtype=np.int32) for _ in range(2))
        self._keys = np.empty_like(scores)
        queue.heapify(scores, self._heap, self._place, self._keys)

    def changed(self, places: Integers) -> None:
        """Take note that the scores at these places changed; due before the next look."""
        queue.lift(places, self._scores, self._heap, self._place, self._keys)

    def best(self) -> tuple[int, int]:
        """(j, sign) of the vertex along which the gradient falls most steeply."""
        j = int(queue.largest(self._scores, self._heap, self._place, self._keys))
        return j, -1 if self._scores[j] > 0 else 1


class Gradient(ABC):
    """The whole gradient, and who is told when it changes.

    Parameters
    ----------
    Z, targets : the rows
    scoring : Scoring
    path : Path
    sampler : str or None
        Which of `SAMPLERS` is to draw from the scores; None: a `Queue`.
    """

    scores: Integers
    sampler: VertexSampler | Queue

    def __init__(self, Z: Any, targets: Floats, scoring: Scoring, path: Path, sampler: str | None) -> None:
        n, d = Z.shape
        self._Z, self._targets, self._scoring, self._path = Z, targets, scoring, path
        self._present = np.empty(n, dtype=np.bool_)
        self.scores = zeros(d, np.int64)
        self._start()
        self.sampler = Queue(self.scores) if sampler is None else self._made(sampler, n * scoring.units)

    @abstractmethod
    def _start(self) -> None:
        """The scores at weights of zero."""

    def _made(self, sampler: str, limit: int) -> VertexSampler:
        return SAMPLERS[sampler](self.scores, limit)

    @abstractmethod
    def step(self, t: int, j: int, sign: int) -> None:
        """Make iteration t, and tell the sampler."""

    @property
    def rounds(self) -> Rounds | None:
        """A compiled loop of draws and steps, if there is one."""
        return None

    @abstractmethod
    def _margins(self, chosen: Integers, weights: Floats, out: Floats) -> None: ...

    def margins(self, chosen: Integers, weights: Floats) -> Floats:
        """Of all rows, for weights on these columns; absent rows have none."""
        out = np.empty(len(self._targets))
        self._margins(chosen, weights, out)
        out[~self._present] = math.nan
        return out


class DenseGradient(Gradient):
    """Of dense rows, computed from all of them after every step."""

    def _start(self) -> None:
        self._now, self._all = np.zeros(len(self._targets)), np.arange(len(self.scores))
        dense.dense_presence(self._Z, self._targets, self._present)
        self._gather()

    def _gather(self) -> None:
        score = self._scoring
        dense.dense_gradient(
            self._Z, score.bound, self._present, self._targets, score.offset, score.loss, score.limit, score.unit,
            self._now, self.scores,
        )  # fmt: skip

    def step(self, t: int, j: int, sign: int) -> None:
        """Make iteration t; all scores may have changed."""
        keep, gain = 1.0 - float(self._path.lengths[t]), self._path.gain(t, sign)
        dense.dense_move(j, keep, gain, self._Z, self._scoring.bound, self._present, self._now)
        self._gather()
        self.sampler.changed(self._all)

    def _margins(self, chosen: Integers, weights: Floats, out: Floats) -> None:
        dense.dense_margins(chosen, weights, self._Z, self._scoring.bound, self._present, out)
