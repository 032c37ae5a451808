"""The times of the PCA benchmark: processor time in one thread, each the least of several turns taken by turns.

The least is what others on the machine disturb least, and turns that alternate meet the same disturbances.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import eigh

from dp_pca_methods import fitted
from tacit.blocks import Centre, CentredRows, Table

K, COLUMNS = 10, 20


def least(tasks: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Seconds of each, after one round that is not counted."""
    found: dict[str, list[float]] = {name: [] for name in tasks}
    for turn in range(rounds + 1):
        for name, task in tasks.items():
            start = time.process_time()
            task()
            if turn:
                found[name].append(time.process_time() - start)
    return {name: min(times) for name, times in found.items()}


def whole_fit(X: Any, rounds: int) -> dict[str, float]:
    """A private fit with `gauss`, and the Gram product with an eigen-solve of its k largest values."""
    d = X.shape[1]

    def plain() -> None:
        eigh(X.T @ X, subset_by_index=[d - K, d - 1])

    return least(
        {"private": lambda: fitted(X, K, 1.0, 0, delta=1e-3, center=False, row_norm=1.0), "plain": plain}, rounds
    )


def one_pass(X: Any, rounds: int) -> dict[str, float]:
    """A clipped pass of `stochastic`, over all rows and over a quarter, and the product it stands for."""
    n, d = X.shape
    V = np.linalg.qr(np.random.default_rng(0).normal(size=(d, COLUMNS)))[0]
    bounded = CentredRows(Table.of(sparse.csr_array(X) if sparse.issparse(X) else X), Centre(np.zeros(d), 1.0))
    quarter = np.sort(np.random.default_rng(1).permutation(n)[: n // 4])
    few = X[quarter]
    return least(
        {
            "private": lambda: bounded.products(V, 0.1),
            "plain": lambda: X.T @ (X @ V),
            "private quarter": lambda: bounded.products(V, 0.1, quarter),
            "plain quarter": lambda: few.T @ (few @ V),
        },
        rounds,
    )
