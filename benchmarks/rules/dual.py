"""How far the rule of the dual solver is from the best tuned setting, on sets that took no part in it.

    python -m benchmarks.rules.dual [--quick] [--resume] [--render-only] [--parts rule chose] [--sets NAME ...]

Ridge regression, and for two classes logistic regression, the hinge and the squared hinge, each with l2 = 1 / n. Tuning
is over batch, passes, clip and damping. Sets that chose the rule are run if the part "chose" is named.
"""

import math
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.frame import sets
from benchmarks.frame.command import Benchmark, Job, Part
from benchmarks.rules.tuned import Pair, Problem, RulePage, compared, settings
from tacit.problems import LOSSES
from tacit.solvers import Dual
from tacit.solvers.dual.steps import Sampled

CLASS_LOSSES: tuple[str, ...] = ("logistic", "hinge", "squared_hinge")


def problems(name: str, most_rows: int) -> list[Problem]:
    """A set, standardised, with each loss; several classes become even against odd."""
    Z, targets, kind = sets.standardised(name, most_rows)
    losses: tuple[str, ...] = ("squared",) if kind == "regression" else CLASS_LOSSES
    return [Problem(loss, Z, targets, l2=1.0 / len(Z)) for loss in losses]


def rule_clip(problem: Problem, epsilon: float, solver: Dual) -> float:
    """The clip that the rule gives for this batch and damping."""
    task = problem.task(epsilon)
    steps = solver.at(task)
    assert isinstance(steps, Sampled)  # a batch is given
    l2 = max(1.0 / task.n, steps.penalty)
    return steps.reach * math.sqrt(task.width) / (1.0 + steps.damping * task.width / (task.n * l2))


def run_at(problem: Problem, epsilon: float, seeds: range, **options: Any) -> Pair:
    """The mean excess and its spread; `clip` is in units of the rule's."""
    if "clip" in options:
        given = {name: value for name, value in options.items() if name != "clip"}
        options["clip"] *= rule_clip(problem, epsilon, Dual(**given))
    return problem.run("dual", epsilon, seeds, **options)


def run_rule(job: Job) -> None:
    """Tune on some seeds; report on others."""
    for problem in problems(job.name, job.effort.most_rows):
        n, tried = len(problem.Z), settings(job.effort)
        tried = [s for s in tried if s["batch_size"] < n] or [s | {"batch_size": n} for s in tried]
        for epsilon in job.effort.epsilons:
            scores, best = compared(partial(run_at, problem, epsilon), tried, job.effort)
            told = f"batch {best['batch_size']:g}, {best['n_passes']:g} passes, clip {best['clip']:g}"
            told += f", damping {best['damping']:g}"
            job.keep(LOSSES[problem.loss].words, epsilon, 0, scores, (), table="rule", note=told, size=problem.Z.shape)


class DualPage(RulePage):
    """A row for each set, loss and epsilon."""

    template = Path(__file__).with_name("dual.md")


BENCHMARK = Benchmark(
    "dual_rule",
    __doc__,
    {"rule": Part(run_rule, "judged"), "chose": Part(run_rule, "chose", ("rule",), by_default=False)},
    DualPage,
    Path(__file__).with_suffix(".toml"),
)

if __name__ == "__main__":
    BENCHMARK.main()
