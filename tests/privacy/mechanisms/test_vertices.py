"""Signed vertices from scores that change: one law for three samplers, and what a row may add for a draw to cost e0.

Seeds are fixed; a fresh seed would fail a test of fit with probability `FALSE_ALARM` at most.
"""

import math

import mpmath
import numpy as np
import pytest

from tacit.privacy import NoiseSource, PlanViolationError
from tacit.privacy.mechanisms import VertexWalk, Vertices, contribution_units
from tacit.privacy.mechanisms.vertices import LARGEST_LIMIT, SAMPLERS, BucketSampler
from tacit.privacy.noise import kernels
from tests.privacy.mechanisms.test_additive import ADJACENCIES, open_gate
from tests.privacy.noise.support import FALSE_ALARM, chi_square_tail

NAT = 2.0**32 / math.log(2.0)
LIMIT = 2**15 * 2**32
DRAWS = 15_000


def nats(values):
    return np.rint(np.asarray(values, dtype=float) * NAT).astype(np.int64)


rng = np.random.default_rng(81)
LAWS = {
    "flat": nats(np.zeros(12)),
    "one coordinate": nats([0.4]),
    "two coordinates": nats([-0.3, 0.9]),
    "wide": nats(rng.normal(size=50) * 3.0),
    "wider than what is near": nats(rng.normal(size=40) * 15.0),
    "peaked": nats([1e4, 0.0, 0.5 - 1e4, 1.0 - 1e4, 7.0, 1e4 - 2.0, -1e4 - 1.0]),
    "tied": nats(np.repeat([2.0, -2.0, 0.5, 0.0], [3, 5, 20, 9])),
    "whole octaves": np.arange(-6, 7) * 2**32,
    "just past whole octaves": np.arange(-6, 7) * 2**32 + 1,
}


def law(scores):
    """Probabilities of +e_0, -e_0, +e_1, ..."""
    exponents = np.stack([-scores, scores], axis=1).ravel()
    weights = 2.0 ** ((exponents - exponents.max()) / 2.0**32)
    return weights / weights.sum()


def number(vertex):
    j, sign = vertex
    return 2 * j + (sign < 0)


def fit(sampler, scores, draws=DRAWS, seed=82):
    """How well many draws fit the law of the scores."""
    source = NoiseSource(seed)
    counts = np.bincount([number(sampler.draw(source)) for _ in range(draws)], minlength=2 * len(scores))
    probabilities = law(scores)
    never = probabilities < 1e-30
    assert not counts[never].any()
    return chi_square_tail(counts[~never], probabilities[~never])


def long_history(name, scores, seed=83):
    """A sampler that came to these scores by thousands of changes, large and small, with draws in between."""
    random, source = np.random.default_rng(seed), NoiseSource(seed)
    current = nats(random.normal(size=len(scores)) * 10.0)
    sampler = SAMPLERS[name](current, LIMIT)
    for _ in range(400):
        places = random.integers(0, len(scores), 8)
        current[places] = nats(random.uniform(-1.0, 1.0, 8) * random.choice([0.3, 5.0, 100.0, 2e4]))
        sampler.changed(places)
        sampler.draw(source)
    for part in np.array_split(random.permutation(len(scores)), 3):
        current[part] = scores[part]
        sampler.changed(part)
    return sampler


@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("name", SAMPLERS)
def test_law_after_a_long_history(name, kind):
    assert fit(long_history(name, LAWS[kind]), LAWS[kind]) > FALSE_ALARM


@pytest.mark.parametrize("name", SAMPLERS)
def test_law_of_new_scores(name):
    scores = LAWS["wide"].copy()
    assert fit(SAMPLERS[name](scores, LIMIT), scores) > FALSE_ALARM
    assert np.array_equal(scores, LAWS["wide"])


