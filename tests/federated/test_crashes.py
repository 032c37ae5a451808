"""Death at every step of every round, for every role: the same result, and nothing is spent twice.

Journals are where state is kept, so the steps are the calls to them: a process may die before or after each. Whoever
dies is made again from its store, and the round is sent again. Stores in memory are kept by the test, as if they were
files: what a journal promises does not depend on what keeps it.
"""

import shutil

import numpy as np
import pytest

from tacit.federated import Coordinator, FeatureSharing, Marginals, Node, coordinator, journal
from tacit.federated.journal import PartyJournal
from tacit.federated.store import CoordinatorStore, PartyStore
from tacit.federated.transports.in_process import InProcess
from tests.federated.conftest import a_study, run, some_parties

pytestmark = pytest.mark.usefixtures("toy")

STEPS = [(PartyJournal, "accept"), (PartyJournal, "finish"), (CoordinatorStore, "ask"), (CoordinatorStore, "tell")]
# No seeds: keys come from the operating system, and only the journals can make results repeat.
TOY = a_study(name="toy")
SHARING = a_study(name="real", protocol=FeatureSharing(n_iter=2, n_shared=2))


class Death(BaseException):
    """No handler of ours may catch it."""


class Files:
    """Stores on disk, which copies of a folder copy."""

    copied = staticmethod(shutil.copytree)


class Memories:
    """Stores in memory by the path that a file would have, for as long as the test runs."""

    def __init__(self, monkeypatch):
        self.kept = {}
        for module, kind in ((journal, PartyStore), (coordinator, CoordinatorStore)):
            monkeypatch.setattr(module, kind.__name__, lambda path, kind=kind: self._store(kind, path))

    def _store(self, kind, path):
        if path not in self.kept:
            self.kept[path] = kind()
        return self.kept[path]

    def copied(self, source, target):
        for path, kept in list(self.kept.items()):
            if path.parent == source:
                kept._database.backup(self._store(type(kept), target / path.name)._database)
        return target


@pytest.fixture(params=["file", "memory"])
def stores(request, monkeypatch):
    return Files() if request.param == "file" else Memories(monkeypatch)


class Fate:
    """Counts the moments at which a process can die, and lets it die at one of them."""

    def __init__(self, monkeypatch):
        self.moments, self.die_at = 0, None
        for owner, name in STEPS:
            monkeypatch.setattr(owner, name, self._around(getattr(owner, name)))

    def moment(self):
        self.moments += 1
        if self.moments - 1 == self.die_at:
            raise Death

    def _around(self, step):
        def mortal(owner, *arguments):
            self.moment()
            result = step(owner, *arguments)
            self.moment()
            return result

        return mortal


class Reviving(InProcess):
    """Makes a party that died again from its disk, and sends the requests of all parties again."""

    def __init__(self, study, folder, parties):
        self.study, self.folder, self.parties, self.deaths = study, folder, parties, 0
        super().__init__([self._node(party) for party in parties])

    def _node(self, party):
        return Node(self.study, party, self.folder / party.name)

    def exchange(self, requests):
        done = {}
        try:
            for name, request in requests.items():
                done |= super().exchange({name: request})
            return done
        except Death:
            self.deaths += 1
            (dead,) = [party for party in self.parties if party.name == list(requests)[len(done)]]
            self._nodes[dead.name] = self._node(dead)
            return super().exchange(requests)


def deaths_change_nothing(study, parties, stores, tmp_path, fate, transport):
    """Dies at every moment in turn; the outcome and the ledgers stay. Gives the outcome without a death."""
    wire = transport(study, tmp_path / "origin", parties)  # enrolled, with keys, and no further
    enrolled = stores.copied(tmp_path / "origin", tmp_path / "enrolled")
    fate.moments = 0
    expected, _ = finished(study, tmp_path / "origin", wire)
    ledgers = [one.ledger() for one in wire._nodes.values()]
    for at in range(fate.moments):
        folder = stores.copied(enrolled, tmp_path / str(at))
        fate.moments, fate.die_at = 0, at
        wire = transport(study, folder, parties)
        outcome, deaths = finished(study, folder, wire)
        assert deaths == 1, at
        assert outcome.left == expected.left, at
        for name, coef in expected.model.coefs.items():
            np.testing.assert_array_equal(outcome.model.coefs[name], coef)
        assert outcome.uplink_bytes == expected.uplink_bytes, at
        assert [one.ledger() for one in wire._nodes.values()] == ledgers, at
    return expected


def finished(study, folder, wire):
    """Run to the end; a coordinator that dies is made again from its disk."""
    deaths = 0
    while True:
        try:
            return Coordinator(study, folder / "coordinator").run(wire), deaths + wire.deaths
        except Death:
            deaths += 1


@pytest.mark.parametrize(
    "study",
    [
        pytest.param(TOY, id="toy"),
        pytest.param(a_study(name="real", protocol=Marginals(cross="sketched")), id="marginals"),
        pytest.param(SHARING, id="feature-sharing", marks=pytest.mark.slow),
    ],
)
def test_a_death_at_any_moment_changes_nothing(study, stores, tmp_path, monkeypatch):
    parties = some_parties()
    origin = tmp_path / "origin"
    Reviving(study, origin, parties)  # enrolled, with keys, and no further
    enrolled = stores.copied(origin, tmp_path / "enrolled")
    fate = Fate(monkeypatch)
    expected, wire, nodes = run(study, parties, origin)
    ledgers = [node.ledger() for node in nodes]
    moments = fate.moments
    assert moments == 4 * sum(1 + len(requests) for requests in wire.requests)  # two steps, each with two sides

    for at in range(moments):
        folder = stores.copied(enrolled, tmp_path / str(at))
        fate.moments, fate.die_at = 0, at
        wire = Reviving(study, folder, parties)
        outcome, deaths = finished(study, folder, wire)
        assert deaths == 1, at
        for name in study.names:
            np.testing.assert_array_equal(outcome.model.coefs[name], expected.model.coefs[name])
        assert outcome.model.intercept == expected.model.intercept, at
        assert outcome.uplink_bytes == expected.uplink_bytes, at
        assert [node.ledger() for node in wire._nodes.values()] == ledgers, at


def test_a_death_inside_a_transaction_leaves_nothing(tmp_path):
    parties = some_parties()
    _, wire, _ = run(TOY, parties)
    node = Node(TOY, parties[0], tmp_path / "a")
    node.answer(wire.requests[0]["a"])
    own = node._journal
    held = own._store.state(TOY.digest).held
    own.accept(TOY.digest, 1, b"request", held)
    own._store._database.execute("BEGIN IMMEDIATE")
    own._store._database.execute("UPDATE rounds SET reply = x'00' WHERE round = 1")
    own._store._database.close()
    again = Node(TOY, parties[0], tmp_path / "a")._journal
    assert again.accept(TOY.digest, 1, b"request", held).reply is None
