"""Means of snapshots, corrections of them, and what is left out of a correction."""

from dataclasses import replace

import numpy as np
import pytest

from tacit.privacy import Gate
from tacit.solvers.pca.directions import Directions, Products
from tacit.solvers.pca.variance_reduced import _standing_out

from .support import fitted, spiked

pytestmark = pytest.mark.filterwarnings("ignore:random_state is set:UserWarning")


def test_variance_reduced_skips_what_it_need_not_ask(monkeypatch):
    # A mean that did not lag would need no correction; the gate raises unless all is released or skipped.
    honest = Products.mixed
    monkeypatch.setattr(
        Products,
        "directions",
        property(lambda mean: Directions(mean.V, np.eye(mean.V.shape[1]), np.eye(mean.V.shape[1]))),
    )
    skipped = []
    monkeypatch.setattr(Gate, "skip", _counting(Gate.skip, skipped))
    monkeypatch.setattr(Products, "mixed", lambda mean, other, *parts: replace(honest(mean, other, *parts), V=mean.V))
    fitted("variance-reduced", spiked(), 8.0)
    assert skipped == ["corrections"] * 16


def _counting(skip, seen):
    def counted(gate, name):
        seen.append(name)
        skip(gate, name)

    return counted


def test_a_mean_of_products_is_a_product_with_the_mean():
    # What corrections rest on: products are linear in V, so that the mean of snapshots belongs to a mean of anchors.
    X = spiked(200)
    rng = np.random.default_rng(0)
    A = X.T @ X
    one, other = (Directions.of(rng.normal(size=(20, 4)), 0.0) for _ in range(2))
    first, second = (Products.at(now, A @ now.weighed, 0.5) for now in (one, other))
    mixed = first.mixed(second, 0.25, 0.75)
    np.testing.assert_allclose(mixed.M, A @ mixed.V, atol=1e-9)
    np.testing.assert_allclose(mixed.covariance, (0.25**2 + 0.75**2) * 0.25 * np.eye(4), atol=1e-12)
    assert mixed.variance == pytest.approx((0.25**2 + 0.75**2) * 0.25)
    started = mixed.polar()
    np.testing.assert_allclose(started.M.T @ started.M, np.eye(4), atol=1e-9)
    np.testing.assert_allclose(started.directions.V, mixed.directions.V, atol=1e-9)


def test_noise_is_even_in_the_columns_that_are_judged():
    rng = np.random.default_rng(0)
    now = Directions.of(rng.normal(size=(2_000, 3)) * [30.0, 3.0, 1.0], 0.1)
    found = Products.at(now, rng.normal(size=(2_000, 3)) * 0.7, 0.7)  # nothing but noise
    np.testing.assert_allclose(np.cov(found.even.T), np.eye(3), atol=0.1)


def test_a_correction_keeps_what_stands_above_its_noise():
    rng = np.random.default_rng(0)
    change = np.linalg.qr(rng.normal(size=(300, 4)))[0] * [1.0, 0.5, 0.2, 0.1]
    noise = rng.normal(size=(300, 4))
    np.testing.assert_array_equal(_standing_out(change, noise, 1.0), 0.0)
    signal = 100.0 * change
    np.testing.assert_allclose(_standing_out(change, signal, 0.0), np.eye(4), atol=1e-12)
    kept = np.diag(_standing_out(change, signal + noise, 1.0))
    assert kept[0] > 0.9
    assert kept[3] < 0.2
    assert np.all(np.linalg.eigvalsh(_standing_out(change, signal + noise, 1.0)) <= 1.0)
