"""Signed vertices by scores that all move with one public number: Frank-Wolfe on the squared loss.

Its gradient is linear in the scale of the weights, a_j = scale r_j + b_j, and every step changes the scale. Rates r and
constants b are kept as whole numbers. A score is worked out when its coordinate is proposed.

What rounding costs. A score is scale r_j rounded twice in float64 and once to a whole number, plus b_j. Where |scale
r_j| stays below `LARGEST_PART` each world is off by at most one unit, so a row changes a score by at most 2 units more
than what it adds to scale r_j and to b_j: its contribution must be `ROUNDING_UNITS` below what a draw allows.
"""

from typing import Any

import numpy as np

from tacit._types import Integers
from tacit.privacy import checks
from tacit.privacy.mechanisms.vertices import _RoundSampler
from tacit.privacy.noise import affine, vertices

LARGEST_PART = 2**51
ROUNDING_UNITS = 2
write_scores = affine.write_scores
_SLACK = 2.0 * 2.0**32  # units, two octaves, that an envelope may lie above the score of its coordinate


class AffineBucketSampler(_RoundSampler):
    """`BucketSampler` for scores rint(scale rates[j]) + constants[j], with a scale that starts at 1 and falls.

    Parameters
    ----------
    rates, constants : arrays of int64
        Kept by reference, never written.
    limit : int
        A public bound on all scores, at any scale that is reached.
    """

    _compiled = staticmethod(affine.draw_by_rates)

    def __init__(self, rates: Integers, constants: Integers, limit: int) -> None:
        super().__init__(np.empty_like(constants), limit)
        if not isinstance(rates, np.ndarray) or rates.dtype != np.int64 or rates.shape != constants.shape:
            raise TypeError("rates must be an array of int64, as long as the constants")
        self._rates, self._constants = rates, constants
        self._held = vertices.empty_buckets(len(rates), self._limit)
        self.buckets = vertices.buckets_in(*self._held)
        self._scale, self._lowest, self._steepest = 1.0, 0.0, 0
        self._sort()

    @property
    def _given(self) -> tuple[Any, ...]:  # type: ignore[override]
        return self._lines, self._scores, *self._held

    @property
    def _lines(self) -> affine.Lines:
        return self._scale, self._lowest, self._rates, self._constants

    def scale_to(self, scale: float) -> None:
        """Move all scores to a scale that is at most the present one."""
        scale = checks.real("scale", scale)
        if not 0.0 <= scale <= self._scale:
            raise ValueError(f"scale must not rise, and not be negative; it was {self._scale!r}, got {scale!r}")
        self._scale = scale
        if scale < self._lowest:
            self._sort()

    def restart(self) -> None:
        """All rates are new, and the scale is 1."""
        self._scale = 1.0
        self._sort()

    def changed(self, places: Integers) -> None:
        """Take note that the rates at these places changed; constants do not."""
        found = affine.promote_rates(places, self._lines, self.buckets)
        self._steepest = max(self._steepest, found)
        if (self._scale - self._lowest) * self._steepest > 2.0 * _SLACK:
            self._sort()

    def _sort(self) -> None:
        """Put every coordinate into its bucket, for as low a scale as keeps envelopes near."""
        self._steepest = max(int(self._rates.max()), -int(self._rates.min()))
        self._lowest = max(0.0, self._scale - _SLACK / self._steepest) if self._steepest else 0.0
        affine.write_largest(self._lines, self._scores)
        self.buckets.at_least[:] = 0
        self._require(vertices.sort_into_buckets(self._scores, self._limit, self.buckets))
