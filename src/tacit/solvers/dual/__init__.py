"""Stochastic dual coordinate steps (DP-SCD), with a dual vector that stays secret.

Algorithm. Every row i has dual variables alpha_i; the weights are theta_j = v_j / (n l2_j) with v = sum alpha_i x_i,
the intercept's entry of x_i being 1. Each step flips a coin for every row and moves the dual variables of those that
take part, each by itself, to the best place on a separable bound of the dual objective (equation 8 of the paper); what
they add to v is released with noise. The number of steps is fixed beforehand; no step looks at the objective or a gap.
Returned is the mean of the second half of the iterates of v: each is a sum of releases.

Theory. The paper's utility guarantee (theorem 2) asks for L (2 (1 - kappa) mu lambda - 1) > mu lambda N with batches of
L <= N rows, so for mu lambda > 1. At its own lambda of 1e-4 (rows of norm 1, losses 1 / mu smooth) mu lambda is 1e-4,
for the logistic loss 4e-4: no batch meets it, and no fit here rests on it. What to expect instead: noise in v is never
taken back, so that the dual variables settle where the gradient is off by all of it; and steps are about 1 / (damping
R^2) long, which for damping L is far shorter than what noise allows on rows that do not all point one way.

Privacy
-------
Unit: one row. Neighbours: add-remove; replace-one is refused, because sampling changes its accounting. Released: T sums
of updates zeta_i x_i over Poisson samples with rate q, each row's clipped to norm C: T Poisson-sampled Gaussian events.
The dual variables are state that each row keeps to itself. They are never released; a row's enter a release through its
own clipped update and nowhere else, which is what the accounting of samples needs (docs/guarantees.md#dual). Of two
classes with the logistic loss, where that is due, their count comes before and the sum of residuals after the samples:
sensitivity 1 each (`tacit.solvers.classes`). v starts where the intercept is the log-odds of that count, so that its
penalty pulls there; the residuals are those of all rows, and no function of dual variables. For
several classes, one against the rest, the updates of all classes are clipped together and released at once: the
sensitivity is C as well. Sums are taken in float64; their rounding is in the sensitivity (`tacit.blocks.Moves`).

Assumptions: rows are bounded before; the scales that bound them were released in the same plan.

Rules (in n, d, epsilon and delta alone; nu = (d + 1) / (n mu)). Expected batches of L = 300 rows. Damping D = L / 10
for the logistic loss and the hinge, L / 2 for the others: the paper's L is safe even where all rows point one way, and
makes steps too short. C = k A R / (1 + D R^2 / (n l2)) with R^2 = d' and A = 1 (squared loss: 3, the bound of the
target): the longest update of a row of norm R. k falls where noise is above what the loss bears: for the logistic loss
it is (nu / 0.03)^-0.8, but 0.2 at least and 0.7 at most, for the squared one (nu / 0.006)^-0.6 between 0.08 and 0.5.
The hinges ask for the noise in the weights too, which with k = 1 has norm 1 / (mu D) in a pass: with s the geometric
mean of that and nu, k is (s / 0.055)^-0.8 for "hinge" and (s / 0.086)^-0.8 for "squared_hinge", at most 1. K = 10
passes over the rows, and up to 100 below nu = 0.1 (squared loss 0.05). The penalty is at least 2 D R^2 / (n K), with
which K passes move dual variables about as far as they have to go, but it is not raised above 0.01 (squared loss 0.003)
for it. Where there is little noise (nu below 0.00016) every step takes all rows, with momentum and a damping that is
released first, and steps grow, the least penalty and the rounding of the hinge's corner vanish, so that without noise
the problem is solved. The intercept is penalised like the features; less and less where there is little noise. Classes
are counted, for 5% of the budget, on samples where n mu is above 125 for each of both (`benchmarks.rules.solvers`).

Files: `rules` has the numbers above, `steps` the two forms, on samples and on all rows; `paper` has three more, for
comparison only.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Self

from tacit.privacy import checks
from tacit.problems import HINGE, LOGISTIC, SQUARED, SQUARED_HINGE
from tacit.problems.declared import declared_size, penalty_strength
from tacit.problems.task import LinearTask
from tacit.solvers.base import Serves, Solver, batch, check_steps, option, pass_count, word
from tacit.solvers.dual.paper import Primal, Published, Sequential
from tacit.solvers.dual.rules import Asked
from tacit.solvers.dual.steps import AllRows, Sampled
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
    averaging : {"last", "tail"}, default=None
        Whether the last iterate is returned or the mean of the second half of them, which costs nothing: each one is a
        sum of what was released. None: "tail" on samples of the rows, "last" where steps take all rows and of the
        other variants; "sequential" and "primal" have no other.
    least_penalty : float, default=None
        The least strength of the l2 penalty, next to the mean loss on bounded rows. None: a rule, about 1 / n times
        what so many passes can reach, and at most 0.01 (squared loss: 0.003). Many a `C` or `alpha` asks for less, and
        then they all get the same; with `C=1` the strength is 1 / n. 0: what was asked for, if it is 1e-12 or more:
        weights are sums of dual variables over n times the strength, so that without any there is no dual problem.
    damping : float, default=None
        The part of a sample whose rows are taken to pull one way. With 1, the paper's, steps are safe for all rows, and
        short. None: a rule in the loss. It does not go with the variants "sequential" and "primal".
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
    averaging: str | None = option(None, word("last", "tail"))
    least_penalty: float | None = option(None, penalty_strength)
    damping: float | None = option(None, checks.probability)

    def check(self) -> Self:
        """The same options as plain numbers and words; two variants have no damping and no mean."""
        given = super().check()
        if given.variant in ("sequential", "primal") and (given.averaging == "tail" or given.damping is not None):
            raise ValueError(f"variant={given.variant!r} has no damping, and returns its last iterate")
        return given

    def at(self, task: LinearTask) -> Sampled | AllRows | Primal:
        """The form that serves the task: samples of rows, all rows where there is little noise, or the paper's."""
        given = self.check()
        rows = batch(given.batch_size, task.n)
        steps = given.averaging, given.least_penalty, given.damping
        asked = Asked(given.n_passes, rows, given.clip, given.inner == "newton", *steps)
        growth = max(1.0, math.sqrt(task.calm))
        takes_all = given.variant == "secret" and rows is None and given.damping is None and growth > _CALM
        form: type[Sampled | AllRows | Primal] = AllRows if takes_all else _FORMS[self.variant]
        algorithm = form.of(task, asked)
        check_steps(max(release.count for release in algorithm.releases(1.0)), asked.n_passes, asked.batch_size)
        return algorithm
