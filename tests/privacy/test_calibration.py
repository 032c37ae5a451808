"""Calibration lands within 1% below the epsilon asked for and never above it, whoever recomputes it."""

import math

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, LaplaceDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent, ZCDpEvent
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

from tacit.privacy import Budget, BudgetExceededError, Plan, Release, calibration, epsilon_of, events, gdp, mu_of
from tacit.privacy.calibration import calibrate
from tests.units import ROWS

DENSE_ORDERS = 1 + np.geomspace(0.02, 1e7, 20_000)


def by_pld(event, delta):
    return PLDAccountant().compose(event).get_epsilon(delta)


def slow(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


def lands(epsilon, asked):
    return 0.99 * asked <= epsilon <= asked


def sampling_grid():
    for epsilon in (0.1, 1.0, 5.0):
        for delta in (1e-5, 1e-8):
            for steps in (1, 100, 10_000):
                for q in (0.001, 0.01, 0.1, 1.0):
                    heavy = epsilon == 5.0 or (steps < 10_000 and q < 0.1) or (epsilon == 1.0 and q == 0.001)
                    yield (slow if heavy else pytest.param)(epsilon, delta, steps, q)


@pytest.mark.parametrize(("epsilon", "delta", "steps", "q"), [*sampling_grid()])
def test_recomputed_by_the_pld_accountant(epsilon, delta, steps, q):
    calibrated = Plan(Release("steps", "gaussian", share=1.0, count=steps, sampling=q)).calibrate(
        Budget(epsilon, delta), ROWS, "test"
    )
    assert lands(by_pld(calibrated.event, delta), epsilon)
    assert lands(epsilon_of(calibrated.event, delta), epsilon)


@pytest.mark.parametrize("releases", [1, 2, 5, 10])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-9, 1e-12])
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, slow(3.0), slow(10.0)])
def test_different_gaussians_recomputed_by_the_pld_accountant(epsilon, delta, releases):
    rng = np.random.default_rng(releases)
    plan = Plan(
        *(
            Release(f"release {i}", "gaussian", share=float(rng.uniform(0.05, 1)), count=int(rng.integers(1, 40)))
            for i in range(releases)
        )
    )
    calibrated = plan.calibrate(Budget(epsilon, delta), ROWS, "test")
    assert lands(by_pld(calibrated.event, delta), epsilon)
    assert mu_of(calibrated.event) <= gdp.mu_from_budget(epsilon, delta)


@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("mixed", [False, True])
def test_selections_recomputed_by_the_renyi_accountant(epsilon, delta, mixed):
    plan = Plan(Release("pick", "exponential", share=2.0, count=20), Release("once", "exponential", share=1.0))
    if mixed:
        plan += Plan(Release("steps", "gaussian", share=3.0, count=10))
    calibrated = plan.calibrate(Budget(epsilon, delta), ROWS, "test")
    recomputed = RdpAccountant(DENSE_ORDERS).compose(calibrated.event).get_epsilon(delta)
    assert 0.99 * epsilon <= recomputed <= epsilon * (1 + 1e-6)  # another grid of orders than ours
    assert epsilon * (1 - 1e-9) <= epsilon_of(calibrated.event, delta) <= epsilon


OBJECTIVE = {
    "alone": [],
    "with Gaussians": [Release("g", "gaussian", share=0.1, count=3)],
    "with selections": [Release("e", "exponential", share=0.5, count=4), Release("g", "gaussian", share=0.2)],
}


