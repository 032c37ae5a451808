"""Plans are frozen promises; everything that could make one ambiguous is refused before any data is read."""

import dataclasses
import math

import numpy as np
import pytest
from dp_accounting import (
    ComposedDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
    ZCDpEvent,
)

from tacit.privacy import Budget, Plan, Promise, Release, Unit
from tacit.privacy.events import OBJECTIVE_COST
from tests.units import ROWS


def release(name="r", kind="gaussian", **kwargs):
    return Release(name, kind, **({"share": 1.0} if not kwargs.keys() & {"share", "multiplier"} else {}), **kwargs)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"name": ""}, ValueError, "a release needs a name, got ''"),
        ({"name": None}, ValueError, "a release needs a name, got None"),
        ({"name": 3}, ValueError, "a release needs a name, got 3"),
        (
            {"kind": "uniform"},
            ValueError,
            "kind must be one of 'gaussian', 'laplace', 'exponential', 'objective', 'thresholded', got 'uniform'",
        ),
        ({"kind": None}, ValueError, "kind must be one of .* got None"),
        ({"count": 0}, ValueError, "count must be at least 1, got 0"),
        ({"count": -3}, ValueError, "count must be at least 1, got -3"),
        ({"count": 1.5}, TypeError, r"count must be an integer, got 1\.5"),
        ({"count": True}, TypeError, "count must be an integer, got True"),
        ({"sampling": 0.0}, ValueError, r"sampling must lie in \(0, 1\], got 0\.0"),
        ({"sampling": 1.1}, ValueError, r"sampling must lie in \(0, 1\], got 1\.1"),
        ({"sampling": math.nan}, ValueError, "sampling must be a number, got NaN"),
        ({"kind": "laplace", "sampling": 0.5}, ValueError, "only Gaussian releases can be sampled, got kind='laplace'"),
        ({"kind": "exponential", "sampling": 0.5}, ValueError, "only Gaussian releases can be sampled"),
        ({"kind": "objective", "sampling": 0.5}, ValueError, "only Gaussian releases can be sampled"),
        ({"share": None}, ValueError, "release 'r' needs either a share or a multiplier"),
        ({"share": 1.0, "multiplier": 1.0}, ValueError, "release 'r' needs either a share or a multiplier"),
        ({"share": 0.0}, ValueError, r"share must be above 0, got 0\.0"),
        ({"share": -1.0}, ValueError, r"share must be above 0, got -1\.0"),
        ({"share": math.inf}, ValueError, "share must be finite, got inf"),
        ({"share": math.nan}, ValueError, "share must be a number, got NaN"),
        ({"share": "half"}, TypeError, "share must be a real number, got 'half'"),
        ({"multiplier": 0.0}, ValueError, r"multiplier must be above 0, got 0\.0"),
        ({"multiplier": -1.0}, ValueError, r"multiplier must be above 0, got -1\.0"),
        ({"multiplier": math.inf}, ValueError, "multiplier must be finite, got inf"),
        ({"multiplier": math.nan}, ValueError, "multiplier must be a number, got NaN"),
    ],
)
def test_bad_releases_say_what_is_wrong(arguments, error, message):
    with pytest.raises(error, match=message):
        release(**arguments)


def test_numbers_are_plain_after_construction():
    one = Release("r", "gaussian", share=np.float32(0.5), count=np.int64(3), sampling=1)
    assert one == Release("r", "gaussian", 0.5, 3, 1.0)
    assert hash(one) == hash(Release("r", "gaussian", 0.5, 3, 1.0))
    assert (type(one.share), type(one.count), type(one.sampling)) == (float, int, float)


def test_releases_and_plans_are_frozen_and_hashable():
    plan = Plan(release("a"), release("b"))
    assert plan == Plan(release("a"), release("b"))
    assert plan != Plan(release("b"), release("a"))
    assert len({plan, Plan(release("a"), release("b"))}) == 1
    for thing, name in (
        (plan, "releases"),
        (plan.releases[0], "count"),
        (plan.calibrate(Budget(1, 1e-6), ROWS, "test"), "budget"),
    ):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(thing, name, None)


