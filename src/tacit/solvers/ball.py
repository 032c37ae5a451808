"""Steps inside an l1 ball: the weights as a function of the vertices picked, and a gradient kept up to date by steps.

All that a gradient holds is private. What leaves it is a vertex at a time, drawn from its `scores`.
"""

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tacit.kernels import frank_wolfe as kernels
from tacit.privacy.mechanisms.affine import LARGEST_PART, ROUNDING_UNITS, AffineBucketSampler
from tacit.privacy.mechanisms.vertices import SAMPLERS, BucketSampler, VertexSampler
from tacit.privacy.noise.affine import write_scores
from tacit.solvers.passes import SHRINK

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_SMALL_SCALE = 2.0**-8
_MUCH_WORK = 2**20  # entries, from which on two threads are faster than one
_FEW_RUNS, _MOST_BITS = 2**15, 6  # of columns: their ends fit a fast memory, and none has more than 64 columns
_NONE = np.empty(0, dtype=np.int64)
_NO_PLACES = np.empty(0, dtype=np.int32)


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
    def shrink(self) -> Floats:
        """Logarithms of the product of 1 - eta up to each iteration."""
        return np.cumsum(np.log1p(-self.lengths))

    def gain(self, t: int, sign: int) -> float:
        """What iteration t adds to a weight."""
        return float(self.lengths[t]) * self.radius * sign

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


def _in_parts(edges: Integers, function: Callable[..., Any], *given: Any) -> list[Any]:
    """`function` of every range between two edges, by two threads where there is more than one."""
    ranges = list(itertools.pairwise(edges.tolist()))
    if len(ranges) == 1:
        return [function(*ranges[0], *given)]
    with ThreadPoolExecutor(2) as threads:
        return list(threads.map(lambda ends: function(*ends, *given), ranges))


def _edges(Z: Any, size: int) -> Integers:
    """Two ranges of rows or of columns; one if there is little to do."""
    return np.linspace(0, size, 2 if Z.nnz < _MUCH_WORK else 3).astype(np.int64)


class Queue:
    """Finds the best vertex where there is no noise: a binary heap of |score| with stale keys (Algorithm 3).

    The paper uses a Fibonacci heap, for its cheap way to raise a key. A binary heap raises one in log d steps at most,
    and in fewer as a rule; both leave keys that are too large in place until they come to the top.
    """

    def __init__(self, scores: Integers) -> None:
        self._scores = scores
        self._heap, self._place = (np.empty(len(scores), dtype=np.int32) for _ in range(2))
        self._keys = np.empty_like(scores)
        kernels.heapify(scores, self._heap, self._place, self._keys)

    def changed(self, places: Integers) -> None:
        """Take note that the scores at these places changed; due before the next look."""
        kernels.lift(places, self._scores, self._heap, self._place, self._keys)

    def best(self) -> tuple[int, int]:
        """(j, sign) of the vertex along which the gradient falls most steeply."""
        j = int(kernels.largest(self._scores, self._heap, self._place, self._keys))
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
        self.scores = np.empty(d, dtype=np.int64)
        self.scores[:] = 0
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

    @abstractmethod
    def _margins(self, chosen: Integers, weights: Floats, out: Floats) -> None: ...

    def margins(self, chosen: Integers, weights: Floats) -> Floats:
        """Of all rows, for weights on these columns; absent rows have none."""
        out = np.empty(len(self._targets))
        self._margins(chosen, weights, out)
        out[~self._present] = math.nan
        return out


