"""What a fit on dense data holds besides the data, and the benchmark that measures it in a process of its own."""

import importlib
import re
import sys
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pytest

from tacit import Lasso, LogisticRegression, Ridge
from tacit.solvers import Coordinate, Gradient

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(
    ("model", "copies"),
    [
        (Lasso(solver=Coordinate(n_passes=2)), 0.5),  # bounded columns are in single precision
        (LogisticRegression(solver=Coordinate(n_passes=2)), 0.5),
        (Ridge(solver=Gradient(n_iter=2)), 1.0),
    ],
    ids=["lasso", "logistic regression", "ridge"],
)
def test_a_fit_holds_one_copy_of_the_data_and_little_else(model, copies, order):
    rng = np.random.default_rng(0)
    X = np.asarray(rng.standard_normal((20_000, 100)), order=order)
    y = X[:, 0] > 0 if isinstance(model, LogisticRegression) else X[:, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X[:300], y[:300])  # what is made once is not counted
        tracemalloc.start()
        try:
            model.fit(X, y)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert copies < peak / X.nbytes < copies + 0.3


@pytest.mark.slow
def test_the_benchmark_of_memory_writes_its_table(tmp_path, capsys):
    sys.path.insert(0, str(BENCHMARKS))
    try:
        memory = importlib.import_module("memory")
    finally:
        sys.path.remove(str(BENCHMARKS))
    out = tmp_path / "memory.md"
    memory.main(["--rows", "200000", "--columns", "20", "--passes", "1", "--out", str(out)])
    assert capsys.readouterr().out == out.read_text()
    row = out.read_text().splitlines()[-1]
    assert row.startswith("| Lasso, solver coordinate, 1 passes | 200,000 x 20 float64, order C | ")
    assert float(re.search(r"([\d.]+)x the data", row).group(1)) > 0.0  # what other libraries hold is theirs
    with pytest.raises(SystemExit, match="the fit failed"):
        memory.fresh(["--passes", "many"], 10, 2)
