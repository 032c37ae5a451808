"""No row moves a release further than its noise covers; what runs is what is accounted; broken versions are caught.

Seeds are fixed. A fresh seed would flag an honest release with probability below 1e-6, the confidence of the audits.
"""

import itertools
import math

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, LaplaceDpEvent
from dp_accounting.pld import PLDAccountant
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.linear_model import LinearRegression, LogisticRegression

import tacit
from tacit.metrics import (
    R2,
    Accuracy,
    LogLoss,
    MeanSquaredError,
    RocAuc,
    accuracy_score,
    evaluate,
    r2_score,
    roc_auc_score,
)
from tacit.metrics.ranking import ClassCounts
from tacit.metrics.regression import SquaredErrors
from tacit.privacy import Budget, Gate, audit, compose, epsilon_of
from tacit.privacy.mechanisms import Sensitivity
from tests.guarantees.worlds import half_the_noise

from .support import ADJACENCIES, CASES, LAW_NORM, LAWS, Case, every_adjacency, every_case, every_law, noisy_sums

HONEST = 1 - 1e-6
TRIALS = 1_000
CLAIM = {"laplace": 2.0, "gaussian": 2.0}  # epsilon, and mu

# --- sensitivity -------------------------------------------------------------------------------------------

numbers = st.floats(-1e12, 1e12)
rates = st.floats(0.0, 1.0)
clips = st.floats(1e-12, 0.4999)
bounds = st.tuples(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6)).map(lambda pair: (pair[0], pair[0] + pair[1]))
METRICS = [  # each with its rows
    st.tuples(st.just(Accuracy()), st.just(st.tuples(st.integers(0, 2), st.integers(0, 2)))),
    st.tuples(st.builds(LogLoss, clips), st.just(st.tuples(st.booleans(), rates))),
    st.tuples(st.builds(RocAuc, st.integers(2, 9)), st.just(st.tuples(st.booleans(), rates))),
    st.tuples(st.builds(RocAuc, st.integers(2, 9), bounds), st.just(st.tuples(st.booleans(), numbers))),
    st.tuples(st.builds(MeanSquaredError, bounds), st.just(st.tuples(numbers, numbers))),
    st.tuples(st.builds(R2, bounds), st.just(st.tuples(numbers, numbers))),
]


@settings(derandomize=True, deadline=None, max_examples=300, database=None)
@given(st.data())
def test_no_row_moves_the_sums_further_than_their_sensitivity(data):
    metric, rows = data.draw(st.one_of(METRICS))
    others = data.draw(st.lists(rows, min_size=2, max_size=8))
    case = Case(metric, others, data.draw(rows), data.draw(rows))
    query = case.query
    for adjacency, law in itertools.product(ADJACENCIES, LAWS):
        here, there = (case.sums(world) for world in case.worlds(adjacency))
        moved = np.linalg.norm(here - there, LAW_NORM[law])
        assert moved <= query.sensitivity(law).under(adjacency)
        assert np.max(np.abs(here)) <= query.bound


@every_law
@every_adjacency
@every_case
def test_the_worst_row_moves_the_sums_by_their_sensitivity(case, adjacency, law):
    here, there = (case.sums(world) for world in case.worlds(adjacency))
    allowed = case.query.sensitivity(law).under(adjacency)
    moved = np.linalg.norm(here - there, LAW_NORM[law])
    tight = 0.997 if (adjacency, law) == ("replace-one", "gaussian") and case is CASES["r2"] else 1.0 - 1e-9
    assert tight * allowed <= moved <= allowed


def test_two_rows_of_r2_are_as_far_apart_as_derived():
    t = p = np.linspace(-1.0, 1.0, 33)
    v = (2 + math.sqrt(2)) / 4
    t = np.sort(np.r_[t, v - 1])
    query = SquaredErrors(2, -1.0, 1.0, r2=True)
    rows = np.array([query.sums(np.array([a]), np.array([b])) for a in t for b in p])
    for law in LAWS:
        apart = max(np.linalg.norm(rows - row, LAW_NORM[law], axis=1).max() for row in rows)
        assert 0.9995 * query.apart(law) <= apart <= query.apart(law)


def test_sums_of_floats_are_right_to_the_last_bit():
    """One row among many that cancel: an ordinary sum would lose it, and leave the sensitivity with it."""
    query = SquaredErrors(200_001, -1.0, 1.0, r2=True)
    rng = np.random.default_rng(0)
    y, p = rng.uniform(-1, 1, 200_001), rng.uniform(-1, 1, 200_001)
    with_row, without = query.sums(y, p), query.sums(y[:-1], p[:-1])
    exact = [3 * ((y[-1] - p[-1]) ** 2 / 2 - 1), y[-1], 2 * y[-1] ** 2 - 1]
    slack = query.sensitivity("laplace").add_remove - 5.0
    assert 0 < slack < 1e-9
    np.testing.assert_allclose(with_row - without, exact, rtol=0, atol=slack)


