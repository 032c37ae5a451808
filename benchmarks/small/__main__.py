"""Test scores at small budgets with nothing declared, next to the numbers that were asked for.

    python -m benchmarks.small [--quick] [--resume] [--render-only] [--sets mnist digits]

A constant model, scikit-learn without privacy and the default of ours on the same 75/25 splits, stratified for classes,
one for each seed. Of classifiers also the log-loss and the calibration slope. `rules.judges` comes first.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp
from sklearn.dummy import DummyClassifier, DummyRegressor

from benchmarks.dense.methods import PLAIN, estimator, evaluate, split
from benchmarks.frame import Floats, sets
from benchmarks.frame.command import Benchmark, Job, Part
from benchmarks.frame.solvers import fitted
from benchmarks.small.page import CONSTANT, OURS, UNCOUNTED, SmallPage
from tacit.solvers import classes

RARE = ", 5% positives"


def load(name: str) -> tuple[Any, Any, str]:
    """X, y and kind of a set; of some with so many rows of the second class left out that 5% are of it."""
    X, y, kind = sets.load(name.removesuffix(RARE))
    if not name.endswith(RARE):
        return X, y, kind
    second = np.asarray(y) == np.unique(y)[1]
    positive, rest = np.flatnonzero(second), np.flatnonzero(~second)
    kept = np.random.default_rng(0).permutation(positive)[: round(len(rest) / 19)]
    rows = np.sort(np.append(rest, kept))
    return X[rows], np.asarray(y)[rows], kind


def calibration_slope(probabilities: Floats, numbers: Any) -> float:
    """By what the logarithms of probabilities have to be multiplied to predict best: below 1 they are too sure."""
    logs = np.log(np.maximum(probabilities, 1e-12))
    own = np.arange(len(logs)), numbers

    def loss(slope: float) -> float:
        return float(np.mean(logsumexp(slope * logs, axis=1) - slope * logs[own]))

    return float(minimize_scalar(loss, bounds=(0.0, 10.0), method="bounded").x)


@contextmanager
def uncounted() -> Iterator[None]:
    """Fits that release no class counts."""
    enough = classes.ENOUGH
    classes.ENOUGH = np.inf
    try:
        yield
    finally:
        classes.ENOUGH = enough


def scored(model: Any, parts: list[Any], kind: str) -> tuple[dict[str, float], float]:
    """Scores on the test rows, and the seconds of the fit."""
    X_train, X_test, y_train, y_test = parts
    seconds = fitted(model, X_train, y_train)
    scores = evaluate(model, X_test, y_test, kind)
    if kind == "classification":
        numbers = np.searchsorted(model.classes_, y_test)
        scores["slope"] = calibration_slope(model.predict_proba(X_test), numbers)
    return {name: round(float(value), 5) for name, value in scores.items()}, round(seconds, 4)


def run(job: Job) -> None:
    """All models of a set on the same splits."""
    X, y, kind = load(job.name)
    job.size = (*X.shape, len(np.unique(y)) if kind == "classification" else 0)
    constant = DummyClassifier if kind == "classification" else DummyRegressor
    about = job.effort.sets[job.name]
    for seed in range(job.effort.seeds):
        parts = split(X, y, kind, seed)
        job.keep(CONSTANT, None, seed, *scored(constant(), parts, kind))
        if seed < about.get("plain", job.effort.seeds):
            job.keep(PLAIN, None, seed, *scored(estimator("", None, X, kind, {}), parts, kind))
        for epsilon in job.effort.epsilons:
            model = estimator("auto", epsilon, X, kind, {})
            job.keep(OURS, epsilon, seed, *scored(model, parts, kind), note=model.guarantee_.solver)
            if "above" in about:
                with uncounted():
                    job.keep(UNCOUNTED, epsilon, seed, *scored(estimator("auto", epsilon, X, kind, {}), parts, kind))


BENCHMARK = Benchmark(
    "small",
    __doc__,
    {"small": Part(run, lambda effort: effort.few or effort.sets)},
    SmallPage,
    Path(__file__).with_name("effort.toml"),
)

if __name__ == "__main__":
    BENCHMARK.main()
