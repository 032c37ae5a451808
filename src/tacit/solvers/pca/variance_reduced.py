"""`solver="variance-reduced"`: means of products over all rows, and cheap corrections of them (DP-VRPCA, corrected).

From a public random V, one product over all rows. Then m times a snapshot over all rows at the V of that time,

    S = sum of clip_C(x (x^T V W)) + noise,    M~ <- (1 - 1/t) M~ + S W^-1 / t,    V~ <- (1 - 1/t) V~ + V / t,

so that M~ is near A V~, however V moved between snapshots; V = polar(M~). After each snapshot J corrections,

    G = M~ + (1 / q) (sum over a Poisson sample of clip_C'(x x^T (V - V~) W) + noise) W^-1,    V = polar(G),

W the weights of `directions`, on p = 2k columns; then Rayleigh and Ritz in the span of the last G. The paper has the
last snapshot in the place of the mean of all, no clip, no weights, and a gradient step of size s:
V = polar(V + s G / (n R^2)). A mean over all snapshots has the least noise and lags behind; the correction is for the
lag, as the paper's is for the distance from the snapshot. What does not stand out of the noise of a correction is left
out of it.

Privacy
-------
Unit: one row. Neighbours: add-remove only: corrections are over samples, which are accounted for these. Released:

- "first product" and "lengths" of `directions`.
- "snapshots": m sums over all rows, each contribution clipped to C = c R^2: sensitivity C on any history, as V and W
  are functions of earlier releases.
- "corrections": m J sums over fresh Poisson samples of x x^T D, D = (V - V~) W the matrix that is multiplied. A row's
  contribution has Frobenius norm at most |x|^2 |D|_2, and is clipped to C' = c R^2 |D|_2, c at most 1: sensitivity C'.
  |D|_2 is a function of earlier releases, so public: noise is a fixed multiplier of C', and shrinks as V settles. Where
  D is 0 the release is skipped, which earlier releases decide as well.
- the small matrix and the total of `steps`.

V~ is a mean of public matrices with public weights, so D is public too: a row that is absent takes its clipped
contribution out of each sum, and nothing else changes on the same history. Accounted by the privacy loss distribution
of [(1, z_f), (1, z_l), (1, z_s) m times, (q, z_c) m J times] and the last two. The rounding of the sums is in the
sensitivity.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.linalg import svd

from tacit._types import Floats
from tacit.bounding.centring import PcaRows
from tacit.privacy import Gate, Release, checks
from tacit.privacy.mechanisms import GaussianVector
from tacit.problems.declared import declared_size
from tacit.problems.task import ComponentsTask
from tacit.solvers.base import MOST_ITERATIONS, Algorithm, Serves, Solver, iterations, option
from tacit.solvers.examples import on_digits
from tacit.solvers.pca.directions import Directions, Products, clip_of_lengths, first_products, first_releases
from tacit.solvers.pca.spectrum import Spectrum
from tacit.solvers.pca.steps import STEPS_WITHOUT_NOISE, columns, last_releases, spectrum_in

_SNAPSHOTS = 16
_INNER = 1  # J
_SAMPLING = 0.25
_INNER_SHARE = 0.05  # of what snapshots and corrections have together


def _none_or_more(name: str, value: object) -> int:
    """How many corrections."""
    return checks.count(name, value, least=0)


@on_digits("n_snapshots=8, n_inner=2")
@dataclass(eq=False, repr=False)
class VarianceReduced(Solver):
    """Means of noisy products over all rows, with corrections over samples between them (DP-VRPCA, corrected).

    It serves what `Stochastic` serves, and reads all rows where that reads samples: slower, without sampling error, and
    else about as accurate. It serves add-remove only, and takes no blocks of wide sparse rows, as `Stochastic`.

    Privacy: noisy products over all rows, a noisy histogram of lengths unless `clip` is declared, and noisy corrections
    over random samples, which stay secret; then a small noisy matrix and a noisy total.

    Parameters
    ----------
    n_snapshots : int, default=None
        How many products over all rows. None: 16, and 200 without noise.
    n_inner : int, default=None
        How many corrections after each, from 0, which is a little better where noise is large. None: 1.
    sampling_rate : float, default=None
        The probability that a row takes part in a correction, above 0 and at most 1. None: 0.25, and 1 without noise.
    step_size : float, default=None
        How far a step goes along the gradient of the mean of (x^T V)^2 / 2, rows being in units of the radius; the
        paper's algorithm has one. None: as far as the gradient itself, which finds directions in far fewer steps. The
        components are those of the last gradient either way.
    clip : float, default=None
        What the norm of what a row adds to a product is clipped to, in units of the squared radius; above 1 nothing is
        clipped. None: found privately.
    """

    name: ClassVar[str] = "variance-reduced"
    serves: ClassVar[Serves] = Serves(losses=(), adjacencies=("add-remove",))

    n_snapshots: int | None = option(None, iterations("variance-reduced"))
    n_inner: int | None = option(None, _none_or_more)
    sampling_rate: float | None = option(None, checks.probability)
    step_size: float | None = option(None, declared_size)
    clip: float | None = option(None, declared_size)

    def at(self, task: ComponentsTask) -> "_Snapshots":
        """How many snapshots, and corrections over which samples. Without noise all rows take part in each of them."""
        asked, private = self.check(), task.budget.is_private
        inner = _INNER if asked.n_inner is None else asked.n_inner
        by_rule = _SNAPSHOTS if private else max(1, STEPS_WITHOUT_NOISE // (1 + inner))
        snapshots = asked.n_snapshots or by_rule
        if snapshots * inner > MOST_ITERATIONS:
            raise ValueError(
                f"n_snapshots={snapshots:,} with n_inner={inner:,} would make {snapshots * inner:,} corrections, and at"
                f" most {MOST_ITERATIONS:,} are of use, as each adds noise to all others"
            )
        return _Snapshots(
            task,
            asked.clip,
            snapshots,
            inner,
            asked.sampling_rate or (_SAMPLING if private else 1.0),
            asked.step_size,
        )


@dataclass(frozen=True)
class _Snapshots(Algorithm[ComponentsTask]):
    """Snapshots and corrections."""

    clip: float | None  # declared
    snapshots: int
    inner: int  # corrections after each
    sampling: float  # the probability that a row takes part in a correction
    step_size: float | None

    def releases(self, share: float) -> tuple[Release, ...]:
        """First product, lengths, snapshots, corrections, small matrix, total."""
        first, left = first_releases(share, self.clip)
        part = _INNER_SHARE * left if self.inner else 0.0
        releases = [*first, Release("snapshots", "gaussian", share=left - part, count=self.snapshots)]
        if self.inner:
            count = self.snapshots * self.inner
            releases.append(Release("corrections", "gaussian", share=part, count=count, sampling=self.sampling))
        return *releases, *last_releases(share)

    def run(self, data: PcaRows, gate: Gate) -> Spectrum:
        """Components in the span of the last corrected mean."""
        task, square = self.task, data.radius**2
        now = first_products(task, data, gate).directions
        clip = clip_of_lengths(task, data, now.weighed, gate) if self.clip is None else min(self.clip, 1.0)
        sensitivity = data.product_sensitivity(columns(task), square * clip)
        mechanism, noise = GaussianVector(sensitivity, bound=data.bound), gate.noise("snapshots", sensitivity) / square
        mean: Products | None = None
        for t in range(1, self.snapshots + 1):
            total = gate.release("snapshots", mechanism, data.products(now.weighed, square * clip)) / square
            found = Products.at(now, total, noise)
            weight = 1.0 / t if task.budget.is_private else 1.0  # without noise a mean would only lag
            mean = found if mean is None else mean.mixed(found, 1.0 - weight, weight)
            known = mean
            now = self._moved(now, known)
            for _ in range(self.inner):
                known = self._corrected(mean, now, clip, data, gate)
                now = self._moved(now, known)
        return spectrum_in(task, data, known.even, 1.0 if noise > 0.0 else 0.0, gate)

    def _moved(self, now: Directions, known: Products) -> Directions:
        """The polar factor of the gradient, or of the end of a step along it."""
        if self.step_size is None:
            return known.directions
        step = self.step_size / self.task.n
        return Directions.of(now.V + step * known.M, step * math.sqrt(known.variance))

    def _corrected(self, mean: Products, now: Directions, clip: float, data: PcaRows, gate: Gate) -> Products:
        """The mean of snapshots brought to the V of now, by a product over a sample with what lies between them."""
        change = np.ascontiguousarray((now.V - mean.V) @ now.weights)
        size = float(svd(change, compute_uv=False)[0]) * (1.0 + 1e-12)
        if size == 0.0:
            gate.skip("corrections")
            return mean
        limit, unit = data.radius**2 * clip * size, data.radius**2 * self.sampling
        places = gate.sample("corrections") if self.sampling < 1.0 else None
        sensitivity = data.product_sensitivity(change.shape[1], limit, stretch=size)
        mechanism = GaussianVector(sensitivity, bound=data.bound * size)
        total = gate.release("corrections", mechanism, data.products(change, limit, places)) / unit
        noise = gate.noise("corrections", sensitivity) / unit
        kept = _standing_out(change, total, noise)
        covariance = noise**2 * (now.inverse @ kept @ kept @ now.inverse)
        variance = noise**2 * float(np.trace(kept @ kept)) / len(kept)
        return mean.mixed(Products(now.V - mean.V, total @ kept @ now.inverse, covariance, variance), 1.0, 1.0)


def _standing_out(change: Floats, product: Floats, noise: float) -> Floats:
    """A symmetric matrix between 0 and 1 that shrinks columns by how far they are above the noise.

    They are turned to the directions in which the change is largest. The edge is the largest singular value that noise
    alone has: below it nothing is kept.
    """
    right = svd(change, full_matrices=False)[2].T
    lengths = np.square(product @ right).sum(axis=0)
    edge = noise**2 * (math.sqrt(len(product)) + math.sqrt(len(right))) ** 2
    kept = np.where(lengths > edge, 1.0 - edge / np.maximum(lengths, 1e-300), 0.0)
    return np.asarray((right * kept) @ right.T)
