"""Masked products between nodes: deaths at any moment, mutated messages, what is kept and what is wiped."""

import json
from collections import Counter
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest

from tacit import load, save
from tacit.federated import Coordinator, FederatedLasso, Marginals, Node, Party, RefusedError, fitted_model, messages
from tacit.federated.coordinator import heard
from tacit.federated.messages import Refusal, Reply, Restart
from tacit.federated.protocols.marginals.masked import coordinator
from tacit.federated.protocols.marginals.masked import party as masked_party
from tacit.federated.store import BESIDE
from tacit.federated.transports.in_process import InProcess
from tests.federated.conftest import Recorder
from tests.federated.protocols.masked_run import HOLDER, SECRET, SIZES, masked_study, some_data
from tests.federated.test_crashes import Fate, Files, Reviving, finished

pytestmark = pytest.mark.filterwarnings("ignore:products are masked")

SEEDED = masked_study(random_state=3)
CLASSES = {"loss": "logistic", "classes": (-1, 1), "y_bounds": None}
ROUNDS = {"squared": 4, "logistic": 7}
THREE = CLASSES | {"classes": (-1, 1, 0)}


def parties(seed=0, secret=SECRET, loss="squared"):
    X, y = some_data(seed)
    y = y if loss == "squared" else np.where(y > 0.0, 1, -1)
    return [Party(x, y if name == HOLDER else None, name=name, secret=secret) for name, x in X.items()]


def nodes_of(study, folder=None, seed=0, secret=SECRET):
    return [Node(study, p, folder and folder / p.name) for p in parties(seed, secret, study.loss)]


def whole_run(study, folder=None):
    nodes = nodes_of(study, folder)
    wire = Recorder(nodes)
    asking = Coordinator(study, folder and folder / "coordinator")
    return asking.run(wire), wire, nodes, asking


def test_parties_of_different_people_open_nothing_whatever_the_coordinator_says():
    """A person in row i at one party and in row j at another would move the products of two rows."""

    class Blind(Coordinator):
        def _check_greetings(self, greetings):
            """All is well."""

    X, y = some_data()
    for first, refused in ((0, False), (1, True)):
        ids = dict.fromkeys(SIZES, range(40)) | {"c": range(first, first + 40)}
        held = [Party(x, y if n == HOLDER else None, name=n, ids=ids[n], secret=SECRET) for n, x in X.items()]
        wire = Recorder([Node(masked_study(), party) for party in held])
        if not refused:
            Blind(masked_study()).run(wire)
            continue
        with pytest.raises(RefusedError, match="for this study and the same people"):
            Blind(masked_study()).run(wire)
        assert len(wire.replies) == 3  # no party sent its rows, under whatever mask


@pytest.mark.parametrize("loss", ROUNDS)
def test_a_death_at_any_moment_changes_nothing(tmp_path, monkeypatch, loss):
    """A seeded study, so that noise is the same in every run; keys, seeds and masks are new in each.

    All rounds of slopes are alike, and only the last one is gone through.
    """
    study = SEEDED if loss == "squared" else masked_study(random_state=3, **CLASSES)
    origin = tmp_path / "origin"
    Reviving(study, origin, parties(loss=loss))
    enrolled = Files.copied(origin, tmp_path / "enrolled")
    fate = Fate(monkeypatch)
    expected, _, nodes, _ = whole_run(study, origin)
    ledgers, moments = [node.ledger() for node in nodes], fate.moments
    each = 4 * (1 + len(SIZES))
    assert moments == ROUNDS[loss] * each
    for at in range(0 if loss == "squared" else moments - each, moments):
        folder = Files.copied(enrolled, tmp_path / str(at))
        fate.moments, fate.die_at = 0, at
        wire = Reviving(study, folder, parties(loss=loss))
        outcome, deaths = finished(study, folder, wire)
        assert deaths == 1, at
        for name in SIZES:
            np.testing.assert_array_equal(outcome.model.coefs[name], expected.model.coefs[name])
        assert outcome.uplink_bytes == expected.uplink_bytes, at
        assert [node.ledger() for node in wire._nodes.values()] == ledgers, at


