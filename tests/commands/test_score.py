"""`tacit federate score` and `tacit predict` on what a study left behind."""

import shutil

import numpy as np
import pandas as pd
import pytest

from tacit import save
from tacit.federated import Coordinator, Node, Party, Study, fitted_model
from tacit.federated.disclosures import DisclosureStore
from tacit.federated.returned import Returned, farewells
from tacit.federated.transports.in_process import InProcess

from .support import tacit

STUDY = """
[study]
name = "trial"
loss = "squared"
n_rows = 60
l1_radius = 2.0
epsilon = 20.0
delta = 1e-4
entry_bound = 1.0
y_bounds = [-2.0, 2.0]
random_state = 1
members = [{name = "a", n_features = 2}, {name = "b", n_features = 1}]
[network]
address = "127.0.0.1:8443"
"""


@pytest.fixture
def blocks(tmp_path, monkeypatch):
    """A study that is done, in the working folder; the parties' columns, with their ids."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(STUDY)
    study, rng = Study.from_toml("study.toml"), np.random.default_rng(0)
    X = {"a": rng.uniform(-1, 1, (60, 2)).round(3), "b": rng.uniform(-1, 1, (60, 1)).round(3)}
    y = X["a"][:, 0] - X["b"][:, 0]
    outcome = Coordinator(study).run(InProcess([Node(study, Party(X[n], y, name=n), warn=False) for n in X]))
    model = fitted_model(outcome, study)
    save(model, "model.json")
    for name, told in farewells(study, outcome.model, b"").items():
        folder = tmp_path / "state" / "parties" / name
        folder.mkdir(parents=True)
        (folder / "part.json").write_text(Returned.read(told, study, name).part.to_json())
    frames = {
        name: pd.DataFrame(block, columns=[f"{name}{j}" for j in range(block.shape[1])]).assign(who=range(100, 160))
        for name, block in X.items()
    }
    for name, frame in frames.items():
        frame.sample(frac=1, random_state=len(name)).to_csv(f"{name}.csv", index=False)
    pd.DataFrame({"who": [107, 103, 150]}).to_csv("asked.csv", index=False)
    return model, frames


def score(capsys, name, *words, to="a", out="out.csv"):
    told = ["--name", name, "--data", f"{name}.csv", "--id", "who", "--ids", "asked.csv", "--to", to, "--out", out]
    return tacit(capsys, "federate", "score", "study.toml", *told, *words)


def test_shares_add_up_to_predictions(blocks, capsys):
    model, frames = blocks
    code, out, err = score(capsys, "b", out="b.margins.csv")
    assert (code, "3 margins" in out, "not private" in err) == (0, True, True)
    assert score(capsys, "a", "--add", "b.margins.csv")[0] == 0
    scores = pd.read_csv("out.csv")
    assert scores["who"].tolist() == [107, 103, 150]
    rows = [7, 3, 50]
    expected = model.predict([frame.drop(columns="who").to_numpy()[rows] for frame in frames.values()])
    np.testing.assert_allclose(scores["margin"], expected, rtol=1e-9)
    kept = DisclosureStore("state/parties/b/disclosures.sqlite").disclosures()
    assert [(entry.what, entry.size) for entry in kept] == [("margins of people who were asked about, to a", 3)]


@pytest.mark.usefixtures("blocks")
def test_margins_of_other_people_are_another_disclosure(capsys):
    for asked in ([107, 103, 150], [107, 103, 150], [108, 104, 151]):
        pd.DataFrame({"who": asked}).to_csv("asked.csv", index=False)
        assert score(capsys, "b")[0] == 0
    assert len(DisclosureStore("state/parties/b/disclosures.sqlite").disclosures()) == 2


@pytest.mark.usefixtures("blocks")
def test_what_cannot_be_scored(capsys):
    score(capsys, "b", out="b.margins.csv")
    cases = [
        (("a",), {}, "names what the others wrote with --add"),
        (("b", "--add", "b.margins.csv"), {}, "and nobody else does"),
        (("a", "--add", "b.margins.csv", "b.margins.csv"), {}, "one file is needed of each other party: b"),
        (("b",), {"to": "c"}, "no party named 'c'"),
    ]
    for words, more, message in cases:
        code, _, err = score(capsys, *words, **more)
        assert (code, message in err) == (2, True), err
    pd.DataFrame({"who": [107, 999]}).to_csv("asked.csv", index=False)
    code, _, err = score(capsys, "b")
    assert (code, "1 of the people who are asked about are not in b.csv" in err) == (2, True)
    assert "999" not in err
    code, _, err = score(capsys, "a", "--add", "b.margins.csv")
    assert code == 2
    shutil.copy("state/parties/b/part.json", "state/parties/a/part.json")
    code, _, err = score(capsys, "a", "--add", "b.margins.csv")
    assert (code, "part of another party" in err) == (2, True)


def test_predict_reads_a_federated_model(blocks, capsys):
    model, frames = blocks
    table = pd.concat([frames["a"], frames["b"].drop(columns="who")], axis=1)
    table.to_csv("all.csv", index=False)
    code, _, err = tacit(capsys, "predict", "model.json", "all.csv", "--keep", "who", "--out", "predicted.csv")
    assert code == 0, err
    expected = model.predict(table.drop(columns="who").to_numpy())
    np.testing.assert_allclose(pd.read_csv("predicted.csv")["prediction"], expected, rtol=1e-9)
    code, _, err = tacit(capsys, "predict", "model.json", "all.csv")
    assert (code, "must have its 3 columns" in err) == (2, True)
