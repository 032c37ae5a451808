"""`tacit federate score` and `tacit predict` on what a study left behind."""

import shutil
import sys
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from tacit import save
from tacit.cli import main, parser
from tacit.commands import federate, federate_score
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


def keep_parts(study, outcome):
    """What the parties get of the model, in their state folders."""
    for name, told in farewells(study, outcome.model, b"").items():
        folder = Path("state") / "parties" / name
        folder.mkdir(parents=True)
        (folder / "part.json").write_text(Returned.read(told, study, name).part.to_json())


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
    keep_parts(study, outcome)
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


def test_more_classes_have_a_margin_each(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    asked = 'loss = "logistic"\nclasses = ["lo", "mid", "top"]'
    Path("study.toml").write_text(STUDY.replace('loss = "squared"', asked).replace("y_bounds = [-2.0, 2.0]\n", ""))
    study, rng = Study.from_toml("study.toml"), np.random.default_rng(0)
    X = {"a": rng.uniform(-1, 1, (60, 2)).round(3), "b": rng.uniform(-1, 1, (60, 1)).round(3)}
    y = np.array(study.classes)[np.digitize(X["a"][:, 0] - X["b"][:, 0], [-0.4, 0.4])]
    outcome = Coordinator(study).run(InProcess([Node(study, Party(X[n], y, name=n), warn=False) for n in X]))
    keep_parts(study, outcome)
    for name, block in X.items():
        pd.DataFrame(block).assign(who=range(100, 160)).to_csv(f"{name}.csv", index=False)
    pd.DataFrame({"who": [107, 103, 150]}).to_csv("asked.csv", index=False)
    code, _, err = score(capsys, "b", out="b.margins.csv")
    assert (code, "each person has 3 margins here: as many exact functions" in err) == (0, True)
    assert score(capsys, "a", "--add", "b.margins.csv")[0] == 0
    model = fitted_model(outcome, study)
    expected = model.decision_function([block[[7, 3, 50]] for block in X.values()])
    scores = pd.read_csv("out.csv")
    assert list(scores) == ["who", "margin lo", "margin mid", "margin top"]
    np.testing.assert_allclose(scores.drop(columns="who"), expected, rtol=1e-9)
    save(model, "model.json")
    pd.DataFrame(np.hstack(list(X.values()))).to_csv("all.csv", index=False)
    code, _, _ = tacit(capsys, "predict", "model.json", "all.csv", "--proba", "--out", "chances.csv")
    assert code == 0
    chances = pd.read_csv("chances.csv")
    assert list(chances) == ["probability lo", "probability mid", "probability top"]
    np.testing.assert_allclose(chances, model.predict_proba(np.hstack(list(X.values()))), rtol=1e-9)
    Path("study.toml").write_text(STUDY)
    code, _, err = score(capsys, "b")
    assert (code, "not of a model with the study's classes" in err) == (2, True)


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


BY_NAME = """
[study]
name = "trial"
loss = "squared"
n_rows = 60
l1_radius = 9.0
epsilon = inf
y_bounds = [-9.0, 9.0]
[[study.members]]
name = "a"
labels = true
[study.members.columns]
age = [0, 100]
code = ["1", "2"]
[[study.members]]
name = "b"
labels = true
[study.members.columns]
ward = { text = 3 }
lab = "number"
[network]
address = "127.0.0.1:8443"
"""


@pytest.fixture
def tables_by_name(tmp_path, monkeypatch):
    """A study on tables as they are, done by the commands' own reading; texts, holes and a column nobody named."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(BY_NAME)
    (tmp_path / "secret").write_text("sixteen bytes or more")
    rng = np.random.default_rng(0)
    a = pd.DataFrame({"who": range(60), "age": rng.uniform(20, 90, 60).round(1), "code": rng.integers(1, 3, 60)})
    b = pd.DataFrame({"who": range(60), "lab": rng.normal(140, 9, 60).round(1), "ward": rng.choice(["x", "y"], 60)})
    b["note"] = "unread"
    y = a["age"] / 20 - (b["ward"] == "x")
    b.loc[3, "lab"], b.loc[4, "ward"], b.loc[5, "ward"] = np.nan, None, "rare"
    for name, table in (("a", a), ("b", b)):
        table.assign(y=y).to_csv(f"{name}.csv", index=False)
    study = Study.from_toml("study.toml")
    words = "federate party study.toml --id who --secret secret --label y --data"
    told = [parser().parse_args([*words.split(), f"{name}.csv", "--name", name]) for name in "ab"]
    parties = [federate.read_party(one, study) for one in told]
    outcome = Coordinator(study).run(InProcess([Node(study, party, warn=False) for party in parties]))
    save(fitted_model(outcome, study), "model.json")
    keep_parts(study, outcome)
    pd.DataFrame({"who": [3, 4, 5, 0]}).to_csv("asked.csv", index=False)
    return a, b, fitted_model(outcome, study)


def test_columns_go_by_name_in_every_command(tables_by_name, capsys):
    a, b, model = tables_by_name
    assert model.units_["b"].found == (("rare", "x", "y"),)  # without noise all of them are
    expected = model.predict([a.assign(code=a["code"].astype(str)), b])
    told = 0.05 * a["age"] - (b["ward"] == "x")
    assert np.abs(expected - told)[~b.index.isin([3, 4, 5])].max() < 0.1
    a.merge(b).to_csv("all.csv", index=False)
    code, _, err = tacit(capsys, "predict", "model.json", "all.csv", "--out", "predicted.csv")
    assert code == 0, err
    np.testing.assert_allclose(pd.read_csv("predicted.csv")["prediction"], expected, rtol=1e-9)
    assert score(capsys, "b", out="b.margins.csv")[0] == 0
    assert score(capsys, "a", "--add", "b.margins.csv")[0] == 0
    np.testing.assert_allclose(pd.read_csv("out.csv")["margin"], expected[[3, 4, 5, 0]], rtol=1e-9)


@pytest.mark.usefixtures("tables_by_name")
def test_what_the_study_names_cannot_be_told_otherwise():
    study = Study.from_toml("study.toml")
    words = [
        "federate",
        "party",
        "study.toml",
        "--name",
        "b",
        "--data",
        "b.csv",
        "--id",
        "who",
        "--secret",
        "secret",
        "--label",
        "y",
    ]
    for more, message in [
        (["--fill", "lab=0"], "leave out --drop and --fill"),
        (["--drop", "note"], "leave out --drop and --fill"),
        (["--id", "lab"], "which is the id or the label"),
    ]:
        with pytest.raises(ValueError, match=message):
            federate.read_party(parser().parse_args([*words, *more]), study)
    pd.read_csv("b.csv").assign(lab="secret").to_csv("b.csv", index=False)
    with pytest.raises(ValueError, match="'lab'") as caught:
        federate.read_party(parser().parse_args(words), study)
    assert "secret" not in str(caught.value)


@pytest.mark.usefixtures("tables_by_name")
def test_margins_go_over_the_network(capsys, monkeypatch):
    assert tacit(capsys, "federate", "keys", "--config", "study.toml", "--all")[0] == 0
    scorers, codes = {}, []
    network = ["--network", "--secret", "secret"]
    words = ["federate", "score", "study.toml", "--id", "who", "--ids", "asked.csv", "--to", "a", *network]
    then = {  # while a party waits for its requests, the next command is run
        "b": [*words, "--name", "a", "--data", "a.csv", "--out", "sent.csv"],
        "a": ["federate", "score", "study.toml", "--coordinator", "--to", "a"],
    }

    class Wire(InProcess):
        def farewell(self):
            codes.append("farewell")

    @contextmanager
    def listening(_, public_keys, *__):
        assert sorted(public_keys.values()) == ["a", "b"]
        yield Wire(scorers.values())

    def serve(scorer, *_):
        scorers[scorer.name] = scorer
        codes.append(main(then[scorer.name]))

    for name, parts in (("link", {"listening": listening}), ("node", {"serve": serve})):
        monkeypatch.setitem(sys.modules, f"tacit.federated.transports.flower.{name}", SimpleNamespace(**parts))
    monkeypatch.setattr(federate_score, "require_engine", lambda: None)
    code, out, err = tacit(capsys, *words, "--name", "b", "--data", "b.csv")
    assert (code, codes) == (0, ["farewell", 0, 0]), err
    assert "a was sent 4 margins" in out
    assert "not private" in err
    assert score(capsys, "b", out="b.margins.csv")[0] == 0
    assert score(capsys, "a", "--add", "b.margins.csv")[0] == 0
    sent, added = pd.read_csv("sent.csv"), pd.read_csv("out.csv")
    assert sent["who"].tolist() == added["who"].tolist() == [3, 4, 5, 0]
    np.testing.assert_allclose(sent["margin"], added["margin"], rtol=1e-12)
    for more, message in [
        (["--name", "a", "--data", "a.csv"], "with --out"),
        (["--name", "a", "--data", "a.csv", "--out", "x.csv", "--add", "b.margins.csv"], "leave out --add"),
        (["--name", "a"], "a party needs --data"),
    ]:
        code, _, err = tacit(capsys, *words, *more)
        assert (code, message in err) == (2, True), err
    code, _, err = tacit(capsys, *words[:-2], "--name", "b", "--data", "b.csv")
    assert (code, "needs the parties' --secret" in err) == (2, True), err


@pytest.mark.usefixtures("tables_by_name")
def test_who_left_the_study_sends_and_gets_no_margins(capsys):
    path = Path("state/parties/b/part.json")
    path.write_text(path.read_text().replace('"parties": ["a", "b"]', '"parties": ["b"]'))
    code, _, err = score(capsys, "b")
    assert (code, "'a' left the study" in err) == (2, True), err
    code, _, err = score(capsys, "b", to="b")
    assert code == 0, err  # alone it needs nobody's margins
