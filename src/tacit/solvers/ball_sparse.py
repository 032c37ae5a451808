"""Gradients of CSR rows, for steps inside an l1 ball: changed where a step changes them, exact, or computed anew."""

import itertools
from abc import abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tacit._types import Floats, Integers
from tacit.kernels import frank_wolfe as kernels
from tacit.kernels import frank_wolfe_columns as by_column
from tacit.kernels import frank_wolfe_lazy as lazy
from tacit.kernels.frank_wolfe import Rule
from tacit.kernels.frank_wolfe_columns import Columns, Entries
from tacit.privacy.mechanisms.affine import LARGEST_PART, ROUNDING_UNITS, AffineBucketSampler, write_scores
from tacit.privacy.mechanisms.vertices import NO_BUCKETS, SAMPLERS, BucketSampler, Rounds, VertexSampler, Walked
from tacit.solvers.ball import DenseGradient, Gradient, Path, Scoring, zeros

_SMALL_SCALE = 2.0**-8
_MUCH_WORK = 2**24  # entries, from which on two threads are much faster than one
_FEW_RUNS, _MOST_BITS = 2**13, 5  # of columns: their ends fit a fast memory, and none has more than 32 columns
_ROW = [("margin", np.float64), ("slope", np.float64), ("since", np.int32), ("due", np.int32)]
_NONE = np.empty(0, dtype=np.int64)
_NO_PLACES = np.empty(0, dtype=np.int32)


def _each(ranges: list[tuple[int, int]], function: Callable[..., Any], *given: Any, own: list[Any]) -> list[Any]:
    """`function` of every range of rows and what is its own, by two threads where there is more than one."""
    if len(ranges) == 1:
        return [function(*ranges[0], *given, *own[0])]
    with ThreadPoolExecutor(2) as threads:
        return list(threads.map(lambda k: function(*ranges[k], *given, *own[k]), range(len(ranges))))


