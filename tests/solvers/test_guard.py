"""The guard of regressions: when it is due, what it releases, and what becomes of weights that say nothing."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

from tacit import LinearRegression
from tacit.blocks import Bounded, ExactPasses, Passes, Scaling
from tacit.blocks.agreement import AGREEMENT, agreement
from tacit.privacy import Release
from tacit.solvers import guard
from tacit.solvers.curvature import Curvature

from .support import task


def rows(n, d, seed=0):
    found = np.random.default_rng(seed)
    X = found.normal(size=(n, d))
    return X, found.normal(size=n), 0.5 * found.normal(size=(1, d + 1))


def direct(X, t, w, size):
    a = np.clip((X @ w[0, :-1] + w[0, -1]) / size, -1.0, 1.0)
    return np.array([a @ np.clip(t, -1.0, 1.0), a @ a / 2.0])


def bounded(Z, t):
    return Bounded(Z, t, None, 3.0, None)


def test_the_sums_are_those_of_the_formula():
    X, t, w = rows(3000, 7)
    dense = Scaling(np.zeros(7), np.ones(7), 3.0).transform(X, "grid")
    for passes in (
        ExactPasses(task("squared", 3000, 7), bounded(dense, t)),
        Passes(task("squared", 3000, 7, sparse=True), bounded(csr_array(np.clip(X, -3, 3)), t)),
    ):
        np.testing.assert_allclose(passes.agreement(w, 0.7), direct(np.clip(X, -3, 3), t, w, 0.7), atol=3000 * 2.0**-16)


def test_a_row_that_is_absent_takes_exactly_its_own_numbers_along():
    X, t, w = rows(5000, 4, seed=1)
    X[7], t[7] = 1e300, -1e300
    scaling = Scaling(np.zeros(4), np.ones(4), 3.0)

    def sums(keep):
        passes = ExactPasses(task("squared", 5000, 4), bounded(scaling.transform(X[keep], "grid"), t[keep]))
        return passes.agreement(w, 0.7) * 2.0**41

    every = np.arange(5000)
    alone = sums(every[7:8])
    assert np.linalg.norm(alone) * 2.0**-41 == pytest.approx(math.sqrt(1.25))  # the whole of what is stated
    np.testing.assert_array_equal(sums(every) - sums(np.delete(every, 7)), alone)
    np.testing.assert_array_equal(sums(every[::-1]), sums(every))


def test_no_two_rows_are_farther_apart_than_is_stated():
    found = np.random.default_rng(2)
    ends = np.array([-9.0, -1.0, -0.5, 0.0, 0.5, 1.0, 9.0, math.inf, math.nan])
    a, b = np.meshgrid(np.r_[ends, found.uniform(-1.2, 1.2, 20)], np.r_[ends[:-1], found.uniform(-1.2, 1.2, 20)])
    pairs = zip(a.ravel(), b.ravel(), strict=True)
    terms = np.array([agreement(np.array([m]), np.array([t]), 1.0) for m, t in pairs]) * 2.0**-41
    apart = np.linalg.norm(terms[:, None] - terms[None, :], axis=2).max()
    assert np.linalg.norm(terms, axis=1).max() == pytest.approx(AGREEMENT.add_remove)
    assert apart == pytest.approx(AGREEMENT.replace_one)
    assert np.linalg.norm(terms, axis=1).max() <= AGREEMENT.add_remove
    assert apart <= AGREEMENT.replace_one


def test_it_is_due_by_public_numbers_and_takes_its_share_from_the_others():
    noisy, calm = task("squared", 500, 40, epsilon=0.3), task("squared", 50_000, 5, epsilon=1.0)
    assert guard.is_due(noisy)
    assert guard.is_due(task("squared", 1000, 50, epsilon=2.0))  # a weight for every twenty rows
    assert not guard.is_due(task("squared", 1000, 50, epsilon=math.inf))
    assert not guard.is_due(calm)
    assert not guard.is_due(task("logistic", 500, 40, epsilon=0.3))
    assert not guard.is_due(replace(noisy, y_bounds=(0.0, 9.0)))  # their middle may be far from the target
    releases = (Release("one", "gaussian", share=0.2), Release("two", "gaussian", share=0.3, count=4))
    assert guard.planned(calm, releases) == releases
    found = guard.planned(noisy, releases)
    assert [release.name for release in found] == ["one", "two", "agreement"]
    assert sum(release.share for release in found) == pytest.approx(0.5)
    assert found[-1].share == pytest.approx(0.25 * 0.5)
    found = guard.planned(task("squared", 1000, 50, epsilon=2.0), releases)
    assert sum(release.share for release in found) == pytest.approx(0.5)
    assert 0.0 < found[-1].share < 0.08 * 0.5


class Told:
    """A gate that says one thing."""

    def __init__(self, deviation, *sums):
        self.deviation, self.sums = deviation, np.array(sums)

    def noise(self, *_):
        return self.deviation * 1000

    def release(self, *_):
        return self.sums * 1000


class Any:
    def agreement(self, w, _):
        self.asked = w.copy()
        return np.zeros(2)


def moments(d):
    """Those of columns that are standardised and have nothing to do with each other."""
    ones = np.ones(d + 1)
    return Curvature(np.eye(d + 1), ones, ones, ones, np.zeros(d + 1), 1.0)


NOISY, CALM = task("squared", 1000, 400, epsilon=0.5), task("squared", 1000, 40, epsilon=20.0)


@pytest.mark.parametrize(
    ("deviation", "sums", "kept"),
    [
        (0.0, (0.2, 0.2), 0.5),
        (0.0, (0.9, 0.2), 1.0),
        (0.0, (-0.2, 0.2), 0.0),
        (0.0, (0.0, 0.0), 0.0),
        (0.1, (0.2, 0.2), 0.75 * 0.2 * 0.4 / (0.16 + 0.04)),
        (0.1, (0.1, 0.2), 0.0),  # no more than its noise
        (0.1, (0.4, -0.1), 0.0),
        (0.4, (0.9, 0.2), 0.0),  # nothing can be told
    ],
)
def test_in_much_noise_weights_are_kept_as_far_as_they_agree(deviation, sums, kept):
    w = np.full((1, 401), 1.0 / math.sqrt(401.0))
    found = guard.kept(NOISY, Any(), w, moments(400), 400.0, Told(deviation, *sums))
    np.testing.assert_allclose(found, kept * w)


@pytest.mark.parametrize(
    ("deviation", "product", "kept"),
    [
        (0.01, 0.9, 1.0),
        (0.0, 0.9, 1.0),
        (0.05, -0.9, 0.0),
        (0.05, 0.47 * 0.04, 0.0),  # what 40 weights agree by chance with 1,000 targets
        (0.05, 0.47 * 0.04 + 0.05, 0.5),  # half of two deviations above that
    ],
)
def test_in_little_noise_slopes_are_kept_where_they_say_more_than_they_would_by_chance(deviation, product, kept):
    assert CALM.nu <= 0.25 < NOISY.nu
    w = np.full((1, 41), 1.0 / math.sqrt(40.0))
    w[0, -1] = 3.0
    passes = Any()
    found = guard.kept(CALM, passes, w, moments(40), 40.0, Told(deviation, product, 0.2))
    np.testing.assert_allclose(found[0, :-1], kept * w[0, :-1], atol=1e-12)
    assert found[0, -1] == 3.0
    assert passes.asked[0, -1] == 0.0  # the intercept has no part in it


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_regression_on_nothing_is_hardly_worse_than_its_mean():
    """Of 200 columns that say nothing, slopes are noise; rows in parts give the same model."""
    scores, plain = [], []
    for seed in range(4):
        X, y, _ = rows(4000, 200, seed=seed + 10)
        model = LinearRegression(epsilon=0.3, random_state=seed, delta=1e-5)
        scores.append(model.fit(X, y).score(X, y))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(guard, "is_due", lambda _: False)
            plain.append(clone(model).fit(X, y).score(X, y))
    assert np.mean(scores) > -0.015
    assert np.mean(plain) < np.mean(scores) - 0.03
    again = clone(model).fit_blocks([(X[:400], y[:400]), (X[400:], y[400:])])
    np.testing.assert_array_equal(again.coef_, model.coef_)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_as_many_weights_as_a_twentieth_of_the_rows_do_not_predict_nothing_worse_than_the_mean():
    """Least squares loses a twentieth there without any noise."""
    scores, plain = [], []
    for seed in range(4):
        X, y, _ = rows(2000, 60, seed=seed + 20)
        train, test = slice(0, 1000), slice(1000, 2000)
        model = LinearRegression(epsilon=3.0, random_state=seed, delta=1e-5)
        scores.append(model.fit(X[train], y[train]).score(X[test], y[test]))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(guard, "is_due", lambda _: False)
            plain.append(clone(model).fit(X[train], y[train]).score(X[test], y[test]))
    assert np.mean(scores) > -0.03
    assert np.mean(plain) < np.mean(scores) - 0.03
