"""The figures of the DP-SCD benchmark: utility against epsilon, convergence by epochs, batch against clip."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import dp_scd_problems as problems
from dp_scd_methods import METHODS

if TYPE_CHECKING:
    from dp_scd_render import Results

_COLORS = {
    "fit": "C3",
    "rule": "black",
    "tuned": "C0",
    "published": "C9",
    "sequential": "C4",
    "primal": "C5",
    "sgd": "C1",
    "tail": "C2",
}


def figures(results: Results, folder: Path) -> None:
    """Draw what has records."""
    if results.problems("utility, 1e-3") and results.problems("plain"):
        _utility(results, folder / "dp_scd_figure_1.png")
    if results.problems("convergence"):
        _convergence(results, folder / "dp_scd_figure_2.png")
    if results.problems("grid"):
        _grids(results, folder / "dp_scd_figure_3.png")


def _canvas(rows: int, columns: int) -> Figure:
    figure = Figure(figsize=(3.6 * columns, 2.9 * rows + 0.5), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _measure(problem: str) -> str:
    return "test MSE" if problems.CASES[problem][1] == "squared" else "test error"


def _save(figure: Figure, handles: dict[str, Any], path: Path) -> None:
    if handles:
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4, fontsize=8)
    figure.savefig(path, dpi=90, pil_kwargs={"optimize": True})


def _utility(results: Results, path: Path) -> None:
    """A row for each delta, a column for each problem."""
    tables = [table for table in ("utility, 1e-3", "utility, n^-1.5") if results.problems(table)]
    names = [name for name in results.problems(tables[0]) if results.rows("plain", name, "optimum", None)]
    figure, handles = _canvas(len(tables), len(names)), {}
    for place, (table, name) in enumerate((table, name) for table in tables for name in names):
        axes = figure.add_subplot(len(tables), len(names), place + 1)
        plain = {model: float(np.mean(results.scores("plain", name, model, None))) for model in ("optimum", "zero")}
        for model, color in _COLORS.items():
            x = [e for e in results.epsilons(table, name) if results.scores(table, name, model, e)]
            if not x:
                continue
            y = np.array([results.scores(table, name, model, e) for e in x])
            style = {"color": color, "linewidth": 1.2, "marker": "o", "markersize": 3}
            (handles[METHODS[model].label],) = axes.plot(x, y.mean(axis=1), **style)
            low, high = y.mean(axis=1) - y.std(axis=1), y.mean(axis=1) + y.std(axis=1)
            axes.fill_between(x, low, high, color=color, alpha=0.15, linewidth=0)
        handles["not private"] = axes.axhline(plain["optimum"], color="grey", linestyle="--", linewidth=1)
        handles["no model"] = axes.axhline(plain["zero"], color="grey", linestyle=":", linewidth=1)
        reach = plain["zero"] - plain["optimum"]
        axes.set_ylim(plain["optimum"] - 0.1 * reach, plain["zero"] + 0.25 * reach)
        axes.set_xscale("log")
        axes.set_xticks(results.epsilons(table, name), [f"{e:g}" for e in results.epsilons(table, name)])
        axes.minorticks_off()
        axes.set_title(f"{name}, delta = {table.removeprefix('utility, ')}", fontsize=8)
        axes.set_xlabel("epsilon", fontsize=8)
        axes.set_ylabel(_measure(name), fontsize=8)
        axes.tick_params(labelsize=7)
    _save(figure, handles, path)


def _convergence(results: Results, path: Path) -> None:
    """A row for each epsilon, a column for each problem."""
    names = results.problems("convergence")
    epsilons = [e for e in results.epsilons("convergence", names[0]) if np.isfinite(e)]
    figure, handles = _canvas(len(epsilons), len(names)), {}
    for place, (epsilon, name) in enumerate((epsilon, name) for epsilon in epsilons for name in names):
        axes = figure.add_subplot(len(epsilons), len(names), place + 1)
        lines = [(f"noiseless {epsilon:g}", float("inf"), "ours, tuned batch, no noise", "grey")]
        lines += [(m, epsilon, METHODS[m].label, _COLORS[m]) for m in ("tuned", "published", "sgd")]
        for model, at, label, color in lines:
            rows = results.rows("convergence", name, model, at)
            if not rows:
                continue
            # Above the optimum of each split, as a part of what the zero model is.
            values = np.array([_excess(row.scores) for row in rows])
            x = np.array([0.0, *rows[0].scores["epochs"]])
            style = {"color": color, "linewidth": 1.2, "marker": "o", "markersize": 3}
            (handles[label],) = axes.plot(x, values.mean(axis=0), **style)
            axes.fill_between(x, values.min(axis=0), values.max(axis=0), color=color, alpha=0.15, linewidth=0)
        axes.set_yscale("log")
        axes.set_title(f"{name}, epsilon = {epsilon:g}", fontsize=8)
        axes.set_xlabel("epochs", fontsize=8)
        axes.set_ylabel("objective above the optimum", fontsize=8)
        axes.tick_params(labelsize=7)
    _save(figure, handles, path)


def _excess(scores: dict[str, list[float]]) -> list[float]:
    (optimum,), (zero,) = scores["optimum"], scores["zero"]
    return [max(value - optimum, 1e-9) / (zero - optimum) for value in (zero, *scores["objective"])]


def _grids(results: Results, path: Path) -> None:
    """Our variant above, the published one below; a star where the rule is."""
    names = results.problems("grid")
    figure = _canvas(2, len(names))
    for place, (model, name) in enumerate((model, name) for model in ("tuned", "published") for name in names):
        axes = figure.add_subplot(2, len(names), place + 1)
        batches, clips, values = results.grid(name, model)
        shared = np.concatenate([results.grid(name, m)[2].ravel() for m in ("tuned", "published")])
        low, zero = shared.min(), float(np.mean(results.scores("plain", name, "zero", None) or [shared.max()]))
        picture = axes.imshow(values, origin="lower", aspect="auto", cmap="viridis_r", vmin=low, vmax=max(zero, low))
        axes.set_xticks(range(len(batches)), [f"{b:.0f}" for b in batches])
        axes.set_yticks(range(len(clips)), [f"{c:g}" for c in clips])
        if 300.0 in batches and 1.0 in clips:
            axes.plot(batches.index(300.0), clips.index(1.0), marker="*", color="red", markersize=9)
        axes.set_title(f"{name}, {'ours' if model == 'tuned' else 'published'}", fontsize=8)
        axes.set_xlabel("expected batch", fontsize=8)
        axes.set_ylabel("clip, in the rule's for that batch", fontsize=8)
        axes.tick_params(labelsize=7)
        figure.colorbar(picture, ax=axes, label=_measure(name)).ax.tick_params(labelsize=7)
    _save(figure, {}, path)
