import math

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.special import huber
from sklearn.metrics import hinge_loss, log_loss

from tacit.problems import HingeLoss, HuberLoss, LogisticLoss, MultinomialLoss, SquaredHingeLoss, SquaredLoss

from .support import margins, reals, repeatable, signs

REGRESSION = [SquaredLoss(), HuberLoss(0.7), HuberLoss(25.0)]
CLASSIFICATION = [LogisticLoss(), HingeLoss(), SquaredHingeLoss()]
LOSSES = REGRESSION + CLASSIFICATION
SMOOTH = [loss for loss in LOSSES if math.isfinite(loss.curvature)]
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)
every_smooth_loss = pytest.mark.parametrize("loss", SMOOTH, ids=repr)


def labels(loss):
    return reals if loss in REGRESSION else signs


def textbook(loss, margin, y):
    """The definition of each loss, in 60 digits."""
    margin, y = mpmath.mpf(margin), mpmath.mpf(y)
    r, z = margin - y, margin * y
    match loss:
        case SquaredLoss():
            return r**2 / 2
        case HuberLoss(delta):
            return r**2 / 2 if abs(r) <= delta else delta * (abs(r) - mpmath.mpf(delta) / 2)
        case LogisticLoss():
            return mpmath.log1p(mpmath.exp(-z))
        case HingeLoss():
            return max(mpmath.mpf(0), 1 - z)
        case SquaredHingeLoss():
            return max(mpmath.mpf(0), 1 - z) ** 2


def kink_distance(loss, margin, y):
    """How far the margin is from a point where the loss is not twice differentiable."""
    match loss:
        case HuberLoss(delta):
            return abs(abs(margin - y) - delta)
        case HingeLoss() | SquaredHingeLoss():
            return abs(1 - margin * y)
    return math.inf


@every_loss
@given(data=st.data(), margin=margins)
@repeatable
def test_value_is_the_textbook_value(loss, data, margin):
    y = data.draw(labels(loss))
    with mpmath.workdps(60):
        expected = float(textbook(loss, margin, y))
    scale = abs(margin) + abs(y) + 1.0  # rounding of the residual
    slope = min(loss.lipschitz, scale)
    assert loss.value(margin, y) == pytest.approx(expected, rel=1e-13, abs=1e-15 * slope * scale)


