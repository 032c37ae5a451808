"""The tables and figures of the DP-CD benchmark."""

import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.dp_cd import problems
from benchmarks.dp_cd.methods import METHODS, TRACED
from benchmarks.dp_cd.untuned import RULES
from benchmarks.frame.page import Page, Seeds
from benchmarks.frame.plots import Canvas, Panel, level, traced
from benchmarks.frame.tables import named, number, spread, table

PAPER = tomllib.loads(Path(__file__).with_name("paper.toml").read_text(encoding="utf8"))


def printed(problem: str, method: str) -> dict[float, float]:
    """A row of the paper's Table 2, by passes."""
    return dict(zip(PAPER["passes"], PAPER["table_2"].get(problem, {}).get(method, ()), strict=False))


class CoordinatePage(Page):
    """What stands in the template."""

    template = Path(__file__).with_name("page.md")
    batches = " and ".join(map(str, METHODS["sgd"].batches))  # type: ignore[union-attr]

    def cell(self, values: Sequence[float]) -> str:
        return spread(values, 4)

    def names(self, part: str) -> list[str]:
        """Problems with records in that table, the paper's first."""
        return self.results.sets(part, order=problems.CASES)

    def errors(self, *where: str, **at: float) -> Seeds:
        return self.scores("relative error", *where, **at)

    def best(self, problem: str, model: str) -> tuple[Seeds, str]:
        """The errors of fresh seeds at the number of passes that tuned best, and that number."""
        for record in self.results.rows("tuning", problem, model):
            passes = min(zip(record.scores["relative error"], record.scores["passes"], strict=True))[1]
            return self.errors("table", problem, model, passes=passes), f" ({passes:.0f})"
        return Seeds([]), ""

    def passes(self, part: str, *where: str) -> dict[str, float]:
        """The numbers of passes that were run."""
        found = {count for record in self.results.rows(part, *where) for count in record.scores["passes"]}
        return {f"{count:.0f}": count for count in sorted(found)}

    def summary(self) -> str:
        def cell(model: str, name: str) -> str:
            if model in METHODS:
                return "{}{}".format(*self.best(name, model))
            error, passes = min((error, passes) for passes, error in printed(name, model).items())
            return f"{error:.4f} ({passes})"

        rows = {f"{model}, printed in the paper": model for model in ("DP-CD", "DP-SGD")}
        rows |= {method.label: model for model, method in METHODS.items()}
        names = self.names("tuning")
        return table("", rows if names else {}, named(names), cell, whole=True)

    def problems(self) -> Iterator[dict[str, Any]]:
        for name in self.names("table"):
            problem = problems.problem(name)
            yield {
                "problem": problem,
                "errors_table": self._errors_table(name),
                "verdicts": [{"told": told} for told in self._verdicts(name)],
            }

    def _errors_table(self, name: str) -> str:
        """A row for each number of passes, ours next to what the paper prints."""

        def cell(passes: float, model: str) -> str:
            if model in METHODS:
                return f"{self.errors('table', name, model, passes=passes)}"
            return number(printed(name, model).get(passes), ".4f")

        found = [model for model in METHODS if self.results.rows("table", name, model)]
        columns = {"DP-CD, printed": "DP-CD"} | {METHODS[model].column: model for model in found if model != "sgd"}
        columns |= {"DP-SGD, printed": "DP-SGD"} | {METHODS[model].column: model for model in found if model == "sgd"}
        return table("passes", self.passes("table", name), columns, cell, whole=True)

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
        targets = printed(problem, method)
        found = {at: self.errors("table", problem, model, passes=at).average for at in targets}
        cells = {passes: error for passes, error in found.items() if error == error}
        above = [
            f"{passes} ({error:.4f} against {targets[passes]:.4f})"
            for passes, error in cells.items()
            if round(error, 4) > targets[passes]
        ]
        rest = f"; **not reached** at {', '.join(above)}" if above else ""
        return f"{len(cells) - len(above)} of {len(cells)} cells at or below the printed {method}{rest}"

    def untuned(self) -> str:
        def cell(row: str, name: str) -> Any:
            if row == "zero":
                return f"{problems.problem(name).zero_error:.4f}"
            return self.errors("untuned", name, row) if row in RULES else self.best(name, row.removeprefix("tuned "))[0]

        rows = {label: rule for rule, (label, _) in RULES.items()}
        rows |= {f"*tuned: {METHODS[model].label}*": f"tuned {model}" for model in ("ours", "private", "greedy")}
        names = self.names("untuned")
        return table("rule", rows | {"*zero model*": "zero"} if names else {}, named(names), cell)

    def times(self) -> Iterator[dict[str, Any]]:
        """Of each problem and number of threads: seconds of a pass of ours, and how others compare."""
        parts = sorted(
            (name for name in self.results.distinct("table") if name.startswith("timing")),
            key=lambda name: int(name.split()[1]),
        )
        for problem in self.names(parts[0]) if parts else ():
            for part in parts:
                models = ("ours", "float64 product", "float32 product", "sgd", "form", "greedy")
                ours, double, single, sgd, form, greedy = (self.seconds(part, problem, model) for model in models)
                theirs = PAPER["table_3"].get(problem)
                ratios = {"double": ours / double, "single": ours / single, "sgd": sgd / ours, "form": form / ours}
                ratios["paper"] = Seeds([theirs["DP-SGD"] / theirs["DP-CD"]] if theirs else [])
                about = {"problem": problem, "threads": part.removeprefix("timing, ")}
                yield about | ratios | {"ours": ours, "greedy": greedy / double}

    def chosen(self) -> str:
        def cell(where: tuple[str, str], passes: float) -> str:
            found = [self.scores(key, "tuning", *where, passes=passes) for key in ("relative error", "step", "clip")]
            batch = self.scores("batch", "tuning", *where, passes=passes)
            told = f", {batch:.0f}" if any(batch) else ""
            return "{:.4f} ({:.2g}, {:.3g}{})".format(*found, told) if found[0] else "-"

        pairs = [(name, model) for name in self.names("tuning") for model in METHODS]
        rows = {(name, METHODS[model].label): (name, model) for name, model in pairs}
        columns = {f"{count} passes": passes for count, passes in self.passes("tuning").items()}
        return table(("problem", "method"), rows, columns, cell)

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
            if rows:
                errors = np.array([row.scores["relative error"] for row in rows])
                x = np.median([row.seconds for row in rows], axis=0) if timed else np.array(rows[0].scores["passes"])
                if not timed:
                    x, errors = np.append(0.0, x), np.column_stack([np.full(len(errors), zero), errors])
                drawn.append(traced(METHODS[model].label, x, errors, METHODS[model].color))
        drawn.append(level("zero model", zero))
        x_label, scale = ("seconds", "log") if timed else ("passes over the data", "linear")
        return Panel(name, x_label, y, drawn, (scale, "log"), title_size=9)
