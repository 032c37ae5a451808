"""Scores of vertices: the whole gradient in whole numbers, kept up to date by steps inside an l1 ball.

Three forms. Dense rows are all looked at after every step. CSR rows are looked at where a step changes them, and all of
them at iterations that are fixed before; for the squared loss, whose gradient is linear in the weights, without such
sweeps and exactly.

All that a form holds is private. What leaves it is a vertex at a time, drawn by its sampler from its scores.
"""

import math
from dataclasses import replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tacit._types import Floats, Integers
from tacit.kernels.frank_wolfe import dense, lazy
from tacit.kernels.frank_wolfe import steps as kernels
from tacit.kernels.frank_wolfe.rows import Rule
from tacit.privacy.mechanisms.affine import LARGEST_PART, ROUNDING_UNITS, AffineBucketSampler, write_scores
from tacit.privacy.mechanisms.vertices import NO_BUCKETS, SAMPLERS, BucketSampler, Rounds, VertexSampler, Walked
from tacit.solvers.frank_wolfe.path import Path
from tacit.solvers.frank_wolfe.rows import Scoring, SparseRows, zeros

_SMALL_SCALE = 2.0**-8
_ROW = [("margin", np.float64), ("slope", np.float64), ("anchor", np.float64)]
_NONE = np.empty(0, dtype=np.int64)
_NO_PLACES = np.empty(0, dtype=np.int32)


class Scores(Protocol):
    """The whole gradient, and who is told when it changes."""

    @property
    def sampler(self) -> VertexSampler:
        """Draws from the scores."""

    @property
    def rounds(self) -> Rounds | None:
        """A compiled loop of draws and steps, if there is one."""

    def step(self, t: int, j: int, sign: int) -> None:
        """Make iteration t, and tell the sampler."""

    def margins(self, chosen: Integers, weights: Floats) -> Floats:
        """Of all rows, for weights on these columns; absent rows have none."""


class DenseScores:
    """Of dense rows: all are looked at in every step, and what one adds changes where its slope is off by too much."""

    rounds: Rounds | None = None

    def __init__(self, Z: Any, targets: Floats, scoring: Scoring, path: Path, sampler: str) -> None:
        n, d = Z.shape
        self._path, self._rule = path, scoring.rule(targets)
        self._present, self._all = np.empty(n, dtype=np.bool_), np.arange(d)
        self._entries = Z, scoring.bound, self._present
        self.scores: Integers = zeros(d, np.int64)
        dense.dense_presence(Z, targets, self._present)
        state = np.zeros(n), np.zeros(n), np.zeros(n)
        self._slopes, self._changes = state[1], (np.empty(n, dtype=np.int64), np.empty(n))
        dense.dense_slopes(self._present, self._rule, self._slopes)
        dense.dense_sum(self._entries, scoring.unit, self._slopes, self.scores)
        steps = (path.gains, *path.scales, np.empty(0, dtype=np.bool_))
        self._given = self._entries, self._rule, steps, (scoring.curvature, scoring.tolerance), (state, self._changes)
        self.sampler = SAMPLERS[sampler](self.scores, n * scoring.units)

    @classmethod
    def of(cls, Z: Any, targets: Floats, scoring: Scoring, path: Path, sampler: str) -> "DenseScores":
        """From the rows."""
        return cls(Z, targets, scoring, path, sampler)

    def step(self, t: int, j: int, sign: int) -> None:
        """Make iteration t; all scores may have changed."""
        count, unit = dense.dense_look(t, j, self._path.gain(t, sign), *self._given), self._rule[-1]
        if 2 * count > len(self._present):  # the same whole numbers either way
            dense.dense_sum(self._entries, unit, self._slopes, self.scores)
        else:
            dense.dense_add(count, self._entries, unit, self._slopes, self._changes, self.scores)
        self.sampler.changed(self._all)

    def margins(self, chosen: Integers, weights: Floats) -> Floats:
        """Of all rows, for weights on these columns; absent rows have none."""
        out = np.empty(len(self._present))
        dense.dense_margins(chosen, weights, self._entries, out)
        out[~self._present] = math.nan
        return out


