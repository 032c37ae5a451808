"""The figures of the federated benchmark."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.federated import blocks
from benchmarks.federated.methods import BEST, CENTRAL, LABELS, MARGINALS, METHODS, PARTIES, PRODUCT, SERIAL, SHORT
from benchmarks.frame.plots import POINTS, Canvas, Line, Panel, level, spread_out

ALL = "all"  # in place of a value of what is varied: a method that does not depend on it
COLORS = {MARGINALS: "black", "marginals, cross": "C4", PRODUCT: "C0", SERIAL: "C2", BEST: "C1", CENTRAL: "C3"}
COLORS |= {SHORT: "C5", "central, given": "C5"}
HIGHEST = 3.0  # relative excess losses above this are drawn at the edge
CANVAS = Canvas(3.8, 2.6, 0.7, 80, 7)
AXES = {
    "labels": "epsilon",
    "figure 3": "iterations",
    "figure 4": "rows",
    "figure 5": "parties",
    "figure 6": "epsilon",
    "figure 7": "part of the budget for choosing columns",
    "figure 8": "rows of the sketch",
    "figure 9": "parties",
    "hinge": "parties",
}
SENT = {
    "uplink, constant": "Algorithm 2, what Theorem 4 takes for constant",
    "uplink, true": "Algorithm 2, true sizes",
    "uplink, Corollary 1": "Corollary 1",
    "uplink, PRIDE": "PRIDE (Remark 4)",
}


def draw(page: Any, folder: Path) -> None:
    """All of them."""
    names = page.results.sets("figure 1")
    across = len(dict.fromkeys(name.split(" / ")[0] for name in names))
    CANVAS.draw(folder / "federated_figure_1.png", list(map(partial(_samplings_panel, page), names)), across, 2)
    CANVAS.draw(folder / "federated_figure_2.png", list(_workers_panels(page)), legend=5)
    CANVAS.draw(folder / "federated_figure_4.png", list(_rows_panels(page)), legend=3)
    CANVAS.draw(folder / "federated_uplink.png", list(_sent_panel(page)), legend=3)
    for place in (3, 5, 6, 7, 8, 9):
        names = page.results.sets(f"figure {place}")
        across = min(3, len(names)) if len(names) != 4 else 2
        panels = [_sweep_panel(page, f"figure {place}", name) for name in names]
        CANVAS.draw(folder / f"federated_figure_{place}.png", panels, across, 3)


def _samplings_panel(page: Any, name: str) -> Panel:
    drawn = []
    for place, (model, (label, _)) in enumerate(blocks.samplings().items()):
        rows = page.results.rows("figure 1", name, model)
        losses = np.mean([row.scores["loss"] for row in rows], axis=0)
        style = {"color": f"C{place}", "linestyle": ":" if "printed" in model else "-", "linewidth": 1.2}
        drawn.append(Line(label, losses, rows[0].scores["iterations"], style))
    density, active = map(float, name.split(" / "))
    return Panel(f"entries {density:.1%}, truth {active:.1%}", "iterations", "loss", drawn, small="both")


def _workers_panels(page: Any) -> Iterator[Panel]:
    titles = {blocks.PRINTED: "as printed: l1 norm K x 5", blocks.SAME: "the same: l1 norm 5"}
    for model, title in titles.items() if page.results.rows("figure 2") else ():
        drawn = []
        for place, row in enumerate(page.results.rows("figure 2", ALL, model)):
            style = {"color": f"C{place}", "linewidth": 1.2}
            drawn.append(Line(f"K = {row.epsilon:g}", row.scores["loss"], row.scores["iterations"], style))
        drawn.append(level("least loss for an l1 norm of 5", row.scores["best"][0]))
        yield Panel(title, "iterations", "loss", drawn, small="both")


def _sweep_panel(page: Any, part: str, name: str) -> Panel:
    """One line for each method."""
    score, values, drawn = "loss" if part == "figure 9" else "relative", page.results.epsilons(part, name), []
    for label, model in page.models(part).items():
        found = {at: page.scores(score, part, name, model, at) for at in values}
        style, alone = {"color": COLORS.get(model, "grey")}, page.scores(score, part, name, model, None)
        if any(found.values()):
            (line,) = spread_out(label, found, style)
            drawn.append(replace(line, y=np.minimum(line.y, HIGHEST)) if score == "relative" else line)
        elif alone:
            style |= {"linestyle": "--", "linewidth": 1.2}
            drawn.append(Line(label, alone.average, style=style))

    def cut(axes: Any, _: Any) -> None:
        if score == "relative":
            axes.axhline(1.0, color="lightgrey", linewidth=0.8, zorder=0)
            axes.set_ylim(0.0, min(HIGHEST, max(1.2, axes.get_ylim()[1])) * 1.03)
        else:
            axes.set_yscale("log")

    ticks = values if part in ("figure 3", "figure 5", "figure 9") else None
    y = "relative excess loss" if score == "relative" else "training loss"
    scales = ("linear" if part == "figure 7" else "log", "linear")
    return Panel(name, AXES[part], y, drawn, scales, ticks, cut, small="both")


def _rows_panels(page: Any) -> Iterator[Panel]:
    """Excess loss against rows, in log-log."""
    for method in (MARGINALS, PRODUCT, BEST) if page.results.rows("figure 4") else ():
        found = page.results.distinct("model", "figure 4", order=METHODS)
        mine, drawn = [model for model in found if model.startswith(method)], []
        for place, model in enumerate([*mine, CENTRAL, SHORT]):
            x = page.results.epsilons("figure 4", ALL, model)
            y = [page.scores("excess", "figure 4", ALL, model, at).average for at in x]
            label = model.removeprefix(f"{method}, ") if model in mine else LABELS[model]
            color, dashes = COLORS.get(model, f"C{(place + 6) % 10}"), "-" if model in mine else "--"
            drawn.append(Line(label, y, x, POINTS | {"color": color, "linestyle": dashes}))
        fall = y[0] * (np.array(x) / x[0]) ** (-2 / 3)
        drawn.append(Line("_fall", fall, x, {"color": "lightgrey", "linewidth": 1, "zorder": 0}))
        yield Panel(LABELS[method], "rows", "excess loss", drawn, small="both")


def _sent_panel(page: Any) -> Iterator[Panel]:
    """What a party sends by rows: measured, and by the paper's formulas."""
    drawn = []
    for method in (MARGINALS, PRODUCT, BEST) if page.results.rows("promised") else ():
        model = f"{method}, K = {PARTIES}"
        x = page.results.epsilons("figure 4", ALL, model)
        if x:
            y = [page.scores("uplink", "figure 4", ALL, model, at).average for at in x]
            drawn.append(Line(LABELS[method], y, x, POINTS | {"color": COLORS[method]}))
    x = page.results.epsilons("promised")
    for place, (score, label) in enumerate(SENT.items() if drawn else ()):
        y = [page.scores(score, "promised", ALL, "paper", at).average for at in x]
        drawn.append(Line(label, y, x, {"color": f"C{place + 6}", "linestyle": "--", "linewidth": 1.2}))
    if drawn:
        yield Panel(f"K = {PARTIES}", "rows", "bytes of a party", drawn, small="both")
