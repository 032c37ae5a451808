"""What events cost: agreement with `dp_accounting` where it is right, and never below the truth where it is not."""

import math

import mpmath
import numpy as np
import pytest
from dp_accounting import (
    ComposedDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NonPrivateDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    RandomizedResponseDpEvent,
    SampledWithReplacementDpEvent,
    SelfComposedDpEvent,
    SingleEpochTreeAggregationDpEvent,
    ZCDpEvent,
)
from dp_accounting.pld import PLDAccountant, privacy_loss_distribution
from dp_accounting.rdp import RdpAccountant
from scipy.optimize import brentq

from tacit.privacy import Budget, UnsupportedEventError, accounting, delta_of, epsilon_of, gdp, mu_of

DENSE_ORDERS = 1 + np.geomspace(0.02, 1e7, 5000)


def sampled(q, z):
    return PoissonSampledDpEvent(q, GaussianDpEvent(z))


def times(event, count):
    return SelfComposedDpEvent(event, count)


def both(*events):
    return ComposedDpEvent(events)


def by_pld(event, delta):
    return PLDAccountant().compose(event).get_epsilon(delta)


def by_renyi(event, delta, orders=DENSE_ORDERS):
    return RdpAccountant(orders).compose(event).get_epsilon(delta)


GAUSSIANS = {
    "one": (GaussianDpEvent(2.0), 0.5),
    "repeated": (times(GaussianDpEvent(10.0), 100), 1.0),
    "several": (both(GaussianDpEvent(3.0), GaussianDpEvent(4.0), times(GaussianDpEvent(12.0), 4)), None),
    "nested": (times(both(GaussianDpEvent(5.0), times(GaussianDpEvent(5.0), 3), NoOpDpEvent()), 2), math.sqrt(8) / 5),
}
SAMPLED = {
    "small q": times(sampled(0.001, 1.2), 10_000),
    "middle q": times(sampled(0.05, 2.0), 300),
    "large q": times(sampled(0.9, 8.0), 30),
    "one step": sampled(0.1, 3.0),
}
PLD_KINDS = {
    **SAMPLED,
    "Laplace": LaplaceDpEvent(2.0),
    "many Laplace": times(LaplaceDpEvent(30.0), 200),
    "Laplace and Gaussian": both(LaplaceDpEvent(3.0), GaussianDpEvent(4.0)),
    "sampled and Gaussian": both(times(sampled(0.01, 2.0), 500), times(GaussianDpEvent(12.0), 4)),
    "all three": both(times(sampled(0.02, 1.5), 200), LaplaceDpEvent(5.0), GaussianDpEvent(6.0)),
}
SELECTIONS = {
    "one": ZCDpEvent(0.02),
    "many": times(ZCDpEvent(0.001), 50),
    "with xi": ZCDpEvent(0.02, 0.1),
    "and Gaussian": both(times(ZCDpEvent(0.001), 20), GaussianDpEvent(5.0)),
    "and Laplace": both(ZCDpEvent(0.02), LaplaceDpEvent(4.0)),
    "and sampled": both(ZCDpEvent(0.02), times(sampled(0.01, 1.5), 200)),
}
DELTAS = [1e-6, 1e-10]


# Agreement.


@pytest.mark.parametrize(("event", "mu"), GAUSSIANS.values(), ids=GAUSSIANS)
def test_gaussians_are_exact(event, mu):
    mu = math.sqrt(1 / 9 + 1 / 16 + 4 / 144) if mu is None else mu
    assert mu_of(event) == pytest.approx(mu, rel=1e-14)
    for delta in (1e-3, 1e-6, 1e-100):
        epsilon = epsilon_of(event, delta)
        assert epsilon == pytest.approx(gdp.epsilon_from_mu(mu, delta), rel=1e-12)
        assert delta_of(event, epsilon) <= delta * (1 + 1e-12)
    assert epsilon_of(event, 1e-6) == pytest.approx(by_pld(event, 1e-6), rel=1e-4)
    assert epsilon_of(event, 1e-6) <= by_renyi(event, 1e-6)


