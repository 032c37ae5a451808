"""`tacit audit`: attack a solver on made-up neighbours, and see whether its claim survives. No user data is read.

The neighbours are tables of one column and differ in their last row, which is there to be seen: it is as long as a row
may be, its gradient is longer than any clip, and all others balance each other, so that weights start near zero in both
worlds. In the other world the row is absent: the table has a row less, while the number of rows stays as declared and
samples are drawn of all of them (add-remove); or it is the opposite row (replace-one).

A solver is asked for one step, which takes nearly the whole budget and shows what a row adds. Of many steps the last
weights show less, as they forget the first ones; `--steps own` audits the number that its rule would make.

What it proves: a bound above the claim refutes the claim at the confidence stated. One below it proves nothing.
"""

import json
import math
import time
from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from dp_accounting import GaussianDpEvent
from numpy.typing import NDArray

from tacit.privacy import Budget, Gate, NoiseSource, Promise, audit, checks, events
from tacit.problems import LOSSES, MULTINOMIAL, SQUARED, Penalty
from tacit.solvers import SOLVERS, Options, Rows, Solver, Task, choose

ROWS, CLASSES, SIZE = 101, 3, 3.0
SECONDS, LEAST, MOST = 25.0, 200, 10_000

# Options that make one step of a solver. A small clip is one that the row surely reaches.
_ONE_STEP = {
    "coordinate": Options(n_passes=1, clip=0.1),
    "dual": Options(n_passes=1, batch_size=ROWS, clip=1e-3),
    "frank-wolfe": Options(n_iter=1, clip=0.1),
    "gradient": Options(n_iter=1),
    "greedy": Options(n_iter=1, clip=0.1),
    "sgd": Options(n_passes=1, batch_size=ROWS),
}


def run(arguments: Namespace) -> int:
    """Audit; 1 when a bound contradicts the claim."""
    loss = LOSSES[checks.one_of("loss", arguments.loss, tuple(LOSSES))]
    confidence = checks.open_unit("confidence", arguments.confidence)
    budget = Budget(arguments.epsilon, arguments.delta, arguments.adjacency)
    if not budget.is_private:
        raise ValueError("epsilon must be finite: without noise there is nothing to audit")
    outputs = CLASSES if loss == MULTINOMIAL else 1
    task = Task(ROWS, 1, loss, outputs, False, False, budget)
    solver = choose(checks.one_of("solver", arguments.solver, ("auto", *SOLVERS)), task)
    if arguments.steps == "one":
        task = replace(task, options=_ONE_STEP.get(solver.name, Options()))
    promise = solver.plan(task, 1.0).calibrate(budget, task.unit, solver.name)
    once, (one, other) = mechanism(solver, task, promise), neighbours(solver, task)
    trials = _affordable(once, one) if arguments.trials is None else arguments.trials
    result = audit.audit(once, one, other, budget.delta, trials, confidence=confidence)
    gaussian = all(isinstance(leaf, GaussianDpEvent) for leaf, _ in events.walk(promise.event))
    refuted = result.contradicts(**({"claimed_mu": budget.mu} if gaussian else {"claimed_epsilon": budget.epsilon}))
    told = {
        "solver": solver.name,
        "loss": loss.name,
        "adjacency": budget.adjacency,
        "releases": events.describe(promise.event),
        "claimed": {"epsilon": budget.epsilon, "delta": budget.delta, "mu": budget.mu if gaussian else None},
        "found": {"epsilon": result.epsilon, "mu": result.mu if gaussian else None},
        "tested": "mu" if gaussian else "epsilon",
        "confidence": confidence,
        "trials": result.trials,
        "refuted": refuted,
    }
    print(json.dumps(told, indent=2) if arguments.json else _text(told))
    return int(refuted)


def mechanism(solver: Solver, task: Task, promise: Promise) -> Callable[[Rows], NDArray[np.float64]]:
    """From bounded rows to all that the solver returns, with fresh noise for each call."""
    penalty = Penalty().on(np.ones(task.d))

    def once(rows: Rows) -> NDArray[np.float64]:
        with GateOfPresent(promise, NoiseSource(), len(rows.targets)) as gate:
            solution = solver.run(task, rows, penalty, gate)
        return np.concatenate([solution.weights.ravel(), solution.noise.ravel()])

    return once


class GateOfPresent(Gate):
    """A gate of which samples are drawn of all declared rows, and hold those that are in the table: the first ones."""

    def __init__(self, promise: Promise, source: NoiseSource, present: int) -> None:
        super().__init__(promise, source)
        self._present = present

    def samples(self, name: str, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """As `Gate.samples`."""
        rows, starts = super().samples(name, count)
        there = rows < self._present
        return rows[there], np.concatenate([[0], np.cumsum(there)])[starts]


def neighbours(solver: Solver, task: Task) -> tuple[Rows, Rows]:
    """Two tables of bounded rows that differ in the last one, which one of them may be without."""
    low, high = {SQUARED: (-SIZE, SIZE), MULTINOMIAL: (0.0, task.outputs - 1.0)}.get(task.loss, (-1.0, 1.0))
    Z = np.resize([SIZE, -SIZE], (task.n - 1, task.d))
    targets = np.resize([low, low, high, high], task.n - 1)
    if solver.name == "objective":  # whose row tells most where the weights speak against it
        targets = np.resize([low, high], task.n - 1)
    row = np.full((1, task.d), SIZE)
    one = Rows(np.vstack([Z, row]), np.append(targets, high), SIZE)
    if task.budget.adjacency == "replace-one":
        return one, Rows(np.vstack([Z, -row]), one.targets, SIZE)
    return one, Rows(Z, targets, SIZE)


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
            f"{told['solver']} solver, {told['loss']} loss, {told['adjacency']}, {told['releases']}",
            f"claimed  epsilon = {claimed['epsilon']:g} at delta = {claimed['delta']:g}{exact}",
            f"found    {tested} >= {_floor(found[tested])} with {100 * told['confidence']:g}%"
            f" confidence, from 2 x {told['trials']:,} runs",
            verdict,
        ]
    )
