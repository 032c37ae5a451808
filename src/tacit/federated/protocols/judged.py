"""Squared errors of linear models on people who were held out, from released second moments and the noise in them.

Pure functions of released and public numbers. The error of a model for a row is linear in the row's columns, its target
and a constant, so the mean squared error is a quadratic form in their second moments, and the noise in it is known: for
any number of models, whichever they are.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit._types import Floats
from tacit.metrics.regression import explained
from tacit.metrics.release import Reading

Places = NDArray[np.int64]


class Noisy(NamedTuple):
    """Moments that have noise: those of some columns with each other, or of some with some others.

    `deviation` is that of an entry; of columns with each other, that of the diagonal, and less by sqrt(2) off it. With
    `along` it is that of the one number which two vectors are multiplied with.
    """

    left: Places
    right: Places
    deviation: float
    along: tuple[Floats, Floats] | None = None

    def variance(self, weights: Floats) -> float:
        """Of the quadratic form in these weights."""
        left, right = weights[self.left], weights[self.right]
        if self.along is not None:
            form = float(left @ self.along[0]) * float(right @ self.along[1])
            return 4.0 * (self.deviation * form) ** 2
        form = float(left @ left) * float(right @ right)
        return self.deviation**2 * form * (1.0 if self.same else 4.0)

    def variance_between(self, one: Floats, other: Floats) -> float:
        """Of the bilinear form in two vectors that have no column in common."""
        sizes = [float(v @ v) for v in (one[self.left], other[self.right], one[self.right], other[self.left])]
        return self.deviation**2 * (sizes[0] * sizes[1] + sizes[2] * sizes[3]) * (0.25 if self.same else 1.0)

    @property
    def same(self) -> bool:
        """Whether it is about columns with each other."""
        return np.array_equal(self.left, self.right)


@dataclass(frozen=True, eq=False)
class Judge:
    """Second moments per row of all columns, the target and a constant, in this order.

    The target is less `target_mean`, and over `target_unit`.
    """

    matrix: Floats
    noise: Sequence[Noisy]
    target_mean: float
    target_unit: float

    @property
    def means(self) -> Floats:
        """Of the columns and the target."""
        return self.matrix[:-1, -1]

    @property
    def covariance(self) -> Floats:
        """Of the columns and the target; it may have eigenvalues below zero."""
        return self.matrix[:-1, :-1] - np.outer(self.means, self.means)

    def squared_error(self, weights: Floats, intercept: float) -> Reading:
        """The mean squared error of a model; noise may take it below zero."""
        form = np.concatenate([-weights, [self.target_unit, self.target_mean - intercept]])
        return Reading(float(form @ self.matrix @ form), self.deviation(form))

    def r2(self, weights: Floats, intercept: float) -> Reading:
        """The part of the target's variance that the model explains; undefined where the noise hides the variance."""
        form, mean = self.target, float(self.means[-1])
        form[-1] = -mean * self.target_unit
        variance = self.target_unit**2 * (float(self.matrix[-2, -2]) - mean**2)
        error = self.squared_error(weights, intercept)
        return explained(error.value, error.noise, variance, self.deviation(form))

    @property
    def target(self) -> Floats:
        """The weights that give the target, less its mean."""
        form = np.zeros(len(self.matrix))
        form[-2] = self.target_unit
        return form

    def deviation(self, form: Floats) -> float:
        """Of the noise in a quadratic form."""
        return math.sqrt(sum(noisy.variance(form) for noisy in self.noise))
