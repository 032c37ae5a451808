"""Reading noisy histograms of many columns together: what other columns show tells what to expect of one.

Pure functions of released numbers: no data comes in here. A template is a shape that columns often have (normal,
skewed, two values, all zero) in some unit. A column with the noisy counts h, of noise s, has this shape with a chance
in proportion to how common the shape is, times exp((n h.T - n^2 |T|^2 / 2) / s^2): T is what the shape says of the
bins. How common kinds and units are comes from the columns themselves (EM). A lone far bin in one column speaks for a
unit that no other column has, so it must stand far out of the noise before it is believed.

The second histogram is taken around a rough centre. What the first one shows of a column tells what to expect there,
too, but for narrow columns, which are far from zero for their width and lie in two bins or three of the first. Shapes
in units of zero are too coarse for these: from one mean to the next there is more than a deviation. So they are read
anew, in units of their centre, where what is expected beforehand counts as much as for any other column.
"""

from dataclasses import dataclass, fields
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from tacit._types import Flags, Floats, Integers
from tacit.bounding.magnitudes import ABOVE, BELOW, WIDEST
from tacit.kernels.scaling import magnitude_histograms

_NOISY, _NOISY_ALONE = 0.025, 0.04  # of the rows: noise of a bin from which on templates are used; of one column
_POINTS = 64  # that stand for a shape
_UNITS = np.arange(-2 * WIDEST, 2 * WIDEST + 1) / 2.0  # exponents of two, in halves
_FILLED = (0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9)  # rows of two values that are not zero
_PARTS = (0.0, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 1.0)  # rows of the values -1 and 1 that are -1
_MEANS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)  # of normal columns, over their deviation
_NARROW = 2.0  # and from which on such columns are read in units of their centre; hotel_rates and adult chose it
_EMPTY = (0.1, 0.25, 0.5, 0.8, 0.9, 0.95)  # rows of a skewed column that are zero
_TWO, _MANY, _RARE = 1, 2, 3  # groups of kinds whose units are learned apart; the group 0 are columns of zeros
_BROAD = 4.0  # octaves: the deviation of a unit, as far as nothing is known
_STRENGTH = 2.0  # columns that what is believed beforehand counts for
_SMOOTH = np.array([0.1, 0.2, 0.4, 0.2, 0.1])  # a unit makes its neighbours likely, too
_ROUNDS = 20
_NEAR = 1.5  # octaves from the middle size of a column, beyond which shapes are put aside
_LEAST = 1e-2  # of the rows: bins in which no more than this is expected are empty
_APART = 0.02  # of the rows: how far a column's bins tend to be from those of the nearest template
_UNLIKELY = 1e-4  # chance of a narrow column, below which it is not looked at as one
_HOPELESS = -30.0  # log-likelihood less that of the best template, below which one is put aside at once
_SURE = 5.5  # deviations of the noise: a count that stands out as much is believed where nothing is expected


