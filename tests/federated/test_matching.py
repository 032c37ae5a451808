"""Partly the same people: who is common, who may say so, and what is kept of it."""

import math
import sqlite3
from contextlib import closing

import numpy as np
import pytest
from scipy import sparse

from tacit import load, save
from tacit.federated import FederatedLasso, FederatedLogisticRegression, Member, Party, RefusedError, messages
from tacit.federated.alignment import Alignment
from tacit.federated.disclosures import DisclosureStore
from tacit.federated.matching import Matcher, intersection, match, matched
from tacit.federated.proposal import Proposal
from tacit.federated.study import MATCHED, Study
from tacit.federated.transports.in_process import InProcess
from tests.federated.conftest import SECRET, Recorder

IDS = {
    "a": [f"p{i}" for i in range(0, 40)],
    "b": [f"p{i}" for i in range(59, 9, -1)],
    "c": [*range(20, 30), *(f"p{i}" for i in range(5, 45))],
}
COMMON = {f"p{i}" for i in range(10, 40)}


def a_proposal(name="s", **changes):
    members = tuple(Member(party, 1, True) for party in IDS)
    told = {"name": name, "loss": "squared", "members": members, "n_rows": 2, "l1_radius": 1.0, "membership": "agreed"}
    return Proposal(Study(**(told | changes)), own_delta=False)


def matchers_of(proposal, ids=IDS, folder=None, secret=SECRET):
    return [
        Matcher(proposal, name, Alignment.of(own, secret), folder and folder / name)
        for name, own in ids.items()
        if name in proposal.names
    ]


def people(matcher, ids=IDS):
    return [str(ids[matcher.name][row]) for row in matcher.common.order]


def test_all_parties_take_the_same_people_in_the_same_order():
    matchers = matchers_of(a_proposal())
    assert match(a_proposal(), InProcess(matchers)) == len(COMMON)
    orders = [people(matcher) for matcher in matchers]
    assert orders[0] == orders[1] == orders[2]
    assert set(orders[0]) == COMMON
    assert a_proposal().study(len(COMMON)).n_rows == len(COMMON)


def test_the_order_of_rows_is_not_that_of_the_tags_which_the_coordinator_sees():
    alignment = Alignment.of(IDS["a"], SECRET)
    _, places = alignment.study_tags("00" * 32)
    assert sorted(places) == list(range(40))
    assert list(places) != list(range(40))


def test_tags_of_two_studies_have_nothing_in_common():
    alignment = Alignment.of(IDS["a"], SECRET)
    one, other = (alignment.study_tags(a_proposal(name).digest)[0] for name in ("s", "t"))
    assert not intersection([one, other])[0].any()
    again = Alignment.of(IDS["a"][::-1], SECRET).study_tags(a_proposal().digest)[0]
    np.testing.assert_array_equal(one, again)  # whatever the order of rows
    assert not intersection([one, Alignment.of(IDS["a"], SECRET + b"!").study_tags(a_proposal().digest)[0]])[0].any()


def test_the_intersection_is_that_of_sets():
    rng = np.random.default_rng(0)
    tables = [np.unique(rng.integers(0, 3, (200, 16), dtype=np.uint8) * (np.arange(16) > 10), axis=0) for _ in range(4)]
    sets = [{row.tobytes() for row in table} for table in tables]
    common = set.intersection(*sets)
    assert 0 < len(common) < min(map(len, sets))
    for table, mask in zip(tables, intersection(tables), strict=True):
        assert {row.tobytes() for row in table[mask]} == common


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_a_model_of_common_people_is_that_of_their_rows(storage):
    rng = np.random.default_rng(1)
    X, y = rng.uniform(-1, 1, (60, 4)), rng.uniform(-1, 1, 60)
    of = {"a": (np.arange(50), slice(0, 2)), "b": (np.arange(59, 9, -1), slice(2, 4))}
    named = {n: {"name": n, "ids": rows, "secret": SECRET} for n, (rows, _) in of.items()}
    blocks = {n: storage(X[rows][:, columns]) for n, (rows, columns) in of.items()}
    told = {"epsilon": math.inf, "l1_radius": 2.0, "entry_bound": 1.0, "y_bounds": (-1, 1)}
    model = FederatedLasso(**told, align="common").fit(
        [Party(blocks["a"], **named["a"]), Party(blocks["b"], y[of["b"][0]], **named["b"])]
    )
    kept = np.arange(10, 50)
    alone = FederatedLasso(**told).fit([Party(X[kept][:, :2], name="a"), Party(X[kept][:, 2:], y[kept], name="b")])
    np.testing.assert_allclose(model.coef_, alone.coef_, atol=1e-6)
    assert model.guarantee_.n_rows == 40
    assert str(model.guarantee_).endswith(MATCHED)
    assert "disclosed" not in str(alone.guarantee_)


