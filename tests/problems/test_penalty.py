"""The penalty on the weights: its prox against brute force and scikit-learn, and its change of units."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from sklearn.linear_model import ElasticNet

from tacit.problems import Penalty
from tacit.problems.penalty import LARGEST, separable_prox

from .support import repeatable, steps, strengths, vectors

intervals = st.one_of(
    st.just((-math.inf, math.inf)),
    st.just((0.0, math.inf)),
    st.tuples(st.floats(-3.0, 3.0), st.floats(-3.0, 3.0)).map(sorted),
)
penalties = st.builds(lambda l1, l2, interval: Penalty(l1, l2, *interval), strengths, strengths, intervals)


def value(penalty, w):
    """The penalty, infinite outside the bounds."""
    if np.any((w < penalty.low) | (w > penalty.high)):
        return math.inf
    return float(np.sum(penalty.l1 * np.abs(w) + penalty.l2 / 2 * np.square(w)))


@given(penalties, st.floats(-10.0, 10.0), steps)
@repeatable
def test_prox_is_the_minimiser_found_by_brute_force(penalty, w, step):
    def objective(v):
        return value(penalty, v) + (v - w) ** 2 / (2 * step)

    low, high = np.clip([penalty.low, penalty.high], -20.0, 20.0)
    candidates = [low, high, *([0.0] if low <= 0.0 <= high else [])]
    if low < high:
        found = minimize_scalar(objective, bounds=(low, high), method="bounded", options={"xatol": 1e-9})
        candidates.append(found.x)
    best = min(candidates, key=objective)
    ours = penalty.prox(w, step)
    assert objective(ours) <= objective(best) + 1e-12
    # The objective is 1/step-strongly convex, so equal values mean near points.
    assert abs(ours - best) <= math.sqrt(2 * step * max(objective(best) - objective(ours), 0.0)) + 1e-6


@given(penalties, vectors(), st.data())
@repeatable
def test_prox_of_a_vector_is_separable(penalty, w, data):
    step = data.draw(st.lists(steps, min_size=w.size, max_size=w.size))
    expected = [penalty.prox(value, s) for value, s in zip(w, step, strict=True)]
    np.testing.assert_array_equal(penalty.prox(w, step), expected)


@given(penalties, st.integers(1, 5).flatmap(lambda d: st.tuples(*[vectors(min_size=d, max_size=d)] * 2)), steps)
@repeatable
def test_prox_is_firmly_non_expansive(penalty, pair, step):
    first, second = pair
    moved = penalty.prox(first, step) - penalty.prox(second, step)
    assert moved @ moved <= moved @ (first - second) + 1e-10


@given(penalties, vectors(), steps, st.data())
@repeatable
def test_prox_satisfies_its_optimality_condition(penalty, w, step, data):
    # (w - p) / step is a subgradient at p: psi(u) >= psi(p) + (w - p).(u - p) / step for all u.
    p = penalty.prox(w, step)
    u = penalty.prox(data.draw(vectors(min_size=w.size, max_size=w.size)), step)
    assert math.isfinite(value(penalty, p))
    assert value(penalty, u) >= value(penalty, p) + (w - p) @ (u - p) / step - 1e-8


def test_the_elastic_net_is_scikit_learns():
    # At scikit-learn's solution, w = prox(w - step * gradient of the smooth part): a fixed point of ours.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    y = X @ [1.0, -2.0, 0.0, 0.0, 0.5] + 0.1 * rng.normal(size=60)
    for positive in (False, True):
        model = ElasticNet(alpha=0.2, l1_ratio=0.6, fit_intercept=False, tol=1e-12, positive=positive)
        w = model.fit(X, y).coef_
        penalty = Penalty(l1=0.2 * 0.6, l2=0.2 * 0.4, low=0.0 if positive else -math.inf)
        gradient = X.T @ (X @ w - y) / 60
        np.testing.assert_allclose(penalty.prox(w - 0.1 * gradient, 0.1), w, atol=1e-8)


@pytest.mark.parametrize("penalty", [Penalty(0.24, 0.56), Penalty(0.24, 0.56, -1.0, 2.5)], ids=["free", "bounded"])
def test_prox_in_a_compiled_loop_is_the_prox_over_arrays(penalty):
    w = np.concatenate([np.linspace(-40.0, 40.0, 401), [-1e4, 1e-300, 700.0]])
    one_by_one = [separable_prox(float(v), 0.5, penalty.l1, penalty.l2, penalty.low, penalty.high) for v in w]
    assert type(one_by_one[0]) is float
    np.testing.assert_array_equal(one_by_one, penalty.prox(w, 0.5))


def test_a_weight_has_the_penalty_of_its_place_and_the_intercept_none():
    penalty = Penalty(np.array([1.0, 2.0]), 0.5, np.array([-1.0, 0.0]), 3.0).with_intercept()
    np.testing.assert_array_equal(penalty.prox(np.array([-9.0, -9.0, -9.0]), 1.0), [-1.0, 0.0, -9.0])
    for j in range(3):
        assert penalty.at(j).prox(5.0, 2.0) == penalty.prox(np.full(3, 5.0), 2.0)[j]


# --- units ------------------------------------------------------------------------------------------------------------


def objective(penalty, X, y, w):
    return np.mean((X @ w - y) ** 2) / 2 + value(penalty, w)


@given(vectors(min_size=3, max_size=3), st.floats(0.1, 10.0))
@repeatable
def test_on_scaled_data_the_problem_is_the_same(w, target):
    """The objective on scaled data is that on the data, over the target's unit squared."""
    rng = np.random.default_rng(1)
    X, y, units = rng.normal(size=(20, 3)), rng.normal(size=20), np.array([0.3, 1.0, 7.0])
    penalty = Penalty(0.2, np.array([0.1, 0.0, 2.0]), low=-5.0, high=np.array([math.inf, 4.0, 9.0]))
    there = penalty.on(units, target)
    scaled = objective(there, X / units, y / target, w * units / target)
    inside = np.all((w > -5.0 + 1e-9) & (w < penalty.high - 1e-9))
    expected = objective(penalty, X, y, w) / target**2
    assert scaled == pytest.approx(expected) if inside or math.isfinite(scaled) else expected == math.inf


def test_strengths_are_for_standardised_columns_and_bounds_for_the_users():
    units = np.array([0.5, 4.0])
    there = Penalty(0.3, 0.2, -1.0, 2.0).on(units, 2.0, standardised=True)
    np.testing.assert_array_equal(there.l1, [0.15, 0.15])
    np.testing.assert_array_equal(there.l2, [0.2, 0.2])
    np.testing.assert_array_equal(there.low, [-0.25, -2.0])
    np.testing.assert_array_equal(there.high, [0.5, 4.0])


def test_extreme_units_leave_finite_numbers():
    there = Penalty(1e100, 0.0, -1.0, math.inf).on(np.array([1e-150, 1e150]), 1e-100)
    assert there.l1.max() <= LARGEST
    assert np.isfinite(there.low).all()
    assert np.isposinf(there.high).all()