@pytest.mark.parametrize("event", PLD_KINDS.values(), ids=PLD_KINDS)
def test_pld_kinds_agree_with_the_pld_accountant(event):
    accountant = PLDAccountant().compose(event)
    for delta in DELTAS:
        theirs = accountant.get_epsilon(delta)
        # Above it by the slack on delta; merging the Gaussians saves a little of the discretisation.
        assert theirs * (1 - 1e-5) <= epsilon_of(event, delta) <= theirs * (1 + 5e-3)


@pytest.mark.parametrize("event", SELECTIONS.values(), ids=SELECTIONS)
def test_selections_agree_with_the_renyi_accountant(event):
    orders = DENSE_ORDERS
    if "Poisson" in repr(event):  # the time for an order grows with it
        orders = np.concatenate([np.arange(2, 64, 0.5), np.arange(64, 600, 8)])
    for delta in DELTAS:
        assert epsilon_of(event, delta) == pytest.approx(by_renyi(event, delta, orders), rel=2e-3)


def test_one_laplace_release_is_exact():
    # delta(epsilon) = 1 - exp((epsilon - 1/z) / 2)
    for z in (0.2, 1.0, 10.0):
        for delta in (1e-3, 1e-6):
            exact = 1 / z + 2 * math.log1p(-delta)
            assert exact <= epsilon_of(LaplaceDpEvent(z), delta) <= exact + 2e-4


@pytest.mark.parametrize(
    ("q", "z"),
    [
        (0.01, 1.5),
        *(pytest.param(*p, marks=pytest.mark.slow) for p in ((0.001, 0.9), (0.1, 2.0), (0.5, 4.0), (0.99, 3.0))),
    ],
)
def test_one_sampled_release_is_exact(q, z):
    # (1-q) N(0) + q N(1) - e^epsilon N(0) = q (N(1) - e^shifted N(0)), the worse of the two directions.
    def exact_delta(epsilon):
        return q * gdp.delta_from_mu(1 / z, math.log1p(math.expm1(epsilon) / q))

    for delta in (1e-3 * q, 1e-7 * q):
        exact = brentq(lambda epsilon, delta=delta: exact_delta(epsilon) - delta, 0.0, 100.0, xtol=1e-12)
        assert exact * (1 - 1e-9) <= epsilon_of(sampled(q, z), delta) <= exact * (1 + 1e-3) + 1e-4
        assert delta_of(sampled(q, z), exact) >= delta * (1 - 1e-9)


@pytest.mark.parametrize("split", [(0.5, 0.5), (0.9, 0.1), (1 / 3, 1 / 3, 1 / 3)])
def test_one_coordinate_is_the_worst_case_of_laplace_noise(split):
    # A LaplaceVector changes several coordinates by 1 in the l1 norm; its event is that of one coordinate by 1.
    spread = both(*(LaplaceDpEvent(2.0 / part) for part in split))
    for delta in (1e-4, 1e-2, 0.1):
        assert epsilon_of(spread, delta) <= epsilon_of(LaplaceDpEvent(2.0), delta) + 1e-4


# Trap (a): rounding of the Fourier transform. How far it is off is a matter of the processor; it may do its worst.


def test_a_plain_gaussian_by_pld_is_safe_with_the_slack():
    raw = privacy_loss_distribution.from_gaussian_mechanism(100.0).self_compose(10_000)
    slack = accounting._fourier_slack(times(sampled(0.5, 100.0), 10_000))
    for delta in np.geomspace(10 * slack, 1e-6, 30):
        assert raw.get_epsilon_for_delta(delta - slack) >= gdp.epsilon_from_mu(1.0, delta)


@pytest.mark.parametrize("steps", [100, 10_000])
def test_a_rounding_error_of_every_step_is_paid_for(steps, monkeypatch):
    """An accountant whose delta is too small by 2e-16 for each step: what is told stays above the truth."""
    event, error = times(sampled(1 - 1e-12, math.sqrt(steps)), steps), 2e-16 * steps
    delta_of_pld, epsilon_of_pld = PLDAccountant.get_delta, PLDAccountant.get_epsilon
    monkeypatch.setattr(PLDAccountant, "get_delta", lambda pld, epsilon: max(0.0, delta_of_pld(pld, epsilon) - error))
    monkeypatch.setattr(PLDAccountant, "get_epsilon", lambda pld, delta: epsilon_of_pld(pld, delta + error))
    accounting._numerical_epsilon.cache_clear()
    for delta in (1e-6, 22 * error):
        exact = gdp.epsilon_from_mu(1.0, delta)
        assert accounting.uses_pld(event, delta)
        assert epsilon_of(event, delta) >= exact * (1 - 1e-9)
        assert delta_of(event, exact) >= delta * (1 - 1e-9)
    accounting._numerical_epsilon.cache_clear()


