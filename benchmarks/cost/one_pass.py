"""One pass of each kernel over the data, as ratios against named products measured in the same run.

    python -m benchmarks.cost.one_pass [--rows 100000] [--columns 50] [--words 20000] [--rounds 50] [--out FOLDER]

A pass reads every row, as the product X.T @ (X @ v) does: that product, on the same numbers and on one thread, is the
baseline. Ours and the baseline take turns, and each figure is the least of the processor's seconds over the rounds.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

from benchmarks import cost
from benchmarks.frame.timing import least
from tacit.blocks import Bounded, ExactPasses, GridTable, Scaling, TableRows
from tacit.kernels import coordinate, dual, exact, rows
from tacit.kernels.given import Block, Csr, Noise
from tacit.privacy import Budget, Unit
from tacit.problems import LOGISTIC, MULTINOMIAL, SQUARED, Loss, Penalty
from tacit.problems.task import LinearTask
from tacit.solvers.frank_wolfe.path import Path
from tacit.solvers.frank_wolfe.rows import Scoring
from tacit.solvers.frank_wolfe.scores import scores_for

INTRO = """\
# One pass over the data

`python -m benchmarks.cost.one_pass`, Python {python}, NumPy {numpy}; the least of alternating runs, on one thread.
Rows are standard normal, sparse ones have 20 entries each. The noise of a pass is drawn before it. A gradient of one
output reads rows of single precision once and computes in double precision; two rows say what each takes by itself.
No pass is faster than the longer of the two, and the processor does only some of both at the same time."""
OPTIONS = {"rows": 100_000, "columns": 50, "words": 20_000, "rounds": 50}
_CLASSES, _ENTRIES, _BATCH, _STEPS = 10, 20, 300, 100


class Pass(NamedTuple):
    """What is timed, and against what."""

    what: str
    ours: Callable[[], object]
    against: str
    theirs: Callable[[], object]
    times: int = 1  # that `ours` makes

    def row(self, rounds: int) -> list[str]:
        """Time both in turns."""
        with threadpool_limits(1):
            took = least(rounds, {"ours": self.ours, "theirs": self.theirs})
        ours, theirs = took["ours"] / self.times, took["theirs"]
        return [self.what, f"{ours * 1e3:.3g} ms", f"{ours / theirs:.3g}x of {self.against}, {theirs * 1e3:.3g} ms"]


def dense(n: int, d: int) -> tuple[Any, Any]:
    """Rows, and targets of -1 or 1."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, d)), rng.choice([-1.0, 1.0], size=n)


def sparse(n: int, d: int) -> csr_array:
    """Rows of a few words each, no word twice."""
    rng, apart = np.random.default_rng(1), d // _ENTRIES
    places = rng.integers(0, apart, size=(n, _ENTRIES)) + apart * np.arange(_ENTRIES)
    starts = np.arange(0, n * _ENTRIES + 1, _ENTRIES)
    return csr_array((rng.standard_normal(n * _ENTRIES), places.ravel(), starts), shape=(n, d))


def dense_gradients(n: int, d: int) -> Iterator[Pass]:
    """Sums of clipped gradients: one output, and ten classes."""
    Z, y = dense(n, d)
    classes = np.random.default_rng(2).integers(0, _CLASSES, size=n).astype(np.float64)
    W = np.zeros((_CLASSES, d + 1))
    one, ten = exact_passes(LOGISTIC, 1, Z, y), exact_passes(MULTINOMIAL, _CLASSES, Z, classes)
    yield Pass(
        f"gradient, one output, {n:,} x {d}",
        lambda: one.gradient(W[:1], 1.0),
        "`X.T @ (X @ v)`",
        lambda: Z.T @ (Z @ W[0, :d]),
    )
    yield Pass(
        f"gradient, {_CLASSES} classes, {n:,} x {d}",
        lambda: ten.gradient(W, 1.0),
        f"`X.T @ (X @ V)`, V of {_CLASSES} columns",
        lambda: Z.T @ (Z @ W[:, :d].T),
    )


def parts_of_a_gradient(n: int, d: int) -> Iterator[Pass]:
    """What bounds a gradient of one output: to read every row once, and to compute with rows that are in the cache."""
    Z, y = dense(n, d)
    short, near, v = Z.astype(np.float32), min(n, 400), np.ones(d)
    block = Block(short[:near], 1.0, y[:near], np.full(near, math.sqrt(d)))
    rule, w = exact.Rule(LOGISTIC.code, 1.0, 1.0, np.ones(2), 2.0**20, 2.0**24), np.zeros(d + 1)
    yield Pass(
        f"of it to read each entry, as an integer, {n:,} x {d}",
        lambda: short.view(np.int32).max(),
        "`X.T @ (X @ v)`",
        lambda: Z.T @ (Z @ v),
    )
    yield Pass(
        f"of it to compute, on {near} rows again and again, {n:,} x {d}",
        lambda: [exact.dense_gradient(block, w, rule) for _ in range(0, n, near)],
        "`X.T @ (X @ v)`",
        lambda: Z.T @ (Z @ v),
    )


def moments(n: int, d: int) -> Pass:
    """Second moments of rows that are clipped to a norm."""
    Z, y = dense(n, d)
    passes = exact_passes(LOGISTIC, 1, Z, y)
    return Pass(
        f"second moments, {n:,} x {d}", lambda: passes.second_moments(math.sqrt(d)), "`X.T @ X`", lambda: Z.T @ Z
    )


