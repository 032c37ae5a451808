"""Reading two histograms of a target in much noise: which laws are likely, and where their mean and deviation are.

Pure functions of released numbers: no data comes in here. A law is a shape with a mean and a deviation: normal, skewed
to either side, with a long tail, or many zeros with a skewed rest. Of a mean over its deviation any octave is as likely
beforehand, and of the unit little is known.

Rows of a law are spread over several bins, octaves wide, and where noise is large none of these stands out of it. So
counts may be of windows: of `width` bins in a row, at every place. A row is in as many windows, which makes noise
sqrt(width) times as large, but what adds up to say that a law is there grows more than that. Noisy counts h, of noise
s, speak for a law that has the part p_b of n rows in window b by
exp(-sum (h_b - n p_b)^2 / (2 (s^2 + width (t n)^2))), where t stands for how far rows are from any law.

The first look is at values as they are, and shows their size. The second is at values less a rough centre, and is read
together with the first on a finer grid of laws: a mean that is many deviations from zero, and from the rough centre
too, is found between the bins, by what falls into each of them.
"""

import math
from dataclasses import dataclass, fields
from functools import lru_cache

import numpy as np
from scipy.special import ndtr

from tacit._types import Flags, Floats, Integers
from tacit.bounding.magnitudes import BELOW, WIDEST

_ZEROS = (0.3, 0.6, 0.9)  # parts of rows that are zero
_SPREAD = 0.6  # of the logarithms of a law with a long tail
_TAIL = math.exp(_SPREAD**2 / 2.0)  # its mean, over its median
_NORMAL, _UP, _DOWN, _LONG, _FREE = range(5)  # shapes that can be anywhere; those of zeros are numbered on from there
_OFTEN = np.log([0.45, 0.2, 0.1, 0.15] + [0.05, 0.033] * len(_ZEROS))
_OFF = 0.02  # of the rows: how far a bin tends to be from what the nearest law says
_BROAD, _FOREIGN = 6.0, 1e-3  # octaves that units tend to be within, and how likely others are
_RATIOS = np.array([0, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32])  # of mean and deviation, at first
_FAR, _BELOW_FAR = 2.5, 0.4  # deviations from the mean, and the part of the chances, that the second look allows for
_OWN = 0.4  # of the rough centre: how far from it values of its bin can be
_HOPELESS = 25.0  # of the log-likelihood below that of the best law, by the second histogram
_NEGLIGIBLE = 1e-7  # chance of a law by the first look, below which it is not looked at again
_FINER = 0.1  # of a mean's distance from the rough centre, where bins are octaves


@dataclass(frozen=True, eq=False)
class Laws:
    """Shapes by their number, with their means and deviations, and the logarithm of how likely they are beforehand."""

    shape: Integers
    mean: Floats
    deviation: Floats
    prior: Floats

    def some(self, which: Flags) -> "Laws":
        """Those that are flagged."""
        return Laws(*(getattr(self, part.name)[which] for part in fields(self)))

    def and_others(self, others: "Laws") -> "Laws":
        """These and those."""
        return Laws(*(np.concatenate([getattr(of, part.name) for of in (self, others)]) for part in fields(self)))

    def parts(self, edges: Floats, shift: float = 0.0, width: int = 1) -> Floats:
        """What each law says of windows of so many bins between these edges, of values less `shift`."""
        below = np.empty((len(self.mean), len(edges) + 2 * width))
        below[:, :width], below[:, -width:] = 0.0, 1.0
        for number in range(len(_OFTEN)):
            rows, inside = self.shape == number, slice(width, -width)
            below[rows, inside] = _below(number, edges + shift, self.mean[rows, None], self.deviation[rows, None])
        return np.asarray(below[:, width:] - below[:, :-width])


@dataclass(frozen=True, eq=False)
class Look:
    """Noisy counts of windows of `width` bins, whose `edges` are of values less `shift`; the deviation of the noise."""

    counts: Floats
    noise: float
    edges: Floats
    shift: float
    width: int

    def parts(self, laws: Laws) -> Floats:
        """What each law says of these windows."""
        return laws.parts(self.edges, self.shift, self.width)


def _below(shape: int, values: Floats, mean: Floats, deviation: Floats) -> Floats:
    """The part of the rows of a law that is below these values."""
    if shape >= _FREE:
        zeros, sign = _zeros(shape)
        beyond = (1.0 - zeros) * np.exp(-np.maximum(sign * values * (1.0 - zeros) / np.abs(mean), 0.0))
        return np.where(values > 0.0, 1.0 - beyond, 0.0) if sign > 0.0 else np.where(values < 0.0, beyond, 1.0)
    units = (values - mean) / deviation
    if shape == _NORMAL:
        return np.asarray(ndtr(units))
    if shape == _LONG:
        logs = np.log(np.maximum(units * _TAIL * math.sqrt(math.expm1(_SPREAD**2)) + _TAIL, 1e-300))
        return np.asarray(ndtr(logs / _SPREAD))
    return -np.expm1(-np.maximum(units + 1.0, 0.0)) if shape == _UP else np.exp(np.minimum(units - 1.0, 0.0))


def _zeros(shape: int) -> tuple[float, float]:
    """The part of the rows that is zero, and the sign of the others, which are exponential."""
    number, sign = divmod(shape - _FREE, 2)
    return _ZEROS[number], -1.0 if sign else 1.0


