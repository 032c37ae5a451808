"""What Frank-Wolfe draws: how far a row moves the log-weights of a draw, audits, and the mistakes that must be caught.

The privacy of a run without an intercept is that of its list of vertices. On a given list one row moves the scores of
every draw by amounts that can be computed: the run is led through the list on both tables.
"""

import itertools
import math
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from tacit.blocks import Bounded
from tacit.privacy import Gate, NoiseSource, Plan, audit
from tacit.privacy.mechanisms import VertexWalk, Vertices, contribution_units
from tacit.privacy.noise.vertices import whole_octave
from tacit.problems import Penalty
from tacit.solvers import FrankWolfe
from tacit.solvers.frank_wolfe.rows import Scoring
from tacit.solvers.frank_wolfe.scores import LazyScores
from tests.solvers.support import task as problem

from .cases import ROUNDING, claimed_mu, recomputed
from .recorder import whole_scores
from .worlds import half_the_noise

NATS = math.log(2.0) / 2.0**32  # of a unit
ENTRY = 0.5
N, D = 12, 3
every_loss = pytest.mark.parametrize("loss", [loss.name for loss in FrankWolfe.serves.losses])
either_adjacency = pytest.mark.parametrize("adjacency", FrankWolfe.serves.adjacencies)
either_table = pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
every_length = pytest.mark.parametrize("count", [1, 5, 20])
audited_lengths = pytest.mark.parametrize("count", [5, *(pytest.param(t, marks=pytest.mark.slow) for t in (1, 20))])


def task_of(loss, n, d, epsilon, adjacency, sparse=False, l1_radius=3.0):
    """Without an intercept."""
    return problem(loss, n, d, sparse, False, epsilon, adjacency, 1e-3, penalty=Penalty(), l1_radius=l1_radius)


def rows_of(Z, targets, entry=ENTRY):
    return Bounded(Z, targets, Penalty(), entry)


def promise(algorithm):
    task = algorithm.task
    return Plan(*algorithm.releases(1.0)).calibrate(task.budget, task.unit, "test")


@dataclass(frozen=True, eq=False)
class Run:
    """A solver on bounded rows without an intercept: all it releases are vertices."""

    loss: str = "logistic"
    adjacency: str = "add-remove"
    sparse: bool = False
    count: int = 5
    epsilon: float = 5.0
    n: int = N
    d: int = D
    clip: float | None = None
    sampler: str = "bucket"
    tolerance: float | None = None  # of slopes, if not the solver's

    @cached_property
    def algorithm(self):
        task = task_of(self.loss, self.n, self.d, self.epsilon, self.adjacency, self.sparse)
        by_rule = FrankWolfe(n_iter=self.count, clip=self.clip, sampler=self.sampler).at(task)
        return by_rule if self.tolerance is None else replace(by_rule, tolerance=self.tolerance)

    @cached_property
    def calibrated(self):
        return promise(self.algorithm)

    @cached_property
    def seeds(self):
        return itertools.count()

    @property
    def e0(self):
        return 1.0 / self.calibrated.multiplier("vertices")

    @property
    def mu(self):
        return claimed_mu(self.calibrated.event)

    def rows(self, Z, targets):
        Z = np.asarray(Z, dtype=np.float64)
        return rows_of(csr_array(Z) if self.sparse else np.clip(Z, -1e200, 1e200), np.asarray(targets, float))

    def __call__(self, rows):
        with Gate(self.calibrated, NoiseSource(next(self.seeds))) as gate:
            return self.algorithm.run(rows, gate).weights

    def log_weights(self, rows, history):
        """Of all vertices, +e_0, -e_0, +e_1, ..., in every draw of a run that is led through this history."""
        with led(history) as seen:
            self(rows)
        scores = np.array([s for s, _ in seen])
        return NATS * np.stack([-scores, scores], axis=2).reshape(len(scores), -1)

    def drawn(self, rows):
        with led() as seen:
            self(rows)
        return [pick for _, pick in seen]

    def evidence(self, one, other):
        """A mechanism from either table to the log likelihood ratio of its vertices: the best test between the two."""

        def mechanism(world):
            history = self.drawn(world)
            return log_likelihood(self.log_weights(one, history), history) - log_likelihood(
                self.log_weights(other, history), history
            )

        return mechanism

    def range(self, one, other, history):
        """By how much a change of tables moves the log-weights of each draw: largest less smallest."""
        return np.ptp(self.log_weights(other, history) - self.log_weights(one, history), axis=1)


