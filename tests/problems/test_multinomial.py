import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import log_softmax, softmax
from sklearn.metrics import log_loss

from tacit.problems import MultinomialLoss

from .support import repeatable


@st.composite
def rows(draw, limit=30.0):
    """A class count, one row of margins and a class."""
    k = draw(st.integers(2, 6))
    row = draw(arrays(np.float64, (1, k), elements=st.floats(-limit, limit)))
    return MultinomialLoss(k), row, np.array([draw(st.integers(0, k - 1))])


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
    expected = softmax(m, axis=1) - np.eye(loss.n_classes)[y]
    np.testing.assert_allclose(loss.derivative(m, y), expected, atol=1e-14)


@given(rows())
@repeatable
def test_derivative_is_the_slope_of_the_value(row):
    loss, m, y = row
    h = 1e-5
    for k in range(loss.n_classes):
        shift = h * np.eye(loss.n_classes)[k]
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
    p = loss.probability(m)[0]
    assert np.linalg.eigvalsh(np.diag(p) - np.outer(p, p)).max() <= loss.curvature + 1e-12


@pytest.mark.parametrize("k", [2, 3, 10])
def test_curvature_is_attained(k):
    m = np.full((1, k), -1e3)
    m[0, :2] = 0.0  # all the mass on two classes, in equal parts
    p = MultinomialLoss(k).probability(m)[0]
    assert np.linalg.eigvalsh(np.diag(p) - np.outer(p, p)).max() == pytest.approx(0.5, rel=1e-12)


@given(rows(limit=1e4))
@repeatable
def test_lipschitz_bounds_the_gradient(row):
    loss, m, y = row
    assert np.linalg.norm(loss.derivative(m, y)) <= loss.lipschitz * (1 + 1e-14)


def test_lipschitz_is_attained():
    loss = MultinomialLoss(3)
    assert np.linalg.norm(loss.derivative([[1e4, 0.0, 0.0]], [1])) == pytest.approx(loss.lipschitz, rel=1e-14)


@given(rows(limit=1e4))
@repeatable
def test_probabilities_add_up_and_the_gradient_adds_to_zero(row):
    loss, m, y = row
    assert loss.probability(m).sum() == pytest.approx(1.0, abs=1e-14)
    assert loss.derivative(m, y).sum() == pytest.approx(0.0, abs=1e-14)


def test_small_losses_keep_their_digits():
    loss = MultinomialLoss(3)
    m = np.array([[100.0, 0.0, 0.0]])
    tail = 2 * math.exp(-100.0)
    assert loss.value(m, [0])[0] == pytest.approx(tail, rel=1e-14, abs=0)
    assert loss.derivative(m, [0])[0, 0] == pytest.approx(-tail, rel=1e-14, abs=0)


def test_against_scipy_and_scikit_learn():
    rng = np.random.default_rng(0)
    m, y = 3 * rng.normal(size=(40, 4)), rng.integers(0, 4, size=40)
    loss = MultinomialLoss(4)
    np.testing.assert_allclose(loss.probability(m), softmax(m, axis=1), rtol=1e-13)
    np.testing.assert_allclose(loss.value(m, y), -log_softmax(m, axis=1)[np.arange(40), y], rtol=1e-12)
    expected = log_loss(y, loss.probability(m), labels=range(4))
    assert loss.value(m, y).mean() == pytest.approx(expected, rel=1e-12)


def test_a_row_does_not_depend_on_the_others():
    rng = np.random.default_rng(1)
    m, y = rng.normal(size=(33, 5)), rng.integers(0, 5, size=33)
    loss = MultinomialLoss(5)
    for i in range(33):
        np.testing.assert_array_equal(loss.value(m, y)[i], loss.value(m[[i]], y[[i]])[0])
        np.testing.assert_array_equal(loss.derivative(m, y)[i], loss.derivative(m[[i]], y[[i]])[0])


def test_no_rows_and_any_layout():
    loss = MultinomialLoss(3)
    assert loss.value(np.empty((0, 3)), np.empty(0, dtype=int)).shape == (0,)
    m = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(loss.value(m, [0, 1]), loss.value(m.copy(order="C"), [0, 1]))


@pytest.mark.parametrize("y", [[3], [-1], [0.0], ["a"]])
def test_labels_out_of_range_are_refused_without_being_quoted(y):
    with pytest.raises(ValueError, match=r"^y must hold integer class indices from 0 to 2$"):
        MultinomialLoss(3).value([[0.0, 0.0, 0.0]], y)


@pytest.mark.parametrize("m", [[0.0, 0.0, 0.0], [[0.0, 0.0]]])
def test_margins_of_the_wrong_shape_are_refused(m):
    with pytest.raises(ValueError, match=r"^margin must have shape \(n, 3\), got"):
        MultinomialLoss(3).probability(m)


def test_one_label_a_row():
    with pytest.raises(ValueError, match=r"^y must have one class index per row"):
        MultinomialLoss(3).derivative([[0.0, 0.0, 0.0]], [0, 1])


def test_bad_class_counts_are_refused():
    with pytest.raises(ValueError, match=r"^n_classes must be at least 2, got 1$"):
        MultinomialLoss(1)
    with pytest.raises(TypeError, match=r"^n_classes must be an integer, got 2\.0 of type float$"):
        MultinomialLoss(2.0)
