"""Promises about different people, side by side."""

import math

import pytest

from tacit.federated.cap import price_of
from tacit.privacy import Budget, Gate, NoiseSource, Plan, Release, Unit, accounting
from tacit.privacy.apart import at_price_of, beside
from tacit.privacy.mechanisms import GaussianVector, Sensitivity

BUDGET = Budget(1.0, 1e-6)
GAUSSIAN = Plan(Release("a/x", "gaussian", share=1.0), Release("b/x", "gaussian", share=3.0, count=2))
DRAWN = Plan(Release("a/x", "gaussian", share=1.0), Release("a/columns", "exponential", share=1.0, count=4))
OTHERS = Plan(Release("a/held-out y", "gaussian", share=1.0), Release("b/held-out y", "gaussian", share=2.0))


def promised(plan, others=OTHERS):
    first = plan.calibrate(BUDGET, Unit("row", 80), "first")
    return first, at_price_of(first, others, Unit("row", 20))


@pytest.mark.parametrize("plan", [GAUSSIAN, DRAWN], ids=["gaussian", "selection"])
def test_both_cost_what_the_dearer_one_does(plan):
    first, second = promised(plan)
    both = beside(first, second)
    assert both.event == first.event
    assert both.guarantee(seeded=False).recompute() <= 1.0
    mu2 = math.fsum(1.0 / z**2 for z in second.multipliers)
    assert mu2 == pytest.approx(first.plan.spends(first.multipliers), rel=1e-9)
    assert mu2 <= first.plan.spends(first.multipliers)
    assert accounting.epsilon_of(second.event, 1e-6) <= 1.0
    assert [both.multiplier(r.name) for r in plan.releases] == list(first.multipliers)
    assert price_of(both).mu2 == pytest.approx(price_of(first).mu2, rel=1e-9)
    assert price_of(both).mu2 < 0.75 * math.fsum(price_of(one).mu2 for one in (first, second))


def test_without_noise_nothing_is_left_of_it():
    first = GAUSSIAN.calibrate(Budget(math.inf, 1e-6), Unit("row", 80), "first")
    both = beside(first, at_price_of(first, OTHERS, Unit("row", 20)))
    assert set(both.multipliers) == {0.0}


def test_what_costs_more_or_is_of_another_kind_or_budget_is_refused():
    first, second = promised(GAUSSIAN)
    dearer = type(second)(second.plan, BUDGET, second.unit, "x", tuple(0.99 * z for z in second.multipliers))
    with pytest.raises(ValueError, match="cost no more"):
        beside(first, dearer)
    other = OTHERS.calibrate(Budget(0.5, 1e-6), Unit("row", 20), "x")
    with pytest.raises(ValueError, match="of the same budget"):
        beside(first, other)
    drawn = DRAWN.calibrate(BUDGET, Unit("row", 20), "x")
    with pytest.raises(ValueError, match="must be Gaussian"):
        beside(first, drawn)
    with pytest.raises(ValueError, match="Gaussian releases with shares"):
        at_price_of(first, DRAWN, Unit("row", 20))


def test_a_party_s_part_and_what_it_made_cost_what_the_dearer_part_does():
    """Of what one party made: of both parts together no more than of the dearer one."""
    first, second = promised(GAUSSIAN)
    own = beside(first, second).part("b/")
    assert len(own.plan.views) == 2
    of_first, of_second = 2 / first.multiplier("b/x") ** 2, 1 / second.multiplier("b/held-out y") ** 2
    assert accounting.mu_of(own.event) ** 2 == pytest.approx(max(of_first, of_second))
    assert accounting.mu_of(own.made({"x": 1, "held-out y": 1}).event) ** 2 == pytest.approx(
        max(of_first / 2, of_second)
    )
    assert accounting.mu_of(own.made({"x": 1}).event) ** 2 == pytest.approx(of_first / 2)


def test_an_event_covers_a_view_that_is_known_by_its_zcdp_though_another_is_dearer():
    """Of one party the selection may be in the cheaper view: then the event is zCDP of the dearer one's rho."""
    first, second = promised(DRAWN)
    own = beside(first, second).made({"a/columns": 1, "a/held-out y": 1, "b/held-out y": 1})
    rho = own.plan.spends(own.multipliers) / 2.0
    assert accounting.epsilon_of(own.event, 1e-6) == pytest.approx(accounting.epsilon_of(own.event, 1e-6))
    assert accounting.rho_from_budget(accounting.epsilon_of(own.event, 1e-6), 1e-6) == pytest.approx(rho, rel=1e-3)
    alone = DRAWN.releases[1].event(first.multiplier("a/columns"))
    assert accounting.epsilon_of(own.event, 1e-6) > accounting.epsilon_of(alone, 1e-6) / 4.0


def test_laplace_releases_and_samples_are_about_everybody():
    for release in (Release("x", "laplace", share=1.0), Release("x", "gaussian", share=1.0, sampling=0.1)):
        with pytest.raises(ValueError, match="not one that a view can see a part of"):
            Plan(release, Release("y", "gaussian", share=1.0), views=[[0.0, 1.0], [1.0, 0.0]])


def test_a_gate_on_both_counts_each_part_and_knows_its_own_noise():
    first, second = promised(GAUSSIAN)
    gate = Gate(beside(first, second).part("a/"), NoiseSource(0))
    part = gate.part("held-out ")
    vector = GaussianVector(Sensitivity.vector(1.0), bound=10.0)
    assert part.noise("y", vector.sensitivity) == second.multiplier("a/held-out y")
    part.release("y", vector, [1.0])
    assert gate.made == {"x": 0, "held-out y": 1}
