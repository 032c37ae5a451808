"""`solver="stochastic"`: noisy products over samples of the rows, averaged (DP-SPCA, corrected).

From a public random V, one product over all rows. Then T steps

    G_t = sum over a Poisson sample of clip_C(x (x^T V W)) + noise,    M <- (1 - b) M + b G_t W^-1,    V = polar(M),

b = min(1, c / t), on p = 2k columns; then Rayleigh and Ritz. It never holds a d x d matrix. With M = V H, H the
symmetric factor, W is the inverse root of H scaled to norm 1: directions of large variance are weighed down, as they
would take most of the clip and need the least of it. On text, where all rows share one direction, the others would
else be lost in the noise.

Privacy
-------
Unit: one row. Neighbours: add-remove only: sampled releases are accounted for these. Released:

- "first product": sum of x (x^T V) over all rows, each clipped to C_0 = 1.3 sqrt(p / d) R^2 (at most R^2), which few
  rows exceed as V is random: sensitivity C_0.
- "lengths" (unless `clip` is declared, in units of R^2): a histogram of |x| |W V^T x| / R^2. One row is in one bin.
- "steps": T sums over fresh Poisson samples, each contribution clipped to C: sensitivity C on any history, as V and W
  are functions of earlier releases. A sample is drawn by the gate with the probability of the plan, and its size is
  not used: sums are scaled by what is expected.
- the small matrix and the total of `steps`, over all rows.

Accounted by the privacy loss distribution of all of them together. The rounding of the sums is in the sensitivity.

The published DP-SPCA and DP-VRPCA scale the data by its largest column norm, which is a release that is not paid for,
and use noise below what their epsilon needs. Here rows are bounded before, and noise is calibrated.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.linalg import eigh, svd

from tacit._types import Floats
from tacit.blocks.centred import CentredRows
from tacit.privacy import Gate, Release
from tacit.privacy.mechanisms import GaussianVector, Histogram
from tacit.problems.declared import declared_size
from tacit.problems.task import ComponentsTask
from tacit.solvers.base import Algorithm, Serves, Solver, option
from tacit.solvers.examples import on_digits
from tacit.solvers.pca.spectrum import Spectrum
from tacit.solvers.pca.steps import (
    STEPS_SHARE,
    STEPS_WITHOUT_NOISE,
    columns,
    last_releases,
    random_start,
    spectrum_in,
)

_FIRST, _LENGTHS = 0.05, 0.02
_STEPS = 20
_SAMPLING = 0.25
_AVERAGING = 2.0  # c: the weight of step t is c / t
_CLIP_QUANTILE = 0.1  # low: rows that are all clipped to one length show their directions with the least noise
_CLIP_PART = 0.5  # of that quantile: later V show that more of the variance lies in few directions
_GRID = 2.0 ** (np.arange(-30, 1) / 3.0)  # of |x| |W V^T x| / R^2
_EDGE = 0.5  # of the largest singular value of noise: variances are not told apart below it


@dataclass(frozen=True, eq=False)
class Directions:
    """Orthonormal V, and symmetric weights W of norm 1 with their inverse; functions of what was released."""

    V: Floats
    weights: Floats
    inverse: Floats

    @classmethod
    def of(cls, M: Floats, noise: float) -> "Directions":
        """The polar factor of M, whose entries have noise of this standard deviation; no weights without noise."""
        scale = float(np.abs(M).max()) or 1.0
        left, sizes, right = svd(M / scale, full_matrices=False)
        floored = np.maximum(sizes * scale, _EDGE * noise * math.sqrt(len(M)))
        roots = np.sqrt(floored[-1] / floored) if noise > 0.0 else np.ones(len(sizes))
        return cls(np.ascontiguousarray(left @ right), (right.T * roots) @ right, (right.T / roots) @ right)

    @property
    def weighed(self) -> Floats:
        """V W, of spectral norm at most 1."""
        return np.ascontiguousarray(self.V @ self.weights)


@on_digits("clip=0.5")
@dataclass(eq=False, repr=False)
class Stochastic(Solver):
    """Noisy products with a few directions over samples of the rows, averaged (DP-SPCA, corrected).

    For many columns, above all for text: it never holds a d x d matrix, and weighs down the direction that all rows
    share. It needs rows that can be picked one by one, so no stream, and serves add-remove only.

    Privacy: a noisy product over all rows, a noisy histogram of lengths unless `clip` is declared, and noisy products
    over random samples, which stay secret; then a small noisy matrix and a noisy total.

    Parameters
    ----------
    clip : float, default=None
        What the norm of what a row adds to a product is clipped to, in units of the squared radius; above 1 nothing is
        clipped. None: found privately.
    """

    name: ClassVar[str] = "stochastic"
    serves: ClassVar[Serves] = Serves(losses=(), adjacencies=("add-remove",))

    clip: float | None = option(None, declared_size)

    def at(self, task: ComponentsTask) -> "_AveragedSteps":
        """How many steps, over which samples. Without noise each sees all rows, and the last one counts alone."""
        clip = self.check().clip
        if not task.budget.is_private:
            return _AveragedSteps(task, clip, STEPS_WITHOUT_NOISE, 1.0, math.inf)
        return _AveragedSteps(task, clip, _STEPS, _SAMPLING, _AVERAGING)


@dataclass(frozen=True)
class _AveragedSteps(Algorithm[ComponentsTask]):
    """Averaged noisy products over samples."""

    clip: float | None  # declared
    steps: int
    sampling: float  # the probability that a row takes part in a step
    averaging: float  # c

    def releases(self, share: float) -> tuple[Release, ...]:
        """First product, lengths, steps, small matrix, total."""
        known = 0.0 if self.clip is not None else _LENGTHS
        releases = [Release("first product", "gaussian", share=_FIRST * share)]
        if known > 0.0:
            releases.append(Release("lengths", "gaussian", share=known * share))
        left = (STEPS_SHARE - _FIRST - known) * share
        releases.append(Release("steps", "gaussian", share=left, count=self.steps, sampling=self.sampling))
        return *releases, *last_releases(share)

    def run(self, data: CentredRows, gate: Gate) -> Spectrum:
        """Components in the span of the averaged products."""
        task, sampling = self.task, self.sampling
        p, square = columns(task), data.radius**2
        now = first_directions(task, data, gate)
        found = clip_of_lengths(task, data, now.weighed, gate) if self.clip is None else min(self.clip, 1.0)
        sensitivity = data.product_sensitivity(p, square * found)
        mechanism = GaussianVector(sensitivity, bound=data.bound)
        noise = gate.noise("steps", sensitivity) / sampling
        mean, covariance = np.zeros((task.d, p)), np.zeros((p, p))  # of the products, and of the noise in their rows
        variance = 0.0  # of that noise where weights are 1, over the square of `noise`
        for t in range(1, self.steps + 1):
            places = gate.sample("steps") if sampling < 1.0 else None
            total = gate.release("steps", mechanism, data.products(now.weighed, square * found, places)) / sampling
            weight = min(1.0, self.averaging / t)
            mean = (1.0 - weight) * mean + weight * (total @ now.inverse)
            covariance = (1.0 - weight) ** 2 * covariance + weight**2 * (now.inverse @ now.inverse)
            variance = (1.0 - weight) ** 2 * variance + weight**2
            now = Directions.of(mean, noise * math.sqrt(variance))
        # The span is what counts; in these columns of it all noise has one size.
        return spectrum_in(task, data, mean @ _inverse_root(covariance), noise, gate)


def first_directions(task: ComponentsTask, rows: CentredRows, gate: Gate) -> Directions:
    """From one noisy product of all rows with random directions."""
    p = columns(task)
    clip = rows.radius**2 * (1.0 if not task.budget.is_private else min(1.0, 1.3 * math.sqrt(p / task.d)))
    mechanism = GaussianVector(rows.product_sensitivity(p, clip), bound=rows.bound)
    product = gate.release("first product", mechanism, rows.products(random_start(task, gate), clip))
    noise = gate.noise("first product", mechanism.sensitivity)
    return Directions.of(product, noise)


def clip_of_lengths(task: ComponentsTask, rows: CentredRows, weighed: Floats, gate: Gate) -> float:
    """From a quantile of |x| |W V^T x| / R^2 by a noisy histogram; 1, which clips nothing, without noise."""
    edges = np.concatenate([[0.0], _GRID])
    lengths = rows.lengths(weighed) / rows.radius**2
    counts = gate.release("lengths", Histogram(edges), lengths)
    if not task.budget.is_private:
        return 1.0
    rising = np.maximum.accumulate(np.cumsum(counts))
    reached = np.flatnonzero(rising >= _CLIP_QUANTILE * task.n)
    return _CLIP_PART * float(edges[1 + (int(reached[0]) if len(reached) else len(counts) - 1)])


def _inverse_root(covariance: Floats) -> Floats:
    values, vectors = eigh(covariance)
    return np.asarray((vectors / np.sqrt(values)) @ vectors.T)
