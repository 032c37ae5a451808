"""`Text`: gradient steps for sparse rows of two classes, rescaled by the sizes of their columns.

Rows are clipped to norm 1. Noise of deviation s in every weight is then noise of deviation s in a margin, however many
columns there are.

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
- The sums are exact; those of gradients are multiplied by b afterwards, which is one rounding. Each row's margin and
  gradient come from a loop over that row alone.

The steps get shorter where the gradients show that the loss is curved more than they can follow. That is decided from
the released gradients alone.

Assumptions: the rows are bounded beforehand; the scales for that are releases of the same plan.

Rules (in n, d, epsilon and delta alone). Of rho, 0.01 goes to the class share, 0.05 to the threshold, and of the rest
0.05 to m and 0.005 to the norms. q = 1.7 s sqrt(2 ln d), s the deviation of m; h = 0.1; T = 30; momentum 0.5. A step
leaves noise of deviation 2 kappa in each weight at the end, kappa = 0.35 min(1, n sqrt(2 rho) / 4,000), and is at most
320 / n long. A few steps from zero keep the weights small by themselves, so a tenth of the penalty that C asks for is
enough. It is put on the weights of x b / R, and raised where it would be less than a tenth of the penalty on x. All
weights are shrunk in the end, as in `tacit.solvers.gradient`. Above n sqrt(2 rho) = 100,000 there is little noise: b,
R, c, h and the tenth go to 1, the learned intercept takes the place of the threshold, and there are more steps, until
the result is that of plain logistic regression. For replace-one n sqrt(2 rho) counts half.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tacit._types import Floats
from tacit.blocks import Bounded, Moves
from tacit.kernels.rows import Residuals
from tacit.privacy import Gate, Release
from tacit.privacy.mechanisms import GaussianVector
from tacit.problems import LOGISTIC
from tacit.problems.task import LinearTask
from tacit.solvers import text
from tacit.solvers.base import Algorithm, Serves, Solution, Solver, iterations, option

WIDE = 1_000
"""Sparse rows with more columns than this are taken for text by "auto"."""

_STEPS = 30
_MOMENTUM = 0.5
_CALM = 1e5
_DOUBT = 1.7
_BIAS = 0.1
_KAPPA, _FULL = 0.35, 4_000.0
_LONGEST = 320.0
_SIZES, _NORMS = 0.05, 0.005
_PENALTY = 0.1


@dataclass(eq=False, repr=False)
class Text(Solver):
    """Noisy gradient steps for text: two classes, and sparse rows with many columns, most of which are rare.

    Common words are made small first, by their released sizes, so that rare ones can be heard. It is the default for
    sparse rows with more than 1,000 columns, unless the budget is so small that `tacit.solvers.OneShot` does as well.

    Privacy: noisy sizes of the columns, a noisy sum of norms, and a noisy sum of clipped gradients in each step; for an
    intercept also a noisy count, and a threshold that is drawn privately.

    Parameters
    ----------
    n_iter : int, optional
        Steps. By default 30, and more where there is little noise.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from tacit import LogisticRegression
    >>> from tacit.solvers import Text
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, size=2_000)
    >>> words = rng.integers(2, 1_500, size=(2_000, 3))  # at random; the first two words tell the classes apart
    >>> indices = np.column_stack([y, words]).ravel()
    >>> X = csr_array((np.ones(8_000), indices, np.arange(0, 8_001, 4)), shape=(2_000, 1_500))
    >>> model = LogisticRegression(epsilon=3.0, row_norm=2.0, solver=Text(n_iter=20)).fit(X, y)
    >>> model.score(X, y) > 0.8
    True
    """

    name: ClassVar[str] = "text"
    serves: ClassVar[Serves] = Serves(losses=(LOGISTIC,), sparse_only=True)

    n_iter: int | None = option(None, iterations(name))

    def at(self, task: LinearTask) -> "_Steps":
        """The rules, from n, d, epsilon and delta alone, and the steps that were asked for."""
        calm = max(1.0, text.signal(task) / _CALM)
        steps = self.check().n_iter or round(_STEPS * min(20.0, calm**0.75))
        return _Steps(task, steps, fade=calm**-2.0)


@dataclass(frozen=True)
class _Steps(Algorithm[LinearTask]):
    """Steps on rescaled rows."""

    steps: int
    fade: float  # the power of all that is there because of noise: 1, and towards 0 where there is little

    def releases(self, share: float) -> tuple[Release, ...]:
        """The class share, the sizes, the norms, the gradients, the threshold."""
        return text.planned(
            self.task,
            share,
            Release("column sizes", "gaussian", share=_SIZES),
            Release("row norms", "gaussian", share=_NORMS),
            Release("gradients", "gaussian", share=1.0 - _SIZES - _NORMS, count=self.steps),
        )

    def run(self, data: Bounded, gate: Gate) -> Solution:
        """The last iterate."""
        task, n, d = self.task, self.task.n, self.task.d
        unit = text.UnitRows(task, data)
        share = unit.class_share(gate)
        b = self._column_weights(unit, gate)
        norms = unit.weighted(b)
        radius = self._typical_norm(unit.squares(norms), gate)
        descent = _Descent(self, unit, share, b, unit.scaled(norms, radius), gate)
        # The strength of the penalty is meant for bounded rows, which are sqrt(d) long.
        l2 = _PENALTY**self.fade * data.penalty.l2 * (n / d)
        w = descent.run(gate, l2 * np.maximum(1.0, np.square(b / radius)))
        # The known variance that the noise adds to a margin would make probabilities too sure.
        w /= math.sqrt(1.0 + math.pi / 8.0 * descent.noise**2)
        to_bounded = b / (radius * math.sqrt(d))
        weights, noise = np.zeros((1, d + 1)), np.zeros((1, d + 1))
        weights[0, :-1] = w[:-1] * to_bounded
        noise[0, :-1] = descent.noise * to_bounded
        if task.fit_intercept:
            learned = share.offset + descent.bias * w[-1]
            drawn = -unit.threshold(gate, weights[0, :-1])
            weights[0, -1] = self.fade * drawn + (1.0 - self.fade) * learned
        return Solution(weights, noise)

    def _column_weights(self, unit: text.UnitRows, gate: Gate) -> Floats:
        """b, from the released sizes of the columns."""
        n = self.task.n
        sensitivity = Moves.exact(n).non_negative(1.0)
        sizes = gate.release("column sizes", GaussianVector(sensitivity, bound=n), unit.sizes())
        deviation = gate.noise("column sizes", sensitivity)
        doubt = max(_DOUBT * deviation * math.sqrt(2.0 * math.log(max(self.task.d, 2))), 1e-9)
        sizes = np.maximum(sizes, 0.0)
        return ((doubt + sizes.min()) / (doubt + sizes)) ** self.fade

    def _typical_norm(self, squares: float, gate: Gate) -> float:
        """R, from the released sum of squared norms, which counts as no less than its noise."""
        n = self.task.n
        sensitivity = Moves.exact(n).between(0.0, 1.0)
        found = float(gate.release("row norms", GaussianVector(sensitivity, bound=n), squares))
        deviation = gate.noise("row norms", sensitivity)
        return min(1.0, math.sqrt(max(found, deviation, 1e-9) / n)) ** self.fade


class _Descent:
    """Gradient steps with momentum, from zero; the intercept is last."""

    def __init__(
        self, rules: _Steps, unit: text.UnitRows, share: text.ClassShare, b: Floats, factors: Floats, gate: Gate
    ) -> None:
        task = rules.task
        self._task, self._unit, self._b, self._factors = task, unit, b, factors
        self._offset, self._clip = share.offset, share.clip**rules.fade
        self._steps = rules.steps
        self._momentum = max(_MOMENTUM, 1.0 - _STEPS * (1.0 - _MOMENTUM) / rules.steps)
        self.bias = _BIAS**rules.fade if task.fit_intercept else 0.0
        size = self._clip * math.hypot(1.0, self.bias)
        moved = Moves.exact(task.n).vector(size)
        self._mechanism = GaussianVector(moved, bound=task.n * size)
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
            offset = self._offset + self.bias * at[-1]
            total = self._unit.residuals(self._factors, Residuals(at[:-1] * self._b, self.bias, offset, self._clip))
            total[:-1] *= self._b
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
