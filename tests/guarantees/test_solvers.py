"""What every solver promises, for every loss, adjacency and kind of data it serves; a solver joins by being registered.

Here: plans, distances and noise, all exact. Audits are in `test_audits`, the limit without noise in `test_limits`.

Neighbours. Replace-one neighbours are two tables that differ in one row. Add-remove neighbours cannot be written as
two tables, because the number of rows is public and an absent row contributes nothing, which no row of numbers does.
So add-remove is tested in two ways. On tables: replacing a row is removing one and adding another, so a fit that is
mu-GDP under add-remove is 2 mu-GDP for tables that differ in one row. On the solver's own input: a row whose norm
overflows contributes zero to every sum, which is what an absent row does, so there mu itself is tested.

What is not Gaussian through and through (samples, selections, objective perturbation) has no mu: there the claim is an
epsilon, recomputed by an accountant of `dp_accounting`, and budgets are small enough for an audit to reach it.
"""

import inspect
import math
import warnings
from collections import Counter

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, LaplaceDpEvent, PoissonSampledDpEvent, ZCDpEvent

from tacit.privacy import Gate, events
from tacit.privacy.gate import Grant
from tacit.solvers import SOLVERS

from .cases import (
    CASES,
    WITH_WIDE_FORM,
    D,
    N,
    every_case,
    every_variant,
    fresh_fits,
    pair_of_tables,
    private_fit,
    quiet,
    recomputed,
    sample,
    told,
)
from .recorder import transcript
from .worlds import wrong_noise

pytestmark = quiet


def test_a_solver_with_a_form_for_many_columns_is_tested_in_it():
    for solver in SOLVERS.values():
        module = inspect.getmodule(solver)
        assert hasattr(module, "FULL_MATRIX") == (solver.name in WITH_WIDE_FORM)


# --- a plan is a promise ---------------------------------------------------------------------------------------------


@every_variant
@pytest.mark.parametrize("epsilon", [0.5, math.inf])
def test_a_fit_makes_the_releases_it_planned(case, epsilon, monkeypatch):
    made, plans = Counter(), []
    take, release = Grant.take, Gate.release

    def counted(grant, count=1):
        made[grant.name, *kinds_of] += count
        return take(grant, count)

    def noted(gate, name, mechanism, *values):
        kinds_of[:] = [mechanism.kind]
        plans.append(gate.promise)
        return release(gate, name, mechanism, *values)

    kinds_of = []
    monkeypatch.setattr(Grant, "take", counted)
    monkeypatch.setattr(Gate, "release", noted)
    fit = private_fit(case.request(epsilon), case.store(sample(case)[0]), sample(case)[1])
    calibrated = plans[0]
    assert all(plan is calibrated for plan in plans)
    assert made == {(r.name, r.kind): r.count for r in calibrated.plan.releases}
    assert fit.guarantee.event == calibrated.event
    kinds = Counter()
    for leaf, times in events.walk(fit.guarantee.event):
        kinds[type(leaf)] += times
    gaussian = sum(count for (_, kind), count in made.items() if kind == "gaussian")
    assert kinds[GaussianDpEvent] + kinds[PoissonSampledDpEvent] == gaussian
    laplace = sum(count for (_, kind), count in made.items() if kind == "laplace")
    assert kinds[LaplaceDpEvent] == laplace
    assert kinds[ZCDpEvent] == made.total() - gaussian - laplace
    sampled = sum(r.count for r in calibrated.plan.releases if r.sampling < 1)
    assert kinds[PoissonSampledDpEvent] == sampled
    assert (sampled > 0) == case.samples
    assert fit.plan is calibrated


@every_variant
def test_a_plan_does_not_depend_on_the_data(case):
    request = case.request(0.5)
    fits = [private_fit(request, case.store(X), t) for X, t in (sample(case), sample(case, seed=7))]
    fits.append(private_fit(request, case.store(np.zeros((N, D))), np.full(N, case.far_targets[1])))
    assert len({fit.guarantee.event for fit in fits}) == 1
    assert all(np.all(np.isfinite(told(fit))) for fit in fits)


@every_case
@pytest.mark.parametrize("epsilon", [0.1, 1.0, pytest.param(8.0, marks=pytest.mark.slow)])
def test_another_accountant_finds_the_same_epsilon(case, epsilon):
    guarantee = private_fit(case.request(epsilon, N**-1.5), *pair_of_tables(case, "label")[0]).guarantee
    assert 0.98 * epsilon <= recomputed(guarantee.event, guarantee.delta) <= epsilon == guarantee.epsilon


# --- noise; how far a row moves a release is in `test_distances` ---------------------------------------------------


@every_variant
def test_noise_is_as_large_as_the_guarantee_says(case):
    fit = fresh_fits(case)
    planned = Counter()
    with transcript() as steps:
        for _ in range(10):
            for leaf, times in events.walk(fit(pair_of_tables(case, "label")[0]).guarantee.event):
                plain = leaf.event if isinstance(leaf, PoissonSampledDpEvent) else leaf
                planned[getattr(plain, "noise_multiplier", None)] += times
    additive = ("gaussian", "laplace")
    assert Counter(step.multiplier if step.kind in additive else None for step in steps) == planned
    assert not wrong_noise(steps)


# --- randomness ------------------------------------------------------------------------------------------------------


@every_variant
def test_a_seed_repeats_the_noise_and_nothing_else_does(case):
    data = pair_of_tables(case, "label")[0]
    first, again, other, *fresh = (told(private_fit(case.request(seed=seed), *data)) for seed in (3, 3, 4, None, None))
    np.testing.assert_array_equal(first, again)
    for one, two in ((first, other), fresh):
        same = one[: D + 1] == two[: D + 1]
        # A weight that was never drawn is zero, or where it starts; those of vertices have few values.
        moved = ~np.isclose(one[: D + 1], case.start, rtol=1e-12, atol=0.0)
        assert case.releases("vertices") or not np.any(same & moved)
        assert not np.all(same)


@every_case
def test_a_fit_leaves_its_input_as_it_was(case):
    X, targets = pair_of_tables(case, "all features")[0]
    before = X.copy(), targets.copy()
    private_fit(case.request(), X, targets)
    np.testing.assert_array_equal(X.toarray() if case.sparse else X, before[0].toarray() if case.sparse else before[0])
    np.testing.assert_array_equal(targets, before[1])


@pytest.mark.slow
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
