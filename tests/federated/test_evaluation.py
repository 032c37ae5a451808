"""People who are held out: who they are, what a study says of its models on them, and that it costs no more."""

import math
from collections import Counter
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest

from tacit import load, save
from tacit.federated import (
    Coordinator,
    Evaluation,
    FeatureSharing,
    FederatedLasso,
    FederatedLogisticRegression,
    Marginals,
    Member,
    Node,
    Party,
    Study,
    fitted_model,
    messages,
)
from tacit.federated.cap import price_of
from tacit.federated.evaluation import HeldOut
from tacit.federated.options import agreed_protocol
from tacit.federated.protocols import columns, protocol_for
from tacit.federated.protocols.base import Answer, Holding, Question
from tacit.federated.protocols.evaluated import PREFIX
from tacit.federated.store import BESIDE
from tacit.federated.transports import MissingPartiesError
from tacit.federated.transports.in_process import InProcess
from tacit.privacy import Gate, NoiseSource
from tests.federated.conftest import Recorder

pytestmark = [
    pytest.mark.filterwarnings("ignore:products are masked"),
    pytest.mark.filterwarnings("ignore:epsilon is inf"),
    pytest.mark.filterwarnings("ignore:random_state is set"),
]

SECRET = b"sixteen bytes or more"
SIZES = {"a": 3, "b": 2, "c": 4}
RADII = (0.5, 1.0, 2.0)
WAYS = {
    "local": {"loss": "squared", "y_bounds": (-4.0, 4.0)},
    "masked": {"loss": "squared", "y_bounds": (-4.0, 4.0), "labels": "held", "protocol": Marginals(products="masked")},
    "logistic": {"loss": "logistic", "classes": (-1, 1), "labels": "held", "protocol": Marginals(products="masked")},
}
ROUNDS = {"local": 3, "masked": 6, "logistic": 10}


def a_study(way, rows=60, **changes):
    told = {"name": "m", "n_rows": rows, "l1_radius": RADII, "delta": 1e-6, "evaluation": Evaluation()} | WAYS[way]
    told |= changes
    shared = told.get("labels", "shared") == "shared"
    members = tuple(Member(name, size, shared or name == "b") for name, size in SIZES.items())
    return Study(**{"members": members} | told)


def table(way, rows=60, seed=0):
    rng = np.random.default_rng(seed)
    X = {name: rng.standard_normal((rows, size)) for name, size in SIZES.items()}
    X["c"][:, 0] += 0.5 * X["a"][:, 0]
    y = X["a"][:, 0] - 0.5 * X["b"][:, 1] + 0.7 * X["c"][:, 0] + 0.4 * rng.standard_normal(rows)
    return X, np.where(y > 0.3, 1, -1) if way == "logistic" else np.clip(y, -4, 4)


def parties(way, rows=60, seed=0):
    X, y = table(way, rows, seed)
    secret = None if way == "local" else SECRET
    return [Party(x, y if way == "local" or name == "b" else None, name=name, secret=secret) for name, x in X.items()]


def run(way, folder=None, **changes):
    study = a_study(way, **changes)
    nodes = [Node(study, party, folder and folder / party.name) for party in parties(way, study.n_rows)]
    wire = Recorder(nodes)
    coordinator = Coordinator(study, folder and folder / "coordinator")
    return study, coordinator.run(wire), wire, nodes, coordinator


def exact(way, model, rows, held):
    """The error of each model on the people held out, as models predict."""
    X, y = table(way, rows)
    low, high = model.facts["y_bounds"]
    given, found = model.facts["moments"], []
    for radius in RADII:
        coefs, intercept = given.at(radius)
        total = np.full(int(held.sum()), intercept)
        for name, coef in coefs.items():
            norm = model.facts["row_norms"][name]
            total += columns.margins(X[name][held], coef, model.facts["features"][name], math.inf, norm)
        truth = y[held]
        squares = np.square(np.clip(truth, low, high) - total)
        found.append(np.mean(np.logaddexp(0.0, -truth * total) if way == "logistic" else squares))
    return np.array(found)


