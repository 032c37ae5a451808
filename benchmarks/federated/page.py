"""The tables and figures of the federated benchmark."""

import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.federated import blocks, problems
from benchmarks.federated.methods import (
    BEST,
    CENTRAL,
    DELTA,
    MARGINALS,
    METHODS,
    PARTIES,
    PLAIN,
    PRODUCT,
    SERIAL,
    SHARING,
    SHORT,
    SHORT_COUNT,
)
from benchmarks.federated.timing import LIMIT_MS
from benchmarks.frame.command import SPLIT
from benchmarks.frame.page import Found, Page
from benchmarks.frame.plots import Canvas, Line, Panel
from benchmarks.frame.records import Record
from benchmarks.frame.tables import lines, spread, table, verdict

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
}
TOLD = {"marginals, cross": "marginals, cross moments sketched", "central, given": "central DP Frank-Wolfe"}
GROUPED = {"marginals": (MARGINALS,), "feature-sharing": SHARING, "central Frank-Wolfe": (CENTRAL, SHORT)}
LEVELS = (0.9, 0.5, 0.1)


def label_of(model: str) -> str:
    """What the page calls a method."""
    return METHODS[model].label if model in METHODS else TOLD.get(model, model)


def _cell(values: Sequence[float]) -> str:
    return spread(values) if len(values) != 1 else f"{values[0]:.3f}"


def _bytes(values: Sequence[float]) -> str:
    return f"{max(values):,.0f}" if values else "-"


def _size(record: Record) -> str:
    return f"{record.size[0]:,} x {record.size[1]:,}"


