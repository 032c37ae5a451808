"""`solver="coordinate"`: noisy proximal coordinate descent (DP-CD), one column at a time.

Algorithm. Release the mean square M_j of every column once (`tacit.solvers.smoothness`). Then, for a fixed number of
passes, update one weight after the other: `w_j <- prox(w_j - t_j (noisy derivative in w_j))` with t_j = step / (h M_j),
h the curvature of the loss, and prox that of the penalties and bounds on w_j. Margins are kept, so an update costs one
column. No step looks at the objective; the order and the number of updates are fixed beforehand.

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
- Sums are taken in float64; their rounding is in the sensitivity (`float_sum_slack`).

Assumptions: rows are bounded by the driver; the scales it used were released in the same plan. The order of updates is
drawn without looking at the data, and need not be secret.

Rules (in n, d, epsilon and delta alone). nu = (d + 1) / (n mu); 6 nu^-0.35 passes; C = kappa sqrt(d') with
kappa = 0.13 nu^-0.45, but at most 0.08 / nu and 0.8 / nu^2, so that where nothing can be learned the weights stay near
zero; for the intercept the derivative is clipped to 3 (1 for the logistic loss) but at most n mu / 100; whole steps;
the mean of the iterates after the second half of the passes. Below nu = 0.001 passes and clips grow further, so that
without noise the problem is solved.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tacit._types import Floats, Integers
from tacit.kernels import coordinate as kernels
from tacit.preprocessing.magnitudes import LIMIT
from tacit.privacy import Gate, Plan, Release, float_sum_slack
from tacit.privacy.checks import Adjacency
from tacit.privacy.mechanisms import GaussianSequence, Sensitivity
from tacit.problems import LOGISTIC, SQUARED, SQUARED_HINGE, Loss, Penalty
from tacit.solvers import smoothness
from tacit.solvers.columns import Columns, Walk
from tacit.solvers.passes import SHRINK
from tacit.solvers.task import Layout, PenaltyName, Rows, Solution, Task

_MOST_PASSES = 2_000
_INTERCEPT_PART = 0.35  # of the clip: how far a row may move the intercept's derivative, next to all others together
"""What a row's derivative is clipped to for the intercept: wide, as targets that lean to one side would bias it."""
_NO_CLIP = 1e6  # times the usual clip: no gradient of a standardised row is that long


