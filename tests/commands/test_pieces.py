"""`tacit fit` on large files: in pieces, the same model as from the table in memory, and a bar of public numbers."""

import json
import re

import numpy as np
import pytest

from tacit import load
from tacit.commands import pieces

from .support import declared, people, tacit

FLAGS = "--epsilon", "3", "--seed", "0"


@pytest.fixture
def small_pieces(monkeypatch):
    """Every file is large, and read 90 rows at a time."""
    monkeypatch.setattr(pieces, "LARGE", 0)
    monkeypatch.setattr(pieces, "AT_ONCE", 90)


def written(frame, path):
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path, row_group_size=150)
    return path


def fits(capsys, monkeypatch, data, out, *words):
    """The models of the same command: in memory, and in pieces."""
    models = []
    for large in (2**60, 0):
        monkeypatch.setattr(pieces, "LARGE", large)
        code, said, told = tacit(capsys, "fit", data, *words, *FLAGS, "--out", out)
        assert code == 0, told
        models.append((json.loads(out.read_text()), said, told))
    return models


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("target", ["income", "wage", "grade"])
@pytest.mark.parametrize("told", ["declared", "found"])
@pytest.mark.usefixtures("small_pieces")
def test_the_model_is_that_of_the_table_in_memory(kind, target, told, tmp_path, capsys, monkeypatch):
    frame = people(900)
    frame.loc[::31, "hours"] = np.nan
    frame.loc[::37, "kind"] = None
    data = written(frame, tmp_path / f"people.{kind}")
    others = {"income", "wage"} - {target}
    words = ["--target", target, "--task", "regression" if target == "wage" else "classification"]
    words += ["--drop", ",".join(sorted(others))] if others else []
    if told == "declared" and target != "grade":
        words += declared()
    (one, said, _), (other, again, _) = fits(capsys, monkeypatch, data, tmp_path / "model.json", *words)
    assert one == other
    assert said == again


@pytest.mark.usefixtures("small_pieces")
def test_a_bar_tells_rows_alone(tmp_path, capsys):
    data = written(people(400), tmp_path / "people.parquet")
    words = "--target", "income", "--task", "classification", "--drop", "wage", "--verbose"
    code, _, told = tacit(capsys, "fit", data, *words, *FLAGS, "--out", tmp_path / "model.json")
    assert code == 0
    bar = re.findall(r"\rtacit fit: read ([\d,]+) rows of 400, pass (\d+)", told)
    assert len(bar) == told.count("\r") > 6
    assert [int(rows) for rows, number in bar if number == "1"][-1] == 400
    code, _, told = tacit(capsys, "fit", data, *words[:-1], *FLAGS, "--out", tmp_path / "model.json")
    assert "rows of" not in told  # no terminal, and nobody asked


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.usefixtures("small_pieces")
def test_what_is_bad_in_any_piece_stops_before_anything_is_spent(kind, tmp_path, capsys):
    frame = people(400)
    words = "--target", "wage", "--task", "regression", "--drop", "income", "--numbers", "age,hours,grade"
    for column, value, match in (("wage", np.nan, "missing values"), ("hours", np.inf, "infinite values in 'hours'")):
        bad = frame.copy()
        bad.loc[399, column] = value
        data = written(bad, tmp_path / f"people.{kind}")
        code, said, told = tacit(capsys, "fit", data, *words, *FLAGS, "--categories", "kind=nurse")
        assert code == 2
        assert match in told
        assert "spent" not in told
        assert said == ""


@pytest.mark.usefixtures("small_pieces")
def test_solvers_that_are_sequential_read_the_table_whole(tmp_path, capsys):
    data = written(people(400), tmp_path / "people.csv")
    words = "--target", "wage", "--model", "lasso", "--drop", "income", "--out", tmp_path / "model.json"
    code, _, told = tacit(capsys, "fit", data, *words, *FLAGS)
    assert code == 0, told


@pytest.mark.usefixtures("small_pieces")
def test_labels_that_are_text_in_one_piece_are_text_in_all(tmp_path, capsys):
    frame = people(400)
    frame["mark"] = np.where(np.arange(400) % 2, "1", "2").astype(object)
    frame.loc[390:, "mark"] = "x"
    data = written(frame, tmp_path / "people.csv")
    words = "--target", "mark", "--task", "classification", "--drop", "income,wage", "--out", tmp_path / "model.json"
    code, _, told = tacit(capsys, "fit", data, *words, *FLAGS)
    assert code == 0, told
    assert load(tmp_path / "model.json").classes_.tolist() == ["1", "2", "x"]
