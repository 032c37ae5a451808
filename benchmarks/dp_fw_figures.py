"""The figures of the DP Frank-Wolfe benchmark: traces without noise, and the plots.

Figure 1 is the gap by iterations, Figure 2 how many times fewer operations Algorithm 2 needs, Figure 4 the gap by
operations. Operations are products, sums and slopes. Algorithm 1: 4 for each stored entry, 5 for each column, 1 for
each row. Algorithm 2: 3 for each row that is looked at, and 4 for each entry of one whose slope is changed.
Comparisons, which are all that a heap does, are counted for neither.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from tacit.solvers.frank_wolfe.ball_sparse import SparseGradient

from dp_fw_methods import METHODS, FrankWolfe, gap
from paper_only import RecomputedGradient
from tacit.privacy import Budget

if TYPE_CHECKING:
    from dp_fw_problems import Split
    from dp_fw_render import Results

TRACED = {
    "algorithm 1": "Algorithm 1",
    "printed": "Algorithm 2 as printed (slopes go out of date)",
    "ours": "Algorithm 2 with due dates",
}
_STYLES = {"algorithm 1": ("C1", "-"), "printed": ("C3", "-"), "ours": ("C0", "--")}
_BOUND = 1.0  # rows have norm 1, so that no entry is clipped


def marks(count: int) -> list[int]:
    """Iterations after which a trace is looked at."""
    return sorted({round(mark) for mark in np.geomspace(1, count - 1, 30)})


def trace(split: Split, form: str, count: int) -> dict[str, list[float]]:
    """Iterations, operations so far, the gap by the scores that the algorithm keeps, and the true one."""
    method = FrankWolfe(count, bound=_BOUND)
    n, d, stored = split.size
    task, gate = method.opened(split.X, Budget(math.inf, n**-1.5), 0)
    kind = RecomputedGradient if form == "algorithm 1" else SparseGradient
    tolerance = math.inf if form == "printed" else None
    gradient, path, scoring = method.gradient(kind, task, split.X, split.y, gate, tolerance)
    lengths, w = np.diff(split.X.indptr), np.zeros(d)
    found: dict[str, list[float]] = {"iterations": [], "operations": [], "tracked": [], "gap": []}
    operations, wanted = 4.0 * stored, set(marks(count))
    for t in range(1, count):
        j, sign = gradient.sampler.best()  # type: ignore[union-attr]
        slopes = gradient._slopes.copy()  # type: ignore[attr-defined]
        gradient.step(t, j, sign)
        w *= 1.0 - path.lengths[t]
        w[j] += path.gain(t, sign)
        if isinstance(gradient, RecomputedGradient):
            operations += 4.0 * stored + 5.0 * d + n
        else:
            seen, changed = gradient._since == t, gradient._slopes != slopes  # type: ignore[attr-defined]
            operations += float(4 * lengths[changed].sum() + 3 * np.count_nonzero(seen))
        if t in wanted:
            alpha = gradient.scores / (scoring.unit * n)
            found["iterations"].append(float(t))
            found["operations"].append(operations)
            found["tracked"].append(float(alpha @ w + path.radius * np.abs(alpha).max()))
            found["gap"].append(gap(split.X, split.y, w, path.radius, _BOUND))
    return found


def figures(results: Results, folder: Path) -> None:
    """Draw what has records."""
    names = [name for name in results.sets("trace") if all(results.rows("trace", name, form, None) for form in TRACED)]
    if names:
        _gaps(results, names, "iterations", folder / "dp_fw_figure_1.png")
        _ratios(results, names, folder / "dp_fw_figure_2.png")
        _gaps(results, names, "operations", folder / "dp_fw_figure_4.png")
    if results.sets("accuracy"):
        _accuracy(results, folder / "dp_fw_accuracy.png")


def _canvas(columns: int, height: float = 2.9) -> Figure:
    figure = Figure(figsize=(3.6 * columns, height + 0.5), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _save(figure: Figure, handles: dict[str, Any], path: Path, columns: int = 3) -> None:
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=columns, fontsize=8)
    figure.savefig(path, dpi=90, pil_kwargs={"optimize": True})


def _gaps(results: Results, names: list[str], by: str, path: Path) -> None:
    """The true gap of all forms; by iterations also the one that the printed form believes in."""
    figure, handles = _canvas(len(names)), {}
    for place, name in enumerate(names):
        axes = figure.add_subplot(1, len(names), place + 1)
        for form, (color, line) in _STYLES.items():
            scores = results.rows("trace", name, form, None)[0].scores
            (handles[TRACED[form]],) = axes.plot(scores[by], scores["gap"], color=color, linestyle=line, linewidth=1.3)
            if by == "iterations" and form == "printed":
                label = "what Algorithm 2 as printed takes its gap for"
                (handles[label],) = axes.plot(scores[by], np.abs(scores["tracked"]), color=color, linestyle=":")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_title(name, fontsize=8)
        axes.set_xlabel(by, fontsize=8)
        axes.set_ylabel("gap", fontsize=8)
        axes.tick_params(labelsize=7)
    _save(figure, handles, path, 2)


def _ratios(results: Results, names: list[str], path: Path) -> None:
    figure, handles = _canvas(1), {}
    axes = figure.add_subplot(1, 1, 1)
    for place, name in enumerate(names):
        one = np.array(results.rows("trace", name, "algorithm 1", None)[0].scores["operations"])
        for form, line in (("ours", "-"), ("printed", ":")):
            two = results.rows("trace", name, form, None)[0].scores
            style = {"color": f"C{place}", "linestyle": line, "linewidth": 1.3}
            label = name if form == "ours" else f"{name}, as printed"
            (handles[label],) = axes.plot(two["iterations"], one / np.array(two["operations"]), **style)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("iterations", fontsize=8)
    axes.set_ylabel("times fewer operations", fontsize=8)
    axes.tick_params(labelsize=7)
    _save(figure, handles, path, 2)


def _accuracy(results: Results, path: Path) -> None:
    names = results.sets("accuracy")
    figure, handles = _canvas(len(names), 3.4), {}
    for place, name in enumerate(names):
        axes = figure.add_subplot(1, len(names), place + 1)
        epsilons = results.epsilons("accuracy", name)
        for number, (model, method) in enumerate(METHODS.items()):
            x = [e for e in epsilons if results.values("accuracy", name, model, e, "accuracy")]
            if not x:
                continue
            y = [results.values("accuracy", name, model, e, "accuracy") for e in x]
            style = {"color": "black" if model == "auto" else f"C{number}", "marker": "o", "markersize": 3}
            means, spreads = [np.mean(v) for v in y], [np.std(v) for v in y]
            handles[method.label] = axes.errorbar(x, means, spreads, linewidth=3.0 if model == "auto" else 1.2, **style)
        for label, line in (("not private", "--"), ("majority", ":")):
            level = results.values("accuracy", name, label, None, "accuracy")
            if level:
                handles[label] = axes.axhline(float(np.mean(level)), color="grey", linestyle=line, linewidth=1)
        axes.set_xscale("log")
        axes.set_xticks(epsilons, [f"{e:g}" for e in epsilons])
        axes.minorticks_off()
        axes.set_title(name, fontsize=8)
        axes.set_xlabel("epsilon", fontsize=8)
        axes.set_ylabel("test accuracy", fontsize=8)
        axes.tick_params(labelsize=7)
    _save(figure, handles, path)
