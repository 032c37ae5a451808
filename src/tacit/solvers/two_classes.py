"""When solvers that move one weight or one row at a time count two classes; from public numbers alone.

They meet more noise in the intercept than steps on all weights do, and counts cost the same: it takes more rows until
counts bring more than they cost. `benchmarks.rules.solvers` has the measurements.
"""

from tacit.problems import LOGISTIC
from tacit.problems.task import LinearTask
from tacit.solvers import classes

_CLEARER = 2.5  # times the n mu / K from which on steps on all weights are served by counts


def are_due(task: LinearTask) -> bool:
    """Whether the intercept starts by the count of a class, which is released."""
    enough = task.n * task.budget.mu > _CLEARER * classes.ENOUGH * task.classes
    return task.loss == LOGISTIC and task.outputs == 1 and enough and classes.are_due(task)
