"""`PrivatePipeline`: one budget, one plan and one guarantee, and scikit-learn's interface to the steps."""

import inspect
import math
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from sklearn import preprocessing
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.model_selection import GridSearchCV, cross_val_score

import tacit
from tacit import (
    PCA,
    Lasso,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    PrivateEncoder,
    PrivatePipeline,
    PrivateScaler,
    Ridge,
    make_private_pipeline,
)
from tacit.privacy import epsilon_of
from tacit.solvers import Coordinate
from tests.guarantees.recorder import transcript

from .tables import FRAME, JOB, RNG, N, T, Y, fitted, made, quiet

pytestmark = quiet

# --- one budget ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_the_guarantee_is_that_of_one_plan_of_all_steps(adjacency):
    with transcript() as steps:
        model = fitted(epsilon=1.0, delta=1e-5, adjacency=adjacency)
    names = [release.name for release in model.plan_.plan.releases]
    assert names[0] == "privateencoder/categories"
    assert all(name.startswith("logisticregression/") for name in names[1:])
    stated = model.guarantee_
    assert stated.event == model.plan_.event
    assert (stated.epsilon, stated.delta, stated.adjacency, stated.n_rows) == (1.0, 1e-5, adjacency, N)
    assert stated.d0 == pytest.approx(1e-7)
    assert 0.99 < epsilon_of(stated.event, stated.delta - stated.d0) <= 1.0
    made_names = [f"{'privateencoder' if s.name == 'categories' else 'logisticregression'}/{s.name}" for s in steps]
    planned = [r.name for r in model.plan_.plan.releases for _ in range(r.count)]
    assert sorted(made_names) == sorted(planned)
    for step, name in zip(steps, made_names, strict=True):
        assert step.multiplier == model.plan_.multiplier(name)


def test_shares_are_parts_of_mu_squared():
    for share, shares in ((0.1, None), (0.4, {"privateencoder": 0.4})):
        plan = fitted(epsilon=1.0, shares=shares).plan_
        parts = [r.count / z / z for r, z in zip(plan.plan.releases, plan.multipliers, strict=True)]
        assert parts[0] / sum(parts) == pytest.approx(share, rel=1e-9)


def test_nothing_is_kept_for_an_encoder_that_has_nothing_to_find():
    declared = {"job": ["clerk", "nurse", "smith"], "town": ["A", "B"]}
    model = fitted(PrivateEncoder(categories=declared), LogisticRegression())
    assert model.guarantee_.d0 == 0.0
    assert {r.name.split("/")[0] for r in model.plan_.plan.releases} == {"logisticregression"}
    assert model.guarantee_.solver == "gradient"


def test_all_that_is_planned_is_fixed_before_the_encoder_has_released_anything():
    """Tables in which all is found, and in which nothing is, have the same plan to the last digit."""
    other = FRAME.assign(job=[f"person {k}" for k in range(N)], town=[f"town {k}" for k in range(N)])
    for model in (LogisticRegression(), LogisticRegression(solver="coordinate"), Ridge(), PCA(2)):
        y = T if isinstance(model, Ridge) else Y
        plans, widths = [], []
        for frame in (FRAME, other):
            pipeline = made(PrivateEncoder(max_categories=5), model).fit(frame, y)
            plans.append(pipeline.plan_)
            widths.append(pipeline[:-1].transform(frame).shape[1])
        assert plans[0] == plans[1]
        grows = "coordinate" in str(model) or isinstance(model, PCA)  # columns of zeros stand for what is missing
        assert widths == ([11, 11] if grows else [6, 1])


def test_a_solver_that_needs_the_planned_width_gets_columns_of_zeros():
    model = fitted(PrivateEncoder(max_categories=4), LogisticRegression(solver="coordinate"))
    names = model[:-1].get_feature_names_out().tolist()
    assert names[:4] == ["job=clerk", "job=nurse", "job=smith", "job is empty"]
    assert names[4:] == ["town=A", "town=B", "town is empty", "town is empty'", "age"]
    assert model[-1].coef_.shape == (1, 9)
    assert model.score(FRAME, Y) > 0.8


