"""Greedy coordinate descent (DP-GCD): draw one weight privately, move it, and so on.

Algorithm. Release the mean square of every column once. Then, for a fixed number of rounds, draw one coordinate by the
exponential mechanism, with the length of the proximal step that the coordinate would take as its score; release its
derivative and take that step. Weights that were never drawn stay where they start, so solutions are sparse.

Privacy
-------
Unit: one row. Neighbours: add-remove or replace-one. Released: the mean squares (unless declared), then in each round
one selection and one derivative. The derivative l' of row i in its margin is clipped so that |l' z_ij / s_j| <= C for
every coordinate j, with released or declared units s_j.

- A derivative over its unit has sensitivity C, 2 C for replace-one.
- The score of coordinate j is n |prox(w_j - t_j g_j) - w_j| / (t_j s_j), g_j the mean derivative and t_j the length of
  a step. A proximal map brings no two points further apart, so a row changes the score by at most what it changes
  n g_j / s_j, which is C, in either direction: the largest and smallest change differ by at most 2 C, 4 C for
  replace-one. The rounding of that difference grows with |w_j|, which is public, and is added to C.
- Selections are zCDP and derivatives Gaussian: the Renyi accountant composes them.
- Mean squares and sums as in `tacit.solvers.coordinate`. There is no row accounting here: which coordinates are seen is
  not fixed beforehand.

Assumptions: rows are bounded before; the scales that bound them were released in the same plan.

Rules (in n, d, epsilon and delta alone). n mu / 50 rounds: so many weights can be told from noise, if there are as
many; at least 3 and at most 4 for each weight, more where there is little noise. C = 2 (on entries of unit scale and a
target of unit scale), less below n mu = 100, so that where nothing can be learned the weights stay near zero.
Selections get 0.7 of the budget: they have to be right among d, a derivative only needs to be near.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tacit._types import Floats
from tacit.blocks import SHRINK, Bounded, Moves
from tacit.privacy import Gate, Release
from tacit.privacy.mechanisms import GaussianVector, Selection, Sensitivity
from tacit.problems import SQUARED
from tacit.problems.declared import declared_size, smoothness_constants
from tacit.problems.task import LinearTask
from tacit.solvers.base import Algorithm, Layout, Serves, Solution, Solver, iterations, option
from tacit.solvers.coordinate.columns import NO_CLIP, Columns, Smoothness

_SELECTION = 0.7  # of the budget
_MOST_VISITS = 4  # of a weight on average, under usual noise


@dataclass(eq=False, repr=False)
class Greedy(Solver):
    """Greedy coordinate descent (DP-GCD): each round draws one weight privately and moves it; the rest stay at zero.

    Use it for the squared loss on tables of many columns of which few matter. It is the default for an l1 penalty on
    such tables.

    Privacy: noisy mean squares of the columns, unless they are declared; then in each round a private draw, and a noisy
    derivative of what was drawn.

    Parameters
    ----------
    n_iter : int, default=None
        Rounds: at most 100,000. None: a rule in the numbers of rows and columns and the budget.
    clip : float, default=None
        What derivatives are clipped to. None: a rule as above.
    step : float, default=None
        Length of a step, where 1 is the inverse of a column's smoothness. None: 1.
    smoothness : {"private", "laplace"} or array of shape (n_features,), default="private"
        The mean square of each column of the bounded data (near 1 if the data is dense), which sets the steps.
        "private" releases it inside the budget, "laplace" with Laplace noise; an array of positive numbers is taken as
        public.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit import Lasso
    >>> from tacit.solvers import Greedy
    >>> X = np.random.default_rng(0).normal(size=(2000, 50))
    >>> model = Lasso(epsilon=3.0, alpha=0.01, solver=Greedy(n_iter=5)).fit(X, X[:, 0] - X[:, 1])
    >>> bool((model.coef_ != 0.0).sum() <= 5)
    True
    """

    name: ClassVar[str] = "greedy"
    serves: ClassVar[Serves] = Serves(losses=(SQUARED,), penalties=("l2", "l1", "bounds"))

    n_iter: int | None = option(None, iterations(name))
    clip: float | None = option(None, declared_size)
    step: float | None = option(None, declared_size)
    smoothness: str | Sequence[float] = option("private", lambda _, value: smoothness_constants(value))

    def at(self, task: LinearTask) -> "_Rounds":
        """The rounds, with their rules worked out from n, d, mu and what the user set."""
        asked = self.check()
        signal, growth = task.n * task.budget.mu, max(1.0, math.sqrt(task.calm))
        most = _MOST_VISITS * task.width * min(growth, 20.0)
        return _Rounds(
            task,
            Smoothness.of(task, asked.smoothness),
            rounds=asked.n_iter or round(min(max(signal / 50.0, 3.0), max(most, 3.0))),
            clip=asked.clip or min(2.0, signal / 50.0) * min(growth, NO_CLIP),
            step=asked.step or 1.0,
        )


@dataclass(frozen=True)
class _Rounds(Algorithm[LinearTask]):
    """Greedy descent on one task."""

    layout: ClassVar[Layout] = "columns"

    smoothness: Smoothness
    rounds: int
    clip: float
    step: float

    def releases(self, share: float) -> tuple[Release, ...]:
        """The smoothness constants, then a selection and a derivative in every round."""
        first, left = self.smoothness.releases(share)
        return (
            *first,
            Release("selections", "exponential", share=_SELECTION * left, count=self.rounds),
            Release("derivatives", "gaussian", share=(1.0 - _SELECTION) * left, count=self.rounds),
        )

    def run(self, data: Bounded, gate: Gate) -> Solution:
        """The last iterate."""
        task, n, clip = self.task, self.task.n, self.clip
        columns = Columns(task, data)
        bounds = self.smoothness.constants(columns, gate)
        units = np.sqrt(bounds)
        limits = columns.limits(clip, units, clip * SHRINK, norm=math.inf)
        derivative = GaussianVector(Moves.of(task).vector(clip), bound=n * clip)
        steps = self.step / (task.loss.curvature * bounds)
        penalty = data.penalty.with_intercept()
        w = np.clip(np.zeros(task.d + 1), penalty.low, penalty.high)
        columns.move_to(w)
        for _ in range(self.rounds):
            sums = columns.derivatives(limits)
            moved = penalty.prox(w - steps * sums / n, steps)
            scores = n * np.abs(moved - w) / (steps * units)
            change = derivative.sensitivity.add_remove + _rounding(w / (steps * units), n, clip)
            selection = Selection(Sensitivity(2.0 * change, 4.0 * change))
            j = gate.release("selections", selection, scores[: task.width])
            released = float(gate.release("derivatives", derivative, sums[j] / units[j])) * units[j]
            at = float(penalty.at(j).prox(w[j] - steps[j] * released / n, steps[j]))
            columns.move(j, at - w[j])
            w[j] = at
        noise = steps * units * gate.multiplier("derivatives") * derivative.sensitivity.under(gate.adjacency) / n
        return Solution(w[None, :], np.where(w != 0.0, noise, 0.0)[None, :])


def _rounding(places: Floats, n: int, clip: float) -> float:
    """How much more a row can change a score in float64: a score is a difference of weights, which are public."""
    farthest = float(np.abs(places).max())
    return 2.0**-48 * n * ((farthest if farthest < 1e200 else 1e200) + clip)
