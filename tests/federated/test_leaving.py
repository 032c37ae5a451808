"""Parties that are not required: the study goes on without them, says so, and spends nothing twice."""

import re

import numpy as np
import pytest

from tacit import load, save
from tacit.federated import (
    Coordinator,
    FeatureSharing,
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
)
from tacit.federated.protocols import protocol_for
from tacit.federated.returned import farewells
from tacit.federated.transports import MissingPartiesError
from tacit.federated.transports.in_process import InProcess
from tests.federated import test_by_name
from tests.federated.conftest import ROWS, SIZES, a_study, some_parties
from tests.federated.test_crashes import Death, Fate, Memories, deaths_change_nothing

MEMBERS = tuple(Member(name, size, True, required=name == "c") for name, size in SIZES.items())


def the_study(cross="sketched", **changes):
    told = {"protocol": Marginals(cross=cross), "members": MEMBERS, "epsilon": 4.0}
    return a_study(**(told | {"name": "real"} | changes))


class Leaving(InProcess):
    """From an exchange on some parties give no answer; `lost`: their last one is made, and does not arrive."""

    def __init__(self, nodes, leave, lost=False, back=99):
        super().__init__(nodes)
        self.leave, self.lost, self.back = leave, lost, back
        self.exchanges, self.asked = 0, []

    def exchange(self, requests):
        self.asked.append(set(requests))
        self.exchanges += 1
        gone = {name for name, at in self.leave.items() if at <= self.exchanges - 1 < self.back} & set(requests)
        made = requests if self.lost else {name: one for name, one in requests.items() if name not in gone}
        replies = super().exchange(made)
        if gone:
            raise MissingPartiesError(gone, 1.0, {name: reply for name, reply in replies.items() if name not in gone})
        return replies


def gone(study, leave, parties=None, folder=None, **how):
    nodes = [Node(study, party, folder and folder / party.name, warn=False) for party in parties or some_parties()]
    wire = Leaving(nodes, leave, **how)
    return Coordinator(study, folder and folder / "coordinator").run(wire), wire, nodes


@pytest.mark.parametrize("at", [0, 1, 2, 3])
@pytest.mark.parametrize("cross", ["sketched", "zero"])
def test_the_fit_goes_on_without_their_columns(cross, at):
    study = the_study(cross)
    outcome, wire, nodes = gone(study, {"a": at})
    last = 4 if cross == "sketched" else 3
    assert len(wire.asked) == last
    assert wire.asked[at + 1 :] == [{"b", "c"}] * (last - 1 - at)  # it is never asked again
    if at >= last:
        assert outcome.left == ()
        return
    assert outcome.left == ("a",)
    assert set(outcome.model.coefs) == {"b", "c"}
    assert sum(np.abs(coef).sum() for coef in outcome.model.coefs.values()) <= study.l1_radius + 1e-9
    assert outcome.guarantee.epsilon == study.epsilon
    model = fitted_model(outcome, study)
    parties = {party.name: party for party in some_parties()}
    assert model.left_ == ("a",)
    assert model.predict([parties["b"].X, parties["c"].X]).shape == (ROWS,)
    assert set(farewells(study, outcome.model, b"")) == {"b", "c"}
    made = {entry.release for entry in nodes[0].ledger()}
    assert bool(made) == (at == 3)
    assert "cross" not in made


def test_without_noise_it_is_the_model_of_those_who_stayed():
    study = the_study("auto", epsilon=np.inf)
    outcome, _, _ = gone(study, {"b": 2})
    parties = some_parties()
    fewer = a_study(members=(MEMBERS[0], MEMBERS[2]), name="real", epsilon=np.inf)
    alone = Coordinator(fewer).run(InProcess([Node(fewer, party, warn=False) for party in (parties[0], parties[2])]))
    for name in "ac":
        np.testing.assert_allclose(outcome.model.coefs[name], alone.model.coefs[name], atol=1e-7)
    assert outcome.model.intercept == pytest.approx(alone.model.intercept, abs=1e-7)


@pytest.mark.parametrize("leave", [{"a": 1, "b": 1}, {"a": 1, "b": 2}, {"a": 2, "b": 3}, {"a": 3, "b": 3}], ids=str)
@pytest.mark.parametrize("cross", ["auto", "sketched", "zero"])
def test_one_party_may_be_all_that_stays(cross, leave):
    outcome, wire, _ = gone(the_study(cross, epsilon=50.0), leave)
    stayed = {"a", "b", "c"} - {name for name, at in leave.items() if at < len(wire.asked)}
    assert set(outcome.model.coefs) == stayed
    assert all(np.isfinite(coef).all() for coef in outcome.model.coefs.values())


def test_what_was_released_and_lost_is_spent_once_and_one_that_returns_is_not_asked():
    study = the_study()
    outcome, wire, nodes = gone(study, {"a": 2}, lost=True, back=3)
    assert outcome.left == ("a",)
    assert wire.asked[3] == {"b", "c"}
    made = {entry.release: entry.count for entry in nodes[0].ledger()}
    assert 0 < sum(made.values()) < sum(release.count for release in nodes[0].plan.plan.releases)
    assert nodes[0].spent().epsilon <= study.epsilon