def test_steps_keep_the_whole_guarantee_under_the_name_of_their_solver():
    model = fitted()
    assert model.guarantee_.solver == "encoder, gradient"
    assert [step.guarantee_.solver for _, step in model.steps_] == ["encoder", "gradient"]
    assert all(step.guarantee_.event == model.guarantee_.event for _, step in model.steps_)
    assert all(step.epsilon == 5.0 for _, step in model.steps_)
    assert [step.epsilon for _, step in model.steps] == [1.0, 1.0]  # what was given stays as it is


# --- what is known is handed on --------------------------------------------------------------------------------------


def test_columns_of_zeros_and_ones_reach_the_model_with_their_bounds_and_others_by_name():
    model = fitted(PrivateEncoder(missing_indicator=["age"]), LogisticRegression(bounds={"age": (18, 70)}))
    names = model[:-1].get_feature_names_out().tolist()
    assert names == ["job=clerk", "job=nurse", "job=smith", "town=A", "town=B", "age", "age is missing"]
    np.testing.assert_array_equal(model[-1].clip_low_, [0, 0, 0, 0, 0, 18, 0])
    np.testing.assert_array_equal(model[-1].clip_high_, [1, 1, 1, 1, 1, 70, 1])
    assert not [r.name for r in model.plan_.plan.releases if "scale" in r.name]
    one = fitted(PrivateEncoder(), LogisticRegression(bounds=(18, 70)))
    assert one[-1].clip_high_.tolist() == [1, 1, 1, 1, 1, 70]


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({"income": (0, 1)}, "bounds names the column 'income'"),
        ({"job": (0, 1)}, "bounds names the column 'job'"),
        ({2: (18, 70)}, "go by name"),
        ([(0, 1)] * 6, "go by name"),
    ],
)
def test_bounds_that_do_not_fit_are_refused_before_anything_is_released(bounds, message):
    with transcript() as steps, pytest.raises(ValueError, match=message):
        fitted(PrivateEncoder(), LogisticRegression(bounds=bounds))
    assert steps == []


def test_a_scaler_hands_on_bounds_of_three_scales():
    model = fitted(PrivateEncoder(), PrivateScaler(), LogisticRegression())
    assert model.guarantee_.solver == "encoder, scaler, gradient"
    assert np.all(model[-1].clip_high_ == 3.0)
    assert model.score(FRAME, Y) > 0.8
    with pytest.raises(ValueError, match="declare none on the model"):
        fitted(PrivateEncoder(), PrivateScaler(), LogisticRegression(bounds={"age": (0, 1)}))


def test_pca_and_regressions_and_classes():
    assert fitted(PrivateEncoder(), PCA(2), LogisticRegression()).predict_proba(FRAME).shape == (N, 2)
    assert fitted(PrivateEncoder(), PCA(2)).transform(FRAME).shape == (N, 2)
    assert fitted(PrivateEncoder(), Ridge(), y=T).score(FRAME, T) > 0.5
    assert fitted(PrivateEncoder(), LinearRegression(y_bounds=(0, 10)), y=T).score(FRAME, T) > 0.5
    assert fitted(PrivateEncoder(), Lasso(alpha=0.01), y=T).predict(FRAME).shape == (N,)
    assert fitted(PrivateEncoder(), LinearSVC()).decision_function(FRAME).shape == (N,)
    three = fitted(PrivateEncoder(), LogisticRegression(solver="dual", row_norm=100.0), y=JOB)
    assert three.classes_.tolist() == ["clerk", "nurse", "smith"]
    np.testing.assert_allclose(three.predict_proba(FRAME).sum(axis=1), 1.0)


def test_without_an_encoder_a_pipeline_of_one_model_is_the_model():
    X = FRAME[["age"]].assign(b=Y + RNG.normal(size=N))
    alone = LogisticRegression(5.0, random_state=0, bounds={"age": (18, 70)}).fit(X, Y)
    model = made(LogisticRegression(bounds={"age": (18, 70)})).fit(X, Y)
    np.testing.assert_array_equal(model[-1].coef_, alone.coef_)
    assert model.guarantee_ == alone.guarantee_
    np.testing.assert_array_equal(model.predict(X), alone.predict(X))