@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("extra", OBJECTIVE.values(), ids=OBJECTIVE)
def test_objective_perturbation_recomputed_by_the_renyi_accountant(epsilon, delta, extra):
    """From the multiplier alone: rho = (1 + c ratio^2) / (2 z^2), and no other part of the event needs trust."""
    calibrated = Plan(Release("o", "objective", share=1.0), *extra).calibrate(Budget(epsilon, delta), ROWS, "test")
    accountant = RdpAccountant(DENSE_ORDERS)
    accountant.compose(ZCDpEvent((1 + 2.3502 * 0.3**2) / calibrated.multiplier("o") ** 2 / 2))
    for release in extra:
        z = calibrated.multiplier(release.name)
        accountant.compose(GaussianDpEvent(z) if release.kind == "gaussian" else ZCDpEvent(1 / z**2 / 8), release.count)
    recomputed = accountant.get_epsilon(delta)
    assert 0.99 * epsilon <= recomputed <= epsilon * (1 + 1e-6)  # another grid of orders than ours
    assert epsilon * (1 - 1e-9) <= epsilon_of(calibrated.event, delta) <= epsilon


@pytest.mark.parametrize(
    "extra",
    [Release("l", "laplace", share=1.0), Release("s", "gaussian", share=1.0, count=200, sampling=0.02)],
    ids=["and Laplace", "and sampling"],
)
def test_objective_perturbation_with_kinds_that_have_no_zcdp(extra):
    """Then everything goes through the Renyi accountant at once."""
    calibrated = Plan(Release("o", "objective", share=1.0), extra).calibrate(Budget(1.0, 1e-6), ROWS, "test")
    assert lands(epsilon_of(calibrated.event, 1e-6), 1.0)
    orders = [*np.arange(1.5, 64, 0.5), *range(64, 400, 4)]
    assert RdpAccountant(orders).compose(calibrated.event).get_epsilon(1e-6) <= 1.01
    alone = Plan(Release("o", "objective", share=1.0)).calibrate(Budget(1.0, 1e-6), ROWS, "test")
    assert calibrated.multiplier("o") > alone.multiplier("o")


MIXED = {
    "Laplace": [Release("l", "laplace", share=1.0)],
    "many Laplace": [Release("l", "laplace", share=1.0, count=300)],
    "Laplace and Gaussian": [Release("l", "laplace", share=1.0, count=3), Release("g", "gaussian", share=2.0, count=9)],
    "sampled and Gaussian": [
        Release("s", "gaussian", share=3.0, count=300, sampling=0.02),
        Release("g", "gaussian", share=1.0, count=3),
    ],
    "two sampled": [
        Release("s", "gaussian", share=1.0, count=300, sampling=0.02),
        Release("t", "gaussian", share=1.0, count=30, sampling=0.2),
    ],
    "all of them": [
        Release("s", "gaussian", share=1.0, count=100, sampling=0.05),
        Release("g", "gaussian", share=1.0),
        Release("l", "laplace", share=1.0),
    ],
}


@pytest.mark.parametrize("releases", MIXED.values(), ids=MIXED)
def test_mixed_plans_recomputed_by_the_pld_accountant(releases):
    for epsilon, delta in ((0.3, 1e-5), (2.0, 1e-8)):
        calibrated = Plan(*releases).calibrate(Budget(epsilon, delta), ROWS, "test")
        assert lands(by_pld(calibrated.event, delta), epsilon)


@pytest.mark.parametrize("extra", [[], [Release("l", "laplace", share=1.0)]], ids=["", "and Laplace"])
def test_selection_with_sampling(extra):
    plan = Plan(
        Release("s", "gaussian", share=1.0, count=200, sampling=0.02), Release("e", "exponential", share=1.0), *extra
    )
    calibrated = plan.calibrate(Budget(1.0, 1e-6), ROWS, "test")
    assert lands(epsilon_of(calibrated.event, 1e-6), 1.0)
    orders = [*np.arange(1.5, 64, 0.5), *range(64, 400, 4)]
    assert RdpAccountant(orders).compose(calibrated.event).get_epsilon(1e-6) <= 1.01


