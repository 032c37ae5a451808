"""The dual solver's argument, checked in numbers, and what would break it.

The argument (docs/guarantees.md#dual): a row's dual variables are a state that only its own coins and what was released
can change. So a release is a mixture over the row's coin of Gaussians that lie at most C apart, whatever its state, and
T of them give away no more than T Poisson-sampled Gaussian releases of sensitivity C. Here the state follows rules that
try to give the row away, and the divergence between the worlds with and without it is integrated on a grid.

The state of a row is its past coins: a rule says, from those and from what was released, how far the row moves the next
release if its coin says so. C and the noise are in units in which C = 1.
"""

import itertools
import math
from functools import lru_cache

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from dp_accounting.pld import PLDAccountant
from scipy.special import comb, log_ndtr, ndtr

from .cases import DUAL, quiet

pytestmark = quiet
DUAL_SQUARED = next(case for case in DUAL if case.loss == "squared")


# --- the argument, integrated on a grid ------------------------------------------------------------------------------

# A rule: (past coins, past releases) -> the move of the row, at most 1 in size.
RULES = {
    "always": lambda coins, seen: 1.0,
    "alternating": lambda coins, seen: (-1.0) ** sum(coins),
    "by turns": lambda coins, seen: (-1.0) ** len(coins),
    "only the first time": lambda coins, seen: float(not any(coins)),
    "only if sampled before": lambda coins, seen: float(any(coins) or not coins),
    "tells its last coin": lambda coins, seen: 1.0 if not coins or coins[-1] else -1.0,
    "after a high release": lambda coins, seen: np.where(seen[-1] > 0.5, 1.0, -1.0) if seen else 1.0,
    "to where it was": lambda coins, seen: np.tanh(3 * sum(seen) * (1 + sum(coins))) if seen else 1.0,
    "in small steps": lambda coins, seen: 0.3 + 0.7 * sum(coins) / max(1, len(coins)),
}


def transcripts_of(rule, steps, q, z, points):
    """Weights of cells, and the densities of all transcripts with the row and without it, on a grid."""
    axis = np.linspace(-1.0 - 7.5 * z, 1.0 + 7.5 * z, points)
    grids = [axis.reshape([-1 if k == t else 1 for k in range(steps)]) for t in range(steps)]

    def normal(at):
        return np.exp(-np.square(at / z) / 2) / (z * math.sqrt(2 * math.pi))

    without = math.prod(normal(grid) for grid in grids)
    present = np.zeros([points] * steps)
    for coins in itertools.product([0, 1], repeat=steps):
        density = q ** sum(coins) * (1 - q) ** (steps - sum(coins))
        for t, coin in enumerate(coins):
            density = density * normal(grids[t] - coin * rule(coins[:t], grids[:t]))
        present += density
    return (axis[1] - axis[0]) ** steps, present, without


def divergences(rule, steps, q, z, epsilons, points):
    """The delta of every epsilon, the larger of the two directions."""
    cell, one, other = transcripts_of(rule, steps, q, z, points)
    assert cell * one.sum() == pytest.approx(1.0, abs=1e-6)
    return [
        max(cell * np.maximum(p - math.exp(e) * r, 0.0).sum() for p, r in ((one, other), (other, one)))
        for e in epsilons
    ]


@lru_cache
def sampled_gaussians(steps, q, z):
    event = SelfComposedDpEvent(PoissonSampledDpEvent(q, GaussianDpEvent(z)), steps)
    return PLDAccountant(value_discretization_interval=1e-3).compose(event)


SETTINGS = [(2, 0.3, 0.7, 300), (2, 0.05, 0.5, 400), (3, 0.2, 0.8, 110), (3, 0.6, 1.5, 80), (4, 0.4, 1.0, 36)]
settings_of_steps = pytest.mark.parametrize(("steps", "q", "z", "points"), SETTINGS)
EPSILONS = (0.1, 0.5, 1.0, 2.0)