def test_polars_gives_what_pandas_gives():
    model, other = fitted(), made(PrivateEncoder(), LogisticRegression()).fit(pl.from_pandas(FRAME), Y)
    np.testing.assert_array_equal(model[-1].coef_, other[-1].coef_)
    np.testing.assert_array_equal(model.predict(FRAME), other.predict(pl.from_pandas(FRAME)))


def test_nothing_is_raised_once_something_was_released():
    """Names that nobody shares, one column, no number: nothing is found, and a model of nothing but an intercept."""
    frame = pd.DataFrame({"name": [f"person {k}" for k in range(N)]})
    for model in (LogisticRegression(), LogisticRegression(solver="sgd"), PCA(3)):
        pipeline = made(PrivateEncoder(), model, epsilon=0.5).fit(frame, Y)
        assert pipeline[0].categories_ == {"name": ()}
    assert made(PrivateEncoder(), LogisticRegression(), epsilon=1.0).fit(frame, Y).predict(frame).shape == (N,)


@pytest.mark.parametrize("column", [np.where(FRAME["age"] > 59, np.inf, FRAME["age"]), FRAME["age"] * 1j])
def test_bad_rows_are_refused_before_anything_is_released(column):
    with transcript() as steps, pytest.raises((ValueError, TypeError), match="age"):
        made(PrivateEncoder(), LogisticRegression()).fit(FRAME.assign(age=column), Y)
    with pytest.raises(ValueError, match="y"):
        made(PrivateEncoder(), LogisticRegression()).fit(FRAME, np.where(Y == 1, np.nan, 0.0))
    assert steps == []


@pytest.mark.parametrize("after", [[PrivateScaler(), LogisticRegression()], [PCA(2), LogisticRegression()], [PCA(2)]])
def test_one_cell_that_is_no_number_does_not_stop_a_step_after_a_release(after):
    """It is a hole, which every step takes: whatever the rows are, the same releases are made."""
    plans = []
    for cell in ("31", "thirty"):
        age = ["31"] * (N - 1) + [cell]
        with transcript() as steps:
            made(PrivateEncoder(parse=["age"]), *after).fit(FRAME.assign(age=age), Y)
        plans.append([step.name for step in steps])
    assert plans[0] == plans[1] != []
    made(PrivateEncoder(), *after).fit(FRAME.assign(age=np.where(Y == 1, np.nan, FRAME["age"])), Y)


def test_a_scaler_behind_an_encoder_knows_the_columns_of_zeros_and_ones():
    whole = made(PrivateEncoder(trust_dtypes=True), PrivateScaler(bounds={"age": (0, 120)}), LogisticRegression())
    frame = FRAME.assign(flag=np.arange(N) % 3 == 0)
    scaler = whole.fit(frame, Y)[1]
    names = list(whole[0].get_feature_names_out())
    others = [k for k, name in enumerate(names) if name != "age"]
    assert (scaler.clip_low_[names.index("age")], scaler.clip_high_[names.index("age")]) == (0.0, 120.0)
    np.testing.assert_array_equal(scaler.clip_low_[others], 0.0)
    np.testing.assert_array_equal(scaler.clip_high_[others], 1.0)
    assert not any(name.startswith("privatescaler/") for name in (r.name for r in whole.plan_.plan.releases))
    with pytest.raises(ValueError, match="names the column 'height'"):
        made(PrivateEncoder(), PrivateScaler(bounds={"height": (0, 1)}), LogisticRegression()).fit(FRAME, Y)