@dataclass(frozen=True)
class Settings:
    """The rules, worked out for one task."""

    passes: int
    clip: float
    intercept_limit: float  # what a row's derivative is clipped to for the intercept
    step: float
    loops: int  # of the paper's periodic averaging; 0 for none
    tail: int  # the last passes, whose iterates are averaged; 1 is the last iterate

    @classmethod
    def of(cls, task: Task) -> "Settings":
        """From n, d, mu and what the user set."""
        options = task.options
        if options.order == "random" and options.clipping == "row":
            raise ValueError(
                "order='random' does not serve clipping='row', whose bound needs every coordinate visited once in a"
                " pass; use order='permuted' or 'cyclic', or clipping='coordinate'"
            )
        nu, growth = max(task.nu, 1e-3), max(1.0, math.sqrt(task.calm))
        usual = min(0.13 * nu**-0.45, 0.08 / nu, 0.8 / nu**2) * math.sqrt(task.width)
        wanted = options.n_passes or min(_MOST_PASSES, 6.0 * nu**-0.35 * growth)
        passes = max(1, round(wanted))
        averaging = options.averaging or "tail"
        loops = 0
        if averaging == "periodic":
            loops = max(1, round(math.sqrt(passes)))
        elif isinstance(averaging, int):
            loops = averaging
        return cls(
            passes,
            clip=options.clip or usual * min(growth, _NO_CLIP),
            intercept_limit=min(task.loss.slope, LIMIT, task.n * task.budget.mu / 100.0) * min(growth, _NO_CLIP),
            step=options.step or 1.0,
            loops=min(loops, passes),
            tail=passes - passes // 2 if averaging == "tail" else 1,
        )

    def amplification(self, loss: Loss) -> float:
        """The deviation of a returned weight over that of one step's noise, for an uncorrelated column."""
        held = 1.0 - min(1.0, self.step * loss.typical / loss.curvature)
        reach = np.cumsum(held ** np.arange(self.passes))  # of noise k passes before the end, on the sum of iterates
        tail = self.tail if self.loops == 0 else -(-self.passes // self.loops)
        reach[tail:] -= reach[:-tail].copy() if tail < self.passes else 0.0
        return float(np.linalg.norm(reach)) / tail


@dataclass(frozen=True)
class CoordinateSolver:
    """Noisy proximal coordinate descent."""

    name: ClassVar[str] = "coordinate"
    losses: ClassVar[tuple[Loss, ...]] = (SQUARED, LOGISTIC, SQUARED_HINGE)
    multiclass: ClassVar[tuple[Loss, ...]] = ()
    adjacencies: ClassVar[tuple[Adjacency, ...]] = ("add-remove", "replace-one")
    penalties: ClassVar[tuple[PenaltyName, ...]] = ("l2", "l1", "bounds")
    options: ClassVar[tuple[str, ...]] = (
        "n_passes",
        "order",
        "clipping",
        "clip",
        "step",
        "averaging",
        "smoothness",
    )
    layout: ClassVar[Layout] = "columns"

    def plan(self, task: Task, share: float) -> Plan:
        """The smoothness constants, then the passes."""
        first, left = smoothness.releases(task, share)
        return Plan(*first, Release("passes", "gaussian", share=left, count=Settings.of(task).passes))

    def run(self, task: Task, rows: Rows, penalty: Penalty, gate: Gate) -> Solution:
        """The average of the iterates that was asked for."""
        settings = Settings.of(task)
        columns = Columns(task, rows)
        bounds = smoothness.constants(task, columns, gate)
        clipping = _Clipping.of(task, settings, columns, bounds)
        steps = settings.step / (task.loss.curvature * bounds)
        rules = kernels.rules(clipping.caps, clipping.units, steps, penalty.with_intercept(), task.n)
        w = np.clip(np.zeros(task.d + 1), rules[:, kernels.LOW], rules[:, kernels.HIGH])
        columns.move_to(w)
        average = _Average(settings)
        for done in range(1, settings.passes + 1):
            order, start = _order(task, gate), w.copy()
            walk = Walk(columns, clipping.limits, rules, order, w)
            gate.release("passes", clipping.mechanism, len(order), walk)
            if average.add(done, start, order, walk.changes, w):
                columns.move_to(w)
        noise = gate.noise("passes", clipping.mechanism.sensitivity) / task.n
        spread = steps * clipping.units * noise * settings.amplification(task.loss)
        if not task.fit_intercept:
            spread[-1] = 0.0
        return Solution(average.value[None, :], spread[None, :])


@dataclass(frozen=True, eq=False)
class _Clipping:
    """How what a row adds is bounded, and the mechanism whose sensitivity that is."""

    units: Floats  # in which derivatives are released
    caps: Floats  # on what a row adds to a derivative
    limits: Floats  # on a row's derivative in its margin
    mechanism: GaussianSequence

    @classmethod
    def of(cls, task: Task, settings: Settings, columns: Columns, bounds: Floats) -> "_Clipping":
        clip, root = settings.clip, math.sqrt(task.width)
        if task.options.clipping == "row":
            most = settings.intercept_limit
            units = np.append(np.sqrt(bounds[: task.d]), most / (_INTERCEPT_PART * clip))
            norm = clip * math.hypot(1.0, _INTERCEPT_PART * task.fit_intercept)
            size = norm + root * float_sum_slack(task.n, clip, columns.depth)
            mechanism = GaussianSequence(Sensitivity.vector(size), bound=task.n * clip)
            limits = columns.limits(clip, units, most * SHRINK)
            return cls(units, np.full(task.d + 1, math.inf), limits, mechanism)
        units = np.sqrt(bounds / float(bounds[: task.width].sum())) * clip
        size = root * (1.0 + float_sum_slack(task.n, 1.0, columns.depth))
        mechanism = GaussianSequence(Sensitivity.vector(size), bound=float(task.n))
        return cls(units, units * SHRINK, columns.limits(math.inf, units, math.inf), mechanism)


def _order(task: Task, gate: Gate) -> Integers:
    """The coordinates of one pass."""
    if task.options.order == "cyclic":
        return np.arange(task.width, dtype=np.int64)
    if task.options.order == "random":
        return gate.publicly(task.width, task.width)
    return gate.publicly(task.width)


class _Average:
    """The average of iterates that is returned: over the last passes, or over each of the paper's outer loops.

    An outer loop starts where the last one's average left it, and averages the weights after every single update.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._total: Floats | float = 0.0
        self._count = 0
        self.value = np.empty(0)

    def add(self, done: int, start: Floats, order: Integers, changes: Floats, w: Floats) -> bool:
        """Take in a pass from `start` to `w`; whether it moved `w`, because an outer loop is over."""
        passes, loops, tail = self._settings.passes, self._settings.loops, self._settings.tail
        if loops == 0:
            if done > passes - tail:
                self._take(w, 1)
                self.value = np.asarray(self._total) / self._count
            return False
        sum_over_updates = start * len(order)
        np.add.at(sum_over_updates, order, changes * np.arange(len(order), 0, -1))  # a change stays until the end
        self._take(sum_over_updates, len(order))
        if done * loops // passes == (done - 1) * loops // passes:
            return False
        self.value = np.asarray(self._total) / self._count
        self._total, self._count = 0.0, 0
        w[:] = self.value
        return True

    def _take(self, total: Floats, count: int) -> None:
        self._total = self._total + total
        self._count += count
