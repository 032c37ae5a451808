"""Gaussian noise on sums over fresh samples of the rows, many steps at a time.

A walk is what computes the steps. It is handed the samples and the noise of all of them, drawn before data is touched,
and computes and releases each step from those released before. What a step costs is not changed by this: a Poisson
sampled Gaussian release, as the plan says. Many short steps in one compiled loop are several times faster than one at a
time from Python.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.privacy import checks
from tacit.privacy.gate import Grant
from tacit.privacy.mechanisms.sensitivity import Sensitivity
from tacit.privacy.noise import samplers
from tacit.privacy.noise.grid import MAX_BITS, Grid
from tacit.privacy.plan import Kind

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Batches:
    """The samples and the noise of some steps.

    Step t sums over `rows[starts[t] : starts[t + 1]]`, which are as secret as the data, and releases value k of its sum
    as (rint(value / step) + noise[t, k]) step, clipped to `bound` before. A step of 0 stands for no noise.
    `tacit.privacy.noise.kernels.release_one` does it.
    """

    rows: Integers
    starts: Integers
    noise: Integers
    step: float
    bound: float

    def __repr__(self) -> str:
        return "Batches(private)"


@dataclass(frozen=True)
class SampledSteps:
    """Gaussian noise on sums over samples, each sum computed from what was released before.

    Parameters
    ----------
    sensitivity : Sensitivity
        Of one sum, in the l2 norm, on any history.
    bound : float
        Public bound on the absolute value of an entry, to which values are clipped.
    """

    sensitivity: Sensitivity
    bound: float
    kind: ClassVar[Kind] = "gaussian"

    def draw(self, grant: Grant, size: int, count: int, walk: Callable[[Batches], Floats]) -> Floats:
        """What the next `count` steps of a walk released: an array of shape (count, size)."""
        size = checks.count("size", size)
        rows, starts = grant.samples(count)
        source, multiplier = grant.take(count), grant.multiplier
        spread = self.sensitivity.under(grant.adjacency)
        if multiplier == 0.0 or spread == 0.0:
            return walk(Batches(rows, starts, np.zeros((count, size), dtype=np.int64), 0.0, self.bound))
        grid = Grid.for_noise(spread, multiplier, size, checks.positive("bound", self.bound), power=0.5)
        noise = samplers.normals(source, count * size) >> (MAX_BITS - grid.bits)
        return walk(Batches(rows, starts, noise.reshape(count, size), grid.step, grid.bound))
