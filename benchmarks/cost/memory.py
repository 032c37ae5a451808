"""The peak memory of one fit on dense data, over the size of the data.

    python -m benchmarks.cost.memory [--estimator Lasso] [--solver coordinate] [--rows 1000000] [--columns 100]
        [--passes 20] [--order C] [--out FOLDER]

The fit runs in a process of its own. What counts is the largest resident size of that process, less what it was after a
fit of 200 rows: the interpreter, imports and compiled code are left out, the data itself is not. The same small fit in
another process comes first, so that kernels are read from the disk and the memory of compiling them hides nothing.
"""

import json
import sys
import warnings
from typing import Any

import numpy as np

from benchmarks import cost
from benchmarks.frame.timing import fresh, peak

INTRO = """\
# The memory of a fit

`python -m benchmarks.cost.memory`, Python {python}. Peak resident size, the data in it,
less that of a small fit in the same process, over the size of the data."""
OPTIONS = {
    "estimator": "Lasso",
    "solver": "coordinate",
    "rows": 1_000_000,
    "columns": 100,
    "passes": 20.0,
    "order": "C",
}
_SMALL = 200


def fit(given: dict[str, Any]) -> tuple[int, int]:
    """Fit some rows; the size of the data and the peak of the process so far, in bytes."""
    import tacit
    from tacit.solvers import SOLVERS

    rng, n = np.random.default_rng(0), given["rows"]
    X = np.empty((n, given["columns"]), order=given["order"])
    for rows in np.array_split(X, max(1, n // 10_000)):  # made in place, a few at a time
        rows[:] = rng.standard_normal(rows.shape)
    y = X[:, 0] + rng.standard_normal(n)
    options = {"n_passes": given["passes"]} if given["passes"] else {}
    solver = "auto" if given["solver"] == "auto" else SOLVERS[given["solver"]](**options)
    model = getattr(tacit, given["estimator"])(solver=solver)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few rows
        model.fit(X, y > 0 if hasattr(model, "predict_proba") else y)
    return X.nbytes, peak()


def apart(**given: Any) -> list[int]:
    """Of a process of its own: the size of its data, and its peak less that of a small fit."""
    return json.loads(fresh("-m", "benchmarks.cost.memory", "--inside", json.dumps(OPTIONS | given)))


def over_data(**given: Any) -> float:
    """The peak over the size of the data, of a fit whose kernels were compiled before."""
    apart(**given | {"rows": _SMALL})
    size, used = apart(**given)
    return used / size


def rows(arguments: Any) -> cost.Rows:
    """One fit."""
    over = over_data(**{name: getattr(arguments, name) for name in OPTIONS})
    passes = f", {arguments.passes:g} passes" if arguments.passes else ""
    shape = f"{arguments.rows:,} x {arguments.columns} float64, order {arguments.order}"
    yield f"{arguments.estimator}, solver {arguments.solver}{passes}", shape, f"{over:.2f}x the data"


def main(argv: list[str] | None = None) -> None:
    """Measure, print, and write the page."""
    cost.main(__doc__, "memory", INTRO, rows, OPTIONS, argv, ("fit", "data", "peak"))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        given = json.loads(sys.argv[2])
        _, before = fit(given | {"rows": _SMALL})
        size, after = fit(given)
        print(json.dumps([size, after - before]))
    else:
        main()
