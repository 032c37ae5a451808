"""Test scores at small budgets with nothing declared, between a constant model and an oracle.

    python -m benchmarks.small [--quick] [--resume] [--render-only] [--sets mnist digits] [--methods ours]

On the same 75/25 splits, stratified for classes, one for each seed: a constant model, scikit-learn without privacy, the
default of ours, and two that are told true units and tuned on the test rows, the oracle and DP-SGD
(`benchmarks.small.oracle`). Of classifiers also the log-loss and the calibration slope. A case is a model on a set: it
is written whole, and `--resume` leaves out those that are. `rules.judges` comes first.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
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
from benchmarks.small import oracle
from benchmarks.small.page import CONSTANT, DP_SGD, ORACLE, OURS, RARE, UNCOUNTED, SmallPage, rules
from tacit.solvers import classes

MODELS = (CONSTANT, PLAIN, OURS, UNCOUNTED, ORACLE, DP_SGD)
TOLD: dict[str, Callable[..., list[float]]] = {ORACLE: oracle.oracle, DP_SGD: oracle.dp_sgd}


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


def model_of(name: str, epsilon: float | None, X: Any, kind: str) -> Any:
    """One that is not told anything of the rows."""
    if name == CONSTANT:
        return DummyClassifier() if kind == "classification" else DummyRegressor()
    return estimator("auto", epsilon, X, kind, {})


def run(job: Job) -> None:
    """One model on a set, on a split for each seed."""
    about, effort = job.effort.sets[job.name], job.effort
    if (job.method == UNCOUNTED and "above" not in about) or (job.method == PLAIN and about.get("plain") == 0):
        return
    X, y, kind = load(job.name)
    job.size = (*X.shape, len(np.unique(y)) if kind == "classification" else 0)
    told, free = job.method in TOLD, job.method in (CONSTANT, PLAIN)
    seeds = about.get("seeds", effort.seeds)
    seeds = min(seeds, about.get("told_seeds", effort.told_seeds)) if told else seeds
    epsilons = (None,) if free else effort.told_at if told else effort.epsilons
    results = []
    for seed in range(seeds):
        parts = split(X, y, kind, seed)
        problem = oracle.told(parts, kind) if told else None
        for epsilon in epsilons:
            if told:
                found = TOLD[job.method](problem, epsilon, about["score"], seed)
                results.append((epsilon, seed, {about["score"]: [round(score, 5) for score in found]}))
                continue
            model = model_of(job.method, epsilon, X, kind)
            with uncounted() if job.method == UNCOUNTED else nullcontext():
                found = scored(model, parts, kind)
            results.append((epsilon, seed, *found, "" if free else f"{model.guarantee_.solver}, {rules()}"))
    for result in results:
        job.keep(job.method, *result)


BENCHMARK = Benchmark(
    "small",
    __doc__,
    {"small": Part(run, lambda effort: effort.few or effort.sets, methods=MODELS)},
    SmallPage,
    Path(__file__).with_name("effort.toml"),
    MODELS,
)

if __name__ == "__main__":
    BENCHMARK.main()