@pytest.mark.parametrize("steps", [1, 100, pytest.param(1_000, marks=pytest.mark.slow), 10_000])
@pytest.mark.parametrize("mu", [0.1, pytest.param(1.0, marks=pytest.mark.slow)])
def test_sampling_almost_everything_costs_no_less_than_everything(mu, steps):
    # Poisson sampling with 1 - q = 1e-12 takes the numerical path and is a plain Gaussian to 12 digits.
    event = times(sampled(1 - 1e-12, math.sqrt(steps) / mu), steps)
    spacing = accounting.DISCRETIZATION
    pld = accounting._pld(event, spacing)
    slack = accounting._fourier_slack(event)
    for delta in np.geomspace(1e-13, 1e-6, 15):
        exact = gdp.epsilon_from_mu(mu, delta)
        if accounting.uses_pld(event, delta):
            assert pld.get_epsilon(delta - slack) >= exact * (1 - 1e-9)
            assert pld.get_delta(exact) + slack >= delta * (1 - 1e-9)


@pytest.mark.parametrize("delta", [1e-6, 1e-9, 1e-11, 1e-12, 1e-13])
def test_epsilon_of_is_safe_on_both_sides_of_the_switch(delta):
    for steps in (100, 10_000):
        event = times(sampled(1 - 1e-12, math.sqrt(steps)), steps)
        assert epsilon_of(event, delta) >= gdp.epsilon_from_mu(1.0, delta) * (1 - 1e-9)


def test_a_coarser_spacing_costs_more():
    event = times(sampled(0.01, 1.0), 1000)
    epsilons = [accounting.epsilon_at_spacing(event, 1e-6, k * accounting.DISCRETIZATION) for k in (2, 5, 20)]
    assert epsilons == sorted(epsilons)
    assert epsilons[-1] <= 1.02 * epsilons[0]


# Trap (b): the orders of the Renyi accountant.


def test_dense_orders_lose_nothing_and_never_cost_more_than_the_default_ones():
    for epsilon in (0.01, 0.1, 1.0, 10.0):
        for delta in (1e-3, 1e-6):
            event = ZCDpEvent(Budget(epsilon, delta).rho)
            assert epsilon_of(event, delta) == pytest.approx(epsilon, rel=1e-9)
            assert epsilon <= RdpAccountant().compose(event).get_epsilon(delta) * (1 + 1e-4)


@pytest.mark.parametrize(
    ("q", "z"), [(0.01, 1.0), *(pytest.param(*p, marks=pytest.mark.slow) for p in ((0.001, 0.7), (0.2, 3.0)))]
)
def test_renyi_curve_of_a_sampled_gaussian_is_an_upper_bound(q, z):
    # E[((1-q) + q exp((2x-1) / (2 z^2)))^order] over N(0, z^2), in many digits.
    accountant = accounting._renyi(sampled(q, z))
    for k, order in enumerate(accountant._orders[:60]):
        if k % 15 and order != 2:
            continue
        with mpmath.workdps(30):

            def moment(x, order=float(order)):
                ratio = 1 - q + q * mpmath.exp((2 * x - 1) / (2 * mpmath.mpf(z) ** 2))
                return mpmath.npdf(x, 0, z) * ratio**order

            points = np.concatenate(
                [np.linspace(-20 * z, 0, 8), np.linspace(0, order, 4), np.linspace(order, 20 * z + order, 8)]
            )
            truth = mpmath.log(mpmath.quad(moment, np.unique(points).tolist())) / (float(order) - 1)
            assert truth <= accountant._rdp[k]
            if order == int(order):  # between whole orders the library adds up absolute values
                assert accountant._rdp[k] <= truth * (1 + mpmath.mpf(1e-9)) + 2 * accounting._RENYI_ERROR_PER_STEP


