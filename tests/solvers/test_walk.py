"""Weights from all slopes of a walk, on slopes of which the curvature is known."""

from dataclasses import replace

import numpy as np
import pytest

from tacit.solvers import Gradient
from tacit.solvers.curvature import Curvature

from .support import task

D, NOISE, H = 30, 0.02, 0.25
MOMENTS = np.linspace(0.5, 2.0, D + 1)


def walk(noise, seed=0, outputs=1, true=1.0, lift=1.0, vectors=None, intercept=True, n_iter=16):
    """Steps on a quadratic with `true` times the curvature that they are made for; and its minimum."""
    rng, aim = np.random.default_rng(seed), np.random.default_rng(1).normal(size=(outputs, D + 1))
    vectors = np.eye(D + 1) if vectors is None else vectors
    facts = {"fit_intercept": intercept} | ({"outputs": outputs} if outputs > 1 else {})
    steps = Gradient(n_iter=n_iter).at(task("logistic" if outputs == 1 else "multinomial", 10_000, D, **facts))
    bound = Curvature(vectors, MOMENTS, MOMENTS, lift + MOMENTS, np.zeros(D + 1), H)
    curvature = true * H * (vectors * MOMENTS) @ vectors.T

    def slope_at(place):
        return (place - aim) @ curvature + noise * rng.normal(size=place.shape)

    begin = np.zeros((outputs, D + 1))
    return steps._walk(slope_at, begin, bound, np.zeros(D + 1), noise), aim


def error(weights, aim):
    return float(np.sum(np.square(weights - aim) @ MOMENTS))


@pytest.mark.parametrize("outputs", [1, 4])
@pytest.mark.parametrize("mixed", [False, True], ids=["axes", "mixed directions"])
def test_where_the_curvature_is_known_the_noise_is_what_is_told_and_less_than_before(outputs, mixed):
    """Seeds differ in their noise alone; the error that all of them share is that of steps without noise."""
    vectors = np.linalg.qr(np.random.default_rng(9).normal(size=(D + 1, D + 1)))[0] if mixed else None
    margins = np.eye(D + 1) if vectors is None else vectors
    apart, before, told, first = [], [], [], []
    without = walk(0.0, 0, outputs, lift=8.0, vectors=vectors)[0].mean
    for seed in range(100):
        found, _ = walk(NOISE, seed, outputs, lift=8.0, vectors=vectors)
        weights, own = found.together(NOISE, 1.0)
        apart.append(np.sum(np.square((weights - without) @ margins) @ MOMENTS) / outputs)
        before.append(np.sum(np.square((found.mean - without) @ margins) @ MOMENTS) / outputs)
        told.append(found.variance(NOISE, 1.0, own))
        first.append(found.variance(NOISE, 1.0, 1.0))
    assert np.mean(before) == pytest.approx(np.mean(first), rel=0.08)
    assert np.mean(apart) == pytest.approx(np.mean(told), rel=0.1)
    assert np.mean(apart) < 0.9 * np.mean(before)


def test_the_slope_at_zero_is_told_by_all_steps_alike():
    """Without noise, and by the right curvature, they are where the mean iterate is; by a wrong one they are not."""
    found, _ = walk(0.0, n_iter=9)
    loud = replace(found, mean=found.mean + 0.3 * np.random.default_rng(1).normal(size=found.mean.shape))
    weights, own = loud.together(10.0, 1.0)  # noise that would explain any difference
    assert own == 0.0
    assert np.corrcoef(weights[0], found.mean[0])[0, 1] == pytest.approx(1.0, abs=1e-12)
    other, _ = loud.together(10.0, 0.2)
    assert np.corrcoef(other[0], found.mean[0])[0, 1] < 1.0 - 1e-4


@pytest.mark.parametrize("part", [0.3, 1.0, 3.0])
def test_without_noise_the_mean_iterate_is_returned_to_the_last_bit(part):
    found, _ = walk(0.0)
    weights, own = found.together(0.0, part)
    assert own == 1.0
    assert np.array_equal(weights, found.mean)


def test_a_curvature_that_is_wrong_is_not_believed():
    """A tenth of what steps were made for in half of the directions: by it alone weights would be far off."""
    wrong = np.where(np.arange(D + 1) % 2, 1.0, 0.1)
    gained = {}
    for true, noise in ((1.0, 0.1), (wrong, 0.1), (wrong, 1e-4)):
        errors = []
        for seed in range(20):
            found, aim = walk(noise, seed, true=true, lift=0.2, n_iter=60)
            weights, own = found.together(noise, 1.0)
            errors.append((error(weights, aim) / error(found.mean, aim), own))
        gained[np.mean(true) == 1.0, noise] = np.mean(errors, axis=0)
    assert gained[True, 0.1][0] < 0.95
    assert gained[True, 0.1][1] < 0.2
    assert gained[False, 0.1][1] > 0.9
    assert gained[False, 1e-4] == pytest.approx(1.0, abs=0.01)


def test_steps_that_began_anew_leave_nothing_of_those_before():
    """Nearly twice the curvature is met at once: the places and slopes are those of the steps that count."""
    found, aim = walk(1e-6, outputs=4, true=1.9, lift=0.0, n_iter=40)
    assert 0 < len(found.bounds) < 40
    assert found.first.h == 0.5
    at_zero = found.place @ np.diag(1.9 * H * MOMENTS) - found.slope
    assert at_zero == pytest.approx(aim @ np.diag(1.9 * H * MOMENTS), abs=1e-4)
