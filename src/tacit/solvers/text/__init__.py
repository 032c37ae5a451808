"""What the solvers for text share: rows of norm 1, the class share released beforehand, the threshold at the end.

Privacy
-------
- The number of rows of the second class is one count: sensitivity 1, and 1 for replace-one.
- A threshold is drawn from a fixed grid by the number of rows it classifies correctly: `Threshold`.
- Sums over rows are exact: each entry of a term is cut towards zero to whole steps of 2^-50, or fewer where there are
  more than 2^12 rows, so that all of them fit in an int64. No term is longer for it, and nothing is added for rounding.

Both are planned only for a model with an intercept. A row whose norm overflows is absent: it adds to no sum and no
count.

steps       `Text`: gradient steps, where the budget is enough for them
one_shot    `OneShot`: one noisy sum, where it is not
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from tacit._types import Floats
from tacit.blocks import SHRINK, Bounded
from tacit.kernels import rows as kernels
from tacit.kernels.given import Csr
from tacit.privacy import Gate, Release
from tacit.privacy.mechanisms import GaussianVector, Sensitivity, Threshold
from tacit.problems.task import LinearTask

_CLASS_SHARE, _THRESHOLD = 0.01, 0.05  # of the budget
_SIDE = np.geomspace(0.01, 30.0, 60)
GRID = np.concatenate([-_SIDE[::-1], [0.0], _SIDE])
"""Thresholds to draw from, times what noise alone would make of the margin of a unit row; finer near 0."""


def signal(task: LinearTask) -> float:
    """The largest norm of a sum over n unit rows, over the noise of a release of it: n sqrt(2 rho).

    For replace-one it is half of that, as the noise is twice as large.
    """
    doubled = 2.0 if task.budget.adjacency == "replace-one" else 1.0
    return task.n * math.sqrt(2.0 * task.budget.rho) / doubled


def planned(task: LinearTask, share: float, *between: Release) -> tuple[Release, ...]:
    """These releases, whose shares add up to 1, with the class share before them and the threshold after them.

    All of them together get `share` of the budget. Without an intercept there are only those between.
    """
    ends = task.fit_intercept
    left = share * (1.0 - _CLASS_SHARE - _THRESHOLD) if ends else share
    inner = tuple(Release(r.name, r.kind, share=left * (r.share or 0.0), count=r.count) for r in between)
    if not ends:
        return inner
    first = Release("class share", "gaussian", share=_CLASS_SHARE * share)
    return first, *inner, Release("threshold", "exponential", share=_THRESHOLD * share)


@dataclass(frozen=True)
class ClassShare:
    """The part of the rows that is of the second class, as it was released."""

    p: float

    @property
    def offset(self) -> float:
        """Its log-odds."""
        return math.log(self.p / (1.0 - self.p))

    @property
    def clip(self) -> float:
        """The longest residual of a model that knows the share alone."""
        return max(self.p, 1.0 - self.p)

    @property
    def slope(self) -> float:
        """Of the share in its log-odds."""
        return self.p * (1.0 - self.p)


class UnitRows:
    """Rows clipped to norm 1, as factors on bounded rows, whose norm is at most sqrt(d); all of it is private.

    Sums over them are of whole numbers, and become floats in one rounding.
    """

    def __init__(self, task: LinearTask, data: Bounded) -> None:
        self._task = task
        self._sparse = isinstance(data.Z, csr_array)
        self._rows: Any = data.Z
        if isinstance(data.Z, csr_array):
            self._rows = Csr(data.Z.data, data.Z.indices, data.Z.indptr)
        self._positive = data.targets > 0.0
        norms = np.empty(len(data.targets))
        (kernels.sparse_norms if self._sparse else kernels.dense_norms)(self._rows, 0.0, norms)
        self._factors = _bounded(math.sqrt(task.d), norms)

    def class_share(self, gate: Gate) -> ClassShare:
        """Released; one half where there is no intercept.

        It is drawn towards one half, the more the noisier it is: as far as is best if every share is equally likely.
        """
        n = self._task.n
        if not self._task.fit_intercept:
            return ClassShare(0.5)
        mechanism = GaussianVector(Sensitivity.non_negative(1.0), bound=n)
        count = float(np.count_nonzero(self._positive & (self._factors > 0.0)))
        deviation = gate.multiplier("class share") / n
        found = float(gate.release("class share", mechanism, count)) / n
        p = 0.5 + (found - 0.5) / (1.0 + 12.0 * deviation * deviation)
        return ClassShare(min(max(p, 1.0 / n), 1.0 - 1.0 / n))

    def threshold(self, gate: Gate, coef: Floats) -> float:
        """Released: rows with larger margins of these coefficients, as they will predict, are of the second class."""
        w, margins = np.append(coef, 0.0), np.empty(len(self._factors))
        (kernels.sparse_margins if self._sparse else kernels.dense_margins)(self._rows, 0.0, w, margins)
        margins[self._factors == 0.0] = math.nan
        scale = max(float(np.linalg.norm(coef)), 1e-12)  # of noise alone, as bounded rows are sqrt(d) long
        return gate.release("threshold", Threshold(GRID * scale), margins, self._positive)

    def sums(self, p: float, ratio: float) -> Floats:
        """The sums of (class - p) x, and `ratio` times those of |x|, or of x^2 where rows are dense."""
        out = np.empty((2, self._task.d), dtype=np.int64)
        values = np.where(self._positive, 1.0 - p, -p)
        add = kernels.sparse_sums if self._sparse else kernels.dense_sums
        add(self._rows, self._factors, values, ratio, 1.0 / self.step, out)
        return np.asarray(out * self.step)

    def sizes(self) -> Floats:
        """The sums of |x|."""
        return self.sums(0.0, 1.0)[1]

    def weighted(self, weights: Floats) -> Floats:
        """The norm of each CSR row with these weights, at most 1, on its entries; 0 where it is absent."""
        out = np.empty(len(self._factors))
        kernels.weighted_norms(self._rows, weights, out)
        return np.where(self._factors > 0.0, out, 0.0) * self._factors

    @property
    def step(self) -> float:
        """A power of two, in which the entries of sums are counted: n of them, none above 1, fit in 62 bits."""
        return math.ldexp(1.0, max(self._task.n.bit_length() - 62, -50))

    def squares(self, norms: Floats) -> float:
        """The sum of squares of these norms, none of which counts for more than 1."""
        return float((np.square(np.minimum(norms, 1.0)) / self.step).astype(np.int64).sum() * self.step)

    def scaled(self, norms: Floats, radius: float) -> Floats:
        """Factors that bring rows of these norms to 1 / radius of that, and to norm 1 at most."""
        return self._factors * _bounded(radius, norms)

    def residuals(self, factors: Floats, fit: kernels.Residuals) -> Floats:
        """The sum of clipped residuals times rows, which have these factors; the intercept's entry is last."""
        out = np.empty(self._task.d + 1, dtype=np.int64)
        kernels.residual_sums(self._rows, factors, self._positive, fit, 1.0 / self.step, out)
        return np.asarray(out * self.step)


def _bounded(radius: float, norms: Floats) -> Floats:
    """What to scale rows of these norms by: 1 / radius, less where they would be longer than 1; 0 if not finite."""
    return np.where(np.isfinite(norms), SHRINK / np.maximum(norms, radius), 0.0)
