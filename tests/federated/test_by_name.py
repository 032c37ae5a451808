"""Columns that go by name: what is declared costs nothing, what is found is planned, and models read raw rows."""

import json
import math
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Lasso, LinearRegression

from tacit import load, save
from tacit.federated import (
    Coordinator,
    FeatureSharing,
    FederatedLasso,
    Marginals,
    Member,
    Node,
    Party,
    RefusedError,
    Study,
    coordinator,
    fitted_model,
    messages,
    node,
    units,
)
from tacit.federated.declared import Cells, Declared, columns_of
from tacit.federated.protocols import protocol_for
from tacit.federated.protocols.base import Holding, Question
from tacit.federated.protocols.prepared import STEP
from tacit.federated.returned import Part, Returned, farewells
from tacit.federated.transports.in_process import InProcess
from tacit.federated.units import CATEGORIES, SPREAD, Units
from tacit.privacy import Gate, NoiseSource
from tests.federated.conftest import SECRET, Recorder
from tests.federated.protocols.test_marginals import answers_may_be_wild, rows_may_be_missing
from tests.federated.test_crashes import Fate, Memories, Reviving, deaths_change_nothing
from tests.guarantees.worlds import mu_between, two_worlds

SAID = {
    "a": {"age": [0, 100], "sex": ["f", "m"]},
    "b": {"income": "number", "lab": "number", "ward": {"text": 3}},
}
PROTOCOLS = {
    "marginals": {},
    "masked": {"protocol": Marginals(products="masked"), "labels": "held"},
    "sharing": {"protocol": FeatureSharing(n_iter=3)},
}
every_protocol = pytest.mark.parametrize("protocol", PROTOCOLS)


def some_tables(n=400, seed=0, holes=0.1):
    """Two parties' tables in raw units, with holes and with columns that no study names; and a target."""
    rng = np.random.default_rng(seed)
    age, lab, income = rng.uniform(20, 90, n), rng.normal(140, 4, n), np.exp(rng.normal(10, 0.6, n))
    sex, ward = rng.choice(["f", "m"], n), rng.choice(["east", "north", "west"], n)
    y = 0.03 * age + (lab - 140) / 4 + (ward == "west") - 0.5 * (sex == "f") + 0.1 * rng.standard_normal(n)
    lab[rng.random(n) < holes] = np.nan
    sex = np.where(rng.random(n) < holes, None, sex)
    a = pd.DataFrame({"note": "x", "sex": sex, "age": age})
    return {"a": a, "b": pd.DataFrame({"ward": ward, "income": income, "lab": lab})}, y


def a_study(n=400, **changes):
    held = changes.get("labels") == "held"
    members = tuple(Member(name, labels=not held or name == "b", columns=said) for name, said in SAID.items())
    told = {"name": "real", "loss": "squared", "members": members, "n_rows": n, "l1_radius": 20.0, "delta": 1e-6}
    return Study(**(told | {"y_bounds": (-6.0, 6.0), "epsilon": 1.0} | changes))


def some_parties(study, tables, y):
    return [
        Party(tables[m.name], y if m.labels else None, name=m.name, secret=SECRET, columns=m.columns)
        for m in study.members
    ]


def run(study, tables, y, folder=None):
    wire = Recorder([Node(study, party, warn=False) for party in some_parties(study, tables, y)])
    return Coordinator(study, folder).run(wire), wire


# What a study says


def test_a_study_survives_its_file(tmp_path):
    study = a_study()
    (tmp_path / "study.toml").write_text(study.to_toml())
    assert Study.from_toml(tmp_path / "study.toml") == study == Study.from_dict(study.to_dict())
    assert [member.n_features for member in study.members] == [3, 5]
    told = '[study]\nname = "s"\nloss = "squared"\nn_rows = 9\nl1_radius = 1\n[[study.members]]\nname = "a"\n'
    told += '[study.members.columns]\n"age at visit" = [0, 100]\nsex = ["f", "m"]\nlab = "number"\nward = "text"\n'
    (tmp_path / "own.toml").write_text(told)
    read = Study.from_toml(tmp_path / "own.toml").members[0].columns
    assert [column.width for column in read] == [1, 2, 1, 20]
    assert read[0] == Declared("age at visit", bounds=(0.0, 100.0))


