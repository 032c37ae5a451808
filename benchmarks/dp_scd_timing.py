"""The time of one epoch of the dual solver, against `X @ v` plus `X.T @ z` on the same rows in double precision.

The solver has dense rows in single precision, as the driver of a fit stores them for it.
"""

import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from noise import seconds
from tacit.privacy import Budget, Gate, NoiseSource
from tacit.problems import LOSSES, Penalty
from tacit.solvers import SOLVERS, Options, Rows, Task

SIZE = (50_000, 100)
DENSITY = 0.1  # of the sparse rows
LIMITS = {"squared": 2.5, "hinge": 2.5, "logistic": 4.5, "squared_hinge": math.inf}
NAMES = tuple(f"{kind}, {LOSSES[loss].words}" for kind in ("dense", "CSR") for loss in LIMITS)
_SHORT, _LONG = 1, 11


def _rows(kind: str, loss: str) -> Rows:
    """Random rows of norm sqrt(d) at most."""
    rng = np.random.default_rng(0)
    n, d = SIZE
    Z: Any = rng.standard_normal((n, d))
    if kind == "CSR":
        Z *= rng.random((n, d)) < DENSITY
    Z *= math.sqrt(d) / np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), 1e-12)
    signal = Z @ rng.standard_normal(d) / math.sqrt(d) + rng.standard_normal(n)
    targets = np.clip(signal, -3, 3) if loss == "squared" else np.where(signal > 0, 1.0, -1.0)
    return Rows(csr_array(Z) if kind == "CSR" else Z, targets)


def _epoch(rows: Rows, kind: str, loss: str) -> Callable[[], float]:
    """Seconds of one more epoch: between a short and a long run, calibrated before."""
    n, d = SIZE
    rows = Rows(rows.Z if kind == "CSR" else rows.Z.astype(np.float32), rows.targets)
    solver, runs = SOLVERS["dual"], []
    for epochs in (_SHORT, _LONG):
        options = Options(n_passes=epochs, batch_size=min(300, n))
        task = Task(n, d, LOSSES[loss], 1, kind == "CSR", True, Budget(1.0, 1e-3), ("l2",), options)
        runs.append((task, solver.plan(task, 1.0).calibrate(task.budget, task.unit, solver.name)))

    def measure() -> float:
        took = []
        for task, calibrated in runs:
            start = time.perf_counter()
            with Gate(calibrated, NoiseSource(0)) as gate:
                solver.run(task, rows, Penalty(l2=np.full(d, 1.0 / n), l1=np.zeros(d)), gate)
            took.append(time.perf_counter() - start)
        return (took[1] - took[0]) / (_LONG - _SHORT)

    return measure


def _products(rows: Rows) -> Callable[[], float]:
    """Seconds of `X @ v` and `X.T @ z`."""
    X, v, z = rows.Z, np.ones(SIZE[1]), np.ones(SIZE[0])

    def run() -> None:
        for _ in range(10):
            X @ v
            X.T @ z

    return lambda: seconds(run) / 10


def rounds(name: str, count: int) -> Iterator[tuple[int, str, float]]:
    """Round, model and seconds; in turns, after one unmeasured round."""
    kind, words = name.split(", ")
    loss = words.replace(" ", "_")
    rows = _rows(kind, loss)  # type: ignore[arg-type]
    actions = {"epoch": _epoch(rows, kind, loss), "products": _products(rows)}  # type: ignore[arg-type]
    for turn in range(-1, count):
        for model, action in actions.items():
            took = action()
            if turn >= 0:
                yield turn, model, took
