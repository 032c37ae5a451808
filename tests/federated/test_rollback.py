"""Journals that were copied, rolled back or lost: no noise is used twice, and what can be seen is refused."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from tacit.federated import Coordinator, FeatureSharing, Node, Party, RefusedError, messages
from tacit.federated.messages import Refusal, Reply, Request
from tacit.federated.node import HELLO, _fingerprint
from tacit.federated.protocols.base import Holding
from tacit.federated.transports.in_process import InProcess
from tacit.privacy import Plan
from tests.federated.conftest import ROWS, SECRET, a_study, run, some_parties

pytestmark = pytest.mark.usefixtures("toy")

STUDY = a_study(random_state=1)  # keys that repeat: whether noise does too is then no matter of luck
QUESTIONS = [np.array([1.0, 0.0]), np.array([0.0, 1.0])]


@pytest.fixture
def party():
    return some_parties()[0]


def ask(node, number, step, **arrays):
    """The reply to a coordinator that holds what the node's journal holds."""
    study = node.study.digest
    held = node._journal._store.state(study).held if number else messages.HOLDS_NOTHING
    request = messages.write(Request(study, node.name, number, step, arrays, held))
    reply = messages.read(node.answer(request))
    assert isinstance(reply, Reply), reply
    return reply.arrays


def begun(party, path):
    """A party's journal after the greeting and the first round."""
    node = Node(STUDY, party, path)
    ask(node, 0, HELLO)
    ask(node, 1, "sums")
    node.close()
    return path


def noise_of_value(node, party, weights):
    """What the release "value" added to the number that it stands for."""
    seen = node._journal._store.state(STUDY.digest).memory["seen"].sum()
    exact = np.clip(party.X @ weights + seen, -1, 1).sum()
    return float(ask(node, 2, "value", weights=weights)["value"][0] - exact)


def test_a_copied_journal_answers_another_question_with_other_noise(party, tmp_path):
    """Else the difference of two answers would be the exact difference of what was measured."""
    origin = begun(party, tmp_path / "origin")
    noises = []
    for number, weights in enumerate(QUESTIONS):
        shutil.copy(origin, tmp_path / str(number))
        noises.append(noise_of_value(Node(STUDY, party, tmp_path / str(number)), party, weights))
    scale = Node(STUDY, party).plan.multiplier("value")
    assert abs(noises[0] - noises[1]) > 1e-6 * scale
    assert min(map(abs, noises)) > 1e-6 * scale


def test_two_ranges_of_the_target_do_not_give_away_a_sum_of_labels(party, tmp_path):
    """The attack on a real protocol: the mean of clipped labels, asked for twice from copies of one journal."""
    study = a_study(name="real", y_bounds=(-4.0, 4.0), epsilon=8.0, random_state=1)
    origin = begun_at_greeting(party, tmp_path / "origin", study)
    noises = []
    for number, reach in enumerate((4.0, 0.5)):
        shutil.copy(origin, tmp_path / str(number))
        node = Node(study, party, tmp_path / str(number))
        mean = float(ask(node, 1, "marginals", **{"y bounds": np.array([-reach, reach])})["label mean"][0])
        noises.append(ROWS * mean / reach - np.clip(party.y / reach, -1.0, 1.0).sum())
    assert abs(noises[0] - noises[1]) > 1e-6  # shared noise: about 1e-12


@pytest.mark.parametrize("change", ["label", "entry", "id"])
def test_a_journal_rolled_back_answers_of_other_data_with_other_noise(change, tmp_path):
    """One label, one entry or the ids changed, the same request: the first round is answered with other noise."""
    ids = {"ids": np.arange(ROWS), "secret": SECRET}
    X, y = some_parties()[0].X, some_parties()[0].y
    parties = [Party(X, y, name="a", **ids)]
    if change == "label":
        y = y * np.where(np.arange(ROWS) == 3, -1.0, 1.0)
    elif change == "entry":
        X = X + np.where(np.arange(ROWS) == 3, 2.0**-10, 0.0)[:, None]
    else:
        ids["ids"] = ids["ids"] + 1
    parties.append(Party(X, y, name="a", **ids))
    noises = []
    for party in parties:
        shutil.copy(begun_at_greeting(parties[0], tmp_path / "origin"), tmp_path / "copy")
        node = Node(STUDY, party, tmp_path / "copy")
        noises.append(ask(node, 1, "sums")["sums"] - np.clip(party.X, -1, 1).sum(axis=0))
        node.close()
    assert np.all(np.abs(noises[0] - noises[1]) > 1e-6)


