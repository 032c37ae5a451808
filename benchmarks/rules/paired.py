"""Pages on two ways of a fit, on the same splits: what one adds to the scores of the other."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, ClassVar

import numpy as np

from benchmarks.dense.methods import estimator, split
from benchmarks.frame.command import Job
from benchmarks.frame.page import Page
from benchmarks.small.__main__ import scored
from benchmarks.small.page import standard_error

SCORES = {"accuracy": 1.0, "auc": 1.0, "log_loss": -1.0}  # and which way is up
LEAST = 5e-4


class PairedPage(Page):
    """A row for each set and epsilon of a table."""

    def row(self, table: str, name: str, epsilon: float, new: str, old: str) -> dict[str, Any]:
        """The scores of the old way, and what the new one adds; where that is less by more than a standard error."""
        at = table, name
        rows, columns, count = self.results.size(*at)
        size = f"{rows:,} x {columns}" + (f", {count} classes" if count > 2 else "")
        row: dict[str, Any] = {"set": name, "size": size, "epsilon": epsilon, "behind": []}
        row["slope"] = f"{self.scores('slope', *at, old, epsilon):.2f}, {self.scores('slope', *at, new, epsilon):.2f}"
        for score, up in SCORES.items():
            with_new, with_old = (np.array(self.results.values(score, *at, kind, epsilon)) for kind in (new, old))
            mean, error = float((with_new - with_old).mean()), standard_error(with_new - with_old)
            row[score] = f"{with_old.mean():.3f}, {mean:+.3f} ± {error:.3f}"
            row["behind"] += [score] if up * mean < -max(error, LEAST) else []
        return row

    def group(self, part: str, table: str, names: list[str], new: str, old: str) -> Iterator[dict[str, Any]]:
        """A section, if there is anything for it."""
        found = [r for r in self.results.rows(table) if r.set in names]
        rows = [self.row(table, *cell, new, old) for cell in dict.fromkeys((r.set, r.epsilon) for r in found)]
        behind = [f"{row['set']} at {row['epsilon']:g} ({', '.join(row['behind'])})" for row in rows if row["behind"]]
        if rows:
            yield {"part": part, "rows": rows, "cells": len(rows), "behind": "; ".join(behind) or "none"}


class JudgedPage(PairedPage):
    """A section for the sets that judge and one for those that chose."""

    table: ClassVar[str]
    ways: ClassVar[tuple[str, str]]  # the new one first

    def groups(self) -> Iterator[dict[str, Any]]:
        parts = {"Sets that judge": self.effort.judged, "Sets that chose": self.effort.chose}
        for part, names in parts.items():
            yield from self.group(part, self.table, names, *self.ways)


def both_ways(
    job: Job, X: Any, y: Any, kind: str, ways: Mapping[str, Callable[[], AbstractContextManager[None]]]
) -> None:
    """Whole fits by each of the ways, which are what a fit runs inside, on the same splits."""
    effort = job.effort
    X, y = (np.asarray(part)[: effort.most_rows] for part in (X, y))
    job.size = (*X.shape, len(np.unique(y)))
    for seed in range(effort.some.get(job.name, effort.seeds)):
        parts = split(X, y, kind, seed)
        for epsilon in effort.epsilons:
            for model, inside in ways.items():
                ours = estimator("gradient", epsilon, X, kind, {"random_state": seed})
                with inside():
                    job.keep(model, epsilon, seed, *scored(ours, parts, kind))
