"""One fit of the shape of KDDA in a process of its own: how long it takes, and its peak memory over the CSR data.

The peak is the largest resident size of the whole process: the interpreter, compiled code, data and fit. Seconds are
the processor's, of all threads, which others on the machine change less. The same fit on few rows comes first, so that
no kernel is compiled on the clock.
"""

import json
import subprocess
import sys
import time
import warnings

import dp_fw_problems as problems
from dp_fw_methods import ENTRY, PAPER_RADIUS
from memory import peak

COUNT = 1_000
LIMIT = 2.5
_SMALL = (500, 2_000, 20)


def fit(rows: int, columns: int, entries: int, count: int) -> dict[str, float]:
    """Fit the estimator on new rows: bytes of the data, seconds, the peak so far and a training accuracy."""
    from tacit import LogisticRegression

    start = time.process_time()
    X, y = problems.generate(rows, columns, entries)
    made = time.process_time()
    size, data_peak = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes, peak()
    model = LogisticRegression(
        1.0, solver="frank-wolfe", entry_bound=ENTRY, l1_radius=PAPER_RADIUS, n_iter=count, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the seed
        model.fit(X, y)
    took, used = time.process_time() - made, peak()
    some = slice(0, min(rows, 100_000))
    accuracy = float(model.score(X[some], y[some]))
    return {
        "bytes": size,
        "data peak": data_peak,
        "peak": used,
        "generate": made - start,
        "fit": took,
        "accuracy": accuracy,
    }


def measure(shape: problems.Shape, count: int) -> dict[str, float]:
    """The same in a process of its own."""
    numbers = (shape.measured_rows, shape.columns, shape.entries, count)
    command = [sys.executable, __file__, *map(str, numbers)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"the fit failed:\n{done.stderr}")
    return json.loads(done.stdout)


if __name__ == "__main__":
    fit(*_SMALL, 5)
    print(json.dumps(fit(*map(int, sys.argv[1:]))))
