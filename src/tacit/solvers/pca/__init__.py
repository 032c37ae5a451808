"""Private PCA: the solvers, and the rule of "auto".

gauss              `Gauss` and `ModSulq`: one release of the whole matrix
power              `Power`: noisy products over all rows
stochastic         `Stochastic`: noisy products over samples
variance_reduced   `VarianceReduced`: means of products over all rows, and corrections
steps              what the solvers that multiply share
directions         directions with weights and a clip, for those two
spectrum           components and variances from noisy matrices

"auto" is "gauss" if the packed matrix fits the memory limit and the data is dense or has few columns. Else it is
"stochastic", or "power" where rows cannot be sampled: blocks of wide sparse rows, and for replace-one neighbours.
"""

from collections.abc import Callable

from tacit.blocks.table import WIDEST
from tacit.problems.task import ComponentsTask
from tacit.solvers import check_solver
from tacit.solvers.base import Serves, Solver
from tacit.solvers.pca.gauss import Gauss, ModSulq
from tacit.solvers.pca.power import Power
from tacit.solvers.pca.spectrum import FULL_MATRIX
from tacit.solvers.pca.stochastic import Stochastic
from tacit.solvers.pca.variance_reduced import VarianceReduced

PCA_SOLVERS: dict[str, type[Solver]] = {
    kind.name: kind for kind in (Gauss, Stochastic, VarianceReduced, Power, ModSulq)
}

_CANDIDATES = 200  # in a matrix of more columns than are unpacked
_FOLLOWED = 20  # by a solver that multiplies by twice as many directions
FEW_COLUMNS = 4_000  # up to which the matrix is worth its noise on sparse data


def packed_bytes(d: int) -> int:
    """What a packed symmetric matrix takes."""
    return 8 * (d * (d + 1) // 2)


def _default(task: ComponentsTask, memory_limit: float) -> type[Solver]:
    """What "auto" stands for: a rule in public numbers alone."""
    if packed_bytes(task.d) <= memory_limit and (not task.sparse or task.d <= FEW_COLUMNS):
        return Gauss
    in_parts = task.streamed and task.sparse
    return Power if in_parts or task.budget.adjacency == "replace-one" else Stochastic


def choose(solver: str | Solver, task: ComponentsTask, memory_limit: float) -> Solver:
    """The solver that was asked for, or the default for "auto"; refuses a task it cannot serve, and names others."""
    check_solver(solver, PCA_SOLVERS, __name__)
    if isinstance(solver, Solver):
        chosen = solver
    else:
        chosen = (_default(task, memory_limit) if solver == "auto" else PCA_SOLVERS[solver])()
    serves, told = chosen.serves, f"solver={chosen.name!r}"
    adjacency = task.budget.adjacency
    if adjacency not in serves.adjacencies:
        able = _names(lambda other: adjacency in other.adjacencies)
        raise ValueError(f"{told} does not serve adjacency={adjacency!r}; {able} do")
    if task.streamed and task.sparse and not serves.streams:
        able = _names(lambda other: other.streams)
        raise ValueError(
            f"{told} samples single rows, which blocks of sparse rows with more than {WIDEST} columns cannot give;"
            f" {able} read whole passes, and fit takes CSR rows of any width that are in memory"
        )
    if serves.whole_matrix and packed_bytes(task.d) > memory_limit:
        raise ValueError(
            f"{told} needs {packed_bytes(task.d):,} bytes for a matrix of {task.d:,} columns, and memory_limit"
            f" is {memory_limit:g}; raise it, or use solver='stochastic' or 'power'"
        )
    return chosen


def most_candidates(solver: Solver, d: int) -> int:
    """How many components are looked for where those above the noise are kept: a rule in public numbers."""
    if not solver.serves.whole_matrix:
        return _FOLLOWED
    return d if d <= FULL_MATRIX else _CANDIDATES


def _names(serve: Callable[[Serves], bool]) -> str:
    """The solvers that serve something, as an error lists them."""
    return ", ".join(repr(name) for name, kind in PCA_SOLVERS.items() if serve(kind.serves))


__all__ = ["PCA_SOLVERS", "Gauss", "ModSulq", "Power", "Stochastic", "VarianceReduced", "choose", "most_candidates"]
