"""Frank-Wolfe on an l1 ball (DP-FW): one vertex of the ball at a time, each drawn by the exponential mechanism.

Algorithm. In iteration t draw a signed vertex s e_j of the ball |w|_1 <= radius with weight exp(-k s g_j), g the sum of
the gradients of all rows, and take w to (1 - eta_t) w + eta_t radius s e_j. eta_t = 2 / (t + 2); `step` below 1 is a
constant eta_t, and from 1 on it makes that step / (t + step). On sparse rows an iteration looks only at rows that have
an entry in column j, and at all others at iterations that are fixed before, and changes what a row adds to g only where
its slope is off by more than half of what is allowed (`tacit.kernels.frank_wolfe.steps`). Where many rows change, g is
taken anew from all of them, which gives the same whole numbers. The squared loss is exact
(`tacit.solvers.frank_wolfe.scores.LazyScores`). On dense rows it looks at all of them. No more weights than iterations
differ from zero. The ball is the regulariser: C and alpha are not used.

Privacy
-------
Unit: one row. Neighbours: add-remove or replace-one. Released: the vertices (j, s), of which the weights, averaged or
not, are a function; for classes and with an intercept the class share and the threshold (`tacit.solvers.text`).

- The sign is drawn with the index. The sign of the exact gradient would tell of a single row.
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

Assumptions: entries are bounded; the scales that bound them were released in the same plan.

Rules (in n, d, epsilon and delta alone). With x = n sqrt(8 rho) / ln(2 d), half of that for replace-one, how far a mean
gradient of 1 would stand out of the noise of a single draw: x / 6 iterations, at least 3 and at most 1,000. The radius
times the bound on entries is sqrt(x / 100), at least 1 and at most 10. The mean of the iterates in the later half.
Slopes are within 0.2 of their limit (logistic; otherwise 0.01), and within 30 sqrt(iterations) / x, 30 times what noise
adds to a mean slope, where that is less; never nearer than 0.0001. On dense rows, where a look puts nothing right that
is off by less, the logistic loss has 0.1, from 10 iterations on; in fewer noise hides it. The intercept starts at that
of the class share.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tacit.blocks import Bounded
from tacit.bounding.magnitudes import LIMIT
from tacit.kernels.frank_wolfe.rows import MOST_UNITS
from tacit.privacy import Gate, Release, checks
from tacit.privacy.mechanisms import Threshold
from tacit.privacy.mechanisms.vertices import (
    LARGEST_LIMIT,
    SAMPLERS,
    BestVertex,
    VertexWalk,
    Vertices,
    contribution_units,
)
from tacit.problems import LOGISTIC, SQUARED, SQUARED_HINGE
from tacit.problems.declared import declared_size
from tacit.problems.slopes import sigmoid
from tacit.problems.task import LinearTask
from tacit.solvers import text
from tacit.solvers.base import Algorithm, Layout, Serves, Solution, Solver, iterations, option, word
from tacit.solvers.frank_wolfe.path import Path
from tacit.solvers.frank_wolfe.plain import PlainScores
from tacit.solvers.frank_wolfe.rows import Scoring
from tacit.solvers.frank_wolfe.scores import Scores, scores_for

_PER_STEP, _FEWEST, _MOST = 6.0, 3.0, 1_000.0
_PER_REACH, _FARTHEST = 100.0, 10.0
_TOLERANCE, _OVER_NOISE, _LEAST = 0.2, 30.0, 1e-4
_SOON = 10  # iterations, before which slopes on dense rows may be further off
_SLOWEST = 1e6
_MOST_ASKED = 1_000_000  # iterations; papers on Frank-Wolfe make 400,000


def _step(name: str, value: object) -> float:
    """How slowly steps shorten: beyond a million none would, and weights would be lost to rounding."""
    number = declared_size(name, value)
    if number > _SLOWEST:
        raise ValueError(f"{name} must be at most {_SLOWEST:g}, got {number!r}")
    return number


@dataclass(eq=False, repr=False)
class FrankWolfe(Solver):
    """Frank-Wolfe on an l1 ball (DP-FW): each step goes towards one vertex of the ball, drawn privately.

    Use it where an l1 ball is wanted in place of a penalty (`l1_radius`), and on very many columns of which few matter:
    on sparse rows the cost of a step does not grow with their number. No more coefficients than steps differ from zero.

    Privacy: each vertex is drawn by the exponential mechanism; for classes and an intercept also a noisy count, and a
    threshold that is drawn in the same way.

    Parameters
    ----------
    n_iter : int, default=None
        Steps: at most 1,000,000. None: a rule in the numbers of rows and columns and the budget.
    entry_bound : float, default=None
        What the entries of X are clipped to, in `fit` and in `predict`. None: one and a half private scales to each
        side of a private centre if X is dense; a tenth of `row_norm`, or of a private quantile of row norms, if it is
        sparse.
    sampler : {"bucket", "two-level", "gumbel"}, default="bucket"
        How a vertex is drawn. All three have the same law; the cost of the first does not grow with the number of
        columns.
    step : float, default=None
        Below 1: the part of the way to a vertex that each step goes. From 1 on: step t goes step / (t + step) of the
        way. None: 2.
    averaging : {"last", "tail"}, default=None
        What is returned: the last iterate, or the mean of the later half. None: "tail".
    clip : float, default=None
        What the slopes of the loss are clipped to; for a squared loss these are residuals. None: a bound that slopes
        have by themselves, and 2 for "squared_hinge".

    Examples
    --------
    >>> import numpy as np
    >>> from tacit import LogisticRegression
    >>> from tacit.solvers import FrankWolfe
    >>> X = np.random.default_rng(0).choice([-1.0, 1.0], size=(2000, 100))
    >>> y = X[:, 0] + X[:, 1] > 0.0
    >>> model = LogisticRegression(epsilon=3.0, solver=FrankWolfe(n_iter=10, entry_bound=1.0), l1_radius=2.0).fit(X, y)
    >>> bool((model.coef_ != 0.0).sum() <= 10)
    True
    """

    name: ClassVar[str] = "frank-wolfe"
    serves: ClassVar[Serves] = Serves(losses=(SQUARED, LOGISTIC, SQUARED_HINGE), ball=True)

    n_iter: int | None = option(None, iterations(name, _MOST_ASKED))
    entry_bound: float | None = option(None, declared_size)
    sampler: str = option("bucket", word(*SAMPLERS))
    step: float | None = option(None, _step)
    averaging: str | None = option(None, word("last", "tail"))
    clip: float | None = option(None, declared_size)

    def at(self, task: LinearTask) -> "_Draws":
        """The draws, with their rules worked out from n, d, epsilon, delta and what the user set."""
        asked = self.check()
        doubled = 2.0 if task.budget.adjacency == "replace-one" else 1.0
        clear = task.n * math.sqrt(8.0 * task.budget.rho) / doubled / math.log(2.0 * task.d)
        count = asked.n_iter or round(min(max(clear / _PER_STEP, _FEWEST), _MOST))
        return _Draws(
            task,
            count=count,
            reach=min(max(math.sqrt(clear / _PER_REACH), 1.0), _FARTHEST),
            l1_radius=None if task.l1_radius is None else declared_size("l1_radius", task.l1_radius),
            step=asked.step or 2.0,
            averaging=asked.averaging or "tail",
            sampler=asked.sampler,
            tolerance=_tolerance(task, count, clear),
            entry_bound=asked.entry_bound,
            clip=asked.clip,
        )


@dataclass(frozen=True)
class _Draws(Algorithm[LinearTask]):
    """Frank-Wolfe on one task."""

    layout: ClassVar[Layout] = "entries"

    count: int  # of iterations
    reach: float  # of a margin, by rule: the radius times the bound on entries
    l1_radius: float | None
    step: float
    averaging: str
    sampler: str
    tolerance: float  # of a slope, over its limit
    entry_bound: float | None  # declared
    clip: float | None  # of a slope

    def releases(self, share: float) -> tuple[Release, ...]:
        """A vertex in every iteration; for classes and with an intercept, their share before and a threshold after."""
        if self.task.loss == SQUARED:
            return (Release("vertices", "exponential", share=share, count=self.count),)
        return text.planned(self.task, share, Release("vertices", "exponential", share=1.0, count=self.count))

    def run(self, data: Bounded, gate: Gate) -> Solution:
        """The weights of the vertices drawn. Their noise has no deviation to speak of: it is given as zero."""
        task, path = self.task, self.path(data.entry)
        with_ends = task.fit_intercept and task.loss != SQUARED  # the target of a regression is centred before
        offset = _offset(task, text.UnitRows(task, data).class_share(gate)) if with_ends else 0.0
        limit = self.slope_limit(path.radius * data.entry, offset)
        exact = task.loss == SQUARED and self.clip is None
        scoring = Scoring(
            loss=task.loss.code,
            bound=data.entry,
            limit=limit,
            curvature=task.loss.curvature,
            units=_units(task, gate),
            offset=offset,
            tolerance=0.0 if exact else self.tolerance * limit,
        )
        targets = np.clip(data.targets, -LIMIT, LIMIT) if task.loss == SQUARED else data.targets
        scores: Scores | PlainScores
        if gate.multiplier("vertices") > 0.0:
            scores = scores_for(data.Z, targets, scoring, path, self.sampler, exact=exact)
            walk = VertexWalk(Vertices(scores.sampler, scoring.units))
            picks = gate.release("vertices", walk, path.count, scores.step, scores.rounds)
        else:
            scores = PlainScores(data.Z, targets, scoring, path)
            picks = _best(scores, path.count, gate)
        chosen, found = path.weights(picks, self.averaging)
        weights = np.zeros((1, task.d + 1))
        weights[0, chosen] = found
        if with_ends:
            # Thresholds about as far apart as margins are: of entries near their bound, some for each row.
            grid = text.GRID * max(float(np.linalg.norm(found)) * data.entry, 1e-300)
            margins = scores.margins(chosen, found)
            weights[0, -1] = -gate.release("threshold", Threshold(grid), margins, data.targets > 0.0)
        return Solution(weights, np.zeros_like(weights))

    def path(self, bound: float) -> Path:
        """The steps, for entries with this bound."""
        bound = checks.positive("entry_bound", bound)
        return Path(self.count, self.l1_radius or self.reach / bound, self.step)

    def slope_limit(self, reach: float, offset: float) -> float:
        """What a slope can be at most where no margin exceeds `reach`, or what it is clipped to."""
        clip, task = self.clip, self.task
        if task.loss == LOGISTIC:
            most = float(sigmoid(reach + abs(offset)))
        elif task.loss == SQUARED:
            most = reach + LIMIT
        else:
            most = 2.0 * (1.0 + reach + abs(offset))
            if clip is None and task.budget.is_private:
                clip = 2.0
        return most if clip is None else min(clip, most)


def _tolerance(task: LinearTask, count: int, clear: float) -> float:
    """By how much a slope may be off, over its limit; slopes that have no limit by themselves are kept nearer.

    A look at sparse rows puts right what is off by half of it, a look at dense ones what is off by all of it.
    """
    most = _TOLERANCE if task.loss == LOGISTIC else 0.05 * _TOLERANCE
    if task.loss == LOGISTIC and not task.sparse and count >= _SOON:
        most *= 0.5
    return min(most, max(_OVER_NOISE * math.sqrt(count) / clear, _LEAST))


def _offset(task: LinearTask, share: text.ClassShare) -> float:
    """The margin that is best for all rows alike."""
    return share.offset if task.loss == LOGISTIC else 2.0 * share.p - 1.0


def _units(task: LinearTask, gate: Gate) -> int:
    """The most that a row may add to an entry of the whole gradient."""
    multiplier = gate.multiplier("vertices")
    free = contribution_units(multiplier, gate.adjacency) if multiplier > 0.0 else MOST_UNITS
    return min(free, MOST_UNITS, LARGEST_LIMIT // task.n)


def _best(scores: PlainScores, count: int, gate: Gate) -> list[tuple[int, int]]:
    """The best vertex of every iteration, where there is no noise."""
    picks = []
    for t in range(1, count + 1):
        picks.append(gate.release("vertices", BestVertex(scores.best)))
        if t < count:  # nothing is looked for after the last step
            scores.step(t, *picks[-1])
    return picks