@pytest.mark.parametrize("delta", [1e-12, 1e-30, 1e-100])
def test_below_the_error_of_the_pld_the_renyi_accountant_takes_over(delta):
    plan = Plan(Release("s", "gaussian", share=1.0, count=10_000, sampling=0.01))
    calibrated = plan.calibrate(Budget(1.0, delta), ROWS, "test")
    assert lands(epsilon_of(calibrated.event, delta), 1.0)
    # And it is honest about large deltas: less noise than at a tiny one.
    assert calibrated.multiplier("s") > plan.calibrate(Budget(1.0, 1e-6), ROWS, "test").multiplier("s")


@pytest.mark.parametrize("epsilon", [1e-5, 1e-3, slow(30.0), slow(100.0), slow(200.0)])
def test_extreme_epsilons(epsilon):
    for release in (
        Release("s", "gaussian", share=1.0, count=10, sampling=0.1),
        Release("l", "laplace", share=1.0, count=10),
        Release("g", "gaussian", share=1.0),
        Release("e", "exponential", share=1.0),
        Release("o", "objective", share=1.0),
    ):
        calibrated = Plan(release).calibrate(Budget(epsilon, 1e-6), ROWS, "test")
        assert lands(epsilon_of(calibrated.event, 1e-6), epsilon)


def test_extreme_epsilons_of_gaussians():
    for epsilon in (1e-300, 1e-9, 1e-6, 1e4, 1e9, 1e300):
        calibrated = Plan(Release("g", "gaussian", share=1.0)).calibrate(Budget(epsilon, 1e-6), ROWS, "test")
        assert epsilon_of(calibrated.event, 1e-6) <= epsilon
        assert mu_of(calibrated.event) >= 0.99 * Budget(epsilon, 1e-6).mu


# Shares.


def test_shares_of_gaussians_are_shares_of_mu_squared():
    plan = Plan(
        Release("a", "gaussian", share=1.0),
        Release("b", "gaussian", share=3.0, count=30),
        Release("c", "gaussian", share=0.5, count=7),
    )
    calibrated = plan.calibrate(Budget(1.0, 1e-6), ROWS, "test")
    spent = {r.name: r.count / calibrated.multiplier(r.name) ** 2 for r in plan.releases}
    assert spent["b"] / spent["a"] == pytest.approx(3.0, rel=1e-12)
    assert spent["c"] / spent["a"] == pytest.approx(0.5, rel=1e-12)
    assert math.sqrt(sum(spent.values())) == pytest.approx(Budget(1.0, 1e-6).mu, rel=1e-6)


def test_shares_between_kinds_are_shares_of_rho():
    plan = Plan(
        Release("pick", "exponential", share=1.0, count=4),
        Release("sum", "gaussian", share=2.0, count=5),
        Release("term", "objective", share=3.0, count=2),
    )
    calibrated = plan.calibrate(Budget(1.0, 1e-6), ROWS, "test")
    pick = 4 * (1 / calibrated.multiplier("pick")) ** 2 / 8  # count e0^2 / 8
    total = 5 / calibrated.multiplier("sum") ** 2 / 2
    term = 2 * events.objective(calibrated.multiplier("term")).rho
    assert total / pick == pytest.approx(2.0, rel=1e-12)
    assert term / pick == pytest.approx(3.0, rel=1e-12)
    assert total + pick + term == pytest.approx(Budget(1.0, 1e-6).rho, rel=1e-9)


def test_shares_are_relative():
    budget = Budget(1.0, 1e-6)
    for scale in (1e-9, 1.0, 1e9):
        plan = Plan(Release("a", "gaussian", share=scale), Release("b", "gaussian", share=2 * scale))
        assert plan.calibrate(budget, ROWS, "test").multipliers == pytest.approx(
            Plan(Release("a", "gaussian", share=1), Release("b", "gaussian", share=2))
            .calibrate(budget, ROWS, "test")
            .multipliers
        )


# Fixed multipliers.


def test_the_rest_of_the_budget_goes_to_the_shared_releases():
    plan = Plan(Release("fixed", "gaussian", multiplier=8.0), Release("rest", "gaussian", share=1.0, count=10))
    calibrated = plan.calibrate(Budget(1.0, 1e-6), ROWS, "test")
    assert calibrated.multiplier("fixed") == 8.0
    assert mu_of(calibrated.event) == pytest.approx(Budget(1.0, 1e-6).mu, rel=1e-6)
    assert epsilon_of(calibrated.event, 1e-6) <= 1.0


