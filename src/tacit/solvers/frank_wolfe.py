"""`solver="frank-wolfe"`: one vertex of an l1 ball at a time, each drawn by the exponential mechanism.

Algorithm. In iteration t draw a signed vertex s e_j of the ball |w|_1 <= radius with weight exp(-k s g_j), g the sum of
the gradients of all rows, and take w to (1 - eta_t) w + eta_t radius s e_j. eta_t = 2 / (t + 2); `step` below 1 is a
constant eta_t, and from 1 on it makes that step / (t + step). On sparse rows an iteration looks only at rows that have
an entry in column j, or that are due, and changes what a row adds to g only where its slope is off by more than half of
what is allowed (`tacit.kernels.frank_wolfe`); the squared loss needs no due dates, and is exact
(`tacit.solvers.ball_sparse.LazyGradient`). On dense rows it looks at all of them. No more weights than iterations
differ from zero. The ball is the regulariser: C and alpha are not used.

Privacy
-------
Unit: one row. Neighbours: add-remove or replace-one. Released: the vertices (j, s), of which the weights, averaged or
not, are a function; for classes and with an intercept the class share and the threshold (`tacit.solvers.text`).

- The sign is drawn with the index. Its being that of the exact gradient would tell of a single row.
- A row adds to entry j of g a whole number of at most c in absolute value: its slope l', clipped to a public limit,
  times its entry, clipped to its bound, in units that make c the largest that a draw's e0 allows. Sums of whole
  numbers are exact, so no rounding enters; the exact form of the squared loss rounds a product, and leaves two units
  free for that (`tacit.privacy.mechanisms.affine`). A row's slope is a function of that row and of the vertices before,
  also where it is out of date.
- Draws of range e0 are e0^2 / 8-zCDP each, also where they depend on earlier ones.
- The class share is one count, and each row counts once at most in the scores of the threshold.

A slope lies within its limit by itself for the logistic loss, as |margin| <= radius entry_bound: the limit is
sigmoid(radius entry_bound + |offset|). For the squared loss it is radius entry_bound + 3, 3 being the largest target,
or `clip` (the Huber loss). For squared_hinge it is `clip`, 2 unless given.

Assumptions: rows are bounded by the driver; the scales it used were released in the same plan.

Rules (in n, d, epsilon and delta alone). With x = n sqrt(8 rho) / ln(2 d), half of that for replace-one, how far a mean
gradient of 1 would stand out of the noise of a single draw: x / 6 iterations, at least 3 and at most 1,000. The radius
times the bound on entries is sqrt(x / 100), at least 1 and at most 10. The mean of the iterates in the later half.
Slopes are within 0.01 of their limit, nearer above x = 100,000. The intercept starts at that of the class share.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tacit.kernels.frank_wolfe_rows import MOST_UNITS
from tacit.preprocessing.magnitudes import LIMIT
from tacit.privacy import Gate, Plan, Release, checks
from tacit.privacy.checks import Adjacency
from tacit.privacy.mechanisms import Threshold
from tacit.privacy.mechanisms.vertices import (
    LARGEST_LIMIT,
    SAMPLERS,
    BestVertex,
    VertexWalk,
    Vertices,
    contribution_units,
)
from tacit.problems import LOGISTIC, SQUARED, SQUARED_HINGE, Loss, Penalty
from tacit.problems.slopes import sigmoid
from tacit.solvers import text
from tacit.solvers.ball import Gradient, Path, Queue, Scoring
from tacit.solvers.ball_sparse import gradient_for
from tacit.solvers.task import Layout, PenaltyName, Rows, Solution, Task

_PER_STEP, _FEWEST, _MOST = 6.0, 3.0, 1_000.0
_PER_REACH, _FARTHEST = 100.0, 10.0
_CALM = 1e5
_TOLERANCE = 0.01


@dataclass(frozen=True)
class Settings:
    """The rules, worked out for one task."""

    count: int  # of iterations
    reach: float  # of a margin, by rule: the radius times the bound on entries
    l1_radius: float | None
    step: float
    averaging: str
    sampler: str
    tolerance: float  # of a slope, over its limit

    @classmethod
    def of(cls, task: Task) -> "Settings":
        """From n, d, epsilon, delta and what the user set."""
        options = task.options
        doubled = 2.0 if task.budget.adjacency == "replace-one" else 1.0
        clear = task.n * math.sqrt(8.0 * task.budget.rho) / doubled / math.log(2.0 * task.d)
        for name in ("l1_radius", "step", "clip"):
            if getattr(options, name) is not None:
                checks.positive(name, getattr(options, name))
        return cls(
            count=options.n_iter or round(min(max(clear / _PER_STEP, _FEWEST), _MOST)),
            reach=min(max(math.sqrt(clear / _PER_REACH), 1.0), _FARTHEST),
            l1_radius=options.l1_radius,
            step=options.step or 2.0,
            averaging=checks.one_of("averaging", options.averaging or "tail", ("last", "tail")),
            sampler=checks.one_of("sampler", options.sampler, tuple(SAMPLERS)),
            tolerance=_TOLERANCE * min(1.0, max(_CALM / clear, _TOLERANCE)),
        )

    def path(self, bound: float) -> Path:
        """The steps, for entries with this bound."""
        bound = checks.positive("entry_bound", bound)
        return Path(self.count, self.l1_radius or self.reach / bound, self.step)


def slope_limit(task: Task, reach: float, offset: float) -> float:
    """What a slope can be at most where no margin exceeds `reach`, or what it is clipped to."""
    clip = task.options.clip
    if task.loss == LOGISTIC:
        most = float(sigmoid(reach + abs(offset)))
    elif task.loss == SQUARED:
        most = reach + LIMIT
    else:
        most = 2.0 * (1.0 + reach + abs(offset))
        if clip is None and task.budget.is_private:
            clip = 2.0
    return most if clip is None else min(clip, most)


@dataclass(frozen=True)
class FrankWolfeSolver:
    """Frank-Wolfe on an l1 ball, with privately drawn vertices."""

    name: ClassVar[str] = "frank-wolfe"
    losses: ClassVar[tuple[Loss, ...]] = (SQUARED, LOGISTIC, SQUARED_HINGE)
    multiclass: ClassVar[tuple[Loss, ...]] = ()
    adjacencies: ClassVar[tuple[Adjacency, ...]] = ("add-remove", "replace-one")
    penalties: ClassVar[tuple[PenaltyName, ...]] = ("l2",)
    options: ClassVar[tuple[str, ...]] = ("n_iter", "l1_radius", "entry_bound", "sampler", "step", "averaging", "clip")
    layout: ClassVar[Layout] = "entries"

    def plan(self, task: Task, share: float) -> Plan:
        """A vertex in every iteration; for classes and with an intercept, their share before and a threshold after."""
        count = Settings.of(task).count
        if task.loss == SQUARED:
            return Plan(Release("vertices", "exponential", share=share, count=count))
        return text.planned(task, share, Release("vertices", "exponential", share=1.0, count=count))

    def run(self, task: Task, rows: Rows, penalty: Penalty, gate: Gate) -> Solution:  # noqa: ARG002
        """The weights of the vertices drawn. Their noise has no deviation to speak of: it is given as zero."""
        settings = Settings.of(task)
        path = settings.path(rows.entry)
        with_ends = task.fit_intercept and task.loss != SQUARED  # the driver centres the target of a regression
        offset = _offset(task, text.UnitRows(task, rows).class_share(gate)) if with_ends else 0.0
        limit = slope_limit(task, path.radius * rows.entry, offset)
        scoring = Scoring(
            loss=task.loss.code,
            bound=rows.entry,
            limit=limit,
            curvature=task.loss.curvature,
            units=_units(task, gate),
            offset=offset,
            tolerance=settings.tolerance * limit,
        )
        targets = np.clip(rows.targets, -LIMIT, LIMIT) if task.loss == SQUARED else rows.targets
        sampler = settings.sampler if gate.multiplier("vertices") > 0.0 else None
        exact = task.loss == SQUARED and task.options.clip is None
        gradient = gradient_for(rows.Z, targets, scoring, path, sampler, exact)
        picks = _picks(gradient, path.count, scoring.units, gate)
        chosen, found = path.weights(picks, settings.averaging)
        weights = np.zeros((1, task.d + 1))
        weights[0, chosen] = found
        if with_ends:
            # Thresholds about as far apart as margins are: of entries near their bound, some for each row.
            grid = text.GRID * max(float(np.linalg.norm(found)) * rows.entry, 1e-300)
            margins = gradient.margins(chosen, found)
            weights[0, -1] = -gate.release("threshold", Threshold(grid), margins, rows.targets > 0.0)
        return Solution(weights, np.zeros_like(weights))


def _offset(task: Task, share: text.ClassShare) -> float:
    """The margin that is best for all rows alike."""
    return share.offset if task.loss == LOGISTIC else 2.0 * share.p - 1.0


def _units(task: Task, gate: Gate) -> int:
    """The most that a row may add to an entry of the whole gradient."""
    multiplier = gate.multiplier("vertices")
    free = contribution_units(multiplier, gate.adjacency) if multiplier > 0.0 else MOST_UNITS
    return min(free, MOST_UNITS, LARGEST_LIMIT // task.n)


def _picks(gradient: Gradient, count: int, units: int, gate: Gate) -> list[tuple[int, int]]:
    """The vertices drawn; the best ones where there is no noise."""
    sampler = gradient.sampler
    if not isinstance(sampler, Queue):
        return gate.release("vertices", VertexWalk(Vertices(sampler, units)), count, gradient.step, gradient.rounds)
    picks = []
    for t in range(1, count + 1):
        picks.append(gate.release("vertices", BestVertex(sampler.best)))
        if t < count:  # nothing is looked for after the last step
            gradient.step(t, *picks[-1])
    return picks
