"""The figures of the DP-CD benchmark: relative error against passes and against seconds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import dp_cd_problems as problems
from dp_cd_methods import METHODS

if TYPE_CHECKING:
    from dp_cd_render import Results

_COLORS = {"paper": "C0", "form": "C9", "ours": "black", "private": "C2", "greedy": "C3", "sgd": "C1"}
TRACED = tuple(_COLORS)
"""The methods whose iterates are drawn; an average over the tail has none to draw."""


def figures(results: Results, folder: Path) -> None:
    """Draw what has traces."""
    found = results.problems("trace")
    imbalanced = [name for name in found if name.endswith(", imbalanced")]
    balanced = [name for name in found if name not in imbalanced]
    for number, names, timed in ((1, imbalanced, False), (2, balanced, False), (3, found, True)):
        if names:
            _draw(results, names, timed, folder / f"dp_cd_figure_{number}.png")


def _draw(results: Results, names: list[str], timed: bool, path: Path) -> None:
    figure = Figure(figsize=(3.6 * len(names), 3.3), layout="constrained")
    FigureCanvasAgg(figure)
    handles: dict[str, Any] = {}
    for place, name in enumerate(names):
        axes = figure.add_subplot(1, len(names), place + 1)
        handles |= _panel(axes, results, name, timed)
        axes.set_xlabel("seconds" if timed else "passes over the data", fontsize=8)
        if place == 0:
            axes.set_ylabel("relative error", fontsize=8)
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3, fontsize=8)
    figure.savefig(path, dpi=90, pil_kwargs={"optimize": True})


def _panel(axes: Any, results: Results, name: str, timed: bool) -> dict[str, Any]:
    """One problem; returns its lines for the legend."""
    handles = {}
    zero = problems.problem(name).zero_error
    for model in TRACED:
        rows = results.rows("trace", name, model)
        if not rows:
            continue
        errors = np.array([row.scores["relative error"] for row in rows])
        x = np.median([row.seconds for row in rows], axis=0) if timed else np.array(rows[0].scores["passes"])
        if not timed:
            x, errors = np.append(0.0, x), np.column_stack([np.full(len(errors), zero), errors])
        style = {"color": _COLORS[model], "linewidth": 1.2, "marker": "o", "markersize": 3}
        (handles[METHODS[model].label],) = axes.plot(x, errors.mean(axis=0), **style)
        axes.fill_between(x, errors.min(axis=0), errors.max(axis=0), color=_COLORS[model], alpha=0.15, linewidth=0)
    handles["zero model"] = axes.axhline(zero, color="grey", linestyle="--", linewidth=1)
    axes.set_yscale("log")
    if timed:
        axes.set_xscale("log")
    axes.set_title(name, fontsize=9)
    axes.tick_params(labelsize=7)
    return handles
