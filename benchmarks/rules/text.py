"""How far the rule for text is from the best setting of its constants, on questions that took no part in choosing it.

    python -m benchmarks.rules.text [--quick] [--resume] [--render-only] [--sets NAME ...]

The texts are those of news20 as 2^17 hashed columns, rows of norm 1; the rule was chosen on one question about them
(comp and sci against the rest) and on sms_spam; for two of its constants, the penalty and the doubt, some of the
questions here were looked at too. Each question here has other classes, other sizes or both. Reported is
the accuracy on a quarter of the rows that the fit did not see. Each constant is moved by itself, tuned on other splits
than the reported ones, for free.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression as Plain
from sklearn.model_selection import train_test_split

from benchmarks.frame import sets
from benchmarks.frame.command import Benchmark, Job, Part
from benchmarks.frame.page import Page
from benchmarks.frame.tables import lines
from tacit import LogisticRegression
from tacit.solvers.text import steps

BITS = 17
TUNING = range(1_000, 1_002)  # seeds of the splits for tuning

QUESTIONS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "comp, not the rest": (("comp",), ("",)),
    "rec or sci": (("rec",), ("sci",)),
    "talk, not the rest": (("talk",), ("",)),
    "guns or mideast": (("talk.politics.guns",), ("talk.politics.mideast",)),
    "pc or mac": (("comp.sys.ibm",), ("comp.sys.mac",)),
    "for sale, not the rest": (("misc.forsale",), ("",)),
}
"""How the names of the groups of each class begin; the second class is of those that are not in the first."""

# What a setting changes: constants of the rule, or parameters of the estimator.
SETTINGS: dict[str, tuple[dict[str, float], dict[str, Any]]] = {
    "rule": ({}, {}),
    "steps x 1/3": ({"_STEPS": 10}, {}),
    "steps x 3": ({"_STEPS": 90}, {}),
    "step length x 1/3": ({"_KAPPA": 0.12}, {}),
    "step length x 3": ({"_KAPPA": 1.05}, {}),
    "doubt x 1/3": ({"_DOUBT": 0.57}, {}),
    "doubt x 3": ({"_DOUBT": 5.1}, {}),
    "sizes x 4": ({"_SIZES": 0.2}, {}),
    "C = 0.1": ({}, {"C": 0.1}),
    "C = 10": ({}, {"C": 10.0}),
    "one-shot": ({}, {"solver": "one-shot"}),
    "gradient": ({}, {"solver": "text"}),  # that solver's name when this was measured
}


@cache
def texts() -> tuple[Any, NDArray[np.str_]]:
    """All texts, and the group of each."""
    X, _ = sets.folder_reader("hashed")("news20", BITS)
    _, labels = sets.folder_reader("counts")("news20")
    return X, labels["groups"][labels["y20"]]


def question(name: str, most_rows: int | None = None) -> tuple[Any, NDArray[np.int64]]:
    """The texts that a question is about, and their classes, 1 and 0."""
    X, groups = texts()
    first, second = (np.any([np.char.startswith(groups, b) for b in begins], axis=0) for begins in QUESTIONS[name])
    kept = np.flatnonzero(first | second)
    if most_rows is not None:
        kept = np.sort(np.random.default_rng(0).permutation(kept)[:most_rows])
    return X[kept], first[kept].astype(np.int64)


@contextmanager
def constants(changed: dict[str, float]) -> Iterator[None]:
    """The rule with other constants, for as long as it lasts."""
    before = {name: getattr(steps, name) for name in changed}
    try:
        for name, value in changed.items():
            setattr(steps, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(steps, name, value)


def accuracy(X: Any, y: NDArray[np.int64], setting: str, epsilon: float, seed: int) -> float:
    """On a quarter of the rows."""
    changed, parameters = SETTINGS[setting]
    train, test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=seed, stratify=y)
    model = LogisticRegression(epsilon=epsilon, row_norm=1.0, classes=[0, 1], random_state=seed, **parameters)
    with constants(changed):
        return float(model.fit(train, y_train).score(test, y_test))


def run_rule(job: Job) -> None:
    """Tune on some splits; report on others."""
    X, y = question(job.name, job.effort.most_rows)
    train, test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=0, stratify=y)
    plain = float(Plain(C=10.0, max_iter=300).fit(train, y_train).score(test, y_test))
    larger = float(max(np.mean(y), 1.0 - np.mean(y)))
    for epsilon in job.effort.epsilons:
        right = cache(lambda setting, seed, at=epsilon: accuracy(X, y, setting, at, seed))
        best = max(job.effort.settings, key=lambda setting, right=right: sum(right(setting, seed) for seed in TUNING))
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
        return f"{len(self.effort.settings)} settings ({', '.join(self.effort.settings)})"

    def behind(self) -> list[float]:
        """How much accuracy the rule gives up."""
        return [r.scores["tuned"][0] - r.scores["rule"][0] for r in self.results.rows("rule")]

    def median(self) -> float:
        return float(np.median(self.behind()))

    def largest(self) -> float:
        return max(self.behind())

    def cells(self) -> int:
        return len(self.behind())

    def table(self) -> str:
        rows = []
        for r in self.results.rows("rule"):
            about = [r.set, f"{r.size[0]:,}", f"{r.scores['larger'][0]:.3f}", f"{r.scores['plain'][0]:.3f}"]
            pairs = ["{:.3f} ± {:.3f}".format(*r.scores[name]) for name in ("rule", "tuned")]
            rows.append([*about, f"{r.epsilon:g}", *pairs, r.note])
        head = ["question", "rows", "larger class", "not private", "epsilon", "rule", "tuned", "tuned setting"]
        return lines(head, rows)


BENCHMARK = Benchmark(
    "text_rule",
    __doc__,
    {"rule": Part(run_rule, tuple(QUESTIONS))},
    TextPage,
    Path(__file__).with_suffix(".toml"),
)

if __name__ == "__main__":
    BENCHMARK.main()
