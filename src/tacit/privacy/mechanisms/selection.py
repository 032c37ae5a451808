"""The exponential mechanism: choosing one of several candidates by a score that depends on the data.

A candidate is drawn with probability in proportion to exp(c score). One row changes the scores; let the largest and the
smallest change differ by at most `spread`. With c = e0 / spread the log-probabilities then have range e0, which costs
e0^2 / 8 of zCDP.

What holds: sampling is exact. Scores, less the best one, are rounded to whole multiples of 2^-32 octaves (factors of
two, so that the buckets of the sampler have whole weights). The rounding is paid for. In each world a score is off by
less than 1/2 from rounding, and by 3/2 from three float operations at most 2^52 units from zero: a rank less its
target, a score less the best, the product. So a row changes the differences by at most 8 units more. Scores more than
2^20 octaves below the best are clipped there. That moves probabilities below 2^-1,000,000; and as the best itself moves
within the range of the changes, clipping brings no two scores further apart.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from tacit._types import Floats, Integers
from tacit.privacy import checks
from tacit.privacy.gate import Grant
from tacit.privacy.mechanisms.sensitivity import Sensitivity
from tacit.privacy.noise import kernels
from tacit.privacy.noise.samplers import Candidates
from tacit.privacy.noise.source import NoiseSource
from tacit.privacy.plan import Kind

Chosen = TypeVar("Chosen")

_UNITS = 2.0**32 / math.log(2.0)  # units of 2^-32 octaves in one nat
_ROUNDING_UNITS = 8.0
_LIMIT = 2.0**52


class Choice(ABC, Generic[Chosen]):
    """Draw one of several candidates.

    A choice says how it scores candidates (`scored`), by how much a row can spread the changes of the scores
    (`spread`), and what the number of a candidate stands for (`chosen`).
    """

    kind: ClassVar[Kind] = "exponential"
    spread: Sensitivity

    @abstractmethod
    def scored(self, *values: ArrayLike) -> tuple[Floats, Floats | None]:
        """The score of every candidate, which is private, and public log-weights, if it has any."""

    @abstractmethod
    def chosen(self, pick: int, size: int) -> Chosen:
        """What is released where the candidate of this number was drawn, of so many."""

    def draw(self, grant: Grant, *values: ArrayLike) -> Chosen:
        """A candidate, with weight exp(e0 score / spread) times its public weight."""
        scores, prior = self.scored(*values)
        source = grant.take()
        pick = _pick(scores, self.spread.under(grant.adjacency), grant.multiplier, source, prior)
        return self.chosen(pick, len(scores))


@dataclass(frozen=True)
class Selection(Choice[int]):
    """Draw one candidate.

    Parameters
    ----------
    spread : Sensitivity
        The largest, over rows, of (largest minus smallest change of a candidate's score). For scores that a row can
        only raise, by at most b, it is `Sensitivity(b, 2 b)`; for scores that move by up to b either way, `(2 b, 4 b)`.
    """

    spread: Sensitivity

    def scored(self, *values: ArrayLike) -> tuple[Floats, None]:
        """The scores as they are given."""
        (scores,) = values
        return _scores(scores), None

    def chosen(self, pick: int, size: int) -> int:  # noqa: ARG002
        """The index of the candidate."""
        return pick


@dataclass(frozen=True)
class SignedVertex(Choice[tuple[int, int]]):
    """Draw a signed vertex sign * e_j of the l1 ball by the linear score -sign * gradient_j (Frank-Wolfe's oracle).

    Parameters
    ----------
    entry : Sensitivity
        How much one row can change one entry of the gradient: B for a sum of entries bounded by B, add-remove, and 2 B
        for replace-one. The scores of e_j and -e_j move in opposite directions, so the spread is twice that.
    """

    entry: Sensitivity

    @property
    def spread(self) -> Sensitivity:  # type: ignore[override]
        """Twice what an entry can change."""
        return Sensitivity(2.0 * self.entry.add_remove, 2.0 * self.entry.replace_one)

    def scored(self, *values: ArrayLike) -> tuple[Floats, None]:
        """Of e_0, e_1 and so on, then of their opposites."""
        (gradient,) = values
        entries = _scores(gradient)
        return np.concatenate([-entries, entries]), None

    def chosen(self, pick: int, size: int) -> tuple[int, int]:
        """(j, sign) of the vertex; the sign is as private as the index."""
        d = size // 2
        return pick % d, 1 if pick < d else -1


@dataclass(frozen=True)
class TopK:
    """Draw k different candidates, one after the other; plan it with count = k."""

    k: int
    spread: Sensitivity
    kind: ClassVar[Kind] = "exponential"

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", checks.count("k", self.k))

    def draw(self, grant: Grant, scores: ArrayLike) -> Integers:
        """The indices drawn, in the order they were drawn."""
        values = _scores(scores)
        if self.k > len(values):
            raise ValueError(f"k must be at most the number of candidates, {len(values)}, got {self.k}")
        left = np.arange(len(values), dtype=np.int64)
        spread = self.spread.under(grant.adjacency)
        drawn = np.empty(self.k, dtype=np.int64)
        for i in range(self.k):
            place = _pick(values[left], spread, grant.multiplier, grant.take())
            drawn[i] = left[place]
            left = np.delete(left, place)
        return drawn


@dataclass(frozen=True, init=False)
class Threshold(Choice[float]):
    """Draw a decision threshold from a public grid by the number of rows it classifies correctly.

    A row present or absent changes every count by 0 or 1, so the spread is 1 for add-remove and 2 for replace-one.
    """

    grid: tuple[float, ...]
    spread: ClassVar[Sensitivity] = Sensitivity(1.0, 2.0)  # type: ignore[misc]

    def __init__(self, grid: ArrayLike) -> None:
        object.__setattr__(self, "grid", tuple(_grid("grid", grid).tolist()))

    def scored(self, *values: ArrayLike) -> tuple[Floats, None]:
        """From margins and whether each is positive; margins that are not numbers count for no threshold."""
        margins, positive = values
        margin, label = np.asarray(margins, dtype=np.float64), np.asarray(positive, dtype=bool)
        if margin.ndim != 1 or margin.shape != label.shape:
            raise ValueError(f"margins and labels must be vectors of one length, got {margin.shape} and {label.shape}")
        known = ~np.isnan(margin)
        above = np.sort(margin[known & label])
        below = np.sort(margin[known & ~label])
        correct = len(above) - np.searchsorted(above, self.grid, side="right")
        correct = correct + np.searchsorted(below, self.grid, side="right")
        return correct.astype(np.float64), None

    def chosen(self, pick: int, size: int) -> float:  # noqa: ARG002
        """A threshold t for the rule "positive where margin > t"."""
        return self.grid[pick]


@dataclass(frozen=True, init=False)
class Quantile(Choice[float]):
    """Draw a quantile of private values from a public grid of candidates.

    The score of a candidate is minus the distance of its rank from `q n`, n public. A row moves the ranks of all
    candidates above it by one: some scores rise by 1 and others fall by 1, so the spread is 2. Replacing a row moves
    the ranks between two values by one, in one direction: again 2.

    Parameters
    ----------
    q : float
        In [0, 1].
    grid : array-like of float
        Candidates, increasing, chosen without looking at the data.
    steepness : float, default=0.0
        How much log-weight each candidate has less than the one below it, whatever the data says. Above 0, candidates
        that no value separates (all those beyond the largest value, for instance) are not drawn evenly: the lowest
        wins.
    rows : int, optional
        The public number n of rows; by default the number of values, which must then be public.
    """

    q: float
    grid: tuple[float, ...]
    steepness: float
    rows: int | None
    spread: ClassVar[Sensitivity] = Sensitivity(2.0, 2.0)  # type: ignore[misc]

    def __init__(self, q: float, grid: ArrayLike, steepness: float = 0.0, *, rows: int | None = None) -> None:
        object.__setattr__(self, "q", checks.closed_unit("q", q))
        object.__setattr__(self, "grid", tuple(_grid("grid", grid).tolist()))
        object.__setattr__(self, "steepness", checks.non_negative("steepness", steepness))
        object.__setattr__(self, "rows", rows if rows is None else checks.count("rows", rows))

    def scored(self, *values: ArrayLike) -> tuple[Floats, Floats]:
        """From a column of values; those that are not numbers have no rank."""
        column = np.asarray(values[0], dtype=np.float64)
        if column.ndim != 1:
            raise ValueError(f"values must be a vector, got shape {column.shape}")
        n = len(column) if self.rows is None else self.rows
        known = np.sort(column[~np.isnan(column)])
        ranks = np.searchsorted(known, self.grid, side="right")
        prior = np.arange(len(self.grid), dtype=np.float64) * -self.steepness
        return -np.abs(ranks - self.q * n), prior

    def chosen(self, pick: int, size: int) -> float:  # noqa: ARG002
        """The candidate drawn."""
        return self.grid[pick]


def _pick(scores: Floats, spread: float, multiplier: float, source: NoiseSource, prior: Floats | None = None) -> int:
    """One candidate with weight exp(e0 score / spread + prior), e0 = 1 / multiplier; the prior is public."""
    if multiplier == 0.0 or spread == 0.0:  # no limit on what a row may change, or nothing that it can
        return int(np.argmax(np.nan_to_num(scores)))
    e0 = 1.0 / multiplier
    units = max(e0 * _UNITS - _ROUNDING_UNITS, 0.0) * (1.0 - 2.0**-40)
    whole = np.empty(len(scores), dtype=np.int64)
    kernels.whole_scores(_below_best(scores), units / spread, _LIMIT, whole)
    if prior is not None:
        whole += np.rint(np.maximum(prior * _UNITS, -_LIMIT)).astype(np.int64)
    return int(Candidates(whole).pick(source)[0])


def _below_best(scores: Floats) -> Floats:
    """Scores less the best; what is not a number counts as zero."""
    best = float(scores.max())
    if abs(best) < 1e300:  # and not NaN
        return scores - best
    values = np.where(np.isnan(scores), 0.0, scores)
    with np.errstate(invalid="ignore", over="ignore"):
        below = values - values.max()
    return np.where(np.isnan(below), 0.0, below)  # infinity less infinity: one of the best


def _scores(scores: ArrayLike) -> Floats:
    values = np.ascontiguousarray(scores, dtype=np.float64)
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(f"scores must be a vector of at least one candidate, got shape {values.shape}")
    return values


def _grid(name: str, values: ArrayLike) -> Floats:
    grid = np.asarray(values, dtype=np.float64)
    if grid.ndim != 1 or len(grid) == 0:
        raise ValueError(f"{name} needs at least one candidate, got shape {grid.shape}")
    if not np.all(np.isfinite(grid)) or not np.all(np.diff(grid) > 0):
        raise ValueError(f"{name} must be finite and increasing")
    return grid
