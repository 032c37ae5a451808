"""Test scores of every solver on real data, next to scikit-learn without privacy and to the peers.

    python -m benchmarks.dense [--quick] [--resume] [--render-only] [--sets adult elec2] [--models auto sgd]

"raw": nothing is declared and nothing is tuned, data in its own units, delta = n^-1.5. "public": data scaled by public
bounds, `row_norm` declared, delta = 1e-5, next to diffprivlib and opacus tuned on the test set. "timing": the time of a
fit on adult. Splits are 75/25, stratified for classes, one for each seed, with fresh noise.

Results are kept as JSON lines in the folder `--out`, and the pages and plots there are drawn from them. `--resume` runs
what is not there yet; without it what is asked for is run again, but for the peers, which run again only if their grid
changed. `rules.judges` and `dense.peers.setup` come first; what is missing is skipped by name. One process, one BLAS
thread: two runs of different sets with `--resume` may go side by side.
"""

import argparse
import time
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression as PlainLogisticRegression
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks.dense import methods, peer_runs
from benchmarks.dense.page import TIMED, DensePage
from benchmarks.frame import command, sets
from benchmarks.frame.records import Record, Store
from benchmarks.frame.timing import in_turns, seconds
from tacit import LogisticRegression

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
QUICK = {
    "seeds": 2,
    "epsilons": (0.1, 1.0, 10.0),
    "sets": ["breast_cancer", "digits", "wine", "churn", "diabetes", "deliveries", "digits_even_odd"],
}
TIMING_ROUNDS = 7


@cache
def data(part: str, name: str) -> tuple[Any, Any, str]:
    """X, y and kind of a set, in its own units or scaled by public bounds."""
    return sets.load(name) if part == "raw" else (*sets.public(name), sets.PUBLIC[name])


def declared(part: str, X: Any, kind: str) -> dict[str, Any]:
    """What our models are told."""
    if part == "raw":
        return {}
    if kind == "classification":
        return {"delta": peer_runs.DELTA, "row_norm": 1.0}
    return {"delta": peer_runs.DELTA, "row_norm": float(np.sqrt(X.shape[1])), "y_bounds": (-1.0, 1.0)}


def cases(arguments: argparse.Namespace) -> Iterator[tuple[str, str, int]]:
    """Part, set and seed of everything asked for; all sets for a seed before the next seed."""
    for seed in range(arguments.seeds):
        for part, names in (("raw", sets.SETS), ("public", sets.PUBLIC)):
            for name in names if part in arguments.parts else ():
                if arguments.sets is None or name in arguments.sets:
                    yield part, name, seed


def run_ours(store: Store, part: str, name: str, seed: int, arguments: argparse.Namespace) -> None:
    """Every model of ours and scikit-learn's at every epsilon, for one split of one set."""
    X, y, kind = data(part, name)
    for model in methods.model_names(X, y, kind):
        if arguments.models is not None and model not in arguments.models:
            continue
        for epsilon in (None,) if model == methods.PLAIN else arguments.epsilons:
            if store.get((part, name, model, repr(epsilon), seed)) is None:
                record = methods.record(part, name, model, epsilon, seed, (X, y, kind), declared(part, X, kind))
                store.add(record)
                if record.refused:
                    print(f"refused: {model} on {name}: {record.refused}", flush=True)


def run(store: Store, peers: Store, arguments: argparse.Namespace) -> list[str]:
    """Measure what the stores lack. Returns what was skipped, by name."""
    skipped: dict[str, None] = {}
    for part, name, seed in cases(arguments):
        start = time.perf_counter()
        try:
            X, y, kind = data(part, name)
        except sets.MissingSetError as error:
            skipped[f"skipped: {name} ({error})"] = None
            continue
        if not arguments.peers_only:
            run_ours(store, part, name, seed, arguments)
        if part == "public" and not arguments.no_peers:
            parts = methods.split(X, y, kind, seed)
            skipped |= dict.fromkeys(peer_runs.run(peers, name, kind, seed, parts, arguments.epsilons))
        print(f"{part} {name} seed {seed}: {time.perf_counter() - start:.1f} s", flush=True)
    return list(skipped)


def run_timing(store: Store) -> list[str]:
    """Fits on adult, ours and scikit-learn's in turns on the same standardised data, after one unmeasured round."""
    try:
        X, y, _ = data("raw", "adult")
    except sets.MissingSetError as error:
        return [f"skipped: timing on adult ({error})"]
    X = StandardScaler().fit_transform(np.asarray(X, dtype=np.float64))
    kinds = dict(zip(TIMED, (LogisticRegression, PlainLogisticRegression), strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clocks = {name: lambda kind=kind: seconds(lambda: kind().fit(X, y)) for name, kind in kinds.items()}
        for turn, name, took in in_turns(TIMING_ROUNDS, clocks):
            store.add(Record("timing", "adult", name, None, turn, {}, [round(took, 4)], size=X.shape))
    return []


def parsed(argv: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = command.parser(__doc__, dict.fromkeys(("raw", "public", "timing"), True), "small sets, no peers")
    parser.add_argument("--sets", nargs="+", choices=sorted({*sets.SETS, *sets.PUBLIC}), help="default: all")
    parser.add_argument("--models", nargs="+", help=f"solvers, auto, {methods.PLAIN!r} (default: all)")
    parser.add_argument("--epsilons", nargs="+", type=float, default=EPSILONS)
    parser.add_argument("--seeds", type=int, default=10, help="splits, each with fresh noise (default: %(default)s)")
    parser.add_argument("--no-peers", action="store_true", help="leave the peers' results as they are")
    parser.add_argument("--peers-only", action="store_true", help="run nothing but the peers")
    arguments = command.parsed(parser, argv)
    if arguments.quick:
        arguments.seeds, arguments.epsilons = QUICK["seeds"], QUICK["epsilons"]
        arguments.sets = arguments.sets or QUICK["sets"]
        arguments.no_peers = True
        arguments.parts = [part for part in arguments.parts if part != "timing"]
    return arguments


def measure(store: Store, peers: Store, arguments: argparse.Namespace) -> list[str]:
    """What was asked for, and what is not known yet. Returns what was skipped, by name."""
    if not arguments.resume and not arguments.peers_only:
        wanted = set(cases(arguments))
        store.drop(
            lambda r: (
                (r.table, r.set, r.seed) in wanted
                and (arguments.models is None or r.model in arguments.models)
                and (r.epsilon is None or r.epsilon in arguments.epsilons)
            )
        )
    skipped = run(store, peers, arguments)
    timed = arguments.resume and any(record.table == "timing" for record in store)
    if "timing" in arguments.parts and not timed and not arguments.peers_only:
        skipped += run_timing(store)
    return skipped


def main(argv: list[str] | None = None) -> None:
    """Measure, and draw the pages."""
    arguments = parsed(argv)
    paths = [arguments.out / name for name in ("dense.jsonl", "dense_peers.jsonl")]
    if not arguments.render_only:
        with threadpool_limits(1):
            for line in measure(*map(Store, paths), arguments):
                print(line)
    records = [record for path in paths for record in Store(path)]  # with what another run wrote meanwhile
    DensePage(records, quick=arguments.quick).write(arguments.out, "dense")
    print(f"wrote {arguments.out / 'dense.md'}")


if __name__ == "__main__":
    main()