class FederatedPage(Page):
    """What stands in the template."""

    template = Path(__file__).with_name("page.md")
    radius, delta, parties, short, level = problems.RADIUS, DELTA, PARTIES, SHORT_COUNT, LEVELS[0]
    groups, correlation = problems.GROUPS, problems.CORRELATION

    def rows(self, part: str, name: str, at: str, model: str) -> list[Record]:
        return self.results.rows(part, f"{name}{SPLIT}{at}" if at else name, model)

    def scores(self, score: str, *where: str) -> list[float]:
        return [row.scores[score][0] for row in self.rows(*where) if score in row.scores]

    def names(self, part: str) -> list[str]:
        """Cases of a table."""
        return list(dict.fromkeys(name.split(SPLIT)[0] for name in self.results.sets(part)))

    def values_of(self, part: str, name: str) -> list[str]:
        """The values of what is varied, in order."""
        found = {at for case, _, at in (name.partition(SPLIT) for name in self.results.sets(part)) if case == name}
        return sorted(found - {ALL}, key=lambda at: float(at or 0.0))

    def models(self, part: str) -> list[str]:
        """Methods with records in that table, in the order of the page."""
        return self.results.distinct("model", part, order=METHODS)

    def seeds(self) -> str:
        """How many seeds the private fits had, where they had more than one."""
        parts = [part for part in self.results.distinct("table") if part not in ("overhead", "printed", "figure 1")]
        cells = {(part, record.set, record.model) for part in parts for record in self.results.rows(part)}
        some = sorted({len(self.results.rows(*cell)) for cell in cells} - {1}) or [1]
        return f"{some[0]}" if len(some) == 1 else f"{some[0]} to {some[-1]}"

    def targets(self) -> str:
        rows = []
        for name in self.names("numbers"):
            found = self.scores("linear", "numbers", name, ALL, MARGINALS)
            what = f"marginals, {name}: relative excess loss of the weights"
            rows.append([what, "at most 0.05", _cell(found), verdict(np.mean(found) <= 0.05)])
        sent = [row.scores["uplink"][0] for row in self.results.rows("numbers") if row.model == MARGINALS]
        if sent:
            what = "marginals: uplink of a party, bytes"
            rows.append([what, "at most 2,000", _bytes(sent), verdict(max(sent) <= 2_000.0)])
        if self.results.rows("overhead"):
            rest = statistics.median(self.results.values("rest", "overhead"))
            what = f"a round in process with {PARTIES} parties, besides the protocol's work"
            rows.append([what, f"below {LIMIT_MS:g} ms", f"{rest:.2f} ms", verdict(rest <= LIMIT_MS)])
        return lines(["what", "asked", "measured", ""], rows)

    # Which protocol wins when

    def best(self, score: str, part: str, name: str, at: str, models: Sequence[str]) -> list[float]:
        """Of the method of a group with the best mean."""
        found = [self.scores(score, part, name, at, model) for model in models]
        choose = max if score == "accuracy" else min
        return choose((values for values in found if values), key=np.mean, default=[])

    def first_below(self, part: str, name: str, models: Sequence[str], most: float) -> str:
        """The smallest value of what is varied from which on the best of these methods has at most this loss."""
        reached = "not reached"
        for at in reversed(self.values_of(part, name)):
            found = self.best("relative", part, name, at, models)
            if not found or np.mean(found) > most:
                return reached
            reached = f"{float(at):,.10g}"
        return reached

    def wins(self) -> str:
        return lines(["", *GROUPED], [*self._needs(), *self._gets(), *self._sends()])

    def _needs(self) -> Iterator[list[str]]:
        """How many rows, and how large an epsilon, each group of methods needs."""
        told = [[m if "central" in m else f"{m}, K = {PARTIES}" for m in models] for models in GROUPED.values()]
        cases = [("figure 4", name, told, "rows for a relative excess loss of {:g}") for name in self.names("figure 4")]
        for name in self.names("figure 6"):
            cases.append(("figure 6", name, list(map(list, GROUPED.values())), f"epsilon for {{:g}}, {name}"))
        for part, name, groups, what in cases:
            for most in LEVELS:
                yield [what.format(most), *(self.first_below(part, name, models, most) for models in groups)]

    def _gets(self) -> Iterator[list[str]]:
        """The relative excess loss, or for real sets the accuracy, of the best of each group of methods."""
        cases = [("numbers", name, ALL, f"1% dense, {name}") for name in self.names("numbers")]
        cases += [("correlated", name, "", f"correlated columns at {name}") for name in self.names("correlated")]
        for part, name, at, what in cases:
            found = [self.best("relative", part, name, at, models) for models in GROUPED.values()]
            yield [f"relative excess loss, {what}", *map(_cell, found)]
        for name in self.names("figure 9"):
            found = [
                self.best("accuracy", "figure 9", name, str(PARTIES), models)
                or self.best("accuracy", "figure 9", name, ALL, models)
                for models in GROUPED.values()
            ]
            yield [f"accuracy, {name}", *map(_cell, found)]

    def _sends(self) -> Iterator[list[str]]:
        """What crosses the network for the numbers to reach."""
        records = self.results.rows("numbers")
        for score, what in (("uplink", "uplink of a party, bytes"), ("rounds", "rounds")) if records else ():
            found = [
                [r.scores[score][0] for r in records if r.model in models and score in r.scores]
                for models in GROUPED.values()
            ]
            yield [f"{what}, 1% dense", *(f"{min(v):,.0f} to {max(v):,.0f}" if v else "-" for v in found)]

    def duels(self) -> tuple[int, list[str], list[str]]:
        """In how many settings both protocols were run; where one of them has a model worth having, who is ahead."""
        parts = ("numbers", "correlated", *(f"figure {place}" for place in (3, 5, 6, 7)))
        cases = [(part, name) for part in parts for name in self.names(part)]
        count, ahead, behind = 0, [], []
        for part, name, at in [(*case, at) for case in cases for at in self.values_of(*case) or [ALL]]:
            ours = self.scores("relative", part, name, at, MARGINALS)
            ours = ours or self.scores("relative", part, name, ALL, MARGINALS)
            theirs = self.best("relative", part, name, at, SHARING)
            if ours and theirs:
                count, pair = count + 1, (float(np.mean(ours)), float(np.mean(theirs)))
                if min(pair) <= LEVELS[0]:
                    where = ", ".join(text for text in (part, name, at) if text not in ("", ALL))
                    told = f"{where} ({pair[0]:.2f} against {pair[1]:.2f})"
                    (behind if pair[1] < pair[0] else ahead).append(told)
        return count, ahead, behind

    def duels_told(self) -> str:
        count, ahead, behind = self.duels()
        if not count:
            return ""
        return (
            f"Both protocols were run in {count} settings. In {len(ahead) + len(behind)} of them at least one gets to a"
            f" relative excess loss of {LEVELS[0]:g}: marginals has the lower mean loss in {len(ahead)},"
            f" feature-sharing in {len(behind)}{': ' if behind else ''}{'; '.join(behind)}."
        )

    # Tables by part

    def numbers_size(self) -> str:
        return _size(self.results.rows("numbers")[0])

    def numbers(self) -> str:
        rows = {}
        for model in (model for model in self.models("numbers") if model != PLAIN):
            rows[label_of(model)] = (model, "relative")
            if model == MARGINALS:
                rows[f"{label_of(model)}, of the weights"] = (model, "linear")

        def cell(row: tuple[str, str], name: str) -> str:
            return _cell(self.scores(row[1], "numbers", name, ALL, row[0]))

        return table("relative excess loss", rows, {name: name for name in self.names("numbers")}, cell)

    def numbers_sent(self) -> str:
        rows = []
        for model in (model for model in self.models("numbers") if model != PLAIN):
            records = [row for row in self.results.rows("numbers") if row.model == model]
            sent, rounds = ([r.scores[s][0] for r in records if s in r.scores] for s in ("uplink", "rounds"))
            took = statistics.median(row.seconds[0] for row in records)
            rows.append([label_of(model), _bytes(sent), _bytes(rounds), f"{took:.1f}"])
        return lines(["", "uplink, bytes", "rounds", "a fit, s"], rows)

    def correlated(self) -> str:
        names, rows = self.names("correlated"), []
        for model in (model for model in self.models("correlated") if model != PLAIN):
            cells = [_cell(self.scores("relative", "correlated", name, "", model)) for name in names]
            sent = [value for name in names for value in self.scores("uplink", "correlated", name, "", model)]
            rows.append([label_of(model), *cells, _bytes(sent)])
        return lines(["relative excess loss, columns of a group at", *names, "uplink, bytes"], rows)

    def overhead(self) -> str:
        found = [self.results.values(key, "overhead") for key in ("round", "own", "rest")]
        cells = [[f"{statistics.median(values):.2f}" for values in found]] if found[0] else []
        return lines(["a round, ms", "the protocol's own work", "besides"], cells)

    def printed(self) -> str:
        records = self.results.rows("printed")
        keys = list(records[0].scores) if records else []
        rows = [[r.set, *(f"{r.scores[key][0]:,.4g}" for key in keys)] for r in records]
        return lines(["the paper's setting", *keys], rows)

    def blocks_size(self) -> str:
        return _size((self.results.rows("figure 1") or self.results.rows("figure 2"))[0])

    def samplings(self) -> str:
        """Where the traces of Figure 1 end."""

        def cell(name: str, model: str) -> str:
            return f"{np.mean([r.scores['loss'][-1] for r in self.rows('figure 1', name, '', model)]):.2e}"

        pairs = {name: map(float, name.split(" / ")) for name in self.names("figure 1")}
        rows = {f"{density:.1%}, {active:.1%}": name for name, (density, active) in pairs.items()}
        columns = {label: model for model, (label, _) in blocks.samplings().items()}
        return table("entries, truth", rows, columns, cell)

    def workers(self) -> str:
        """Where the traces of Figure 2 end."""
        rows = []
        for at in self.values_of("figure 2", ALL):
            pair = [self.rows("figure 2", ALL, at, model)[0].scores for model in (blocks.PRINTED, blocks.SAME)]
            cells = [text for s in pair for text in (f"{s['norm'][0]:g}", f"{s['loss'][-1]:.4f}")]
            rows.append([at, *cells, f"{pair[1]['best'][0]:.4f}"])
        head = ["K", "l1 norm as printed", "loss", "l1 norm", "loss", "least loss in the ball"]
        return lines(head, rows)

    def columns(self) -> int:
        return self.results.size("figure 4")[1]

    def sets(self) -> str:
        return ", ".join(f"{name} in an l1 ball of {radius:g}" for name, (_, radius, _) in problems.REAL.items())

    @property
    def sweep(self) -> Found:
        """The tables of a part by the values of what is varied."""
        return Found(lambda part: "\n\n".join(text for case in self.names(part) for text in self._sweep(part, case)))

    def _sweep(self, part: str, name: str) -> Iterator[str]:
        """A row for each method, a column for each value; then what is sent."""
        if name != ALL:
            size = next(_size(r) for r in self.results.rows(part) if r.set.split(SPLIT)[0] == name)
            yield f"### {name}, {size}" if part == "figure 9" else f"### {name}"

        def cell(model: str, at: str) -> str:
            level = self._told(part, name, ALL, model)
            return level if level != "-" else self._told(part, name, at, model)

        rows = {label_of(model): model for model in self.models(part) if model != PLAIN or part == "figure 9"}
        columns = {f"{float(at):,.10g}": at for at in self.values_of(part, name)}
        yield table(AXES[part], rows, columns, cell)
        if part == "figure 8":
            sent = lambda model, at: _bytes(self.scores("uplink", part, name, at, model))  # noqa: E731
            yield table("uplink, bytes", rows, columns, sent)

    def _told(self, part: str, name: str, at: str, model: str) -> str:
        if part != "figure 9":
            return _cell(self.scores("relative", part, name, at, model))
        loss, right = (self.scores(score, part, name, at, model) for score in ("loss", "accuracy"))
        return f"{np.mean(loss):.3f}; {np.mean(right):.3f}" if loss else "-"

    # Figures

    def figures(self, folder: Path) -> None:
        names = self.names("figure 1")
        across = len(dict.fromkeys(name.split(" / ")[0] for name in names))
        CANVAS.draw(folder / "federated_figure_1.png", list(map(self._samplings_panel, names)), across, 2)
        CANVAS.draw(folder / "federated_figure_2.png", list(self._workers_panels()), legend=5)
        CANVAS.draw(folder / "federated_figure_4.png", list(self._rows_panels()), legend=3)
        for place in (3, 5, 6, 7, 8, 9):
            names = self.names(f"figure {place}")
            across = min(3, len(names)) if len(names) != 4 else 2
            panels = [self._sweep_panel(f"figure {place}", name) for name in names]
            CANVAS.draw(folder / f"federated_figure_{place}.png", panels, across, 3)

    def _samplings_panel(self, name: str) -> Panel:
        drawn = []
        for place, (model, (label, _)) in enumerate(blocks.samplings().items()):
            rows = self.rows("figure 1", name, "", model)
            losses = np.mean([row.scores["loss"] for row in rows], axis=0)
            style = {"color": f"C{place}", "linestyle": ":" if "printed" in model else "-", "linewidth": 1.2}
            drawn.append(Line(label, losses, rows[0].scores["iterations"], style))
        density, active = map(float, name.split(" / "))
        return Panel(f"entries {density:.1%}, truth {active:.1%}", "iterations", "loss", drawn, small="both")

    def _workers_panels(self) -> Iterator[Panel]:
        titles = {blocks.PRINTED: "as printed: l1 norm K x 5", blocks.SAME: "the same: l1 norm 5"}
        for model, title in titles.items() if self.results.rows("figure 2") else ():
            drawn = []
            for place, at in enumerate(self.values_of("figure 2", ALL)):
                (row,) = self.rows("figure 2", ALL, at, model)
                style = {"color": f"C{place}", "linewidth": 1.2}
                drawn.append(Line(f"K = {at}", row.scores["loss"], row.scores["iterations"], style))
            style = {"color": "grey", "linestyle": "--", "linewidth": 1}
            drawn.append(Line("least loss for an l1 norm of 5", row.scores["best"][0], style=style))
            yield Panel(title, "iterations", "loss", drawn, small="both")

    def _sweep_panel(self, part: str, name: str) -> Panel:
        """One line for each method."""
        score, values, drawn = "loss" if part == "figure 9" else "relative", self.values_of(part, name), []
        for model in (model for model in self.models(part) if model != PLAIN or score == "loss"):
            found = [(at, self.scores(score, part, name, at, model)) for at in values]
            points = [(float(at), np.mean(cell), np.std(cell)) for at, cell in found if cell]
            level = self.scores(score, part, name, ALL, model)
            style = {"color": COLORS.get(model, "grey"), "linewidth": 1.2}
            if points:
                x, means, spreads = zip(*points, strict=True)
                capped = np.minimum(means, HIGHEST) if score == "relative" else means
                drawn.append(Line(label_of(model), capped, x, {"marker": "o", "markersize": 3, **style}, bars=spreads))
            elif level:
                drawn.append(Line(label_of(model), np.mean(level), style={"linestyle": "--", **style}))

        def cut(axes: Any, _: Any) -> None:
            if score == "relative":
                axes.axhline(1.0, color="lightgrey", linewidth=0.8, zorder=0)
                axes.set_ylim(0.0, min(HIGHEST, max(1.2, axes.get_ylim()[1])) * 1.03)
            else:
                axes.set_yscale("log")

        ticks = [float(at) for at in values] if part in ("figure 3", "figure 5", "figure 9") else None
        y = "relative excess loss" if score == "relative" else "training loss"
        scales = ("linear" if part == "figure 7" else "log", "linear")
        return Panel(name, AXES[part], y, drawn, scales, ticks, cut, small="both")

    def _rows_panels(self) -> Iterator[Panel]:
        """Excess loss against rows, in log-log."""
        for name, method in ((name, method) for name in self.names("figure 4") for method in (MARGINALS, BEST)):
            mine, drawn = [model for model in self.models("figure 4") if model.startswith(method)], []
            for place, model in enumerate([*mine, CENTRAL, SHORT]):
                found = [
                    (at, self.scores("excess", "figure 4", name, at, model)) for at in self.values_of("figure 4", name)
                ]
                x, y = zip(*[(float(at), np.mean(cell)) for at, cell in found if cell], strict=True)
                label = model.removeprefix(f"{method}, ") if model in mine else label_of(model)
                color, dashes = COLORS.get(model, f"C{(place + 6) % 10}"), "-" if model in mine else "--"
                style = {"marker": "o", "markersize": 3, "linewidth": 1.2, "color": color, "linestyle": dashes}
                drawn.append(Line(label, y, x, style))
            fall = float(y[0]) * (np.array(x) / x[0]) ** (-2 / 3)
            drawn.append(Line("_fall", fall, x, {"color": "lightgrey", "linewidth": 1, "zorder": 0}))
            yield Panel(label_of(method), "rows", "excess loss", drawn, small="both")
