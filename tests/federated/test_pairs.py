"""Two parties matched by private set intersection: who is common, what crosses the wire, and who is told nothing."""

import hashlib
import math

import numpy as np
import pytest

from tacit.federated import FederatedLasso, Member, Party, RefusedError, messages
from tacit.federated.alignment import TAG_BYTES, Alignment
from tacit.federated.blinding import POINT_BYTES
from tacit.federated.disclosures import DisclosureStore
from tacit.federated.matching import Matcher, match
from tacit.federated.messages import Refusal, Reply, Request
from tacit.federated.pairs import STEPS, PairMatcher, match_pair
from tacit.federated.protocols.marginals.masked.seals import Sealer
from tacit.federated.transports.in_process import InProcess
from tests.federated.conftest import SECRET, Recorder
from tests.federated.test_matching import Cheating, Death, Garbled, a_proposal, mutated, people

pytest.importorskip("private_set_intersection", reason="needs the extra psi, which has wheels for some machines")

IDS = {"a": [f"p{i}" for i in range(0, 14)], "b": [f"p{i}" for i in range(19, 3, -1)]}
COMMON = {f"p{i}" for i in range(4, 14)}
PAIR = (Member("a", 1, True), Member("b", 1, True))


def a_pair(name="s"):
    return a_proposal(name, members=PAIR)


def matchers_of(proposal, ids=IDS, folder=None, secret=SECRET, kind=PairMatcher):
    return [kind(proposal, n, Alignment.of(own, secret), folder and folder / n) for n, own in ids.items()]


class Peer:
    """Speaks to a party as the other one, with what the two share, and says what it likes."""

    def __init__(self, matcher, name, secret=SECRET):
        self.matcher, self.digest = matcher, a_pair().digest
        self.sealer = Sealer.new(self.digest, name, Alignment.of([1], secret).channel(self.digest))
        greeting = messages.read(matcher.answer(self.asked(0, {})))
        self.own = self.sealer.hello()
        self.hello = type(self.own)(*(greeting.arrays[what].tobytes() for what in ("key", "code")))

    def asked(self, number, arrays):
        return messages.write(Request(self.digest, self.matcher.name, number, STEPS[number], arrays))

    def says(self, number, content=None, step=None):
        """What the party answers in a round: the content of its box, its count, or its reason to refuse."""
        said = {"key": as_bytes(self.own.key), "code": as_bytes(self.own.code)}
        if content is not None:
            step = number - 1 if step is None else step
            said["box"] = as_bytes(self.sealer.closed(bytes([step]) + content, self.matcher.name, self.hello))
        answer = messages.read(self.matcher.answer(self.asked(number, said)))
        if isinstance(answer, Refusal):
            return answer.reason
        if number == len(STEPS) - 1:
            return int(answer.arrays["n_rows"])
        content = self.sealer.opened(answer.arrays["box"].tobytes(), self.matcher.name, self.hello)
        assert content[0] == number
        return content[1:]


def as_bytes(data):
    return np.frombuffer(data, dtype=np.uint8)


def committed(name, marks):
    return hashlib.sha256(b"tacit.federated marks:" + name.encode() + b"\0" + marks).digest()


def test_both_take_the_same_people_in_the_order_that_keyed_hashes_give():
    pair, hashed = (matchers_of(a_pair(), kind=kind) for kind in (PairMatcher, Matcher))
    assert match_pair(a_pair(), InProcess(pair)) == match(a_pair(), InProcess(hashed)) == len(COMMON)
    assert set(people(pair[0], IDS)) == COMMON
    assert people(pair[0], IDS) == people(pair[1], IDS) == people(hashed[0], IDS)
    told = [[(entry.what, entry.size) for entry in matcher._store.disclosures()] for matcher in pair]
    assert told[0] == [
        ("blinded ids to b, and how many to the coordinator", 14),
        ("which ids of b are here, to b", 16),
        ("who is at all parties, to all parties", 10),
    ]
    assert [size for _, size in told[1]] == [16, 14, 10]


