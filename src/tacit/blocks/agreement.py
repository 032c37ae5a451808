"""How well margins agree with targets, as a sum over rows of whole numbers."""

import math

import numpy as np

from tacit._types import Floats, Integers
from tacit.privacy.mechanisms import Sensitivity

BITS = 20  # steps to 1, as a power of two: 2,048 rows add up to 2^52 at most
POWER = 2 * BITS + 1  # of their products, half of which are summed

AGREEMENT = Sensitivity(math.sqrt(1.25), 2.0)
"""Of sums of (a b, a^2 / 2) with a and b between -1 and 1, which are exact.

A term is no longer than sqrt(1 + 1 / 4). Let two terms have |a| = x and y. Their first numbers are x + y apart at most,
so that the square of their distance is at most (x + y)^2 + (x^2 - y^2)^2 / 4 = s^2 (1 + (x - y)^2 / 4) with s = x + y.
As |x - y| is at most s and 2 - s, that is at most 5 / 4 for s <= 1, and s^2 (1 + (2 - s)^2 / 4) beyond, which grows
with s: 4 at most, for x = y = 1 and b = 1 and -1.
"""


def agreement(margins: Floats, targets: Floats, size: float) -> Integers:
    """The sums of a b and a^2 / 2 in steps of 2^-POWER, a = margin / size and b = target, both clipped to [-1, 1].

    Each is rounded to the nearest of 2^BITS steps, which leaves it between -1 and 1. A margin that is no number counts
    nowhere.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        parts = np.clip(np.stack([margins / size, targets]), -1.0, 1.0)
    parts = np.where(np.isnan(parts).any(axis=0), 0.0, parts)
    a, b = np.rint(np.ldexp(parts, BITS)).astype(np.int64)
    return np.array([2 * (a @ b), a @ a])