@dataclass(frozen=True, eq=False)
class Templates:
    """Shapes in every unit, each as `points` that are equally likely; the first one are zeros.

    `group`, `kind` and `unit` number what a template is; `size` is the logarithm of its scale, to the base 2.
    `is_pair` says whether it holds two values one of which is zero, `is_narrow` whether it is far from zero.
    """

    points: Floats
    group: Integers
    kind: Integers
    unit: Integers
    size: Floats  # of zeros minus infinity
    is_pair: Flags
    is_narrow: Flags

    def some(self, places: Integers) -> "Templates":
        """Some of them, of which the first are zeros."""
        return Templates(*(getattr(self, field.name)[places] for field in fields(self)))

    def bins(self, shift: float, low: int, high: int) -> Floats:
        """What each template says of the bins of values less `shift`: parts that add up to 1."""
        count = len(self.points)
        out = np.empty((count, 2 * (high - low + 1) + 1))
        magnitude_histograms(self.points.T, np.full(count, shift), np.full(count, low), np.full(count, high), out)
        return out / _POINTS

    def around(self, shift: float, top: int) -> Floats:
        """The same for a `shift` of zero or a power of two, and bins of the second histogram up to that `top`."""
        place = round(float(np.log2(abs(shift)))) if shift else top
        return _around(float(np.sign(shift)), top - place)[self.unit - 2 * place + 2 * WIDEST, self.kind]

    def chances(self, logs: Floats, rounds: int = _ROUNDS) -> tuple[Floats, Floats]:
        """Of each template for each column, from log-likelihoods; and those of all templates together.

        One round goes by what is expected beforehand. Those after it go by what these columns show themselves.
        """
        kinds, groups = int(templates().kind.max()) + 1, _RARE + 1
        broad = np.exp(-0.5 * (_UNITS / _BROAD) ** 2) + 1e-3
        broad /= broad.sum()
        kind, unit = np.full(kinds, 1.0 / kinds), np.tile(broad, (groups, 1))
        largest = logs.max(axis=1, keepdims=True)
        odds = np.exp(logs - largest)
        for _ in range(rounds):
            share = kind[self.kind] * np.where(self.group == 0, 1.0, unit[self.group, self.unit])
            total = odds @ share
            mass = share * (odds.T @ (1.0 / total))
            kind = (np.bincount(self.kind, mass, kinds) + _STRENGTH / kinds) / (len(logs) + _STRENGTH)
            for group in (_TWO, _MANY, _RARE):
                inside = self.group == group
                seen = np.bincount(self.unit[inside], mass[inside], len(_UNITS))
                seen = seen if group == _TWO else np.convolve(seen, _SMOOTH, "same")
                unit[group] = (seen + _STRENGTH * broad) / (seen.sum() + _STRENGTH)
        return odds * share / total[:, None], largest[:, 0] + np.log(total)

    def settled(self, likely: Floats) -> Floats:
        """The chances, as if it were known whether a column holds zero and one other value, and how large that is.

        Templates far from the middle size of a column are put aside: the mean of far sizes is no size.
        """
        pairs = (likely @ self.is_pair > 0.5)[:, None]
        likely = np.where(pairs == self.is_pair, likely, 0.0)
        order = 1 + np.argsort(self.size[1:])
        below = np.cumsum(likely[:, order], axis=1)
        middle = self.size[order][np.argmax(below >= 0.5 * below[:, -1:], axis=1)]
        near = np.abs(self.size[1:] - middle[:, None]) <= _NEAR
        kept = np.hstack([likely[:, :1], np.where(near, likely[:, 1:], 0.0)])
        return np.asarray(kept / np.maximum(kept.sum(axis=1, keepdims=True), 1e-300))

    def mean_size(self, likely: Floats) -> Floats:
        """Of templates with these chances, but for zeros."""
        return np.asarray(likely[:, 1:] @ self.size[1:] / np.maximum(1.0 - likely[:, 0], 1e-9))

    def other_values(self, likely: Floats) -> Floats:
        """What columns of two values hold besides zero, as powers of two; not a number for other columns."""
        pairs = likely @ self.is_pair > 0.5
        inside = np.flatnonzero(self.is_pair & (self.group == _TWO))
        places = np.floor(_UNITS[self.unit[inside]] + 0.5).astype(np.int64) + WIDEST  # of the bin they fall into
        exponents = np.zeros((len(self.unit), 2 * WIDEST + 1))
        exponents[inside, places] = 1.0
        return np.where(pairs, np.ldexp(1.0, np.argmax(likely @ exponents, axis=1) - WIDEST), np.nan)


