"""Thresholded counts: the exact tail of a lone vote, an audit of both relations, and mutants that must be caught."""

import math

import numpy as np
import pytest
from scipy.special import ndtr

from tacit.privacy import Budget, Gate, NoiseSource, Plan, PlanViolationError, Release, Unit, audit, epsilon_of
from tacit.privacy import compose as composed
from tacit.privacy.gdp import delta_from_mu
from tacit.privacy.mechanisms import GaussianVector, Sensitivity, ThresholdedCounts
from tacit.privacy.plan import TAIL

from .recorder import transcript

ADJACENCIES = ("add-remove", "replace-one")
N, P = 60, 2
MU, D0 = 1.0, 0.1
PLAN = Plan(Release("values", "thresholded", multiplier=1.0 / MU, tail=0.25))  # of a delta of 4 D0


def promise(adjacency, plan=PLAN, epsilon=math.inf, delta=4 * D0, n=N):
    return plan.calibrate(Budget(epsilon, delta, adjacency), Unit("row", n), "test")


def runner(adjacency, seed, mechanism=None):
    source, made = NoiseSource(seed), promise(adjacency)
    drawn = ThresholdedCounts(P, N, 20) if mechanism is None else mechanism
    return lambda votes: str(Gate(made, source).release("values", drawn, votes))


def tail_of_one_vote(mechanism, gate):
    """P(a value with one vote is kept), from the whole numbers that are added up."""
    grid = mechanism.grid(gate)
    step, least = grid.step, mechanism.threshold(grid, gate.d0)
    one = round(1.0 / step)
    over = math.floor(least / step) + 1 - one  # the noise, in whole steps, that lifts it above
    return float(ndtr(-math.ldexp(over, -grid.bits)))  # floor(2^bits Z) >= over where Z >= over 2^-bits


class At:
    """A grant by its public numbers."""

    def __init__(self, adjacency, multiplier, d0):
        self.adjacency, self.multiplier, self.d0 = adjacency, multiplier, d0


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("d0", [1e-300, 1e-12, 1e-9, 1e-4, 0.2])
@pytest.mark.parametrize("multiplier", [1e-3, 0.7, 40.0, 1e6])
@pytest.mark.parametrize("columns", [1, 8, 300])
def test_a_lone_vote_shows_with_the_probability_it_may_and_not_much_less(adjacency, d0, multiplier, columns):
    mechanism = ThresholdedCounts(columns, 50_000, 20)
    tail = tail_of_one_vote(mechanism, At(adjacency, multiplier, d0))
    assert 0.999 * d0 / columns <= tail <= d0 / columns


class Lower(ThresholdedCounts):
    """A threshold without the vote itself."""

    def threshold(self, grid, d0):
        return super().threshold(grid, d0) - 1.0


def test_without_the_vote_itself_in_the_threshold_the_tail_is_too_large():
    tail = tail_of_one_vote(Lower(1, 1000, 20), At("add-remove", 1.0, 1e-9))
    assert tail > 10 * 1e-9


def around(count, other, lone=None):
    """Votes of P columns: `count` for the first value, the others for a second one, and perhaps a lone one."""
    column = ["a"] * count + ["b"] * other + ([] if lone is None else [lone])
    return [column for _ in range(P)]


def worlds(adjacency):
    """Pairs of neighbours: at the threshold, and with a vote that nobody shares."""
    grid = ThresholdedCounts(P, N, 20).grid(At(adjacency, 1.0 / MU, D0))
    edge = round(ThresholdedCounts(P, N, 20).threshold(grid, D0))
    if adjacency == "add-remove":
        yield around(edge, 30), around(edge + 1, 30)
        yield around(edge, 30), around(edge, 30, "c")
    else:
        yield around(edge, 1 + edge), around(edge + 1, edge)
        yield around(edge, 30, "c"), around(edge, 30, "d")


def attack(run, pair, delta, trials):
    return audit.epsilon_lower_bound(audit.run(run, *pair, trials), delta, confidence=1 - 1e-6)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_audits_find_no_more_than_the_coin_and_the_gaussian_allow(adjacency):
    for pair in worlds(adjacency):
        outputs = audit.run(runner(adjacency, 1), *pair, 3_000)
        for epsilon in (0.0, 0.5):
            delta = D0 + (1 - D0) * delta_from_mu(MU, epsilon)
            assert audit.epsilon_lower_bound(outputs, delta, confidence=1 - 1e-6) <= epsilon


class Quiet(ThresholdedCounts):
    """A threshold without noise: what the audit must not let pass."""

    def draw(self, grant, votes):
        grant.take()
        least = self.threshold(self.grid(grant), grant.d0)
        return tuple(self.kept(list(c), list(c.values()), least) for c in self.counts(votes))


class Trusting(ThresholdedCounts):
    """No threshold: whatever anyone holds is named."""

    def threshold(self, grid, d0):  # noqa: ARG002
        return -math.inf


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(("mutant", "pair"), [(Quiet, 0), (Trusting, 1)])
def test_a_mutant_without_noise_or_without_a_threshold_is_caught(adjacency, mutant, pair):
    two = list(worlds(adjacency))[pair]
    if mutant is Quiet:  # the whole count at which it switches
        counts = range(2, 40)
        quiet = runner(adjacency, 1, Quiet(P, N, 20))
        two = next(
            w for w in ((around(k, 39 - k + 1), around(k + 1, 39 - k)) for k in counts) if quiet(w[0]) != quiet(w[1])
        )
    delta = D0 + (1 - D0) * delta_from_mu(MU, 1.0)
    assert attack(runner(adjacency, 1, mutant(P, N, 20)), two, delta, 500) > 1.0


