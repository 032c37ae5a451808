"""Score against epsilon, one panel for each set."""

import math
from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import scores
import sets
from peers import setup
from tables import Part

_TITLES = {"accuracy": "accuracy", "r2": "R2"}
_LOWEST_R2 = -0.5  # worse than guessing the mean; axes end here


def plot(part: Part, path: Path) -> None:
    """Draw every set of a part that has results."""
    names = [name for kind in scores.MAIN_SCORE for name in part.sets(kind)]
    if not names:
        return
    models = part.models()
    colors = {model: "black" if model == "auto" else f"C{place % 10}" for place, model in enumerate(models)}
    columns = min(4, len(names))
    rows = math.ceil(len(names) / columns)
    figure = Figure(figsize=(3.4 * columns, 2.4 * rows + 0.4), layout="constrained")
    FigureCanvasAgg(figure)
    handles: dict[str, Any] = {}
    for place, name in enumerate(names):
        handles |= _panel(figure.add_subplot(rows, columns, place + 1), part, name, colors)
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=min(8, len(handles)), fontsize=8)
    figure.savefig(path, dpi=75, pil_kwargs={"optimize": True})


def _panel(axes: Any, part: Part, name: str, colors: dict[str, str]) -> dict[str, Any]:
    """One set; returns its lines for the legend."""
    kind = sets.PUBLIC[name] if part.name == "public" else sets.SETS[name].kind
    metric = scores.MAIN_SCORE[kind]
    handles = {}
    for model in part.models(name):
        found = [(epsilon, part.cell(name, model, epsilon, metric)) for epsilon in part.epsilons]
        cells = [(epsilon, c.mean, c.spread) for epsilon, c in found if c is not None and c.mean > -1.0]
        if cells:
            style = ":" if model in setup.PEERS else "-"
            width = 2.0 if model == "auto" else 1.0
            line = {"color": colors[model], "linestyle": style, "linewidth": width, "marker": "o", "markersize": 3}
            epsilons, means, spreads = zip(*cells, strict=True)
            handles[model] = axes.errorbar(epsilons, means, spreads, **line)
    level = part.cell(name, scores.PLAIN, None, metric)
    if level is not None:
        handles[scores.PLAIN] = axes.axhline(level.mean, color="grey", linestyle="--", linewidth=1)
    axes.set_xscale("log")
    axes.set_title(f"{name}, {_TITLES[metric]}", fontsize=9)
    axes.tick_params(labelsize=7)
    if kind == "regression" and axes.get_ylim()[0] < _LOWEST_R2:
        axes.set_ylim(bottom=_LOWEST_R2)
    return handles