def test_types_that_an_encoder_trusts_declare_truth_values_unless_the_model_says_more():
    table = pd.DataFrame({"job": JOB, "is_new": T > 4.0})
    for bounds, expected in ((None, (0.0, 1.0)), ({"is_new": (0.0, 0.5)}, (0.0, 0.5))):
        model = made(PrivateEncoder(trust_dtypes=True), LogisticRegression(bounds=bounds)).fit(table, Y)
        assert not [release for release in model.plan_.plan.releases if "scale" in release.name]
        place = list(model[0].get_feature_names_out()).index("is_new")
        assert (model[-1].clip_low_[place], model[-1].clip_high_[place]) == expected
    plan = made(PrivateEncoder(), LogisticRegression()).fit(table, Y).plan_.plan
    assert [release for release in plan.releases if "scale" in release.name]


@pytest.mark.parametrize("after", [PrivateScaler(), PCA(1), LogisticRegression(classes=[0, 1])])
def test_a_row_whose_components_no_float_holds_does_not_stop_the_next_step(after):
    rows = np.random.default_rng(1).normal(size=(200, 3))
    rows[7] = 1.7e308
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        made(PCA(2), after).fit(rows, Y[:200])


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(C=[1.0] * 6),
        LogisticRegression(C=[1.0] * 41),
        LogisticRegression(coef_bounds=(None, np.ones(41))),
        LogisticRegression(solver=Coordinate(coef_init=[0.0] * 41)),
        LogisticRegression(solver=Coordinate(smoothness=[1.0] * 41)),
        Ridge(alpha=np.ones(41)),
        Lasso(alpha=np.ones(41)),
    ],
)
def test_numbers_for_each_feature_are_refused_where_nobody_knows_how_many_there_are(model):
    for before in ([PrivateEncoder()], [PrivateEncoder(), PrivateScaler()]):
        with transcript() as steps, pytest.raises(ValueError, match="a number for each feature"):
            made(*before, model).fit(FRAME, T if isinstance(model, Ridge | Lasso) else Y)
        assert steps == []


def test_numbers_for_each_feature_are_taken_where_their_number_is_known():
    declared = PrivateEncoder(categories={"job": ["clerk", "nurse", "smith"], "town": ["A", "B"]})
    assert fitted(declared, LogisticRegression(C=[1.0] * 6)).score(FRAME, Y) > 0.8
    assert fitted(PrivateEncoder(), PCA(2), LogisticRegression(C=[1.0, 2.0])).predict(FRAME).shape == (N,)


# --- scikit-learn's interface ----------------------------------------------------------------------------------------


def test_signatures_and_parameters():
    defaults = {"epsilon": 1.0, "delta": None, "adjacency": "add-remove", "shares": None, "random_state": None}
    for signature in map(inspect.signature, (PrivatePipeline, make_private_pipeline)):
        found = {name: p.default for name, p in signature.parameters.items() if name != "steps"}
        assert found == defaults | {"verbose": 0}
    model = made(PrivateEncoder(), LogisticRegression())
    assert model.get_params()["logisticregression__C"] == 1.0
    assert model.get_params()["privateencoder"] is model.steps[0][1]
    model.set_params(logisticregression__C=0.5, epsilon=2.0, privateencoder=PrivateEncoder(max_categories=3))
    assert (model.steps[1][1].C, model.epsilon, model.steps[0][1].max_categories) == (0.5, 2.0, 3)
    again = clone(model)
    assert again.get_params()["privateencoder__max_categories"] == 3
    assert again.steps[0][1] is not model.steps[0][1]
    with pytest.raises(ValueError, match="Invalid parameter"):
        model.set_params(nothing=1)


def test_steps_by_name_number_and_slice():
    model = made(PrivateEncoder(), LogisticRegression())
    assert model["privateencoder"] is model.steps[0][1] is model[0] is model.named_steps.privateencoder
    model.fit(FRAME, Y)
    assert model.named_steps.logisticregression.coef_.shape == (1, 6)
    assert isinstance(model[:-1], PrivatePipeline)
    assert len(model) == 2
    assert model[:-1].transform(FRAME).shape == (N, 6)
    assert model.feature_names_in_.tolist() == ["job", "town", "age"]
    assert model.n_features_in_ == 3
    with pytest.raises(ValueError, match="step of 1"):
        model[::2]


