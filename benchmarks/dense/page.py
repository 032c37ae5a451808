"""The tables and plots of the dense benchmark: means and spreads over seeds, a row for each set and model."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import sklearn

from benchmarks.dense.methods import MAIN_SCORE, PLAIN
from benchmarks.dense.peers import grids, setup
from benchmarks.frame import sets
from benchmarks.frame.page import Found, Page
from benchmarks.frame.plots import POINTS, Canvas, Line, Panel, level
from benchmarks.frame.records import Record
from benchmarks.frame.tables import lines
from tacit.solvers import SOLVERS

TIMED = ("tacit", "scikit-learn")
LOWER_IS_BETTER = ("log_loss",)
JUDGED_AT = (0.1, 1.0, 10.0)  # where the default is compared with the better peer
LOWEST_R2 = -0.5  # worse than guessing the mean; axes end here


def cell(records: Iterable[Record], metric: str) -> tuple[float, float] | None:
    """Mean and deviation over seeds, at the point of a peer's grid with the best mean; of times, the median."""
    rows = [r.seconds if metric == "seconds" else r.scores[metric] for r in records if not r.refused]
    if not rows:
        return None
    values = np.array(rows, dtype=np.float64)
    if metric == "seconds":
        return float(np.median(values)), float(values.std())
    sign = -1.0 if metric in LOWER_IS_BETTER else 1.0
    finite = np.isfinite(values).all(axis=0)  # a peer may diverge
    if not finite.any():
        return -sign * math.inf, math.nan
    best = int(np.where(finite, sign * values.mean(axis=0), -math.inf).argmax())
    return float(values[:, best].mean()), float(values[:, best].std())


def shown(found: tuple[float, float] | None, metric: str) -> str:
    """A cell of a table."""
    if found is None:
        return "-"
    if metric == "seconds":
        return f"{found[0]:.3g}"
    return "{:.3f} ± {:.3f}".format(*found) if found[0] >= -1.0 else "below -1"


