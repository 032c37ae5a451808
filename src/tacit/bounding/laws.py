"""Reading the two histograms of a target in much noise: which laws are likely, and where their mean and deviation are.

Pure functions of released numbers: no data comes in here. A law is a shape with a mean and a deviation: normal, skewed
to either side, or many zeros with a skewed rest. Noisy counts h, of noise s, speak for a law that has the part p_b of n
rows in bin b by exp(-sum (h_b - n p_b)^2 / (2 (s^2 + (t n)^2))), where t stands for how far rows are from any law. Nothing
is known of a mean before but its size over the deviation, whose logarithm is as likely anywhere, and little of the unit.

The first histogram is of values as they are, and shows their size. The second is of values less a rough centre, and is
read together with the first on a finer grid of laws: a mean that is many deviations from zero, and from the rough
centre too, is found between the bins, by what falls into each of them.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtr

from tacit._types import Floats, Integers
from tacit.bounding.magnitudes import ABOVE, BELOW, WIDEST

LN = 0.6
LM = math.exp(LN**2 / 2)
LS = LM * math.sqrt(math.expm1(LN**2))
LP=.15
_ZEROS = (0.3, 0.6, 0.9)  # parts of rows that are zero
_SHAPES = 4 + 2 * len(_ZEROS)  # normal, skewed up, skewed down; zeros and values above or below them
_FREE = 4  # of them can be anywhere
_OFTEN = np.log(np.array([0.45, 0.2, 0.1, LP] + [0.05, 0.033] * len(_ZEROS)))
_OFFP = 0.0
_OFF = 0.02  # of the rows: how far a bin tends to be from what the nearest law says
_BROAD = 6.0  # octaves: the deviation of a unit, as far as nothing is known
_RATIOS = np.array([0, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32])  # of mean and deviation, at first
_LIKELY, _FAR = 1e-3, 2.5  # chance over that of the best, and deviations from the mean, that the second look allows for
FARQ, DEVQ, OWN = 0.4, 0.5, 0.4
_FINER = 0.08  # of a mean's distance from the rough centre, where bins are octaves


@dataclass(frozen=True, eq=False)
class Laws:
    """Shapes by their number, with their means and deviations, and the logarithm of how likely they are beforehand."""

    shape: Integers
    mean: Floats
    deviation: Floats
    prior: Floats

    def parts(self, edges: Floats, shift: float = 0.0) -> Floats:
        """What each law says of the bins between these edges, of values less `shift`."""
        below = np.empty((len(self.mean), len(edges) + 2))
        below[:, 0], below[:, -1] = 0.0, 1.0
        for number in range(_SHAPES):
            rows = self.shape == number
            below[rows, 1:-1] = _below(number, edges + shift, self.mean[rows, None], self.deviation[rows, None])
        return np.diff(below, axis=1)

    def middle(self, chances: Floats, part: float = 0.5) -> float:
        """The mean that so much of the chances is below."""
        return _quantile(self.mean, chances, part)


def _below(shape: int, values: Floats, mean: Floats, deviation: Floats) -> Floats:
    """The part of the rows of a law that is below these values."""
    if shape >= _FREE:
        zeros, sign = _ZEROS[(shape - _FREE) // 2], -1.0 if shape % 2 else 1.0
        size = np.maximum(sign * values * (1.0 - zeros) / np.abs(mean), 0.0)  # the rest is exponential
        beyond = (1.0 - zeros) * np.exp(-size)
        return np.where(values > 0.0, 1.0 - beyond, 0.0) if sign > 0.0 else np.where(values < 0.0, beyond, 1.0)
    units = (values - mean) / deviation
    if shape == 0:
        return np.asarray(ndtr(units))
    if shape == 3:
        return np.asarray(ndtr(np.log(np.maximum(units * LS + LM, 1e-300)) / LN))
    return -np.expm1(-np.maximum(units + 1.0, 0.0)) if shape == 1 else np.exp(np.minimum(units - 1.0, 0.0))


def _ratio(shape: int) -> float:
    """The mean over the deviation, of zeros with a skewed rest."""
    zeros = _ZEROS[(shape - _FREE) // 2]
    return (-1.0 if shape % 2 else 1.0) * math.sqrt((1.0 - zeros) / (1.0 + zeros))


def edges(low: int, high: int) -> Floats:
    """Between the bins of `magnitude_histograms`."""
    ends = np.exp2(np.arange(low, high + 1) - 0.5)
    return np.concatenate([-ends[::-1], ends])


def _quantile(values: Floats, chances: Floats, part: float) -> float:
    order = np.argsort(values)
    below = np.cumsum(chances[order])
    return float(values[order][min(int(np.searchsorted(below, part * below[-1])), len(values) - 1)])


def _laws(shape: int, means: Floats, deviation: float, weights: Floats) -> tuple[Floats, ...]:
    count = len(means)
    return np.full(count, shape), means, np.full(count, deviation), np.log(weights) + _OFTEN[shape]


def _joined(found: list[tuple[Floats, ...]]) -> Laws:
    shape, mean, deviation, prior = (np.concatenate(parts) for parts in zip(*found, strict=True))
    unit = np.exp(-0.5 * np.square(np.log2(deviation) / _BROAD)) + _LIKELY
    return Laws(shape, mean, deviation, prior + np.log(unit))


@lru_cache(maxsize=1)
def first_laws() -> tuple[Laws, Floats]:
    """Those that the first histogram is read by, and what they say of its bins."""
    ratios = np.concatenate([-_RATIOS[:0:-1], _RATIOS])
    weights = np.gradient(np.log1p(_RATIOS))
    weights = np.concatenate([weights[:0:-1], weights])
    found = []
    for half in range(-2 * WIDEST - 2, 2 * WIDEST + 1):
        unit = 2.0 ** (half / 2)
        for shape in range(_SHAPES):
            if shape < _FREE:
                found.append(_laws(shape, ratios * unit, unit, weights))
            else:
                found.append(_laws(shape, np.array([_ratio(shape) * unit]), unit, np.ones(1)))
    laws = _joined(found)
    return laws, laws.parts(edges(-WIDEST, WIDEST))


def _log_likelihood(counts: Floats, parts: Floats, n: int, noise: float) -> Floats:
    """But for what is the same for all laws."""
    weights = 1.0 / (noise**2 + (_OFF * n + _OFFP * np.maximum(counts, 0.0)) ** 2)
    return np.asarray(n * (parts @ (weights * counts)) - 0.5 * n**2 * (np.square(parts) @ weights))


def _chances(logs: Floats) -> Floats:
    odds = np.exp(logs - logs.max())
    return np.asarray(odds / odds.sum())


def rough(counts: Floats, noise: float, n: int) -> tuple[float, int]:
    """From the first histogram: a rough centre, and the exponent of what lies farthest from it."""
    laws, parts = first_laws()
    chances = _chances(_log_likelihood(counts, parts, n, noise) + laws.prior)
    centre = laws.middle(chances)
    far = _quantile(np.abs(laws.mean - centre) + _FAR * laws.deviation, chances, FARQ)
    return centre, math.ceil(math.log2(max(far, OWN * abs(centre))))


@dataclass(frozen=True)
class Likely:
    """What both histograms say: the mean, how far off it may be, the deviation, and what is expected of the second."""

    mean: float
    error: float
    deviation: float
    parts: Floats


def likely(first: tuple[Floats, float], second: tuple[Floats, float], n: int, centre: float, top: int) -> Likely:
    """From counts and noise of the first histogram, and of the second, around the rough centre."""
    found = []
    for half in range(2 * (top - BELOW), 2 * top + 1):
        unit = 2.0 ** (half / 2)
        steps = [0.0]
        while steps[-1] < 2.0**top:
            steps.append(steps[-1] + max(unit / 2.0, _FINER * steps[-1]))
        means = centre + np.concatenate([-np.array(steps[:0:-1]), steps])
        weights = np.gradient(means) / (unit + np.abs(means))
        for shape in range(_SHAPES):
            if shape < _FREE:
                found.append(_laws(shape, means, unit, weights))
            else:
                found.append(_laws(shape, np.array([_ratio(shape) * unit]), unit, np.ones(1)))
    laws = _joined(found)
    parts = laws.parts(edges(top - BELOW, top + ABOVE), centre)
    logs = _log_likelihood(second[0], parts, n, second[1]) + laws.prior
    logs += _log_likelihood(first[0], laws.parts(edges(-WIDEST, WIDEST)), n, first[1])
    chances = _chances(logs)
    low, mean, high = (laws.middle(chances, part) for part in (0.16, 0.5, 0.84))
    deviation = _quantile(laws.deviation, chances, DEVQ)
    return Likely(mean, (high - low) / 2.0, deviation, chances @ parts)
