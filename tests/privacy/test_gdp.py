"""Gaussian DP against the same formulas in many digits, and its roots on the safe side."""

import math

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.privacy import gdp

MUS = [1e-12, 1e-8, 1e-4, 1e-3, 0.01, 0.1, 0.3, 0.999, 1.001, 2.0, 5.0, 10.0, 20.0, 49.9, 50.1]
EPSILONS = [0.0, 1e-12, 1e-8, 1e-4, 1e-3, 0.01, 0.1, 1.0, 3.0, 10.0, 50.0, 100.0, 500.0, 1000.0]
DELTAS = [1e-300, 1e-100, 1e-30, 1e-12, 1e-8, 1e-5, 1e-3, 0.1, 0.5, 0.9, 0.999999]

always = settings(derandomize=True, deadline=None, max_examples=100)
mus = st.floats(-6, 1.7).map(lambda x: 10**x)
epsilons = st.floats(-6, 3).map(lambda x: 10**x) | st.just(0.0)
deltas = st.floats(-300, -1e-6).map(lambda x: 10**x)


def exact_delta(mu, epsilon):
    """The defining formula, with enough digits to survive the cancellation of its two terms."""
    with mpmath.workdps(60 + int(max(0.0, -2 * math.log10(mu)))):
        mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
        upper = mpmath.erfc((epsilon / mu - mu / 2) / mpmath.sqrt(2)) / 2
        lower = mpmath.erfc((epsilon / mu + mu / 2) / mpmath.sqrt(2)) / 2
        return upper - mpmath.exp(epsilon) * lower


def relative(value, truth):
    return float((mpmath.mpf(value) - truth) / truth)


