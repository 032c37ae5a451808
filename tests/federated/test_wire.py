"""Every array that leaves a party is a planned release; nothing else on the wire varies with the data."""

from collections import Counter

import numpy as np
import pytest

from tacit.federated import messages
from tests.federated.conftest import ROWS, STUDIES, a_study, run, some_parties

pytestmark = pytest.mark.usefixtures("toy")


def blanked(reply):
    """A reply without the numbers of its releases."""
    message = messages.read(reply)
    if message.round == 0:
        return reply
    arrays = {name: np.zeros_like(values) for name, values in message.arrays.items()}
    request = bytes(32)  # names the request, which follows from earlier releases
    named = message.study, message.party, message.round
    return messages.write(messages.Reply(*named, request, arrays, version=message.version))


@pytest.mark.parametrize("study", STUDIES)
def test_what_leaves_is_planned(study):
    """Each array, in each round, against the ledger of who sent it, and all ledgers against the plan."""
    outcome, wire, nodes = run(study, some_parties())
    ledger = {(node.name, entry.round, entry.release): entry for node in nodes for entry in node.ledger()}
    seen = 0
    for replies in wire.replies[1:]:
        for name, reply in replies.items():
            message = messages.read(reply)
            for array in message.arrays:
                assert (name, message.round, array) in ledger
                seen += 1
    assert seen > len(nodes)
    spent = Counter()
    for (name, _, release), entry in ledger.items():
        spent[f"{name}/{release}"] += entry.count
        assert entry.multiplier == outcome.plan.multiplier(f"{name}/{release}")
    planned = {release.name: release.count for release in outcome.plan.plan.releases}
    assert all(count <= planned[name] for name, count in spent.items())


@pytest.mark.parametrize("study", STUDIES)
def test_a_greeting_tells_what_the_study_says(study):
    _, wire, _ = run(study, some_parties())
    for name, reply in wire.replies[0].items():
        facts = messages.read(reply).arrays
        assert facts["shape"].tolist() == [ROWS, study.member(name).n_features]
        assert set(facts) == {"shape", "tag"}
        assert facts["tag"].size == 0


@pytest.mark.parametrize("study", STUDIES[:2])
def test_nothing_else_varies_with_the_data(study):
    """Not for feature-sharing, where a sketch comes along if the released index is new."""
    wires = [run(study, some_parties(seed))[1] for seed in (0, 1)]
    for first, second in zip(wires[0].replies, wires[1].replies, strict=True):
        assert list(first) == list(second)
        for name in first:
            assert blanked(first[name]) == blanked(second[name])
    assert any(first != second for first, second in zip(wires[0].replies, wires[1].replies, strict=True))


def test_ids_do_not_leave():
    _, wire, _ = run(a_study(), some_parties(ids=True))
    tags = {messages.read(reply).arrays["tag"].tobytes() for reply in wire.replies[0].values()}
    assert len(tags) == 1
    assert len(tags.pop()) == 32


def test_bytes_are_counted_as_they_are_sent():
    outcome, wire, _ = run(a_study(), some_parties())
    for name in "abc":
        assert outcome.uplink_bytes[name] == sum(len(replies.get(name, b"")) for replies in wire.replies)
