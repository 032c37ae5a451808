"""A party checks its data against the study, answers a round once, and counts what it gave away."""

import sqlite3
from contextlib import closing

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from tacit.federated import Coordinator, Member, Node, Party, RefusedError, messages, store
from tacit.federated.messages import Refusal, Reply, Request
from tacit.federated.protocols.base import Answer
from tacit.federated.transports.in_process import InProcess
from tacit.privacy import PlanViolationError, compose
from tests.federated.conftest import ROWS, SECRET, Sums, a_study, run, some_parties

pytestmark = pytest.mark.usefixtures("toy")

X = np.arange(2.0 * ROWS).reshape(ROWS, 2)
Y = np.arange(float(ROWS))


def ask(node, number, step, **arrays):
    held = node._journal._store.state(node.study.digest).held
    request = Request(node.study.digest, node.name, number, step, arrays, held if number else messages.HOLDS_NOTHING)
    return messages.read(node.answer(messages.write(request)))


@pytest.mark.parametrize(
    ("party", "match"),
    [
        (Party(X[1:], Y[1:], name="a"), "29 rows, and the study agreed on 30"),
        (Party(X[:, :1], Y, name="a"), "1 columns, and the study agreed on 2"),
        (Party(X, name="a"), "holds the labels by the study, and was given none"),
        (Party(X, Y, name="d"), "no party named 'd'"),
        (Party(X, Y), "needs the name"),
        (Party(X, Y.astype(str), name="a"), "real numbers"),
    ],
    ids=["rows", "columns", "labels", "unknown", "unnamed", "text"],
)
def test_data_that_does_not_fit_the_study(party, match):
    with pytest.raises(ValueError, match=match):
        Node(a_study(), party)


def test_labels_where_the_study_has_none():
    members = (Member("a", 2), Member("b", 3, True))
    with pytest.raises(ValueError, match="holds no labels by the study"):
        Node(a_study(members=members, labels="sketched"), Party(X, Y, name="a"))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Party(np.full((ROWS, 2), 123.25) * [1.0, np.nan]),
        lambda: Party(np.full((ROWS, 2), 123.25) * [1.0, np.inf]),
        lambda: Party([["123.25", "oops"]]),
        lambda: Party(X, np.full(ROWS, np.nan)),
        lambda: Party(X, Y[1:]),
        lambda: Party(X, X),
        lambda: Party(X, ids=Y[1:].astype(int), secret=SECRET),
        lambda: Party(X, ids=Y.astype(int)),
    ],
    ids=["nan", "inf", "text", "nan-label", "few-labels", "table-of-labels", "few-ids", "no-secret"],
)
def test_bad_data_is_refused_and_not_quoted(make):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        make()
    assert "123.25" not in str(error.value)
    assert "oops" not in str(error.value)


def test_tables_of_all_kinds():
    study = a_study()
    for table in (X, X.astype(int), X.tolist(), pd.DataFrame(X, columns=["u", "v"]), sparse.csr_matrix(X)):
        holding = Party(table, Y, name="a").holding(study)
        values = holding.X.toarray() if sparse.issparse(holding.X) else holding.X
        np.testing.assert_array_equal(values, X)
        assert holding.X.dtype == np.float64
    assert sparse.issparse(holding.X)
    assert holding.X.format == "csc"


@pytest.mark.parametrize("kind", [np.array, pd.DataFrame, sparse.csc_array, sparse.csc_matrix, sparse.csr_array])
def test_a_party_does_not_see_what_its_tables_become(kind):
    """Its noise is bound to the data that it began with."""
    table, labels = kind(X), pd.Series(Y) if kind is pd.DataFrame else Y.copy()
    node = Node(a_study(), Party(table, labels, name="a"))
    if sparse.issparse(table):
        table.data[:] = -1.0
    elif kind is pd.DataFrame:
        table.loc[:, :] = -1.0
    else:
        table[:] = -1.0
    labels[:] = -1.0
    held = node._holding
    np.testing.assert_array_equal(held.X.toarray() if sparse.issparse(held.X) else held.X, X)
    np.testing.assert_array_equal(held.targets, Y)


def test_what_a_party_holds_is_not_written_to():
    party = Party(X, Y, name="a")
    for values in (party.X, party.y, Party(sparse.csc_array(X)).X.data):
        with pytest.raises(ValueError, match="read-only"):
            values[:] = 0.0


def test_classes_become_signs_and_others_are_refused():
    study = a_study(loss="logistic", classes=("no", "yes"))
    labels = np.where(Y % 3 == 0, "yes", "no")
    np.testing.assert_array_equal(Party(X, labels, name="a").holding(study).targets, np.where(Y % 3 == 0, 1.0, -1.0))
    labels[0] = "??"
    with pytest.raises(ValueError, match="not one of the study's classes") as error:
        Party(X, labels, name="a").holding(study)
    assert "??" not in str(error.value)


@pytest.mark.parametrize("table", [X, sparse.csc_array(X)], ids=["dense", "sparse"])
def test_rows_are_taken_in_the_order_of_their_tags(table):
    ids = np.arange(ROWS)
    turned = np.random.default_rng(0).permutation(ROWS)
    one = Party(table, Y, name="a", ids=ids, secret=SECRET)
    other = Party(table[turned], name="a", ids=ids[turned], secret=SECRET).labelled_by(one)
    study = a_study()
    for name in ("X", "targets"):
        left, right = (getattr(party.holding(study), name) for party in (one, other))
        np.testing.assert_array_equal(*(v.toarray() if sparse.issparse(v) else v for v in (left, right)))
    assert not np.array_equal(one.holding(study).targets, Y)


