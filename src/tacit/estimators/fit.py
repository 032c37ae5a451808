"""The path of one fit: plan, calibrate, bound, run.

Everything up to `planned` sees public numbers only. What comes after sees data, and gives back released numbers only.
Linear models and PCA take the same path.
"""

import sys
from dataclasses import dataclass
from typing import Any, NamedTuple

from tacit.bounding import Bounding, bounding_for
from tacit.privacy import Gate, Guarantee, Plan, Promise
from tacit.privacy.path import promised, useful
from tacit.problems.task import ComponentsTask, LinearTask
from tacit.solvers.base import Algorithm, Solver


class Planned(NamedTuple):
    """A fit before the data is read: what will run, how rows will be bounded, and every release with its noise."""

    algorithm: Algorithm
    bounding: Bounding
    promise: Promise


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a fit released: what its algorithm found, the units it was found in, and what that cost."""

    result: Any
    units: Any
    promise: Promise
    guarantee: Guarantee


class FewRowsWarning(UserWarning):
    """The budget was too small for the number of rows to find out what was not declared."""


def planned(task: LinearTask | ComponentsTask, solver: Solver) -> Planned:
    """What will run, and every release of the fit with its noise."""
    budget = useful(task.budget)
    algorithm, values = solver.at(task), task.most_values
    bounding = bounding_for(task, algorithm)
    plan = Plan(*bounding.releases, *algorithm.releases(bounding.left))
    return Planned(algorithm, bounding, promised(plan, budget, task.unit, solver.name, values))


def private_fit(
    task: LinearTask | ComponentsTask, solver: Solver, table: Any, *, seed: int | None = None, verbose: int = 0
) -> Fitted:
    """Fit one model, spending the whole budget."""
    algorithm, bounding, promise = planned(task, solver)
    with Gate.open(promise, seed=seed, progress=_tell if verbose else None, stacklevel=4) as gate:
        data = bounding.run(table, gate)
        result = algorithm.run(data, gate)
    return Fitted(result, data.units, promise, gate.guarantee)


def _tell(name: str, made: int, planned: int) -> None:
    """One line for each tenth of the planned releases: counts that were fixed before the data was read."""
    if made * 10 // planned > (made - 1) * 10 // planned:
        print(f"tacit: {made} of {planned} releases ({name})", file=sys.stderr)
