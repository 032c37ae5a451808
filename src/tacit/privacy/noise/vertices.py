"""Compiled samplers of signed vertices: coordinate j with sign s is drawn with weight 2^(-s a_j / 2^32), exactly.

The scores a are whole numbers that others change between draws; the number of a signed vertex is 2 j for +e_j and
2 j + 1 for -e_j. A sampler works in rounds: it proposes a vertex with the weight of an envelope, a power of two at or
above its own weight, and keeps it with the ratio of the two. So a round ends with each vertex with probability in
proportion to its weight, or with none. That holds whatever the envelopes were, so they may change between rounds.

As in `kernels`, words go in and whole numbers come out. `SHORT` leaves the place at the start of an unfinished round.
`OPEN` names the vertex proposed, and leaves the place where all but the fraction of an octave is settled: the caller
decides by `exact.bernoulli_octave` whether to keep it, and otherwise begins another round.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.privacy.noise.kernels import (
    _ACCEPT,
    _REJECT,
    _SHORT,
    DONE,
    LAST_OCTAVE,
    OPEN,
    SHORT,
    Words,
    _coins_decision,
    _gap_decision,
    kernel,
)

Integers = NDArray[np.int64]
Places = NDArray[np.int32]
Held = tuple[Places, Places]  # a row for each of the first three arrays of `Buckets`, and the last
Round = tuple[int, int, int]  # the vertex, the next word's place, and why the sampler stopped

LARGEST_LIMIT = 2**59  # of |a|: 2^27 octaves, and a bucket for each
MOST_COORDINATES = 2**31 - 1  # their places are 32-bit numbers, and envelopes of all their vertices fit 63 bits

TURNED_DOWN = 3  # how a round may end, next to DONE, SHORT and OPEN

_0, _1 = np.uint64(0), np.uint64(1)
_DEEPEST = 62  # octaves between two groups that are settled by the bits of one word


@kernel
def whole_octave(score: int) -> int:
    """The least whole number of octaves at or above |score|."""
    return (abs(score) + 2**32 - 1) >> 32


@kernel
def judge(words: Words, start: int, at: int, vertex: int, envelope: int, score: int) -> tuple[int, int]:
    """Whether a vertex of this coordinate's score is kept, under an envelope of so many octaves.

    The next word's place, which is `start`, the first of the round, where the words end; and how it came out.
    """
    gap = (envelope << 32) - (score if vertex & 1 else -score)
    decision, after = _gap_decision(words, at, gap)
    if decision == _SHORT:
        return start, SHORT
    if decision == _REJECT:
        return after, TURNED_DOWN
    return after, DONE if decision == _ACCEPT else OPEN


# Buckets


class Buckets(NamedTuple):
    """All coordinates in the order of their buckets, the highest bucket first.

    Bucket b is order[at_least[b+1] : at_least[b]]. Its coordinates have |score| <= b 2^32: that is what makes 2^b an
    envelope of both their vertices. Scores that fell may lie far below; those that rise are lifted by `promote`.
    """

    order: Places
    place: Places  # where a coordinate stands in the order
    octave: Places  # the bucket of a coordinate
    at_least: Places  # how many coordinates are in bucket b or above; the last entry, of no bucket, is 0


def empty_buckets(size: int, limit: int) -> Held:
    """Memory for this many coordinates with scores up to the limit, for `sort_into_buckets` to fill."""
    return np.empty((3, size), dtype=np.int32), np.zeros(whole_octave(limit) + 2, dtype=np.int32)


@kernel
def buckets_in(standing: Places, at_least: Places) -> Buckets:
    """The buckets that are held in two arrays: Python hands over two in much less time than four."""
    return Buckets(standing[0], standing[1], standing[2], at_least)


@kernel
def sort_into_buckets(scores: Integers, limit: int, buckets: Buckets) -> bool:
    """Put every coordinate into the bucket of its score, by counting; False if a score is beyond the limit.

    `at_least` must hold zeros, and stays untouched above the highest bucket in use.
    """
    order, place, octave, at_least = buckets
    top = 0
    for j in range(len(scores)):
        if not -limit <= scores[j] <= limit:
            return False
        b = whole_octave(scores[j])
        octave[j] = b
        at_least[b] += 1
        top = max(top, b)
    for b in range(top - 1, -1, -1):
        at_least[b] += at_least[b + 1]
    for j in range(len(scores)):
        b = octave[j]
        at_least[b] -= 1  # a bucket fills from its end, so that what is left of its count is its start
        order[at_least[b]] = j
        place[j] = at_least[b]
    for b in range(top + 1, 0, -1):
        at_least[b] = at_least[b - 1]
    at_least[0] = len(scores)
    return True


@kernel
def _swap(buckets: Buckets, here: int, there: int) -> None:
    order, place = buckets.order, buckets.place
    one, other = order[here], order[there]
    order[here], order[there] = other, one
    place[one], place[other] = there, here


@kernel
def promote(j: int, score: int, buckets: Buckets) -> None:
    """Lift coordinate j to the bucket of its score if it stands below: due at once wherever |score| may have risen."""
    goal = whole_octave(score)
    now = int(buckets.octave[j])
    if goal <= now:
        return
    if goal > len(buckets.at_least) - 2:
        raise ValueError("a score is beyond the limit given to its sampler")
    while now < goal:
        first = buckets.at_least[now + 1]
        _swap(buckets, buckets.place[j], first)
        now += 1
        buckets.at_least[now] = first + 1
    buckets.octave[j] = goal


@kernel
def demote(j: int, score: int, buckets: Buckets) -> None:
    """Lower coordinate j to the bucket of its score if it stands above."""
    goal = whole_octave(score)
    now = int(buckets.octave[j])
    if goal >= now:
        return
    while now > goal:
        last = buckets.at_least[now] - 1
        _swap(buckets, buckets.place[j], last)
        buckets.at_least[now] = last
        now -= 1
    buckets.octave[j] = goal


@kernel
def promote_all(places: Integers, scores: Integers, buckets: Buckets) -> None:
    """Promote the coordinates at these places."""
    for j in places:
        if not 0 <= j < len(scores):
            raise IndexError("a place is outside the scores")
        promote(j, scores[j], buckets)


@kernel
def _bucket_proposal(word: np.uint64, buckets: Buckets) -> tuple[int, int]:
    """A coordinate and whether its less likely sign is meant, as 2 j + 0 or 1, and the octave of the envelope.

    -1 for a word that would make the remainder uneven.

    In units of 2^(top - 31), bucket b of the 31 highest gives 2^(31 - (top - b)) tickets to the likelier sign of each
    coordinate. All others form one class, which gives one: the envelope of a bucket 31 below the top. The weight of a
    less likely sign is 1 at most, whatever the bucket: these signs of all coordinates form the last class.
    """
    order, _, octave, at_least = buckets
    top = int(octave[order[0]])
    end = max(top - LAST_OCTAVE, -1)  # the first bucket of the rest
    near = int(at_least[end + 1])
    tickets = np.uint64(len(order) - near)
    for b in range(top, end, -1):
        tickets += np.uint64(at_least[b] - at_least[b + 1]) << np.uint64(LAST_OCTAVE - (top - b))
    shift = np.uint64(max(LAST_OCTAVE - top, 0))
    tickets += np.uint64(len(order)) << shift
    if word < (_0 - tickets) % tickets:
        return -1, 0
    rest = word % tickets
    for b in range(top, end, -1):
        shift = np.uint64(LAST_OCTAVE - (top - b))
        weight = np.uint64(at_least[b] - at_least[b + 1]) << shift
        if rest < weight:
            return 2 * int(order[at_least[b + 1] + np.int64(rest >> shift)]), b
        rest -= weight
    if rest < np.uint64(len(order) - near):
        return 2 * int(order[near + np.int64(rest)]), end
    rest -= np.uint64(len(order) - near)
    shift = np.uint64(max(LAST_OCTAVE - top, 0))
    return 2 * int(order[np.int64(rest >> shift)]) + 1, max(top - LAST_OCTAVE, 0)


@kernel
def propose(words: Words, at: int, buckets: Buckets) -> tuple[int, int, int]:
    """A proposal, the octave of its envelope, and the place of the word it came from; -1 if the words end before."""
    while at < len(words):
        proposal, envelope = _bucket_proposal(words[at], buckets)
        if proposal >= 0:
            return proposal, envelope, at
        at += 1
    return -1, 0, at


@kernel
def vertex_of(proposal: int, score: int) -> int:
    """The vertex that a proposal means, now that the score of its coordinate is known."""
    return proposal ^ (1 if score > 0 else 0)


@kernel
def lower(j: int, score: int, envelope: int, buckets: Buckets) -> None:
    """After a round that turned coordinate j down: `demote`, where the envelope shows that it may stand too high."""
    if whole_octave(score) < envelope:
        demote(j, score, buckets)


@kernel
def draw_from_buckets(words: Words, at: int, scores: Integers, standing: Places, at_least: Places) -> Round:
    """Draw one vertex. A coordinate that is proposed and turned down goes to the bucket of its score."""
    buckets = buckets_in(standing, at_least)
    while True:
        proposal, envelope, at = propose(words, at, buckets)
        if proposal < 0:
            return -1, at, SHORT
        score = int(scores[proposal >> 1])
        vertex = vertex_of(proposal, score)
        at, stopped = judge(words, at, at + 1, vertex, envelope, score)
        if stopped != TURNED_DOWN:
            return vertex, at, stopped
        lower(proposal >> 1, score, envelope, buckets)


# Groups


class Groups(NamedTuple):
    """Runs of 2^bits coordinates, and the tickets that a group's vertices hold together.

    A group counts in units of 2^(top - 31), top the largest octave in it. A vertex holds as many tickets as the power
    of two above its weight makes, and one at least.
    """

    octave: Places  # of each coordinate: the whole number of octaves at or above |score|
    top: Places
    tops: Places  # how many coordinates of the group have that octave
    tickets: Words
    bits: int


@kernel
def _lower_octave(octave: int) -> int:
    """A whole number of octaves at or above -|score|, from that above |score|."""
    return 1 - octave if octave > 0 else 0


@kernel
def _tickets(octave: int, top: int) -> np.uint64:
    return np.uint64(1) << np.uint64(max(LAST_OCTAVE - (top - octave), 0))


@kernel
def _tickets_of_both(octave: int, top: int) -> np.uint64:
    return _tickets(octave, top) + _tickets(_lower_octave(octave), top)


@kernel
def _recount(g: int, groups: Groups) -> None:
    """The sums of a group, from its members."""
    octave = groups.octave[g << groups.bits : (g + 1) << groups.bits]
    top = int(octave.max())
    tops, tickets = 0, _0
    for b in octave:
        tops += b == top
        tickets += _tickets_of_both(int(b), top)
    groups.top[g], groups.tops[g], groups.tickets[g] = top, tops, tickets


@kernel
def sum_groups(scores: Integers, limit: int, groups: Groups) -> bool:
    """Sum up all groups; False if a score is beyond the limit."""
    for j in range(len(scores)):
        if not -limit <= scores[j] <= limit:
            return False
        groups.octave[j] = whole_octave(scores[j])
    for g in range(len(groups.top)):
        _recount(g, groups)
    return True


@kernel
def regroup(places: Integers, scores: Integers, groups: Groups) -> None:
    """Bring the sums up to date where scores changed: at once, or by a recount where a group's largest octave moved."""
    for j in places:
        if not 0 <= j < len(scores):
            raise IndexError("a place is outside the scores")
        old, new = int(groups.octave[j]), whole_octave(scores[j])
        groups.octave[j] = new
        g = j >> groups.bits
        top = int(groups.top[g])
        if new > top or (old == top > new and groups.tops[g] == 1):
            _recount(g, groups)
        else:
            groups.tops[g] += np.int32(new == top) - np.int32(old == top)
            groups.tickets[g] += _tickets_of_both(new, top) - _tickets_of_both(old, top)


