"""What a fit costs besides the work on the data: compilation, start-up, memory.

python benchmarks/first_fit.py [--out benchmarks/results/first_fit.md] [--rows 1000000]
"""

import argparse
import platform
import statistics
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np

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

_MEMORY = """
import resource, warnings
warnings.simplefilter("ignore")
import numpy as np
from tacit import LogisticRegression
rng = np.random.default_rng(0)
small = rng.normal(size=(100, {d})); LogisticRegression().fit(small, (small[:, 0] > 0).astype(int))
base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
X = np.empty(({n}, {d})); rng.standard_normal(out=X); y = (X[:, 0] > 0).astype(int)
LogisticRegression().fit(X, y)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - base, X.nbytes)
"""


def fresh(code: str) -> list[float]:
    """The numbers that a script prints in a process of its own."""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return [float(word) for word in done.stdout.split()]


def small_fits() -> tuple[float, float]:
    """Median seconds of a small fit, ours and scikit-learn's, in turns."""
    from sklearn.linear_model import LogisticRegression as PlainLogisticRegression

    from tacit import LogisticRegression

    X = np.random.default_rng(0).normal(size=(24, 3))
    y = (X[:, 0] > 0).astype(int)
    times: dict[type, list[float]] = {LogisticRegression: [], PlainLogisticRegression: []}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(50):
            for kind, taken in times.items():
                start = time.perf_counter()
                kind().fit(X, y)
                taken.append(time.perf_counter() - start)
    return statistics.median(times[LogisticRegression]), statistics.median(times[PlainLogisticRegression])


def main() -> None:
    """Measure, print, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="also write the table to this file")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the memory test (default: %(default)s)")
    arguments = parser.parse_args()
    ours, plain = small_fits()
    starts = [fresh(_FRESH) for _ in range(5)]
    loaded, first = (statistics.median(row[k] for row in starts) for k in (1, 2))
    used, data = fresh(_MEMORY.format(n=arguments.rows, d=100))
    text = "\n".join(
        [
            "# The first fit, the small fit and the large fit",
            "",
            f"`python benchmarks/first_fit.py`, Python {platform.python_version()}; medians.",
            "",
            "| what | ours | against |",
            "|---|---|---|",
            f"| a small fit (24 x 3), compiled | {ours * 1e3:.1f} ms | scikit-learn {plain * 1e3:.1f} ms |",
            f"| first fit of a process, kernels cached | {first:.2f} s | and {loaded:.2f} s to import the estimators |",
            f"| peak memory, {arguments.rows:,} x 100 float64, data included | {used / data:.2f}x the data | - |",
        ]
    )
    print(text)
    if arguments.out:
        arguments.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