@pytest.mark.parametrize("mu", MUS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_delta_agrees_with_many_digits(mu, epsilon):
    truth = exact_delta(mu, epsilon)
    got = gdp.delta_from_mu(mu, epsilon)
    if truth < 1e-300:
        assert 0.0 <= got < 2e-300
    else:
        # exp(-x^2/2) at x = 37 turns one rounding of x into 3e-13; everything else keeps 15 digits.
        assert abs(relative(got, truth)) < 1e-12


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_mu_is_the_safe_side_of_the_root(epsilon, delta):
    mu = gdp.mu_from_budget(epsilon, delta)
    assert mu > 0
    assert gdp.delta_from_mu(mu, epsilon) <= delta
    truth = exact_delta(mu, epsilon)
    assert truth <= delta * (1 + mpmath.mpf(1e-12))  # the rounding of delta_from_mu itself
    assert exact_delta(mu * (1 + 1e-9), epsilon) > delta  # and no larger mu would do


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("mu", MUS)
def test_epsilon_is_the_safe_side_of_the_root(mu, delta):
    epsilon = gdp.epsilon_from_mu(mu, delta)
    assert gdp.delta_from_mu(mu, epsilon) <= delta
    assert exact_delta(mu, epsilon) <= delta * (1 + mpmath.mpf(1e-12))
    if epsilon > 0:
        # Near delta(mu, 0) epsilon is an ill-conditioned root; a step of 1e-9 mu is far above that rounding.
        assert exact_delta(mu, max(0.0, epsilon * (1 - 1e-9) - 1e-12 * mu)) > delta


@always
@given(epsilons, deltas)
def test_budget_to_mu_and_back(epsilon, delta):
    mu = gdp.mu_from_budget(epsilon, delta)
    assert gdp.delta_from_mu(mu, epsilon) <= delta
    back = gdp.epsilon_from_mu(mu, delta)
    assert gdp.delta_from_mu(mu, back) <= delta
    # Where delta is close to 1, or epsilon below mu, delta hardly depends on epsilon and rounding of delta shows.
    slope = max(1.0, delta / (1 - delta))
    assert back == pytest.approx(epsilon, rel=1e-9, abs=1e-12 * mu * (1 + mu) * slope)


@always
@given(mus, deltas)
def test_mu_to_epsilon_and_back(mu, delta):
    epsilon = gdp.epsilon_from_mu(mu, delta)
    back = gdp.mu_from_budget(epsilon, delta)
    assert back >= mu * (1 - 1e-12)
    if epsilon > 0 and delta < 0.999:
        assert back == pytest.approx(mu, rel=1e-9)


@always
@given(mus, mus, epsilons, deltas)
def test_monotone_in_mu(one, other, epsilon, delta):
    low, high = sorted((one, other))
    assert gdp.delta_from_mu(low, epsilon) <= gdp.delta_from_mu(high, epsilon) * (1 + 1e-12)
    assert gdp.epsilon_from_mu(low, delta) <= gdp.epsilon_from_mu(high, delta) * (1 + 1e-12)


@always
@given(mus, epsilons, epsilons, deltas, deltas)
def test_monotone_in_epsilon_and_delta(mu, epsilon, more, delta, other):
    epsilon, more = sorted((epsilon, more))
    delta, other = sorted((delta, other))
    assert gdp.delta_from_mu(mu, more) <= gdp.delta_from_mu(mu, epsilon) * (1 + 1e-12)
    assert gdp.mu_from_budget(epsilon, delta) <= gdp.mu_from_budget(more, delta) * (1 + 1e-12)
    assert gdp.mu_from_budget(epsilon, delta) <= gdp.mu_from_budget(epsilon, other) * (1 + 1e-12)


def test_delta_at_epsilon_zero_is_the_total_variation():
    for mu in MUS:
        assert gdp.delta_from_mu(mu, 0.0) == pytest.approx(math.erf(mu / math.sqrt(8)), rel=1e-14)


def test_tiny_mu_keeps_its_digits():
    # Both were 0 when the two terms were subtracted: a claim of perfect privacy.
    assert gdp.delta_from_mu(1e-20, 0.0) == pytest.approx(1e-20 / math.sqrt(2 * math.pi), rel=1e-14)
    assert gdp.epsilon_from_mu(1e-20, 1e-30) > 0
    assert gdp.mu_from_budget(0.0, 1e-300) == pytest.approx(1e-300 * math.sqrt(2 * math.pi), rel=1e-12)


def test_limits():
    assert gdp.delta_from_mu(0.0, 0.0) == 0.0
    assert gdp.delta_from_mu(math.inf, 5.0) == 1.0
    assert gdp.delta_from_mu(math.inf, math.inf) == 0.0
    assert gdp.delta_from_mu(1.0, math.inf) == 0.0
    assert gdp.mu_from_budget(math.inf, 1e-6) == math.inf
    assert gdp.epsilon_from_mu(math.inf, 1e-6) == math.inf
    assert gdp.epsilon_from_mu(0.0, 1e-6) == 0.0
    assert gdp.epsilon_from_mu(1e200, 1e-6) == math.inf  # mu^2 / 2 is beyond float64
    assert gdp.mu_from_budget(1e300, 1e-6) == pytest.approx(math.sqrt(2e300), rel=1e-9)
    for delta in (5e-324, 1e-320):
        assert gdp.delta_from_mu(gdp.mu_from_budget(1.0, delta), 1.0) <= delta


def test_the_root_may_lie_close_to_zero():
    delta = gdp.delta_from_mu(1.0, 0.0)
    for below in (1e-15, 1e-12, 1e-6):
        epsilon = gdp.epsilon_from_mu(1.0, delta * (1 - below))
        assert 0 < epsilon < 10 * below
        assert gdp.delta_from_mu(1.0, epsilon) <= delta * (1 - below)
    assert gdp.epsilon_from_mu(1.0, delta) == 0.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gdp.mu_from_budget(-0.1, 1e-6), "epsilon must be at least 0, got -0.1"),
        (lambda: gdp.mu_from_budget(math.nan, 1e-6), "epsilon must be a number, got NaN"),
        (lambda: gdp.mu_from_budget(1.0, 0.0), r"delta must lie strictly between 0 and 1, got 0\.0"),
        (lambda: gdp.mu_from_budget(1.0, 1.0), "delta must lie strictly between 0 and 1, got 1.0"),
        (lambda: gdp.mu_from_budget(1.0, -1e-9), "delta must lie strictly between 0 and 1, got -1e-09"),
        (lambda: gdp.mu_from_budget(1.0, math.nan), "delta must be a number, got NaN"),
        (lambda: gdp.epsilon_from_mu(-1.0, 1e-6), r"mu must be at least 0, got -1\.0"),
        (lambda: gdp.epsilon_from_mu(math.nan, 1e-6), "mu must be a number, got NaN"),
        (lambda: gdp.epsilon_from_mu(1.0, 2.0), "delta must lie strictly between 0 and 1, got 2.0"),
    ],
)
def test_bad_input_names_parameter_and_value(call, message):
    with pytest.raises(ValueError, match=message):
        call()
