"""Losses of one margin: what a prediction costs, and how fast that cost can change.

A loss l(m, y) is convex in the margin m = x.w. `curvature` bounds its second derivative and `lipschitz` its
first, over all margins and labels; where no bound exists it is infinity. The gradient of one row in w is
`derivative(m, y) * x`, so its norm is at most `lipschitz * |x|`.

`conjugate(u, y)` is the supremum over m of u m - l(m, y), infinite outside its domain; the variable alpha of
the usual dual problem enters it as u = -alpha.

Classification losses take labels -1 and +1, regression losses real labels. Arrays broadcast.

The arrays here are for looking at a problem as a whole. What a row contributes to a private release is
computed with the same formulas from `scalar`, in a loop over that row.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike

from tacit.privacy import checks
from tacit.problems import scalar
from tacit.problems.compiled import Elementwise, FloatArray

_sigmoid = Elementwise(scalar.sigmoid)


class Loss(Protocol):
    """The shape of a loss."""

    @property
    def curvature(self) -> float:
        """An upper bound on the second derivative in the margin; infinite for a loss with a kink."""

    @property
    def lipschitz(self) -> float:
        """An upper bound on the absolute derivative in the margin; infinite for a loss that grows faster."""

    def value(self, margin: ArrayLike, y: ArrayLike) -> FloatArray:
        """The loss of each row."""

    def derivative(self, margin: ArrayLike, y: ArrayLike) -> FloatArray:
        """The derivative of each row's loss in its margin."""


class _MarginLoss:
    """A loss without parameters: its formulas, applied to arrays."""

    curvature: ClassVar[float]
    lipschitz: ClassVar[float]
    _value: ClassVar[Elementwise]
    _derivative: ClassVar[Elementwise]

    def value(self, margin: ArrayLike, y: ArrayLike) -> FloatArray:
        """The loss of each row."""
        return self._value(margin, y)

    def derivative(self, margin: ArrayLike, y: ArrayLike) -> FloatArray:
        """The derivative of each row's loss in its margin."""
        return self._derivative(margin, y)


@dataclass(frozen=True)
class SquaredLoss(_MarginLoss):
    """l(m, y) = (m - y)^2 / 2, for real y.

    Examples
    --------
    >>> from tacit.problems import SquaredLoss
    >>> SquaredLoss().value([0.0, 3.0], [1.0, 1.0])
    array([0.5, 2. ])
    """

    curvature = 1.0
    lipschitz = math.inf
    _value = Elementwise(scalar.squared_value)
    _derivative = Elementwise(scalar.squared_derivative)

    def conjugate(self, dual: ArrayLike, y: ArrayLike) -> FloatArray:
        """u^2 / 2 + u y."""
        u, label = _floats(dual, y)
        return u * (0.5 * u + label)


@dataclass(frozen=True)
class HuberLoss:
    """l(m, y) = r^2 / 2 where |r| <= delta, else delta (|r| - delta / 2), with r = m - y.

    Its derivative is the residual clipped to [-delta, delta]: squared loss with clipped residuals.

    Parameters
    ----------
    delta : float
        The residual at which the loss turns from quadratic to linear; above 0.

    Examples
    --------
    >>> from tacit.problems import HuberLoss
    >>> HuberLoss(delta=1.0).derivative([0.5, 9.0], 0.0)
    array([0.5, 1. ])
    """

    delta: float

    curvature: ClassVar[float] = 1.0
    _value: ClassVar[Elementwise] = Elementwise(scalar.huber_value)
    _derivative: ClassVar[Elementwise] = Elementwise(scalar.huber_derivative)

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", checks.positive("delta", self.delta))

    @property
    def lipschitz(self) -> float:
        """The clip on the residual."""
        return self.delta

    def value(self, margin: ArrayLike, y: ArrayLike) -> FloatArray:
        """The loss of each row."""
        return self._value(margin, y, self.delta)

    def derivative(self, margin: ArrayLike, y: ArrayLike) -> FloatArray:
        """The clipped residual of each row."""
        return self._derivative(margin, y, self.delta)

    def conjugate(self, dual: ArrayLike, y: ArrayLike) -> FloatArray:
        """u^2 / 2 + u y where |u| <= delta, else infinity."""
        u, label = _floats(dual, y)
        return np.where(np.abs(u) <= self.delta, u * (0.5 * u + label), math.inf)


