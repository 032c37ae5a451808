"""The data of the PCA benchmark: rows of norm at most 1 by bounds that see no data, or by their own norm alone."""

import importlib.util
import math
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from scipy.sparse.linalg import svds
from sklearn.preprocessing import normalize
from sklearn.utils import murmurhash3_32

from benchmarks.frame import Floats, sets
from tacit.metrics import subspace_distance

PAPER = ("a9a", "MNIST", "CIFAR-10", "news20")
TABLE = ("a9a", "MNIST, 0 against 1", "news20")
CHOSE = ("digits", "phishing", "sms_spam", "rcv1")  # the solvers' constants
COLUMNS = 20_000  # that the words of news20 are hashed to
FEW_COLUMNS = 1_000  # the same for texts that chose constants
CIFAR_ROWS = 50_000  # of its training file
MNIST_ROWS = 60_000
BOUNDED = {"digits, bounds alone": "digits_even_odd", "breast_cancer, bounds alone": "breast_cancer"}
BOUNDED |= {"California": "california_housing"}  # by public bounds over the root of the number of columns
_SQUARE = 4_000
_BLOCK = 5_000


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows, and the components that would be found without privacy."""

    X: Any
    k: int
    center: bool
    best: Floats
    most: float  # what the best components capture

    @property
    def size(self) -> tuple[int, int, int]:
        """Rows, columns and components."""
        return (*self.X.shape, self.k)

    def first(self, k: int) -> "Problem":
        """The same with fewer components."""
        return replace(self, k=k, best=self.best[:k], most=_variance(self.X, self.center, self.best[:k]))

    def captured(self, components: Floats) -> float:
        """The part of the best variance that these components capture."""
        return _variance(self.X, self.center, components) / self.most

    def scores(self, components: Floats) -> dict[str, float]:
        """What they capture; the sum of squared sines of the principal angles, k - |V^T V'|_F^2, which is Figure 1
        without a choice of basis; and the sine of the largest angle.
        """
        error = self.k - float(np.square(components @ self.best.T).sum())
        distance = subspace_distance(components, self.best)
        return {"captured": self.captured(components), "error": error, "distance": distance}


def _variance(X: Any, center: bool, components: Floats) -> float:
    projected = np.asarray(X @ components.T)
    if center:
        projected = projected - projected.mean(axis=0)
    return float(np.square(projected).sum())


def problem(X: Any, k: int, center: bool) -> Problem:
    """With its exact components."""
    if X.shape[1] <= _SQUARE:
        dense = X.toarray() if sparse.issparse(X) else X
        n, d = X.shape
        moments = np.zeros((d, d))
        for first in range(0, n, _BLOCK):
            block = dense[first : first + _BLOCK].astype(np.float64)
            moments += block.T @ block
        if center:
            moments = moments - n * np.outer(dense.mean(axis=0), dense.mean(axis=0))
        best = eigh(moments, subset_by_index=[d - k, d - 1])[1].T[::-1]
    else:
        if center:
            raise ValueError("wide rows are taken about zero")
        best = svds(X, k, v0=np.ones(min(X.shape)))[2][::-1]
    return Problem(X, k, center, best, _variance(X, center, best))


@cache
def rows(name: str, most_rows: int | None = None) -> tuple[Any, Any]:
    """A set with rows of norm at most 1, and its classes; some of the rows if there are more than asked for."""
    X, y = _rows(name)
    if most_rows is not None and X.shape[0] > most_rows:
        keep = np.sort(np.random.default_rng(0).permutation(X.shape[0])[:most_rows])
        X, y = X[keep], y[keep]
    return X, y


def _rows(name: str) -> tuple[Any, Any]:
    if name in BOUNDED:
        X, y = sets.public(BOUNDED[name], unit_rows=False)
        return X / math.sqrt(X.shape[1]), y
    if name == "breast_cancer":
        return sets.public(name)
    if name == "CIFAR-10":
        X, y = cifar()
        return normalize(X[:CIFAR_ROWS].astype(np.float32)), y[:CIFAR_ROWS]
    if name == "MNIST, 0 against 1":
        X, y = _rows("MNIST")
        return X[y <= 1], y[y <= 1]
    if name == "news20":
        found = sets.paper_bunch(name, features="counts")
        bucket = np.array([murmurhash3_32(word, positive=True) % COLUMNS for word in found.feature_names])
        fold = sparse.csr_array((np.ones(len(bucket)), (np.arange(len(bucket)), bucket)), (len(bucket), COLUMNS))
        return sparse.csr_array(normalize(found.data @ fold)), found.target
    X, y = _news() if name == "rcv1" else sets.paper_set(name.lower())
    if name in ("rcv1", "sms_spam"):
        return sparse.csr_array(normalize(X.astype(np.float64) @ _fold(X.shape[1]))), y
    X = X.toarray() if sparse.issparse(X) else X
    return normalize(X[:MNIST_ROWS].astype(np.float64)), y[:MNIST_ROWS]


def _fold(d: int) -> Any:
    """Columns to fewer ones, by chance."""
    bucket = np.random.default_rng(0).integers(FEW_COLUMNS, size=d)
    return sparse.csr_array((np.ones(d), (np.arange(d), bucket)), (d, FEW_COLUMNS))


def _news() -> tuple[Any, Any]:
    """23,765 rows of RCV1-v2."""
    path = sets.FOLDER / "rcv1.npz"
    if not path.exists():
        raise sets.MissingSetError(f"{path} is not there")
    return sparse.csr_array(sparse.load_npz(path)), np.load(path)["y"]


def cifar() -> tuple[Any, Any]:
    """All of CIFAR-10, by the reader that lies next to its files."""
    path = sets.FOLDER / "cifar10.py"
    if not path.exists():
        raise sets.MissingSetError(f"{path} is not there")
    spec = importlib.util.spec_from_file_location("cifar10", path)
    assert spec is not None
    assert spec.loader is not None
    reader = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reader)
    X, y = reader.load()
    return X, y.astype(np.int64)


RULE_SETS = ("a9a", "adult", "elec2", "phishing", "msd", "wine", "leukemia", "covertype-like")
LEUKEMIA_COLUMNS = 500
RULE_ROWS = 10_000


@cache
def raw(name: str, most_rows: int = RULE_ROWS) -> Floats:
    """Rows in the units of the source, for fits that declare nothing. Some of the rows and columns of large sets."""
    if name == "covertype-like":
        return covertype_like(most_rows)
    if name == "leukemia":
        X = sets.paper_set("leukemia_golub")[0][:, :LEUKEMIA_COLUMNS]
    else:
        X, _, _ = sets.load({"msd": "msd_subset_year"}.get(name, name))
    X = X.toarray() if sparse.issparse(X) else np.asarray(X)
    keep = np.sort(np.random.default_rng(0).permutation(len(X))[:most_rows])
    return np.asarray(X[keep], dtype=np.float64)


def covertype_like(n: int) -> Floats:
    """10 columns of a few correlated measurements of very different scales, and 44 indicators, as covertype has."""
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(n, 4))
    scales = np.array([280.0, 112.0, 7.5, 212.0, 58.0, 1_559.0, 27.0, 20.0, 38.0, 1_325.0])
    centres = np.array([2_959.0, 156.0, 14.0, 269.0, 46.0, 2_350.0, 212.0, 223.0, 142.0, 1_980.0])
    measured = (hidden @ rng.normal(size=(4, 10)) / 2.0 + 0.5 * rng.normal(size=(n, 10))) * scales + centres
    areas = np.eye(4)[rng.choice(4, n, p=[0.45, 0.05, 0.44, 0.06])]
    soils = np.eye(40)[np.minimum(rng.geometric(0.12, n) - 1, 39)]
    return np.hstack([measured, areas, soils])
