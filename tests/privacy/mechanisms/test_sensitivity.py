"""Sensitivity rules against brute force: true for every pair of rows, and reached by some."""

import dataclasses
import math

import numpy as np
import pytest
from scipy.optimize import minimize

from tacit.privacy.mechanisms import Histogram, Sensitivity
from tacit.privacy.mechanisms.selection import Quantile, Threshold


def unit(x, norm=1.0):
    """Rows clipped to a norm."""
    x = np.asarray(x, dtype=float)
    lengths = np.linalg.norm(x, axis=-1, keepdims=True)
    return x * np.minimum(1.0, norm / np.maximum(lengths, 1e-300))


def clipped(matrix, norm):
    return matrix * min(1.0, norm / max(np.linalg.norm(matrix), 1e-300))


def furthest(contribution, d, rng, starts=6):
    """The largest distance between two contributions that random starts and a local search find."""

    def negative_distance(flat):
        return -np.linalg.norm(contribution(flat[:d]) - contribution(flat[d:]))

    best = 0.0
    for _ in range(starts):
        found = minimize(negative_distance, rng.normal(size=2 * d), method="Nelder-Mead", options={"maxiter": 4000})
        best = max(best, -found.fun)
    return best


def spread(change):
    return change.max() - change.min()


def test_vectors_can_be_opposite():
    rule = Sensitivity.vector(3.0)
    assert (rule.under("add-remove"), rule.under("replace-one")) == (3.0, 6.0)
    rng = np.random.default_rng(0)
    rows = unit(rng.normal(size=(2, 5000, 4)) * 10, 3.0)
    assert np.linalg.norm(rows, axis=-1).max() <= 3.0 + 1e-12
    assert np.linalg.norm(rows[0] - rows[1], axis=-1).max() <= 6.0 + 1e-12
    assert np.linalg.norm(unit([9.0, 0.0], 3.0) - unit([-9.0, 0.0], 3.0)) == pytest.approx(6.0)


@pytest.mark.parametrize("columns", [1, 2, 5])
def test_one_hot_rows_differ_in_two_bins_of_each_column(columns):
    rule = Sensitivity.one_hot(columns)
    histogram = Histogram([0.0, 1.0, 2.0, 3.0], columns)
    assert histogram.sensitivity == rule
    rng = np.random.default_rng(columns)
    others = rng.uniform(-1, 4, size=(6, columns))
    exact = histogram.counts(others)
    alone, apart = [], []
    for _ in range(500):
        first, second = rng.choice([-9.0, 0.5, 1.0, 1.5, 2.5, 9.0, np.nan, np.inf], size=(2, 1, columns))
        one, two = (histogram.counts(np.vstack([others, row])) for row in (first, second))
        alone.append(np.linalg.norm(one - exact))
        apart.append(np.linalg.norm(one - two))
    assert max(alone) == pytest.approx(rule.add_remove)
    assert max(apart) <= rule.replace_one + 1e-12
    all_first, all_last = (histogram.counts(np.vstack([others, np.full((1, columns), value)])) for value in (0.5, 2.5))
    assert np.linalg.norm(all_first - all_last) == pytest.approx(rule.replace_one)


def test_outer_products_are_at_most_sqrt_two_apart():
    rule = Sensitivity.outer_product(2.0)
    assert (rule.add_remove, rule.replace_one) == (4.0, math.sqrt(2) * 4.0)
    rng = np.random.default_rng(1)
    rows = unit(rng.normal(size=(2, 3000, 3)) * 5, 2.0)
    products = rows[..., :, None] * rows[..., None, :]
    assert np.linalg.norm(products, axis=(-2, -1)).max() <= rule.add_remove + 1e-12
    assert np.linalg.norm(products[0] - products[1], axis=(-2, -1)).max() <= rule.replace_one + 1e-12
    reached = furthest(lambda x: np.outer(unit(x, 2.0), unit(x, 2.0)), 3, rng, starts=5)
    assert rule.replace_one * (1 - 1e-4) <= reached <= rule.replace_one + 1e-9


def test_an_orthonormal_factor_brings_them_no_further_apart():
    rng = np.random.default_rng(2)
    rule = Sensitivity.outer_product(1.0)
    for _ in range(20):
        V = np.linalg.qr(rng.normal(size=(4, 2)))[0]
        rows = unit(rng.normal(size=(2, 300, 4)) * 3)
        products = rows[..., :, None] * (rows @ V)[..., None, :]
        assert np.linalg.norm(products, axis=(-2, -1)).max() <= rule.add_remove + 1e-12
        assert np.linalg.norm(products[0] - products[1], axis=(-2, -1)).max() <= rule.replace_one + 1e-12


@pytest.mark.parametrize("clip", [0.1, 0.5, 0.8])
def test_clipped_products_can_be_nearly_opposite(clip):
    # x x^T v with x close to orthogonal to v: two of them point almost opposite ways, and a tight clip keeps that.
    rule = Sensitivity.outer_product(1.0, clip)
    assert rule == Sensitivity(clip, min(2 * clip, math.sqrt(2)))
    v = np.array([1.0, 0.0, 0.0])
    reached = furthest(lambda x: clipped(np.outer(unit(x), unit(x)) @ v[:, None], clip), 3, np.random.default_rng(3))
    assert reached <= rule.replace_one + 1e-9
    if clip == 0.1:
        assert reached > 1.985 * clip  # far beyond sqrt(2) clip: the 1.99 C of SOUNDNESS.md


