"""Private R2 and private mean squared error.

Privacy
-------
Unit, neighbours and assumptions are those of `tacit.metrics`. Targets and predictions are clipped to the public
`y_bounds` = c -+ h; in units of h they are t and p in [-1, 1]. Released in one vector: the sums over rows of

    3 ((t - p)^2 / 2 - 1),    t,    2 t^2 - 1,

each of which lies in [-1, 1] before its weight. So a row moves the vector by at most 5 in l1 and sqrt(3^2 + 1 + 1) =
3.32 in l2; a row with t = 1 and p = -1 does. The mean squared error alone is the first sum with weight 1. The sums are
of floats: their rounding is in the sensitivity.

Replacing a row (t, p) by (s, q) moves the first sum by at most 3 x 2. With u = |t - s| and v = |t + s|, u + v <= 2, it
moves the second by u and the third by 2 u v. So the second and the third move together by

    l1:  u + 2 u v          <=  (2 - v) (1 + 2 v)      <=  3.125, at v = 3/4,
    l2:  u^2 + 4 u^2 v^2    <=  (2 - v)^2 (1 + 4 v^2)  <=  71/16 + 1/sqrt(2), at v = (2 + sqrt(2))/4,

and all three by at most 9.125 in l1 and sqrt(36 + 71/16 + 1/sqrt(2)) = 6.41 in l2. Both are attained, by t = 1 with
p = -1 against s = v - 1 with q = s.

The sums give the mean squared error, the mean and the variance of t, and R2 = 1 - error / variance. The noise of the
error enters R2 in full, that of the variance times 1 - R2. So the error has the largest weight: 3, 1, 1 are within 3%
of the best for R2 = 1/2 and a mean a quarter of h off the centre, for both laws of noise.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike

from tacit._types import Floats
from tacit.metrics import inputs
from tacit.metrics.predictions import Predictions
from tacit.metrics.release import Asked, BoundedSums, Law, Reading, scored
from tacit.metrics.score import Score
from tacit.metrics.terms import Agreed, Terms
from tacit.problems.declared import interval
from tacit.problems.penalty import SMALLEST

_STANDS_OUT = 2.0  # a variance is there if it is more than this many deviations of its noise
_ROUNDING = 1e-12  # what a variance in units of h can be off by without noise


@dataclass(frozen=True)
class SquaredErrors(BoundedSums):
    """The mean squared error over n rows and, if asked for, the part of the variance that is explained."""

    n: int
    low: float
    high: float
    r2: bool
    name: str = "squared_errors"

    @property
    def weights(self) -> tuple[float, ...]:
        """Of the squared error, the target and its square."""
        return (3.0, 1.0, 1.0) if self.r2 else (1.0,)

    @property
    def half(self) -> float:
        """The unit h: half the width of the bounds."""
        return (self.high - self.low) / 2

    def apart(self, law: Law) -> float:
        """As derived above; two roundings a statistic are far below 2^-40."""
        if not self.r2:
            return super().apart(law)
        furthest = 9.125 if law == "laplace" else math.sqrt(36.0 + 71.0 / 16.0 + math.sqrt(0.5))
        return furthest * (1.0 + 2.0**-40)

    def sums(self, y_true: Floats, y_pred: Floats) -> Floats:
        """The sums that are released."""
        t, p = self._scaled(y_true), self._scaled(y_pred)
        error = (t - p) ** 2 / 2 - 1.0
        return self.weighted(error, t, 2.0 * t**2 - 1.0) if self.r2 else self.weighted(error)

    def scores(self, sums: Floats, deviation: float) -> dict[str, Reading]:
        """The mean squared error, inside its range, and R2; undefined unless the variance stands out of the noise."""
        means, noise = self.means(sums), self.means(np.full(self.size, deviation))
        error, error_noise = 2.0 * (1.0 + means[0]), 2.0 * noise[0]
        unit = self.half**2
        found = {"mean_squared_error": Reading(unit * np.clip(error, 0.0, 4.0), unit * error_noise)}
        if self.r2:
            variance = (1.0 + means[2]) / 2 - means[1] ** 2
            variance_noise = math.hypot(noise[2] / 2, 2.0 * means[1] * noise[1])
            found["r2"] = explained(error, error_noise, variance, variance_noise)
        return found

    def _scaled(self, values: Floats) -> Floats:
        centre = self.low + self.half
        return np.clip((np.clip(values, self.low, self.high) - centre) / self.half, -1.0, 1.0)


def explained(error: float, error_noise: float, variance: float, variance_noise: float) -> Reading:
    """R2 from an error and a variance; undefined unless the variance stands out of its noise."""
    if variance <= max(_STANDS_OUT * variance_noise, _ROUNDING):
        return Reading(math.nan, math.inf)
    left = error / variance
    return Reading(min(1.0 - left, 1.0), math.hypot(error_noise, left * variance_noise) / variance)


@dataclass(frozen=True)
class _OfTarget:
    """A metric of a target with public bounds. None: the model's `y_bounds_`, in `evaluate`."""

    y_bounds: tuple[float, float] | None = None
    name: ClassVar[str]

    def __post_init__(self) -> None:
        if self.y_bounds is not None:
            object.__setattr__(self, "y_bounds", interval("y_bounds", self.y_bounds, SMALLEST))

    def of(self, predictions: Predictions) -> tuple[Self, Any]:
        """The metric for a model, and the predictions that it takes."""
        bounds = getattr(predictions.model, "y_bounds_", None) if self.y_bounds is None else self.y_bounds
        if bounds is None:
            raise ValueError(
                f"y_bounds must be given: public bounds on the target, as in {type(self).__name__}((0, 1))"
            )
        return replace(self, y_bounds=bounds), predictions.by("predict")

    def asked(self, y_true: ArrayLike, y_pred: ArrayLike, _epsilon: float, rows: int | None = None) -> Asked:
        """What to release: sums for R2, which give the mean squared error as well, or for the latter alone."""
        low, high = interval("y_bounds", self.y_bounds, SMALLEST)
        truth, guess = inputs.numbers("y_true", y_true), inputs.numbers("y_pred", y_pred)
        n = inputs.same_rows(truth, guess, "y_true and y_pred", rows)
        query = SquaredErrors(n, low, high, r2=self.name == R2.name)
        return Asked(query, query.sums(truth, guess))


