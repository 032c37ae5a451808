"""What a fit costs besides the work on the data: compilation, start-up, memory.

python -m benchmarks.cost.first_fit [--out FOLDER] [--rows 1000000]
"""

import statistics
import warnings
from typing import Any

import numpy as np

from benchmarks import cost
from benchmarks.cost import memory
from benchmarks.frame.timing import fresh, medians

INTRO = """\
# The first fit, the small fit and the large fit

`python -m benchmarks.cost.first_fit`, Python {python}; medians."""

_FRESH = """
import time, warnings
warnings.simplefilter("ignore")
import numpy as np
from sklearn.linear_model import LogisticRegression as Plain
X = np.random.default_rng(0).normal(size=(24, 3)); y = (X[:, 0] > 0).astype(int)
start = time.perf_counter(); Plain().fit(X, y); plain = time.perf_counter() - start
start = time.perf_counter()
from tacit import LogisticRegression
loaded = time.perf_counter() - start
start = time.perf_counter(); LogisticRegression().fit(X, y); first = time.perf_counter() - start
print(plain, loaded, first)
"""


def printed(code: str) -> list[float]:
    """The numbers that a script prints in a process of its own."""
    return [float(word) for word in fresh("-c", code).split()]


def small_fits() -> list[float]:
    """Median seconds of a small fit, ours and scikit-learn's, in turns."""
    from sklearn.linear_model import LogisticRegression as PlainLogisticRegression

    from tacit import LogisticRegression

    X = np.random.default_rng(0).normal(size=(24, 3))
    y = (X[:, 0] > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return medians(50, lambda: LogisticRegression().fit(X, y), lambda: PlainLogisticRegression().fit(X, y))


def rows(arguments: Any) -> cost.Rows:
    """A small fit, the first one of a process, and a large one."""
    ours, plain = small_fits()
    starts = [printed(_FRESH) for _ in range(5)]
    loaded, first = (statistics.median(row[k] for row in starts) for k in (1, 2))
    over = memory.over_data(estimator="LogisticRegression", solver="auto", passes=0, rows=arguments.rows)
    yield "a small fit (24 x 3), compiled", f"{ours * 1e3:.1f} ms", f"scikit-learn {plain * 1e3:.1f} ms"
    yield "first fit of a process, kernels cached", f"{first:.2f} s", f"and {loaded:.2f} s to import the estimators"
    yield f"peak memory, {arguments.rows:,} x 100 float64, data included", f"{over:.2f}x the data", "-"


if __name__ == "__main__":
    cost.main(__doc__, "first_fit", INTRO, rows, {"rows": 1_000_000})
