"""Audits of every solver, and of the audits: mistakes of every kind are caught.

Seeds are fixed, so a test passes always or never. Audits run at 99.9% confidence.
"""

import itertools
import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent

from tacit.blocks import Bounded, ExactPasses, Passes
from tacit.privacy import Gate, NoiseSource, Release, audit, events
from tacit.privacy.gate import PlanViolationError
from tacit.privacy.mechanisms import GaussianVector, LaplaceVector, SampledSteps, Sensitivity, vertices
from tacit.problems import Penalty
from tacit.solvers import SOLVERS, text
from tacit.solvers.coordinate import columns
from tacit.solvers.dual.steps import Duals

from .cases import (
    BASIC,
    CASES,
    GAUSSIAN,
    PAIRS,
    ROUNDING,
    SUMS,
    TEXT,
    WIDE,
    WITH_MU,
    Case,
    basic,
    claimed_mu,
    every_case,
    fresh_fits,
    pair_of_tables,
    private_fit,
    quiet,
    recomputed,
    standardised,
    timed,
    told,
)
from .recorder import transcript
from .worlds import Repeated, evidence, half_of_every_grant, half_the_noise, mu_between, two_worlds, wrong_noise

CONFIDENCE = 0.999
pytestmark = quiet


# --- the worst pair of rows, at the solver ---------------------------------------------------------------------------


ALONE_TEXT = [case for case in TEXT if case.declared]

# The likelihood ratio of a transcript takes several runs. `test_distances` sees every sensitivity exactly; what an
# audit adds is that noise and accounting fit together, and one solver shows that every day.
FIRST = {case.solver.name: case.loss for case in reversed(SUMS)}
DAILY = ("gradient",)
DEFAULT = ("gradient", "logistic", "add-remove")


def of_the_long_run(case):
    first = case.loss == FIRST.get(case.solver.name) and case.solver.name in DAILY
    return not first or case.adjacency == "replace-one" or case.whole or case.text


best_tests = pytest.mark.parametrize(
    "case", [pytest.param(c, marks=[pytest.mark.slow] * of_the_long_run(c)) for c in SUMS + ALONE_TEXT], ids=str
)

WIDE_DELTA = 0.2  # where the epsilon of a sampled solver is audited: rates of a few percent can be counted