class DensePage(Page):
    """What stands in both templates. Parts are "raw" and "public"."""

    template = Path(__file__).with_name("page.md")
    sklearn = sklearn.__version__

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.table = Found(lambda name: self._table(*name.split()))
        self.grid = Found(lambda name: grids.describe(*name.split()))
        self.ours, self.plain = (self.seconds("timing", "adult", model) for model in TIMED)

    def seeds(self) -> int:
        return max(map(self.results.most, ("raw", "public")))

    def sets(self, part: str, kind: str) -> list[str]:
        """The sets of that kind with results, in the order of the frame's."""
        public = {name: told["kind"] for name, told in sets.PUBLIC.items()}
        kinds = public if part == "public" else {name: entry.kind for name, entry in sets.SETS.items()}
        return [name for name in kinds if kinds[name] == kind and self.results.rows(part, name)]

    def models(self, *where: str) -> list[str]:
        """Private models with results there: auto, our solvers, the peers."""
        found = self.results.distinct("model", *where)
        taken = {row.note for row in self.results.rows(*where) if row.model == "auto"}  # the same fits, other noise
        return [model for model in ("auto", *SOLVERS, *setup.PEERS) if model in found and {model} != taken]

    def best(self, metric: str, *where: Any) -> tuple[float, float] | None:
        return cell(self.results.rows(*where), metric)

    def _table(self, part: str, kind: str, metric: str) -> str:
        """One score of all sets of a kind: a column for each epsilon, and one for scikit-learn without privacy."""
        epsilons, rows = self.results.epsilons(part), []
        kinds = list(MAIN_SCORE) if kind == "any" else [kind]
        for name in (name for kind in kinds for name in self.sets(part, kind)):
            first = [*self._about(part, name), shown(self.best(metric, part, name, PLAIN), metric)]
            for model in self.models(part, name):
                cells = [shown(self.best(metric, part, name, model, epsilon), metric) for epsilon in epsilons]
                rows.append([*first, self._label(part, name, model), *cells])
                first = [""] * len(first)
        head = ["data", "rows x columns", *(["role"] if part == "raw" else []), "not private", "model"]
        return lines([*head, *(f"epsilon {epsilon:g}" for epsilon in epsilons)], rows)

    def _about(self, part: str, name: str) -> list[str]:
        """What the set is, and in "raw" whether it chose or judges."""
        rows, columns, classes = self.results.size(part, name)
        size = f"{rows:,} x {columns}" + (f", {classes} classes" if classes > 2 else "")
        if part == "public":
            return [name, size]
        entry = sets.SETS[name]
        return [f"{name} ({entry.note})" if entry.note else name, size, "chose" if entry.chose else "judges"]

    def _label(self, part: str, name: str, model: str) -> str:
        """What a row is called; of diffprivlib it says what its numbers are worth."""
        if model == "auto":
            budgets = (self.results.rows(part, name, "auto", epsilon) for epsilon in self.results.epsilons(part))
            return f"**auto** ({', '.join(dict.fromkeys(r.note for rows in budgets for r in rows if r.note))})"
        if model == "diffprivlib":
            regression = part == "public" and sets.PUBLIC[name]["kind"] == "regression"
            return "diffprivlib, pure epsilon" + (", under-noises" if regression else "")
        return {"opacus": "opacus, tuned DP-SGD"}.get(model, model)

    def verdict(self) -> str:
        """In how many cells of the classification sets the default is not below the better peer by a standard error."""
        cells, behind = 0, []
        for name in self.sets("public", "classification"):
            for epsilon in JUDGED_AT:
                ours = self.best("accuracy", "public", name, "auto", epsilon)
                theirs = [self.best("accuracy", "public", name, peer, epsilon) for peer in setup.PEERS]
                most = max((found for found in theirs if found is not None), default=None)
                if ours is not None and most is not None:
                    cells += 1
                    seeds = len(self.results.rows("public", name, "auto", epsilon))
                    error = math.hypot(ours[1], most[1]) / math.sqrt(max(seeds - 1, 1))
                    if ours[0] < most[0] - error:
                        behind.append(f"{name} at {epsilon:g} ({ours[0]:.3f} against {most[0]:.3f})")
        rest = f"; behind on {', '.join(behind)}" if behind else ""
        where = ", ".join(f"{epsilon:g}" for epsilon in JUDGED_AT)
        allowed = "or below by no more than a standard error of the difference"
        told = f"At epsilon {where}, `auto` is above the better peer, {allowed}, in"
        return f"{told} {cells - len(behind)} of {cells}{rest}." if cells else ""

    def skipped(self) -> str:
        """Peers without results."""
        absent = [peer for peer in setup.PEERS if peer not in self.models("public")]
        return "\n".join(f"skipped: {peer} ({setup.why_missing(peer) or 'not run'})" for peer in absent)

    def ratio(self) -> float:
        return self.ours.average / self.plain.average

    def refused(self) -> str:
        return "Refused:" if self.refusals() else ""

    def refusals(self) -> str:
        """What a solver would not fit, and what it said."""
        return "\n".join(
            dict.fromkeys(f"- {r.model} on {r.set}: {r.refused}" for r in self.results.rows() if r.refused)
        )

    def write(self, folder: Path, name: str) -> None:
        super().write(folder, name)
        self.write_as(folder, f"{name}_details", "details.md")

    def figures(self, folder: Path) -> None:
        """Score against epsilon, one panel for each set."""
        for part, name in (("raw", "dense"), ("public", "dense_public")):
            panels = [self._panel(part, kind, name) for kind in MAIN_SCORE for name in self.sets(part, kind)]
            Canvas(3.4, 2.4, 0.4, 75).draw(folder / f"{name}.png", panels, min(4, len(panels)) or None, 8)

    def _panel(self, part: str, kind: str, name: str) -> Panel:
        metric, drawn = MAIN_SCORE[kind], []
        colors = {model: f"C{place % 10}" for place, model in enumerate(self.models(part))} | {"auto": "black"}
        for model in self.models(part, name):
            found = [(e, self.best(metric, part, name, model, e)) for e in self.results.epsilons(part)]
            points = [(epsilon, *pair) for epsilon, pair in found if pair is not None and pair[0] > -1.0]
            if points:
                style = {"color": colors[model], "linestyle": ":" if model in setup.PEERS else "-"}
                x, means, spreads = zip(*points, strict=True)
                style = POINTS | style | {"linewidth": 2.0 if model == "auto" else 1.0}
                drawn.append(Line(model, means, x, style, bars=spreads))
        plain = self.best(metric, part, name, PLAIN)
        drawn += [level(PLAIN, plain[0])] if plain is not None else []

        def cut(axes: Any, _: Any) -> None:
            if kind == "regression" and axes.get_ylim()[0] < LOWEST_R2:
                axes.set_ylim(bottom=LOWEST_R2)

        title = f"{name}, {'R2' if metric == 'r2' else metric}"
        return Panel(title, lines=drawn, scales=("log", "linear"), paint=cut, title_size=9)
