"""The algorithms: one file each, with its plan, its run and its guarantee.

A solver sees bounded rows and a gate. It releases what its plan says and returns weights.
"""

from tacit.problems import HINGE, LOGISTIC, MULTINOMIAL, SQUARED, SQUARED_HINGE, Loss
from tacit.solvers.coordinate import CoordinateSolver
from tacit.solvers.dual import DualSolver
from tacit.solvers.frank_wolfe import FrankWolfeSolver
from tacit.solvers.gradient import GradientSolver
from tacit.solvers.greedy import GreedySolver
from tacit.solvers.limits import checked_iterations
from tacit.solvers.objective import ObjectiveSolver
from tacit.solvers.one_shot import OneShotSolver
from tacit.solvers.rescaled import WIDE
from tacit.solvers.sgd import SGDSolver
from tacit.solvers.statistics import StatisticsSolver
from tacit.solvers.task import Options, PenaltyName, Rows, Solution, Solver, Task
from tacit.solvers.text import signal

_ALL: tuple[Solver, ...] = (
    CoordinateSolver(),
    DualSolver(),
    FrankWolfeSolver(),
    GradientSolver(),
    GreedySolver(),
    ObjectiveSolver(),
    OneShotSolver(),
    SGDSolver(),
    StatisticsSolver(),
)
SOLVERS: dict[str, Solver] = {solver.name: solver for solver in _ALL}


_WORDS: dict[PenaltyName, str] = {"l2": "the l2 penalty", "l1": "the l1 penalty", "bounds": "bounds on coefficients"}

_LITTLE = 300.0  # of what unit rows can say over the noise: below this, steps find no more than one release does


def _is_wide(task: Task) -> bool:
    """Whether there are many columns against the weights that the budget can find, which are n mu / 50, if any."""
    found = task.n * task.budget.mu / 50.0
    return found >= 4.0 and task.d > 20.0 * found


def _default(task: Task) -> str:
    """What "auto" stands for: a rule in the task alone. docs/choosing-a-solver.md has the measurements behind it."""
    if task.options.l1_radius is not None:
        return "frank-wolfe"
    if task.loss in (HINGE, SQUARED_HINGE):
        if task.outputs > 1:
            return "dual"
        alone = task.budget.adjacency == "replace-one" or task.penalties != ("l2",)  # which sgd does not serve
        return "coordinate" if alone and task.loss == SQUARED_HINGE else "sgd"
    if task.penalties != ("l2",):
        if task.loss == MULTINOMIAL:
            return "sgd"
        return "greedy" if "l1" in task.penalties and task.loss == SQUARED and _is_wide(task) else "coordinate"
    if task.sparse and task.d > WIDE:
        if task.loss == LOGISTIC:
            return "one-shot" if signal(task) < _LITTLE and not task.options.given else "gradient"
        if task.loss == MULTINOMIAL and task.budget.adjacency == "add-remove":
            return "sgd"
    return "gradient"


def choose(name: str, task: Task) -> Solver:
    """The solver of that name, or the default for "auto"; refuses a task it cannot serve, and names those that can."""
    solver = SOLVERS[_default(task) if name == "auto" else name]
    loss = f"the {task.loss.words} loss"
    asked: tuple[tuple[str, Loss | str, str], ...] = (
        ("losses", task.loss, loss)
        if task.outputs == 1
        else ("multiclass", task.loss, f"{loss} of more than two classes"),
        ("adjacencies", task.budget.adjacency, f"adjacency={task.budget.adjacency!r}"),
        *(("penalties", name, _WORDS[name]) for name in task.penalties),
        *(("options", option, f"the parameter {option}") for option in task.options.given),
    )
    missing = [words for kind, wanted, words in asked if wanted not in getattr(solver, kind)]
    if missing:
        able = [s.name for s in SOLVERS.values() if all(wanted in getattr(s, kind) for kind, wanted, _ in asked)]
        which = f"these do: {', '.join(able)}" if able else "no solver serves all that was asked for"
        told = f"solver='auto' ({solver.name} here)" if name == "auto" else f"solver={name!r}"
        raise ValueError(f"{told} does not serve {' and '.join(missing)}; {which}")
    if task.options.n_iter is not None:
        checked_iterations(task.options.n_iter, solver.name)
    return solver


__all__ = [
    "SOLVERS",
    "CoordinateSolver",
    "DualSolver",
    "FrankWolfeSolver",
    "GradientSolver",
    "GreedySolver",
    "ObjectiveSolver",
    "OneShotSolver",
    "Options",
    "Rows",
    "SGDSolver",
    "Solution",
    "Solver",
    "StatisticsSolver",
    "Task",
    "choose",
]
