"""More than two classes: what the model is without noise, what one person can change, and who refuses what."""

import math
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression

from tacit.federated import (
    Coordinator,
    FeatureSharing,
    FederatedLogisticRegression,
    Marginals,
    Member,
    Node,
    Party,
    RefusedError,
    Study,
)
from tacit.federated.protocols import protocol_for
from tacit.federated.protocols.base import Holding
from tacit.federated.protocols.marginals import party as marginals_party
from tacit.federated.protocols.marginals.masked import party
from tacit.federated.protocols.marginals.parts import label_mean
from tacit.federated.protocols.marginals.party import Target
from tacit.federated.protocols.marginals.rules import PRODUCTS, SUMS
from tacit.federated.sent import sent_messages
from tacit.federated.transports.in_process import InProcess
from tacit.privacy.mechanisms import Sensitivity
from tests.federated.protocols.masked_run import HOLDER, ROWS, SIZES, masked_study, run, some_data
from tests.federated.protocols.test_masked_audits import moved

NAMES = np.array(["lo", "mid", "top"])
THREE = {"loss": "logistic", "classes": (0, 1, 2), "y_bounds": None}
HELD = {"labels": "held", "protocol": Marginals(products="masked")}


def normal_classes(n=6_000, seed=0):
    """Three classes of normal columns with one covariance, at three parties."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    means = rng.standard_normal((3, 9))
    X = means[y] + rng.standard_normal((n, 9)) @ (np.eye(9) + 0.3 * rng.standard_normal((9, 9)))
    return X, y


def fitted(X, y, epsilon=math.inf, *, held=False, radius=1e3, **told):
    model = FederatedLogisticRegression(
        epsilon, 1e-6, l1_radius=radius, classes=list(NAMES), **(HELD if held else {}), **told
    )
    parts = np.split(X, [3, 5], axis=1)
    return model.fit([Party(part, NAMES[y] if k == 1 or not held else None) for k, part in enumerate(parts)])


# The model.


@pytest.mark.parametrize("held", [False, True], ids=["local", "masked"])
def test_without_noise_it_is_discriminant_analysis_of_one_table(held):
    X, y = normal_classes()
    model = fitted(X, y, held=held)
    peer = LinearDiscriminantAnalysis(solver="lsqr").fit(X, NAMES[y])
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), atol=1e-4)
    apart = model.coef_ - model.coef_[0], peer.coef_ - peer.coef_[0]  # of classes: what all have in common says nothing
    np.testing.assert_allclose(*apart, atol=1e-3)
    assert model.classes_.tolist() == NAMES.tolist()
    assert np.array_equal(model.predict(X), NAMES[model.decision_function(X).argmax(axis=1)])
    assert model.score(X, NAMES[y]) > 0.8


@pytest.mark.parametrize("held", [False, True], ids=["local", "masked"])
def test_classes_have_a_ball_each_and_a_path_is_free(held):
    X, y = normal_classes(2_000)
    model = fitted(X, y, held=held, radius=0.5)
    assert model.coef_.shape == (3, 9)
    assert model.intercept_.shape == (3,)
    np.testing.assert_allclose(np.abs(model.coef_).sum(axis=1), 0.5)
    coefs, intercepts = model.l1_path([0.2, 0.5, 1e3])
    assert coefs.shape == (3, 3, 9)
    np.testing.assert_array_equal(coefs[1], model.coef_)
    np.testing.assert_array_equal(intercepts[1], model.intercept_)
    np.testing.assert_allclose(coefs[2], fitted(X, y, held=held).coef_, atol=1e-6)
    parts = np.bincount(y) / len(y)
    np.testing.assert_allclose(model.predict_proba(X).mean(axis=0), parts, atol=0.03)  # also where weights are shrunk


@pytest.mark.parametrize("held", [False, True], ids=["local", "masked"])
def test_as_epsilon_grows_it_becomes_the_logistic_model_of_one_table(held):
    X, y = normal_classes(20_000)
    peer = LogisticRegression(C=np.inf, tol=1e-8).fit(X, NAMES[y]).predict_proba(X)
    noisy = {"entry_bound": 9.0, "random_state": 1, "held": held}
    off = [np.abs(fitted(X, y, epsilon, **noisy).predict_proba(X) - peer).mean() for epsilon in (0.05, 1.0, 100.0)]
    assert off[0] > 2.0 * off[1]
    assert off[1] > off[2]
    assert off[2] < 0.02


def test_two_classes_are_told_apart_as_before():
    """One margin, labels of one column, and slopes under masks: nothing that more classes have."""
    X, y = normal_classes(300)
    told = {"l1_radius": 2.0, "classes": ["lo", "mid"], "random_state": 1}
    parts = np.split(X, [3, 5], axis=1)
    model = FederatedLogisticRegression(**told, **HELD).fit(
        [Party(part, NAMES[np.minimum(y, 1)] if k == 1 else None) for k, part in enumerate(parts)]
    )
    assert model.coef_.shape == (1, 9)
    assert model.n_rounds_ == 7
    assert any("slopes" in release.name for release in model.plan_.plan.releases)


def test_more_classes_have_no_slopes():
    """No slopes: nothing is spent on what does not help."""
    study = masked_study(**THREE)
    assert not any("slopes" in release.name for release in protocol_for(study).promise.plan.releases)
    done = run(study, *some_classes())
    assert len(done.asked) == 3
    assert done.model.intercept.shape == (3,)
    assert done.rows(HOLDER).shape == (ROWS, SIZES[HOLDER] + 3)


def some_classes(seed=0):
    X, y = some_data(seed)
    return X, (y > -0.3).astype(float) + (y > 0.3)


# One person.


def test_one_hot_labels_are_no_longer_than_their_bound():
    for parts in ([0.2, 0.3, 0.5], [0.98, 0.01, 0.01], [1 / 3] * 3, [0.1] * 10):
        target = Target.of_classes(np.arange(len(parts), dtype=float), np.array(parts))
        norms = np.linalg.norm(target.values, axis=1)
        assert norms.max() == pytest.approx(target.bound)
        np.testing.assert_allclose(target.values.sum(axis=1), 1.0 - sum(parts), atol=1e-12)


def hostile():
    """A person of the class that is furthest from all parts, as far out as can be."""
    X, y = some_classes()
    for x in X.values():
        x[7] = 1e6
    y[7] = 0.0
    return X, y


@pytest.mark.parametrize("epsilon", [0.05, 1.0])
def test_a_person_who_is_absent_moves_masked_sums_by_no_more_than_is_covered(epsilon):
    found = moved(masked_study(**THREE, epsilon=epsilon), *hostile())
    assert max(found.values()) <= 1.0
    assert min(found.values()) > 0.98


def test_a_person_who_is_another_one_moves_masked_sums_by_no_more_than_is_covered():
    X, y = hostile()
    opposite, other = {name: x.copy() for name, x in X.items()}, y.copy()
    opposite["a"][7] *= -1.0
    opposite["c"][7, 0] *= -1.0
    for label in (0.0, 2.0):
        other[7] = label
        found = moved(masked_study(adjacency="replace-one", **THREE), X, y, (opposite, other))
        assert max(found.values()) <= 1.0
        assert found["a", HOLDER] > (0.98 if label == 0.0 else 0.5)


def one_budget_for_all(numbers, parts):
    """Each class against the rest, in units of its own: K times what is covered."""
    signs = np.where(numbers[:, None] == np.arange(len(parts)), 1.0, -1.0)
    return Target(signs, 1.0)


def test_classes_that_are_each_counted_alone_are_caught_under_masks():
    with patch.object(Target, "of_classes", one_budget_for_all):
        found = moved(masked_study(**THREE), *hostile())
    assert found["a", HOLDER] > 1.3
    assert found[HOLDER] > 1.3


def local_study(**changes):
    members = tuple(Member(name, size, True) for name, size in SIZES.items())
    told = {"members": members, "n_rows": ROWS, "l1_radius": 3.0, "delta": 1e-6, "entry_bound": 1.0}
    return Study(**({"name": "local"} | THREE | told | changes))


def local_products(y, absent=None):
    """What one party's products with the classes are before noise, over what is covered."""
    X, _ = hostile()
    here = np.arange(ROWS) != absent
    rows = X["a"][here] / np.maximum(np.linalg.norm(X["a"][here], axis=1), 2.0)[:, None]
    target = marginals_party.remembered_target(
        local_study(), Holding("a", None, y[here]), {"label mean": np.array([0.2, 0.3, 0.5])}
    )
    sides = np.column_stack([target.values / target.bound, np.full(here.sum(), SUMS)])
    return rows.T @ sides / PRODUCTS.add_remove