def test_a_model_of_people_matched_either_way_is_the_same():
    rng = np.random.default_rng(1)
    rows = {"a": np.arange(0, 50), "b": np.arange(59, 9, -1)}
    X, y = rng.uniform(-1, 1, (60, 2)), rng.uniform(-1, 1, 60)
    parties = [
        Party(X[own][:, [k]], y[own] if k else None, name=name, ids=own, secret=SECRET)
        for k, (name, own) in enumerate(rows.items())
    ]
    told = {"epsilon": math.inf, "l1_radius": 2.0, "entry_bound": 1.0, "y_bounds": (-1, 1)}
    psi, hashed = (FederatedLasso(**told, align=align).fit(parties) for align in ("psi", "common"))
    assert psi.coef_.tolist() == hashed.coef_.tolist()
    assert (psi.guarantee_.n_rows, str(psi.guarantee_)) == (40, str(hashed.guarantee_))
    with pytest.raises(ValueError, match="between two parties, and the study has 1"):
        FederatedLasso(**told, align="psi").fit(parties[1:])


def test_nothing_of_ids_crosses_the_coordinator_but_how_many_there_are():
    ids = {name: [f"person {one}" for one in own] for name, own in IDS.items()}
    matchers = matchers_of(a_pair(), ids)
    wire = Recorder(matchers)
    match_pair(a_pair(), wire)
    passed = b"".join(content for said in (wire.requests, wire.replies) for one in said for content in one.values())
    for matcher in matchers:
        hidden = [*matcher._tags, *matcher._points[0], as_bytes(matcher._store.kept(matcher._digest, "marks"))]
        assert not any(part.tobytes() in passed for part in hidden)
        assert not any(one.encode() in passed for one in ids[matcher.name])
    again = Recorder(matchers_of(a_pair(), {"a": [f"q{i}" for i in range(14)], "b": [*range(6), *IDS["b"][:10]]}))
    with pytest.raises(RefusedError, match="no id is at both"):
        match_pair(a_pair(), again)
    for one, other in zip(wire.replies[1:4], again.replies[1:4], strict=True):  # the same sizes, whoever they are
        assert {n: len(reply) for n, reply in one.items()} == {n: len(reply) for n, reply in other.items()}


def test_the_order_that_ids_are_sent_in_follows_from_the_partys_own_key():
    """Two parties know the order of all tags; in that order, gaps between common ids would tell who is absent."""
    first, second = (matchers_of(a_pair())[0] for _ in range(2))
    peer = Peer(first, "b")
    points = as_bytes(peer.says(1)).reshape(-1, POINT_BYTES)
    assert [row.tobytes() for row in points] == sorted(row.tobytes() for row in points)
    assert first._points[1].tolist() != second._points[1].tolist() != list(range(14))


def test_a_coordinator_in_the_middle_is_told_nothing():
    matcher = matchers_of(a_pair())[0]
    for secret in (SECRET + b"!", b"what the coordinator chose"):
        assert "has not the secret, or not the key" in Peer(matcher, "b", secret).says(1)
    assert "has not the secret" in Peer(matcher, "a").says(1)  # its own hello, sent back
    assert not matcher._store.disclosures()
    others = [PairMatcher(a_pair(), n, Alignment.of(IDS[n], SECRET + n.encode())) for n in IDS]
    with pytest.raises(RefusedError, match="compare the fingerprints"):
        match_pair(a_pair(), InProcess(others))


def test_a_party_that_sees_marks_first_cannot_claim_them():
    """It sends back the party's own marks of its list as its marks of the party's: everybody would be common."""
    matcher = matchers_of(a_pair(), {"a": IDS["a"]})[0]
    peer, forger = Peer(matcher, "b"), matchers_of(a_pair(), {"b": IDS["a"]})[0]
    points = peer.says(1)
    assert peer.says(2, points)  # the party's own list, reflected
    commitment = peer.says(2, points)
    marks = peer.says(3, commitment)  # and its commitment
    assert len(marks) == TAG_BYTES * 14
    assert "other marks than it was committed to" in peer.says(4, marks)
    assert "committed itself to other marks" in peer.says(3, committed("b", marks))
    assert matcher._store.bound(matcher._digest).common is None
    assert forger._points[0].tobytes() != points


