"""A coordinator that re-sends, reorders, duplicates or invents requests gets an error, and no further release."""

from dataclasses import replace

import numpy as np
import pytest

from tacit.federated import Node, RefusedError, messages
from tacit.federated.messages import Refusal, Reply, Request
from tests.federated.conftest import a_study, run, some_parties

pytestmark = pytest.mark.usefixtures("toy")

STUDY = a_study(random_state=1)


@pytest.fixture(scope="module")
def honest():
    """What an honest run sends to party a, and gets."""
    with pytest.MonkeyPatch.context() as patch:
        from tests.federated import conftest

        for module in (conftest.node, conftest.coordinator):
            patch.setattr(module, "protocol_for", conftest.chosen)
        _, wire, _ = run(STUDY, some_parties())
    asked = [requests["a"] for requests in wire.requests if "a" in requests]
    return asked, [replies["a"] for replies in wire.replies if "a" in replies]


@pytest.fixture
def node(honest):
    """Party a after the greeting and one round."""
    node = Node(STUDY, some_parties()[0])
    for request, reply in zip(honest[0][:2], honest[1][:2], strict=True):
        assert node.answer(request) == reply
    return node


def refused(node, request):
    """The reason; nothing else may have come of it."""
    before = node.ledger()
    reply = messages.read(node.answer(as_held(node, request)))
    assert isinstance(reply, Refusal)
    assert node.ledger() == before
    return reply.reason


def invented(number=2, step="value", study=STUDY.digest, party="a", **more):
    arrays = more.pop("arrays", {"weights": np.ones(2)})
    return messages.write(Request(study, party, number, step, arrays, **more))


def as_held(node, request):
    """An invented request as one can make it who has what the node sent; anything else as it is."""
    try:
        message = messages.read(request)
    except RefusedError:
        return request
    if not isinstance(message, Request) or message.round == 0:
        return request
    return messages.write(replace(message, held=node._journal._store.state(STUDY.digest).held))


INVENTIONS = {
    "another request": (invented(number=1), "bound to another request"),
    "skipped": (invented(number=3), "Is it an older copy?"),
    "far off": (invented(number=2**32 - 1), "more rounds than the study grants"),
    "other budget": (invented(study=a_study(epsilon=5.0, random_state=1).digest), "did not agree on this study"),
    "other radius": (invented(study=a_study(l1_radius=5.0, random_state=1).digest), "did not agree on this study"),
    "other party": (invented(party="b"), "another party"),
    "other version": (invented(version="0.0.0"), "another version"),
    "no hello": (invented(number=0), "one hello"),
    "late hello": (invented(number=2, step="hello"), "one hello"),
    "hello with more": (invented(number=0, step="hello"), "one hello"),
    "unknown step": (invented(step="everything"), "no such question"),
    "step of before": (invented(step="sums", arrays={}), "more than the study grants"),
    "other arrays": (invented(arrays={"other": np.ones(2)}), "no such question"),
    "nothing": (b"", "not a message"),
    "garbage": (b"GET / HTTP/1.1\r\n\r\n" * 9, "not a message"),
    "a reply": (messages.write(Reply(STUDY.digest, "a", 2, b"d" * 32, {})), "answers requests"),
}


@pytest.mark.parametrize("invention", INVENTIONS)
def test_inventions_are_refused(node, invention):
    request, reason = INVENTIONS[invention]
    assert reason in refused(node, request)


def test_a_wire_version_of_its_own(node, honest):
    assert "wire version 4" in refused(node, honest[0][2][:2] + b"\x04" + honest[0][2][3:])


def test_requests_of_another_party_or_out_of_order(honest):
    for request in reversed(honest[0][1:]):
        node = Node(STUDY, some_parties()[0])
        assert "Is it an older copy?" in refused(node, request)
        assert refused(node, honest[0][0]) == node.stopped  # not even a greeting: somebody has to look at the journal


def test_a_round_that_was_refused_stays_bound_to_its_request(node, honest):
    assert "no such question" in refused(node, invented(step="everything"))
    assert "bound to another request" in refused(node, honest[0][2])


def test_whatever_happens_in_between_the_answers_are_the_same(node, honest):
    """Bad requests and repeated ones, before each round: the same noise, the same ledger, once."""
    for request, reply in zip(honest[0], honest[1], strict=True):
        refused(node, invented(version="9.9"))
        refused(node, b"garbage")
        for _ in range(2):
            assert node.answer(request) == reply
        for earlier, told in zip(honest[0], honest[1], strict=True):
            if earlier == request:
                break
            assert node.answer(earlier) == told
    assert [entry.release for entry in node.ledger()] == ["sums", "value", "value"]


def test_refusals_tell_nothing_of_the_data(honest):
    """Two parties with different data refuse the same requests with the same words."""
    bad = [b"x", invented(party="b"), invented(study="00" * 32), invented(step="sums", arrays={}), invented(number=7)]
    told = []
    for seed in (0, 1):
        node = Node(STUDY, some_parties(seed)[0])
        for request in honest[0][:2]:
            node.answer(request)
        told.append([refused(node, request) for request in bad])
    assert told[0] == told[1]
