"""Guarantees: what they say, how they are stored, and that composing them never understates."""

import dataclasses
import json
import math

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

from tacit.privacy import Budget, Guarantee, Plan, Release, UnsupportedEventError, compose, epsilon_of, gdp, mu_of
from tests.privacy.test_events import MALFORMED, any_event
from tests.units import ROWS

N = 48_842


def guarantee(event=None, epsilon=None, delta=1e-6, adjacency="add-remove", solver="gradient", n_rows=N, seeded=False):
    event = GaussianDpEvent(5.0) if event is None else event
    epsilon = epsilon_of(event, delta) if epsilon is None else epsilon
    return Guarantee(epsilon, delta, adjacency, solver, event, n_rows, seeded)


# What it says.


def test_the_sentence_of_the_design():
    plan = Plan(
        Release("level 1", "gaussian", share=0.05),
        Release("level 2", "gaussian", share=0.05),
        Release("matrix", "gaussian", share=0.15),
        Release("gradients", "gaussian", share=0.75, count=30),
    )
    budget = Budget(1.0, N**-1.5)
    said = guarantee(plan.calibrate(budget, ROWS, "test").event, 1.0, budget.delta)
    assert str(said) == ("(1.0, 9.3e-08)-DP, add-remove one row of 48,842; gradient solver, 33 Gaussian releases")
    assert said.recompute() <= 1.0


def test_sentences_of_other_guarantees():
    mixed = ComposedDpEvent((SelfComposedDpEvent(ZCDpEvent(0.01), 12), LaplaceDpEvent(3.0)))
    assert str(guarantee(mixed, 2, adjacency="replace-one", solver="frank-wolfe", n_rows=1, seeded=True)) == (
        "(2.0, 1e-06)-DP, replace one row of 1; frank-wolfe solver, 12 zCDP releases, 1 Laplace release;"
        " seeded, so only against those who do not know the seed"
    )
    assert str(guarantee(GaussianDpEvent(0.0), math.inf)).startswith("(inf, 1e-06)-DP")
    assert str(guarantee(GaussianDpEvent(0.0), math.inf)).endswith("1 Gaussian release; not private")


@pytest.mark.parametrize(
    ("delta", "printed"),
    [(1e-6, "1e-06"), (9.34e-8, "9.4e-08"), (9.3e-8, "9.3e-08"), (1.0001e-5, "1.1e-05"), (0.5, "0.5"), (0.991, "1")],
)
def test_a_printed_delta_is_never_below_the_true_one(delta, printed):
    said = str(guarantee(delta=delta, epsilon=1.0))
    assert f", {printed})-DP" in said
    assert float(printed) >= delta


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.floats(-300, -0.01).map(lambda x: 10**x))
def test_printed_deltas_round_up_by_a_tenth_at_most(delta):
    printed = float(str(guarantee(delta=delta, epsilon=1.0)).split(", ")[1].rstrip(")-DP"))
    assert delta <= printed <= 1.1 * delta


def test_html_escapes_and_needs_nothing_from_outside():
    said = guarantee(solver='<script>alert("x")</script>&', seeded=True)
    for page in (said.to_html(), said._repr_html_()):
        assert "<script" not in page
        assert "&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;&amp;" in page
        assert "http" not in page
        assert "48,842 (public)" in page
        assert "reproducible from a seed" in page
    assert "replaced by any other" in guarantee(adjacency="replace-one").to_html()
    assert "fresh cryptographic randomness" in guarantee().to_html()
    # A class name is the one other string that comes from outside.
    strange = type("<b>Event</b>", (RandomizedResponseDpEvent,), {})(0.1, 2)
    assert "<b>" not in guarantee(strange, 1.0).to_html()


# What it is.


def test_frozen_equal_and_hashable():
    one, same = guarantee(epsilon=1), guarantee(epsilon=1.0)
    assert one == same
    assert hash(one) == hash(same)
    for field in dataclasses.fields(one):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(one, field.name, 0)