@pytest.mark.parametrize(
    ("arguments", "event"),
    [
        ({"kind": "gaussian"}, GaussianDpEvent(2.0)),
        ({"kind": "gaussian", "count": 3}, SelfComposedDpEvent(GaussianDpEvent(2.0), 3)),
        ({"kind": "gaussian", "sampling": 0.25}, PoissonSampledDpEvent(0.25, GaussianDpEvent(2.0))),
        ({"kind": "laplace"}, LaplaceDpEvent(2.0)),
        ({"kind": "exponential"}, ZCDpEvent(0.5**2 / 8)),
        ({"kind": "exponential", "count": 4}, SelfComposedDpEvent(ZCDpEvent(0.5**2 / 8), 4)),
        ({"kind": "objective"}, ZCDpEvent(OBJECTIVE_COST / 2.0**2 / 2)),
    ],
)
def test_the_event_of_a_release(arguments, event):
    assert release(**arguments).event(2.0) == event


def test_a_selection_without_noise_costs_everything():
    assert release(kind="exponential").event(0.0) == ZCDpEvent(math.inf)


def test_an_empty_plan_is_refused():
    with pytest.raises(ValueError, match="a plan needs at least one release"):
        Plan()


def test_a_plan_is_made_of_releases():
    with pytest.raises(TypeError, match="a plan is made of Release objects, got str"):
        Plan(release("a"), "b")
    with pytest.raises(TypeError, match="got tuple"):
        Plan((release("a"), release("b")))


def test_names_are_unique():
    with pytest.raises(ValueError, match="names in a plan must be unique, got twice: a, b"):
        Plan(release("b"), release("a"), release("a", "laplace"), release("b"))


def test_plans_add_up():
    one, two = Plan(release("a"), release("b")), Plan(release("c"))
    assert one + two == Plan(release("a"), release("b"), release("c"))
    with pytest.raises(ValueError, match="unique, got twice: a"):
        one + Plan(release("a"))
    with pytest.raises(TypeError, match="unsupported operand"):
        one + release("d")


def test_calibrated_plan_looks_up_by_name():
    plan = Plan(release("a", share=1.0), release("b", multiplier=7.0))
    calibrated = plan.calibrate(Budget(1.0, 1e-6), ROWS, "test")
    assert isinstance(calibrated, Promise)
    assert calibrated.multiplier("b") == 7.0
    assert calibrated.multipliers == (calibrated.multiplier("a"), 7.0)
    assert calibrated.event == ComposedDpEvent((GaussianDpEvent(calibrated.multiplier("a")), GaussianDpEvent(7.0)))
    assert hash(calibrated)
    with pytest.raises(KeyError, match="no release named 'c' in the plan; it has a, b"):
        calibrated.multiplier("c")


def test_a_promise_needs_a_multiplier_for_each_release():
    with pytest.raises(ValueError, match="zip"):
        Promise(Plan(release("a"), release("b")), Budget(1.0, 1e-6), ROWS, "test", (1.0,))


def test_a_part_of_a_promise_has_the_multipliers_of_the_whole():
    whole = Plan(release("a/x"), release("b/x", share=3.0), release("a/y")).calibrate(Budget(1.0, 1e-6), ROWS, "all")
    part = whole.part("a/")
    assert [r.name for r in part.plan.releases] == ["x", "y"]
    assert part.multipliers == (whole.multiplier("a/x"), whole.multiplier("a/y"))
    assert (part.budget, part.unit, part.solver) == (whole.budget, ROWS, "all")
    with pytest.raises(ValueError, match="at least one release"):
        whole.part("c/")


def test_a_unit_is_a_row_of_weight_one():
    assert (ROWS.kind, ROWS.n, ROWS.weight) == ("row", 1_000, 1.0)
    with pytest.raises(ValueError, match="kind must be one of 'row'"):
        Unit("person", 10)
    with pytest.raises(ValueError, match="n must be at least 1"):
        Unit("row", 0)
    with pytest.raises(ValueError, match="a row has weight 1"):
        Unit("row", 10, 2.0)
