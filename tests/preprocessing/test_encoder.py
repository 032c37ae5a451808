"""`PrivateEncoder`: what it finds, what it takes, and what it refuses, on pandas, polars and NumPy alike."""

import datetime
import decimal
import fractions
import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.estimator_checks import check_estimator

import tacit
from tacit import LogisticRegression, PrivateEncoder, make_private_pipeline
from tacit.preprocessing.encoder import Source
from tacit.privacy import compose
from tacit.utils import expected_failed_checks
from tests.guarantees.recorder import transcript

pytestmark = pytest.mark.filterwarnings("ignore:random_state")
ALL = {"epsilon": math.inf}


def people(n=2000):
    """Jobs of which one is rare, a country with holes, a number, and a truth value."""
    rng = np.random.default_rng(0)
    job = rng.choice(["nurse", "clerk", "smith"], n).astype(object)
    job[0] = "spy"
    country = rng.choice(["FR", "DE", None], n)
    return {"job": job, "country": country, "age": rng.normal(40.0, 10.0, n), "member": rng.random(n) < 0.5}


def frames(columns):
    return [pd.DataFrame(columns), pl.DataFrame({k: v.tolist() for k, v in columns.items()})]


def test_scikit_learns_checks_pass():
    encoder = PrivateEncoder()
    check_estimator(encoder, expected_failed_checks=expected_failed_checks(encoder), on_skip=None)


def test_common_categories_are_found_and_rare_ones_are_other_on_pandas_and_polars_alike():
    outputs = []
    for frame in frames(people()):
        encoder = PrivateEncoder(epsilon=1.0, random_state=0).fit(frame)
        assert encoder.categories_ == {"job": ("clerk", "nurse", "smith"), "country": ("DE", "FR")}
        names = ["job=clerk", "job=nurse", "job=smith", "country=DE", "country=FR", "age", "member"]
        assert encoder.get_feature_names_out().tolist() == names
        outputs.append(encoder.transform(frame))
    np.testing.assert_array_equal(*outputs)
    Z = outputs[0]
    assert Z[0, :3].tolist() == [0.0, 0.0, 0.0]  # the spy
    missing = np.array([value is None for value in people()["country"]])
    np.testing.assert_array_equal(Z[:, 3:5].sum(axis=1) == 0, missing)
    np.testing.assert_array_equal(Z[:, 5], people()["age"])
    np.testing.assert_array_equal(Z[:, 6], people()["member"])


def test_the_guarantee_says_what_was_spent_and_composes():
    encoder = PrivateEncoder(epsilon=0.7, delta=1e-5, random_state=0).fit(pd.DataFrame(people()))
    stated = encoder.guarantee_
    assert (stated.epsilon, stated.delta, stated.n_rows) == (0.7, 1e-5, 2000)
    assert stated.recompute() <= 0.7
    assert stated.d0 == pytest.approx(1e-7)
    assert compose([stated, stated]).d0 == 2 * stated.d0


def test_declared_categories_cost_nothing_and_keep_their_order():
    told = {"job": ["smith", "clerk", "pilot"], 1: ["FR"]}
    with transcript() as steps:
        encoder = PrivateEncoder(categories=told).fit(pd.DataFrame(people()))
    assert steps == []
    assert encoder.guarantee_ is None
    assert encoder.categories_ == {"job": ("smith", "clerk", "pilot"), "country": ("FR",)}


def test_only_the_columns_that_are_not_declared_take_part_in_the_release():
    with transcript() as steps:
        PrivateEncoder(categories={"job": ["clerk"]}, random_state=0).fit(pd.DataFrame(people()))
    (step,) = steps
    assert (step.kind, step.sensitivity) == ("thresholded", 1.0)


def test_pandas_categories_are_not_taken_for_declared_unless_asked_and_an_enum_always_is():
    job = pd.Series(["clerk"] * 500 + ["spy"]).astype("category")
    assert PrivateEncoder(random_state=0).fit(pd.DataFrame({"job": job})).categories_ == {"job": ("clerk",)}
    trusting = PrivateEncoder(trust_dtypes=True).fit(pd.DataFrame({"job": job}))
    assert trusting.categories_ == {"job": ("clerk", "spy")}
    assert trusting.guarantee_ is None
    texts = ["clerk"] * 500 + ["spy"]
    enum = pl.DataFrame({"job": pl.Series(texts, dtype=pl.Enum(["spy", "clerk", "pilot"]))})
    assert PrivateEncoder().fit(enum).categories_ == {"job": ("spy", "clerk", "pilot")}
    read_off = pl.DataFrame({"job": pl.Series(texts, dtype=pl.Categorical)})
    for trust in (False, True):
        assert PrivateEncoder(trust_dtypes=trust, random_state=0).fit(read_off).categories_ == {"job": ("clerk",)}


