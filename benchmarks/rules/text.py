"""How far the rule for text is from the best setting of its constants, on questions that took no part in choosing it.

    python -m benchmarks.rules.text [--quick] [--resume] [--render-only] [--sets NAME ...]

The texts are those of news20 as 2^17 hashed columns, rows of norm 1; the rule was chosen on one question about them
(comp and sci against the rest) and on sms_spam; for two of its constants, the penalty and the doubt, some of the
questions here were looked at too. Each question here has other classes, other sizes or both. Reported is
the accuracy on a quarter of the rows that the fit did not see. Each constant is moved by itself, tuned on other splits
than the reported ones, for free.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression as Plain
from sklearn.model_selection import train_test_split

from benchmarks.frame import sets
from benchmarks.frame.command import Benchmark, Effort, Job, Part
from benchmarks.frame.page import Page
from benchmarks.rules.tuned import pair
from tacit import LogisticRegression
from tacit.solvers.text import steps

BITS = 17
TUNING = range(1_000, 1_002)  # seeds of the splits for tuning
EFFORT = Path(__file__).with_suffix(".toml")
TOLD = Effort.read(EFFORT)


@cache
def texts() -> tuple[Any, NDArray[np.str_]]:
    """All texts, and the group of each."""
    found = sets.paper_bunch("news20", n_hashed=2**BITS)
    return found.data, np.array(TOLD.groups)[found.newsgroup]


def question(name: str, most_rows: int | None = None) -> tuple[Any, NDArray[np.int64]]:
    """The texts that a question is about, and their classes, 1 and 0."""
    X, groups = texts()
    first, second = (np.char.startswith(groups, begin) for begin in TOLD.questions[name])
    kept = np.flatnonzero(first | second)
    if most_rows is not None:
        kept = np.sort(np.random.default_rng(0).permutation(kept)[:most_rows])
    return X[kept], first[kept].astype(np.int64)


def constants(changed: dict[str, float]) -> AbstractContextManager[Any]:
    """The rule with other constants, for as long as it lasts."""
    return mock.patch.multiple(steps, **changed) if changed else nullcontext()


def accuracy(X: Any, y: NDArray[np.int64], setting: str, epsilon: float, seed: int) -> float:
    """On a quarter of the rows."""
    told = TOLD.settings[setting]
    train, test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=seed, stratify=y)
    shared = {"epsilon": epsilon, "row_norm": 1.0, "classes": [0, 1], "random_state": seed}
    with constants(told["constants"]):
        return float(LogisticRegression(**shared, **told["parameters"]).fit(train, y_train).score(test, y_test))


def run_rule(job: Job) -> None:
    """Tune on some splits; report on others."""
    X, y = question(job.name, job.effort.most_rows)
    train, test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=0, stratify=y)
    plain = float(Plain(C=10.0, max_iter=300).fit(train, y_train).score(test, y_test))
    larger = float(max(np.mean(y), 1.0 - np.mean(y)))
    for epsilon in job.effort.epsilons:
        right = cache(lambda setting, seed, at=epsilon: accuracy(X, y, setting, at, seed))
        tried = job.effort.tried or TOLD.settings
        best = max(tried, key=lambda setting, right=right: sum(right(setting, seed) for seed in TUNING))
        scores: dict[str, Any] = {"plain": plain, "larger": larger}
        for name, setting in (("rule", "rule"), ("tuned", best)):
            found = [right(setting, seed) for seed in range(job.effort.seeds)]
            scores[name] = [float(np.mean(found)), float(np.std(found))]
        job.keep("text", epsilon, 0, scores, (), note=best, size=(X.shape[0],))


class TextPage(Page):
    """A row for each question and epsilon."""

    template = Path(__file__).with_name("text.md")
    bits = BITS

    def settings(self) -> str:
        tried = self.effort.tried or TOLD.settings
        return f"{len(tried)} settings ({', '.join(tried)})"

    def behind(self) -> dict[str, float]:
        """How much accuracy the rule gives up."""
        found = [r.scores["tuned"][0] - r.scores["rule"][0] for r in self.results.rows("rule")]
        return {"median": float(np.median(found)), "largest": max(found), "cells": len(found)}

    def questions(self) -> Iterator[dict[str, Any]]:
        for row, record in zip(self.cells("rule"), self.results.rows("rule"), strict=True):
            yield row | {score: pair(record, score, 3) for score in ("rule", "tuned")}


BENCHMARK = Benchmark("text_rule", __doc__, {"rule": Part(run_rule, tuple(TOLD.questions))}, TextPage, EFFORT)

if __name__ == "__main__":
    BENCHMARK.main()
