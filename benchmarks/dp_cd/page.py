"""The tables and figures of the DP-CD benchmark."""

import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.dp_cd import problems
from benchmarks.dp_cd.methods import CLOCKED, METHODS, TRACED, Scd
from benchmarks.dp_cd.untuned import RULES
from benchmarks.frame.page import Page, Seeds
from benchmarks.frame.plots import Canvas, Panel, level, traced
from benchmarks.frame.tables import NONE, named, number, spread, table

PAPER = tomllib.loads(Path(__file__).with_name("paper.toml").read_text(encoding="utf8"))
_TUNED = ("tail", "tail-jittered", "private", "private-jittered", "greedy")  # next to the rules


def printed(problem: str, method: str, what: str = "table_2") -> dict[float, float]:
    """A row of the paper's Table 2, of its spreads or of Table 3, by passes."""
    return dict(zip(PAPER["passes"], PAPER[what].get(problem, {}).get(method, ()), strict=False))


class Cell(NamedTuple):
    """A mean of ours next to what the paper prints."""

    passes: float
    error: float
    target: float
    spread: float

    @property
    def is_bettered(self) -> bool:
        """At or below what is printed, as far as that has digits."""
        return round(self.error, 4) <= self.target

    @property
    def is_met(self) -> bool:
        """Bettered, or above by at most 5% or the printed spread."""
        return self.is_bettered or round(self.error, 4) <= max(1.05 * self.target, self.target + self.spread)


def _kind(model: str) -> str:
    """The paper's method that one of ours is next to; its tables have no DP-SCD."""
    return "DP-SGD" if model == "sgd" else "" if isinstance(METHODS[model], Scd) else "DP-CD"


class CoordinatePage(Page):
    """What stands in the template."""

    template = Path(__file__).with_name("page.md")
    batches, dual_batches = (" and ".join(f"{b:,}" for b in METHODS[m].batches) for m in ("sgd", "scd"))  # type: ignore[union-attr]

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
            if _kind(model) and self.results.rows("table", name, model):
                yield f"{method.label}: {self.verdict(name, model)}"
        for record in self.results.rows("bare", name):
            yield f"{METHODS[record.model].label}, without noise and clipping, best step: {_by_passes(record)}"
        for record in self.results.rows("noiseless", name, "sgd"):
            yield f"The same SGD without noise and clipping, best step and batch: {_by_passes(record)}"
        yield from self._plain(name)

    def _plain(self, name: str) -> Iterator[str]:
        """SGD without noise on more batch sizes, where it was run."""
        rows = self.results.rows("plain", name)
        for first in rows[:1]:
            (passes,), batches = first.scores["passes"], first.scores["batch"]
            errors = {batch: self.errors("plain", name, batch=batch).average for batch in batches}
            told = ", ".join(f"{error:.4f} (batch {batch:.0f})" for batch, error in errors.items())
            yield (
                f"SGD without noise and clipping at {passes:.0f} passes, the best step of each batch, mean of"
                f" {len(rows)} runs: {told}; printed DP-SGD: {number(printed(name, 'DP-SGD').get(passes), '.4f')}"
            )

    def beside(self, problem: str, model: str, part: str = "table") -> list[Cell]:
        """The cells of a method that have been run, next to those of the paper's method of its kind."""
        method = _kind(model)
        targets, spreads = printed(problem, method), printed(problem, method, "spread")
        found = {at: self.errors(part, problem, model, passes=at) for at in targets}
        return [Cell(at, errors.average, targets[at], spreads[at]) for at, errors in found.items() if errors]

    def counts(self, part: str = "table") -> str:
        """How many cells are met, and how many of them bettered: by fresh seeds, or by the runs that chose."""

        def cell(model: str, name: str) -> str:
            cells = self.beside(name, model, part)
            told = f"{sum(c.is_met for c in cells)} of {len(cells)}, {sum(c.is_bettered for c in cells)} bettered"
            return told if cells else NONE

        names = self.names(part)
        labels = {model: method.label for model, method in METHODS.items() if _kind(model)}
        rows = {f"{label}, next to {_kind(model)}": model for model, label in labels.items()}
        return table("", rows if names else {}, named(names), cell)

    def counts_of_tuning(self) -> str:
        return self.counts("tuning")

    def verdict(self, problem: str, model: str) -> str:
        """In which cells a row of ours is above what the paper prints, and in which by too much."""
        cells = self.beside(problem, model)
        bettered, met = (sum(getattr(cell, key) for cell in cells) for key in ("is_bettered", "is_met"))
        missed = [
            f"{passes} ({error:.4f} against {target:.4f} ± {spread:.4f})"
            for passes, error, target, spread in (cell for cell in cells if not cell.is_met)
        ]
        rest = f"; **not met** at {', '.join(missed)}" if missed else ""
        return f"{bettered} of {len(cells)} cells at or below the printed {_kind(model)}, {met} met{rest}"

    def untuned(self) -> str:
        def cell(row: str, name: str) -> Any:
            if row == "zero":
                return f"{problems.problem(name).zero_error:.4f}"
            return self.errors("untuned", name, row) if row in RULES else self.best(name, row.removeprefix("tuned "))[0]

        rows = {label: rule for rule, (label, _) in RULES.items()}
        rows |= {f"*tuned: {METHODS[model].label}*": f"tuned {model}" for model in _TUNED}
        names = self.names("untuned")
        return table("rule", rows | {"*zero model*": "zero"} if names else {}, named(names), cell)

    def times(self) -> Iterator[dict[str, Any]]:
        """Of each problem: seconds of a pass of ours, and how others compare."""
        for problem in self.names("timing"):
            took = {model: self.seconds("timing", problem, model) for model in self.results.distinct("model")}
            ours, product = took["ours"], took["float64 product"]
            cd, sgd = (printed(problem, method, "table_3").get(50) for method in ("DP-CD", "DP-SGD"))
            ratios = {model: took[model] / ours for model in ("sgd", "form")}
            ratios |= {"jittered": took["ours-jittered"] / ours, "cyclic": took["ours-cyclic"] / ours}
            ratios |= {"form_cyclic": took["paper-cyclic"] / ours, "greedy": took["greedy"] / product}
            ratios |= {"double": ours / product, "single": ours / took["float32 product"]}
            yield {"problem": problem, "ours": ours, "paper": Seeds([sgd / cd] if cd and sgd else [])} | ratios

    def seconds_table(self) -> str:
        """Table 3: so many passes at the seconds of one, and what the paper prints."""

        def cell(row: tuple[str, str], passes: float) -> str:
            name, model = row
            one = self.seconds("timing", name, model)
            return f"{passes * one.average:.4f} / {printed(name, _kind(model), 'table_3')[passes]:.4f}" if one else NONE

        names = [name for name in self.names("timing") if name in PAPER["table_3"]]
        timed = {METHODS[model].column: model for model in CLOCKED if model != "greedy"}
        rows = {(name, column): (name, model) for name in names for column, model in timed.items()}
        return table(("problem", "method"), rows, {f"{count} passes": count for count in PAPER["passes"]}, cell)

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
            Canvas(height=3.3, more=0.5).draw(folder / f"dp_cd_figure_{place}.png", panels, legend=min(3, len(panels)))

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


def _by_passes(record: Any) -> str:
    pairs = zip(record.scores["relative error"], record.scores["passes"], strict=True)
    return ", ".join(f"{error:.4f} ({passes:.0f})" for error, passes in pairs)
