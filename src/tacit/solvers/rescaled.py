"""The form of `solver="gradient"` for text: full gradient steps on rows rescaled by the sizes of their columns.

It serves two classes on sparse rows with more than `WIDE` columns. Rows have norm 1, so noise of deviation s in every
weight is noise of deviation s in a margin, however many columns there are.

Algorithm. Release the share p of the second class, the sizes m = sum |x| of the columns, and the sum of squared norms
of the rows x b, where b = (q + min m) / (q + m) makes common words small. Take T steps of gradient descent with
momentum on the rows x b / R, clipped to norm 1, R their typical norm; start from the log-odds of p. Draw a threshold.
The weights times b / R are weights on x: prediction is linear in the user's rows.

Privacy
-------
Unit: one row. Neighbours: add-remove or replace-one. Released: the class share and the threshold (`tacit.solvers.text`,
only with an intercept), and Gaussian sums over the rows:

- m, rows of norm 1: 1, and sqrt(2) for replace-one, as no entry of |x| is negative.
- squared norms, between 0 and 1, as b <= 1: 1 for both.
- T gradients: residuals clipped to c = max(p, 1 - p) times rows of norm 1 with the intercept's entry h after it:
  c sqrt(1 + h^2), and twice that.
- The sums are taken in float64; their rounding is in the sensitivity (`float_sum_slack`; twice that for gradients, as
  sums are multiplied by b). Each row's margin and gradient come from a loop over that row alone.

The length of a step falls where released gradients show more curvature than it can follow: a function of what was
released.

Assumptions: rows are bounded by the driver; the scales it used were released in the same plan.

Rules (in n, d, epsilon and delta alone). Of rho, 0.01 goes to the class share, 0.05 to the threshold, and of the rest
0.05 to m and 0.005 to the norms. q = 1.7 s sqrt(2 ln d), s the deviation of m; h = 0.1; T = 30; momentum 0.5. A step
leaves noise of deviation 2 kappa in each weight at the end, kappa = 0.35 min(1, n sqrt(2 rho) / 4,000), and is at most
320 / n long. Few steps, each as long as noise allows, hold the weights by themselves: a tenth of the penalty that C
asks for is enough. It is on the weights of x b / R, but for no weight on x is it less than on x itself. All weights are
shrunk in the end, as in `tacit.solvers.gradient`. Above n sqrt(2 rho) = 100,000 there is little noise to hold against:
b, R, c, h and the part of the penalty go to 1, the threshold gives way to the intercept that was learned, and there are
more steps, until the result is that of plain logistic regression. For replace-one n sqrt(2 rho) counts half.
"""

import math
from dataclasses import dataclass

import numpy as np

from tacit._types import Floats
from tacit.privacy import Gate, Plan, Release, float_sum_slack
from tacit.privacy.mechanisms import GaussianVector, Sensitivity
from tacit.problems import LOGISTIC, Penalty
from tacit.solvers import text
from tacit.solvers.task import Rows, Solution, Task

WIDE = 1_000
"""Sparse rows with more columns than this are text-like."""

_STEPS = 30
_MOMENTUM = 0.5
_CALM = 1e5
_DOUBT = 1.7
_BIAS = 0.1
_KAPPA, _FULL = 0.35, 4_000.0
_LONGEST = 320.0
_SIZES, _NORMS = 0.05, 0.005
_PENALTY = 0.1


def serves(task: Task) -> bool:
    """Whether this form is the one for the task."""
    return task.sparse and task.loss == LOGISTIC and task.outputs == 1 and task.d > WIDE


@dataclass(frozen=True)
class Settings:
    """The rules, worked out for one task."""

    steps: int
    fade: float  # the power of what holds against noise: 1, and towards 0 where there is little

    @classmethod
    def of(cls, task: Task) -> "Settings":
        """From n, d, epsilon and delta alone."""
        calm = max(1.0, text.signal(task) / _CALM)
        return cls(task.options.n_iter or round(_STEPS * min(20.0, calm**0.75)), fade=calm**-2.0)


def plan(task: Task, share: float) -> Plan:
    """The class share, the sizes, the norms, the gradients, the threshold."""
    return text.planned(
        task,
        share,
        Release("column sizes", "gaussian", share=_SIZES),
        Release("row norms", "gaussian", share=_NORMS),
        Release("gradients", "gaussian", share=1.0 - _SIZES - _NORMS, count=Settings.of(task).steps),
    )