def test_what_is_new_at_prediction_is_other():
    encoder = PrivateEncoder(random_state=0).fit(pd.DataFrame(people())[["job"]])
    assert encoder.transform(pd.DataFrame({"job": ["nurse", "pilot", None, np.nan]})).tolist() == [
        [0.0, 1.0, 0.0], [0.0] * 3, [0.0] * 3, [0.0] * 3,
    ]  # fmt: skip


def test_indicators_say_what_is_missing_and_numbers_keep_their_holes():
    frame = pd.DataFrame({"age": [1.0, np.nan, 3.0], "job": ["a", None, "b"], "free": [np.nan, 1.0, 2.0]})
    encoder = PrivateEncoder(missing_indicator=["age", 1], categories={"job": ["a", "b"]}).fit(frame)
    names = ["age", "age is missing", "job=a", "job=b", "job is missing", "free"]
    assert encoder.get_feature_names_out().tolist() == names
    Z = encoder.transform(frame)
    np.testing.assert_array_equal(Z[:, [1, 4]], [[0, 0], [1, 1], [0, 0]])
    np.testing.assert_array_equal(np.isnan(Z[:, 0]), [False, True, False])
    assert encoder.source_of("age is missing") == Source("age", None, missing=True)


def test_names_lead_back_to_columns_and_values_also_where_they_look_alike():
    frame = pd.DataFrame({"a": ["b=c", "d"], "a=b": ["c", "c"], "a=d": [1.0, 2.0]})
    encoder = PrivateEncoder(**ALL).fit(frame)
    assert encoder.get_feature_names_out().tolist() == ["a=b=c", "a=d", "a=b=c'", "a=d'"]
    assert encoder.source_of("a=b=c") == Source("a", "b=c")
    assert encoder.source_of("a=b=c'") == Source("a=b", "c")
    assert encoder.source_of("a=d'") == Source("a=d", None)
    with pytest.raises(KeyError, match="no output column 'x'"):
        encoder.source_of("x")


def test_at_most_so_many_categories_are_found():
    frame = pd.DataFrame({"x": [f"v{k % 40:02d}" for k in range(400)] + ["v07"] * 20 + ["v03"] * 10})
    assert PrivateEncoder(**ALL, max_categories=2).fit(frame).categories_ == {"x": ("v03", "v07")}
    assert len(PrivateEncoder(**ALL).fit(frame).categories_["x"]) == 20


def test_without_privacy_it_is_a_one_hot_encoder():
    frame = pd.DataFrame(people())[["job", "country"]].fillna("none")
    plain = OneHotEncoder(sparse_output=False).fit_transform(frame)
    np.testing.assert_array_equal(PrivateEncoder(**ALL).fit_transform(frame), plain)


def test_the_output_does_not_depend_on_the_order_of_rows():
    frame, found = pd.DataFrame(people()), set()
    for seed in range(5):
        shuffled = frame.sample(frac=1.0, random_state=seed)
        found.add(str(PrivateEncoder(epsilon=0.05, random_state=1).fit(shuffled).categories_))
    assert len(found) == 1


def test_categories_that_look_like_numbers_and_numbers_that_are_declared():
    frame = pd.DataFrame({"code": ["01", "1", "1.0", "1"], "zip": [1, 2, 1, 3], "part": [1.0, 2.5, np.nan, 2.5]})
    told = {"zip": [1, 2], "part": [1, 2.5]}
    encoder = PrivateEncoder(**ALL, categories=told).fit(frame)
    assert encoder.categories_ == {"code": ("01", "1", "1.0"), "zip": ("1", "2"), "part": ("1", "2.5")}
    Z = encoder.transform(frame)
    np.testing.assert_array_equal(Z[:, 3:5], [[1, 0], [0, 1], [1, 0], [0, 0]])
    np.testing.assert_array_equal(Z[:, 5:], [[1, 0], [0, 1], [0, 0], [0, 1]])


def test_an_object_array_is_text_and_an_array_of_numbers_passes():
    X = np.array([["a", 1], ["b", 2.0], ["a", None], ["a", True]], dtype=object)
    encoder = PrivateEncoder(**ALL).fit(X)
    assert encoder.categories_ == {"x0": ("a", "b"), "x1": ("1", "2", "True")}
    numbers = np.array([[1.0, np.nan], [2.0, 3.0]])
    np.testing.assert_array_equal(PrivateEncoder().fit_transform(numbers), numbers)


BEYOND = [10**400, 10**5000, decimal.Decimal("sNaN"), fractions.Fraction(10**400, 3)]


