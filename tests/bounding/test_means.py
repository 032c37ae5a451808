"""Means of bounded rows: what is released, how far a row moves it, and what moving the centres does."""

import math

import numpy as np
import pytest
from scipy.sparse import csr_array

from tacit.blocks import Scaling, TableRows
from tacit.bounding import means
from tacit.bounding.declared import DeclaredScale
from tacit.bounding.linear import LinearBounding
from tacit.bounding.magnitudes import LIMIT
from tacit.bounding.means import Means, moved
from tacit.bounding.scales import MagnitudeScale
from tacit.problems.bounds import Bounds
from tests.preprocessing.support import neighbours, open_gate, spend, transcript
from tests.solvers.support import task

ADJACENCIES = ("add-remove", "replace-one")
N, D = 60, 3
FOUND = Scaling(np.array([1.0, -2.0, 0.5]), np.array([0.5, 2.0, 1.0]), LIMIT)


def rows(seed=0, n=N):
    return FOUND.centre + FOUND.scale * np.random.default_rng(seed).normal([1.0, 0.0, -0.5], size=(n, D))


def run(X, gate=None, n=N, epsilon=math.inf):
    step = Means(n, D, "scale: means")
    return step.run(gate or open_gate([step.release(1.0)], epsilon), X, FOUND)


def by_hand(X):
    Z = FOUND.transform(X, "grid").rows.astype(np.float64)
    sizes = np.linalg.norm(Z, axis=1, keepdims=True)
    return (Z * np.minimum(1.0, math.sqrt(D + 8.0) / np.maximum(sizes, 1e-300))).sum(axis=0)


def test_what_is_released_is_the_sum_of_clipped_rows_in_the_units_that_were_found():
    X = rows()
    X[0] = FOUND.centre + 40.0 * FOUND.scale  # clipped to three scales, then to the norm
    with transcript() as steps:
        run(X, epsilon=1.0)
    (step,) = steps
    np.testing.assert_allclose(step.value, by_hand(X), atol=1e-9)
    assert step.value == pytest.approx(by_hand(X[1:]) + math.sqrt((D + 8.0) / D), abs=1e-5)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_row_moves_the_sum_by_no_more_than_is_said_and_by_nearly_as_much(adjacency):
    far = FOUND.centre + 100.0 * FOUND.scale * np.array([1.0, -1.0, 1.0])
    others, mirrored = rows(n=N - 1), 2.0 * FOUND.centre - far
    worlds = [np.vstack([far, others]), others if adjacency == "add-remove" else np.vstack([mirrored, others])]
    gate = [open_gate([Means(N, D, "scale: means").release(1.0)], 1.0, adjacency) for _ in worlds]
    ((one, other),) = neighbours(lambda world: run(worlds[world], gate[world]), 0, 1)
    radius = math.sqrt(D + LIMIT**2 - 1.0)
    assert one.sensitivity == pytest.approx(radius * (1.0 if adjacency == "add-remove" else 2.0))
    assert 0.999 * one.sensitivity <= one.distance(other) <= one.sensitivity


def test_rows_in_any_cut_of_a_sparse_table_or_an_array_have_the_same_sum(monkeypatch):
    X = np.where(np.random.default_rng(1).random((5000, D)) < 0.5, 0.0, rows(n=5000))
    X[7, 1] = np.nan
    sizes = np.linalg.norm(FOUND.transform(np.nan_to_num(X), "grid").rows, axis=1)
    assert 10 < np.sum(sizes > math.sqrt(D + 8.0)) < 4_000  # rows that are clipped are filled, the others are not
    values = []
    for cut in (2048, 700):
        monkeypatch.setattr(
            "tacit.blocks.grid.cuts", lambda n, _, cut=cut: [slice(k, k + cut) for k in range(0, n, cut)]
        )
        for table in (X, TableRows(csr_array(np.nan_to_num(X))), np.nan_to_num(X)):
            with transcript() as steps:
                run(table, n=5000, epsilon=1.0)
            values.append(steps[0].value)
    np.testing.assert_array_equal(values[0], values[3])
    np.testing.assert_array_equal([values[1], values[1], values[1]], [values[2], values[4], values[5]])
    missing = np.zeros(D)
    missing[1] = (0.0 - FOUND.centre[1]) / FOUND.scale[1]  # a zero is a value, what is missing is at the centre
    np.testing.assert_allclose(values[1] - values[0], missing, atol=1e-5)


def test_without_noise_bounded_rows_are_centred():
    X = rows(n=4000)
    Z = run(X, n=4000).transform(X)
    assert np.abs(Z.mean(axis=0)).max() < 0.05  # but for what is clipped
    assert np.abs(FOUND.transform(X).mean(axis=0)).max() > 0.5


