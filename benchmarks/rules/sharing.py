"""How "feature-sharing" divides its ball and its budget where nobody says: geometry, order of parties and split.

    python -m benchmarks.rules.sharing [--quick] [--resume] [--render-only] [--sets NAME ...]

The data is of generators that no page judges by. Everything is compared by the mean relative excess loss over all of
them, each counted as 2 at most: more is worse than no model, however much.
"""

import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit

from benchmarks.federated.methods import Federated, Setting
from benchmarks.federated.problems import Problem
from benchmarks.frame import Floats
from benchmarks.frame.command import SPLIT, Benchmark, Job, Part
from benchmarks.frame.page import Page, Seeds
from benchmarks.frame.tables import NONE, named, table
from tacit.federated import FeatureSharing

MOST = 2.0
RULE = f"product{SPLIT}0.75"
MODELS = {
    "product": FeatureSharing(geometry="product"),
    "serial": FeatureSharing(geometry="serial"),
    "serial, cyclic": FeatureSharing(geometry="serial", sampling="cyclic"),
    "best": FeatureSharing(geometry="best"),
}


def factors(rows: int, rng: np.random.Generator) -> Any:
    """60 dense columns of variance 1 that share three factors."""
    loadings = 0.6 * rng.standard_normal((3, 60))
    X = rng.standard_normal((rows, 3)) @ loadings + rng.standard_normal((rows, 60))
    return X / np.sqrt(1.0 + np.square(loadings).sum(axis=0))


def neighbours(rows: int, rng: np.random.Generator) -> Any:
    """200 uniform columns, each like the one before it."""
    X = rng.uniform(-1.0, 1.0, (rows, 200))
    for column in range(1, 200):
        X[:, column] = 0.6 * X[:, column - 1] + 0.8 * X[:, column]
    return X


def words(rows: int, rng: np.random.Generator) -> Any:
    """1,000 columns of 0 and 1, a few of them often 1 and most of them rarely."""
    often = np.minimum(0.5, 3.0 / np.arange(1, 1_001))
    parts = [np.flatnonzero(rng.random(rows) < share) for share in rng.permutation(often)]
    starts = np.cumsum([0, *map(len, parts)])
    return sparse.csc_array((np.ones(starts[-1]), np.concatenate(parts), starts), shape=(rows, 1_000))


COLUMNS: dict[str, Callable[[int, np.random.Generator], Any]] = {
    "factors": factors,
    "neighbours": neighbours,
    "words": words,
}
LOSSES = ("squared", "logistic", "squared_hinge")


@lru_cache(maxsize=2)
def problem(name: str, rows: int, loss: str, seed: int) -> Problem:
    """Columns of that kind, eight of them active, a signal three times the noise; the truth's norm is the radius."""
    rng = np.random.default_rng([seed, rows, 325])
    A = sparse.csc_array(COLUMNS[name](rows, rng))
    truth = np.zeros(A.shape[1])
    likely = np.argsort(-np.asarray(abs(A).sum(axis=0)))[: max(60, A.shape[1] // 4)]
    truth[rng.choice(likely, size=8, replace=False)] = rng.standard_normal(8)
    scores: Floats = A @ truth
    scores -= scores.mean()
    unit = 3.0 / float(np.std(scores))
    if loss == "squared":
        y = unit * scores + rng.standard_normal(rows)
    else:
        y = np.where(rng.random(rows) < expit(unit * scores), 1.0, -1.0)
    return Problem(A, y, unit * float(np.abs(truth).sum()), loss, intercepted=True)


def run(job: Job) -> None:
    """Every way with every split of the budget, on one generator."""
    effort, parties = job.effort, job.effort.parties[job.name]
    for seed, rows, loss in product(range(len(parties)), effort.rows, LOSSES):
        found = problem(job.name, rows, loss, seed)
        job.size = found.size
        for epsilon, share, (name, protocol) in product(effort.epsilons, effort.shares, MODELS.items()):
            setting = Setting(epsilon, parties[seed], 1_000 + seed, choosing=share)
            scores, _ = Federated(name, protocol).measure(found, setting)
            where = f"{job.name}{SPLIT}{loss}, {rows:,} rows"
            job.keep(f"{name}{SPLIT}{share:g}", epsilon, seed, {"relative": scores["relative"]}, set=where)


class SharingPage(Page):
    """Means over all data, then a table for each kind."""

    template = Path(__file__).with_name("sharing.md")
    limit = MOST

    def mean(self, model: str, epsilon: float | None = None) -> Seeds:
        """Over all data and budgets, as far as fits count; each weighs the same, whatever its seeds."""
        places = product(self.results.sets("choice"), self.results.epsilons("choice") if epsilon is None else [epsilon])
        found = [self.results.values("relative", "choice", name, model, at) for name, at in places]
        kept = [float(np.mean(np.minimum(values, MOST))) for values in found if values]
        return Seeds([float(np.mean(kept))] if kept else [])

    def shares(self) -> dict[str, str]:
        """The splits that were tried, as columns."""
        found = [model.split(SPLIT)[1] for model in self.results.distinct("model", "choice")]
        return {share: share for share in sorted(set(found), key=float)}

    def means(self) -> str:
        rows = {(name, "all"): (name, None) for name in MODELS}
        for epsilon in self.results.epsilons("choice"):
            rows |= {(name, f"{epsilon:g}"): (name, epsilon) for name in MODELS}
        return table(
            ("geometry", "epsilon"),
            rows,
            self.shares(),
            lambda row, share: f"{self.mean(f'{row[0]}{SPLIT}{share}', row[1]):.3f}",
        )

    def behind(self, model: str) -> Seeds:
        """How far it is behind the rule in each fit, as far as fits count, on the same data and seed."""
        rows = {(r.set, r.epsilon, r.seed): r for r in self.results.rows("choice") if r.model == model}
        base = {(r.set, r.epsilon, r.seed): r for r in self.results.rows("choice") if r.model == RULE}
        losses = [[min(r[key].scores["relative"][0], MOST) for r in (rows, base)] for key in rows if key in base]
        return Seeds(theirs - ours for theirs, ours in losses)

    def differences(self) -> str:
        """Means and their standard errors."""

        def cell(name: str, share: str) -> str:
            found = self.behind(f"{name}{SPLIT}{share}")
            error = float(np.std(found, ddof=1)) / math.sqrt(len(found)) if len(found) > 1 else math.nan
            return f"{found.average:+.3f} ± {error:.3f}" if found else NONE

        return table("geometry", named(MODELS), self.shares(), cell)

    def kinds(self) -> Iterator[dict[str, Any]]:
        for name in self.results.sets("choice"):

            def cell(row: tuple[str, float], share: str, name: str = name) -> Any:
                return self.scores("relative", "choice", name, f"{row[0]}{SPLIT}{share}", row[1])

            epsilons = self.results.epsilons("choice", name)
            rows = {(model, f"{epsilon:g}"): (model, epsilon) for epsilon in epsilons for model in MODELS}
            told = table(("geometry", "epsilon"), rows, self.shares(), cell)
            yield {"kind": name.replace(SPLIT, ", "), "told": told}


BENCHMARK = Benchmark(
    "sharing_rule",
    __doc__,
    {"choice": Part(run, COLUMNS)},
    SharingPage,
    Path(__file__).with_name("sharing.toml"),
)

if __name__ == "__main__":
    BENCHMARK.main()