def log_likelihood(log_weights, history):
    places = [2 * j + (sign < 0) for j, sign in history]
    normal = np.logaddexp.reduce(log_weights, axis=1)
    return float(np.sum(log_weights[np.arange(len(places)), places] - normal))


@contextmanager
def one_vertex_at_a_time(draw):
    """Vertices are drawn by `draw`, also those of a compiled walk.

    The walk is made of the same compiled draw and step, and comes to the same vertices from the same words
    (`tests/solvers/frank_wolfe/test_frank_wolfe.py`): what is seen here one draw at a time is what it draws from.
    """
    walk = VertexWalk.draw

    def stepwise(self, grant, count, step, rounds=None):  # noqa: ARG001
        return walk(self, grant, count, step)

    with patch.object(Vertices, "draw", draw), patch.object(VertexWalk, "draw", stepwise):
        yield


@contextmanager
def led(history=None):
    """The scores and the vertex of every draw; given a history, its vertices are handed out in place of new ones."""
    seen, draw = [], Vertices.draw

    def recorded(self, grant):
        scores = whole_scores(self.sampler)
        if history is None:
            pick = draw(self, grant)
        else:
            grant.take()
            pick = history[len(seen)]
        seen.append((scores, pick))
        return pick

    with one_vertex_at_a_time(recorded):
        yield seen


