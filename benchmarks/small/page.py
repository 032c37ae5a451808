"""The tables of small budgets: a row for each set and epsilon."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.dense.methods import PLAIN
from benchmarks.frame.page import Page
from benchmarks.frame.tables import NONE, number, verdict
from tacit.privacy import Budget

CONSTANT, OURS, UNCOUNTED = "constant", "ours", "ours, without class counts"
NAMES = {"accuracy": "accuracy", "auc": "AUC", "r2": "R2"}
LEAST_SIGNAL, MOST_BEHIND = 5.0, 0.01  # n mu / K from which on a classifier is to be so little behind the majority


def standard_error(values: Any) -> float:
    """Of the mean; none of a single value."""
    return float(np.std(values, ddof=1)) / float(np.sqrt(len(values))) if len(values) > 1 else 0.0


def told(values: Any) -> str:
    """Mean ± standard error."""
    return f"{np.mean(values):.3f} ± {standard_error(values):.3f}" if len(values) else NONE


class SmallPage(Page):
    """What is found on the test rows, and what was asked for."""

    template = Path(__file__).with_name("page.md")

    def cell(self, values: Any) -> str:
        return told(values)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Of every set and epsilon, in the order of the effort."""
        for name, about in self.effort.sets.items():
            for epsilon in self.results.epsilons("small", name, OURS):
                yield self._row(name, about, epsilon)

    def _row(self, name: str, about: dict[str, Any], epsilon: float) -> dict[str, Any]:
        score, at = about["score"], ("small", name, OURS, epsilon)
        found = self.scores(score, *at)
        constant = self.scores(score, "small", name, CONSTANT)
        asked, oracle = self._asked(name, about, epsilon), self._told_at(epsilon, about.get("oracle"))
        n, d, classes = self.results.size(*at)
        signal = self._signal(n, classes, epsilon)
        behind = [mine - theirs for mine, theirs in self._against_majority(name, epsilon)] if classes else []
        return {
            "set": name,
            "size": f"{n:,} x {d}" + (f", {classes} classes" if classes > 2 else ""),
            "score": NAMES[score],
            "epsilon": epsilon,
            "seeds": len(found),
            "ours": found,
            "asked": number(asked),
            "verdict": NONE if asked is None else verdict(round(found.average, 3) >= round(asked, 3)),
            "oracle": number(oracle),
            "covered": self._covered(found.average, constant.average, oracle),
            "constant": constant,
            "plain": self.scores(score, "small", name, PLAIN),
            "kind": "classes" if classes else "numbers",
            "loss": self.scores("log_loss", *at),
            "constant_loss": self.scores("log_loss", "small", name, CONSTANT),
            "slope": self.scores("slope", *at),
            "accuracy": self.scores("accuracy", *at),
            "signal": signal,
            "ahead": told(behind),
            "fails": bool(behind) and signal > LEAST_SIGNAL and float(np.mean(behind)) < -MOST_BEHIND,
        }

    def _told_at(self, epsilon: float, values: list[float] | None) -> float | None:
        """Of numbers that are told for some epsilons."""
        return dict(zip(self.effort.told_at, values or (), strict=False)).get(epsilon)

    def _asked(self, name: str, about: dict[str, Any], epsilon: float) -> float | None:
        """The number, or so much above what fits without class counts have."""
        above = self._told_at(epsilon, about.get("above"))
        if above is None:
            return self._told_at(epsilon, about.get("asked"))
        return self.scores(about["score"], "small", name, UNCOUNTED, epsilon).average + above

    def _signal(self, n: int, classes: int, epsilon: float) -> float:
        """What the training rows of a class are against the noise: n mu / K."""
        train = n - -(-n // 4)
        return train * Budget(epsilon, train**-1.5).mu / max(classes, 1)

    def _against_majority(self, name: str, epsilon: float) -> Iterator[tuple[float, float]]:
        """The accuracy of ours and of the majority class on the same split."""
        constant = {r.seed: r.scores["accuracy"][0] for r in self.results.rows("small", name, CONSTANT, None)}
        for record in self.results.rows("small", name, OURS, epsilon):
            yield record.scores["accuracy"][0], constant[record.seed]

    def _covered(self, ours: float, constant: float, oracle: float | None) -> str:
        """The share of the distance from the constant model to the oracle."""
        return NONE if oracle is None else f"{(ours - constant) / (oracle - constant):.2f}"

    def classifiers(self) -> list[dict[str, Any]]:
        return [row for row in self.rows() if row["kind"] == "classes"]

    def regressions(self) -> list[dict[str, Any]]:
        return [row for row in self.rows() if row["kind"] == "numbers"]

    def failures(self) -> str:
        """Where a classifier is too far behind the majority class."""
        cells = [row for row in self.classifiers() if row["signal"] > LEAST_SIGNAL]
        found = [f"{row['set']} at {row['epsilon']:g} ({row['ahead']})" for row in cells if row["fails"]]
        counted = f"n mu / K is above {LEAST_SIGNAL:g} in {len(cells)} of these cells; there the mean accuracy is more"
        return f"{counted} than {MOST_BEHIND:g} below that of the majority class on {', '.join(found) or 'no set'}."
