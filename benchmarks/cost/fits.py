"""Whole fits against scikit-learn's on the same data, as ratios of one run.

    python -m benchmarks.cost.fits [--rows 1000000] [--rounds 5] [--out FOLDER]

Each figure is the least over the rounds, in which ours and the baseline take turns: of seconds on the clock, or of the
processor's where that is said. All cores and one have turns of their own: after a fit of scikit-learn's the threads of
its BLAS still wait for work for some time, on the cores that ours would use.
"""

import math
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression as PlainLogisticRegression
from sklearn.linear_model import Ridge as PlainRidge
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks import cost
from benchmarks.frame import sets
from benchmarks.frame.timing import in_turns, seconds
from tacit import LogisticRegression, Ridge

INTRO = """\
# Whole fits

`python -m benchmarks.cost.fits`, Python {python}, NumPy {numpy}; the least of runs that take turns, epsilon = 1,
nothing declared. Large tables have 20 normal columns of different centres and scales; *scaled* rows are standardised
for scikit-learn beforehand, which is not timed."""
OPTIONS = {"rows": 1_000_000, "rounds": 5}

Clock = Callable[[], float]


def large(n: int) -> tuple[Any, Any, Any]:
    """Rows, two classes, and a target."""
    rng = np.random.default_rng(0)
    scales = rng.uniform(1.0, 50.0, 20)
    X = rng.standard_normal((n, 20)) * scales + rng.uniform(0.0, 9.0, 20)
    margin = (X / scales) @ rng.normal(size=20) * 0.5
    return X, (margin + rng.logistic(size=n) > 0.0).astype(np.int64), margin + rng.standard_normal(n)


def least(rounds: int, clock: Clock, **actions: Callable[[], object]) -> dict[str, float]:
    """The least of the seconds that each action takes by the clock, in turns."""
    found: dict[str, float] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of iterations that end before they converge
        for _, name, took in in_turns(rounds, {name: partial(seconds, act, clock) for name, act in actions.items()}):
            found[name] = min(found.get(name, math.inf), took)
    return found


def row(what: str, ours: float, against: str, theirs: float) -> list[str]:
    """A row of the page."""
    return [what, f"{ours:.3g} s", f"{ours / theirs:.3g}x of {against}, {theirs:.3g} s"]


def on_one(action: Callable[[], object]) -> None:
    """Run it on one thread."""
    with threadpool_limits(1):
        action()


def rows(arguments: Any) -> cost.Rows:
    """All of them."""
    n, rounds = arguments.rows, arguments.rounds
    X, y, t = large(n)
    Z = StandardScaler().fit_transform(X)
    size, wall = f"{n:,} x 20", time.perf_counter
    ours, plain = LogisticRegression(epsilon=1.0), PlainLogisticRegression()
    found = least(rounds, wall, ours=lambda: ours.fit(X, y), scaled=lambda: plain.fit(Z, y))
    both = least(rounds, wall, all=lambda: ours.fit(X, y), one=lambda: on_one(lambda: ours.fit(X, y)))
    raw = least(1, wall, plain=lambda: plain.fit(X, y))["plain"]
    yield row(f"logistic, {size}", found["ours"], "scikit-learn on scaled rows", found["scaled"])
    yield row(f"logistic, {size}", found["ours"], "scikit-learn on the same rows", raw)
    yield row(f"logistic, {size}, all cores", both["all"], "the same on one", both["one"])
    found = least(rounds, wall, ours=lambda: Ridge(epsilon=1.0).fit(X, t), plain=lambda: PlainRidge().fit(X, t))
    yield row(f"ridge, {size}", found["ours"], "scikit-learn", found["plain"])
    yield from adult(rounds)


def adult(rounds: int) -> cost.Rows:
    """A real table, in its own units for us and scaled for scikit-learn."""
    try:
        X, y, _ = sets.load("adult")
    except sets.MissingSetError:
        return
    X = np.asarray(X, dtype=np.float64)
    Z = StandardScaler().fit_transform(X)
    size = f"{len(X):,} x {X.shape[1]}"
    for clock, words in ((time.perf_counter, "clock"), (time.process_time, "processor")):
        found = least(
            3 * rounds,
            clock,
            ours=lambda: LogisticRegression(epsilon=1.0).fit(X, y),
            plain=lambda: PlainLogisticRegression(max_iter=1_000).fit(Z, y),
        )
        yield row(f"logistic, adult, {size}, {words}", found["ours"], "scikit-learn on scaled rows", found["plain"])


def main(argv: list[str] | None = None) -> None:
    """Measure, print, and write the page."""
    cost.main(__doc__, "fits", INTRO, rows, OPTIONS, argv)


if __name__ == "__main__":
    main()
