"""The methods of the DP Frank-Wolfe benchmark, and how the library's solver is run with its own parts.

All are add-remove, calibrated by the library's accountant, with an intercept but where it says otherwise. Rows have
norm 1 at most, which is declared. `mean difference` and `top-k` are small baselines of this file: like the library's
solvers for text they release the class share before and draw a threshold after, and their noise comes from its
mechanisms.
"""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from dp_accounting import ZCDpEvent
from scipy.sparse import issparse
from scipy.special import expit
from sklearn.linear_model import LogisticRegression as PlainLogisticRegression

import tacit
from benchmarks.dp_fw.problems import Split
from benchmarks.frame import Floats
from benchmarks.frame.solvers import Run, asked, fitted, margins
from tacit.blocks import Bounded
from tacit.kernels.rows import Residuals
from tacit.privacy import Budget, Gate, NoiseSource, Plan, Release
from tacit.privacy.accounting import epsilon_of
from tacit.privacy.mechanisms import GaussianVector, Sensitivity, VertexWalk, Vertices
from tacit.problems import Penalty
from tacit.problems.task import LinearTask
from tacit.solvers import frank_wolfe, text
from tacit.solvers.frank_wolfe.path import Path
from tacit.solvers.frank_wolfe.rows import Scoring
from tacit.solvers.frank_wolfe.scores import Scores, SteppedScores
from tacit.solvers.text.steps import WIDE

PAPER_ITERATIONS, PAPER_RADIUS = 4_000, 50.0
Measured = tuple[dict[str, float], float, str]
"""Test scores, the seconds of the fit, and the solver or the number of iterations."""
ENTRY = 0.1  # the bound on entries of rows of norm 1: the default of the estimators for row_norm=1


@dataclass(frozen=True)
class FrankWolfe:
    """The paper's problem: no intercept, and a given number of iterations and ball, or the solver's."""

    count: int | None = PAPER_ITERATIONS
    radius: float | None = PAPER_RADIUS
    bound: float = ENTRY
    sampler: str = "bucket"
    loss: str = "logistic"

    def run(self, X: Any, budget: Budget) -> Run:
        """The solver, and what it may know."""
        solver = frank_wolfe.FrankWolfe(n_iter=self.count, entry_bound=self.bound, sampler=self.sampler)
        return Run(solver, asked(X.shape, self.loss, budget, sparse=issparse(X), l1_radius=self.radius))

    def fit(self, split: Split, budget: Budget, seed: int) -> tuple[Floats, float, float]:
        """The weights, and the processor's seconds for calibration and for the run."""
        run, start = self.run(split.X, budget), time.process_time()
        promise, ready = run.promise(), time.process_time()
        with Gate(promise, NoiseSource(seed)) as gate:
            weights = run.algorithm.run(Bounded(split.X, split.y, Penalty(), self.bound), gate).weights[0]
        return weights[:-1], ready - start, time.process_time() - ready

    def measure(self, split: Split, budget: Budget, seed: int) -> Measured:
        """One fit."""
        weights, _, took = self.fit(split, budget, seed)
        return split.scores(split.X_test @ weights, weights), took, str(self.count)

    def settled(self, X: Any, budget: Budget) -> "FrankWolfe":
        """With the numbers that the solver's rules give where none is given."""
        draws: Any = self.run(X, budget).algorithm
        return replace(self, count=draws.count, radius=draws.path(self.bound).radius)

    def exact_signs(self, split: Split, budget: Budget, seed: int) -> Measured:
        """NOT PRIVATE: columns are drawn, and each takes the sign of its exact gradient, as the paper prints."""
        run, gate = self.opened(split.X, budget, seed)
        start = time.process_time()
        scores, path, scoring = self.scores(SteppedScores, run, split.X, split.y, gate)
        draw, picks = Vertices(scores.sampler, scoring.units), []
        for t in range(1, self.count + 1):
            j, _ = gate.release("vertices", draw)
            picks.append((j, -1 if scores.scores[j] > 0 else 1))  # type: ignore[attr-defined]
            scores.step(t, *picks[-1])
        weights = np.zeros(split.size[1])
        chosen, weights[chosen] = path.weights(picks)
        took = time.process_time() - start
        return split.scores(split.X_test @ weights, weights), took, str(self.count)

    def opened(self, X: Any, budget: Budget, seed: int) -> tuple[Run, Gate]:
        """The run, and a gate on its promise."""
        run = self.run(X, budget)
        return run, Gate(run.promise(), NoiseSource(seed))

    def scores(
        self, form: Any, run: Run, X: Any, y: Floats, gate: Gate, tolerance: float | None = None
    ) -> tuple[Scores, Path, Scoring]:
        """The gradient as a form keeps it; by default with the solver's tolerance."""
        draws: Any = run.algorithm
        loss, path = run.task.loss, draws.path(self.bound)
        limit = draws.slope_limit(self.radius * self.bound, 0.0)
        if tolerance is None:
            tolerance = draws.tolerance * limit
        units = frank_wolfe._units(run.task, gate)
        scoring = Scoring(loss.code, self.bound, limit, loss.curvature, units, 0.0, tolerance)
        return form.of(X, y, scoring, path, self.sampler), path, scoring