# --- accounting --------------------------------------------------------------------------------------------


@every_law
@every_adjacency
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_the_event_costs_what_was_asked_for(epsilon, adjacency, law):
    rng = np.random.default_rng(0)
    y, p = rng.integers(0, 2, 500), rng.random(500)
    score = roc_auc_score(y, p, epsilon=epsilon, delta=1e-5, adjacency=adjacency, mechanism=law)
    guarantee = score.guarantee
    assert (guarantee.epsilon, guarantee.delta, guarantee.adjacency) == (epsilon, 1e-5, adjacency)
    assert (guarantee.n_rows, guarantee.seeded) == (500, False)
    assert isinstance(guarantee.event, LaplaceDpEvent if law == "laplace" else GaussianDpEvent)
    found = PLDAccountant().compose(guarantee.event).get_epsilon(1e-5)
    assert 0.98 * epsilon <= found <= epsilon


@every_law
@every_adjacency
def test_the_noise_is_that_of_the_event(adjacency, law):
    """2,000 noisy counts of nothing are noise alone: chi-square, with a false alarm of 1e-6."""
    query = ClassCounts(50, tuple(np.arange(1, 1_000) / 1_000))
    noise, deviation, guarantee = noisy_sums(query, np.zeros(2_000), epsilon=1.0, law=law, adjacency=adjacency)
    multiplier = guarantee.event.noise_multiplier
    # One count moves, or two of them.
    norms = {("laplace", "replace-one"): 2.0, ("gaussian", "replace-one"): math.sqrt(2.0)}
    scale = multiplier * norms.get((law, adjacency), 1.0)
    assert deviation == pytest.approx(scale * (math.sqrt(2.0) if law == "laplace" else 1.0))
    # |Laplace| / b and (normal / s)^2 / 2 are sums to a gamma law.
    total, shape = (
        (np.abs(noise).sum() / scale, 2_000) if law == "laplace" else (np.sum((noise / scale) ** 2) / 2, 1_000)
    )
    low, high = stats.gamma.ppf([5e-7, 1 - 5e-7], shape)
    assert low < total < high


def test_auto_takes_the_smaller_noise():
    y = np.arange(4_000) % 2

    def noise(mechanism, **options):
        return accuracy_score(y, y, mechanism=mechanism, **{"epsilon": 1.0, "delta": 1e-6, **options}).noise

    assert noise("auto") == noise("laplace") < noise("gaussian") / 2
    little = {"epsilon": 0.001, "delta": 2e-4}
    assert noise("auto", **little) == noise("gaussian", **little) < noise("laplace", **little)
    # Where Laplace noise is not served, Gaussian noise is.
    assert noise("auto", epsilon=1_000.0) == noise("gaussian", epsilon=1_000.0)


def test_what_runs_is_what_is_planned(monkeypatch):
    granted = []
    release = Gate.release

    def noted(gate, name, mechanism, *values):
        granted.append((name, mechanism.kind))
        return release(gate, name, mechanism, *values)

    monkeypatch.setattr(Gate, "release", noted)
    X = np.random.default_rng(0).normal(size=(300, 2))
    model = LogisticRegression().fit(X, X[:, 0] > 0)
    scores = evaluate(model, X, X[:, 0] > 0, epsilon=1.0, mechanism="laplace")
    assert list(scores) == ["accuracy", "log_loss", "roc_auc"]
    assert [kind for _, kind in granted] == ["laplace"] * 3
    assert len({name for name, _ in granted}) == 3
    [guarantee] = {score.guarantee for score in scores.values()}
    assert len(guarantee.event.events) == 3
    assert 0.98 <= epsilon_of(guarantee.event, guarantee.delta) <= 1.0


def test_r2_and_mean_squared_error_are_one_release():
    X = np.linspace(0.0, 1.0, 500)[:, None]
    model = LinearRegression().fit(X, X[:, 0])
    scores = evaluate(model, X, X[:, 0], epsilon=1.0, metrics=(R2((0.0, 1.0)), "mean_squared_error"))
    assert list(scores) == ["r2", "mean_squared_error"]
    assert isinstance(scores["r2"].guarantee.event, LaplaceDpEvent)  # a single one


