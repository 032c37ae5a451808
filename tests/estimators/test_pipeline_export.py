"""`to_sklearn` of encoders and pipelines: the same from scikit-learn alone, or a refusal that says why."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import FunctionTransformer, Normalizer

from tacit import PCA, LogisticRegression, PrivateEncoder, Ridge, RowClipper

from .tables import FRAME, T, Y, fitted, made, quiet

pytestmark = quiet
RNG = np.random.default_rng(5)
M = 400
HOLES = pd.DataFrame(
    {
        "job": RNG.choice(["clerk", "nurse", None], M),
        "age": np.where(RNG.random(M) < 0.1, np.nan, RNG.normal(size=M)),
        "zip": RNG.choice([1.0, 2.0, 3.0, np.nan], M),
        "flag": RNG.random(M) < 0.5,
        "mixed": RNG.choice(["x", "7", "y", "x"], M),
        "size": RNG.choice(["1", "2.5", "-3e2"], M),
    }
)
HOLES.loc[3, "job"] = np.nan
NEW = pd.DataFrame(
    {"job": ["spy", None], "age": [0.5, np.nan], "zip": [7.0, 2.0], "flag": [True, False], "mixed": ["z", ""]}
).assign(size="4")


def same(encoder, frame):
    found, expected = encoder.to_sklearn().transform(frame), encoder.transform(frame)
    np.testing.assert_array_equal(found.astype(float), expected)


@pytest.mark.parametrize("fill", [False, True], ids=["as found", "as planned"])
@pytest.mark.parametrize("marked", [[], ["age"], ["job", "age", "zip"]])
def test_indicators_declared_numbers_votes_and_columns_of_zeros_are_exported(marked, fill):
    columns = ["job", "age", "zip", "flag", "mixed"] + ["size"] * (not fill)
    told = {"zip": [1, 2], "flag": [False, True]}
    parse = ["mixed"] + ["size"] * (not fill)
    encoder = PrivateEncoder(math.inf, missing_indicator=marked, categories=told, parse=parse).fit(HOLES[columns])
    if fill:
        encoder._fill(encoder._read(HOLES[columns]))
    same(encoder, HOLES[columns])
    same(encoder, NEW[columns])
    assert b"tacit" not in pickle.dumps(encoder.to_sklearn())


def test_an_array_of_texts_and_one_of_numbers_are_exported():
    texts = FRAME[["job", "town"]].to_numpy(dtype=object)
    encoder = PrivateEncoder(math.inf, missing_indicator=[0]).fit(texts)
    same(encoder, texts)
    numbers = HOLES[["age", "zip"]].to_numpy()
    same(PrivateEncoder(missing_indicator=[0], categories={1: [1, 3]}).fit(numbers), numbers)


@pytest.mark.parametrize("solver", ["gradient", "coordinate"])
def test_a_pipeline_predicts_the_same_without_tacit(solver):
    holes = FRAME.assign(town=FRAME["town"].where(FRAME["age"] < 50), age=FRAME["age"].where(FRAME["town"] == "A"))
    encoder = PrivateEncoder(missing_indicator=["age", "town"])
    model = made(encoder, LogisticRegression(solver=solver)).fit(holes, Y)
    plain = model.to_sklearn()
    assert all("tacit" not in type(step).__module__ for _, step in plain.steps)
    new = pd.concat([holes, pd.DataFrame({"job": ["spy"], "town": ["Z"], "age": [33.0]})])
    np.testing.assert_allclose(plain.predict_proba(new), model.predict_proba(new), rtol=1e-9)


def test_what_stands_between_is_exported_too():
    model = fitted(PrivateEncoder(), Normalizer(), PCA(2), FunctionTransformer(np.cos), Ridge(), y=T)
    np.testing.assert_allclose(model.to_sklearn().predict(FRAME), model.predict(FRAME), rtol=1e-9)


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        (PrivateEncoder(math.inf, parse=["size"], missing_indicator=["size"]), "column 'size' is text of which a vote"),
        (PrivateEncoder(math.inf, parse=["mixed"], missing_indicator=["mixed"]), "column 'mixed' is text by a vote"),
        (PrivateEncoder(math.inf, categories={"zip": [1, "a"]}), "column 'zip' holds numbers, and a declared category"),
    ],
)
def test_what_scikit_learn_cannot_make_alike_is_refused_by_column(encoder, message):
    with pytest.raises(TypeError, match=message):
        encoder.fit(HOLES).to_sklearn()


def test_what_has_no_counterpart_is_refused_by_name():
    with pytest.raises(TypeError, match="step 'rowclipper', RowClipper, has no counterpart"):
        fitted(PrivateEncoder(), RowClipper(), LogisticRegression()).to_sklearn()
    with pytest.raises(TypeError, match="column 'size' is text of which a vote made a number, with columns of zeros"):
        made(PrivateEncoder(parse=["size"]), LogisticRegression(solver="coordinate"), epsilon=50.0).fit(
            HOLES, np.arange(M) % 2
        ).to_sklearn()
    nothing = PrivateEncoder(0.5, random_state=0).fit(pd.DataFrame({"name": [f"person {k}" for k in range(M)]}))
    with pytest.raises(TypeError, match="no column has a category"):
        nothing.to_sklearn()
