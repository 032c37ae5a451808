"""Orders in which coordinate descent visits the columns, on sets that took no part in their choice.

    python -m benchmarks.rules.order [--quick] [--resume] [--render-only] [--parts standardised ...] [--sets NAME ...]

"standardised" is the solver on standardised rows with an intercept, as in `benchmarks.rules.coordinate`. "raw" are
whole fits of `Lasso` and `LogisticRegression` with `rescale=False` on columns in the units of the source: declared
bounds are the next power of two above the largest entry, and there is no intercept, as in the paper on DP-CD. "paper"
are the two problems of that paper with columns as they are, by whole fits with several options.

Some thirty orders were tried on the sets that chose, with declared smoothness: the table's and its reverse, by growing
and by falling smoothness, forwards and backwards in turns, one random order for all passes or for several, and all of
these with random changes. Near the table's order was best there on standardised columns, and as good as any on at most
100 columns as they are. Growing smoothness with random changes was as good there, and then left four times the excess
of new permutations on one set that judges (deliveries), so it is no option.
"""

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import Lasso as PlainLasso

from benchmarks.dp_cd.problems import problem as imbalanced
from benchmarks.frame import Floats, sets
from benchmarks.frame.command import SPLIT, Benchmark, Job, Part
from benchmarks.frame.losses import Linear, fitted
from benchmarks.frame.page import Page
from benchmarks.frame.tables import lines
from benchmarks.rules.coordinate import problem
from benchmarks.rules.tuned import Pair, pair
from tacit import Lasso, LogisticRegression
from tacit.solvers import Coordinate

ORDERS = ("jittered", "permuted", "cyclic")
SHUFFLED = "jittered, columns shuffled"
MODELS = (*ORDERS, SHUFFLED)
PAPER = ("California, imbalanced", "Electricity, imbalanced")
OPTIONS: dict[str, dict[str, Any] | None] = {  # None: smoothness as in the data, declared
    "the rules": {},
    "order permuted": {"order": "permuted"},
    "order cyclic": {"order": "cyclic"},
    "smoothness declared": None,
    "smoothness with Laplace noise": {"smoothness": "laplace"},
    "smoothness with a tenth of the budget": {"smoothness_share": 0.1},
    "last iterate": {"averaging": "last"},
    "periodic averaging": {"averaging": "periodic"},
}
STRENGTHS = {"weak": 1e-4, "strong": 1e-2}  # of an l1 penalty, over the least that leaves no coefficient


@dataclass(frozen=True, eq=False)
class Raw(Linear):
    """A set in its own units; a target within 3."""

    loss: str
    X: Floats
    y: Floats
    l1: float
    l2: float

    @cached_property
    def solution(self) -> Floats:
        """The minimiser, by scikit-learn; of the LASSO from the Gram matrix, as raw columns take many iterations."""
        if not self.l1:
            return Linear.solution.func(self)
        plain = PlainLasso(alpha=self.l1, fit_intercept=False, tol=1e-10, max_iter=20_000, precompute=True)
        return np.ravel(fitted(plain, self.X, self.y).coef_)

    def run(self, order: str, epsilon: float, seeds: range) -> Pair:
        """The mean excess and its spread, as parts of the zero model's."""
        reach = 2.0 ** np.ceil(np.log2(np.abs(self.X).max(axis=0)))
        told = {"epsilon": epsilon, "delta": len(self.y) ** -1.5, "fit_intercept": False}
        told |= {"bounds": list(zip(-reach, reach, strict=True)), "solver": Coordinate(rescale=False, order=order)}
        lasso = self.loss == "squared"
        model: Any = Lasso(alpha=self.l1, y_bounds=(-3.0, 3.0), **told) if lasso else LogisticRegression(C=1.0, **told)
        zero, found = float(self.objectives(np.zeros(self.X.shape[1]))[0]), []
        for seed in seeds:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of the seed
                w = np.ravel(model.set_params(random_state=seed).fit(self.X, self.y).coef_)
            found.append((float(self.objectives(w)[0]) - self.optimum) / (zero - self.optimum))
        return float(np.mean(found)), float(np.std(found))


def raw(name: str, most_rows: int) -> Iterator[tuple[str, Raw]]:
    """The problems of a set: LASSO of two strengths, or logistic regression with C = 1."""
    table, labels, kind = sets.load(name)
    X, y = np.asarray(table, dtype=np.float64), np.asarray(labels)
    keep = np.random.default_rng(0).permutation(len(X))[:most_rows]
    X, y = X[keep], y[keep]
    X = X[:, np.abs(X).max(axis=0) > 0.0]
    if kind == "classification":
        signs = np.where(np.unique(y, return_inverse=True)[1] % 2 == 1, 1.0, -1.0)
        yield name, Raw("logistic", X, signs, 0.0, 1.0 / len(y))
        return
    y = 3.0 * y / np.abs(y).max()
    most = float(np.abs(X.T @ y).max()) / len(y)
    for word, strength in STRENGTHS.items():
        yield f"{name}{SPLIT}{word}", Raw("squared", X, y, strength * most, 0.0)


def shuffled(width: int) -> Any:
    """A random place for each column."""
    return np.random.default_rng(1).permutation(width)