# Who is held out.


def test_who_is_held_out_follows_from_public_numbers_alone():
    flags = Evaluation(share=0.25).held_out(1_000)
    assert flags.sum() == Evaluation(share=0.25).n_held_out(1_000) == 250
    np.testing.assert_array_equal(flags, Evaluation(share=0.25, metric="r2").held_out(1_000))
    other = Evaluation(share=0.25, seed=1).held_out(1_000)
    assert 30 < np.sum(flags & other) < 95  # about a quarter of a quarter: 62.5, with a deviation of 6.4
    more = Evaluation(share=0.5).held_out(1_000)
    assert np.all(more[flags])  # a larger share holds out these and others
    assert abs(np.flatnonzero(flags).mean() - 499.5) < 60  # from everywhere: deviation 16


def test_people_with_ids_are_held_out_wherever_their_rows_are():
    """The place of a row follows from the keyed hash of its id."""
    X, y = table("local", 40)
    order, found = np.random.default_rng(1).permutation(40), []
    for rows in (np.arange(40), order):
        people = np.arange(40)[rows]
        party = Party(X["a"][rows], y[rows], name="a", ids=people, secret=SECRET)
        study = a_study("local", 40, members=(Member("a", 3, True),))
        found.append(set(people[party.order][protocol_for(study).held_out]))
    assert found[0] == found[1]
    assert len(found[0]) == 8


def test_an_evaluation_is_agreed_on():
    studies = [
        a_study("local"),
        a_study("local", evaluation=Evaluation(seed=1)),
        a_study("local", evaluation=Evaluation(share=0.3)),
    ]
    assert len({study.digest for study in studies}) == 3
    without = a_study("local", evaluation=None, l1_radius=1.0)
    assert "evaluation" not in without.to_dict()
    for study in (*studies, without):
        assert Study.from_dict(study.to_dict()) == study


def test_a_study_file_has_a_table_of_it(tmp_path):
    study = a_study("masked", evaluation=Evaluation(share=0.25, metric="mean_squared_error", seed=3))
    (tmp_path / "study.toml").write_text(study.to_toml(), encoding="utf8")
    assert "[study.evaluation]" in study.to_toml()
    assert Study.from_toml(tmp_path / "study.toml") == study
    assert Study.from_toml(tmp_path / "study.toml").digest == study.digest


@pytest.mark.parametrize(
    ("way", "changes", "match"),
    [
        ("local", {"evaluation": None}, "chosen from by an evaluation"),
        ("local", {"loss": "logistic", "classes": (0, 1), "y_bounds": None}, "needs Marginals.products='masked'"),
        ("local", {"protocol": FeatureSharing()}, "moments of protocol 'marginals'"),
        ("local", {"l1_radius": (1.0, 1.0)}, "different ones"),
        ("local", {"l1_radius": ()}, "different ones"),
        ("local", {"l1_radius": (1.0, -1.0)}, "l1_radius must be"),
        ("local", {"evaluation": Evaluation(metric="log_loss")}, "tells r2 or mean_squared_error"),
        ("logistic", {"evaluation": Evaluation(metric="r2")}, "tells log_loss"),
        ("local", {"evaluation": Evaluation(share=1.0)}, "share must"),
        ("local", {"evaluation": Evaluation(seed=-1)}, "seed must"),
        ("local", {"evaluation": {"part": 0.2}}, "has no 'part'"),
        ("logistic", {"classes": (0, 1, 2)}, "of two classes"),
        ("local", {"loss": "squared_hinge", "classes": (0, 1), "y_bounds": None}, "serves the losses"),
    ],
)
def test_what_cannot_be_judged_is_refused_when_the_study_is_made(way, changes, match):
    with pytest.raises(ValueError, match=match):
        a_study(way, **changes)