def one_hot_gradient(n: int, d: int) -> Pass:
    """The gradient of a sparse table: each row has a one in each of 20 groups of columns."""
    S, (_, y) = sparse(n, d), dense(n, 1)
    S.data[:] = 1.0
    share = np.asarray(S.sum(axis=0)).ravel() / n
    units = Scaling(share, np.sqrt(share * (1.0 - share)) + 1e-3, 3.0)
    passes, v = exact_passes(LOGISTIC, 1, units.transform(TableRows(S), "grid"), y), np.zeros((1, d + 1))
    return Pass(
        f"gradient, CSR table, {n:,} x {d:,}",
        lambda: passes.gradient(v, 1.0),
        "SciPy's `X.T @ (X @ v)`",
        lambda: S.T @ (S @ v[0, :-1]),
    )


def exact_passes(loss: Loss, outputs: int, Z: Any, targets: Any) -> ExactPasses:
    """Passes over bounded rows."""
    n, d = Z.shape
    budget = Budget(1.0, 1e-6, "add-remove")
    task = LinearTask(unit=Unit("row", n), d=d, budget=budget, loss=loss, outputs=outputs)
    return ExactPasses(task, Bounded(GridTable.of(Z), targets, Penalty()))


def sparse_gradient(n: int, words: int) -> Pass:
    """The sum of clipped gradients of CSR rows."""
    S, (_, y) = sparse(n, words), dense(n, 1)
    table, norms = Csr(S.data, S.indices, S.indptr), np.empty(n)
    rows.sparse_norms(table, 1.0, norms)
    block, w, out = Block(table, 1.0, y, norms), np.zeros((1, words + 1)), np.empty((1, words + 1))
    return Pass(
        f"gradient, CSR rows, {n:,} x {words:,}",
        lambda: rows.sparse_gradient(block, w, LOGISTIC.code, 1.0, 1.0, out),
        "SciPy's `X.T @ (X @ v)`",
        lambda: S.T @ (S @ w[0, :-1]),
    )


def coordinate_pass(n: int, d: int) -> Pass:
    """A step of every weight."""
    Z, y = dense(n, d)
    columns, ones, width = np.ascontiguousarray(Z.T, dtype=np.float32), np.ones(n, dtype=np.float32), d + 1
    of = coordinate.Slopes(-y, y, np.full((2, n), 1.0), SQUARED.code)
    rules = coordinate.rules(np.full(width, math.inf), np.ones(width), np.ones(width), Penalty(), n)
    order, noise = np.arange(width), Noise(np.zeros(width, dtype=np.int64), 2.0**-20, 1e9)
    w, out, v = np.zeros(width), coordinate.Written(np.empty(width), np.empty(width)), np.ones(d, dtype=np.float32)
    return Pass(
        f"coordinate pass, squared loss, {n:,} x {d}",
        lambda: coordinate.dense_pass(columns, ones, of, rules, order, noise, w, out),
        "`X.T @ (X @ v)` in single precision",
        lambda: columns @ (columns.T @ v),
    )


def dual_pass(n: int, d: int) -> Pass:
    """Steps on samples, until as many rows as there are have moved."""
    Z, y = dense(n, d)
    short, scale = Z.astype(np.float32), np.full(d + 1, 1.0 / (0.01 * n))
    block, own = Block(short, 1.0, y, np.full(n, math.sqrt(d))), dual.Alphas(np.zeros((n, 1)), np.full(n, d * scale[0]))
    samples = dual.Samples(np.random.default_rng(5).permutation(n), np.append(np.arange(0, n, _BATCH), n))
    counts = np.zeros((len(samples.starts) - 1, d + 1), dtype=np.int64)
    rule, noise = dual.Rule(float(_BATCH), LOGISTIC.code, dual.EXACT, 0.0, 1.0), Noise(counts, 2.0**-20, 1e9)
    v, out, ones = np.zeros((1, d + 1)), np.empty(counts.shape), np.ones(d, dtype=np.float32)
    return Pass(
        f"dual pass, logistic loss, batches of {_BATCH}, {n:,} x {d}",
        lambda: dual.dense_steps(block, own, samples, scale, rule, noise, v, out),
        "`X.T @ (X @ v)` in single precision",
        lambda: short.T @ (short @ ones),
    )


def frank_wolfe_step(n: int, words: int) -> Pass:
    """A step on CSR rows, which keeps the whole gradient up to date, against computing it anew."""
    S, (_, y), v = sparse(n, words), dense(n, 1), np.ones(words)
    scoring = Scoring(LOGISTIC.code, 1.0, 1.0, LOGISTIC.curvature, units=2**20, tolerance=0.01)
    scores = scores_for(S, y, scoring, Path(1_000_000, 10.0, step=0.01), "bucket", exact=False)
    columns, time = np.random.default_rng(4).integers(0, words, size=_STEPS).tolist(), itertools.count(1)

    def steps() -> None:
        for j, t in zip(columns, time, strict=False):
            scores.step(t, j, 1 if t % 2 else -1)

    return Pass(
        f"Frank-Wolfe step, CSR rows, {n:,} x {words:,}",
        steps,
        "SciPy's `X.T @ (X @ v)`",
        lambda: S.T @ (S @ v),
        _STEPS,
    )


def table(arguments: Any) -> cost.Rows:
    """All of them."""
    n, d, words = arguments.rows, arguments.columns, arguments.words
    for each in (
        *dense_gradients(n, d),
        *dense_gradients(10 * n, 20),
        *dense_gradients(2 * n, 100),
        *dense_gradients(n // 2, 500),
        *parts_of_a_gradient(n // 2, 500),
        moments(n, d),
        one_hot_gradient(n, 1_000),
        sparse_gradient(n, words),
        coordinate_pass(n, d),
        dual_pass(n, d),
        frank_wolfe_step(n, words),
    ):
        yield each.row(arguments.rounds)


def main(argv: list[str] | None = None) -> None:
    """Measure, print, and write the page."""
    cost.main(__doc__, "pass", INTRO, table, OPTIONS, argv)


if __name__ == "__main__":
    main()
