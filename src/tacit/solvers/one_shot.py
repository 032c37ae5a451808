"""`solver="one-shot"`: a naive-Bayes-like rule from one noisy sum over the rows, for little budget or few rows.

Algorithm. Release the share p of the second class. Release, at once, u = sum (class - p) x and m = sum |x| over rows
clipped to norm 1. The weight of a column is u / (m + k) / (p (1 - p)), near the difference of the logarithms of its
rates in the two classes where it is common, and near 0 where its size is lost in the noise, k. Draw a threshold. This
is no optimiser: without noise it is that rule, not the minimiser of a loss, and there is no penalty.

Dense columns are centred, so they have no size; there m = sum x^2 and the rule is that of independent normal columns.

Privacy
-------
Unit: one row. Neighbours: add-remove or replace-one. Released: the class share and the threshold (`tacit.solvers.text`,
only with an intercept), and one Gaussian array (u, a m), a = 0.1, of which a row is (r x, a |x|) with |x| <= 1 and
|r| <= c = max(p, 1 - p).

- Add-remove: sqrt(c^2 + a^2).
- Replace-one: 2 c. With t = |x|.|z|, |r x - s z|^2 <= 2 c^2 (1 + t) and ||x| - |z||^2 <= 2 (1 - t), and squares are at
  most twice as far apart as sizes are; so the square is at most 2 c^2 (1 + t) + 8 a^2 (1 - t), which is 4 c^2 at t = 1
  and no more at t = 0, as a <= c / 2. Shorter rows: the bound is convex in each norm, and c^2 + 4 a^2 where one is 0.
- The sums are taken in float64; their rounding is in the sensitivity (`float_sum_slack`).

Assumptions: rows are bounded by the driver; the scales it used were released in the same plan.

Rules (in n, d, epsilon and delta alone). Of rho, 0.01 goes to the class share and 0.05 to the threshold.
k = 3 s sqrt(2 ln d) / c, s the deviation of u: what the largest of d sums of noise alone would be, three times.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tacit.privacy import Gate, Plan, Release, float_sum_slack
from tacit.privacy.checks import Adjacency
from tacit.privacy.mechanisms import GaussianVector, Sensitivity
from tacit.problems import LOGISTIC, Loss, Penalty
from tacit.solvers import text
from tacit.solvers.task import Layout, PenaltyName, Rows, Solution, Task

_RATIO = 0.1  # of what m is worth to u
_DOUBT = 3.0


@dataclass(frozen=True)
class OneShotSolver:
    """A naive-Bayes-like rule from one noisy sum."""

    name: ClassVar[str] = "one-shot"
    losses: ClassVar[tuple[Loss, ...]] = (LOGISTIC,)
    multiclass: ClassVar[tuple[Loss, ...]] = ()
    adjacencies: ClassVar[tuple[Adjacency, ...]] = ("add-remove", "replace-one")
    penalties: ClassVar[tuple[PenaltyName, ...]] = ("l2",)
    options: ClassVar[tuple[str, ...]] = ()
    layout: ClassVar[Layout] = "rows"

    def plan(self, task: Task, share: float) -> Plan:
        """The class share, the sums, the threshold."""
        return text.planned(task, share, Release("sums", "gaussian", share=1.0))

    def run(self, task: Task, rows: Rows, penalty: Penalty, gate: Gate) -> Solution:  # noqa: ARG002
        """The rule; it has no use for a penalty."""
        unit = text.UnitRows(task, rows)
        share = unit.class_share(gate)
        clip, n = share.clip, task.n
        size = math.hypot(clip, _RATIO)
        slack = float_sum_slack(n, size, n)
        sensitivity = Sensitivity(size + slack, 2.0 * clip + slack)
        mechanism = GaussianVector(sensitivity, bound=n * size)
        total, sizes = gate.release("sums", mechanism, unit.sums(share.p, _RATIO))
        deviation = gate.noise("sums", sensitivity)
        doubt = _DOUBT * deviation * math.sqrt(2.0 * math.log(max(task.d, 2))) / clip
        divisor = np.maximum(sizes / _RATIO, 0.0) + doubt
        # Rows of the driver are sqrt(d) long, not 1. A column without entries, and without noise, has no weight.
        per_unit = np.where(divisor > 0.0, 1.0 / np.maximum(divisor, 1e-300), 0.0) / (share.slope * math.sqrt(task.d))
        coef = total * per_unit
        weights, noise = np.zeros((1, task.d + 1)), np.zeros((1, task.d + 1))
        weights[0, :-1] = coef
        # To first order: of u, and of m where it is above 0.
        of_sizes = np.where(sizes > 0.0, total / np.maximum(divisor, 1e-300) / _RATIO, 0.0)
        noise[0, :-1] = deviation * per_unit * np.hypot(1.0, of_sizes)
        if task.fit_intercept:
            weights[0, -1] = -unit.threshold(gate, coef)
        return Solution(weights, noise)
