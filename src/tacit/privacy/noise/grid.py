"""Releases of float arrays on a grid, so that no output bit depends on the data except through the noise.

A value v becomes a whole multiple q of the grid step g = sigma 2^-K, and the release is (q + N) g with
N = floor(2^K Z), Z standard normal. As q is whole, q + N = floor(q + 2^K Z): post-processing of the Gaussian mechanism
on q, so every statement about Gaussian noise holds as it stands. (The same for Laplace.) K is 40, or less where the
values may be large: it depends on public numbers only.

Rounding to the grid is part of the sensitivity. Each world's q differs from v / g by at most 1/2 from rounding to a
whole number, plus |v / g| 2^-51 from the division and up to two roundings before it: the one that made a float64 of an
exact sum, and one product. Together they are (1 + u)^3 - 1 < 4 u, u = 2^-53. Between two neighbours that adds at most
g + 2^-50 |v| to each coordinate, and twice the last part leaves room for the rounding of sigma itself. So with
|v| <= bound a vector of d coordinates gets

    sensitivity' = sensitivity + sqrt(d) (g + 2^-49 bound)      (times d, not sqrt(d), in the l1 norm for Laplace)

and sigma is computed from that.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tacit._types import Floats, Integers
from tacit.privacy import checks
from tacit.privacy.noise import kernels, samplers
from tacit.privacy.noise.source import NoiseSource

MAX_BITS = 40
_RANGE_BITS = 62  # q and q + N fit in 63 bits: |q| <= 2^62, and |N| < 2^44 for normals, 2^46 for Laplace in practice
_DIVISION_ERROR = 2.0**-49


@dataclass(frozen=True)
class Grid:
    """A grid for one release: noise of standard deviation (Laplace: scale) `scale`, and 2^bits steps to it."""

    scale: float
    bits: int
    bound: float

    @property
    def step(self) -> float:
        """The distance between neighbouring values of the release."""
        return math.ldexp(self.scale, -self.bits)

    @classmethod
    def for_noise(cls, sensitivity: float, multiplier: float, size: int, bound: float | None, power: float) -> "Grid":
        """The grid on which noise of `multiplier` times the sensitivity covers rounding as well.

        Parameters
        ----------
        sensitivity, multiplier : float
            The noise without rounding would be their product.
        size : int
            Number of coordinates.
        bound : float or None
            Public bound on the absolute value of a coordinate; None allows 2^22 times the noise.
        power : float
            Rounding errors of the coordinates add up to size^power: 1/2 in the l2 norm, 1 in the l1 norm.
        """
        plain = sensitivity * multiplier
        if not 1e-280 < plain < 1e280:
            raise OverflowError(f"noise of {plain:.3g} is outside what float64 can carry; rescale the release")
        if bound is None:
            bits, limit = MAX_BITS, math.ldexp(plain, _RANGE_BITS - MAX_BITS)
        else:
            room = _RANGE_BITS - math.log2(max(bound / plain, 1.0))
            bits, limit = min(MAX_BITS, math.floor(max(room, 0.0))), bound
        rounding = max(size, 1) ** power
        left = 1.0 - multiplier * math.ldexp(rounding, -bits) if bits > 0 else 0.0
        if left <= 0.5:
            raise OverflowError(
                f"a release of {size:,} values up to {limit:.3g} does not fit a 64-bit grid with noise {plain:.3g};"
                " lower the bound or split the release"
            )
        scale = (plain + multiplier * rounding * _DIVISION_ERROR * limit) / left
        return cls(scale=scale, bits=bits, bound=limit)

    def release(self, values: Floats, noise: Integers, *, strict: bool) -> Floats:
        """Values on the grid plus noise, which counts 2^-40 of its scale.

        Values beyond the bound are clipped; where the bound is not a declared one (`strict`) they raise.
        """
        out = np.empty(values.shape)
        shift = MAX_BITS - self.bits  # floor(floor(2^40 Z) / 2^shift) = floor(2^bits Z)
        inside = kernels.release_on_grid(values.ravel(), noise, self.bound, self.step, shift, out.reshape(-1))
        if strict and not inside:
            raise OverflowError(
                "a value lies beyond 2^22 times the noise and does not fit the grid; declare a public `bound`"
            )
        return out


def gaussian(
    value: ArrayLike,
    sensitivity: float,
    mu: float,
    source: NoiseSource | None = None,
    *,
    bound: float | None = None,
) -> Floats:
    """Release an array with Gaussian noise, mu-GDP for the l2 sensitivity given.

    Parameters
    ----------
    value : array-like of float
        What to release: an aggregate over rows, such as a sum.
    sensitivity : float
        The most that one row can change `value`, in the l2 norm over all its entries. If the aggregate was summed in
        floating point, the error of that sum is the caller's to include (see `float_sum_slack`).
    mu : float
        Privacy of this release in Gaussian DP; the noise has standard deviation `sensitivity / mu`, plus less than one
        part in a million for the grid while `bound * sqrt(size)` is below 10^9 sensitivities and mu above
        `sqrt(size) / 10^6`. Infinity releases the value as it is.
    source : NoiseSource, optional
        Where the noise comes from; by default a fresh one.
    bound : float, optional
        Public bound on the absolute value of every entry, to which values are clipped. Without it a value beyond four
        million standard deviations of the noise raises OverflowError, which would tell something of the data.

    Returns
    -------
    array of float64
        On a grid, of the shape of `value`.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.privacy import gaussian
    >>> ages = np.clip([31.0, 47.0, 62.0, 25.0], 0, 100)
    >>> noisy_sum = gaussian(ages.sum(), sensitivity=100.0, mu=0.5)
    >>> noisy_sum.shape
    ()
    """
    values = np.asarray(value, dtype=np.float64)
    sensitivity = checks.non_negative("sensitivity", sensitivity)
    mu = checks.positive("mu", mu, finite=False)
    return noisy(values, sensitivity, 1.0 / mu, NoiseSource() if source is None else source, bound=bound)


def noisy(
    values: Floats,
    sensitivity: float,
    multiplier: float,
    source: NoiseSource,
    *,
    bound: float | None,
    law: str = "gaussian",
) -> Floats:
    """Gaussian or Laplace noise of `multiplier` times the sensitivity (l2, or l1 for Laplace), on the grid."""
    if bound is not None:
        bound = checks.positive("bound", bound)
    if multiplier == 0.0 or sensitivity == 0.0 or values.size == 0:
        return values.copy()
    grid = Grid.for_noise(sensitivity, multiplier, values.size, bound, power=0.5 if law == "gaussian" else 1.0)
    draw = samplers.normals if law == "gaussian" else samplers.laplaces
    return grid.release(values, draw(source, values.size), strict=bound is None)


def float_sum_slack(n: int, contribution: float, depth: int | None = None) -> float:
    """How much more than `contribution` one row can change a float64 sum of n rows with that norm at most.

    Adding n numbers in any order is off by at most gamma n C in each of two worlds: gamma = m u / (1 - m u), u = 2^-53,
    where m is the longest chain of additions that a number passes through: `depth`, or n if nothing is known.
    """
    n = checks.count("n", n)
    contribution = checks.non_negative("contribution", contribution)
    unit = (n if depth is None else min(n, checks.count("depth", depth))) * 2.0**-53
    if unit >= 0.5:
        raise OverflowError(f"a float64 sum of n={n:,} rows has no useful error bound")
    return 2.0 * n * contribution * unit / (1.0 - unit)
