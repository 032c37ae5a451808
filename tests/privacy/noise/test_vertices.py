"""The compiled samplers of signed vertices: their bookkeeping against brute force, and every word against a reference.

The references draw one word at a time, in fractions, from the description of the tickets alone.
"""

from bisect import bisect_right
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.privacy import NoiseSource
from tacit.privacy.mechanisms.vertices import BucketSampler, TwoLevelSampler
from tacit.privacy.noise import exact, kernels, vertices

from . import reference
from .support import OutOfWordsError, ScriptedSource, awkward_words, random_words

OCTAVE = 2**32
LIMIT = 2000 * OCTAVE


def octaves(values):
    return np.rint(np.asarray(values, dtype=float) * OCTAVE).astype(np.int64)


def upper(score):
    """The least whole octave at or above a score."""
    return -(-int(score) // OCTAVE)


def score_of(vertex, scores):
    return int(scores[vertex // 2]) * (1 if vertex % 2 else -1)


def keep(read, vertex, octave, scores):
    """Keep a proposal with its weight over 2^octave."""
    gap = octave * OCTAVE - score_of(vertex, scores)
    assert gap >= 0
    if not heads(read, gap // OCTAVE):
        return False
    part = Fraction(gap % OCTAVE, OCTAVE)
    return reference.keep_with_bounds(
        read, lambda width: (part * reference.LN2[width], part * (reference.LN2[width] + width))
    )


def heads(read, coins):
    while coins > 0:
        if read() >> (64 - min(coins, 64)):
            return False
        coins -= 64
    return True


def uniform(read, size):
    """A number below `size` from one word, or None."""
    word = read()
    return None if word < 2**64 % size else word % size


class BucketReference:
    """2^(31 - depth) tickets for the likelier sign of every coordinate, depth octaves below the top, 31 at most.

    Then as many as make a weight of 1, but one at least, for the other sign of every coordinate.
    """

    def __init__(self, scores, order):
        self.scores, self.order = scores, [int(j) for j in order]
        self.top = max(upper(abs(int(a))) for a in scores)
        likely = [2 * j + int(scores[j] > 0) for j in self.order]
        octaves = [upper(abs(int(scores[j]))) for j in self.order] + [0] * len(likely)
        self.vertices = likely + [vertex ^ 1 for vertex in likely]
        self.octaves = [max(octave, self.top - 31) for octave in octaves]
        self.ends = list(accumulate(2 ** (31 - (self.top - b)) for b in self.octaves))

    def propose(self, read):
        ticket = uniform(read, self.ends[-1])
        if ticket is None:
            return None
        rank = bisect_right(self.ends, ticket)
        return self.vertices[rank], self.octaves[rank]

    def draw(self, read):
        while True:
            proposal = self.propose(read)
            if proposal and keep(read, *proposal, self.scores):
                return proposal[0]


class GroupReference:
    """Vertices in the order likelier sign, other sign; a group's tickets count 2^-31 of its highest octave."""

    def __init__(self, scores, bits):
        self.scores, self.members = scores, []
        for start in range(0, len(scores), 2**bits):
            pairs = []
            for j in range(start, min(start + 2**bits, len(scores))):
                high = upper(abs(int(scores[j])))
                likely = 2 * j + int(scores[j] > 0)
                pairs += [(likely, high), (likely ^ 1, min(1 - high, 0))]
            top = max(octave for _, octave in pairs)
            held = [(vertex, max(octave, top - 31)) for vertex, octave in pairs]
            self.members.append((top, held, list(accumulate(2 ** (31 - (top - octave)) for _, octave in held))))
        self.highest = max(top for top, _, _ in self.members)
        self.ends = list(accumulate(-(-ends[-1] // 2 ** min(self.highest - top, 62)) for top, _, ends in self.members))

    def propose(self, read):
        ticket = uniform(read, self.ends[-1])
        if ticket is None:
            return None
        g = bisect_right(self.ends, ticket)
        ticket -= self.ends[g - 1] if g else 0
        top, held, ends = self.members[g]
        deep = self.highest - top
        if deep:
            shift = min(deep, 62)
            ticket = ticket * 2**shift + (read() >> (64 - shift))
            if ticket >= ends[-1] or not heads(read, deep - shift):
                return None
        return held[bisect_right(ends, ticket)]

    draw = BucketReference.draw


def pair(name, scores):
    """A sampler and its reference."""
    if name == "bucket":
        sampler = BucketSampler(scores, LIMIT)
        return sampler, BucketReference(scores, sampler.buckets.order)
    sampler = TwoLevelSampler(scores, LIMIT)
    return sampler, GroupReference(scores, sampler._groups.bits)


def number(vertex):
    j, sign = vertex
    return 2 * j + (sign < 0)


SAMPLERS = ["bucket", "two-level"]
SCORES = {
    "near": octaves([0.0, 0.5, -0.5, 1.0, -1.0, 1.25, 3.0, -2.75, 0.0, 2.0**-32, -(2.0**-32), 4.1]),
    "far": octaves([0.0, 120.5, -33.0, 89.5, -88.5, 120.0, 57.25, -1500.5, 1499.0, 1436.5, 1470.0, -1469.5, 3.5]),
    "one": octaves([-0.3]),
    "zeros": np.zeros(5, dtype=np.int64),
}


# Word by word


# Extreme words and the bounds of acceptance.
BOUNDS = [fraction * exact.ln2(64) >> 32 for fraction in (2**31, 2**30, 3 * 2**30, 1, 2**32 - 1)]
SPECIAL = [0, 1, 2**64 - 1, 2**63, *BOUNDS, *(bound + 1 for bound in BOUNDS)]


def all_draws(draw, source):
    """What is drawn before the words run out, and the words used up by each."""
    drawn = []
    try:
        while True:
            drawn.append((draw(source), source.at))
    except OutOfWordsError:
        return drawn


@pytest.mark.parametrize("kind", SCORES)
@pytest.mark.parametrize("name", SAMPLERS)
def test_every_word_is_used_as_the_reference_uses_it(name, kind):
    """Streams full of ties, for which 64 bits do not settle a comparison; windows that end anywhere."""
    words = awkward_words(70, 1500, SPECIAL, 0.2)
    sampler, expected = pair(name, SCORES[kind])
    drawn = all_draws(lambda source: expected.draw(source.word), ScriptedSource(words))
    assert len(drawn) > 60
    singles = 0
    for portion in (1, 2, 3, 7, len(words)):
        source = ScriptedSource(words, portion)
        assert all_draws(lambda source: number(sampler.draw(source)), source) == drawn
        singles += source.single_words
    assert singles > 0 or kind == "zeros"  # the exact path was needed; without a fraction there is nothing to tie with


def words_for(ticket, tickets):
    """A word whose remainder is this ticket."""
    word = ticket + (2**64 // tickets - 1) * tickets
    assert word >= 2**64 % tickets
    return word


@pytest.mark.parametrize("kind", SCORES)
def test_first_and_last_ticket_of_every_bucketed_vertex(kind):
    """Among them the class of all that is 31 octaves below the top, which random words would never propose."""
    sampler, expected = pair("bucket", SCORES[kind])
    seen = set()
    for rank, end in enumerate(expected.ends):
        start = expected.ends[rank - 1] if rank else 0
        for ticket in (start, end - 1):
            word = words_for(ticket, expected.ends[-1])
            vertex, octave = expected.propose(iter([word]).__next__)
            proposal, envelope = vertices._bucket_proposal(np.uint64(word), sampler.buckets)
            assert (vertices.vertex_of(proposal, SCORES[kind][vertex // 2]), envelope) == (vertex, octave)
            seen.add(vertex)
    assert seen == set(range(2 * len(SCORES[kind])))


@pytest.mark.parametrize("kind", SCORES)
def test_first_and_last_ticket_of_every_grouped_vertex(kind):
    """Groups up to 1,500 octaves apart: the bits below a ticket, and coins."""
    sampler, expected = pair("two-level", SCORES[kind])
    seen = set()
    for g, (top, held, ends) in enumerate(expected.members):
        deep, first = expected.highest - top, (expected.ends[g - 1] if g else 0)
        shift = min(deep, 62)
        for ticket in sorted({0, ends[-1], *ends, *(end - 1 for end in ends)}):
            if ticket >= ends[-1] and shift == 0:
                continue
            whole, part = divmod(ticket, 2**shift)
            if first + whole >= expected.ends[g]:
                continue
            words = [words_for(first + whole, expected.ends[-1])]
            if deep:
                words += [part << (64 - shift), *([0] * -((shift - deep) // 64))]
            stream = np.array(words if ticket < ends[-1] else words[:2], dtype=np.uint64)  # ends before acceptance
            vertex, at, stopped = vertices.draw_from_groups(stream, 0, SCORES[kind], sampler._groups)
            assert stopped == kernels.SHORT
            if ticket < ends[-1]:
                assert (vertex, at) == (held[bisect_right(ends, ticket)][0], 0)
                assert expected.propose(iter(words).__next__)[0] == vertex
                seen.add(vertex)
            else:
                assert (vertex, at) == (-1, 2)  # turned down
                assert expected.propose(iter(words).__next__) is None
    assert seen == set(range(2 * len(SCORES[kind])))


def test_a_lost_coin_between_groups_turns_the_proposal_down():
    """Two groups 70 octaves apart: a ticket of the lower one, its 62 bits, and 8 coins."""
    scores = octaves([70.0, 70.0, 0.0, 0.0])
    sampler, expected = pair("two-level", scores)
    assert sampler._groups.top.tolist() == [70, 0]
    lower = words_for(expected.ends[0], expected.ends[-1])
    for coins, vertex in ((0, 4), (2**56 - 1, 4), (2**56, 1)):
        stream = [lower, 0, coins, 7, words_for(0, expected.ends[-1]), 7]
        source = ScriptedSource(stream)
        assert number(sampler.draw(source)) == vertex
        assert expected.draw(ScriptedSource(stream).word) == vertex


@pytest.mark.parametrize("fraction", [1, 2**31, 2**32 - 1, 987654321])
@pytest.mark.parametrize("offset", range(-2, 4))
@pytest.mark.parametrize("name", SAMPLERS)
def test_u_around_gamma(name, fraction, offset):
    """The kernel takes what 64 bits settle, and stops before the fraction otherwise; the verdict is the reference's."""
    scores = np.array([OCTAVE - fraction])
    low = fraction * exact.ln2(64) >> 32
    if low + offset < 0:
        return
    sampler, expected = pair(name, scores)
    first = words_for(0, expected.ends[-1])  # -e_0
    stream = [first, low + offset, *random_words(71, 80).tolist()]
    words = np.array(stream, dtype=np.uint64)
    if name == "bucket":
        result = vertices.draw_from_buckets(words, 0, scores, *sampler.held)
    else:
        result = vertices.draw_from_groups(words, 0, scores, sampler._groups)
    if 0 <= offset < 2:
        assert result == (1, 1, kernels.OPEN)
    elif offset >= 2:
        assert result == (1, 2, kernels.DONE)
    else:
        assert result[2] == kernels.DONE
    read = ScriptedSource(stream)
    drawn = expected.draw(read.word)
    for portion in (1, 2, len(stream)):
        source = ScriptedSource(stream, portion)
        assert number(sampler.draw(source)) == drawn
        assert source.at == read.at


@pytest.mark.parametrize("name", SAMPLERS)
def test_words_that_would_make_a_remainder_uneven_are_passed_over(name):
    scores = np.zeros(3, dtype=np.int64)
    sampler, expected = pair(name, scores)
    excess = 2**64 % expected.ends[-1]
    assert excess > 0
    for word in (0, excess - 1):
        source = ScriptedSource([word, excess, 9])
        assert number(sampler.draw(source)) == expected.draw(iter([excess, 9]).__next__)
        assert source.at == 3


def walk(name, portion):
    """Draws from the same words with changes in between, in windows of this size."""
    rng = np.random.default_rng(72)
    scores = octaves(rng.normal(size=30) * 5)
    sampler = pair(name, scores)[0]
    source = ScriptedSource(random_words(73, 20_000), portion)
    drawn = []
    for _ in range(400):
        places = rng.integers(0, 30, 5)
        scores[places] = octaves(rng.normal(size=5) * 5)
        sampler.changed(places)
        drawn.append(sampler.draw(source))
    return drawn, source.at


@pytest.mark.parametrize("name", SAMPLERS)
def test_block_sizes_do_not_matter(name):
    whole = walk(name, 20_000)
    for portion in (1, 2, 3, 64, 1000):
        assert walk(name, portion) == whole


# The permutation


def check_buckets(buckets, scores, *, fresh=False):
    order, place, octave, at_least = (np.asarray(a).astype(int) for a in buckets)
    assert np.array_equal(np.sort(order), np.arange(len(scores)))
    assert np.array_equal(place[order], np.arange(len(scores)))
    assert np.all(np.diff(octave[order]) <= 0)  # highest first
    assert np.array_equal(at_least, np.count_nonzero(octave[:, None] >= np.arange(len(at_least)), axis=0))
    assert at_least[-1] == 0
    needed = np.array([upper(abs(int(a))) for a in scores])
    assert np.all(octave >= needed)  # the envelope is valid
    if fresh:
        assert np.array_equal(octave, needed)


values = st.one_of(
    st.integers(-3 * OCTAVE, 3 * OCTAVE),
    st.integers(-40 * OCTAVE, 40 * OCTAVE),
    st.integers(-40, 40).map(lambda k: k * OCTAVE),
)
changes = st.tuples(st.integers(0, 10**6), values, st.sampled_from(["change", "draw", "demote"]))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(values, min_size=1, max_size=25), st.lists(changes, max_size=60))
def test_buckets_stay_sorted_and_valid(start, steps):
    scores = np.array(start)
    sampler = BucketSampler(scores, 40 * OCTAVE)
    check_buckets(sampler.buckets, scores, fresh=True)
    source = NoiseSource(74)
    for place, value, what in steps:
        j = place % len(scores)
        if what == "change":
            scores[j] = value
            vertices.promote(j, scores[j], sampler.buckets)
        elif what == "demote":
            vertices.demote(j, scores[j], sampler.buckets)
        else:
            sampler.draw(source)
        check_buckets(sampler.buckets, scores)
    for j in range(len(scores)):
        vertices.demote(j, scores[j], sampler.buckets)
    check_buckets(sampler.buckets, scores, fresh=True)


def test_buckets_after_thousands_of_changes():
    rng = np.random.default_rng(75)
    scores = octaves(rng.normal(size=50) * 30)
    sampler, source = BucketSampler(scores, LIMIT), NoiseSource(76)
    lowered = 0
    for _ in range(300):
        places = rng.integers(0, 50, 20)
        scores[places] = octaves(rng.normal(size=20) * rng.choice([0.1, 3.0, 300.0]))
        sampler.changed(places)
        check_buckets(sampler.buckets, scores)
        before = int(sampler.buckets.octave.sum())
        for _ in range(10):
            sampler.draw(source)
        lowered += int(sampler.buckets.octave.sum()) < before
        check_buckets(sampler.buckets, scores)
    assert lowered > 50  # some did fall, and were found out


def test_a_coordinate_turned_down_goes_to_its_bucket_and_one_that_was_not_proposed_stays():
    scores = octaves([20.0, 20.0, 20.0])
    sampler, before = pair("bucket", scores)
    first = words_for(0, before.ends[-1])
    second = words_for(0, 2 * 2**31 + 2**11 + 3 * 2**11)  # two at the top, one 20 octaves below, and all other signs
    proposed = before.propose(iter([first]).__next__)[0] // 2
    scores[:] = 0
    source = ScriptedSource([first, 2**44, second, 2**44 - 1, 5])  # 20 coins: one of them falls badly, then none
    kept, _ = sampler.draw(source)
    assert source.at == 5
    assert kept != proposed
    octave = sampler.buckets.octave.tolist()
    assert [j for j in range(3) if octave[j] == 0] == [proposed]
    assert octave[kept] == 20


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.lists(values, min_size=1, max_size=40),
    st.lists(st.lists(st.tuples(st.integers(0, 10**6), values), max_size=6), max_size=20),
)
def test_groups_are_what_a_new_count_gives(start, batches):
    scores = np.array(start)
    sampler = TwoLevelSampler(scores, 40 * OCTAVE)
    for batch in batches:
        places = np.array([place % len(scores) for place, _ in batch], dtype=np.int64)
        for j, (_, value) in zip(places, batch, strict=True):
            scores[j] = value
        sampler.changed(places)
        fresh = TwoLevelSampler(scores, 40 * OCTAVE)
        for kept, counted in zip(sampler._groups, fresh._groups, strict=True):
            assert np.array_equal(kept, counted)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 15, 16, 17, 1000, 4096])
def test_there_are_about_as_many_groups_as_members(size):
    groups = TwoLevelSampler(np.zeros(size, dtype=np.int64), 0)._groups
    members, count = 2**groups.bits, len(groups.top)
    assert (count - 1) * members < size <= count * members
    assert members <= 2 * count
    assert count <= 4 * members


# What a draw costs


@pytest.mark.parametrize("size", [1, 30, 10_000])
@pytest.mark.parametrize("spread", [0.0, 1.0, 300.0])
def test_words_of_a_draw_do_not_grow_with_the_number_of_coordinates(size, spread):
    scores = octaves(np.random.default_rng(77).normal(size=size) * spread)
    words, at = random_words(78, 40_000), 0
    sampler = BucketSampler(scores, LIMIT)
    for _ in range(1000):
        _, at, stopped = vertices.draw_from_buckets(words, at, scores, *sampler.held)
        assert stopped == kernels.DONE
    assert at < 2.2 * 2.3 * 1000  # little more than 2 rounds of two or three words


def test_what_fell_is_turned_down_once():
    scores = np.full(1000, 100 * OCTAVE)
    sampler = BucketSampler(scores, LIMIT)
    scores[:] = 0
    words = random_words(79, 40_000)
    _, at, stopped = vertices.draw_from_buckets(words, 0, scores, *sampler.held)
    assert stopped == kernels.DONE
    assert at < 3 * 1000
    assert np.count_nonzero(sampler.buckets.octave) < 40


def test_twelve_bytes_a_coordinate():
    buckets = BucketSampler(np.zeros(1000, dtype=np.int64), 0).buckets
    assert sum(a.nbytes for a in buckets) <= 12 * 1000 + 64
    assert BucketSampler(np.zeros(3, dtype=np.int64), LIMIT).buckets.at_least.nbytes == 4 * (2000 + 2)