class SparseGradient(Gradient):
    """Of CSR rows, with the rows of every column next to them: Algorithm 2, with due dates."""

    def _start(self) -> None:
        n, d = self._Z.shape
        self._slopes = np.empty(n)
        if not self._looked_at():
            self._Z = csr_array(self._Z, copy=True)
            self._Z.sum_duplicates()
            self._looked_at()
        score, Z = self._scoring, self._Z
        self._bits = bits = min(max((d // _FEW_RUNS).bit_length() - 1, 0), _MOST_BITS)
        runs = -(-d // 2**bits)
        starts = np.empty(runs + 2, dtype=np.int32 if Z.nnz < 2**31 else np.int64)
        starts[:] = 0  # written, not left to the system: huge pages are then used
        edges, entries = _edges(Z, runs), (Z.data, Z.indices, Z.indptr, score.bound, score.unit)
        _in_parts(edges, kernels.count_columns, bits, *entries, self._slopes, self._present, self.scores, starts)
        np.cumsum(starts, out=starts)
        codes = np.int32 if n * 2**bits < 2**31 else np.int64
        self._rows: NDArray[np.signedinteger[Any]] = np.empty(int(starts[-1]), dtype=codes)
        _in_parts(edges, kernels.list_rows, bits, Z.indices, Z.indptr, self._present, starts, self._rows)
        self._starts = starts
        places = np.int32 if n < 2**31 else np.int64
        self._state(n, places)

    def _looked_at(self) -> bool:
        """Which rows are present, and their slopes; whether their places rise."""
        score, Z = self._scoring, self._Z
        entries, rule = (Z.data, Z.indices, Z.indptr), (self._targets, score.offset, score.loss, score.limit)
        edges = _edges(Z, len(self._targets))
        return all(_in_parts(edges, kernels.look_at_rows, *entries, *rule, self._slopes, self._present))

    def _state(self, n: int, places: type[np.signedinteger[Any]]) -> None:
        self._now, self._since = np.zeros(n), np.zeros(n, dtype=np.int32)
        self._due = np.zeros(n, dtype=np.int32)
        self._after, self._before = np.empty(n, dtype=places), np.empty(n, dtype=places)
        self._heads = np.full(self._path.count + 1, -1, dtype=places)

    @cached_property
    def _notes(self) -> tuple[Any, ...]:
        """Where a step leaves which scores it changed: in buckets, or in a list."""
        if isinstance(self.sampler, BucketSampler):
            return *self.sampler.buckets, _NONE, _NO_PLACES, kernels.IN_BUCKETS
        return *[_NO_PLACES] * 4, np.empty_like(self.scores), np.zeros(len(self.scores), dtype=np.int32), kernels.NOTED

    @cached_property
    def _before_now(self) -> tuple[Any, ...]:
        """What every step is given, in the order of the kernel."""
        score, Z = self._scoring, self._Z
        return (
            Z.data, Z.indices, Z.indptr, score.bound, self._bits, self._starts, self._rows, self._targets,
            score.offset, score.loss, score.limit, score.curvature, score.tolerance, score.unit, self._path.shrink,
            self._now, self._since, self._slopes, self._due, self._heads, self._after, self._before, self.scores,
            *self._notes,
        )  # fmt: skip

    def step(self, t: int, j: int, sign: int) -> None:
        """Make iteration t, and tell the sampler; buckets are put right by the step itself."""
        count = kernels.sparse_step(t, j, self._path.gain(t, sign), *self._before_now)
        if count:
            self.sampler.changed(self._notes[4][:count])

    def _margins(self, chosen: Integers, weights: Floats, out: Floats) -> None:
        score, Z = self._scoring, self._Z
        place = Z.data, Z.indices, Z.indptr, score.bound
        kernels.sparse_margins(chosen, weights, *place, self._bits, self._starts, self._rows, out)


class LazyGradient(SparseGradient):
    """Of CSR rows and the squared loss, exact: linear in the scale of the weights, which every step lowers.

    With margins m = scale v, an entry is scale sum v_i x_ij - sum y_i x_ij. Steps change few of the first sums, the
    rates; the others are constants. Where the scale is small, v is taken anew, so that the rates stay below 2^63.
    """

    def __init__(self, Z: Any, targets: Floats, scoring: Scoring, path: Path, sampler: str | None) -> None:
        units = min(scoring.units, LARGEST_PART // len(targets)) - ROUNDING_UNITS
        super().__init__(Z, targets, replace(scoring, units=max(units, 0)), path, sampler)

    def _state(self, n: int, places: type[np.signedinteger[Any]]) -> None:  # noqa: ARG002
        self._scale, self._v = 1.0, np.zeros(n)
        self._rates, self._constants = np.zeros_like(self.scores), self.scores.copy()
        self._noted, self._marks = np.empty_like(self.scores), np.zeros(len(self.scores), dtype=np.int32)

    def _made(self, sampler: str, limit: int) -> VertexSampler:
        limit += len(self._targets) * ROUNDING_UNITS
        if sampler == "bucket":
            return AffineBucketSampler(self._rates, self._constants, limit)
        return SAMPLERS[sampler](self.scores, limit)

    def step(self, t: int, j: int, sign: int) -> None:
        """Make iteration t, and tell the sampler."""
        score, Z = self._scoring, self._Z
        place = Z.data, Z.indices, Z.indptr, score.bound
        self._scale *= 1.0 - float(self._path.lengths[t])
        anew = self._scale < _SMALL_SCALE
        if anew:
            self._v *= self._scale
            self._scale = 1.0
            kernels.lazy_rates(*place, self._present, score.unit, self._v, self._rates)
        gain = self._path.gain(t, sign) / self._scale
        columns, notes = (self._bits, self._starts, self._rows), (self._noted, self._marks)
        count = kernels.lazy_step(t, j, gain, *place, *columns, score.unit, self._v, self._rates, *notes)
        if not isinstance(self.sampler, AffineBucketSampler):
            write_scores(self._scale, self._rates, self._constants, self.scores)
            self.sampler.changed(self._all)
        elif anew:
            self.sampler.restart()
        else:
            self.sampler.scale_to(self._scale)
            self.sampler.changed(self._noted[:count])

    @cached_property
    def _all(self) -> Integers:
        return np.arange(len(self.scores))


class RecomputedGradient(SparseGradient):
    """Of CSR rows, computed anew from all of them after every step: Algorithm 1."""

    def _state(self, n: int, places: type[np.signedinteger[Any]]) -> None:  # noqa: ARG002
        self._weights, self._all = np.zeros(len(self.scores)), np.arange(len(self.scores))

    def step(self, t: int, j: int, sign: int) -> None:
        """Make iteration t; all scores may have changed."""
        score, Z = self._scoring, self._Z
        self._weights *= 1.0 - self._path.lengths[t]
        self._weights[j] += self._path.gain(t, sign)
        kernels.sparse_gradient(
            Z.data, Z.indices, Z.indptr, score.bound, self._present, self._targets, score.offset,
            score.loss, score.limit, score.unit, self._weights, self.scores,
        )  # fmt: skip
        self.sampler.changed(self._all)


class DenseGradient(Gradient):
    """Of dense rows, computed from all of them after every step."""

    def _start(self) -> None:
        self._now, self._all = np.zeros(len(self._targets)), np.arange(len(self.scores))
        kernels.dense_presence(self._Z, self._targets, self._present)
        self._gather()

    def _gather(self) -> None:
        score = self._scoring
        kernels.dense_gradient(
            self._Z, score.bound, self._present, self._targets, score.offset, score.loss, score.limit, score.unit,
            self._now, self.scores,
        )  # fmt: skip

    def step(self, t: int, j: int, sign: int) -> None:
        """Make iteration t; all scores may have changed."""
        keep, gain = 1.0 - float(self._path.lengths[t]), self._path.gain(t, sign)
        kernels.dense_move(j, keep, gain, self._Z, self._scoring.bound, self._present, self._now)
        self._gather()
        self.sampler.changed(self._all)

    def _margins(self, chosen: Integers, weights: Floats, out: Floats) -> None:
        kernels.dense_margins(chosen, weights, self._Z, self._scoring.bound, self._present, out)


def gradient_for(Z: Any, targets: Floats, scoring: Scoring, path: Path, sampler: str | None, exact: bool) -> Gradient:
    """The cheapest form for these rows; `exact` says that the slopes are linear in the margin, and not clipped."""
    if not isinstance(Z, csr_array):
        return DenseGradient(Z, targets, scoring, path, sampler)
    kind = LazyGradient if exact else SparseGradient
    return kind(Z, targets, scoring, path, sampler)
