"""The tables and figures of the DP-SCD benchmark."""

import math
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.dp_scd import ablation, problems
from benchmarks.dp_scd.methods import DENSITY, LIMITS, METHODS, named
from benchmarks.dp_scd.wanted import WANTED
from benchmarks.frame import Floats
from benchmarks.frame.page import Page, Seeds
from benchmarks.frame.plots import Canvas, Panel, level, spread_out, traced
from benchmarks.frame.tables import by_epsilon, counted, table, verdict
from benchmarks.frame.tuning import Point
from tacit.privacy import Budget

TRACED = ("tuned", "published", "sgd")
PLAIN = {
    "tuned": "ours, the paper's step, no noise",
    "sgd": "SGD, no noise",
    "scd": "SCD, one row at a time, no noise",
}  # of Figure 2
NOISELESS = {"scd": "SCD, no noise", "sgd": "SGD, no noise"}  # of Figure 1
LABELS = {method.label: model for model, method in METHODS.items()}


REFERENCES = {
    "optimum": "the optimum of the paper's problem",
    "standardised": "scikit-learn, standardised columns",
    "limit": "the same fit at an infinite epsilon",
}


def _number(value: float, near: float | None = None) -> str:
    """Four digits behind the point of errors, one of large numbers; of a spread, as many as its mean has."""
    return f"{value:.4f}" if (value if near is None else near) < 10 else f"{value:,.1f}"


def _excess(scores: dict[str, list[float]]) -> list[float]:
    """Objectives above the optimum of the split, from the zero model on, as a part of the zero model's."""
    (optimum,), (zero,) = scores["optimum"], scores["zero"]
    return [max(value - optimum, 1e-9) / (zero - optimum) for value in (zero, *scores["objective"])]


