"""A fast estimate of the epsilon of Gaussian, sampled Gaussian and Laplace releases, for the start of a search.

It convolves privacy losses on a grid, as the PLD accountant does. The accountant rounds losses up; this rounds to the
nearest grid point. It takes milliseconds where the accountant takes half a second. The result is close to the truth,
above or below it.

What holds: no guarantee rests on it. `calibration` lets it propose multipliers, which the accountant then checks.
"""

import numpy as np
from dp_accounting import DpEvent, GaussianDpEvent, LaplaceDpEvent, PoissonSampledDpEvent
from scipy.special import ndtr

from tacit._types import Floats

_POINTS = 1 << 16


def estimated_epsilon(parts: list[tuple[DpEvent, int]], delta: float, epsilon: float) -> float:
    """Roughly the epsilon of the composed parts at `delta`; most accurate near the `epsilon` expected."""
    reach = 5.0 * epsilon
    losses = np.linspace(-reach, reach, _POINTS, endpoint=False)
    edges = losses + reach / _POINTS
    found = []
    for adding in (True, False):
        spectrum = np.ones(_POINTS // 2 + 1, dtype=np.complex128)
        beyond, beyond_other = 0.0, 0.0  # mass of single losses past the grid, in this world and in the other
        for part, times in parts:
            below = _loss_cdf(part, edges, adding)
            spectrum *= np.fft.rfft(np.fft.ifftshift(np.diff(below, prepend=0.0))) ** times
            beyond += times * (1.0 - below[-1])
            beyond_other += times * _loss_cdf(part, -edges[-1:], not adding)[0]
        total = np.maximum(np.fft.fftshift(np.fft.irfft(spectrum, _POINTS)), 0.0)
        found.append(_crossing(losses, total, beyond, beyond_other, delta))
    return max(found)


def _loss_cdf(event: DpEvent, at: Floats, adding: bool) -> Floats:
    """P(privacy loss <= at), when the record is added to, or removed from, what the output was drawn from."""
    if isinstance(event, LaplaceDpEvent):
        z = event.noise_multiplier
        inside = np.exp(np.minimum(at - 1.0 / z, 0.0) / 2) / 2
        return np.where(at >= 1.0 / z, 1.0, np.where(at < -1.0 / z, 0.0, inside))
    if isinstance(event, GaussianDpEvent):
        z, q = event.noise_multiplier, 1.0
    else:
        assert isinstance(event, PoissonSampledDpEvent)
        z, q = event.event.noise_multiplier, event.sampling_probability
    # Loss of (1-q) N(0, z^2) + q N(1, z^2) against N(0, z^2) at x: log(1 - q + q exp((2x - 1) / (2 z^2))).
    loss = -at if adding else at
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        log_ratio = np.where(loss > 500.0, loss, np.log(np.maximum(np.expm1(loss) + q, 0.0)))  # exp overflows at 709
        x = 0.5 + z**2 * (log_ratio - np.log(q))
    if adding:
        return np.asarray(1.0 - ndtr(x / z))
    return np.asarray((1.0 - q) * ndtr(x / z) + q * ndtr((x - 1.0) / z))


def _crossing(losses: Floats, mass: Floats, beyond: float, beyond_other: float, delta: float) -> float:
    """The epsilon at which E[(1 - exp(epsilon - loss))+] falls to delta."""
    positive = losses >= 0
    grid, mass = losses[positive], mass[positive]
    above = np.cumsum(mass[::-1])[::-1] + beyond
    above_other = np.cumsum((mass * np.exp(-grid))[::-1])[::-1] + beyond_other
    with np.errstate(over="ignore", invalid="ignore"):
        excess = above - np.nan_to_num(np.exp(grid) * above_other, posinf=0.0)
    return float(np.interp(-delta, -excess, grid))
