import builtins
import gzip
import traceback
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from tacit.commands import tables
from tacit.commands.schema import Schema
from tacit.modelfiles import Column

SECRET = "SECRET"


def stored(path, text):
    path.write_text(text)
    return path


def test_numbers_are_read_and_text_is_kept_as_declared(tmp_path):
    path = stored(tmp_path / "t.csv", "a,b,c,y\n1, x,3,0\n2,NA,1,1\n,z,2,0\n")
    schema = Schema(columns={"b": ("x", "NA"), "c": (1.0, 2.0, 3.0)}, fill={"a": "7"})
    table = tables.read(path, schema, "y")
    assert table.columns == (Column("a", None, 7.0), Column("b", ("x", "NA")), Column("c", (1.0, 2.0, 3.0)))
    np.testing.assert_array_equal(table.frame["a"], [1.0, 2.0, np.nan])
    assert table.frame["b"].tolist() == ["x", "NA", "z"]  # z is unknown, which is the encoder's affair
    assert table.frame["c"].tolist() == [3.0, 1.0, 2.0]
    assert table.y.tolist() == [0, 1, 0]
    assert (table.found, table.learned) == ((), ())  # a constant for what is missing says what a column is
    assert repr(table) == "Frame(private)"


def test_nothing_is_guessed_when_all_is_declared(tmp_path):
    path = stored(tmp_path / "t.csv", "a,b,y\n1,x,0\n2,y,1\n")
    table = tables.read(path, Schema(columns={"a": None}, drop=("b",)), "y")
    assert (table.found, table.learned) == ((), ())
    assert list(table.frame) == ["a"]


def test_categories_are_read_off_by_leave_alone(tmp_path):
    path = stored(tmp_path / "t.csv", "a,b,c,y\n2,x,1,0\n1,,1,1\n2,u,,0\n")
    table = tables.read(path, Schema(fill={"b": "none", "c": "9"}), "y", ["b", "a", "c"])
    assert table.columns == (
        Column("a", (1.0, 2.0)),
        Column("b", ("none", "u", "x"), "none"),
        Column("c", (1.0, 9.0), 9.0),
    )
    assert table.learned == ("a", "b", "c")


FILES = {
    "t.csv": lambda frame, path: frame.to_csv(path, index=False),
    "t.csv.gz": lambda frame, path: frame.to_csv(path, index=False),
    "t.tsv": lambda frame, path: frame.to_csv(path, index=False, sep="\t"),
    "t.parquet": lambda frame, path: frame.to_parquet(path),
}


@pytest.mark.parametrize("name", FILES)
def test_kinds_of_files_read_alike(tmp_path, name):
    frame = pd.DataFrame({"a": [1.5, 2.0], "b": [1, 2], "c": ["x", "y"], "d": [True, False], "y": ["no", "yes"]})
    FILES[name](frame, tmp_path / name)
    table = tables.read(tmp_path / name, Schema(columns={"a": None, "b": ("1", "2", "?"), "c": ("x",), "d": None}), "y")
    assert table.frame["a"].tolist() == [1.5, 2.0]
    assert table.frame["b"].tolist() == ["1", "2"]
    assert table.frame["c"].tolist() == ["x", "y"]
    assert table.frame["d"].tolist() == [1.0, 0.0]
    assert table.y.tolist() == ["no", "yes"]
    assert tables.read_features(tmp_path / name, table.columns).equals(table.frame)


def test_parquet_with_missing_values_categories_and_an_index(tmp_path):
    frame = pd.DataFrame(
        {
            "a": pd.array([1, None, 3], dtype="Int64"),
            "b": pd.Categorical(["x", None, "y"]),
            "c": pd.Categorical([1, 2, 1]),
            "y": [0, 1, 0],
        },
        index=[5, 6, 7],
    )
    frame.to_parquet(tmp_path / "t.parquet")
    schema = Schema(columns={"b": ("x", "y"), "c": None}, fill={"a": "0", "b": "x"})
    table = tables.read(tmp_path / "t.parquet", schema, "y")
    np.testing.assert_array_equal(table.frame["a"], [1.0, np.nan, 3.0])
    assert table.frame["b"].fillna("?").tolist() == ["x", "?", "y"]
    assert table.frame["c"].tolist() == [1.0, 2.0, 1.0]
    table = tables.read(tmp_path / "t.parquet", Schema(columns={"a": None, "b": ("x", "y"), "c": None}), "y")
    assert table.frame.isna().sum().tolist() == [1, 1, 0]  # without a constant they are holes


