"""`tacit audit`: attack a solver on made-up neighbours, and see whether its claim survives. No user data is read.

The neighbours are the worst known for solvers of linear models: all other rows balance each other, so that the weights
stay near zero and the row in question keeps a gradient longer than any clip. Its counterpart is the opposite row
(replace-one), or a row whose norm overflows, which contributes nothing to any sum (add-remove).

What it proves: a bound above the claim refutes the claim at the confidence stated. One below it proves nothing.
"""

import json
import math
import time
from argparse import Namespace
from collections.abc import Callable
from typing import Any, get_args

import numpy as np
from dp_accounting import GaussianDpEvent
from numpy.typing import NDArray

from tacit.privacy import Budget, CalibratedPlan, NoiseSource, audit, checks, events
from tacit.solvers import SOLVERS, Rows, Solver, Strengths, Task, choose
from tacit.solvers.task import LossName

ROWS, COLUMNS, CLASSES = 100, 2, 3
SECONDS, LEAST, MOST = 12.0, 200, 2_000


def run(arguments: Namespace) -> int:
    """Audit; 1 when a bound contradicts the claim."""
    loss = checks.one_of("loss", arguments.loss, get_args(LossName))
    confidence = checks.open_unit("confidence", arguments.confidence)
    budget = Budget(arguments.epsilon, arguments.delta, arguments.adjacency)
    if not budget.is_private:
        raise ValueError("epsilon must be finite: without noise there is nothing to audit")
    outputs = CLASSES if loss == "multinomial" else 1
    task = Task(ROWS, COLUMNS, loss, outputs, False, False, budget)  # type: ignore[arg-type]
    solver = choose(checks.one_of("solver", arguments.solver, ("auto", *SOLVERS)), task)
    calibrated = solver.plan(task, 1.0).calibrate(budget)
    once, (present, absent) = mechanism(solver, task, calibrated), neighbours(task)
    trials = _affordable(once, present) if arguments.trials is None else arguments.trials
    result = audit.audit(once, present, absent, budget.delta, trials, confidence=confidence)
    gaussian = all(isinstance(leaf, GaussianDpEvent) for leaf, _ in events.walk(calibrated.event))
    refuted = result.contradicts(**({"claimed_mu": budget.mu} if gaussian else {"claimed_epsilon": budget.epsilon}))
    told = {
        "solver": solver.name,
        "loss": loss,
        "adjacency": budget.adjacency,
        "claimed": {"epsilon": budget.epsilon, "delta": budget.delta, "mu": budget.mu if gaussian else None},
        "found": {"epsilon": result.epsilon, "mu": result.mu if gaussian else None},
        "tested": "mu" if gaussian else "epsilon",
        "confidence": confidence,
        "trials": result.trials,
        "refuted": refuted,
    }
    print(json.dumps(told, indent=2) if arguments.json else _text(told))
    return int(refuted)


def mechanism(solver: Solver, task: Task, calibrated: CalibratedPlan) -> Callable[[Rows], NDArray[np.float64]]:
    """From bounded rows to all that the solver returns, with fresh noise for each call."""
    strengths = Strengths(np.zeros(task.d), np.zeros(task.d))

    def once(rows: Rows) -> NDArray[np.float64]:
        with calibrated.meter(NoiseSource()) as meter:
            solution = solver.run(task, rows, strengths, meter)
        return np.concatenate([solution.weights.ravel(), solution.noise.ravel()])

    return once


def neighbours(task: Task) -> tuple[Rows, Rows]:
    """Two tables of bounded rows that differ in row 0."""
    Z = np.tile([[3.0] * task.d, [-3.0] * task.d], (task.n // 2, 1))
    low, high = {"squared": (-3.0, 3.0), "multinomial": (0.0, task.outputs - 1.0)}.get(task.loss, (-1.0, 1.0))
    targets = np.resize(np.array([low, low, high, high]), task.n)
    other = Z.copy()
    other[0] = -Z[0] if task.budget.adjacency == "replace-one" else 1e200
    return Rows(Z, targets, 3.0), Rows(other, targets, 3.0)


def _affordable(once: Callable[[Rows], Any], rows: Rows) -> int:
    """How many runs on each side take about `SECONDS`: a number that does not depend on what the runs give."""
    once(rows)  # compiles
    started = time.perf_counter()
    for _ in range(10):
        once(rows)
    return int(min(MOST, max(LEAST, SECONDS * 10 / (2 * (time.perf_counter() - started)))))


def _floor(bound: float) -> str:
    """Three decimals, never up."""
    return f"{math.floor(1000 * bound) / 1000:g}"


def _text(told: dict[str, Any]) -> str:
    claimed, found, tested = told["claimed"], told["found"], told["tested"]
    exact = f", mu = {claimed['mu']:.4g}" if tested == "mu" else ""
    verdict = (
        f"REFUTED: the bound on {tested} is above the claim."
        if told["refuted"]
        else "Not refuted. This is no proof: other neighbours, or more runs, might show more."
    )
    return "\n".join(
        [
            f"{told['solver']} solver, {told['loss']} loss, {told['adjacency']}, worst-case neighbours",
            f"claimed  epsilon = {claimed['epsilon']:g} at delta = {claimed['delta']:g}{exact}",
            f"found    {tested} >= {_floor(found[tested])} with {100 * told['confidence']:g}%"
            f" confidence, from 2 x {told['trials']:,} runs",
            verdict,
        ]
    )
