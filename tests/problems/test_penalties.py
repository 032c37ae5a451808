import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from sklearn.linear_model import ElasticNet as SklearnElasticNet

from tacit.problems import L1, L2, Box, ElasticNet, NonNegative, NoPenalty, Sum

from .support import repeatable, steps, strengths, vectors

intervals = st.tuples(st.floats(-3.0, 3.0), st.floats(-3.0, 3.0)).map(sorted)
simple = st.one_of(
    st.just(NoPenalty()),
    strengths.map(L2),
    strengths.map(L1),
    st.builds(ElasticNet, strengths, st.floats(0.0, 1.0)),
    st.just(NonNegative()),
    intervals.map(lambda interval: Box(*interval)),
)
smooth_parts = st.one_of(strengths.map(L2), strengths.map(L1), st.builds(ElasticNet, strengths, st.floats(0.0, 1.0)))
penalties = st.one_of(simple, st.builds(Sum, simple, smooth_parts), st.builds(Sum, smooth_parts, smooth_parts))


def interval(penalty):
    return float(penalty.terms.low), float(penalty.terms.high)


@given(penalties, st.floats(-10.0, 10.0), steps)
@repeatable
def test_prox_is_the_minimiser_found_by_brute_force(penalty, w, step):
    def objective(v):
        return penalty.value(v) + (v - w) ** 2 / (2 * step)

    low, high = np.clip(interval(penalty), -20.0, 20.0)
    found = (
        minimize_scalar(objective, bounds=(low, high), method="bounded", options={"xatol": 1e-9})
        if low < high
        else None
    )
    candidates = [low, high, *([0.0] if low <= 0.0 <= high else []), *([found.x] if found else [])]
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
    assert penalty.value(u) >= penalty.value(p) + (w - p) @ (u - p) / step - 1e-8


@given(penalties, vectors(), steps)
@repeatable
def test_prox_lands_where_the_penalty_is_finite(penalty, w, step):
    assert penalty.value(penalty.prox(w, step)) < math.inf


@given(penalties, st.floats(0.0, 1.0), st.data())
@repeatable
def test_strong_convexity(penalty, t, data):
    d = data.draw(st.integers(1, 4))
    u, v = (penalty.prox(data.draw(vectors(min_size=d, max_size=d)), 1.0) for _ in range(2))
    between = penalty.value(t * u + (1 - t) * v)
    gap = penalty.strong_convexity / 2 * t * (1 - t) * np.sum((u - v) ** 2)
    if math.isfinite(between):  # rounding may leave the box
        assert between <= t * penalty.value(u) + (1 - t) * penalty.value(v) - gap + 1e-9


@given(vectors(), strengths, st.floats(0.0, 1.0))
@repeatable
def test_values(w, strength, ratio):
    l1, l2 = np.abs(w).sum(), w @ w
    assert NoPenalty().value(w) == 0.0
    assert L1(strength).value(w) == pytest.approx(strength * l1)
    assert L2(strength).value(w) == pytest.approx(strength / 2 * l2)
    expected = strength * ratio * l1 + strength * (1 - ratio) / 2 * l2
    assert ElasticNet(strength, ratio).value(w) == pytest.approx(expected)
    assert NonNegative().value(w) == (0.0 if np.all(w >= 0) else math.inf)


@given(vectors(), strengths, steps)
@repeatable
def test_elastic_net_ends_at_l1_and_l2(w, strength, step):
    np.testing.assert_array_equal(ElasticNet(strength, 1.0).prox(w, step), L1(strength).prox(w, step))
    np.testing.assert_array_equal(ElasticNet(strength, 0.0).prox(w, step), L2(strength).prox(w, step))


def test_elastic_net_is_scikit_learns():
    # At scikit-learn's solution, w = prox(w - step * gradient of the smooth part): a fixed point of ours.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    y = X @ [1.0, -2.0, 0.0, 0.0, 0.5] + 0.1 * rng.normal(size=60)
    for positive in (False, True):
        model = SklearnElasticNet(alpha=0.2, l1_ratio=0.6, fit_intercept=False, tol=1e-12, positive=positive)
        w = model.fit(X, y).coef_
        penalty = ElasticNet(0.2, 0.6) + NonNegative() if positive else ElasticNet(0.2, 0.6)
        gradient = X.T @ (X @ w - y) / 60
        np.testing.assert_allclose(penalty.prox(w - 0.1 * gradient, 0.1), w, atol=1e-8)


