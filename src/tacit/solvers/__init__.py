"""The algorithms: one file or folder each, with its options, its plan, its run and its guarantee.

A solver is a set of options. `at(task)` turns it into an algorithm, which sees bounded rows and a gate, releases what
its plan says and returns weights. Estimators take a solver by its name, for the defaults, or as an object.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tacit.privacy import checks
from tacit.problems import HINGE, LOGISTIC, MULTINOMIAL, SQUARED, SQUARED_HINGE, Loss
from tacit.problems.task import LinearTask, PenaltyName
from tacit.solvers.base import Algorithm, Serves, Solution, Solver
from tacit.solvers.coordinate import Coordinate
from tacit.solvers.coordinate.greedy import Greedy
from tacit.solvers.dual import Dual
from tacit.solvers.frank_wolfe import FrankWolfe
from tacit.solvers.gradient import Gradient
from tacit.solvers.objective import Objective
from tacit.solvers.sgd import Sgd
from tacit.solvers.statistics import Statistics
from tacit.solvers.text import signal
from tacit.solvers.text.one_shot import OneShot
from tacit.solvers.text.steps import WIDE, Text

SOLVERS: dict[str, type[Solver]] = {
    kind.name: kind
    for kind in (Coordinate, Dual, FrankWolfe, Gradient, Greedy, Objective, OneShot, Sgd, Statistics, Text)
}

_WORDS: dict[PenaltyName, str] = {"l2": "the l2 penalty", "l1": "the l1 penalty", "bounds": "bounds on coefficients"}
_TABLE, _CELLS = 2_000, 10**8  # columns and cells of sparse rows up to which they are a table
_LITTLE = 300.0  # n sqrt(2 rho), below which steps on text find no more than one release does


def _is_wide(task: LinearTask) -> bool:
    """Whether there are many columns against the weights that the budget can find, which are n mu / 50, if any."""
    found = task.n * task.budget.mu / 50.0
    return found >= 4.0 and task.d > 20.0 * found


def _is_bounded_and_wide(task: LinearTask) -> bool:
    """Whether dense entries are all declared to lie in one (-B, B), and are too many for noise on every weight.

    Noise on all weights costs a margin sqrt(d) times what one entry does; a vertex costs ln(d).
    """
    alike = task.bounds is not None and task.bounds.entry is not None
    return alike and not (task.sparse or task.streamed) and task.nu > 1.0


def _default(task: LinearTask) -> type[Solver]:
    """What "auto" stands for: a rule in the task alone. docs/choosing-a-solver.md has the measurements behind it."""
    if task.l1_radius is not None:
        return FrankWolfe
    if task.loss in (HINGE, SQUARED_HINGE):
        if task.outputs > 1:
            return Dual
        alone = task.budget.adjacency == "replace-one" or task.penalties != ("l2",)  # which sgd does not serve
        return Coordinate if alone and task.loss == SQUARED_HINGE else Sgd
    if task.class_weight is not None and task.loss in (LOGISTIC, MULTINOMIAL):
        return Gradient if task.penalties == ("l2",) else Sgd
    if task.penalties != ("l2",):
        if task.loss == MULTINOMIAL:
            return Sgd
        if task.streamed:
            return Sgd
        return Greedy if "l1" in task.penalties and task.loss == SQUARED and _is_wide(task) else Coordinate
    if task.loss == LOGISTIC and _is_bounded_and_wide(task):
        return FrankWolfe
    if task.sparse and task.d > WIDE:
        if task.loss == LOGISTIC:
            return OneShot if signal(task) < _LITTLE else Text
        if task.loss == MULTINOMIAL and task.budget.adjacency == "add-remove":
            return Sgd
    return Gradient


def is_table(n: int, d: int, solver: str, row_norm: float | None) -> bool:
    """Whether sparse rows are those of a table, such as encoders make, and not of text; from public facts alone.

    A table has a unit for each column, which is found or declared. It may not be larger than memory easily holds.
    """
    asked = solver in (Text.name, OneShot.name, FrankWolfe.name) or row_norm is not None
    return d <= _TABLE and n * d <= _CELLS and not asked


def check_solver(solver: Any, known: Mapping[str, type[Solver]] | None = None, room: str = "tacit.solvers") -> None:
    """Refuse what is none of the known solvers, by default those of linear models, and options no task could have.

    `room` is where the known ones are, for the message.
    """
    known = SOLVERS if known is None else known
    if isinstance(solver, str):
        checks.one_of("solver", solver, ("auto", *known))
    elif isinstance(solver, Solver) and type(solver) in known.values():
        solver.check()
    else:
        raise TypeError(f"solver must be a name or an object of {room}, got {solver!r}")


def choose(solver: str | Solver, task: LinearTask) -> Solver:
    """The solver that was asked for, or the default for "auto"; refuses a task it cannot serve, and names others."""
    check_solver(solver)
    chosen = solver if isinstance(solver, Solver) else (_default(task) if solver == "auto" else SOLVERS[solver])()
    missing = _missing(chosen.serves, task)
    if missing:
        able = [name for name, kind in SOLVERS.items() if not _missing(kind.serves, task)]
        which = f"these do: {', '.join(able)}" if able else "no solver serves all that was asked for"
        told = f"solver='auto' ({chosen.name} here)" if solver == "auto" else f"solver={chosen.name!r}"
        raise ValueError(f"{told} does not serve {' and '.join(missing)}; {which}")
    return chosen


def check_streams(solver: str, loss: Loss, penalties: Sequence[PenaltyName], adjacency: str) -> None:
    """Refuse a solver that needs all rows in memory, before any row is read; "auto" if no other serves what is asked.

    What rows would tell, such as how many classes there are, is for `choose`.
    """
    able = [
        name
        for name, kind in SOLVERS.items()
        if kind.serves.streams
        and loss in kind.serves.losses
        and set(penalties) <= set(kind.serves.penalties)
        and adjacency in kind.serves.adjacencies
    ]
    if not able or (solver != "auto" and not SOLVERS[solver].serves.streams):
        which = f"these do: {', '.join(able)}" if able else "no solver does, with the penalty and adjacency asked for"
        raise ValueError(f"solver={solver!r} does not serve rows that are not all in memory; {which}")


def _missing(serves: Serves, task: LinearTask) -> list[str]:
    """What a task asks for that is not served, in words."""
    several, adjacency = task.outputs > 1, task.budget.adjacency
    missing = []
    if task.loss not in (serves.multiclass if several else serves.losses):
        missing.append(f"the {task.loss.words} loss{' of more than two classes' if several else ''}")
    if adjacency not in serves.adjacencies:
        missing.append(f"adjacency={adjacency!r}")
    for name in task.penalties:
        if name not in serves.penalties:
            missing.append(_WORDS[name])
    if task.l1_radius is not None and not serves.ball:
        missing.append("the parameter l1_radius")
    if task.class_weight is not None and not serves.weights:
        missing.append("the parameter class_weight")
    if task.streamed and not serves.streams:
        missing.append("rows that are not all in memory")
    if serves.sparse_only and not task.sparse:
        missing.append("dense rows")
    return missing


__all__ = [
    "SOLVERS",
    "Algorithm",
    "Coordinate",
    "Dual",
    "FrankWolfe",
    "Gradient",
    "Greedy",
    "Objective",
    "OneShot",
    "Serves",
    "Sgd",
    "Solution",
    "Solver",
    "Statistics",
    "Text",
    "check_solver",
    "check_streams",
    "choose",
]