def test_a_model_file_says_what_was_disclosed(tmp_path):
    rng = np.random.default_rng(2)
    y = np.array([0, 1] * 30)
    parties = [
        Party(rng.uniform(-1, 1, (60, 2)), y, ids=range(60), secret=SECRET),
        Party(rng.uniform(-1, 1, (70, 2)), ids=range(5, 75), secret=SECRET),
    ]
    model = FederatedLogisticRegression(l1_radius=1.0, entry_bound=1.0, align="common", directory=tmp_path / "d")
    model.fit(parties)
    assert model.guarantee_.n_rows == 55
    again = model.__class__(**model.get_params()).fit(parties)  # from the journals
    assert again.coef_.tolist() == model.coef_.tolist()
    save(model, tmp_path / "model.json")
    read = load(tmp_path / "model.json")
    assert (read.align, read.guarantee_) == ("common", model.guarantee_)


def test_people_who_cannot_be_matched_are_refused():
    rng = np.random.default_rng(3)
    parties = [Party(rng.uniform(-1, 1, (5, 1)), np.zeros(5), name=name) for name in "ab"]
    with pytest.raises(ValueError, match="without: a, b"):
        FederatedLasso(l1_radius=1.0, align="common").fit(parties)
    with pytest.raises(ValueError, match="align must be one of 'same', 'common'"):
        FederatedLasso(l1_radius=1.0, align="all").fit(parties)
    one, other = (a_proposal(members=(Member("a", 1, True), Member("b", 1, True))) for _ in range(2))
    with pytest.raises(RefusedError, match="no id is at all parties"):
        match(one, InProcess(matchers_of(other, {"a": [1, 2], "b": [3]})))
    differ = [Matcher(one, n, Alignment.of([1, 2], SECRET + n.encode())) for n in one.names]
    with pytest.raises(RefusedError, match="or their secrets differ"):
        match(one, InProcess(differ))
    with pytest.raises(ValueError, match="must be unique"):
        matched(one, [Party([[1.0], [2.0]], [1, 2], name="a", ids=[1, 1], secret=SECRET)] * 2)


def test_a_study_must_agree_to_the_disclosure(tmp_path):
    with pytest.raises(ValueError, match='membership = "agreed"'):
        a_proposal(membership="same")
    told = (
        '[study]\nname = "s"\nloss = "squared"\nl1_radius = 1.0\nmembership = "agreed"\n{}'
        '[[study.members]]\nname = "a"\nn_features = 1\n'
    )
    path = tmp_path / "study.toml"
    for more, match_ in (("", "declare delta"), ("delta = 1e-6\nn_rows = 5\n", "leave n_rows out")):
        path.write_text(told.format(more))
        with pytest.raises(ValueError, match=match_):
            Proposal.from_toml(path)
    path.write_text(told.format("delta = 1e-6\n"))
    proposal = Proposal.from_toml(path)
    assert (proposal.study(100).n_rows, proposal.study(100).delta) == (100, 1e-6)
    assert proposal.digest not in {proposal.study(n).digest for n in (2, 100)}


class Cheating(InProcess):
    """A coordinator that changes the arrays of one round for one party."""

    def __init__(self, matchers, step, change):
        super().__init__(matchers)
        self.step, self.change = step, change

    def exchange(self, requests):
        changed = {}
        for name, request in requests.items():
            asked = messages.read(request)
            if asked.step == self.step:
                arrays = self.change(name, {what: array.copy() for what, array in asked.arrays.items()})
                asked = messages.Request(asked.study, name, asked.round, asked.step, arrays)
            changed[name] = messages.write(asked)
        replies = super().exchange(changed)
        for name, reply in replies.items():  # it can make the digests fit, for itself
            told = messages.read(reply)
            if isinstance(told, messages.Reply):
                asked = messages.digest(requests[name])
                replies[name] = messages.write(messages.Reply(told.study, name, told.round, asked, told.arrays))
        return replies