class R2(_OfTarget):
    """The part of the variance of the target that is explained.

    Parameters
    ----------
    y_bounds : (float, float), default=None
        Public bounds on the target. Targets and predictions are clipped to them, and the score is that of the clipped
        numbers. The noise grows with the square of their width over the spread of the targets. None: the model's
        `y_bounds_`, in `evaluate`.
    """

    name = "r2"


class MeanSquaredError(_OfTarget):
    """The mean of the squared differences between target and prediction.

    Parameters
    ----------
    y_bounds : (float, float), default=None
        Public bounds on the target, as for `R2`. The score lies between 0 and the square of their width.
    """

    name = "mean_squared_error"


def r2_score(y_true: ArrayLike, y_pred: ArrayLike, *, y_bounds: tuple[float, float], **terms: Unpack[Terms]) -> Score:
    """The part of the variance of private targets that is explained, at most 1, with noise.

    It is NaN if the noisy variance does not show that the targets differ.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        Targets and predictions.
    y_bounds : (float, float)
        Public bounds on the target, to which both are clipped. See `R2`.
    epsilon : float
        Privacy budget of this score. See `Terms`, also for delta, adjacency, mechanism and random_state.

    Examples
    --------
    >>> from tacit.metrics import r2_score
    >>> score = r2_score([1.0, 3.0, 5.0] * 900, [1.0, 3.0, 4.0] * 900, y_bounds=(0.0, 6.0), epsilon=1.0)
    >>> abs(score.value - 0.875) < 0.05
    True
    """
    return scored(y_true, [(R2(y_bounds), y_pred, 1.0)], Agreed.to(terms))["r2"]


def mean_squared_error(
    y_true: ArrayLike, y_pred: ArrayLike, *, y_bounds: tuple[float, float], **terms: Unpack[Terms]
) -> Score:
    """The mean squared error of private rows, with noise.

    Parameters
    ----------
    y_true, y_pred, y_bounds
        As for `r2_score`.
    epsilon : float
        Privacy budget of this score. See `Terms`, also for delta, adjacency, mechanism and random_state.

    Examples
    --------
    >>> from tacit.metrics import mean_squared_error
    >>> 0.8 < mean_squared_error([1.0, 2.0] * 900, [2.0, 3.0] * 900, y_bounds=(0.0, 4.0), epsilon=1.0).value < 1.2
    True
    """
    return scored(y_true, [(MeanSquaredError(y_bounds), y_pred, 1.0)], Agreed.to(terms))["mean_squared_error"]