# Never below the truth.


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("mu", [0.1, 0.5, 2.0])
def test_a_selection_that_stands_for_a_gaussian_hides_nothing(mu, part):
    # A mu-GDP Gaussian is (mu^2 / 2)-zCDP, so this event may cost no less than two Gaussians.
    first, second = mu * math.sqrt(part), mu * math.sqrt(1 - part)
    event = both(GaussianDpEvent(1 / first), ZCDpEvent(second**2 / 2))
    for delta in (1e-3, 1e-6, 1e-12):
        exact = gdp.epsilon_from_mu(mu, delta)
        assert exact <= epsilon_of(event, delta) <= 1.3 * exact
        assert delta_of(event, exact) >= delta


def test_a_selection_that_stands_for_a_laplace_release_hides_nothing():
    # Pure epsilon is (epsilon^2 / 2)-zCDP.
    for z in (1.0, 5.0):
        mixed = both(times(LaplaceDpEvent(z), 4), times(ZCDpEvent(0.5 / z**2), 4))
        assert epsilon_of(mixed, 1e-6) >= epsilon_of(times(LaplaceDpEvent(z), 8), 1e-6)


@pytest.mark.parametrize("event", SAMPLED.values(), ids=SAMPLED)
def test_renyi_is_never_below_pld_for_sampled_gaussians(event):
    pld, renyi = accounting._pld(event, accounting.DISCRETIZATION), accounting._renyi(event)
    for delta in (1e-4, 1e-6, 1e-9):
        exact_or_less = pld.get_epsilon(delta)
        assert exact_or_less * (1 - 2e-3) <= renyi.get_epsilon(delta)


@pytest.mark.parametrize("event", SAMPLED.values(), ids=SAMPLED)
def test_a_mixture_costs_at_least_each_of_its_parts(event):
    for other in (GaussianDpEvent(3.0), LaplaceDpEvent(3.0), ZCDpEvent(0.05)):
        together = epsilon_of(both(event, other), 1e-6)
        assert together >= epsilon_of(event, 1e-6) * (1 - 2e-3)
        assert together >= epsilon_of(other, 1e-6)


def test_a_bounded_range_selection_is_covered_by_its_zcdp():
    # The worst pair of range e0 has two outcomes, with log-ratios e0 - shift and -shift.
    for e0 in (0.1, 1.0, 4.0):
        for shift in np.linspace(0.02, 0.98, 49) * e0:
            q = math.expm1(shift) / math.expm1(e0)
            p = math.exp(e0 - shift) * q
            for order in (1.01, 2.0, 5.0, 50.0):
                for a, b in ((p, q), (q, p)):
                    moment = a**order * b ** (1 - order) + (1 - a) ** order * (1 - b) ** (1 - order)
                    assert math.log(moment) / (order - 1) <= e0**2 / 8 * order * (1 + 1e-9)


# Consistency.


@pytest.mark.parametrize(
    "event", [*PLD_KINDS.values(), *SELECTIONS.values()], ids=[*PLD_KINDS, *(f"selection: {s}" for s in SELECTIONS)]
)
def test_delta_of_and_epsilon_of_agree(event):
    for delta in DELTAS:
        assert delta_of(event, epsilon_of(event, delta)) <= delta * (1 + 1e-6)
    assert 1e-6 < delta_of(event, 0.0) <= 1.0


def test_nesting_and_order_do_not_matter():
    parts = [times(sampled(0.02, 1.5), 20), GaussianDpEvent(6.0), LaplaceDpEvent(5.0), GaussianDpEvent(8.0)]
    flat = epsilon_of(both(*parts), 1e-6)
    assert epsilon_of(both(parts[3], both(parts[2], both(parts[0])), parts[1], NoOpDpEvent()), 1e-6) == pytest.approx(
        flat, rel=1e-9
    )
    assert epsilon_of(ComposedDpEvent(parts), 1e-6) == flat  # a list, as the library's own type says


def test_nothing_costs_nothing():
    for event in (NoOpDpEvent(), ComposedDpEvent(()), ComposedDpEvent([]), times(GaussianDpEvent(1.0), 0)):
        assert epsilon_of(event, 1e-6) == 0.0
        assert delta_of(event, 0.0) == 0.0
        assert mu_of(event) == 0.0
    assert epsilon_of(GaussianDpEvent(math.inf), 1e-6) == 0.0
    assert epsilon_of(GaussianDpEvent(1e200), 1e-6) == 0.0