def test_what_was_sent_is_sent_again_and_never_made_again(tmp_path):
    study = masked_study()
    _, wire, nodes, _ = whole_run(study, tmp_path)
    asked, told = wire.requests[-1], wire.replies[-1]
    for node in nodes:
        node.close()
    with patch.object(masked_party, "whole_block", side_effect=AssertionError("blocks are not made again")):
        for node in nodes_of(study, tmp_path):
            assert node.answer(asked[node.name]) == told[node.name]


@pytest.mark.parametrize("told", [{}, CLASSES, THREE], ids=["squared", "logistic", "three classes"])
def test_what_leaves_is_planned_or_masked(told):
    outcome, wire, nodes, _ = whole_run(masked_study(**told))
    planned = {release.name: release.count for release in outcome.plan.plan.releases}
    spent, beside = Counter(), set()
    for node in nodes:
        sent = {(number, name) for number, replies in enumerate(wire.replies[1:], 1) for name in
                messages.read(replies[node.name]).arrays}  # fmt: skip
        assert {(entry.round, entry.release) for entry in node.ledger() if entry.kind == BESIDE} <= sent
        for entry in node.ledger():
            if entry.kind == BESIDE:
                beside.add(entry.release)
            else:
                spent[f"{node.name}/{entry.release}"] += entry.count
                assert entry.multiplier == outcome.plan.multiplier(f"{node.name}/{entry.release}")
        assert sent <= {(entry.round, entry.release) for entry in node.ledger()}
        assert node.spent().epsilon <= 1.0
    assert spent == planned
    assert beside == {"key", "code", "boxes", "rows"}


def test_keys_and_seeds_are_wiped_and_masked_rows_are_deleted(tmp_path):
    study = masked_study()
    outcome, wire, nodes, asking = whole_run(study, tmp_path)
    secrets = [
        state.memory[what].tobytes()
        for node in nodes
        for state in [node._journal._store.state(study.digest)]
        for what in (masked_party.SEED, masked_party.PRIVATE)
    ]
    rows = messages.read(wire.replies[-1]["a"]).arrays["rows"].tobytes()[:64]
    files = [tmp_path / name for name in SIZES]
    assert all(any(secret in file.read_bytes() for file in files) for secret in secrets)
    assert rows in (tmp_path / "coordinator").read_bytes()
    asking.farewell()
    for node in nodes:
        node.farewell()
    assert not any(secret in file.read_bytes() for secret in secrets for file in files)
    assert rows not in (tmp_path / "coordinator").read_bytes()
    again = Coordinator(study, tmp_path / "coordinator").run(InProcess([]))  # from what was opened
    np.testing.assert_array_equal(again.model.coefs["a"], outcome.model.coefs["a"])


def test_a_fit_in_a_folder_is_given_back(tmp_path):
    told = {"l1_radius": 3.0, "labels": "held", "protocol": Marginals(products="masked"), "y_bounds": (-4, 4)}
    model = FederatedLasso(1.0, 1e-6, directory=tmp_path, **told)
    first = model.fit(parties()).coef_
    np.testing.assert_array_equal(model.fit(parties()).coef_, first)
    with pytest.raises(ValueError, match="needs the secret"):
        model.fit([Party(p.X, p.y, name=p.name) for p in parties()])


def test_a_model_is_read_as_it_was_written(tmp_path):
    """With the views of its plan, without which the plan would cost more than the guarantee says."""
    study = masked_study()
    outcome, _, _, _ = whole_run(study)
    save(fitted_model(outcome, study), tmp_path / "model.json")
    model = load(tmp_path / "model.json")
    assert model.guarantee_ == outcome.guarantee
    assert (model.plan_.plan, model.plan_.event) == (outcome.plan.plan, outcome.plan.event)
    assert (model.protocol, model.labels) == (study.protocol, "held")
    written = (tmp_path / "model.json").read_text()
    document = json.loads(written)
    plan = document["model"]["attributes"]["plan_"]["plan"]
    for views in ("text", [["a"] * len(plan["releases"])], [[1.0]], [[2.0] * len(plan["releases"])], []):
        plan["views"] = views
        (tmp_path / "changed.json").write_text(json.dumps(document))
        with pytest.raises(ValueError, match=r"view|releases"):
            load(tmp_path / "changed.json")