def test_means_that_noise_explains_move_nothing():
    found = moved(FOUND, np.array([0.3, -0.2, 0.1]), 1.0)
    np.testing.assert_array_equal(found.centre, FOUND.centre)
    np.testing.assert_allclose([found.low, found.high], [FOUND.low, FOUND.high])


def test_columns_of_two_values_and_others_are_moved_each_by_their_own_rule():
    low = np.array([0.0, -np.inf, 0.0])
    found = Scaling(np.full(3, 0.5), np.ones(3), LIMIT, bounds=Bounds(low, np.where(low == 0.0, 1.0, np.inf)))
    centre = moved(found, np.array([0.1, 2.0, -0.1]), 0.2).centre
    np.testing.assert_array_equal(centre[[0, 2]], 0.5)  # no more than noise
    assert centre[1] == pytest.approx(0.5 + 2.0 * (1.0 - 0.2**2 / 2.0**2))


def test_values_stay_within_the_clip_that_was_found_and_within_three_scales():
    found = moved(FOUND, np.array([2.9, -1.0, 0.0]), 0.0)
    np.testing.assert_allclose(found.centre, [1.0 + 2.9 * 0.5, -4.0, 0.5])
    assert np.all(found.low >= FOUND.low - 1e-12)
    assert np.all(found.high <= FOUND.high + 1e-12)
    assert found.limits.max() <= LIMIT + 1e-9
    wild = np.random.default_rng(3).normal(size=(500, D)) * 1e6
    assert np.abs(found.transform(wild)).max() <= LIMIT + 1e-9


def test_neither_of_two_values_is_clipped_and_their_centre_stays_between_them():
    pair = Scaling(
        np.array([0.3, 0.0]),
        np.array([0.45, 1.0]),
        LIMIT,
        bounds=Bounds(np.array([0.0, -np.inf]), np.array([1.0, np.inf])),
    )
    for mean in (-5.0, -0.4, 2.0):
        found = moved(pair, np.array([mean, 0.5]), 0.0)
        Z = found.transform(np.array([[0.0, 0.0], [1.0, 0.0]]))[:, 0]
        assert (found.low[0], found.high[0]) == (0.0, 1.0)
        assert 0.0 <= found.centre[0] <= 1.0
        assert Z[1] - Z[0] == pytest.approx(1.0 / found.scale[0])
        assert np.abs(Z).max() <= LIMIT + 1e-9


@pytest.mark.parametrize(
    ("loss", "layout", "intercept", "asked"),
    [
        ("logistic", "grid", True, True),
        ("multinomial", "grid", True, True),
        ("logistic", "grid", False, False),
        ("logistic", "columns", True, False),
        ("squared", "grid", True, False),
    ],
)
def test_means_are_asked_for_by_classifiers_with_an_intercept_whose_sums_are_exact(loss, layout, intercept, asked):
    for more in ({}, {"bounds": Bounds(np.array([0.0, -np.inf, -np.inf]), np.array([1.0, np.inf, np.inf]))}):
        facts = task(loss, 500, D, fit_intercept=intercept, **more)
        releases = LinearBounding.of(facts, layout, None).releases
        shares = {release.name: release.share for release in releases if release.name.startswith("scale")}
        assert ("scale: means" in shares) == asked
        if loss != "squared":  # whose target takes a part
            found = MagnitudeScale(500, D - len(more)).share(facts.budget, D - len(more))
            assert sum(shares.values()) == pytest.approx(found)


def test_declared_columns_are_left_alone():
    bounds = Bounds(np.array([0.0, -np.inf, -np.inf]), np.array([1.0, np.inf, np.inf]))
    X = np.random.default_rng(2).normal([0.0, 5.0, -5.0], size=(3000, 3))
    found = spend(DeclaredScale.of(3000, bounds, means=True), X, 4.0)
    assert (found.low[0], found.high[0]) == (0.0, 1.0)
    np.testing.assert_allclose(found.centre[1:], [5.0, -5.0], atol=0.25)


def test_centres_of_columns_are_nearer_to_the_truth():
    """Six fits of 4,000 rows at a small budget: with the means of columns and without."""
    rng = np.random.default_rng(5)
    X = np.hstack([rng.gamma(3.0, 2.0, size=(4000, 10)), rng.normal(3.0, 2.0, size=(4000, 10))])
    off = {False: 0.0, True: 0.0}
    for seed in range(6):
        for asked in off:
            found = spend(MagnitudeScale(4000, 20, means=asked), X, 0.15, seed=seed)
            off[asked] += np.square(found.transform(X).mean(axis=0)).mean()
    assert off[True] < 0.6 * off[False]
    assert means.PART == 0.15
