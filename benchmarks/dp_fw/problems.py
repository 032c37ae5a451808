"""The data of the DP Frank-Wolfe benchmark (Raff, Khanna, Lu 2023): the paper's shapes, real sets, the +-1 problem.

Rows of the paper's shapes are made straight into CSR arrays, values in single precision and 32-bit indices, a row at a
time. A row draws words until it has enough different ones; the word of rank r is drawn with probability near
1 / (r ln D), as in text (Zipf), and ranks are spread over the columns, so that frequent ones are not neighbours. Rows
have norm 1. The most frequent words say nothing, as in text; the 50 words after the 100 most frequent ones carry the
class, with one weight of random sign each.
"""

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numba
import numpy as np
from scipy.sparse import csr_array, load_npz
from scipy.special import expit
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import normalize

from benchmarks.frame import Floats, sets
from tacit.privacy import Budget

COMMON, INFORMATIVE = 100, 50  # ranks without a say in the class, and those with one after them
TEST_ROWS = 10_000
_NOISE = 0.25  # of a class, over the deviation of its margin
_STRIDE = 0.6180339887498949  # of ranks over the columns


@dataclass(frozen=True)
class Shape:
    """Rows, columns and entries of a row, as in the paper's Table 2; `part` of the rows is made in a full run."""

    rows: int
    columns: int
    entries: int
    part: float = 1.0

    def scaled(self, part: float) -> "Shape":
        """With this part of its rows and columns, for a quick run."""
        columns = max(round(self.columns * part), 1_000)
        return Shape(max(round(self.rows * part), 500), columns, min(self.entries, columns // 10))

    @property
    def measured_rows(self) -> int:
        """How many rows are made."""
        return round(self.rows * self.part)


SHAPES = {
    "RCV1": Shape(20_242, 47_236, 82),
    "News20": Shape(19_996, 1_355_191, 500),
    "URL": Shape(2_396_130, 3_231_961, 116, 0.02),
    "Web": Shape(350_000, 16_609_143, 3_700, 0.01),
    "KDDA": Shape(8_407_752, 20_216_830, 36, 0.02),
}


def is_cut(name: str) -> bool:
    """Whether a full run makes fewer rows than the paper's set of that shape has."""
    return name in SHAPES and SHAPES[name].part < 1.0


REAL = {"news20": 17, "rcv1": 0, "sms_spam": 16, "a9a": 0}
"""Real sets, and the bits of the hash of their words, where words are hashed."""
PAPER_SETS = ("news20_binary", "url", "webspam", "kdda")
"""The paper's own, measured where LIBSVM's files of them are in the data folder. "rcv1" is one of REAL."""
WIDEST = PAPER_SETS[1:]  # one seed each


def is_real(name: str) -> bool:
    """Whether it is a set, and not rows of a shape."""
    return name in REAL or name in PAPER_SETS


@dataclass(frozen=True, eq=False)
class Split:
    """Training and test rows, CSR of norm 1 at most or dense, and classes -1 and 1."""

    X: Any
    y: Floats
    X_test: Any
    y_test: Floats

    @property
    def size(self) -> tuple[int, int, int]:
        """Training rows, columns and stored entries."""
        n, d = self.X.shape
        return n, d, self.X.nnz if hasattr(self.X, "nnz") else n * d

    def scores(self, margins: Any, weights: Any) -> dict[str, float]:
        """Accuracy, AUC, and the part of weights that are zero."""
        margins = np.asarray(margins, dtype=np.float64)
        right = float(np.mean((margins > 0.0) == (self.y_test > 0.0)))
        auc = 0.5 if np.ptp(margins) == 0.0 else float(roc_auc_score(self.y_test, margins))
        return {"accuracy": right, "auc": auc, "sparsity": float(np.mean(np.asarray(weights) == 0.0))}

    def budget(self, epsilon: float) -> Budget:
        """Delta is n^-1.5."""
        return Budget(epsilon, len(self.y) ** -1.5)


@numba.njit(cache=True)
def _next(state: int) -> tuple[int, float]:
    """Splitmix64: the next state, and a number in [0, 1)."""
    state = np.uint64(state + np.uint64(0x9E3779B97F4A7C15))
    z = state
    z = np.uint64((z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9))
    z = np.uint64((z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB))
    z = z ^ (z >> np.uint64(31))
    return state, np.float64(z >> np.uint64(11)) * 2.0**-53


@numba.njit(cache=True)
def _fill(
    seed: int, entries: int, columns: int, stride: int, even: bool, signs: Floats, data: Any, indices: Any, margins: Any
) -> None:
    """Rows of `entries` different columns, one after the other; margins of the informative ones."""
    state = np.uint64(seed)
    seen = np.full(columns, -1, dtype=np.int32)
    rank_of = np.empty(entries, dtype=np.int64)
    span = math.log(columns + 1.0)
    for i in range(len(margins)):
        count, low = 0, i * entries
        while count < entries:
            state, u = _next(state)
            rank = int(u * columns) if even else min(int(math.exp(u * span)) - 1, columns - 1)
            if seen[rank] != i:
                seen[rank] = i
                rank_of[count] = rank
                count += 1
        total = 0.0
        row = np.empty(entries, dtype=np.int64)
        for k in range(entries):
            row[k] = rank_of[k] * stride % columns
        order = np.argsort(row)
        for k in range(entries):
            state, u = _next(state)
            value = 1.0 - 0.9 * u
            data[low + k], indices[low + k] = value, row[order[k]]
            total += value * value
            if rank_of[order[k]] < len(signs):
                margins[i] += signs[rank_of[order[k]]] * value
        scale = 1.0 / math.sqrt(total) * (1.0 - 1e-6)
        for k in range(entries):
            data[low + k] *= scale
        margins[i] *= scale


def generate(rows: int, columns: int, entries: int, seed: int = 0, even: bool = False) -> tuple[csr_array, Floats]:
    """CSR rows of norm 1 and their classes; `even` draws all columns alike."""
    stored = rows * entries
    places = np.int32 if stored < 2**31 else np.int64
    data, indices = np.empty(stored, dtype=np.float32), np.empty(stored, dtype=places)
    indptr = np.arange(rows + 1, dtype=places) * places(entries)
    rng = np.random.default_rng(seed)
    signs = np.concatenate([np.zeros(COMMON), rng.choice([-1.0, 1.0], size=INFORMATIVE)])  # by rank
    stride = int(columns * _STRIDE)
    while math.gcd(stride, columns) != 1:
        stride += 1
    margins = np.zeros(rows)
    _fill(seed + 1, entries, columns, stride, even, signs, data, indices, margins)
    margins -= margins.mean()
    margins /= _NOISE * max(float(margins.std()), 1e-12)
    y = np.where(rng.logistic(size=rows) < margins, 1.0, -1.0)
    return csr_array((data, indices, indptr), shape=(rows, columns)), y


def synthetic(shape: Shape, seed: int = 0) -> Split:
    """Training rows of a shape, and test rows of the same law."""
    rows = shape.measured_rows
    X, y = generate(rows + TEST_ROWS, shape.columns, shape.entries, seed)
    return Split(X[:rows], y[:rows], X[rows:], y[rows:])


@cache
def real(name: str, most_rows: int | None = None) -> tuple[csr_array, Floats]:
    """A real set, rows of norm 1."""
    if name in ("news20", "sms_spam"):
        X, y = sets.paper_set(name, n_hashed=2 ** REAL[name])
    elif name == "rcv1":
        X, y = _rcv1()
    elif name in PAPER_SETS:
        X, y = sets.paper_set(name)
        X = normalize(X, copy=False)
    else:
        X, y, _ = sets.load(name)
        X = normalize(X)
    X, labels = csr_array(X), np.where(np.asarray(y) > 0, 1.0, -1.0)
    if most_rows is not None and most_rows < len(labels):
        kept = np.random.default_rng(0).permutation(len(labels))[:most_rows]
        X, labels = X[kept], labels[kept]
    return X, labels


def _rcv1() -> tuple[Any, Floats]:
    """23,765 rows of RCV1-v2, labelled by the rule of LIBSVM's rcv1.binary; not its 20,242 training rows."""
    try:
        with np.load(sets.FOLDER / "rcv1.npz") as arrays:
            y = arrays["y"]
        return normalize(load_npz(sets.FOLDER / "rcv1.npz")), y
    except FileNotFoundError as error:
        raise sets.MissingSetError(str(error)) from None


# The inputs that Algorithm 1 is timed on next to the library's solver: about as many entries each, and as in text.
INPUTS = {
    "dense": (4_000, 400, 400),
    "a tenth": (10_000, 1_500, 150),
    "1e-2": (15_000, 10_000, 100),
    "1e-3": (20_000, 100_000, 100),
    "1e-5": (100_000, 1_000_000, 10),
}
"""Rows, columns and entries of a row, by the part of entries that are not zero."""


def even_input(name: str, most_rows: int | None = None) -> Split:
    """One of the inputs, a tenth of whose rows test; or a real set."""
    if is_real(name):
        return split(name, 0, most_rows)
    rows, columns, entries = INPUTS[name]
    rows = min(rows, most_rows or rows)
    if name != "dense":
        X, y = generate(rows + rows // 10, columns, entries)
        return Split(X[:rows], y[:rows], X[rows:], y[rows:])
    rng = np.random.default_rng(0)
    table = rng.uniform(-0.1, 0.1, size=(rows + rows // 10, columns)).astype(np.float32)
    y = np.where(rng.logistic(size=len(table)) < 20.0 * table[:, :5].sum(axis=1), 1.0, -1.0)
    return Split(table[:rows], y[:rows], table[rows:], y[rows:])


def split(name: str, seed: int, most_rows: int | None = None) -> Split:
    """Three quarters of a real set to train on, the others to test."""
    X, y = real(name, most_rows)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=seed, stratify=y)
    return Split(X_train, y_train, X_test, y_test)


def few_of_many(seed: int, rows: int = 2_000, columns: int = 10_000, active: int = 5) -> Split:
    """Entries of -1 and +1, dense; the margin is a sum of a few of them with random signs, the class logistic in it."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (rows + 2_000, columns), dtype=np.int8).astype(np.float32) * 2 - 1
    margins = X[:, :active].astype(np.float64) @ rng.choice([-1.0, 1.0], size=active)
    y = np.where(rng.logistic(size=len(X)) < margins, 1.0, -1.0)
    return Split(X[:rows], y[:rows], X[rows:], y[rows:])


# What the rule of "auto" for dense rows of bounded entries was chosen on, and the pixels that judge it.
WIDE_SIGNS = {f"{n:,} x {d:,}, {a} matter": (n, d, a) for n in (2_000,) for d in (300, 1_000, 4_000) for a in (5, 40)}
PIXELS = {f"mnist, {name}, {n:,} rows": (name, n) for name in ("0 against 1", "even against odd") for n in (500, 1_500)}


def bounded_rows(name: str, seed: int) -> Split:
    """Dense rows with entries in (-1, 1)."""
    if name in WIDE_SIGNS:
        return few_of_many(seed, *WIDE_SIGNS[name])
    question, rows = PIXELS[name]
    X, y, _ = sets.load("mnist")
    asked = np.flatnonzero(np.asarray(y, dtype=int) < (2 if question == "0 against 1" else 10))
    order = np.random.default_rng(seed).permutation(asked)[: rows + 2_000]
    Z, odd = (np.asarray(X)[order] / 127.5 - 1.0).astype(np.float32), np.asarray(y, dtype=int)[order] % 2 == 1
    labels = np.where(odd, 1.0, -1.0)
    return Split(Z[:rows], labels[:rows], Z[rows:], labels[rows:])


def best_of_signs(active: int = 5) -> float:
    """How often the best rule for `few_of_many` is right: its margin is a sum of fair signs."""
    margins = active - 2.0 * np.arange(active + 1)
    chances = np.array([math.comb(active, k) for k in range(active + 1)]) / 2.0**active
    return float(chances @ expit(np.abs(margins)))