def test_what_the_last_step_cannot_do_the_pipeline_cannot():
    assert is_classifier(made(PrivateEncoder(), LogisticRegression()))
    assert is_regressor(made(PrivateEncoder(), Ridge()))
    assert not hasattr(made(PrivateEncoder(), LinearSVC()), "predict_proba")
    assert not hasattr(made(PrivateEncoder(), LogisticRegression()), "transform")
    assert not hasattr(made(PrivateEncoder(), PCA(2)), "predict")


def test_set_output_scores_searches_and_pickles():
    model = made(PrivateEncoder()).set_output(transform="pandas")
    assert list(model.fit_transform(FRAME).columns) == [
        "job=clerk",
        "job=nurse",
        "job=smith",
        "town=A",
        "town=B",
        "age",
    ]
    whole = made(PrivateEncoder(), LogisticRegression()).set_output(transform="pandas").fit(FRAME, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        whole.predict(FRAME)
        pickled = pickle.loads(pickle.dumps(whole))
    np.testing.assert_array_equal(pickled.predict_log_proba(FRAME), whole.predict_log_proba(FRAME))
    assert cross_val_score(made(PrivateEncoder(), LogisticRegression()), FRAME, Y, cv=2).min() > 0.7
    search = GridSearchCV(made(PrivateEncoder(), LogisticRegression()), {"logisticregression__C": [0.1, 1.0]}, cv=2)
    assert search.fit(FRAME, Y).best_score_ > 0.7


def test_progress_is_told_in_the_names_of_the_plan(capsys):
    fitted(verbose=1)
    assert "(logisticregression/gradients)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("steps", "terms", "message"),
    [
        ([("a", PrivateEncoder()), ("a", LogisticRegression())], {}, "different names"),
        ([("a__b", LogisticRegression())], {}, "without __"),
        ([("a/b", LogisticRegression())], {}, "without __ and /"),
        ([("epsilon", LogisticRegression())], {}, "no parameters"),
        ([("a", preprocessing.Normalizer())], {}, "needs a private step"),
        ([("a", LogisticRegression()), ("b", PCA())], {}, "must be the last one"),
        ([("a", PrivateScaler()), ("b", HashingVectorizer()), ("c", Ridge())], {}, "before the private steps"),
        ([("a", PrivateScaler()), ("b", PrivateEncoder()), ("c", Ridge())], {}, "before other private steps"),
        ([("a", PrivateEncoder(epsilon=2.0)), ("b", Ridge())], {}, "step 'a' has epsilon=2.0"),
        ([("a", PrivateEncoder()), ("b", Ridge(random_state=3))], {}, "step 'b' has random_state=3"),
        ([("a", PrivateEncoder()), ("b", Ridge())], {"shares": {"b": 0.5}}, "private steps but the last: a"),
        ([("a", PrivateEncoder()), ("b", Ridge())], {"shares": {"a": 1.0}}, "below 1|between 0 and 1"),
        ([("a", PrivateScaler()), ("b", PCA(1)), ("c", Ridge())], {"shares": {"a": 0.6, "b": 0.5}}, "leave something"),
        ([("a", Ridge())], {"epsilon": -1.0}, "epsilon"),
        ([("a", Ridge())], {"verbose": -1}, "verbose"),
    ],
)
def test_pipelines_that_make_no_sense_are_refused(steps, terms, message):
    X = FRAME[["age"]] if isinstance(steps[0][1], PrivateScaler) and len(steps) == 3 else FRAME
    with transcript() as made_steps, pytest.raises(ValueError, match=message):
        PrivatePipeline(steps, **terms).fit(X, T)
    assert made_steps == []


def test_sparse_rows_and_infinite_epsilon():
    X = csr_array(np.eye(3)[np.unique(JOB, return_inverse=True)[1]])
    assert made(LogisticRegression(), epsilon=50.0).fit(X, Y).predict(X).shape == (N,)
    model = fitted(epsilon=math.inf)
    assert "not private" in str(model.guarantee_)
    assert model.score(FRAME, Y) > 0.85
    assert tacit.PrivatePipeline is PrivatePipeline
