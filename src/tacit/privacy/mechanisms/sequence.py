"""Gaussian noise on values that are computed one after the other, each from those released before.

A walk is what computes them: it is handed a `Tape` with the noise of all its values, drawn before any of them is known,
and returns what it released. Let a pair of neighbours be fixed, and let a_k bound by how much they can differ in value
k, whatever was released before. Then step k is a_k / s-GDP for this pair, s the standard deviation of the noise, and by
adaptive composition the walk is sqrt(sum a_k^2) / s-GDP: what one release of a vector with sensitivity sqrt(sum a_k^2)
costs. The sensitivity of a walk is the largest such sum over pairs. Coordinate descent is a case in point: a row that
can change one derivative much can change the others only little.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.privacy import checks
from tacit.privacy.gate import Grant
from tacit.privacy.mechanisms.sensitivity import Sensitivity
from tacit.privacy.noise import kernels, samplers
from tacit.privacy.noise.grid import MAX_BITS, Grid
from tacit.privacy.plan import Kind

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Tape:
    """The noise of a walk: value k is released as (rint(value / step) + noise[k]) step, clipped to `bound` before.

    A step of 0 stands for no noise. `tacit.privacy.noise.kernels.release_one` does it.
    """

    noise: NDArray[np.int64]
    step: float
    bound: float

    def put(self, values: Floats, start: int) -> Floats:
        """These values, released with the noise from place `start` on."""
        out = np.empty(len(values))
        for k, value in enumerate(values):
            out[k] = kernels.release_one(value, self.noise[start + k], self.step, self.bound)
        return out


Walk = Callable[[Tape], Floats]


@dataclass(frozen=True)
class GaussianSequence:
    """Gaussian noise on the values of a walk.

    Parameters
    ----------
    sensitivity : Sensitivity
        Of all values of a walk together, in the l2 norm, on any history.
    bound : float
        Public bound on the absolute value of one of them, to which values are clipped.
    """

    sensitivity: Sensitivity
    bound: float
    kind: ClassVar[Kind] = "gaussian"

    def draw(self, grant: Grant, size: int, walk: Walk) -> Floats:
        """What the walk released, of which there are `size` values."""
        source, multiplier = grant.take(), grant.multiplier
        size = checks.count("size", size)
        spread = self.sensitivity.under(grant.adjacency)
        if multiplier == 0.0 or spread == 0.0:
            return walk(Tape(np.zeros(size, dtype=np.int64), 0.0, self.bound))
        grid = Grid.for_noise(spread, multiplier, size, checks.positive("bound", self.bound), power=0.5)
        noise = samplers.normals(source, size) >> (MAX_BITS - grid.bits)
        return walk(Tape(noise, grid.step, grid.bound))
