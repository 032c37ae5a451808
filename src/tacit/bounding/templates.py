"""Reading noisy histograms of many columns together: what other columns show tells what to expect of one.

Pure functions of released numbers: no data comes in here. A template is a shape that columns often have (normal,
skewed, two values, all zero) in some unit. A column with the noisy counts h, of noise s, has this shape with a chance
in proportion to how common the shape is, times exp((n h.T - n^2 |T|^2 / 2) / s^2): T is what the shape says of the
bins. How common kinds and units are comes from the columns themselves (EM). A lone far bin in one column speaks for a
unit that no other column has, so it must stand far out of the noise before it is believed.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtri

from tacit._types import Floats, Integers
from tacit.bounding.magnitudes import ABOVE, BELOW, WIDEST
from tacit.kernels.scaling import magnitude_histograms

_NOISY = 0.05  # of the rows: noise of a bin from which on templates read better than single columns do
_POINTS = 64  # that stand for a shape
_UNITS = np.arange(-2 * WIDEST, 2 * WIDEST + 1) / 2.0  # exponents of two, in halves
_FILLED = (0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 1.0)  # rows of two values that are not zero
_PARTS = (0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9)  # rows of the values -1 and 1 that are -1
_MEANS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)  # of normal columns, over their deviation
_EMPTY = (0.5, 0.8, 0.9, 0.95)  # rows of a skewed column that are zero
_TWO, _MANY, _RARE = 1, 2, 3  # groups of kinds whose units are learned apart; the group 0 are columns of zeros
_BROAD = 5.0  # octaves: the deviation of a unit, as far as nothing is known
_STRENGTH = 3.0  # columns that what is believed beforehand counts for
_SMOOTH = np.array([0.1, 0.2, 0.4, 0.2, 0.1])  # a unit makes its neighbours likely, too
_ROUNDS = 20
_NEAR = 1.5  # octaves from the middle size of a column, beyond which shapes are put aside
_LEAST = 2e-3  # of the rows: bins in which no more than this is expected are empty


@dataclass(frozen=True, eq=False)
class Templates:
    """Shapes in every unit, each as `points` that are equally likely; the first one are zeros.

    `group`, `kind` and `unit` number what a template is; `size` is the logarithm of its scale, to the base 2.
    """

    points: Floats
    group: Integers
    kind: Integers
    unit: Integers
    size: Floats

    def bins(self, shift: float, low: int, high: int) -> Floats:
        """What each template says of the bins of values less `shift`: parts that add up to 1."""
        count = len(self.points)
        out = np.empty((count, 2 * (high - low + 1) + 1))
        magnitude_histograms(self.points.T, np.full(count, shift), np.full(count, low), np.full(count, high), out)
        return out / _POINTS

    def chances(self, logs: Floats) -> Floats:
        """Of each template for each column, from log-likelihoods; shapes of far sizes are put aside."""
        kinds, groups = int(self.kind.max()) + 1, self.group.max() + 1
        broad = np.exp(-0.5 * (_UNITS / _BROAD) ** 2) + 0.02
        broad /= broad.sum()
        kind, unit = np.full(kinds, 1.0 / kinds), np.tile(broad, (groups, 1))
        odds = np.exp(logs - logs.max(axis=1, keepdims=True))
        for _ in range(_ROUNDS):
            share = kind[self.kind] * np.where(self.group == 0, 1.0, unit[self.group, self.unit])
            total = odds @ share
            mass = share * (odds.T @ (1.0 / total))
            kind = (np.bincount(self.kind, mass) + _STRENGTH / kinds) / (len(logs) + _STRENGTH)
            for group in (_TWO, _MANY, _RARE):
                inside = self.group == group
                seen = np.convolve(np.bincount(self.unit[inside], mass[inside], len(_UNITS)), _SMOOTH, "same")
                unit[group] = (seen + _STRENGTH * broad) / (seen.sum() + _STRENGTH)
        return self._settled(odds * share / total[:, None])

    def _settled(self, likely: Floats) -> Floats:
        """Zeros, and templates near the middle size of each column: the mean of far sizes is no size."""
        order = 1 + np.argsort(self.size[1:])
        below = np.cumsum(likely[:, order], axis=1)
        middle = self.size[order][np.argmax(below >= 0.5 * below[:, -1:], axis=1)]
        near = np.abs(self.size[1:] - middle[:, None]) <= _NEAR
        kept = np.hstack([likely[:, :1], np.where(near, likely[:, 1:], 0.0)])
        return np.asarray(kept / kept.sum(axis=1, keepdims=True))


@lru_cache(maxsize=1)
def templates() -> Templates:
    """All of them: a few thousand."""
    middle = (np.arange(_POINTS) + 0.5) / _POINTS
    normal, skewed = ndtri(middle), -np.log1p(-middle)
    two = [np.where(middle > 1.0 - filled, 1.0, 0.0) for filled in _FILLED]
    two += [-two[-1], *(np.where(middle > part, 1.0, -1.0) for part in _PARTS)]
    two += [np.digitize(middle, edges) - 1.0 for edges in ((0.2, 0.5), (0.35, 0.65), (0.5, 0.8))]  # -1, 0 and 1
    many = [normal + sign * mean for mean in _MEANS for sign in ((1.0, -1.0) if mean else (1.0,))]
    many += [skewed, -skewed, np.exp(1.5 * normal), np.exp(0.7 * normal)]
    rare = [np.where(middle > e, np.interp((middle - e) / (1.0 - e), middle, skewed), 0.0) for e in _EMPTY]
    kinds, units = np.array(two + many + rare), len(_UNITS)
    points = (2.0 ** _UNITS[:, None, None] * kinds).reshape(-1, _POINTS)
    size = np.log2(np.maximum(points.std(axis=1), np.abs(points.mean(axis=1)) / 4.0))
    group = np.tile(np.repeat([_TWO, _MANY, _RARE], [len(two), len(many), len(rare)]), units)
    kind = np.tile(1 + np.arange(len(kinds)), units)
    unit = np.repeat(np.arange(units), len(kinds))
    zeros = np.zeros((1, _POINTS))
    return Templates(np.vstack([zeros, points]), *(np.append(0, part) for part in (group, kind, unit, size)))


@lru_cache(maxsize=32)
def _bins(shift: float, low: int, high: int) -> Floats:
    """What each template says of the bins; kept, as fits ask for the same ones again."""
    found = templates().bins(shift, low, high)
    found.flags.writeable = False
    return found


class Reader:
    """Reads the two histograms of all columns: counts of which noise is taken away, the first ones, then the second.

    Counts come back moved towards what is expected of them, the more the less they can differ from it but for noise;
    bins in which nothing is expected come back as zero.
    """

    def __init__(self, n: int) -> None:
        self._n = n
        self._logs: Floats | float = 0.0

    @staticmethod
    def is_due(n: int, columns: int, noise: float) -> bool:
        """Whether noise of this deviation in every bin asks for it; from public numbers alone."""
        return columns > 1 and noise > _NOISY * n

    def first(self, counts: Floats, noise: float) -> Floats:
        """Of values as they are."""
        bins = _bins(0.0, -WIDEST, WIDEST)
        self._logs = self._likelihood(counts, bins, noise)
        return self._blended(counts, templates().chances(self._logs) @ bins, noise)

    def second(self, counts: Floats, noise: float, rough: Floats, top: Integers) -> Floats:
        """Of values less the rough centres, up to an exponent for each column."""
        same: dict[tuple[float, int], list[int]] = {}
        for j, key in enumerate(zip(rough.tolist(), top.tolist(), strict=True)):
            same.setdefault(key, []).append(j)
        bins = {(shift, k): _bins(shift, k - BELOW, k + ABOVE) for shift, k in same}
        for key, columns in same.items():
            self._logs[columns] += self._likelihood(counts[columns], bins[key], noise)  # type: ignore[index]
        chances = templates().chances(np.asarray(self._logs))
        expected = np.empty_like(counts)
        for key, columns in same.items():
            expected[columns] = chances[columns] @ bins[key]
        return self._blended(counts, expected, noise)

    def _likelihood(self, counts: Floats, bins: Floats, noise: float) -> Floats:
        """The logarithm of each template's likelihood, for each column."""
        n = self._n
        return np.asarray((n * (counts @ bins.T) - 0.5 * n**2 * np.square(bins).sum(axis=1)) / noise**2)

    def _blended(self, counts: Floats, parts: Floats, noise: float) -> Floats:
        expected, spread = self._n * parts, self._n * (0.25 * parts + 0.01)
        moved = expected + (counts - expected) * spread**2 / (spread**2 + noise**2)
        return np.where(parts > _LEAST, np.maximum(moved, 0.0), 0.0)