def with_bit(name, arrays, party="b"):
    """One more person at one party: the first who is not common."""
    if name == party:
        bits = np.unpackbits(arrays["mask"])
        bits[np.flatnonzero(bits[:50] == 0)[0]] = 1
        arrays["mask"] = np.packbits(bits)
    return arrays


def without_bit(name, arrays, party="b"):
    """One person less at one party."""
    if name == party:
        bits = np.unpackbits(arrays["mask"])
        bits[np.flatnonzero(bits)[0]] = 0
        arrays["mask"] = np.packbits(bits)
    return arrays


def reflected(name, arrays):
    """Every party is shown its own seal in the place of the others'."""
    arrays["seals"][:] = arrays["seals"][list(IDS).index(name)]
    return arrays


@pytest.mark.parametrize(
    ("step", "change"),
    [("common", with_bit), ("common", without_bit), ("agree", reflected)],
    ids=["added", "left out", "seals"],
)
def test_parties_find_out_a_coordinator_that_gives_them_different_people(step, change):
    proposal = a_proposal()
    matchers = matchers_of(proposal)
    with pytest.raises(RefusedError, match="as the common ones"):
        match(proposal, Cheating(matchers, step, change))
    for matcher in matchers:
        with pytest.raises(RefusedError, match="have not agreed"):
            _ = matcher.common


def test_people_are_fixed_once(tmp_path):
    proposal = a_proposal()
    assert match(proposal, InProcess(matchers_of(proposal, folder=tmp_path))) == len(COMMON)
    for change in (with_bit, without_bit):
        with pytest.raises(RefusedError, match="were fixed before, and are others"):
            match(proposal, Cheating(matchers_of(proposal, folder=tmp_path), "common", change))
    with pytest.raises(ValueError, match="aligned with other ids than now"):
        matchers_of(proposal, IDS | {"a": [*IDS["a"], "p50"]}, tmp_path)
    shuffled = {name: own[::-1] for name, own in IDS.items()}
    again = matchers_of(proposal, shuffled, tmp_path)
    assert match(proposal, InProcess(again)) == len(COMMON)
    assert people(again[0], shuffled) == people(again[1], shuffled)


def test_every_alignment_is_kept_as_a_disclosure(tmp_path):
    for proposal in (a_proposal("s"), a_proposal("t"), a_proposal("s")):
        match(proposal, InProcess(matchers_of(proposal, folder=tmp_path)))
    kept = DisclosureStore(tmp_path / "a").disclosures()
    assert [(entry.what.split()[0], entry.size) for entry in kept] == [("tags", 40), ("who", len(COMMON))] * 2
    assert [entry.study for entry in kept] == [a_proposal(name).digest for name in "sstt"]


def test_files_of_earlier_versions_are_read(tmp_path):
    match(a_proposal(), InProcess(matchers_of(a_proposal(), folder=tmp_path)))
    with closing(sqlite3.connect(tmp_path / "a")) as file:
        file.execute("DROP TABLE pairs")
    assert match(a_proposal(), InProcess(matchers_of(a_proposal(), folder=tmp_path))) == len(COMMON)
    assert DisclosureStore(tmp_path / "a").fix("ab", "keys", b"own") == b"own"


def test_a_party_that_forgot_its_people_cannot_ask_about_others(tmp_path):
    """The coordinator fixes all tags before it tells anybody who is common."""
    proposal, store = a_proposal(), DisclosureStore()
    store.begin(proposal.digest, b"coordinator")

    def fix(tags):
        store.bind(proposal.digest, b"coordinator", tags)

    for _ in range(2):  # the same again may be asked for
        assert match(proposal, InProcess(matchers_of(proposal, folder=tmp_path)), fix=fix) == len(COMMON)
    (tmp_path / "b").unlink()
    probing = matchers_of(proposal, IDS | {"b": [*IDS["b"], "p7"]}, tmp_path)
    with pytest.raises(RefusedError, match="were fixed before, and are others"):
        match(proposal, InProcess(probing), fix=fix)
    assert DisclosureStore(tmp_path / "b").bound(proposal.digest).common is None  # it was not told


