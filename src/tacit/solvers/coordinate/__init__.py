"""Proximal coordinate descent (DP-CD): the weights are updated one after the other, from one column each.

Algorithm. Release the mean square M_j of every column once (`tacit.solvers.coordinate.columns`). Then, for a fixed
number of passes, update one weight after the other: `w_j <- prox(w_j - t_j (noisy derivative in w_j))` with
t_j = step / (h M_j), h the curvature of the loss, and prox that of the penalties and bounds on w_j. Margins are kept,
so an update costs one column. No step looks at the objective; the order and the number of updates are fixed beforehand.
The start is public, or the log-odds of a released class count. The last pass may be a part of one: some coordinates,
each once.

Privacy
-------
Unit: one row. Neighbours: add-remove or replace-one. Released: for the logistic loss the count of a class, if that is
due; the mean squares (unless declared); then P passes, each the derivatives in all d' weights one after the other. All
is Gaussian, so the plan is exactly mu-GDP.

- Row accounting (`clipping="row"`). The derivative l' of row i in its margin is clipped to C / |z_i / s|, with released
  or declared units s_j = sqrt(M_j). Over a pass that visits every coordinate once, the changes that the row can make,
  in units of s, are at most C |z_ij / s_j| / |z_i / s|, on any history: their squares add up to C^2. For the intercept
  l' is clipped to a number of its own, L, and its unit is L / (0.35 C), so that it adds (0.35 C)^2. So a pass costs
  what one release of a vector with sensitivity 1.06 C costs, twice that for replace-one: no sqrt(d).
- Coordinate accounting (`clipping="coordinate"`, the paper's). What a row adds to the derivative in w_j is clipped to
  C_j = sqrt(M_j / sum M) C and noised with z C_j. In units of C_j every update has sensitivity 1, so d' updates in any
  order have sensitivity sqrt(d'), and 2 sqrt(d') for replace-one.
- A part of a pass, of k < d' updates. Rows: it has some of the changes of a whole pass, and their squares add up to no
  more; it gets the share and the noise of a whole pass. Coordinates: its sensitivity is sqrt(k), and with k / d' of a
  whole pass's share each of its updates has the noise of all others, so that K updates cost what K updates cost.
- The count of the second class, where it is due: 1 for both relations (`tacit.solvers.classes`).
- Iterates follow from what was released, and may be told (`coef_path_`).
- Sums are taken in float64; their rounding is in the sensitivity (`tacit.blocks.Moves`).

Assumptions: rows are bounded before; the scales that bound them were released in the same plan. The order of updates is
drawn without looking at the data, and need not be secret.

Rules (in n, d, epsilon and delta alone). nu = (d + 1) / (n mu); 6 nu^-0.35 passes; C = kappa sqrt(d') with
kappa = 0.13 nu^-0.45, but at most 0.08 / nu and 0.8 / nu^2, so that where nothing can be learned the weights stay near
zero; for the intercept the derivative is clipped to 3 (1 for the logistic loss) but at most n mu / 100; whole steps;
the mean of the iterates after the second half of the passes. Classes are counted, for 2%, where there is an intercept
and n mu is above 125 for each of both (`benchmarks.rules.solvers`), and no start is declared. Below nu = 0.001 passes
and clips grow further, so that without noise the problem is solved.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from tacit._types import Floats, Table
from tacit.blocks import SHRINK, Bounded, Moves
from tacit.bounding.magnitudes import LIMIT
from tacit.kernels import coordinate as kernels
from tacit.privacy import Gate, Release, checks
from tacit.privacy.mechanisms import GaussianSequence, Sensitivity
from tacit.problems import LOGISTIC, SQUARED, SQUARED_HINGE
from tacit.problems.declared import (
    averaging_rule,
    declared_size,
    initial_coef,
    initial_intercept,
    smoothness_constants,
    truth,
)
from tacit.problems.task import LinearTask
from tacit.solvers import classes, two_classes
from tacit.solvers.base import Algorithm, Layout, Serves, Solution, Solver, option, pass_count, word
from tacit.solvers.coordinate.columns import NO_CLIP, Columns, Smoothness, Walk
from tacit.solvers.coordinate.iterates import ORDERS, Average, coordinates, outer_loops, usual_order
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
        Passes over the columns: at most 100,000, and at least one update is made. Of a fraction, the last pass visits
        so many of the columns, each once. None: a rule in the numbers of rows and columns and the budget.
    order : {"jittered", "permuted", "cyclic", "random"}, default=None
        How a pass goes through the columns: near the order of the table, each pass with other changes; each pass in a
        new random order; every pass in the order of the table; or one random column after another. None: "jittered",
        but for more than 100 columns that are not centred (sparse or left as they are, or no intercept) "permuted".
    clipping : {"row", "coordinate"}, default="row"
        What is bounded: what a row adds to all columns of a pass together, or, as in the paper on DP-CD, what it adds
        to each column. Random order needs "coordinate".
    clip : float, default=None
        What derivatives are clipped to. None: a rule as above.
    step : float, default=None
        Length of a step, where 1 is the inverse of a column's smoothness. None: 1.
    averaging : {"last", "tail", "periodic"} or int, default=None
        What is returned: the last iterate, the mean of those after the second half of the passes, or the paper's, which
        starts again from the mean of each outer loop: loops as long as its theorem asks, or one if they are never that
        long; an integer is "periodic" with that many loops. None: "tail".
    smoothness : {"private", "laplace"} or array of shape (n_features,), default="private"
        The mean square of each column of the bounded data (near 1 if the data is dense), which sets the steps.
        "private" releases it inside the budget, "laplace" with Laplace noise as in the paper, which is more; an array
        of positive numbers is taken as public.
    smoothness_share : float, default=None
        Of the solver's budget, for the release of `smoothness`: between 0 and 1. None: 0.02.
    coef_init : array of shape (n_features,), default=None
        Where to start, in the units of `coef_`: it must be public. None: at zero. Bounds on coefficients hold there.
    intercept_init : float, default=None
        The intercept to start with, public. None: the one that predicts the middle of targets at the middle of rows;
        of classes that of their released counts, where there is little noise and `coef_init` is None too.
    rescale : bool, default=True
        False leaves columns as they are: not centred, and with strengths of penalties and declared `smoothness` in the
        user's units. All columns need declared `bounds`.
    keep_path : bool, default=False
        Whether the model keeps the iterates after each pass, as `coef_path_` and `intercept_path_`. They cost nothing:
        they follow from what was released.
    """

    name: ClassVar[str] = "coordinate"
    serves: ClassVar[Serves] = Serves(losses=(SQUARED, LOGISTIC, SQUARED_HINGE), penalties=("l2", "l1", "bounds"))

    n_passes: float | None = option(None, pass_count)
    order: str | None = option(None, word(*ORDERS))
    clipping: str = option("row", word("row", "coordinate"))
    clip: float | None = option(None, declared_size)
    step: float | None = option(None, declared_size)
    averaging: str | int | None = option(None, lambda _, value: averaging_rule(value))
    smoothness: str | Sequence[float] = option("private", lambda _, value: smoothness_constants(value))
    smoothness_share: float | None = option(None, checks.open_unit)
    coef_init: Sequence[float] | None = option(None, lambda _, value: initial_coef(value))
    intercept_init: float | None = option(None, lambda _, value: initial_intercept(value))
    rescale: bool = option(True, truth)
    keep_path: bool = option(False, truth)

    def check(self) -> Self:
        """The same options as plain numbers and words; refuses what no task could have."""
        asked = super().check()
        if asked.smoothness_share is not None and not isinstance(asked.smoothness, str):
            raise ValueError("smoothness_share must be None where smoothness is declared: nothing is released then")
        if (asked.order, asked.clipping) == ("random", "row"):
            raise ValueError(
                "order='random' needs clipping='coordinate': the bound of row clipping needs every coordinate visited"
                " equally often, as all other orders do"
            )
        return asked

    def at(self, task: LinearTask) -> "_Descent":
        """The descent, with its rules worked out from n, d, mu and what the user set."""
        asked = self.check()
        nu, growth = max(task.nu, 1e-3), max(1.0, math.sqrt(task.calm))
        usual = min(0.13 * nu**-0.45, 0.08 / nu, 0.8 / nu**2) * math.sqrt(task.width)
        rule = max(1, round(min(_MOST_PASSES, 6.0 * nu**-0.35 * growth)))
        if asked.intercept_init is not None and not task.fit_intercept:
            raise ValueError("intercept_init must be None where fit_intercept=False: there is no intercept to start")
        if not asked.rescale and (task.bounds is None or not task.bounds.are_whole):
            raise ValueError("rescale=False needs `bounds` of all columns: nothing else says how large they are")
        return _Descent(
            task,
            Smoothness.of(task, asked.smoothness, asked.smoothness_share, raw=not asked.rescale),
            asked.order or usual_order(task.d, centred=task.fit_intercept and asked.rescale and not task.sparse),
            asked.clipping,
            updates=max(1, round((asked.n_passes or rule) * task.width)),
            clip=asked.clip or usual * min(growth, NO_CLIP),
            intercept_limit=min(task.loss.slope, LIMIT, task.n * task.budget.mu / 100.0) * min(growth, NO_CLIP),
            step=asked.step or 1.0,
            averaging=asked.averaging or "tail",
            start=(initial_coef(asked.coef_init, task.d), asked.intercept_init),
            keep_path=asked.keep_path,
            raw=not asked.rescale,
        )


