"""CSR rows for steps inside an l1 ball: how a row is scored, and which rows have an entry in a column.

All of it but `Scoring` is private, and stays in the solver.
"""

import itertools
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tacit._types import Flags, Floats, Integers
from tacit.blocks import SHRINK
from tacit.kernels.frank_wolfe import columns as by_column
from tacit.kernels.frank_wolfe.columns import Entries, Listed
from tacit.kernels.frank_wolfe.rows import Rule

_MUCH_WORK = 2**24  # entries, from which on two threads are much faster than one
_MOST_VALUES = 2**27  # entries, up to which their values stand by column too
_FEW_RUNS, _MOST_BITS = 2**13, 5  # of columns: their ends fit a fast memory, and none has more than 32 columns


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

        Without sweeps, where the tolerance is infinite, a look always puts it right: the paper's Algorithm 2.
        """
        return 0.5 * self.tolerance if math.isfinite(self.tolerance) else 0.0

    def rule(self, targets: Floats) -> Rule:
        """What a kernel needs for the slopes of rows with these targets."""
        return targets, self.offset, self.loss, self.limit, self.unit


def zeros(size: int, kind: Any) -> NDArray[Any]:
    """Zeros that are written, not left to the system: huge pages are then used."""
    zeros = np.empty(size, dtype=kind)
    zeros[:] = 0
    return zeros


@dataclass(frozen=True, eq=False)
class SparseRows:
    """CSR rows, with the rows of every column next to them, and the whole gradient at weights of zero.

    A row whose norm overflows is not `present`: no column lists it.
    """

    listed: Listed
    present: Flags
    slopes: Floats  # at margins of zero
    scores: Integers  # the whole gradient there, in units

    @classmethod
    def of(cls, Z: csr_array, targets: Floats, scoring: Scoring) -> "SparseRows":
        """Index the rows."""
        n, d = Z.shape
        bits = min(max((d // _FEW_RUNS).bit_length() - 1, 0), _MOST_BITS)
        edges = np.linspace(0, n, 2 if Z.nnz < _MUCH_WORK else 3).astype(np.int64).tolist()
        ranges = list(itertools.pairwise(edges))
        seen = _look(Z, targets, scoring, ranges, bits)
        if seen is None:  # places of a row do not rise
            Z = csr_array(Z, copy=True)
            Z.sum_duplicates()
            seen = _look(Z, targets, scoring, ranges, bits)
            assert seen is not None
        counts = seen.counts
        # A run holds the entries of the first range, then those of the second.
        starts = np.zeros(len(counts[0]) + 1, dtype=counts[0].dtype)
        np.cumsum(sum(counts), out=starts[1:])
        following = [starts[:-1] + sum(counts[:k]) for k in range(len(ranges))]
        codes = np.int32 if n * 2**bits < 2**31 else np.int64
        rows: NDArray[np.signedinteger[Any]] = np.empty(int(starts[-1]), dtype=codes)
        values = np.empty(len(rows) if len(rows) <= _MOST_VALUES else 0, dtype=Z.dtype)
        entries = _entries(Z, scoring)
        given = entries, bits, seen.present
        _each(ranges, by_column.list_rows, *given, own=[(places, rows, values) for places in following])
        return cls((entries, (bits, starts, rows, values)), seen.present, seen.slopes, seen.scores)

    def margins(self, chosen: Integers, weights: Floats) -> Floats:
        """Of all rows, for weights on these columns; absent rows have none."""
        out = np.empty(len(self.present))
        by_column.sparse_margins(chosen, weights, self.listed, out)
        out[~self.present] = math.nan
        return out

    def __repr__(self) -> str:
        return "SparseRows(private)"


@dataclass(frozen=True, eq=False)
class _Seen:
    """What a first look at the rows finds."""

    present: Flags
    slopes: Floats
    scores: Integers
    counts: list[NDArray[Any]]  # how many entries of a range each run of columns has


def _look(Z: csr_array, targets: Floats, scoring: Scoring, ranges: list[tuple[int, int]], bits: int) -> _Seen | None:
    """Look at all rows; None where the places of a row do not rise."""
    n, d = Z.shape
    present, slopes = np.empty(n, dtype=np.bool_), np.empty(n)
    kind = np.int32 if Z.nnz < 2**31 else np.int64
    counts = [zeros(-(-d // 2**bits), kind) for _ in ranges]
    scores = [zeros(d, np.int64) for _ in ranges]
    given = _entries(Z, scoring), bits, scoring.rule(targets)
    own = [((present, slopes, *sums),) for sums in zip(scores, counts, strict=True)]
    rise = _each(ranges, by_column.look_at_rows, *given, own=own)
    for more in scores[1:]:
        scores[0] += more
    return _Seen(present, slopes, scores[0], counts) if all(rise) else None


def _entries(Z: csr_array, scoring: Scoring) -> Entries:
    return Z.data, Z.indices, Z.indptr, scoring.bound


def _each(ranges: list[tuple[int, int]], function: Callable[..., Any], *given: Any, own: list[Any]) -> list[Any]:
    """`function` of every range of rows and what is its own, by two threads where there is more than one."""
    if len(ranges) == 1:
        return [function(*ranges[0], *given, *own[0])]
    with ThreadPoolExecutor(2) as threads:
        return list(threads.map(lambda k: function(*ranges[k], *given, *own[k]), range(len(ranges))))
