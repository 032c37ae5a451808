"""Steps of scikit-learn in a private pipeline: those that treat each row by itself are taken, and no others."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.special
from sklearn import preprocessing
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression as PlainLogisticRegression
from sklearn.pipeline import make_pipeline

from tacit import (
    PCA,
    LogisticRegression,
    PrivateEncoder,
    PrivatePipeline,
    PrivateScaler,
    RowClipper,
    make_private_pipeline,
)
from tacit.estimators.rowstage import NUMBERS_FOR_ALL
from tacit.estimators.stateless import is_plain
from tests.guarantees.recorder import transcript

from .tables import FRAME, JOB, N, Y, fitted, made, quiet

pytestmark = quiet


class Sneaky(preprocessing.Normalizer):
    """A subclass can do anything."""


def leaky(X):
    return X - X.mean(axis=0)


DECLARED = {"categories": [["clerk", "nurse", "smith"]], "handle_unknown": "ignore"}
ONE_HOT, NUMBERS = preprocessing.OneHotEncoder, preprocessing.FunctionTransformer
ORDINAL = preprocessing.OrdinalEncoder


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (preprocessing.StandardScaler(), "StandardScaler, may learn .* use PrivateScaler"),
        (preprocessing.MinMaxScaler(), "use PrivateScaler"),
        (SimpleImputer(), "SimpleImputer, may learn .* use nothing: a missing value becomes"),
        (TfidfVectorizer(), "use HashingVectorizer"),
        (Sneaky(), "Sneaky, may learn"),
        (PlainLogisticRegression(), "use tacit.LogisticRegression"),
        (ONE_HOT(), "OneHotEncoder, is taken with declared categories"),
        (ONE_HOT(categories=[["a"]]), "handle_unknown='ignore'"),
        (ONE_HOT(**DECLARED, min_frequency=2), "min_frequency"),
        (ONE_HOT(**DECLARED, max_categories=2), "max_categories"),
        (ORDINAL(), "handle_unknown='use_encoded_value'"),
        (NUMBERS(leaky), "treats each number by itself"),
        (NUMBERS(np.cumsum), "treats each number by itself"),
        (NUMBERS(np.log, inverse_func=leaky), "treats each number by itself"),
        (HashingVectorizer(tokenizer=str.split), "its own preprocessor"),
        (HashingVectorizer(strip_accents=leaky), "strip_accents"),
        (HashingVectorizer(input="filename"), "texts as input"),
        (make_column_transformer((preprocessing.StandardScaler(), ["age"])), "holds 'standardscaler'"),
        (make_column_transformer((NUMBERS(np.log), leaky)), "by a function, which sees the rows"),
        (ColumnTransformer([("n", "drop", [0])], remainder=SimpleImputer()), "holds 'remainder', SimpleImputer"),
        (make_pipeline(preprocessing.StandardScaler()), "Pipeline, holds 'standardscaler'"),
        (make_pipeline(preprocessing.Normalizer(), memory="cache"), "memory"),
        (object(), "object, may learn"),
    ],
)
def test_a_step_that_may_learn_from_the_rows_is_refused_by_name(step, message):
    with transcript() as steps, pytest.raises(ValueError, match=message):
        PrivatePipeline([("first", step), ("model", LogisticRegression())]).fit(FRAME, Y)
    assert steps == []


class OfPython:
    """What a ufunc that somebody made calls: any code."""

    __name__ = "log1p"

    def __call__(self, x):
        return x


BYPASSES = {
    "ufunc of Python": NUMBERS(np.frompyfunc(OfPython(), 1, 1)),
    "ufunc of Python under another name": NUMBERS(np.frompyfunc(np.log1p, 1, 1)),
    "vectorised": NUMBERS(np.vectorize(np.log1p)),
    "two inputs": NUMBERS(np.add),
    "two inputs, one given": NUMBERS(np.subtract, kw_args={"x2": 1.0}),
    "two outputs": NUMBERS(np.modf),
    "generalized": NUMBERS(np.matmul),
    "generalized, of one input": NUMBERS(np.linalg._umath_linalg.inv),
    "reduce": NUMBERS(np.add.reduce),
    "accumulate": NUMBERS(np.add.accumulate),
    "outer": NUMBERS(np.multiply.outer),
    "reduceat": NUMBERS(np.add.reduceat, kw_args={"indices": [0]}),
    "along an axis": NUMBERS(np.log1p, kw_args={"axis": 0}),
    "where": NUMBERS(np.log1p, kw_args={"where": np.array([True])}),
    "out": NUMBERS(np.log1p, kw_args={"out": np.zeros((1, 1))}),
    "dtype": NUMBERS(np.log1p, kw_args={"dtype": object}),
    "names by a function": NUMBERS(np.log1p, feature_names_out=lambda *_: ["x"]),
}


@pytest.mark.parametrize("step", BYPASSES.values(), ids=BYPASSES)
def test_a_function_is_numpys_own_and_makes_one_number_of_one_number(step, monkeypatch):
    """Also where it stands inside another step, after a private one, or under a name in NumPy."""
    if isinstance(step.func, np.ufunc) and "vectorized" not in step.func.__name__:  # which would make it NumPy's own
        monkeypatch.setattr(np, step.func.__name__, step.func, raising=False)
    around = (make_column_transformer((step, ["age"])), make_pipeline(step), step)
    orders = [[one, LogisticRegression()] for one in around] + [[PrivateScaler(), step, LogisticRegression()]]
    for steps in orders:
        with transcript() as made_steps, pytest.raises(ValueError, match="treats each number by itself"):
            made(*steps).fit(FRAME[["age"]], Y)
        assert made_steps == []


def test_every_function_that_is_taken_treats_numbers_by_themselves_also_beside_wild_ones():
    """To the last bit, on the processor that runs this: alone, in any place, and beside any other number."""
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(size=24), 50.0 * rng.normal(size=8), rng.uniform(size=8)])
    wild = np.array([1e300, -1e6, np.inf, np.nan, 0.0, 1e-310, 2.0**60, -0.0, 700.0])
    functions = {
        f for room in (np, scipy.special) for f in vars(room).values() if isinstance(f, np.ufunc) and is_plain(f)
    }
    assert {np.log1p, np.sqrt, np.exp, scipy.special.expit} <= functions
    for function in functions:
        with np.errstate(all="ignore"):
            try:
                alone = np.array([function(np.array([value]))[0] for value in values])
            except TypeError:  # of whole numbers only
                continue
            for _ in range(3):
                table = np.concatenate([values, rng.choice(wild, rng.integers(1, 40))])
                order, shift = rng.permutation(len(table)), rng.integers(8)
                room = np.zeros(len(table) + 8)[shift : shift + len(table)]
                room[:] = table[order]
                found = np.empty_like(function(room))
                found[order] = function(room)
                np.testing.assert_array_equal(found[: len(values)], alone, err_msg=function.__name__)


@pytest.mark.parametrize("norm", ["l1", "l2", "max"])
def test_rows_are_normalised_by_themselves_wherever_they_lie(norm):
    rng, step = np.random.default_rng(1), preprocessing.Normalizer(norm)
    for d in (1, 2, 3, 5, 7, 8, 13, 31, 64):
        table = rng.normal(size=(40, d)) * 10.0 ** rng.integers(-3, 4, (40, 1))
        table[::7] *= 1e200  # whose squares no float holds
        alone = np.vstack([step.fit_transform(row[None, :].copy()) for row in table])
        for shift in range(1, 9):  # as if so many rows were absent
            np.testing.assert_array_equal(step.fit_transform(table[shift:]), alone[shift:])


NORMALIZER, BINARIZER = preprocessing.Normalizer, preprocessing.Binarizer


@pytest.mark.parametrize(
    "after",
    [[NORMALIZER()], [NUMBERS(np.log1p)], [BINARIZER()], [RowClipper(3.0), NUMBERS()], [NUMBERS(np.cos)]],
)
@pytest.mark.parametrize("model", [LogisticRegression(), LogisticRegression(solver="coordinate")])
def test_steps_that_treat_each_row_by_itself_may_follow_private_ones_under_the_same_plan(after, model):
    """The plan is fixed before: tables in which all is found, and in which nothing is, have the same."""
    other = FRAME.assign(job=[f"person {k}" for k in range(N)], town=[f"town {k}" for k in range(N)])
    fits = [made(PrivateEncoder(max_categories=5), *after, model).fit(frame, Y) for frame in (FRAME, other)]
    assert fits[0].plan_ == fits[1].plan_
    widths = [11, 11] if model.solver == "coordinate" else [6, 1]
    assert [fit[:-1].transform(frame).shape[1] for fit, frame in zip(fits, (FRAME, other), strict=True)] == widths
    by_hand = fits[0][0].transform(FRAME)
    for step in after:
        by_hand = clone(step).fit_transform(by_hand)
    np.testing.assert_array_equal(fits[0][:-1].transform(FRAME), by_hand)
    np.testing.assert_array_equal(fits[0].predict_proba(FRAME), fits[0][-1].predict_proba(by_hand))
    assert fits[0].score(FRAME, Y) > 0.8
    assert {r.name.split("/")[0] for r in fits[0].plan_.plan.releases} == {"privateencoder", "logisticregression"}


def test_what_follows_a_private_step_keeps_names_and_loses_bounds():
    model = fitted(PrivateEncoder(), NORMALIZER(), LogisticRegression(bounds={"age": (0, 1)}))
    assert model[:-1].get_feature_names_out().tolist()[-2:] == ["town=B", "age"]
    assert (model[-1].clip_low_[-1], model[-1].clip_high_[-1]) == (0.0, 1.0)
    assert [r.name for r in model.plan_.plan.releases if "scale" in r.name]
    for after in ([BINARIZER()], [NORMALIZER()]):
        declared = fitted(PrivateEncoder(), *after, LogisticRegression(bounds=(0, 1)))
        assert (set(declared[-1].clip_low_), set(declared[-1].clip_high_)) == ({0.0}, {1.0})
    with pytest.raises(ValueError, match="go by name, or are one pair"):
        fitted(PrivateEncoder(), PrivateScaler(), NORMALIZER(), LogisticRegression(bounds={5: (0, 1)}))
    scaled = fitted(PrivateEncoder(), PrivateScaler(), NORMALIZER(), LogisticRegression(bounds=(-1, 1)))
    assert set(scaled[-1].clip_low_) == {-1.0}
    np.testing.assert_allclose(np.linalg.norm(scaled[:-1].transform(FRAME), axis=1), 1.0)
    last = fitted(PrivateEncoder(), PCA(2), NORMALIZER()).set_output(transform="pandas")
    assert type(last.transform(FRAME)) is pd.DataFrame
    assert [r.name.split("/")[0] for r in last.plan_.plan.releases][-1] == "pca"


@pytest.mark.parametrize(
    ("after", "message"),
    [
        (NUMBERS(np.log), "log, is not finite at 0 or 1"),
        (NUMBERS(np.reciprocal), "reciprocal, is not finite at 0 or 1"),
        (NORMALIZER(), "Normalizer, takes no missing values"),
        (NUMBERS(np.log1p, validate=True), "FunctionTransformer, takes no missing values"),
        (NUMBERS(np.invert), "cannot take this table"),
        (HashingVectorizer(), "HashingVectorizer, must come before the private steps"),
        (make_column_transformer((NUMBERS(np.log1p), [0])), "ColumnTransformer, must come before the private steps"),
        (make_pipeline(NORMALIZER()), "Pipeline, must come before the private steps"),
        (preprocessing.StandardScaler(), "may learn from the rows"),
    ],
)
@pytest.mark.parametrize("holes", ["known", "to parse"])
def test_what_could_stop_a_step_after_a_release_is_refused_before_it(after, message, holes):
    age = np.where(Y == 1, np.nan, FRAME["age"]) if holes == "known" else FRAME["age"].astype(str)
    encoder = PrivateEncoder(parse=[] if holes == "known" else ["age"])
    with transcript() as steps, pytest.raises((ValueError, TypeError), match=message):
        made(encoder, after, LogisticRegression()).fit(FRAME.assign(age=age), Y)
    assert steps == []


@pytest.mark.parametrize("function", sorted(NUMBERS_FOR_ALL, key=lambda function: function.__name__))
def test_functions_that_are_said_to_make_no_holes_make_none(function):
    sizes = np.logspace(-323, 308.25, 700)
    every = np.concatenate([sizes, -sizes, np.linspace(-60.0, 60.0, 2_001), [0.0, -0.0, np.finfo(float).max]])
    with np.errstate(all="ignore"):
        assert not np.isnan(np.asarray(function(every), dtype=float)).any()


def test_a_function_that_makes_no_holes_may_come_before_a_step_that_takes_none():
    frame = FRAME.assign(age=1e6 * (FRAME["age"] - 40.0))  # of both signs, whose exponential no float holds
    for function in (np.exp, np.tanh, np.cbrt):
        model = made(PrivateEncoder(), NUMBERS(function), NORMALIZER(), LogisticRegression()).fit(frame, Y)
        assert np.isfinite(model.predict_proba(frame)).all()
        twice = made(PrivateScaler(), NUMBERS(function), BINARIZER(), NORMALIZER(), LogisticRegression())
        assert np.isfinite(twice.fit(frame[["age"]], Y).predict_proba(frame[["age"]])).all()
    with transcript() as steps, pytest.raises(ValueError, match=r"np\.log1p, makes some"):
        made(PrivateEncoder(), NUMBERS(np.log1p), NORMALIZER(), LogisticRegression()).fit(FRAME, Y)
    assert steps == []


def test_numbers_beyond_a_float_and_holes_do_not_stop_what_follows():
    age = FRAME["age"].where(FRAME["age"] < 50) * 100.0  # whose exponential no float holds
    frame = FRAME.assign(age=np.where(FRAME.index == 3, -5.0, age))
    for function in (np.exp, np.sqrt, np.cosh):
        model = made(PrivateEncoder(), NUMBERS(function), LogisticRegression()).fit(frame, Y)
        assert model.predict(frame).shape == (N,)
        assert not np.isinf(model[:-1].named_steps.privateencoder.transform(frame)).any()
        assert np.isfinite(model[-1].coef_).all()


def test_steps_that_treat_each_row_by_itself_are_taken():
    encode = make_column_transformer(
        (ONE_HOT(**DECLARED), ["job"]),
        (make_pipeline(NUMBERS(np.log1p), preprocessing.Normalizer()), ["age"]),
        (ORDINAL(categories=[["A"]], handle_unknown="use_encoded_value", unknown_value=-1), ["town"]),
        remainder="drop",
    )
    model = made(encode, "passthrough", LogisticRegression()).fit(FRAME, Y)
    assert model.score(FRAME, Y) > 0.8
    assert model.steps_[1][1] == "passthrough"
    np.testing.assert_allclose(model.to_sklearn().predict_proba(FRAME), model.predict_proba(FRAME))
    chosen = make_column_transformer(("passthrough", make_column_selector(dtype_include="number")))
    made(chosen, RowClipper(5.0), preprocessing.Binarizer(), LogisticRegression()).fit(FRAME, Y)
    texts = [f"{job} {job}s" for job in JOB]
    hashed = made(HashingVectorizer(n_features=64), LogisticRegression()).fit(texts, Y)
    assert hashed.predict(texts).shape == (N,)


def test_the_share_of_zeros_among_the_rows_does_not_decide_how_they_are_stored():
    few = make_column_transformer((ONE_HOT(categories=[["x"]], handle_unknown="ignore"), ["job"]))
    for step in (few, make_column_transformer((HashingVectorizer(n_features=16), "job"))):
        kinds = set()
        for value in ("x", ""):
            with transcript() as steps:
                made(step, LogisticRegression()).fit(FRAME.assign(job=value), Y)
            kinds.add(tuple(s.name for s in steps))
        assert len(kinds) == 1


def nested(step):
    return ColumnTransformer([("inner", step, [0, 1, 2])])


@pytest.mark.parametrize("around", [make_pipeline, nested, lambda step: make_pipeline(nested(step))])
def test_one_row_changes_neither_the_plan_nor_the_steps_also_where_columns_are_chosen_inside_another_step(around):
    """With three of nine cells in some rows and two in the others, one row more takes the density to 0.3."""
    words = ONE_HOT(categories=[list("abcd")] * 2, handle_unknown="ignore")
    fits = []
    for full in (1049, 1050):
        known = np.where(np.arange(N) < full, "a", "z")
        frame = pd.DataFrame({"p": np.array(list("abcd") * N)[:N], "q": known, "age": FRAME["age"]})
        inner = ColumnTransformer([("o", words, [0, 1]), ("p", "passthrough", [2])])
        fits.append(made(around(inner), LogisticRegression(classes=[0, 1])).fit(frame, Y))
    assert fits[0].plan_ == fits[1].plan_
    assert pickle.dumps(fits[0].steps_[0]) == pickle.dumps(fits[1].steps_[0])


def test_texts_of_which_no_cell_is_zero_are_stored_as_all_others_are():
    kept = []
    for word in ("clerk", ""):
        step = make_column_transformer((HashingVectorizer(n_features=1, norm=None), "job"))
        model = made(step, LogisticRegression(classes=[0, 1])).fit(FRAME.assign(job=["clerk"] * (N - 1) + [word]), Y)
        kept.append((model.plan_, pickle.dumps(model.steps_[0])))
    assert kept[0] == kept[1]


def test_rows_in_a_list_are_refused_and_texts_in_a_list_are_not():
    rows = FRAME[["job", "age"]].to_numpy(dtype=object).tolist()
    jobs = ONE_HOT(**DECLARED)
    first = (PrivateEncoder(), jobs, make_pipeline(jobs), ColumnTransformer([("jobs", jobs, [0])]))
    for step in first:
        with transcript() as steps, pytest.raises(TypeError, match="data frame or an array, got list"):
            made(step, "passthrough", LogisticRegression()).fit([row[:1] for row in rows], Y)
        assert steps == []
    model = made(jobs, LogisticRegression()).fit(FRAME[["job"]], Y)
    with pytest.raises(TypeError, match="data frame or an array, got list"):
        model.predict([row[:1] for row in rows])
    hashed = made(make_pipeline("passthrough", HashingVectorizer(n_features=8)), LogisticRegression())
    assert hashed.fit(JOB.tolist(), Y).predict(JOB.tolist()).shape == (N,)


def test_errors_of_a_step_come_without_the_data_they_quote():
    secret = "secret-of-one-person"
    frame = FRAME.assign(age=FRAME["age"].astype(object).where(FRAME.index != 7, secret))
    step = make_column_transformer((NUMBERS(np.log1p), ["age"]))
    with pytest.raises((TypeError, ValueError), match="step 'columntransformer', ColumnTransformer, cannot") as told:
        made(step, LogisticRegression()).fit(frame, Y)
    assert secret not in str(told.value)
    assert told.value.__context__ is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of the logarithm of what is negative
        with pytest.raises(ValueError, match="infinity"):
            make_private_pipeline(NUMBERS(np.log), LogisticRegression()).fit(FRAME[["age"]] * 0.0, Y)


def test_categories_before_a_model_may_be_asked_for_as_a_data_frame():
    sexes = preprocessing.OneHotEncoder(categories=[["f", "m"]], handle_unknown="ignore")
    step = make_column_transformer((sexes, ["sex"]), remainder="passthrough", verbose_feature_names_out=False)
    frame = pd.DataFrame({"sex": ["f", "m"] * 200, "age": np.arange(400.0)})
    pipeline = make_private_pipeline(step, LogisticRegression(bounds={"age": (0, 400)})).set_output(transform="pandas")
    model = pipeline.fit(frame, [0, 1] * 200)[-1]
    assert model.feature_names_in_.tolist() == ["sex_f", "sex_m", "age"]
    assert model.clip_high_[2] == 400.0
