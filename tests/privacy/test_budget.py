"""Budgets: exact in Gaussian DP, as tight as zCDP allows, and strict about what they are given."""

import dataclasses
import math

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, ZCDpEvent
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from scipy.optimize import minimize_scalar

from tacit.privacy import Budget, epsilon_of, gdp

GRID = [(epsilon, delta) for epsilon in (0.1, 1.0, 3.0, 10.0) for delta in (1e-3, 1e-6, 1e-9)]


@pytest.mark.parametrize(("epsilon", "delta"), GRID)
def test_mu_agrees_with_the_pld_accountant(epsilon, delta):
    accountant = PLDAccountant()
    accountant.compose(GaussianDpEvent(1.0 / Budget(epsilon, delta).mu))
    assert accountant.get_epsilon(delta) == pytest.approx(epsilon, rel=1e-4)


@pytest.mark.parametrize("mu", [0.05, 0.2, 1.0, 3.0])
def test_from_mu_agrees_with_the_pld_accountant(mu):
    accountant = PLDAccountant()
    accountant.compose(GaussianDpEvent(1.0 / mu))
    for delta in (1e-3, 1e-6, 1e-9):
        budget = Budget.from_mu(mu, delta, "replace-one")
        assert budget.epsilon == pytest.approx(accountant.get_epsilon(delta), rel=1e-4)
        assert budget.mu == pytest.approx(mu, rel=1e-9)
        assert (budget.delta, budget.adjacency) == (delta, "replace-one")


@pytest.mark.parametrize(("epsilon", "delta"), [*GRID, (0.01, 1e-6), (100.0, 1e-6), (1.0, 1e-100)])
def test_rho_is_the_best_that_zcdp_allows(epsilon, delta):
    rho = Budget(epsilon, delta).rho

    def epsilon_at(log_excess):  # of the best known conversion, at order 1 + exp(log_excess)
        order = 1 + math.exp(log_excess)
        return rho * order + math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)

    grid = np.linspace(-5, 18, 2000)
    start = grid[np.argmin([epsilon_at(x) for x in grid])]
    best = minimize_scalar(epsilon_at, bounds=(start - 0.1, start + 0.1), method="bounded", options={"xatol": 1e-10})
    assert epsilon * (1 - 1e-4) <= best.fun <= epsilon * (1 + 1e-12)


@pytest.mark.parametrize(("epsilon", "delta"), GRID)
def test_rho_agrees_with_the_renyi_accountant(epsilon, delta):
    rho = Budget(epsilon, delta).rho
    accountant = RdpAccountant(1 + np.geomspace(0.01, 1e7, 20_000))
    accountant.compose(ZCDpEvent(rho))
    assert epsilon * (1 - 1e-4) <= accountant.get_epsilon(delta) <= epsilon * (1 + 1e-6)
    assert epsilon_of(ZCDpEvent(rho), delta) <= epsilon
    assert epsilon_of(ZCDpEvent(rho * (1 + 1e-4)), delta) > epsilon


def test_rho_is_below_half_of_mu_squared():
    # mu-GDP is (mu^2 / 2)-zCDP, so the zCDP that a budget allows can never be more than that.
    for epsilon, delta in GRID:
        budget = Budget(epsilon, delta)
        assert budget.rho < budget.mu**2 / 2


def test_a_budget_too_small_for_zcdp_says_so():
    budget = Budget(1e-9, 1e-100)
    with pytest.raises(ValueError, match=r"epsilon=1e-09 at delta=1e-100"):
        _ = budget.rho
    assert budget.mu > 0


def test_the_non_private_limit():
    budget = Budget(math.inf, 1e-6)
    assert (budget.mu, budget.rho, budget.is_private) == (math.inf, math.inf, False)
    assert Budget.from_mu(math.inf, 1e-6) == budget
    assert Budget(1.0, 1e-6).is_private


def test_frozen_equal_and_hashable():
    budget = Budget(1, np.float64(1e-6))
    same = Budget(np.float32(1.0), 1e-6, "add-remove")
    _ = budget.mu, budget.rho  # cached values must not take part in equality
    assert budget == same
    assert hash(budget) == hash(same)
    assert len({budget, same, Budget(1.0, 1e-6, "replace-one"), Budget(2.0, 1e-6)}) == 3
    assert type(budget.epsilon) is type(budget.delta) is float
    for name in ("epsilon", "delta", "adjacency", "mu"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(budget, name, 2.0)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((0.0, 1e-6), ValueError, r"epsilon must be above 0, got 0\.0"),
        ((-1, 1e-6), ValueError, r"epsilon must be above 0, got -1\.0"),
        ((-math.inf, 1e-6), ValueError, "epsilon must be above 0, got -inf"),
        ((math.nan, 1e-6), ValueError, "epsilon must be a number, got NaN"),
        (("1", 1e-6), TypeError, "epsilon must be a real number, got '1' of type str"),
        ((None, 1e-6), TypeError, "epsilon must be a real number, got None"),
        ((True, 1e-6), TypeError, "epsilon must be a real number, got True of type bool"),
        ((1.0, 0.0), ValueError, r"delta must lie strictly between 0 and 1, got 0\.0"),
        ((1.0, 1.0), ValueError, r"delta must lie strictly between 0 and 1, got 1\.0"),
        ((1.0, -1e-6), ValueError, "delta must lie strictly between 0 and 1, got -1e-06"),
        ((1.0, math.nan), ValueError, "delta must be a number, got NaN"),
        ((1.0, None), TypeError, "delta must be a real number, got None"),
        ((1.0, 1e-6, "swap"), ValueError, "adjacency must be one of 'add-remove', 'replace-one', got 'swap'"),
        ((1.0, 1e-6, None), ValueError, "adjacency must be one of .* got None"),
    ],
)
def test_bad_input_names_parameter_and_value(arguments, error, message):
    with pytest.raises(error, match=message):
        Budget(*arguments)


def test_from_mu_refuses_what_needs_no_epsilon():
    with pytest.raises(ValueError, match=r"mu=1e-08 is \(0, delta\)-DP at delta=1e-06"):
        Budget.from_mu(1e-8, 1e-6)
    with pytest.raises(ValueError, match=r"mu must be above 0, got 0\.0"):
        Budget.from_mu(0.0, 1e-6)
    with pytest.raises(ValueError, match="delta must lie strictly between 0 and 1"):
        Budget.from_mu(1.0, 0.0)


def test_from_mu_is_the_smallest_budget():
    budget = Budget.from_mu(0.7, 1e-6)
    assert gdp.delta_from_mu(0.7, budget.epsilon) <= 1e-6
    assert gdp.delta_from_mu(0.7, budget.epsilon * (1 - 1e-9)) > 1e-6


def test_the_default_delta_follows_the_number_of_rows():
    assert Budget.for_rows(48_842, 1.0) == Budget(1.0, 48_842**-1.5)
    assert Budget.for_rows(100, 2.0, 1e-5, "replace-one") == Budget(2.0, 1e-5, "replace-one")
    with pytest.warns(UserWarning, match=r"delta=0\.01 is not below 1/n = 0\.01"):
        assert Budget.for_rows(100, 1.0, 0.01).delta == 0.01
