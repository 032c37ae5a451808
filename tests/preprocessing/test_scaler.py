import math
import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import tacit
from tacit import PrivateScaler
from tacit.privacy import compose
from tacit.utils import expected_failed_checks

from .support import transcript

FORMS = [{}, {"row_norm": 30.0}]
either = pytest.mark.parametrize("form", FORMS, ids=["nothing declared", "row norm declared"])


def table(n=4000, seed=0):
    return np.random.default_rng(seed).normal([5.0, 0.0, -2.0], [2.0, 1.0, 0.5], size=(n, 3))


@either
@pytest.mark.filterwarnings("ignore:the budget is too small")
def test_scikit_learns_checks_pass(form):
    scaler = PrivateScaler(**form)
    check_estimator(scaler, expected_failed_checks=expected_failed_checks(scaler), on_skip=None)


@either
def test_finds_what_a_standard_scaler_finds(form):
    X = table()
    private, plain = PrivateScaler(epsilon=3.0, random_state=0, **form).fit(X), StandardScaler().fit(X)
    assert np.all(np.abs(private.mean_ - plain.mean_) <= 0.2 * plain.scale_)
    if not form:  # moments of rows of norm 30 are too noisy for a column of deviation 1/2
        np.testing.assert_allclose(private.scale_, plain.scale_, rtol=0.2)
    Z = private.transform(X)
    assert np.abs(Z).max() <= 3.0
    np.testing.assert_allclose(Z, np.clip((X - private.mean_) / private.scale_, -3.0, 3.0), rtol=1e-12)
    np.testing.assert_allclose(private.clip_low_, private.mean_ - 3.0 * private.scale_)
    np.testing.assert_allclose(private.clip_high_, private.mean_ + 3.0 * private.scale_)


@either
def test_inverse_transform_is_the_clip(form):
    X = table()
    scaler = PrivateScaler(epsilon=3.0, random_state=0, **form).fit(X)
    back = scaler.inverse_transform(scaler.transform(X))
    np.testing.assert_allclose(back, np.clip(X, scaler.clip_low_, scaler.clip_high_), atol=1e-9)


@either
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("epsilon", [0.3, 3.0])
@pytest.mark.filterwarnings("ignore:the budget is too small")
def test_guarantee_holds_what_was_asked_for(form, adjacency, epsilon):
    guarantee = PrivateScaler(epsilon, adjacency=adjacency, **form).fit(table(500)).guarantee_
    assert 0.99 * epsilon <= guarantee.recompute() <= epsilon
    assert (guarantee.epsilon, guarantee.adjacency, guarantee.n_rows) == (epsilon, adjacency, 500)
    assert guarantee.delta == 500**-1.5
    assert not guarantee.seeded
    joint = compose([guarantee, guarantee])
    assert epsilon < joint.epsilon <= 2 * epsilon


@either
def test_replace_one_gets_noise_for_its_larger_sensitivity(form):
    """The same seed gives the same normals, so the noise grows by sqrt(2) on histograms and 1.5 on moments."""
    noise = []
    for adjacency in ("add-remove", "replace-one"):
        with transcript() as steps:
            PrivateScaler(1.0, adjacency=adjacency, random_state=4, **form).fit(table(2000))
        noise.append(steps[0].released - steps[0].value)
    np.testing.assert_allclose(noise[1], noise[0] * (1.5 if form else math.sqrt(2.0)), rtol=1e-5, atol=1e-6)


def test_no_privacy_is_said_to_be_none():
    guarantee = PrivateScaler(math.inf).fit(table(100)).guarantee_
    assert guarantee.recompute() == math.inf
    assert "not private" in str(guarantee)


@either
def test_random_state_repeats_a_fit_and_nothing_else_does(form):
    X = table(300)

    def means(random_state):
        return PrivateScaler(1.0, random_state=random_state, **form).fit(X)

    np.testing.assert_array_equal(means(7).mean_, means(7).mean_)
    assert means(7).guarantee_.seeded
    assert not np.array_equal(means(7).mean_, means(8).mean_)
    assert not np.array_equal(means(None).mean_, means(None).mean_)


