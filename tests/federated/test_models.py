"""A model as a file: what comes back is what was fitted."""

import numpy as np
import pytest

from tacit import load, save
from tacit.federated import (
    Coordinator,
    FeatureSharing,
    Marginals,
    Member,
    Node,
    Party,
    Sketching,
    Study,
    fitted_model,
)
from tacit.federated.transports.in_process import InProcess


def finished(loss="squared", **agreed):
    rng = np.random.default_rng(0)
    blocks = [rng.uniform(-1, 1, size=(400, 3)), rng.uniform(-1, 1, size=(400, 2))]
    y = blocks[0][:, 0] - blocks[1][:, 1]
    if loss != "squared":
        y, agreed = np.where(y > 0, "yes", "no"), {"classes": ("no", "yes"), **agreed}
    members = Member("a", 3, True), Member("b", 2, True)
    study = Study("stay", loss, members, 400, l1_radius=2.0, epsilon=3.0, **{"random_state": 1, **agreed})
    nodes = [Node(study, Party(X, y, name=name)) for X, name in zip(blocks, "ab", strict=True)]
    coordinator = Coordinator(study)
    outcome = coordinator.run(InProcess(nodes))
    for open_one in (coordinator, *nodes):
        open_one.close()
    return study, outcome, blocks


@pytest.mark.parametrize(
    ("loss", "agreed"),
    [
        ("squared", {}),
        ("squared", {"entry_bound": 1.0, "y_bounds": (-2.0, 2.0)}),
        ("logistic", {"protocol": Marginals(cross="zero"), "sketch": Sketching(size=32, seed=3)}),
        ("squared_hinge", {"protocol": FeatureSharing(n_iter=3)}),
    ],
)
def test_what_is_read_is_what_was_written(loss, agreed, tmp_path):
    study, outcome, blocks = finished(loss, **agreed)
    save(fitted_model(outcome, study), tmp_path / "model.json")
    model = load(tmp_path / "model.json")
    assert model.guarantee_ == outcome.guarantee
    assert model.plan_.multipliers == outcome.plan.multipliers
    assert (model.n_rounds_, model.uplink_bytes_) == (outcome.n_rounds, outcome.uplink_bytes)
    assert (model.epsilon, model.l1_radius) == (3.0, 2.0)
    assert (model.protocol, model.sketch) == (study.protocol, study.sketch)
    assert model.set_params(sketch__seed=5).sketch.seed == 5  # the study's own does not change
    assert study.sketch.seed != 5
    for name, coef in outcome.model.coefs.items():
        assert np.array_equal(model.coefs_[name], coef)
    predicted = model.predict(blocks)
    assert len(predicted) == 400
    if loss != "squared":
        assert set(predicted) <= {"no", "yes"}
        assert model.classes_.tolist() == ["no", "yes"]


def test_predictions_are_clipped_as_the_fit_was(tmp_path):
    study, outcome, blocks = finished()
    save(fitted_model(outcome, study), tmp_path / "model.json")
    model = load(tmp_path / "model.json")
    assert max(model.row_norms_.values()) < np.inf
    far = [1e6 * block for block in blocks]
    reach = sum(np.linalg.norm(model.coefs_[name]) * model.row_norms_[name] for name in "ab")
    assert np.abs(model.predict(far) - model.intercept_).max() <= reach * (1 + 1e-9)


def test_classes_keep_the_order_of_the_study(tmp_path):
    study, outcome, blocks = finished("logistic", classes=("yes", "no"))
    model = fitted_model(outcome, study)
    save(model, tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    assert again.classes_.tolist() == ["yes", "no"]
    assert np.array_equal(again.predict(blocks), model.predict(blocks))
    assert np.array_equal(again.predict_proba(blocks), model.predict_proba(blocks))


def test_the_file_holds_no_seed(tmp_path):
    study, outcome, _ = finished(random_state=86028121)
    save(fitted_model(outcome, study), tmp_path / "model.json")
    assert "86028121" not in (tmp_path / "model.json").read_text()
    model = load(tmp_path / "model.json")
    assert model.random_state is None
    assert model.guarantee_.seeded
