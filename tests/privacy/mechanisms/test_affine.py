"""Signed vertices by scores that all move with one scale: the law, the envelopes, and what is refused.

Seeds are fixed; a fresh seed would fail a test of fit with probability `FALSE_ALARM` at most.
"""

import numpy as np
import pytest

from tacit.privacy import NoiseSource
from tacit.privacy.mechanisms.affine import LARGEST_PART, ROUNDING_UNITS, AffineBucketSampler
from tacit.privacy.noise.affine import score_at, write_scores
from tacit.privacy.noise.vertices import whole_octave
from tests.privacy.mechanisms.test_vertices import LIMIT, law, nats, number
from tests.privacy.noise.support import FALSE_ALARM, chi_square_tail


def scores_of(sampler, rates, constants):
    out = np.empty_like(rates)
    write_scores(sampler._scale, rates, constants, out)
    return out


def envelopes_hold(sampler, rates, constants):
    octaves = [whole_octave(int(s)) for s in scores_of(sampler, rates, constants)]
    return np.all(octaves <= sampler.buckets.octave)


@pytest.mark.parametrize("spread", [0.5, 4.0, 200.0])
def test_the_law_is_that_of_the_scores_at_the_present_scale(spread):
    random, source = np.random.default_rng(1), NoiseSource(2)
    rates, constants = nats(random.normal(size=20) * spread), nats(random.normal(size=20))
    sampler = AffineBucketSampler(rates, constants, LIMIT)
    for scale in (1.0, 0.7, 0.69, 0.1, 1e-4):
        sampler.scale_to(scale)
        places = random.integers(0, 20, 3)
        rates[places] += nats(random.normal(size=3) * spread)
        sampler.changed(places)
        assert envelopes_hold(sampler, rates, constants)
        scores = scores_of(sampler, rates, constants)
        np.testing.assert_allclose(scores, scale * rates + constants, rtol=0, atol=1.0)
        counts = np.bincount([number(sampler.draw(source)) for _ in range(4_000)], minlength=40)
        probabilities = law(scores)
        never = probabilities < 1e-30
        assert not counts[never].any()
        if probabilities.max() > 0.99:  # too few of all others for a test of fit
            assert counts[probabilities.argmax()] > 3_900
        else:
            assert chi_square_tail(counts[~never], probabilities[~never]) > FALSE_ALARM


def test_envelopes_hold_through_a_long_history():
    random, source = np.random.default_rng(3), NoiseSource(4)
    rates, constants = np.zeros(30, dtype=np.int64), nats(random.normal(size=30) * 3.0)
    sampler = AffineBucketSampler(rates, constants, LIMIT)
    scale = 1.0
    for t in range(600):
        scale *= 1.0 - 2.0 / (t + 3.0)
        if scale < 1e-3:
            rates[:] = np.rint(rates * scale).astype(np.int64)
            scale = 1.0
            sampler.restart()
        sampler.scale_to(scale)
        places = random.integers(0, 30, 4)
        rates[places] += nats(random.normal(size=4) * 5.0 / (t + 3.0) / scale)
        sampler.changed(places)
        assert envelopes_hold(sampler, rates, constants)
        sampler.draw(source)


def test_rounding_is_within_what_is_left_free_for_it():
    random = np.random.default_rng(5)
    for _ in range(2_000):
        scale = float(2.0 ** random.uniform(-8, 0))
        rate = int(random.uniform(-1, 1) * LARGEST_PART / scale)
        change = int(random.integers(0, 2**40))
        moved = score_at(scale, rate + change, 0) - score_at(scale, rate, 0)
        assert 0 <= moved <= scale * change + ROUNDING_UNITS


def test_what_cannot_be_served_is_refused():
    rates, constants = nats([1.0, 2.0]), nats([0.0, 1.0])
    sampler = AffineBucketSampler(rates, constants, LIMIT)
    sampler.scale_to(0.5)
    for scale in (0.6, -0.1, float("nan")):
        with pytest.raises(ValueError, match="scale must"):
            sampler.scale_to(scale)
    with pytest.raises(IndexError, match="outside the scores"):
        sampler.changed(np.array([2]))
    for other in (rates.astype(np.float64), rates[:1], [1, 2]):
        with pytest.raises(TypeError, match="rates must be"):
            AffineBucketSampler(other, constants, LIMIT)
    with pytest.raises(ValueError, match="within limit"):
        AffineBucketSampler(rates, constants, 5)