def test_a_round_is_answered_once_and_the_same_bytes_come_again(tmp_path):
    study = a_study()
    party = some_parties()[0]
    outcome, wire, nodes = run(study, some_parties(), tmp_path)
    ledger = nodes[0].ledger()
    for node in (nodes[0], Node(study, party, tmp_path / "a")):
        for requests, replies in zip(wire.requests, wire.replies, strict=True):
            assert node.answer(requests["a"]) == replies["a"]
        assert node.ledger() == ledger
    assert [(entry.round, entry.release, entry.count) for entry in ledger] == [
        (1, "sums", 1),
        (2, "value", 1),
        (3, "value", 1),
    ]
    assert [entry.multiplier for entry in ledger] == [outcome.plan.multiplier(f"a/{e.release}") for e in ledger]


def test_noise_is_fresh_unless_seeded():
    fresh = [run(a_study(), some_parties())[1].replies for _ in range(2)]
    seeded = [run(a_study(random_state=1), some_parties())[1].replies for _ in range(2)]
    assert all(fresh[0][1][name] != fresh[1][1][name] for name in "abc")
    assert seeded[0] == seeded[1]
    assert run(a_study(random_state=2), some_parties())[1].replies != seeded[0]


def test_rounds_and_parties_have_noise_of_their_own():
    nodes = [Node(a_study(random_state=1), party) for party in some_parties()]
    keys = {node._key(bytes([number] * 32), {}, {}) for node in nodes for number in range(5)}
    assert len(keys) == 15


def test_a_party_plans_its_own_part():
    study = a_study()
    whole = Coordinator(study).plan
    part = whole.part("b/")
    assert [(r.name, r.count) for r in part.plan.releases] == [("sums", 1), ("value", 2)]
    assert part.multiplier("value") == whole.multiplier("b/value")
    assert part.budget == study.budget


def test_there_is_no_more_than_the_plan():
    _, _, nodes = run(a_study(), some_parties())
    weights = np.ones(2)
    refused = ask(nodes[0], 4, "value", weights=weights)
    assert isinstance(refused, Refusal)
    assert "more than the study grants" in refused.reason
    assert sum(entry.count for entry in nodes[0].ledger()) == 3


def test_a_party_can_say_what_it_gave_away():
    study = a_study()
    nodes = [Node(study, party) for party in some_parties()]
    assert nodes[0].spent() is None
    outcome = Coordinator(study).run(InProcess(nodes))
    own = [node.spent() for node in nodes]
    assert own[0].epsilon > own[1].epsilon == own[2].epsilon > 0.2  # the first was asked once more
    assert compose(own, delta=study.delta).epsilon < study.epsilon  # others' second value was never asked for
    assert "party a of federated toy solver, 3 Gaussian releases" in str(own[0])
    assert outcome.guarantee.epsilon == study.epsilon
    limit = Node(a_study(epsilon=np.inf), some_parties()[0], warn=False)
    ask(limit, 0, "hello")
    ask(limit, 1, "sums")
    assert limit.spent().epsilon == np.inf


@pytest.mark.filterwarnings("default:random_state is set:UserWarning")
def test_a_party_is_warned_of_a_study_that_protects_nobody():
    with pytest.warns(UserWarning, match="epsilon is inf in this study: no noise is added, and nobody's data"):
        Node(a_study(epsilon=np.inf), some_parties()[0])
    with pytest.warns(UserWarning, match="random_state is set in this study"):
        Node(a_study(random_state=1), some_parties()[0])
    assert a_study().cautions == ()


def test_a_refusal_fits_into_a_message(monkeypatch):
    def refuse(*_):
        raise RefusedError("ä" * 999)

    monkeypatch.setattr(Sums, "answer", refuse)
    node = Node(a_study(), some_parties()[0])
    ask(node, 0, "hello")
    assert ask(node, 1, "sums").reason == "ä" * 127


def test_a_journal_that_cannot_be_written_is_a_refusal_that_releases_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "_WAIT", 0.01)
    node = Node(a_study(), some_parties()[0], tmp_path / "a")
    ask(node, 0, "hello")
    with closing(sqlite3.connect(tmp_path / "a", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM rounds").fetchone()
        for _ in range(2):
            refused = ask(node, 1, "sums")
            assert isinstance(refused, Refusal)
            assert "journal of party 'a' could not be used just now" in refused.reason
    assert node.ledger() == []
    assert isinstance(ask(node, 1, "sums"), Reply)
    assert node.stopped is None


@pytest.mark.parametrize("number", [5, 2**32 - 1])
def test_a_round_that_no_study_has_is_refused_and_does_not_stop_the_party(number):
    node = Node(a_study(), some_parties()[0])
    ask(node, 0, "hello")
    refused = ask(node, number, "sums")
    assert isinstance(refused, Refusal)
    assert "more rounds than the study grants of party 'a'" in refused.reason
    assert node.stopped is None
    assert isinstance(ask(node, 1, "sums"), Reply)


def test_an_answer_holds_what_its_round_released(monkeypatch):
    monkeypatch.setattr(Sums, "answer", lambda *arguments: Answer({"sums": arguments[1].X.sum(axis=0)}))
    with pytest.raises(PlanViolationError, match="sums"):
        run(a_study(), some_parties())


def test_a_transport_knows_its_parties():
    with pytest.raises(ValueError, match="no such party here: z"):
        InProcess([]).exchange({"z": b""})


def test_the_representation_shows_no_data():
    assert repr(some_parties()[1]) == "Party('b', 30 rows, 3 columns)"