def begun_at_greeting(party, path, study=STUDY):
    node = Node(study, party, path)
    ask(node, 0, HELLO)
    node.close()
    return path


def test_noise_depends_on_all_that_an_answer_is_made_of(party):
    node = Node(STUDY, party)
    request, memory, made = b"r" * 32, {"seen": np.ones(2)}, {"sums": 1}
    first = node._key(request, memory, made)
    assert node._key(request, {"seen": np.ones(2)}, dict(made)) == first
    others = [
        (b"s" * 32, memory, made),
        (request, {"seen": np.ones((2, 1))}, made),
        (request, {"seen": np.array([1.0, 2.0])}, made),
        (request, {}, made),
        (request, memory, {"sums": 2}),
        (request, memory, {"sums": 1, "value": 1}),
    ]
    keys = [node._key(*other) for other in others]
    keys.append(Node(STUDY, Party(party.X, -party.y, name="a"))._key(request, memory, made))
    assert len({first, *keys}) == 1 + len(keys)


def test_noise_depends_on_the_whole_plan(party):
    """Else two answers with multipliers that differ in a last bit would differ by a known part of one noise."""
    node = Node(STUDY, party)
    plan = node.plan
    first, *others = plan.plan.releases
    changed = [replace(first, name="other"), replace(first, kind="laplace"), replace(first, count=first.count + 1)]
    plans = [replace(plan, plan=Plan(release, *others)) for release in [*changed, replace(first, sampling=0.5)]]
    plans.append(replace(plan, multipliers=(np.nextafter(plan.multipliers[0], 9e9).item(), *plan.multipliers[1:])))
    plans.append(replace(plan, budget=replace(plan.budget, adjacency="replace-one")))
    keys = set()
    for other in (plan, *plans):
        node.plan = other
        keys.add(node._key(b"r" * 32, {}, {}))
    assert len(keys) == 1 + len(plans)


def test_no_two_tables_are_fingerprinted_alike():
    X, y = np.arange(6.0).reshape(3, 2), np.arange(3.0)
    holdings = [
        (Holding("a", X, y), b""),
        (Holding("a", X, None), b""),
        (Holding("a", X, y), b"t" * 32),
        (Holding("a", X.T.copy().reshape(3, 2), y), b""),
        (Holding("a", X.reshape(2, 3), y[:2]), b""),
        (Holding("a", np.column_stack([X, y]), None), b""),
        (Holding("a", sparse.csc_array(X), y), b""),
    ]
    assert len({_fingerprint(*holding) for holding in holdings}) == len(holdings)
    assert _fingerprint(Holding("b", np.asfortranarray(X), y), b"") == _fingerprint(*holdings[0])


def test_the_same_request_on_the_same_data_gives_the_same_bytes(tmp_path):
    """That is what makes a crash cost nothing; no seed here, so that the key is the journal's."""
    study = a_study()
    parties = some_parties()
    node = Node(study, parties[0], tmp_path / "a")
    node.close()
    shutil.copy(tmp_path / "a", tmp_path / "before")
    _, wire, _ = run(study, parties, tmp_path)
    again = Node(study, parties[0], tmp_path / "before")
    for requests, replies in zip(wire.requests, wire.replies, strict=True):
        assert again.answer(requests["a"]) == replies["a"]


