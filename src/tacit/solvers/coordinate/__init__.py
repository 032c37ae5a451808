"""Proximal coordinate descent (DP-CD): the weights are updated one after the other, from one column each.

Algorithm. Release the mean square M_j of every column once (`tacit.solvers.coordinate.columns`). Then, for a fixed
number of passes, update one weight after the other: `w_j <- prox(w_j - t_j (noisy derivative in w_j))` with
t_j = step / (h M_j), h the curvature of the loss, and prox that of the penalties and bounds on w_j. Margins are kept,
so an update costs one column. No step looks at the objective; the order and the number of updates are fixed beforehand.

Privacy
-------
Unit: one row. Neighbours: add-remove or replace-one. Released: the mean squares (unless declared), then P passes, each
the derivatives in all d' weights one after the other; all Gaussian, so the plan is exactly mu-GDP.

- Row accounting (`clipping="row"`). The derivative l' of row i in its margin is clipped to C / |z_i / s|, with released
  or declared units s_j = sqrt(M_j). Over a pass that visits every coordinate once, the changes that the row can make,
  in units of s, are at most C |z_ij / s_j| / |z_i / s|, on any history: their squares add up to C^2. For the intercept
  l' is clipped to a number of its own, L, and its unit is L / (0.35 C), so that it adds (0.35 C)^2. So a pass costs
  what one release of a vector with sensitivity 1.06 C costs, twice that for replace-one: no sqrt(d).
- Coordinate accounting (`clipping="coordinate"`, the paper's). What a row adds to the derivative in w_j is clipped to
  C_j = sqrt(M_j / sum M) C and noised with z C_j. In units of C_j every update has sensitivity 1, so d' updates in any
  order have sensitivity sqrt(d'), and 2 sqrt(d') for replace-one.
- Sums are taken in float64; their rounding is in the sensitivity (`tacit.blocks.Moves`).

Assumptions: rows are bounded before; the scales that bound them were released in the same plan. The order of updates is
drawn without looking at the data, and need not be secret.

Rules (in n, d, epsilon and delta alone). nu = (d + 1) / (n mu); 6 nu^-0.35 passes; C = kappa sqrt(d') with
kappa = 0.13 nu^-0.45, but at most 0.08 / nu and 0.8 / nu^2, so that where nothing can be learned the weights stay near
zero; for the intercept the derivative is clipped to 3 (1 for the logistic loss) but at most n mu / 100; whole steps;
the mean of the iterates after the second half of the passes. Below nu = 0.001 passes and clips grow further, so that
without noise the problem is solved.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from tacit._types import Floats, Integers
from tacit.blocks import SHRINK, Bounded, Moves
from tacit.bounding.magnitudes import LIMIT
from tacit.kernels import coordinate as kernels
from tacit.privacy import Gate, Release
from tacit.privacy.mechanisms import GaussianSequence
from tacit.problems import LOGISTIC, SQUARED, SQUARED_HINGE
from tacit.problems.declared import averaging_rule, declared_size, smoothness_constants
from tacit.problems.task import LinearTask
from tacit.solvers.base import Algorithm, Layout, Serves, Solution, Solver, option, pass_count, word
from tacit.solvers.coordinate.columns import NO_CLIP, Columns, Smoothness, Walk
from tacit.solvers.examples import on_cancer

_MOST_PASSES = 2_000
_INTERCEPT_PART = 0.35  # of the clip: how far a row may move the intercept's derivative, next to all others together


@on_cancer("n_passes=10", score=0.8)
@dataclass(eq=False, repr=False)
class Coordinate(Solver):
    """Proximal coordinate descent (DP-CD): weights are updated one after the other, from one column each.

    Use it for l1 penalties and for bounds on coefficients, which other solvers do not serve, and for the loss
    "squared_hinge" with `adjacency="replace-one"`. It is the default there.

    Privacy: noisy mean squares of the columns, unless they are declared; then noisy derivatives one after the other, of
    which a pass over all columns costs what one release does.

    Parameters
    ----------
    n_passes : float, default=None
        Passes over the columns, rounded to a whole number: at most 100,000. None: a rule in the numbers of rows and
        columns and the budget.
    order : {"permuted", "cyclic", "random"}, default="permuted"
        How a pass goes through the columns: each pass in a new random order, every pass in the order of the table, or
        one random column after another.
    clipping : {"row", "coordinate"}, default="row"
        What is bounded: what a row adds to all columns of a pass together, or, as in the paper on DP-CD, what it adds
        to each column. Random order needs "coordinate".
    clip : float, default=None
        What derivatives are clipped to. None: a rule as above.
    step : float, default=None
        Length of a step, where 1 is the inverse of a column's smoothness. None: 1.
    averaging : {"last", "tail", "periodic"} or int, default=None
        What is returned: the last iterate, the mean of those after the second half of the passes, or the paper's, which
        starts again from the mean of each outer loop; an integer is "periodic" with that many loops. None: "tail".
    smoothness : "private" or array of shape (n_features,), default="private"
        The mean square of each column of the bounded data (near 1 if the data is dense), which sets the steps.
        "private" releases it inside the budget; an array of positive numbers is taken as public.
    """

    name: ClassVar[str] = "coordinate"
    serves: ClassVar[Serves] = Serves(losses=(SQUARED, LOGISTIC, SQUARED_HINGE), penalties=("l2", "l1", "bounds"))

    n_passes: float | None = option(None, pass_count)
    order: str = option("permuted", word("permuted", "cyclic", "random"))
    clipping: str = option("row", word("row", "coordinate"))
    clip: float | None = option(None, declared_size)
    step: float | None = option(None, declared_size)
    averaging: str | int | None = option(None, lambda _, value: averaging_rule(value))
    smoothness: str | Sequence[float] = option("private", lambda _, value: smoothness_constants(value))

    def check(self) -> Self:
        """The same options as plain numbers and words; refuses what no task could have."""
        asked = super().check()
        if (asked.order, asked.clipping) == ("random", "row"):
            raise ValueError(
                "order='random' needs clipping='coordinate': the bound of row clipping needs every coordinate visited"
                " equally often, as order='permuted' and order='cyclic' do"
            )
        return asked

    def at(self, task: LinearTask) -> "_Descent":
        """The descent, with its rules worked out from n, d, mu and what the user set."""
        asked = self.check()
        nu, growth = max(task.nu, 1e-3), max(1.0, math.sqrt(task.calm))
        usual = min(0.13 * nu**-0.45, 0.08 / nu, 0.8 / nu**2) * math.sqrt(task.width)
        count = max(1, round(asked.n_passes or min(_MOST_PASSES, 6.0 * nu**-0.35 * growth)))
        averaging = asked.averaging or "tail"
        loops = 0
        if averaging == "periodic":
            loops = max(1, round(math.sqrt(count)))
        elif isinstance(averaging, int):
            loops = averaging
        return _Descent(
            task,
            Smoothness.of(task, asked.smoothness),
            asked.order,
            asked.clipping,
            passes=count,
            clip=asked.clip or usual * min(growth, NO_CLIP),
            intercept_limit=min(task.loss.slope, LIMIT, task.n * task.budget.mu / 100.0) * min(growth, NO_CLIP),
            step=asked.step or 1.0,
            loops=min(loops, count),
            tail=count - count // 2 if averaging == "tail" else 1,
        )


@dataclass(frozen=True)
class _Descent(Algorithm[LinearTask]):
    """Coordinate descent on one task."""

    layout: ClassVar[Layout] = "columns"

    smoothness: Smoothness
    order: str
    clipping: str
    passes: int
    clip: float
    intercept_limit: (
        float  # on a row's derivative for the intercept: wide, as targets that lean to a side would bias it
    )
    step: float
    loops: int  # of the paper's periodic averaging; 0 for none
    tail: int  # the last passes, whose iterates are averaged; 1 is the last iterate

    def releases(self, share: float) -> tuple[Release, ...]:
        """The smoothness constants, then the passes."""
        first, left = self.smoothness.releases(share)
        return (*first, Release("passes", "gaussian", share=left, count=self.passes))

    def run(self, data: Bounded, gate: Gate) -> Solution:
        """The average of the iterates that was asked for."""
        task = self.task
        columns = Columns(task, data)
        bounds = self.smoothness.constants(columns, gate)
        clipping = _Clipping.of(self, columns, bounds)
        steps = self.step / (task.loss.curvature * bounds)
        rules = kernels.rules(clipping.caps, clipping.units, steps, data.penalty.with_intercept(), task.n)
        w = np.clip(np.zeros(task.d + 1), rules[:, kernels.LOW], rules[:, kernels.HIGH])
        columns.move_to(w)
        average = _Average(self.passes, self.loops, self.tail)
        for done in range(1, self.passes + 1):
            order, start = _order(self, gate), w.copy()
            walk = Walk(columns, clipping.limits, rules, order, w)
            gate.release("passes", clipping.mechanism, len(order), walk)
            if average.add(done, start, order, walk.changes, w):
                columns.move_to(w)
        noise = gate.noise("passes", clipping.mechanism.sensitivity) / task.n
        spread = steps * clipping.units * noise * self._amplification
        if not task.fit_intercept:
            spread[-1] = 0.0
        return Solution(average.value[None, :], spread[None, :])

    @property
    def _amplification(self) -> float:
        """The deviation of a returned weight over that of one step's noise, for an uncorrelated column."""
        held = 1.0 - min(1.0, self.step * self.task.loss.typical / self.task.loss.curvature)
        reach = np.cumsum(held ** np.arange(self.passes))  # of noise k passes before the end, on the sum of iterates
        tail = self.tail if self.loops == 0 else -(-self.passes // self.loops)
        reach[tail:] -= reach[:-tail].copy() if tail < self.passes else 0.0
        return float(np.linalg.norm(reach)) / tail


@dataclass(frozen=True, eq=False)
class _Clipping:
    """How what a row adds is bounded, and the mechanism whose sensitivity that is."""

    units: Floats  # in which derivatives are released
    caps: Floats  # on what a row adds to a derivative
    limits: Floats  # on a row's derivative in its margin
    mechanism: GaussianSequence

    @classmethod
    def of(cls, descent: _Descent, columns: Columns, bounds: Floats) -> "_Clipping":
        """By rows or by coordinates, for columns with these mean squares."""
        task, clip, moves = descent.task, descent.clip, Moves.of(descent.task)
        if descent.clipping == "row":
            most = descent.intercept_limit
            units = np.append(np.sqrt(bounds[: task.d]), most / (_INTERCEPT_PART * clip))
            norm = clip * math.hypot(1.0, _INTERCEPT_PART * task.fit_intercept)
            mechanism = GaussianSequence(moves.columns(norm, clip, task.width), bound=task.n * clip)
            limits = columns.limits(clip, units, most * SHRINK)
            return cls(units, np.full(task.d + 1, math.inf), limits, mechanism)
        units = np.sqrt(bounds / float(bounds[: task.width].sum())) * clip
        mechanism = GaussianSequence(moves.unit_columns(task.width), bound=float(task.n))
        return cls(units, units * SHRINK, columns.limits(math.inf, units, math.inf), mechanism)


def _order(descent: _Descent, gate: Gate) -> Integers:
    """The coordinates of one pass."""
    width = descent.task.width
    if descent.order == "cyclic":
        return np.arange(width, dtype=np.int64)
    if descent.order == "random":
        return gate.publicly(width, width)
    return gate.publicly(width)


class _Average:
    """The average of iterates that is returned: over the last passes, or over each of the paper's outer loops.

    An outer loop starts where the last one's average left it, and averages the weights after every single update.
    """

    def __init__(self, passes: int, loops: int, tail: int) -> None:
        self._passes, self._loops, self._tail = passes, loops, tail
        self._total: Floats | float = 0.0
        self._count = 0
        self.value = np.empty(0)

    def add(self, done: int, start: Floats, order: Integers, changes: Floats, w: Floats) -> bool:
        """Take in a pass from `start` to `w`; whether it moved `w`, because an outer loop is over."""
        if self._loops == 0:
            if done > self._passes - self._tail:
                self._take(w, 1)
                self.value = np.asarray(self._total) / self._count
            return False
        sum_over_updates = start * len(order)
        np.add.at(sum_over_updates, order, changes * np.arange(len(order), 0, -1))  # a change stays until the end
        self._take(sum_over_updates, len(order))
        if done * self._loops // self._passes == (done - 1) * self._loops // self._passes:
            return False
        self.value = np.asarray(self._total) / self._count
        self._total, self._count = 0.0, 0
        w[:] = self.value
        return True

    def _take(self, total: Floats, count: int) -> None:
        self._total = self._total + total
        self._count += count