def test_classes_that_are_each_counted_alone_are_caught_in_local_products():
    _, y = hostile()
    honest = np.linalg.norm(local_products(y) - local_products(y, 7))
    assert 0.98 < honest <= 1.0
    with patch.object(Target, "of_classes", one_budget_for_all):
        assert np.linalg.norm(local_products(y) - local_products(y, 7)) > 1.3


def test_counts_of_classes_are_one_release():
    """Not one of each class: a person is in one count, and moves two when they are replaced."""
    y = np.array([0.0, 1.0, 1.0, 2.0])

    class Seen:
        def noise(self, _, sensitivity):
            self.sensitivity = sensitivity
            return 0.1

        def release(self, _, mechanism, counts):
            assert mechanism.sensitivity == self.sensitivity == Sensitivity(1.0, math.sqrt(2.0))
            self.counts = counts
            return counts

    seen = [Seen(), Seen(), Seen()]
    for gate, labels in zip(seen, (y, y[1:], np.array([2.0, 1.0, 1.0, 2.0])), strict=True):
        marginals_party.own_target(local_study(), Holding("a", None, labels), (-1.0, 1.0), None, gate)
    assert np.linalg.norm(seen[0].counts - seen[1].counts) == 1.0
    assert np.linalg.norm(seen[0].counts - seen[2].counts) == math.sqrt(2.0)


# What is refused.


