"""A stated guarantee must follow from its event; an event that cannot be accounted for is refused soon."""

import json
import math

import pytest
from dp_accounting import (
    ComposedDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NonPrivateDpEvent,
    PoissonSampledDpEvent,
    ZCDpEvent,
)

from tacit.modelfiles import claims
from tacit.privacy import Guarantee, accounting, events

from .support import loaded, made, quiet, text_of

pytestmark = quiet
SAMPLED = PoissonSampledDpEvent(0.1, GaussianDpEvent(4.0))
EVENTS = {
    "gaussian": events.repeated(GaussianDpEvent(9.0), 30),
    "sampled": events.composed([events.repeated(SAMPLED, 20), GaussianDpEvent(20.0)]),
    "laplace": events.repeated(LaplaceDpEvent(40.0), 10),
    "selections": events.composed([events.repeated(events.exponential(0.2), 9), GaussianDpEvent(5.0)]),
    "sampled selections": events.composed([SAMPLED, events.exponential(0.2)]),
}


def stated(epsilon, event, delta=1e-5, adjacency="add-remove"):
    return Guarantee(epsilon, delta, adjacency, "any", event, 1000)


@pytest.mark.parametrize("name", EVENTS)
def test_a_statement_holds_down_to_what_the_event_costs(name):
    event = EVENTS[name]
    cost = accounting.epsilon_of(event, 1e-5)
    claims.check(stated(cost, event))
    claims.check(stated(2.0 * cost, event))
    claims.check(stated(cost * (1.0 - claims.TOLERANCE / 2), event))
    for less in (1.0 - 2.0 * claims.TOLERANCE, 0.9, 0.5, 0.0):
        with pytest.raises(ValueError, match="its event costs more"):
            claims.check(stated(less * cost, event))


@pytest.mark.parametrize("event", [NonPrivateDpEvent(), GaussianDpEvent(0.0), LaplaceDpEvent(0.0), ZCDpEvent(math.inf)])
def test_a_release_without_noise_has_no_finite_epsilon(event):
    claims.check(stated(math.inf, event))
    with pytest.raises(ValueError, match="its event costs more"):
        claims.check(stated(1e6, event))
    with pytest.raises(ValueError, match="its event costs more"):
        claims.check(stated(1e6, events.composed([event, SAMPLED])))


def test_samples_hold_for_add_remove_only():
    with pytest.raises(ValueError, match="sampled releases hold for add-remove only"):
        claims.check(stated(100.0, SAMPLED, adjacency="replace-one"))


@pytest.mark.parametrize(
    ("epsilon", "event"),
    [
        (1.0, events.repeated(SAMPLED, 10**11)),
        (1.0, events.repeated(SAMPLED, 10**15)),
        (1.0, events.repeated(LaplaceDpEvent(1e7), 10**9)),
        (1e9, LaplaceDpEvent(1e-9)),
        (1.0, PoissonSampledDpEvent(1e-12, GaussianDpEvent(1e-3))),
        (1.0, ComposedDpEvent([PoissonSampledDpEvent(0.01, GaussianDpEvent(50.0 + i)) for i in range(50)])),
        (1.0, ComposedDpEvent([LaplaceDpEvent(1e300), SAMPLED])),
        (1.0, PoissonSampledDpEvent(0.5, SAMPLED)),
        (1e308, events.composed([SAMPLED, ZCDpEvent(1e308)])),
    ],
    ids=lambda value: str(value)[:40],
)
def test_an_event_that_is_too_much_for_an_accountant_is_refused_at_once(epsilon, event, monkeypatch):
    def never(*_):
        raise AssertionError("an accountant was asked")

    monkeypatch.setattr(accounting, "epsilon_of", never)
    monkeypatch.setattr(accounting, "epsilon_at_spacing", never)
    with pytest.raises(ValueError, match=r"too large|too many|costs more|cannot account"):
        claims.check(stated(epsilon, event))


def test_a_file_that_states_less_than_its_event_costs_is_refused(tmp_path):
    document = json.loads(text_of(made("scaler"), tmp_path))
    document["model"]["guarantee"]["epsilon"] = document["model"]["parameters"]["epsilon"] = 1.5
    with pytest.raises(ValueError, match=r"the guarantee states epsilon = 1.5 at delta = .*, and its event costs more"):
        loaded(document, tmp_path)
    document["model"]["guarantee"]["epsilon"] = document["model"]["parameters"]["epsilon"] = 3.0  # less than holds
    assert loaded(document, tmp_path).guarantee_.epsilon == 3.0
    document = json.loads(text_of(made("logistic"), tmp_path))
    document["model"]["guarantee"]["epsilon"] = 1.5
    document["model"]["attributes"]["plan_"]["plan"]["epsilon"] = 1.5
    document["model"]["parameters"]["epsilon"] = 1.5
    with pytest.raises(ValueError, match="its event costs more"):
        loaded(document, tmp_path)


@pytest.mark.parametrize("name", ["scaler", "logistic", "pca", "federated lasso"])
@pytest.mark.parametrize(
    ("parameter", "value"), [("epsilon", 0.01), ("delta", 1e-9), ("adjacency", "replace-one"), ("epsilon", None)]
)
def test_parameters_that_ask_for_another_budget_are_refused(name, parameter, value, tmp_path):
    document = json.loads(text_of(made(name), tmp_path))
    document["model"]["parameters"][parameter] = value
    with pytest.raises(ValueError, match=rf"{parameter} (and the guarantee|must be a real number)"):
        loaded(document, tmp_path)


@pytest.mark.parametrize(("name", "solver"), [("logistic", "dual"), ("lasso", "sgd"), ("pca", "power")])
def test_another_solver_than_that_of_the_guarantee_is_refused(name, solver, tmp_path):
    document = json.loads(text_of(made(name), tmp_path))
    document["model"]["parameters"]["solver"] = solver
    with pytest.raises(ValueError, match="the parameter solver and the guarantee name different solvers"):
        loaded(document, tmp_path)


@pytest.mark.parametrize("radius", ["junk", -1.0, 0.0])
def test_a_radius_that_is_none_is_refused(radius, tmp_path):
    document = json.loads(text_of(made("lasso"), tmp_path))
    document["model"]["parameters"]["l1_radius"] = radius
    with pytest.raises(ValueError, match="l1_radius must be"):
        loaded(document, tmp_path)


@pytest.mark.parametrize("epsilon", [0.0, 1.0, math.inf])
@pytest.mark.parametrize("event", [events.composed([]), events.repeated(GaussianDpEvent(1.0), 0)])
def test_a_guarantee_without_a_release_is_refused(epsilon, event):
    with pytest.raises(ValueError, match="holds no release"):
        claims.check(stated(epsilon, event))


def test_infinity_is_kept(tmp_path):
    model = loaded(text_of(made("not private"), tmp_path), tmp_path)
    assert math.isinf(model.guarantee_.epsilon)
    assert "not private" in str(model.guarantee_)
    assert math.isinf(model.plan_.budget.epsilon)
