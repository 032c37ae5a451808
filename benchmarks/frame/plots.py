"""Plots as data: panels with lines, drawn on one canvas with one legend."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure


@dataclass
class Line:
    """Points, with a band or bars about them; or a level, if there is one number alone."""

    label: str
    y: Any
    x: Any = None
    style: dict[str, Any] = field(default_factory=dict)
    band: tuple[Any, Any] | None = None
    bars: Any = None

    def draw(self, axes: Any) -> Any:
        """What the legend shows."""
        if self.x is None:
            return axes.axhline(float(self.y), **self.style)
        if self.bars is not None:
            return axes.errorbar(self.x, self.y, self.bars, **self.style)
        (drawn,) = axes.plot(self.x, self.y, **self.style)
        if self.band is not None:
            axes.fill_between(self.x, *self.band, color=self.style["color"], alpha=0.15, linewidth=0)
        return drawn


POINTS = {"linewidth": 1.2, "marker": "o", "markersize": 3}


def traced(label: str, x: Any, runs: Any, color: str) -> Line:
    """The mean of some runs, and a band from the least to the largest."""
    return Line(
        label, np.mean(runs, axis=0), x, {"color": color} | POINTS, (np.min(runs, axis=0), np.max(runs, axis=0))
    )


def spread_out(label: str, found: Mapping[float, Any], style: dict[str, Any], band: bool = False) -> list[Line]:
    """Means over seeds by x, with standard deviations about them; nothing if there are none."""
    x = [at for at, values in found.items() if len(values)]
    means, spreads = (np.array([measure(found[at]) for at in x]) for measure in (np.mean, np.std))
    about: dict[str, Any] = {"band": (means - spreads, means + spreads)} if band else {"bars": spreads}
    return [Line(label, means, x, POINTS | style, **about)] if x else []


def level(label: str, y: Any, dashes: str = "--") -> Line:
    """What does not depend on x."""
    return Line(label, y, style={"color": "grey", "linestyle": dashes, "linewidth": 1})


@dataclass
class Panel:
    """One plot. `paint` draws what lines cannot."""

    title: str
    x: str = ""
    y: str = ""
    lines: Sequence[Line] = ()
    scales: tuple[str, str] = ("log", "log")
    ticks: Sequence[float] | None = None
    paint: Callable[[Any, Figure], None] | None = None
    title_size: int = 8
    small: str = "major"  # the ticks with small labels

    def draw(self, axes: Any, figure: Figure) -> dict[str, Any]:
        """The lines for the legend."""
        handles = {line.label: line.draw(axes) for line in self.lines}
        if self.lines:
            axes.set_xscale(self.scales[0])
            axes.set_yscale(self.scales[1])
        if self.ticks is not None:
            axes.set_xticks(self.ticks, [f"{tick:g}" for tick in self.ticks])
            axes.minorticks_off()
        if self.paint is not None:
            self.paint(axes, figure)
        axes.set_title(self.title, fontsize=self.title_size)
        axes.set_xlabel(self.x, fontsize=8)
        axes.set_ylabel(self.y, fontsize=8)
        axes.tick_params(labelsize=7, which=self.small)
        return {label: handle for label, handle in handles.items() if not label.startswith("_")}


@dataclass(frozen=True)
class Canvas:
    """Sizes in inches, of a panel and of what is added to the height."""

    width: float = 3.6
    height: float = 2.9
    more: float = 0.5
    dpi: int = 90
    font: int = 8

    def draw(self, path: Path, panels: Sequence[Panel], across: int | None = None, legend: int = 4) -> None:
        """All panels, so many next to each other, with so many columns in the legend; nothing if there are none."""
        if not panels:
            return
        across = across or len(panels)
        down = -(-len(panels) // across)
        figure = Figure(figsize=(self.width * across, self.height * down + self.more), layout="constrained")
        FigureCanvasAgg(figure)
        handles: dict[str, Any] = {}
        for place, panel in enumerate(panels):
            handles |= panel.draw(figure.add_subplot(down, across, place + 1), figure)
        if handles:
            where = {"loc": "outside lower center", "ncols": legend, "fontsize": self.font}
            figure.legend(handles.values(), handles.keys(), **where)
        figure.savefig(path, dpi=self.dpi, pil_kwargs={"optimize": True})
