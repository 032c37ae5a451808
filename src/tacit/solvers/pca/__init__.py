"""Private PCA: one file, one algorithm; `rows` reads and bounds, `bounding` finds what was not declared.

`auto` is `gauss` if the packed matrix fits the memory limit and the data is dense or has few columns. Else it is
`stochastic`, or `power` where rows cannot be sampled: on a stream, and for replace-one neighbours.
"""

from tacit.privacy import checks
from tacit.solvers.pca.gauss import GaussSolver
from tacit.solvers.pca.mod_sulq import ModSulqSolver
from tacit.solvers.pca.power import PowerSolver
from tacit.solvers.pca.stochastic import StochasticSolver
from tacit.solvers.pca.task import PcaSolver, PcaTask
from tacit.solvers.pca.variance_reduced import VarianceReducedSolver

PCA_SOLVERS: dict[str, PcaSolver] = {
    solver.name: solver
    for solver in (GaussSolver(), StochasticSolver(), VarianceReducedSolver(), PowerSolver(), ModSulqSolver())
}

FEW_COLUMNS = 4_000  # up to which the matrix is worth its noise on sparse data


def packed_bytes(d: int) -> int:
    """What a packed symmetric matrix takes."""
    return 8 * (d * (d + 1) // 2)


def choose_pca(name: str, task: PcaTask, memory_limit: float) -> PcaSolver:
    """The solver of this name, or the one that `auto` stands for; one that cannot serve the task is refused."""
    checks.one_of("solver", name, ("auto", *PCA_SOLVERS))
    if name == "auto":
        if packed_bytes(task.d) <= memory_limit and (not task.sparse or task.d <= FEW_COLUMNS):
            name = "gauss"
        else:
            name = "power" if task.streamed or task.budget.adjacency == "replace-one" else "stochastic"
    solver = PCA_SOLVERS[name]
    if task.budget.adjacency not in solver.adjacencies:
        able = ", ".join(repr(s.name) for s in PCA_SOLVERS.values() if task.budget.adjacency in s.adjacencies)
        raise ValueError(f"solver={name!r} does not serve adjacency={task.budget.adjacency!r}; {able} do")
    if task.streamed and solver.picks_rows:
        able = ", ".join(repr(s.name) for s in PCA_SOLVERS.values() if not s.picks_rows)
        raise ValueError(
            f"solver={name!r} samples single rows, which a stream of blocks cannot give; {able} read whole passes, and"
            " fit takes a memory-mapped array"
        )
    if task.clip is not None and not solver.clips:
        able = ", ".join(repr(s.name) for s in PCA_SOLVERS.values() if s.clips)
        raise ValueError(f"solver={name!r} does not use clip; {able} do")
    if name in ("gauss", "mod-sulq") and packed_bytes(task.d) > memory_limit:
        raise ValueError(
            f"solver={name!r} needs {packed_bytes(task.d):,} bytes for a matrix of {task.d:,} columns, and memory_limit"
            f" is {memory_limit:g}; raise it, or use solver='stochastic' or 'power'"
        )
    return solver
