"""The tables of small budgets: a row for each set and epsilon."""

import hashlib
import math
from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

import tacit
from benchmarks.dense.methods import PLAIN
from benchmarks.frame import sets
from benchmarks.frame.page import Page
from benchmarks.frame.tables import NONE, number
from tacit.privacy import Budget

CONSTANT, OURS, UNCOUNTED = "constant", "ours", "uncounted"
ORACLE, DP_SGD = "oracle", "dp-sgd"
RARE = ", 5% positives"
ROLES = {"fresh": "fresh", "judges": "judges", "chose": "chose"}
NAMES = {"accuracy": "accuracy", "auc": "AUC", "r2": "R2"}
RULES = tuple(f"bounding/{name}" for name in ("laws", "linear", "magnitudes", "means", "scales", "target", "templates"))
RULES += tuple(f"solvers/{name}" for name in ("classes", "curvature", "gradient", "guard"))
LEAST_SIGNAL, MOST_BEHIND = 5.0, 0.01  # n mu / K from which on a classifier is to be so little behind the majority
LEAST_DISTANCE = 0.02  # from the constant model to the oracle, of which a share can be told


def standard_error(values: Any) -> float:
    """Of the mean; none of a single value."""
    return float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else 0.0


def told(values: Any) -> str:
    """Mean ± standard error."""
    return f"{np.mean(values):.3f} ± {standard_error(values):.3f}" if len(values) else NONE


def is_level(ours: Sequence[float], theirs: Sequence[float]) -> bool:
    """Whether the mean of ours is not below theirs by more than a standard error of the difference."""
    allowed = math.hypot(standard_error(ours), standard_error(theirs))
    return float(np.mean(ours)) >= float(np.mean(theirs)) - allowed


@cache
def rules() -> str:
    """What tells the rules of the default apart: a fingerprint of the sources that hold them."""
    folder, found = Path(tacit.__file__).parent, hashlib.sha256()
    for name in RULES:
        found.update((folder / f"{name}.py").read_bytes())
    return found.hexdigest()[:8]


def role(name: str) -> str:
    """What a set is for."""
    if name in sets.FRESH:
        return ROLES["fresh"]
    known = sets.SETS.get(name.removesuffix(RARE))
    return ROLES["chose" if known is not None and known.chose else "judges"]


