"""The exponential mechanism in its forms: exact laws, scores against brute force, and inputs that must not break it.

Seeds are fixed; a fresh seed would fail a statistical test with probability below 1e-6 (`ALARM`).
"""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from tacit.privacy import Gate, NoiseSource, PlanViolationError
from tacit.privacy.mechanisms import Quantile, Selection, Sensitivity, SignedVertex, Threshold, TopK
from tests.privacy.mechanisms.test_additive import ADJACENCIES, ALARM, open_gate

DRAWS = 12_000


def draws(mechanism, *data, multiplier=1.0, adjacency="add-remove", count=1, seed=0, times=DRAWS):
    """Many releases, each through a gate of its own."""
    calibrated = open_gate("exponential", multiplier, adjacency, count).promise
    source = NoiseSource(seed)
    return [Gate(calibrated, source).release("r", mechanism, *data) for _ in range(times)]


def follows(outcomes, law):
    """Chi-square: whether the outcomes follow the law {outcome: weight}."""
    counts = Counter(outcomes)
    assert counts.keys() <= law.keys()
    weights = np.array(list(law.values()), dtype=float)
    expected = weights / weights.sum() * len(outcomes)
    seen = np.array([counts[outcome] for outcome in law], dtype=float)
    rare = expected < 10  # pooled
    if rare.any():
        seen = np.append(seen[~rare], seen[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    return stats.chisquare(seen, expected).pvalue > ALARM


# Laws.


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("multiplier", [0.4, 2.0])
def test_selection_law(adjacency, multiplier):
    scores, spread = [0.0, 1.0, 2.5, -3.0], Sensitivity(1.5, 3.0)
    outcomes = draws(Selection(spread), scores, multiplier=multiplier, adjacency=adjacency, seed=1)
    e0 = 1 / multiplier
    law = {j: math.exp(e0 * score / spread.under(adjacency)) for j, score in enumerate(scores)}
    assert follows(outcomes, law)
    # The textbook's exp(e0 score / (2 spread)) is another law, and this many draws can tell.
    assert not follows(outcomes, {j: math.sqrt(weight) for j, weight in law.items()})


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_signed_vertex_law(adjacency):
    gradient = np.array([1.0, -2.0, 0.0, 0.3])
    entry = Sensitivity.vector(0.8)
    outcomes = draws(SignedVertex(entry), gradient, adjacency=adjacency, multiplier=0.5, seed=2)
    spread = 2 * entry.under(adjacency)
    law = {(j, sign): math.exp(-2.0 * sign * g / spread) for j, g in enumerate(gradient) for sign in (1, -1)}
    assert follows(outcomes, law)
    # In particular the sign of a zero entry is a fair coin, and a wrong sign is likely where the gradient is small.
    assert follows([sign for j, sign in outcomes if j == 2], {1: 1, -1: 1})


def test_top_k_law_is_peeling():
    scores, k = [0.0, 1.0, 2.0], 2
    weights = [math.exp(s / 1.5) for s in scores]
    law = {
        (a, b): weights[a] / sum(weights) * weights[b] / (sum(weights) - weights[a])
        for a, b in itertools.permutations(range(3), k)
    }
    outcomes = draws(TopK(k, Sensitivity(1.5, 3.0)), scores, count=k, seed=3)
    assert follows([tuple(map(int, drawn)) for drawn in outcomes], law)


def test_top_k_draws_different_candidates():
    for drawn in draws(TopK(5, Sensitivity(1.0, 2.0)), [0.0, 0.0, 9.0, 0.0, 0.0], count=5, times=300, seed=4):
        assert sorted(drawn.tolist()) == [0, 1, 2, 3, 4]
        assert drawn.dtype == np.int64


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_threshold_law(adjacency):
    grid = [-1.0, 0.0, 0.5, 1.0]
    margins = np.array([-2.0, -1.0, -0.5, 0.0, 0.2, 0.5, 0.7, 3.0, np.nan, np.inf, -np.inf])
    positive = np.array([False, True, False, False, True, True, False, True, True, True, False])
    correct = [sum((m > t) == y for m, y in zip(margins, positive, strict=True) if not math.isnan(m)) for t in grid]
    spread = 1.0 if adjacency == "add-remove" else 2.0
    outcomes = draws(Threshold(grid), margins, positive, adjacency=adjacency, multiplier=1.3, seed=5)
    assert follows(outcomes, {t: math.exp(c / 1.3 / spread) for t, c in zip(grid, correct, strict=True)})


@pytest.mark.parametrize("q", [0.0, 0.3, 0.5, 1.0])
def test_quantile_law(q):
    grid = [0.0, 1.0, 2.0, 3.0]
    values = np.array([-1.0, 0.0, 0.0, 0.5, 1.0, 1.7, 2.2, 2.2, 9.0, np.nan, np.inf, -np.inf])
    scores = [-abs(sum(v <= g for v in values if not math.isnan(v)) - q * len(values)) for g in grid]
    for adjacency in ADJACENCIES:
        outcomes = draws(Quantile(q, grid), values, adjacency=adjacency, multiplier=0.7, seed=6, times=6000)
        assert follows(outcomes, {g: math.exp(s / 0.7 / 2) for g, s in zip(grid, scores, strict=True)})


def test_quantile_law_with_a_public_slope():
    grid, values, steepness = [0.0, 1.0, 2.0, 3.0], [0.5, 1.5, 1.7, 2.5], 0.4
    scores = [-abs(sum(v <= g for v in values) - 2) for g in grid]
    outcomes = draws(Quantile(0.5, grid, steepness=steepness), values, multiplier=0.7, seed=8)
    law = {g: math.exp(s / 0.7 / 2 - steepness * k) for k, (g, s) in enumerate(zip(grid, scores, strict=True))}
    assert follows(outcomes, law)
    assert not follows(outcomes, {g: math.exp(s / 0.7 / 2) for g, s in zip(grid, scores, strict=True)})
    # Where no value separates the candidates the lowest wins.
    assert set(draws(Quantile(0.5, grid, steepness=60.0), [-1.0, -1.0], times=200)) == {0.0}
    with pytest.raises(ValueError, match="steepness must be finite and at least 0"):
        Quantile(0.5, grid, steepness=-1.0)


def test_little_privacy_picks_the_best_and_much_privacy_picks_anything():
    scores = [1.0, 5.0, 3.0]
    assert set(draws(Selection(Sensitivity(1.0, 2.0)), scores, multiplier=1e-3, times=200)) == {1}
    assert follows(draws(Selection(Sensitivity(1.0, 2.0)), scores, multiplier=1e12), {0: 1, 1: 1, 2: 1})


# Large scores.


@pytest.mark.parametrize("shift", [0.0, 1e6, -1e6, 1e9, 2.0**40, -(2.0**40)])
def test_only_differences_of_scores_matter(shift):
    # Clipped at a million octaves from zero, large counts would all look alike: uniform, and not private either,
    # because a change common to all candidates would change the differences that are left.
    scores = np.array([0.0, 1.0, 2.0]) + shift
    outcomes = draws(Selection(Sensitivity(1.0, 2.0)), scores, seed=7)
    assert follows(outcomes, {j: math.exp(j) for j in range(3)})


def test_a_threshold_on_millions_of_rows():
    rng = np.random.default_rng(0)
    margins = rng.normal(size=2_000_000)
    chosen = draws(Threshold([-1.0, 0.0, 1.0]), margins, margins > 0, times=5)
    assert chosen == [0.0] * 5


def test_far_candidates_are_clipped_and_never_drawn():
    assert set(draws(Selection(Sensitivity(1.0, 2.0)), [0.0, -1e300, -np.inf, -1e7], times=500)) == {0}
    assert set(draws(Selection(Sensitivity(1.0, 2.0)), [1e308, -1e308, 1e308], times=500)) == {0, 2}


# Limits and odd inputs.


def test_the_non_private_limit_is_exact():
    assert draws(Selection(Sensitivity(1.0, 2.0)), [0.1, 0.3, 0.2], multiplier=0, times=3) == [1, 1, 1]
    assert draws(SignedVertex(Sensitivity.vector(1.0)), [0.1, -0.3, 0.2], multiplier=0, times=2) == [(1, 1)] * 2
    assert draws(SignedVertex(Sensitivity.vector(1.0)), [0.1, 0.3, 0.2], multiplier=0, times=2) == [(1, -1)] * 2
    (drawn,) = draws(TopK(3, Sensitivity(1.0, 2.0)), [0.1, 0.3, 0.2], multiplier=0, count=3, times=1)
    assert drawn.tolist() == [1, 2, 0]
    values = np.arange(101.0)
    assert draws(Quantile(0.5, np.arange(0.0, 101.0, 10)), values, multiplier=0, times=1) == [50.0]
    margins = np.array([-2.0, -1.0, 1.0, 2.0])
    assert draws(Threshold([-1.5, 0.0, 1.5]), margins, margins > 0, multiplier=0, times=1) == [0.0]


def test_scores_that_no_row_can_change():
    assert set(draws(Selection(Sensitivity(0.0, 0.0)), [0.1, 0.3, 0.2], times=50)) == {1}


def test_one_candidate():
    assert draws(Selection(Sensitivity(1.0, 2.0)), [3.0], times=3) == [0, 0, 0]
    assert draws(Quantile(0.5, [4.0]), [1.0, 2.0], times=2) == [4.0, 4.0]
    assert set(draws(SignedVertex(Sensitivity.vector(1.0)), [0.0], times=100)) == {(0, 1), (0, -1)}


@pytest.mark.parametrize("multiplier", [0, 1.0])
def test_not_a_number_counts_as_zero_and_does_not_raise(multiplier):
    select = Selection(Sensitivity(1.0, 2.0))
    assert set(draws(select, [np.nan, np.nan], multiplier=multiplier, times=50)) <= {0, 1}
    assert set(draws(select, [np.nan, -100.0], multiplier=multiplier, times=50)) == {0}
    assert set(draws(select, [np.nan, 100.0], multiplier=multiplier, times=50)) == {1}
    assert set(draws(select, [np.nan, np.inf, -np.inf], multiplier=multiplier, times=50)) == {1}
    assert set(draws(select, [-np.inf, -np.inf], multiplier=multiplier, times=50)) <= {0, 1}
    vertices = draws(SignedVertex(Sensitivity.vector(1.0)), [np.nan, np.inf], multiplier=multiplier, times=50)
    assert set(vertices) == {(1, -1)}
    assert draws(Quantile(0.5, [0.0, 1.0]), [np.nan, np.nan], multiplier=multiplier, times=1)[0] in (0.0, 1.0)
    assert draws(Quantile(0.5, [0.0, 1.0]), [], multiplier=multiplier, times=1)[0] in (0.0, 1.0)
    assert draws(Threshold([0.0, 1.0]), [], [], multiplier=multiplier, times=1)[0] in (0.0, 1.0)
    assert draws(Threshold([0.0, 1.0]), [np.nan], [True], multiplier=multiplier, times=1)[0] in (0.0, 1.0)


# Refusals, before anything is spent.


@pytest.mark.parametrize("scores", [[], [[1.0, 2.0]]])
def test_scores_must_be_a_vector_of_candidates(scores):
    gate = open_gate("exponential")
    mechanisms = Selection(Sensitivity(1.0, 2.0)), SignedVertex(Sensitivity.vector(1.0)), TopK(1, Sensitivity(1.0, 2.0))
    for mechanism in mechanisms:
        with pytest.raises(ValueError, match="scores must be a vector of at least one candidate, got shape"):
            gate.release("r", mechanism, scores)
    assert gate.left("r") == 1


def test_k_is_at_most_the_number_of_candidates():
    gate = open_gate("exponential", count=4)
    with pytest.raises(ValueError, match="k must be at most the number of candidates, 3, got 4"):
        gate.release("r", TopK(4, Sensitivity(1.0, 2.0)), [1.0, 2.0, 3.0])
    assert gate.left("r") == 4
    for k, error in ((0, ValueError), (-1, ValueError), (1.5, TypeError)):
        with pytest.raises(error, match="k must be"):
            TopK(k, Sensitivity(1.0, 2.0))


def test_top_k_counts_each_draw():
    with pytest.raises(PlanViolationError, match="of which 0 are left"):
        open_gate("exponential", count=2).release("r", TopK(3, Sensitivity(1.0, 2.0)), [1.0, 2.0, 3.0])
    gate = open_gate("exponential", count=3)
    gate.release("r", TopK(2, Sensitivity(1.0, 2.0)), [1.0, 2.0, 3.0])
    assert gate.left("r") == 1


@pytest.mark.parametrize("grid", [[], 1.0, [[0.0, 1.0]]])
def test_a_grid_needs_candidates(grid):
    for make in (Threshold, lambda g: Quantile(0.5, g)):
        with pytest.raises(ValueError, match="grid needs at least one candidate, got shape"):
            make(grid)


@pytest.mark.parametrize("grid", [[1.0, 0.0], [0.0, 0.0], [0.0, np.nan], [0.0, np.inf]])
def test_a_grid_must_increase(grid):
    for make in (Threshold, lambda g: Quantile(0.5, g)):
        with pytest.raises(ValueError, match="grid must be finite and increasing"):
            make(grid)


@pytest.mark.parametrize("q", [-0.1, 1.1, math.nan])
def test_q_is_a_probability(q):
    with pytest.raises(ValueError, match="q must"):
        Quantile(q, [0.0, 1.0])


def test_shapes_of_the_data():
    gate = open_gate("exponential")
    with pytest.raises(ValueError, match="values must be a vector, got shape"):
        gate.release("r", Quantile(0.5, [0.0, 1.0]), [[1.0], [2.0]])
    for margins, labels in (([1.0, 2.0], [True]), ([[1.0]], [[True]])):
        with pytest.raises(ValueError, match="margins and labels must be vectors of one length"):
            gate.release("r", Threshold([0.0]), margins, labels)
    assert gate.left("r") == 1


def test_frozen_and_hashable():
    pairs = [
        (Selection(Sensitivity(1, 2)), Selection(Sensitivity(1.0, 2.0))),
        (Quantile(0.5, [0, 1]), Quantile(0.5, (0.0, 1.0))),
        (Threshold([0, 1]), Threshold(np.array([0.0, 1.0]))),
        (TopK(2, Sensitivity(1, 2)), TopK(np.int64(2), Sensitivity(1, 2))),
    ]
    for one, same in pairs:
        assert one == same
        assert hash(one) == hash(same)
