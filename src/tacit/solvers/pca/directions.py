"""The directions that "stochastic" and "variance-reduced" multiply by, and what they keep of noisy products.

With M = V H, H the symmetric factor, the weights W are the inverse root of H scaled to norm 1: directions of large
variance are weighed down, as they would take most of the clip and need the least of it. On text, where all rows share
one direction, the others would else be lost in the noise.

Privacy
-------
Both solvers start with

- "first product": sum of x (x^T V) over all rows, V public and random, each clipped to C_0 = 1.3 sqrt(p / d) R^2 (at
  most R^2), which few rows exceed as V is random: sensitivity C_0.
- "lengths" (unless `clip` is declared, in units of R^2): a histogram of |x| |W V^T x| / R^2. One row is in one bin: 1.

All else in this file sees released numbers only.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh, svd

from tacit._types import Floats
from tacit.bounding.centring import PcaRows
from tacit.privacy import Gate, Release
from tacit.privacy.mechanisms import GaussianVector, Sensitivity
from tacit.problems.task import ComponentsTask
from tacit.solvers.pca.steps import STEPS_SHARE, columns, random_start

_FIRST, _LENGTHS = 0.05, 0.02
_CLIP_QUANTILE = 0.1  # low: rows that are all clipped to one length show their directions with the least noise
_CLIP_PART = 0.5  # of that quantile: later V show that more of the variance lies in few directions
_GRID = 2.0 ** (np.arange(-30, 1) / 3.0)  # of |x| |W V^T x| / R^2
_APART = 1e-4  # least over largest squared singular value, below which squares have lost digits
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
        V, sizes, right = _polar(M / scale)
        floored = np.maximum(sizes * scale, _EDGE * noise * math.sqrt(len(M)))
        roots = np.sqrt(floored[-1] / floored) if noise > 0.0 else np.ones(len(sizes))
        return cls(V, (right.T * roots) @ right, (right.T / roots) @ right)

    @property
    def weighed(self) -> Floats:
        """V W, of spectral norm at most 1."""
        return np.ascontiguousarray(self.V @ self.weights)


@dataclass(frozen=True, eq=False)
class Products:
    """M, a noisy estimate of A V / R^2 for a public V: means of products, and sums of them.

    It is in units of the squared radius, whose square a float may not hold. `covariance` is that of the noise in a row
    of M, and `variance` what it is where weights are 1.
    """

    V: Floats
    M: Floats
    covariance: Floats
    variance: float

    @classmethod
    def at(cls, directions: Directions, total: Floats, noise: float) -> "Products":
        """From a sum in units of R^2 that was taken with weights, with noise of this deviation in its entries."""
        covariance = noise**2 * (directions.inverse @ directions.inverse)
        return cls(directions.V, total @ directions.inverse, covariance, noise**2)

    @property
    def directions(self) -> Directions:
        """The next V, with its weights."""
        return Directions.of(self.M, math.sqrt(self.variance))

    @property
    def even(self) -> Floats:
        """Columns of the same span, in which all noise has deviation 1; M itself, where there is none."""
        if self.variance == 0.0:
            return self.M
        values, vectors = eigh(self.covariance)
        return np.asarray(self.M @ (vectors / np.sqrt(values)) @ vectors.T)

    def mixed(self, other: "Products", kept: float, taken: float) -> "Products":
        """A multiple of this and one of another whose noise is independent."""
        return Products(
            kept * self.V + taken * other.V,
            kept * self.M + taken * other.M,
            kept**2 * self.covariance + taken**2 * other.covariance,
            kept**2 * self.variance + taken**2 * other.variance,
        )

    def polar(self) -> "Products":
        """The polar factor of M in the place of M: where a step of gradient descent starts from."""
        V, sizes, right = _polar(self.M)
        sizes = np.maximum(sizes, 1e-12 * (float(sizes[0]) or 1.0))
        turn = (right.T / sizes) @ right
        return replace(
            self,
            M=V,
            covariance=turn @ self.covariance @ turn,
            variance=self.variance / float(np.mean(sizes)) ** 2,
        )


def _polar(M: Floats) -> tuple[Floats, Floats, Floats]:
    """The polar factor of M, its singular values, largest first, and its right singular vectors as rows.

    Noise keeps singular values within a few octaves of each other: M^T M has all of it then, at a third of the cost
    of an SVD. No sensitivity rests on how orthonormal the factor is, as rows are clipped by what they add.
    """
    squares, vectors = eigh(M.T @ M)
    if squares[0] <= _APART * squares[-1]:
        left, sizes, right = svd(M, full_matrices=False)
        return np.ascontiguousarray(left @ right), sizes, right
    sizes, right = np.sqrt(squares[::-1]), np.ascontiguousarray(vectors[:, ::-1].T)
    return M @ ((right.T / sizes) @ right), sizes, right


def first_releases(share: float, clip: float | None) -> tuple[tuple[Release, ...], float]:
    """The first product, lengths unless a clip is declared, and the share that is left for steps."""
    first = Release("first product", "gaussian", share=_FIRST * share)
    if clip is not None:
        return (first,), (STEPS_SHARE - _FIRST) * share
    lengths = Release("lengths", "gaussian", share=_LENGTHS * share)
    return (first, lengths), (STEPS_SHARE - _FIRST - _LENGTHS) * share


def first_products(task: ComponentsTask, rows: PcaRows, gate: Gate) -> Products:
    """One noisy product of all rows with random directions."""
    p = columns(task)
    clip = rows.radius**2 * (1.0 if not task.budget.is_private else min(1.0, 1.3 * math.sqrt(p / task.d)))
    mechanism = GaussianVector(rows.product_sensitivity(p, clip), bound=rows.bound)
    start = random_start(task, gate)
    product = gate.release("first product", mechanism, rows.products(start, clip)) / rows.radius**2
    noise = gate.noise("first product", mechanism.sensitivity) / rows.radius**2
    return Products(start, product, noise**2 * np.eye(p), noise**2)


def clip_of_lengths(task: ComponentsTask, rows: PcaRows, weighed: Floats, gate: Gate) -> float:
    """From a quantile of |x| |W V^T x| / R^2 by a noisy histogram; 1, which clips nothing, without noise."""
    edges = np.concatenate([[0.0], _GRID])
    mechanism = GaussianVector(Sensitivity.one_hot(), bound=task.n)
    counts = gate.release("lengths", mechanism, rows.length_counts(weighed, edges))
    if not task.budget.is_private:
        return 1.0
    rising = np.maximum.accumulate(np.cumsum(counts))
    reached = np.flatnonzero(rising >= _CLIP_QUANTILE * task.n)
    return _CLIP_PART * float(edges[1 + (int(reached[0]) if len(reached) else len(counts) - 1)])