@pytest.mark.parametrize(
    ("fixed", "shared"),
    [
        (Release("f", "laplace", multiplier=4.0), Release("s", "gaussian", share=1.0)),
        (Release("f", "gaussian", multiplier=2.0, count=50, sampling=0.02), Release("s", "gaussian", share=1.0)),
        (Release("f", "gaussian", multiplier=9.0), Release("s", "gaussian", share=1.0, count=50, sampling=0.1)),
        (Release("f", "exponential", multiplier=5.0), Release("s", "gaussian", share=1.0, count=5)),
        (Release("f", "gaussian", multiplier=9.0), Release("s", "exponential", share=1.0, count=5)),
        (Release("f", "exponential", multiplier=9.0), Release("s", "laplace", share=1.0, count=5)),
        (Release("f", "objective", multiplier=9.0), Release("s", "gaussian", share=1.0, count=5)),
        (Release("f", "gaussian", multiplier=9.0), Release("s", "objective", share=1.0)),
    ],
    ids=lambda r: f"{r.kind}{' sampled' if r.sampling < 1 else ''}",
)
def test_fixed_and_shared_of_different_kinds(fixed, shared):
    calibrated = Plan(fixed, shared).calibrate(Budget(1.0, 1e-6), ROWS, "test")
    assert calibrated.multiplier("f") == fixed.multiplier
    assert lands(epsilon_of(calibrated.event, 1e-6), 1.0)


# These searches once ran for ever: epsilon cannot fall to the middle of the landing zone.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("taken", "fixed"),
    [
        (0.9, Release("fixed", "gaussian", multiplier=2.08538, count=10, sampling=0.1)),
        (0.99, Release("fixed", "gaussian", multiplier=1.96376, count=10, sampling=0.1)),
        (0.998, Release("fixed", "gaussian", multiplier=1.95397, count=10, sampling=0.1)),
        (0.9, Release("fixed", "laplace", multiplier=31.8571, count=50)),
        (0.99, Release("fixed", "laplace", multiplier=29.1505, count=50)),
        (0.998, Release("fixed", "laplace", multiplier=28.9324, count=50)),
    ],
)
def test_fixed_releases_may_take_almost_everything(fixed, taken):
    assert epsilon_of(fixed.event(fixed.multiplier), 1e-6) == pytest.approx(taken, rel=1e-4)
    calibrated = Plan(fixed, Release("shared", "gaussian", share=1.0)).calibrate(Budget(1.0, 1e-6), ROWS, "test")
    assert lands(epsilon_of(calibrated.event, 1e-6), 1.0)


def test_almost_full_budgets_are_refused_rather_than_searched_for_ever():
    fixed = Release("fixed", "laplace", multiplier=28.884, count=50)
    assert 0.999 < epsilon_of(fixed.event(fixed.multiplier), 1e-6) < 1.0
    with pytest.raises(BudgetExceededError):
        Plan(fixed, Release("shared", "gaussian", share=1.0)).calibrate(Budget(1.0, 1e-6), ROWS, "test")


@pytest.mark.parametrize("shared", [[], [Release("s", "gaussian", share=1.0)], [Release("s", "laplace", share=1.0)]])
@pytest.mark.parametrize(
    "fixed",
    [
        Release("f", "gaussian", multiplier=1.0),
        Release("f", "gaussian", multiplier=1e-200),
        Release("f", "gaussian", multiplier=30.0, count=1000),
        Release("f", "gaussian", multiplier=1.0, count=100, sampling=0.1),
        Release("f", "laplace", multiplier=0.9),
        Release("f", "exponential", multiplier=0.3),
        Release("f", "objective", multiplier=1.0),
    ],
    ids=repr,
)
def test_fixed_releases_beyond_the_budget_are_refused(fixed, shared):
    with pytest.raises(BudgetExceededError, match=r"epsilon=1\.0, delta=1e-06; raise their multipliers or the budget"):
        Plan(fixed, *shared).calibrate(Budget(1.0, 1e-6), ROWS, "test")


