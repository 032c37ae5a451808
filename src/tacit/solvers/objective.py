"""`Objective`: minimise the objective with a secret random linear term in it (objective perturbation).

Algorithm. Draw b; find w with a small enough gradient of `sum_i loss(z_i.w, t_i) + sum_j Lambda_j w_j^2 / 2 + wall(w) +
b.w` by Newton's method; release w with a little noise that hides where exactly the search stopped.

Privacy
-------
Unit: one row. Neighbours: add-remove or replace-one. Released: w once. Its event is the composition of

- `ZCDpEvent(rho)`, rho = (mu^2 + 2.35 tau^2) / 2, for the exact minimiser: mu = L R / s with |loss'| <= L, rows clipped
  to norm R (intercept included) and s the deviation of b; tau = h R^2 / Lambda, h the loss's curvature. The argument is
  in `tacit.privacy.mechanisms.objective`;
- `GaussianDpEvent` for how far the search may stop from it: |w~ - w| <= error / Lambda, twice that between two worlds.

The search ends when the gradient is below a public tolerance: how many steps that takes is not released. It must end,
so each step lowers the objective, or takes the gradient a quarter below the smallest so far; the tolerance is above
what rounding can do to a gradient of weights inside the wall. The wall, a public convex term, keeps weights there: it
is zero up to norm `_WALL`, far above what standardised data asks for.

Losses: logistic (L = 1, h = 1/4); squared with residuals clipped to L, that is the Huber loss (h = 1). Binary only.

Assumptions: the rows are bounded beforehand; the scales for that are releases of the same plan.

Rules (in n, d, epsilon and delta alone). R = sqrt(d'), L = 1, and more where there is little noise; tau = 0.3 mu, which
fixes Lambda; the intercept is penalised by Lambda as well.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator, cg

from tacit._types import Floats
from tacit.blocks import Bounded, Passes, clip_rows
from tacit.bounding.magnitudes import LIMIT
from tacit.privacy import Gate, Release
from tacit.privacy.mechanisms import GaussianVector, ObjectivePerturbation, Sensitivity
from tacit.problems import HUBER, LOGISTIC, SQUARED, sigmoid
from tacit.problems.task import LinearTask
from tacit.solvers.base import Algorithm, Serves, Solution, Solver
from tacit.solvers.examples import on_cancer

FULL_MATRIX = 2_000
_WALL = 300.0
_UNIT = 2.0**-53
_HALVINGS = 40
_TYPICAL = 0.65  # of the bound on curvature: rows are clipped, and not all residuals are where it is reached
_FLOOR = 1e-10  # of the curvature: a minimiser where there is no noise and nothing is penalised


@on_cancer(score=0.7)
@dataclass(eq=False, repr=False)
class Objective(Solver):
    """Minimises the objective with a secret random linear term in it.

    It serves the squared and the logistic loss with an l2 penalty, under both neighbour relations. Use it where one
    release is easier to explain than thirty; it comes close to `tacit.solvers.Gradient` at epsilon = 3 and above.
    Privacy needs a penalty of its own here, which is larger than what the user asks for where the budget is small.

    Privacy: the minimiser leaves once. The secret linear term hides it, and a little noise where the search stopped.
    """

    name: ClassVar[str] = "objective"
    serves: ClassVar[Serves] = Serves(losses=(SQUARED, LOGISTIC))

    def at(self, task: LinearTask) -> "_Perturbation":
        """The rules, from n, d and mu alone."""
        growth = max(1.0, math.sqrt(task.calm))
        radius = math.sqrt(task.width) * min(growth, LIMIT)
        return _Perturbation(task, radius, slope=1.0 if task.loss == LOGISTIC else min(growth, 1e6))


@dataclass(frozen=True)
class _Perturbation(Algorithm[LinearTask]):
    """The linear term, the search, and the noise on where it stopped."""

    radius: float  # of a row, intercept included
    slope: float  # of the loss

    def releases(self, share: float) -> tuple[Release, ...]:
        """The linear term, then the noise on where the search stopped."""
        return (
            Release("linear term", "objective", share=0.98 * share),
            Release("stopping point", "gaussian", share=0.02 * share),
        )

    def run(self, data: Bounded, gate: Gate) -> Solution:
        """The approximate minimiser, with noise."""
        task, radius, slope, h = self.task, self.radius, self.slope, self.task.loss.curvature
        mechanism = ObjectivePerturbation(slope * radius, h * radius**2)
        convexity = mechanism.convexity(gate.multiplier("linear term"), gate.adjacency)
        deviation = gate.noise("linear term", mechanism.sensitivity)
        least = max(convexity, _FLOOR * task.n * h * radius**2)
        l2 = np.maximum(task.n * np.append(data.penalty.l2, 0.0)[: task.width], least)
        problem = _Problem(self, data, l2, 1e-6 * deviation)
        w = gate.release("linear term", mechanism, task.width, problem)

        resolution = mechanism.resolution(deviation, task.width)
        off = problem.tolerance + problem.rounding + resolution
        apart = 2.1 * off / convexity if convexity > 0 else 0.0
        weights = np.zeros((1, task.d + 1))
        weights[0, : task.width] = gate.release(
            "stopping point", GaussianVector(Sensitivity(apart, apart), bound=2 * _WALL), w
        )
        noise = np.zeros_like(weights)
        stopping = gate.multiplier("stopping point") * apart
        noise[0, : task.width] = np.hypot(deviation / (_TYPICAL * task.n * h + l2), stopping)
        return Solution(weights, noise)


class _Problem:
    """The perturbed objective, as a sum over rows; everything in it is secret."""

    def __init__(self, rules: _Perturbation, data: Bounded, l2: Floats, accuracy: float) -> None:
        task = rules.task
        self._task, self._rules, self._l2 = task, rules, l2
        self._code = (HUBER if task.loss == SQUARED else task.loss).code
        self._h = task.loss.curvature
        room = math.sqrt(rules.radius**2 - task.fit_intercept)
        self._data = replace(data, Z=clip_rows(data.Z, room))
        self._passes = Passes(task, self._data)
        # The largest eigenvalue of the Hessian, from above; the wall is as steep as all rows together.
        self._steep = task.n * self._h * rules.radius**2
        self._smoothness = 2.0 * self._steep + float(l2.max())
        self.tolerance = accuracy + 2.0 * self.rounding  # of the gradient, where the search stops

    @property
    def rounding(self) -> float:
        """The most that rounding can change a gradient at weights of norm 2 `_WALL`: in sums, slopes and margins."""
        task, rules = self._task, self._rules
        per_row = (self._passes.moves.depth + 16) * rules.slope + self._h * (task.width + 8) * rules.radius * 2 * _WALL
        own = (self._l2.max() + self._steep) * 2 * _WALL + float(np.sqrt(task.width)) * 1e-12
        return _UNIT * (task.n * rules.radius * per_row + 8 * own)

    def gradient(self, w: Floats, linear: Floats) -> Floats:
        """Of the whole objective."""
        full = np.zeros((1, self._task.d + 1))
        full[0, : len(w)] = w
        total = self._passes.gradient(full, 1e300, self._rules.slope, self._code)[0, : len(w)]
        return total + self._l2 * w + linear + self._wall(w) * w

    def minimiser(self, linear: Floats) -> Floats:
        """Weights with a gradient of norm at most `tolerance`."""
        w = np.zeros(len(linear))
        g = self.gradient(w, linear)
        least = float(np.linalg.norm(g))
        while (size := float(np.linalg.norm(g))) > self.tolerance:
            least = min(least, size)
            direction = self._newton(w, g, min(0.1, math.sqrt(size / self._smoothness)))
            w, g = self._step(w, g, direction, 0.75 * least, linear)
        return w

    def _step(self, w: Floats, g: Floats, direction: Floats, small: float, linear: Floats) -> tuple[Floats, Floats]:
        """The next weights along `direction`, and the gradient there.

        Taken is a step to where the gradient is `small`, or one at which the objective still falls, and at most half
        as fast as at the start: it has then fallen all the way, because its slope rises along a line. Without one in
        sight, a plain gradient step is taken, where it falls as well.
        """
        slope = float(g @ direction)
        near, far, step = 0.0, math.inf, 1.0
        for _ in range(_HALVINGS):
            there = w + step * direction
            g_there = self.gradient(there, linear)
            if np.linalg.norm(g_there) <= small:
                return there, g_there
            rise = float(g_there @ direction)
            if 0.5 * slope <= rise <= 0.0:
                return there, g_there
            near, far = (step, far) if rise < 0.0 else (near, step)
            step = 2.0 * near if math.isinf(far) else (near + far) / 2.0
        there = w - g / self._smoothness
        return there, self.gradient(there, linear)

    def _wall(self, w: Floats) -> float:
        """The wall's slope over |w|: zero up to `_WALL`."""
        norm = float(np.linalg.norm(w))
        return self._steep * (1.0 - _WALL / norm) if norm > _WALL else 0.0

    def _newton(self, w: Floats, g: Floats, accuracy: float) -> Floats:
        """The Newton direction, to this relative accuracy where it is found by iteration."""
        weights = self._second_derivatives(w)
        diagonal = self._l2 + self._wall(w) + 1e-12 * self._smoothness
        norm = float(np.linalg.norm(w))
        outwards = w * math.sqrt(self._steep * _WALL / norm**3) if norm > _WALL else np.zeros_like(w)
        Z, d = self._data.Z, self._task.d
        if d <= FULL_MATRIX:
            hessian = np.diag(diagonal) + np.outer(outwards, outwards)
            product: Any = Z.T @ (Z.multiply(weights[:, None]) if isinstance(Z, csr_array) else Z * weights[:, None])
            hessian[:d, :d] += product.toarray() if isinstance(Z, csr_array) else product
            if self._task.fit_intercept:
                border = Z.T @ weights
                hessian[:d, d] += border
                hessian[d, :d] += border
                hessian[d, d] += weights.sum()
            return _solved(hessian, -g)

        def times(v: Floats) -> Floats:
            margins = Z @ v[:d] + (v[d] if self._task.fit_intercept else 0.0)
            out = diagonal * v + outwards * float(outwards @ v)
            out[:d] += Z.T @ (weights * margins)
            if self._task.fit_intercept:
                out[d] += float(weights @ margins)
            return out

        operator = LinearOperator((len(w), len(w)), matvec=times, dtype=np.float64)
        direction, _ = cg(operator, -g, rtol=accuracy, maxiter=200)
        return direction

    def _second_derivatives(self, w: Floats) -> Floats:
        """Of the loss in each row's margin."""
        d = self._task.d
        margins = self._data.Z @ w[:d] + (w[d] if self._task.fit_intercept else 0.0)
        if self._task.loss == LOGISTIC:
            return sigmoid(margins) * sigmoid(-margins)
        return (np.abs(margins - self._data.targets) < self._rules.slope).astype(np.float64)


def _solved(matrix: Floats, right: Floats) -> Floats:
    """The solution of a symmetric positive definite system; the right side itself where rounding made it singular."""
    try:
        return np.asarray(cho_solve(cho_factor(matrix, check_finite=False), right, check_finite=False))
    except LinAlgError:
        return right