@pytest.mark.parametrize("name", SAMPLERS)
def test_law_of_every_draw_while_scores_move(name):
    """A uniform number below the probability of the vertex drawn, on top of all vertices before it, is uniform."""
    random, source = np.random.default_rng(84), NoiseSource(85)
    scores = nats(random.normal(size=6) * 2.0)
    sampler = SAMPLERS[name](scores, LIMIT)
    level = 1.0
    ranks = np.empty(6000)
    for k in range(len(ranks)):
        level = min(max(level * random.choice([0.7, 1.0, 1.4]), 0.1), 200.0)  # scores rise and fall together, too
        places = random.integers(0, 6, 2)
        scores[places] = nats(random.normal(size=2) * level)
        sampler.changed(places)
        vertex, probabilities = number(sampler.draw(source)), law(scores)
        ranks[k] = probabilities[:vertex].sum() + random.random() * probabilities[vertex]
    assert chi_square_tail(np.bincount((ranks * 50).astype(int), minlength=50), np.full(50, 0.02)) > FALSE_ALARM


@pytest.mark.parametrize("name", ["bucket", "two-level"])
def test_an_envelope_that_is_too_low_is_caught(name):
    """Scores that rose without a word to the sampler: the test of fit must see it."""
    scores = np.zeros(12, dtype=np.int64)
    sampler = SAMPLERS[name](scores, LIMIT)
    scores[:4] = nats(1.2)
    assert fit(sampler, scores) < FALSE_ALARM
    sampler.changed(np.arange(4))
    assert fit(sampler, scores) > FALSE_ALARM


def test_scores_that_fell_need_no_word_to_the_buckets():
    """Any envelope that is high enough gives the same law."""
    scores = nats(np.full(12, 30.0))
    sampler = BucketSampler(scores, LIMIT)
    scores[:] = nats(np.linspace(-1.0, 1.0, 12))
    assert fit(sampler, scores) > FALSE_ALARM


@pytest.mark.parametrize("name", SAMPLERS)
def test_the_sign_of_one_coordinate(name):
    """Chosen with odds exp(2 a): the gradient's own sign would be certain."""
    scores = nats([0.3])
    assert law(scores)[1] == pytest.approx(1.0 / (1.0 + math.exp(-0.6)))
    assert fit(SAMPLERS[name](scores, LIMIT), scores) > FALSE_ALARM


@pytest.mark.parametrize("limit", [0, 1, 2**32 - 1, 2**32, 2**32 + 1, 2**40])
@pytest.mark.parametrize("name", SAMPLERS)
def test_scores_at_the_limit(name, limit):
    scores = np.zeros(4, dtype=np.int64)
    sampler = SAMPLERS[name](scores, limit)
    scores[:] = limit, -limit, 0, limit // 2
    sampler.changed(np.arange(4))
    assert fit(sampler, scores, draws=4000) > FALSE_ALARM
    assert fit(SAMPLERS[name](scores, limit), scores, draws=4000) > FALSE_ALARM


@pytest.mark.parametrize("name", ["two-level", "gumbel"])
def test_scores_at_the_largest_limit(name):
    sampler, source = SAMPLERS[name](np.array([LARGEST_LIMIT, -LARGEST_LIMIT, 0]), LARGEST_LIMIT), NoiseSource(86)
    assert {sampler.draw(source) for _ in range(100)} == {(0, -1), (1, 1)}


def test_buckets_up_to_the_largest_limit():
    """Most of them never used, and then no memory is touched for them."""
    scores = nats([1.0, -2.0])
    sampler = BucketSampler(scores, LARGEST_LIMIT)
    assert len(sampler.buckets.at_least) == 2**27 + 2
    assert fit(sampler, scores, draws=4000) > FALSE_ALARM


# What a row may add


