"""Mistakes in exact sums, made on purpose: each is caught by how far a row moves a sum, or by its bits."""

import math

import numpy as np
import pytest

from tacit.blocks import ExactPasses, exact, sums
from tacit.blocks.grid import GridTable, Part
from tacit.blocks.sums import sum_over
from tacit.kernels import exact as kernels
from tests.solvers.support import bounded, rows, task

from .cases import quiet

pytestmark = quiet

N, D = 400, 3


def table(seed=0):
    return rows("multinomial", N, D, seed=seed)


def passes(data):
    return ExactPasses(task("multinomial", N, D), data)


def parts_of_millions(times):
    """The same block of the largest entries, again and again, as one part."""
    block = next(Part(GridTable.of(np.full((2_048, 1), 4.0)), 1.0, np.ones(2_048), np.ones(2_048), 0, 2_048).blocks())

    class Again:
        def blocks(self):
            return iter([block] * times)

    return [Again()]


def total_of_millions():
    times = 2_100  # 4.3 million rows
    total = sum_over(parts_of_millions(times), exact._outer, math.inf, np.ones(2))
    return int(total.high[0, 0]) * 2**32 + int(total.low[0, 0]), times * 2**53


def test_a_limb_that_is_dropped_is_caught(monkeypatch):
    found, expected = total_of_millions()
    assert found == expected > 2**63
    honest = sums._carried

    def one_limb(before, held):
        more = honest(None, held)
        whole = more.high * 2**32 + more.low  # wraps around
        return sums.Total(whole >> 32, whole & (2**32 - 1)) if before is None else wrapped(before, whole)

    def wrapped(before, whole):
        both = before.high * 2**32 + before.low + whole
        return sums.Total(both >> 32, both & (2**32 - 1))

    monkeypatch.setattr(sums, "_carried", one_limb)
    found, expected = total_of_millions()
    assert found != expected


def longest_row(radius):
    """How far a single row moves the second moments, over what is stated: for many rows that are clipped."""
    rng = np.random.default_rng(1)
    Z = rng.uniform(-3.0, 3.0, size=(300, D))
    stated = passes(table()).blocked.outer(radius).add_remove
    return (
        max(
            np.linalg.norm(ExactPasses(task("squared", 1, D), bounded(z[None, :], np.zeros(1))).second_moments(radius))
            for z in Z
        )
        / stated
    )


@pytest.mark.parametrize("columns", ["few", "many"])
def test_rounding_to_the_nearest_is_caught_where_rows_come_back_to_the_grid(columns, monkeypatch):
    radius = 2.0**-12  # rows of a few steps, where the rounding is a large part
    if columns == "many":
        monkeypatch.setattr(exact, "SHORT", D - 1)
    assert longest_row(radius) <= 1.0

    def nearest(Z, bias, factors):
        wide = np.hstack([np.asarray(Z, dtype=np.float64), np.full((len(Z), 1), bias)])
        return np.rint(wide * factors[:, None] * 2.0**kernels.GRID)

    def columns_of(Z, bias, factors, out):
        out[:, : len(Z)] = nearest(Z, bias, factors).T

    monkeypatch.setattr(kernels, "scaled", nearest)
    monkeypatch.setattr(kernels, "_scaled_columns", columns_of)
    monkeypatch.setattr(kernels, "dense_outer", kernels.dense_outer.py_func)
    assert longest_row(radius) > 1.0


def own_term_is_exact(data, i):
    """Whether a row that is absent changes the sum of gradients by its own term, to the last bit."""
    w = 0.7 * np.random.default_rng(2).normal(size=(3, D + 1))
    whole, without, alone = (
        passes(data.some(places)).gradient(w, 1.0)
        for places in (np.arange(N), np.delete(np.arange(N), i), np.array([i]))
    )
    return np.array_equal(whole - without, alone)


def test_a_product_in_single_precision_is_caught(monkeypatch):
    data = table()
    assert all(own_term_is_exact(data, i) for i in (0, 10, N - 1))
    honest = exact.product
    monkeypatch.setattr(exact, "product", lambda one, other: honest(one.astype(np.float32), other.astype(np.float32)))
    assert not all(own_term_is_exact(data, i) for i in range(10))


def test_a_part_that_is_counted_twice_is_caught():
    data = table()
    once = passes(data)
    twice = passes(data)
    twice._parts = twice._parts * 2
    w = np.zeros((3, D + 1))
    stated = once.moves.vector(1.0).add_remove
    assert np.linalg.norm(twice.gradient(w, 1.0) - once.gradient(w, 1.0)) > stated


@pytest.mark.parametrize("loss", ["squared", "logistic", "multinomial"])
def test_no_coefficient_makes_a_gradient_longer_than_its_clip(loss):
    """Also for tiny clips, of a few steps, where a rounding would be a large part of it."""
    data = rows(loss, 200, D, seed=5)
    w = np.random.default_rng(6).normal(size=(3 if loss == "multinomial" else 1, D + 1))
    for clip in (2.0**-18, 1e-3, 0.7, 30.0):
        for i in range(0, 200, 9):
            alone = ExactPasses(task(loss, 200, D), data.some(np.array([i])))
            assert np.linalg.norm(alone.gradient(w, clip * (1.0 - 2.0**-30))) <= clip