def test_the_event_cannot_be_changed_from_outside():
    parts = [GaussianDpEvent(5.0)]
    said = guarantee(ComposedDpEvent(parts), 1.0)
    before = said.recompute()
    parts.append(GaussianDpEvent(0.01))
    assert said.recompute() == before
    assert hash(said)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"epsilon": -0.1}, ValueError, "epsilon must be at least 0, got -0.1"),
        ({"epsilon": math.nan}, ValueError, "epsilon must be a number, got NaN"),
        ({"epsilon": "1"}, TypeError, "epsilon must be a real number, got '1'"),
        ({"delta": 0.0}, ValueError, "delta must lie strictly between 0 and 1"),
        ({"delta": 1.0}, ValueError, "delta must lie strictly between 0 and 1"),
        ({"adjacency": "swap"}, ValueError, "adjacency must be one of"),
        ({"n_rows": 0}, ValueError, "n_rows must be at least 1, got 0"),
        ({"n_rows": 2.0}, TypeError, "n_rows must be an integer"),
        ({"solver": ""}, ValueError, "solver must be a printable text .*, got ''"),
        ({"solver": None}, ValueError, "solver must be a printable text .*, got None"),
        ({"event": "Gaussian"}, TypeError, "event must be a DpEvent, got str"),
        ({"seeded": 1}, TypeError, "seeded must be True or False, got 1"),
    ],
)
def test_bad_fields(change, error, message):
    values = {"event": GaussianDpEvent(5.0), "epsilon": 1.0, **change}
    with pytest.raises(error, match=message):
        guarantee(**values)


def test_recompute_and_mu():
    said = guarantee(ComposedDpEvent((GaussianDpEvent(3.0), SelfComposedDpEvent(GaussianDpEvent(4.0), 2))))
    assert said.mu == pytest.approx(math.sqrt(1 / 9 + 2 / 16))
    assert said.recompute() == said.epsilon
    with pytest.raises(UnsupportedEventError, match="only Gaussian releases have an exact mu"):
        _ = guarantee(LaplaceDpEvent(2.0)).mu
    assert guarantee(NonPrivateDpEvent()).recompute() == math.inf


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_a_calibrated_plan_recomputes_to_at_most_its_budget(adjacency):
    for kind in ("gaussian", "laplace", "exponential"):
        budget = Budget(1.0, 1e-6, adjacency)
        event = Plan(Release("r", kind, share=1.0, count=4)).calibrate(budget, ROWS, "test").event
        said = Guarantee(budget.epsilon, budget.delta, budget.adjacency, kind, event, N)
        assert 0.99 <= said.recompute() <= 1.0


# How it is stored.


@settings(derandomize=True, deadline=None, max_examples=100)
@given(
    any_event,
    st.floats(0.0, 1e9) | st.just(math.inf),
    st.floats(1e-300, 0.999),
    st.sampled_from(["add-remove", "replace-one"]),
    st.text(min_size=1, max_size=20).filter(str.isprintable),
    st.integers(1, 10**12),
    st.booleans(),
)
def test_round_trips(event, epsilon, delta, adjacency, solver, n_rows, seeded):
    said = Guarantee(epsilon, delta, adjacency, solver, event, n_rows, seeded)
    assert Guarantee.from_dict(said.to_dict()) == said
    assert Guarantee.from_json(said.to_json()) == said
    assert Guarantee.from_json(said.to_json(indent=2)) == said
    json.loads(said.to_json(), parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))


def test_infinity_is_written_in_words():
    said = guarantee(ComposedDpEvent((GaussianDpEvent(0.0), ZCDpEvent(math.inf))), math.inf)
    assert said.to_dict()["epsilon"] == "inf"
    assert '"rho": "inf"' in said.to_json()
    assert Guarantee.from_json(said.to_json()).recompute() == math.inf


GOOD = guarantee(epsilon=1.0).to_dict()


@pytest.mark.parametrize("values", MALFORMED.values(), ids=MALFORMED)
def test_malformed_events_are_refused(values):
    with pytest.raises(ValueError, match=r"."):
        Guarantee.from_json(json.dumps({**GOOD, "event": values}))


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": "infinite"},
        {"epsilon": "1.0"},
        {"epsilon": None},
        {"epsilon": math.nan},
        {"epsilon": -1.0},
        {"epsilon": [1.0]},
        {"epsilon": True},
        {"epsilon": 10**400},
        {"delta": "1e-6"},
        {"delta": 0},
        {"n_rows": 5.0},
        {"n_rows": "5"},
        {"n_rows": True},
        {"seeded": 0},
        {"seeded": None},
        {"solver": 3},
        {"disclosed": 3},
        {"disclosed": "two\nlines"},
        {"adjacency": []},
        {"adjacency": "none"},
        {"more": 1},
    ],
    ids=str,
)
def test_malformed_guarantees_are_refused(change):
    with pytest.raises(ValueError, match=r"."):
        Guarantee.from_json(json.dumps({**GOOD, **change}))


