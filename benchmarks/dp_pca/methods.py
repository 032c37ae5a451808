"""What the PCA benchmark compares: the solvers, the linear SVM on projected rows, and plain products."""

import math
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from sklearn.svm import LinearSVC

import tacit
from benchmarks.dp_pca.problems import Problem
from benchmarks.frame import Floats, solvers
from benchmarks.frame.timing import least
from tacit.blocks import Centre, DenseRows, StoredRows, Table
from tacit.blocks.here import ThisMachine, rows_of
from tacit.solvers.pca import Stochastic, VarianceReduced

SOLVERS = ("gauss", "stochastic", "variance-reduced", "power", "mod-sulq")
OF_A_MATRIX = ("gauss", "mod-sulq")
AUTO, PLAIN, RANDOM, ALL = "auto", "not private", "random", "all columns"
SETTINGS = {
    "`Stochastic()`": Stochastic(),
    "`VarianceReduced()`": VarianceReduced(),
    "`VarianceReduced(n_inner=0)`": VarianceReduced(n_inner=0),
    "`VarianceReduced(n_inner=3)`": VarianceReduced(n_inner=3),
    "`VarianceReduced(n_snapshots=4)`": VarianceReduced(n_snapshots=4),
    "`VarianceReduced(n_snapshots=32)`": VarianceReduced(n_snapshots=32),
}
WIDE = 4_000  # columns from which on a packed matrix takes a minute
TIMED_K, TIMED_COLUMNS = 10, 20


def fitted(X: Any, k: int, epsilon: float, seed: int, **options: Any) -> tuple[tacit.PCA, float]:
    """A PCA and its seconds."""
    model = tacit.PCA(k, epsilon, random_state=seed, **options)
    return model, solvers.fitted(model, X)


def measured(problem: Problem, epsilon: float, seed: int, **options: Any) -> tuple[dict[str, float], float, str]:
    """The scores of a fit, its seconds, and the solver."""
    model, took = fitted(problem.X, problem.k, epsilon, seed, **options)
    return problem.scores(model.components_), took, model.guarantee_.solver


def random_components(d: int, k: int, seed: int) -> Floats:
    """Orthonormal rows in random directions."""
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, k)))[0].T


def svm_accuracy(components: Floats | None, X: Any, y: Any, seed: int) -> float:
    """Of a linear SVM on projected rows, fitted on a tenth of them with the best of four C on a fifth of that tenth.

    Without components the rows stay as they are.
    """
    order = np.random.default_rng(seed).permutation(X.shape[0])
    tenth = len(order) // 10
    Z = X if components is None else np.asarray(X @ components.T)
    Z = Z / max(float(np.sqrt(np.mean(Z**2))), 1e-300)
    train, test = order[:tenth], order[tenth:]
    tuned, held = train[tenth // 5 :], train[: tenth // 5]

    def accuracy(C: float, on: Any, of: Any) -> float:
        return float(LinearSVC(C=C, dual=False, random_state=0).fit(Z[on], y[on]).score(Z[of], y[of]))

    best = max((0.01, 0.1, 1.0, 10.0), key=lambda C: accuracy(C, tuned, held))
    return accuracy(best, train, test)


def halves(X: Any, seed: int) -> tuple[Any, Any]:
    """Places of the rows that the components are computed from, and of those that are classified."""
    order = np.random.default_rng(1_000 + seed).permutation(X.shape[0])
    return np.sort(order[: len(order) // 2]), np.sort(order[len(order) // 2 :])


def fit_seconds(X: Any, rounds: int) -> dict[str, float]:
    """A private fit with `gauss`, and the Gram product with an eigen-solve of its k largest values."""
    d, k = X.shape[1], TIMED_K
    actions = {
        "private": lambda: fitted(X, k, 1.0, 0, delta=1e-3, center=False, row_norm=1.0),
        "plain": lambda: eigh(X.T @ X, subset_by_index=[d - k, d - 1]),
    }
    return least(rounds, actions)


def solver_seconds(X: Any, rounds: int) -> dict[str, dict[str, float]]:
    """Whole fits of every solver, each against the Gram product with its eigen-solve."""
    d, k = X.shape[1], TIMED_K
    actions: dict[str, Any] = {
        solver: lambda solver=solver: fitted(X, k, 1.0, 0, delta=1e-3, center=False, row_norm=1.0, solver=solver)
        for solver in SOLVERS
    }
    found = least(rounds, actions | {"plain": lambda: eigh(X.T @ X, subset_by_index=[d - k, d - 1])})
    return {f"fit, {solver}": {"private": found[solver], "plain": found["plain"]} for solver in SOLVERS}


def pass_seconds(X: Any, rounds: int) -> dict[str, float]:
    """A clipped pass of `stochastic`, over all rows and over a quarter, and the product it stands for."""
    n, d = X.shape
    V = np.linalg.qr(np.random.default_rng(0).normal(size=(d, TIMED_COLUMNS)))[0]
    rows = rows_of(sparse.csr_array(X) if sparse.issparse(X) else X, ThisMachine(math.inf))
    kind = StoredRows if isinstance(rows, Table) else DenseRows
    bounded = kind(rows, n).centred(Centre(np.zeros(d), 1.0))
    quarter = np.sort(np.random.default_rng(1).permutation(n)[: n // 4])
    few = X[quarter]
    actions = {
        "private": lambda: bounded.products(V, 0.1),
        "plain": lambda: X.T @ (X @ V),
        "private quarter": lambda: bounded.products(V, 0.1, quarter),
        "plain quarter": lambda: few.T @ (few @ V),
    }
    return least(rounds, actions)
