"""Scores over the network: sums for the recipient alone, and nothing that the coordinator can read or change."""

import numpy as np
import pytest

from tacit.federated import RefusedError, messages
from tacit.federated.alignment import Alignment
from tacit.federated.disclosures import DisclosureStore
from tacit.federated.messages import Refusal, Request
from tacit.federated.protocols.marginals.masked.seals import Sealer
from tacit.federated.scoring import STEPS, Scorer, digest_of, score
from tests.federated.conftest import SECRET, Recorder
from tests.federated.test_matching import mutated

STUDY, PARTIES = "ab" * 32, ("a", "b", "c")
PEOPLE = [f"p{k}" for k in range(12)]


def scorers(people=None, secret=SECRET, recipient="b", study=STUDY, parties=PARTIES, store=DisclosureStore, classes=()):
    """Each party has the people in an order of its own."""
    made, rng = [], np.random.default_rng(0)
    for name in parties:
        ids = rng.permutation((people or {}).get(name, PEOPLE))
        asked = Alignment.of(ids, secret if isinstance(secret, bytes) else secret[name])
        margins = np.array([margin(name, one) for one in ids])
        margins = np.multiply.outer(margins, classes) if classes else margins
        made.append(Scorer(study, name, recipient, parties, asked, margins[asked.order], store()))
    return made


def margin(name, one):
    return (int(one[1:]) + 100 * "abc".index(name) + 1) / 7.0


def test_the_recipient_has_the_sums_and_the_others_nothing():
    made = scorers()
    wire = Recorder(made)
    assert score(STUDY, "b", PARTIES, wire) == 2
    order = Alignment.of(PEOPLE, SECRET).order
    expected = np.array([sum(margin(name, one) for name in PARTIES) for one in PEOPLE])[order]
    np.testing.assert_allclose(made[1].total, expected)
    assert made[0].total is None
    told = [scorer._store.disclosures() for scorer in made]
    assert [len(entries) for entries in told] == [1, 0, 1]
    assert (told[0][0].what, told[0][0].size) == ("margins of people who were asked about, to b", 12)
    assert score(STUDY, "b", PARTIES, wire) == 2  # again: the same sums, and one disclosure
    np.testing.assert_allclose(made[1].total, expected)
    assert len(made[0]._store.disclosures()) == 1


def test_nothing_readable_crosses_the_coordinator():
    made = scorers()
    wire = Recorder(made)
    score(STUDY, "b", PARTIES, wire)
    passed = b"".join(content for said in (wire.requests, wire.replies) for one in said for content in one.values())
    for scorer in made:
        for value in scorer._margins:
            assert value.astype("<f8").tobytes() not in passed
    assert not any(one.encode() in passed for one in PEOPLE[10:])
    tags = Alignment.of(PEOPLE, SECRET)
    for tag in tags.study_tags(STUDY)[0]:
        assert tag.tobytes() not in passed


def test_margins_are_for_the_people_and_the_recipient_that_each_party_was_given():
    for changes, message in [
        ({"people": {"c": PEOPLE[1:]}}, "c were given other people"),
        ({"secret": {"a": SECRET, "b": SECRET, "c": SECRET + b"!"}}, "c were given other people"),
    ]:
        made = scorers(**changes)
        with pytest.raises(RefusedError, match=message):
            score(STUDY, "b", PARTIES, Recorder(made))
        assert not any(scorer._store.disclosures() for scorer in made)
    with pytest.raises(RefusedError, match="did not agree on this study"):
        score(STUDY, "a", PARTIES, Recorder(scorers()))
    with pytest.raises(RefusedError, match="did not agree on this study"):
        score("cd" * 32, "b", PARTIES, Recorder(scorers()))


def asked(step, arrays, name="a"):
    digest = digest_of(STUDY, "b", PARTIES)
    return messages.write(Request(digest, name, STEPS.index(step), step, arrays))


def bytes_of(data):
    return np.frombuffer(data, dtype=np.uint8)


def test_a_coordinator_with_a_key_of_its_own_gets_no_margins():
    (scorer, *_) = made = scorers()
    forged = Sealer.new(digest_of(STUDY, "b", PARTIES), "b", b"not the parties' secret").hello()
    other = Sealer.new(digest_of(STUDY, "b", PARTIES), "a", Alignment.of(PEOPLE, SECRET).secret(made[0]._digest))
    for hello in (forged, other.hello()):  # without the secret; and a party's hello for another name
        request = asked("margins", {"key": bytes_of(hello.key), "code": bytes_of(hello.code)})
        assert isinstance(messages.read(scorer.answer(request)), Refusal)
    assert not scorer._store.disclosures()


@pytest.mark.parametrize(
    ("name", "step", "arrays"),
    [
        ("a", "people", {"more": np.ones(2)}), ("a", "boxes", {}), ("b", "margins", {}), ("a", "margins", {}),
        ("a", "margins", {"key": np.zeros(32), "code": np.zeros(32)}),
        ("b", "boxes", {}),
        ("b", "boxes", {w: np.zeros((2, 3), dtype=np.uint8) for w in ("keys", "codes", "boxes")}),
    ],
)  # fmt: skip
def test_requests_of_another_form_are_refused(name, step, arrays):
    scorer = scorers()["abc".index(name)]
    assert isinstance(messages.read(scorer.answer(asked(step, arrays, name))), Refusal)
    assert not scorer._store.disclosures()
    assert scorer.total is None