@pytest.mark.parametrize("missing", sorted(set(GOOD) - {"unit", "n_units", "d0", "disclosed"}))
def test_missing_fields_are_refused(missing):
    values = {name: value for name, value in GOOD.items() if name != missing}
    with pytest.raises(ValueError, match="a guarantee has exactly the fields adjacency, d0, delta, disclosed, epsilon"):
        Guarantee.from_dict(values)


def test_a_guarantee_from_before_there_were_units_is_about_rows():
    older = {name: value for name, value in GOOD.items() if name not in ("unit", "n_units", "d0", "disclosed")}
    said = Guarantee.from_dict(older)
    assert said == Guarantee.from_dict(GOOD)
    assert (said.unit, said.n_units) == ("row", said.n_rows)
    for change in ({"unit": "person"}, {"unit": None}, {"n_units": GOOD["n_rows"] + 1}, {"n_units": None}):
        with pytest.raises(ValueError, match="unit"):
            Guarantee.from_dict(GOOD | change)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "3", '"inf"', "[" * 100_000, '{"event":' * 100_000])
def test_what_is_not_a_guarantee_at_all(text):
    with pytest.raises(ValueError, match=r"."):
        Guarantee.from_json(text)


def test_deep_nesting_is_refused_and_not_a_crash():
    event = {"type": "NoOpDpEvent"}
    for _ in range(5_000):
        event = {"type": "ComposedDpEvent", "events": [event]}
    with pytest.raises(ValueError, match="not a guarantee"):
        Guarantee.from_dict({**GOOD, "event": event})


def test_a_key_given_twice_is_refused():
    # The first says one thing to a reader, the last another to a parser.
    text = json.dumps(GOOD).replace('"epsilon": 1.0', '"epsilon": 99.0, "epsilon": 1.0')
    with pytest.raises(ValueError, match="a key is given twice"):
        Guarantee.from_json(text)
    text = json.dumps(GOOD).replace('"noise_multiplier": 5.0', '"noise_multiplier": 0.1, "noise_multiplier": 5.0')
    with pytest.raises(ValueError, match="a key is given twice"):
        Guarantee.from_json(text)


# Composition.

parts = st.sampled_from(
    [
        GaussianDpEvent(6.0),
        SelfComposedDpEvent(GaussianDpEvent(30.0), 10),
        ZCDpEvent(0.005),
        SelfComposedDpEvent(ZCDpEvent(0.0005), 20),
        LaplaceDpEvent(8.0),
        SelfComposedDpEvent(PoissonSampledDpEvent(0.01, GaussianDpEvent(2.0)), 50),
        NoOpDpEvent(),
    ]
)


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=40)
@given(st.lists(st.tuples(parts, st.sampled_from([1e-6, 1e-5])), min_size=1, max_size=4))
def test_composition_is_at_most_the_sum_and_at_least_each_part(drawn):
    guarantees = [guarantee(event, delta=delta) for event, delta in drawn]
    joint = compose(guarantees)
    assert joint.delta == math.fsum(g.delta for g in guarantees)
    assert joint.epsilon <= math.fsum(g.epsilon for g in guarantees)
    for g in guarantees:
        assert joint.epsilon >= epsilon_of(g.event, joint.delta) * (1 - 5e-3)


@pytest.mark.parametrize("multipliers", [(5.0, 5.0), (3.0, 4.0, 12.0), (2.0,) * 6, (0.5, 100.0)])
def test_gaussians_compose_exactly(multipliers):
    joint = compose((guarantee(GaussianDpEvent(z)) for z in multipliers), delta=1e-6)
    exact = gdp.epsilon_from_mu(math.sqrt(sum(z**-2 for z in multipliers)), 1e-6)
    assert joint.epsilon == pytest.approx(exact, rel=1e-12)
    assert joint.mu == pytest.approx(mu_of(joint.event))
    assert joint.epsilon < sum(epsilon_of(GaussianDpEvent(z), 1e-6) for z in multipliers)


def test_gaussians_beside_thresholded_counts_have_no_mu():
    whole = dataclasses.replace(guarantee(), d0=1e-7)
    with pytest.raises(UnsupportedEventError, match="thresholded counts take d0=1e-07 of delta"):
        assert whole.mu > 0.0
    with pytest.raises(UnsupportedEventError, match="thresholded counts take"):
        assert compose([whole, guarantee()]).mu > 0.0
    assert guarantee().mu == pytest.approx(0.2)


