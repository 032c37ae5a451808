"""The losses: values and slopes from their definitions, bounds that hold and are reached, one formula for all loops."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.special import huber
from sklearn.metrics import hinge_loss, log_loss

from tacit.problems import HINGE, HUBER, LOGISTIC, LOSSES, MULTINOMIAL, SQUARED, SQUARED_HINGE, sigmoid
from tacit.problems import slopes as compiled
from tacit.problems.compiled import kernel

from .support import margins, reals, repeatable, signs

SHAPES = {SQUARED: (1.0,), LOGISTIC: (1.0,), HUBER: (1.0, 0.7, 25.0), HINGE: (1.0, 0.3, 4.0), SQUARED_HINGE: (1.0,)}
every_loss = pytest.mark.parametrize("loss", SHAPES, ids=lambda loss: loss.name)
every_form = pytest.mark.parametrize(("loss", "shape"), [(loss, s) for loss, given in SHAPES.items() for s in given])
FAR = np.concatenate([np.linspace(-40.0, 40.0, 401), [-1e4, -745.2, -1e-9, 1e-300, 0.99, 1.0, 700.0, 1e4]])


def labels(loss):
    return reals if loss in (SQUARED, HUBER) else signs


def textbook(loss, margin, y, shape):
    """The definition of each loss, in 60 digits."""
    margin, y, shape = mpmath.mpf(margin), mpmath.mpf(y), mpmath.mpf(shape)
    r, slack = margin - y, 1 - margin * y
    return {
        SQUARED: lambda: r**2 / 2,
        HUBER: lambda: r**2 / 2 if abs(r) <= shape else shape * (abs(r) - shape / 2),
        LOGISTIC: lambda: mpmath.log1p(mpmath.exp(-margin * y)),
        # max over 0 <= a <= 1 of a slack - shape a^2 / 2: the hinge less a strongly convex part of its conjugate
        HINGE: lambda: (lambda a: a * slack - shape * a**2 / 2)(min(max(slack / shape, mpmath.mpf(0)), mpmath.mpf(1))),
        SQUARED_HINGE: lambda: max(mpmath.mpf(0), slack) ** 2,
    }[loss]()


def kink_distance(loss, margin, y, shape):
    """How far the margin is from a point where the loss is not twice differentiable."""
    slack = 1 - margin * y
    if loss == HUBER:
        return abs(abs(margin - y) - shape)
    return min(abs(slack), abs(slack - shape)) if loss in (HINGE, SQUARED_HINGE) else math.inf


def steepest(loss, shape):
    """The bound on the slope: that of the Huber loss is its shape."""
    return loss.slope * shape if loss == HUBER else loss.slope


@every_form
@given(data=st.data(), margin=margins)
@repeatable
def test_value_is_the_textbook_value(loss, shape, data, margin):
    y = data.draw(labels(loss))
    with mpmath.workdps(60):
        expected = float(textbook(loss, margin, y, shape))
    scale = abs(margin) + abs(y) + 1.0  # rounding of the residual
    most = min(steepest(loss, shape), scale)
    assert loss.value(margin, y, shape) == pytest.approx(expected, rel=1e-13, abs=1e-15 * most * scale)


@every_form
@given(data=st.data(), margin=margins)
@repeatable
def test_derivative_is_the_slope_of_the_textbook_value(loss, shape, data, margin):
    y = data.draw(labels(loss))
    assume(kink_distance(loss, margin, y, shape) > 1e-6)
    with mpmath.workdps(60):
        expected = float(mpmath.diff(lambda m: textbook(loss, m, y, shape), margin, h=mpmath.mpf(10) ** -20))
    assert loss.derivative(margin, y, shape) == pytest.approx(expected, rel=1e-12, abs=1e-13 / min(shape, 1.0))


@pytest.mark.parametrize("margin", [20.0, 200.0, 700.0])
def test_logistic_tail_keeps_its_digits(margin):
    with mpmath.workdps(400):
        value, slope = mpmath.log1p(mpmath.exp(-margin)), -1 / (1 + mpmath.exp(margin))
    assert LOGISTIC.value(margin, 1.0) == pytest.approx(float(value), rel=1e-13, abs=0)
    assert LOGISTIC.derivative(margin, 1.0) == pytest.approx(float(slope), rel=1e-13, abs=0)
    assert sigmoid(-margin) == pytest.approx(-float(slope), rel=1e-13, abs=0)


@every_form
@given(data=st.data(), first=margins, second=margins)
@repeatable
def test_loss_lies_above_its_tangents(loss, shape, data, first, second):
    y = data.draw(labels(loss))
    tangent = loss.value(first, y, shape) + loss.derivative(first, y, shape) * (second - first)
    rounding = 1e-12 * (1.0 + abs(tangent) + loss.value(first, y, shape))
    assert loss.value(second, y, shape) >= tangent - rounding


@every_form
@given(data=st.data(), first=margins, second=margins)
@repeatable
def test_curvature_bounds_the_change_of_the_derivative(loss, shape, data, first, second):
    y = data.draw(labels(loss))
    change = abs(loss.derivative(second, y, shape) - loss.derivative(first, y, shape))
    most = loss.curvature / shape if loss == HINGE else loss.curvature
    assert change <= most * abs(second - first) * (1 + 1e-12) + 1e-11


@every_loss
def test_curvature_is_attained(loss):
    h = 1e-4  # around margin 0, or 0.5 where a hinge is rounded: there every loss is at its most curved
    y, at = (0.0, 0.0) if loss in (SQUARED, HUBER) else (1.0, 0.5 if loss == HINGE else 0.0)
    change = loss.derivative(at + h, y) - loss.derivative(at - h, y)
    assert change / (2 * h) == pytest.approx(loss.curvature, rel=1e-6)
    assert 0.0 < loss.typical < loss.curvature


@every_form
@given(data=st.data(), margin=margins)
@repeatable
def test_slope_bounds_the_derivative(loss, shape, data, margin):
    assert abs(loss.derivative(margin, data.draw(labels(loss)), shape)) <= steepest(loss, shape)


@every_form
def test_slope_is_attained_or_infinite(loss, shape):
    found = abs(loss.derivative(-1e4, 1.0, shape))
    assert found == steepest(loss, shape) if math.isfinite(loss.slope) else found > 1e3


@every_loss
@pytest.mark.parametrize("margin", [-1e4, 1e4])
@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_far_margins_raise_no_floating_point_flag(loss, margin, y):
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        assert np.isfinite(loss.value(margin, y))
        assert np.isfinite(loss.derivative(margin, y))


def test_logistic_is_scikit_learns_log_loss():
    rng = np.random.default_rng(0)
    m, y = rng.normal(size=50), rng.choice([-1.0, 1.0], size=50)
    assert LOGISTIC.value(m, y).mean() == pytest.approx(log_loss(y, sigmoid(m)), rel=1e-12)


def test_a_hinge_with_a_sharp_kink_is_scikit_learns_hinge_loss():
    rng = np.random.default_rng(1)
    m, y = rng.normal(size=50), rng.choice([-1.0, 1.0], size=50)
    assert HINGE.value(m, y, 1e-12).mean() == pytest.approx(hinge_loss(y, m), rel=1e-11)


def test_huber_is_scipys_huber():
    r = np.linspace(-5.0, 5.0, 101)
    np.testing.assert_allclose(HUBER.value(r, 0.0, 1.5), huber(1.5, r), rtol=1e-14)


def test_logistic_is_the_multinomial_loss_of_two_classes():
    m = np.linspace(-5.0, 5.0, 11)
    both = MULTINOMIAL.value(np.column_stack([np.zeros(11), m]), np.ones(11, dtype=int))
    np.testing.assert_allclose(both, LOGISTIC.value(m, 1.0), rtol=1e-14)


@every_loss
def test_arrays_broadcast_and_become_float64(loss):
    m = np.array([[1, 2, 3], [4, 5, 6]], dtype=np.int32)
    for method in (loss.value, loss.derivative):
        out = method(m, np.float32(1.0))
        assert out.shape == (2, 3)
        assert out.dtype == np.float64
        assert out[1, 2] == method(6.0, 1.0)


def test_losses_are_known_by_one_name_and_one_code():
    found = [*LOSSES.values(), HUBER]
    assert len({loss.name for loss in found}) == len({loss.code for loss in found}) == 6
    assert all(name == loss.name and name.isidentifier() for name, loss in LOSSES.items())
    assert SQUARED_HINGE.words == "squared hinge"


# --- compiled loops ---------------------------------------------------------------------------------------------------


@every_form
@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_slope_in_a_compiled_loop_is_the_derivative_over_arrays(loss, shape, y):
    one_by_one = [compiled.slope(float(m), y, loss.code, shape) for m in FAR]
    assert type(one_by_one[0]) is float
    np.testing.assert_allclose(one_by_one, loss.derivative(FAR, y, shape), rtol=1e-14, atol=1e-320)


def test_sigmoid_in_a_compiled_loop_is_the_probability():
    one_by_one = [compiled.sigmoid(float(m)) for m in FAR]
    np.testing.assert_allclose(one_by_one, sigmoid(FAR), rtol=1e-14, atol=1e-320)


def test_slope_can_be_called_from_a_kernel():
    slope, code = compiled.slope, LOGISTIC.code

    @kernel
    def total(margins, y):
        out = 0.0
        for i in range(margins.size):
            out += slope(margins[i], y, code, 1.0)
        return out

    expected = math.fsum(LOGISTIC.derivative(FAR, 1.0))
    assert total(FAR, 1.0) == pytest.approx(expected, rel=1e-13)
