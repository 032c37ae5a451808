import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import log_softmax
from scipy.special import softmax as plain_softmax
from sklearn.metrics import log_loss

from tacit.problems import MULTINOMIAL, slopes, softmax

from .support import repeatable


@st.composite
def rows(draw, limit=30.0):
    """A class count, one row of margins and a class."""
    k = draw(st.integers(2, 6))
    row = draw(arrays(np.float64, (1, k), elements=st.floats(-limit, limit)))
    return MULTINOMIAL, row, np.array([draw(st.integers(0, k - 1))])


@given(rows(limit=1e4))
@repeatable
def test_value_is_log_sum_exp_less_the_label(row):
    loss, m, y = row
    with mpmath.workdps(60):
        exact = mpmath.log(mpmath.fsum(mpmath.exp(mpmath.mpf(v)) for v in m[0])) - mpmath.mpf(m[0, y[0]])
    assert loss.value(m, y)[0] == pytest.approx(float(exact), rel=1e-12, abs=1e-15)


@given(rows(limit=1e4))
@repeatable
def test_derivative_is_softmax_less_one_hot(row):
    loss, m, y = row
    expected = plain_softmax(m, axis=1) - np.eye(m.shape[1])[y]
    np.testing.assert_allclose(loss.derivative(m, y), expected, atol=1e-14)


@given(rows())
@repeatable
def test_derivative_is_the_slope_of_the_value(row):
    loss, m, y = row
    h = 1e-5
    for k in range(m.shape[1]):
        shift = h * np.eye(m.shape[1])[k]
        slope = (loss.value(m + shift, y) - loss.value(m - shift, y)) / (2 * h)
        assert loss.derivative(m, y)[0, k] == pytest.approx(slope[0], abs=1e-8)


@given(rows(), st.data())
@repeatable
def test_loss_lies_above_its_tangents(row, data):
    loss, m, y = row
    other = data.draw(arrays(np.float64, m.shape, elements=st.floats(-30.0, 30.0)))
    tangent = loss.value(m, y) + np.sum(loss.derivative(m, y) * (other - m))
    assert loss.value(other, y)[0] >= tangent[0] - 1e-10


@given(rows(), st.data())
@repeatable
def test_curvature_bounds_the_change_of_the_gradient(row, data):
    loss, m, y = row
    other = m + data.draw(arrays(np.float64, m.shape, elements=st.floats(-2.0, 2.0)))
    change = np.linalg.norm(loss.derivative(other, y) - loss.derivative(m, y))
    assert change <= loss.curvature * np.linalg.norm(other - m) + 1e-13


@given(rows())
@repeatable
def test_curvature_bounds_the_hessian(row):
    loss, m, _ = row
    p = softmax(m)[0]
    assert np.linalg.eigvalsh(np.diag(p) - np.outer(p, p)).max() <= loss.curvature + 1e-12


@pytest.mark.parametrize("k", [2, 3, 10])
def test_curvature_is_attained(k):
    m = np.full((1, k), -1e3)
    m[0, :2] = 0.0  # all the mass on two classes, in equal parts
    p = softmax(m)[0]
    assert np.linalg.eigvalsh(np.diag(p) - np.outer(p, p)).max() == pytest.approx(0.5, rel=1e-12)


@given(rows(limit=1e4))
@repeatable
def test_slope_bounds_the_gradient(row):
    loss, m, y = row
    assert np.linalg.norm(loss.derivative(m, y)) <= loss.slope * (1 + 1e-14)


def test_slope_is_attained():
    loss = MULTINOMIAL
    assert np.linalg.norm(loss.derivative([[1e4, 0.0, 0.0]], [1])) == pytest.approx(loss.slope, rel=1e-14)


@given(rows(limit=1e4))
@repeatable
def test_probabilities_add_up_and_the_gradient_adds_to_zero(row):
    loss, m, y = row
    assert softmax(m).sum() == pytest.approx(1.0, abs=1e-14)
    assert loss.derivative(m, y).sum() == pytest.approx(0.0, abs=1e-14)


def test_small_losses_keep_their_digits():
    loss = MULTINOMIAL
    m = np.array([[100.0, 0.0, 0.0]])
    tail = 2 * math.exp(-100.0)
    assert loss.value(m, [0])[0] == pytest.approx(tail, rel=1e-14, abs=0)
    assert loss.derivative(m, [0])[0, 0] == pytest.approx(-tail, rel=1e-14, abs=0)


def test_against_scipy_and_scikit_learn():
    rng = np.random.default_rng(0)
    m, y = 3 * rng.normal(size=(40, 4)), rng.integers(0, 4, size=40)
    loss = MULTINOMIAL
    np.testing.assert_allclose(softmax(m), plain_softmax(m, axis=1), rtol=1e-13)
    np.testing.assert_allclose(loss.value(m, y), -log_softmax(m, axis=1)[np.arange(40), y], rtol=1e-12)
    expected = log_loss(y, softmax(m), labels=range(4))
    assert loss.value(m, y).mean() == pytest.approx(expected, rel=1e-12)


def test_a_row_does_not_depend_on_the_others():
    rng = np.random.default_rng(1)
    m, y = rng.normal(size=(33, 5)), rng.integers(0, 5, size=33)
    loss = MULTINOMIAL
    for i in range(33):
        np.testing.assert_array_equal(loss.value(m, y)[i], loss.value(m[[i]], y[[i]])[0])
        np.testing.assert_array_equal(loss.derivative(m, y)[i], loss.derivative(m[[i]], y[[i]])[0])


def test_no_rows_and_any_layout():
    loss = MULTINOMIAL
    assert loss.value(np.empty((0, 3)), np.empty(0, dtype=int)).shape == (0,)
    m = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(loss.value(m, [0, 1]), loss.value(m.copy(order="C"), [0, 1]))


@given(rows(limit=1e4))
@repeatable
def test_slopes_in_a_compiled_loop_are_the_derivative_over_arrays(row):
    loss, m, y = row
    out = np.empty(m.shape[1])
    slopes.multinomial_slopes(m[0], y[0], out)
    np.testing.assert_allclose(out, loss.derivative(m, y)[0], rtol=1e-14)
