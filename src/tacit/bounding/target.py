"""`LabelScale`: the private centre and scale of a regression's target, declared or found.

A target is one column, and much depends on it: its centre is what a model that knows nothing predicts, and where its
scale is false the model is lost. With much left over from the noise it is read like a column, off two noisy histograms
(`MagnitudeScale`). Where bins are noisy three looks get a third of the share each. Two histograms are read by the laws
that they are likely for (`tacit.bounding.laws`); then the sum of the target less that centre, clipped, says how far the
mean is from it. The mean is moved by as much of that as is not noise. Where the noise of a bin is above a tenth of the
rows, one bin says so little that a unit is misread a hundredfold now and then. There the histograms are of windows.

Privacy. A row is in one bin of each histogram: 1, and sqrt(2) for replace-one. Of windows of k bins, one at each place,
it is in the k that hold its bin: sqrt(k). Two rows that no window holds both of are sqrt(2 k) apart, and others less.
The last sum is over rows of a number between -1 and 1, rounded to whole steps of 2^-20: 1 and 2, and it is exact. The
centre and the reach that it is taken with are functions of what the first looks have released.
"""

import math
from dataclasses import dataclass

import numpy as np

from tacit._types import Floats, Integers, Table
from tacit.blocks import Scaling, Source
from tacit.bounding import laws, magnitudes
from tacit.bounding.magnitudes import ABOVE, BELOW, WIDEST
from tacit.bounding.scales import MagnitudeScale
from tacit.privacy import Budget, Gate, Release
from tacit.privacy.mechanisms import GaussianVector, Sensitivity

_CALM = 500.0  # n mu above which a target is read like any column
_REACH, _LITTLE = 1.5, 0.1  # deviations that the mean is looked for in, or as many more as leave this much noise
_OFF = 0.1  # of a deviation: how far off a law's mean may be beyond what the noise explains
_OUT = 0.02  # of the rows: noise of a bin from which on laws say more than counts do
_FAINT = 0.1  # of the rows: noise of a bin from which on windows of bins are counted; msd_subset_year chose it
_WIDE, _NARROW = 4, 2  # bins in such a window at the first and the second look; made targets of 330 rows chose them
_CLOSE = 1.2  # and with them the deviations that the mean is looked for in then: more would be noise
_ONE = Sensitivity.vector(1.0)
_BITS = 20  # steps to 1, as a power of two


@dataclass(frozen=True)
class LabelScale:
    """Centre and scale of a regression's target: declared, or found in two looks, or in three where it is `noisy`."""

    n: int
    bounds: tuple[float, float] | None = None
    noisy: bool = False

    @classmethod
    def of(cls, n: int, bounds: tuple[float, float] | None, budget: Budget) -> "LabelScale":
        """By public numbers alone."""
        return cls(n, bounds, n * budget.mu < _CALM)

    def releases(self, share: float) -> tuple[Release, ...]:
        """Two histograms, and a sum where it is noisy, unless the bounds are declared."""
        if self.bounds is not None:
            return ()
        if not self.noisy:
            return self._column.releases(share)
        return (*self._column.releases(share * 2.0 / 3.0), Release("label: mean", "gaussian", share=share / 3.0))

    def run(self, gate: Gate, y: Floats | Source) -> Scaling:
        """Spend the releases, if any."""
        if self.bounds is not None:
            low, high = self.bounds
            half = (high - low) / 2
            return Scaling(np.array([low + half]), np.array([half / magnitudes.LIMIT]), magnitudes.LIMIT)
        values: Table | Source = y if isinstance(y, Source) else y[:, None]
        return self._in_noise(gate, values) if self.noisy else self._column.run(gate, values)

    @property
    def _column(self) -> MagnitudeScale:
        return MagnitudeScale(self.n, 1, "label")

    def _in_noise(self, gate: Gate, y: Table | Source) -> Scaling:
        """Three looks, each made by what the ones before have shown."""
        n = self.n
        first = self._look(gate, "label: magnitudes", y, 0.0, (-WIDEST, WIDEST), _WIDE)
        lost = not magnitudes.surviving(first.counts, first.noise, 1, signed=first.width == 1).any()
        rough, top = laws.rough(first, n)
        second = self._look(gate, "label: spread", y, rough, (top - BELOW, top + ABOVE), _NARROW)
        found = laws.likely(first, second, n, top)
        scale = _scale(found, second, n, top) if second.width == 1 else found.deviation
        noise = gate.noise("label: mean", _ONE) / n
        least = _REACH if second.width == 1 else _CLOSE
        reach = min(max(least, _LITTLE / max(noise, 1e-300)), magnitudes.LIMIT) * math.hypot(scale, found.error)
        moved = self._moved(gate, y, found.mean, reach)
        off = math.hypot(found.error, _OFF * scale) / reach
        part = max(off**2 / max(off**2 + noise**2, 1e-300), 1.0 - (noise / moved) ** 2 if moved else 0.0)
        centre = found.mean + reach * part * moved
        return Scaling(np.array([centre]), np.array([scale]), magnitudes.LIMIT, lost=int(lost))

    def _look(
        self, gate: Gate, name: str, y: Table | Source, shift: float, ends: tuple[int, int], widest: int
    ) -> laws.Look:
        """Noisy counts of the target in bins between powers of two, or in windows of bins where these are faint."""
        low, high = (np.array([end]) for end in ends)
        width = widest if gate.noise(name, Sensitivity.one_hot()) > _FAINT * self.n else 1
        sensitivity = Sensitivity.one_hot(width)
        windows = np.convolve(self._column.exact_counts(y, np.array([shift]), low, high)[0], np.ones(width))
        counts = gate.release(name, GaussianVector(sensitivity, bound=float(self.n)), windows)
        return laws.Look(counts, gate.noise(name, sensitivity), laws.edges(*ends), shift, width)

    def _moved(self, gate: Gate, y: Table | Source, centre: float, reach: float) -> float:
        """The mean of the target less `centre`, over `reach` and clipped to 1."""
        n = self.n
        steps = y.sum(_steps, centre, reach).floats(0) if isinstance(y, Source) else _steps(y, centre, reach)
        total = np.ldexp(np.asarray(steps, dtype=np.float64), -_BITS)
        released = gate.release("label: mean", GaussianVector(_ONE, bound=float(n)), total)
        return float(released[0]) / n


def _steps(cells: Table, centre: float, reach: float) -> Integers:
    """The sum of clip((y - centre) / reach, -1, 1), each in whole steps; what is no number counts nowhere."""
    with np.errstate(over="ignore"):
        parts = np.nan_to_num(np.clip((cells[:, 0].astype(np.float64) - centre) / reach, -1.0, 1.0), nan=0.0)
    return np.array([np.rint(np.ldexp(parts, _BITS)).astype(np.int64).sum()])


def _scale(found: laws.Likely, second: laws.Look, n: int, top: int) -> float:
    """That of the likely laws, or of the counts where these have little noise."""
    counts, noise = second.counts, second.noise
    expected, spread = n * found.parts, n * (0.25 * found.parts + 0.01)
    moved = expected + (counts - expected) * spread**2 / (spread**2 + noise**2)
    kept = np.where((found.parts > 0.01) | (counts > 5.5 * noise), np.maximum(moved, 0.0), 0.0)
    _, scale = magnitudes.centre_and_scale(kept, kept > 0.0, second.shift, top)
    trust = noise**2 / (noise**2 + (_OUT * n) ** 2)
    return scale ** (1.0 - trust) * found.deviation**trust
