"""A protocol of three rounds that releases little, to test what carries any protocol."""

import numpy as np
import pytest

from tacit.federated import Coordinator, FeatureSharing, Marginals, Member, Node, Party, Study, coordinator, node, store
from tacit.federated.protocols import protocol_for
from tacit.federated.protocols.base import Answer, Model, Protocol, Question, RefusedError
from tacit.federated.transports.in_process import InProcess
from tacit.privacy import Plan, Release
from tacit.privacy.mechanisms import GaussianVector, Sensitivity

ROWS = 30
SIZES = {"a": 2, "b": 3, "c": 1}
SECRET = b"sixteen bytes or more"


class Sums(Protocol):
    """Clipped column sums, then one number a party for a public vector, then another number of the first party."""

    name = "toy"

    def plan(self):
        return Plan(
            *(
                Release(f"{name}/{what}", "gaussian", share=1.0, count=count)
                for name in self.study.names
                for what, count in (("sums", 1), ("value", 2))
            )
        )

    def coordinate(self):
        sums = yield {name: Question("sums") for name in self.study.names}
        weights = {name: sums[name]["sums"] / 10.0 for name in self.study.names}
        values = yield {name: Question("value", {"weights": weights[name]}) for name in self.study.names}
        first = self.study.names[0]
        last = yield {first: Question("value", {"weights": weights[first] + values[first]["value"]})}
        facts = {
            "entry_bounds": dict.fromkeys(self.study.names, 1.0),
            "y_bounds": (-1.0, 1.0),
            "features": {name: np.arange(len(weights[name])) for name in self.study.names},
        }
        return Model(weights, float(last[first]["value"][0]), facts)

    def answer(self, holding, question, gate, memory):
        if question.step == "sums" and not question.arrays:
            vector = GaussianVector(Sensitivity.vector(float(np.sqrt(holding.X.shape[1]))))
            sums = gate.release("sums", vector, np.clip(holding.X, -1, 1).sum(axis=0))
            return Answer({"sums": sums}, {"seen": sums})
        if question.step == "value" and set(question.arrays) == {"weights"}:
            scores = np.clip(holding.X @ question.arrays["weights"] + memory["seen"].sum(), -1, 1)
            value = gate.release("value", GaussianVector(Sensitivity.vector(1.0)), [scores.sum()])
            return Answer({"value": value}, {"last": value})
        raise RefusedError("no such question")


def a_study(**changes):
    members = tuple(Member(name, size, True) for name, size in SIZES.items())
    return Study(**({"name": "s", "loss": "squared", "members": members, "n_rows": ROWS, "l1_radius": 1.0} | changes))


def some_parties(seed=0, ids=False):
    rng = np.random.default_rng(seed)
    y = rng.standard_normal(ROWS)
    more = {"ids": np.arange(ROWS), "secret": SECRET} if ids else {}
    return [Party(rng.standard_normal((ROWS, size)), y, name=name, **more) for name, size in SIZES.items()]


class Recorder(InProcess):
    """Keeps every message, by party."""

    def __init__(self, nodes):
        super().__init__(nodes)
        self.requests, self.replies = [], []

    def exchange(self, requests):
        replies = super().exchange(requests)
        self.requests.append(dict(requests))
        self.replies.append(dict(replies))
        return replies


def run(study, parties, folder=None):
    """A whole run, and what was on the wire."""
    nodes = [Node(study, p, folder and folder / p.name) for p in parties]
    wire = Recorder(nodes)
    return Coordinator(study, folder and folder / "coordinator").run(wire), wire, nodes


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch):
    """Losing power is not tested, and waiting for the disk takes most of the time."""
    monkeypatch.setattr(store, "_SYNCHRONOUS", "OFF")


STUDIES = [
    pytest.param(a_study(name="toy", random_state=3), id="toy"),
    pytest.param(a_study(name="real", random_state=3, protocol=Marginals(cross="sketched")), id="marginals"),
    pytest.param(a_study(name="real", random_state=3, protocol=FeatureSharing(n_iter=3)), id="feature-sharing"),
]


def chosen(study):
    """The protocol above, except for studies named "real"."""
    return protocol_for(study) if study.name == "real" else Sums(study)


@pytest.fixture
def toy(monkeypatch):
    """Lets studies run the protocol above."""
    for module in (node, coordinator):
        monkeypatch.setattr(module, "protocol_for", chosen)