@pytest.mark.parametrize("rounds", [0, 1, 2])
def test_a_journal_behind_the_coordinator_stops_the_party(rounds, tmp_path):
    """Put back as it was after so many rounds, while the coordinator has gone on."""
    study = a_study()
    parties = some_parties()
    nodes = [Node(study, party, tmp_path / party.name) for party in parties]
    kept = Coordinator(study, tmp_path / "coordinator")
    with pytest.raises(InterruptedError):
        kept.run(
            Interrupted(nodes, 3, lambda number: number == rounds and shutil.copy(tmp_path / "a", tmp_path / "old"))
        )
    nodes[0] = Node(study, parties[0], tmp_path / "old")
    before = nodes[0].ledger()
    with pytest.raises(RefusedError, match=f"refused by a: .*has 3 answers; the journal has {rounds}.*older copy"):
        kept.run(InProcess(nodes))
    assert nodes[0].ledger() == before
    assert f"the journal has {rounds}" in nodes[0].stopped
    # Nothing it is asked after that is answered, either.
    request = Request(study.digest, "a", rounds, "sums", {}, nodes[0]._journal._store.state(study.digest).held)
    assert isinstance(messages.read(nodes[0].answer(messages.write(request))), Refusal)
    assert nodes[0].ledger() == before


class Interrupted(InProcess):
    """Stops before an exchange; `before` is called with the number of each."""

    def __init__(self, nodes, end, before=lambda _: None):
        super().__init__(nodes)
        self.end, self.before, self.number = end, before, -1

    def exchange(self, requests):
        self.number += 1
        self.before(self.number)
        if self.number == self.end:
            raise InterruptedError
        return super().exchange(requests)


def test_a_journal_that_gave_other_answers_is_refused(tmp_path):
    """A copy that answered another coordinator in between: as many rounds, other replies."""
    study = a_study()
    parties = some_parties()
    kept = Coordinator(study, tmp_path / "coordinator")
    nodes = [Node(study, party, tmp_path / party.name) for party in parties]
    with pytest.raises(InterruptedError):
        kept.run(Interrupted(nodes, 2))
    nodes[0] = Node(study, parties[0])
    run_alone = [messages.write(Request(study.digest, "a", 0, HELLO))]
    nodes[0].answer(run_alone[0])
    held = nodes[0]._journal._store.state(study.digest).held
    nodes[0].answer(messages.write(Request(study.digest, "a", 1, "sums", {}, held)))
    with pytest.raises(RefusedError, match="refused by a: the coordinator has other answers to the first 2 rounds"):
        kept.run(InProcess(nodes))
    assert sum(entry.count for entry in nodes[0].ledger()) == 1


# A party that begins again.


def mended(party, **more):
    return Party(party.X, party.y + 1.0, name=party.name, **more)


def test_data_mended_after_the_greeting_begins_again(tmp_path):
    """The coordinator goes on as if nothing had been; the key is another."""
    study = a_study()
    parties = some_parties()
    nodes = [Node(study, party, tmp_path / party.name) for party in parties]
    keys = [node._journal._store.enrolled(study.digest).key for node in nodes]
    with pytest.raises(InterruptedError):
        Coordinator(study, tmp_path / "coordinator").run(Interrupted(nodes, 1))
    for node in nodes:
        node.close()
    parties[1] = mended(parties[1])
    nodes = [Node(study, party, tmp_path / party.name) for party in parties]
    assert Coordinator(study, tmp_path / "coordinator").run(InProcess(nodes)).n_rounds == 4
    again = [node._journal._store.enrolled(study.digest).key for node in nodes]
    assert [old == new for old, new in zip(keys, again, strict=True)] == [True, False, True]
    assert [len(node.ledger()) for node in nodes] == [3, 2, 2]


def test_a_round_that_was_cut_off_does_not_keep_data_from_being_mended(tmp_path, monkeypatch):
    """Nothing was stored, so nothing has left."""
    study = a_study()
    parties = some_parties()
    nodes = [Node(study, party, tmp_path / party.name) for party in parties]
    with monkeypatch.context() as patch:
        patch.setattr(Node, "_compute", lambda *_: (_ for _ in ()).throw(InterruptedError))
        with pytest.raises(InterruptedError):
            Coordinator(study, tmp_path / "coordinator").run(InProcess(nodes))
    nodes[0] = Node(study, mended(parties[0]), tmp_path / "a")
    assert Coordinator(study, tmp_path / "coordinator").run(InProcess(nodes)).n_rounds == 4


