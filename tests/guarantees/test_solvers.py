"""What every solver promises, for every loss, adjacency and kind of data it serves; a solver joins by being registered.

Seeds are fixed, so a test passes always or never. Audits run at 99.9% confidence.

Neighbours. Replace-one neighbours are two tables that differ in one row. Add-remove neighbours cannot be written as
two tables, because the number of rows is public and an absent row contributes nothing, which no row of numbers does.
So add-remove is tested in two ways. On tables: replacing a row is removing one and adding another, so a fit that is
mu-GDP under add-remove is 2 mu-GDP for tables that differ in one row. On the solver's own input: a row whose norm
overflows contributes zero to every sum, which is what an absent row does, so there mu itself is tested.
"""

import itertools
import math
import warnings
from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, ZCDpEvent
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from scipy.sparse import csr_array
from scipy.special import logsumexp
from sklearn import linear_model

from tacit.estimators.driver import Request, private_fit
from tacit.preprocessing.scales import _NORM_GRID
from tacit.privacy import Budget, Meter, NoiseSource, Plan, Release, audit, events
from tacit.privacy.mechanisms import GaussianVector, LaplaceVector, Sensitivity
from tacit.privacy.meter import PlanViolationError
from tacit.problems import clip_rows
from tacit.solvers import SOLVERS, Rows, Task, gradient

from .conftest import half_the_noise, mu_between, transcript, two_worlds

N, D, CLASSES = 24, 3, 3
CONFIDENCE = 0.999
ROUNDING = 1 + 1e-12  # of a distance that a test computes
pytestmark = pytest.mark.filterwarnings("ignore:.*(random_state is set|budget is too small):UserWarning")


@dataclass(frozen=True)
class Case:
    """A solver with what it is asked to serve; `wide` takes the form for many columns."""

    solver: Any
    loss: str
    adjacency: str
    sparse: bool = False
    declared: bool = False
    wide: bool = False

    def __str__(self):
        words = (self.solver.name, self.loss, self.adjacency, "sparse" if self.sparse else "dense")
        return " ".join((*words, *["declared"] * self.declared, *["wide"] * self.wide))

    def request(self, epsilon=5.0, delta=1e-3, n=N, d=D, ridge=0.01, fit_intercept=True, seed=None):
        outputs = CLASSES if self.loss == "multinomial" else 1
        task = Task(n, d, self.loss, outputs, self.sparse, fit_intercept, Budget(epsilon, delta, self.adjacency))
        y_bounds = (-5.0, 5.0) if self.declared and self.loss == "squared" else None
        return Request(task, self.solver, ridge, 20.0 if self.declared else None, y_bounds, seed, 0)

    def store(self, table):
        return csr_array(table) if self.sparse else table

    def targets(self, margins):
        """Targets that follow the margins."""
        if self.loss == "multinomial":
            return np.digitize(margins, [-1.0, 1.0]).astype(np.float64)
        return np.where(margins > 0, 1.0, -1.0) if self.loss == "logistic" else 2.0 * margins + 1.0

    @property
    def far_targets(self):
        """Two targets as far apart as can be."""
        return {"logistic": (-1.0, 1.0), "multinomial": (0.0, 2.0), "squared": (-1e6, 1e6)}[self.loss]


BASIC = [
    Case(solver, loss, adjacency)
    for solver in SOLVERS.values()
    for loss in solver.losses
    for adjacency in solver.adjacencies
]
CASES = [replace(case, sparse=s, declared=b) for case in BASIC for s in (False, True) for b in (False, True)]
WIDE = [replace(case, sparse=s, declared=True, wide=True) for case in BASIC for s in (False, True)]

basic = pytest.mark.parametrize("case", BASIC, ids=str)
every_case = pytest.mark.parametrize("case", CASES + WIDE, ids=str)


@pytest.fixture(autouse=True)
def few_columns_are_many(request, monkeypatch):
    """Wide cases take the form for thousands of columns at three."""
    case = getattr(request.node, "callspec", None) and request.node.callspec.params.get("case")
    if case and case.wide:
        monkeypatch.setattr(gradient, "FULL_MATRIX", 1)