def worst_rows(run):
    """All but row 0 balance each other; row 0 has entries beyond their bound, and is absent or turned in the other."""
    Z = np.tile([[1.0] * run.d, [-1.0] * run.d], (run.n // 2, 1))
    targets = np.tile([1.0, 1.0, -1.0, -1.0], run.n // 4) * (3.0 if run.loss == "squared" else 1.0)
    other = Z.copy()
    other[0] = 1e200 if run.adjacency == "add-remove" else -Z[0]
    return run.rows(Z, targets), run.rows(other, targets)


# --- no row moves a draw further than it pays for --------------------------------------------------------------------


@st.composite
def neighbours(draw):
    """A run, two tables that differ in row 0, and a history."""
    loss = draw(st.sampled_from(FrankWolfe.serves.losses)).name
    run = Run(
        loss,
        draw(st.sampled_from(FrankWolfe.serves.adjacencies)),
        draw(st.booleans()),
        count=draw(st.sampled_from([1, 4, 12])),
        epsilon=draw(st.sampled_from([0.1, 2.0, 50.0])),
        clip=draw(st.sampled_from([None, 0.4])),
    )
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    Z = rng.normal(size=(N, D)) * 10.0 ** rng.uniform(-3, 2, size=(N, 1)) * (rng.random((N, D)) < 0.7)
    targets = rng.normal(size=N) * 3.0 if loss == "squared" else rng.choice([-1.0, 1.0], N)
    other, labels = Z.copy(), targets.copy()
    if run.adjacency == "add-remove":
        other[0] = 1e200  # a row whose norm overflows is absent
    else:
        other[0], labels[0] = rng.normal(size=D) * 10.0 ** rng.uniform(-3, 2), rng.choice([-1.0, 1.0])
    history = [(int(rng.integers(D)), int(rng.choice([-1, 1]))) for _ in range(run.count)]
    return run, run.rows(Z, targets), run.rows(other, labels), history


@given(neighbours())
@settings(max_examples=150, deadline=None)
def test_no_row_moves_the_weights_of_a_draw_by_more_than_its_range(case):
    run, one, other, history = case
    assert np.all(run.range(one, other, history) <= run.e0 * ROUNDING)
    assert np.all(run.range(other, one, history) <= run.e0 * ROUNDING)


@every_loss
@either_adjacency
@either_table
def test_the_worst_row_takes_nearly_all_of_the_first_range(loss, adjacency, sparse):
    run = Run(loss, adjacency, sparse, count=1, clip=0.5)  # which all slopes at zero reach
    one, other = worst_rows(run)
    other = rows_of(other.Z, other.targets)
    Z, turned = (t.Z.toarray() if sparse else t.Z.copy() for t in (one, other))
    Z[0, 1:] *= -1.0  # raises some scores and lowers others
    if adjacency == "replace-one":
        turned[0] = -Z[0]
    ranges = run.range(run.rows(Z, one.targets), run.rows(turned, one.targets), [(0, 1)])
    assert 0.999 * run.e0 <= ranges[0] <= run.e0 * ROUNDING


@either_table
@pytest.mark.parametrize(("tolerance", "fewest"), [(None, 4), (0.02, 10)], ids=["rule", "near"])
def test_a_row_that_is_due_moves_no_more_than_others(sparse, tolerance, fewest):
    """Row 0 is far out at first, and then left alone while all weights shrink: its slope is out of date in between."""
    run = Run(sparse=sparse, count=40, tolerance=tolerance)
    Z = np.eye(D)[np.arange(N) % D]
    other = Z.copy()
    other[0] = 1e200
    history = [(0, 1)] * 3 + [(1, 1), (2, -1)] * 20
    ranges = run.range(run.rows(Z, np.ones(N)), run.rows(other, np.ones(N)), history)
    assert np.all(ranges <= run.e0 * ROUNDING)
    assert fewest <= len(set(ranges.tolist())) < run.count  # it was put right several times, and not every time


# --- audits ----------------------------------------------------------------------------------------------------------


DELTA = 0.05  # where rates of a few percent are counted


def audited(run, one, other, trials=900):
    return audit.run(run.evidence(one, other), one, other, trials)


def mu_of(outputs, confidence=0.999):
    return audit.mu_lower_bound(outputs, confidence=confidence, score=lambda ratios: ratios[:, 0])


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ["add-remove", pytest.param("replace-one", marks=pytest.mark.slow)])
@audited_lengths
def test_the_best_test_between_two_worlds_finds_no_more_than_is_claimed(count, adjacency):
    run = Run("logistic", adjacency, sparse=adjacency == "add-remove", count=count, clip=0.5)
    outputs = audited(run, *worst_rows(run))
    assert run.mu / 4 <= mu_of(outputs) <= run.mu
    epsilon = audit.epsilon_lower_bound(outputs, DELTA, confidence=0.999, score=lambda ratios: ratios[:, 0])
    assert 0.0 < epsilon <= min(recomputed(run.calibrated.event, DELTA), count * run.e0)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["squared", "squared_hinge"])
def test_other_losses_pass_the_same_audit(loss):
    run = Run(loss, sparse=True)
    assert mu_of(audited(run, *worst_rows(run))) <= run.mu


@audited_lengths
def test_half_the_noise_is_caught(count):
    run = Run("logistic", count=count, clip=0.5)
    one, other = worst_rows(run)
    e0 = run.e0
    with half_the_noise():
        outputs = audited(run, one, other, 1_000)
        assert np.max(run.range(one, other, run.drawn(one))) > 1.5 * e0
    assert mu_of(outputs, confidence=0.99) > run.mu


# --- the sign --------------------------------------------------------------------------------------------------------


def lone_row(label):
    return rows_of(np.ones((1, 1)), np.array([label]), 1.0)


def sign_run():
    return FrankWolfe(n_iter=1).at(task_of("logistic", 1, 1, 1.0, "replace-one", l1_radius=1.0))


def signs(algorithm, label, trials, seed=0):
    """How often the weight of a model of one row is positive."""
    calibrated, source = promise(algorithm), NoiseSource(seed)
    positive = 0
    for _ in range(trials):
        with Gate(calibrated, source) as gate:
            weights = algorithm.run(lone_row(label), gate).weights
            positive += weights[0, 0] > 0.0
    return positive


def exact_sign(original):
    """A draw of the index alone, with the sign that the gradient has: the paper's line 16."""

    def draw(self, grant):
        j, _ = original(self, grant)
        return j, -1 if whole_scores(self.sampler)[j] > 0 else 1

    return draw


def test_one_row_does_not_tell_its_label_by_the_sign():
    """x = 1 and either label: the gradient's sign is the label's, and the sign drawn hardly depends on it."""
    algorithm, trials = sign_run(), 4_000
    e0 = 1.0 / promise(algorithm).multiplier("vertices")
    with_one, with_other = (signs(algorithm, label, trials) / trials for label in (1.0, -1.0))
    # A slope of 1/2 at a limit of sigmoid(1): the log-weights differ by that part of e0 / 4 for each sign and label.
    chance = 1.0 / (1.0 + math.exp(-e0 / 2.0 * 0.5 * (1.0 + math.exp(-1.0))))
    deviation = math.sqrt(0.25 / trials)
    assert abs(with_one - chance) < 5 * deviation
    assert abs(with_other - (1.0 - chance)) < 5 * deviation


def test_a_mutation_that_reads_the_sign_off_the_gradient_is_caught():
    algorithm = sign_run()
    epsilon, delta = algorithm.task.budget.epsilon, algorithm.task.budget.delta
    with one_vertex_at_a_time(exact_sign(Vertices.draw)):
        assert signs(algorithm, 1.0, 50) == 50
        assert signs(algorithm, -1.0, 50) == 0
        outputs = audit.run(lambda rows: _weights(algorithm, rows), lone_row(1.0), lone_row(-1.0), 400)
    assert audit.epsilon_lower_bound(outputs, delta, confidence=0.999) > epsilon
    honest = audit.run(lambda rows: _weights(algorithm, rows), lone_row(1.0), lone_row(-1.0), 400)
    assert audit.epsilon_lower_bound(honest, delta, confidence=0.999) <= epsilon


_fresh = itertools.count()


def _weights(algorithm, rows):
    with Gate(promise(algorithm), NoiseSource(next(_fresh))) as gate:
        return algorithm.run(rows, gate).weights[0, :1]


@pytest.mark.parametrize("count", [5, 20])
def test_the_same_mutation_is_caught_on_many_rows(count):
    """The one row that turns the sum decides every sign."""
    run = Run(count=count, epsilon=1.0, adjacency="replace-one", d=1)
    targets = np.tile([1.0, -1.0], N // 2)
    one, other = (run.rows(np.ones((N, 1)), np.append(first, targets[1:])) for first in (1.0, -1.0))
    other = rows_of(other.Z, np.append([-1.0], targets[1:]))

    def first_sign(rows):
        return np.array([float(run.drawn(rows)[0][1])])

    with one_vertex_at_a_time(exact_sign(Vertices.draw)):
        outputs = audit.run(first_sign, one, other, 400)
    assert audit.epsilon_lower_bound(outputs, 1e-3, confidence=0.999) > run.epsilon


# --- other mistakes --------------------------------------------------------------------------------------------------


@either_table
def test_a_bound_that_entries_do_not_keep_is_caught(sparse):
    run = Run(sparse=sparse, count=3, clip=0.5)
    Z, absent = np.zeros((N, D)), np.zeros((N, D))
    Z[0], absent[0] = 50.0, 1e200
    one, other, history = run.rows(Z, np.ones(N)), run.rows(absent, np.ones(N)), [(0, 1)] * 3
    assert np.all(run.range(one, other, history) <= run.e0 * ROUNDING)
    honest = Scoring.unit.fget
    with patch.object(Scoring, "unit", property(lambda scoring: 3.0 * honest(scoring))):  # of a third of the bound
        assert np.max(run.range(one, other, history)) > 2.0 * run.e0


def test_lazy_scores_without_their_rounding_would_be_caught():
    """The units that rounding takes are left free: a row adds less than a draw allows by at least that."""
    run = Run("squared", sparse=True, count=30, epsilon=0.05)
    most = contribution_units(1.0 / run.e0, "add-remove")
    one, other = worst_rows(run)
    seen = []
    start = LazyScores.__init__

    def noted(self, *given):
        start(self, *given)
        seen.append(self._scoring.units)

    with patch.object(LazyScores, "__init__", noted):
        ranges = run.range(one, other, [(0, 1), (1, -1), (2, 1)] * 10)
    assert set(seen) == {most - 2}
    assert np.all(ranges <= run.e0)


def test_a_plan_with_more_noise_is_not_met_by_more_units():
    """The mechanism itself refuses contributions that its plan does not cover."""
    run = Run(count=2)
    one, _ = worst_rows(run)
    free = contribution_units(1.0 / run.e0, "add-remove")
    with (
        patch("tacit.solvers.frank_wolfe._units", lambda *_: free + 1),
        pytest.raises(ValueError, match="contribution must be at most"),
    ):
        run(one)


def test_a_compiled_step_raises_buckets_with_their_scores():
    """Envelopes below a score would bend the law: none is, after any step."""
    run = Run(sparse=True, count=60, epsilon=50.0)
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.7)
    seen = []

    def checked(self, grant):
        octaves = [whole_octave(s) for s in whole_scores(self.sampler)]
        assert np.all(octaves <= self.sampler.buckets.octave)
        seen.append(octaves)
        grant.take()
        return len(seen) % D, 1

    with one_vertex_at_a_time(checked):
        run(run.rows(Z, rng.choice([-1.0, 1.0], N)))
    assert len(seen) == 60
    assert len({max(o) for o in seen}) > 2
