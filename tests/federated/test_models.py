"""A model as a file: what comes back is what was fitted."""

import json

import numpy as np
import pytest

from tacit.federated import Coordinator, Member, Node, Party, Study, load_model, save_model
from tacit.federated.transports.in_process import InProcess


def finished(loss="squared", **agreed):
    rng = np.random.default_rng(0)
    blocks = [rng.uniform(-1, 1, size=(400, 3)), rng.uniform(-1, 1, size=(400, 2))]
    y = blocks[0][:, 0] - blocks[1][:, 1]
    if loss != "squared":
        y, agreed = np.where(y > 0, "yes", "no"), {"classes": ("no", "yes"), **agreed}
    members = Member("a", 3, True), Member("b", 2, True)
    study = Study("stay", loss, members, 400, l1_radius=2.0, epsilon=3.0, random_state=1, **agreed)
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
        ("logistic", {}),
        ("squared-hinge", {"protocol": "feature-sharing"}),
    ],
)
def test_what_is_read_is_what_was_written(loss, agreed, tmp_path):
    study, outcome, blocks = finished(loss, **agreed)
    save_model(outcome, study, tmp_path / "model.json")
    model = load_model(tmp_path / "model.json")
    assert model.guarantee_ == outcome.guarantee
    assert model.plan_.multipliers == outcome.plan.multipliers
    assert (model.n_rounds_, model.uplink_bytes_) == (outcome.n_rounds, outcome.uplink_bytes)
    assert (model.epsilon, model.l1_radius, model.protocol) == (3.0, 2.0, study.protocol)
    for name, coef in outcome.solution.coefs.items():
        assert np.array_equal(model.coefs_[name], coef)
    predicted = model.predict(blocks)
    assert len(predicted) == 400
    if loss != "squared":
        assert set(predicted) <= {"no", "yes"}
        assert model.classes_.tolist() == ["no", "yes"]


def test_predictions_are_clipped_as_the_fit_was(tmp_path):
    study, outcome, blocks = finished()
    save_model(outcome, study, tmp_path / "model.json")
    model = load_model(tmp_path / "model.json")
    assert max(model.row_norms_.values()) < np.inf
    far = [1e6 * block for block in blocks]
    reach = sum(np.linalg.norm(model.coefs_[name]) * model.row_norms_[name] for name in "ab")
    assert np.abs(model.predict(far) - model.intercept_).max() <= reach * (1 + 1e-9)


@pytest.mark.parametrize("broken", ["[]", "{}", "nonsense", None])
def test_other_files_are_refused(broken, tmp_path):
    study, outcome, _ = finished()
    path = tmp_path / "model.json"
    save_model(outcome, study, path)
    if broken is None:
        content = json.loads(path.read_text())
        content["coefs"]["a"].append(0.0)
        broken = json.dumps(content)
    path.write_text(broken)
    with pytest.raises(ValueError, match="is not the model of a federated study"):
        load_model(path)