def test_a_party_that_forgot_its_list_cannot_ask_with_another(tmp_path):
    """The first list is the one that is marked, also by a process that comes later."""
    match_pair(a_pair(), InProcess(matchers_of(a_pair(), folder=tmp_path)))
    assert match_pair(a_pair(), InProcess(matchers_of(a_pair(), folder=tmp_path))) == len(COMMON)
    (tmp_path / "b").unlink()
    probing = matchers_of(a_pair(), IDS | {"b": [*IDS["b"], "p1"]}, tmp_path)
    with pytest.raises(RefusedError, match="'b' asked about other people before"):
        match_pair(a_pair(), InProcess(probing))
    with pytest.raises(ValueError, match="aligned with other ids than now"):
        matchers_of(a_pair(), IDS | {"a": [*IDS["a"], "p19"]}, tmp_path)
    assert len(DisclosureStore(tmp_path / "a").disclosures()) == 3


def test_who_has_nobody_in_common_is_told_that():
    matchers = matchers_of(a_pair(), {"a": ["p1", "p2"], "b": ["p3"]})
    with pytest.raises(RefusedError, match="no id is at both parties"):
        match_pair(a_pair(), InProcess(matchers))
    assert [entry.size for entry in matchers[0]._store.disclosures()] == [2, 1, 0]
    with pytest.raises(RefusedError, match="have not agreed"):
        _ = matchers[0].common


def test_the_other_rounds_are_refused():
    pair, hashed = (matchers_of(a_pair(), kind=kind) for kind in (PairMatcher, Matcher))
    with pytest.raises(RefusedError, match="has the rounds hello, blinded"):
        match(a_pair(), InProcess(pair))  # tags are not sent to a coordinator that asks for them
    with pytest.raises(RefusedError, match="has the rounds tags, common"):
        match_pair(a_pair(), InProcess(hashed))
    with pytest.raises(ValueError, match="and the study has 3"):
        PairMatcher(a_proposal(), "a", Alignment.of(IDS["a"], SECRET))
    with pytest.raises(ValueError, match="and the study has 3"):
        match_pair(a_proposal(), InProcess([]))


def test_boxes_of_another_round_are_refused():
    peer = Peer(matchers_of(a_pair())[0], "b")
    points = peer.says(1)
    assert "of another round" in peer.says(2, points, step=0)
    assert "of another round" in peer.says(3, bytes(32), step=1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda points: points[:0], "no blinded ids"),
        (lambda points: points[:-1], "no blinded ids"),
        (lambda points: points[:POINT_BYTES] * 2, "not sorted, or some appear twice"),
        (lambda points: points[POINT_BYTES:] + points[:POINT_BYTES], "not sorted"),
        (lambda points: bytes(POINT_BYTES) + points, "no blinded ids"),
    ],
)
def test_lists_that_are_none_are_refused(change, message):
    matcher, other = matchers_of(a_pair())
    peer = Peer(matcher, "b")
    assert message in peer.says(2, change(other._points[0].tobytes()))
    assert "was not heard yet" in peer.says(3, bytes(32))
    assert not matcher._store.disclosures()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda marks: marks[:-TAG_BYTES], "another number of marks"),
        (lambda marks: marks + bytes(TAG_BYTES), "another number of marks"),
        (lambda marks: marks[:-TAG_BYTES] + marks[:TAG_BYTES], "the same mark for two ids"),
        (lambda marks: bytes(range(len(marks))), "no id is at both parties"),
    ],
)
def test_marks_that_are_none_are_refused(change, message):
    matcher, other = matchers_of(a_pair())
    peer = Peer(matcher, "b")
    marks = change(other._marks_of(peer.says(1)))
    peer.says(2, other._points[0].tobytes())
    peer.says(3, committed("b", marks))
    assert message in peer.says(4, marks)
    assert matcher._store.bound(matcher._digest).common is None


