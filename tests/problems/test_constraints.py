import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from tacit.problems import L1Ball

from .support import repeatable, vectors

radii = st.floats(0.01, 20.0)
wide = st.one_of(vectors(), vectors(limit=1e-3), vectors(limit=1e12, max_size=12))


def vertices(radius, d):
    return np.concatenate([radius * np.eye(d), -radius * np.eye(d)])


def inside(w, radius):
    return math.fsum(np.abs(w)) <= radius * (1 + 1e-10)


@given(wide, radii)
@repeatable
def test_projection_satisfies_the_kkt_condition(w, radius):
    # v is the projection exactly if (w - v).(u - v) <= 0 for every u in the ball, hence for every vertex.
    v = L1Ball(radius).project(w)
    angles = (vertices(radius, w.size) - v) @ (w - v)
    assert angles.max() <= 1e-12 * (1 + np.abs(w).max()) * radius * w.size


@given(wide, radii)
@repeatable
def test_projection_is_in_the_ball_and_on_its_surface_from_outside(w, radius):
    ball = L1Ball(radius)
    v = ball.project(w)
    assert inside(v, radius)
    if inside(w, radius):
        np.testing.assert_allclose(v, w, rtol=1e-9, atol=1e-9 * radius)
    else:
        assert np.abs(v).sum() == pytest.approx(radius, rel=1e-13)


@given(wide, radii)
@repeatable
def test_projecting_twice_changes_nothing(w, radius):
    ball = L1Ball(radius)
    v = ball.project(w)
    np.testing.assert_allclose(ball.project(v), v, rtol=1e-13, atol=1e-15 * radius)


@given(st.integers(1, 5).flatmap(lambda d: st.tuples(*[vectors(min_size=d, max_size=d)] * 2)), radii)
@repeatable
def test_projection_is_firmly_non_expansive(pair, radius):
    first, second = pair
    ball = L1Ball(radius)
    moved = ball.project(first) - ball.project(second)
    assert moved @ moved <= moved @ (first - second) + 1e-10


@pytest.mark.parametrize("seed", range(5))
def test_projection_against_a_quadratic_programme(seed):
    rng = np.random.default_rng(seed)
    w, radius = 3 * rng.normal(size=4), rng.uniform(0.5, 4.0)
    # w = a - b with a, b >= 0 and sum(a + b) <= radius.
    found = minimize(
        lambda ab: np.sum((ab[:4] - ab[4:] - w) ** 2),
        np.zeros(8),
        bounds=[(0, None)] * 8,
        constraints={"type": "ineq", "fun": lambda ab: radius - ab.sum()},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    np.testing.assert_allclose(L1Ball(radius).project(w), found.x[:4] - found.x[4:], atol=1e-5)


def test_projection_of_enormous_vectors_keeps_its_digits():
    ball = L1Ball(1.0)
    np.testing.assert_array_equal(ball.project([1e16, 3.0]), [1.0, 0.0])
    np.testing.assert_array_equal(ball.project([3.0, -1e60, 5e59]), [0.0, -1.0, 0.0])
    np.testing.assert_array_equal(ball.project([-1e308, 1e308, 1e308, 0.0]), np.array([-1.0, 1.0, 1.0, 0.0]) / 3)


def test_projection_copies():
    w = np.array([0.1, 0.2])
    v = L1Ball(1.0).project(w)
    np.testing.assert_array_equal(v, w)
    assert not np.shares_memory(v, w)


@given(vectors(limit=1e4), radii)
@repeatable
def test_linear_oracle_is_the_best_vertex(gradient, radius):
    index, sign = L1Ball(radius).linear_oracle(gradient)
    best = (vertices(radius, gradient.size) @ gradient).min()
    assert sign * radius * gradient[index] == pytest.approx(best)


def test_linear_oracle_takes_the_first_vertex_on_a_tie():
    assert L1Ball(2.0).linear_oracle([0.0, 3.0, -3.0]) == (1, -1)
    assert L1Ball(2.0).linear_oracle([0.0, 0.0]) == (0, 1)


@pytest.mark.parametrize("radius", [0.0, -1.0, math.nan, math.inf])
def test_bad_radii_are_refused(radius):
    with pytest.raises(ValueError, match=r"^radius must be .*got"):
        L1Ball(radius)
