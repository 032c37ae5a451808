"""The tables and figures of the DP Frank-Wolfe benchmark."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.dp_fw import problems
from benchmarks.dp_fw.methods import ENTRY, MAJORITY, METHODS, PLAIN, STEPS, printed_epsilon
from benchmarks.dp_fw.timing import TRACED
from benchmarks.frame.page import Page, Seeds
from benchmarks.frame.plots import Canvas, Line, Panel, level, spread_out
from benchmarks.frame.tables import by_epsilon, counted, named, table, verdict
from tacit.privacy import Budget

PAPER = tomllib.loads(Path(__file__).with_name("paper.toml").read_text(encoding="utf8"))
WANTED = PAPER["wanted"]
STYLES = {"algorithm 1": ("C1", "-"), "printed": ("C3", "-"), "ours": ("C0", "--")}
ORDER = (*problems.SHAPES, *problems.REAL, *problems.PAPER_SETS)
LABELS = {method.label: model for model, method in METHODS.items()}
TABLE_4 = {
    "leaky": "**not private**: the same T and lambda with exact signs",
    "long": "Frank-Wolfe, T = {:,}, lambda = 5,000",
    "short": "Frank-Wolfe, T = {:,}, lambda = 50",
    "frank-wolfe": "Frank-Wolfe by its rules",
    "auto": "auto",
    PLAIN: "scikit-learn, not private",
    MAJORITY: "the more frequent class",
}


class FrankWolfePage(Page):
    """What stands in the template."""

    template = Path(__file__).with_name("page.md")
    entry, steps, news20 = ENTRY, STEPS, 2 ** problems.REAL["news20"]
    best_of_signs = problems.best_of_signs()

    def shape(self, part: str, name: str) -> str:
        n, d, stored = self.results.size(part, name)
        told = f"{name}, {n:,} x {d:,}, {stored / n:.0f} a row"
        if name in problems.SHAPES and n < problems.SHAPES[name].rows:
            told += f" ({n / problems.SHAPES[name].rows:.2g} of the paper's rows)"
        return told if problems.is_real(name) else f"shape of {told}"

    def fast_enough(self) -> Iterator[dict[str, Any]]:
        rows = sorted(self.speed(), key=lambda row: row["epsilon"])
        for row in (row for row in rows if row["bucket"]):
            least = WANTED["speed"].get(row["name"], {}).get(f"{row['epsilon']:g}")
            if least is not None:
                yield row | {"least": least, "verdict": verdict(row["bucket"].average >= least)}

    def even_growth(self) -> Iterator[dict[str, Any]]:
        times = [record.seconds[0] for record in self.results.rows("growth") if int(record.set) >= 10**5]
        if len(times) > 1:
            found = max(times) / min(times)
            yield {"found": found, "most": WANTED["growth"], "verdict": verdict(found <= WANTED["growth"])}

    def fast_draw(self) -> Iterator[dict[str, Any]]:
        for record in self.results.rows("draws", "10000000", "bucket"):
            took = 1e6 * record.seconds[0]
            yield {"found": took, "most": WANTED["draw"], "verdict": verdict(took <= WANTED["draw"])}

    def accurate(self) -> Iterator[dict[str, Any]]:
        return self.reached("accuracy", WANTED["accuracy"])

    def count(self) -> int:
        return int(max(r.scores["made"][0] for r in self.results.rows("speed") if r.model == "bucket"))

    def fewest(self) -> int:
        brute = [r for r in self.results.rows("speed") if r.model in ("gumbel", "algorithm 1")]
        return int(min(r.scores["made"][0] for r in brute))

    def calibration(self) -> float:
        return 1e3 * max(self.results.values("calibration", "speed"))

    def speed(self) -> Iterator[dict[str, Any]]:
        """Seconds of Algorithm 1 and of ours, and how many times faster each form is."""
        for name in self.results.sets("speed", ORDER):
            for epsilon in reversed(self.results.epsilons("speed", name)):
                rungs = ("algorithm 1", "bucket", "two-level", "gumbel")
                slow, *taken = (self.seconds("speed", name, rung, epsilon) for rung in rungs)
                ratios = [slow / took for took in taken]
                row = {"name": name, "epsilon": epsilon, "shape": self.shape("speed", name), "slow": slow}
                row |= dict(zip(rungs[1:], ratios, strict=True)) | {"ours": taken[0]}
                printed = PAPER["speed"].get(name, {}).get(f"{epsilon:g}")
                (one, *_) = self.results.rows("speed", name, "algorithm 1", epsilon)
                row["drawing"] = one.scores.get("drawing", [0.0])[0] / one.scores.get("iteration", [1.0])[0]
                runs = (len(self.results.rows("speed", name, rung, epsilon)) for rung in ("bucket", "algorithm 1"))
                row["runs"] = "{}, {}".format(*runs)
                row["paper"] = "{:,.0f}x, {:,.0f}x".format(*printed) if printed else "-"
                yield row | {s: self.scores(s, "speed", name, "bucket", epsilon) for s in ("accuracy", "auc")}

    def grid(self) -> Iterator[dict[str, Any]]:
        """Over epsilon and iterations: seconds of Algorithm 1 and of ours, and the scores of ours."""
        for name in self.results.sets("grid", ORDER):
            for row in self.cells("grid", name):
                if not row["model"].endswith("algorithm 1"):
                    yield row | self._against("grid", name, row, f"{row['model']}, algorithm 1")

    def _against(self, part: str, name: str, row: dict[str, Any], other: str) -> dict[str, Any]:
        slow = self.seconds(part, name, other, row["epsilon"])
        told = {"data": name, "rule": " (the rule's)" if row["model"] == "0" else "", "count": int(row["note"])}
        return told | {"slow": slow, "ours": row["seconds"], "ratio": slow / row["seconds"]}

    def inputs(self) -> Iterator[dict[str, Any]]:
        for row in self.cells("inputs"):
            if row["model"] == "ours":
                n, d, stored = row["size"]
                told = {"n": n, "d": d, "density": stored / (n * d)}
                told["real"] = f"{row['set']}, " if problems.is_real(row["set"]) else ""
                yield row | told | self._against("inputs", row["set"], row, "algorithm 1")

    def never_slower(self) -> Iterator[dict[str, Any]]:
        squared = [row for row in self.squared_rows() if row["loss"] == "squared"]
        for loss, rows in {"logistic": list(self.inputs()), "squared": squared}.items():
            ratios = [row["ratio"].average for row in rows]
            if ratios:
                told = verdict(min(ratios) >= 1.0)
                yield {"cells": len(ratios), "loss": loss, "least": min(ratios), "verdict": told}

    def fast_and_good(self) -> Iterator[dict[str, Any]]:
        for row in self.grid():
            if (row["data"], row["model"], row["epsilon"]) == ("news20", "0", 1.0):
                good = row["ratio"].average >= WANTED["own"] and row["auc"].average >= WANTED["own_auc"]
                yield row | {"least": WANTED["own"], "least_auc": WANTED["own_auc"], "verdict": verdict(good)}

    def squared_rows(self) -> Iterator[dict[str, Any]]:
        for row in self.cells("squared"):
            if not row["model"].endswith("algorithm 1"):
                against = self._against("squared", row["set"], row, f"{row['model']}, algorithm 1")
                yield row | {"loss": row["model"]} | against

    def steps_table(self) -> Iterator[dict[str, Any]]:
        for name in self.results.sets("steps", ORDER):
            for epsilon in self.results.epsilons("steps", name):
                found = {"data": name, "epsilon": epsilon}
                for key, model in (("rule", "rule"), ("b", "appendix B")):
                    rows = self.results.rows("steps", name, model, epsilon)
                    found |= {f"{key}_count": int(rows[0].note), key: self.scores("auc", "steps", name, model, epsilon)}
                yield found

    def printed_costs(self) -> Iterator[dict[str, Any]]:
        """What the paper's noise costs on the rows of news20, as sums of gradients are printed."""
        if not self.results.rows("table 4", "news20"):
            return
        rows = self.results.size("table 4", "news20")[0]
        for count, radius, epsilon in ((4_000, 50.0, 1.0), (4_000, 50.0, 0.1), (400_000, 5_000.0, 0.1)):
            spent = printed_epsilon(rows, count, radius, epsilon, rows**-1.5)
            yield {"count": count, "radius": radius, "epsilon": epsilon, "spent": spent}

    def auto_rows(self) -> Iterator[dict[str, Any]]:
        for name in self.results.sets("auto"):
            models = ("gradient", "frank-wolfe", "auto")
            found = {
                key: self.scores("accuracy", "auto", name, model) for key, model in zip("gfa", models, strict=True)
            }
            n, d, _ = self.results.size("auto", name)
            taken = self.results.rows("auto", name, "auto")[0].note
            yield {"name": name, "nu": (d + 1) / (n * Budget(1.0, n**-1.5).mu), "taken": taken, **found}

    def draws(self) -> str:
        rows = {f"{int(name):,}": name for name in self.results.sets("draws")}
        return table(
            "columns",
            rows,
            named(self.results.distinct("model", "draws")),
            lambda *at: f"{self.seconds('draws', *at).us:,.2f}",
        )

    def kdda(self) -> Iterator[dict[str, Any]]:
        for row in self.cells("kdda"):
            size, peak = row["bytes"].average, row["peak"].average
            found = {"over": peak / size, "GiB": size / 2**30, "peak_GiB": peak / 2**30}
            found["entries"] = row["size"][2] / row["size"][0]
            yield row | found | {"most": WANTED["memory"], "verdict": verdict(peak / size <= WANTED["memory"])}

    def table_4(self) -> Iterator[dict[str, Any]]:
        for name in self.results.sets("table 4", ORDER):
            told = PAPER["scores"][name].items()
            printed = {score: Seeds([value], "{0[0]:.3f}".format) for score, value in told}
            yield {"shape": self.shape("table 4", name), "label": "printed, not private", "runs": "-"} | printed
            for model, label in TABLE_4.items():
                for row in self.cells("table 4", name, model):
                    yield row | {"shape": "", "label": label.format(int(row["note"])) if "{" in label else label}

    def accuracy_sets(self) -> Iterator[dict[str, Any]]:
        for name in self.results.sets("accuracy", ORDER):
            n, d, stored = self.results.size("accuracy", name)
            levels = {"plain": ("accuracy", PLAIN), "auc": ("auc", PLAIN), "majority": ("accuracy", MAJORITY)}
            found = {key: self.scores(score, "accuracy", name, model) for key, (score, model) in levels.items()}
            tables = "\n\n".join(self._accuracy(name))
            yield {"name": name, "n": n, "d": d, "entries": stored / n, "tables": tables, **found}

    def _accuracy(self, name: str) -> Iterator[str]:
        """Tables of accuracy, of AUC, and of sparsity with seconds."""
        epsilons = self.results.epsilons("accuracy", name)
        auto = (self.results.rows("accuracy", name, "auto", epsilon) for epsilon in epsilons)
        taken = ", ".join(dict.fromkeys(record.note for rows in auto for record in rows))
        rows = {f"**auto** ({taken})" if model == "auto" else label: model for label, model in LABELS.items()}

        def used(model: str, epsilon: float) -> str:
            zero = self.scores("sparsity", "accuracy", name, model, epsilon)
            return f"{zero:.3f}, {self.seconds('accuracy', name, model, epsilon):.2g} s" if zero else "-"

        columns = by_epsilon(epsilons)
        for corner, score in {"accuracy": "accuracy", "AUC": "auc"}.items():
            cell = lambda m, e, score=score: self.scores(score, "accuracy", name, m, e)  # noqa: E731
            yield table(corner, rows, columns, cell, whole=True)
        yield table("zero weights, seconds", LABELS, columns, used, whole=True)

    def duels(self) -> str:
        """How often Frank-Wolfe is not behind."""

        def cell(model: str, epsilon: float) -> str:
            pairs = (
                [self.scores("accuracy", "accuracy", name, m, epsilon) for m in ("frank-wolfe", model)]
                for name in self.results.sets("accuracy")
            )
            return counted(pairs, np.greater_equal)

        others = {label: model for label, model in LABELS.items() if model != "frank-wolfe"}
        return table("against", others, by_epsilon(self.results.epsilons("accuracy")), cell)

    def signs(self) -> Iterator[dict[str, Any]]:
        for row in self.cells("signs"):
            method = METHODS.get(row["model"])
            yield row | {"label": method.label if method else "scikit-learn, not private"}

    def traced_count(self) -> int:
        return int(max(r.scores["iterations"][-1] for r in self.results.rows("trace"))) + 1

    def traces(self) -> Iterator[dict[str, Any]]:
        """Where the traces end."""
        for name in self.results.sets("trace", ORDER):
            ends = {r.model: {key: v[-1] for key, v in r.scores.items()} for r in self.results.rows("trace", name)}
            for form, end in ends.items():
                fewer = ends["algorithm 1"]["operations"] / end["operations"]
                yield {"shape": self.shape("trace", name), "form": TRACED[form], "fewer": fewer, **end}

    def figures(self, folder: Path) -> None:
        names = self.results.sets("trace", ORDER)
        panels = [
            Panel(
                "",
                "iterations",
                "pops for each nonzero weight",
                [self._pops(name) for name in names if self.results.rows("trace", name, "ours")],
            )
        ]
        Canvas().draw(folder / "dp_fw_figure_3.png", panels if names else [], legend=2)
        for place, by in ((1, "iterations"), (4, "operations")):
            panels = [Panel(name, by, "gap", list(self._gaps(name, by))) for name in names]
            Canvas().draw(folder / f"dp_fw_figure_{place}.png", panels, legend=2)
        ratios = [line for place, name in enumerate(names) for line in self._ratios(name, f"C{place}")]
        panels = [Panel("", "iterations", "times fewer operations", ratios)] if ratios else []
        Canvas().draw(folder / "dp_fw_figure_2.png", panels, legend=2)
        panels = [self._accuracy_panel(name) for name in self.results.sets("accuracy", ORDER)]
        Canvas(height=3.4).draw(folder / "dp_fw_accuracy.png", panels, legend=3)

    def _pops(self, name: str) -> Line:
        (record,) = self.results.rows("trace", name, "ours")
        return Line(name, self._pops_of(record), record.scores["iterations"])

    @staticmethod
    def _pops_of(record: Any) -> Any:
        """In an iteration, on average so far, for each weight that is not zero."""
        return np.array(record.scores["pops"]) / np.array(record.scores["iterations"])

    def most_pops(self) -> float:
        return max(float(self._pops_of(r).max()) for r in self.results.rows("trace") if r.model == "ours")

    def _gaps(self, name: str, by: str) -> Iterator[Line]:
        """The true gap of all forms; by iterations also the one that the printed form believes in."""
        for form, (color, dashes) in STYLES.items():
            for record in self.results.rows("trace", name, form):
                x, style = record.scores[by], {"color": color, "linestyle": dashes, "linewidth": 1.3}
                yield Line(TRACED[form], record.scores["gap"], x, style)
                if by == "iterations" and form == "printed":
                    believed = np.abs(record.scores["tracked"])
                    label = "what Algorithm 2 as printed takes its gap for"
                    yield Line(label, believed, x, {"color": color, "linestyle": ":"})

    def _ratios(self, name: str, color: str) -> Iterator[Line]:
        one = np.array(self.results.rows("trace", name, "algorithm 1")[0].scores["operations"])
        for form, told, dashes in (("ours", "", "-"), ("printed", ", as printed", ":")):
            for record in self.results.rows("trace", name, form):
                style = {"color": color, "linestyle": dashes, "linewidth": 1.3}
                ratio = one / np.array(record.scores["operations"])
                yield Line(f"{name}{told}", ratio, record.scores["iterations"], style)

    def _accuracy_panel(self, name: str) -> Panel:
        epsilons, drawn = self.results.epsilons("accuracy", name), []
        for place, (label, model) in enumerate(LABELS.items()):
            style = {"color": "black", "linewidth": 3.0} if model == "auto" else {"color": f"C{place}"}
            found = {e: self.scores("accuracy", "accuracy", name, model, e) for e in epsilons}
            drawn += spread_out(label, found, style)
        for label, dashes in ((PLAIN, "--"), (MAJORITY, ":")):
            found = self.scores("accuracy", "accuracy", name, label)
            drawn += [level(label, found.average, dashes)] if found else []
        return Panel(name, "epsilon", "test accuracy", drawn, ("log", "linear"), epsilons)