def run_raw(job: Job) -> None:
    """Every order on every problem of the set."""
    for told, found in raw(job.name, job.effort.most_rows):
        other = Raw(found.loss, found.X[:, shuffled(found.X.shape[1])], found.y, found.l1, found.l2)
        for epsilon in job.effort.epsilons:
            for model in MODELS:
                at = other if model == SHUFFLED else found
                score = at.run("jittered" if model == SHUFFLED else model, epsilon, range(job.effort.seeds))
                job.keep(model, epsilon, 0, {"excess": score}, (), set=told, size=found.X.shape)


def run_standardised(job: Job) -> None:
    """The same for the solver on standardised rows."""
    found = problem(job.name, job.effort.most_rows)
    Z = np.asfortranarray(found.Z[:, shuffled(found.Z.shape[1])])
    other = type(found)(found.loss, Z, found.targets, found.l1, found.l2)
    for epsilon in job.effort.epsilons:
        for model in MODELS:
            at = other if model == SHUFFLED else found
            order = "jittered" if model == SHUFFLED else model
            score = at.run("coordinate", epsilon, range(job.effort.seeds), order=order)
            job.keep(model, epsilon, 0, {"excess": score}, (), size=found.Z.shape)


def run_paper(job: Job) -> None:
    """A problem of the paper on DP-CD, in its own measure and budget."""
    asked = imbalanced(job.name)
    columns = [(-bound, bound) for bound in asked.bounds]
    told = {"epsilon": asked.epsilon, "delta": asked.delta, "fit_intercept": False, "bounds": columns}
    model: Any = LogisticRegression(C=1.0, **told)
    if asked.loss == "squared":
        model = Lasso(alpha=asked.l1, y_bounds=(-asked.label_bound, asked.label_bound), **told)
    for label, options in OPTIONS.items():
        known = {"smoothness": asked.smoothness} if options is None else options
        model.set_params(solver=Coordinate(rescale=False, **known))
        found = []
        for seed in range(job.effort.seeds):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of the seed
                w = np.ravel(model.set_params(random_state=seed).fit(asked.X, asked.y).coef_)
            found.append(float(asked.relative_error(w)[0]))
        scores = {"error": (float(np.mean(found)), float(np.std(found)))}
        job.keep(label, asked.epsilon, 0, scores, (), size=asked.X.shape)


class OrderPage(Page):
    """A section for each kind of columns, those that judge first."""

    template = Path(__file__).with_name("order.md")
    strengths = STRENGTHS

    def paper(self) -> str:
        """Relative errors, a column for each problem."""
        rows = [[label, *(self._error(name, label) for name in PAPER)] for label in OPTIONS]
        return lines(["options", *PAPER], [row for row in rows if any(row[1:])])

    def _error(self, name: str, label: str) -> str:
        (record,) = self.results.rows("paper", name, label) or (None,)
        return pair(record, "error")

    def groups(self) -> Iterator[dict[str, Any]]:
        for table, kind in (("standardised", "Standardised columns"), ("raw", "Columns as they are")):
            for chose, words in ((False, "sets that took no part in the choice"), (True, "sets that chose")):
                told = [r for r in self.results.rows(table) if (r.set.split(SPLIT)[0] in self.effort.chose) == chose]
                cells = dict.fromkeys((r.set, r.epsilon) for r in told)
                found = [self._row(table, *cell) for cell in cells]
                if found:
                    head = ["data", "rows x columns", "epsilon", *MODELS]
                    rows = lines(head, [row for row, _ in found])
                    yield {"part": f"{kind}, {words}", "summary": self._summary([r for _, r in found]), "rows": rows}

    def _row(self, table: str, name: str, epsilon: float) -> tuple[list[str], dict[str, float]]:
        """The cells, and the excess of each order over that of new permutations; none where noise is all there is."""
        records = {model: self.results.rows(table, name, model, epsilon)[0] for model in MODELS}
        n, d = records["permuted"].size
        base = records["permuted"].scores["excess"][0]
        ratios = {model: r.scores["excess"][0] / base for model, r in records.items()} if base < 0.5 else {}
        return [
            name.replace(SPLIT, ", "),
            f"{n:,} x {d}",
            f"{epsilon:g}",
            *(pair(r, "excess") for r in records.values()),
        ], ratios

    def _summary(self, ratios: list[dict[str, float]]) -> str:
        told = [r for r in ratios if r]
        rows = []
        for model in MODELS:
            values = np.array([r[model] for r in told])
            if model != "permuted" and len(values):
                mean, wins = math.exp(np.log(values).mean()), int((values < 1.0).sum())
                rows.append(
                    [model, f"{mean:.2f}", f"{values.min():.2f}", f"{values.max():.2f}", f"{wins} of {len(values)}"]
                )
        return lines(["over permuted", "geometric mean", "least", "most", "better in"], rows)


BENCHMARK = Benchmark(
    "order_rule",
    __doc__,
    {
        "standardised": Part(run_standardised, lambda effort: effort.judged + effort.chose),
        "raw": Part(run_raw, lambda effort: effort.judged + effort.chose),
        "paper": Part(run_paper, PAPER),
    },
    OrderPage,
    Path(__file__).with_suffix(".toml"),
)

if __name__ == "__main__":
    BENCHMARK.main()
