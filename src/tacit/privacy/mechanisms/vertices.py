"""Signed vertices of the l1 ball, drawn one after the other while their scores change: Frank-Wolfe on sparse data.

`SignedVertex` takes a new gradient for every draw, and reads all of it. The samplers here keep whole scores between
draws, and are told which of them changed. They count in 2^-32 octaves: the gradient's entry a_j gives the vertex s e_j
the weight 2^(-s a_j / 2^32). Sums over rows are then exact.

What holds: the law of a draw is exact too, and the same for all samplers. They differ in the time of a draw:

bucket     does not depend on the number of coordinates D; nor does that of a change
two-level  about sqrt(D) steps
gumbel     a look at all 2 D vertices: the reference

What a draw costs. If a row adds at most c to an entry, in absolute value, then adding or removing it moves the scores
of e_j and -e_j in opposite directions by at most c. The log-weights change by a range of at most 2 c 2^-32 ln 2.
Replacing it moves an entry by 2 c, and the range is twice that. `contribution_units` is the largest c that keeps the
range within e0 = 1 / multiplier.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from tacit._types import Integers
from tacit.privacy import checks
from tacit.privacy.checks import ADJACENCIES, Adjacency
from tacit.privacy.gate import Grant
from tacit.privacy.noise import exact, kernels, vertices
from tacit.privacy.noise.samplers import Candidates
from tacit.privacy.noise.source import NoiseSource, Words
from tacit.privacy.plan import Kind

LARGEST_LIMIT = vertices.LARGEST_LIMIT
NO_BUCKETS = vertices.empty_buckets(0, 0)
"""What a compiled step is handed where scores are not kept in buckets."""

_OCTAVE = 2**exact.OCTAVE_BITS
_AT_ONCE = 32  # releases of a compiled walk that are granted together: progress is shown in between

Step = Callable[[int, int, int], None]
Walked = tuple[int, int, int, int]
Rounds = Callable[[Words, int, Integers, int, int], Walked]


@lru_cache(maxsize=64)
def contribution_units(multiplier: float, adjacency: Adjacency) -> int:
    """The most that one row may add to one entry of the whole gradient, in absolute value, for a draw to cost e0.

    Rounded down, with ln 2 rounded up; 0 where e0 = 1 / multiplier is too small for a row to count at all.
    """
    multiplier = checks.real("multiplier", multiplier)
    if multiplier == 0.0:
        raise ValueError(
            "multiplier must be above 0, got 0.0: without noise the best vertex is taken, and nothing is drawn"
        )
    e0 = Fraction(1.0 / checks.positive("multiplier", multiplier))
    moves = 2 if checks.one_of("adjacency", adjacency, ADJACENCIES) == "add-remove" else 4
    return int(e0 * _OCTAVE * 2**128 / (moves * (exact.ln2(128) + 1)))


def _signed(vertex: int) -> tuple[int, int]:
    """(j, sign) of the vertex with this number."""
    return vertex >> 1, 1 - 2 * (vertex & 1)


class VertexSampler(ABC):
    """Draws signed vertices by scores that others change.

    Parameters
    ----------
    scores : array of int64
        The gradient's entries in 2^-32 octaves. Kept by reference, never written.
    limit : int
        A public bound on their absolute values, for as long as the sampler lives; at most `LARGEST_LIMIT`. For n rows
        it is n times the contribution of one. A contribution below `contribution_units` keeps a draw within e0 as
        well, so it can be lowered until the limit fits.
    """

    def __init__(self, scores: Integers, limit: int) -> None:
        self._limit = checks.count("limit", limit, least=0)
        if self._limit > LARGEST_LIMIT:
            raise ValueError(f"limit must be at most 2^59 units (2^27 octaves), got {self._limit}")
        if not isinstance(scores, np.ndarray) or scores.dtype != np.int64:
            raise TypeError(f"scores must be an array of int64, got {getattr(scores, 'dtype', type(scores).__name__)}")
        if scores.ndim != 1 or not 1 <= len(scores) <= vertices.MOST_COORDINATES or not scores.flags.c_contiguous:
            raise ValueError(
                f"scores must be a contiguous vector of 1 to {vertices.MOST_COORDINATES} entries,"
                f" got shape {scores.shape}"
            )
        self._scores = scores

    @abstractmethod
    def changed(self, places: Integers) -> None:
        """Take note that the scores at these places changed; due before the next draw."""

    @abstractmethod
    def draw(self, source: NoiseSource) -> tuple[int, int]:
        """(j, sign) with probability exactly in proportion to 2^(-sign scores[j] / 2^32)."""

    def keeps(self, vertex: int, source: NoiseSource) -> bool:
        """Whether to keep a vertex that was proposed, where a compiled round left that open."""
        j, sign = _signed(vertex)
        # Envelopes are whole octaves above the score -sign a_j: the fraction of the gap is the score's own.
        return exact.bernoulli_octave(source.word, sign * int(self._scores[j]) % _OCTAVE)


class _RoundSampler(VertexSampler):
    """A sampler whose rounds are compiled.

    `_compiled(words, at, *_given)` makes rounds until one ends with a vertex, or the words end.
    """

    _compiled: ClassVar[Callable[..., vertices.Round]]
    _given: tuple[Any, ...]

    def draw(self, source: NoiseSource) -> tuple[int, int]:
        while True:
            words, at = source.window()
            vertex, at, stopped = self._compiled(words, at, *self._given)
            source.consume(at)
            if stopped == kernels.DONE:  # nearly all draws end here; Python's share of their time is the larger one
                return vertex >> 1, 1 - 2 * (vertex & 1)
            if stopped == kernels.SHORT:
                source.refill()
            elif self.keeps(vertex, source):
                return _signed(vertex)

    @staticmethod
    def _require(within: bool) -> None:
        if not within:
            raise ValueError("scores must lie within limit")


class BucketSampler(_RoundSampler):
    """Rejection over buckets of |score|, an octave each: time per draw and per change does not depend on D.

    Coordinates stand in the order of their buckets. So a bucket is a run of them, and one moves to the next bucket by a
    swap over the boundary. Only an envelope that is too low would bend the law. So a coordinate whose |score| rose is
    lifted at once. One whose |score| fell is lowered when it was proposed and turned down: one round for each change.
    Otherwise little more than 2 rounds are needed on average. The likelier signs of the 31 highest buckets are kept
    with probability 1/2 or more; other signs have weights of at most 1; and what is far below the highest bucket takes
    at most 2 D / 2^31 of its tickets. Beside the scores, a coordinate takes 12 bytes.

    A compiled loop that changes scores can do without `changed`, if it calls `tacit.privacy.noise.vertices.promote`
    with `buckets`, which `held` is the memory of, after each change.
    """

    _compiled = staticmethod(vertices.draw_from_buckets)

    def __init__(self, scores: Integers, limit: int) -> None:
        super().__init__(scores, limit)
        self.held = vertices.empty_buckets(len(scores), self._limit)
        self.buckets = vertices.buckets_in(*self.held)
        self._given = scores, *self.held
        self._require(vertices.sort_into_buckets(scores, self._limit, self.buckets))

    def changed(self, places: Integers) -> None:
        vertices.promote_all(places, self._scores, self.buckets)


class TwoLevelSampler(_RoundSampler):
    """Big steps over about sqrt(D) groups, then little steps in the group (Raff, Khanna and Lu), in whole numbers.

    The paper keeps the logarithm of each group's weight and adds differences to it. When a dominant weight falls, what
    is left is rounding error. Here a group holds whole tickets, in units set by its largest octave: for each vertex the
    power of two above its weight, at least one ticket. A change of one score is one exact subtraction and addition;
    where the largest octave moves, the group is counted anew. The tickets of a group far below the highest are rounded
    up to whole units of that one. Rejection makes up for all rounding up: by whole numbers and fair coins for the
    group, and by the ratio of weight and envelope for the vertex. So the law is exact.
    """

    _compiled = staticmethod(vertices.draw_from_groups)

    def __init__(self, scores: Integers, limit: int) -> None:
        super().__init__(scores, limit)
        bits = len(scores).bit_length() // 2
        count = -(-len(scores) // 2**bits)
        top, tops = (np.empty(count, dtype=np.int32) for _ in range(2))
        octave, tickets = np.empty(len(scores), dtype=np.int32), np.empty(count, dtype=np.uint64)
        self._groups = vertices.Groups(octave, top, tops, tickets, bits)
        self._given = scores, self._groups
        self._require(vertices.sum_groups(scores, self._limit, self._groups))

    def changed(self, places: Integers) -> None:
        vertices.regroup(places, self._scores, self._groups)


class GumbelSampler(VertexSampler):
    """Reads all 2 D scores for every draw: the reference.

    The vertex whose score plus Gumbel noise is largest has the law of the exponential mechanism. That law is drawn here
    exactly, over all candidates. Gumbel noise from the logarithms of floats is not used: it is rounded and its tails
    are cut off, so its law is only nearly the one that is accounted for.
    """

    def __init__(self, scores: Integers, limit: int) -> None:
        super().__init__(scores, limit)
        if max(int(scores.max()), -int(scores.min())) > self._limit:
            raise ValueError("scores must lie within limit")

    def changed(self, places: Integers) -> None:
        """Nothing is kept that could be out of date."""

    def draw(self, source: NoiseSource) -> tuple[int, int]:
        pick = int(Candidates(np.concatenate([-self._scores, self._scores])).pick(source)[0])
        return pick % len(self._scores), 1 if pick < len(self._scores) else -1


SAMPLERS: dict[str, type[VertexSampler]] = {
    "bucket": BucketSampler,
    "two-level": TwoLevelSampler,
    "gumbel": GumbelSampler,
}


@dataclass(frozen=True, eq=False)
class Vertices:
    """Draw a signed vertex from a sampler, for one planned release.

    Parameters
    ----------
    sampler : VertexSampler
        Holds the whole gradient.
    contribution : int
        The most that one row adds to one entry of it, in absolute value and in units of 2^-32 octaves. A plan whose
        multiplier allows less is refused.
    """

    sampler: VertexSampler
    contribution: int
    kind: ClassVar[Kind] = "exponential"

    def __post_init__(self) -> None:
        object.__setattr__(self, "contribution", checks.count("contribution", self.contribution, least=0))

    def draw(self, grant: Grant) -> tuple[int, int]:
        """(j, sign) of the vertex drawn; the sign is as private as the index."""
        self.check(grant)
        return self.sampler.draw(grant.take())

    def check(self, grant: Grant) -> None:
        """Refuse a plan that pays for less than a row may contribute."""
        most = contribution_units(grant.multiplier, grant.adjacency)
        if self.contribution > most:
            raise ValueError(
                f"contribution must be at most {most} for release {grant.name!r}, {grant.adjacency}, got"
                f" {self.contribution}"
            )


@dataclass(frozen=True, eq=False)
class VertexWalk:
    """Draw signed vertices one after the other, each for one planned release, while what was drawn moves the scores.

    Parameters
    ----------
    vertices : Vertices
        What draws each of them.
    """

    vertices: Vertices
    kind: ClassVar[Kind] = "exponential"

    def draw(self, grant: Grant, count: int, step: Step, rounds: Rounds | None = None) -> list[tuple[int, int]]:
        """`count` vertices, each one release; step(t, j, sign) changes the scores after the t-th, but not the last.

        `rounds` does the same in a compiled loop, for a time: rounds(words, at, picks, done, stop) draws by the
        sampler's scores and steps until `stop` numbers of vertices are in `picks`, of which `done` were there, or until
        it cannot go on. It returns how many there are and what `tacit.privacy.noise.vertices.draw_from_buckets` does
        for the last draw. From the same words it must come to the same vertices.
        """
        if rounds is None:
            drawn = []
            for t in range(1, count + 1):
                drawn.append(self.vertices.draw(grant))
                if t < count:
                    step(t, *drawn[-1])
            return drawn
        self.vertices.check(grant)
        picks, done = np.empty(count, dtype=np.int64), 0
        while done < count:
            stop = min(done + _AT_ONCE, count)
            source = grant.take(stop - done)
            while done < stop:
                words, at = source.window()
                done, vertex, at, stopped = rounds(words, at, picks, done, stop)
                source.consume(at)
                if stopped == kernels.SHORT:
                    source.refill()
                elif stopped == kernels.OPEN and self.vertices.sampler.keeps(vertex, source):
                    picks[done] = vertex
                    done += 1
                    if done < count:
                        step(done, *_signed(vertex))
        return [_signed(vertex) for vertex in picks.tolist()]


@dataclass(frozen=True, eq=False)
class BestVertex:
    """The best vertex as it is, where there is no noise; a plan that has any is refused.

    Parameters
    ----------
    find : callable
        Finds it.
    """

    find: Callable[[], tuple[int, int]]
    kind: ClassVar[Kind] = "exponential"

    def draw(self, grant: Grant) -> tuple[int, int]:
        """(j, sign) of the vertex found."""
        if grant.multiplier != 0.0:
            raise ValueError(f"the best vertex is for the non-private limit, and release {grant.name!r} has noise")
        grant.take()
        return self.find()