def test_sketched_labels_are_refused():
    members = (Member("a", 3), Member("b", 2, True))
    with pytest.raises(ValueError, match="labels='shared'"):
        a_study("local", labels="sketched", members=members)


def test_too_few_people_are_refused_before_anything_is_asked():
    with pytest.raises(ValueError, match="leaves one part of the study empty"):
        Node(a_study("local", 2), parties("local", 2)[0])


# What is said.


@pytest.mark.parametrize("way", WAYS)
def test_without_noise_the_errors_are_exact_and_the_least_is_chosen(way):
    rows = 3_000
    metric = None if way == "logistic" else "mean_squared_error"
    study, outcome, *_ = run(way, rows=rows, epsilon=math.inf, evaluation=Evaluation(metric=metric))
    found = outcome.model.facts["evaluation"]
    truth = exact(way, outcome.model, rows, study.evaluation.held_out(rows))
    if way == "logistic":  # as for normal margins; and of the chosen one as far as others' columns are normal
        np.testing.assert_allclose(found.values, truth, atol=0.03)
        assert found.value == pytest.approx(truth[found.chosen], abs=0.03)
    else:
        np.testing.assert_allclose(found.values, truth, rtol=1e-5)
        assert found.value == found.values[found.chosen]
    assert found.noises == (0.0, 0.0, 0.0)
    assert found.chosen == int(np.argmin(found.values))
    assert found.n_rows == 600
    coefs, intercept = outcome.model.facts["moments"].at(RADII[found.chosen])
    assert intercept == outcome.model.intercept
    for name, coef in coefs.items():
        np.testing.assert_array_equal(coef, outcome.model.coefs[name])


def test_r2_is_what_is_left_of_the_variance():
    _, outcome, *_ = run("masked", rows=2_000, epsilon=math.inf)
    _, squares, *_ = run("masked", rows=2_000, epsilon=math.inf, evaluation=Evaluation(metric="mean_squared_error"))
    _, y = table("masked", 2_000)
    spread = np.var(y[Evaluation().held_out(2_000)])
    r2, error = (one.model.facts["evaluation"] for one in (outcome, squares))
    np.testing.assert_allclose(r2.values, 1.0 - np.array(error.values) / spread, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["local", "masked"])
def test_errors_are_off_by_the_noise_that_is_told(way):
    """24 runs: the mean of deviations within 3 of its own, and their size within a factor of 1.6.

    With local products the training's belief takes part, which is a little too good for models that were made by it.
    """
    rows, apart = 3_000, []
    for seed in range(24):
        changes = {"random_state": seed, "epsilon": 20.0, "evaluation": Evaluation(metric="mean_squared_error")}
        study, outcome, *_ = run(way, rows=rows, **changes)
        found = outcome.model.facts["evaluation"]
        truth = exact(way, outcome.model, rows, study.evaluation.held_out(rows))
        apart.append((np.array(found.values) - truth) / np.array(found.noises))
    assert np.all(np.abs(np.mean(apart, axis=0)) < 3.0 / math.sqrt(24) + 0.5 * (way == "local"))
    assert np.all((np.std(apart, axis=0) > (0.3 if way == "local" else 1 / 1.6)) & (np.std(apart, axis=0) < 1.6))


# What crosses the network, and what it costs.


@pytest.mark.parametrize("way", WAYS)
def test_what_leaves_is_planned_and_costs_no_more_than_the_training(way):
    study, outcome, wire, nodes, _ = run(way)
    ledger = {(node.name, entry.round, entry.release): entry for node in nodes for entry in node.ledger()}
    for replies in wire.replies[1:]:
        for name, reply in replies.items():
            message = messages.read(reply)
            assert all((name, message.round, array) in ledger for array in message.arrays)
    made = Counter()
    for (name, _, release), entry in ledger.items():
        if entry.kind != BESIDE:
            made[f"{name}/{release}"] += entry.count
    planned = {release.name: release.count for release in outcome.plan.plan.releases}
    held = {name for name in planned if f"/{PREFIX}" in name}
    assert made == planned if way != "local" else {made[name] for name in held} == {1}
    assert held
    assert outcome.n_rounds == ROUNDS[way]
    training = protocol_for(study)._training.promise
    assert outcome.plan.event == training.event
    assert outcome.guarantee.recompute() <= 1.0
    assert outcome.guarantee.n_rows == study.n_rows
    assert price_of(outcome.plan).mu2 == pytest.approx(price_of(training).mu2, rel=1e-9)
    for node in nodes:
        assert node.spent().recompute() <= 1.0