class SmallPage(Page):
    """What is found on the test rows, between a constant model and an oracle."""

    template = Path(__file__).with_name("page.md")
    rules = staticmethod(rules)

    def cell(self, values: Any) -> str:
        return told(values)

    def best(self, score: str, name: str, model: str, epsilon: float) -> list[float]:
        """Over the seeds, at the point of a grid with the best mean."""
        found = np.array([row.scores[score] for row in self.results.rows("small", name, model, epsilon)])
        return found[:, int(found.mean(axis=0).argmax())].tolist() if len(found) else []

    @cached_property
    def told_of(self) -> list[dict[str, Any]]:
        """Every set and epsilon, in the order of the effort."""
        cells = (
            (name, about, epsilon)
            for name, about in self.effort.sets.items()
            for epsilon in self.results.epsilons("small", name, OURS)
        )
        return [self._row(*cell) for cell in cells]

    def _row(self, name: str, about: dict[str, Any], epsilon: float) -> dict[str, Any]:
        score, at = about["score"], ("small", name, OURS, epsilon)
        found = self.scores(score, *at)
        constant = self.scores(score, "small", name, CONSTANT)
        gradient, peer = (self.best(score, name, model, epsilon) for model in (ORACLE, DP_SGD))
        oracle = max(gradient, peer, key=np.mean) if gradient and peer else gradient or peer
        asked = self._asked(name, about, epsilon)
        n, d, classes = self.results.size(*at)
        signal = self._signal(n, classes, epsilon)
        behind = [mine - theirs for mine, theirs in self._against_majority(name, epsilon)] if classes else []
        covered = self._covered(found, constant, oracle)
        return {
            "set": name,
            "role": role(name),
            "size": f"{n:,} x {d}" + (f", {classes} classes" if classes > 2 else ""),
            "score": NAMES[score],
            "epsilon": epsilon,
            "seeds": len(found),
            "ours": found,
            "asked": number(asked),
            "verdict": NONE if asked is None else self._verdict(found, asked),
            "oracle": told(oracle),
            "peer": told(peer),
            "covered": number(covered, ".2f"),
            "share": covered,
            "level": is_level(found, peer) if peer else None,
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

    def _asked(self, name: str, about: dict[str, Any], epsilon: float) -> float | None:
        """The number, or so much above what fits without class counts have."""
        above = dict(zip(self.effort.told_at, about.get("above", ()), strict=False)).get(epsilon)
        if above is None:
            return dict(zip(self.effort.told_at, about.get("asked", ()), strict=False)).get(epsilon)
        return self.scores(about["score"], "small", name, UNCOUNTED, epsilon).average + above

    def _verdict(self, found: Sequence[float], asked: float) -> str:
        """Whether a number is what was asked for, or may be within its standard error."""
        mean = round(float(np.mean(found)), 3)
        if mean >= round(asked, 3):
            return "reached"
        return "within the error" if mean + standard_error(found) >= asked else "**not reached**"

    def _signal(self, n: int, classes: int, epsilon: float) -> float:
        """What the training rows of a class are against the noise: n mu / K."""
        train = n - -(-n // 4)
        return train * Budget(epsilon, train**-1.5).mu / max(classes, 1)

    def _against_majority(self, name: str, epsilon: float) -> Iterator[tuple[float, float]]:
        """The accuracy of ours and of the majority class on the same split."""
        constant = {r.seed: r.scores["accuracy"][0] for r in self.results.rows("small", name, CONSTANT, None)}
        for record in self.results.rows("small", name, OURS, epsilon):
            yield record.scores["accuracy"][0], constant[record.seed]

    def _covered(self, ours: Sequence[float], constant: Sequence[float], oracle: Sequence[float]) -> float | None:
        """The share of the distance from the constant model to the oracle; none where there is hardly any."""
        if not oracle or not constant:
            return None
        distance = float(np.mean(oracle) - np.mean(constant))
        return float(np.mean(ours) - np.mean(constant)) / distance if distance > LEAST_DISTANCE else None

    def classifiers(self) -> list[dict[str, Any]]:
        return [row for row in self.told_of if row["kind"] == "classes"]

    def regressions(self) -> list[dict[str, Any]]:
        return [row for row in self.told_of if row["kind"] == "numbers"]

    def summary(self) -> Iterator[dict[str, Any]]:
        """What sets of each role have in common, at each budget where the oracle was run."""
        for words in ROLES.values():
            for epsilon in self.effort.told_at:
                rows = [row for row in self.told_of if (row["role"], row["epsilon"]) == (words, epsilon)]
                shares = [row["share"] for row in rows if row["share"] is not None]
                level = [row["level"] for row in rows if row["level"] is not None]
                if shares:
                    yield {
                        "role": words,
                        "epsilon": epsilon,
                        "cells": len(shares),
                        "median": float(np.median(shares)),
                        "least": min(shares),
                        "half": f"{sum(share >= 0.5 for share in shares)} of {len(shares)}",
                        "level": f"{sum(level)} of {len(level)}",
                    }

    def failures(self) -> str:
        """Where a classifier is too far behind the majority class."""
        cells = [row for row in self.classifiers() if row["signal"] > LEAST_SIGNAL]
        found = [f"{row['set']} at {row['epsilon']:g} ({row['ahead']})" for row in cells if row["fails"]]
        counted = f"n mu / K is above {LEAST_SIGNAL:g} in {len(cells)} of these cells; there the mean accuracy is more"
        return f"{counted} than {MOST_BEHIND:g} below that of the majority class on {', '.join(found) or 'no set'}."

    def older(self) -> str:
        """Sets whose rows of ours are by other rules than those of now."""
        fitted = {r.set: r.note for r in self.results.rows("small") if r.model in (OURS, UNCOUNTED)}
        found = [name for name, note in fitted.items() if not note.endswith(rules())]
        told_as = f"Rows of ours are by other rules than the sources of now (`{rules()}`) on"
        return f"{told_as} {', '.join(found)}." if found else f"All rows of ours are by the rules of `{rules()}`."

    def lacking(self) -> str:
        """What was not measured."""
        asked = [(name, model) for name in self.effort.sets for model in (OURS, ORACLE, DP_SGD)]
        found = [f"{name} ({model})" for name, model in asked if not self.results.rows("small", name, model)]
        return f"Not measured: {', '.join(found)}." if found else ""
