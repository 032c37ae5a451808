"""The times of the DP Frank-Wolfe benchmark: whole fits, draws of the samplers, iterations as columns grow.

A fit is a run of the solver: from CSR rows to weights, with all that is set up before the first iteration. Kernels are
compiled before. Noise is calibrated before too, which takes both algorithms equally long; those seconds are kept.
What is counted is the processor's time, of all threads, which others on the machine change less.
"""

import statistics
import time
from collections.abc import Iterator

import numpy as np
from tacit.solvers.frank_wolfe.ball_sparse import SparseGradient

import dp_fw_problems as problems
from dp_fw_methods import FrankWolfe, algorithm_1, budget_for, partial_seconds, scores_of
from dp_fw_problems import Shape, Split
from paper_only import RecomputedGradient
from tacit.privacy import NoiseSource
from tacit.privacy.mechanisms.vertices import SAMPLERS

Timed = tuple[dict[str, list[float]], list[float]]
LADDER = ("bucket", "two-level", "gumbel", "algorithm 1")
"""Algorithm 2 with each sampler, and Algorithm 1 with brute force."""

OCTAVES = 3.0  # the deviation of scores that draws are timed on
ENTRIES, ROWS_PER_COLUMN = 30, 3  # where the number of columns grows


def warm_up() -> None:
    """Compile everything on a few rows."""
    split = problems.synthetic(Shape(600, 900, 20))
    for sampler in SAMPLERS:
        FrankWolfe(10, sampler=sampler).fit(split.X, split.y, budget_for(600, 1.0), 0)
        for kind in (SparseGradient, RecomputedGradient):
            partial_seconds(FrankWolfe(10, sampler=sampler), kind, split, budget_for(600, 1.0), 0.0)


def fit_times(split: Split, epsilon: float, rung: str, seed: int, at_least: float, count: int) -> Timed:
    """Seconds of a whole fit, and what it took; brute force is timed for some iterations, and the rest reckoned.

    Only whole fits have scores.
    """
    budget = budget_for(split.size[0], epsilon)
    if rung in ("gumbel", "algorithm 1"):
        if rung == "gumbel":
            timed = partial_seconds(FrankWolfe(count, sampler="gumbel"), SparseGradient, split, budget, at_least)
        else:
            timed = algorithm_1(split, budget, at_least, count)
        begun, each, made = timed
        return {"start": [begun], "iteration": [each], "made": [float(made)]}, [begun + count * each]
    weights, calibration, took = FrankWolfe(count, sampler=rung).fit(split.X, split.y, budget, seed)
    scores = scores_of(np.asarray(split.X_test @ weights), split.y_test, weights)
    return scores | {"calibration": [calibration], "made": [float(count)]}, [took]


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


def growing(columns: list[int], at_least: float, rounds: int) -> Iterator[tuple[int, Timed, tuple[int, int, int]]]:
    """The time of an iteration by the number of columns, at 30 entries a row and 3 a column, all columns alike.

    The median of some rounds, each from the start.
    """
    for d in columns:
        n = d * ROWS_PER_COLUMN // ENTRIES
        X, y = problems.generate(n, d, ENTRIES, even=True)
        split = Split(X, y, X[:0], y[:0])
        method = FrankWolfe()
        budget = budget_for(n, 1.0)
        timed = [partial_seconds(method, SparseGradient, split, budget, at_least, 1_000) for _ in range(rounds)]
        begun, each, made = (statistics.median(part) for part in zip(*timed, strict=True))
        yield d, ({"start": [begun], "made": [float(made)]}, [each]), split.size
