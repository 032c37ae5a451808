import io
import subprocess
import sys

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression as PlainLinearRegression

from .support import CLASSES, declared, people, tacit


@pytest.fixture
def fitted(folder, capsys):  # noqa: ARG001
    """Two classifiers and a regression of the same people; new people to predict."""
    words = ("fit", "people.csv", "--epsilon", "2", *declared())
    assert tacit(capsys, *words, "--target", "income", "--drop", "wage", "--out", "c.joblib")[0] == 0
    svc = ("--model", "linear-svc", "--target", "income", "--drop", "wage", "--out", "s.joblib")
    assert tacit(capsys, *words, *svc)[0] == 0
    assert tacit(capsys, *words, "--target", "wage", "--drop", "income", "--out", "r.joblib")[0] == 0
    new = people(50, seed=1)
    new.drop(columns=["income", "wage"]).to_csv("new.csv", index=False)
    return new


@pytest.mark.parametrize("model", ["c.joblib", "s.joblib"])
def test_one_line_for_each_row(fitted, capsys, model):
    code, out, err = tacit(capsys, "predict", model, "new.csv")
    assert (code, err) == (0, "")
    frame = pd.read_csv(io.StringIO(out))
    assert list(frame) == ["prediction"]
    assert frame["prediction"].tolist() == joblib.load(model).predict(fitted).tolist()
    assert set(frame["prediction"]) == set(CLASSES)


def test_probabilities(fitted, capsys):
    _, out, _ = tacit(capsys, "predict", "c.joblib", "new.csv", "--proba")
    frame = pd.read_csv(io.StringIO(out))
    assert list(frame) == ["probability <=50K", "probability >50K"]
    np.testing.assert_allclose(frame.sum(axis=1), 1.0)
    np.testing.assert_allclose(frame, joblib.load("c.joblib").predict_proba(fitted), rtol=1e-12)


@pytest.mark.parametrize(("name", "read"), [("p.csv", pd.read_csv), ("p.parquet", pd.read_parquet)])
def test_predictions_into_a_file(fitted, capsys, name, read):
    assert tacit(capsys, "predict", "r.joblib", "new.csv", "--out", name) == (0, "", "")
    expected = joblib.load("r.joblib").predict(fitted)
    np.testing.assert_allclose(read(name)["prediction"], expected, rtol=1e-12)


def test_what_is_wrong_is_one_line(fitted, folder, capsys):
    joblib.dump(PlainLinearRegression(), "other.joblib")
    (folder / "text.joblib").write_text("not a model")
    fitted.drop(columns=["age"]).to_csv("less.csv", index=False)
    fitted.assign(age=np.nan).to_csv("missing.csv", index=False)
    fitted[:0].to_csv("empty.csv", index=False)
    for words, message in (
        (("none.joblib", "new.csv"), "No such file"),
        (("text.joblib", "new.csv"), "text.joblib cannot be loaded as a model"),
        (("other.joblib", "new.csv"), "not a model that `tacit fit` wrote"),
        (("r.joblib", "new.csv", "--proba"), "--proba needs a classifier with probabilities"),
        (("s.joblib", "new.csv", "--proba"), "--proba needs a classifier with probabilities"),
        (("c.joblib", "less.csv"), "lacks columns of the model: 'age'"),
        (("c.joblib", "missing.csv"), "missing values in 'age'"),
        (("c.joblib", "empty.csv"), "the table has no rows"),
        (("c.joblib", "new.csv", "--out", "none/p.csv"), "none"),
    ):
        code, out, err = tacit(capsys, "predict", *words)
        assert (code, out) == (2, "")
        assert err.startswith("tacit predict: error: ")
        assert message in err
        assert err.count("\n") == 1


@pytest.mark.usefixtures("fitted")
def test_a_reader_that_goes_away_is_no_error(folder):
    people(20_000, seed=2).to_csv("many.csv", index=False)
    command = [sys.executable, "-m", "tacit.cli", "predict", "c.joblib", "many.csv"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"prediction\n"
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 1
