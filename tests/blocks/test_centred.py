"""Exact sums over the rows of a PCA: a row's own whole numbers, no term above its bound, mistakes that are caught."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from tacit.blocks import Centre, centred, sums
from tacit.kernels import centred as kernels
from tests.solvers.pca.support import centred as rows_about

N, D = 3_000, 5
V = np.linalg.qr(np.random.default_rng(3).normal(size=(D, 3)))[0]
EDGES = np.linspace(0.0, 1.0, 9)
SUMS = {
    "second moments": lambda rows: rows.packed_moments(),
    "products": lambda rows: rows.products(V),
    "clipped products": lambda rows: rows.products(V, 0.3),
    "inner": lambda rows: rows.inner(V),
    "squares": lambda rows: rows.squares(),
    "lengths": lambda rows: rows.length_counts(V, EDGES),
    "sum": lambda rows: rows.rows.sum(Centre(np.full(D, 0.1), 2.5)),
    "distances": lambda rows: rows.rows.counts(np.full(D, 0.1), EDGES),
}


def table():
    """Rows of all sizes, some of them clipped, some that overflow, some with holes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D)) * 10.0 ** rng.integers(-7, 1, size=(N, 1))
    X[7], X[100, 2], X[200, 0] = 1e200, np.nan, np.inf
    return X


def about(X):
    return rows_about(X, np.linspace(-0.2, 0.3, D), 1.3)


@pytest.mark.parametrize("name", SUMS)
def test_a_row_that_is_absent_changes_a_total_by_its_own_whole_numbers(name):
    X, of = table(), SUMS[name]
    whole = of(about(X))
    for i in (0, 7, 100, 200, 1_234, N - 1):
        without, alone = of(about(np.delete(X, i, axis=0))), of(about(X[i : i + 1]))
        np.testing.assert_array_equal(whole, without + alone)  # all three have fewer than 53 bits here


@pytest.mark.parametrize("name", SUMS)
def test_order_blocks_and_threads_change_no_bit(name, monkeypatch):
    X, of = table(), SUMS[name]
    expected = of(about(X))
    np.testing.assert_array_equal(of(about(X[np.random.default_rng(1).permutation(N)])), expected)
    monkeypatch.setattr(sums, "_LITTLE", 1)
    for block, piece, threads in ((5, 2, 2), (2_048, 2_048, 1), (300, 7, 3)):
        monkeypatch.setattr(sums, "BLOCK", block)
        monkeypatch.setattr(centred, "BLOCK", block)
        monkeypatch.setattr(centred, "_PIECE", piece)
        monkeypatch.setattr(sums, "cores", lambda threads=threads: threads)
        np.testing.assert_array_equal(of(about(X)), expected)


def test_a_full_block_of_the_longest_rows_is_exact():
    """The limit: 2,048 rows of the most steps, of which 2^53 are in a sum."""
    X = np.tile([[1.0, 0.0], [0.0, -1.0]], (1_024, 1))
    rows = rows_about(X, np.zeros(2), 1.0)
    step = math.ldexp(1.0, -kernels.ROW)
    longest = 1.0 - step  # as it is cut towards zero from a little below 1
    half = 1_024 * longest**2
    np.testing.assert_array_equal(rows.packed_moments(), [half, 0.0, half])
    np.testing.assert_array_equal(rows.inner(np.eye(2)), half * np.eye(2))
    assert rows.squares() == 2 * half
    found = rows.products(np.eye(2))
    assert np.abs(found - half * np.eye(2)).max() < 1_024 * step


def longest_term(of, radius):
    """The norm of what single rows add, over many of them that are clipped."""
    X = np.random.default_rng(5).normal(size=(400, D))
    return max(np.linalg.norm(of(rows_about(x[None, :], np.zeros(D), radius))) for x in X)


def coarse(monkeypatch):
    """Grids of a few steps, where a rounding is a large part of a row."""
    for name, bits in (("ROW", 3), ("MEAN", 3), ("PRODUCT", 6)):
        monkeypatch.setattr(centred, name, bits)


