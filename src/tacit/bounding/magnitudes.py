"""Reading centres and scales off noisy histograms of signed magnitudes.

Pure functions of released numbers: no data comes in here. Bins are sign 2^e, e from `low` to `high`, with a zero bin
in the middle, in increasing order of value.
"""

import math
from functools import lru_cache

import numpy as np

from tacit._types import Flags, Floats

WIDEST = 24  # the first histogram sees magnitudes from 2^-24 to 2^24
BELOW, ABOVE = 8, 1  # the second, exponents from 8 below the largest to 1 above it
LIMIT = 3.0  # values are clipped to this many scales from the centre
_HALVINGS = 50


@lru_cache(maxsize=256)
def bin_values(low: int, high: int) -> Floats:
    """What the bins stand for, in increasing order; the array is shared, and cannot be changed."""
    powers = np.ldexp(1.0, np.arange(low, high + 1))
    values = np.concatenate([-powers[::-1], [0.0], powers])
    values.setflags(write=False)
    return values


def surviving(counts: Floats, noise: float, columns: int, *, signed: bool = False) -> Flags:
    """Bins whose counts stand out of the noise, and their neighbours that still do; of one histogram, or of each row.

    A bin stands out by itself or together with its two neighbours, as values of one magnitude fall into several bins.
    A seed is a bin above the largest noise expected in all bins of all columns, with a margin, because one false seed
    far away ruins a scale. The best bin of a column is a seed by a weaker rule. From a seed on, neighbours above two
    deviations of the noise join. A single column, such as a label, has little noise and much depends on it: its rules
    are stricter. In `signed` histograms the middle bin is zero, which has no neighbours: the smallest size that there
    is a bin for is not near it, and next to many zeros it would be taken for the size of a column.
    """
    bins = counts.shape[-1]
    if noise == 0.0:
        return counts > 0
    alone = columns == 1
    sure = 5.0 if alone else math.sqrt(2.0 * math.log(2.0 * columns * bins)) + 0.5
    least, joining = (5.0, 2.0) if alone else (3.4, 1.0)  # deviations of a column's best, and of its neighbours
    triples = _with_neighbours(counts, 0.0)
    together = (triples[0] + triples[1] + triples[2]) / math.sqrt(3.0)
    most = triples.max(axis=0)
    several = together > most  # three bins say more than any of them
    outstanding = np.where(several, together, counts)
    seeds = outstanding > noise * sure
    best = np.arange(bins) == outstanding.argmax(axis=-1)[..., None]
    seeds |= best & (outstanding > noise * least)
    # Around a seed of three bins each of them joins that is above what joins, or is the largest.
    enough = np.where(seeds & several, np.minimum(noise * joining, most), np.inf)
    keep = (seeds & ~several) | (counts >= _with_neighbours(enough, np.inf).min(axis=0))
    place, closed = np.arange(bins), counts <= 2.0 * noise
    for step in (1, -1):
        grown, end = keep[..., ::step], closed[..., ::step].copy()
        if signed:
            end[..., bins // 2 + 1] = True
        # The last bin that is kept, and the last that joins nobody: what lies between them joins the former.
        last = np.maximum.accumulate(np.where(grown, place, -1), axis=-1)
        grown |= (last >= 0) & (last >= np.maximum.accumulate(np.where(end, place, -1), axis=-1))
    return keep


def _with_neighbours(values: Floats, beyond: float) -> Floats:
    """For each bin the value to its left, its own, and that to its right."""
    outside = np.full((*values.shape[:-1], 1), beyond)
    padded = np.concatenate([outside, values, outside], axis=-1)
    return np.stack([padded[..., :-2], padded[..., 1:-1], padded[..., 2:]])


def rough_centre(counts: Floats, keep: Flags) -> tuple[float, int]:
    """The median bin's value, and the largest exponent that survived (0 if only the zero bin did)."""
    values = bin_values(-WIDEST, WIDEST)
    mass = np.where(keep, np.maximum(counts, 0.0), 0.0)
    middle = int(mass.cumsum().searchsorted(mass.sum() / 2))
    magnitudes = np.abs(values[keep])
    magnitudes = magnitudes[magnitudes > 0]
    top = round(math.log2(magnitudes.max())) if len(magnitudes) else 0
    return float(values[middle]), top


def centre_and_scale(counts: Floats, keep: Flags, rough: float, top: int) -> tuple[float, float]:
    """From the histogram around `rough`: the mean, and the larger of the deviation and 0.3 of the far 2%."""
    values = bin_values(top - BELOW, top + ABOVE)
    mass = np.where(keep, np.maximum(counts, 0.0), 0.0)
    fallback, total = math.ldexp(1.0, top) / 3.0, mass.sum()
    if total <= 0.0:
        return rough, fallback
    mass = mass / total
    mean = float(mass @ values)
    variance = float(mass @ (values - mean) ** 2)
    distance = np.abs(values - mean)
    order = (-distance).argsort()
    far = float(distance[order[mass[order].cumsum().searchsorted(0.02)]])
    scale = max(math.sqrt(variance), 0.3 * far) if variance > 0.0 else 0.2 * abs(mean)
    return rough + mean, scale if scale > 0.0 else fallback


def other_value(counts: Floats, rough: float, top: int, least: float) -> float | None:
    """What a column of two values, one of them zero, holds besides zero; None if it holds more, or zeros alone.

    Bins that hold no more than `least` do not count as further values: they may have joined by their noise.
    """
    order = (-counts).argsort()
    values = rough + bin_values(top - BELOW, top + ABOVE)[order]
    if counts[order[1]] <= 0.0 or counts[order[2]] > least or np.all(values[:2] != 0.0):
        return None
    return float(values[0] if values[1] == 0.0 else values[1])


def shrunk(mean: Floats, error: float) -> Floats:
    """A noisy mean moved towards zero by its noise, of deviation `error` in each entry (James and Stein)."""
    size = float(mean @ mean)
    return mean * max(0.0, 1.0 - len(mean) * error**2 / size) if size > 0.0 else mean


def pooled_scale(counts: Floats, keep: Flags) -> float | None:
    """One scale for all entries of a table, from one histogram of them all; None if no entry but zeros survived.

    It is the scale at which entries, clipped to `LIMIT` scales, have a mean square of 1 in units of the scale: their
    root mean square if tails are light, and not moved far by a few entries that are large or by a false bin far away.
    Where less than one in `LIMIT`^2 entries differs from zero, the typical one of these is at the clip, not beyond it.
    """
    squares = bin_values(-WIDEST, WIDEST) ** 2
    mass = np.where(keep, np.maximum(counts, 0.0), 0.0)
    filled = float(mass[squares > 0.0].sum())
    if filled <= 0.0:
        return None
    low, high = -WIDEST - 2.0, float(WIDEST)  # of log2 of the scale of those entries that are not zero
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        wide = float(mass @ np.minimum(squares / 4.0**middle, LIMIT**2)) < filled
        low, high = (low, middle) if wide else (middle, high)
    return 2.0**low * math.sqrt(max(filled / float(mass.sum()), LIMIT**-2))
