"""A fit on a one-hot table as CSR rows: its time against a few dense columns, and its memory.

    python -m benchmarks.cost.sparse_fit [--rows 50000] [--columns 1000] [--stored 20] [--rounds 7] [--out FOLDER]

Times are the least of the processor's seconds, in turns. Memory is that of a process of its own: its largest resident
size, the data in it, less what it was after a fit of 200 rows of as few columns.
"""

import json
import sys
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from benchmarks import cost
from benchmarks.frame.timing import fresh, least, peak
from tacit import LogisticRegression

INTRO = """\
# A fit on a one-hot table as sparse rows

`python -m benchmarks.cost.sparse_fit`, Python {python}, NumPy {numpy}; logistic regression, epsilon = 1, nothing
declared. Every row has as many ones as there are dense columns to compare with, which are normal. Seconds of the
processor, the least of runs that take turns, on one thread where BLAS has one. Memory is the largest resident size of a
process of its own, the data in it, less that of a small fit; CSR rows are of float64, with indices of 32 bits."""
OPTIONS = {"rows": 50_000, "columns": 1_000, "stored": 20, "rounds": 7}


def one_hot(n: int, columns: int, stored: int) -> tuple[csr_array, Any]:
    """As many ones in a row as are stored, each among its own part of the columns; and two classes."""
    rng, each = np.random.default_rng(0), columns // stored
    places = rng.integers(0, each, (n, stored)) + each * np.arange(stored)
    X = csr_array((np.ones(places.size), places.ravel().astype(np.int32), np.arange(0, places.size + 1, stored)))
    X.resize((n, columns))
    return X, (rng.random(n) < np.where(places[:, 0] < each // 2, 0.3, 0.7)).astype(np.int64)


def bytes_of(X: csr_array) -> int:
    """Of what a CSR table holds."""
    return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)


def fit(n: int, columns: int, stored: int) -> int:
    """Fit; the size of the data."""
    X, y = one_hot(n, columns, stored)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few rows
        LogisticRegression(epsilon=1.0).fit(X, y)
    return bytes_of(X)


def inside(given: Any) -> tuple[int, int]:
    """The size of the data and how far the fit raised the peak of the process, in bytes."""
    fit(200, given.stored, given.stored)
    before = peak()
    return fit(given.rows, given.columns, given.stored), peak() - before


def rows(arguments: Any) -> cost.Rows:
    """Time, and memory."""
    n, columns, stored = arguments.rows, arguments.columns, arguments.stored
    X, y = one_hot(n, columns, stored)
    dense = np.random.default_rng(1).standard_normal((n, stored))
    model = LogisticRegression(epsilon=1.0)
    took = least(arguments.rounds, {"ours": lambda: model.fit(X, y), "dense": lambda: model.fit(dense, y)})
    what = f"CSR {n:,} x {columns:,}, {stored} stored in a row"
    ratio = f"{took['ours'] / took['dense']:.3g}x of the fit on {stored} dense columns, {took['dense']:.3g} s"
    yield f"time, {what}", f"{took['ours']:.3g} s", ratio
    options = {name: getattr(arguments, name) for name in OPTIONS}
    for _ in range(2):  # in the second all kernels are read from the disk
        size, used = json.loads(fresh("-m", "benchmarks.cost.sparse_fit", "--inside", json.dumps(options)))
    room = 3 * size + 8 * 8 * columns**2
    against = (
        f"{used / room:.2f}x of three CSR tables and eight {columns:,} x {columns:,} matrices, {room / 1e6:.0f} MB"
    )
    yield f"memory, {what}", f"{used / 1e6:.0f} MB", against


def main(argv: list[str] | None = None) -> None:
    """Measure, print, and write the page."""
    cost.main(__doc__, "sparse_fit", INTRO, rows, OPTIONS, argv)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        print(json.dumps(inside(SimpleNamespace(**json.loads(sys.argv[2])))))
    else:
        main()
