"""The model comes back: what each party gets, that its parts add up, and that nothing else is taken."""

import json
from dataclasses import replace

import numpy as np
import pytest

from tacit.federated import Marginals, Member, Node, Party, fitted_model, messages
from tacit.federated.returned import Part, Returned, farewells
from tests.federated.conftest import ROWS, SIZES, a_study, run, some_parties
from tests.federated.test_matching import mutated

RECEIVES = {"a": "own", "b": "all", "c": "nothing"}


THREE = {"loss": "logistic", "classes": ("lo", "mid", "top")}


def the_study(**changes):
    members = tuple(Member(name, size, True, RECEIVES[name]) for name, size in SIZES.items())
    return a_study(name="real", members=members, random_state=1, protocol=Marginals(cross="zero"), **changes)


def parties_of(study):
    if study.outputs == 1:
        return some_parties()
    labels = np.array(study.classes)[np.arange(ROWS) % 3]
    return [Party(party.X, labels, name=party.name) for party in some_parties()]


@pytest.fixture(scope="module", params=[{}, THREE], ids=["a number", "three classes"])
def done(request):
    study = the_study(**request.param)
    outcome, _, _ = run(study, parties_of(study))
    return study, outcome, farewells(study, outcome.model, b'{"a": "model"}')


def test_each_party_gets_what_the_study_says(done):
    study, _, told = done
    assert set(told) == {"a", "b"}
    for name, party in zip("abc", parties_of(study), strict=True):
        node = Node(study, party)
        assert node.ends_with(told.get(name, b""))
        assert (node.returned.part is not None, node.returned.model) == (
            name != "c",
            {"b": b'{"a": "model"}'}.get(name),
        )
        assert not node.ends_with(b"?")
        assert not node.ends_with(None)
        assert not node.ends_with(told["b" if name != "b" else "a"])  # another party's
        assert (node.returned.part is not None) == (name != "c")


def test_parts_add_up_to_the_model(done):
    study, outcome, _ = done
    everybody = replace(study, members=tuple(replace(member, receives="own") for member in study.members))
    parties = parties_of(study)
    told = farewells(everybody, outcome.model, b"")
    total = outcome.model.intercept
    for party in parties:
        part = Returned.read(told[party.name], everybody, party.name).part
        assert Part.from_json(part.to_json()) == part
        total = total + part.margins(3.0 * party.X)
    model = fitted_model(outcome, study)
    margins = model.predict if study.outputs == 1 else model.decision_function
    np.testing.assert_allclose(total, margins([3.0 * party.X for party in parties]), rtol=1e-12)
    assert len(total) == ROWS


def test_what_the_study_does_not_say_is_not_kept(done):
    study, _, told = done
    message = messages.read(told["a"])
    for arrays in (
        message.arrays | {"model": np.zeros(3, dtype=np.uint8)},
        {},
        {"part": np.zeros(3)},
        {"part": np.frombuffer(b"\xff", dtype=np.uint8)},
        messages.read(told["b"]).arrays,
    ):
        sent = messages.write(messages.Farewell(study.digest, "a", 0, arrays))
        assert Returned.read(sent, study, "a") == Returned()  # the study is over, and nothing was taken
    nothing = messages.write(messages.Farewell(study.digest, "c", 0, {}))
    assert Returned.read(nothing, study, "c") == Returned()
    assert Returned.read(told["a"], the_study(epsilon=2.0), "a") is None
    part = Returned.read(told["a"], study, "a").part
    coef, intercept = (1.0, 2.0), 0.0
    if study.outputs == 1:
        coef, intercept = (coef,) * 3, (0.0,) * 3
    other = np.frombuffer(replace(part, coef=coef, intercept=intercept).to_json().encode(), dtype=np.uint8)
    sent = messages.write(messages.Farewell(study.digest, "a", 0, {"part": other}))
    assert Returned.read(sent, study, "a") == Returned()  # of other classes


GOOD = {
    "study": "s", "party": "a", "coef": [1.0, 0.0], "features": [0], "entry_bound": "inf", "row_norm": 1.0,
    "intercept": 0.0,
}  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        {"coef": []}, {"coef": 1}, {"coef": ["x"]}, {"coef": [float("nan")]}, {"features": [2]}, {"features": [-1]},
        {"features": [0.5]}, {"row_norm": -1}, {"row_norm": None}, {"intercept": "inf"}, {"party": 3}, {"more": 1},
        {"coef": [[1.0, 0.0], [1.0, 2.0]]}, {"coef": [[1.0, 0.0], [1.0]]}, {"coef": [[1.0, 0.0], 1.0]},
        {"coef": [[1.0, 0.0]], "intercept": [0.0]}, {"intercept": [0.0]}, {"coef": [[[1.0]]], "intercept": [0.0]},
        {"coef": [[1.0, 0.0]] * 3, "intercept": [0.0] * 2}, {"coef": [[]] * 3, "intercept": [0.0] * 3},
        {"coef": [[1.0, 0.0]] * 3, "intercept": [0.0] * 3, "features": [2]},
    ],
    ids=str,
)  # fmt: skip
def test_bad_parts_are_refused(change):
    assert Part.from_json(json.dumps(GOOD)).entry_bound == float("inf")
    with pytest.raises(ValueError, match=r"."):
        Part.from_json(json.dumps(GOOD | change))


def test_mutated_farewells_crash_nobody(done):
    study, _, told = done
    rng = np.random.default_rng(6)
    node = Node(study, parties_of(study)[0])
    for _ in range(1_000):
        node.ends_with(mutated(rng, told["a"]))
        part = node.returned.part
        if part is not None:
            found = part.margins(np.ones((2, 2)))
            assert found.shape == ((2,) if study.outputs == 1 else (2, 3))
            assert np.isfinite(found).all()


def test_a_party_without_the_right_columns(done):
    study, _, told = done
    part = Returned.read(told["a"], study, "a").part
    with pytest.raises(ValueError, match="X has 3 columns, and the party's part of the model 2"):
        part.margins(np.ones((1, 3)))
