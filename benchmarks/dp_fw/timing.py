"""The times, traces and memory of the DP Frank-Wolfe benchmark.

A fit is a run of the solver: from CSR rows to weights, with all that is set up before the first iteration. Kernels are
compiled before. Noise is calibrated before too, which takes both algorithms equally long; those seconds are kept.
What is counted is the processor's time, of all threads, which others on the machine change less.
"""

import json
import math
import sys
import time
import warnings
from typing import Any

import numpy as np

from benchmarks.dp_fw import problems
from benchmarks.dp_fw.heap import Heap
from benchmarks.dp_fw.methods import ENTRY, PAPER_RADIUS, FrankWolfe, gap, partial_seconds
from benchmarks.dp_fw.paper import AlgorithmOne
from benchmarks.dp_fw.problems import Shape, Split
from benchmarks.frame.timing import fresh, peak
from tacit import LogisticRegression
from tacit.privacy import NoiseSource
from tacit.privacy.mechanisms.vertices import SAMPLERS
from tacit.solvers import frank_wolfe
from tacit.solvers.frank_wolfe.scores import SteppedScores

LADDER = ("bucket", "two-level", "gumbel", "algorithm 1")
"""Algorithm 2 with each sampler, and Algorithm 1."""
BRUTE = ("gumbel", "algorithm 1")  # what looks at all columns in every iteration

OCTAVES = 3.0  # the deviation of scores that draws are timed on
ENTRIES, ROWS_PER_COLUMN = 30, 3  # where the number of columns grows


def warm_up() -> None:
    """Compile everything on a few rows."""
    split = problems.synthetic(Shape(600, 900, 20))
    for sampler in SAMPLERS:
        FrankWolfe(10, sampler=sampler).fit(split, split.budget(1.0), 0)
        partial_seconds(FrankWolfe(10, sampler=sampler), SteppedScores, split, split.budget(1.0), 0.0)


def fit_times(
    split: Split, epsilon: float, rung: str, seed: int, at_least: float, count: int
) -> tuple[dict[str, Any], float]:
    """Seconds of a whole fit, and what it took; brute force is timed for some iterations, and the rest reckoned.

    Only whole fits have scores.
    """
    budget = split.budget(epsilon)
    if rung == "algorithm 1":
        return algorithm_one(split, epsilon, FrankWolfe(count), at_least)
    if rung == "gumbel":
        begun, each, made = partial_seconds(FrankWolfe(count, sampler=rung), SteppedScores, split, budget, at_least)
        return {"start": begun, "iteration": each, "made": float(made)}, begun + count * each
    weights, calibration, took = FrankWolfe(count, sampler=rung).fit(split, budget, seed)
    return split.scores(split.X_test @ weights, weights) | {"calibration": calibration, "made": float(count)}, took


def algorithm_one(split: Split, epsilon: float, method: FrankWolfe, at_least: float) -> tuple[dict[str, float], float]:
    """Seconds of all iterations of Algorithm 1, reckoned from some; without noise where epsilon is infinite."""
    assert method.count is not None
    assert method.radius is not None
    start = time.process_time()
    scale = 0.0 if math.isinf(epsilon) else 1.0
    one = AlgorithmOne(split, method.radius, method.bound, scale, loss=method.loss)
    begun = time.process_time() - start
    each, made = one.seconds(method.count, at_least)
    found = {"start": begun, "iteration": each, "drawing": one.drawing / made, "made": float(made)}
    return found, begun + method.count * each


def own_fit(
    split: Split, epsilon: float, count: int | None, seed: int, loss: str = "logistic"
) -> tuple[dict[str, float], float, FrankWolfe]:
    """A whole fit with the solver's ball, and its number of iterations unless one is given."""
    budget = split.budget(epsilon)
    method = FrankWolfe(count, None, loss=loss)
    weights, _, took = method.fit(split, budget, seed)
    return split.scores(split.X_test @ weights, weights), took, method.settled(split.X, budget)


def draw_seconds(sampler: str, columns: int, at_least: float) -> tuple[float, int]:
    """The time of a draw among this many columns, between which nothing changes, and how many were made."""
    rng = np.random.default_rng(0)
    scores = np.rint(rng.standard_normal(columns) * OCTAVES * 2.0**32).astype(np.int64)
    drawn, source = SAMPLERS[sampler](scores, 2**42), NoiseSource(0)
    for _ in range(3):
        drawn.draw(source)
    made, taken = 0, 0.0
    while taken < at_least or made < 5:
        some = 1 if made < 5 else min(2 * made, 1_000)
        start = time.process_time()
        for _ in range(some):
            drawn.draw(source)
        taken += time.process_time() - start
        made += some
    return taken / made, made


