"""Sets that are made, with a truth that is known: each is hard in a way of its own.

They have the same rows every time. What the best linear model reaches is known up to the split of rows.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit

from benchmarks.frame import Floats

Made = tuple[Floats, Any]


def correlated() -> Made:
    """5,000 rows, 60 columns in six groups of ten that share most of what they say; units from .001 to 1,000."""
    rng = np.random.default_rng(11)
    shared = rng.standard_normal((5_000, 6))
    columns = np.repeat(shared, 10, axis=1) + 0.3 * rng.standard_normal((5_000, 60))
    margins = shared @ [1.5, -1.0, 0.7, 0.0, 0.0, 0.4]
    return columns * 10.0 ** rng.uniform(-3, 3, 60) + 50.0, (rng.uniform(size=5_000) < expit(margins)).astype(int)


def rare_events() -> Made:
    """30,000 rows, 25 columns; one row in seventy is of the second class."""
    rng = np.random.default_rng(12)
    columns = rng.standard_normal((30_000, 25))
    margins = columns[:, :5] @ [1.0, 0.8, -0.6, 0.4, -0.3] - 5.4
    return columns, (rng.uniform(size=30_000) < expit(margins)).astype(int)


def indicators() -> Made:
    """8,000 rows, 200 columns of 0 and 1, of which from one in a hundred to one in two is 1."""
    rng = np.random.default_rng(13)
    columns = (rng.uniform(size=(8_000, 200)) < np.geomspace(0.01, 0.5, 200)).astype(float)
    weights = rng.standard_normal(200) * (rng.uniform(size=200) < 0.2)
    margins = (columns - columns.mean(axis=0)) @ weights
    return columns, (rng.uniform(size=8_000) < expit(1.5 * margins / margins.std())).astype(int)


def heavy_tails() -> Made:
    """10,000 rows, 20 columns of Student's t with three degrees of freedom, and such noise on the target."""
    rng = np.random.default_rng(14)
    columns = rng.standard_t(3.0, (10_000, 20))
    target = columns[:, :8] @ np.linspace(1.0, 0.3, 8) + 1.5 * rng.standard_t(3.0, 10_000)
    return columns * np.geomspace(0.1, 100.0, 20), 1_000.0 + 40.0 * target


def pure_noise() -> Made:
    """1,500 rows, 60 columns, and a target that has nothing to do with them: no model beats its mean."""
    rng = np.random.default_rng(15)
    return rng.standard_normal((1_500, 60)), 200.0 + 10.0 * rng.standard_normal(1_500)


MADE: dict[str, Callable[[], Made]] = {
    made.__name__: made for made in (correlated, rare_events, indicators, heavy_tails, pure_noise)
}
