"""Regressions in much noise: how the target is read and what is kept of weights, each of them replaced at a time.

    python -m benchmarks.rules.regressions [--quick] [--resume] [--render-only] [--sets NAME ...]

Whole fits with nothing declared, on the same splits and with the same seeds: by the rules; with a target that is read
like any column, in two looks; with all weights kept; and with the true centre and scale of the target, at the same
price. A set "noise 800 x 30, 3" is made: so many rows and columns, and a target that has nothing to do with them and is
three deviations from zero; "skewed" is of an exponential one.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.dense.methods import measure, split
from benchmarks.frame import Floats, sets
from benchmarks.frame.command import Benchmark, Job, Part
from benchmarks.frame.page import Page
from benchmarks.small.page import standard_error
from tacit import LinearRegression
from tacit.blocks import Scaling
from tacit.bounding import target
from tacit.solvers import guard

RULE, LOOKS, KEPT, TOLD = "rule", "two looks", "all weights", "true target"


def made(name: str, seed: int) -> tuple[Floats, Floats]:
    """Rows and targets that have nothing to do with each other."""
    shape, rows, _, columns, far = name.replace(",", "").split()
    rng = np.random.default_rng(5_000 + seed)
    X = rng.standard_normal((int(rows), int(columns)))
    off = rng.standard_normal(int(rows)) if shape == "noise" else rng.exponential(size=int(rows)) - 1.0
    return X, 10.0 * (float(far) + off)


@contextmanager
def replaced(kind: str) -> Iterator[None]:
    """Fits with a part of the rules replaced."""
    find: Callable[..., Scaling] = target.LabelScale.run

    def true(scale: Any, gate: Any, y: Floats) -> Scaling:
        found = find(scale, gate, y)
        far = float(np.quantile(np.abs(y - y.mean()), 0.98))
        return Scaling(np.array([y.mean()]), np.array([max(float(y.std()), 0.3 * far)]), found.limit)

    ways = {
        LOOKS: (target, "_CALM", 0.0),
        KEPT: (guard, "is_due", lambda _: False),
        TOLD: (target.LabelScale, "run", true),
    }
    if kind == RULE:
        yield
        return
    with patch.object(*ways[kind]):
        yield


def run(job: Job) -> None:
    """All of them on the same splits."""
    is_made = job.name.split()[0] in ("noise", "skewed")
    X, y = (None, None) if is_made else sets.load(job.name)[:2]
    for seed in range(job.effort.seeds):
        rows = made(job.name, seed) if is_made else (np.asarray(X), np.asarray(y))
        job.size = rows[0].shape
        parts = split(*rows, "regression", seed)
        for epsilon in job.effort.epsilons:
            for kind in (RULE, LOOKS, KEPT, TOLD):
                with replaced(kind):
                    model = LinearRegression(epsilon=epsilon, random_state=1_000 + seed)
                    job.keep(kind, epsilon, seed, *measure(model, parts, "regression"))


class RegressionsPage(Page):
    """A section for the sets that judged and one for those that chose."""

    template = Path(__file__).with_name("regressions.md")

    def groups(self) -> Iterator[dict[str, Any]]:
        for part, names in {"Sets that judged": self.effort.judged, "Sets that chose": self.effort.chose}.items():
            found = [row for row in self.results.rows("regressions") if row.set in names]
            rows = [self._row(*cell) for cell in dict.fromkeys((row.set, row.epsilon) for row in found)]
            if rows:
                yield {"part": part, "rows": rows, "cells": len(rows), "behind": sum(row["is_behind"] for row in rows)}

    def _row(self, name: str, epsilon: float) -> dict[str, Any]:
        at = "regressions", name
        values = {kind: np.array(self.results.values("r2", *at, kind, epsilon)) for kind in (RULE, LOOKS, KEPT, TOLD)}
        more = {kind: values[RULE] - values[kind] for kind in (LOOKS, KEPT, TOLD)}
        told = {kind: f"{gain.mean():+.3f} ± {standard_error(gain):.3f}" for kind, gain in more.items()}
        own = f"{values[RULE].mean():.3f} ± {standard_error(values[RULE]):.3f}"
        is_behind = any(more[kind].mean() < -max(standard_error(more[kind]), 5e-4) for kind in (LOOKS, KEPT))
        size = "{:,} x {}".format(*self.results.size(*at))
        return {"set": name, "size": size, "epsilon": epsilon, "own": own, "is_behind": is_behind} | {
            "looks": told[LOOKS],
            "kept": told[KEPT],
            "told": told[TOLD],
        }


BENCHMARK = Benchmark(
    "regressions_rule",
    __doc__,
    {"regressions": Part(run, lambda effort: effort.judged + effort.chose)},
    RegressionsPage,
    Path(__file__).with_suffix(".toml"),
)

if __name__ == "__main__":
    BENCHMARK.main()