def test_plans_of_fixed_releases_are_checked_as_a_whole():
    budget = Budget(1.0, 1e-6)
    z = 1.0 / budget.mu
    accepted = Plan(Release("a", "gaussian", multiplier=z)).calibrate(budget, ROWS, "test")
    assert accepted.multipliers == (z,)
    with pytest.raises(BudgetExceededError):
        Plan(Release("a", "gaussian", multiplier=z * (1 - 1e-6))).calibrate(budget, ROWS, "test")
    with pytest.raises(BudgetExceededError):  # each of them would fit alone
        Plan(Release("a", "gaussian", multiplier=z), Release("b", "laplace", multiplier=50.0)).calibrate(
            budget, ROWS, "test"
        )
    assert Plan(Release("a", "laplace", multiplier=1.0)).calibrate(budget, ROWS, "test").multipliers == (1.0,)


def test_nothing_is_refused_in_the_non_private_limit():
    budget = Budget(math.inf, 1e-6, "add-remove")
    plan = Plan(
        Release("g", "gaussian", share=1.0, count=3),
        Release("s", "gaussian", share=1.0, sampling=0.1),
        Release("l", "laplace", share=1.0),
        Release("e", "exponential", share=1.0),
        Release("o", "objective", share=1.0),
        Release("f", "gaussian", multiplier=0.1),
    )
    calibrated = plan.calibrate(budget, ROWS, "test")
    assert calibrated.multipliers == (0.0, 0.0, 0.0, 0.0, 0.0, 0.1)
    assert epsilon_of(calibrated.event, 1e-6) == math.inf
    expected = (
        SelfComposedDpEvent(GaussianDpEvent(0.0), 3),
        PoissonSampledDpEvent(0.1, GaussianDpEvent(0.0)),
        LaplaceDpEvent(0.0),
        ZCDpEvent(math.inf),
        ZCDpEvent(math.inf),
        GaussianDpEvent(0.1),
    )
    assert calibrated.event.events == expected


# Refusals.


def test_sampling_is_for_add_remove_only():
    sampled = Release("s", "gaussian", share=1.0, sampling=0.1)
    for epsilon in (1.0, math.inf):
        with pytest.raises(ValueError, match="sampled releases are accounted for add-remove neighbours only"):
            Plan(sampled, Release("g", "gaussian", share=1.0)).calibrate(
                Budget(epsilon, 1e-6, "replace-one"), ROWS, "test"
            )
    with pytest.raises(ValueError, match="use adjacency='add-remove' or a solver without sampling"):
        Plan(Release("s", "gaussian", multiplier=50.0, sampling=0.1)).calibrate(
            Budget(1.0, 1e-6, "replace-one"), ROWS, "test"
        )


@pytest.mark.parametrize(("q", "count", "delta"), [(1e-4, 1, 1e-3), (1e-12, 100, 1e-6), (0.1, 10, 0.999)])
def test_a_delta_that_needs_no_noise_is_refused(q, count, delta):
    # A row takes part with a probability below delta: releasing the sample as it is would be "private".
    with pytest.raises(ValueError, match=f"delta={delta!r} is at least the probability that a row is sampled"):
        Plan(Release("s", "gaussian", share=1.0, count=count, sampling=q)).calibrate(Budget(1.0, delta), ROWS, "test")


@pytest.mark.parametrize("kind", ["exponential", "objective"])
def test_a_budget_without_zcdp_refuses_what_is_known_by_it(kind):
    with pytest.raises(ValueError, match="no zCDP budget fits"):
        Plan(Release("e", kind, share=1.0)).calibrate(Budget(1e-9, 1e-100), ROWS, "test")


