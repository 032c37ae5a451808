"""Numbers near the end of what floats can hold, from data, from a coordinator or from a party, are dealt with."""

import numpy as np
import pytest

from tacit.federated import Coordinator, FeatureSharing, Marginals, Member, Node, Party, RefusedError, Study, messages
from tacit.federated.messages import Refusal, Request
from tacit.federated.protocols.base import Answer, Holding
from tacit.federated.transports.in_process import InProcess

ROWS = 40
STUDIES = {
    "marginals": {"protocol": Marginals(cross="sketched", n_selected=1)},
    "sketched labels": {"labels": "sketched", "protocol": Marginals(cross="sketched")},
    "columns": {"epsilon": 1e3, "fit_intercept": False},
    "logistic": {"loss": "logistic", "classes": (0, 1), "protocol": Marginals(cross="sketched")},
    "classes": {"loss": "logistic", "classes": (0, 1, 2)},
    "columns of classes": {"loss": "logistic", "classes": (0, 1, 2), "epsilon": 1e3},
    "feature-sharing": {"protocol": FeatureSharing(n_iter=2)},
    "sketched feature-sharing": {"protocol": FeatureSharing(n_iter=2), "labels": "sketched"},
}


def study_of(name):
    told = {"loss": "squared", "n_rows": ROWS, "l1_radius": 1.0, "epsilon": 5.0, "random_state": 0} | STUDIES[name]
    alone = told.get("labels") == "sketched"
    return Study(name, members=(Member("a", 2, not alone), Member("b", 3, True)), **told)


def nodes_of(study, factor=1.0):
    rng = np.random.default_rng(0)
    y = rng.standard_normal(ROWS) * factor if study.loss == "squared" else rng.integers(0, 1 + max(study.classes), ROWS)
    blocks = {member.name: rng.standard_normal((ROWS, member.n_features)) for member in study.members}
    return [
        Node(study, Party(blocks[member.name], y if member.labels else None, name=member.name))
        for member in study.members
    ]


class Wild:
    """A party's protocol that puts a number in place of those of one release, the first time it is made."""

    def __init__(self, protocol, release, number):
        self.name, self._protocol, self._release, self._number = protocol.name, protocol, release, number
        self.beside, self.fresh = protocol.beside, protocol.fresh

    def answer(self, *arguments):
        answer = self._protocol.answer(*arguments)
        if self._release not in answer.releases:
            return answer
        wild = np.copysign(self._number, answer.releases[self._release])
        return Answer(answer.releases | {self._release: wild}, answer.memory)


def released(study):
    """Who releases which floats."""
    nodes = nodes_of(study)
    seen = set()

    class Seeing(InProcess):
        def exchange(self, requests):
            replies = super().exchange(requests)
            for name, reply in replies.items():
                message = messages.read(reply)
                if message.round:
                    seen.update((name, what) for what, values in message.arrays.items() if values.dtype.kind == "f")
            return replies

    Coordinator(study).run(Seeing(nodes))
    return sorted(seen)


def not_refused(study, number):
    """The releases in which a party may put such a number; the model is then one of finite numbers."""
    taken = set()
    for who, what in released(study):
        nodes = nodes_of(study)
        for node in nodes:
            if node.name == who:
                node._protocol = Wild(node._protocol, what, number)
        outcome = refusal = None
        try:
            outcome = Coordinator(study).run(InProcess(nodes))
        except RefusedError as refused:
            refusal = str(refused)
        if outcome is None:
            assert refusal.startswith(f"party '{who}' answered '{what}' with ")
        else:
            taken.add(what)
            assert all(np.all(np.isfinite(coef)) for coef in outcome.model.coefs.values())
    return taken


@pytest.mark.parametrize("number", [1e155, 1.7e308])
@pytest.mark.parametrize("name", STUDIES)
def test_a_party_that_answers_with_huge_numbers_is_named(name, number):
    """Without exceptions of another kind, and without warnings."""
    unused = {"label: middle"} if name == "sketched labels" else set()
    assert not_refused(study_of(name), number) == unused


@pytest.mark.parametrize("name", STUDIES)
def test_a_party_that_answers_with_tiny_numbers_is_named_or_taken(name):
    assert "row norm" not in not_refused(study_of(name), 1e-300)


@pytest.mark.parametrize("name", STUDIES)
@pytest.mark.parametrize("factor", [1e155, 4e307])
def test_labels_of_any_size_are_taken(name, factor):
    study = study_of(name)
    outcome = Coordinator(study).run(InProcess(nodes_of(study, factor)))
    assert np.all(np.isfinite(outcome.model.intercept))
    assert all(np.all(np.isfinite(coef)) for coef in outcome.model.coefs.values())


def test_labels_that_float64_cannot_hold_are_refused():
    study = study_of("marginals")
    y = np.full(ROWS, np.longdouble(10) ** 400)
    if not np.all(np.isfinite(y)):
        pytest.skip("long doubles are no longer than doubles here")
    with pytest.raises(ValueError, match="y must hold numbers that float64 can carry"):
        Party(np.ones((ROWS, 2)), y, name="a").holding(study)


@pytest.mark.parametrize("number", [1e100, 1e155, 1.7e308, -1.7e308])
def test_sketched_labels_too_large_to_work_with_are_refused(number):
    """By a party that holds none, before it releases anything."""
    study = study_of("sketched labels")
    node = nodes_of(study)[0]
    size = node._protocol.label_sketch.size
    held = messages.HOLDS_NOTHING
    for number_of_round, (step, arrays) in enumerate(
        [("hello", {}), ("bounds", {}), ("marginals", {"labels": np.full(size, number)})]
    ):
        reply = node.answer(messages.write(Request(study.digest, "a", number_of_round, step, arrays, held)))
        held = messages.held_after(held, reply)
    refused = messages.read(reply)
    assert isinstance(refused, Refusal)
    assert "too large" in refused.reason
    assert node.ledger() == []


@pytest.mark.parametrize("what", ["entry_bound", "l1_radius", "y_bounds"])
@pytest.mark.parametrize("number", [1e21, 1e-21, 1e300])
def test_a_study_declares_numbers_that_products_can_carry(what, number):
    told = {"n_rows": 9, "l1_radius": 1.0, what: (0.0, number) if what == "y_bounds" else number}
    with pytest.raises(ValueError, match=rf"{what} must .*1e\+20"):
        Study("s", "squared", (Member("a", 1, True),), **told)


def test_columns_of_any_size_are_taken():
    X = np.full((ROWS, 2), 1.7e308) * np.where(np.arange(ROWS) % 2, 1.0, -1.0)[:, None]
    study = study_of("marginals")
    holding = Party(X, np.zeros(ROWS), name="a").holding(study)
    assert isinstance(holding, Holding)
