"""The tables and figures of the DP-SCD benchmark."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.dp_scd import problems
from benchmarks.dp_scd.methods import DENSITY, EPOCHS, LIMITS, METHODS, named
from benchmarks.frame import Floats
from benchmarks.frame.page import Page
from benchmarks.frame.plots import Canvas, Line, Panel
from benchmarks.frame.tables import by_epsilon, counted, lines, table, verdict

TRACED = ("tuned", "published", "sgd")
WANTED = [  # where, the score to reach, whom the verdict is on, and what is asked
    ("Logistic, phishing", 0.1, "n^-2", 0.085, ("rule", "fit", "tuned"), "test error at most .085"),
    ("SVM, adult", 0.1, "1e-3", 0.17, ("rule", "fit"), "test error at most .17"),
    ("Ridge, california_housing", 1.0, "1e-3", None, ("rule", "fit", "tuned"), "MSE at most 2% above not private"),
]
REFERENCES = {
    "optimum": "the optimum of the paper's problem",
    "standardised": "scikit-learn, standardised columns",
    "limit": "the same fit at an infinite epsilon",
}
TUNED = {"rule": "-", "fit": "-", "sequential": "clip", "primal": "clip", "tuned": "batch, clip"} | {
    "published": "batch, clip", "sgd": "batch, clip, step", "tail": "batch, clip, step",
}  # fmt: skip
COLORS = {"fit": "C3", "rule": "black", "tuned": "C0", "published": "C9", "sequential": "C4"} | {
    "primal": "C5", "sgd": "C1", "tail": "C2",
}  # fmt: skip


def _number(value: float, near: float | None = None) -> str:
    """Four digits behind the point of errors, one of large numbers; of a spread, as many as its mean has."""
    return f"{value:.4f}" if (value if near is None else near) < 10 else f"{value:,.1f}"


def _cell(values: Sequence[float]) -> str:
    mean = float(np.mean(values)) if values else 0.0
    return f"{_number(mean)} ± {_number(float(np.std(values)), mean)}" if values else "-"


def _excess(scores: dict[str, list[float]]) -> list[float]:
    """Objectives above the optimum of the split, from the zero model on, as a part of the zero model's."""
    (optimum,), (zero,) = scores["optimum"], scores["zero"]
    return [max(value - optimum, 1e-9) / (zero - optimum) for value in (zero, *scores["objective"])]