def test_a_byte_order_mark_and_a_separator(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("\ufeffa;y\n1;2\n3;4\n".encode())
    assert tables.read(path, Schema({"a": None}), "y", separator=";").frame["a"].tolist() == [1.0, 3.0]


REFUSED = {
    "no target": ("a,b\n1,2\n", {}, "has no column 'y'; its first line must hold"),
    "same names": ("a,a,y\n1,2,3\n", {}, "must be distinct and not empty"),
    "no name": ("a,,y\n1,2,3\n", {}, "must be distinct and not empty"),
    "empty": ("", {}, "cannot be read as a csv table"),
    "not a number": (f"a,y\n{SECRET},3\n1,2\n", {"columns": {"a": None}}, "declared as numbers but.*: 'a'"),
    "not a numeric category": (f"a,y\n{SECRET},3\n1,2\n", {"columns": {"a": (1.0,)}}, "declared as numbers but.*: 'a'"),
    "missing target": ("a,y\n1,\n2,3\n", {}, "the target 'y' has missing values"),
    "infinite": ("a,y\ninf,1\n2,3\n", {"columns": {"a": None}}, "infinite values in 'a'"),
    "long line": (f"a,y\n1,2\n3,4,{SECRET}\n", {}, "lines may differ in their number of fields"),
    "long lines": (f"a,y\n1,2,{SECRET}\n3,4,{SECRET}\n", {}, "lines may differ in their number of fields"),
    "short line": ("a,b,y\n1,2,3\n4,5\n", {}, "the target 'y' has missing values"),
    "unknown column": ("a,y\n1,2\n", {"columns": {"z": None}}, "declared under columns, but no feature.*: 'z'"),
    "unknown drop": ("a,y\n1,2\n", {"drop": ("z",)}, "declared under drop, but no feature.*: 'z'"),
    "unknown fill": ("a,y\n1,2\n", {"fill": {"y": "3"}}, "declared under fill, but no feature.*: 'y'"),
    "drop target": ("a,y\n1,2\n", {"drop": ("y",)}, "the target 'y' cannot be dropped"),
    "nothing left": ("a,y\n1,2\n", {"drop": ("a",)}, "no column is left"),
    "fill a word": ("a,y\n1,2\n", {"fill": {"a": "x"}}, "--fill a=x: the column holds numbers"),
    "fill other": ("a,y\nx,2\n", {"columns": {"a": ("x",)}, "fill": {"a": "u"}}, "--fill a=u: this is not one of its"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_is_named_and_not_quoted(tmp_path, case):
    text, schema, message = REFUSED[case]
    path = stored(tmp_path / "t.csv", text)
    with pytest.raises(ValueError, match=message) as refused:
        tables.read(path, Schema(**schema), "y")
    assert SECRET not in "".join(traceback.format_exception(refused.value))


def test_bytes_that_are_no_table_are_refused(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"a,y\n\xff,2\n")
    with pytest.raises(ValueError, match="it is not text in UTF-8"):
        tables.read(tmp_path / "t.csv", Schema(), "y")
    (tmp_path / "t.parquet").write_bytes(b"a,y\n1,2\n")
    with pytest.raises(ValueError, match="cannot be read as a parquet table"):
        tables.read(tmp_path / "t.parquet", Schema(), "y")
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"a,y\n1,2\n" * 100)[:30])
    with pytest.raises(ValueError, match="cannot be read as a csv table"):
        tables.read(tmp_path / "t.csv.gz", Schema(), "y")
    with pytest.raises(FileNotFoundError):
        tables.read(tmp_path / "none.csv", Schema(), "y")
    with pytest.raises(ValueError, match="one character, got 'ab'"):
        tables.read(tmp_path / "t.csv", Schema(), "y", separator="ab")


def test_prediction_reads_the_columns_of_the_model_in_any_order(tmp_path):
    path = stored(tmp_path / "t.csv", "extra,b,a\nfoo,x,1\nbar,,2\n")
    columns = [Column("a"), Column("b", ("x", "y"), "y")]
    frame = tables.read_features(path, columns)
    assert list(frame) == ["a", "b"]
    assert frame["b"].fillna("?").tolist() == ["x", "?"]
    with pytest.raises(ValueError, match="lacks columns of the model: 'c'"):
        tables.read_features(path, [*columns, Column("c")])


@pytest.mark.parametrize(("missing", "name"), [("pandas", "t.csv"), ("pyarrow", "t.parquet")])
def test_what_is_not_installed_is_named(tmp_path, monkeypatch, missing, name):
    FILES[name](pd.DataFrame({"a": [1], "y": [2]}), tmp_path / name)
    original = builtins.__import__

    def absent(module, *args, **kwargs):
        if module.split(".")[0] == missing:
            raise ImportError(module)
        return original(module, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(ImportError, match=rf"{missing}.*pip install 'tacit\[cli\]'"):
        tables.read(tmp_path / name, Schema(), "y")


NULLED = {
    "truth": (pa.bool_(), [True, False]),
    "whole": (pa.int64(), [1, 2]),
    "small": (pa.uint8(), [1, 2]),
    "number": (pa.float64(), [1.5, 2.0]),
    "exact": (pa.decimal128(5, 2), [Decimal("1.50"), Decimal("2.00")]),
    "text": (pa.string(), ["x", "y"]),
    "coded": (pa.dictionary(pa.int32(), pa.string()), ["x", "y"]),
    "coded whole": (pa.dictionary(pa.int32(), pa.int64()), [1, 2]),
    "coded truth": (pa.dictionary(pa.int32(), pa.bool_()), [True, False]),
    "none": (pa.null(), [None, None]),
}


@pytest.mark.parametrize("case", NULLED)
def test_a_null_changes_nothing_about_what_a_column_of_parquet_is(tmp_path, case):
    kind, values = NULLED[case]
    read = []
    for name, cells in (("a", values), ("b", [values[0], None]), ("c", [None, None])):
        column = pa.array(cells, getattr(kind, "value_type", kind))
        column = column.dictionary_encode() if case.startswith("coded") else column
        parquet.write_table(pa.table({"c": column, "y": [0, 1]}), tmp_path / f"{name}.parquet")
        read.append(tables.read(tmp_path / f"{name}.parquet", Schema(), "y").frame["c"])
    assert len({str(column.dtype) for column in read}) == 1
    assert tables.is_number(read[0]) is ("text" not in case and case != "coded")
    assert tables.is_truth(read[0]) is ("truth" in case)
    assert read[1].isna().tolist() == [case == "none", True]


def test_whole_numbers_with_a_null_are_the_same_texts(tmp_path):
    parquet.write_table(pa.table({"c": [1, None], "y": [True, False]}), tmp_path / "t.parquet")
    table = tables.read(tmp_path / "t.parquet", Schema({"c": ("1", "?")}, fill={"c": "?"}), "y")
    assert table.frame["c"].fillna("?").tolist() == ["1", "?"]
    assert table.y.dtype == bool


@pytest.mark.parametrize("cells", [[[1], [2]], [None, None]])
def test_a_type_that_is_neither_text_nor_number_is_refused_whatever_it_holds(tmp_path, cells):
    parquet.write_table(pa.table({"c": pa.array(cells, pa.list_(pa.int64())), "y": [0, 1]}), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="column 'c' is of type list"):
        tables.read(tmp_path / "t.parquet", Schema(), "y")