@pytest.mark.parametrize("part", ["_training", "_part"])
def test_each_part_sees_its_own_people_and_no_others(part):
    protocol, seen = protocol_for(a_study("local")), []

    def answer(_, holding, *__):
        seen.append(holding)
        return Answer({})

    X, y = table("local")
    gate = Gate(protocol.promise.part("a/"), NoiseSource(0))
    step = f"{PREFIX}any" if part == "_part" else "any"
    with patch.object(type(getattr(protocol, part)), "answer", answer):
        protocol.answer(Holding("a", X["a"], y), Question(step), gate, {})
    places = protocol.held_out if part == "_part" else ~protocol.held_out
    np.testing.assert_array_equal(seen[0].X, X["a"][places])
    np.testing.assert_array_equal(seen[0].targets, y[places])


@pytest.mark.parametrize("way", WAYS)
def test_a_death_after_any_exchange_changes_nothing(tmp_path, way):
    """Parties and coordinator begin again from their journals after each exchange; noise is seeded."""
    study = a_study(way, random_state=3)
    expected = run(way, random_state=3)[1]

    class Dies(InProcess):
        def exchange(self, requests):
            self.left -= 1
            if self.left < 0:
                raise ConnectionError("dead")
            return super().exchange(requests)

    for after in range(1, ROUNDS[way] + 1):
        nodes = [Node(study, party, tmp_path / party.name) for party in parties(way)]
        wire = Dies(nodes)
        wire.left = 1
        coordinator = Coordinator(study, tmp_path / "coordinator")
        try:
            outcome = coordinator.run(wire)
        except ConnectionError:
            outcome = None
        finally:
            coordinator.close()
            for node in nodes:
                node.close()
        assert (outcome is None) == (after < ROUNDS[way])
    assert outcome.model.facts["evaluation"] == expected.model.facts["evaluation"]
    assert outcome.model.intercept == expected.model.intercept


def test_masked_rows_of_both_parts_are_wiped_and_the_study_can_be_run_again(tmp_path):
    study, outcome, _, nodes, coordinator = run("logistic", folder=tmp_path, random_state=3)
    coordinator.farewell()
    for node in nodes:
        node.farewell()
    kept = set()
    for exchange in range(1, ROUNDS["logistic"]):
        for reply in coordinator._journal.told(study.digest, exchange).values():
            kept |= set(messages.read(reply).arrays)
    assert "moments" in kept
    assert f"{PREFIX}moments" in kept
    assert not any(name.endswith("rows") for name in kept)
    for node in nodes:
        assert not {"seed", "block", f"{PREFIX}block"} & set(node._journal.memory(study.digest))
    again = Coordinator(study, tmp_path / "coordinator").run(InProcess(nodes))
    assert again.model.facts["evaluation"] == outcome.model.facts["evaluation"]


# Models.


