"""Stochastic dual coordinate steps (DP-SCD), with a dual vector that stays secret.

Algorithm. Every row i has dual variables alpha_i; the weights are theta_j = v_j / (n l2_j) with v = sum alpha_i x_i,
the intercept's entry of x_i being 1. Each step flips a coin for every row and moves the dual variables of those that
take part, each by itself, to the best place on a separable bound of the dual objective (equation 8 of the paper); what
they add to v is released with noise. The number of steps is fixed beforehand; no step looks at the objective or a gap.

Privacy
-------
Unit: one row. Neighbours: add-remove; replace-one is refused, because sampling changes its accounting. Released: T sums
of updates zeta_i x_i over Poisson samples with rate q, each row's clipped to norm C: T Poisson-sampled Gaussian events.
The dual variables are state that each row keeps to itself. They are never released; a row's enter a release through its
own clipped update and nowhere else, which is what the accounting of samples needs (docs/guarantees.md#dual). For
several classes, one against the rest, the updates of all classes are clipped together and released at once: the
sensitivity is C as well. Sums are taken in float64; their rounding is in the sensitivity (`tacit.blocks.Moves`).

Assumptions: rows are bounded before; the scales that bound them were released in the same plan.

Rules (in n, d, epsilon and delta alone; nu = (d + 1) / (n mu)). Expected batches of L = 300 rows; damping L, with which
even rows that all point one way do not overshoot; C = k A R / (1 + L R^2 / (n l2)) with R^2 = d' and A = 1 (squared
loss: 3, the bound of the target): the longest update of a row of norm R. k = 1, but where noise is above what the loss
bears (nu above 0.3; squared loss 0.005) it falls as nu^-0.4. 10 passes over the rows, and up to 100 below nu = 0.1
(squared loss 0.01). The penalty is at least 0.01 (squared loss 0.003): with less, so few passes do not get far. Where
there is little noise (nu below 0.00016) every step takes all rows, with momentum and a damping that is released first,
and steps grow, the least penalty and the rounding of the hinge's corner vanish, so that without noise the problem is
solved. The intercept is penalised like the features; less and less where there is little noise.

Files: `steps` has the two forms above, on samples and on all rows; `paper` has three more, for comparison only.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from tacit.privacy import checks
from tacit.problems import HINGE, LOGISTIC, SQUARED, SQUARED_HINGE
from tacit.problems.declared import declared_size
from tacit.problems.task import LinearTask
from tacit.solvers.base import Serves, Solver, batch, check_steps, option, pass_count, word
from tacit.solvers.dual.paper import Primal, Published, Sequential
from tacit.solvers.dual.steps import AllRows, Asked, Sampled
from tacit.solvers.examples import on_cancer

_CALM = 2.5  # growth above which steps take all rows
_FORMS: dict[str, type[Sampled | Primal]] = {
    "secret": Sampled,
    "published": Published,
    "sequential": Sequential,
    "primal": Primal,
}


@on_cancer("batch_size=100", score=0.8)
@dataclass(eq=False, repr=False)
class Dual(Solver):
    """Stochastic dual coordinate steps (DP-SCD): samples of rows move their dual variables, which stay secret.

    Use it for support vector machines of more than two classes, where it is the default, and for classes one against
    the rest in general. It needs an l2 penalty and `adjacency="add-remove"`.

    Privacy: each step is a noisy sum of clipped updates over a random sample of the rows. The sample and the dual
    variables never leave.

    Parameters
    ----------
    n_passes : float, default=None
        Passes over the rows: at most 100,000, in at most ten million steps. None: a rule in the numbers of rows and
        columns and the budget.
    batch_size : int, default=None
        Expected number of rows in a step; weights in a step of `variant="primal"`. None: a rule as above.
    clip : float, default=None
        What a row's update is clipped to. None: a rule as above.
    variant : {"secret", "published", "sequential", "primal"}, default="secret"
        Which form of the algorithm; all but the first are for comparison with the paper on DP-SCD.
    inner : {"exact", "newton"}, default="exact"
        How a row's step is found for the logistic loss: exactly, or by the paper's single Newton step.
    """

    name: ClassVar[str] = "dual"
    serves: ClassVar[Serves] = Serves(
        losses=(SQUARED, LOGISTIC, HINGE, SQUARED_HINGE),
        multiclass=(LOGISTIC, HINGE, SQUARED_HINGE),
        adjacencies=("add-remove",),
    )

    n_passes: float | None = option(None, pass_count)
    batch_size: int | None = option(None, checks.count)
    clip: float | None = option(None, declared_size)
    variant: str = option("secret", word(*_FORMS))
    inner: str = option("exact", word("exact", "newton"))

    def at(self, task: LinearTask) -> Sampled | AllRows | Primal:
        """The form that serves the task: samples of rows, all rows where there is little noise, or the paper's."""
        given = self.check()
        rows = batch(given.batch_size, task.n)
        asked = Asked(given.n_passes, rows, given.clip, newton=given.inner == "newton")
        growth = max(1.0, math.sqrt(task.calm))
        takes_all = self.variant == "secret" and rows is None and growth > _CALM
        form: type[Sampled | AllRows | Primal] = AllRows if takes_all else _FORMS[self.variant]
        algorithm = form.of(task, asked)
        check_steps(max(release.count for release in algorithm.releases(1.0)), asked.n_passes, asked.batch_size)
        return algorithm
