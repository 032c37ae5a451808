"""What the PCA benchmark compares: the solvers, the linear SVM on projected rows, and the noise that the paper adds."""

import math
import time
import warnings
from typing import Any

import dp_accounting
import numpy as np
from dp_accounting.pld import PLDAccountant
from numpy.typing import NDArray
from scipy import sparse
from sklearn.svm import LinearSVC

import tacit

Floats = NDArray[np.float64]

SOLVERS = ("gauss", "stochastic", "variance-reduced", "power", "mod-sulq")
AUTO, PLAIN, RANDOM = "auto", "not private", "random"
DELTA = 1e-3
WIDE = 4_000  # columns from which on a packed matrix takes a minute


def fitted(X: Any, k: int, epsilon: float, seed: int, **options: Any) -> tuple[tacit.PCA, float]:
    """A PCA and its seconds."""
    model = tacit.PCA(k, epsilon, random_state=seed, **options)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of seeds, of delta and of budgets that are too small
        model.fit(X)
    return model, time.perf_counter() - start


def random_components(d: int, k: int, seed: int) -> Floats:
    """Orthonormal rows in random directions."""
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, k)))[0].T


def svm_accuracy(components: Floats, X: Any, y: Any, seed: int) -> float:
    """Of a linear SVM on projected rows, fitted on a tenth of them with the best of four C on a fifth of that tenth."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(X.shape[0])
    tenth = len(order) // 10
    Z = np.asarray(X @ components.T)
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


# ---- the noise of the paper: one row a step, drawn evenly, n steps; gradients of norm at most G


def spca_multiplier(n: int, epsilon: float, part: float = 0.5) -> float:
    """lambda_1 / G of DP-SPCA (Lemma 1) with T = n; `part` is its free constant mu."""
    order = math.log(1.0 / DELTA) / ((1.0 - part) * epsilon) + 1.0
    return math.sqrt(20.0 * n * order / (n**2 * epsilon * part))


def vrpca_multiplier(n: int, epsilon: float, epochs: int = 1) -> float:
    """lambda_2 / G of DP-VRPCA (Theorem 3) with T = n."""
    return math.sqrt(n * epochs * math.log(1.0 / DELTA)) / (n * epsilon)


def true_epsilon(n: int, multiplier: float, steps: int) -> float:
    """Of steps that each see a row with probability 1 / n, at the paper's delta; coarser where it is in the tens."""
    accountant = PLDAccountant(value_discretization_interval=1e-4 if multiplier > 0.5 else 1e-2)
    event = dp_accounting.PoissonSampledDpEvent(1.0 / n, dp_accounting.GaussianDpEvent(multiplier))
    accountant.compose(event, steps)
    return float(accountant.get_epsilon(DELTA))


def dense_if_small(X: Any) -> Any:
    """Rows of few columns as an array."""
    return X.toarray() if sparse.issparse(X) and X.shape[1] <= WIDE else X