@settings_of_steps
@pytest.mark.parametrize("name", RULES)
def test_no_rule_for_the_secret_state_gives_away_more_than_sampled_releases(name, steps, q, z, points):
    bounds = [sampled_gaussians(steps, q, z).get_delta(e) for e in EPSILONS]
    found = divergences(RULES[name], steps, q, z, EPSILONS, points)
    slack = 1e-5 if steps < 4 else 5e-4  # of the grid
    assert all(delta <= bound + slack for delta, bound in zip(found, bounds, strict=True))
    if name == "always":
        assert all(delta >= bound - slack for delta, bound in zip(found, bounds, strict=True))


def test_rules_at_random_give_away_no_more_either():
    rng = np.random.default_rng(0)
    steps, q, z, points = 3, 0.3, 0.8, 70
    bounds = [sampled_gaussians(steps, q, z).get_delta(e) for e in EPSILONS]
    for _ in range(20):
        moves = {coins: rng.uniform(-1, 1) for t in range(steps) for coins in itertools.product([0, 1], repeat=t)}
        slope = rng.normal()
        rule = lambda coins, seen: np.clip(moves[coins] + slope * sum(seen), -1, 1)  # noqa: B023, E731
        found = divergences(rule, steps, q, z, EPSILONS, points)
        assert all(delta <= bound + 1e-5 for delta, bound in zip(found, bounds, strict=True))


def test_a_coin_that_depends_on_the_past_is_not_covered():
    # What the argument needs: were a row never sampled twice, as in a shuffled pass, it would be sampled for certain.
    steps, q, z = 2, 0.5, 0.7
    axis = np.linspace(-6.5, 7.5, 300)
    one, two = np.meshgrid(axis, axis, indexing="ij")

    def density(a, b):
        return np.exp(-(np.square((one - a) / z) + np.square((two - b) / z)) / 2) / (2 * math.pi * z**2)

    cell, without, shuffled = (axis[1] - axis[0]) ** 2, density(0, 0), (density(1, 0) + density(0, 1)) / 2
    found = cell * np.maximum(without - math.exp(0.5) * shuffled, 0.0).sum()
    # The other direction is within the bound: a mistake that only one of the two finds.
    assert found > 0.2 * sampled_gaussians(steps, q, z).get_delta(0.5)


def unsampled_delta(epsilon, mu):
    if mu == 0.0:
        return 0.0
    return ndtr(-epsilon / mu + mu / 2) - math.exp(epsilon + log_ndtr(-epsilon / mu - mu / 2))


def named_batch_epsilon(steps, q, z, delta):
    """Where the names of each batch are released too: Gaussian releases of the row, as many as it took part in."""
    chances = [comb(steps, k) * q**k * (1 - q) ** (steps - k) for k in range(steps + 1)]

    def at(epsilon):
        return sum(p * unsampled_delta(epsilon, math.sqrt(k) / z) for k, p in enumerate(chances))

    low, high = 0.0, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if at(middle) > delta else (low, middle)
    return high


@pytest.mark.parametrize(("steps", "q", "z"), [(4, 0.4, 1.0), (100, 0.02, 1.0), (1_000, 0.01, 2.0)])
def test_naming_the_batch_would_cost_several_times_as_much(steps, q, z):
    delta = 1e-6
    claimed = sampled_gaussians(steps, q, z).get_epsilon(delta)
    assert named_batch_epsilon(steps, q, z, delta) > 1.2 * claimed
    if q < 0.1:
        assert named_batch_epsilon(steps, q, z, delta) > 3 * claimed


def test_the_formula_for_named_batches_is_that_of_a_mixture():
    # Two steps, integrated: the coins are seen in both worlds, and the row moves what it takes part in.
    steps, q, z, epsilon = 2, 0.3, 0.8, 0.5
    axis = np.linspace(-8, 9, 400)
    one, two = np.meshgrid(axis, axis, indexing="ij")
    total = 0.0
    for a, b in itertools.product([0, 1], repeat=2):
        chance = q ** (a + b) * (1 - q) ** (2 - a - b) / (2 * math.pi * z**2)
        present = np.exp(-(np.square((one - a) / z) + np.square((two - b) / z)) / 2)
        absent = np.exp(-(np.square(one / z) + np.square(two / z)) / 2)
        total += chance * np.maximum(present - math.exp(epsilon) * absent, 0).sum() * (axis[1] - axis[0]) ** 2
    assert named_batch_epsilon(steps, q, z, total) == pytest.approx(epsilon, abs=1e-4)