@pytest.mark.parametrize(
    "event",
    [
        NonPrivateDpEvent(),
        both(GaussianDpEvent(1.0), NonPrivateDpEvent()),
        GaussianDpEvent(0.0),
        GaussianDpEvent(-1.0),
        GaussianDpEvent(math.nan),
        LaplaceDpEvent(0.0),
        LaplaceDpEvent(-1.0),
        LaplaceDpEvent(math.nan),
        sampled(0.1, 0.0),
        sampled(0.1, -1.0),
        sampled(0.1, math.nan),
        ZCDpEvent(math.inf),
        ZCDpEvent(math.nan),
        ZCDpEvent(0.1, math.inf),
        ZCDpEvent(0.1, math.nan),
    ],
    ids=repr,
)
def test_no_noise_is_no_privacy(event):
    assert epsilon_of(event, 1e-6) == math.inf
    assert epsilon_of(both(event, LaplaceDpEvent(1.0)), 1e-6) == math.inf
    assert delta_of(event, 100.0) == 1.0


@pytest.mark.parametrize(
    "event",
    [
        RandomizedResponseDpEvent(0.1, 2),
        PoissonSampledDpEvent(0.1, LaplaceDpEvent(1.0)),
        PoissonSampledDpEvent(0.1, ComposedDpEvent([GaussianDpEvent(1.0)])),
        SampledWithReplacementDpEvent(10, 2, GaussianDpEvent(1.0)),
        SingleEpochTreeAggregationDpEvent(1.0, [1, 2]),
    ],
    ids=lambda event: type(event).__name__,
)
def test_unsupported_events_raise(event):
    for whole in (event, both(GaussianDpEvent(1.0), times(event, 2))):
        for call in (lambda e: epsilon_of(e, 1e-6), lambda e: delta_of(e, 1.0), mu_of):
            with pytest.raises(UnsupportedEventError, match="cannot account for"):
                call(whole)


@pytest.mark.parametrize(
    "event",
    [
        both(GaussianDpEvent(1.0), ZCDpEvent(-0.1)),
        both(GaussianDpEvent(1.0), ZCDpEvent(0.1, -0.1)),
        both(GaussianDpEvent(1.0), times(GaussianDpEvent(1.0), -1)),
        both(GaussianDpEvent(1.0), sampled(-0.1, 1.0)),
        both(GaussianDpEvent(1.0), sampled(1.1, 1.0)),
    ],
)
def test_nothing_can_be_subtracted(event):
    with pytest.raises(ValueError, match=r"must be|not in"):
        epsilon_of(event, 1e-6)


def test_mu_is_for_gaussians_alone():
    for event in (LaplaceDpEvent(1.0), both(GaussianDpEvent(1.0), ZCDpEvent(0.1)), sampled(0.1, 1.0)):
        with pytest.raises(
            UnsupportedEventError, match="only Gaussian releases have an exact mu; this event also holds"
        ):
            mu_of(event)
    assert mu_of(GaussianDpEvent(0.0)) == math.inf
    assert mu_of(GaussianDpEvent(1e-200)) == 1e200
    assert epsilon_of(GaussianDpEvent(1e-200), 1e-6) == math.inf


def test_bad_arguments():
    for delta in (0.0, 1.0, -1e-6, math.nan):
        with pytest.raises(ValueError, match="delta must"):
            epsilon_of(GaussianDpEvent(1.0), delta)
    for epsilon in (-1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="epsilon must"):
            delta_of(GaussianDpEvent(1.0), epsilon)


def test_the_fast_estimate_is_close():
    # No guarantee rests on it, but a calibration is slow without it.
    from tacit.privacy.estimate import estimated_epsilon

    for event in PLD_KINDS.values():
        exact = epsilon_of(event, 1e-6)
        assert estimated_epsilon(accounting.merged(event), 1e-6, exact) == pytest.approx(exact, rel=0.02)
    assert estimated_epsilon([(GaussianDpEvent(0.05), 1)], 1e-6, 300.0) == pytest.approx(
        gdp.epsilon_from_mu(20.0, 1e-6), rel=0.02
    )