def test_a_party_without_the_secret_or_with_another_one_is_refused():
    with pytest.raises(ValueError, match="needs the secret"):
        Node(masked_study(), Party(some_data()[0]["a"], name="a"))
    nodes = nodes_of(masked_study())[:2] + nodes_of(masked_study(), secret=b"another secret of 16")[2:]
    with pytest.raises(RefusedError, match="parties' secret"):
        Coordinator(masked_study()).run(InProcess(nodes))


def test_steps_out_of_order_are_refused():
    study = masked_study()
    _, wire, _, _ = whole_run(study)
    for step in ("seeds", "products", "cross"):
        node = nodes_of(study)[0]
        node.answer(wire.requests[0]["a"])
        held = node._journal._store.state(study.digest).held
        reply = node.answer(messages.write(messages.Request(study.digest, "a", 1, step, {}, held)))
        assert isinstance(messages.read(reply), Refusal)
        assert node.ledger() == []


# Mutated messages. What is changed is chosen from a seed; every byte may be.


def mutations(data, count, seed):
    """Bytes changed, cut out or put in."""
    rng = np.random.default_rng(seed)
    for turn in range(count):
        changed = bytearray(data)
        at = int(rng.integers(len(changed)))
        if turn % 3 == 0:
            changed[at] ^= 1 << int(rng.integers(8))
        elif turn % 3 == 1:
            del changed[at : at + int(rng.integers(1, 40))]
        else:
            changed[at:at] = rng.bytes(int(rng.integers(1, 40)))
        yield bytes(changed)


MANY = [pytest.param(60, id="some"), pytest.param(1_000, id="many", marks=pytest.mark.slow)]


@pytest.mark.parametrize("count", MANY)
@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_changed_request_is_refused(number, count):
    study = masked_study()
    nodes = nodes_of(study)
    wire = Recorder(nodes)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(wire, "exchange", stopping(wire, number))
        with pytest.raises(StopError):
            Coordinator(study).run(wire)
    node, request = nodes[0], wire.requests[-1]["a"]
    kept = node._journal._store._database.serialize()
    for changed in mutations(request, count, number):
        reply = messages.read(node.answer(changed))
        if isinstance(reply, Reply):
            told, honest = (messages.read(asked).arrays["boxes"].copy() for asked in (changed, request))
            for boxes in (told, honest):  # those between others, which this party cannot read
                boxes[1, 2] = boxes[2, 1] = boxes[1, 1] = boxes[2, 2] = 0
            np.testing.assert_array_equal(told, honest)
            sent = wire_of_products(nodes, wire.requests[-1]) | {"a": reply.arrays}
            with pytest.raises(RefusedError, match="do not open"):
                coordinator.opened(nodes[0]._protocol, sent)
        else:
            assert isinstance(reply, Refusal | Restart)  # the latter: the coordinator holds another greeting
            assert {entry.round for entry in node.ledger()} <= set(range(number))
        # As if each were the first request of the round: the journal would refuse all but one otherwise.
        node._journal._store._database.deserialize(kept)
        node._journal._known.clear()
        node.stopped = None
    assert isinstance(messages.read(node.answer(request)), Reply)


def wire_of_products(nodes, requests):
    """What the other parties answer to what they were asked."""
    return {node.name: messages.read(node.answer(requests[node.name])).arrays for node in nodes[1:]}


class StopError(Exception):
    """The exchange that is to be looked at."""


def stopping(wire, number):
    honest = Recorder.exchange

    def exchange(requests):
        if len(wire.requests) == number:
            wire.requests.append(dict(requests))
            raise StopError
        return honest(wire, requests)

    return exchange


