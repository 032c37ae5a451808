"""`solver="power"`: noisy block power iterations, then Rayleigh and Ritz (private power iteration).

V <- orthonormal(A V + noise), T times, from a public random start.

Privacy
-------
Unit: one row. Neighbours: add-remove or replace-one. Released: T products A V = sum x (x^T V), V orthonormal of p
columns and a function of earlier releases. A row's x x^T V has Frobenius norm at most |x|^2 <= R^2, and two of them are
at most sqrt(2) R^2 apart, as multiplying by V brings outer products no further apart. Then the small matrix and the
total of `steps`. All Gaussian, so the plan is exactly mu-GDP. Sums over dense rows are exact, V and x^T V being rounded
to grids: terms are clipped to R^2, and for replace-one the grids add a few parts in a million. Those over wide sparse
rows are of floats, and their rounding is in the sensitivity.

T is declared, or a rule in n, d and the budget: few steps, as each costs a T-th of the budget, and more as noise
vanishes.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from tacit.bounding.centring import PcaRows
from tacit.privacy import Gate, Release
from tacit.privacy.mechanisms import GaussianVector
from tacit.problems.task import ComponentsTask
from tacit.solvers.base import Algorithm, Serves, Solver, iterations, option
from tacit.solvers.examples import on_digits
from tacit.solvers.pca.spectrum import Spectrum
from tacit.solvers.pca.steps import (
    STEPS_SHARE,
    STEPS_WITHOUT_NOISE,
    columns,
    last_releases,
    orthonormal,
    random_start,
    spectrum_in,
)


@on_digits(more=', adjacency="replace-one"')
@dataclass(eq=False, repr=False)
class Power(Solver):
    """Noisy products with a few directions over all rows, again and again (private power iteration).

    For many columns where rows cannot be sampled: for replace-one neighbours, and in blocks of wide sparse rows. It
    never holds a d x d matrix.

    Privacy: a noisy product in each step, then a small noisy matrix and a noisy total; accounted exactly.

    Parameters
    ----------
    n_iter : int, default=None
        How many products. None: 4, and more where noise is small, up to 400.
    """

    name: ClassVar[str] = "power"
    serves: ClassVar[Serves] = Serves(losses=(), streams=True)

    n_iter: int | None = option(None, iterations("power"))

    def at(self, task: ComponentsTask) -> "_Iterations":
        """As many steps as were asked for; else four, and more where noise is small."""
        asked = self.check()
        if asked.n_iter is not None or not task.budget.is_private:
            return _Iterations(task, asked.n_iter or STEPS_WITHOUT_NOISE)
        steps = 4 + math.floor(4.0 * max(0.0, math.log10(0.01 / task.nu)))
        return _Iterations(task, min(STEPS_WITHOUT_NOISE, steps))


@dataclass(frozen=True)
class _Iterations(Algorithm[ComponentsTask]):
    """Noisy block power iterations."""

    steps: int

    def releases(self, share: float) -> tuple[Release, ...]:
        """The products, the small matrix and the total."""
        products = Release("products", "gaussian", share=STEPS_SHARE * share, count=self.steps)
        return products, *last_releases(share)

    def run(self, data: PcaRows, gate: Gate) -> Spectrum:
        """Components in the span of the last iterate."""
        V = random_start(self.task, gate)
        sensitivity = data.product_sensitivity(columns(self.task))
        mechanism = GaussianVector(sensitivity, bound=data.bound)
        for _ in range(self.steps):
            M = gate.release("products", mechanism, data.products(V))
            V = orthonormal(M)
        return spectrum_in(self.task, data, M, gate.noise("products", sensitivity), gate)