def growing(d: int, at_least: float, rounds: int) -> tuple[dict[str, float], float, tuple[int, int, int]]:
    """The time of an iteration with d columns, at 30 entries a row and 3 a column, all columns alike.

    The least of some rounds, each from the start: others on the machine, who share its caches, disturb that least.
    """
    n = d * ROWS_PER_COLUMN // ENTRIES
    X, y = problems.generate(n, d, ENTRIES, even=True)
    split = Split(X, y, X[:0], y[:0])
    given = (FrankWolfe(), SteppedScores, split, split.budget(1.0), at_least, 1_000)
    timed = [partial_seconds(*given) for _ in range(rounds)]
    begun, each, made = (min(part) for part in zip(*timed, strict=True))
    return {"start": begun, "made": float(made)}, each, split.size


# Traces without noise: Figure 1 is the gap by iterations, Figure 2 how many times fewer operations Algorithm 2 needs,
# Figure 4 the gap by operations. Operations are products, sums and slopes. Algorithm 1: 4 for each stored entry, 5 for
# each column, 1 for each row. Algorithm 2: 3 for each row that is looked at, and 4 for each entry of one whose slope is
# changed. Comparisons, which are all that a heap does, are counted for neither.

TRACED = {
    "algorithm 1": "Algorithm 1",
    "printed": "Algorithm 2 as printed (slopes go out of date)",
    "ours": "Algorithm 2 with sweeps",
}
_BOUND = 1.0  # rows have norm 1, so that no entry is clipped


def trace(split: Split, form: str, count: int) -> dict[str, list[float]]:
    """Iterations, operations so far, the gap by the scores that the algorithm keeps, and the true one; heap pops for
    each weight that is not zero; and the accuracy at the end.
    """
    method = FrankWolfe(count, bound=_BOUND)
    n, d, stored = split.size
    run, gate = method.opened(split.X, split.budget(math.inf), 0)
    tolerance = {"algorithm 1": 0.0, "printed": math.inf}.get(form)
    scores, path, scoring = method.scores(SteppedScores, run, split.X, split.y, gate, tolerance)
    stepped: Any = scores
    stepped.sampler = heap = Heap(stepped.scores)
    lengths, w, sweeps = (
        np.diff(split.X.indptr),
        np.zeros(d),
        path.sweeps(scoring.curvature * _BOUND, scoring.tolerance / 2),
    )
    columns = np.bincount(split.X.indices, minlength=d)
    found: dict[str, list[float]] = {"iterations": [], "operations": [], "tracked": [], "gap": [], "pops": []}
    operations, wanted = 4.0 * stored, {round(mark) for mark in np.geomspace(1, count - 1, 30)}
    for t in range(1, count):
        j, sign = heap.best()
        slopes = stepped._slopes.copy()
        stepped.step(t, j, sign)
        w *= 1.0 - path.lengths[t]
        w[j] += path.gain(t, sign)
        if form == "algorithm 1":
            operations += 4.0 * stored + 5.0 * d + n
        else:
            seen = float(columns[j] + (stepped._met[-1] if sweeps[t] else 0))
            operations += 4.0 * float(lengths[stepped._slopes != slopes].sum()) + 3.0 * seen
        if t in wanted:
            alpha = stepped.scores / (scoring.unit * n)
            tracked = float(alpha @ w + path.radius * np.abs(alpha).max())
            true = gap(split.X, split.y, w, path.radius, _BOUND)
            values = (float(t), operations, tracked, true, heap.pops / np.count_nonzero(w))
            for name, value in zip(found, values, strict=True):
                found[name].append(value)
    found["accuracy"] = [split.scores(split.X_test @ w, w)["accuracy"]]
    return found


# One fit of the shape of KDDA in a process of its own: how long it takes, and its peak memory over the CSR data. The
# peak is the largest resident size of the whole process: the interpreter, compiled code, data and fit. The same fit on
# few rows comes first, so that no kernel is compiled on the clock.


def fit(rows: int, columns: int, entries: int, count: int) -> dict[str, float]:
    """Fit the estimator on new rows: bytes of the data, seconds, the peak so far and a training accuracy."""
    start = time.process_time()
    X, y = problems.generate(rows, columns, entries)
    made, data_peak = time.process_time(), peak()
    solver = frank_wolfe.FrankWolfe(n_iter=count, entry_bound=ENTRY)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the seed
        model = LogisticRegression(1.0, solver=solver, l1_radius=PAPER_RADIUS, random_state=0).fit(X, y)
    took, used, some = time.process_time() - made, peak(), slice(0, min(rows, 100_000))
    found = {"bytes": X.data.nbytes + X.indices.nbytes + X.indptr.nbytes, "data peak": data_peak, "peak": used}
    return found | {"generate": made - start, "fit": took, "accuracy": float(model.score(X[some], y[some]))}


def fit_apart(shape: Shape, count: int) -> dict[str, float]:
    """The same in a process of its own."""
    numbers = (shape.measured_rows, shape.columns, shape.entries, count)
    return json.loads(fresh("-m", "benchmarks.dp_fw.timing", *map(str, numbers)))


if __name__ == "__main__":
    fit(500, 2_000, 20, 5)
    print(json.dumps(fit(*map(int, sys.argv[1:]))))