# The adjacency changes sensitivities, not multipliers; equal requests are answered from a cache.


def test_replace_one_has_the_same_multipliers():
    plan = Plan(
        Release("g", "gaussian", share=1.0),
        Release("e", "exponential", share=1.0),
        Release("o", "objective", share=1.0),
    )
    add_remove, replace_one = (
        plan.calibrate(Budget(1.0, 1e-6, a), ROWS, "test") for a in ("add-remove", "replace-one")
    )
    assert add_remove.multipliers == replace_one.multipliers
    assert add_remove.budget != replace_one.budget


def test_equal_requests_are_calibrated_once():
    def request(epsilon=1.0):
        return Plan(Release("s", "gaussian", share=1, count=10, sampling=0.1)).calibrate(
            Budget(epsilon, 1e-6), ROWS, "test"
        )

    first = request()
    hits = calibrate.cache_info().hits
    assert request().multipliers is first.multipliers
    assert calibrate.cache_info().hits == hits + 1
    assert request(1.5).multipliers != first.multipliers


@pytest.mark.parametrize("q", [1.0 - 1e-15, 1.0 - 1e-10, 1.0])
@pytest.mark.parametrize("noise", [0.05, 4.0])
def test_a_sample_of_nearly_all_rows_is_accounted_as_all_rows(q, noise):
    nearly = events.repeated(PoissonSampledDpEvent(q, GaussianDpEvent(noise)), 3)
    assert epsilon_of(nearly, 1e-5) == epsilon_of(events.repeated(GaussianDpEvent(noise), 3), 1e-5)


def test_plans_with_samples_of_nearly_all_rows_are_calibrated():
    plan = Plan(Release("a", "gaussian", 1.0, 3, sampling=1.0 - 1e-15))
    calibrated = plan.calibrate(Budget(1000.0, 1e-5), ROWS, "test")
    assert 990.0 < epsilon_of(calibrated.event, 1e-5) <= 1000.0


@pytest.mark.parametrize(
    ("release", "epsilon", "delta"),
    [
        (Release("a", "laplace", 1.0), 1e-300, 1e-12),
        (Release("a", "laplace", 1.0), 5e-324, 1e-5),
        slow(Release("a", "laplace", 1.0), 1e-8, 0.9),
        (Release("a", "laplace", 1.0, 1000), 1e-8, 1e-5),
        slow(Release("a", "laplace", 1.0, 1000), 1e-3, 0.9),
        (Release("a", "gaussian", 1.0, 100, 0.01), 1e-300, 1e-12),
    ],
    ids=str,
)
def test_budgets_at_the_end_of_what_a_grid_resolves_are_met(release, epsilon, delta):
    calibrated = Plan(release).calibrate(Budget(epsilon, delta), ROWS, "test")
    assert epsilon_of(calibrated.event, delta) <= epsilon
    assert 0.0 < calibrated.multipliers[0] < math.inf


@pytest.mark.parametrize(
    ("plan", "more_noise", "told"),
    [
        (Plan(Release("a", "laplace", 1.0)), True, "accountant of these releases resolves; raise epsilon or delta"),
        (Plan(Release("a", "laplace", 1.0)), False, "accountant of these releases resolves; lower epsilon or delta"),
        (Plan(Release("a", "gaussian", 1.0, 9, 0.1)), False, "the probability that a row is sampled at all"),
        (Plan(Release("a", "laplace", 1.0), Release("b", "laplace", multiplier=9.0)), True, "fixed multipliers leave"),
    ],
)
def test_a_search_that_finds_nothing_tells_what_the_plan_has(plan, more_noise, told, monkeypatch):
    def nothing(*_):
        raise calibration._OutOfReachError(more_noise)

    monkeypatch.setattr(calibration, "_searched_scale", nothing)
    with pytest.raises(ValueError, match=told):
        plan.calibrate(Budget(0.123, 1e-5), ROWS, "test")