def test_who_is_required_is_waited_for():
    study = the_study()
    for leave in ({"c": 1}, {"a": 2, "c": 2}):
        with pytest.raises(MissingPartiesError, match="c"):
            gone(study, leave)
    nodes = [Node(study, party) for party in some_parties()]
    one = Coordinator(study)
    wire = Leaving(nodes, {"c": 1}, back=2)
    with pytest.raises(MissingPartiesError):
        one.run(wire)
    assert one.run(wire).left == ()  # and the study goes on where it was
    everybody = a_study(name="real", protocol=Marginals(cross="zero"))
    with pytest.raises(MissingPartiesError, match="a"):
        gone(everybody, {"a": 1})


def test_a_required_party_is_not_dropped_by_a_transport_that_says_nothing():
    class Silent(InProcess):
        def exchange(self, requests):
            replies = super().exchange(requests)
            return {name: reply for name, reply in replies.items() if name != "c"}

    study = the_study()
    with pytest.raises(RefusedError, match="no answer from: c"):
        Coordinator(study).run(Silent([Node(study, party) for party in some_parties()]))


def test_who_may_leave_is_agreed():
    assert the_study().digest != the_study(members=tuple(Member(n, size, True) for n, size in SIZES.items())).digest
    for changes, message in [
        ({"protocol": FeatureSharing()}, "for protocol 'marginals'"),
        ({"members": (*MEMBERS[:2], Member("c", 1, True, required=False))}, "'c' speaks for the labels"),
    ]:
        with pytest.raises(ValueError, match=message):
            the_study(**changes)
    members = (Member("a", 2, required=False), Member("b", 2, True))
    with pytest.raises(ValueError, match="others need all parties"):
        Study("s", "squared", members, 9, 1.0, labels="held", protocol=Marginals(products="masked"))
    assert Study("s", "squared", members, 9, 1.0, labels="sketched").optional == {"a"}
    with pytest.raises(TypeError, match="required of a party must be True or False"):
        Member("a", 2, required=1)


def test_a_file_keeps_who_left(tmp_path):
    study = the_study()
    outcome, _, _ = gone(study, {"a": 2})
    model = fitted_model(outcome, study)
    save(model, tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    assert (again.left_, again.uplink_bytes_) == (("a",), outcome.uplink_bytes)
    text = (tmp_path / "model.json").read_text()
    written = re.sub(r'"left_":\s*\{\s*"tuple":\s*\[\s*"a"', '"left_": {"tuple": ["b"', text)
    assert written != text
    (tmp_path / "model.json").write_text(written)
    with pytest.raises(ValueError, match="left_"):
        load(tmp_path / "model.json")


@pytest.mark.parametrize("at", [0, 1, 2])
def test_columns_that_go_by_name_are_left_out_too(at):
    tables, y = test_by_name.some_tables()
    study = test_by_name.a_study()
    last = Member("c", labels=True, columns={"age": [0, 100]})
    members = tuple(Member(m.name, m.n_features, True, columns=m.columns, required=False) for m in study.members)
    study = Study("real", "squared", (*members, last), 400, 20.0, y_bounds=(-6.0, 6.0), epsilon=9.0)
    parties = test_by_name.some_parties(study, {**tables, "c": tables["a"]}, y)
    outcome, _, _ = gone(study, {"b": at}, parties)
    assert outcome.left == ("b",)
    assert set(outcome.model.facts["units"]) == {"a", "c"}
    assert fitted_model(outcome, study).predict([tables["a"], tables["a"]]).shape == (400,)


class Mortal(Leaving):
    """A party that is not required is gone for good; the others are made again from their journals when they die."""

    deaths = 0

    def __init__(self, study, folder, parties):
        self.made = lambda party: Node(study, party, folder / party.name)
        self.parties = parties
        super().__init__([self.made(party) for party in parties], {"a": 2})

    def exchange(self, requests):
        try:
            return self._answered(requests)
        except Death:
            self.deaths += 1
            self._nodes = {party.name: self.made(party) for party in self.parties}
            return self._answered(requests)

    def _answered(self, requests):
        late = "a" in requests and messages.read(requests["a"]).round >= 2
        replies = InProcess.exchange(self, {n: one for n, one in requests.items() if n != "a" or not late})
        if late:
            raise MissingPartiesError({"a"}, 1.0, replies)
        return replies


def test_a_death_at_any_moment_changes_nothing(tmp_path, monkeypatch):
    study, parties = the_study("zero"), some_parties()
    protocol = protocol_for(study)
    for module in (node, coordinator):
        monkeypatch.setattr(module, "protocol_for", lambda _: protocol)
    expected = deaths_change_nothing(study, parties, Memories(monkeypatch), tmp_path, Fate(monkeypatch), Mortal)
    assert expected.left == ("a",)


@pytest.mark.parametrize("at", [1, 2])
def test_of_more_classes_it_goes_on_as_well(at):
    """Before its columns are known, and where they were to be sketched."""
    study = the_study(loss="logistic", classes=(0, 1, 2), epsilon=20.0)
    parties = [Party(party.X, np.arange(ROWS) % 3, name=party.name) for party in some_parties()]
    outcome, _, _ = gone(study, {"a": at}, parties)
    assert outcome.left == ("a",)
    assert {name: coef.shape for name, coef in outcome.model.coefs.items()} == {"b": (3, 3), "c": (3, 1)}
    model = fitted_model(outcome, study)
    assert model.predict_proba([party.X for party in parties[1:]]).shape == (ROWS, 3)