def test_the_order_and_every_word_are_agreed():
    said = {"age": [0, 100], "sex": ["f", "m"]}
    others = [
        {"sex": ["f", "m"], "age": [0, 100]},
        said | {"age": [0, 99]},
        said | {"sex": ["m", "f"]},
        {"age": "text"},
    ]
    members = [Member("a", labels=True, columns=one) for one in (said, *others)]
    studies = [Study("s", "squared", (member,), 9, 1.0) for member in members]
    assert len({study.digest for study in studies}) == len(studies)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"x": [1, 0]}, "low < high"), ({"x": [0, math.inf]}, "low < high"), ({"x": [0, 0]}, "low < high"),
        ({"x": []}, "cannot be declared"), ({"x": "numbers"}, "cannot be declared"), ({"x": 3}, "cannot be declared"),
        ({"x": ["a", "a"]}, "twice"), ({"x": ["\x1b[2J"]}, "control characters"), ({"x": {"text": 0}}, "at least 1"),
        ({"": "number"}, "needs a name"), ({"x": {"text": 3}, "y": "text"}, "one number of them"),
        ([{"name": "x", "more": 1}], "not what a study writes"), (3, "columns go by name"),
        ([{"name": "x", "bounds": [0, 1], "most": 3}], "and not two"), ([{"name": "x"}, {"name": "x"}], "twice"),
    ],
    ids=str,
)  # fmt: skip
def test_bad_columns_are_refused(said, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Member("a", columns=said)


def test_studies_that_make_no_sense_are_refused():
    study = a_study()
    with pytest.raises(ValueError, match="not of b"):
        replace(study, members=(study.members[0], Member("b", 5, True)), entry_bound=None)
    with pytest.raises(ValueError, match="leave out entry_bound"):
        replace(study, entry_bound=2.0)
    with pytest.raises(ValueError, match="needs fit_intercept"):
        replace(study, fit_intercept=False)
    with pytest.raises(ValueError, match="leave out n_features"):
        Member("a", 7, columns={"age": [0, 1]})


def test_bad_tables_are_refused_and_no_cell_is_quoted():
    tables, y = some_tables(20)
    columns = columns_of(SAID["b"])
    with pytest.raises(ValueError, match="lacks columns of the study: 'lab'"):
        Party(tables["b"].drop(columns="lab"), y, columns=columns)
    words = tables["b"].assign(lab="secret")
    with pytest.raises(ValueError, match="'lab' is a number by the study") as caught:
        Party(words, y, columns=columns)
    assert "secret" not in str(caught.value)
    with pytest.raises(TypeError, match="give a data frame"):
        Party(np.ones((20, 3)), y, columns=columns)
    study = a_study(20)
    with pytest.raises(ValueError, match="declared as others"):
        Node(study, Party(tables["b"], y, name="b", columns=SAID["b"] | {"ward": {"text": 3}, "lab": [0, 300]}))


# Without noise


def by_hand(tables, means, scales):
    """The columns of the model, from the words of the documentation."""
    age = np.clip(tables["a"]["age"], 0, 100) / 25.0 - 1.0
    parts = [age, tables["a"]["sex"] == "f", tables["a"]["sex"] == "m"]
    for name in ("income", "lab"):
        parts.append(np.clip((tables["b"][name] - means[name]) / scales[name], -3, 3).fillna(0.0))
    parts += [tables["b"]["ward"] == ward for ward in ("east", "north", "west")]
    return np.column_stack(parts).astype(float)


@pytest.mark.parametrize("protocol", ["marginals", "masked"])
def test_without_noise_it_is_the_lasso_on_columns_in_units(protocol):
    tables, y = some_tables(holes=0.2)
    y = np.clip(y, -6, 6)
    outcome, _ = run(a_study(epsilon=math.inf, l1_radius=1.2, **PROTOCOLS[protocol]), tables, y)
    found = outcome.model.facts["units"]["b"]
    assert found.found == (("east", "north", "west"),)
    means, scales = (dict(zip(("income", "lab"), part.tolist(), strict=False)) for part in (found.centre, found.scale))
    assert means["lab"] == pytest.approx(140, abs=2)
    Z = by_hand(tables, means, scales)
    coefs = np.concatenate(
        [coef * outcome.model.facts["units"][name].scale for name, coef in outcome.model.coefs.items()]
    )
    assert np.abs(coefs).sum() <= 1.2 + 1e-9
    centred, target = Z - Z.mean(axis=0), y - y.mean()
    # The optimum in the ball is a lasso for some alpha: where the slope is largest on all columns in the model.
    slope = centred.T @ (target - centred @ coefs) / len(y)
    alpha = np.abs(slope).max()
    lasso = Lasso(alpha=alpha, tol=1e-12, max_iter=100_000).fit(Z, y)
    np.testing.assert_allclose(coefs, lasso.coef_, atol=1e-5 if protocol == "marginals" else 1e-4)
    own = outcome.model.intercept + sum(
        float(outcome.model.coefs[n] @ outcome.model.facts["units"][n].centre) for n in "ab"
    )
    assert own == pytest.approx(lasso.intercept_, abs=1e-4)


def test_models_read_raw_rows_and_survive_a_file(tmp_path):
    tables, y = some_tables(2_000)
    parties = [Party(tables["a"], name="a", columns=SAID["a"]), Party(tables["b"], y, name="b", columns=SAID["b"])]
    model = FederatedLasso(epsilon=math.inf, l1_radius=50.0, y_bounds=(-6, 6)).fit(parties)
    one = model.predict(pd.concat(tables.values(), axis=1))
    assert LinearRegression().fit(one[:, None], y).score(one[:, None], y) > 0.85  # a tenth of the lab is missing
    assert model.coefs_["a"][0] == pytest.approx(0.03, rel=0.1)  # in the user's units
    np.testing.assert_array_equal(model.predict(list(tables.values())), one)
    names = ["a: age", "a: sex=f", "a: sex=m", "b: income", "b: lab", "b: ward=east", "b: ward=north", "b: ward=west"]
    assert model.get_feature_names_out().tolist() == names
    coefs, intercepts = model.l1_path([50.0])
    np.testing.assert_allclose(coefs[0], model.coef_)
    assert intercepts[0] == pytest.approx(model.intercept_)
    save(model, tmp_path / "model.json")
    np.testing.assert_array_equal(load(tmp_path / "model.json").predict(list(tables.values())), one)
    told = json.loads((tmp_path / "model.json").read_text())
    written = json.dumps(told).replace('"ward": {"text": 3}', '"ward": {"text": 4}')
    assert written != json.dumps(told)
    (tmp_path / "model.json").write_text(written)
    with pytest.raises(ValueError, match="units_ of 'b'"):
        load(tmp_path / "model.json")
    with pytest.raises(ValueError, match="same rows"):
        model.predict([tables["a"], tables["b"][:5]])


# What is released


@every_protocol
def test_what_runs_is_the_plan_and_declared_columns_cost_nothing(protocol):
    tables, y = some_tables()
    study = a_study(epsilon=4.0, **PROTOCOLS[protocol])
    outcome, wire = run(study, tables, y)
    asked = [set(requests) for requests in wire.requests]
    assert asked[0] == {"a", "b"}
    assert asked[1] == {"a", "b"}
    assert not messages.read(wire.replies[1]["a"]).arrays  # everything of "a" is declared
    assert messages.read(wire.requests[1]["b"]).step == STEP
    assert set(messages.read(wire.replies[1]["b"]).arrays) == {SPREAD, CATEGORIES}
    names = {release.name for release in outcome.plan.plan.releases}
    found = {f"b/{what}" for what in ("column scale: magnitudes", SPREAD, CATEGORIES)}
    assert found <= names
    assert not {name for name in names if name.startswith(("a/column scale", "a/categories"))}
    assert outcome.guarantee.epsilon == 4.0
    assert 0.0 < outcome.guarantee.d0 <= 0.01 * study.delta
    declared = replace(study, members=tuple(replace(m, columns=SAID["a"], n_features=3) for m in study.members))
    assert not units.releases(declared)
    assert protocol_for(declared).promise.plan.d0(1.0) == 0.0


@pytest.mark.parametrize(  # masked blocks are replayed by their own tests, and sketches of labels need all places
    ("protocol", "adjacency"), [("marginals", "add-remove"), ("marginals", "replace-one"), ("sharing", "replace-one")]
)
def test_no_row_moves_a_release_further_than_its_noise_covers(protocol, adjacency):
    study = a_study(40, adjacency=adjacency, epsilon=2.0, **PROTOCOLS[protocol])
    tables, y = some_tables(40)
    for wild in ([1e300, "x", 95.0], [np.nan, None, -1e9], [-1e-300, "f", np.nan]):
        tables["b"].loc[39, ["income", "ward", "lab"]] = [wild[0], wild[1], wild[2]]
        tables["a"].loc[39, ["age", "sex"]] = [wild[0], wild[1]]
        here = list(range(39)) + ([3] if adjacency == "replace-one" else [])
        other = {name: table.iloc[here] for name, table in tables.items()}, y[here]
        with rows_may_be_missing(), answers_may_be_wild():
            pairs = two_worlds(lambda world: played(study, *world), (tables, y), other)
        assert {SPREAD, CATEGORIES} <= {step.name for step, _ in pairs}
        for step, moved in pairs:
            assert step.moved(moved) <= 1.0 + 1e-6, step.name
        assert mu_between(pairs) <= max(study.budget.mu, math.sqrt(2 * study.budget.rho)) * 1.001


def played(study, tables, y):
    """All rounds, of tables from which a row may be absent."""
    protocol = protocol_for(study)
    gates = {name: Gate(protocol.promise.part(f"{name}/"), NoiseSource(3)) for name in study.names}
    cells = {m.name: Cells.of(m.columns, tables[m.name]) for m in study.members}
    data = {name: Holding(name, own.values, y, None, own.texts) for name, own in cells.items()}
    memory, rounds = {name: {} for name in study.names}, protocol.coordinate()
    asked = next(rounds)
    while True:
        answers = {n: protocol.answer(data[n], question, gates[n], memory[n]) for n, question in asked.items()}
        for name, answer in answers.items():
            memory[name] |= answer.memory
        try:
            asked = rounds.send({name: answer.releases for name, answer in answers.items()})
        except StopIteration:
            return


def leaks(mutant):
    """Whether rows that no release was told of move what a party says, for the same noise."""
    study, said = a_study(40, epsilon=2.0), []
    tables, _ = some_tables(40)
    promise = protocol_for(study).promise
    for last in (tables["b"].loc[39, "income"], 1e12):
        tables["b"].loc[39, "income"] = last
        gate = Gate(promise.part("b/"), NoiseSource(5))
        cells = Cells.of(study.member("b").columns, tables["b"])
        with patch.object(units, "MagnitudeScale", mutant):
            said.append((units.find(study, "b", cells, gate)[SPREAD], gate.made))
    (one, _), (other, made) = said
    assert made["column scale: magnitudes"] == 1
    return one, other


def test_units_that_are_read_off_the_rows_are_caught():
    class Peeking(units.MagnitudeScale):
        def run(self, gate, X):
            found = super().run(gate, X)
            return replace(found, scale=np.nanmax(np.abs(X), axis=0))

    honest, moved = leaks(units.MagnitudeScale)
    assert np.abs(honest).max() < 1e9
    assert np.abs(moved).max() < 1e9
    _, moved = leaks(Peeking)
    assert np.abs(moved).max() >= 1e12


def test_entries_stay_within_the_bound_that_noise_is_for():
    told = Units.declared(columns_of({"x": [0, 1e-20], "y": "number", "z": [-1e20, 1e20]}))
    told = told.with_found(np.array([[1.0], [2.0**-60], [-1e18], [1e18]]), ())
    frame = pd.DataFrame({"x": [1e300, -1e300, 5e-21], "y": [1e300, np.nan, -1e17], "z": [1e308, -1e308, 0.0]})
    out = told.transform(Cells.of(told.columns, frame))
    assert np.abs(out).max() <= 3.0
    assert np.isfinite(out).all()
    assert out[1, 1] == 0.0


def test_the_scales_of_columns_are_those_of_their_own_budget():
    study = a_study(400, epsilon=1.0)
    plan = protocol_for(study).promise
    parts = {release.name: release.share for release in plan.plan.releases}
    total = sum(parts.values())
    assert parts["b/categories"] / total == pytest.approx(0.1)
    both = (parts["b/column scale: magnitudes"] + parts[f"b/{SPREAD}"]) / total
    assert both == pytest.approx(min(0.4, max(0.15, 700 * 2 / (400 * study.budget.mu) ** 2)))


# What is refused


GOOD = {SPREAD: np.array([[1.0, 2.0], [3.0, 4.0], [0.0, 0.0], [9.0, 9.0]]), CATEGORIES: b'[["east", "west"]]'}


def bytes_of(text):
    return np.frombuffer(text, dtype=np.uint8)


@pytest.mark.parametrize(
    "change",
    [
        {SPREAD: np.zeros((4, 2))}, {SPREAD: np.full((4, 2), 1e300)}, {SPREAD: np.ones((4, 3))},
        {SPREAD: -GOOD[SPREAD]}, {SPREAD: np.ones((4, 2), dtype=np.int64)}, {SPREAD: GOOD[SPREAD][:, 0]},
        {CATEGORIES: b'[["west", "east"]]'}, {CATEGORIES: b'[["a", "a"]]'}, {CATEGORIES: b'[["a", "b", "c", "d"]]'},
        {CATEGORIES: b"[[1]]"}, {CATEGORIES: b"{}"}, {CATEGORIES: b"[[], []]"}, {CATEGORIES: b"["},
        {CATEGORIES: b"\xff"}, {CATEGORIES: b'[["\\u001b[2J"]]'}, {CATEGORIES: b"[" * 10_000}, {"more": b"1"},
    ],
    ids=lambda change: str(change)[:60],
)  # fmt: skip
def test_units_that_no_data_gives_are_refused(change):
    study = a_study()
    whole = {k: bytes_of(v) if isinstance(v, bytes) else v for k, v in GOOD.items()}
    assert units.told(study, "b", whole).found == (("east", "west"),)
    changed = {k: bytes_of(v) if isinstance(v, bytes) else v for k, v in change.items()}
    rounds = protocol_for(study).coordinate()
    next(rounds)
    with pytest.raises(RefusedError, match="'b' answered with units that no data gives"):
        rounds.send({"a": {}, "b": whole | changed})


def test_questions_of_another_form_are_refused_and_nothing_is_released():
    tables, y = some_tables()
    study = a_study()
    protocol = protocol_for(study)
    for name, question, memory in [
        ("a", Question(STEP, {"more": np.ones(2)}), {}),
        ("b", Question(STEP, {"more": np.ones(2)}), {}),
        ("b", Question("marginals", {}), {}),
    ]:
        gate = Gate(protocol.promise.part(f"{name}/"), NoiseSource(0))
        cells = Cells.of(study.member(name).columns, tables[name])
        with pytest.raises(RefusedError):
            protocol.answer(Holding(name, cells.values, y, None, cells.texts), question, gate, memory)
        assert not any(gate.made.values())


def test_mutated_answers_crash_nobody():
    tables, y = some_tables(60)
    study = a_study(60, epsilon=9.0)
    _, wire = run(study, tables, y)
    arrays = messages.read(wire.replies[1]["b"]).arrays
    rng, protocol = np.random.default_rng(0), protocol_for(study)
    refused = 0
    for _ in range(1_000):
        name = [SPREAD, CATEGORIES][rng.integers(2)]
        changed = bytearray(arrays[name].tobytes())
        for at in rng.integers(0, len(changed), 1 + rng.integers(3)):
            changed[at] = rng.integers(256)
        array = np.frombuffer(bytes(changed), dtype=arrays[name].dtype).reshape(arrays[name].shape)
        rounds = protocol.coordinate()
        next(rounds)
        try:
            rounds.send({"a": {}, "b": arrays | {name: array}})
        except RefusedError:
            refused += 1
    assert refused > 300


def test_a_death_at_any_moment_changes_nothing(tmp_path, monkeypatch):
    tables, y = some_tables(60)
    study = a_study(60)
    parties, protocol = some_parties(study, tables, y), protocol_for(study)
    for module in (node, coordinator):
        monkeypatch.setattr(module, "protocol_for", lambda _: protocol)
    expected = deaths_change_nothing(study, parties, Memories(monkeypatch), tmp_path, Fate(monkeypatch), Reviving)
    assert expected.left == ()


def test_rows_may_come_in_any_order_and_parts_read_tables():
    tables, y = some_tables(200)
    study, rng = a_study(200, random_state=1), np.random.default_rng(0)
    outcomes = []
    for shuffled in (False, True):
        parties = []
        for member in study.members:
            rows = rng.permutation(200) if shuffled else np.arange(200)
            table, ids = tables[member.name].iloc[rows], np.arange(200)[rows]
            more = {"ids": ids, "secret": SECRET, "columns": member.columns}
            parties.append(Party(table, y[rows], name=member.name, **more))
        nodes = [Node(study, party, warn=False) for party in parties]
        outcomes.append(Coordinator(study).run(InProcess(nodes)))
        assert nodes[1].spent().epsilon <= study.epsilon
    one, other = outcomes
    assert one.model.intercept == other.model.intercept
    total = one.model.intercept
    for name, sent in farewells(study, one.model, b"").items():
        part = Returned.read(sent, study, name).part
        assert Part.from_json(part.to_json()).to_json() == part.to_json()
        total = total + part.margins(tables[name])
    np.testing.assert_allclose(total, fitted_model(one, study).predict(list(tables.values())), rtol=1e-9)


def test_a_part_with_other_units_than_the_party_released_is_not_taken():
    tables, y = some_tables(200)
    study = a_study(200)
    nodes = [Node(study, party, warn=False) for party in some_parties(study, tables, y)]
    outcome = Coordinator(study).run(InProcess(nodes))
    sent = farewells(study, outcome.model, b"")["b"]
    message = messages.read(sent)
    told = json.loads(message.arrays["part"].tobytes())
    halves = [[value / 2.0 for value in part] for part in told["units"]["numbers"]]
    for changed in ({"found": [["somebody"]]}, {"numbers": halves}):
        false = json.dumps(told | {"units": told["units"] | changed}).encode()
        arrays = {"part": np.frombuffer(false, dtype=np.uint8)}
        assert nodes[1].ends_with(messages.write(replace(message, arrays=arrays)))
        assert nodes[1].returned.part is None
    assert nodes[1].ends_with(sent)
    assert nodes[1].returned.part is not None


def test_other_texts_are_other_data():
    tables, y = some_tables(40)
    study = a_study(40)
    prints = []
    for word in ("east", "west"):
        tables["b"].loc[0, "ward"] = word
        prints.append(Node(study, some_parties(study, tables, y)[1], warn=False)._data)
    assert prints[0] != prints[1]


def test_what_columns_cost_counts_against_every_coalition():
    study = a_study(**PROTOCOLS["masked"])
    plan, count = protocol_for(study).promise.plan, len(units.releases(study))
    assert count == 3
    assert len(plan.views) > 1
    assert all(view[:count] == (1.0,) * count for view in plan.views)