@pytest.mark.parametrize("cell", BEYOND, ids=["long", "longer", "signalling", "fraction"])
def test_a_cell_that_is_no_float_is_a_hole(cell):
    frame = pd.DataFrame({"x": np.array(["a", "b", cell, "a"], dtype=object)})
    encoder = PrivateEncoder(**ALL, missing_indicator=["x"]).fit(frame)
    assert encoder.categories_ == {"x": ("a", "b")}
    assert encoder.transform(frame)[2].tolist() == [0.0, 0.0, 1.0]


@pytest.mark.parametrize("rows", [[[1.0, 2.0], [3.0, 4.0]], [[1.0, 2.0], [3.0, "x"]], ((1.0,), (2.0,))])
def test_a_list_is_refused_as_a_single_cell_would_decide_what_type_it_has(rows):
    with pytest.raises(TypeError, match=r"data frame or an array, got (list|tuple)"):
        PrivateEncoder().fit(rows)
    encoder = PrivateEncoder().fit(np.zeros((2, len(rows[0]))))
    with pytest.raises(TypeError, match="data frame or an array"):
        encoder.transform(rows)


@pytest.mark.parametrize("text", ["x\x1by", "\u202eabc", "x" * 10_001, "\ud800"])
def test_a_text_that_could_not_be_shown_is_other_and_the_encoder_can_be_kept(text, tmp_path):
    frame = pd.DataFrame({"x": pd.Series([text, "a", "b\tc"] * 500, dtype=object)})
    encoder = PrivateEncoder(missing_indicator=["x"], random_state=0).fit(frame)
    assert encoder.categories_ == {"x": ("a", "b\tc")}
    assert encoder.transform(frame)[0].tolist() == [0.0, 0.0, 0.0]
    pipeline = make_private_pipeline(PrivateEncoder(), LogisticRegression(), random_state=0)
    pipeline.fit(frame, np.arange(1500) % 2)
    tacit.save(pipeline, tmp_path / "model.json")
    assert tacit.load(tmp_path / "model.json")[0].categories_ == {"x": ("a", "b\tc")}


def test_a_table_in_which_nothing_is_found_has_an_empty_column():
    frame = pd.DataFrame({"name": [f"person {k}" for k in range(1000)]})
    encoder = PrivateEncoder(epsilon=0.5, random_state=0).fit(frame)
    assert encoder.categories_ == {"name": ()}
    assert encoder.get_feature_names_out().tolist() == ["empty"]
    assert not encoder.transform(frame).any()


def test_ten_thousand_categories_are_counted():
    frame = pl.DataFrame({"x": [str(k % 10_000) for k in range(30_000)] + ["often"] * 5_000})
    assert PrivateEncoder(random_state=0).fit(frame).categories_ == {"x": ("often",)}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_set_output_clone_and_pickle(make):
    frame = make({"job": ["a", "b"] * 500, "age": [1.0, 2.0] * 500})
    encoder = PrivateEncoder(epsilon=2.0, random_state=0)
    assert clone(encoder).get_params() == encoder.get_params()
    encoder.set_output(transform="pandas" if make is pd.DataFrame else "polars").fit(frame)
    assert type(encoder.transform(frame)) is make
    assert list(encoder.transform(frame).columns) == ["job=a", "job=b", "age"]
    again = pickle.loads(pickle.dumps(encoder))
    assert again.categories_ == encoder.categories_
    assert again.guarantee_ == encoder.guarantee_


SECRET = "secret-of-one-person"


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        ({"born": pd.to_datetime(["2001-01-01"] * 3)}, TypeError, "column 'born' holds dates"),
        ({"born": [datetime.date(2001, 1, 1)] * 3}, TypeError, "column 'born' holds dates"),
        ({"since": pd.to_timedelta([1, 2, 3])}, TypeError, "column 'since' holds dates"),
        ({"x": [SECRET, ["list"], 1]}, TypeError, "column 'x' holds something"),
        ({"x": [SECRET, b"bytes", 1]}, TypeError, "column 'x' holds something"),
        ({"x": [1.0, math.inf, 2.0]}, ValueError, "column 'x' holds infinity"),
        ({"x": [1j, 2.0, 3.0]}, TypeError, "column 'x' is of type complex128"),
        ({"x": [SECRET]}, ValueError, "at least two rows"),
        ({}, ValueError, "minimum of 1 is required"),
    ],
)
def test_what_cannot_be_encoded_is_refused_by_column_before_anything_is_spent(columns, error, message):
    with transcript() as steps, pytest.raises(error, match=message) as told:
        PrivateEncoder().fit(pd.DataFrame(columns))
    assert steps == []
    assert SECRET not in str(told.value)
    assert told.value.__cause__ is None
    assert told.value.__context__ is None


