"""The path of one fit: plan, calibrate, bound, run.

Everything up to `planned` sees public numbers only. What comes after sees data, and gives back released numbers only.
Linear models and PCA take the same path.
"""

import sys
from dataclasses import dataclass
from typing import Any, NamedTuple

from tacit.bounding import Bounding, bounding_for
from tacit.privacy import Gate, Guarantee, Plan, Promise, Release
from tacit.privacy.path import promised, useful
from tacit.problems.task import ComponentsTask, LinearTask
from tacit.solvers.base import Algorithm, Solver


class Arranged(NamedTuple):
    """A fit before the data is read: what will run, and how rows will be bounded."""

    algorithm: Algorithm
    bounding: Bounding

    @property
    def releases(self) -> tuple[Release, ...]:
        """Every release of the fit, with its part of the budget."""
        return (*self.bounding.releases, *self.algorithm.releases(self.bounding.left))

    def narrowed(self, task: LinearTask) -> "Arranged | None":
        """The same releases for a table that turned out to have fewer columns; None where that is not to be had.

        The plan is fixed before. So the number of releases, their names and their kinds must be those of the wider
        table: clips and scales alone follow the columns.
        """
        algorithm = self.algorithm.narrowed(task)
        if algorithm is None:
            return None
        other = Arranged(algorithm, bounding_for(task, algorithm))
        return other if list(map(_made, other.releases)) == list(map(_made, self.releases)) else None

    def run(self, table: Any, gate: Gate) -> tuple[Any, Any]:
        """What the algorithm finds, and the units it is in."""
        data = self.bounding.run(table, gate)
        return self.algorithm.run(data, gate), data.units


class Planned(NamedTuple):
    """The same, and every release with its noise."""

    fit: Arranged
    promise: Promise


def _made(release: Release) -> tuple[str, str, int, float]:
    """What a gate holds a run to."""
    return release.name, release.kind, release.count, release.sampling


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a fit released: what its algorithm found, the units it was found in, and what that cost."""

    result: Any
    units: Any
    promise: Promise
    guarantee: Guarantee


class FewRowsWarning(UserWarning):
    """The budget was too small for the number of rows to find out what was not declared."""


def arranged(task: LinearTask | ComponentsTask, solver: Solver) -> Arranged:
    """What will run, by public numbers alone."""
    useful(task.budget)
    algorithm = solver.at(task)
    return Arranged(algorithm, bounding_for(task, algorithm))


def planned(task: LinearTask | ComponentsTask, solver: Solver) -> Planned:
    """What will run, and every release of the fit with its noise."""
    fit = arranged(task, solver)
    promise = promised(Plan(*fit.releases), task.budget, task.unit, solver.name, task.most_values)
    return Planned(fit, promise)


def private_fit(
    task: LinearTask | ComponentsTask, solver: Solver, table: Any, *, seed: int | None = None, verbose: int = 0
) -> Fitted:
    """Fit one model, spending the whole budget."""
    fit, promise = planned(task, solver)
    with Gate.open(promise, seed=seed, progress=tell if verbose else None, stacklevel=4) as gate:
        data = fit.bounding.run(table, gate)  # not by `fit.run`: warnings point to the caller of this function
        result = fit.algorithm.run(data, gate)
    return Fitted(result, data.units, promise, gate.guarantee)


def tell(name: str, made: int, planned: int) -> None:
    """One line for each tenth of the planned releases: counts that were fixed before the data was read."""
    if made * 10 // planned > (made - 1) * 10 // planned:
        print(f"tacit: {made} of {planned} releases ({name})", file=sys.stderr)
