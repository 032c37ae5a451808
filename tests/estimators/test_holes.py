"""Missing values count as the released centre of their column: in a fit, in predictions, in exports and in files."""

import math

import numpy as np
import pytest
from scipy import sparse

from tacit import LogisticRegression, Ridge, load, make_private_pipeline, save
from tacit.preprocessing import PrivateEncoder
from tacit.solvers import Coordinate

from .support import every, quiet

pytestmark = quiet


def holes(X, part=0.2, seed=0):
    return np.where(np.random.default_rng(seed).random(X.shape) < part, np.nan, X)


@every
def test_a_missing_value_is_predicted_as_the_centre(kind):
    X, y = kind.problem(400)
    model = kind.make(epsilon=5.0, random_state=0).fit(holes(X), y)
    missing = holes(X, seed=1)
    filled = np.where(np.isnan(missing), model.fill_, np.clip(missing, model.clip_low_, model.clip_high_))
    np.testing.assert_array_equal(model.predict(missing), model.predict(filled))
    assert np.all((model.clip_low_ <= model.fill_) & (model.fill_ <= model.clip_high_))
    short = model.predict(sparse.csr_array(missing))
    np.testing.assert_allclose(short, model.predict(missing), rtol=1e-9, atol=1e-9)


def test_without_noise_a_fit_with_holes_is_a_fit_with_centres():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2_000, 3)) * [1.0, 100.0, 0.01] + [0.0, 500.0, 0.3]
    y = X @ [1.0, 0.01, 100.0] + rng.normal(size=2_000)
    missing = holes(X)
    model = Ridge(epsilon=math.inf).fit(missing, y)
    again = Ridge(epsilon=math.inf, bounds=list(zip(model.clip_low_, model.clip_high_, strict=True))).fit(
        np.where(np.isnan(missing), model.fill_, missing), y
    )
    np.testing.assert_allclose(model.coef_, again.coef_, rtol=0.01)


def test_histograms_do_not_see_what_is_missing():
    """Half of a column far from zero is missing: its centre stays where the rest is."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 2)) + np.array([50.0, -20.0])
    y = rng.random(20_000) < 0.5
    model = LogisticRegression(epsilon=3.0, random_state=0).fit(holes(X, 0.5), y)
    np.testing.assert_allclose(model.fill_, [50.0, -20.0], atol=2.0)


def test_sparse_rows_have_zero_for_what_is_missing_unless_they_are_a_table():
    """In a table what is missing is the column's centre, as in the dense one."""
    rng = np.random.default_rng(0)
    X = sparse.random_array((500, 40), density=0.1, rng=rng, format="csr")
    y = rng.integers(0, 2, size=500)
    missing = X.copy()
    missing.data[::7] = np.nan
    zeros = X.copy()
    zeros.data[::7] = 0.0
    for solver, same in (("text", zeros), ("gradient", missing.toarray())):
        model = LogisticRegression(epsilon=5.0, random_state=0, solver=solver)
        one, other = model.fit(missing, y).coef_, model.fit(same, y).coef_
        np.testing.assert_array_equal(one, other)
        np.testing.assert_allclose(model.predict_proba(missing), model.predict_proba(same), rtol=1e-9)


@pytest.mark.parametrize("solver", ["frank-wolfe", "text", "one-shot", "objective", "gradient", "sgd"])
def test_sparse_rows_without_holes_are_not_copied_and_stay_as_they_are(solver):
    rng = np.random.default_rng(0)
    X = sparse.random_array((300, 2_500), density=0.01, rng=rng, format="csr")
    y, before = rng.integers(0, 2, size=300), X.copy()
    model = LogisticRegression(epsilon=5.0, solver=solver, random_state=0)
    rows, _ = model._validated(X, y)
    assert np.shares_memory(rows.data, X.data)
    model.fit(X, y)
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(X, part), getattr(before, part))


def test_a_column_that_is_all_missing_says_nothing():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5_000, 3))
    y = X[:, 0] > 0
    X[:, 2] = np.nan
    model = LogisticRegression(epsilon=3.0, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.9
    assert np.isfinite(model.coef_).all()


def test_infinity_and_missing_targets_stay_errors():
    X, y = np.random.default_rng(0).normal(size=(100, 2)), np.arange(100.0)
    with pytest.raises(ValueError, match="infinity"):
        Ridge().fit(np.where(X > 2.0, np.inf, X), y)
    with pytest.raises(ValueError, match="NaN"):
        Ridge().fit(X, np.where(y > 90.0, np.nan, y))
    with pytest.raises(ValueError, match="infinity"):
        Ridge(random_state=0).fit(X, y).predict(np.full((1, 2), np.inf))


def test_columns_as_they_are_take_zero():
    rng = np.random.default_rng(0)
    X, solver = rng.uniform(1.0, 3.0, size=(500, 2)), Coordinate(rescale=False)
    model = Ridge(epsilon=50.0, solver=solver, bounds=(0.5, 3.0), random_state=0).fit(holes(X), X.sum(axis=1))
    np.testing.assert_array_equal(model.fill_, 0.0)
    assert model.predict(np.full((1, 2), np.nan)) == pytest.approx(model.intercept_)


def test_files_keep_what_is_filled_in(tmp_path):
    X, y = np.random.default_rng(0).normal(size=(200, 3)), np.arange(200) % 2
    model = LogisticRegression(random_state=0).fit(holes(X), y)
    save(model, tmp_path / "model.json")
    read = load(tmp_path / "model.json")
    np.testing.assert_array_equal(read.predict_proba(holes(X)), model.predict_proba(holes(X)))


def test_pipelines_take_holes_in_numbers():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"age": rng.normal(40.0, 10.0, 3_000), "kind": rng.choice(["a", "b"], 3_000)})
    y = (frame["age"] > 40).to_numpy()
    frame.loc[::5, "age"] = np.nan
    model = make_private_pipeline(PrivateEncoder(), LogisticRegression(), epsilon=3.0).fit(frame, y)
    assert model.score(frame, y) > 0.8
