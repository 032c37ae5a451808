"""The tables and the plot of the PCA benchmark."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.dp_pca import paper, problems
from benchmarks.dp_pca.methods import ALL, AUTO, PLAIN, RANDOM, SETTINGS, SOLVERS
from benchmarks.frame.page import Page, Seeds
from benchmarks.frame.plots import POINTS, Canvas, Line, Panel
from benchmarks.frame.tables import by_epsilon, lines, spread, table, verdict

LABELS = {
    "all columns, not private": ALL,
    "not private": PLAIN,
    "`gauss`": "gauss",
    "`stochastic` (DP-SPCA)": "stochastic",
    "`variance-reduced` (DP-VRPCA)": "variance-reduced",
    "`power` (PPI)": "power",
    "`mod-sulq`": "mod-sulq",
    "random directions": RANDOM,
}
_SOLVER_ROWS = {label: model for model in SOLVERS for label in LABELS if LABELS[label] == model}
PAPERS = ("stochastic", "variance-reduced")
TIMED = {
    ("MNIST", "fit"): "a fit with `gauss` over the plain products",
    ("MNIST", "pass"): "a dense pass of `stochastic` over the product",
    ("news20", "pass"): "a sparse pass of `stochastic` over the product",
}


class PcaPage(Page):
    """What stands in the template."""

    template = Path(__file__).with_name("page.md")
    columns, delta = problems.COLUMNS, paper.DELTA
    rule_rows, rule_columns = problems.RULE_ROWS, problems.LEUKEMIA_COLUMNS
    few_columns = problems.FEW_COLUMNS

    def cell(self, values: Sequence[float]) -> str:
        return spread(values, 4 if values and np.mean(values) > 0.99 else 3)

    def captured(self, *where: Any) -> Seeds:
        return self.scores("captured", *where)

    def wanted(self) -> Iterator[dict[str, Any]]:
        for name in self.results.sets("targets"):
            asked, size = {"prepared": "", "peers": ("", "")} | paper.WANTED[name], self.results.size("targets", name)
            for epsilon, least, peer in zip((0.1, 1.0), asked["least"], asked["peers"], strict=True):
                row = {"where": ("targets", name, AUTO, epsilon), "least": least, "peer": peer, "size": size}
                yield from self.reached("captured", [row | {"name": f"{name}{asked['prepared']}", "epsilon": epsilon}])

    def kept(self) -> Iterator[dict[str, Any]]:
        """What solvers by their names are asked for."""
        for name, solvers in paper.KEPT.items():
            for solver, asked in solvers.items():
                for epsilon, least in zip((0.1, 1.0), asked, strict=True):
                    row = {"where": ("figure", name, solver, epsilon), "least": least, "solver": solver}
                    yield from self.reached("captured", [row | {"name": name, "epsilon": epsilon}])

    def above_gauss(self) -> Iterator[dict[str, Any]]:
        ours, gauss = (self.captured("figure", "news20", solver, 1.0) for solver in ("stochastic", "gauss"))
        if ours:
            told = verdict(ours.average >= max(0.45, np.mean(gauss or [0])))
            yield {"found": ours, "gauss": f"`gauss` {gauss}" if gauss else "", "verdict": told}

    def fast_enough(self) -> Iterator[dict[str, Any]]:
        for where, what in TIMED.items():
            for row in self.cells("timing", *where):
                ratio = row["private"] / row["plain"]
                yield row | {"what": what, "ratio": ratio, "verdict": verdict(ratio.average <= 1.3)}

    def figure_sets(self) -> Iterator[dict[str, Any]]:
        for name in self.results.sets("figure", order=problems.PAPER):
            size, chance = self.results.size("figure", name), self.captured("figure", name, RANDOM)
            yield {"name": name, "size": size, "chance": chance, "captured_table": self._captured_table(name)}

    def _captured_table(self, name: str) -> str:
        epsilons = self.results.epsilons("figure", name)

        def cell(model: str, epsilon: float | None) -> Any:
            if epsilon is None:
                return ", ".join(f"{len(self.results.rows('figure', name, model, e))}" for e in epsilons)
            return self.captured("figure", name, model, epsilon)

        return table("captured", _SOLVER_ROWS, by_epsilon(epsilons) | {"seeds": None}, cell, whole=True)

    def next_to_the_best(self) -> Iterator[dict[str, Any]]:
        """How far the two solvers of the paper are from the best, and from each other."""
        for name in self.results.sets("figure", order=problems.PAPER):
            for epsilon in self.results.epsilons("figure", name):
                found = {model: self.captured("figure", name, model, epsilon) for model in SOLVERS}
                means = {model: values.average for model, values in found.items() if values}
                best = max(means, key=lambda model: means[model])
                gaps = {model.replace("-", "_"): means[best] - means[model] for model in PAPERS}
                ahead = means["variance-reduced"] - means["stochastic"]
                yield gaps | {"name": name, "epsilon": epsilon, "best": best, "most": means[best], "ahead": ahead}

    def rank_sets(self) -> Iterator[dict[str, Any]]:
        for name in self.results.sets("ranks", order=problems.PAPER):
            ranks = self._ranks(name)

            def cell(solver: str, k: int, name: str = name, ranks: list[int] = ranks) -> Any:
                if k == 0:
                    return ", ".join(f"{len(self.results.rows('ranks', name, f'{solver}, k = {k}'))}" for k in ranks)
                return self.captured("ranks", name, f"{solver}, k = {k}")

            columns = {f"k = {k}": k for k in ranks} | {"seeds": 0}
            drawn = table("captured", _SOLVER_ROWS, columns, cell, whole=True)
            yield {"name": name, "size": self.results.size("ranks", name), "rank_table": drawn}

    def printed(self) -> Iterator[dict[str, Any]]:
        for name in self.results.sets("printed"):
            n = self.results.size("printed", name)[0]
            for model in self.results.distinct("model", "printed", name):
                if model != RANDOM:
                    row = {"n": n, "name": name, "model": model, "most": 1.0 / n}
                    row["plain"], row["noisy"] = (self.captured("printed", name, model, e) for e in (None, 0.1))
                    yield row | {"chance": self.captured("printed", name, RANDOM, None)}

    def settings(self) -> str:
        names = self.results.sets("settings", order=problems.CHOSE)
        where = [(name, epsilon) for name in names for epsilon in self.results.epsilons("settings", name)]

        def cell(model: str, at: tuple[str, float]) -> str:
            return f"{self.captured('settings', at[0], model, at[1]):.3f}"

        rows = {label: label for label in SETTINGS}
        return table("captured", rows, {f"{name}, {e:g}": (name, e) for name, e in where}, cell) if where else ""

    def table(self) -> str:
        names = [name for name in problems.TABLE if self.results.rows("table", name)]
        head, rows, counts = [], [[label] for label in LABELS], ["SVMs of each row"]
        for name in names:
            place, size = problems.TABLE.index(name), self.results.size("table", name)
            head += [f"{name}, k = {size[2]}", "printed (Real-sim)" if name == "news20" else "printed"]
            most = len(self.results.values("accuracy", "table", name, RANDOM))
            counts += [f"{most}", "100"]
            for row, model in zip(rows, LABELS.values(), strict=True):
                found = self.results.values("accuracy", "table", name, model)
                fewer = f" ({len(found)} SVMs)" if 0 < len(found) < most else ""
                row += [spread(found, 1, 100.0) + fewer, paper.TABLE_3[model][place] if model in paper.TABLE_3 else "-"]
        return lines(["accuracy, %", *head], [*rows, counts] if names else ())

    def rules(self) -> str:
        rows, head = [], []
        for name in self.results.sets("rules"):
            n, d, k = self.results.size("rules", name)
            row, head = [f"{name}, {n:,} x {d:,}" + (f", k = {k}" if k != 5 else "")], []
            for epsilon in self.results.epsilons("rules", name):
                models = set(self.results.distinct("model", "rules", name)) - {"rule", RANDOM}
                best, quantile = max((self.captured("rules", name, m, epsilon).average, m) for m in models)
                row += [f"{self.captured('rules', name, 'rule', epsilon)}", f"{best:.3f} ({quantile})"]
                head += [f"rule, epsilon = {epsilon:g}", "best radius (quantile)"]
            rows.append([*row, f"{self.captured('rules', name, RANDOM, epsilon):.3f}"])
        return lines(["data", *head, "random"], rows)

    def timing(self) -> Iterator[dict[str, Any]]:
        for row in sorted(self.cells("timing"), key=lambda row: (row["set"], row["model"])):
            for key, part in (("", ""), (" quarter", ", a quarter of the rows")):
                if f"private{key}" in row:
                    private, plain = row[f"private{key}"], row[f"plain{key}"]
                    yield row | {"part": part, "private": private, "plain": plain, "ratio": private / plain}

    def figures(self, folder: Path) -> None:
        """Figure 1: the sum of squared sines against epsilon, and against k."""
        panels = [*self._against_epsilon(), *self._against_k()]
        Canvas(height=3.0).draw(folder / "dp_pca_figure_1.png", panels, across=min(4, len(panels)) or None, legend=5)

    def _against_epsilon(self) -> Iterator[Panel]:
        for name in self.results.sets("figure", order=problems.PAPER):
            epsilons, drawn = self.results.epsilons("figure", name), []
            for place, model in enumerate(SOLVERS):
                x = [e for e in epsilons if self.results.rows("figure", name, model, e)]
                y = [self.scores("error", "figure", name, model, e).average for e in x]
                drawn.append(Line(model, y, x, POINTS | {"color": f"C{place}", "linewidth": 1.3}))
            yield Panel(name, "epsilon", "sum of squared sines", drawn, ticks=epsilons)

    def _against_k(self) -> Iterator[Panel]:
        for name in self.results.sets("ranks", order=problems.PAPER):
            ranks, drawn = self._ranks(name), []
            for place, model in enumerate(SOLVERS):
                y = [self.scores("error", "ranks", name, f"{model}, k = {k}").average / k for k in ranks]
                drawn.append(Line(model, y, ranks, POINTS | {"color": f"C{place}", "linewidth": 1.3}))
            yield Panel(f"{name}, epsilon = 0.1", "k", "sum of squared sines / k", drawn, ticks=ranks)

    def _ranks(self, name: str) -> list[int]:
        return sorted({int(model.rpartition(" = ")[2]) for model in self.results.distinct("model", "ranks", name)})
