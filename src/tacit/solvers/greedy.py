"""`solver="greedy"`: greedy coordinate descent (DP-GCD): pick one weight privately, move it, and so on.

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

Assumptions: rows are bounded by the driver; the scales it used were released in the same plan.

Rules (in n, d, epsilon and delta alone). n mu / 50 rounds: so many weights can be told from noise, if there are as
many; at least 3 and at most 4 for each weight, more where there is little noise. C = 2 (on entries of unit scale and a
target of unit scale), less below n mu = 100, so that where nothing can be learned the weights stay near zero.
Selections get 0.7 of the budget: they have to be right among d, a derivative only needs to be near.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tacit._types import Floats
from tacit.privacy import Gate, Plan, Release, float_sum_slack
from tacit.privacy.checks import Adjacency
from tacit.privacy.mechanisms import GaussianVector, Selection, Sensitivity
from tacit.problems import SQUARED, Loss, Penalty
from tacit.solvers import smoothness
from tacit.solvers.columns import Columns
from tacit.solvers.passes import SHRINK
from tacit.solvers.task import Layout, PenaltyName, Rows, Solution, Task

_SELECTION = 0.7
_MOST_VISITS = 4  # of a weight on average, under usual noise
_NO_CLIP = 1e6  # times the usual clip: no gradient of a standardised row is that long


@dataclass(frozen=True)
class Settings:
    """The rules, worked out for one task."""

    rounds: int
    clip: float
    step: float

    @classmethod
    def of(cls, task: Task) -> "Settings":
        """From n, d, mu and what the user set."""
        options, signal = task.options, task.n * task.budget.mu
        growth = max(1.0, math.sqrt(task.calm))
        most = _MOST_VISITS * task.width * min(growth, 20.0)
        return cls(
            rounds=options.n_iter or round(min(max(signal / 50.0, 3.0), max(most, 3.0))),
            clip=options.clip or min(2.0, signal / 50.0) * min(growth, _NO_CLIP),
            step=options.step or 1.0,
        )


@dataclass(frozen=True)
class GreedySolver:
    """Greedy coordinate descent with private selections."""

    name: ClassVar[str] = "greedy"
    losses: ClassVar[tuple[Loss, ...]] = (SQUARED,)
    multiclass: ClassVar[tuple[Loss, ...]] = ()
    adjacencies: ClassVar[tuple[Adjacency, ...]] = ("add-remove", "replace-one")
    penalties: ClassVar[tuple[PenaltyName, ...]] = ("l2", "l1", "bounds")
    options: ClassVar[tuple[str, ...]] = ("n_iter", "clip", "step", "smoothness")
    layout: ClassVar[Layout] = "columns"

    def plan(self, task: Task, share: float) -> Plan:
        """The smoothness constants, then a selection and a derivative in every round."""
        first, left = smoothness.releases(task, share)
        rounds = Settings.of(task).rounds
        return Plan(
            *first,
            Release("selections", "exponential", share=_SELECTION * left, count=rounds),
            Release("derivatives", "gaussian", share=(1.0 - _SELECTION) * left, count=rounds),
        )

    def run(self, task: Task, rows: Rows, penalty: Penalty, gate: Gate) -> Solution:
        """The last iterate."""
        settings = Settings.of(task)
        n, clip = task.n, settings.clip
        columns = Columns(task, rows)
        bounds = smoothness.constants(task, columns, gate)
        units = np.sqrt(bounds)
        limits = columns.limits(clip, units, clip * SHRINK, norm=math.inf)
        size = clip + float_sum_slack(n, clip, columns.depth)
        derivative = GaussianVector(Sensitivity.vector(size), bound=n * clip)
        steps = settings.step / (task.loss.curvature * bounds)
        penalty = penalty.with_intercept()
        w = np.clip(np.zeros(task.d + 1), penalty.low, penalty.high)
        columns.move_to(w)
        for _ in range(settings.rounds):
            sums = columns.derivatives(limits)
            moved = penalty.prox(w - steps * sums / n, steps)
            scores = n * np.abs(moved - w) / (steps * units)
            change = size + _rounding(w / (steps * units), n, clip)
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