def partial_seconds(
    method: FrankWolfe, form: Any, split: Split, budget: Budget, at_least: float, fewest: int = 5
) -> tuple[float, float, int]:
    """The processor's seconds for the start and for one iteration, and how many were timed.

    All of them where draws and steps are one compiled loop; otherwise some, after one to warm up.
    """
    run, gate = method.opened(split.X, budget, 0)
    start = time.process_time()
    scores, _, scoring = method.scores(form, run, split.X, split.y, gate)
    begun = time.process_time() - start
    draw = Vertices(scores.sampler, scoring.units)  # type: ignore[arg-type]
    if scores.rounds is not None:
        start = time.process_time()
        gate.release("vertices", VertexWalk(draw), method.count, scores.step, scores.rounds)
        return begun, (time.process_time() - start) / method.count, method.count
    scores.step(1, *gate.release("vertices", draw))
    start, made = time.process_time(), 0
    while made < method.count - 1 and (made < fewest or time.process_time() - start < at_least):
        scores.step(made + 2, *gate.release("vertices", draw))
        made += 1
    return begun, (time.process_time() - start) / made, made


@dataclass(frozen=True)
class Estimator:
    """An estimator of the library; rows of norm `row_norm` are declared, and what is given."""

    label: str
    solver: Any
    options: Mapping[str, Any] = field(default_factory=dict)
    for_text: str = ""  # the solver in place of the other for sparse rows with many columns

    def measure(self, split: Split, budget: Budget, seed: int, row_norm: float | None = 1.0) -> Measured:
        """One fit."""
        shared = {"epsilon": budget.epsilon, "delta": budget.delta, "row_norm": row_norm, "random_state": seed}
        text_rows = issparse(split.X) and split.X.shape[1] > WIDE
        shared |= {"solver": self.for_text if self.for_text and text_rows else self.solver, **self.options}
        if self.solver == "greedy":
            model: Any = tacit.Lasso(y_bounds=(-1.0, 1.0), **shared)
        else:
            model = tacit.LogisticRegression(classes=[-1.0, 1.0], **shared)
        took = fitted(model, split.X, split.y, clock=time.process_time)
        coef = model.coef_.toarray() if issparse(model.coef_) else model.coef_
        return split.scores(margins(model, split.X_test), coef), took, model.guarantee_.solver


@dataclass(frozen=True)
class Baseline:
    """Weights for rows of norm 1 from a few releases, between the class share and the threshold."""

    label: str
    releases: tuple[Release, ...]
    weigh: Callable[[LinearTask, text.UnitRows, text.ClassShare, Gate], Floats]

    def measure(self, split: Split, budget: Budget, seed: int, row_norm: float | None = 1.0) -> Measured:
        """One fit."""
        assert row_norm is not None
        start = time.process_time()
        n, d = split.X.shape
        task = asked((n, d), "logistic", budget, sparse=issparse(split.X), intercept=True)
        rows = split.X.astype(np.float64) * (math.sqrt(d) / row_norm)
        unit = text.UnitRows(task, Bounded(rows, split.y, Penalty()))
        promise = Plan(*text.planned(task, 1.0, *self.releases)).calibrate(budget, task.unit, self.label)
        with Gate(promise, NoiseSource(seed)) as gate:
            weights = self.weigh(task, unit, unit.class_share(gate), gate) / math.sqrt(d)
            threshold = unit.threshold(gate, weights)
        took = time.process_time() - start
        return split.scores(split.X_test @ (weights * (math.sqrt(d) / row_norm)) - threshold, weights), took, ""


def _difference(task: LinearTask, unit: text.UnitRows, share: text.ClassShare, gate: Gate) -> Floats:
    """The sum of (class - p) x, with noise."""
    mechanism = GaussianVector(Sensitivity.vector(share.clip), bound=task.n * share.clip)
    return gate.release("sums", mechanism, unit.sums(share.p, 0.0)[0])


STEPS, MOMENTUM = 100, 0.5


def kept_columns(task: LinearTask) -> int:
    """How many columns `top-k` keeps: n mu, so often does n hold the noise of a sum; at least 50."""
    return min(task.d, max(50, round(task.n * task.budget.mu)))