class Twice(ThresholdedCounts):
    """Two votes a person in a column: for their own value, and for the same in capitals."""

    def counts(self, votes):
        doubled = [[v for value in column for v in (value, value.upper())] for column in votes]
        return ThresholdedCounts(self.columns, 2 * self.rows, self.most).counts(doubled)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(("kind", "honest"), [(ThresholdedCounts, True), (Twice, False)])
def test_one_vote_a_person_moves_the_counts_by_what_is_stated_and_two_votes_by_more(adjacency, kind, honest):
    one = around(20, 30, "c")
    other = around(20, 30, "d") if adjacency == "replace-one" else around(20, 30)
    with transcript() as history:
        Gate(promise(adjacency), NoiseSource(1)).release("values", kind(P, N, 20), one)
    with transcript(history) as replayed:
        Gate(promise(adjacency), NoiseSource(1)).release("values", kind(P, N, 20), other)
    moved = history[0].moved(replayed[0])
    assert moved == pytest.approx(1.0 if honest else math.sqrt(2.0))


def test_the_grid_is_that_of_the_declared_rows_however_many_values_there_are():
    with transcript() as few:
        Gate(promise("add-remove"), NoiseSource(1)).release("values", ThresholdedCounts(P, N, 20), around(30, 30))
    with transcript() as many:
        votes = [[str(k) for k in range(N)]] * P
        Gate(promise("add-remove"), NoiseSource(1)).release("values", ThresholdedCounts(P, N, 20), votes)
    assert few[0].grids == many[0].grids
    assert few[0].public == many[0].public


def test_the_order_of_rows_does_not_matter_and_values_come_in_the_order_of_texts():
    rng, values = np.random.default_rng(0), np.repeat(["b", "a", "Z", "ä", "10", "9"], 10)
    out = set()
    for _ in range(20):
        votes = [rng.permutation(values).tolist() for _ in range(P)]
        out.add(Gate(promise("add-remove"), NoiseSource(3)).release("values", ThresholdedCounts(P, N, 20), votes))
    assert len(out) == 1
    (kept,) = out
    assert all(list(column) == sorted(column) for column in kept)
    assert any(kept)


def test_the_largest_are_kept_and_of_equal_ones_the_first():
    mechanism = ThresholdedCounts(1, 100, 2)
    assert mechanism.kept(["a", "b", "c", "d"], [5.0, 9.0, 5.0, 1.0]) == ("a", "b")
    assert mechanism.kept(["a", "b", "c", "d"], [5.0, 9.0, 5.5, 1.0], least=5.2) == ("b", "c")
    assert mechanism.kept([], []) == ()


def test_without_privacy_all_values_are_kept():
    plan = Plan(Release("values", "thresholded", share=1.0, tail=TAIL))
    votes = [["x", "y", None, "x"]]
    made = promise("add-remove", plan, n=4)
    assert Gate(made, NoiseSource(1)).release("values", ThresholdedCounts(1, 4, 20), votes) == (("x", "y"),)
    assert Gate(made, NoiseSource(1)).release("values", ThresholdedCounts(1, 4, 1), votes) == (("x",),)


def test_the_guarantee_keeps_d0_apart_and_the_event_costs_no_more_than_epsilon_at_the_rest():
    plan = Plan(Release("values", "thresholded", share=0.2, tail=TAIL), Release("sums", "gaussian", share=0.8, count=9))
    made = promise("add-remove", plan, epsilon=1.0, delta=1e-6, n=5000)
    stated = made.guarantee(seeded=False)
    assert stated.d0 == 1e-6 * TAIL
    assert stated.recompute() == epsilon_of(made.event, 1e-6 - stated.d0) <= 1.0
    assert epsilon_of(made.event, 1e-6 - 2 * stated.d0) > 1.0  # nothing is left over
    twice = composed([stated, stated])
    assert twice.d0 == 2 * stated.d0
    assert twice.epsilon == epsilon_of(twice.event, 2e-6 - twice.d0)
    with pytest.raises(ValueError, match="thresholded counts take"):
        composed([stated, stated], delta=1.5 * stated.d0)


def test_what_is_not_planned_as_thresholded_is_refused():
    with pytest.raises(ValueError, match="tail"):
        Release("values", "thresholded", share=1.0)
    with pytest.raises(ValueError, match="tail"):
        Release("sum", "gaussian", share=1.0, tail=0.01)
    with pytest.raises(ValueError, match="half of delta"):
        Plan(*(Release(f"{k}", "thresholded", share=1.0, tail=0.3) for k in range(2)))
    gate = Gate(promise("add-remove", Plan(Release("sum", "gaussian", multiplier=1.0))), NoiseSource(1))
    with pytest.raises(PlanViolationError, match="planned as gaussian"):
        gate.release("sum", ThresholdedCounts(1, N, 20), [["a"]])
    gate = Gate(promise("add-remove"), NoiseSource(1))
    with pytest.raises(PlanViolationError, match="planned as thresholded"):
        gate.release("values", GaussianVector(Sensitivity.vector(1.0)), [1.0])
    with pytest.raises(ValueError, match="more votes"):
        gate.release("values", ThresholdedCounts(1, 2, 20), [["a"] * 3])
    with pytest.raises(ValueError, match="votes of 2 columns"):
        gate.release("values", ThresholdedCounts(2, 2, 20), [["a"] * 2])
