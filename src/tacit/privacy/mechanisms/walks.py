"""Gaussian noise on values that are computed one after the other, each from those released before.

A walk is what computes them. It is handed the noise of all its values, drawn before data is touched; it computes and
releases each value, and returns what it released. Many short steps in one compiled loop are several times faster than
one at a time from Python.

Sequences. Let a pair of neighbours be fixed, and let a_k bound by how much they can differ in value k, whatever was
released before. Then step k is a_k / s-GDP for this pair, s the standard deviation of the noise. By adaptive
composition the walk is sqrt(sum a_k^2) / s-GDP: what one release of a vector with sensitivity sqrt(sum a_k^2) costs.
The sensitivity of a walk is the largest such sum over pairs. Coordinate descent is an example: a row that can change
one derivative much can change the others only little.

Steps on samples. Each step sums over a fresh sample of the rows. It costs what the plan says: a Poisson sampled
Gaussian release.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tacit._types import Floats, Integers
from tacit.privacy import checks
from tacit.privacy.gate import Grant
from tacit.privacy.mechanisms.sensitivity import Sensitivity
from tacit.privacy.noise import kernels, samplers
from tacit.privacy.noise.grid import MAX_BITS, Grid
from tacit.privacy.noise.source import NoiseSource
from tacit.privacy.plan import Kind


@dataclass(frozen=True, eq=False, repr=False)
class Tape:
    """The noise of a walk: value k is released as (rint(value / step) + noise[k]) step, clipped to `bound` before.

    A step of 0 stands for no noise. `tacit.privacy.noise.kernels.release_one` does it.
    """

    noise: Integers
    step: float
    bound: float

    def put(self, values: Floats, start: int) -> Floats:
        """These values, released with the noise from place `start` on."""
        out = np.empty(len(values))
        for k, value in enumerate(values):
            out[k] = kernels.release_one(value, self.noise[start + k], self.step, self.bound)
        return out

    def __repr__(self) -> str:
        return f"{type(self).__name__}(private)"


@dataclass(frozen=True, eq=False, repr=False)
class Batches(Tape):
    """The samples and the noise of some steps, of which value k of step t has noise[t, k].

    Step t sums over `rows[starts[t] : starts[t + 1]]`. Which rows these are is as secret as the data.
    """

    rows: Integers
    starts: Integers


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

    def draw(self, grant: Grant, size: int, walk: Callable[[Tape], Floats]) -> Floats:
        """What the walk released, of which there are `size` values."""
        size = checks.count("size", size)
        return walk(Tape(*_noise(self, grant, grant.take(), (size,))))


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
        samples = grant.samples(count)
        return walk(Batches(*_noise(self, grant, grant.take(count), (count, size)), *samples))


def _noise(
    of: GaussianSequence | SampledSteps, grant: Grant, source: NoiseSource, shape: tuple[int, ...]
) -> tuple[Integers, float, float]:
    """The noise of a tape, its step and its bound; the last side of the shape is what one sensitivity is of."""
    spread = of.sensitivity.under(grant.adjacency)
    if grant.multiplier == 0.0 or spread == 0.0:
        return np.zeros(shape, dtype=np.int64), 0.0, of.bound
    grid = Grid.for_noise(spread, grant.multiplier, shape[-1], checks.positive("bound", of.bound), power=0.5)
    noise = samplers.normals(source, math.prod(shape)) >> (MAX_BITS - grid.bits)
    return noise.reshape(shape), grid.step, grid.bound