def test_guarantees_compose():
    y = np.arange(1_000) % 2
    X = np.random.default_rng(0).normal(size=(1_000, 1)) + y[:, None]
    model = tacit.LogisticRegression(epsilon=1.0, row_norm=4.0).fit(X, y)
    score = accuracy_score(y, model.predict(X), epsilon=0.5, mechanism="gaussian")
    joint = compose([model.guarantee_, score.guarantee])
    assert 1.0 < joint.epsilon < 1.5
    assert joint.mu == pytest.approx(math.hypot(model.guarantee_.mu, score.guarantee.mu))
    mixed = compose([model.guarantee_, accuracy_score(y, y, epsilon=0.5).guarantee])
    assert 1.0 < mixed.epsilon <= 1.5


def test_a_seed_repeats_and_marks_the_guarantee():
    y = np.arange(50) % 2
    first, again, other = (accuracy_score(y, y[::-1], epsilon=0.1, random_state=seed) for seed in (3, 3, 4))
    assert first == again
    assert first.value != other.value
    assert first.guarantee.seeded
    assert not accuracy_score(y, y, epsilon=0.1).guarantee.seeded
    fresh = {r2_score(y, y / 2, y_bounds=(0, 1), epsilon=50.0).value for _ in range(4)}
    assert len(fresh) == 4


def test_a_seed_warns_where_the_call_is():
    with pytest.warns(UserWarning, match="random_state is set") as caught:
        accuracy_score([0, 1], [0, 1], epsilon=1.0, delta=1e-3, random_state=0)
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="not below 1/n") as caught:
        accuracy_score([0, 1], [0, 1], epsilon=1.0, delta=0.6)
    assert caught[0].filename == __file__


# --- audits ------------------------------------------------------------------------------------------------


def attack(case, law, adjacency, confidence=HONEST):
    """The lower bound on what is claimed, by the likelihood ratio of the two worlds: the best test there is."""
    claim = CLAIM[law]
    epsilon = claim if law == "laplace" else Budget.from_mu(claim, 1e-6).epsilon
    exact = [case.sums(world) for world in case.worlds(adjacency)]
    seeds = itertools.count()

    def run(sums):
        return noisy_sums(case.query, sums, epsilon=epsilon, law=law, adjacency=adjacency, seed=next(seeds))[0]

    def likelihood_ratio(world):
        here, there = (np.sum(np.abs(world - sums) ** LAW_NORM[law], axis=1) for sums in exact)
        return there - here

    outputs = audit.run(run, *exact, TRIALS)
    if law == "gaussian":
        return audit.mu_lower_bound(outputs, confidence=confidence, score=likelihood_ratio)
    return audit.epsilon_lower_bound(outputs, 1e-6, confidence=confidence, score=likelihood_ratio)


@every_law
@pytest.mark.parametrize("adjacency", ["add-remove", pytest.param("replace-one", marks=pytest.mark.slow)])
@every_case
def test_the_audit_finds_no_more_than_was_promised(case, adjacency, law):
    # It does look: half of mu, and a quarter of epsilon where Laplace noise on several sums hides the worst case.
    bound = attack(case, law, adjacency)
    assert (0.5 if law == "gaussian" else 0.25) * CLAIM[law] <= bound <= CLAIM[law]


@every_law
@every_case
def test_half_the_noise_is_caught(case, law):
    with half_the_noise():
        assert attack(case, law, "add-remove", confidence=0.99) > CLAIM[law]


@pytest.mark.slow
@every_law
@every_case
def test_a_sensitivity_that_forgets_the_adjacency_is_caught(case, law, monkeypatch):
    monkeypatch.setattr(Sensitivity, "under", lambda self, _: self.add_remove)
    assert attack(case, law, "replace-one", confidence=0.99) > CLAIM[law]


def test_a_score_tells_no_more_than_its_sums():
    """From outside: one row's prediction in the accuracy of ten, through the public function alone."""
    y, right, wrong = np.zeros(10, int), np.zeros(10, int), np.r_[1, np.zeros(9, int)]
    seeds = itertools.count()

    def run(y_pred):
        score = accuracy_score(
            y, y_pred, epsilon=1.0, delta=1e-3, adjacency="replace-one", mechanism="laplace", random_state=next(seeds)
        )
        return score.value

    assert 0.2 < audit.epsilon_lower_bound(audit.run(run, right, wrong, TRIALS), 1e-3, confidence=HONEST) <= 1.0
    with half_the_noise():
        assert audit.epsilon_lower_bound(audit.run(run, right, wrong, TRIALS), 1e-3, confidence=0.99) > 1.0