def test_columns_of_the_same_name_and_tables_of_polars_without_rows_are_refused():
    twice = pd.DataFrame([["a", "b"], ["c", "d"]], columns=["x", "x"])
    with pytest.raises(ValueError, match="different names, got twice: 'x'"):
        PrivateEncoder().fit(twice)
    with pytest.raises(TypeError, match="collect"):
        PrivateEncoder().fit(pl.LazyFrame({"x": ["a", "b"]}))
    for dtype in (pl.Date, pl.Duration, pl.Time):
        with pytest.raises(TypeError, match="column 'x' holds dates"):
            PrivateEncoder().fit(pl.DataFrame({"x": pl.Series([1, 2, 3]).cast(dtype)}))
    with pytest.raises(TypeError, match="neither text nor a number"):
        PrivateEncoder().fit(pl.DataFrame({"x": [[1], [2]]}))


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"categories": {"y": ["a"]}}, ValueError, "categories names the column 'y', which X does not have"),
        ({"categories": {3: ["a"]}}, ValueError, "categories names the column 3"),
        ({"categories": {"x": ["a"], 0: ["a"]}}, ValueError, "twice"),
        ({"categories": {"x": []}}, ValueError, "one or more"),
        ({"categories": {"x": ["a", "a"]}}, ValueError, "each once"),
        ({"categories": {"x": ["a", None]}}, ValueError, "none of them missing"),
        ({"categories": {"x": "a"}}, TypeError, "must be a list"),
        ({"categories": {"x": [[1]]}}, TypeError, "texts, numbers or truth values"),
        ({"categories": ["a"]}, TypeError, "must be a dict"),
        ({"categories": {1.5: ["a"]}}, TypeError, "texts or whole numbers"),
        ({"missing_indicator": "x"}, TypeError, "sequence of columns"),
        ({"missing_indicator": ["z"]}, ValueError, "missing_indicator names the column 'z'"),
        ({"max_categories": 0}, ValueError, "max_categories"),
        ({"trust_dtypes": "yes"}, TypeError, "trust_dtypes"),
        ({"epsilon": 0.0}, ValueError, "epsilon"),
    ],
)
def test_bad_parameters_are_refused(parameters, error, message):
    with transcript() as steps, pytest.raises(error, match=message):
        PrivateEncoder(**parameters).fit(pd.DataFrame({"x": ["a", "b", "c"]}))
    assert steps == []


def test_a_vote_decides_whether_a_column_is_a_number_and_cells_of_the_other_kind_are_holes():
    rng = np.random.default_rng(0)
    age = rng.integers(20, 60, 600).astype(str).astype(object)
    age[[0, 1, 2, 3]] = ["unknown", "NA", None, "1_0"]
    job = np.where(rng.random(600) < 0.5, "nurse", "clerk").astype(object)
    job[[0, 1]] = ["7", ""]
    for frame in (pd.DataFrame({"age": age, "job": job}), pl.DataFrame({"age": age.tolist(), "job": job.tolist()})):
        with transcript() as steps:
            encoder = PrivateEncoder(parse=["age", 1], random_state=0).fit(frame)
        assert [(step.name, step.kind) for step in steps] == [("kinds", "gaussian"), ("categories", "thresholded")]
        assert [step.sensitivity for step in steps] == [math.sqrt(2.0), 1.0]
        assert encoder.get_feature_names_out().tolist() == ["age", "job=clerk", "job=nurse"]
        Z = encoder.transform(frame)
        np.testing.assert_array_equal(np.isnan(Z[:, 0]), np.arange(600) < 4)
        np.testing.assert_array_equal(Z[4:, 0], age[4:].astype(float))
        np.testing.assert_array_equal(Z[:2, 1:], np.zeros((2, 2)))


def test_where_all_are_numbers_no_categories_are_counted_and_the_guarantee_still_has_them():
    frame = pd.DataFrame({"a": ["1", "2.5"] * 300, "b": ["-3e2", ""] * 300})
    with transcript() as steps:
        encoder = PrivateEncoder(parse=["a", "b"], random_state=0).fit(frame)
    assert [step.name for step in steps] == ["kinds"]
    assert encoder.categories_ == {}
    assert encoder.guarantee_.d0 > 0.0
    with pytest.raises(ValueError, match="parse names the column 'a', which is declared or is a number"):
        PrivateEncoder(parse=["a"], categories={"a": ["1"]}).fit(frame)
    with pytest.raises(ValueError, match="parse names the column 'a', which is declared or is a number"):
        PrivateEncoder(parse=["a"]).fit(frame.astype({"a": float}))
