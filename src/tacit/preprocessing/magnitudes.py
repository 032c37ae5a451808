"""Reading a column's centre and scale off noisy histograms of signed magnitudes.

Pure functions of released numbers: no data comes in here. Bins are sign 2^e, e from `low` to `high`, with a zero bin
in the middle, in increasing order of value.
"""

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

WIDEST = 24  # the first histogram sees magnitudes from 2^-24 to 2^24
BELOW, ABOVE = 8, 1  # the second, exponents from 8 below the largest to 1 above it
LIMIT = 3.0  # values are clipped to this many scales from the centre


def bin_values(low: int, high: int) -> Floats:
    """What the bins stand for, in increasing order."""
    powers = np.ldexp(1.0, np.arange(low, high + 1))
    return np.concatenate([-powers[::-1], [0.0], powers])


def surviving(counts: Floats, noise: float, columns: int) -> Mask:
    """Bins that stand out of the noise, and their neighbours that still do.

    Seeds are bins above the largest noise expected among all columns' bins, and a column's largest bin if above the
    largest expected among its own; from a seed, adjacent bins above two standard deviations join.
    """
    bins = len(counts)
    if noise == 0.0:
        return counts > 0
    keep = counts > noise * math.sqrt(2.0 * math.log(2.0 * columns * bins))
    top = int(np.argmax(counts))
    if counts[top] > noise * math.sqrt(2.0 * math.log(bins)):
        keep[top] = True
    candidates = counts > 2.0 * noise
    for step in (1, -1):
        grown = keep[::step]
        allowed = candidates[::step]
        for k in range(1, bins):
            if grown[k - 1] and allowed[k]:
                grown[k] = True
    return keep


def rough_centre(counts: Floats, keep: Mask) -> tuple[float, int]:
    """The median bin's value, and the largest exponent that survived (0 if only the zero bin did)."""
    values = bin_values(-WIDEST, WIDEST)
    mass = np.where(keep, np.maximum(counts, 0.0), 0.0)
    middle = int(np.searchsorted(np.cumsum(mass), mass.sum() / 2))
    magnitudes = np.abs(values[keep])
    magnitudes = magnitudes[magnitudes > 0]
    top = round(math.log2(magnitudes.max())) if len(magnitudes) else 0
    return float(values[middle]), top


def centre_and_scale(counts: Floats, keep: Mask, rough: float, top: int) -> tuple[float, float]:
    """From the histogram around `rough`: the mean, and the larger of the deviation and 0.3 of the far 2%."""
    values = bin_values(top - BELOW, top + ABOVE)
    mass = np.where(keep, np.maximum(counts, 0.0), 0.0)
    fallback = math.ldexp(1.0, top) / 3.0
    if mass.sum() <= 0.0:
        return rough, fallback
    mass = mass / mass.sum()
    mean = float(mass @ values)
    variance = float(mass @ (values - mean) ** 2)
    distance = np.abs(values - mean)
    order = np.argsort(-distance)
    far = distance[order][np.cumsum(mass[order]) >= 0.02]
    scale = max(math.sqrt(variance), 0.3 * float(far[0])) if variance > 0.0 else 0.2 * abs(mean)
    return rough + mean, scale if scale > 0.0 else fallback
