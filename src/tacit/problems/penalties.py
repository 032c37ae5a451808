"""Penalties on the coefficients, one coordinate at a time.

All of them belong to one family,

    psi(w) = sum_j  absolute |w_j| + (quadratic / 2) w_j^2,    low_j <= w_j <= high_j,

so a penalty only has to name its `terms`; the value, the prox and the modulus of strong convexity follow. The
family is closed under addition (weights add up, intervals intersect), which is why the prox of a sum such as
`ElasticNet(0.1, 0.5) + NonNegative()` is exact.

To add a penalty of the family, write a frozen dataclass with a `terms` property.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from tacit.privacy import checks
from tacit.problems import scalar
from tacit.problems.compiled import Elementwise, FloatArray

Bound = float | FloatArray

_prox = Elementwise(scalar.separable_prox)


class Penalty(Protocol):
    """The shape of a penalty."""

    @property
    def strong_convexity(self) -> float:
        """The largest m for which psi(w) - m |w|^2 / 2 is convex."""

    def value(self, w: ArrayLike) -> float:
        """psi(w), infinite outside the allowed intervals."""

    def prox(self, w: ArrayLike, step: ArrayLike) -> FloatArray:
        """The minimiser over v of psi(v) + sum_j (v_j - w_j)^2 / (2 step_j)."""


class Terms(NamedTuple):
    """A member of the family: what `scalar.separable_prox` needs to know."""

    absolute: float = 0.0
    quadratic: float = 0.0
    low: Bound = -math.inf
    high: Bound = math.inf


class Separable:
    """A penalty of the family above, described by its `terms`."""

    @property
    def terms(self) -> Terms:
        """The weights and the interval of each coordinate."""
        return Terms()

    @property
    def strong_convexity(self) -> float:
        """The weight of the quadratic term."""
        return self.terms.quadratic

    def value(self, w: ArrayLike) -> float:
        """psi(w), infinite outside the allowed intervals."""
        absolute, quadratic, low, high = self.terms
        v = self._coefficients(w)
        if not np.all((low <= v) & (v <= high)):
            return math.inf
        with np.errstate(over="ignore"):  # beyond float64 the value is infinite, where it has any weight at all
            first = absolute * np.abs(v).sum() if absolute > 0.0 else 0.0
            second = 0.5 * quadratic * np.square(v).sum() if quadratic > 0.0 else 0.0
        return float(first + second)

    def prox(self, w: ArrayLike, step: ArrayLike) -> FloatArray:
        """The minimiser over v of psi(v) + sum_j (v_j - w_j)^2 / (2 step_j), for one step or one per j."""
        steps = np.asarray(step, dtype=np.float64)
        if not np.all((steps > 0.0) & (steps < math.inf)):
            raise ValueError(f"step must be finite and above 0, got {steps}")
        return _prox(self._coefficients(w), steps, *self.terms)

    def _coefficients(self, w: ArrayLike) -> FloatArray:
        v = np.asarray(w, dtype=np.float64)
        for bound in (self.terms.low, self.terms.high):
            if np.ndim(bound) and np.shape(bound) != v.shape:
                raise ValueError(f"w must have one coefficient per bound, {np.size(bound)}, got shape {v.shape}")
        return v

    def __add__(self, other: "Separable") -> "Sum":
        return Sum(self, other) if isinstance(other, Separable) else NotImplemented


@dataclass(frozen=True)
class NoPenalty(Separable):
    """psi(w) = 0."""


@dataclass(frozen=True)
class L2(Separable):
    """psi(w) = (strength / 2) |w|_2^2.

    Examples
    --------
    >>> from tacit.problems import L2
    >>> L2(1.0).prox([2.0, -4.0], step=1.0)
    array([ 1., -2.])
    """

    strength: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "strength", checks.non_negative("strength", self.strength))

    @property
    def terms(self) -> Terms:
        """The quadratic weight is `strength`."""
        return Terms(quadratic=self.strength)


@dataclass(frozen=True)
class L1(Separable):
    """psi(w) = strength |w|_1.

    Examples
    --------
    >>> from tacit.problems import L1, NonNegative
    >>> L1(1.0).prox([3.0, 0.5, -3.0], step=1.0)
    array([ 2.,  0., -2.])
    >>> (L1(1.0) + NonNegative()).prox([3.0, 0.5, -3.0], step=1.0)
    array([2., 0., 0.])
    """

    strength: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "strength", checks.non_negative("strength", self.strength))

    @property
    def terms(self) -> Terms:
        """The absolute weight is `strength`."""
        return Terms(absolute=self.strength)


@dataclass(frozen=True)
class ElasticNet(Separable):
    """psi(w) = strength l1_ratio |w|_1 + strength (1 - l1_ratio) / 2 |w|_2^2, as scikit-learn has it.

    Parameters
    ----------
    strength : float
        scikit-learn's `alpha`; at least 0.
    l1_ratio : float
        The share of the l1 term, between 0 and 1.
    """

    strength: float
    l1_ratio: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "strength", checks.non_negative("strength", self.strength))
        object.__setattr__(self, "l1_ratio", checks.closed_unit("l1_ratio", self.l1_ratio))

    @property
    def terms(self) -> Terms:
        """The strength, shared between the two weights."""
        return Terms(self.strength * self.l1_ratio, self.strength * (1.0 - self.l1_ratio))


@dataclass(frozen=True, eq=False)
class Box(Separable):
    """psi(w) = 0 if low_j <= w_j <= high_j for every j, else infinity; its prox is the projection.

    Parameters
    ----------
    low, high : float or array
        One bound for all coordinates, or one for each; infinite where there is none.
    """

    low: Bound
    high: Bound

    def __post_init__(self) -> None:
        low, high = _bound("low", self.low), _bound("high", self.high)
        if np.ndim(low) and np.ndim(high) and np.shape(low) != np.shape(high):
            raise ValueError(f"low and high must have one length, got {np.size(low)} and {np.size(high)}")
        if not np.all(np.less_equal(low, high)):
            raise ValueError(f"low must not exceed high, got low={low} and high={high}")
        if np.any(np.equal(low, math.inf)) or np.any(np.equal(high, -math.inf)):
            raise ValueError(f"low must be below inf and high above -inf, got low={low} and high={high}")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @property
    def terms(self) -> Terms:
        """No weights, only the interval."""
        return Terms(low=self.low, high=self.high)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Box):
            return NotImplemented
        return np.array_equal(self.low, other.low) and np.array_equal(self.high, other.high)

    def __hash__(self) -> int:
        return hash((np.shape(self.low), np.shape(self.high)))


@dataclass(frozen=True)
class NonNegative(Separable):
    """psi(w) = 0 if every w_j is at least 0, else infinity."""

    @property
    def terms(self) -> Terms:
        """The half-line from 0."""
        return Terms(low=0.0)


@dataclass(frozen=True)
class Sum(Separable):
    """psi(w) = left(w) + right(w), again of the family, with an exact prox. Also written `left + right`."""

    left: Separable
    right: Separable

    def __post_init__(self) -> None:
        terms = self.terms
        if not np.all(np.less_equal(terms.low, terms.high)):
            raise ValueError("left and right must allow a common point, got intervals that do not meet")

    @property
    def terms(self) -> Terms:
        """Weights add up, intervals intersect."""
        left, right = self.left.terms, self.right.terms
        return Terms(
            left.absolute + right.absolute,
            left.quadratic + right.quadratic,
            _tighter(np.maximum, left.low, right.low),
            _tighter(np.minimum, left.high, right.high),
        )


def _bound(name: str, value: Bound) -> Bound:
    """A float, or a read-only copy of an array without NaN."""
    if np.ndim(value) == 0:
        return checks.real(name, value)
    array = np.array(value, dtype=np.float64)
    if array.ndim != 1 or np.any(np.isnan(array)):
        raise ValueError(f"{name} must be a number or a one-dimensional array without nan, got shape {array.shape}")
    array.flags.writeable = False
    return array


def _tighter(choose: Callable[[Bound, Bound], FloatArray], one: Bound, other: Bound) -> Bound:
    chosen = choose(one, other)
    return float(chosen) if np.ndim(chosen) == 0 else chosen
