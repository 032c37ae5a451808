"""Objective perturbation: the linear term's noise, and the modulus and resolution that go with it.

The theorem behind it is tested in `tests/guarantees/test_objective.py`.
"""

import math

import numpy as np
import pytest
from scipy import stats

from tacit.privacy import Budget, NoiseSource, Plan, PlanViolationError, Release, events
from tacit.privacy.mechanisms import ObjectivePerturbation
from tacit.privacy.noise import samplers

every_adjacency = pytest.mark.parametrize(("adjacency", "factor"), [("add-remove", 1.0), ("replace-one", 2.0)])


def open_meter(multiplier=1.5, adjacency="add-remove", kind="objective", seed=0):
    fixed = {"share": 1.0} if multiplier == 0 else {"multiplier": multiplier}
    return Plan(Release("r", kind, **fixed)).calibrate(Budget(math.inf, 1e-6, adjacency)).meter(NoiseSource(seed))


@every_adjacency
def test_mu_and_tau_are_what_the_event_says(adjacency, factor):
    """For add-remove mu = 1 / z and tau = ratio mu; half of both for replace-one: a group of two costs four times."""
    mechanism, meter = ObjectivePerturbation(gradient=3.0, curvature=5.0), open_meter(1.5, adjacency)
    mu = 3.0 / mechanism.deviation(meter, "r")
    tau = 5.0 / mechanism.convexity(meter, "r")
    assert mu == pytest.approx(1 / 1.5 / factor)
    assert tau == pytest.approx(events.OBJECTIVE_RATIO * mu)
    constant = (events.OBJECTIVE_COST - 1) / events.OBJECTIVE_RATIO**2
    assert events.objective(1.5).rho == pytest.approx(factor**2 * (mu**2 + constant * tau**2) / 2)


@every_adjacency
def test_the_term_is_normal_with_its_deviation(adjacency, factor):
    mechanism = ObjectivePerturbation(gradient=3.0, curvature=5.0)
    term = mechanism.draw(open_meter(1.5, adjacency), "r", 4000)
    assert term.shape == (4000,)
    assert stats.kstest(term, stats.norm(scale=3.0 * 1.5 * factor).cdf).pvalue > 1e-3


def test_the_term_is_off_the_ideal_normal_by_less_than_the_resolution():
    """The same words as exact normals: what is drawn is their floor on the grid."""
    size, z = 300, 1.5
    mechanism, meter = ObjectivePerturbation(3.0, 5.0), open_meter(z, seed=7)
    resolution = mechanism.resolution(meter, "r", size)
    term = mechanism.draw(meter, "r", size)
    floors = samplers.normals(NoiseSource(7), size)  # of 2^40 times normals
    step = term[0] / floors[0]
    np.testing.assert_allclose(term, floors * step, rtol=1e-15)
    assert 3.0 * z <= step * 2.0**40 <= 3.0 * z * (1 + 1e-5)  # a little more than planned covers the rounding of grids
    assert math.sqrt(size) * step <= resolution <= 1e-9


def test_a_draw_is_counted_and_must_be_planned():
    mechanism, meter = ObjectivePerturbation(3.0, 5.0), open_meter()
    mechanism.draw(meter, "r", 2)
    with pytest.raises(PlanViolationError, match="of which 0 are left"):
        mechanism.draw(meter, "r", 2)
    with pytest.raises(PlanViolationError, match="planned as gaussian, not as objective"):
        mechanism.draw(open_meter(kind="gaussian"), "r", 2)


def test_in_the_non_private_limit_there_is_no_term():
    mechanism, meter = ObjectivePerturbation(3.0, 5.0), open_meter(0)
    assert (
        mechanism.convexity(meter, "r") == mechanism.deviation(meter, "r") == mechanism.resolution(meter, "r", 3) == 0
    )
    np.testing.assert_array_equal(mechanism.draw(meter, "r", 3), np.zeros(3))
