"""The candidate picker draws exactly in proportion to 2^(score / 2^32).

Every test of fit would fail a fresh seed with probability `FALSE_ALARM` at most.
"""

import math

import numpy as np
import pytest

from tacit.privacy.noise import NoiseSource, kernels, samplers
from tacit.privacy.noise.samplers import Candidates

from .support import FALSE_ALARM, binomial_tail, chi_square_tail

NAT = 2.0**32 / math.log(2.0)


def octaves(values):
    return np.rint(np.asarray(values, dtype=float) * 2.0**32).astype(np.int64)


def nats(values):
    return np.rint(np.asarray(values, dtype=float) * NAT).astype(np.int64)


def weights(scores):
    weight = 2.0 ** ((scores - scores.max()) / 2.0**32)
    return weight / weight.sum()


rng = np.random.default_rng(91)
LAWS = {
    "flat": np.zeros(10, dtype=np.int64),
    "flat, a power of two": np.zeros(64, dtype=np.int64),
    "two": octaves([0.0, -0.37]),
    "inside one octave": octaves(-rng.random(40)),
    "wide": octaves(-rng.random(200) * 12),
    "whole octaves": octaves(-np.arange(10.0)),
    "just past whole octaves": octaves(-np.arange(10.0)) - 1,
    "tied": octaves(np.repeat([0.0, -1.5, -3.2], [3, 50, 400])),
    "peaked": nats([0.0, -3.0, -10.0, -20.0, -1e4]),
    "tied peaks over a far rest": np.concatenate([nats([0.0, 0.0, -0.5]), nats(np.full(500, -1e4))]),
    "far from zero": octaves([1e5, 1e5 - 1, 1e5 - 2.5]),
    "below zero": octaves([-1e5, -1e5 - 1, -1e5 - 2.5]),
    "rising": octaves(np.linspace(-8, 0, 100)),
}


@pytest.mark.parametrize("name", LAWS)
def test_candidates_are_drawn_by_their_weights(name):
    scores = LAWS[name]
    drawn = Candidates(scores).pick(NoiseSource(92), 400_000)
    assert chi_square_tail(np.bincount(drawn, minlength=len(scores)), weights(scores)) > FALSE_ALARM


def test_successive_picks_are_independent():
    scores = LAWS["two"]
    drawn = Candidates(scores).pick(NoiseSource(93), 400_000)
    first = weights(scores)
    pairs = np.bincount(drawn[::2] * 2 + drawn[1::2], minlength=4)
    assert chi_square_tail(pairs, np.outer(first, first).ravel()) > FALSE_ALARM


def test_one_candidate_is_always_drawn():
    assert Candidates(np.array([-(2**50)])).pick(NoiseSource(94), 100).tolist() == [0] * 100


def test_a_gap_of_ten_thousand_nats_is_never_drawn():
    """Probability e^-10000."""
    scores = nats([-1e4, 0.0, -2e4])
    assert np.all(Candidates(scores).pick(NoiseSource(95), 100_000) == 1)


def test_no_candidates_are_refused():
    with pytest.raises(ValueError):  # noqa: PT011 - the words are NumPy's or numba's
        Candidates(np.empty(0, dtype=np.int64))


def test_only_differences_of_scores_matter():
    scores = LAWS["wide"]
    assert np.array_equal(
        Candidates(scores).pick(NoiseSource(96), 1000), Candidates(scores + 2**50 + 12345).pick(NoiseSource(96), 1000)
    )


def test_scores_are_not_changed():
    scores = LAWS["wide"].copy()
    Candidates(scores).pick(NoiseSource(97), 10)
    assert np.array_equal(scores, LAWS["wide"])


# The last bucket: everything from 31 octaves below the best


@pytest.mark.slow
def test_a_million_candidates_in_the_last_bucket():
    """Classes of gaps from 30 to 40 octaves, each of 2^18 to 2^21 candidates, seen together a thousand times."""
    gaps = np.array([30.0, 30.5, 31.0, 31.25, 32.0, 33.7, 36.0, 40.0])
    sizes = np.array([2**18, 2**18, 2**18, 2**18, 2**18, 2**18, 2**19, 2**20])
    scores = np.concatenate([[0], octaves(-np.repeat(gaps, sizes))])
    drawn = Candidates(scores).pick(NoiseSource(98), 2_000_000)
    seen = drawn[drawn > 0]
    kinds = np.searchsorted(np.cumsum(sizes), seen - 1, side="right")
    mass = np.concatenate([[1.0], sizes * 2.0**-gaps])
    counts = np.concatenate([[np.count_nonzero(drawn == 0)], np.bincount(kinds, minlength=len(gaps))])
    assert len(seen) > 1000
    assert chi_square_tail(counts, mass / mass.sum()) > FALSE_ALARM
    halves = np.bincount((seen[kinds < 6] - 1) % 2**18 >> 17, minlength=2)  # ranks inside a bucket are uniform
    assert binomial_tail(int(halves[0]), int(halves.sum()), 0.5) > FALSE_ALARM


@pytest.mark.parametrize("octave", [31.0, 31.5, 32.0, 33.25, 35.0, 38.5])
def test_acceptance_in_the_last_bucket(octave):
    gap = int(octaves(octave - 31))  # below the envelope of the bucket
    words, at, kept, size = NoiseSource(99).words(3_000_000), 0, 0, 200_000
    for _ in range(size):
        decision, at = kernels._gap_decision(words, at, gap)
        assert decision in (kernels._ACCEPT, kernels._REJECT)
        kept += decision == kernels._ACCEPT
    assert binomial_tail(kept, size, 2.0 ** (31 - octave)) > FALSE_ALARM


@pytest.mark.parametrize(("coins", "lost"), [(1, 1), (5, 1), (63, 1), (64, 1), (65, 2), (128, 2), (200, 4)])
def test_coins_of_the_last_bucket(coins, lost):
    """All of them must fall well: the leading bits of one word for every 64."""
    gap = coins << 32
    full, rest = divmod(coins, 64)
    bits = [64] * full + ([rest] if rest else [])
    good = [2 ** (64 - some) - 1 for some in bits]
    accept = kernels._gap_decision(np.array([*good, 5], dtype=np.uint64), 0, gap)
    assert accept == (kernels._ACCEPT, len(good) + 1)
    bad = [*good[:-1], 2 ** (64 - bits[-1])]
    assert kernels._gap_decision(np.array(bad, dtype=np.uint64), 0, gap) == (kernels._REJECT, lost)


def test_counts_add_up_and_gaps_are_octaves():
    scores = octaves(-np.linspace(0, 60, 1000))
    candidates = samplers.Candidates(scores)
    expected = np.bincount(np.minimum((scores.max() - scores) >> 32, 31), minlength=32)
    assert np.array_equal(candidates._counts, expected)
    assert np.array_equal(candidates._gaps, scores.max() - scores)
