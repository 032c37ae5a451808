"""A coordinator takes answers to its own requests from all parties, and says what is wrong and whose it is."""

import numpy as np
import pytest

from tacit.federated import Coordinator, Marginals, Node, Party, RefusedError, Sketching, messages
from tacit.federated.transports import MissingPartiesError
from tacit.federated.transports.in_process import InProcess
from tacit.privacy import Guarantee
from tests.federated.conftest import ROWS, SECRET, a_study, run, some_parties

pytestmark = pytest.mark.usefixtures("toy")

STUDY = a_study(random_state=1)


class Altered(InProcess):
    """Changes what comes back in one exchange."""

    def __init__(self, nodes, at, change):
        super().__init__(nodes)
        self.at, self.change, self.count = at, change, -1

    def exchange(self, requests):
        self.count += 1
        replies = super().exchange(requests)
        return self.change(replies) if self.count == self.at else replies


def nodes_of(study=STUDY, parties=None):
    return [Node(study, party) for party in parties or some_parties()]


def test_a_run():
    seen = []
    coordinator = Coordinator(STUDY, progress=lambda number, step: seen.append((number, step)))
    outcome = coordinator.run(InProcess(nodes_of()))
    assert outcome.n_rounds == 4
    assert seen == [(0, "hello"), (1, "sums"), (2, "value"), (3, "value")]
    guarantee = outcome.guarantee
    assert isinstance(guarantee, Guarantee)
    assert (guarantee.solver, guarantee.n_rows, guarantee.seeded) == ("federated toy", ROWS, True)
    assert guarantee.event == outcome.plan.event
    assert 0.99 * STUDY.epsilon < guarantee.recompute() <= STUDY.epsilon


def test_a_study_that_is_done_is_not_asked_again(tmp_path):
    outcome, wire, _ = run(STUDY, some_parties(), tmp_path)
    again = Coordinator(STUDY, tmp_path / "coordinator").run(InProcess([]))
    assert again.model.intercept == outcome.model.intercept
    assert (again.n_rounds, again.uplink_bytes) == (outcome.n_rounds, outcome.uplink_bytes)
    assert len(wire.requests) == 4


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda replies: {name: replies[name] for name in "ab"}, "no answer from: c"),
        (lambda replies: replies | {"b": replies["a"]}, "reply of 'b' is not to the request"),
        (lambda replies: replies | {"b": replies["b"][:-3]}, "reply of 'b' cannot be read: the message is cut short"),
        (lambda replies: replies | {"b": with_array(replies["b"], "more")}, "'b' holds what is not in the plan"),
        (lambda replies: replies | {"b": with_version(replies["b"])}, "party 'b' runs another version"),
    ],
    ids=["missing", "swapped", "cut", "unplanned", "version"],
)
def test_what_is_not_an_answer_is_refused(change, match):
    with pytest.raises(RefusedError, match=match):
        Coordinator(STUDY).run(Altered(nodes_of(), 1, change))


def test_a_refusal_cannot_rewrite_the_terminal():
    """Escapes, line breaks and marks of direction; what a party sends is shown on one line of limited length."""
    bad = "\x1b[2J\x1b]0;title\x07fine\r\nroot:\u202ecod\u2066\x9b31m" + "x" * 100

    def refusing(replies):
        message = messages.read(replies["b"])
        refusal = messages.Refusal(message.study, "b", message.round, message.request, bad)
        return replies | {"b": messages.write(refusal)}

    with pytest.raises(RefusedError) as error:
        Coordinator(STUDY).run(Altered(nodes_of(), 1, refusing))
    assert str(error.value).startswith("refused by b: ?[2J?]0;title?fine??root:?cod??31mxxx")
    assert str(error.value).isprintable()


def with_array(reply, name):
    message = messages.read(reply)
    arrays = dict(message.arrays) | {name: np.ones(1)}
    return messages.write(messages.Reply(message.study, message.party, message.round, message.request, arrays))


def with_version(reply):
    m = messages.read(reply)
    return messages.write(messages.Reply(m.study, m.party, m.round, m.request, m.arrays, version="9.9"))


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": 2.0},
        {"delta": 1e-9},
        {"adjacency": "replace-one"},
        {"entry_bound": 3.0},
        {"y_bounds": (0.0, 1.0)},
        {"l1_radius": 2.0},
        {"sketch": Sketching(seed=1)},
        {"protocol": Marginals(cross="zero")},
        {"random_state": None},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_studies_that_disagree_meet_before_any_release(changes):
    other = a_study(**({"random_state": 1} | changes))
    nodes = nodes_of()
    nodes[1] = Node(other, some_parties()[1])
    with pytest.raises(RefusedError, match="refused by b: party 'b' did not agree on this study"):
        Coordinator(STUDY).run(InProcess(nodes))
    assert all(node.ledger() == [] for node in nodes)


def test_ids_that_do_not_match_and_are_then_mended(tmp_path):
    study = a_study()
    parties = some_parties(ids=True)
    wrong = Party(parties[1].X, parties[1].y, name="b", ids=np.arange(1, ROWS + 1), secret=SECRET)

    def attempt(second):
        nodes = [Node(study, party, tmp_path / party.name) for party in (parties[0], second, parties[2])]
        return Coordinator(study, tmp_path / "coordinator").run(InProcess(nodes)), nodes

    with pytest.raises(RefusedError, match=r"ids do not match.*: a, c / b"):
        attempt(wrong)
    with pytest.raises(RefusedError, match="or none; without ids: b"):
        attempt(Party(wrong.X, wrong.y, name="b"))
    outcome, nodes = attempt(parties[1])
    assert outcome.n_rounds == 4
    assert len(nodes[1].ledger()) == 2


def test_who_is_missing_is_named():
    error = MissingPartiesError(["a", "c"], 600)
    assert error.missing == ("a", "c")
    assert "within 600 s from: a, c" in str(error)