def test_a_party_takes_part_to_the_end_only_with_the_same_people():
    matcher, other = matchers_of(a_pair())
    peer = Peer(matcher, "b")
    marks = other._marks_of(peer.says(1))
    assert "does not know yet" in peer.says(5, bytes(32))
    peer.says(2, other._points[0].tobytes())
    peer.says(3, committed("b", marks))
    assert len(peer.says(4, marks)) == 32
    assert "has other people than 'a'" in peer.says(5, bytes(32))
    alone = Alignment.of([one for one in IDS["b"] if one in COMMON], SECRET)
    assert peer.says(5, alone.seal(a_pair().digest, "b")) == len(COMMON)


def test_a_coordinator_that_changes_messages_is_found_out():
    def swapped(name, arrays):  # each is sent its own box back
        return arrays | {"box": kept[name]} if "box" in arrays else arrays

    kept = {}
    for step in STEPS[2:]:
        matchers = matchers_of(a_pair())
        wire = Recorder(matchers)
        match_pair(a_pair(), wire)
        replies = wire.replies[STEPS.index(step) - 1]
        kept.update({name: messages.read(reply).arrays["box"] for name, reply in replies.items()})
        with pytest.raises(RefusedError, match="is not for"):
            match_pair(a_pair(), Cheating(matchers, step, swapped))


@pytest.mark.parametrize("moment", range(36))
def test_death_at_any_step_changes_nothing(moment, tmp_path, monkeypatch):
    """Before or after each write; then everybody begins again from their files."""
    left = [moment]

    def around(step):
        def mortal(*arguments):
            left[0] -= 1
            if left[0] == -1:
                raise Death
            result = step(*arguments)
            left[0] -= 1
            if left[0] == -1:
                raise Death
            return result

        return mortal

    for name in ("bind", "agree", "disclose", "fix"):
        monkeypatch.setattr(DisclosureStore, name, around(getattr(DisclosureStore, name)))
    with pytest.raises(Death):
        match_pair(a_pair(), InProcess(matchers_of(a_pair(), folder=tmp_path)))
    matchers = matchers_of(a_pair(), folder=tmp_path)
    assert match_pair(a_pair(), InProcess(matchers)) == len(COMMON)
    assert people(matchers[0], IDS) == people(matchers[1], IDS)
    assert len(DisclosureStore(tmp_path / "b").disclosures()) == 3


class Mortal(InProcess):
    """One party's process dies and another comes, before each round, and the coordinator goes on asking."""

    def __init__(self, folder):
        super().__init__(matchers_of(a_pair(), folder=folder))
        self.folder = folder

    def exchange(self, requests):
        self._nodes["b"].close()
        self._nodes["b"] = matchers_of(a_pair(), {"b": IDS["b"]}, self.folder)[0]
        return super().exchange(requests)


def test_a_party_that_comes_back_goes_on_where_it_was(tmp_path):
    wire = Mortal(tmp_path)
    assert match_pair(a_pair(), wire) == len(COMMON)
    assert people(wire._nodes["a"], IDS) == people(wire._nodes["b"], IDS)


def test_mutated_requests_are_refused_or_change_nothing():
    """A thousand of each kind, against a party that has agreed on its people."""
    rng, matchers = np.random.default_rng(4), matchers_of(a_pair())
    wire = Recorder(matchers)
    match_pair(a_pair(), wire)
    before, kept = people(matchers[0], IDS), matchers[0]._store.disclosures()
    for requests in wire.requests:
        for _ in range(1_000):
            answer = messages.read(matchers[0].answer(mutated(rng, requests["a"])))
            assert isinstance(answer, Refusal | Reply)  # the same question in other words
    assert people(matchers[0], IDS) == before
    assert matchers[0]._store.disclosures() == kept


@pytest.mark.slow
@pytest.mark.parametrize("at", range(len(STEPS)))
def test_mutated_replies_are_refused_or_found_out(at):
    """A thousand of each kind: what parties agree on in the end is what both have, or nothing."""
    rng, refused, matchers = np.random.default_rng(5), 0, matchers_of(a_pair())
    for _ in range(1_000):
        try:
            count = match_pair(a_pair(), Garbled(matchers, at, rng))
        except RefusedError:
            refused += 1
        else:
            assert count == len(COMMON)
    assert refused > 900
    assert match_pair(a_pair(), InProcess(matchers)) == len(COMMON)  # nothing of all that was kept
    assert people(matchers[0], IDS) == people(matchers[1], IDS)