@dataclass(frozen=True, eq=False)
class Alone(Repeated):
    """A solver on bounded rows, with the whole budget and few steps; no intercept, so that rows may turn.

    The dual solver is asked for weights near 0 and a tight clip: then row 0 never comes to rest.
    """

    case: Case
    n: int = 40
    d: int = 2

    @cached_property
    def solver(self):
        has = self.case.has_option
        if self.case.samples:
            options = {"batch_size": self.n // 2, "n_passes": 2}
        elif self.case.whole:
            options = {"batch_size": self.n, "n_passes": 6}
        else:
            options = {name: value for name, value in (("n_iter", 6), ("n_passes", 3)) if has(name)}
        return self.case.solver(**options, **({"clip": 0.1} if has("clip") else {}))

    @cached_property
    def task(self):
        epsilon = 5.0 if self.case.has_mu else 8.0
        return self.case.request(epsilon, n=self.n, d=self.d, fit_intercept=False).task

    def __call__(self, rows):
        l2 = 10.0 if self.case.solver.name == "dual" else 0.0
        penalty = Penalty(l2=np.full(self.d, l2), l1=np.zeros(self.d))
        with Gate(self.calibrated, NoiseSource(next(self.seeds))) as gate:
            return self.solver.at(self.task).run(replace(rows, penalty=penalty), gate).weights

    @property
    def claim(self):
        """The mu of Gaussian releases and selections, an epsilon of sampled ones."""
        if self.case.samples:
            return recomputed(self.calibrated.event, WIDE_DELTA)
        return claimed_mu(self.calibrated.event)

    def bound(self, mechanism, rows, other, trials=None, confidence=CONFIDENCE):
        """What an audit finds of the claim."""
        outputs = audit.run(mechanism, rows, other, trials or (800 if self.case.samples else 400))
        # A number is its own score: learned ones would need half of the runs.
        score = (lambda ratios: ratios[:, 0]) if outputs.present.shape[1] == 1 else None
        if self.case.samples:
            return audit.epsilon_lower_bound(outputs, WIDE_DELTA, confidence=confidence, score=score)
        return audit.mu_lower_bound(outputs, confidence=confidence, score=score)


def is_exact(case):
    """Whether its sums are taken on a grid."""
    return case.solver.name in ("gradient", "statistics", "sgd") and not case.sparse


def worst_rows(case, n=40, d=2):
    """Others balance each other, so weights stay near 0 and row 0 keeps a gradient far above any clip.

    Replace-one: its opposite, or one at a right angle where half of what is released are second moments, which opposite
    rows share. Add-remove: a row whose norm overflows, or of zeros, which contributes zero to every sum.

    Selections go by the size of a derivative, which the row must raise in some places and lower in others: there all
    others pull alike, and stay far above any clip. Rescaled rows are clipped where they are longer than most, and in
    columns that few others have: there all others are short.
    """
    Z = np.tile([[3.0] * d, [-3.0] * d], (n // 2, 1))
    low, high = (-3.0, 3.0) if case.loss == "squared" else case.far_targets
    targets = np.tile([low, low, high, high], n // 4)
    if case.chooses:
        Z[:], targets[:] = 3.0, low
        Z[0] *= np.resize([1.0, -1.0], d)
    if case.text:
        Z[1:] *= 1e-3
    other = Z.copy()
    if case.adjacency == "add-remove":
        # The largest entry, which selections go by, does not overflow; exact sums have no entry beyond 4.
        other[0] = 0.0 if case.chooses or is_exact(case) else 1e200
    elif case.solver.name == "statistics":
        other[0] = Z[0] * np.resize([1.0, -1.0], d)
    else:
        other[0] = -Z[0]
    none = Penalty()
    return Bounded(case.store(Z), targets, none, 3.0), Bounded(case.store(other), targets, none, 3.0)


@pytest.mark.parametrize("case", [replace(c, sparse=s) for c in WITH_MU for s in (False, True)] + ALONE_TEXT, ids=str)
def test_the_worst_row_takes_nearly_all_of_mu_and_not_more(case):
    run = Alone(case)
    rows, other = worst_rows(case)
    found = [mu_between(two_worlds(run, *worlds)) for worlds in ((rows, other), (other, rows)) for _ in range(5)]
    # Under replace-one no pair is the worst for second moments and for gradients at once.
    assert 0.8 * run.claim <= min(found)
    assert max(found) <= run.claim * ROUNDING


@pytest.mark.parametrize("case", [replace(c, sparse=s) for c in SUMS if c.samples for s in (False, True)], ids=str)
def test_the_worst_row_moves_a_sampled_release_by_its_sensitivity_and_not_more(case):
    rows, other = worst_rows(case)
    for worlds in ((rows, other), (other, rows)):
        moved = [step.moved(twin) for step, twin in two_worlds(Alone(case), *worlds)]
        assert np.median(moved) >= 0.999  # noise may take a margin to where the hinge is flat
        assert max(moved) <= ROUNDING


@best_tests
def test_the_best_test_between_two_worlds_finds_no_more_than_is_claimed(case):
    run = Alone(case)
    rows, other = worst_rows(case)
    bound = run.bound(evidence(run, rows, other), rows, other)
    assert run.claim / (7 if case.samples else 4) <= bound <= run.claim


# --- audits of what a fit tells, nothing about it assumed ------------------------------------------------------------


def contradiction(outputs, guarantee, group):
    """By how much the outputs contradict the guarantee for a group of this size; at most 1 if they do not."""
    if all(isinstance(leaf, GaussianDpEvent) for leaf, _ in events.walk(guarantee.event)):
        return audit.mu_lower_bound(outputs, confidence=CONFIDENCE) / (group * guarantee.mu)
    epsilon, delta = guarantee.epsilon, guarantee.delta
    delta *= sum(math.exp(k * epsilon) for k in range(group))
    return audit.epsilon_lower_bound(outputs, delta, confidence=CONFIDENCE) / (group * epsilon)


def audit_of_fits(case, name, trials):
    # An epsilon of 5, twice over for add-remove, is out of reach of an audit; the mu of Gaussian releases is not.
    has_mu = case.is_gaussian and (case.declared or not case.sparse)
    fit = fresh_fits(case, epsilon=5.0 if has_mu else 1.0)
    worlds = pair_of_tables(case, name)
    outputs = audit.run(lambda data: standardised(fit(data)), *worlds, trials)
    return contradiction(outputs, fit(worlds[0]).guarantee, 1 if case.adjacency == "replace-one" else 2)


# Storage, declared bounds and pairs take turns; all but the default classifier are for the long run.
TURNS = [
    pytest.param(
        replace(case, sparse=k % 4 == 3, declared=k % 2 == 1),
        list(PAIRS)[k % len(PAIRS)],
        marks=[pytest.mark.slow] * ((case.solver.name, case.loss, case.adjacency) != DEFAULT),
    )
    for k, case in enumerate(BASIC)
]


@pytest.mark.slow
@pytest.mark.parametrize(("case", "name"), TURNS, ids=str)
def test_an_audit_finds_nothing(case, name):
    assert audit_of_fits(case, name, 600) <= 1.0


@pytest.mark.slow
@every_case
def test_a_long_audit_finds_nothing(case):
    name = list(PAIRS)[(CASES + WIDE + TEXT).index(case) % len(PAIRS)]
    assert audit_of_fits(case, name, 2_000) <= 1.0


# --- mistakes are caught ---------------------------------------------------------------------------------------------


@best_tests
def test_half_the_noise_is_caught(case):
    run = Alone(case)
    rows, other = worst_rows(case)
    with half_the_noise():
        bound = run.bound(evidence(run, rows, other), rows, other, confidence=0.99)
        if case.has_mu:
            assert mu_between(two_worlds(run, rows, other)) > 1.4 * run.claim
    assert bound > run.claim


@basic
def test_half_the_noise_shows_in_the_transcript(case, monkeypatch):
    """Even where the guarantee and the solver were told of the full noise."""
    rows, _ = worst_rows(case)
    if case.chooses:
        rows.Z[1:4, 1] = 0.0  # which makes one candidate more likely

    def sharper(self, source):
        while True:  # two draws that agree have weights squared: twice the scores
            one, other = draw(self, source), draw(self, source)
            if one == other:
                return one

    run, draw = Alone(case), vertices._RoundSampler.draw
    monkeypatch.setattr(vertices._RoundSampler, "draw", sharper)
    with transcript() as steps, half_of_every_grant():
        for _ in range(100 if case.chooses else 50):
            run(rows)
    assert wrong_noise(steps) == {release.name for release in run.calibrated.plan.releases}


@pytest.mark.slow
@pytest.mark.parametrize("case", [Case(SOLVERS["gradient"], "squared", "add-remove")], ids=str)
def test_half_the_noise_is_caught_by_its_outputs_alone(case):
    run = Alone(case)
    rows, other = worst_rows(case)
    with half_the_noise():
        assert run.bound(lambda world: run(world).ravel(), rows, other, 1_000) > run.claim


@pytest.mark.parametrize("case", [c for c in SUMS + ALONE_TEXT if not c.releases("vertices")], ids=str)
def test_a_gradient_that_is_not_clipped_is_caught(case, monkeypatch):
    clipped, exact = Passes.gradient, ExactPasses.gradient
    monkeypatch.setattr(Passes, "gradient", lambda self, w, _, *shape: clipped(self, w, 1e6, *shape))
    monkeypatch.setattr(ExactPasses, "gradient", lambda self, w, _, *shape: exact(self, w, 1e6, *shape))
    steps = Duals.steps
    monkeypatch.setattr(Duals, "steps", lambda self, *given: steps(self, *given[:-1], 2 * given[-1]))
    limits = columns.Columns.limits
    monkeypatch.setattr(columns.Columns, "limits", lambda self, *bounds, **norm: 1e6 * limits(self, *bounds, **norm))
    monkeypatch.setattr(text, "_bounded", lambda radius, norms: np.full_like(norms, 1.0 / radius))
    run = Alone(case)
    assert max(step.moved(other) for step, other in two_worlds(run, *worst_rows(case))) > 1.5


@pytest.mark.parametrize("case", [c for c in GAUSSIAN if c.releases("second moments")], ids=str)
def test_second_moments_of_rows_that_are_not_clipped_are_caught(case, monkeypatch):
    honest, exact = Passes._sum, ExactPasses.second_moments
    monkeypatch.setattr(Passes, "_sum", lambda self, add, shape, _: honest(self, add, shape, 1e6))
    monkeypatch.setattr(ExactPasses, "second_moments", lambda self, _: exact(self, 1e6))
    run = Alone(replace(case, adjacency="add-remove"))
    rows, _ = worst_rows(case)
    absent = replace(rows, Z=rows.Z.copy())
    absent.Z[0] = 0.0  # nothing, in a model without an intercept
    assert max(s.moved(other) for s, other in two_worlds(run, rows, absent) if s.name == "second moments") > 2


@pytest.mark.parametrize(
    "case",
    [pytest.param(c, marks=pytest.mark.slow) for c in SUMS if c.samples and c.loss == FIRST[c.solver.name]],
    ids=str,
)
def test_a_sample_that_is_not_kept_to_is_caught(case, monkeypatch):
    """All rows in place of the sample: the coin of the row that differs no longer hides it."""
    monkeypatch.setattr(Bounded, "some", lambda self, _: self)
    steps, everyone = Duals.steps, {"rows": np.arange(40), "starts": np.array([0, 40])}
    monkeypatch.setattr(Duals, "steps", lambda self, one, *given: steps(self, replace(one, **everyone), *given))
    run = Alone(case)
    rows, other = worst_rows(case)
    assert run.bound(evidence(run, rows, other), rows, other, confidence=0.99) > run.claim


@pytest.mark.parametrize("case", timed([c for c in BASIC if not c.releases("vertices")]), ids=str)
def test_one_release_without_noise_is_caught(case, monkeypatch):
    noisy, count = GaussianVector.draw, itertools.count()

    def mostly_noisy(self, grant, value):
        out = noisy(self, grant, value)
        return np.array(value) if next(count) == 0 else out

    def mostly_noisy_step(self, grant, size, count, walk):
        def quietly(batches):
            return walk(replace(batches, noise=0 * batches.noise) if next(count_of_steps) == 0 else batches)

        return step(self, grant, size, count, quietly)

    step, count_of_steps = SampledSteps.draw, itertools.count()
    monkeypatch.setattr(GaussianVector, "draw", mostly_noisy)
    monkeypatch.setattr(SampledSteps, "draw", mostly_noisy_step)
    with transcript() as steps:
        Alone(case)(worst_rows(case)[0])
    assert len(wrong_noise(steps)) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [pytest.param(c, marks=[pytest.mark.slow] * ((c.solver.name, c.loss, c.adjacency) != DEFAULT)) for c in BASIC],
    ids=str,
)
def test_an_exact_mean_in_place_of_the_intercept_is_caught(case):
    fit = fresh_fits(case, epsilon=1.0)

    def leaky(data):
        released = fit(data)
        return told(replace(released, intercept=np.full_like(released.intercept, data[1].mean())))

    worlds = pair_of_tables(case, "label")
    outputs = audit.run(leaky, *worlds, 500)
    assert contradiction(outputs, fit(worlds[0]).guarantee, 1 if case.adjacency == "replace-one" else 2) > 1.0


@dataclass(frozen=True)
class Cheat:
    """A solver that plans like another and does something else at the end."""

    honest: Any  # a solver, or its algorithm
    extra: Any = None  # a mechanism to release once more by
    forgotten: bool = False

    def __getattr__(self, name):
        return getattr(self.honest, name)

    def at(self, task):
        return replace(self, honest=self.honest.at(task))

    def releases(self, share):
        planned = self.honest.releases(share)
        return (*planned, Release("forgotten", "gaussian", share=0.01)) if self.forgotten else planned

    def run(self, data, gate):
        solution = self.honest.run(data, gate)
        if self.extra is not None:
            planned = [r.name for r in self.honest.releases(1.0) if r.kind != "exponential"]
            gate.release(planned[-1], self.extra, solution.weights)
        return solution


@pytest.mark.parametrize("case", timed([c for c in BASIC if c.releases("gaussian")]), ids=str)
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
    honest = case.request()
    request = honest._replace(solver=Cheat(honest.solver, **cheat))
    with pytest.raises(PlanViolationError, match=message):
        private_fit(request, *pair_of_tables(case, "label")[0])