def table(n=N, d=D, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.resize([1.0, 8.0, 0.2], d) + np.resize([0.0, 3.0, -0.5], d)
    return X * (rng.random((n, d)) < 0.8)


def sample(case, n=N, d=D, seed=0):
    X = table(n, d, seed)
    noise = np.random.default_rng(seed + 1).normal(size=n)
    return X, case.targets((X - X.mean(axis=0)) @ np.resize([1.0, -0.1, 3.0], d) + noise)


# Row 0 of one world and of the other, and whether its targets differ too.
PAIRS = {
    "nothing": ([0.0, 0.0, 0.0], [5.0, 50.0, -2.0], False),
    "huge": ([1e300, -1e300, 1e300], [-1e300, 1e300, 1e300], True),
    "one feature": ([40.0, 0.0, 0.0], [-40.0, 0.0, 0.0], True),
    "all features": ([3.0, 30.0, 1.0], [-3.0, -30.0, -1.0], False),
    "label": ([2.0, 20.0, 0.5], [2.0, 20.0, 0.5], True),
}


def pair_of_tables(case, name):
    one, other, relabel = PAIRS[name]
    low, high = case.far_targets
    worlds = []
    for row, target in ((one, low), (other, high if relabel else low)):
        X, targets = sample(case)
        X[0], targets[0] = row, target
        worlds.append((case.store(X), targets))
    return worlds


def fresh_fits(case, **options):
    """A mechanism from (X, targets) to a fit, with new noise each time it is called."""
    seeds = itertools.count()
    return lambda data: private_fit(case.request(seed=next(seeds), **options), *data)


def told(fit):
    """All that a fit tells, as one vector."""
    clip = [] if np.all(np.isinf(fit.clip_low)) else [fit.clip_low, fit.clip_high]
    bounds = [] if fit.y_bounds is None else [fit.y_bounds]
    return np.concatenate([fit.coef.ravel(), fit.intercept, *clip, *bounds])


def standardised(fit):
    """The same, as weights on the bounded data and logarithms of scales, which a linear audit sees better."""
    coef, intercept, scales = fit.coef, fit.intercept, []
    if np.all(np.isfinite(fit.clip_low)):
        centre, scale = (fit.clip_low + fit.clip_high) / 2, (fit.clip_high - fit.clip_low) / 6
        coef, intercept, scales = coef * scale, intercept + coef @ centre, [np.log(scale), centre / scale]
    if fit.y_bounds is not None:
        low, high = fit.y_bounds
        unit = (high - low) / 6
        coef, intercept = coef / unit, (intercept - (low + high) / 2) / unit
        scales += [[math.log(unit), low / unit]]
    return np.concatenate([coef.ravel(), intercept, *scales])


# --- a plan is a promise ---------------------------------------------------------------------------------------------


@every_case
@pytest.mark.parametrize("epsilon", [0.5, math.inf])
def test_a_fit_makes_the_releases_it_planned(case, epsilon, monkeypatch):
    made, plans = Counter(), []
    grant = Meter.grant

    def counted(meter, name, kind):
        made[name, kind] += 1
        plans.append(meter._calibrated)
        return grant(meter, name, kind)

    monkeypatch.setattr(Meter, "grant", counted)
    fit = private_fit(case.request(epsilon), case.store(sample(case)[0]), sample(case)[1])
    calibrated = plans[0]
    assert all(plan is calibrated for plan in plans)
    assert made == {(r.name, r.kind): r.count for r in calibrated.plan.releases}
    assert fit.guarantee.event == calibrated.event
    kinds = Counter()
    for leaf, times in events.walk(fit.guarantee.event):
        kinds[type(leaf)] += times
    gaussian = sum(count for (_, kind), count in made.items() if kind == "gaussian")
    assert (kinds[GaussianDpEvent], kinds[ZCDpEvent]) == (gaussian, made.total() - gaussian)


@every_case
def test_a_plan_does_not_depend_on_the_data(case):
    request = case.request(0.5)
    fits = [private_fit(request, case.store(X), t) for X, t in (sample(case), sample(case, seed=7))]
    fits.append(private_fit(request, case.store(np.zeros((N, D))), np.full(N, case.far_targets[1])))
    assert len({fit.guarantee.event for fit in fits}) == 1
    assert all(np.all(np.isfinite(told(fit))) for fit in fits)


@lru_cache  # several cases plan the same event
def recomputed(event, delta):
    selects = any(isinstance(leaf, ZCDpEvent) for leaf, _ in events.walk(event))
    accountant = RdpAccountant(orders=1.0 + np.geomspace(0.01, 1e5, 2_000)) if selects else PLDAccountant()
    return accountant.compose(event).get_epsilon(delta)


@every_case
@pytest.mark.parametrize("epsilon", [0.1, 1.0, pytest.param(8.0, marks=pytest.mark.slow)])
def test_another_accountant_finds_the_same_epsilon(case, epsilon):
    guarantee = private_fit(case.request(epsilon, N**-1.5), *pair_of_tables(case, "label")[0]).guarantee
    assert 0.98 * epsilon <= recomputed(guarantee.event, guarantee.delta) <= epsilon == guarantee.epsilon


# --- no row moves a release further than its noise covers ------------------------------------------------------------


def claimed_mu(guarantee):
    """From the noise multipliers alone: sqrt(sum of 1 / z^2) over Gaussian releases."""
    leaves = [(leaf, times) for leaf, times in events.walk(guarantee.event) if isinstance(leaf, GaussianDpEvent)]
    return math.sqrt(sum(times / leaf.noise_multiplier**2 for leaf, times in leaves))


@every_case
@pytest.mark.parametrize("name", PAIRS)
def test_one_row_moves_no_release_too_far(case, name):
    worlds = pair_of_tables(case, name)
    fit = fresh_fits(case)
    group = 1 if case.adjacency == "replace-one" else 2
    mu = claimed_mu(fit(worlds[0]).guarantee)
    for one, other in (worlds, worlds[::-1], worlds):
        pairs = two_worlds(fit, one, other)
        assert max(step.moved(world) for step, world in pairs) <= group * ROUNDING
        assert mu_between(pairs) <= group * mu * ROUNDING


@every_case
def test_no_random_row_moves_a_release_too_far(case):
    rng = np.random.default_rng(0)
    for _ in range(8):
        fit = fresh_fits(case, epsilon=10 ** rng.uniform(-1, 3), fit_intercept=rng.random() < 0.7)
        worlds = []
        for _ in range(2):
            X, targets = sample(case)
            X[0] = rng.normal(size=D) * 10 ** rng.uniform(-3, 3, size=D)
            targets[0] = rng.choice(case.far_targets)
            worlds.append((case.store(X), targets))
        group = 1 if case.adjacency == "replace-one" else 2
        assert all(step.moved(world) <= group * ROUNDING for step, world in two_worlds(fit, *worlds))


def wrong_noise(steps):
    """Names of the Gaussian releases whose noise is not what it should be, by a chi-square test, or missing."""
    wrong = set()
    for name in {step.name for step in steps if not step.is_selection}:
        named = [step for step in steps if step.name == name]
        squares = sum(np.sum(np.square(step.released - step.exact)) / step.noise**2 for step in named)
        freedom = sum(step.freedom for step in named)
        if abs(squares - freedom) > 5 * math.sqrt(2 * freedom) or any(np.any(s.released == s.exact) for s in named):
            wrong.add(name)
    return wrong


@every_case
def test_noise_is_as_large_as_the_guarantee_says(case):
    fit = fresh_fits(case)
    planned = Counter()
    with transcript() as steps:
        for _ in range(10):
            for leaf, times in events.walk(fit(pair_of_tables(case, "label")[0]).guarantee.event):
                planned[getattr(leaf, "noise_multiplier", None)] += times
    assert Counter(None if step.is_selection else step.multiplier for step in steps) == planned
    assert not wrong_noise(steps)


# --- the worst pair of rows, at the solver ---------------------------------------------------------------------------


def solver_runs(case, n=100, d=2):
    """A mechanism from bounded rows to weights that has the whole budget; without an intercept, so that z may turn."""
    task = case.request(n=n, d=d, fit_intercept=False).task
    calibrated = case.solver.plan(task, 1.0).calibrate(task.budget)
    seeds = itertools.count()

    def run(rows):
        with calibrated.meter(NoiseSource(next(seeds))) as meter:
            return case.solver.run(task, rows, np.zeros(d), meter)

    releases = zip(calibrated.plan.releases, calibrated.multipliers, strict=True)
    return run, math.sqrt(sum(release.count / z**2 for release, z in releases))


def worst_rows(case, n=100, d=2):
    """Others balance each other, so weights stay near 0 and row 0 keeps a gradient far above any clip.

    Replace-one: its opposite. Add-remove: a row whose norm overflows, which contributes zero to every sum.
    """
    Z = np.tile([[3.0] * d, [-3.0] * d], (n // 2, 1))
    low, high = (-3.0, 3.0) if case.loss == "squared" else case.far_targets
    targets = np.tile([low, low, high, high], n // 4)
    other = Z.copy()
    other[0] = -Z[0] if case.adjacency == "replace-one" else 1e200
    return Rows(case.store(Z), targets), Rows(case.store(other), targets)


def evidence(run, rows, other):
    """A mechanism from either of the two to the log likelihood ratio of its transcript: the best test between them."""

    def mechanism(world):
        pairs = two_worlds(run, world, other if world is rows else rows)
        ratio = sum(step.evidence(twin) for step, twin in pairs if not step.is_selection)
        return ratio if world is rows else -ratio

    return mechanism


@pytest.mark.parametrize("case", [replace(c, sparse=s) for c in BASIC for s in (False, True)], ids=str)
def test_the_worst_row_takes_nearly_all_of_mu_and_not_more(case):
    run, mu = solver_runs(case)
    rows, other = worst_rows(case)
    found = [mu_between(two_worlds(run, *worlds)) for worlds in ((rows, other), (other, rows)) for _ in range(5)]
    # Replace-one: opposite rows have the same second moments, so these 15% of mu^2 tell nothing.
    assert 0.8 * mu <= min(found)
    assert max(found) <= mu * ROUNDING


@basic
def test_the_best_test_between_two_worlds_finds_no_more_than_mu(case):
    run, mu = solver_runs(case)
    rows, other = worst_rows(case)
    bound = audit.mu_lower_bound(audit.run(evidence(run, rows, other), rows, other, 300), confidence=CONFIDENCE)
    assert mu / 4 <= bound <= mu


# --- audits of what a fit tells, nothing about it assumed ------------------------------------------------------------


def contradiction(outputs, guarantee, group):
    """By how much the outputs contradict the guarantee for a group of this size; at most 1 if they do not."""
    if all(isinstance(leaf, GaussianDpEvent) for leaf, _ in events.walk(guarantee.event)):
        return audit.mu_lower_bound(outputs, confidence=CONFIDENCE) / (group * guarantee.mu)
    epsilon, delta = guarantee.epsilon, guarantee.delta
    delta *= sum(math.exp(k * epsilon) for k in range(group))
    return audit.epsilon_lower_bound(outputs, delta, confidence=CONFIDENCE) / (group * epsilon)


def audit_of_fits(case, name, trials):
    fit = fresh_fits(case)
    worlds = pair_of_tables(case, name)
    outputs = audit.run(lambda data: standardised(fit(data)), *worlds, trials)
    return contradiction(outputs, fit(worlds[0]).guarantee, 1 if case.adjacency == "replace-one" else 2)


# Adjacencies, storage, declared bounds and pairs take turns; those that repeat a loss are for the long run.
TURNS = [
    pytest.param(
        replace(case, sparse=k % 4 == 3, declared=k % 2 == 1),
        list(PAIRS)[k % len(PAIRS)],
        marks=[pytest.mark.slow] * (k // 2 % 2 != k % 2),
    )
    for k, case in enumerate(BASIC)
]


@pytest.mark.parametrize(("case", "name"), TURNS, ids=str)
def test_an_audit_finds_nothing(case, name):
    assert audit_of_fits(case, name, 1_500) <= 1.0


@pytest.mark.slow
@every_case
def test_a_long_audit_finds_nothing(case):
    name = list(PAIRS)[(CASES + WIDE).index(case) % len(PAIRS)]
    assert audit_of_fits(case, name, 2_000) <= 1.0


# --- mistakes are caught ---------------------------------------------------------------------------------------------


@basic
def test_half_the_noise_is_caught(case):
    run, mu = solver_runs(case)
    rows, other = worst_rows(case)
    with half_the_noise():
        outputs = audit.run(evidence(run, rows, other), rows, other, 300)
        assert mu_between(two_worlds(run, rows, other)) > 1.5 * mu
    assert audit.mu_lower_bound(outputs, confidence=0.99) > mu


def test_half_the_noise_is_caught_by_its_outputs_alone():
    case = BASIC[0]
    run, mu = solver_runs(case)
    rows, other = worst_rows(case)
    with half_the_noise():
        outputs = audit.run(lambda world: run(world).ravel(), rows, other, 1_000)
    assert audit.mu_lower_bound(outputs, confidence=CONFIDENCE) > mu


GRADIENT = [case for case in BASIC if case.solver.name == "gradient"]


@pytest.mark.parametrize("case", GRADIENT, ids=str)
def test_a_gradient_that_is_not_clipped_is_caught(case, monkeypatch):
    clipped = gradient._Passes.gradient
    monkeypatch.setattr(gradient._Passes, "gradient", lambda self, w, _: clipped(self, w, 1e6))
    run, mu = solver_runs(case)
    assert mu_between(two_worlds(run, *worst_rows(case))) > mu


@pytest.mark.parametrize("case", GRADIENT, ids=str)
def test_second_moments_of_rows_that_are_not_clipped_are_caught(case, monkeypatch):
    blocks = gradient._Passes._blocks
    monkeypatch.setattr(gradient._Passes, "_blocks", lambda self, _: blocks(self, 1e6))
    run, _ = solver_runs(replace(case, adjacency="add-remove"))
    rows, _ = worst_rows(case)
    absent = Rows(rows.Z.copy(), rows.targets)
    absent.Z[0] = 0.0  # nothing, in a model without an intercept
    step, other = two_worlds(run, rows, absent)[0]
    assert step.moved(other) > 2


@basic
def test_one_release_without_noise_is_caught(case, monkeypatch):
    noisy, count = GaussianVector.release, itertools.count()

    def mostly_noisy(self, meter, name, value):
        out = noisy(self, meter, name, value)
        return np.array(value) if next(count) == 7 else out

    monkeypatch.setattr(GaussianVector, "release", mostly_noisy)
    run, _ = solver_runs(case)
    with transcript() as steps:
        run(worst_rows(case)[0])
    assert len(wrong_noise(steps)) == 1


@basic
def test_an_exact_mean_in_place_of_the_intercept_is_caught(case):
    fit = fresh_fits(case, epsilon=1.0)

    def leaky(data):
        released = fit(data)
        return told(replace(released, intercept=np.full_like(released.intercept, data[1].mean())))

    worlds = pair_of_tables(case, "label")
    outputs = audit.run(leaky, *worlds, 200)
    assert contradiction(outputs, fit(worlds[0]).guarantee, 1 if case.adjacency == "replace-one" else 2) > 1.0


@dataclass(frozen=True)
class Cheat:
    """A solver that plans like another and does something else at the end."""

    honest: Any
    extra: Any = None  # a mechanism to release once more by
    forgotten: bool = False

    def __getattr__(self, name):
        return getattr(self.honest, name)

    def plan(self, task, share):
        plan = self.honest.plan(task, share)
        return plan + Plan(Release("forgotten", "gaussian", share=0.01)) if self.forgotten else plan

    def run(self, task, rows, ridge, meter):
        weights = self.honest.run(task, rows, ridge, meter)
        if self.extra is not None:
            self.extra.release(meter, self.honest.plan(task, 1.0).releases[-1].name, weights)
        return weights


@basic
@pytest.mark.parametrize(
    ("cheat", "message"),
    [
        ({"extra": GaussianVector(Sensitivity.vector(1.0))}, "of which 0 are left"),
        ({"extra": LaplaceVector(Sensitivity.vector(1.0))}, "not as laplace"),
        ({"forgotten": True}, "neither released nor skipped"),
    ],
    ids=["one more", "another kind", "one less"],
)
def test_a_solver_that_breaks_its_plan_is_stopped(case, cheat, message):
    request = replace(case.request(), solver=Cheat(case.solver, **cheat))
    with pytest.raises(PlanViolationError, match=message):
        private_fit(request, *pair_of_tables(case, "label")[0])


# --- the limit without noise is scikit-learn -------------------------------------------------------------------------


def objective(case, Z, targets, coef, intercept, ridge):
    margins = Z @ coef.T + intercept
    if case.loss == "squared":
        loss = np.square(margins[:, 0] - targets) / 2
    elif case.loss == "logistic":
        loss = np.logaddexp(0.0, -targets * margins[:, 0])
    else:
        loss = logsumexp(margins, axis=1) - margins[np.arange(len(Z)), targets.astype(int)]
    return float(loss.mean() + ridge / 2 * np.sum(coef**2))


@pytest.mark.parametrize("epsilon", [1e8, math.inf])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("case", [c for c in CASES if c.adjacency == "add-remove" or c.declared], ids=str)
def test_without_noise_it_is_scikit_learn_on_the_bounded_data(case, fit_intercept, epsilon):
    n, ridge = 300, 0.01
    X, targets = sample(case, n)
    request = case.request(epsilon, n=n, ridge=ridge, fit_intercept=fit_intercept, seed=0)
    with transcript() as steps:
        fit = private_fit(request, case.store(X), targets)
    if case.sparse:  # rows clipped to the norm, in the user's units
        centre, scale = np.zeros(D), np.ones(D)
        Z = clip_rows(X, request.row_norm or _NORM_GRID[steps[0].released])
    else:
        centre, scale = (fit.clip_low + fit.clip_high) / 2, (fit.clip_high - fit.clip_low) / 6
        Z = (np.clip(X, fit.clip_low, fit.clip_high) - centre) / scale
    if fit.y_bounds is not None:
        targets = np.clip(targets, *fit.y_bounds)
    if case.loss == "squared":
        peer = linear_model.Ridge(alpha=ridge * n, fit_intercept=fit_intercept)
    else:
        peer = linear_model.LogisticRegression(C=1 / ridge / n, fit_intercept=fit_intercept, tol=1e-10, max_iter=10_000)
    peer.fit(Z, targets)
    best = objective(case, Z, targets, np.atleast_2d(peer.coef_), peer.intercept_, ridge)
    ours = objective(case, Z, targets, fit.coef * scale, fit.intercept + fit.coef @ centre, ridge)
    assert ours == pytest.approx(best, rel=1e-3)


# --- randomness ------------------------------------------------------------------------------------------------------


@every_case
def test_a_seed_repeats_the_noise_and_nothing_else_does(case):
    data = pair_of_tables(case, "label")[0]
    first, again, other, *fresh = (told(private_fit(case.request(seed=seed), *data)) for seed in (3, 3, 4, None, None))
    np.testing.assert_array_equal(first, again)
    assert np.all(first[: D + 1] != other[: D + 1])
    assert np.all(fresh[0][: D + 1] != fresh[1][: D + 1])


@every_case
def test_a_fit_leaves_its_input_as_it_was(case):
    X, targets = pair_of_tables(case, "all features")[0]
    before = X.copy(), targets.copy()
    private_fit(case.request(), X, targets)
    np.testing.assert_array_equal(X.toarray() if case.sparse else X, before[0].toarray() if case.sparse else before[0])
    np.testing.assert_array_equal(targets, before[1])


def test_the_warnings_of_a_fit_are_a_function_of_what_it_released():
    # Two worlds with the same transcript warn alike, to the letter.
    for case in CASES:
        heard = []
        one, other = pair_of_tables(case, "one feature")
        with warnings.catch_warnings(record=True) as caught, transcript() as steps:
            warnings.simplefilter("always")
            private_fit(case.request(0.5), *one)
        heard.append([str(w.message) for w in caught])
        with warnings.catch_warnings(record=True) as caught, transcript(steps):
            warnings.simplefilter("always")
            private_fit(case.request(0.5), *other)
        heard.append([str(w.message) for w in caught])
        assert heard[0] == heard[1]
