"""The algorithms: one file each, with its plan, its run and its guarantee.

A solver sees bounded rows and a meter. It releases what its plan says and returns weights.
"""

from tacit.solvers.gradient import GradientSolver
from tacit.solvers.task import Rows, Solver, Task

SOLVERS: dict[str, Solver] = {"gradient": GradientSolver()}


def choose(name: str, task: Task) -> Solver:
    """The solver of that name, or the default for "auto"; refuses a task it cannot serve, and names those that can."""
    solver = SOLVERS["gradient" if name == "auto" else name]
    if task.loss not in solver.losses:
        able = [other.name for other in SOLVERS.values() if task.loss in other.losses]
        raise ValueError(f"solver={name!r} does not serve the {task.loss} loss; these do: {', '.join(able)}")
    if task.budget.adjacency not in solver.adjacencies:
        able = [other.name for other in SOLVERS.values() if task.budget.adjacency in other.adjacencies]
        raise ValueError(
            f"solver={name!r} does not serve adjacency={task.budget.adjacency!r}; these do: {', '.join(able)}"
        )
    return solver


__all__ = ["SOLVERS", "GradientSolver", "Rows", "Solver", "Task", "choose"]
