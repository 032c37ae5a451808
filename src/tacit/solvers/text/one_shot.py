"""`OneShot`: a naive-Bayes-like rule from one noisy sum over the rows, for little budget or few rows.

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
- The sums are exact. What is cut off the 2 d entries of each of two rows may lie in opposite directions, which is added
  for replace-one: a step each.

Assumptions: the rows are bounded beforehand; the scales for that are releases of the same plan.

Rules (in n, d, epsilon and delta alone). Of rho, 0.01 goes to the class share and 0.05 to the threshold.
k = 3 s sqrt(2 ln d) / c, s the deviation of u: three times the largest of d sums of noise alone.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tacit.blocks import Bounded, Moves
from tacit.privacy import Gate, Release
from tacit.privacy.mechanisms import GaussianVector
from tacit.problems import LOGISTIC
from tacit.problems.task import LinearTask
from tacit.solvers import text
from tacit.solvers.base import Algorithm, Serves, Solution, Solver
from tacit.solvers.examples import on_cancer

_RATIO = 0.1  # a: what m is multiplied by, next to u
_DOUBT = 3.0


@on_cancer(score=0.7)
@dataclass(eq=False, repr=False)
class OneShot(Solver):
    """A naive-Bayes-like rule for two classes, from one noisy sum.

    It is for text, or other rows with many columns, where the budget or the number of rows is too small for steps of
    any kind. It has no use for a penalty: `C` is ignored. Where there is more to learn from, `tacit.solvers.Text` finds
    better weights.

    Privacy: one noisy sum over rows of norm 1; for an intercept also a noisy count, and a threshold that is drawn
    privately.
    """

    name: ClassVar[str] = "one-shot"
    serves: ClassVar[Serves] = Serves(losses=(LOGISTIC,))

    def at(self, task: LinearTask) -> "_Rule":
        """The rule, which has no numbers of its own to work out."""
        return _Rule(task)


@dataclass(frozen=True)
class _Rule(Algorithm[LinearTask]):
    """One release of sums, and the weights they give."""

    def releases(self, share: float) -> tuple[Release, ...]:
        """The class share, the sums, the threshold."""
        return text.planned(self.task, share, Release("sums", "gaussian", share=1.0))

    def run(self, data: Bounded, gate: Gate) -> Solution:
        """The weights of the rule."""
        task = self.task
        unit = text.UnitRows(task, data)
        share = unit.class_share(gate)
        clip, n = share.clip, task.n
        size = math.hypot(clip, _RATIO)
        cut = 2.0 * math.sqrt(2.0 * task.d) * unit.step
        sensitivity = Moves.exact(n).apart(size, 2.0 * clip + cut)
        mechanism = GaussianVector(sensitivity, bound=n * size)
        total, sizes = gate.release("sums", mechanism, unit.sums(share.p, _RATIO))
        deviation = gate.noise("sums", sensitivity)
        doubt = _DOUBT * deviation * math.sqrt(2.0 * math.log(max(task.d, 2))) / clip
        divisor = np.maximum(sizes / _RATIO, 0.0) + doubt
        # Bounded rows are sqrt(d) long, not 1. A column without entries, and without noise, has no weight.
        per_unit = np.where(divisor > 0.0, 1.0 / np.maximum(divisor, 1e-300), 0.0) / (share.slope * math.sqrt(task.d))
        coef = total * per_unit
        weights, noise = np.zeros((1, task.d + 1)), np.zeros((1, task.d + 1))
        weights[0, :-1] = coef
        # To first order: the noise of u, and that of m where it is above 0.
        of_sizes = np.where(sizes > 0.0, total / np.maximum(divisor, 1e-300) / _RATIO, 0.0)
        noise[0, :-1] = deviation * per_unit * np.hypot(1.0, of_sizes)
        if task.fit_intercept:
            weights[0, -1] = -unit.threshold(gate, coef)
        return Solution(weights, noise)