@pytest.mark.parametrize("multiplier", [1e-3, 0.37, 1.0, 17.3, 1e6])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_contribution_is_the_largest_that_keeps_the_range(adjacency, multiplier):
    c = contribution_units(multiplier, adjacency)
    with mpmath.workprec(300):
        unit = mpmath.ln(2) / 2**32 * (2 if adjacency == "add-remove" else 4)
        e0 = mpmath.mpf(1.0 / multiplier)
        assert c * unit <= e0 < (c + 1) * unit


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_no_neighbour_moves_the_log_weights_by_a_larger_range(adjacency):
    """Random rows and the worst one, each entry within the contribution."""
    random, e0 = np.random.default_rng(87), 0.8
    c = contribution_units(1.0 / e0, adjacency)
    largest = 0.0
    for trial in range(200):
        rows = random.integers(-c, c + 1, (2, 6)) if trial else np.array([[c, 0, 0, 0, 0, 0], [-c, 0, 0, 0, 0, 0]])
        change = rows[0] if adjacency == "add-remove" else rows[0] - rows[1]
        moved = np.concatenate([-change, change]) / NAT
        largest = max(largest, float(np.ptp(moved)))
    assert e0 * (1.0 - 1e-8) < largest <= e0


def test_a_row_that_may_not_count():
    assert contribution_units(1e12, "replace-one") == 0


def test_multipliers_that_are_refused():
    with pytest.raises(ValueError, match="without noise the best vertex is taken"):
        contribution_units(0.0, "add-remove")
    for multiplier in (-1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="multiplier must be"):
            contribution_units(multiplier, "add-remove")
    with pytest.raises(ValueError, match="adjacency must be one of"):
        contribution_units(1.0, "both")


# The mechanism


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_release_follows_the_law_and_is_counted(adjacency):
    scores = nats([0.5, -1.0, 0.0])
    mechanism = Vertices(BucketSampler(scores, LIMIT), contribution_units(2.0, adjacency))
    gate = open_gate("exponential", 2.0, adjacency, count=5000, seed=88)
    drawn = [number(gate.release("r", mechanism)) for _ in range(5000)]
    assert chi_square_tail(np.bincount(drawn, minlength=6), law(scores)) > FALSE_ALARM
    with pytest.raises(PlanViolationError, match="of which 0 are left"):
        gate.release("r", mechanism)
    gate.finish()


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_contribution_that_would_cost_more_is_refused(adjacency):
    sampler, gate = BucketSampler(nats([0.5]), LIMIT), open_gate("exponential", 2.0, adjacency)
    most = contribution_units(2.0, adjacency)
    with pytest.raises(ValueError, match=f"contribution must be at most {most} for release 'r', {adjacency}"):
        gate.release("r", Vertices(sampler, most + 1))
    assert gate.left("r") == 1
    gate.release("r", Vertices(sampler, most))


def test_releases_that_are_not_planned_so():
    mechanism = Vertices(BucketSampler(nats([0.5]), LIMIT), 1)
    with pytest.raises(PlanViolationError, match="planned as gaussian"):
        open_gate("gaussian").release("r", mechanism)
    with pytest.raises(PlanViolationError, match="not in the plan"):
        open_gate("exponential").release("other", mechanism)


def test_the_non_private_limit_is_not_served():
    gate = open_gate("exponential", 0)
    with pytest.raises(ValueError, match="without noise the best vertex is taken, and nothing is drawn"):
        gate.release("r", Vertices(BucketSampler(nats([0.5]), LIMIT), 1))
    assert gate.left("r") == 1


def test_a_compiled_walk_that_leaves_a_draw_open():
    """Whether the vertex is kept is decided here; one that is kept is stepped to, unless it is the last."""
    scores = np.array([0, 2**31])  # the gap of vertex 0 is a whole number of octaves, that of vertex 2 is not
    mechanism, gate = Vertices(BucketSampler(scores, LIMIT), 1), open_gate("exponential", 2.0, count=60, seed=90)
    asked, steps = [], []

    def rounds(_, at, __, done, stop):
        asked.append((done, stop))
        return done, 2 * (done % 2), at, kernels.OPEN

    drawn = gate.release("r", VertexWalk(mechanism), 60, lambda *given: steps.append(given), rounds)
    assert drawn == [(k % 2, 1) for k in range(60)]
    assert steps == [(k + 1, k % 2, 1) for k in range(59)]
    assert sum(done % 2 == 0 for done, _ in asked) == 30
    assert sum(done % 2 for done, _ in asked) > 30  # some were turned down
    assert all(done < stop <= 60 for done, stop in asked)