class DualPage(Page):
    """What stands in the template."""

    template = Path(__file__).with_name("page.md")
    train, epochs, density = problems.TRAIN_PART, 10, DENSITY

    def cell(self, values: Sequence[float]) -> str:
        mean = float(np.mean(values)) if values else 0.0
        return f"{_number(mean)} ± {_number(float(np.std(values)), mean)}" if values else "-"

    def names(self, part: str) -> list[str]:
        """Problems with records in that table, the paper's first."""
        return self.results.sets(part, order=problems.CASES)

    def score(self, *where: Any) -> Seeds:
        return self.scores("score", *where)

    def utilities(self, problem: str) -> list[str]:
        """The tables of utility of a problem, one for each delta."""
        found = [name for name in self.results.distinct("table") if name.startswith("utility, ")]
        return [name for name in found if self.results.rows(name, problem)]

    def grid(self, problem: str, model: str) -> tuple[list[float], list[float], Floats]:
        """Batches, clips, and mean scores by clip and batch."""
        rows = self.results.rows("grid", problem, model, 1.0)
        batches, clips = (sorted(set(rows[0].scores[key])) for key in ("batch", "clip"))
        means = np.mean([row.scores["score"] for row in rows], axis=0)
        return batches, clips, means.reshape(len(batches), len(clips)).T

    def rule_place(self, problem: str, batches: list[float], clips: list[float]) -> tuple[int, int] | None:
        """Where the rule's batch is among those of a grid, and the clip next to the rule's; None without that batch."""
        split = problems.problem(problem, self.effort.most_rows).split(0)
        rule = METHODS["rule"].run(split, Budget(1.0, 1e-3), Point()).algorithm  # type: ignore[union-attr]
        apart = np.abs(np.log(np.array(clips) * split.largest_slope / rule.reach))
        return (int(np.argmin(apart)), batches.index(rule.batch)) if rule.batch in batches else None

    def scores_to_reach(self) -> Iterator[dict[str, Any]]:
        for wanted in WANTED:
            for model, method in METHODS.items():
                found = self.score(f"utility, {wanted.delta}", wanted.problem, model, wanted.epsilon)
                for name in ("standardised", "limit") if model == "fit" else ("optimum",):
                    plain = self.score("plain", wanted.problem, name).average
                    if found and plain > 0.0 and model not in ("sequential", "primal"):
                        most = 1.02 * plain if wanted.most is None else wanted.most
                        told = verdict(found.average <= most) if model in wanted.judged else ""
                        above = {"plain": _number(plain), "above": 100 * (found.average / plain - 1)}
                        above |= {"reference": REFERENCES[name], "verdict": told}
                        yield {"wanted": wanted, "label": method.label, "score": found} | above

    def limits_as_set(self) -> Iterator[dict[str, Any]]:
        """Numbers to reach on the rows and columns that they were set for."""
        for name, wanted in ((name, w) for w in WANTED for name in self.names("limits") if name == w.problem):
            plain, size = self.score("limits", name, "optimum"), self.results.size("limits", name)
            for model in ("fit", "rule"):
                found = self.score("limits", name, model, wanted.epsilon)
                told = {"label": METHODS[model].label, "verdict": verdict(found.average <= (wanted.most or math.inf))}
                yield {"wanted": wanted, "score": found, "plain": plain, "columns": size[1]} | told

    def times_to_reach(self) -> Iterator[dict[str, Any]]:
        return (timed for timed in self.times() if math.isfinite(timed["limit"]))

    def problems(self) -> Iterator[dict[str, Any]]:
        for name in self.names("plain"):
            parts = self.utilities(name)
            if parts:
                plain: dict[str, Any] = {m: self.score("plain", name, m) for m in ("optimum", "standardised", "zero")}
                others = {f"; {words}": self.score("noiseless", name, m) for m, words in NOISELESS.items()}
                others["; the whole estimator at an infinite epsilon"] = self.score("plain", name, "limit")
                plain["limit"] = "".join(f"{words}: {found}" for words, found in others.items() if found)
                kind = "mean squared error" if problems.CASES[name][1] == "squared" else "part of wrong predictions"
                tables = "\n\n".join(self._utility(part, name) for part in parts)
                plain |= {"kind": kind, "tables": tables, "strength": problems.CASES[name][2]}
                yield {"name": name, "size": self.results.size("plain", name)} | plain

    def _utility(self, part: str, name: str) -> str:
        columns = by_epsilon(self.results.epsilons(part, name))
        corner = f"{part.replace('utility,', 'delta =')}, lambda = {problems.CASES[name][2]:g}"
        rows: dict[str, tuple[str, str]] = {label: ("score", model) for label, model in LABELS.items()}
        rows["lambda of ours, untuned"] = ("lambda", "rule")

        def cell(where: tuple[str, str], epsilon: float) -> Any:
            values = self.scores(where[0], part, name, where[1], epsilon)
            return values if where[0] == "score" else f"{values.average:.2g}" if values else ""

        return table(corner, rows, columns, cell)

    def duels(self) -> str:
        """At how many budgets each of ours has the lower mean, or the same."""

        def cell(where: tuple[str, str], other: str) -> str:
            name, model = where
            budgets = [(part, e) for part in self.utilities(name) for e in self.results.epsilons(part, name)]
            pairs = ([self.score(part, name, m, e) for m in (model, other)] for part, e in budgets)
            return counted(pairs, np.less_equal)

        pairs = [(name, model) for name in self.names("plain") for model in ("fit", "rule", "tuned")]
        rows = {(name, METHODS[model].label): (name, model) for name, model in pairs}
        columns = {METHODS[other].label: other for other in ("published", "sgd", "tail")}
        return table(("problem", ""), rows, columns, cell, whole=True)

    def won(self) -> Iterator[dict[str, Any]]:
        """At how many budgets of delta = 1e-3 ours is not above DP-SGD: training rows are the same, so pairs count."""
        part = "utility, 1e-3"
        for model, other in product(("tuned", "paper's step", "last", "rule"), ("tail", "sgd")):
            found = []
            for name in self.names(part):
                for epsilon in self.results.epsilons(part, name):
                    ours, theirs = (self.score(part, name, m, epsilon) for m in (model, other))
                    if len(ours) == len(theirs) > 1:
                        apart = np.subtract(ours, theirs)
                        found.append(apart.mean() / (apart.std(ddof=1) / math.sqrt(len(apart)) + 1e-300))
            if found:
                counts = {"below": np.sum(np.less_equal(found, 0.0)), "within": np.sum(np.less_equal(found, 1.0))}
                yield {"ours": METHODS[model].label, "other": METHODS[other].label, "cells": len(found)} | counts

    def counts(self) -> Iterator[dict[str, Any]]:
        """How many points each method was tuned over."""
        parts = [name for name in self.results.distinct("table") if name.startswith("tuning")]
        for model, method in METHODS.items():
            records = [r.scores for part in parts for r in self.results.rows(part) if r.model == model]
            tried = f"{max(scores['tried'][0] for scores in records):.0f}" if records else "none"
            values = dict(zip(Point._fields, zip(*method.grid, strict=True), strict=True))
            tuned = ", ".join(name for name, found in values.items() if len(set(found)) > 1)
            ends = min(values["batch"]), max(values["batch"])
            edge = [sum(scores["batch"][0] == end for scores in records) for end in ends]
            told = f"{edge[0]} and {edge[1]} of {len(records)}" if records and "batch" in tuned else "-"
            yield {"label": method.label, "tuned": tuned or "-", "tried": tried, "edge": told}

    def traced_at(self, part: str = "convergence") -> dict[tuple[str, str], tuple[str, float]]:
        """Problems and epsilons of Figure 2."""
        pairs = [(name, e) for name in self.names(part) for e in self.results.epsilons(part, name) if math.isfinite(e)]
        return {(name, f"{epsilon:g}"): (name, epsilon) for name, epsilon in pairs}

    def convergence(self) -> str:
        """Where the runs of Figure 2 end."""

        def cell(where: tuple[str, float], model: str) -> str:
            name, epsilon = where
            at = (model, epsilon) if model in TRACED else (f"{model} {epsilon:g}", math.inf)
            ends = [_excess(r.scores)[-1] for r in self.results.rows("convergence", name, *at)]
            return f"{Seeds(ends):.3f}"

        columns = {METHODS[model].label: model for model in TRACED} | {words: words for words in PLAIN.values()}
        return table(("problem", "epsilon"), self.traced_at(), columns, cell)

    def grids(self) -> Iterator[dict[str, Any]]:
        """How flat the maps of Figure 3 are."""
        for name in self.names("grid"):
            for model, label in (("tuned", "ours"), ("published", "published")):
                batches, clips, values = self.grid(name, model)
                place, best, rule = np.unravel_index(int(np.argmin(values)), values.shape), float(values.min()), "-"
                if at := self.rule_place(name, batches, clips):
                    rule = f"{100 * (values[at] / best - 1):+.1f}% (clip {clips[at[0]]:g})"
                found = {"best": _number(best), "batch": batches[place[1]], "clip": clips[place[0]], "rule": rule}
                yield {"name": name, "label": label, "near": np.mean(values <= 1.05 * best)} | found

    def replaced(self) -> Iterator[dict[str, Any]]:
        """The rule with a part replaced by its best setting: what changes, over the same seeds."""
        for name, epsilon in product(self.names("ablation"), self.results.epsilons("ablation")):
            rule = np.array(self.results.values("score", "ablation", name, ablation.RULE, epsilon))
            peer = self.score("utility, 1e-3", name, "tail", epsilon)
            for part, words in ablation.WORDS.items():
                rows = [record.scores["score"] for record in self.results.rows("ablation", name, part, epsilon)]
                if rows:
                    best = np.array(rows)[:, int(np.mean(rows, axis=0).argmin())]
                    change = Seeds(best - rule, self.cell)
                    told = {"score": _number(float(best.mean())), "peer": _number(peer.average), "change": change}
                    yield {"name": name, "epsilon": epsilon, "words": words, **told}

    def times(self) -> Iterator[dict[str, Any]]:
        """Milliseconds, and the limit of their ratio; sparse rows have none."""
        for name in self.names("timing"):
            kind, loss = named(name)
            epoch, products = (self.seconds("timing", name, model) for model in ("epoch", "products"))
            limit, ratio = LIMITS[loss] if kind == "dense" else math.inf, epoch / products
            asked = f"{limit:g}" if math.isfinite(limit) else "-"
            found = {"epoch": epoch, "products": products, "ratio": ratio, "limit": limit, "asked": asked}
            yield {"name": name, "verdict": verdict(ratio.average <= limit)} | found

    def chosen(self) -> Iterator[dict[str, Any]]:
        parts = [(name, part.replace("utility", "tuning")) for name in problems.CASES for part in self.utilities(name)]
        for name, part, model in [(*at, model) for at in parts for model in METHODS]:
            told = []
            for epsilon in self.results.epsilons(part, name, model):
                (record,) = self.results.rows(part, name, model, epsilon)
                score, batch, clip, step = (record.scores[k][0] for k in ("score", "batch", "clip", "step"))
                last = f", {step:g}" if step else ""
                told.append(f"{epsilon:g}: {_number(score)} ({batch:.0f}, {clip:g}{last})")
            if told:
                delta = part.removeprefix("tuning, ")
                yield {"name": name, "delta": delta, "label": METHODS[model].label, "told": "; ".join(told)}

    def figures(self, folder: Path) -> None:
        parts = [part for part in ("utility, 1e-3", "utility, n^-1.5") if self.names(part)]
        names = [name for name in self.names(parts[0]) if self.score("plain", name, "optimum")] if parts else []
        places = sorted(self.traced_at().values(), key=lambda at: at[1])
        grids = list(product(("tuned", "published"), self.names("grid")))
        drawn = [
            (
                [self._utility_panel(part, name) for part in parts for name in names if name in self.names(part)],
                len(names),
            ),
            ([self._convergence_panel(epsilon, name) for name, epsilon in places], len(self.names("convergence"))),
            ([self._grid_panel(model, name) for model, name in grids], len(grids) // 2),
        ]
        for place, (panels, across) in enumerate(drawn, 1):
            Canvas().draw(folder / f"dp_scd_figure_{place}.png", panels, across)

    def _utility_panel(self, part: str, name: str) -> Panel:
        """Bands are one standard deviation; what is far worse than no model is cut off."""
        epsilons, drawn = self.results.epsilons(part, name), []
        for model, method in METHODS.items():
            found = {e: self.score(part, name, model, e) for e in epsilons}
            drawn += spread_out(method.label, found, {"color": method.color}, band=True)
        best, zero = (self.score("plain", name, model).average for model in ("optimum", "zero"))
        drawn += [level("not private", best), level("no model", zero, ":")]
        for (model, words), dashes in zip(NOISELESS.items(), ("-.", (0, (3, 1, 1, 1, 1, 1))), strict=True):
            drawn += [level(words, found.average, dashes) for found in [self.score("noiseless", name, model)] if found]

        def cut(axes: Any, _: Any) -> None:
            axes.set_ylim(best - 0.1 * (zero - best), zero + 0.25 * (zero - best))

        title = f"{name}, {part.replace('utility,', 'delta =')}"
        return Panel(title, "epsilon", _measure(name), drawn, ("log", "linear"), epsilons, cut)

    def _convergence_panel(self, epsilon: float, name: str) -> Panel:
        runs = [(f"{words} {epsilon:g}", math.inf, words, str(0.3 + 0.2 * k)) for k, words in enumerate(PLAIN.values())]
        runs += [(model, epsilon, METHODS[model].label, METHODS[model].color) for model in TRACED]
        drawn = []
        for model, at, label, color in runs:
            rows = self.results.rows("convergence", name, model, at)
            if rows:
                values = np.array([_excess(row.scores) for row in rows])
                drawn.append(traced(label, [0.0, *rows[0].scores["epochs"]], values, color))
        title = f"{name}, epsilon = {epsilon:g}"
        return Panel(title, "epochs", "objective above the optimum", drawn, ("linear", "log"))

    def _grid_panel(self, model: str, name: str) -> Panel:
        """Colours are shared by both variants; a star is where the rule is."""
        batches, clips, values = self.grid(name, model)
        shared = np.concatenate([self.grid(name, m)[2].ravel() for m in ("tuned", "published")])
        low, zero = shared.min(), float(np.mean(self.score("plain", name, "zero") or [shared.max()]))

        def paint(axes: Any, figure: Any) -> None:
            colors = {"cmap": "viridis_r", "vmin": low, "vmax": max(zero, low)}
            picture = axes.imshow(values, origin="lower", aspect="auto", **colors)
            axes.set_xticks(range(len(batches)), [f"{b:.0f}" for b in batches])
            axes.set_yticks(range(len(clips)), [f"{c:g}" for c in clips])
            if at := self.rule_place(name, batches, clips):
                axes.plot(at[1], at[0], marker="*", color="red", markersize=9)
            figure.colorbar(picture, ax=axes, label=_measure(name)).ax.tick_params(labelsize=7)

        title = f"{name}, {'ours' if model == 'tuned' else 'published'}"
        return Panel(title, "expected batch", "clip, over a row's longest update", paint=paint)


def _measure(problem: str) -> str:
    return "test MSE" if problems.CASES[problem][1] == "squared" else "test error"
