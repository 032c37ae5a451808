"""What the tests of PCA share."""

from tacit.blocks import Centre, CentredRows, Table
from tacit.privacy import Budget, Unit
from tacit.problems.task import ComponentsTask


def task_of(n, d, k=1, epsilon=1.0, adjacency="add-remove", delta=1e-6, **asked):
    """The public facts of a fit."""
    return ComponentsTask(unit=Unit("row", n), d=d, k=k, budget=Budget(epsilon, delta, adjacency), **asked)


def centred(X, mean, radius):
    """The rows of an array about this mean, within this radius."""
    table = X if isinstance(X, Table) else Table.of(X)
    return CentredRows(table, Centre(mean, radius))