def test_sum_adds_weights_and_intersects_intervals():
    total = L1(1.0) + L2(2.0) + NonNegative() + Box(-1.0, [2.0, 3.0])
    assert total.terms[:3] == (1.0, 2.0, 0.0)
    np.testing.assert_array_equal(total.terms.high, [2.0, 3.0])
    assert total.value([1.0, 3.0]) == 4.0 + 10.0
    assert total.value([2.5, 3.0]) == math.inf
    assert total.strong_convexity == 2.0


def test_boxes_with_a_bound_for_each_coordinate():
    box = Box([-1.0, 0.0, -math.inf], [1.0, 0.0, math.inf])
    np.testing.assert_array_equal(box.prox([5.0, 5.0, 5.0], 1.0), [1.0, 0.0, 5.0])
    assert box.value([0.5, 0.0, 1e300]) == 0.0
    assert box.value([0.5, 0.1, 0.0]) == math.inf
    assert L2(1.0).value([1e300]) == math.inf


def test_a_box_keeps_its_own_copy_of_its_bounds():
    low = np.zeros(2)
    box = Box(low, 1.0)
    low[:] = 0.5
    np.testing.assert_array_equal(box.low, 0.0)
    with pytest.raises(ValueError, match="read-only"):
        box.low[0] = 1.0


def test_penalties_are_values():
    assert L1(1) == L1(1.0) != L2(1.0)
    assert Box([0.0, 1.0], 2.0) == Box(np.array([0.0, 1.0]), 2)
    assert Box([0.0, 1.0], 2.0) != Box([0.0, 1.5], 2.0)
    assert Box(0.0, 2.0) != NonNegative()
    assert hash(L1(1.0) + Box([0.0], 2.0)) == hash(L1(1.0) + Box([0.0], 2.0))


@pytest.mark.parametrize("bad", [-1e-9, math.nan, math.inf])
def test_bad_strengths_are_refused(bad):
    for make in (L1, L2, lambda strength: ElasticNet(strength, 0.5)):
        with pytest.raises(ValueError, match=r"^strength must be .*got"):
            make(bad)


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan])
def test_bad_l1_ratios_are_refused(bad):
    with pytest.raises(ValueError, match=r"^l1_ratio must .*got"):
        ElasticNet(1.0, bad)


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        (1.0, 0.0, "low must not exceed high, got low=1.0 and high=0.0"),
        ([0.0, 2.0], 1.0, "low must not exceed high"),
        (math.nan, 0.0, "low must be a number, got NaN"),
        (0.0, [math.nan], "high must be a number or a one-dimensional array"),
        ([[0.0]], 1.0, "low must be a number or a one-dimensional array"),
        (math.inf, math.inf, "low must be below inf"),
        ([0.0, 0.0], [1.0, 1.0, 1.0], "low and high must have one length, got 2 and 3"),
    ],
)
def test_bad_boxes_are_refused(low, high, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        Box(low, high)


@pytest.mark.parametrize("step", [0.0, -1.0, math.nan, math.inf, [1.0, 0.0]])
def test_bad_steps_are_refused(step):
    with pytest.raises(ValueError, match=r"^step must be finite and above 0, got"):
        L1(1.0).prox([1.0, 2.0], step)


def test_a_box_refuses_coefficients_of_another_length():
    for use in (lambda box: box.prox([1.0], 1.0), lambda box: box.value([1.0])):
        with pytest.raises(ValueError, match=r"^w must have one coefficient per bound, 2, got shape \(1,\)"):
            use(Box([0.0, 0.0], 1.0))


def test_sums_without_a_common_point_are_refused():
    with pytest.raises(ValueError, match=r"^left and right must allow a common point"):
        NonNegative() + Box(-2.0, -1.0)
    with pytest.raises(TypeError):
        L1(1.0) + 1.0
