"""What a coordinator makes of released moments: noise that is shrunk away, and solves over the l1 ball."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from tacit.federated.protocols import moments
from tacit.problems import L1Ball


@pytest.mark.parametrize("centred", [True, False])
def test_the_logistic_solve_minimises_what_it_says(centred):
    rng = np.random.default_rng(0)
    root = rng.standard_normal((3, 3))
    covariance, slope, mean = root @ root.T, np.array([0.2, -0.1, 0.05]), np.array([0.3, -0.4, 0.2])
    nodes, chances = np.polynomial.hermite_e.hermegauss(101)

    def loss(at):
        w, b = at[:3] - at[3:6], at[6] if centred else mean @ (at[:3] - at[3:6])
        margins = b + math.sqrt(w @ covariance @ w + 1e-300) * nodes
        return chances @ np.logaddexp(0.0, margins) / chances.sum() - w @ (slope + 0.0) - 0.4 * b

    inside = {"type": "ineq", "fun": lambda at: 0.7 - at[:6].sum()}
    start, limits = np.full(7, 0.05), [(0.0, None)] * 6 + [(None, None)]
    best = minimize(loss, start, bounds=limits, constraints=inside, method="SLSQP", options={"ftol": 1e-14})
    w, b = moments.logistic(covariance, slope, 0.4, 0.7, None if centred else mean)
    assert np.abs(w).sum() <= 0.7 * (1 + 1e-9)
    assert loss(np.concatenate([np.maximum(w, 0), np.maximum(-w, 0), [b]])) <= best.fun + 1e-9


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=6), st.floats(0.1, 4.0))
@settings(max_examples=50, deadline=None)
def test_projections_are_nearest_points(values, radius):
    point = np.array(values)
    nearest = L1Ball(radius).project(point)
    assert np.abs(nearest).sum() <= radius * (1 + 1e-12)
    corners = radius * np.concatenate([np.eye(len(point)), -np.eye(len(point))])
    assert np.max((corners - nearest) @ (point - nearest)) <= 1e-9  # no point of the ball lies closer


correlations = st.floats(0.0, 0.99)


@given(st.lists(correlations, min_size=2, max_size=5), st.sampled_from([0.0, 0.3, -0.2]))
def test_scores_are_taken_to_have_in_common_what_they_must(alone, before):
    alone = np.array(alone)
    given = np.full((len(alone), len(alone)), before) + (1.0 - before) * np.eye(len(alone))
    found = moments.possible(given, alone)
    start, end = (float(alone @ np.linalg.solve(matrix, alone)) for matrix in (given, found))
    assert np.linalg.eigvalsh(found)[0] > 0.0
    assert end <= max(1.0, start) + 1e-9
    if np.all(np.linalg.eigvalsh(given) > 0.01) and start <= 1.0:
        np.testing.assert_array_equal(found, given)
    if before == 0.0:
        assert end <= 1.0 + 1e-9
        assert np.all(found - np.diag(np.diag(found)) <= np.outer(alone, alone) + 1e-9)


def test_what_parties_have_in_common_is_told_from_noise():
    rng = np.random.default_rng(0)
    noise = 0.3 * rng.standard_normal((2_000, 6))
    alike = np.array([moments.towards_common(0.6 + values, 0.09) for values in noise])
    assert np.mean(np.square(alike - 0.6)) < 0.5 * np.mean(np.square(noise))
    nothing = np.array([moments.towards_common(values, 0.09) for values in noise])
    assert np.mean(np.square(nothing)) < 0.3 * np.mean(np.square(noise))
    one = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    assert moments.towards_common(one, 1e-9) == pytest.approx(one, abs=1e-6)


@given(
    st.lists(st.floats(-2, 2), min_size=1, max_size=30),
    st.lists(st.one_of(st.just(0.0), st.floats(1e-6, 4)), min_size=30, max_size=30),
)
def test_noisy_numbers_are_believed_in_part(values, variances):
    values, variances = np.array(values), np.array(variances[: len(values)])
    trust = moments.believed(values, variances)
    assert np.all((trust >= 0.0) & (trust <= 1.0))
    assert np.all(trust[variances == 0.0] == 1.0)
    strictness = max(2.0, 1.5 * math.log(len(values)))
    assert np.all(trust * values**2 >= values**2 - strictness * variances - 1e-12)
    np.testing.assert_allclose(trust, moments.believed(-values, variances))


def test_what_noisy_numbers_say_together():
    rng = np.random.default_rng(0)
    noise = rng.standard_normal(2_000)
    alike = moments.believed(2.0 * rng.standard_normal(2_000) + noise, np.ones(2_000))
    assert np.quantile(alike, 0.3) == pytest.approx(4.0 / 5.0, abs=0.05)
    few = noise.copy()
    few[:5] += 20.0
    trust = moments.believed(0.1 * few, np.full(2_000, 0.01))
    assert np.all(trust[:5] > 0.95)
    assert np.median(trust) < 0.6
    assert np.mean(moments.believed(noise, np.ones(2_000))) < 0.1