@dataclass(frozen=True)
class LogisticLoss(_MarginLoss):
    """l(m, y) = log(1 + exp(-y m)), for y in {-1, +1}.

    Examples
    --------
    >>> from tacit.problems import LogisticLoss
    >>> LogisticLoss().derivative([0.0, 1e4], [1.0, -1.0])
    array([-0.5,  1. ])
    """

    curvature = 0.25  # p (1 - p) <= 1/4
    lipschitz = 1.0
    _value = Elementwise(scalar.logistic_value)
    _derivative = Elementwise(scalar.logistic_derivative)

    def probability(self, margin: ArrayLike) -> FloatArray:
        """The probability of the label +1: the inverse link 1 / (1 + exp(-m))."""
        return _sigmoid(margin)

    def conjugate(self, dual: ArrayLike, y: ArrayLike) -> FloatArray:
        """Minus the entropy, s log s + (1 - s) log(1 - s), where s = -u y lies in [0, 1], else infinity."""
        u, label = _floats(dual, y)
        s = -u * label
        inside = np.clip(s, 0.0, 1.0)
        return np.where(s == inside, _x_log_x(inside) + _x_log_x(1.0 - inside), math.inf)


@dataclass(frozen=True)
class HingeLoss(_MarginLoss):
    """l(m, y) = max(0, 1 - y m), for y in {-1, +1}.

    It has a kink at y m = 1, where `derivative` returns the subgradient 0 and no curvature bound exists.

    Examples
    --------
    >>> from tacit.problems import HingeLoss
    >>> HingeLoss().value([0.0, 2.0], 1.0)
    array([1., 0.])
    """

    curvature = math.inf
    lipschitz = 1.0
    _value = Elementwise(scalar.hinge_value)
    _derivative = Elementwise(scalar.hinge_derivative)

    def conjugate(self, dual: ArrayLike, y: ArrayLike) -> FloatArray:
        """-s where s = -u y lies in [0, 1], else infinity."""
        u, label = _floats(dual, y)
        s = -u * label
        return np.where((s >= 0.0) & (s <= 1.0), -s, math.inf)


@dataclass(frozen=True)
class SquaredHingeLoss(_MarginLoss):
    """l(m, y) = max(0, 1 - y m)^2, for y in {-1, +1}.

    Examples
    --------
    >>> from tacit.problems import SquaredHingeLoss
    >>> SquaredHingeLoss().value([-1.0, 2.0], 1.0)
    array([4., 0.])
    """

    curvature = 2.0
    lipschitz = math.inf
    _value = Elementwise(scalar.squared_hinge_value)
    _derivative = Elementwise(scalar.squared_hinge_derivative)

    def conjugate(self, dual: ArrayLike, y: ArrayLike) -> FloatArray:
        """s^2 / 4 - s where s = -u y is at least 0, else infinity."""
        u, label = _floats(dual, y)
        s = -u * label
        return np.where(s >= 0.0, s * (0.25 * s - 1.0), math.inf)


def _floats(dual: ArrayLike, y: ArrayLike) -> tuple[FloatArray, FloatArray]:
    return np.asarray(dual, dtype=np.float64), np.asarray(y, dtype=np.float64)


def _x_log_x(x: FloatArray) -> FloatArray:
    """The function x log x, continued by 0 at x = 0."""
    return x * np.log(np.maximum(x, np.finfo(np.float64).smallest_normal))
