"""The tables and the plot of the PCA benchmark."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.dp_pca import paper, problems
from benchmarks.dp_pca.methods import AUTO, PLAIN, RANDOM, SOLVERS
from benchmarks.frame.page import Page
from benchmarks.frame.plots import Canvas, Line, Panel
from benchmarks.frame.tables import by_epsilon, lines, number, spread, table, verdict


class Asked(NamedTuple):
    """A task, the captured variance to reach at epsilon 0.1 and 1, how rows are prepared, and what peers had."""

    k: int
    center: bool
    delta: float
    least: tuple[float, float]
    prepared: str = ""
    peers: tuple[str, str] = ("", "")


_NO_ANSWER = "diffprivlib gave no answer"
ASKED = {
    "a9a": Asked(10, False, 1e-3, (0.985, 0.999)),
    "MNIST": Asked(10, False, 1e-3, (0.975, 0.999)),
    "digits": Asked(10, True, 1e-5, (0.35, 0.92), "rows of norm 1, centred", ("diffprivlib .21", _NO_ANSWER)),
    "digits, bounds alone": Asked(10, True, 1e-5, (0.35, 0.92), "entries over 16, rows over 8, centred"),
    "breast_cancer": Asked(
        5,
        True,
        1e-5,
        (0.28, 0.80),
        "public bounds, rows of norm 1, centred",
        ("diffprivlib .17, OpenDP .22", _NO_ANSWER),
    ),
    "breast_cancer, bounds alone": Asked(5, True, 1e-5, (0.28, 0.80), "public bounds over the root of 30, centred"),
    "California": Asked(
        2, True, 1e-5, (0.99, 0.995), "public bounds over the root of 8, centred", ("diffprivlib .89, OpenDP .63", "")
    ),
    "MNIST, centred": Asked(10, True, 1e-5, (0.91, 0.995)),
}
LABELS = {
    PLAIN: "not private",
    "gauss": "`gauss`",
    "stochastic": "`stochastic` (DP-SPCA)",
    "variance-reduced": "`variance-reduced` (DP-VRPCA)",
    "power": "`power` (PPI)",
    "mod-sulq": "`mod-sulq`",
    RANDOM: "random directions",
}
TIMED = {
    ("MNIST", "fit"): "a fit with `gauss` over the plain products",
    ("MNIST", "pass"): "a dense pass of `stochastic` over the product",
    ("news20", "pass"): "a sparse pass of `stochastic` over the product",
}


def _cell(values: Sequence[float]) -> str:
    return spread(values, 4 if values and np.mean(values) > 0.99 else 3)


class PcaPage(Page):
    """What stands in the template."""

    template = Path(__file__).with_name("page.md")
    columns, delta = problems.COLUMNS, paper.DELTA
    rule_rows, rule_columns = problems.RULE_ROWS, problems.LEUKEMIA_COLUMNS

    def captured(self, *where: Any) -> list[float]:
        return self.results.values("captured", *where)

    def targets(self) -> str:
        return lines(["what", "asked", "measured", "others", ""], self._targets())

    def _targets(self) -> Iterator[list[str]]:
        for name in self.results.sets("targets"):
            (n, d, k), asked = self.results.size("targets", name), ASKED[name]
            for epsilon, least, peer in zip((0.1, 1.0), asked.least, asked.peers, strict=True):
                found = self.captured("targets", name, AUTO, epsilon)
                if found:
                    how = f" ({asked.prepared})" if asked.prepared else ""
                    what = f"{name}{how}, {n:,} x {d:,}, k = {k}, epsilon = {epsilon:g}"
                    yield [what, f"at least {least:g}", _cell(found), peer, verdict(np.mean(found) >= least)]
        ours, gauss = (self.captured("figure", "news20", solver, 1.0) for solver in ("stochastic", "gauss"))
        if ours:
            what, asked = (
                "news20, k = 10, epsilon = 1, `stochastic`, and above `gauss`",
                "at least 0.45 (`gauss`: 0.32)",
            )
            reached = np.mean(ours) >= max(0.45, np.mean(gauss or [0]))
            yield [what, asked, _cell(ours), f"`gauss` {_cell(gauss)}" if gauss else "", verdict(reached)]
        for (name, model), what in TIMED.items():
            for record in self.results.rows("timing", name, model):
                ratio = record.scores["private"][0] / record.scores["plain"][0]
                yield [f"{name}: {what}, time", "at most 1.3", f"{ratio:.2f}", "", verdict(ratio <= 1.3)]

    def figure_sets(self) -> Iterator[dict[str, Any]]:
        for name in self.results.sets("figure"):
            n, d, _ = self.results.size("figure", name)
            chance = _cell(self.captured("figure", name, RANDOM))
            yield {"name": name, "n": n, "d": d, "chance": chance, "captured_table": self._captured_table(name)}

    def _captured_table(self, name: str) -> str:
        def cell(model: str, epsilon: float | None) -> str:
            if epsilon is None:
                return number(self.results.seconds("figure", name, model), ".3g")
            return _cell(self.captured("figure", name, model, epsilon))

        columns = by_epsilon(self.results.epsilons("figure", name)) | {"seconds": None}
        return table("captured", {LABELS[model]: model for model in SOLVERS}, columns, cell, whole=True)

    def table(self) -> str:
        def cell(model: str, column: tuple[str, bool]) -> str:
            name, printed = column
            if printed:
                return paper.TABLE_3[model][problems.PAPER.index(name)] if model in paper.TABLE_3 else "-"
            return spread(self.results.values("accuracy", "table", name, model), 1, 100.0)

        names = self.results.sets("table", order=problems.PAPER)
        found = {label: model for model, label in LABELS.items()} if names else {}
        columns = [(name, printed) for name in names for printed in (False, True)]
        rows = [[label, *(cell(model, column) for column in columns)] for label, model in found.items()]
        printed = {"news20": "printed (Real-sim)"}
        head = [part for name in names for part in (name, printed.get(name, "printed"))]
        return lines(["accuracy, %", *head], rows)

    def noise(self) -> str:
        rows = []
        for r in self.results.rows("noise"):
            multiplier, true = r.scores["multiplier"][0], r.scores["epsilon"][0]
            rows.append([f"{r.set}, n = {r.size[0]:,}", r.model, f"{r.epsilon:g}", f"{multiplier:.3f}", f"{true:.3g}"])
        return lines(["data", "algorithm", "epsilon named", "noise over G", "true epsilon"], rows)

    def rules(self) -> str:
        rows, head = [], []
        for name in self.results.sets("rules"):
            n, d, k = self.results.size("rules", name)
            row, head = [f"{name}, {n:,} x {d:,}" + (f", k = {k}" if k != 5 else "")], []
            for epsilon in self.results.epsilons("rules", name):
                models = set(self.results.distinct("model", "rules", name)) - {"rule", RANDOM}
                means = ((np.mean(self.captured("rules", name, m, epsilon)), m) for m in models)
                best, quantile = max(means)
                row += [_cell(self.captured("rules", name, "rule", epsilon)), f"{best:.3f} ({quantile})"]
                head += [f"rule, epsilon = {epsilon:g}", "best radius (quantile)"]
            rows.append([*row, f"{np.mean(self.captured('rules', name, RANDOM, epsilon)):.3f}"])
        return lines(["data", *head, "random"], rows)

    def timing(self) -> str:
        rows = []
        for r in sorted(self.results.rows("timing"), key=lambda r: (r.set, r.model)):
            for part, told in (("", ""), (" quarter", ", a quarter of the rows")):
                if f"private{part}" in r.scores:
                    (ours,), (plain,) = r.scores[f"private{part}"], r.scores[f"plain{part}"]
                    what = [f"{r.set}, {r.size[0]:,} x {r.size[1]:,}", r.model + told]
                    rows.append([*what, f"{ours:.3g}", f"{plain:.3g}", f"{ours / plain:.2f}"])
        return lines(["data", "what", "private, s", "plain, s", "ratio"], rows)

    def figures(self, folder: Path) -> None:
        """Figure 1: the sum of squared sines against epsilon."""
        panels = []
        for name in self.results.sets("figure"):
            epsilons, drawn = self.results.epsilons("figure", name), []
            for place, model in enumerate(SOLVERS):
                x = [e for e in epsilons if self.results.rows("figure", name, model, e)]
                y = [np.mean(self.results.values("error", "figure", name, model, e)) for e in x]
                style = {"color": f"C{place}", "marker": "o", "markersize": 3, "linewidth": 1.3}
                drawn.append(Line(model, y, x, style))
            panels.append(Panel(name, "epsilon", "sum of squared sines", drawn, ticks=epsilons))
        Canvas(height=3.4, more=0.0).draw(folder / "dp_pca_figure_1.png", panels, legend=5)