class SteppedScores:
    """Of CSR rows, changed only where a step changes them: Algorithm 2, with sweeps."""

    def __init__(self, rows: SparseRows, rule: Rule, scoring: Scoring, path: Path, sampler: str) -> None:
        n = len(rows.present)
        self._rows, self._rule, self._scoring, self._path = rows, rule, scoring, path
        self.scores, self.margins = rows.scores, rows.margins
        # What a look at a row needs stands together: it then waits for memory once.
        places = np.int32 if n < 2**31 else np.int64
        row = zeros(n, _ROW)
        row["slope"], row["anchor"] = rows.slopes, math.inf
        self._slopes, self._met, changes = row["slope"], zeros(n + 1, places), (np.empty(n, dtype=places), np.empty(n))
        self._state = (row["margin"], self._slopes, row["anchor"]), self._met, changes
        self.sampler = SAMPLERS[sampler](self.scores, n * scoring.units)

    @classmethod
    def of(cls, Z: csr_array, targets: Floats, scoring: Scoring, path: Path, sampler: str) -> "SteppedScores":
        """From the rows."""
        return cls(SparseRows.of(Z, targets, scoring), scoring.rule(targets), scoring, path, sampler)

    @cached_property
    def _given(self) -> tuple[Any, ...]:
        """What every step is given, in the order of the kernel: problem, state, and where changes are told."""
        score, path = self._scoring, self._path
        sweeps = path.sweeps(score.curvature * score.bound, score.tolerance - score.spare)
        problem = self._rows.listed, self._rule, (path.gains, *path.scales, sweeps), (score.curvature, score.spare)
        after: tuple[Any, Any]
        if isinstance(self.sampler, BucketSampler):
            after = self.sampler.held, (_NONE, _NO_PLACES)
        else:
            notes = np.empty_like(self.scores), np.zeros(len(self.scores), dtype=np.int32)
            after = NO_BUCKETS, notes
        return problem, self._state, (self.scores, *after)

    def step(self, t: int, j: int, sign: int) -> None:
        """Make iteration t, and tell the sampler; buckets are put right by the step itself."""
        kind = kernels.IN_BUCKETS if isinstance(self.sampler, BucketSampler) else kernels.NOTED
        count = kernels.sparse_step(t, j, self._path.gain(t, sign), kind, *self._given)
        if count:
            *_, (noted, _) = self._given[-1]
            self.sampler.changed(noted[:count])

    @property
    def rounds(self) -> Rounds | None:
        """Draws and steps in one compiled loop, where the sampler's buckets are put right by the steps."""
        return self._rounds if isinstance(self.sampler, BucketSampler) else None

    def _rounds(self, words: NDArray[np.uint64], at: int, picks: Integers, done: int, stop: int) -> Walked:
        return kernels.sparse_walk(words, at, picks, done, stop, *self._given)


class LazyScores:
    """Of CSR rows and the squared loss, exact: linear in the scale of the weights, which every step lowers.

    With margins m = scale v, an entry is scale sum v_i x_ij - sum y_i x_ij. Steps change few of the first sums, the
    rates; the others are constants. Where the scale is small, v is taken anew, so that the rates stay below 2^63.
    """

    rounds: Rounds | None = None

    def __init__(self, rows: SparseRows, scoring: Scoring, path: Path, sampler: str) -> None:
        n, d = len(rows.present), len(rows.scores)
        self._rows, self._scoring, self._path = rows, scoring, path
        self.scores, self.margins = rows.scores, rows.margins
        self._scale, self._v = 1.0, np.zeros(n)
        self._rates, self._constants = np.zeros_like(self.scores), self.scores.copy()
        self._noted, self._marks, self._all = np.empty_like(self.scores), np.zeros(d, dtype=np.int32), np.arange(d)
        limit = n * scoring.units + n * ROUNDING_UNITS
        self.sampler: VertexSampler
        if sampler == "bucket":
            self.sampler = AffineBucketSampler(self._rates, self._constants, limit)
        else:
            self.sampler = SAMPLERS[sampler](self.scores, limit)

    @classmethod
    def of(cls, Z: csr_array, targets: Floats, scoring: Scoring, path: Path, sampler: str) -> "LazyScores":
        """From the rows, with units that leave room for rounding a product."""
        units = min(scoring.units, LARGEST_PART // len(targets)) - ROUNDING_UNITS
        scoring = replace(scoring, units=max(units, 0))
        return cls(SparseRows.of(Z, targets, scoring), scoring, path, sampler)

    def step(self, t: int, j: int, sign: int) -> None:
        """Make iteration t, and tell the sampler."""
        listed, unit = self._rows.listed, self._scoring.unit
        self._scale *= 1.0 - float(self._path.lengths[t])
        anew = self._scale < _SMALL_SCALE
        if anew:
            self._v *= self._scale
            self._scale = 1.0
            lazy.lazy_rates(listed[0], self._rows.present, unit, self._v, self._rates)
        gain = self._path.gain(t, sign) / self._scale
        notes = self._noted, self._marks
        count = lazy.lazy_step(t, j, gain, listed, unit, self._v, self._rates, notes)
        if not isinstance(self.sampler, AffineBucketSampler):
            write_scores(self._scale, self._rates, self._constants, self.scores)
            self.sampler.changed(self._all)
        elif anew:
            self.sampler.restart()
        else:
            self.sampler.scale_to(self._scale)
            self.sampler.changed(self._noted[:count])


def scores_for(Z: Any, targets: Floats, scoring: Scoring, path: Path, sampler: str, *, exact: bool) -> Scores:
    """The cheapest form for these rows; `exact` says that the slopes are linear in the margin, and not clipped."""
    if not isinstance(Z, csr_array):
        return DenseScores.of(Z, targets, scoring, path, sampler)
    form = LazyScores if exact else SteppedScores
    return form.of(Z, targets, scoring, path, sampler)
