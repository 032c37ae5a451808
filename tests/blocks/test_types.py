"""No cell decides what other cells are: the types of columns in CSV files and arrow tables."""

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.linear_model import LogisticRegression as PlainRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from tacit import LogisticRegression, make_private_pipeline
from tacit.blocks.reading import opened
from tacit.metrics import evaluate_blocks

pandas = pytest.importorskip("pandas")
pytestmark = pytest.mark.filterwarnings("ignore:random_state is set", "ignore:the budget is too small")
ROWS = [f"{1 + k % 2},{0.5 * k},{k % 2}" for k in range(200)]


def csv(path, *rows, where="end"):
    lines = [*rows, *ROWS] if where == "start" else [*ROWS, *rows]
    path.write_text("\n".join(["c,b,y", *lines]) + "\n", encoding="utf-8")
    return path


def tables(path, **options):
    with opened(path, "y", **options) as reading:
        return [X for part in reading.parts for X, _ in part.tables()]


def coded():
    declared = OneHotEncoder(categories=[[1, 2]], handle_unknown="ignore")
    return ColumnTransformer([("code", declared, ["c"])], remainder="passthrough")


def test_a_first_row_with_too_many_cells_does_not_shift_the_columns_of_all(tmp_path):
    for row in ("1,2,1,0", "1,2,3,1,0"):
        with pytest.raises(ValueError, match="its first row has more cells than columns"):
            tables(csv(tmp_path / "rows.csv", row, where="start"))


@pytest.mark.parametrize("more", ["", ",1.5,1", "1,,1", "1,1e3,1"])
def test_columns_of_numbers_are_floats_whatever_one_row_holds(more, tmp_path):
    (table,) = tables(csv(tmp_path / "rows.csv", *filter(None, [more])))
    assert [str(kind) for kind in table.dtypes] == ["float64", "float64"]


def test_one_cell_of_text_does_not_change_what_a_step_before_makes_of_others(tmp_path):
    pipeline = make_private_pipeline(coded(), LogisticRegression(), random_state=0)
    pipeline.fit_blocks(csv(tmp_path / "whole.csv"), target="y")
    with pytest.raises(ValueError, match="column 'c' holds something else than numbers"):
        pipeline.fit_blocks(csv(tmp_path / "text.csv", "x,1.5,1"), target="y")


def test_a_hole_does_not_change_which_columns_a_step_before_takes(tmp_path):
    whole = ColumnTransformer([("all", "passthrough", make_column_selector(dtype_include="number"))])
    ints = ColumnTransformer([("none", "passthrough", make_column_selector(dtype_include="int64"))], remainder=whole)
    widths = []
    for more in ([], [",1.5,1"]):
        pipeline = make_private_pipeline(ints, LogisticRegression(), random_state=0)
        pipeline.fit_blocks(csv(tmp_path / f"{len(more)}.csv", *more), target="y")
        widths.append(pipeline[0].transformers_[0][2])
    assert widths == [[], []]


def test_one_cell_of_text_does_not_change_the_predictions_of_others(tmp_path):
    (table,) = tables(csv(tmp_path / "whole.csv"))
    model = make_pipeline(coded(), PlainRegression()).fit(table, np.arange(200) % 2)
    assert evaluate_blocks(model, csv(tmp_path / "whole.csv"), "y", epsilon=np.inf)["accuracy"].value == 1.0
    with pytest.raises(ValueError, match="column 'c' holds something else than numbers"):
        evaluate_blocks(model, csv(tmp_path / "text.csv", "x,1.5,1"), "y", epsilon=1.0)


def test_types_that_differ_between_pieces_are_refused_where_steps_or_models_may_see_them():
    rows = np.column_stack([1 + np.arange(200) % 2, np.arange(200.0)])
    one, y = pandas.DataFrame(rows, columns=["c", "b"]), np.arange(200) % 2
    other = one.assign(c=[*one["c"].astype(int).astype(str)[1:], "x"])  # as pandas reads a piece with one such cell
    blocks = [(one, y), (other, y)]
    with pytest.raises(ValueError, match="the same columns of the same types"):
        make_private_pipeline(coded(), LogisticRegression(), random_state=0).fit_blocks(blocks)
    model = make_pipeline(coded(), PlainRegression()).fit(one, y)
    with pytest.raises(ValueError, match="the same columns of the same types"):
        evaluate_blocks(model, blocks, epsilon=1.0)


def test_words_for_truth_in_a_csv_file_are_numbers_and_no_type(tmp_path):
    path = tmp_path / "rows.csv"
    for last in ("True", "", "false"):
        path.write_text("a,b,y\n" + "True,1,0\nFalse,2,1\n" * 100 + f"{last},3,0\n", encoding="utf-8")
        (table,) = tables(path)
        assert table["a"].tolist()[:2] == [1.0, 0.0]
        with opened(path, "y") as reading:
            assert reading.seen("labels", trusted=True).truths == ()


def test_a_null_does_not_change_the_type_of_a_dictionary():
    pa = pytest.importorskip("pyarrow")
    for values, kind in (([True, False], "boolean"), ([1, 2], "float64")):
        for last in (values[0], None):
            column = pa.array([*values, last]).dictionary_encode()
            (table,) = tables(pa.table({"a": column, "b": ["u", "v", "w"], "y": [0, 1, 0]}))
            assert str(table["a"].dtype) == kind
    for last in (True, None):
        column = pa.array([True, False, last]).dictionary_encode()
        with opened(pa.table({"a": column, "b": [1.0, 2.0, 3.0]})) as reading:
            assert reading.seen("none").truths == (0,)  # which decides what a plan releases


def test_files_that_a_dataset_or_a_link_names_twice_are_refused(tmp_path):
    pa, data = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.dataset")
    parquet = pytest.importorskip("pyarrow.parquet")
    one, other = str(tmp_path / "one.parquet"), str(tmp_path / "other.parquet")
    parquet.write_table(pa.table({"a": [1.0, 2.0, 3.0], "y": [0, 1, 0]}), one)
    (tmp_path / "other.parquet").hardlink_to(one)
    both = data.dataset([data.dataset(one), data.dataset(one)])
    for blocks in (data.dataset([one, one]), both, data.dataset([one, other]), [one, other]):
        with pytest.raises(ValueError, match="its rows would count twice"):
            opened(blocks, "y")


def test_types_of_a_dataset_of_text_files_declare_no_truth_values(tmp_path):
    data = pytest.importorskip("pyarrow.dataset")
    (tmp_path / "rows.csv").write_text("t,b,y\n" + "true,1,0\nfalse,2,1\n" * 5, encoding="utf-8")
    with opened(data.dataset(tmp_path / "rows.csv", format="csv"), "y") as reading:
        assert reading.seen("labels").truths == ()