@pytest.mark.parametrize("way", WAYS)
def test_a_model_says_what_was_said_of_it(tmp_path, way):
    study, outcome, *_ = run(way)
    model = fitted_model(outcome, study)
    save(model, tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    assert again.evaluation_ == model.evaluation_ == outcome.model.facts["evaluation"]
    assert again.evaluation == study.evaluation
    assert tuple(again.l1_radius) == RADII
    assert f"{model.evaluation_.metric} " in str(model.evaluation_)


def test_files_whose_evaluation_does_not_fit_are_refused(tmp_path):
    study, outcome, *_ = run("local")
    model = fitted_model(outcome, study)
    del model.evaluation_
    with pytest.raises(ValueError, match="evaluation_ must be"):
        save(model, tmp_path / "model.json")
    for changes in ({"chosen": 3}, {"values": (1.0,)}, {"value": "1"}, {"metric": "auc"}, {"radii": [1.0] * 3}):
        with pytest.raises((TypeError, ValueError)):
            HeldOut(**vars(outcome.model.facts["evaluation"]) | changes)


def test_estimators_take_an_evaluation_and_forget_it():
    X, y = table("local", 400)
    told = [Party(X["a"]), Party(X["b"], y)]
    model = FederatedLasso(l1_radius=[0.5, 2.0], y_bounds=(-4, 4), evaluation=Evaluation(share=0.5))
    assert model.fit(told).evaluation_.n_rows == 200
    assert model.evaluation_.l1_radius in (0.5, 2.0)
    assert np.abs(model.coef_).sum() <= model.evaluation_.l1_radius * (1 + 1e-9)
    model.set_params(l1_radius=1.0, evaluation=None).fit(told)
    assert not hasattr(model, "evaluation_")
    with pytest.raises(ValueError, match="needs Marginals"):
        FederatedLogisticRegression(l1_radius=1.0, evaluation=Evaluation()).fit([Party(X["a"], y > 0)])


@pytest.mark.parametrize("way", ["local", "masked"])
def test_columns_by_name(way):
    """Units are found of the people of the training, and those held out are brought to them."""
    rng = np.random.default_rng(0)
    n = 2_000
    age, ward = rng.uniform(20, 90, n), rng.choice(["north", "south"], n)
    lab = rng.normal(140, 4, n)
    y = np.clip(age / 10 + 3 * (ward == "south") + rng.normal(0, 1, n), 0, 30)
    secret = None if way == "local" else SECRET
    told = [
        Party(pd.DataFrame({"age": age}), y if way == "local" else None, columns={"age": [0, 100]}, secret=secret),
        Party(
            pd.DataFrame({"lab": lab, "ward": ward}), y, columns={"lab": "number", "ward": {"text": 4}}, secret=secret
        ),
    ]
    how = {
        "labels": "shared" if way == "local" else "held",
        "protocol": agreed_protocol({"name": "marginals", "products": way}),
    }
    model = FederatedLasso(
        20.0, 1e-6, l1_radius=[1.0, 8.0], y_bounds=(0, 30), evaluation=Evaluation(), random_state=0, **how
    ).fit(told)
    assert model.evaluation_.l1_radius == 8.0
    held = model.evaluation.held_out(n)
    frames = [pd.DataFrame({"age": age}), pd.DataFrame({"lab": lab, "ward": ward})]
    predicted = model.predict(frames)[held]
    truth = 1.0 - np.mean(np.square(y[held] - predicted)) / np.var(y[held])
    assert abs(model.evaluation_.value - truth) < 4.0 * model.evaluation_.noise + 0.02
    assert model.guarantee_.recompute() <= 20.0


def test_a_party_that_leaves_during_the_training_is_not_asked_of_the_others():
    study = a_study("local", rows=200, members=tuple(Member(n, s, True, required=n != "a") for n, s in SIZES.items()))
    nodes = [Node(study, party) for party in parties("local", 200)]

    class Without(InProcess):
        def exchange(self, requests):
            if "a" in requests and any(messages.read(request).round > 0 for request in requests.values()):
                rest = super().exchange({name: request for name, request in requests.items() if name != "a"})
                raise MissingPartiesError(("a",), 1.0, rest)
            return super().exchange(requests)

    outcome = Coordinator(study).run(Without(nodes))
    assert outcome.left == ("a",)
    assert outcome.model.facts["evaluation"].n_rows == 40