class SparseRows(Gradient):
    """Of CSR rows, with the rows of every column next to them."""

    def _start(self) -> None:
        n, d = self._Z.shape
        bits = min(max((d // _FEW_RUNS).bit_length() - 1, 0), _MOST_BITS)
        edges = np.linspace(0, n, 2 if self._Z.nnz < _MUCH_WORK else 3).astype(np.int64).tolist()
        ranges = list(itertools.pairwise(edges))
        counts = self._looked_at(ranges, bits)
        if counts is None:  # places of a row do not rise
            self._Z = csr_array(self._Z, copy=True)
            self._Z.sum_duplicates()
            self.scores[:] = 0
            counts = self._looked_at(ranges, bits)
            assert counts is not None
        # A run holds the entries of the first range, then those of the second.
        starts = np.zeros(len(counts[0]) + 1, dtype=counts[0].dtype)
        np.cumsum(sum(counts), out=starts[1:])
        following = [starts[:-1] + sum(counts[:k]) for k in range(len(ranges))]
        codes = np.int32 if n * 2**bits < 2**31 else np.int64
        rows: NDArray[np.signedinteger[Any]] = np.empty(int(starts[-1]), dtype=codes)
        given = self._entries, bits, self._present
        _each(ranges, by_column.list_rows, *given, own=[(places, rows) for places in following])
        self._columns: Columns = bits, starts, rows
        self._state(n)

    @property
    def _entries(self) -> Entries:
        return self._Z.data, self._Z.indices, self._Z.indptr, self._scoring.bound

    @property
    def _rule(self) -> Rule:
        score = self._scoring
        return self._targets, score.offset, score.loss, score.limit, score.unit

    def _looked_at(self, ranges: list[tuple[int, int]], bits: int) -> list[NDArray[Any]] | None:
        """Which rows are present, their slopes and scores; how many entries of a range each run of columns has."""
        n, d = self._Z.shape
        self._slopes = np.empty(n)
        kind = np.int32 if self._Z.nnz < 2**31 else np.int64
        counts = [zeros(-(-d // 2**bits), kind) for _ in ranges]
        scores = [self.scores, *(zeros(d, np.int64) for _ in ranges[1:])]
        given = self._entries, bits, *self._rule, self._slopes, self._present
        rise = _each(ranges, by_column.look_at_rows, *given, own=list(zip(scores, counts, strict=True)))
        for more in scores[1:]:
            self.scores += more
        return counts if all(rise) else None

    @abstractmethod
    def _state(self, n: int) -> None:
        """What steps keep of the rows."""

    def _margins(self, chosen: Integers, weights: Floats, out: Floats) -> None:
        by_column.sparse_margins(chosen, weights, self._entries, self._columns, out)


class SparseGradient(SparseRows):
    """Of CSR rows, changed only where a step changes it: Algorithm 2, with due dates."""

    def _state(self, n: int) -> None:
        # What a look at a row needs stands together: it then waits for memory once.
        places = np.int32 if n < 2**31 else np.int64
        row = zeros(n, [*_ROW, ("after", places), ("before", places)])
        row["slope"] = self._slopes
        self._now, self._slopes = row["margin"], row["slope"]
        self._since, self._due = row["since"], row["due"]
        self._after, self._before = row["after"], row["before"]
        self._heads = np.full(self._path.count + 1, -1, dtype=places)

    @cached_property
    def _given(self) -> tuple[Any, ...]:
        """What every step is given, in the order of the kernel; the last two are where it leaves what it changed."""
        score = self._scoring
        dates = self._path.shrink, score.curvature, score.tolerance, score.spare
        state = self._now, self._since, self._slopes, self._due, self._heads, self._after, self._before
        after: tuple[Any, Any]
        if isinstance(self.sampler, BucketSampler):
            after = self.sampler.held, (_NONE, _NO_PLACES)
        else:
            notes = np.empty_like(self.scores), np.zeros(len(self.scores), dtype=np.int32)
            after = NO_BUCKETS, notes
        return self._entries, self._columns, self._rule, dates, state, self.scores, *after

    def step(self, t: int, j: int, sign: int) -> None:
        """Make iteration t, and tell the sampler; buckets are put right by the step itself."""
        kind = kernels.IN_BUCKETS if isinstance(self.sampler, BucketSampler) else kernels.NOTED
        count = kernels.sparse_step(t, j, self._path.gain(t, sign), kind, *self._given)
        if count:
            noted, _ = self._given[-1]
            self.sampler.changed(noted[:count])

    @property
    def rounds(self) -> Rounds | None:
        """Draws and steps in one compiled loop, where the sampler's buckets are put right by the steps."""
        return self._rounds if isinstance(self.sampler, BucketSampler) else None

    def _rounds(self, words: NDArray[np.uint64], at: int, picks: Integers, done: int, stop: int) -> Walked:
        return kernels.sparse_walk(words, at, picks, done, stop, self._path.gains, *self._given)


class LazyGradient(SparseRows):
    """Of CSR rows and the squared loss, exact: linear in the scale of the weights, which every step lowers.

    With margins m = scale v, an entry is scale sum v_i x_ij - sum y_i x_ij. Steps change few of the first sums, the
    rates; the others are constants. Where the scale is small, v is taken anew, so that the rates stay below 2^63.
    """

    def __init__(self, Z: Any, targets: Floats, scoring: Scoring, path: Path, sampler: str | None) -> None:
        units = min(scoring.units, LARGEST_PART // len(targets)) - ROUNDING_UNITS
        super().__init__(Z, targets, replace(scoring, units=max(units, 0)), path, sampler)

    def _state(self, n: int) -> None:
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
        entries, unit = self._entries, self._scoring.unit
        self._scale *= 1.0 - float(self._path.lengths[t])
        anew = self._scale < _SMALL_SCALE
        if anew:
            self._v *= self._scale
            self._scale = 1.0
            lazy.lazy_rates(entries, self._present, unit, self._v, self._rates)
        gain = self._path.gain(t, sign) / self._scale
        notes = self._noted, self._marks
        count = lazy.lazy_step(t, j, gain, entries, self._columns, unit, self._v, self._rates, *notes)
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


def gradient_for(Z: Any, targets: Floats, scoring: Scoring, path: Path, sampler: str | None, exact: bool) -> Gradient:
    """The cheapest form for these rows; `exact` says that the slopes are linear in the margin, and not clipped."""
    if not isinstance(Z, csr_array):
        return DenseGradient(Z, targets, scoring, path, sampler)
    kind = LazyGradient if exact else SparseGradient
    return kind(Z, targets, scoring, path, sampler)