def test_the_pair_that_reaches_1_99_of_the_clip():
    # x = (a, +-sqrt(1 - a^2)) and v = e_1: x x^T v = a x, of norm a = C, at an angle of pi - 2 asin(a).
    C = 0.1
    x, z = (np.array([C, sign * math.sqrt(1 - C**2)]) for sign in (1, -1))
    v = np.array([[1.0], [0.0]])
    one, two = (clipped(np.outer(row, row) @ v, C) for row in (x, z))
    assert np.linalg.norm(one - two) == pytest.approx(2 * C * math.sqrt(1 - C**2))
    assert np.linalg.norm(one - two) > 1.98 * C
    assert np.linalg.norm(one - two) <= Sensitivity.outer_product(1.0, C).replace_one


def test_a_clip_above_the_norm_changes_nothing():
    assert Sensitivity.outer_product(1.0, 5.0) == Sensitivity.outer_product(1.0)
    assert Sensitivity.outer_product(0.0) == Sensitivity(0.0, 0.0)


def test_numbers_of_one_sign_do_not_double():
    assert Sensitivity.non_negative(3.0) == Sensitivity(3.0, 3.0)
    rows = np.random.default_rng(4).uniform(0, 3, size=(2, 1000))
    assert np.abs(rows[0] - rows[1]).max() <= 3.0


# Spreads of the scores of selections, over all small data sets and all neighbours of them.

GRID = np.array([0.0, 1.0, 2.0])
VALUES = (-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, math.nan)


def quantile_scores(values, q, n):
    known = [v for v in values if not math.isnan(v)]
    return np.array([-abs(sum(v <= g for v in known) - q * n) for g in GRID])


def threshold_scores(rows):
    return np.array(
        [sum((margin > g) == label for margin, label in rows if not math.isnan(margin)) for g in GRID], float
    )


@pytest.mark.parametrize("q", [0.0, 0.25, 0.5, 1.0])
def test_spread_of_quantile_scores(q):
    rng = np.random.default_rng(5)
    worst = {"add-remove": 0.0, "replace-one": 0.0}
    for n in (1, 2, 5, 10):
        for _ in range(60):
            others = list(rng.choice(VALUES, size=n - 1))
            absent = quantile_scores([*others, math.nan], q, n)  # zeroed out: no rank, n public
            present = [quantile_scores([*others, value], q, n) for value in VALUES]
            for scores in present:
                worst["add-remove"] = max(worst["add-remove"], spread(scores - absent))
                for other in present:
                    worst["replace-one"] = max(worst["replace-one"], spread(scores - other))
    for adjacency, seen in worst.items():
        assert seen <= Quantile.spread.under(adjacency)
        if 0.0 < q < 1.0:
            assert seen == Quantile.spread.under(adjacency) == 2.0


def test_spread_of_threshold_scores():
    rng = np.random.default_rng(6)
    worst = {"add-remove": 0.0, "replace-one": 0.0}
    rows = [(value, label) for value in VALUES for label in (True, False)]
    for _ in range(30):
        others = [rows[k] for k in rng.integers(len(rows), size=4)]
        absent = threshold_scores(others)
        present = [threshold_scores([*others, row]) for row in rows]
        for scores in present:
            worst["add-remove"] = max(worst["add-remove"], spread(scores - absent))
            for other in present:
                worst["replace-one"] = max(worst["replace-one"], spread(scores - other))
    assert worst == {"add-remove": 1.0, "replace-one": 2.0}
    assert Threshold.spread == Sensitivity(1.0, 2.0)


def test_spread_of_signed_vertices():
    # A row of entries up to B changes the scores -g_j and +g_j in opposite directions.
    B = 0.7
    rng = np.random.default_rng(7)
    rows = rng.uniform(-B, B, size=(2, 2000, 4))
    rows[:, 0, 0] = B, -B
    signed = np.concatenate([-rows, rows], axis=-1)
    alone = [spread(change) for change in signed[0]]
    apart = [spread(change) for change in signed[0] - signed[1]]
    entry = Sensitivity.vector(B)
    assert max(alone) == pytest.approx(2 * entry.add_remove)
    assert max(apart) == pytest.approx(2 * entry.replace_one)
    assert 2 * entry.replace_one == pytest.approx(4 * B)


# The object itself.


def test_frozen():
    rule = Sensitivity.vector(1.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        rule.add_remove = 0.5
    assert rule == Sensitivity(1, 2)
    assert hash(rule) == hash(Sensitivity(1, 2))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Sensitivity(-1.0, 1.0), ValueError, "add_remove must be finite and at least 0, got -1.0"),
        (lambda: Sensitivity(1.0, math.inf), ValueError, "replace_one must be finite and at least 0, got inf"),
        (lambda: Sensitivity(math.nan, 1.0), ValueError, "add_remove must be a number, got NaN"),
        (lambda: Sensitivity("1", 1.0), TypeError, "add_remove must be a real number"),
        (lambda: Sensitivity.vector(-1.0), ValueError, "norm must be finite and at least 0"),
        (lambda: Sensitivity.one_hot(0), ValueError, "columns must be at least 1, got 0"),
        (lambda: Sensitivity.one_hot(1.5), TypeError, "columns must be an integer"),
        (lambda: Sensitivity.outer_product(-1.0), ValueError, "row_norm must be finite and at least 0"),
        (lambda: Sensitivity.outer_product(1.0, -0.1), ValueError, "clip must be finite and at least 0"),
        (lambda: Sensitivity.non_negative(math.inf), ValueError, "bound must be finite and at least 0"),
        (lambda: Sensitivity.vector(1.0).under("swap"), ValueError, "adjacency must be one of"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
