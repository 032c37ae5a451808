"""Objective perturbation: the linear term's noise, and the modulus and resolution that go with it.

The theorem behind it is tested in `tests/guarantees/test_objective.py`.
"""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from tacit.privacy import Budget, Gate, NoiseSource, Plan, PlanViolationError, Release, events
from tacit.privacy.mechanisms import ObjectivePerturbation
from tacit.privacy.noise import samplers
from tests.units import ROWS

TERM = SimpleNamespace(minimiser=lambda linear: linear)  # a search that gives the secret away
every_adjacency = pytest.mark.parametrize(("adjacency", "factor"), [("add-remove", 1.0), ("replace-one", 2.0)])


def open_gate(multiplier=1.5, adjacency="add-remove", kind="objective", seed=0):
    fixed = {"share": 1.0} if multiplier == 0 else {"multiplier": multiplier}
    return Gate(
        Plan(Release("r", kind, **fixed)).calibrate(Budget(math.inf, 1e-6, adjacency), ROWS, "test"), NoiseSource(seed)
    )


@every_adjacency
def test_mu_and_tau_are_what_the_event_says(adjacency, factor):
    """For add-remove mu = 1 / z and tau = ratio mu; half of both for replace-one: a group of two costs four times."""
    mechanism, gate = ObjectivePerturbation(gradient=3.0, curvature=5.0), open_gate(1.5, adjacency)
    mu = 3.0 / gate.noise("r", mechanism.sensitivity)
    tau = 5.0 / mechanism.convexity(gate.multiplier("r"), adjacency)
    assert mu == pytest.approx(1 / 1.5 / factor)
    assert tau == pytest.approx(events.OBJECTIVE_RATIO * mu)
    constant = (events.OBJECTIVE_COST - 1) / events.OBJECTIVE_RATIO**2
    assert events.objective(1.5).rho == pytest.approx(factor**2 * (mu**2 + constant * tau**2) / 2)


@every_adjacency
def test_the_term_is_normal_with_its_deviation(adjacency, factor):
    mechanism = ObjectivePerturbation(gradient=3.0, curvature=5.0)
    term = open_gate(1.5, adjacency).release("r", mechanism, 4000, TERM)
    assert term.shape == (4000,)
    assert stats.kstest(term, stats.norm(scale=3.0 * 1.5 * factor).cdf).pvalue > 1e-3


def test_the_term_is_off_the_ideal_normal_by_less_than_the_resolution():
    """The same words as exact normals: what is drawn is their floor on the grid."""
    size, z = 300, 1.5
    mechanism, gate = ObjectivePerturbation(3.0, 5.0), open_gate(z, seed=7)
    resolution = mechanism.resolution(gate.noise("r", mechanism.sensitivity), size)
    term = gate.release("r", mechanism, size, TERM)
    floors = samplers.normals(NoiseSource(7), size)  # of 2^40 times normals
    step = term[0] / floors[0]
    np.testing.assert_allclose(term, floors * step, rtol=1e-15)
    assert 3.0 * z <= step * 2.0**40 <= 3.0 * z * (1 + 1e-5)  # a little more than planned covers the rounding of grids
    assert math.sqrt(size) * step <= resolution <= 1e-9


def test_a_draw_is_counted_and_must_be_planned():
    mechanism, gate = ObjectivePerturbation(3.0, 5.0), open_gate()
    gate.release("r", mechanism, 2, TERM)
    with pytest.raises(PlanViolationError, match="of which 0 are left"):
        gate.release("r", mechanism, 2, TERM)
    with pytest.raises(PlanViolationError, match="planned as gaussian, not as objective"):
        open_gate(kind="gaussian").release("r", mechanism, 2, TERM)


def test_in_the_non_private_limit_there_is_no_term():
    mechanism, gate = ObjectivePerturbation(3.0, 5.0), open_gate(0)
    assert mechanism.convexity(gate.multiplier("r"), "add-remove") == gate.noise("r", mechanism.sensitivity) == 0
    assert mechanism.resolution(0.0, 3) == 0
    np.testing.assert_array_equal(gate.release("r", mechanism, 3, TERM), np.zeros(3))


def test_the_term_is_drawn_before_the_problem_is_looked_at():
    """The draw does not depend on data: where there is nothing left to draw, no search begins."""
    problem = SimpleNamespace(minimiser=lambda _: pytest.fail("the problem was read"))
    gate = open_gate()
    gate.skip("r")
    with pytest.raises(PlanViolationError, match="of which 0 are left"):
        gate.release("r", ObjectivePerturbation(3.0, 5.0), 2, problem)
