"""Events as values: building, reading, writing, and nothing that a file could use to run code."""

import json
import math
import sys

import mpmath
import pytest
from dp_accounting import (
    ComposedDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NonPrivateDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    RandomizedResponseDpEvent,
    SelfComposedDpEvent,
    ZCDpEvent,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.privacy import events

_multipliers = st.floats(0.0, 1e6) | st.just(math.inf)
elementary = st.one_of(
    st.builds(GaussianDpEvent, _multipliers),
    st.builds(LaplaceDpEvent, _multipliers),
    st.builds(ZCDpEvent, _multipliers, _multipliers),
    st.builds(PoissonSampledDpEvent, st.floats(0.0, 1.0), st.builds(GaussianDpEvent, _multipliers)),
    st.just(NoOpDpEvent()),
    st.just(NonPrivateDpEvent()),
)
any_event = st.recursive(
    elementary,
    lambda parts: st.one_of(
        st.builds(ComposedDpEvent, st.lists(parts, max_size=4).map(tuple)),
        st.builds(SelfComposedDpEvent, parts, st.integers(0, 10**9)),
    ),
    max_leaves=8,
)


def test_constructors():
    assert events.gaussian(2) == GaussianDpEvent(2.0)
    assert events.gaussian(2, 0.5) == PoissonSampledDpEvent(0.5, GaussianDpEvent(2.0))
    assert events.laplace(3) == LaplaceDpEvent(3.0)
    assert events.exponential(2.0) == ZCDpEvent(0.5)
    assert events.exponential(math.inf) == ZCDpEvent(math.inf)
    assert events.objective(2) == ZCDpEvent(events.OBJECTIVE_COST / 8)
    assert events.objective(0.0) == ZCDpEvent(math.inf)
    assert events.repeated(GaussianDpEvent(1.0), 1) == GaussianDpEvent(1.0)
    assert events.repeated(GaussianDpEvent(1.0), 3) == SelfComposedDpEvent(GaussianDpEvent(1.0), 3)
    assert events.composed([GaussianDpEvent(1.0)]) == GaussianDpEvent(1.0)
    both = events.composed(e for e in (GaussianDpEvent(1.0), LaplaceDpEvent(1.0)))
    assert both == ComposedDpEvent((GaussianDpEvent(1.0), LaplaceDpEvent(1.0)))
    assert hash(both)


def test_the_cost_of_curvature_is_rounded_up():
    """c = 2 log 2 / x^2 where -x - log(1 - x) = log 2."""
    with mpmath.workdps(30):
        x = mpmath.findroot(lambda x: -x - mpmath.log(1 - x) - mpmath.log(2), (0.76, 0.77), solver="anderson")
        least = 1 + 2 * mpmath.log(2) / x**2 * mpmath.mpf(events.OBJECTIVE_RATIO) ** 2
        assert least <= events.OBJECTIVE_COST <= least * (1 + 1e-4)


def test_leaves_multiply_nested_counts():
    one, two = GaussianDpEvent(1.0), LaplaceDpEvent(2.0)
    inner = ComposedDpEvent((one, SelfComposedDpEvent(two, 3), NoOpDpEvent()))
    event = ComposedDpEvent((SelfComposedDpEvent(inner, 5), one, SelfComposedDpEvent(one, 0)))
    assert events.leaves(event) == {one: 6, two: 15}
    assert events.leaves(NoOpDpEvent()) == events.leaves(ComposedDpEvent(())) == {}


@pytest.mark.parametrize(("count", "error"), [(-1, ValueError), (0.5, TypeError), (True, TypeError), (None, TypeError)])
def test_a_count_must_be_a_whole_number(count, error):
    # A negative one would otherwise make a release disappear from the account.
    with pytest.raises(error, match="count must be"):
        events.leaves(SelfComposedDpEvent(GaussianDpEvent(1.0), count))


def test_describe():
    gaussian, selection = GaussianDpEvent(1.0), ZCDpEvent(0.1)
    assert events.describe(gaussian) == "1 Gaussian release"
    assert events.describe(NoOpDpEvent()) == "no release"
    assert events.describe(SelfComposedDpEvent(selection, 12_345)) == "12,345 zCDP releases"
    mixed = ComposedDpEvent(
        [
            SelfComposedDpEvent(gaussian, 30),
            GaussianDpEvent(2.0),
            SelfComposedDpEvent(PoissonSampledDpEvent(0.1, gaussian), 2),
            LaplaceDpEvent(1.0),
            selection,
            NonPrivateDpEvent(),
            RandomizedResponseDpEvent(0.1, 2),
        ]
    )
    assert events.describe(mixed) == (
        "31 Gaussian releases, 2 sampled Gaussian releases, 1 Laplace release, 1 zCDP release,"
        " 1 non-private release, 1 RandomizedResponseDpEvent"
    )


def test_frozen_replaces_lists_at_every_level():
    one = GaussianDpEvent(1.0)
    parts = [one]
    event = ComposedDpEvent(
        [SelfComposedDpEvent(ComposedDpEvent(parts), 2), PoissonSampledDpEvent(0.1, ComposedDpEvent([one]))]
    )
    kept = events.frozen(event)
    assert hash(kept)
    parts.append(GaussianDpEvent(0.001))
    assert events.leaves(kept.events[0]) == {one: 2}


@settings(derandomize=True, deadline=None, max_examples=200)
@given(any_event)
def test_dictionaries_and_json_round_trip(event):
    text = json.dumps(events.to_dict(event), allow_nan=False)
    assert events.from_dict(json.loads(text)) == event


@pytest.mark.parametrize("multiplier", [0.0, 0.7, 123.4])
def test_objective_perturbation_round_trips(multiplier):
    event = events.composed([events.objective(multiplier), events.gaussian(40.0)])
    assert events.from_dict(json.loads(json.dumps(events.to_dict(event), allow_nan=False))) == event
    assert events.describe(event) == "1 zCDP release, 1 Gaussian release"


def test_infinity_is_a_word():
    assert events.to_dict(ZCDpEvent(math.inf)) == {"type": "ZCDpEvent", "rho": "inf", "xi": 0.0}
    assert events.from_dict({"type": "GaussianDpEvent", "noise_multiplier": "inf"}) == GaussianDpEvent(math.inf)


def test_lists_and_tuples_are_written_alike():
    as_list = events.to_dict(ComposedDpEvent([GaussianDpEvent(1.0)]))
    assert as_list == events.to_dict(ComposedDpEvent((GaussianDpEvent(1.0),)))


def test_unknown_events_are_not_written():
    with pytest.raises(TypeError, match="RandomizedResponseDpEvent cannot be written; known: GaussianDpEvent"):
        events.to_dict(RandomizedResponseDpEvent(0.1, 2))
    with pytest.raises(TypeError, match="RandomizedResponseDpEvent"):
        events.to_dict(ComposedDpEvent((RandomizedResponseDpEvent(0.1, 2),)))


NOISE = {"type": "GaussianDpEvent", "noise_multiplier": 1.0}
MALFORMED = {
    "nothing": None,
    "a list": [],
    "a string": "GaussianDpEvent",
    "no type": {"noise_multiplier": 1.0},
    "unknown type": {"type": "Nothing"},
    "another event": {"type": "RandomizedResponseDpEvent", "noise_parameter": 0.1, "num_buckets": 2},
    "abstract type": {"type": "DpEvent"},
    "type is a list": {"type": ["GaussianDpEvent"], "noise_multiplier": 1.0},
    "type is a dict": {"type": {}},
    "dotted name": {"type": "os.system", "command": "true"},
    "extra field": {**NOISE, "module_name": "os"},
    "missing field": {"type": "GaussianDpEvent"},
    "missing xi": {"type": "ZCDpEvent", "rho": 0.1},
    "negative": {"type": "GaussianDpEvent", "noise_multiplier": -1.0},
    "NaN": {"type": "GaussianDpEvent", "noise_multiplier": math.nan},
    "NaN in words": {"type": "GaussianDpEvent", "noise_multiplier": "nan"},
    "a number in words": {"type": "GaussianDpEvent", "noise_multiplier": "1.0"},
    "a truth value": {"type": "GaussianDpEvent", "noise_multiplier": True},
    "null": {"type": "GaussianDpEvent", "noise_multiplier": None},
    "negative rho": {"type": "ZCDpEvent", "rho": -0.1, "xi": 0.0},
    "negative xi": {"type": "ZCDpEvent", "rho": 0.1, "xi": -0.1},
    "probability above 1": {"type": "PoissonSampledDpEvent", "sampling_probability": 1.1, "event": NOISE},
    "probability infinite": {"type": "PoissonSampledDpEvent", "sampling_probability": "inf", "event": NOISE},
    "sampled number": {"type": "PoissonSampledDpEvent", "sampling_probability": 0.1, "event": 3},
    "negative count": {"type": "SelfComposedDpEvent", "event": NOISE, "count": -1},
    "fractional count": {"type": "SelfComposedDpEvent", "event": NOISE, "count": 1.5},
    "count is a truth value": {"type": "SelfComposedDpEvent", "event": NOISE, "count": True},
    "events is a number": {"type": "ComposedDpEvent", "events": 3},
    "events is null": {"type": "ComposedDpEvent", "events": None},
    "events is a dict": {"type": "ComposedDpEvent", "events": {"GaussianDpEvent": 1}},
    "events is a string": {"type": "ComposedDpEvent", "events": "GaussianDpEvent"},
    "bad part": {"type": "ComposedDpEvent", "events": [NOISE, {"type": "Nothing"}]},
}


@pytest.mark.parametrize("values", MALFORMED.values(), ids=MALFORMED)
def test_malformed_events_are_refused(values):
    with pytest.raises((ValueError, TypeError)):
        events.from_dict(values)


def test_reading_imports_nothing():
    before = set(sys.modules)
    for name in ("antigravity", "antigravity.fly", "this", "os.system"):
        with pytest.raises(ValueError, match="not an event"):
            events.from_dict({"type": name, "module_name": name, "class_name": name})
    assert set(sys.modules) == before