@lru_cache(maxsize=1)
def templates() -> Templates:
    """All of them: a few thousand."""
    middle = (np.arange(_POINTS) + 0.5) / _POINTS
    normal, skewed = ndtri(middle), -np.log1p(-middle)
    pairs = [np.where(middle > 1.0 - filled, 1.0, 0.0) for filled in _FILLED]
    two = [np.where(middle > part, 1.0, -1.0) for part in _PARTS]
    two += [np.digitize(middle, edges) - 1.0 for edges in ((0.2, 0.5), (0.35, 0.65), (0.5, 0.8))]  # -1, 0 and 1
    many = [normal + sign * mean for mean in _MEANS for sign in ((1.0, -1.0) if mean else (1.0,))]
    many += [skewed, -skewed, np.exp(1.2 * normal), np.exp(0.7 * normal)]
    many += [skewed - np.log(2.0), np.log(2.0) - skewed]  # about the middle one
    rare = [np.where(middle > e, np.interp((middle - e) / (1.0 - e), middle, skewed), 0.0) for e in _EMPTY]
    kinds, units = np.array(pairs + two + many + rare), len(_UNITS)
    points = (2.0 ** _UNITS[:, None, None] * kinds).reshape(-1, _POINTS)
    means, deviations = points.mean(axis=1), points.std(axis=1)
    far = np.sort(np.abs(points - means[:, None]), axis=1)[:, -2]  # but for one in fifty or so
    size = np.log2(np.where(deviations > 0.0, np.maximum(deviations, 0.3 * far), 0.2 * np.abs(means)))
    group = np.tile(np.repeat([_TWO, _MANY, _RARE], [len(pairs + two), len(many), len(rare)]), units)
    kind = np.tile(1 + np.arange(len(kinds)), units)
    unit = np.repeat(np.arange(units), len(kinds))
    zeros = np.zeros((1, _POINTS))
    is_pair = kind <= len(pairs)
    is_narrow = np.abs(means) > 0.9 * _NARROW * deviations
    group, kind, unit = (np.append(0, part) for part in (group, kind, unit))
    is_pair, is_narrow = np.append(True, is_pair), np.append(False, is_narrow)
    return Templates(np.vstack([zeros, points]), group, kind, unit, np.append(-np.inf, size), is_pair, is_narrow)


@lru_cache(maxsize=2)
def _bins(shift: float, low: int, high: int) -> Floats:
    """What each template says of the bins; kept, as fits ask for the same ones again."""
    found = templates().bins(shift, low, high)
    found.flags.writeable = False
    return found


@lru_cache(maxsize=16)
def _around(shift: float, top: int) -> Floats:
    """What each kind (columns) in each unit (rows) says of values less -1, 0 or 1.

    Units go twice as far as those of templates. Powers of two change no digit, so this serves a shift of any other.
    """
    known = templates()
    kinds = np.vstack([known.points[:1], known.points[known.unit == 2 * WIDEST]])
    units = 2.0 ** (np.arange(-4 * WIDEST, 4 * WIDEST + 1) / 2.0)
    points = (units[:, None, None] * kinds).reshape(-1, _POINTS)
    out = np.empty((len(points), 2 * (ABOVE + BELOW + 1) + 1))
    low, high = (np.full(len(points), end) for end in (top - BELOW, top + ABOVE))
    magnitude_histograms(points.T, np.full(len(points), shift), low, high, out)
    out /= _POINTS
    out.flags.writeable = False
    return out.reshape(len(units), len(kinds), -1)


class Reading(NamedTuple):
    """What is read of the second histogram."""

    counts: Floats  # without noise
    others: Floats  # what columns of two values hold besides zero; not a number for other columns
    scales: Floats  # of the templates
    trust: float  # in these scales, from 0 to 1; the rest is for those that counts show