def test_a_walk_longer_than_planned_is_refused_before_it_draws_more():
    scores, steps = nats([0.5, -1.0]), []
    for rounds in (None, lambda _, at, __, ___, stop: (stop, -1, at, kernels.DONE)):
        gate = open_gate("exponential", 2.0, count=40)
        with pytest.raises(PlanViolationError, match="planned 40 times"):
            gate.release(
                "r", VertexWalk(Vertices(BucketSampler(scores, LIMIT), 1)), 41, lambda *t: steps.append(t), rounds
            )
    most = contribution_units(2.0, "add-remove")
    with pytest.raises(ValueError, match="contribution must be at most"):
        gate.release("r", VertexWalk(Vertices(BucketSampler(scores, LIMIT), most + 1)), 1, steps.append, rounds)


# Refusals


@pytest.mark.parametrize("name", SAMPLERS)
def test_scores_that_are_refused(name):
    make = SAMPLERS[name]
    for wrong in (
        np.zeros(3),
        np.zeros(3, dtype=np.int32),
        np.zeros(3, dtype=np.uint64),
        [1, 2],
        np.zeros(3, dtype=bool),
    ):
        with pytest.raises(TypeError, match="scores must be an array of int64, got"):
            make(wrong, 10)
    for wrong in (np.zeros((2, 2), dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(6, dtype=np.int64)[::2]):
        with pytest.raises(
            ValueError, match=r"scores must be a contiguous vector of 1 to 2147483647 entries, got shape"
        ):
            make(wrong, 10)


@pytest.mark.parametrize("name", SAMPLERS)
def test_limits_that_are_refused(name):
    make, scores = SAMPLERS[name], np.zeros(3, dtype=np.int64)
    with pytest.raises(ValueError, match=r"limit must be at most 2\^59 units"):
        make(scores, LARGEST_LIMIT + 1)
    with pytest.raises(ValueError, match="limit must be at least 0"):
        make(scores, -1)
    with pytest.raises(TypeError, match="limit must be an integer"):
        make(scores, 2.0**40)


@pytest.mark.parametrize("score", [11, -11, 2**63 - 1, -(2**63)])
@pytest.mark.parametrize("name", SAMPLERS)
def test_a_score_beyond_the_limit_is_refused_without_saying_which(name, score):
    with pytest.raises(ValueError, match=r"^scores must lie within limit$"):
        SAMPLERS[name](np.array([0, score]), 10)


def test_a_score_that_rises_beyond_the_limit_has_no_bucket():
    scores = np.zeros(2, dtype=np.int64)
    sampler = BucketSampler(scores, 2**33)
    scores[1] = 2**33 + 1
    with pytest.raises(ValueError, match=r"^a score is beyond the limit given to its sampler$"):
        sampler.changed(np.array([1]))


@pytest.mark.parametrize("place", [-1, 2])
@pytest.mark.parametrize("name", ["bucket", "two-level"])
def test_places_outside_the_scores(name, place):
    with pytest.raises(IndexError, match="a place is outside the scores"):
        SAMPLERS[name](np.zeros(2, dtype=np.int64), 10).changed(np.array([place]))


def test_a_contribution_is_a_whole_number():
    for wrong, error in ((-1, ValueError), (1.5, TypeError)):
        with pytest.raises(error, match="contribution must be"):
            Vertices(BucketSampler(nats([0.5]), LIMIT), wrong)
