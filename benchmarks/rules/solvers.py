"""What other solvers take over from `gradient`, and whether it leaves `sgd` a place.

    python -m benchmarks.rules.solvers [--quick] [--resume] [--render-only] [--parts sgd] [--sets NAME ...]

Whole fits with nothing declared, on the same splits for both ways. "coordinate" and "dual": with class counts, and
without. "sgd": that solver next to `gradient` on tables of several classes.
"""

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.dense.methods import split
from benchmarks.dp_pca.problems import cifar
from benchmarks.frame.command import Benchmark, Job, Part
from benchmarks.rules.curvature import MADE
from benchmarks.rules.paired import PairedPage
from benchmarks.small.__main__ import load, scored, uncounted
from tacit import LogisticRegression

WITH, WITHOUT = "with counts", "without"
GREY = "cifar10, grey"


def table(name: str) -> tuple[Any, Any]:
    """X and y. Of CIFAR-10 the mean of the three colours."""
    if name == GREY:
        X, y = cifar()
        return X.reshape(len(X), 3, -1).mean(axis=1), y
    return MADE[name]() if name in MADE else load(name)[:2]


def kept(job: Job) -> tuple[Any, Any]:
    """As many rows as the effort allows."""
    X, y = (np.asarray(part) for part in table(job.name))
    rows = np.random.default_rng(0).permutation(len(X))[: job.effort.most_rows]
    job.size = (len(rows), X.shape[1], len(np.unique(y)))
    return X[rows], y[rows]


def run_counts(job: Job) -> None:
    """A solver with class counts, where they are due, and without."""
    X, y = kept(job)
    for seed in range(job.effort.seeds):
        parts = split(X, y, "classification", seed)
        for epsilon in job.effort.epsilons:
            for kind in (WITH, WITHOUT):
                model = LogisticRegression(epsilon=epsilon, solver=job.part, random_state=seed)
                with nullcontext() if kind == WITH else uncounted():
                    job.keep(kind, epsilon, seed, *scored(model, parts, "classification"))


def run_sgd(job: Job) -> None:
    """Both solvers."""
    X, y = kept(job)
    for seed in range(job.effort.fewer.get(job.name, job.effort.pairs)):
        parts = split(X, y, "classification", seed)
        for epsilon in job.effort.epsilons:
            for solver in ("gradient", "sgd"):
                model = LogisticRegression(epsilon=epsilon, solver=solver, random_state=seed)
                job.keep(solver, epsilon, seed, *scored(model, parts, "classification"))


class SolversPage(PairedPage):
    """A section for each solver and what its sets are for."""

    template = Path(__file__).with_name("solvers.md")

    def counts(self) -> Iterator[dict[str, Any]]:
        for solver in ("coordinate", "dual"):
            for names, part in ((self.effort.judged, "sets that judge"), (self.effort.chose, "sets that chose")):
                yield from self.group(f"Class counts in `{solver}`, {part}", solver, names, WITH, WITHOUT)

    def several(self) -> Iterator[dict[str, Any]]:
        yield from self.group("`sgd` on several classes", "sgd", list(self.effort.several), "sgd", "gradient")

    def ahead(self) -> str:
        """Where sgd has the better accuracy by more than a standard error."""
        found, cells = [], 0
        for row in (row for group in self.several() for row in group["rows"]):
            mean, error = (float(part) for part in row["accuracy"].split(", ")[1].split(" ± "))
            cells += 1
            if mean > error:
                found.append(f"{row['set']} at {row['epsilon']:g} ({mean:+.3f} ± {error:.3f})")
        return f"In {len(found)} of {cells} cells `sgd` has the better accuracy by more than a standard error: " + (
            "; ".join(found) or "none"
        )


BENCHMARK = Benchmark(
    "solvers_rule",
    __doc__,
    {
        "coordinate": Part(run_counts, lambda effort: effort.judged + effort.chose),
        "dual": Part(run_counts, lambda effort: effort.judged + effort.chose),
        "sgd": Part(run_sgd, "several"),
    },
    SolversPage,
    Path(__file__).with_name("solvers.toml"),
)

if __name__ == "__main__":
    BENCHMARK.main()