class Reader:
    """Reads the two histograms of all columns: counts of which noise is taken away, the first ones, then the second.

    Counts come back moved towards what is expected of them, the more the less they can differ from it but for noise;
    bins in which nothing is expected come back as zero, unless they stand far out of the noise.
    """

    def __init__(self, n: int) -> None:
        self._n = n
        self._left = templates()
        self._logs = self._narrow = np.empty((0, 0))

    @staticmethod
    def is_due(n: int, columns: int, noise: float) -> bool:
        """Whether noise of this deviation in every bin asks for it; from public numbers alone."""
        return noise > (_NOISY if columns > 1 else _NOISY_ALONE) * n

    def first(self, counts: Floats, noise: float) -> Floats:
        """Of values as they are."""
        known, bins = templates(), _bins(0.0, -WIDEST, WIDEST)
        logs = self._likelihood(counts, bins, noise)
        near = (logs - logs.max(axis=1, keepdims=True)).max(axis=0) > _HOPELESS  # of any column
        left = np.append(0, 1 + np.flatnonzero(near[1:]))
        known, bins, logs = known.some(left), bins[left], logs[:, left]
        likely, evidence = known.chances(logs)
        left = np.append(0, 1 + np.flatnonzero(likely[:, 1:].max(axis=0) > _UNLIKELY**2))
        self._left, self._logs = known.some(left), logs[:, left]
        chance = likely @ known.is_narrow
        self._narrow = np.where(chance > _UNLIKELY, evidence + np.log(np.maximum(chance, _UNLIKELY)), -np.inf)
        return self._blended(counts, known.settled(likely) @ bins, noise)

    def second(self, counts: Floats, noise: float, rough: Floats, top: Integers) -> Reading:
        """Of values less the rough centres, up to an exponent for each column."""
        known = self._left
        same: dict[tuple[float, int], list[int]] = {}
        for j, key in enumerate(zip(rough.tolist(), top.tolist(), strict=True)):
            same.setdefault(key, []).append(j)
        bins = {key: known.around(*key) for key in same}
        for key, columns in same.items():
            self._logs[columns] += self._likelihood(counts[columns], bins[key], noise)
        likely, evidence = known.chances(self._logs)
        settled, others = known.settled(likely), known.other_values(likely)
        sizes, expected = known.mean_size(settled), np.empty_like(counts)
        for key, columns in same.items():
            expected[columns] = settled[columns] @ bins[key]
        narrow, settled = self._within(counts, noise, evidence)
        expected[narrow], others[narrow] = settled @ _bins(0.0, -BELOW, ABOVE), np.nan
        sizes[narrow] = top[narrow] + templates().mean_size(settled)
        trust = noise**2 / (noise**2 + (_APART * self._n) ** 2)
        return Reading(self._blended(counts, expected, noise), others, 2.0**sizes, trust)

    def _within(self, counts: Floats, noise: float, evidence: Floats) -> tuple[Integers, Floats]:
        """Which columns are narrow, rather than what else has this evidence; and the chances of templates there."""
        known = templates()
        tried = np.flatnonzero(np.isfinite(self._narrow))
        if len(tried) == 0:
            return tried, np.empty((0, len(known.size)))
        logs = self._likelihood(counts[tried], _bins(0.0, -BELOW, ABOVE), noise)
        logs = np.where(known.size < -np.log2(_NARROW), logs, -np.inf)
        _, found = known.chances(logs, rounds=1)  # a few columns must not speak for themselves twice
        narrow = self._narrow[tried] + found > evidence[tried]
        likely, _ = known.chances(logs[narrow])
        return tried[narrow], known.settled(likely)

    def _likelihood(self, counts: Floats, bins: Floats, noise: float) -> Floats:
        """The logarithm of each template's likelihood, for each column."""
        n = self._n
        variance = noise**2 + (_APART * n) ** 2
        return np.asarray((n * (counts @ bins.T) - 0.5 * n**2 * np.square(bins).sum(axis=1)) / variance)

    def _blended(self, counts: Floats, parts: Floats, noise: float) -> Floats:
        expected, spread = self._n * parts, self._n * (0.25 * parts + 0.01)
        moved = expected + (counts - expected) * spread**2 / (spread**2 + noise**2)
        return np.where((parts > _LEAST) | (counts > _SURE * noise), np.maximum(moved, 0.0), 0.0)
