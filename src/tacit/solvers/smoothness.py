"""Smoothness constants of coordinates: the mean square of each column, released once, or declared.

The mean loss has curvature at most h M_j in weight j, h the loss's own and M_j the mean of z_ij^2. Coordinate solvers
take steps of 1 / (h M_j) and measure gradients in units of sqrt(M_j).

Privacy. With z_ij^2 cut at b and rows scaled so that their squares add up to at most T, the squares of one row are a
non-negative vector with largest entry b and sum T, hence of norm at most sqrt(b T): one Gaussian release of all columns
has that sensitivity, and sqrt(2 b T) for replace-one, because two non-negative vectors are never further apart than
orthogonal ones. (The paper releases each constant by itself with Laplace noise: at d columns that is d times the noise,
and its factor for replace-one is 2.)
"""

import math

import numpy as np

from tacit._types import Floats
from tacit.preprocessing.magnitudes import LIMIT
from tacit.privacy import Gate, Release, float_sum_slack
from tacit.privacy.mechanisms import GaussianVector, Sensitivity
from tacit.solvers.columns import Columns
from tacit.solvers.task import Task

SHARE = 0.02  # of mu^2
_NAME = "smoothness"


def is_private(task: Task) -> bool:
    """Whether the constants are to be released, not declared."""
    return task.options.smoothness == "private"


def releases(task: Task, share: float) -> tuple[tuple[Release, ...], float]:
    """The release of the constants, if there is one, and the share that is left for others."""
    if not is_private(task):
        return (), share
    return (Release(_NAME, "gaussian", share=SHARE * share),), (1.0 - SHARE) * share


def constants(task: Task, columns: Columns, gate: Gate) -> Floats:
    """M_j of every coordinate, the intercept's 1 last.

    Noisy ones are drawn towards their mean by how noisy they are next to how much they differ, and none is left below
    one standard deviation of the noise: a constant too small makes steps that diverge, one too large only slow ones.
    """
    if not is_private(task):
        return np.append(np.asarray(task.options.smoothness, dtype=np.float64), 1.0)
    n, d = task.n, task.d
    total = float(d) if task.sparse else max(float(d), LIMIT**2)
    largest = total if task.sparse else LIMIT**2
    size = math.sqrt(largest * total) + math.sqrt(d) * float_sum_slack(n, largest, columns.depth)
    sensitivity = Sensitivity(size, math.sqrt(2.0) * size)
    sums = columns.squares(largest, total)
    noisy = gate.release(_NAME, GaussianVector(sensitivity, bound=n * largest), sums) / n
    error = gate.noise(_NAME, sensitivity) / n
    mean = max(float(noisy.mean()), 1e-12)
    differ = max(float(noisy.var()) - error**2, 0.0)
    weight = differ / (differ + error**2) if error > 0.0 else 1.0
    return np.append(np.maximum(mean + weight * (noisy - mean), max(error, 1e-6 * mean)), 1.0)
