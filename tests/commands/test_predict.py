import io
import pickle
import subprocess
import sys
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression as PlainLinearRegression

from tacit import PrivateScaler, Ridge, load, save

from .support import CLASSES, declared, people, tacit

quiet = pytest.mark.filterwarnings("ignore:.*(budget is too small|is not below 1/n):UserWarning")


TASK = ("--task", "classification")


class Bomb:
    def __reduce__(self):
        return Path.touch, (Path("ran"),)


@pytest.fixture
def fitted(folder, capsys):  # noqa: ARG001
    """Two classifiers and a regression of the same people; new people to predict."""
    words = ("fit", "people.csv", "--epsilon", "2", *declared())
    assert tacit(capsys, *words, "--target", "income", "--drop", "wage", "--out", "c.json", *TASK)[0] == 0
    svc = ("--model", "linear-svc", "--target", "income", "--drop", "wage", "--out", "s.json")
    assert tacit(capsys, *words, *svc)[0] == 0
    assert (
        tacit(capsys, *words, "--target", "wage", "--drop", "income", "--out", "r.json", "--task", "regression")[0] == 0
    )
    new = people(50, seed=1)
    new.drop(columns=["income", "wage"]).to_csv("new.csv", index=False)
    return new


@pytest.mark.parametrize("model", ["c.json", "s.json"])
def test_one_line_for_each_row(fitted, capsys, model):
    code, out, err = tacit(capsys, "predict", model, "new.csv")
    assert (code, err) == (0, "")
    frame = pd.read_csv(io.StringIO(out))
    assert list(frame) == ["prediction"]
    assert frame["prediction"].tolist() == load(model).predict(fitted).tolist()
    assert set(frame["prediction"]) == set(CLASSES)


def test_probabilities(fitted, capsys):
    _, out, _ = tacit(capsys, "predict", "c.json", "new.csv", "--proba")
    frame = pd.read_csv(io.StringIO(out))
    assert list(frame) == ["probability <=50K", "probability >50K"]
    np.testing.assert_allclose(frame.sum(axis=1), 1.0)
    np.testing.assert_allclose(frame, load("c.json").predict_proba(fitted), rtol=1e-12)


@pytest.mark.parametrize(("name", "read"), [("p.csv", pd.read_csv), ("p.parquet", pd.read_parquet)])
def test_predictions_into_a_file(fitted, capsys, name, read):
    assert tacit(capsys, "predict", "r.json", "new.csv", "--out", name) == (0, "", "")
    expected = load("r.json").predict(fitted)
    np.testing.assert_allclose(read(name)["prediction"], expected, rtol=1e-12)


def test_a_hole_counts_as_the_released_centre_and_as_no_category(fitted, capsys):
    fitted.assign(age=np.nan, kind=None).to_csv("holes.csv", index=False)
    code, out, err = tacit(capsys, "predict", "c.json", "holes.csv", "--proba")
    assert (code, err) == (0, "")
    centre = fitted.assign(age=load("c.json").model.fill_[0], kind="none of them")
    np.testing.assert_allclose(pd.read_csv(io.StringIO(out)), load("c.json").predict_proba(centre), rtol=1e-9)


@pytest.mark.usefixtures("fitted")
def test_a_pickle_is_read_only_where_it_is_trusted(capsys, folder):
    words = ("fit", "people.csv", "--epsilon", "2", *declared(), "--target", "wage", "--drop", "income", "--sklearn")
    assert tacit(capsys, *words, "--out", "r.joblib", "--task", "regression")[0] == 0
    code, out, err = tacit(capsys, "predict", "r.joblib", "new.csv")
    assert (code, out) == (2, "")
    assert "--trust-pickle" in err
    code, out, _ = tacit(capsys, "predict", "r.joblib", "new.csv", "--trust-pickle")
    assert (code, len(out.splitlines())) == (0, 51)
    with (folder / "bomb.joblib").open("wb") as file:
        pickle.dump(Bomb(), file)
    assert tacit(capsys, "predict", "bomb.joblib", "new.csv")[0] == 2
    assert not (folder / "ran").exists()
    tacit(capsys, "predict", "bomb.joblib", "new.csv", "--trust-pickle")
    assert (folder / "ran").exists()  # so it would have, without being asked


@pytest.mark.usefixtures("folder")
def test_a_model_fitted_on_a_frame_in_python_predicts_too(capsys):
    frame = people()[["age", "hours", "grade"]]
    model = Ridge(y_bounds=(0, 4000)).fit(frame, people()["wage"])
    save(model, "python.json")
    code, out, _ = tacit(capsys, "predict", "python.json", "people.csv")
    assert code == 0
    np.testing.assert_allclose(pd.read_csv(io.StringIO(out))["prediction"], model.predict(frame), rtol=1e-12)


@quiet
def test_what_is_wrong_is_one_line(fitted, folder, capsys):
    joblib.dump(PlainLinearRegression(), "other.joblib")
    (folder / "text.joblib").write_text("not a model")
    (folder / "text.json").write_text("{}")
    save(Ridge().fit(np.eye(9), np.arange(9.0)), "nameless.json")
    save(PrivateScaler().fit(np.eye(9)), "scaler.json")
    fitted.drop(columns=["age"]).to_csv("less.csv", index=False)
    fitted[:0].to_csv("empty.csv", index=False)
    for words, message in (
        (("none.joblib", "new.csv"), "No such file"),
        (("text.json", "new.csv"), "text.json is not a model that can be loaded"),
        (("text.joblib", "new.csv"), "is not JSON. If it is a pickle (joblib), reading it runs code"),
        (("text.joblib", "new.csv", "--trust-pickle"), "text.joblib cannot be loaded as a model"),
        (("other.joblib", "new.csv", "--trust-pickle"), "not a model that `tacit fit` wrote"),
        (("nameless.json", "new.csv"), "holds a Ridge that knows no names of columns"),
        (("scaler.json", "new.csv"), "holds a PrivateScaler, which predicts nothing"),
        (("r.json", "new.csv", "--proba"), "--proba needs a classifier with probabilities"),
        (("s.json", "new.csv", "--proba"), "--proba needs a classifier with probabilities"),
        (("c.json", "less.csv"), "lacks columns of the model: 'age'"),
        (("c.json", "empty.csv"), "the table has no rows"),
        (("c.json", "new.csv", "--out", "none/p.csv"), "none"),
    ):
        code, out, err = tacit(capsys, "predict", *words)
        assert (code, out) == (2, "")
        assert err.startswith("tacit predict: error: ")
        assert message in err
        assert err.count("\n") == 1


@pytest.mark.usefixtures("fitted")
def test_a_reader_that_goes_away_is_no_error(folder):
    people(20_000, seed=2).to_csv("many.csv", index=False)
    command = [sys.executable, "-m", "tacit.cli", "predict", "c.json", "many.csv"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"prediction\n"
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 1


@quiet
@pytest.mark.parametrize(("name", "words"), [("prediction", ()), ("probability >50K", ("--proba",))])
def test_a_column_that_predictions_would_hide_is_not_carried_along(fitted, capsys, name, words):
    fitted.assign(**{name: 1}).to_csv("new.csv", index=False)
    code, out, err = tacit(capsys, "predict", "c.json", "new.csv", "--keep", name, *words)
    assert (code, out) == (2, "")
    assert f"--keep {name}: a column of predictions has this name" in err