@kernel
def _group_tickets(g: int, highest: int, groups: Groups) -> np.uint64:
    """The tickets of a group in units of 2^(highest - 31), or of 2^62 of its own if that is less; rounded up."""
    shift = np.uint64(min(highest - groups.top[g], _DEEPEST))
    return np.uint64((groups.tickets[g] + (_1 << shift) - _1) >> shift)


@kernel
def _little_step(g: int, rest: np.uint64, scores: Integers, groups: Groups) -> tuple[int, int]:
    """The vertex that holds this ticket of the group, and the octave of its envelope."""
    top = int(groups.top[g])
    j = g << groups.bits
    tickets = _tickets_of_both(int(groups.octave[j]), top)
    while rest >= tickets:
        rest -= tickets
        j += 1
        tickets = _tickets_of_both(int(groups.octave[j]), top)
    octave = int(groups.octave[j])
    likely = 1 if scores[j] > 0 else 0  # the sign whose score is |score|
    if rest < _tickets(octave, top):
        return 2 * j + likely, max(octave, top - LAST_OCTAVE)
    return 2 * j + 1 - likely, max(_lower_octave(octave), top - LAST_OCTAVE)


@kernel
def draw_from_groups(words: Words, at: int, scores: Integers, groups: Groups) -> Round:
    """Draw one vertex: big steps over the groups, little steps in one.

    Each of a group's tickets must be drawn with probability 2^-deep in the units of the highest group, deep the octaves
    between their tops. A ticket of these units, of which the group has enough, is read as a number of a group's own
    tickets by `shift` further bits, and turned down if the group has not as many; what is more than `shift` of `deep`
    is left to coins.
    """
    highest = int(groups.top.max())
    tickets = _0
    for g in range(len(groups.top)):
        tickets += _group_tickets(g, highest, groups)
    excess = (_0 - tickets) % tickets
    while True:
        if at >= len(words):
            return -1, at, SHORT
        if words[at] < excess:
            at += 1
            continue
        rest = words[at] % tickets
        g = 0
        while rest >= _group_tickets(g, highest, groups):
            rest -= _group_tickets(g, highest, groups)
            g += 1
        after = at + 1
        deep = highest - groups.top[g]
        if deep > 0:
            if after >= len(words):
                return -1, at, SHORT
            shift = np.uint64(min(deep, _DEEPEST))
            rest = rest << shift | words[after] >> (np.uint64(64) - shift)
            after += 1
            if rest >= groups.tickets[g]:
                at = after
                continue
            decision, after = _coins_decision(words, after, deep - _DEEPEST)
            if decision == _SHORT:
                return -1, at, SHORT
            if decision == _REJECT:
                at = after
                continue
        vertex, octave = _little_step(g, rest, scores, groups)
        at, stopped = judge(words, at, after, vertex, octave, int(scores[vertex >> 1]))
        if stopped != TURNED_DOWN:
            return vertex, at, stopped