def test_order_does_not_matter():
    guarantees = [
        guarantee(GaussianDpEvent(4.0)),
        guarantee(ZCDpEvent(0.01), delta=1e-5),
        guarantee(LaplaceDpEvent(5.0)),
    ]
    forward, backward = compose(guarantees), compose(reversed(guarantees))
    assert forward.epsilon == pytest.approx(backward.epsilon, rel=1e-12)
    assert forward.delta == backward.delta


def test_composition_of_compositions():
    a, b, c = (guarantee(GaussianDpEvent(z), delta=1e-7) for z in (3.0, 5.0, 9.0))
    flat = compose([a, b, c])
    nested = compose([compose([a, b]), c])
    assert nested.epsilon == pytest.approx(flat.epsilon, rel=1e-12)
    assert nested.delta == pytest.approx(flat.delta, rel=1e-15)
    assert nested.recompute() <= nested.epsilon * (1 + 1e-12)


def test_the_sum_is_kept_where_it_is_lower():
    # A selection forces the Renyi accountant on everything; the sum of the parts' own accounts can be less.
    sampled = SelfComposedDpEvent(PoissonSampledDpEvent(0.01, GaussianDpEvent(1.0)), 50)
    a, b = guarantee(sampled), guarantee(ZCDpEvent(1e-9))
    joint = compose([a, b])
    assert epsilon_of(joint.event, joint.delta) > a.epsilon + b.epsilon
    assert joint.epsilon == a.epsilon + b.epsilon


def test_a_smaller_delta_does_not_get_the_sum():
    # The sum of the epsilons only holds at the sum of the deltas.
    a, b = guarantee(GaussianDpEvent(3.0), delta=1e-3), guarantee(GaussianDpEvent(3.0), delta=1e-3)
    joint = compose([a, b], delta=1e-9)
    assert joint.delta == 1e-9
    assert joint.epsilon == pytest.approx(gdp.epsilon_from_mu(math.sqrt(2) / 3, 1e-9))
    larger = compose([a, b], delta=0.1)
    assert larger.epsilon <= compose([a, b]).epsilon
    for delta in (0.0, 1.0, -1.0):
        with pytest.raises(ValueError, match="delta must lie strictly between 0 and 1"):
            compose([a, b], delta=delta)
    with pytest.raises(ValueError, match="delta must lie strictly between 0 and 1"):
        compose([guarantee(delta=0.6), guarantee(delta=0.6)])


def test_composition_of_one_is_itself():
    one = guarantee(seeded=True)
    assert compose([one]) == one


def test_what_the_joint_statement_says():
    joint = compose(
        [guarantee(solver="gradient"), guarantee(solver="gauss", n_rows=10), guarantee(solver="gradient", seeded=True)]
    )
    assert joint.solver == "3 fits (gradient, gauss)"
    assert joint.n_rows == N
    assert joint.seeded is True
    assert compose([guarantee(), guarantee()]).seeded is False


def test_non_private_parts_make_the_whole_non_private():
    joint = compose([guarantee(), guarantee(GaussianDpEvent(0.0), math.inf)])
    assert joint.epsilon == math.inf
    assert Guarantee.from_json(joint.to_json()) == joint


def test_refusals():
    with pytest.raises(ValueError, match="compose needs at least one guarantee"):
        compose([])
    with pytest.raises(ValueError, match="add-remove and for replace-one neighbours cannot be composed"):
        compose([guarantee(), guarantee(adjacency="replace-one")])
    replaced = compose([guarantee(adjacency="replace-one"), guarantee(adjacency="replace-one")])
    assert replaced.adjacency == "replace-one"
    with pytest.raises(UnsupportedEventError):
        compose([guarantee(RandomizedResponseDpEvent(0.1, 2), 1.0), guarantee()])


@pytest.mark.parametrize("solver", ["\x1b[2K\r(0.1, 1e-6)-DP", "a\nb", "x" * 501])
def test_a_solver_that_would_forge_the_sentence_is_refused(solver):
    with pytest.raises(ValueError, match="solver must be a printable text"):
        Guarantee(1.0, 1e-6, "add-remove", solver, GaussianDpEvent(9.0), 100)


def test_a_composition_of_many_solvers_has_a_short_title():
    parts = [Guarantee(1.0, 1e-6, "add-remove", f"solver number {i}", GaussianDpEvent(900.0), 100) for i in range(99)]
    assert compose(parts).solver == "99 fits (several solvers)"
    assert compose(parts[:2]).solver == "2 fits (solver number 0, solver number 1)"
