"""One scale for all columns: when it is due, what it releases, and what it finds."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tacit import Lasso, LogisticRegression, Ridge
from tacit.bounding.magnitudes import LIMIT, WIDEST, bin_values, pooled_scale, surviving
from tacit.bounding.scales import PooledScale
from tacit.estimators import FewRowsWarning
from tacit.kernels.scaling import magnitude_histograms, pooled_magnitudes
from tacit.privacy import Budget

from .support import neighbours, spend, transcript

both = pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
VALUES = bin_values(-WIDEST, WIDEST)
SIZES = 0.0, 1e-300, 1e-3, 1.0, 1e3, 1e300, math.inf, math.nan
N, D = 40, 6


def histogram(masses):
    out = np.zeros(len(VALUES))
    for value, count in masses.items():
        out[int(np.flatnonzero(value == VALUES)[0])] = count
    return out


def reading(masses):
    counts = histogram(masses)
    return pooled_scale(counts, counts > 0)


# --- when it is due ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [1e-6, 1000**-1.5])
def test_many_columns_on_a_small_budget_are_pooled(delta):
    assert PooledScale.is_due(1000, 1000, Budget(10.0, delta))
    assert not PooledScale.is_due(10_000, 1000, Budget(10.0, delta))  # ten times the rows
    assert not PooledScale.is_due(1000, 100, Budget(0.1, delta))  # a unit for each column is likely
    assert not PooledScale.is_due(1000, 1000, Budget(math.inf, delta))


def wide(n=60, d=500):
    rng = np.random.default_rng(0)
    X = 7.0 * rng.standard_normal((n, d))
    return X, X[:, 0] + rng.standard_normal(n)


def plan_of(model, n, d):
    """Names and parts of the releases of scales in a fit of n rows of noise."""
    X, y = wide(n, d)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewRowsWarning)
        fitted = model.fit(X, y > 0 if isinstance(model, LogisticRegression) else y)
    return {r.name: r.share for r in fitted.plan_.plan.releases if r.name.startswith(("scale", "label"))}


@pytest.mark.parametrize(
    ("model", "d", "scales"),
    [
        (Lasso(solver="greedy"), 500, {"scale: magnitudes"}),
        (Ridge(solver="coordinate"), 500, {"scale: magnitudes"}),
        (LogisticRegression(solver="coordinate"), 500, {"scale: magnitudes"}),
        (Ridge(solver="coordinate"), 400, {"scale: magnitudes", "scale: spread"}),
        (Ridge(solver="gradient"), 500, {"scale: magnitudes", "scale: spread"}),
        (LogisticRegression(solver="gradient"), 500, {"scale: magnitudes", "scale: spread", "scale: means"}),
        (Lasso(solver="greedy", row_norm=1.0), 500, {"scale: moments"}),
    ],
    ids=[
        "greedy",
        "coordinate",
        "classifier",
        "few columns",
        "gradient",
        "classifier by gradient",
        "row norm declared",
    ],
)
def test_solvers_of_single_columns_pool_and_others_do_not(model, d, scales):
    names = set(plan_of(model, 60, d))
    label = set() if isinstance(model, LogisticRegression) else {"label: magnitudes", "label: spread", "label: mean"}
    assert names == scales | label


def test_a_pooled_scale_is_cheap_and_the_target_gets_as_much():
    parts = plan_of(Lasso(solver="greedy", epsilon=20.0), 150, 500)
    assert parts == pytest.approx({"scale: magnitudes": 0.025, "label: magnitudes": 0.0125, "label: spread": 0.0125})
    assert PooledScale(1000, 1000).share(Budget(10.0, 1e-6), 1000) == 0.05
    shares = [PooledScale(n, 1000).share(Budget(1.0, 1e-6), 1001) for n in (20, 300, 1000, 100_000)]
    assert shares == sorted(shares, reverse=True)
    assert (shares[0], shares[-1]) == (0.40, 0.05)
    assert PooledScale(1000, 1000).share(Budget(math.inf, 1e-6), 1001) == 0.05


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_fit_says_that_one_scale_was_used(fit_intercept):
    X, y = wide(150)
    model = Lasso(solver="greedy", epsilon=20.0, delta=1e-4, fit_intercept=fit_intercept, random_state=0)
    with pytest.warns(FewRowsWarning, match=r"a scale for each of 500 columns \(declare row_norm") as caught:
        model.fit(X, y)
    assert {warning.filename for warning in caught} == {__file__}
    assert len(set(model.clip_high_)) == 1
    assert model.clip_high_[0] / LIMIT == pytest.approx(7.0, rel=0.2)
    np.testing.assert_array_equal(model.clip_low_, -model.clip_high_)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FewRowsWarning)
        Lasso(solver="greedy", epsilon=20.0, delta=1e-4, row_norm=200.0, y_bounds=(-30.0, 30.0)).fit(X, y)


# --- what it releases --------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("epsilon", [0.05, 1.0, math.inf])
def test_one_histogram_of_whole_counts(epsilon, adjacency):
    X = np.random.default_rng(0).standard_normal((N, D))
    X[3] = SIZES[1:7]
    with transcript() as steps:
        found = spend(PooledScale(N, D), X, epsilon, adjacency)
    assert [step.name for step in steps] == ["scale: magnitudes"]
    assert steps[0].value.sum() == N * D
    assert found.pooled
    assert not found.centre.any()
    assert np.all((found.scale == found.scale[0]) & (found.scale > 0) & np.isfinite(found.scale))


@both
def test_a_row_moves_the_histogram_by_at_most_its_sensitivity(adjacency):
    rng = np.random.default_rng(1)
    data = rng.standard_normal((N, D))
    rows = [np.full(D, size) for size in SIZES]
    rows += [rng.choice(SIZES, size=D) * rng.choice([-1.0, 1.0], size=D) for _ in range(30)]
    largest = 0.0
    for row in rows:
        for start in (rows[3], rng.standard_normal(D)):
            one, other = data.copy(), data.copy()
            one[7], other[7] = start, row
            [(a, b)] = neighbours(lambda X: spend(PooledScale(N, D), X, 2.0, adjacency), one, other)
            bound = a.sensitivity if adjacency == "replace-one" else math.sqrt(2.0) * a.sensitivity
            assert a.distance(b) <= bound * (1 + 1e-15)
            largest = max(largest, a.distance(b) / bound)
    assert largest == pytest.approx(1.0)  # and the bound is reached


def test_a_row_alone_is_within_the_add_remove_sensitivity():
    for row in (np.ones((1, D)), np.array([SIZES[:D]])):
        with transcript() as steps:
            spend(PooledScale(1, D), row)
        assert np.linalg.norm(steps[0].value) <= steps[0].sensitivity == D
    assert steps[0].value.max() < D


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_kernel_counts_what_the_columns_count_together(dtype, order):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((70, 9)) * 10.0 ** rng.integers(-30, 30, size=(70, 9))
    X[0, :8] = SIZES
    with np.errstate(over="ignore"):
        X = np.asarray(X, dtype=dtype, order=order)
    apart, together = np.empty((9, len(VALUES))), np.empty(len(VALUES), dtype=np.int64)
    limits = np.full(9, WIDEST)
    magnitude_histograms(X, np.zeros(9), -limits, limits, apart)
    pooled_magnitudes(X, -WIDEST, WIDEST, together)
    np.testing.assert_array_equal(together, apart.sum(axis=0))


# --- what is read off it -----------------------------------------------------------------------------------


def test_light_tails_give_the_root_mean_square():
    assert reading({-2.0: 100, 2.0: 100, 1.0: 200}) == pytest.approx(math.sqrt(2.5))
    assert reading({0.0: 100, 1.0: 100}) == pytest.approx(math.sqrt(0.5))


def test_large_entries_count_as_what_they_are_clipped_to():
    for far in (2.0**10, 2.0**24):
        assert reading({1.0: 950, far: 50}) == pytest.approx(math.sqrt(0.95 / (1 - 9 * 0.05)))
    assert reading({1.0: 800, 1024.0: 200}) == pytest.approx(1024 * math.sqrt(0.2), rel=1e-3)  # too many to be few


def test_rare_entries_are_at_the_clip():
    for rare in (100, 10, 1):
        assert LIMIT * reading({0.0: 1000, 4.0: rare}) == pytest.approx(4.0)
    assert reading({0.0: 7, 4.0: 1}) == pytest.approx(4.0 * math.sqrt(1 / 8))


def test_zeros_alone_have_no_scale():
    assert reading({0.0: 1000}) is None
    assert reading({}) is None


@given(arrays(np.float64, len(VALUES), elements=st.floats(-50.0, 1000.0)), st.floats(0.0, 200.0))
@settings(derandomize=True, deadline=None, max_examples=150, database=None)
def test_whatever_comes_out_of_the_noise_is_finite_and_positive(counts, noise):
    scale = pooled_scale(counts, surviving(counts, noise, 1))
    assert scale is None or 2.0**-26 <= scale <= 2.0**24


@both
@pytest.mark.parametrize("size", [1e-4, 1.0, 1e5])
def test_finds_the_scale_of_columns_alike(size, adjacency):
    X = size * np.random.default_rng(3).standard_normal((300, 500))
    for seed in range(5):
        found = spend(PooledScale(*X.shape), X, 1.0, adjacency, seed)
        assert found.lost == 0
        np.testing.assert_allclose(found.scale, size, rtol=0.25)


def test_one_column_far_out_does_not_spoil_the_others():
    X = np.random.default_rng(4).standard_normal((300, 500))
    X[:, :10] *= 1e6
    np.testing.assert_allclose(spend(PooledScale(300, 500), X, 3.0).scale, 1.0, rtol=0.3)


def test_with_no_rows_to_speak_of_the_scale_is_one():
    for seed in range(20):
        found = spend(PooledScale(3, 500), np.full((3, 500), 8.0), 1e-3, seed=seed)
        assert found.lost == 500
        np.testing.assert_array_equal(found.scale, 1.0)
