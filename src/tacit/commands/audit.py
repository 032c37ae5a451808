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
from typing import Any

import numpy as np
from dp_accounting import GaussianDpEvent
from scipy.sparse import csr_array

from tacit._types import Floats, Integers
from tacit.blocks import Bounded
from tacit.privacy import Budget, Gate, NoiseSource, Plan, Promise, Unit, audit, checks, events
from tacit.problems import LOSSES, MULTINOMIAL, SQUARED, Penalty
from tacit.problems.task import LinearTask
from tacit.solvers import (
    SOLVERS,
    Algorithm,
    Coordinate,
    Dual,
    FrankWolfe,
    Gradient,
    Greedy,
    Sgd,
    Solver,
    Text,
    choose,
)

ROWS, CLASSES, SIZE = 101, 3, 3.0
SECONDS, LEAST, MOST = 25.0, 200, 10_000

# One step of each solver that makes several. A small clip is one that the row surely reaches.
_ONE_STEP: dict[str, Solver] = {
    solver.name: solver
    for solver in (
        Coordinate(n_passes=1, clip=0.1),
        Dual(n_passes=1, batch_size=ROWS, clip=1e-3),
        FrankWolfe(n_iter=1, clip=0.1),
        Gradient(n_iter=1),
        Greedy(n_iter=1, clip=0.1),
        Sgd(n_passes=1, batch_size=ROWS),
        Text(n_iter=1),
    )
}


def run(arguments: Namespace) -> int:
    """Audit; 1 when a bound contradicts the claim."""
    loss = LOSSES[checks.one_of("loss", arguments.loss, tuple(LOSSES))]
    confidence = checks.open_unit("confidence", arguments.confidence)
    budget = Budget(arguments.epsilon, arguments.delta, arguments.adjacency)
    if not budget.is_private:
        raise ValueError("epsilon must be finite: without noise there is nothing to audit")
    outputs = CLASSES if loss == MULTINOMIAL else 1
    asked = SOLVERS.get(arguments.solver)
    task = LinearTask(
        unit=Unit("row", ROWS),
        d=1,
        budget=budget,
        sparse=asked is not None and asked.serves.sparse_only,
        loss=loss,
        outputs=outputs,
        fit_intercept=False,
    )
    solver = choose(arguments.solver, task)
    if arguments.steps == "one":
        solver = _ONE_STEP.get(solver.name, solver)
    algorithm = solver.at(task)
    promise = Plan(*algorithm.releases(1.0)).calibrate(budget, task.unit, solver.name)
    once, (one, other) = mechanism(algorithm, promise), neighbours(solver, task)
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


def mechanism(algorithm: Algorithm, promise: Promise) -> Callable[[Bounded], Floats]:
    """From bounded rows to all that the algorithm returns, with fresh noise for each call."""

    def once(rows: Bounded) -> Floats:
        with GateOfPresent(promise, NoiseSource(), len(rows.targets)) as gate:
            solution = algorithm.run(rows, gate)
        return np.concatenate([solution.weights.ravel(), solution.noise.ravel()])

    return once


class GateOfPresent(Gate):
    """A gate of which samples are drawn of all declared rows, and hold those that are in the table: the first ones."""

    def __init__(self, promise: Promise, source: NoiseSource, present: int) -> None:
        super().__init__(promise, source)
        self._present = present

    def samples(self, name: str, count: int) -> tuple[Integers, Integers]:
        """As `Gate.samples`."""
        rows, starts = super().samples(name, count)
        there = rows < self._present
        return rows[there], np.concatenate([[0], np.cumsum(there)])[starts]


def neighbours(solver: Solver, task: LinearTask) -> tuple[Bounded, Bounded]:
    """Two tables of bounded rows that differ in the last one, which one of them may be without."""
    low, high = {SQUARED: (-SIZE, SIZE), MULTINOMIAL: (0.0, task.outputs - 1.0)}.get(task.loss, (-1.0, 1.0))
    Z = np.resize([SIZE, -SIZE], (task.n - 1, task.d))
    targets = np.resize([low, low, high, high], task.n - 1)
    if solver.name == "objective":  # whose row tells most where the weights speak against it
        targets = np.resize([low, high], task.n - 1)
    row = np.full((1, task.d), SIZE)
    penalty = Penalty().on(np.ones(task.d))

    def bounded(table: Floats, labels: Floats) -> Bounded:
        return Bounded(csr_array(table) if task.sparse else table, labels, penalty, SIZE)

    present = np.append(targets, high)
    one = bounded(np.vstack([Z, row]), present)
    if task.budget.adjacency == "replace-one":
        return one, bounded(np.vstack([Z, -row]), present)
    return one, bounded(Z, targets)


def _affordable(once: Callable[[Bounded], Any], rows: Bounded) -> int:
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