class DualPage(Page):
    """What stands in the template."""

    template = Path(__file__).with_name("page.md")
    train, epochs, density = problems.TRAIN_PART, EPOCHS, DENSITY

    def names(self, part: str) -> list[str]:
        """Problems with records in that table, the paper's first."""
        return self.results.sets(part, order=problems.NAMES)

    def scores(self, *where: Any) -> list[float]:
        return self.results.values("score", *where)

    def deltas(self, problem: str) -> list[str]:
        """The deltas that were run, by name."""
        found = [name for name in self.results.distinct("table") if name.startswith("utility, ")]
        return [name.removeprefix("utility, ") for name in found if self.results.rows(name, problem)]

    def grid(self, problem: str, model: str) -> tuple[list[float], list[float], Floats]:
        """Batches, clips, and mean scores by clip and batch."""
        rows = self.results.rows("grid", problem, model, 1.0)
        batches, clips = (sorted(set(rows[0].scores[key])) for key in ("batch", "clip"))
        means = np.mean([row.scores["score"] for row in rows], axis=0)
        return batches, clips, means.reshape(len(batches), len(clips)).T

    def targets(self) -> str:
        head = ["where", "asked", "method", "score", "not private", "above it", ""]
        return lines(head, [*self._scores_to_reach(), *self._times_to_reach()])

    def _scores_to_reach(self) -> Iterator[list[str]]:
        for problem, epsilon, delta, limit, judged, asked in WANTED:
            for model, method in METHODS.items():
                scores = self.scores(f"utility, {delta}", problem, model, epsilon)
                if not scores or model in ("sequential", "primal"):
                    continue
                for name in ("standardised", "limit") if model == "fit" else ("optimum",):
                    found = self.scores("plain", problem, name)
                    if found:
                        mean, plain = float(np.mean(scores)), float(np.mean(found))
                        told = verdict(mean <= (1.02 * plain if limit is None else limit)) if model in judged else ""
                        where = f"{problem}, epsilon = {epsilon:g}, delta = {delta}"
                        above = [f"{_number(plain)}, {REFERENCES[name]}", f"{100 * (mean / plain - 1):+.2f}%"]
                        yield [where, asked, method.label, _cell(scores), *above, told]

    def _times_to_reach(self) -> Iterator[list[str]]:
        for name in self.names("timing"):
            taken, limit = self._timed(name)
            if math.isfinite(limit):
                ratio, asked = taken["epoch"] / taken["products"], f"at most {limit:g} times the two products"
                yield [f"one epoch, {name}", asked, "ours", f"{ratio:.2f} times", "", "", verdict(ratio <= limit)]

    def problems(self) -> Iterator[dict[str, Any]]:
        for name in self.names("plain"):
            if self.deltas(name):
                n, d = self.results.size("plain", name)
                plain = {m: _cell(self.scores("plain", name, m)) for m in ("optimum", "standardised", "zero", "limit")}
                if plain["limit"] != "-":
                    plain["standardised"] += f"; the whole estimator at an infinite epsilon: {plain['limit']}"
                kind = "mean squared error" if problems.CASES[name][1] == "squared" else "part of wrong predictions"
                tables = "\n\n".join(self._utility(name, delta) for delta in self.deltas(name))
                yield {"name": name, "n": n, "d": d, "kind": kind, "tables": tables, **plain}

    def _utility(self, name: str, delta: str) -> str:
        part = f"utility, {delta}"
        rows = {method.label: model for model, method in METHODS.items()}
        columns = by_epsilon(self.results.epsilons(part, name))
        return table(f"delta = {delta}", rows, columns, lambda model, e: _cell(self.scores(part, name, model, e)))

    def duels(self) -> str:
        """At how many budgets each of ours has the lower mean, or the same."""
        others, rows = ("published", "sgd", "tail"), []
        for name in self.names("plain"):
            parts = [f"utility, {delta}" for delta in self.deltas(name)]
            budgets = [(part, name, e) for part in parts for e in self.results.epsilons(part, name)]
            for model in ("fit", "rule", "tuned"):
                found = (
                    [[self.scores(part, name, m, e) for m in (model, other)] for part, name, e in budgets]
                    for other in others
                )
                rows.append([name, METHODS[model].label, *(counted(pairs, np.less_equal) for pairs in found)])
        return lines(["problem", "", *(METHODS[other].label for other in others)], rows)

    def counts(self) -> str:
        """How many points each method was tuned over."""
        rows = []
        parts = [name for name in self.results.distinct("table") if name.startswith("tuning")]
        for model, method in METHODS.items():
            records = [r for part in parts for r in self.results.rows(part) if r.model == model]
            tried = f"{max(r.scores['tried'][0] for r in records):.0f}" if records else "none"
            batches = [point.batch for point in method.grid]
            edge = [sum(r.scores["batch"][0] == end for r in records) for end in (min(batches), max(batches))]
            tuned = records and min(batches) < max(batches)
            told = f"{edge[0]} and {edge[1]} of {len(records)}" if tuned else "-"
            rows.append([method.label, TUNED[model], tried, told])
        return lines(["method", "tuned", "points", "took the smallest and largest batch"], rows)

    def traced_epsilons(self, name: str) -> list[float]:
        return [epsilon for epsilon in self.results.epsilons("convergence", name) if math.isfinite(epsilon)]

    def convergence(self) -> str:
        """Where the runs of Figure 2 end."""
        rows = []
        for name in self.names("convergence"):
            for epsilon in self.traced_epsilons(name):
                runs = [*((model, epsilon) for model in TRACED), (f"noiseless {epsilon:g}", math.inf)]
                ends = [[_excess(r.scores)[-1] for r in self.results.rows("convergence", name, *at)] for at in runs]
                rows.append([name, f"{epsilon:g}", *(f"{np.mean(end):.3f}" if end else "-" for end in ends)])
        ours = ["ours, tuned", "published, tuned", "DP-SGD, last iterate, tuned", "ours, no noise"]
        return lines(["problem", "epsilon", *ours], rows)

    def grids(self) -> str:
        """How flat the maps of Figure 3 are."""
        rows = []
        for name in self.names("grid"):
            for model, label in (("tuned", "ours"), ("published", "published")):
                batches, clips, values = self.grid(name, model)
                place, best, rule = np.unravel_index(int(np.argmin(values)), values.shape), float(values.min()), "-"
                at = f"{_number(best)} (batch {batches[place[1]]:.0f}, clip {clips[place[0]]:g})"
                if 300.0 in batches and 1.0 in clips:
                    rule = f"{100 * (values[clips.index(1.0), batches.index(300.0)] / best - 1):+.1f}%"
                rows.append([name, label, at, f"{np.mean(values <= 1.05 * best):.0%}", rule])
        return lines(["problem", "variant", "best cell", "within 5%", "the rule's point"], rows)

    def _timed(self, name: str) -> tuple[dict[str, float], float]:
        """Median seconds, and the limit of their ratio; sparse rows have none."""
        kind, loss = named(name)
        taken = {model: self.results.seconds("timing", name, model) or 0.0 for model in ("epoch", "products")}
        return taken, LIMITS[loss] if kind == "dense" else math.inf

    def time_table(self) -> str:
        rows = []
        for name in self.names("timing"):
            taken, limit = self._timed(name)
            asked, ratio = f"{limit:g}" if math.isfinite(limit) else "-", taken["epoch"] / taken["products"]
            rows.append([name, *(f"{1e3 * took:.3g}" for took in taken.values()), f"{ratio:.2f}", asked])
        return lines(["rows, loss", "epoch, ms", "products, ms", "ratio", "at most"], rows)

    def chosen(self) -> str:
        rows = []
        for name in problems.NAMES:
            for delta in self.deltas(name):
                for model, method in METHODS.items():
                    cells = []
                    for epsilon in self.results.epsilons(f"tuning, {delta}", name, model):
                        (record,) = self.results.rows(f"tuning, {delta}", name, model, epsilon)
                        score, batch, clip, step = (record.scores[k][0] for k in ("score", "batch", "clip", "step"))
                        last = f", {step:g}" if step else ""
                        cells.append(f"{epsilon:g}: {_number(score)} ({batch:.0f}, {clip:g}{last})")
                    if cells:
                        rows.append([name, delta, method.label, "; ".join(cells)])
        return lines(["problem", "delta", "method", "by epsilon"], rows)

    def figures(self, folder: Path) -> None:
        parts = [part for part in ("utility, 1e-3", "utility, n^-1.5") if self.names(part)]
        names = [name for name in self.names(parts[0]) if self.scores("plain", name, "optimum")] if parts else []
        panels = [self._utility_panel(part, name) for part in parts for name in names]
        Canvas().draw(folder / "dp_scd_figure_1.png", panels, len(names))
        names = self.names("convergence")
        epsilons = self.traced_epsilons(names[0]) if names else []
        panels = [self._convergence_panel(epsilon, name) for epsilon in epsilons for name in names]
        Canvas().draw(folder / "dp_scd_figure_2.png", panels, len(names))
        names = self.names("grid")
        panels = [self._grid_panel(model, name) for model in ("tuned", "published") for name in names]
        Canvas().draw(folder / "dp_scd_figure_3.png", panels, len(names))

    def _utility_panel(self, part: str, name: str) -> Panel:
        """Bands are one standard deviation; what is far worse than no model is cut off."""
        epsilons, drawn = self.results.epsilons(part, name), []
        for model, color in COLORS.items():
            x = [e for e in epsilons if self.scores(part, name, model, e)]
            if x:
                y = np.array([self.scores(part, name, model, e) for e in x])
                mean, spread = y.mean(axis=1), y.std(axis=1)
                drawn.append(_traced(METHODS[model].label, mean, x, color, (mean - spread, mean + spread)))
        best, zero = (float(np.mean(self.scores("plain", name, model))) for model in ("optimum", "zero"))
        drawn.append(Line("not private", best, style={"color": "grey", "linestyle": "--", "linewidth": 1}))
        drawn.append(Line("no model", zero, style={"color": "grey", "linestyle": ":", "linewidth": 1}))

        def cut(axes: Any, _: Any) -> None:
            axes.set_ylim(best - 0.1 * (zero - best), zero + 0.25 * (zero - best))

        title = f"{name}, delta = {part.removeprefix('utility, ')}"
        return Panel(title, "epsilon", _measure(name), drawn, ("log", "linear"), epsilons, cut)

    def _convergence_panel(self, epsilon: float, name: str) -> Panel:
        runs = [(f"noiseless {epsilon:g}", math.inf, "ours, tuned batch, no noise", "grey")]
        runs += [(model, epsilon, METHODS[model].label, COLORS[model]) for model in TRACED]
        drawn = []
        for model, at, label, color in runs:
            rows = self.results.rows("convergence", name, model, at)
            if rows:
                values = np.array([_excess(row.scores) for row in rows])
                x, band = np.array([0.0, *rows[0].scores["epochs"]]), (values.min(axis=0), values.max(axis=0))
                drawn.append(_traced(label, values.mean(axis=0), x, color, band))
        title = f"{name}, epsilon = {epsilon:g}"
        return Panel(title, "epochs", "objective above the optimum", drawn, ("linear", "log"))

    def _grid_panel(self, model: str, name: str) -> Panel:
        """Colours are shared by both variants; a star is where the rule is."""
        batches, clips, values = self.grid(name, model)
        shared = np.concatenate([self.grid(name, m)[2].ravel() for m in ("tuned", "published")])
        low, zero = shared.min(), float(np.mean(self.scores("plain", name, "zero") or [shared.max()]))

        def paint(axes: Any, figure: Any) -> None:
            colors = {"cmap": "viridis_r", "vmin": low, "vmax": max(zero, low)}
            picture = axes.imshow(values, origin="lower", aspect="auto", **colors)
            axes.set_xticks(range(len(batches)), [f"{b:.0f}" for b in batches])
            axes.set_yticks(range(len(clips)), [f"{c:g}" for c in clips])
            if 300.0 in batches and 1.0 in clips:
                axes.plot(batches.index(300.0), clips.index(1.0), marker="*", color="red", markersize=9)
            figure.colorbar(picture, ax=axes, label=_measure(name)).ax.tick_params(labelsize=7)

        title = f"{name}, {'ours' if model == 'tuned' else 'published'}"
        return Panel(title, "expected batch", "clip, in the rule's for that batch", paint=paint)


def _measure(problem: str) -> str:
    return "test MSE" if problems.CASES[problem][1] == "squared" else "test error"


def _traced(label: str, y: Any, x: Any, color: str, band: tuple[Any, Any]) -> Line:
    return Line(label, y, x, {"color": color, "linewidth": 1.2, "marker": "o", "markersize": 3}, band)
