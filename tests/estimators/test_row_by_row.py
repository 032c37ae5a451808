"""What a step makes of one row does not change with another row: with its holes, its place or its length."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer, FunctionTransformer, Normalizer, OneHotEncoder, OrdinalEncoder

from tacit import PCA, LogisticRegression, PrivateEncoder, make_private_pipeline
from tacit.estimators.joint import Terms, planned_jointly, run_jointly
from tacit.estimators.rowstage import RowStage
from tacit.estimators.stage import Facts
from tacit.estimators.stateless import Stateless
from tacit.privacy import Gate

from .tables import quiet

pytestmark = quiet
HALVES = [[3.5, 5]] * 2
STEPS = {
    "a function": FunctionTransformer(np.log1p),
    "a sign": FunctionTransformer(np.negative),
    "a square": FunctionTransformer(np.square),
    "of columns": make_column_transformer((FunctionTransformer(np.sqrt), ["a"]), remainder="passthrough"),
    "one-hot": OneHotEncoder(categories=HALVES, handle_unknown="ignore", sparse_output=False),
    "ordinal": OrdinalEncoder(categories=HALVES, handle_unknown="use_encoded_value", unknown_value=-1),
}


def nullable(kind, cells):
    if kind == "polars":
        return pl.DataFrame({name: pl.Series(cells, dtype=pl.UInt8) for name in "ab"})
    return pd.DataFrame({name: pd.array(cells, dtype=kind) for name in "ab"})


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
@pytest.mark.parametrize("kind", ["polars", "uint8[pyarrow]", "UInt8"])
def test_a_null_of_one_person_does_not_change_the_numbers_of_others(step, kind):
    cells = [3, 5, 7, 200, 9]
    whole, holed = (
        np.asarray(Stateless("step", step).fit_transform(nullable(kind, own)), dtype=np.float64)
        for own in (cells, [*cells[:-1], None])
    )
    np.testing.assert_array_equal(whole[:-1], holed[:-1])


def test_bytes_are_refused_as_the_longest_cell_is_part_of_their_type():
    step = OneHotEncoder(categories=[[b"abcdef", b"x"]], handle_unknown="ignore", sparse_output=False)
    for last in (b"x", b"abcdef"):
        with pytest.raises(TypeError, match="holds bytes"):
            Stateless("step", step).fit_transform(np.array([[b"abc"], [last]]))


def test_no_row_reaches_a_step_between_private_ones_twice():
    X = np.full((4, 2), -1.0)
    side = np.full(2, np.inf)
    for copy in (True, False):
        stage = RowStage("step", Binarizer(threshold=-0.5, copy=copy), Facts(4, 2, None, X.copy(), None, -side, side))
        stage.run(X, None)
        np.testing.assert_array_equal(stage.transform(X), np.zeros((4, 2)))
    np.testing.assert_array_equal(X, -1.0)


@pytest.mark.parametrize("step", [Binarizer(threshold=-0.5, copy=False), Normalizer(copy=False)])
@pytest.mark.parametrize(
    "around", [lambda step: step, make_pipeline, lambda step: make_column_transformer((step, slice(0, 2)))]
)
def test_a_fit_leaves_the_rows_as_they_are(step, around):
    X = np.array([[-1.0, 3.0], [2.0, -4.0]] * 300)
    make_private_pipeline(around(step), LogisticRegression(), epsilon=2.0, random_state=0).fit(X, [0, 1] * 300)
    np.testing.assert_array_equal(X, [[-1.0, 3.0], [2.0, -4.0]] * 300)


def test_components_of_a_row_do_not_depend_on_how_many_rows_there_are():
    # Sums of such numbers overflow in one order of their terms and not in another.
    X = np.random.default_rng(0).choice([-1.0, 1.0], size=(320, 100)) * 1.7e308
    steps = [("encoder", PrivateEncoder()), ("pca", PCA(4)), ("last", PCA(1))]
    stages, promise = planned_jointly(steps, X, None, Terms(1.0, 1e-6, "add-remove", {}))
    run_jointly(stages, X, Gate.open(promise, seed=0))
    project = stages[1].transform
    for rows in range(len(X) - 30, len(X)):
        np.testing.assert_array_equal(project(X[:rows]), project(X)[:rows])


def test_a_cell_as_large_as_a_float_can_be_makes_no_warning():
    X = np.ones((400, 2))
    X[:50], X[60:110] = np.finfo(np.float64).max, np.finfo(np.float64).min  # whose sums are infinity less infinity
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for model in (LogisticRegression(random_state=0), PCA(1, random_state=0)):
            model.fit(X, [0, 1] * 200)
