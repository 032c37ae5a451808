"""Regressions in much noise: how the target is read and what is kept of weights, each of them replaced at a time.

    python -m benchmarks.rules.regressions [--quick] [--resume] [--render-only] [--sets NAME ...]

Whole fits with nothing declared, on the same splits and with the same seeds: by the rules; with a target that is read
like any column, in two looks; with all weights kept; and with the true centre and scale of the target, at the same
price. A set "noise 800 x 30, 3" is made: so many rows and columns, and a target that has nothing to do with them and is
three deviations from zero; "skewed" is of an exponential one.

The part "readings" reads targets of few rows and fits nothing, thousands of times, to see how often one is lost: by the
rules, with bins alone in place of windows, and in two looks. "noise 3" is a normal one three deviations from zero in
some unit between 2^-7 and 2^17.
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
from tacit.bounding.target import LabelScale
from tacit.privacy import Budget, Gate, NoiseSource, Plan, Unit
from tacit.solvers import guard

RULE, LOOKS, KEPT, TOLD, BINS = "rule", "two looks", "all weights", "true target", "bins"
ROWS, EPSILON, SHARE = 330, 0.1, 0.7  # of a reading: what a target of so few rows gets of the budget
FAR = {"a tenth": 0.1, "one": 1.0, "ten": 10.0}  # squared distances of a centre from the mean, in variances


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
        BINS: (target, "_FAINT", np.inf),
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


def drawn(name: str, seed: int) -> Floats:
    """A target of few rows: made, or some of those of a set."""
    rng = np.random.default_rng(6_000 + seed)
    if name.split()[0] not in ("noise", "skewed"):
        return np.asarray(rng.choice(np.asarray(sets.load(name)[1], dtype=float), ROWS, replace=False))
    shape, far = name.split()
    off = rng.standard_normal(ROWS) if shape == "noise" else rng.exponential(size=ROWS) - 1.0
    return np.asarray(2.0 ** rng.uniform(-7.0, 17.0) * (float(far) + off))


def read(job: Job) -> None:
    """How far released centres are from the mean of the same targets."""
    job.size = (ROWS,)
    whole = Budget(EPSILON, ROWS**-1.5)
    label = LabelScale(ROWS, noisy=True)
    budget = Budget.from_mu(whole.mu * SHARE**0.5, whole.delta)
    for batch in range(job.effort.batches):
        seeds = range(batch * job.effort.readings, (batch + 1) * job.effort.readings)
        targets = [drawn(job.name, seed) for seed in seeds]
        for kind in (RULE, BINS, LOOKS):
            way = LabelScale(ROWS) if kind == LOOKS else label
            promise = Plan(*way.releases(1.0)).calibrate(budget, Unit("row", ROWS), "readings")
            lost = []
            with replaced(RULE if kind == LOOKS else kind):
                for seed, y in zip(seeds, targets, strict=True):
                    with Gate(promise, NoiseSource(seed)) as gate:
                        lost.append(float((way.run(gate, y).centre[0] - y.mean()) ** 2 / y.var()))
            far = {told: float(np.mean(np.array(lost) > least)) for told, least in FAR.items()}
            job.keep(kind, EPSILON, batch, far | {"mean": float(np.mean(lost))})


class RegressionsPage(Page):
    """How often targets are lost; then a section for the sets that judged and one for those that chose."""

    template = Path(__file__).with_name("regressions.md")
    few, tight = ROWS, EPSILON

    def readings(self) -> Iterator[dict[str, Any]]:
        for name in dict.fromkeys(row.set for row in self.results.rows("readings")):
            row = {"set": name, "role": "chose" if name in self.effort.chose_windows else "judges"}
            for kind, short in {RULE: "rule", BINS: "bins", LOOKS: "looks"}.items():
                at = "readings", name, kind, EPSILON
                parts = [np.mean(self.results.values(told, *at)) for told in FAR]
                row[short] = " / ".join(f"{100 * part:.2f}" for part in parts)
                row[f"{short}_mean"] = f"{np.mean(self.results.values('mean', *at)):.3g}"
            yield row

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
    {
        "regressions": Part(run, lambda effort: effort.judged + effort.chose),
        "readings": Part(read, "targets", by_default=False),
    },
    RegressionsPage,
    Path(__file__).with_suffix(".toml"),
)

if __name__ == "__main__":
    BENCHMARK.main()