@pytest.mark.parametrize(
    "changes",
    [
        {"protocol": FeatureSharing()},
        {"loss": "squared_hinge", "protocol": FeatureSharing()},
        {"fit_intercept": False},
        {"labels": "sketched", "members": (Member("a", 2, True), Member("b", 2))},
    ],
    ids=["feature-sharing", "squared hinge", "no intercept", "sketched labels"],
)
def test_who_does_not_serve_more_classes_says_who_does(changes):
    with pytest.raises(
        ValueError, match=r"served by the loss 'logistic' .* labels='shared', or with products='masked'"
    ):
        local_study(**changes)
    local_study(**(changes | {"classes": (0, 1)}))


@pytest.mark.parametrize("classes", [(0, 1, 1), (0, 1, 1.0), ("a", "b", "a"), ()], ids=str)
def test_classes_that_are_not_different_are_refused(classes):
    with pytest.raises(ValueError, match="two different labels, or more"):
        local_study(classes=classes)


def test_a_study_file_has_as_many_classes_as_there_are(tmp_path):
    study = local_study(classes=("a", "b", "c", 'd"'))
    (tmp_path / "study.toml").write_text(study.to_toml(), encoding="utf8")
    assert Study.from_toml(tmp_path / "study.toml").digest == study.digest
    assert study.outputs == 4
    with pytest.raises(ValueError, match="not one of the study's classes") as error:
        Party(np.ones((ROWS, 3)), ["a", "secret"] * (ROWS // 2), name="a").holding(study)
    assert "secret" not in str(error.value)
    held = Party(np.ones((ROWS, 3)), ["a", 'd"'] * (ROWS // 2), name="a").holding(study)
    assert held.targets[:2].tolist() == [0.0, 3.0]


@pytest.mark.parametrize("parts", [[0.5, 0.5], [0.5, 0.6, -0.1], [0.5, 0.5, 0.5], [1.0, 0.0, 0.0], [0.2, 0.3, np.nan]])
def test_parts_of_classes_that_are_no_parts_are_refused(parts):
    with pytest.raises(RefusedError, match=r"answer(ed)?( with)? 'label mean'"):
        label_mean("a", {"label mean": np.array(parts)}, (-1.0, 1.0), 3)


def test_labels_of_a_block_are_as_many_as_classes():
    protocol = protocol_for(masked_study(**THREE))
    assert [protocol.width(name) for name in SIZES] == [3, 5, 4]
    assert protocol.norm(HOLDER) == math.sqrt(2.0)
    memory = {"row norm": np.array([2.0]), "label mean": np.array([0.2, 0.3, 0.5]), "y bounds": np.array([-1.0, 1.0])}
    X, y = hostile()
    block = party.whole_block(protocol, Holding(HOLDER, X[HOLDER], y), memory).view(np.int64) / protocol.grid.steps
    assert np.linalg.norm(block, axis=1).max() <= math.sqrt(2.0)
    np.testing.assert_allclose(block[:, -3:].sum(axis=1), 0.0, atol=4.0 / protocol.grid.steps)


# Around the protocol.


def test_columns_by_name_go_with_more_classes():
    rng = np.random.default_rng(2)
    age, ward = rng.uniform(20, 90, 900), rng.choice(["north", "south"], 900)
    y = NAMES[np.digitize(age / 35.0 + (ward == "south") + 0.3 * rng.standard_normal(900), [1.5, 2.5])]
    tables = pd.DataFrame({"age": age}), pd.DataFrame({"ward": ward})
    declared = {"age": [0, 100]}, {"ward": {"text": 3}}
    parties = [Party(table, y, columns=columns) for table, columns in zip(tables, declared, strict=True)]
    model = FederatedLogisticRegression(50.0, 1e-4, l1_radius=20.0, classes=list(NAMES), random_state=1).fit(parties)
    assert model.score(list(tables), y) > 0.6
    whole = pd.concat(tables, axis=1)
    known, limits = model.units_["party-1"], model.row_norms_
    free = np.abs(age - known.centre) / known.scale < limits["party-1"]  # the others are clipped
    assert free.mean() > 0.3
    wards = np.column_stack([ward == "north", ward == "south"]) * min(1.0, limits["party-2"])
    by_hand = age[:, None] * model.coef_[:, 0] + wards @ model.coef_[:, 1:3].T + model.intercept_
    np.testing.assert_allclose(model.decision_function(whole)[free], by_hand[free], atol=1e-9)


def test_the_ledger_says_what_was_sent_of_more_classes(tmp_path):
    study, rng = local_study(epsilon=2.0, protocol=Marginals(n_selected=2)), np.random.default_rng(0)
    y = np.arange(ROWS) % 3
    nodes = [Node(study, Party(rng.random((ROWS, n)), y, name=name), tmp_path / name) for name, n in SIZES.items()]
    outcome = Coordinator(study).run(InProcess(nodes))
    for node in nodes:
        node.close()
    sent = [line for line in sent_messages(tmp_path / "b") if line.round == "1"]
    assert "correlations 2x4, label mean 3, moments 3, row norm 2" in sent[0].what
    assert "label mean: 1 gaussian at " in sent[0].noise
    assert outcome.model.coefs["b"].shape == (3, 2)
