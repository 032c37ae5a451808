"""What part of a budget the target of a regression takes, and that its middle is found with few rows."""

import math
import warnings

import numpy as np
import pytest

from tacit import LinearRegression
from tacit.bounding.linear import LinearBounding
from tests.solvers.support import task


def share(n, epsilon, **facts):
    releases = LinearBounding.of(task("squared", n, 10, epsilon=epsilon, **facts), "grid", None).releases
    return sum(release.share for release in releases if release.name.startswith("label: "))


@pytest.mark.parametrize("n", [20, 100, 330, 800, 3000, 100_000])
def test_the_noise_of_a_bin_of_the_target_is_a_tenth_of_the_rows_or_the_share_is_at_its_most(n):
    found, mu = share(n, 0.1), task("squared", n, 10, epsilon=0.1).budget.mu
    noise = math.sqrt(2.0 / found) / mu  # if either histogram had half of it
    assert found == pytest.approx(0.7) or noise <= 0.1001 * n
    assert 0.02 <= found <= 0.7 + 1e-12


def test_a_target_takes_less_the_more_rows_there_are_and_all_shares_stay_below_the_budget():
    found = [share(n, 0.1) for n in (20, 330, 1000, 3000, 100_000)]
    assert found == sorted(found, reverse=True)
    for n in (20, 330, 1000):
        bounding = LinearBounding.of(task("squared", n, 10, epsilon=0.1), "grid", None)
        assert bounding.left > 0.05
        assert sum(release.share for release in bounding.releases) + bounding.left == pytest.approx(1.0)


def test_a_target_with_declared_bounds_takes_nothing():
    assert share(330, 0.1, y_bounds=(0.0, 1.0)) == 0.0


def test_few_rows_of_a_target_far_from_zero_are_predicted_near_its_middle():
    """At the former share of 0.3 the mean prediction is a deviation and more off in six of these fits."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(331, 10)), 152.0 + 77.0 * rng.normal(size=331)
    off = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(20):
            model = LinearRegression(epsilon=0.1, random_state=seed).fit(X, y)
            off.append(abs(model.predict(X).mean() - y.mean()) / 77.0)
    assert np.mean(np.array(off) < 1.0) >= 0.85


def units_of(classes, epsilon, n=1_000, d=60, loss="multinomial", layout="grid", **facts):
    asked = task(loss, n, d, epsilon=epsilon, outputs=classes if loss == "multinomial" else 1, **facts)
    bounding = LinearBounding.of(asked, layout, None)
    assert sum(release.share for release in bounding.releases) + bounding.left == pytest.approx(1.0)
    return 1.0 - bounding.left


@pytest.mark.parametrize("epsilon", [0.2, 0.5, 1.0, 3.0])
def test_units_get_less_where_there_are_weights_of_more_than_three_classes_but_never_less_than_is_left(epsilon):
    """The odds of the share fall with the root of how many numbers tell the classes apart."""
    two = units_of(2, epsilon, loss="logistic")
    assert units_of(3, epsilon) == pytest.approx(two)
    for classes in (4, 9, 19):
        odds = two / (1.0 - two) * math.sqrt(2.0 / (classes - 1))
        assert units_of(classes, epsilon) == pytest.approx(max(odds / (1.0 + odds), 0.15))
    assert units_of(19, epsilon) < two or two == pytest.approx(0.15)


def test_units_keep_their_share_where_a_class_has_too_few_rows_for_the_noise():
    mu = task("multinomial", 1_000, 60, epsilon=0.3).budget.mu
    heard = math.floor(1_000 * mu / 2.0)
    assert 3 < heard < 100
    assert units_of(heard + 1, 0.3) == pytest.approx(0.4)
    assert units_of(heard, 0.3) < 0.3


def test_only_units_of_columns_that_are_found_one_by_one_get_less():
    assert units_of(10, 0.5, row_norm=1.0) == units_of(2, 0.5, loss="logistic", row_norm=1.0)
    assert units_of(10, 0.5, sparse=True) == units_of(2, 0.5, loss="logistic", sparse=True)
    assert units_of(10, 0.5) < units_of(2, 0.5, loss="logistic")