@dataclass(frozen=True)
class _Descent(Algorithm[LinearTask]):
    """Coordinate descent on one task."""

    layout: ClassVar[Layout] = "columns"

    smoothness: Smoothness
    order: str
    clipping: str
    updates: int
    clip: float
    intercept_limit: (
        float  # on a row's derivative for the intercept: wide, as targets that lean to a side would bias it
    )
    step: float
    averaging: str | int
    start: tuple[Floats | None, float | None]  # the coefficients and the intercept, in the user's units
    keep_path: bool
    raw: bool  # columns are as they came, over their declared bounds

    @property
    def passes(self) -> int:
        """How many there are, the last of which may be a part."""
        return -(-self.updates // self.task.width)

    def releases(self, share: float) -> tuple[Release, ...]:
        """The class counts, where they are due; the smoothness constants, then the passes, and the part of one."""
        first, left = self.smoothness.releases(1.0)
        whole, rest = divmod(self.updates, self.task.width)
        part = 0.0 if rest == 0 else 1.0 if self.clipping == "row" else rest / self.task.width
        releases = [*first]
        if whole:
            releases.append(Release("passes", "gaussian", share=left * whole / (whole + part), count=whole))
        if rest:
            releases.append(Release("part of a pass", "gaussian", share=left * part / (whole + part)))
        return classes.planned(self.task, share, *releases, counted=self._is_counted, calibrated=False)

    @property
    def _is_counted(self) -> bool:
        return all(part is None for part in self.start) and not self.raw and two_classes.are_due(self.task)

    def run(self, data: Bounded, gate: Gate) -> Solution:
        """The average of the iterates that was asked for."""
        task, penalty = self.task, data.penalty.with_intercept()
        first = self._first(data, gate)
        columns = Columns(task, data)
        bounds = self.smoothness.constants(columns, gate)
        clipping = _Clipping.of(self, columns, bounds)
        steps = self.step / (task.loss.curvature * bounds)
        rules = kernels.rules(clipping.caps, clipping.units, steps, penalty, task.n)
        w = np.clip(first, rules[:, kernels.LOW], rules[:, kernels.HIGH])
        columns.move_to(w)
        convexity = np.asarray(penalty.l2)[: task.d] / (task.loss.curvature * bounds[: task.d])
        average = Average(self.passes, outer_loops(self.averaging, self.passes, float(convexity.min())), self.averaging)
        path, noise = [], np.zeros(task.d + 1)
        for done in range(self.passes):
            order, start = coordinates(self.order, task.width, gate), w.copy()
            order = order[: self.updates - done * task.width]
            walk = Walk(columns, clipping.limits, rules, order, w)
            name, mechanism = clipping.release_of(len(order) / task.width)
            gate.release(name, mechanism, len(order), walk)
            noise[order] = gate.noise(name, mechanism.sensitivity) / task.n  # of weights that were never moved: none
            if average.add(done + 1, start, order, walk.changes, w):
                columns.move_to(w)
            if self.keep_path:
                path.append(w.copy())
        spread = steps * clipping.units * noise * average.amplification(self._held)
        return Solution(average.value[None, :], spread[None, :], np.array(path) if self.keep_path else None)

    def _first(self, data: Bounded, gate: Gate) -> Floats:
        """The weights to start with: those of a model in the user's units, where there are units; or the log-odds."""
        (coef, intercept), units = self.start, data.units
        if coef is None and intercept is None:
            w = np.zeros(self.task.d + 1)
            if self._is_counted:
                w[-1] = classes.classes_of(self.task, data, gate, counted=True).log_odds[0]
            return w
        coef = np.zeros(self.task.d) if coef is None else coef
        return np.append(coef, intercept or 0.0) if units is None else units.weights(coef, intercept)

    @property
    def _held(self) -> float:
        """What a step leaves of the distance from the minimum, for an uncorrelated column."""
        return 1.0 - min(1.0, self.step * self.task.loss.typical / self.task.loss.curvature)


@dataclass(frozen=True, eq=False)
class _Clipping:
    """How what a row adds is bounded, and the mechanism whose sensitivity that is."""

    units: Floats  # in which derivatives are released
    caps: Floats  # on what a row adds to a derivative
    limits: Table  # on a row's derivative in its margin
    mechanism: GaussianSequence  # of a whole pass

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

    def release_of(self, part: float) -> tuple[str, GaussianSequence]:
        """The name and the mechanism of a pass, or of a part of one: of capped updates fewer cost less, of rows not."""
        if part == 1.0:
            return "passes", self.mechanism
        root = math.sqrt(part) if np.isfinite(self.caps[0]) else 1.0
        size = self.mechanism.sensitivity.add_remove * root
        return "part of a pass", replace(self.mechanism, sensitivity=Sensitivity.vector(size))