@every_loss
@given(data=st.data(), margin=margins)
@repeatable
def test_derivative_is_the_slope_of_the_textbook_value(loss, data, margin):
    y = data.draw(labels(loss))
    assume(kink_distance(loss, margin, y) > 1e-6)
    with mpmath.workdps(60):
        expected = float(mpmath.diff(lambda m: textbook(loss, m, y), margin, h=mpmath.mpf(10) ** -20))
    assert loss.derivative(margin, y) == pytest.approx(expected, rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("margin", [20.0, 200.0, 700.0])
def test_logistic_tail_keeps_its_digits(margin):
    with mpmath.workdps(400):
        value, slope = mpmath.log1p(mpmath.exp(-margin)), -1 / (1 + mpmath.exp(margin))
    loss = LogisticLoss()
    assert loss.value(margin, 1.0) == pytest.approx(float(value), rel=1e-13, abs=0)
    assert loss.derivative(margin, 1.0) == pytest.approx(float(slope), rel=1e-13, abs=0)
    assert loss.probability(-margin) == pytest.approx(-float(slope), rel=1e-13, abs=0)


@every_loss
@given(data=st.data(), first=margins, second=margins)
@repeatable
def test_loss_lies_above_its_tangents(loss, data, first, second):
    y = data.draw(labels(loss))
    tangent = loss.value(first, y) + loss.derivative(first, y) * (second - first)
    rounding = 1e-12 * (1.0 + abs(tangent) + loss.value(first, y))
    assert loss.value(second, y) >= tangent - rounding


@every_smooth_loss
@given(data=st.data(), first=margins, second=margins)
@repeatable
def test_curvature_bounds_the_change_of_the_derivative(loss, data, first, second):
    y = data.draw(labels(loss))
    change = abs(loss.derivative(second, y) - loss.derivative(first, y))
    assert change <= loss.curvature * abs(second - first) * (1 + 1e-12) + 1e-11


@every_smooth_loss
def test_curvature_is_attained(loss):
    h = 1e-4  # around margin 0, where with y = 1 (Huber: 0) every loss is at its most curved
    y = 0.0 if loss in REGRESSION else 1.0
    change = loss.derivative(h, y) - loss.derivative(-h, y)
    assert change / (2 * h) == pytest.approx(loss.curvature, rel=1e-6)


@every_loss
@given(data=st.data(), margin=margins)
@repeatable
def test_lipschitz_bounds_the_derivative(loss, data, margin):
    assert abs(loss.derivative(margin, data.draw(labels(loss)))) <= loss.lipschitz


@every_loss
def test_lipschitz_is_attained_or_infinite(loss):
    steepest = abs(loss.derivative(-1e4, 1.0))
    assert steepest == loss.lipschitz if math.isfinite(loss.lipschitz) else steepest > 1e3


@every_loss
@given(data=st.data(), margin=st.floats(-20.0, 20.0), dual=st.floats(-3.0, 3.0))
@repeatable
def test_fenchel_young(loss, data, margin, dual):
    y = data.draw(labels(loss))
    value, slope = loss.value(margin, y), loss.derivative(margin, y)
    assert value + loss.conjugate(dual, y) >= margin * dual - 1e-10
    # Equality holds exactly at a (sub)gradient.
    assert value + loss.conjugate(slope, y) == pytest.approx(margin * slope, rel=1e-10, abs=1e-10)


@every_loss
@given(data=st.data(), share=st.floats(0.001, 0.999))
@repeatable
def test_conjugate_is_the_supremum_over_a_fine_grid(loss, data, share):
    y = data.draw(st.floats(-5.0, 5.0)) if loss in REGRESSION else data.draw(signs)
    domain = min(loss.lipschitz, 2.0)
    dual = domain * (2 * share - 1) if loss in REGRESSION else -y * domain * share
    grid = np.append(np.linspace(-30.0, 30.0, 60_001), y)  # step 0.001, and the kink of the hinge
    supremum = np.max(grid * dual - loss.value(grid, y))
    assert loss.conjugate(dual, y) == pytest.approx(supremum, abs=2e-6)


@pytest.mark.parametrize(
    ("loss", "dual"),
    [
        (HuberLoss(0.7), 0.71),
        (HuberLoss(0.7), -0.71),
        (LogisticLoss(), -1.01),
        (LogisticLoss(), 0.01),
        (HingeLoss(), -1.01),
        (HingeLoss(), 0.01),
        (SquaredHingeLoss(), 0.01),
    ],
    ids=repr,
)
def test_conjugate_is_infinite_outside_its_domain(loss, dual):
    assert loss.conjugate(dual, 1.0) == math.inf
    assert loss.value(-1e4, 1.0) < math.inf


def test_logistic_conjugate_at_the_ends_of_its_domain():
    np.testing.assert_array_equal(LogisticLoss().conjugate([0.0, -1.0], 1.0), 0.0)


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
    loss = LogisticLoss()
    assert loss.value(m, y).mean() == pytest.approx(log_loss(y, loss.probability(m)), rel=1e-12)


def test_hinge_is_scikit_learns_hinge_loss():
    rng = np.random.default_rng(1)
    m, y = rng.normal(size=50), rng.choice([-1.0, 1.0], size=50)
    assert HingeLoss().value(m, y).mean() == pytest.approx(hinge_loss(y, m), rel=1e-12)


def test_huber_is_scipys_huber():
    r = np.linspace(-5.0, 5.0, 101)
    np.testing.assert_allclose(HuberLoss(1.5).value(r, 0.0), huber(1.5, r), rtol=1e-14)


def test_hinge_takes_the_zero_subgradient_at_its_kink():
    assert HingeLoss().derivative(1.0, 1.0) == 0.0
    assert HingeLoss().derivative(np.nextafter(1.0, 0.0), 1.0) == -1.0


@every_loss
def test_arrays_broadcast_and_become_float64(loss):
    m = np.array([[1, 2, 3], [4, 5, 6]], dtype=np.int32)
    for method in (loss.value, loss.derivative, loss.conjugate):
        out = method(m, np.float32(1.0))
        assert out.shape == (2, 3)
        assert out.dtype == np.float64
        assert out[1, 2] == method(6.0, 1.0)


@every_loss
def test_losses_are_values(loss):
    assert loss == type(loss)(*vars(loss).values())
    assert hash(loss) == hash(type(loss)(*vars(loss).values()))


@pytest.mark.parametrize("delta", [0.0, -1.0, math.nan, math.inf])
def test_huber_refuses_a_bad_delta(delta):
    with pytest.raises(ValueError, match=r"^delta must be .*got"):
        HuberLoss(delta)


@pytest.mark.parametrize("delta", ["1", None, True])
def test_huber_refuses_what_is_not_a_number(delta):
    with pytest.raises(TypeError, match=r"^delta must be a real number, got"):
        HuberLoss(delta)


def test_logistic_is_the_multinomial_loss_of_two_classes():
    m = np.linspace(-5.0, 5.0, 11)
    both = MultinomialLoss(2).value(np.column_stack([np.zeros(11), m]), np.ones(11, dtype=int))
    np.testing.assert_allclose(both, LogisticLoss().value(m, 1.0), rtol=1e-14)
