import builtins
import datetime
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from tacit import ElasticNet, Lasso, LinearRegression, LinearSVC, LogisticRegression, Ridge, load
from tacit.commands import tables
from tacit.estimators import PrivatePipeline, classifiers
from tacit.modelfiles import Column, TableModel
from tacit.modelfiles.table import encoder, feature_names

from .support import CLASSES, declared, people, tacit

INCOME = ("fit", "people.csv", "--target", "income", "--epsilon", "2", "--out", "m.json", "--drop", "wage")
INCOME += ("--task", "classification")
WAGE = ("fit", "people.csv", "--target", "wage", "--epsilon", "2", "--out", "m.json", "--drop", "income")
KIND = ("--categories", "kind=clerk,farmer,nurse")
ALL_DECLARED = declared("--classes", "<=50K,>50K")
quiet = pytest.mark.filterwarnings("ignore:.*budget is too small:UserWarning")


def test_a_table_in_a_model_and_a_report_out(folder, capsys):
    code, out, err = tacit(capsys, *INCOME, *ALL_DECLARED, "--report", "r.html")
    assert code == 0
    assert out.startswith("(2.0, 0.00013)-DP, add-remove one row of 400; ")
    assert out.endswith("Wrote m.json and r.html.\n")
    assert "400 rows; 4 columns became 8 features; classification of 'income'" in err
    model = load("m.json")
    assert type(model) is TableModel
    assert type(model.model) is LogisticRegression
    assert str(model.guarantee_) in out
    frame = pd.read_csv("people.csv")
    assert list(model.classes_) == CLASSES
    assert np.mean(model.predict(frame) == frame["income"]) > 0.7
    report = (folder / "r.html").read_text()
    assert "kind = nurse" in report
    assert "Of &#x27;kind&#x27;, &#x27;grade&#x27; only the differences between categories mean something" in report
    assert "of income" in report
    assert sorted(path.name for path in folder.iterdir()) == ["m.json", "people.csv", "r.html"]


@pytest.mark.parametrize(
    ("words", "kind", "parameters"),
    [
        ((*WAGE, "--task", "regression"), LinearRegression, {"y_bounds": None}),
        ((*WAGE, "--y-bounds", "1000", "3000"), LinearRegression, {"y_bounds": (1000.0, 3000.0)}),
        ((*WAGE, "--model", "ridge", "--alpha", "2"), Ridge, {"alpha": 2.0}),
        ((*WAGE, "--model", "lasso", "--alpha", "20"), Lasso, {"alpha": 20.0}),
        ((*WAGE, "--model", "elastic-net", "--l1-ratio", "0.9"), ElasticNet, {"alpha": 1.0, "l1_ratio": 0.9}),
        ((*INCOME, "--model", "linear-svc", "--C", "0.5"), LinearSVC, {"C": 0.5, "loss": "squared_hinge"}),
        ((*INCOME, "--model", "linear-svc", "--loss", "hinge"), LinearSVC, {"C": 1.0, "loss": "hinge"}),
        ((*INCOME, "--C", "0.5", "--no-intercept"), LogisticRegression, {"C": 0.5, "fit_intercept": False}),
        ((*INCOME, "--row-norm", "100", "--solver", "gradient"), LogisticRegression, {"row_norm": 100.0}),
        ((*INCOME, "--adjacency", "replace-one", "--delta", "1e-4"), LogisticRegression, {"delta": 1e-4}),
        ((*WAGE, "--target", "grade", "--task", "classification"), LogisticRegression, {"classes": None}),
        ((*WAGE, "--target", "grade", "--classes", "3,1,2"), LogisticRegression, {"classes": [1, 2, 3]}),
        ((*WAGE, "--target", "grade", "--task", "regression"), LinearRegression, {}),
    ],
)
@quiet
@pytest.mark.usefixtures("folder")
def test_words_become_parameters(capsys, words, kind, parameters):
    code, _, err = tacit(capsys, *words, *KIND)
    assert code == 0, err
    model = load("m.json").model[-1]  # age, hours and grade are not declared: an encoder comes before
    assert type(model) is kind
    assert parameters.items() <= model.get_params().items()