def run(task: Task, rows: Rows, penalty: Penalty, gate: Gate) -> Solution:
    """The last iterate."""
    n, d, settings = task.n, task.d, Settings.of(task)
    unit = text.UnitRows(task, rows)
    share = unit.class_share(gate)
    b = _released_weights(task, unit, settings, gate)
    norms = unit.weighted(b)
    radius = _released_radius(task, unit.squares(norms), settings, gate)
    descent = _Descent(task, unit, share, b, unit.scaled(norms, radius), settings, gate)
    # The rows of the driver are sqrt(d) long, which the strength of the penalty is for.
    l2 = _PENALTY**settings.fade * penalty.l2 * (n / d)
    w = descent.run(gate, l2 * np.maximum(1.0, np.square(b / radius)))
    # What the noise, which is known, adds to the variance of a margin would make probabilities too sure.
    w /= math.sqrt(1.0 + math.pi / 8.0 * descent.noise**2)
    to_driver = b / (radius * math.sqrt(d))
    weights, noise = np.zeros((1, d + 1)), np.zeros((1, d + 1))
    weights[0, :-1] = w[:-1] * to_driver
    noise[0, :-1] = descent.noise * to_driver
    if task.fit_intercept:
        learned = share.offset + descent.bias * w[-1]
        drawn = -unit.threshold(gate, weights[0, :-1])
        weights[0, -1] = settings.fade * drawn + (1.0 - settings.fade) * learned
    return Solution(weights, noise)


def _released_weights(task: Task, unit: text.UnitRows, settings: Settings, gate: Gate) -> Floats:
    """b, of the columns."""
    slack = float_sum_slack(task.n, 1.0, task.n)
    sensitivity = Sensitivity(1.0 + slack, math.sqrt(2.0) + slack)
    sizes = gate.release("column sizes", GaussianVector(sensitivity, bound=task.n), unit.sizes())
    deviation = gate.noise("column sizes", sensitivity)
    doubt = max(_DOUBT * deviation * math.sqrt(2.0 * math.log(max(task.d, 2))), 1e-9)
    sizes = np.maximum(sizes, 0.0)
    return ((doubt + sizes.min()) / (doubt + sizes)) ** settings.fade


def _released_radius(task: Task, squares: float, settings: Settings, gate: Gate) -> float:
    """R: the typical norm of a row, no less than its noise."""
    slack = float_sum_slack(task.n, 1.0, 1)
    sensitivity = Sensitivity.non_negative(1.0 + slack)
    found = float(gate.release("row norms", GaussianVector(sensitivity, bound=task.n), squares))
    deviation = gate.noise("row norms", sensitivity)
    return min(1.0, math.sqrt(max(found, deviation, 1e-9) / task.n)) ** settings.fade


class _Descent:
    """Gradient steps with momentum, from zero; the intercept is last."""

    def __init__(
        self,
        task: Task,
        unit: text.UnitRows,
        share: text.ClassShare,
        b: Floats,
        factors: Floats,
        settings: Settings,
        gate: Gate,
    ) -> None:
        self._task, self._unit, self._b, self._factors = task, unit, b, factors
        self._offset, self._clip = share.offset, share.clip**settings.fade
        self._steps = settings.steps
        self._momentum = max(_MOMENTUM, 1.0 - _STEPS * (1.0 - _MOMENTUM) / settings.steps)
        self.bias = _BIAS**settings.fade if task.fit_intercept else 0.0
        size = self._clip * math.hypot(1.0, self.bias)
        slack = 2.0 * float_sum_slack(task.n, size, task.n)
        self._mechanism = GaussianVector(Sensitivity.vector(size + slack), bound=task.n * size)
        self._deviation = gate.noise("gradients", self._mechanism.sensitivity)
        one = self._deviation / math.sqrt(self._steps)  # the noise of one release with the budget of all
        kappa = _KAPPA * min(1.0, task.n * size / max(one, 1e-300) / _FULL)
        self._rate = min(kappa / max(one * self._steps, 1e-300), _LONGEST / task.n)

    @property
    def noise(self) -> float:
        """The deviation that noise leaves in each weight, if nothing draws it back."""
        return self._rate / (1.0 - self._momentum) * self._deviation * math.sqrt(self._steps)

    def run(self, gate: Gate, penalty: Floats) -> Floats:
        """The last iterate; `penalty` is next to the sum of losses."""
        d = self._task.d
        w = np.zeros(d + 1)
        at, before, slope = w, None, w
        for _ in range(self._steps):
            total = np.empty(d + 1)
            offset = self._offset + self.bias * at[-1]
            sums, total[-1] = self._unit.residuals(self._factors, at[:-1] * self._b, self.bias, offset, self._clip)
            np.multiply(sums, self._b, out=total[:-1])
            total = gate.release("gradients", self._mechanism, total)
            total[:-1] -= penalty * at[:-1]
            if before is not None:
                self._follow(at - before, slope - total)
            before, slope = at, total
            moved = at + self._rate * total
            if not self._task.fit_intercept:
                moved[-1] = 0.0
            at, w = moved + self._momentum * (moved - w), moved
        return w

    def _follow(self, move: Floats, change: Floats) -> None:
        """Shorten the steps where the slope changed by more than they can follow, noise aside."""
        length = float(np.linalg.norm(move))
        if length > 0.0:
            curvature = float(move @ change) / length**2 - 4.0 * self._deviation / length
            self._rate = min(self._rate, 1.0 / curvature) if curvature > 0.0 else self._rate
