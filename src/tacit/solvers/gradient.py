"""`Gradient`: noisy gradient steps with a private preconditioner, the default on dense data.

Algorithm. Release the second-moment matrix A of the bounded rows once; take T full-batch steps
`w <- v - Q (noisy mean of clipped gradients at v + lambda v)` with Q the inverse of the curvature that A gives
and v = w + beta (w - the w before it); return the mean of the second half of the iterates, and of classifiers weights
that use all gradients alike, as far as these agree with it (`tacit.solvers.walk`). No step looks at the objective, and
T is fixed beforehand. For several classes the curvature is that of a model which knows their shares
alone (`tacit.solvers.classes.curvature`), or up to the geometric mean of that and what is safe for any data where
shorter steps arrive as well (`Curvature.spared`), until two released gradients differ by more than that allows.

Privacy
-------
Unit: one row. Neighbours: add-remove or replace-one. Released: A (or, above `FULL_MATRIX` columns, its diagonal and a
few noisy power iterations), then T sums of gradients; for classes their counts before and their residuals after these
(`tacit.solvers.classes`); for a regression in much noise how well it fits (`tacit.solvers.guard`). All of it is
Gaussian, so the plan is exactly mu-GDP.

- A = sum z z^T, rows clipped to norm R = sqrt(d') (more where there is little noise) for this matrix only: Frobenius
  sensitivity R^2, and sqrt(2) R^2 for replace-one. Its diagonal has non-negative entries that add up to at most R^2:
  the same.
- A power iteration sums z (z.v) for |v| = 1 over rows clipped to R: R^2, and R^2 for replace-one as well, because the
  eigenvalues of x x^T - z z^T lie between -R^2 and R^2.
- A gradient is clipped to norm C: C, and 2 C. For several classes it is the whole (K, d') gradient that is clipped and
  released at once.
- The sums of dense rows are exact (`tacit.blocks.exact`); those of sparse rows are taken in float64, and their
  rounding is in the sensitivity (`tacit.blocks.Moves`). A row's margin and gradient depend on that row alone.

Assumptions: the rows are bounded beforehand; the scales for that are releases of the same plan.

Rules (in n, d, epsilon and delta alone). nu = (d + 1) / (n mu); C = kappa sqrt(d') with kappa falling from 1 to 0.3
(squared loss: 0.7) as the noise grows, and rising without limit as it vanishes; the penalty is at least
0.2 C sqrt(d') / (n mu_g). The noise of the steps is known, and so is the variance that it adds to a margin. Classifiers
shrink all weights for it at the end, or their probabilities would be too sure. Those of several classes also shrink by
what of the margins is noise, where their steps have come far enough for that to show (`_Steps._kept`).

Steps. For the squared loss A is the curvature itself, and a step leaves little to the next ones but where the noise of
A hides it: T = 20, and 30 with beta = 0 where nu > 0.01. The slopes of classifiers change by far less than the bound
says where classes are well told apart, the more so the less noise there is: T = 16 (1 + 0.001 / nu)^(1/3), at most
1,200, and so for any loss where only the diagonal of A is released. beta = 1 - 2 / sqrt(T). `benchmarks.rules.steps`
has what that gives against three times the steps, and against those that were made before.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import eye_array

from tacit._types import Floats
from tacit.blocks import SHRINK, Bounded, ExactPasses, Passes, passes_over
from tacit.bounding.magnitudes import LIMIT
from tacit.privacy import Gate, Release
from tacit.privacy.mechanisms import GaussianMatrix, GaussianVector
from tacit.problems import LOGISTIC, MULTINOMIAL, SQUARED
from tacit.problems.task import LinearTask
from tacit.solvers import classes, guard
from tacit.solvers.base import Algorithm, Layout, Serves, Solution, Solver, iterations, option
from tacit.solvers.curvature import POWER_STEPS, Curvature, largest_curvature
from tacit.solvers.examples import on_cancer
from tacit.solvers.walk import Walk

FULL_MATRIX = 2_000
_STEPS, _STEPS_IN_NOISE, _LEAST_STEPS, _MOST_STEPS = 20, 30, 16, 1_200
_NOISY = 0.1  # of `LinearTask.calm`
_SHRINKAGE = 0.2
_LEAST_KEPT = 0.05  # of margins that may be noise alone: their order may still tell something
_NO_CLIP = 1e6  # times the usual clip: no gradient of a standardised row is that long


@on_cancer("n_iter=50", score=0.8)
@dataclass(eq=False, repr=False)
class Gradient(Solver):
    """Noisy steps on the whole table, scaled by a private estimate of the curvature.

    It is the default for dense rows and for a penalty that is l2 only: squared and logistic losses of any number of
    classes, under both neighbour relations. Text, with thousands of sparse columns and two classes, is better served
    by `tacit.solvers.Text`.

    Privacy: one noisy matrix of second moments, then a noisy sum of clipped gradients in each step. All noise is
    Gaussian, and accounted exactly.

    Parameters
    ----------
    n_iter : int, optional
        Steps. By default 16 to 30, and more where there is little noise.
    """

    name: ClassVar[str] = "gradient"
    serves: ClassVar[Serves] = Serves(
        losses=(SQUARED, LOGISTIC, MULTINOMIAL), multiclass=(MULTINOMIAL,), weights=True, streams=True
    )

    n_iter: int | None = option(None, iterations(name))

    def at(self, task: LinearTask) -> "_Steps":
        """The rules, from n, d and mu alone, and the steps that were asked for."""
        asked = self.check()
        width = math.sqrt(task.width)
        kappa = 0.5 * (0.05 / max(task.nu, 1e-12)) ** 0.25
        kappa = min(1.0, 1.4 * max(0.5, kappa) if task.loss == SQUARED else max(0.3, kappa))
        growth = max(1.0, math.sqrt(task.calm))
        steps, momentum = _steps(task, asked.n_iter)
        return _Steps(
            task,
            steps,
            clip=kappa * width * min(growth, _NO_CLIP),
            radius=width * min(growth, LIMIT),  # no standardised row is longer than LIMIT times the width
            momentum=momentum,
        )


def _steps(task: LinearTask, asked: int | None) -> tuple[int, float]:
    """How many steps, and how far each goes on in the direction of the last."""
    if asked is None and task.loss == SQUARED and task.d <= FULL_MATRIX:
        if task.calm < _NOISY:
            return _STEPS_IN_NOISE, 0.0
        asked = _STEPS
    steps = asked or round(min(_MOST_STEPS, _LEAST_STEPS * math.cbrt(1.0 + task.calm)))
    return steps, max(0.0, 1.0 - 2.0 / math.sqrt(steps))


@dataclass(frozen=True)
class _Steps(Algorithm[LinearTask]):
    """Preconditioned steps on all rows."""

    layout: ClassVar[Layout] = "grid"

    steps: int
    clip: float  # of a gradient
    radius: float  # of a row, in the second moments
    momentum: float

    def releases(self, share: float) -> tuple[Release, ...]:
        """The class counts, where they are due; the curvature, then the gradients; the surplus of each class."""
        counted, due = classes.are_counted(self.task), classes.are_due(self.task)
        steps = Release("gradients", "gaussian", share=0.85, count=self.steps)
        moments = Release("second moments", "gaussian", share=0.15 if self.task.d <= FULL_MATRIX else 0.05)
        largest = Release("largest curvature", "gaussian", share=0.10, count=POWER_STEPS)
        between = (moments, steps) if self.task.d <= FULL_MATRIX else (moments, largest, steps)
        planned = classes.planned(self.task, share, *between, counted=counted, calibrated=due)
        return guard.planned(self.task, planned)

    def narrowed(self, task: LinearTask) -> "_Steps | None":
        """As many steps; norms of rows grow as the root of their length, and so do the clips."""
        if (task.d <= FULL_MATRIX) != (self.task.d <= FULL_MATRIX):
            return None
        part = math.sqrt(task.width / self.task.width)
        return replace(self, task=task, clip=part * self.clip, radius=part * self.radius)

    def run(self, data: Bounded, gate: Gate) -> Solution:
        """All releases, and the weights that follow from them."""
        task, steps, clip = self.task, self.steps, self.clip
        counted, due = classes.are_counted(task), classes.are_due(task)
        known = classes.classes_of(task, data, gate, counted=counted)
        passes = passes_over(task, data, None if task.class_weight is None else known.weights)
        start = known.log_odds if due else np.zeros(task.outputs)
        sensitivity = passes.moves.vector(clip * passes.heaviest)
        noise = gate.noise("gradients", sensitivity) / task.n
        l2 = np.zeros(task.d + 1)
        l2[: task.d] = np.maximum(data.penalty.l2, _SHRINKAGE * math.sqrt(task.width / steps) * noise)
        likely = self._curvature(passes, l2, gate).of(classes.curvature(task, known.weighted))
        bound = likely.spared(steps, task.loss.curvature)
        mechanism = GaussianVector(sensitivity, bound=task.n * clip * passes.heaviest)
        begin = np.zeros((task.outputs, task.d + 1))
        begin[:, -1] = start

        def slope_at(place: Floats) -> Floats:
            return gate.release("gradients", mechanism, passes.gradient(place, clip * SHRINK)) / task.n

        walk = self._walk(slope_at, begin, bound, l2, noise)
        mean = walk.mean
        if guard.is_due(task):
            mean = guard.kept(task, passes, mean, bound, float(walk.come().sum()), gate)
        if task.loss != SQUARED:
            # Gradients that are clipped have the less curvature: about as much less as the clip is below a row's norm.
            part = min(1.0, clip / math.sqrt(task.width)) * likely.h / walk.first.h
            mean, own = walk.together(noise, part)
            mean[:, -1] *= task.fit_intercept
            # A probability should average over what the noise may have done to the margin. For normal noise of variance
            # v that is nearly the sigmoid of margin / sqrt(1 + v pi / 8); without it probabilities are too sure.
            variance = walk.variance(noise, 1.0, own)
            mean[:, -1] -= start
            if task.loss == MULTINOMIAL:
                mean *= self._kept(walk, part, walk.variance(noise, 0.5 * part, own), mean)
            mean /= math.sqrt(1.0 + variance * math.pi / 8.0)
            mean[:, -1] += start
            if due:
                mean[:, -1] += classes.shift(task, known, passes, mean, gate)
        spread = noise * walk.left(bound.least)  # that of the mean iterate: all slopes together have less
        deviations = np.sqrt(np.square(bound.vectors) @ np.square(spread))
        return Solution(mean, np.tile(deviations, (task.outputs, 1)))

    def _walk(
        self, slope_at: Callable[[Floats], Floats], begin: Floats, bound: Curvature, l2: Floats, noise: float
    ) -> Walk:
        """All steps.

        Where a step has met more curvature than it was made for, those after it are made for the most there can be; in
        the first quarter they begin anew. That follows from what was released, and their number stays the same.
        """
        task, most, tail = self.task, self.task.loss.curvature, self.steps - self.steps // 2
        w = ahead = begin
        mean, bounds, last = np.zeros_like(begin), list[Curvature](), None
        places, slopes = np.zeros((2, *begin.shape))
        for step in range(self.steps):
            slope = slope_at(ahead)
            if last is not None and bound.h < most:
                move, change = ahead - last[0], slope - last[1]
                if bound.is_exceeded(move, change, noise, self.momentum):
                    bound = bound.of(most)
                    if step < self.steps // 4:
                        w = ahead = begin
                        bounds.clear()
                        places, slopes = np.zeros((2, *begin.shape))
                        continue
            bounds.append(bound)
            places, slopes = places + ahead, slopes + slope
            last, before = (ahead, slope), w
            w = ahead - bound.inverse_times(slope + l2 * ahead)
            if not task.fit_intercept:
                w[:, -1] = 0.0
            ahead = w + self.momentum * (w - before)
            if step >= self.steps - tail:
                mean += w / tail
        return Walk(begin, mean, places / len(bounds), slopes / len(bounds), bounds, tail, self.momentum)

    def _kept(self, walk: Walk, part: float, variance: float, mean: Floats) -> float:
        """What to keep of margins that have noise in them: the part that is signal, over how far steps have come.

        What the square of margins has more than the noise puts there is signal (James and Stein). Signal that is on its
        way would still grow, and that makes up for noise; margins are never made larger. There is this `part` of the
        curvature at first. As weights grow it falls, so half of that is taken for how long noise is kept, which has
        this `variance`.
        """
        first = walk.first
        signal = 1.0 - variance / max(first.square_of_margins(mean), 1e-300)
        come = float(first.moments @ walk.come(part)) / max(float(first.moments.sum()), 1e-300)
        return min(1.0, max(_LEAST_KEPT, signal / max(min(1.0, come), 1e-300)))

    def _curvature(self, passes: Passes | ExactPasses, l2: Floats, gate: Gate) -> Curvature:
        """The second moments, released; for many columns their diagonal, and how much larger an eigenvalue can be."""
        task, radius, h = self.task, self.radius, self.task.loss.curvature
        n, width = task.n, task.width
        reach = radius * math.sqrt(passes.heaviest)
        sensitivity = passes.blocked.outer(reach)
        deviation = gate.noise("second moments", sensitivity) / n
        floor = 1e-10  # keeps the inverse finite where a column is constant and nothing penalises it
        if task.d <= FULL_MATRIX:
            mechanism = GaussianMatrix(sensitivity, bound=n * reach**2)
            moments = gate.release("second moments", mechanism, passes.second_moments(radius)) / n
            values, vectors = eigh(moments, driver="evd")  # the fastest for all eigenvectors
            edge = math.sqrt(2 * width) * deviation  # the largest eigenvalue of the noise
            # No eigenvalue exceeds the width, so steps stay stable where noise would lift the bound beyond half of it.
            lifted = np.maximum(values, 0.0) + min(edge, 0.5 * width) + floor
            least = np.maximum(values - edge, 0.0)
            rest = max(0.0, width - float(least.sum()))  # columns have unit scale: the eigenvalues add up to the width
            return Curvature(vectors, least + rest / width, least, lifted, l2, h)
        diagonal_mechanism = GaussianVector(sensitivity, bound=n * reach**2)
        values = np.maximum(gate.release("second moments", diagonal_mechanism, passes.squares(radius)) / n, 0.0)
        diagonal = values + 2.0 * deviation + floor
        largest = max(1.0, largest_curvature(task, passes, diagonal, radius, gate))
        least = np.maximum(values - deviation, 0.0)
        return Curvature(eye_array(task.d + 1), values, least, largest * diagonal, l2, h)