def test_a_node_with_the_old_data_does_not_answer_after_it_was_mended(tmp_path):
    study = a_study()
    party = some_parties()[0]
    stale = Node(study, party, tmp_path / "a")
    ask(stale, 0, HELLO)
    fresh = Node(study, mended(party), tmp_path / "a")
    held = fresh._journal._store.state(study.digest).held
    request = messages.write(Request(study.digest, "a", 1, "sums", {}, held))
    refused = messages.read(stale.answer(request))
    assert isinstance(refused, Refusal)
    assert "began again in another process" in refused.reason
    assert fresh.ledger() == []
    assert isinstance(messages.read(fresh.answer(request)), Reply)


def test_ids_mended_after_the_greeting_are_compared_again(tmp_path):
    """All parties had the wrong list of people. One had answered already, and cannot change any more."""
    study = a_study()
    wrong = some_parties(ids=True)
    right = [mended(party, ids=np.arange(ROWS) + 7, secret=SECRET) for party in wrong]
    nodes = [Node(study, party, tmp_path / party.name) for party in wrong]
    with pytest.raises(InterruptedError):
        Coordinator(study, tmp_path / "coordinator").run(Interrupted(nodes, 1))
    nodes[1] = Node(study, right[1], tmp_path / "b")
    with pytest.raises(RefusedError, match=r"ids do not match.*: a, c / b"):
        Coordinator(study, tmp_path / "coordinator").run(InProcess(nodes))
    assert [len(node.ledger()) for node in nodes] == [1, 0, 1]  # a and c were asked while b was not yet
    fresh = tmp_path / "fresh"
    nodes = [Node(study, party, fresh / party.name) for party in wrong]
    with pytest.raises(InterruptedError):
        Coordinator(study, fresh / "coordinator").run(Interrupted(nodes, 1))
    nodes = [Node(study, party, fresh / party.name) for party in right]
    assert Coordinator(study, fresh / "coordinator").run(InProcess(nodes)).n_rounds == 4


def test_a_party_that_begins_again_after_others_answered_is_told_what_to_do(tmp_path):
    """In the second exchange, which is the first that it is asked in."""
    study = a_study(name="real", protocol=FeatureSharing(n_iter=2))
    study = replace(study, entry_bound=1.0, y_bounds=(-1.0, 1.0))
    parties = some_parties(ids=True)
    nodes = [Node(study, party, tmp_path / party.name) for party in parties]
    with pytest.raises(InterruptedError):
        Coordinator(study, tmp_path / "coordinator").run(Interrupted(nodes, 2))
    assert [len(node.ledger()) for node in nodes[:2]] == [0, 0]
    nodes[0] = Node(study, mended(parties[0], ids=np.arange(ROWS) + 7, secret=SECRET), tmp_path / "a")
    with pytest.raises(
        RefusedError, match=r"ids of a changed after the greeting.*Put back the data .* or agree on a new"
    ):
        Coordinator(study, tmp_path / "coordinator").run(InProcess(nodes))
    nodes[0] = Node(study, parties[0], tmp_path / "a")
    assert Coordinator(study, tmp_path / "coordinator").run(InProcess(nodes)).n_rounds > 3


class Restarting(InProcess):
    """A party that always wants to begin again, from some exchange on."""

    def __init__(self, nodes, first):
        super().__init__(nodes)
        self.first, self.number = first, -1

    def exchange(self, requests):
        self.number += 1
        replies = super().exchange(requests)
        asked = messages.read(requests["a"])
        if asked.round == 0 or self.number < self.first:
            return replies
        restart = messages.Restart(asked.study, "a", asked.round, messages.digest(requests["a"]))
        return replies | {"a": messages.write(restart)}


@pytest.mark.parametrize(
    ("first", "match"), [(1, "data of a changed again"), (2, "'a' wants to begin again, after it released something")]
)
def test_a_party_does_not_begin_again_for_ever_or_too_late(first, match):
    nodes = [Node(STUDY, party) for party in some_parties()]
    with pytest.raises(RefusedError, match=match):
        Coordinator(STUDY).run(Restarting(nodes, first))