@either
def test_a_pickle_and_a_clone_hold_no_noise(form):
    scaler = PrivateScaler(2.0, random_state=1, **form).fit(table(300))
    written = pickle.dumps(scaler)
    assert b"NoiseSource" not in written
    assert b"Gate" not in written
    again = pickle.loads(written)
    np.testing.assert_array_equal(again.transform(table(300)), scaler.transform(table(300)))
    assert again.guarantee_ == scaler.guarantee_
    fresh = clone(scaler)
    assert fresh.get_params() == scaler.get_params()
    assert not hasattr(fresh, "mean_")


def test_attributes_are_released_numbers_only():
    scaler = PrivateScaler(2.0, random_state=1).fit(table(300))
    learned = {name for name in vars(scaler) if name.endswith("_") and not name.startswith("_")}
    assert learned == {"mean_", "scale_", "clip_low_", "clip_high_", "guarantee_", "n_features_in_"}


def test_stands_in_a_pipeline():
    X = table(2000)
    y = X[:, 0] > 5.0
    pipeline = make_pipeline(PrivateScaler(epsilon=3.0, random_state=0), LogisticRegression()).fit(X, y)
    assert pipeline.score(X, y) > 0.95
    assert list(pipeline[:-1].get_feature_names_out(["a", "b", "c"])) == ["a", "b", "c"]


def test_keeps_pandas_frames():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(table(300), columns=["a", "b", "c"])
    out = PrivateScaler(3.0, random_state=0).set_output(transform="pandas").fit_transform(frame)
    assert isinstance(out, pandas.DataFrame)
    assert list(out.columns) == ["a", "b", "c"]


def test_does_not_change_its_input():
    X = table(100)
    before = X.copy()
    PrivateScaler(3.0, random_state=0).fit_transform(X)
    np.testing.assert_array_equal(X, before)


