"""Test scores of every solver on real data, next to scikit-learn without privacy and to the peers.

    python -m benchmarks.dense [--quick] [--resume] [--render-only] [--sets adult elec2] [--methods auto sgd]

"raw": nothing is declared and nothing is tuned, data in its own units, delta = n^-1.5. "public": data scaled by public
bounds, `row_norm` declared, delta = 1e-5. "peers": diffprivlib and opacus on the same, tuned on the test set. "timing":
the time of a fit on adult. Splits are 75/25, stratified for classes, one for each seed, with fresh noise.

The peers run again only if their grid changed. `rules.judges` and `dense.peers.setup` come first; what is missing is
skipped by name. One process, one BLAS thread.
"""

import warnings
from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression as PlainLogisticRegression
from sklearn.preprocessing import StandardScaler

from benchmarks.dense import methods, peer_runs
from benchmarks.dense.page import TIMED, DensePage
from benchmarks.frame import sets
from benchmarks.frame.command import Benchmark, Job, Part
from benchmarks.frame.timing import in_turns, seconds
from tacit import LogisticRegression

MODELS = (methods.PLAIN, "auto", *methods.SOLVERS)


@cache
def data(part: str, name: str) -> tuple[Any, Any, str]:
    """X, y and kind of a set, in its own units or scaled by public bounds."""
    return sets.load(name) if part == "raw" else (*sets.public(name), sets.PUBLIC[name]["kind"])


def declared(part: str, X: Any, kind: str) -> dict[str, Any]:
    """What our models are told."""
    if part == "raw":
        return {}
    if kind == "classification":
        return {"delta": peer_runs.DELTA, "row_norm": 1.0}
    return {"delta": peer_runs.DELTA, "row_norm": float(np.sqrt(X.shape[1])), "y_bounds": (-1.0, 1.0)}


def run_ours(job: Job) -> None:
    """A model of ours, or scikit-learn's, at every epsilon on a split for each seed."""
    X, y, kind = data(job.part, job.name)
    if job.method not in methods.model_names(X, y, kind):
        return
    job.size = (*X.shape, len(np.unique(y)) if kind == "classification" else 0)
    epsilons = (None,) if job.method == methods.PLAIN else job.effort.epsilons
    for seed, epsilon in product(range(job.effort.seeds), epsilons):
        model = methods.estimator(job.method, epsilon, X, kind, declared(job.part, X, kind))
        try:
            scores, took = methods.measure(model, methods.split(X, y, kind, seed), kind)
        except ValueError as error:
            job.keep(job.method, epsilon, seed, {}, (), refused=str(error))
            print(f"refused: {job.method} on {job.name}: {error}", flush=True)
        else:
            note = "" if epsilon is None else model.guarantee_.solver
            job.keep(job.method, epsilon, seed, scores, took, note)


def run_peers(job: Job) -> None:
    """Both peers on the splits that ours had."""
    X, y, kind = data("public", job.name)
    skipped = {}
    for seed in range(job.effort.seeds):
        parts = methods.split(X, y, kind, seed)
        skipped |= dict.fromkeys(peer_runs.run(job.store, job.name, kind, seed, parts, job.effort.epsilons))
    print(*skipped, sep="\n")


def run_timing(job: Job) -> None:
    """Fits on adult, ours and scikit-learn's in turns on the same standardised data, after one unmeasured round."""
    X, y, _ = data("raw", job.name)
    X = StandardScaler().fit_transform(np.asarray(X, dtype=np.float64))
    kinds = dict(zip(TIMED, (LogisticRegression, PlainLogisticRegression), strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clocks = {name: lambda kind=kind: seconds(lambda: kind().fit(X, y)) for name, kind in kinds.items()}
        for turn, name, took in in_turns(job.effort.rounds, clocks):
            job.keep(name, None, turn, {}, took, size=X.shape)


def asked(known: dict[str, Any]) -> Callable[[Any], list[str]]:
    """Those of the sets that an effort is for."""
    return lambda effort: [name for name in known if effort.sets is None or name in effort.sets]


BENCHMARK = Benchmark(
    "dense",
    __doc__,
    {
        "raw": Part(run_ours, asked(sets.SETS), methods=MODELS),
        "public": Part(run_ours, asked(sets.PUBLIC), methods=MODELS),
        "peers": Part(run_peers, lambda effort: list(sets.PUBLIC) if effort.peers else [], ("public",), file="_peers"),
        "timing": Part(run_timing, "timed"),
    },
    DensePage,
    Path(__file__).with_name("effort.toml"),
    MODELS,
)

if __name__ == "__main__":
    BENCHMARK.main()