def test_tags_of_other_ids_are_another_disclosure(tmp_path):
    """As many of them, before the common people are fixed: the coordinator has seen both."""
    proposal = a_proposal()
    asked = messages.write(messages.Request(proposal.digest, "a", 0, "tags"))
    for own in (IDS["a"], IDS["a"], ["somebody else", *IDS["a"][1:]]):
        (matcher,) = matchers_of(proposal, {"a": own}, tmp_path)
        assert isinstance(messages.read(matcher.answer(asked)), messages.Reply)
        matcher.close()
    assert [entry.size for entry in DisclosureStore(tmp_path / "a").disclosures()] == [40, 40]


class Death(BaseException):
    """No handler of ours may catch it."""


@pytest.mark.parametrize("moment", range(24))
def test_death_at_any_step_changes_nothing(moment, tmp_path, monkeypatch):
    """Before or after each write; then everybody begins again from their files."""
    left = [moment]

    def around(step):
        def mortal(*arguments):
            for part in (lambda: None, lambda: step(*arguments)):
                part()
                left[0] -= 1
                if left[0] == -1:
                    raise Death

        return mortal

    for name in ("bind", "agree", "disclose"):
        monkeypatch.setattr(DisclosureStore, name, around(getattr(DisclosureStore, name)))
    proposal = a_proposal()
    with pytest.raises(Death):
        match(proposal, InProcess(matchers_of(proposal, folder=tmp_path)))
    matchers = matchers_of(proposal, folder=tmp_path)
    assert match(proposal, InProcess(matchers)) == len(COMMON)
    assert {tuple(people(matcher)) for matcher in matchers} == {tuple(people(matchers[0]))}
    assert len(DisclosureStore(tmp_path / "c").disclosures()) == 2


def mutated(rng, message):
    """One to three changes of bytes: some other, one less, one more."""
    data = bytearray(message)
    for _ in range(rng.integers(1, 4)):
        at = int(rng.integers(len(data)))
        kind = rng.integers(4)
        if kind == 0:
            del data[at]
        elif kind == 1:
            data.insert(at, int(rng.integers(256)))
        else:
            data[at] ^= 1 << int(rng.integers(8))
    return bytes(data)


def test_mutated_requests_are_refused_or_change_nothing():
    """A thousand of each kind, against a party that has agreed on its people."""
    proposal, rng = a_proposal(), np.random.default_rng(4)
    matchers = matchers_of(proposal)
    wire = Recorder(matchers)
    match(proposal, wire)
    before = people(matchers[0])
    for requests, replies in zip(wire.requests, wire.replies, strict=True):
        for _ in range(1_000):
            answer = messages.read(matchers[0].answer(mutated(rng, requests["a"])))
            if isinstance(answer, messages.Reply):  # the same question in other words
                told = messages.read(replies["a"]).arrays
                assert messages.write_arrays(answer.arrays) == messages.write_arrays(told)
            else:
                assert isinstance(answer, messages.Refusal)
    assert people(matchers[0]) == before


class Garbled(InProcess):
    """Changes bytes of one reply."""

    def __init__(self, matchers, at, rng):
        super().__init__(matchers)
        self.at, self.rng, self.count = at, rng, -1

    def exchange(self, requests):
        self.count += 1
        replies = super().exchange(requests)
        return replies | ({"b": mutated(self.rng, replies["b"])} if self.count == self.at else {})


@pytest.mark.slow
@pytest.mark.parametrize("at", range(3))
def test_mutated_replies_are_refused_or_found_out(at):
    """What parties agree on in the end is what all of them have, or nothing."""
    proposal, rng = a_proposal(), np.random.default_rng(5)
    alignments = {name: Alignment.of(own, SECRET) for name, own in IDS.items()}
    refused = 0
    for _ in range(1_000):
        matchers = [Matcher(proposal, name, alignment) for name, alignment in alignments.items()]
        try:
            n_rows = match(proposal, Garbled(matchers, at, rng))
        except RefusedError:
            refused += 1
        else:
            assert len(COMMON) - 3 <= n_rows <= len(COMMON)
            assert {people(matcher)[0] for matcher in matchers} <= COMMON
            assert len({tuple(people(matcher)) for matcher in matchers}) == 1
    assert refused > 300