def test_warns_of_columns_it_cannot_find():
    X = np.random.default_rng(1).normal(size=(30, 40))
    with pytest.warns(UserWarning, match=r"too small to find the scale of \d+ of 40 columns"):
        scaler = PrivateScaler(0.1, random_state=0).fit(X)
    assert np.all((scaler.scale_ > 0) & np.isfinite(scaler.scale_))
    assert np.all(np.isfinite(scaler.transform(X)))


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"epsilon": 0.0}, ValueError, "epsilon must be above 0"),
        ({"epsilon": -1.0}, ValueError, "epsilon must be above 0"),
        ({"epsilon": "1"}, TypeError, "epsilon must be a real number"),
        ({"delta": 0.0}, ValueError, "delta must lie strictly between"),
        ({"delta": 1.0}, ValueError, "delta must lie strictly between"),
        ({"adjacency": "both"}, ValueError, "adjacency must be one of"),
        ({"row_norm": 0.0}, ValueError, "row_norm must be above 0"),
        ({"row_norm": -2.0}, ValueError, "row_norm must be above 0"),
        ({"row_norm": math.inf}, ValueError, "row_norm must be finite"),
        ({"random_state": -1}, ValueError, "random_state must be at least 0"),
        ({"random_state": np.random.RandomState(0)}, TypeError, "random_state must be None or a whole number"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_bad_parameters_raise(parameters, error, message):
    with pytest.raises(error, match=message):
        PrivateScaler(**parameters).fit(table(50))


@pytest.mark.parametrize("bad", [math.inf, -math.inf])
@either
def test_values_that_are_not_finite_raise_and_are_not_fitted(form, bad):
    X = table(50)
    X[3, 1] = bad
    scaler = PrivateScaler(**form)
    with pytest.raises(ValueError, match="contains"):
        scaler.fit(X)
    assert not hasattr(scaler, "guarantee_")


def test_one_row_and_sparse_tables_are_refused():
    with pytest.raises(ValueError, match="minimum of 2"):
        PrivateScaler().fit(np.ones((1, 3)))
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        PrivateScaler().fit(csr_array(np.eye(4)))


def test_a_seed_warns():
    with pytest.warns(UserWarning, match="subtract the noise"):
        PrivateScaler(epsilon=100.0, random_state=0).fit(table(50))


def test_a_delta_of_one_over_n_warns():
    with pytest.warns(UserWarning, match="not below 1/n"):
        PrivateScaler(epsilon=100.0, delta=0.1).fit(table(50))


# --- what is declared, and what is missing ---------------------------------------------------------------------------

BOUNDS = {0: (-3.0, 13.0), 1: (-4.0, 4.0), 2: (-4.0, 0.0)}


def test_declared_columns_take_no_part_in_the_histograms():
    with transcript() as steps:
        scaler = PrivateScaler(3.0, random_state=0, bounds={0: BOUNDS[0]}).fit(table())
    assert [step.value.shape[0] for step in steps] == [2, 2]
    np.testing.assert_allclose(scaler.mean_, [5.0, 0.0, -2.0], atol=0.3)
    assert (scaler.clip_low_[0], scaler.clip_high_[0]) == BOUNDS[0]


def test_where_all_columns_are_declared_nothing_is_released():
    with transcript() as steps:
        scaler = PrivateScaler(bounds=BOUNDS).fit(table())
    assert steps == []
    assert scaler.guarantee_ is None
    X = np.vstack([np.array(list(BOUNDS.values())).T, table(10)])
    Z = scaler.transform(X)
    np.testing.assert_allclose(Z[0], [-math.sqrt(3), -math.sqrt(3), -3.0])  # from a bound of 0 on it is [-1, 3]
    np.testing.assert_allclose(Z[1], [math.sqrt(3), math.sqrt(3), 1.0])
    np.testing.assert_allclose(scaler.inverse_transform(Z), X)  # nothing inside the bounds is clipped


@pytest.mark.filterwarnings("ignore:the budget is too small")
def test_types_declare_truth_values_only_where_they_are_trusted():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(table(50) > 0.0, columns=["a", "b", "c"])
    assert PrivateScaler(trust_dtypes=True).fit(frame).guarantee_ is None
    assert PrivateScaler(trust_dtypes=True).fit(frame.astype("boolean").astype("bool").to_numpy()).guarantee_ is None
    assert PrivateScaler().fit(frame).guarantee_ is not None
    with pytest.raises(ValueError, match=r"(?i)2-?d"):
        PrivateScaler(trust_dtypes=True).fit(frame["a"])
    with pytest.raises(TypeError, match="trust_dtypes must be True or False"):
        PrivateScaler(trust_dtypes="yes").fit(frame)


@pytest.mark.parametrize("form", [{}, {"row_norm": 30.0}, {"bounds": BOUNDS}, {"bounds": {1: BOUNDS[1]}}])
def test_what_is_missing_stands_at_the_centre(form):
    X = table(2000)
    X[::9, 1] = math.nan
    scaler = PrivateScaler(epsilon=3.0, random_state=0, **form).fit(X)
    Z = scaler.transform(X)
    np.testing.assert_array_equal(Z[::9, 1], 0.0)
    assert np.all(np.isfinite(Z))
    np.testing.assert_allclose(scaler.to_sklearn().transform(X), Z, atol=1e-9)


def test_a_file_of_a_scaler_without_a_guarantee_has_the_scales_that_are_declared(tmp_path):
    scaler = PrivateScaler(bounds=BOUNDS).fit(table())
    path = tmp_path / "scaler.json"
    tacit.save(scaler, path)
    np.testing.assert_array_equal(tacit.load(path).transform(table()), scaler.transform(table()))
    scaler.mean_ = scaler.mean_ + 1.0
    with pytest.raises(ValueError, match="declared bounds for all columns"):  # what would not be read is not written
        tacit.save(scaler, path)
