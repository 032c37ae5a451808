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
import pickle
import re
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from unittest.mock import patch

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from dp_accounting.pld import PLDAccountant
from scipy.special import comb, log_ndtr, ndtr

from tacit import LogisticRegression
from tacit.blocks import Bounded
from tacit.estimators import fit as path
from tacit.privacy import Gate, NoiseSource
from tacit.problems import LOSSES, Penalty
from tacit.solvers import Dual
from tacit.solvers.dual.steps import AllRows, Duals

from .cases import (
    DUAL,
    PAIRS,
    ROUNDING,
    TUNED,
    claimed_mu,
    fresh_fits,
    pair_of_tables,
    private_fit,
    quiet,
    recomputed,
    sample,
)
from .recorder import transcript
from .test_audits import Alone, worst_rows
from .worlds import log_likelihood, mu_between, two_worlds

pytestmark = quiet
SQUARED = next(case for case in DUAL if case.loss == "squared")
CLASSES = [replace(case, classes=True) for case in DUAL if LOSSES[case.loss] in case.solver.serves.multiclass]


# --- the argument, integrated on a grid ------------------------------------------------------------------------------

# A rule: (past coins, past releases) -> the move of the row, at most 1 in size.
RULES = {
    "always": lambda *_: 1.0,
    "alternating": lambda coins, _: (-1.0) ** sum(coins),
    "by turns": lambda coins, _: (-1.0) ** len(coins),
    "only the first time": lambda coins, _: float(not any(coins)),
    "only if sampled before": lambda coins, _: float(any(coins) or not coins),
    "tells its last coin": lambda coins, _: 1.0 if not coins or coins[-1] else -1.0,
    "after a high release": lambda _, seen: np.where(seen[-1] > 0.5, 1.0, -1.0) if seen else 1.0,
    "to where it was": lambda coins, seen: np.tanh(3 * sum(seen) * (1 + sum(coins))) if seen else 1.0,
    "in small steps": lambda coins, _: 0.3 + 0.7 * sum(coins) / max(1, len(coins)),
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
    slack = 3e-5 if steps < 4 else 2e-4  # of the grid
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


def test_batches_that_are_shuffled_would_give_away_more():
    # Two batches of one pass: a row is in one of them for certain, so its coins are not independent of each other.
    q, z = 0.5, 0.4
    axis = np.linspace(-4.0, 5.0, 300)
    one, two = np.meshgrid(axis, axis, indexing="ij")

    def density(a, b):
        return np.exp(-(np.square((one - a) / z) + np.square((two - b) / z)) / 2) / (2 * math.pi * z**2)

    cell, without, shuffled = (axis[1] - axis[0]) ** 2, density(0, 0), (density(1, 0) + density(0, 1)) / 2
    for epsilon in EPSILONS[:2]:
        found = cell * np.maximum(without - math.exp(epsilon) * shuffled, 0.0).sum()
        assert found > 1.05 * sampled_gaussians(2, q, z).get_delta(epsilon)


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
    assert named_batch_epsilon(steps, q, z, total) == pytest.approx(epsilon, abs=1e-3)


# --- the solver keeps to the argument --------------------------------------------------------------------------------


SAMPLED = Dual(batch_size=8, n_passes=1, clip=0.5)


@dataclass(frozen=True, eq=False)
class Steps(Alone):
    """The solver alone, with options and a penalty of its own."""

    solver: Dual = SAMPLED
    l2: float = 10.0
    epsilon: float = 8.0

    @cached_property
    def task(self):
        return self.case.request(self.epsilon, n=self.n, d=self.d, fit_intercept=False).task

    def __call__(self, rows):
        data = replace(rows, penalty=Penalty(l2=np.full(self.d, self.l2)))
        with Gate(self.calibrated, NoiseSource(next(self.seeds))) as gate:
            return self.solver.at(self.task).run(data, gate)


def moved_by_the_coin(run, rows):
    """How far the coin of row 0 moves each release, as a part of its sensitivity."""
    with transcript(coin=True) as steps:
        run(rows)
    with transcript(steps, coin=False) as others:
        run(rows)
    return [step.moved(other) for step, other in zip(steps, others, strict=True)]


def one_against_all(n=40):
    """All rows pull one way, but row 0."""
    Z, targets = np.full((n, 2), 1.0), np.full(n, 1.0)
    targets[0] = -3.0
    return Bounded(Z, targets, Penalty())


def test_the_coin_of_a_row_changes_what_that_row_adds_and_nothing_else():
    for seed in range(5):
        run = Steps(SQUARED, l2=0.1)
        vars(run)["seeds"] = itertools.count(seed)
        moved = moved_by_the_coin(run, one_against_all())
        assert max(moved) <= ROUNDING
        assert moved[0] >= 0.999


def test_the_realised_size_of_a_batch_in_place_of_the_expected_one_is_caught(monkeypatch):
    steps = Duals.steps
    monkeypatch.setattr(
        Duals, "steps", lambda self, one, v, scale, _, clip: steps(self, one, v, scale, 1.0 * len(one.rows), clip)
    )
    assert max(moved_by_the_coin(Steps(SQUARED, l2=0.1), one_against_all())) > 1.05


def are_coins(run, rows, q, fits=30):
    """Whether batches look like independent coins: sizes vary as they should, and rows come back as they should."""
    with transcript() as steps:
        for _ in range(fits):
            run(rows)
    n = len(rows.targets)
    taken = np.array([np.isin(np.arange(n), step.sample) for step in steps])
    sizes = taken.sum(axis=1)
    spread = (sizes - n * q) @ (sizes - n * q) / len(sizes) / (n * q * (1 - q))
    again = np.mean(taken[:-1] & taken[1:]) / q**2
    return abs(spread - 1) < 5 * math.sqrt(2 / len(sizes)) and abs(again - 1) < 5 / q / math.sqrt(taken.size)


def test_batches_are_coins():
    assert are_coins(Steps(SQUARED), one_against_all(), 0.2)


@pytest.mark.parametrize("kind", ["shuffled", "of a fixed size"])
def test_batches_that_are_not_coins_are_caught(kind, monkeypatch):
    rng = np.random.default_rng(0)
    left, honest = [], Gate.samples

    def batches(gate, name, count):
        honest(gate, name, count)
        if kind == "of a fixed size" or not left:
            left[:] = rng.permutation(gate.promise.unit.n)
        now, left[:] = np.array(left[:8]), left[8:]
        return now, np.array([0, 8])

    monkeypatch.setattr(Gate, "samples", batches)
    assert not are_coins(Steps(SQUARED), one_against_all(), 0.2)


@pytest.mark.parametrize("case", [c for c in TUNED if c.variant == "sequential"], ids=str)
def test_no_row_of_a_sequential_batch_moves_further_than_the_clip(case, monkeypatch):
    """Its argument counts every dual variable and every addition to v once, with at most the clip each."""
    moved, move, clip = [], Duals.move, case.made(24).clip

    def noted(self, rows, *given):
        before = self.at(rows)
        added = move(self, rows, *given)
        moved.append(max(float(np.linalg.norm(added)), float(np.linalg.norm(self.at(rows) - before))))
        return added

    monkeypatch.setattr(Duals, "move", noted)
    for name in PAIRS:
        private_fit(case.request(seed=0), *pair_of_tables(case, name)[0])
    assert 0.9 * clip <= max(moved) <= clip


@pytest.mark.parametrize("case", [c for c in TUNED if c.variant == "primal"], ids=str)
def test_no_weight_of_the_primal_variant_moves_further_than_the_clip(case):
    with transcript() as steps:
        for name in PAIRS:
            private_fit(case.request(seed=0), *pair_of_tables(case, name)[0])
    clip = case.made(24).clip
    assert max(np.abs(step.exact).max() for step in steps if step.name == "updates") == clip


# --- steps over all rows, with momentum ------------------------------------------------------------------------------


@pytest.mark.parametrize("case", [c for c in DUAL + CLASSES if c.loss != "logistic"], ids=str)
def test_the_worst_row_takes_all_of_mu_where_steps_take_all_rows(case):
    run = Steps(case, solver=Dual(n_passes=6, clip=0.1), epsilon=1e6)
    assert type(run.solver.at(run.task)) is AllRows
    rows, _ = worst_rows(case)
    other = replace(rows, Z=rows.Z.copy())
    other.Z[0] = 0.0  # nothing, in a model without an intercept
    claim = claimed_mu(run.calibrated.event)
    for worlds in ((rows, other), (other, rows)):
        pairs = two_worlds(run, *worlds)
        assert max(step.moved(twin) for step, twin in pairs) <= ROUNDING
        assert 0.8 * claim <= mu_between(pairs) <= claim * ROUNDING


@pytest.mark.parametrize("case", CLASSES, ids=str)
def test_classes_are_released_at_once_for_the_sensitivity_of_one(case):
    run = Steps(case, solver=Dual(batch_size=20, n_passes=2, clip=0.1))
    for worlds in (worst_rows(case), worst_rows(case)[::-1]):
        pairs = two_worlds(run, *worlds)
        assert all(step.exact.size == 3 * 3 for step, _ in pairs)
        moved = [step.moved(twin) for step, twin in pairs]
        assert min(moved) >= 0.999
        assert max(moved) <= ROUNDING


@pytest.mark.parametrize("case", DUAL, ids=str)
def test_no_row_moves_a_release_too_far_where_steps_take_all_rows(case):
    fit = fresh_fits(case, epsilon=1e6, solver=Dual(n_passes=8))
    for name in ("huge", "all features"):
        pairs = two_worlds(fit, *pair_of_tables(case, name))
        assert max(step.moved(other) for step, other in pairs) <= 2 * ROUNDING


# --- the dual variables stay inside ----------------------------------------------------------------------------------


def arrays_in(thing, seen=None):
    """The sizes of all arrays and sequences that can be reached from an object."""
    seen = set() if seen is None else seen
    if id(thing) in seen or isinstance(thing, str | bytes | type):
        return []
    seen.add(id(thing))
    if isinstance(thing, np.ndarray):
        return [thing.size, *thing.shape]
    if isinstance(thing, dict):
        parts = [*thing.keys(), *thing.values()]
    elif isinstance(thing, list | tuple | set | frozenset):
        parts = [len(thing), *thing] if len(thing) < 10_000 else [len(thing)]
    else:
        parts = list(getattr(thing, "__dict__", {}).values())
    return ([len(thing)] if hasattr(thing, "__len__") else []) + [s for part in parts for s in arrays_in(part, seen)]


def leaks(n, fit):
    """Whether anything that grows with the rows is in what a fit returns."""
    one, more = fit(n), fit(2 * n)
    grows = len(pickle.dumps(more)) - len(pickle.dumps(one)) > n
    return grows or n in arrays_in(one)


def fitted(n):
    case = SQUARED
    return private_fit(case.request(0.5, n=n, solver=Dual(n_passes=2)), *sample(case, n))


def estimator(n):
    X, y = sample(replace(SQUARED, loss="logistic"), n)
    return LogisticRegression(0.5, solver=Dual(n_passes=2), classes=[-1.0, 1.0]).fit(X, y)


@pytest.mark.parametrize("fit", [fitted, estimator])
def test_nothing_that_a_fit_returns_is_as_long_as_the_rows(fit):
    assert not leaks(337, fit)


@pytest.mark.parametrize("fit", [fitted, estimator])
def test_dual_variables_in_what_is_returned_are_caught(fit, monkeypatch):
    kept, init = [], Duals.__init__

    def noted(self, *given, **options):
        init(self, *given, **options)
        kept.append(self)

    def leaky(n):
        model = fit(n)
        vars(model)["dual_"] = kept[-1].at(np.arange(n))
        return model

    monkeypatch.setattr(Duals, "__init__", noted)
    assert leaks(337, leaky)


def test_progress_tells_counts_alone(capsys):
    task, solver, _ = SQUARED.request(0.5, n=337, solver=Dual(n_passes=2))
    fitted = path.private_fit(task, solver, sample(SQUARED, 337), verbose=1)
    names = {release.name for release in fitted.promise.plan.releases}
    said = capsys.readouterr()
    assert not said.out
    lines = said.err.splitlines()
    assert lines
    assert {re.fullmatch(r"tacit: \d+ of \d+ releases \((.+)\)", line)[1] for line in lines} <= names


def test_dual_variables_do_not_print():
    kept, init = [], Duals.__init__

    def noted(self, *given, **options):
        init(self, *given, **options)
        kept.append(self)

    with patch.object(Duals, "__init__", noted):
        fitted(50)
    assert repr(kept[0]) == str(kept[0]) == "Duals(private)"


@pytest.mark.slow
def test_someone_who_sees_the_batches_learns_more_than_is_claimed():
    """What releasing the dual variables would do: those that changed name the batch.

    Delta at an epsilon is the mean of max(0, 1 - e^epsilon / ratio), the ratio of likelihoods with the row to without
    it, over transcripts with the row.
    """
    run = Steps(SQUARED, solver=Dual(batch_size=4, n_passes=0.8, clip=0.1), epsilon=2.0)
    worlds = worst_rows(SQUARED)
    delta = 0.1
    claim = recomputed(run.calibrated.event, delta)
    parts = {"named": [], "secret": []}
    for _ in range(200):
        with transcript() as steps:
            run(worlds[0])
        likely = []
        for data in worlds:
            with transcript(steps) as again:
                run(data)
            likely.append(sum(one.log_density(step.released) for step, one in zip(steps, again, strict=True)))
        secret = log_likelihood(run, steps, worlds[0]) - log_likelihood(run, steps, worlds[1])
        for name, ratio in (("named", likely[0] - likely[1]), ("secret", secret)):
            parts[name].append(max(0.0, 1.0 - math.exp(claim - ratio)))
    error = 4 * np.std(parts["named"]) / math.sqrt(200)
    assert np.mean(parts["named"]) - error > delta
    assert np.mean(parts["secret"]) - error < delta
    assert np.mean(parts["named"]) > 1.5 * np.mean(parts["secret"])
