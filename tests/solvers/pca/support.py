"""What the tests of PCA share."""

import numpy as np

import tacit
from tacit.blocks import Centre, DenseRows, Source, StoredRows, Table
from tacit.blocks.here import ThisMachine, in_slices
from tacit.blocks.table import is_sparse
from tacit.privacy import Budget, Unit
from tacit.problems.task import ComponentsTask


def task_of(n, d, k=1, epsilon=1.0, adjacency="add-remove", delta=1e-6, **asked):
    """The public facts of a fit."""
    return ComponentsTask(unit=Unit("row", n), d=d, k=k, budget=Budget(epsilon, delta, adjacency), **asked)


def table_of(X):
    """Rows as a PCA reads them: dense ones in slices, sparse ones as they are stored."""
    if isinstance(X, Source | Table):
        return X
    return Table.of(X) if is_sparse(X) else in_slices(X, np.zeros(len(X)), ThisMachine())


def centred(X, mean, radius, n=None):
    """The rows of a table about this mean, within this radius; n of them, by what is public."""
    table = table_of(X)
    kind = StoredRows if isinstance(table, Table) else DenseRows
    return kind(table, n or table.shape[0]).centred(Centre(mean, radius))


def spiked(n=6000, d=20, seed=0):
    """Rows of norm at most 1, two strong directions and little else."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
    X = rng.normal(size=(n, d)) * np.r_[0.4, 0.3, np.full(d - 2, 0.03)] @ turn
    return X / np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]


def fitted(solver, X, epsilon=2.0, k=2, seed=0, **options):
    options = {"center": False, "row_norm": 1.0} | options
    return tacit.PCA(k, epsilon, 1e-6, solver=solver, random_state=seed, **options).fit(X)