TERMS = {
    "second moments": (lambda rows: rows.packed_moments(), 1.0),
    "inner": (lambda rows: rows.inner(np.eye(D)), 1.0),
    "clipped products": (lambda rows: rows.products(np.eye(D), 0.2), 0.2),
    "sum": (lambda rows: rows.rows.sum(Centre(np.zeros(D), 1.0)), 1.0),
}


def to_the_nearest(monkeypatch):
    """Everything that a kernel clips is rounded to the nearest step."""

    def steps(vectors, norms, unit, limits):
        with np.errstate(divide="ignore", invalid="ignore"):
            factors = np.minimum(unit, np.nan_to_num(limits / norms, nan=0.0, posinf=unit))
        return np.rint(vectors * factors[:, None])

    def on_grid(X, centre, radius, unit, out, norms):
        out[:] = steps(X - centre, np.linalg.norm(X - centre, axis=1), unit, np.full(len(X), radius * unit))
        norms[:] = np.linalg.norm(out, axis=1)

    def clipped(images, norms, clip, unit):
        images[:] = steps(images, np.linalg.norm(images, axis=1), unit, clip / norms * unit)

    def summed(X, centre, radius, unit):
        out = np.empty(X.shape)
        on_grid(X, centre, radius, unit, out, np.empty(len(X)))
        return out.sum(axis=0)

    monkeypatch.setattr(kernels, "on_grid", on_grid)
    monkeypatch.setattr(kernels, "summed", summed)
    monkeypatch.setattr(kernels, "clipped_products", clipped)


@pytest.mark.parametrize("name", TERMS)
def test_no_term_is_above_its_bound_on_any_grid_and_rounding_to_the_nearest_is_caught(name, monkeypatch):
    of, bound = TERMS[name]
    assert 0.99 * bound < longest_term(of, 1.0) <= bound or name in ("second moments", "inner")
    coarse(monkeypatch)
    assert longest_term(of, 1.0) <= bound
    to_the_nearest(monkeypatch)
    if name != "inner":  # whose vectors are only as long as the rows that they come from
        assert longest_term(of, 1.0) > bound


def test_a_row_against_another_stays_within_the_sensitivity_on_a_coarse_grid(monkeypatch):
    coarse(monkeypatch)
    X = np.random.default_rng(6).normal(size=(60, D))
    X[::2] *= 0.4
    alone = [rows_about(x[None, :], np.zeros(D), 1.0) for x in X]
    for clip in (None, 0.3):
        stated = alone[0].product_sensitivity(D, clip)
        terms = np.array([rows.products(np.eye(D), clip) for rows in alone])
        apart = np.linalg.norm(terms[:, None] - terms[None, :], axis=(2, 3)).max()
        assert apart <= stated.replace_one
        assert np.linalg.norm(terms, axis=(1, 2)).max() <= stated.add_remove


def test_a_limb_that_is_dropped_is_caught(monkeypatch):
    def total():
        block = next(rows_about(np.ones((2_048, 1)), np.zeros(1), 1.0)._kept.parts[0].blocks())
        millions = SimpleNamespace(blocks=lambda: iter([block] * 1_100))  # 2.3 million rows
        found = sums.sum_over([millions], centred._squares)
        return int(found.high[0]) * 2**32 + int(found.low[0])

    expected = 1_100 * 2_048 * (2**kernels.ROW - 1) ** 2
    assert total() == expected > 2**63
    honest = sums.Total.__add__

    def wrapped(one, other):
        both = honest(one, other)
        whole = both.high * 2**32 + both.low
        return sums.Total(whole >> 32, whole & (2**32 - 1))

    monkeypatch.setattr(sums.Total, "__add__", wrapped)
    assert total() != expected


def test_private_things_do_not_show():
    rows = about(table())
    assert repr(rows) == "CentredRows(private)"
    assert repr(rows._kept) == "Kept(private)"
