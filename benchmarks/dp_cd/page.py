"""The tables and figures of the DP-CD benchmark."""

import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.dp_cd import problems
from benchmarks.dp_cd.methods import METHODS, TRACED
from benchmarks.dp_cd.paper import PASSES, TABLE_2, TABLE_3_AT_50_PASSES, printed
from benchmarks.dp_cd.untuned import RULES
from benchmarks.frame.page import Page
from benchmarks.frame.plots import Canvas, Line, Panel
from benchmarks.frame.tables import lines, number, spread, table

COLUMNS = {
    "paper": "DP-CD, paper's form and accounting",
    "form": "paper's form, our accounting",
    "ours": "**ours, last iterate**",
    "tail": "ours, tail average",
    "private": "ours, private constants",
    "greedy": "greedy",
}
COLORS = {"paper": "C0", "form": "C9", "ours": "black", "private": "C2", "greedy": "C3", "sgd": "C1"}


class CoordinatePage(Page):
    """What stands in the template."""

    template = Path(__file__).with_name("page.md")
    batches = " and ".join(map(str, METHODS["sgd"].batches))  # type: ignore[union-attr]

    def names(self, part: str) -> list[str]:
        """Problems with records in that table, the paper's first."""
        return self.results.sets(part, order=problems.NAMES)

    def errors(self, part: str, problem: str, model: str, passes: float | None = None) -> list[float]:
        """Relative errors over the seeds, at a number of passes if there are several."""
        if passes is None:
            return self.results.values("relative error", part, problem, model)
        rows = [r.scores for r in self.results.rows(part, problem, model)]
        return [s["relative error"][s["passes"].index(passes)] for s in rows if passes in s["passes"]]

    def best(self, problem: str, model: str, passes: bool = True) -> str:
        """The errors of fresh seeds at the number of passes that tuned best."""
        for record in self.results.rows("tuning", problem, model):
            count = min(zip(record.scores["relative error"], record.scores["passes"], strict=True))[1]
            found = spread(self.errors("table", problem, model, count), 4)
            return f"{found} ({count:.0f})" if passes else found
        return "-"

    def passes(self, part: str, *where: str) -> list[int]:
        """The numbers of passes that were run."""
        return sorted({int(count) for record in self.results.rows(part, *where) for count in record.scores["passes"]})

    def summary(self) -> str:
        def cell(model: str, name: str) -> str:
            if model not in TABLE_2[name]:
                return self.best(name, model)
            error, passes = min(zip(TABLE_2[name][model], PASSES, strict=True))
            return f"{error:.4f} ({passes})"

        rows = {f"{model}, printed in the paper": model for model in ("DP-CD", "DP-SGD")}
        rows |= {method.label: model for model, method in METHODS.items()}
        names = self.names("tuning")
        return table("", rows, {name: name for name in names}, cell, whole=True) if names else ""

    def problems(self) -> Iterator[dict[str, Any]]:
        for name in self.names("table"):
            problem = problems.problem(name)
            (rows, columns), zero = problem.shape, problem.zero_error
            yield {"problem": name, "rows": rows, "columns": columns, "epsilon": problem.epsilon, "zero": zero} | {
                "errors_table": self._errors_table(name),
                "verdicts": "\n".join(f"- {line}." for line in self._verdicts(name)),
            }

    def _errors_table(self, name: str) -> str:
        """A row for each number of passes, ours next to what the paper prints."""
        models = [model for model in METHODS if self.results.rows("table", name, model)]

        def cell(passes: int, model: str) -> str:
            if model in TABLE_2[name]:
                return number(printed(name, model, passes), ".4f")
            return spread(self.errors("table", name, model, passes), 4)

        columns = {"DP-CD, printed": "DP-CD"} | {COLUMNS[model]: model for model in models if model != "sgd"}
        columns |= {"DP-SGD, printed": "DP-SGD"} | ({"DP-SGD, here": "sgd"} if "sgd" in models else {})
        return table("passes", {f"{count}": count for count in self.passes("table", name)}, columns, cell, whole=True)

    def _verdicts(self, name: str) -> Iterator[str]:
        for model, method in METHODS.items():
            if self.results.rows("table", name, model):
                yield f"{method.label}: {self.verdict(name, model, 'DP-SGD' if model == 'sgd' else 'DP-CD')}"
        for record in self.results.rows("noiseless", name, "sgd"):
            pairs = zip(record.scores["relative error"], record.scores["passes"], strict=True)
            told = ", ".join(f"{error:.4f} ({passes:.0f})" for error, passes in pairs)
            yield f"The same SGD without noise and clipping, best step and batch: {told}"

    def verdict(self, problem: str, model: str, method: str) -> str:
        """In which cells a row of ours is above what the paper prints."""
        cells, above = 0, []
        for passes in self.passes("table", problem):
            errors, target = self.errors("table", problem, model, passes), printed(problem, method, passes)
            if errors and target is not None:
                cells += 1
                if round(statistics.mean(errors), 4) > target:
                    above.append(f"{passes} ({statistics.mean(errors):.4f} against {target:.4f})")
        rest = f"; **not reached** at {', '.join(above)}" if above else ""
        return f"{cells - len(above)} of {cells} cells at or below the printed {method}{rest}"

    def untuned(self) -> str:
        def cell(row: str, name: str) -> str:
            if row == "zero":
                return f"{problems.problem(name).zero_error:.4f}"
            return spread(self.errors("untuned", name, row), 4) if row in RULES else self.best(name, row[1:], False)

        rows = {label: rule for rule, (label, _) in RULES.items()}
        rows |= {f"*tuned: {METHODS[model].label}*": f"={model}" for model in ("ours", "private", "greedy")}
        names = self.names("untuned")
        columns = {name: name for name in names}
        return table("rule", rows | {"*zero model*": "zero"}, columns, cell) if names else ""

    def timed(self) -> list[str]:
        """Tables of timings, by the number of threads."""
        found = [name for name in self.results.distinct("table") if name.startswith("timing")]
        return sorted(found, key=lambda name: int(name.split()[1]))

    def time_table(self) -> str:
        head = ["problem", "BLAS", "DP-CD, ms", "/ X.T @ r, float64", "/ X.T @ r, float32"]
        head += ["DP-SGD / DP-CD", "the paper's", "paper's form / ours", "greedy / X.T @ r, float64"]
        rows = []
        for problem in self.names(self.timed()[0]) if self.timed() else ():
            for part in self.timed():
                models = self.results.distinct("model", part, problem)
                t = {model: self.results.seconds(part, problem, model) or 0.0 for model in models}
                double, theirs = t["float64 product"], TABLE_3_AT_50_PASSES.get(problem)
                ratios = [t["ours"] / double, t["ours"] / t["float32 product"], t["sgd"] / t["ours"]]
                cells = [
                    problem,
                    part.removeprefix("timing, "),
                    f"{1e3 * t['ours']:.3g}",
                    *(f"{r:.1f}" for r in ratios),
                ]
                cells.append(f"{theirs['DP-SGD'] / theirs['DP-CD']:.1f}" if theirs else "-")
                greedy = f"{t['greedy'] / double:.1f}" if "greedy" in t else "-"
                rows.append([*cells, f"{t['form'] / t['ours']:.2f}", greedy])
        return lines(head, rows)

    def chosen(self) -> str:
        counts, rows = self.passes("tuning"), []
        for name in self.names("tuning"):
            for model, method in METHODS.items():
                for record in self.results.rows("tuning", name, model):
                    keys = ("passes", "relative error", "step", "clip", "batch")
                    found = zip(*(record.scores[key] for key in keys), strict=True)
                    cells = {
                        int(passes): f"{error:.4f} ({step:.2g}, {clip:.3g}{f', {batch:.0f}' if batch else ''})"
                        for passes, error, step, clip, batch in found
                    }
                    rows.append([name, method.label, *(cells.get(count, "-") for count in counts)])
        return lines(["problem", "method", *(f"{count} passes" for count in counts)], rows)

    def figures(self, folder: Path) -> None:
        """Relative error against passes, of imbalanced and of balanced problems, and against seconds."""
        found = self.names("trace")
        imbalanced = [name for name in found if name.endswith(", imbalanced")]
        balanced = [name for name in found if name not in imbalanced]
        for place, (names, timed) in enumerate(((imbalanced, False), (balanced, False), (found, True)), 1):
            panels = [self._panel(name, timed, "" if name != names[0] else "relative error") for name in names]
            Canvas(height=3.3, more=0.0).draw(folder / f"dp_cd_figure_{place}.png", panels, legend=3)

    def _panel(self, name: str, timed: bool, y: str) -> Panel:
        zero, drawn = problems.problem(name).zero_error, []
        for model in TRACED:
            rows = self.results.rows("trace", name, model)
            if not rows:
                continue
            errors = np.array([row.scores["relative error"] for row in rows])
            x = np.median([row.seconds for row in rows], axis=0) if timed else np.array(rows[0].scores["passes"])
            if not timed:
                x, errors = np.append(0.0, x), np.column_stack([np.full(len(errors), zero), errors])
            style = {"color": COLORS[model], "linewidth": 1.2, "marker": "o", "markersize": 3}
            band = (errors.min(axis=0), errors.max(axis=0))
            drawn.append(Line(METHODS[model].label, errors.mean(axis=0), x, style, band))
        drawn.append(Line("zero model", zero, style={"color": "grey", "linestyle": "--", "linewidth": 1}))
        x_label, scale = ("seconds", "log") if timed else ("passes over the data", "linear")
        return Panel(name, x_label, y, drawn, (scale, "log"), title_size=9)
