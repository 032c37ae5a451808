"""The plots of the federated benchmark, from records."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import federated_blocks as blocks
from federated_methods import BEST, CENTRAL, MARGINALS, METHODS, PLAIN, PRODUCT, SERIAL, SHORT

if TYPE_CHECKING:
    from federated_render import Results

_COLORS = {MARGINALS: "black", "marginals, cross": "C4", PRODUCT: "C0", SERIAL: "C2", BEST: "C1", CENTRAL: "C3"}
_COLORS |= {SHORT: "C5", "central, given": "C5"}
_HIGHEST = 3.0  # relative excess losses above this are drawn at the edge
AXES = {
    "labels": "epsilon",
    "figure 3": "iterations",
    "figure 4": "rows",
    "figure 5": "parties",
    "figure 6": "epsilon",
    "figure 7": "part of the budget for choosing columns",
    "figure 8": "rows of the sketch",
    "figure 9": "parties",
}


def label_of(model: str) -> str:
    """What the page calls a method."""
    extra = {
        "marginals, cross": "marginals, cross moments sketched",
        "central, given": "central DP Frank-Wolfe",
        PLAIN: "not private",
    }
    return METHODS[model].label if model in METHODS else extra.get(model, model)


def figures(results: Results, folder: Path) -> None:
    """Draw what has records."""
    if results.names("figure 1"):
        _samplings(results, folder / "federated_figure_1.png")
    if results.names("figure 2"):
        _workers(results, folder / "federated_figure_2.png")
    for table, axis in AXES.items():
        if table.startswith("figure") and results.names(table):
            path = folder / f"federated_{table.replace(' ', '_')}.png"
            if table == "figure 4":
                _rows(results, path)
            else:
                _sweep(results, table, axis, path, "loss" if table == "figure 9" else "relative")


def _canvas(columns: int, rows: int = 1) -> Figure:
    figure = Figure(figsize=(3.8 * columns, 2.6 * rows + 0.7), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _dressed(axes: Any, title: str, x: str, y: str) -> None:
    axes.set_title(title, fontsize=8)
    axes.set_xlabel(x, fontsize=8)
    axes.set_ylabel(y, fontsize=8)
    axes.tick_params(labelsize=7, which="both")


def _save(figure: Figure, handles: dict[str, Any], path: Path, columns: int = 3) -> None:
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=columns, fontsize=7)
    figure.savefig(path, dpi=80, pil_kwargs={"optimize": True})


def _samplings(results: Results, path: Path) -> None:
    names = results.names("figure 1")
    across = len(dict.fromkeys(name.split(" / ")[0] for name in names))
    figure, handles = _canvas(across, -(-len(names) // across)), {}
    for place, name in enumerate(names):
        axes = figure.add_subplot(-(-len(names) // across), across, place + 1)
        for number, (model, (label, _)) in enumerate(blocks.samplings().items()):
            rows = results.rows("figure 1", name, "", model)
            losses = np.mean([row.scores["loss"] for row in rows], axis=0)
            style = {"color": f"C{number}", "linestyle": ":" if "printed" in model else "-", "linewidth": 1.2}
            (handles[label],) = axes.plot(rows[0].scores["iterations"], losses, **style)
        axes.set_xscale("log")
        axes.set_yscale("log")
        density, active = name.split(" / ")
        _dressed(axes, f"entries {float(density):.1%}, truth {float(active):.1%}", "iterations", "loss")
    _save(figure, handles, path, 2)


def _workers(results: Results, path: Path) -> None:
    figure, handles = _canvas(2), {}
    titles = {blocks.PRINTED: "as printed: l1 norm K x 5", blocks.SAME: "the same: l1 norm 5"}
    for place, (model, title) in enumerate(titles.items()):
        axes = figure.add_subplot(1, 2, place + 1)
        for number, at in enumerate(results.values_of("figure 2", "all")):
            (row,) = results.rows("figure 2", "all", at, model)
            style = {"color": f"C{number}", "linewidth": 1.2}
            (handles[f"K = {at}"],) = axes.plot(row.scores["iterations"], row.scores["loss"], **style)
        best = axes.axhline(row.scores["best"][0], color="grey", linestyle="--", linewidth=1)
        handles["least loss for an l1 norm of 5"] = best
        axes.set_xscale("log")
        axes.set_yscale("log")
        _dressed(axes, title, "iterations", "loss")
    _save(figure, handles, path, 5)


def _sweep(results: Results, table: str, axis: str, path: Path, score: str) -> None:
    """One panel for each case, and one line for each method."""
    names = results.names(table)
    across = min(3, len(names)) if len(names) != 4 else 2
    figure, handles = _canvas(across, -(-len(names) // across)), {}
    for place, name in enumerate(names):
        axes = figure.add_subplot(-(-len(names) // across), across, place + 1)
        values = results.values_of(table, name)
        for model in results.models(table):
            if model == PLAIN and score == "relative":
                continue  # it is 0
            found = [(at, results.scores(table, name, at, model, score)) for at in values if at != "all"]
            points = [(float(at), np.mean(cell), np.std(cell)) for at, cell in found if cell]
            level = results.scores(table, name, "all", model, score)
            style = {"color": _COLORS.get(model, "grey"), "linewidth": 1.2}
            if points:
                x, means, spreads = zip(*points, strict=True)
                capped = np.minimum(means, _HIGHEST) if score == "relative" else means
                handles[label_of(model)] = axes.errorbar(x, capped, spreads, marker="o", markersize=3, **style)
            elif level:
                handles[label_of(model)] = axes.axhline(float(np.mean(level)), linestyle="--", **style)
        axes.set_xscale("linear" if table == "figure 7" else "log")
        if table in ("figure 3", "figure 5", "figure 9"):
            ticks = [float(at) for at in values if at != "all"]
            axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            axes.minorticks_off()
        if score == "relative":
            axes.axhline(1.0, color="lightgrey", linewidth=0.8, zorder=0)
            axes.set_ylim(0.0, min(_HIGHEST, max(1.2, axes.get_ylim()[1])) * 1.03)
        else:
            axes.set_yscale("log")
        _dressed(axes, name, axis, "relative excess loss" if score == "relative" else "training loss")
    _save(figure, handles, path)


def _rows(results: Results, path: Path) -> None:
    """Excess loss against rows, in log-log."""
    figure, handles = _canvas(2), {}
    (name,) = results.names("figure 4")
    for place, method in enumerate((MARGINALS, BEST)):
        axes = figure.add_subplot(1, 2, place + 1)
        mine = [model for model in results.models("figure 4") if model.startswith(method)]
        for number, model in enumerate([*mine, CENTRAL, SHORT]):
            found = [
                (at, results.scores("figure 4", name, at, model, "excess"))
                for at in results.values_of("figure 4", name)
            ]
            x, y = zip(*[(float(at), np.mean(cell)) for at, cell in found if cell], strict=True)
            label = model.removeprefix(f"{method}, ") if model in mine else label_of(model)
            style = {"color": _COLORS.get(model, f"C{(number + 6) % 10}"), "linestyle": "-" if model in mine else "--"}
            (handles[label],) = axes.plot(x, y, marker="o", markersize=3, linewidth=1.2, **style)
        axes.plot(x, float(y[0]) * (np.array(x) / x[0]) ** (-2 / 3), color="lightgrey", linewidth=1, zorder=0)
        axes.set_xscale("log")
        axes.set_yscale("log")
        _dressed(axes, label_of(method), "rows", "excess loss")
    _save(figure, handles, path)