def test_the_encoder_knows_nothing_of_the_data():
    columns = [Column("age"), Column("kind", ("a", "b"), "b"), Column("grade", (1.0, 2.0)), Column("x", None, 5.0)]
    transformer = encoder(columns)
    rows = pd.DataFrame({"x": [np.nan, 1.0], "grade": [2, 7], "kind": ["a", np.nan], "age": [3, 4], "more": [0, 0]})
    # a value that is not declared becomes zeros; a missing one its constant
    np.testing.assert_array_equal(transformer.transform(rows), [[3, 1, 0, 0, 1, 5], [4, 0, 1, 0, 0, 1]])
    assert feature_names(columns) == ["age", "kind = a", "kind = b", "grade = 1", "grade = 2", "x"]
    assert transformer.get_feature_names_out().tolist() == ["age", "kind_a", "kind_b", "grade_1.0", "grade_2.0", "x"]


@pytest.mark.usefixtures("folder")
def test_the_same_declarations_give_the_same_encoder_whatever_the_data(capsys):
    stored = []
    for seed in (0, 1):
        people(seed=seed).to_csv("people.csv", index=False)
        tacit(capsys, *INCOME, *ALL_DECLARED, "--fill", "age=40", "--seed", "1")
        stored.append(pickle.dumps(encoder(load("m.json").columns)))
    assert stored[0] == stored[1]


def test_the_model_file_holds_no_row(folder, capsys):
    frame = people()
    frame.loc[3, "hours"] = 61.0625  # exact in binary, so its bytes are known
    frame.loc[3, "kind"] = "SECRET"
    frame.to_csv("people.csv", index=False)
    code, out, err = tacit(capsys, *INCOME, *ALL_DECLARED, "--verbose", "--report", "r.html")
    assert code == 0
    told = (folder / "m.json").read_bytes() + (folder / "r.html").read_bytes() + (out + err).encode()
    for secret in (b"SECRET", b"61.06", np.float64(61.0625).tobytes(), np.float32(61.0625).tobytes()):
        assert secret not in told


def test_plain_pandas_and_a_filled_table_predict_as_the_command_does(folder, capsys):
    frame = people()
    frame.loc[[1, 5], "age"], frame.loc[[2, 5], "kind"] = np.nan, None
    frame.to_csv("people.csv", index=False)
    code, *_ = tacit(capsys, *INCOME, *ALL_DECLARED, "--fill", "age=40", "--fill", "kind=clerk")
    assert code == 0
    model = load("m.json")
    ours = tables.read_features(folder / "people.csv", model.columns)
    filled = frame.fillna({"age": 40, "kind": "clerk"}).astype({"age": int})
    kinds = [None if value != value else value for value in frame["kind"]]
    objects = frame.assign(kind=pd.Series(kinds, dtype=object))
    assert objects["kind"][2] is None
    for table in (pd.read_csv("people.csv"), frame, filled, objects):
        np.testing.assert_allclose(model.predict_proba(table), model.predict_proba(ours), rtol=1e-12)


