"""The time of a pass of DP-CD, against DP-SGD in plain NumPy and against one product with the data."""

import os
from collections.abc import Callable, Iterator

import numpy as np
from threadpoolctl import threadpool_limits

import dp_sgd
from dp_cd_methods import METHODS, Coordinate, Point
from dp_cd_problems import Problem
from noise import seconds

BATCH = 256
MODELS = ("ours", "form", "greedy", "sgd", "float64 product", "float32 product")
_SHORT, _LONG = 2, 22


def threads() -> list[int]:
    """The numbers of BLAS threads to time with: one, and one for each core."""
    return sorted({1, os.cpu_count() or 1})


def _passes(method: Coordinate, problem: Problem) -> Callable[[], float]:
    """Seconds of one more pass: between a short and a long fit, calibrated before."""
    runs = []
    for passes in (_SHORT, _LONG):
        task = method.task(problem, passes, Point(1.0, 1.0))
        runs.append((task, method.calibrated(problem, passes)))

    def measure() -> float:
        short, long = (method.fit(problem, task, calibrated, 0)[1] for task, calibrated in runs)
        return (long - short) / (_LONG - _SHORT)

    return measure


def _sgd(problem: Problem) -> Callable[[], float]:
    """Seconds of one pass of DP-SGD."""
    steps = dp_sgd.steps_of(len(problem.y), BATCH, 1)
    descent = dp_sgd.Descent(problem, BATCH, np.array([1e-3]), np.array([1.0]), 1.0, 0)

    def run() -> None:
        for _ in range(steps):
            descent.step()

    return lambda: seconds(run)


def _product(problem: Problem, dtype: type[np.floating]) -> Callable[[], float]:
    """Seconds of one `X.T @ r`, with `X` by columns as DP-CD reads it."""
    X, r = np.asfortranarray(problem.X, dtype=dtype), problem.y.astype(dtype)
    repeats = min(100, max(1, 20_000_000 // X.size))

    def run() -> None:
        for _ in range(repeats):
            X.T @ r

    return lambda: seconds(run) / repeats


def rounds(problem: Problem, count: int) -> Iterator[tuple[int, int, str, float]]:
    """Number of threads, round, model and seconds; all models in turns, after one unmeasured round."""
    actions: dict[str, Callable[[], float]] = {}
    for model in MODELS:
        if model == "sgd":
            actions[model] = _sgd(problem)
        elif model.endswith("product"):
            actions[model] = _product(problem, np.float32 if model.startswith("float32") else np.float64)
        else:
            method = METHODS[model]
            assert isinstance(method, Coordinate)
            if method.serves(problem):
                actions[model] = _passes(method, problem)
    for number in threads():
        with threadpool_limits(number):
            for turn in range(-1, count):
                for model, action in actions.items():
                    took = action()
                    if turn >= 0:
                        yield number, turn, model, took
