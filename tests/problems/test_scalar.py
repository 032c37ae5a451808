"""The compiled scalar forms and the objects over arrays are one formula: equal to the last digits."""

import math

import numpy as np
import pytest

from tacit.problems import (
    HingeLoss,
    HuberLoss,
    LogisticLoss,
    SquaredHingeLoss,
    SquaredLoss,
    scalar,
)
from tacit.problems.compiled import kernel

PAIRS = [
    (scalar.squared_value, SquaredLoss().value, ()),
    (scalar.squared_derivative, SquaredLoss().derivative, ()),
    (scalar.huber_value, HuberLoss(0.7).value, (0.7,)),
    (scalar.huber_derivative, HuberLoss(0.7).derivative, (0.7,)),
    (scalar.logistic_value, LogisticLoss().value, ()),
    (scalar.logistic_derivative, LogisticLoss().derivative, ()),
    (scalar.hinge_value, HingeLoss().value, ()),
    (scalar.hinge_derivative, HingeLoss().derivative, ()),
    (scalar.squared_hinge_value, SquaredHingeLoss().value, ()),
    (scalar.squared_hinge_derivative, SquaredHingeLoss().derivative, ()),
]

MARGINS = np.concatenate([np.linspace(-40.0, 40.0, 401), [-1e4, -745.2, -1e-9, 1e-300, 0.99, 1.0, 700.0, 1e4]])


@pytest.mark.parametrize(("compiled", "over_arrays", "parameters"), PAIRS, ids=lambda p: getattr(p, "__name__", ""))
@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_loss_in_a_compiled_loop_is_the_loss_over_arrays(compiled, over_arrays, parameters, y):
    one_by_one = [compiled(float(m), y, *parameters) for m in MARGINS]
    np.testing.assert_allclose(one_by_one, over_arrays(MARGINS, y), rtol=1e-14, atol=1e-320)


def test_sigmoid_in_a_compiled_loop_is_the_probability():
    one_by_one = [scalar.sigmoid(float(m)) for m in MARGINS]
    np.testing.assert_allclose(one_by_one, LogisticLoss().probability(MARGINS), rtol=1e-14, atol=1e-320)


@pytest.mark.parametrize("name", ["hinge_derivative", "logistic_derivative"])
def test_scalar_forms_return_floats(name):
    assert type(getattr(scalar, name)(0.5, 1.0)) is float


def test_scalar_forms_can_be_called_from_a_kernel():
    logistic_derivative = scalar.logistic_derivative

    @kernel
    def total(margins, y):
        out = 0.0
        for i in range(margins.size):
            out += logistic_derivative(margins[i], y)
        return out

    expected = math.fsum(LogisticLoss().derivative(MARGINS, 1.0))
    assert total(MARGINS, 1.0) == pytest.approx(expected, rel=1e-13)