def test_an_export_predicts_without_tacit(folder, capsys):
    words = (*INCOME, *ALL_DECLARED, "--seed", "3")
    assert tacit(capsys, *words)[0] == 0
    expected = load("m.json").predict_proba(pd.read_csv("people.csv"))
    assert tacit(capsys, *words, "--sklearn", "--out", "m.joblib")[0] == 0
    script = """
import sys, joblib, numpy as np, pandas as pd
model = joblib.load("m.joblib")
np.save("p.npy", model.predict_proba(pd.read_csv("people.csv")))
assert "tacit" not in sys.modules
print(model.tacit_["guarantee"]["epsilon"])
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout == "2.0\n"
    np.testing.assert_allclose(np.load("p.npy"), expected, rtol=1e-9)


def test_what_is_read_off_the_data_is_told(folder, capsys):
    words = (*INCOME, "--numbers", "age,hours,grade", "--public-categories", "kind", "--report", "r.html")
    assert tacit(capsys, *words)[0] == 0
    report = (folder / "r.html").read_text()
    assert "The categories of &#x27;kind&#x27; were read off the data" in report
    assert "The list of classes was learned from the data" in report
    assert [grade for grade, _ in load("m.json").not_covered] == ["told", "public"]

    (folder / "s.toml").write_text(
        'classes = ["<=50K", ">50K"]\ntarget = "income"\ndrop = ["wage"]\n'
        '[columns]\nage = "number"\nhours = "number"\nkind = ["clerk", "farmer", "nurse"]\ngrade = [1, 2, 3]\n'
    )
    words = ("fit", "people.csv", "--epsilon", 2, "--schema", "s.toml", "--out", "m.json", "--report", "r.html")
    assert tacit(capsys, *words)[0] == 0
    report = (folder / "r.html").read_text()
    assert "read off the data" not in report
    assert "learned from the data" not in report
    assert [grade for grade, _ in load("m.json").not_covered] == ["public"]


@pytest.mark.parametrize(("words", "name"), [((), "model.json"), (("--sklearn",), "model.joblib")])
def test_the_model_has_a_name_of_its_own(folder, capsys, words, name):
    without = [word for word in INCOME if word not in ("--out", "m.json")]
    code, out, _ = tacit(capsys, *without, *ALL_DECLARED, *words)
    assert (code, out.splitlines()[-1]) == (0, f"Wrote {name}.")
    assert sorted(path.name for path in folder.iterdir()) == sorted([name, "people.csv"])


@pytest.mark.usefixtures("folder")
def test_the_seed_is_not_in_the_file(capsys, folder):
    assert tacit(capsys, *INCOME, *ALL_DECLARED, "--seed", "86028121")[0] == 0
    assert "86028121" not in (folder / "m.json").read_text()
    assert load("m.json").guarantee_.seeded


@pytest.mark.usefixtures("folder")
def test_warnings_of_tacit_are_shown_and_those_of_others_are_not(capsys, monkeypatch):
    def loud(y):  # as scikit-learn is where half of the labels are distinct
        warnings.warn_explicit("SECRET", UserWarning, "sklearn/somewhere.py", 1)
        assert len(y) == 400

    monkeypatch.setattr(classifiers, "check_classification_targets", loud)
    code, _, err = tacit(capsys, *INCOME, *declared(), "--seed", "1", "--delta", "0.01")
    assert code == 0
    assert "tacit fit: warning: random_state is set" in err
    assert "tacit fit: warning: delta=0.01 is not below 1/n" in err
    assert "SECRET" not in err


@pytest.mark.usefixtures("folder")
def test_progress_tells_public_counts(capsys):
    told = []
    for seed in (0, 1):
        people(seed=seed).to_csv("people.csv", index=False)
        told.append(tacit(capsys, *INCOME, *ALL_DECLARED, "--verbose"))
    assert told[0] == told[1]  # other people, the same words
    assert "releases (gradients)" in told[0][2]


REFUSED = {
    "no file": (("fit", "none.csv", *INCOME[2:]), "No such file or directory: 'none.csv'"),
    "no target": (("fit", "people.csv", "--epsilon", "1", "--out", "m.json"), "--target is missing"),
    "other target": ((*INCOME, "--target", "incom"), "no column 'incom'"),
    "no task": (WAGE, "is 'wage' a class or a number? Nothing was spent; say it with one of: tacit fit people.csv"),
    "no task, and more": (
        (*WAGE, "--drop", "a b,c"),
        "--drop 'a b,c' --task classification; or tacit fit people.csv",
    ),
    "epsilon": ((*INCOME, *ALL_DECLARED, "--epsilon", "0"), "epsilon must be above 0, got 0.0"),
    "delta": ((*INCOME, *ALL_DECLARED, "--delta", "2"), "delta must lie strictly between 0 and 1, got 2.0"),
    "solver": ((*INCOME, *ALL_DECLARED, "--solver", "magic"), "solver must be one of 'auto', 'coordinate'"),
    "row norm": ((*INCOME, *ALL_DECLARED, "--row-norm", "-1"), "row_norm must be above 0"),
    "C": (
        (*WAGE, *declared("--C", "1", "--task", "regression")),
        "--C belongs to --model logistic or linear-svc, and the model is linear",
    ),
    "loss": (
        (*INCOME, *declared("--loss", "hinge")),
        "--loss belongs to --model linear-svc, and the model is logistic",
    ),
    "other loss": ((*INCOME, *declared("--model", "linear-svc", "--loss", "log")), "invalid choice: 'log'"),
    "three classes": (
        (*WAGE, "--target", "grade", "--classes", "1,2,3", *KIND, "--model", "linear-svc", "--solver", "sgd"),
        "does not serve the squared hinge loss of more than two classes; these do: dual",
    ),
    "alpha": (
        (*WAGE, *declared("--alpha", "1", "--model", "linear")),
        "--alpha belongs to --model ridge or lasso or elastic-net",
    ),
    "l1 ratio": (
        (*WAGE, *declared("--model", "lasso", "--l1-ratio", "1")),
        "--l1-ratio belongs to --model elastic-net, and the model is lasso",
    ),
    "l1 ratio above 1": (
        (*WAGE, *declared("--model", "elastic-net", "--l1-ratio", "2")),
        "l1_ratio must lie in [0, 1], got 2.0",
    ),
    "negative alpha": (
        (*WAGE, *declared("--model", "lasso", "--alpha", "-1")),
        "alpha must be finite and at least 0, got -1.0",
    ),
    "classes of numbers": ((*INCOME, *declared("--classes", "0,1")), "declared classes are numbers"),
    "unknown class": ((*INCOME, *declared("--classes", "a,b")), "a label that `classes` does not name"),
    "one class": ((*INCOME, *declared("--classes", "a")), "at least two classes"),
    "regression of text": ((*INCOME, *declared("--task", "regression")), "a regression needs numbers"),
    "model and task": (
        (*INCOME, *declared("--task", "classification", "--model", "ridge")),
        "--model ridge is for reg",
    ),
    "classes and regression": ((*WAGE, *declared("--task", "regression", "--classes", "1,2")), "a regression has none"),
    "bounds and classes": ((*INCOME, *ALL_DECLARED, "--y-bounds", "0", "1"), "a classification has none"),
    "schema": ((*INCOME, "--schema", "people.csv"), "people.csv is not a schema"),
    "folder": ((*INCOME, *ALL_DECLARED, "--out", "none/m.json"), "none/m.json cannot be written"),
    "a folder": ((*INCOME, *ALL_DECLARED, "--report", "."), ". cannot be written"),
    "the data": ((*INCOME, *ALL_DECLARED, "--out", "./people.csv"), "people.csv is the data itself"),
    "a pickle": (
        (*INCOME, *ALL_DECLARED, "--out", "m.joblib"),
        "m.joblib would be a pickle, and models are written as JSON",
    ),
    "sklearn as JSON": ((*INCOME, *ALL_DECLARED, "--sklearn"), "--sklearn writes a pickle"),
    "sklearn of what is not declared": (
        (*INCOME, *KIND, "--numbers", "age", "--sklearn", "--out", "m.pkl"),
        "--sklearn needs to know what 'hours', 'grade' hold",
    ),
    "one file": ((*INCOME, *ALL_DECLARED, "--report", "m.json"), "--out and --report name the same file"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_one_line_and_nothing_is_written(folder, capsys, case):
    words, message = REFUSED[case]
    before = (folder / "people.csv").read_bytes()
    code, out, err = tacit(capsys, *words)
    assert (code, out) == (2, "")
    *progress, last = err.splitlines()
    assert last.startswith("tacit fit: error: ")
    assert message in last
    assert all(line.startswith("tacit: ") for line in progress)
    assert [path.name for path in folder.iterdir()] == ["people.csv"]
    assert (folder / "people.csv").read_bytes() == before


@pytest.mark.usefixtures("folder")
def test_without_pandas_it_says_what_to_install(capsys, monkeypatch):
    original = builtins.__import__

    def absent(module, *args, **kwargs):
        if module == "pandas":
            raise ImportError(module)
        return original(module, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", absent)
    code, _, err = tacit(capsys, *INCOME, *ALL_DECLARED)
    assert code == 2
    assert err == "tacit fit: error: reading tables needs pandas and pyarrow: pip install 'tacit[cli]'\n"


def raw():
    """Text, holes and a truth value, nothing declared; a text stands in one cell of age, a 7 in one of kind."""
    frame = people(2000).drop(columns="wage")
    frame["age"] = frame["age"].astype(object)
    frame.loc[3, "age"], frame.loc[[4, 5], "kind"] = "SECRET", ["7", None]
    frame.insert(0, "id", [f"person {k}" for k in range(len(frame))])
    return frame.assign(member=frame["hours"] > 40)


def test_a_raw_table_is_fitted_with_nothing_declared_but_the_task(folder, capsys):
    frame = raw()
    frame.to_csv("raw.csv", index=False)
    frame.astype({"age": str}).to_parquet("raw.parquet")
    words = ("--target", "income", "--task", "classification", "--epsilon", "3", "--report", "r.html", "--seed", "1")
    code, out, err = tacit(capsys, "fit", "raw.csv", *words, "--out", "m.json")
    assert code == 0, err
    assert "encoder, gradient solver" in out
    model = load("m.json")
    encoder_of = model.model[0]
    assert encoder_of.categories_ == {
        "id": (),
        "kind": ("clerk", "farmer", "nurse"),
        "member": ("False", "True"),
    }
    assert {release.name for release in model.model.plan_.plan.releases} >= {"encoder/kinds", "encoder/categories"}
    assert model.guarantee_.d0 > 0.0
    for told in (out, err, (folder / "m.json").read_text(), (folder / "r.html").read_text()):
        assert "SECRET" not in told
        assert "person 7" not in told
    assert "kind=nurse" in (folder / "r.html").read_text()
    whole = frame.drop(index=3)
    whole.to_csv("new.csv", index=False)
    code, out, err = tacit(capsys, "predict", "m.json", "new.csv", "--keep", "id", "--keep", "age", "--out", "p.csv")
    assert code == 0, err
    predicted = pd.read_csv("p.csv")
    assert list(predicted) == ["id", "age", "prediction"]
    assert predicted["id"].tolist() == whole["id"].tolist()
    assert np.mean(predicted["prediction"] == whole["income"].to_numpy()) > 0.75
    code, _, err = tacit(capsys, "predict", "m.json", "new.csv", "--keep", "none")
    assert (code, "has no column 'none'" in err) == (2, True)
    # Parquet says what its columns are: nothing is voted on.
    code, out, err = tacit(capsys, "fit", "raw.parquet", *words, "--drop", "age", "--out", "q.json")
    assert code == 0, err
    assert "encoder/kinds" not in {release.name for release in load("q.json").model.plan_.plan.releases}


def test_what_is_declared_of_a_raw_table_saves_budget(folder, capsys):
    raw().drop(index=[3, 4, 5]).assign(hours=lambda f: f["hours"].where(f["grade"] > 1)).to_csv("raw.csv", index=False)
    words = ("--target", "income", "--classes", "<=50K,>50K", "--epsilon", "3", "--out", "m.json", "--drop", "id")
    code, _, err = tacit(capsys, "fit", "raw.csv", *words, *KIND, "--numbers", "age", "--fill", "hours=38")
    assert code == 0, err
    model = load("m.json")
    assert model.model[0].categories_["kind"] == ("clerk", "farmer", "nurse")
    assert [c.parsed for c in model.model[0].columns_] == [False, False, False, True, True]  # grade and member
    assert tacit(capsys, "predict", "m.json", "raw.csv", "--proba")[0] == 0
    assert (folder / "m.json").exists()


def test_one_cell_of_parquet_changes_neither_the_plan_nor_a_printed_word(folder, capsys):
    frame = people(2000).drop(columns="wage").assign(member=lambda f: f["hours"] > 40, kind=lambda f: f["grade"] > 1)
    words = ("--target", "income", "--classes", "<=50K,>50K", "--epsilon", "3", "--out", "m.json", "--seed", "1")
    told = []
    for holes in ((), ("member",), ("grade", "age")):
        table = frame.astype({"member": object, "age": "Int64", "grade": "Int64"})
        table.loc[7, list(holes)] = None
        table.to_parquet("raw.parquet")
        code, out, err = tacit(capsys, "fit", "raw.parquet", *words, "--verbose", "--report", "r.html")
        assert code == 0, err
        model = load("m.json")
        assert model.model[-1].bounds == {1: (0.0, 1.0), 4: (0.0, 1.0)}  # kind and member, by their type
        told.append((out, err, model.model.plan_, str(model.guarantee_), model.not_covered, model.columns))
        assert tacit(capsys, "predict", "m.json", "raw.parquet")[0] == 0
    assert told[0] == told[1] == told[2]
    assert (folder / "r.html").exists()


@pytest.mark.parametrize("name", ["raw.csv", "raw.parquet"])
def test_an_export_is_refused_before_anything_is_spent(folder, capsys, monkeypatch, name):
    frame = people().drop(columns="wage")
    frame.to_csv("raw.csv", index=False)
    frame.to_parquet("raw.parquet")
    monkeypatch.setattr(PrivatePipeline, "fit", lambda *_: pytest.fail("a budget was spent"))
    words = ("--target", "income", "--task", "classification", "--epsilon", "3", "--sklearn", "--out", "m.pkl")
    code, out, err = tacit(capsys, "fit", name, *words)
    assert (code, out) == (2, "")
    assert "Nothing was spent; declare each by --numbers, --categories or --drop" in err
    assert ("'age'" in err) is (name == "raw.csv")  # parquet says that it is a number
    assert not (folder / "m.pkl").exists()


def test_an_export_of_a_pipeline_fills_in_its_constants_in_any_order_of_columns(folder, capsys):
    frame = people(2000).drop(columns="wage")
    frame.loc[::7, "hours"], frame.loc[::9, "kind"] = np.nan, None
    frame.to_parquet("raw.parquet")  # age and grade are numbers by their type, so an encoder comes before the model
    words = ("--target", "income", "--classes", "<=50K,>50K", "--epsilon", "3", "--seed", "1", *KIND)
    words += ("--fill", "kind=nurse", "--fill", "hours=10.5")
    assert tacit(capsys, "fit", "raw.parquet", *words, "--out", "m.json")[0] == 0
    model = load("m.json")
    expected = model.predict_proba(frame)
    others = frame.assign(hours=frame["hours"].fillna(99.0), kind=frame["kind"].fillna("clerk"))
    assert not np.allclose(expected, model.predict_proba(others))
    turned = frame[frame.columns[::-1]].assign(more=1)
    np.testing.assert_allclose(model.to_sklearn().predict_proba(turned), expected, rtol=1e-9)
    assert tacit(capsys, "fit", "raw.parquet", *words, "--out", "m.joblib", "--sklearn")[0] == 0
    code, _, err = tacit(capsys, "predict", "m.joblib", "raw.parquet", "--trust-pickle", "--proba", "--out", "p.csv")
    assert code == 0, err
    np.testing.assert_allclose(pd.read_csv(folder / "p.csv"), expected, rtol=1e-9)


def test_a_hole_in_what_is_declared_changes_neither_the_plan_nor_a_printed_word(folder, capsys):
    told = []
    for holes in ([], [3], [3, 5, 8]):
        frame = people()
        frame.loc[holes, "age"], frame.loc[holes, "kind"], frame.loc[holes, "grade"] = np.nan, None, np.nan
        frame.to_csv("people.csv", index=False)
        code, out, err = tacit(capsys, *INCOME, *ALL_DECLARED, "--verbose")
        assert code == 0, err
        model = load("m.json")
        told.append((out, err, model.model.plan_, str(model.guarantee_), model.columns))
        ours = tables.read_features(folder / "people.csv", model.columns)
        np.testing.assert_array_equal(model.predict(frame), model.predict(ours))
        np.testing.assert_allclose(model.to_sklearn().predict_proba(frame), model.predict_proba(frame), rtol=1e-9)
    assert told[0] == told[1] == told[2]


def test_a_cell_that_is_no_number_in_a_column_voted_a_number_is_a_hole(folder, capsys):
    frame = people(2000).drop(columns="wage").astype({"age": object})
    frame.loc[3, "age"] = "SECRET"
    frame.to_csv("people.csv", index=False)
    code, _, err = tacit(capsys, *INCOME[:-4], "--classes", "<=50K,>50K", "--numbers", "hours", *KIND)
    assert code == 0, err
    model = load("m.json")
    assert not model.model[0].columns_[0].is_text  # age is voted a number
    assert tacit(capsys, "predict", "m.json", "people.csv", "--proba", "--out", "p.csv")[0] == 0
    told = pd.read_csv(folder / "p.csv")
    np.testing.assert_allclose(told, model.predict_proba(frame), rtol=1e-9)
    place = list(model.model[0].get_feature_names_out()).index("age")
    centre = frame.assign(age=frame["age"].where(frame.index != 3, repr(float(model.model[-1].fill_[place]))).map(str))
    np.testing.assert_allclose(told.loc[3], model.predict_proba(centre)[3], rtol=1e-9)


@pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("us"), pa.timestamp("s", "UTC"), pa.duration("s")])
@pytest.mark.parametrize("cell", [0, None])
def test_dates_of_parquet_are_refused_by_their_type_whatever_they_hold(folder, capsys, kind, cell):
    table = pa.Table.from_pandas(people().drop(columns="wage")).append_column("day", pa.array([cell] * 400, kind))
    parquet.write_table(table, folder / "raw.parquet")
    words = ("--target", "income", "--classes", "<=50K,>50K", "--epsilon", "3", "--out", "m.json")
    code, out, err = tacit(capsys, "fit", "raw.parquet", *words)
    assert (code, out, "column 'day' holds dates" in err) == (2, "", True)


def test_a_column_of_nothing_but_nulls_is_a_number_without_a_say(folder, capsys):
    people().drop(columns="wage").assign(none=None).to_parquet(folder / "raw.parquet")
    words = ("--target", "income", "--classes", "<=50K,>50K", "--epsilon", "3", "--out", "m.json", *KIND)
    for told in ((), ("--numbers", "none"), declared("--numbers", "age,hours,none")):
        assert tacit(capsys, "fit", "raw.parquet", *words, *told)[0] == 0
        assert tacit(capsys, "predict", "m.json", "raw.parquet", "--out", "p.csv")[0] == 0


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([{"SECRET": 1}], "column 'bad' is of type struct, which is neither"),
        ([["SECRET"]], "column 'bad' is of type list, which is neither"),
        ([b"SECRET"], "column 'bad' is of type binary, which is neither"),
        ([datetime.date(1987, 6, 5)], "column 'bad' holds dates: give a number in their place"),
        ([np.inf, 987654.25], "column 'bad' holds infinity"),
    ],
)
def test_a_column_that_cannot_be_read_is_named_and_its_cells_are_not(capsys, tmp_path, cells, message):
    frame = people(60).assign(bad=cells * (60 // len(cells)))
    frame.to_parquet(tmp_path / "people.parquet")
    words = ["--target", "income", "--task", "classification", "--epsilon", 1, "--out", tmp_path / "m.json"]
    code, out, err = tacit(capsys, "fit", tmp_path / "people.parquet", *words)
    assert (code, message in err) == (2, True)
    assert not [secret for secret in ("SECRET", "1987", "987654") if secret in out + err]
    assert not (tmp_path / "m.json").exists()


def test_what_was_fitted_to_a_raw_table_is_exported(capsys, tmp_path):
    frame = people(2000)
    frame.to_csv(tmp_path / "people.csv", index=False)
    words = ["--target", "income", "--task", "classification", "--epsilon", 20, "--seed", 0]
    code, _, _ = tacit(capsys, "fit", tmp_path / "people.csv", *words, "--out", tmp_path / "m.json")
    model = load(tmp_path / "m.json")
    assert code == 0
    assert model.guarantee_.solver == "encoder, gradient"
    found, expected = (one.predict_proba(frame) for one in (model.to_sklearn(), model))
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@quiet
@pytest.mark.parametrize("words", [("--numbers", "age"), ()], ids=["all declared", "some found"])
@pytest.mark.parametrize("cells", [("True", "False", None), ("1", "0", "true")])
def test_truth_values_of_a_schema_lie_between_0_and_1(folder, capsys, words, cells):
    frame = people()[["age", "income"]]
    frame["owner"] = [cells[k % 3] for k in range(len(frame))]
    frame.to_csv(folder / "owners.csv", index=False)
    (folder / "schema.toml").write_text('target = "income"\ncolumns.owner = "boolean"\n', encoding="utf8")
    told = ["--epsilon", "1", "--task", "classification", *words]
    code, _, err = tacit(capsys, "fit", "owners.csv", "--schema", "schema.toml", *told, "--out", "typed.json")
    assert code == 0, err
    model = load("typed.json").model
    inner, names = (model, ["age", "owner"]) if words else (model[-1], list(model[:-1].get_feature_names_out()))
    place = names.index("owner")
    assert (inner.clip_low_[place], inner.clip_high_[place]) == (0.0, 1.0)
    code, out, err = tacit(capsys, "predict", "typed.json", "owners.csv", "--keep", "owner")
    assert (code, len(out.splitlines())) == (0, 401), err
    told = ["--target", "income", *told, "--booleans", "owner,age"]
    code, _, err = tacit(capsys, "fit", "owners.csv", *told, "--out", "all.json")
    assert code == 0, err
    assert not any("scale" in release.name for release in load("all.json").model.plan_.plan.releases)


def test_other_words_than_true_and_false_are_refused_before_anything_is_spent(folder, capsys):
    frame = people()[["age", "income"]].assign(owner="perhaps")
    frame.to_csv(folder / "owners.csv", index=False)
    words = ["--target", "income", "--epsilon", "1", "--task", "classification", "--booleans", "owner"]
    code, out, err = tacit(capsys, "fit", "owners.csv", *words)
    assert (code, out) == (2, "")
    assert "'owner'" in err
    assert "perhaps" not in err