def edges(low: int, high: int) -> Floats:
    """Between the bins of `magnitude_histograms`."""
    ends = np.exp2(np.arange(low, high + 1) - 0.5)
    return np.concatenate([-ends[::-1], ends])


def _quantile(values: Floats, chances: Floats, part: float) -> float:
    order = np.argsort(values)
    below = np.cumsum(chances[order])
    return float(values[order][min(int(np.searchsorted(below, part * below[-1])), len(values) - 1)])


def _laws(units: Floats, means: list[Floats], weights: list[Floats]) -> Laws:
    """All shapes with these deviations, and where they can be anywhere with the means that are listed for each."""
    at, deviation, weight = np.concatenate(means), np.repeat(units, [len(m) for m in means]), np.concatenate(weights)
    found = [np.array([np.full(len(at), shape), at, deviation, np.log(weight)]) for shape in range(_FREE)]
    for shape in range(_FREE, len(_OFTEN)):
        zeros, sign = _zeros(shape)
        mean = sign * units * math.sqrt((1.0 - zeros) / (1.0 + zeros))
        found.append(np.array([np.full(len(units), shape), mean, units, np.zeros(len(units))]))
    shapes, mean, deviation, prior = np.hstack(found)
    prior += np.log(np.exp(-0.5 * np.square(np.log2(deviation) / _BROAD)) + _FOREIGN)
    shape = shapes.astype(np.int64)
    return Laws(shape, mean, deviation, prior + _OFTEN[shape])


@lru_cache(maxsize=2)
def _first_laws(width: int) -> tuple[Laws, Floats, Floats]:
    """Those that the first look is read by, what they say of its windows, and the sum of the squares of that."""
    above = np.gradient(np.log1p(_RATIOS))
    ratios, weights = np.concatenate([-_RATIOS[:0:-1], _RATIOS]), np.concatenate([above[:0:-1], above])
    units = np.exp2(np.arange(-2 * WIDEST - 2, 2 * WIDEST + 1) / 2.0)
    laws = _laws(units, [ratios * unit for unit in units], [weights] * len(units))
    parts = laws.parts(edges(-WIDEST, WIDEST), 0.0, width)
    return laws, parts, np.square(parts).sum(axis=1)


def _log_likelihood(look: Look, parts: Floats, squares: Floats, n: int) -> Floats:
    """But for what is the same for all laws."""
    variance = look.noise**2 + look.width * (_OFF * n) ** 2
    return np.asarray((n * (parts @ look.counts) - 0.5 * n**2 * squares) / variance)


def _chances(logs: Floats) -> Floats:
    odds = np.exp(logs - logs.max())
    return np.asarray(odds / odds.sum())


def _coarse(first: Look, n: int) -> tuple[Laws, Floats]:
    """Laws by the first look alone, and their chances."""
    laws, parts, squares = _first_laws(first.width)
    return laws, _chances(_log_likelihood(first, parts, squares, n) + laws.prior)


def rough(first: Look, n: int) -> tuple[float, int]:
    """From the first look: a rough centre, and the exponent of what lies farthest from it.

    A target in units that are too small is cut off, and one in units that are too large is lost in noise, which is
    worse. So of the units that may be its own the smaller ones count.
    """
    laws, chances = _coarse(first, n)
    centre = _quantile(laws.mean, chances, 0.5)
    far = _quantile(np.abs(laws.mean - centre) + _FAR * laws.deviation, chances, _BELOW_FAR)
    return centre, math.ceil(math.log2(max(far, _OWN * abs(centre))))


def _steps(unit: float, farthest: float) -> Floats:
    """From zero to both sides, half a unit at a time, and more where bins are wide."""
    steps = [0.0]
    while steps[-1] < farthest:
        steps.append(steps[-1] + max(unit / 2.0, _FINER * steps[-1]))
    return np.concatenate([-np.array(steps[:0:-1]), steps])


@dataclass(frozen=True)
class Likely:
    """What both looks say: the mean, how far off it may be, the deviation, and the parts of rows in the second."""

    mean: float
    error: float
    deviation: float
    parts: Floats


def likely(first: Look, second: Look, n: int, top: int) -> Likely:
    """From both looks, the second one around a rough centre, from which nothing is farther than 2^top or so.

    Where units are misread now and then, laws of smaller units than the second look can tell apart are kept as well:
    they say that all rows are near zero. Without them a unit that is 2^8 times too large could not be taken back.
    """
    centre = second.shift
    units = np.exp2(np.arange(2 * (top - BELOW), 2 * top + 1) / 2.0)
    means = [centre + _steps(unit, 2.0**top) for unit in units]
    weights = [np.gradient(at) / (unit + np.abs(at)) for at, unit in zip(means, units, strict=True)]
    laws = _laws(units, means, weights)
    if second.width > 1:
        coarse, chances = _coarse(first, n)
        laws = laws.and_others(coarse.some((coarse.deviation < units[0]) & (chances > _NEGLIGIBLE)))
    parts = second.parts(laws)
    logs = _log_likelihood(second, parts, np.square(parts).sum(axis=1), n) + laws.prior
    near = logs > logs.max() - _HOPELESS
    laws, parts, logs = laws.some(near), parts[near], logs[near]
    seen = first.parts(laws)
    chances = _chances(logs + _log_likelihood(first, seen, np.square(seen).sum(axis=1), n))
    low, mean, high = (_quantile(laws.mean, chances, part) for part in (0.16, 0.5, 0.84))
    return Likely(mean, (high - low) / 2.0, _quantile(laws.deviation, chances, 0.5), chances @ parts)