def _top_k(task: LinearTask, unit: text.UnitRows, share: text.ClassShare, gate: Gate) -> Floats:
    """Gradient steps on the columns whose noisy sum of (class - p) x is largest."""
    sums = np.abs(_difference(task, unit, share, gate))
    kept = np.zeros(task.d)
    kept[np.argpartition(sums, -kept_columns(task))[-kept_columns(task) :]] = 1.0
    factors = unit.scaled(unit.weighted(kept), 1.0)
    mechanism = GaussianVector(Sensitivity.vector(share.clip), bound=task.n * share.clip)
    one = gate.multiplier("gradients") * share.clip / math.sqrt(STEPS)
    rate = min(1.0, task.n * share.clip / one / 4_000.0) / (one * STEPS)
    at = before = np.zeros(task.d)
    for _ in range(STEPS):
        total = unit.residuals(factors, Residuals(at * kept, 0.0, share.offset, share.clip))[:-1]
        moved = at + rate * kept * gate.release("gradients", mechanism, total * kept)
        at, before = moved + MOMENTUM * (moved - before), moved
    return before


METHODS: dict[str, Estimator | Baseline] = {
    "auto": Estimator("auto", "auto"),
    "one-shot": Estimator("one-shot", "one-shot"),
    "gradient": Estimator("gradient (rescaled where there are over 1,000 columns)", "gradient", for_text="text"),
    "objective": Estimator("objective perturbation", "objective"),
    "top-k": Baseline(
        "Gaussian top-k, then gradient steps",
        (Release("sums", "gaussian", share=0.3), Release("gradients", "gaussian", share=0.7, count=STEPS)),
        _top_k,
    ),
    "mean difference": Baseline("mean difference", (Release("sums", "gaussian", share=1.0),), _difference),
    "greedy": Estimator("greedy coordinate descent, squared loss on labels -1 and 1", "greedy", {"alpha": 1e-5}),
    "frank-wolfe": Estimator("frank-wolfe, by its rules", "frank-wolfe"),
    "paper": Estimator(
        "frank-wolfe, the paper's T = 4,000 and lambda = 50",
        frank_wolfe.FrankWolfe(n_iter=PAPER_ITERATIONS, averaging="last"),
        {"l1_radius": PAPER_RADIUS},
    ),
}
"""By the names that records have."""
PLAIN, MAJORITY = "not private", "majority"


def plain(split: Split) -> Measured:
    """scikit-learn's logistic regression with its defaults. Columns without an entry keep a weight of zero."""
    model = PlainLogisticRegression(max_iter=300)
    if not issparse(split.X):
        took = fitted(model, split.X, split.y, clock=time.process_time)
        return split.scores(margins(model, split.X_test), model.coef_), took, ""
    kept = np.unique(split.X.indices)
    took = fitted(model, split.X[:, kept], split.y, clock=time.process_time)
    weights = np.zeros(split.size[1])
    weights[kept] = model.coef_[0]
    return split.scores(split.X_test @ weights + model.intercept_, weights), took, ""


def appendix_b(split: Split, method: FrankWolfe, epsilon: float) -> int:
    """The iterations of the paper's Appendix B: (curvature n epsilon / (L lambda))^(2/3), at most a million.

    On entries bounded by B the curvature constant of the mean logistic loss over the ball is at most (lambda B)^2, and
    L is B.
    """
    assert method.radius is not None
    return min(round((method.radius * method.bound * len(split.y) * epsilon) ** (2.0 / 3.0)), 1_000_000)


def printed_epsilon(rows: int, count: int, radius: float, epsilon: float, delta: float) -> float:
    """What T draws cost, signs being drawn too, with noise of scale lambda L sqrt(8 T ln(1/delta)) / (n epsilon).

    It goes onto sums of rows with entries of at most 1 (L = 1), as lines 2 to 8 of Algorithm 1 are printed: a draw has
    range 2 / scale, and is range^2 / 8-zCDP.
    """
    scale = radius * math.sqrt(8.0 * count * math.log(1.0 / delta)) / (rows * epsilon)
    rho = count * (2.0 / scale) ** 2 / 8.0
    return epsilon_of(ZCDpEvent(rho), delta)


def majority(split: Split) -> dict[str, float]:
    """Scores of the class that is more frequent among the training rows."""
    right = np.mean(split.y_test == (1.0 if np.mean(split.y) > 0.0 else -1.0))
    return {"accuracy": float(right), "auc": 0.5, "sparsity": 1.0}


def gap(X: Any, y: Floats, weights: Floats, radius: float, bound: float) -> float:
    """The Frank-Wolfe gap of the mean loss, from all rows: what linear steps in the ball could still gain."""
    Z = X.astype(np.float64)
    np.clip(Z.data, -bound, bound, out=Z.data)
    slopes = -y * expit(-y * (Z @ weights)) / len(y)
    alpha = Z.T @ slopes
    return float(alpha @ weights + radius * np.abs(alpha).max())
