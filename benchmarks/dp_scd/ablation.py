"""What the rules of "dual" cost on the paper's problems: one part at a time is replaced by its best, or noise left out.

The best is that of a few settings on the test rows, at no cost in privacy; all else stays as the rule has it.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

from benchmarks.dp_scd.methods import METHODS, Dual
from benchmarks.dp_scd.problems import Split
from benchmarks.frame.solvers import Run
from benchmarks.frame.tuning import Point
from tacit.privacy import Budget

RULE, NOISE = "rule", "noise"
WORDS = {
    RULE: "the rule as it is",
    "clip": "clip: 1/8, 1/4, 1/2, 2 or 4 times the rule's",
    "lambda": "the paper's lambda, not raised",
    "step": "steps: 1/10, 1/3, 3 or 10 times the rule's",
    "batch": "batches of 100, 1,000 or 3,000 rows",
    "passes": "half, 2 or 4 times the rule's passes",
    "clip and lambda": "both clip and lambda",
    "clip, step and lambda": "clip, step and lambda",
    NOISE: "no noise, all else as it is",
}
_CLIPS, _STEPS, _PASSES, _BATCHES = (
    (0.125, 0.25, 0.5, 2.0, 4.0),
    (0.1, 1 / 3, 3.0, 10.0),
    (0.5, 2.0, 4.0),
    (100, 1_000, 3_000),
)


def settings(usual: Any) -> Iterator[tuple[str, Any]]:
    """The part that is replaced, and the algorithm with it."""
    passes, rows = usual.steps * usual.batch / usual.task.n, usual.task.n

    def stepped(algorithm: Any, times: float) -> Any:
        return replace(algorithm, damping=max(1.0, algorithm.damping / times))

    def counted(steps: float, **more: Any) -> Any:
        found = max(1, round(steps))
        return replace(usual, steps=found, tail=found - found // 2, **more)

    free = replace(usual, penalty=0.0)
    yield RULE, usual
    yield NOISE, usual
    yield "lambda", free
    for clip in _CLIPS:
        yield "clip", replace(usual, reach=clip * usual.reach)
    for clip in (*_CLIPS, 1.0):
        yield "clip and lambda", replace(free, reach=clip * usual.reach)
    for step in _STEPS:
        yield "step", stepped(usual, step)
    for clip, step in product((0.25, 0.5, 1.0, 2.0), (1.0, *_STEPS)):
        yield "clip, step and lambda", stepped(replace(free, reach=clip * usual.reach), step)
    for times in _PASSES:
        yield "passes", counted(times * usual.steps)
    for batch in _BATCHES:
        if batch <= rows:
            damping = max(1.0, usual.damping * batch / usual.batch)
            yield "batch", counted(passes * rows / batch, batch=float(batch), damping=damping)


def scores(split: Split, budget: Budget, seed: int) -> dict[str, list[float]]:
    """Of each part, the scores of its settings."""
    rule = METHODS["rule"]
    assert isinstance(rule, Dual)
    run, found = rule.run(split, budget, Point()), {}
    for name, algorithm in settings(run.algorithm):
        changed = Run(run.solver, run.task)
        vars(changed)["algorithm"] = algorithm  # in the place of what the rule works out
        plan = changed.plan
        quiet = Budget(float("inf"), budget.delta) if name == NOISE else budget
        promise = plan.calibrate(quiet, run.task.unit, "dual")
        weights, _ = changed.fit((split.X, split.y), promise, seed, l2=split.l2)
        found.setdefault(name, []).append(split.score(weights[:-1]))
    return found
