"""`solver="stochastic"`: noisy products over samples of the rows, averaged (DP-SPCA, corrected).

From a public random V, one product over all rows. Then T steps

    G_t = sum over a Poisson sample of clip_C(x (x^T V W)) + noise,    M <- (1 - b) M + b G_t W^-1,    V = polar(M),

b = min(1, c / t), on p = 2k columns, W the weights of `directions`; then Rayleigh and Ritz. It never holds a d x d
matrix. With a step size s it is the paper's gradient ascent on the mean, M <- V + s G_t W^-1 / (n R^2).

Privacy
-------
Unit: one row. Neighbours: add-remove only: sampled releases are accounted for these. Released:

- "first product" and "lengths" of `directions`.
- "steps": T sums over fresh Poisson samples, each contribution clipped to C: sensitivity C on any history, as V and W
  are functions of earlier releases. A sample is drawn by the gate with the probability of the plan, and its size is
  not used: sums are scaled by what is expected.
- the small matrix and the total of `steps`, over all rows.

Accounted by the privacy loss distribution of all of them together. Sums over dense rows are exact; those over wide
sparse ones are of floats, and their rounding is in the sensitivity.

The published DP-SPCA and DP-VRPCA scale the data by its largest column norm, which is a release that is not paid for,
and use noise below what their epsilon needs. Here rows are bounded before, and noise is calibrated.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from tacit.bounding.centring import PcaRows
from tacit.privacy import Gate, Release, checks
from tacit.privacy.mechanisms import GaussianVector
from tacit.problems.declared import declared_size
from tacit.problems.task import ComponentsTask
from tacit.solvers.base import Algorithm, Serves, Solver, iterations, option
from tacit.solvers.examples import on_digits
from tacit.solvers.pca.directions import Products, clip_of_lengths, first_products, first_releases
from tacit.solvers.pca.spectrum import Spectrum
from tacit.solvers.pca.steps import STEPS_WITHOUT_NOISE, columns, last_releases, spectrum_in

_STEPS = 20
_SAMPLING = 0.25
_AVERAGING = 1.5  # c: the weight of step t is c / t


@on_digits("n_iter=10, sampling_rate=0.5")
@dataclass(eq=False, repr=False)
class Stochastic(Solver):
    """Noisy products with a few directions over samples of the rows, averaged (DP-SPCA, corrected).

    For many columns, above all for text: it never holds a d x d matrix, and weighs down the direction that all rows
    share. It serves add-remove only, and takes no blocks of wide sparse rows, of which it cannot pick single ones.

    Privacy: a noisy product over all rows, a noisy histogram of lengths unless `clip` is declared, and noisy products
    over random samples, which stay secret; then a small noisy matrix and a noisy total.

    Parameters
    ----------
    n_iter : int, default=None
        How many products over samples. None: 20, and 400 without noise.
    sampling_rate : float, default=None
        The probability that a row takes part in one of them, above 0 and at most 1. Less of it makes a fit faster, and
        more accurate only where noise is small. None: 0.25, and 1 without noise.
    step_size : float, default=None
        How far a step goes along the gradient of the mean of (x^T V)^2 / 2, rows being in units of the radius; the
        paper's algorithm has one. None: products are averaged, which finds directions in far fewer steps.
    clip : float, default=None
        What the norm of what a row adds to a product is clipped to, in units of the squared radius; above 1 nothing is
        clipped. None: found privately.
    """

    name: ClassVar[str] = "stochastic"
    serves: ClassVar[Serves] = Serves(losses=(), adjacencies=("add-remove",))

    n_iter: int | None = option(None, iterations("stochastic"))
    sampling_rate: float | None = option(None, checks.probability)
    step_size: float | None = option(None, declared_size)
    clip: float | None = option(None, declared_size)

    def at(self, task: ComponentsTask) -> "_AveragedSteps":
        """How many steps, over which samples. Without noise each sees all rows, and the last one counts alone."""
        asked, private = self.check(), task.budget.is_private
        steps, sampling = (_STEPS, _SAMPLING) if private else (STEPS_WITHOUT_NOISE, 1.0)
        return _AveragedSteps(
            task,
            asked.clip,
            asked.n_iter or steps,
            asked.sampling_rate or sampling,
            _AVERAGING if private else math.inf,
            asked.step_size,
        )


@dataclass(frozen=True)
class _AveragedSteps(Algorithm[ComponentsTask]):
    """Averaged noisy products over samples."""

    clip: float | None  # declared
    steps: int
    sampling: float  # the probability that a row takes part in a step
    averaging: float  # c
    step_size: float | None  # of gradient ascent, in the place of averaging

    def releases(self, share: float) -> tuple[Release, ...]:
        """First product, lengths, steps, small matrix, total."""
        first, left = first_releases(share, self.clip)
        steps = Release("steps", "gaussian", share=left, count=self.steps, sampling=self.sampling)
        return *first, steps, *last_releases(share)

    def run(self, data: PcaRows, gate: Gate) -> Spectrum:
        """Components in the span of the averaged products."""
        task, sampling, square = self.task, self.sampling, data.radius**2
        mean = first_products(task, data, gate)
        now = mean.directions
        clip = square * (clip_of_lengths(task, data, now.weighed, gate) if self.clip is None else min(self.clip, 1.0))
        sensitivity = data.product_sensitivity(columns(task), clip)
        mechanism = GaussianVector(sensitivity, bound=data.bound)
        unit = sampling * square
        noise = gate.noise("steps", sensitivity) / unit
        for t in range(1, self.steps + 1):
            places = gate.sample("steps") if sampling < 1.0 else None
            total = gate.release("steps", mechanism, data.products(now.weighed, clip, places)) / unit
            mean = self._moved(mean, Products.at(now, total, noise), t)
            now = mean.directions
        return spectrum_in(task, data, mean.even, 1.0 if noise > 0.0 else 0.0, gate)

    def _moved(self, mean: Products, found: Products, t: int) -> Products:
        """The mean with one more product in it, or a step of gradient ascent from the last directions."""
        if self.step_size is not None:
            return mean.polar().mixed(found, 1.0, self.step_size / self.task.n)
        weight = min(1.0, self.averaging / t)
        return mean.mixed(found, 1.0 - weight, weight)
