"""How far the rules of the coordinate solvers are from the best tuned setting, on sets that took no part in them.

    python -m benchmarks.rules.coordinate [--quick] [--resume] [--render-only] [--parts rule greedy] [--sets NAME ...]

"rule": the LASSO with alpha = 0.01 (target of unit scale) for regressions, and logistic regression with l2 = 1 / n for
two classes; tuning is over passes, clip, step and averaging. "greedy" puts the two solvers next to each other where the
truth is sparse: independent normal columns of which a few matter, on a page of its own.
"""

import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.frame import sets
from benchmarks.frame.command import Benchmark, Job, Part
from benchmarks.frame.records import Record
from benchmarks.rules.tuned import Problem, RulePage, compared, pair, settings
from tacit.solvers import choose

ALPHA = 0.01


def problem(name: str, most_rows: int) -> Problem:
    """A set, standardised; several classes become even against odd."""
    Z, targets, kind = sets.standardised(name, most_rows)
    if kind == "regression":
        return Problem("squared", np.asfortranarray(Z), targets, l1=ALPHA)
    return Problem("logistic", np.asfortranarray(Z), targets, l2=1.0 / len(Z))


def sparse_truth(n: int, d: int, active: int) -> Problem:
    """Independent columns, of which the first few make four fifths of the target's variance."""
    rng = np.random.default_rng(n + d + active)
    Z = rng.normal(size=(n, d))
    signal = Z[:, :active] @ (rng.choice([-1.0, 1.0], active) * rng.uniform(0.5, 1.5, active))
    targets = signal / signal.std() + 0.5 * rng.normal(size=n)
    Z = np.asfortranarray(np.clip(Z, -3, 3), dtype=np.float32)
    return Problem("squared", Z, np.clip(targets / targets.std(), -3, 3), l1=ALPHA)


def _keep_greedy(job: Job, found: Problem, epsilon: float) -> None:
    """Greedy by its own rule, and what auto takes."""
    scores = {"rule": found.run("greedy", epsilon, range(job.effort.seeds))}
    job.keep("greedy", epsilon, 0, scores, (), note=choose("auto", found.task(epsilon)).name, size=found.Z.shape)


def run_rule(job: Job) -> None:
    """Tune on some seeds; report on others."""
    found, effort = problem(job.name, job.effort.most_rows), job.effort
    root = math.sqrt(found.Z.shape[1] + 1)
    tried = [s for s in settings(effort) if s["n_passes"] > 1 or s["averaging"] == "last"]
    tried = [s | {"clip": s["clip"] * root} for s in tried]
    for epsilon in effort.epsilons:
        scores, best = compared(partial(found.run, "coordinate", epsilon), tried, effort)
        clip = f"clip {best['clip'] / root:g} sqrt(d')"
        told = f"{best['n_passes']} passes, {clip}, step {best['step']:g}, {best['averaging']}"
        job.keep("coordinate", epsilon, 0, scores, (), note=told, size=found.Z.shape)
        if found.l1:
            _keep_greedy(job, found, epsilon)


def run_greedy(job: Job) -> None:
    """Both solvers by their rules on a sparse truth."""
    n, d, active = job.effort.sparse[job.name]["size"]
    found = sparse_truth(min(n, job.effort.most_rows * 10), min(d, job.effort.most_rows), active)
    for epsilon in job.effort.epsilons:
        scores = {"rule": found.run("coordinate", epsilon, range(job.effort.seeds))}
        job.keep("coordinate", epsilon, 0, scores, (), size=found.Z.shape)
        _keep_greedy(job, found, epsilon)


class CoordinatePage(RulePage):
    """Both pages."""

    template = Path(__file__).with_name("coordinate.md")
    alpha = ALPHA
    words = ("Sets that took no part in the choice of the rules", "Sets that chose")

    def beside(self, record: Record) -> dict[str, str]:
        """What greedy reaches at the same place, and what auto takes."""
        for greedy in self.results.rows(record.table, record.set, "greedy", record.epsilon):
            return {"greedy": pair(greedy, "rule"), "auto": greedy.note}
        return {"greedy": "", "auto": ""}

    def row(self, record: Record) -> dict[str, Any]:
        return super().row(record) | self.beside(record)

    def sparse(self) -> Iterator[dict[str, Any]]:
        records = [r for r in self.results.rows("greedy") if r.model == "coordinate"]
        for chose, words in ((False, "Took no part in the choice of the rules"), (True, "Chose")):
            part = [r for r in records if self.effort.sparse[r.set]["chose"] == chose]
            yield {"part": words, "rows": [vars(r) | {"rule": pair(r, "rule")} | self.beside(r) for r in part]}

    def write(self, folder: Path, name: str) -> None:
        super().write(folder, name)
        self.write_as(folder, "greedy_rule", "greedy.md")


BENCHMARK = Benchmark(
    "coordinate_rule",
    __doc__,
    {"rule": Part(run_rule, lambda effort: effort.judged + effort.chose), "greedy": Part(run_greedy, "sparse")},
    CoordinatePage,
    Path(__file__).with_suffix(".toml"),
)

if __name__ == "__main__":
    BENCHMARK.main()