@pytest.mark.parametrize("count", MANY)
@pytest.mark.parametrize(
    ("number", "refusals", "told"),
    [(1, 0.8, {}), (2, 0.8, {}), (3, 0.8, {}), (4, 0.6, CLASSES), (6, 0.6, CLASSES), (3, 0.8, THREE)],
)
def test_a_changed_reply_is_refused_or_read_as_numbers(number, refusals, told, count):
    """A release may come out as other numbers that data can give: there is no crash then, and a finite model."""
    study = masked_study(random_state=3, **told)
    _, wire, _, _ = whole_run(study)

    class Canned:
        def __init__(self, changed):
            self.changed = changed

        def exchange(self, requests):
            at = next((k for k, asked in enumerate(wire.requests) if asked == requests), None)
            if at is None:  # a question that follows from the changed answer, for parties to refuse
                raise StopError
            return {**wire.replies[at], **({"a": self.changed} if at == number else {})}

    refused = 0
    for changed in mutations(wire.replies[number]["a"], count, number):
        try:
            outcome = Coordinator(study).run(Canned(changed))
        except (RefusedError, StopError):
            refused += 1
        else:
            assert all(np.all(np.isfinite(coef)) for coef in outcome.model.coefs.values())
            sizes = sum(np.abs(coef).sum(axis=-1) for coef in outcome.model.coefs.values())
            assert np.max(sizes) <= study.l1_radius * (1.0 + 1e-9)
    assert refused > refusals * count


@pytest.mark.parametrize("count", MANY)
def test_a_changed_question_for_slopes_is_refused_or_gets_what_was_planned(count):
    """Numbers in it may be any: what comes back is a release all the same, and counted."""
    study = masked_study(**CLASSES)
    nodes = nodes_of(study)
    recorded = Recorder(nodes)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(recorded, "exchange", stopping(recorded, 4))
        with pytest.raises(StopError):
            Coordinator(study).run(recorded)
    node, request = nodes[0], recorded.requests[-1]["a"]
    kept = node._journal._store._database.serialize()
    answered = 0
    for changed in mutations(request, count, 4):
        reply = messages.read(node.answer(changed))
        made = sum(entry.count for entry in node.ledger() if entry.release == "slopes")
        if isinstance(reply, Reply):
            answered += 1
            assert (set(reply.arrays), made) == ({"slopes"}, 1)
            assert np.all(np.isfinite(reply.arrays["slopes"]))
        else:
            assert isinstance(reply, Refusal | Restart)
            assert made == 0
        node._journal._store._database.deserialize(kept)
        node._journal._known.clear()
        node.stopped = None
    assert answered < 0.4 * count
    assert isinstance(messages.read(node.answer(request)), Reply)


@pytest.mark.parametrize("count", MANY)
def test_changed_parts_of_classes_are_refused_or_parts(count):
    """Of the party that holds the labels, in its first reply."""
    study = masked_study(random_state=3, **THREE)
    _, wire, nodes, _ = whole_run(study)
    protocol, first = nodes[0]._protocol, wire.requests[1]
    for changed in mutations(wire.replies[1][HOLDER], count, 5):
        told = {name: reply for name, reply in wire.replies[1].items() if name != HOLDER} | {HOLDER: changed}
        try:
            read = heard(study.digest, dict.fromkeys(first, 1), first, told)
            rounds = protocol.coordinate()
            next(rounds)
            rounds.send({name: reply.arrays for name, reply in read.items()})
        except RefusedError:
            continue
        parts = read[HOLDER].arrays["label mean"]
        assert parts.min() > 0.0
        assert parts.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("what", ["rows", "products with party 2", "moments", "key", "boxes"])
def test_another_shape_or_type_is_refused(what):
    _, wire, _, _ = whole_run(SEEDED)
    for change in (lambda v: v[:-1], lambda v: v.astype(np.int16), lambda v: v.astype(np.float64)[None], None):

        class Changed:
            def exchange(self, requests, change=change):
                replies = dict(wire.replies[next(k for k, asked in enumerate(wire.requests) if asked == requests)])
                message = messages.read(replies["a"])
                if what in message.arrays:
                    arrays = dict(message.arrays)
                    arrays = {k: v for k, v in arrays.items() if k != what} | (
                        {what: change(arrays[what])} if change else {}
                    )
                    replies["a"] = messages.write(replace(message, arrays=arrays))
                return replies

        with pytest.raises(RefusedError, match=f"did not answer with '{what}'"):
            Coordinator(SEEDED).run(Changed())
