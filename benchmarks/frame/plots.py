"""Plots as data: panels with lines, drawn on one canvas with one legend."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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