def test_boxes_of_another_run_are_not_opened():
    made = scorers()
    wire = Recorder(made)
    score(STUDY, "b", PARTIES, wire)
    old = wire.requests[2]["b"]
    again = scorers()[1]  # its process died: it has another key
    again.answer(wire.requests[0]["b"])
    assert isinstance(messages.read(again.answer(old)), Refusal)
    assert again.total is None


class Swapped(Recorder):
    """A coordinator that gives the recipient one party's box in the name of another."""

    def exchange(self, requests):
        for name, request in requests.items():
            read = messages.read(request)
            if read.step == "boxes":
                arrays = {what: values[::-1] for what, values in read.arrays.items()}
                requests = {name: messages.write(Request(read.study, name, read.round, read.step, arrays))}
        return super().exchange(requests)


def test_boxes_that_change_places_are_refused():
    made = scorers()
    with pytest.raises(RefusedError, match="was not made with the parties' secret"):
        score(STUDY, "b", PARTIES, Swapped(made))
    assert made[1].total is None


def test_margins_of_more_classes_are_a_row_for_each_person():
    made = scorers(classes=(1.0, -2.0, 0.5))
    wire = Recorder(made)
    assert score(STUDY, "b", PARTIES, wire) == 2
    order = Alignment.of(PEOPLE, SECRET).order
    sums = np.array([sum(margin(name, one) for name in PARTIES) for one in PEOPLE])[order]
    np.testing.assert_allclose(made[1].total, np.multiply.outer(sums, (1.0, -2.0, 0.5)))
    assert [entry.size for entry in made[0]._store.disclosures()] == [12]  # people
    fewer = scorers(classes=(1.0, -2.0))  # a part of another model: its box has another size
    with pytest.raises(RefusedError, match="not of one size"):
        score(STUDY, "b", PARTIES, Recorder([made[0], made[1], fewer[2]]))


@pytest.mark.parametrize("classes", [(), (1.0, -2.0, 0.5)], ids=["a number", "three classes"])
def test_mutated_messages_crash_nobody_and_change_no_sum(classes):
    made = scorers(classes=classes)
    wire = Recorder(made)
    score(STUDY, "b", PARTIES, wire)
    expected, rng = made[1].total, np.random.default_rng(3)
    for requests in wire.requests:
        for name, request in requests.items():
            for _ in range(200):
                made[1].total = None
                made["abc".index(name)].answer(mutated(rng, request))
                assert made[1].total is None or np.array_equal(made[1].total, expected)
    assert all(len(scorer._store.disclosures()) <= 1 for scorer in made)


class Mutating(Recorder):
    """Replies that change on their way to the coordinator."""

    def __init__(self, nodes, rng, at):
        super().__init__(nodes)
        self.rng, self.at = rng, at

    def exchange(self, requests):
        replies = super().exchange(requests)
        if len(self.replies) - 1 == self.at:
            name = list(replies)[self.rng.integers(len(replies))]
            replies[name] = mutated(self.rng, replies[name])
        return replies


@pytest.mark.slow
def test_mutated_replies_are_refused_or_change_nothing():
    rng, refused = np.random.default_rng(4), 0
    expected = None
    for trial in range(1_000):
        if trial % 50 == 0:
            made = scorers()
            score(STUDY, "b", PARTIES, Recorder(made))
            expected = made[1].total
        made[1].total = None
        try:
            score(STUDY, "b", PARTIES, Mutating(made, rng, trial % 3))
        except RefusedError:
            refused += 1
        assert made[1].total is None or np.array_equal(made[1].total, expected)
    assert refused > 900


@pytest.mark.parametrize("at", range(3))
@pytest.mark.parametrize("who", range(3))
def test_a_process_that_dies_is_started_again_and_the_sums_are_the_same(at, who, tmp_path):
    paths = iter([tmp_path / f"{k}.sqlite" for k in range(6)] * 2)
    first = scorers(store=lambda: DisclosureStore(next(paths)))
    expected = None

    class Dying(Recorder):
        def exchange(self, requests):
            if len(self.requests) == at:
                raise KeyboardInterrupt
            return super().exchange(requests)

    with pytest.raises(KeyboardInterrupt):
        score(STUDY, "b", PARTIES, Dying(first))
    store = first[who]._store
    again = [scorers(store=lambda: store)[k] if k == who else one for k, one in enumerate(first)]
    score(STUDY, "b", PARTIES, Recorder(again))
    order = Alignment.of(PEOPLE, SECRET).order
    expected = np.array([sum(margin(name, one) for name in PARTIES) for one in PEOPLE])[order]
    np.testing.assert_allclose(again[1].total, expected)
    assert [len(scorer._store.disclosures()) for scorer in again] == [1, 0, 1]


@pytest.mark.parametrize("wild", [1e301, np.inf, np.nan])
def test_what_is_in_a_box_that_opens_changes_no_reply(wild):
    # Else a coordinator that sends a model of huge weights would hear by a refusal on which side of a line somebody is.
    replies = []
    for spoilt in (False, True):
        made = scorers()
        if spoilt:
            made[0]._margins[3] = wild
        wire = Recorder(made)
        assert score(STUDY, "b", PARTIES, wire) == 2
        read = [messages.read(one) for one in wire.replies[2].values()]
        replies.append([(type(one), one.arrays) for one in read])
        assert made[1].unusable == (("a",) if spoilt else ())
        assert (made[1].total is None) == spoilt
    assert replies[0] == replies[1]
