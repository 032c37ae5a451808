"""The tables and figures of the federated benchmark."""

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.federated import blocks, figures, methods, problems
from benchmarks.federated.figures import ALL, AXES
from benchmarks.federated.methods import (
    CENTRAL,
    DELTA,
    LABELS,
    MARGINALS,
    METHODS,
    PARTIES,
    PLAIN,
    REPETITIONS,
    SHARING,
    SHORT,
)
from benchmarks.federated.timing import LIMIT_MS
from benchmarks.frame.command import SPLIT
from benchmarks.frame.page import Found, Page, Seeds
from benchmarks.frame.records import Record
from benchmarks.frame.tables import lines, named, table, verdict

GROUPED = {"marginals": (MARGINALS,), "feature-sharing": SHARING, "central Frank-Wolfe": (CENTRAL, SHORT)}
LEVELS = (0.9, 0.5, 0.1)
REAL_PARTS = ("figure 9", "hinge")


def _by_value(record: Record) -> Record:
    """With the value of what is varied in place of epsilon; none for a method that does not depend on it."""
    name, _, at = record.set.partition(SPLIT)
    return replace(record, set=name, epsilon=float(at) if at not in ("", ALL) else None)


@dataclass(frozen=True)
class Duel:
    """Marginals against feature-sharing in one setting: relative excess losses by seeds."""

    where: str
    ours: Seeds
    theirs: Seeds

    @property
    def lead(self) -> float:
        """By how many standard errors of the difference marginals is ahead; those of a single run are not known."""
        squares = [float(np.var(found, ddof=1)) / len(found) for found in (self.ours, self.theirs) if len(found) > 1]
        return (self.theirs.average - self.ours.average) / max(math.sqrt(sum(squares)), 1e-12)


class FederatedPage(Page):
    """What stands in the template."""

    template = Path(__file__).with_name("page.md")
    radius, delta, parties, level = problems.RADIUS, DELTA, PARTIES, LEVELS[0]
    groups, correlation, limit, short = problems.GROUPS, problems.CORRELATION, LIMIT_MS, methods.SHORT_COUNT

    def __init__(self, records: Iterable[Record], *effort: Any) -> None:
        known = [*problems.REAL, *(name for told in effort[:1] for name in [*told.sizes, *told.compared])]
        placed = sorted(map(_by_value, records), key=lambda r: known.index(r.set) if r.set in known else -1)
        super().__init__(placed, *effort)  # sets stand in one order, whichever was measured last
        self.sweep = Found(lambda part: "\n\n".join(self._sweep(part)))

    def models(self, part: str) -> dict[str, str]:
        """Private methods with records in that table, in the order of the page, by their labels."""
        found = self.results.distinct("model", part, order=METHODS)
        known = [*METHODS, *found]
        found = sorted(found, key=lambda model: known.index(model.split(", ")[0] if part == "figure 4" else model))
        return {LABELS.get(model, model): model for model in found if model != PLAIN or part in REAL_PARTS}

    def sent(self, part: str, score: str, *models: str) -> Seeds:
        """The most of any party, over a whole table."""
        rows = (r for r in self.results.rows(part) if r.model in models and score in r.scores)
        return Seeds(r.scores[score][0] for r in rows).most

    def seeds(self) -> str:
        """How many seeds the private fits had, where they had more than one."""
        parts = [part for part in self.results.distinct("table") if part not in ("overhead", "printed", "figure 1")]
        cells = {(r.table, r.set, r.model, r.epsilon) for part in parts for r in self.results.rows(part)}
        some = sorted({len(self.results.rows(*cell)) for cell in cells} - {1}) or [1]
        return f"{some[0]}" if len(some) == 1 else f"{some[0]} to {some[-1]}"

    def repeated(self) -> str:
        """Where there are as many seeds as the paper has, of which methods if not of all."""
        told = []
        for part in self.results.distinct("table"):
            for name in self.results.sets(part):
                models = [model for model in self.results.distinct("model", part, name) if model != PLAIN]
                found: dict[str, list[str]] = {}
                for model in models:
                    for at in self._often(part, name, model):
                        found.setdefault(at, []).append(LABELS.get(model, LABELS.get(model.split(", ")[0], model)))
                for at, labels in found.items():
                    some = "" if len(labels) == len(models) else f" ({', '.join(dict.fromkeys(labels))})"
                    told.append((f"{part}, {name}" if name != ALL else part) + at + some)
        return "; ".join(told) or "nowhere"

    def _often(self, part: str, name: str, model: str) -> list[str]:
        """At which values a model has that many seeds; one empty word for all of them."""
        values = {r.epsilon for r in self.results.rows(part, name, model)}
        often = {at for at in values if len(self.results.rows(part, name, model, at)) >= REPETITIONS}
        if not often or often == values:
            return [""] * bool(often)
        return [" at " + " and ".join(f"{at:,.10g}" for at in sorted(filter(None, often)))]

    def close_enough(self) -> Iterator[dict[str, Any]]:
        for name in self.results.sets("numbers"):
            found = self.scores("linear", "numbers", name, MARGINALS)
            yield {"name": name, "found": found, "verdict": verdict(found.average <= 0.05)}

    def short_enough(self) -> Iterator[dict[str, Any]]:
        sent = self.sent("numbers", "uplink", MARGINALS)
        if sent:
            yield {"found": sent, "verdict": verdict(sent.average <= 2_000.0)}

    def fast_enough(self) -> Iterator[dict[str, Any]]:
        for row in self.overhead():
            yield row | {"verdict": verdict(row["rest"] <= LIMIT_MS)}

    # Which protocol wins when

    def best(self, score: str, part: str, name: str, at: float | None, models: Sequence[str]) -> Seeds:
        """Of the method of a group with the best mean."""
        found = [self.scores(score, part, name, model, at) for model in models]
        choose = max if score == "accuracy" else min
        return choose((values for values in found if values), key=np.mean, default=Seeds([]))

    def first_below(self, part: str, name: str, models: Sequence[str], most: float) -> str:
        """The smallest value of what is varied from which on the best of these methods has at most this loss."""
        reached = "not reached"
        for at in reversed(self.results.epsilons(part, name)):
            found = self.best("relative", part, name, at, models)
            if not found or found.average > most:
                return reached
            reached = f"{at:,.10g}"
        return reached

    def wins(self) -> str:
        return lines(["", *GROUPED], [*self._needs(), *self._gets(), *self._sends()])

    def _needs(self) -> Iterator[list[str]]:
        """How many rows, and how large an epsilon, each group of methods needs."""
        told = [[m if "central" in m else f"{m}, K = {PARTIES}" for m in models] for models in GROUPED.values()]
        rows = "rows for a relative excess loss of {:g}"
        cases = [("figure 4", name, told, rows) for name in self.results.sets("figure 4")]
        plain = list(map(list, GROUPED.values()))
        cases += [("figure 6", name, plain, f"epsilon for {{:g}}, {name}") for name in self.results.sets("figure 6")]
        for part, name, groups, what in cases:
            for most in LEVELS:
                yield [what.format(most), *(self.first_below(part, name, models, most) for models in groups)]

    def _gets(self) -> Iterator[list[str]]:
        """The relative excess loss, or for real sets the accuracy, of the best of each group of methods."""
        told = {"numbers": "1% dense, {}", "correlated": "correlated columns at {}"}
        for part, what in told.items():
            for name in self.results.sets(part):
                found = [self.best("relative", part, name, None, models) for models in GROUPED.values()]
                yield [f"relative excess loss, {what.format(name)}", *map("{}".format, found)]
        for name in self.results.sets("figure 9"):
            found = [
                self.best("accuracy", "figure 9", name, float(PARTIES), models)
                or self.best("accuracy", "figure 9", name, None, models)
                for models in GROUPED.values()
            ]
            yield [f"accuracy, {name}", *map("{}".format, found)]

    def _sends(self) -> Iterator[list[str]]:
        """What crosses the network for the numbers to reach."""
        records = self.results.rows("numbers")
        for score, what in (("uplink", "uplink of a party, bytes"), ("rounds", "rounds")) if records else ():
            found = [
                [r.scores[score][0] for r in records if r.model in models and score in r.scores]
                for models in GROUPED.values()
            ]
            yield [f"{what}, 1% dense", *(f"{min(v):,.0f} to {max(v):,.0f}" if v else "-" for v in found)]

    def duels(self) -> Iterator["Duel"]:
        """Every setting of every figure in which both protocols were run, feature-sharing with its best geometry."""
        parts = ("numbers", "correlated", *(f"figure {place}" for place in range(3, 10)))
        for part, name in [(place, case) for place in parts for case in self.results.sets(place)]:
            found = self.results.distinct("model", part, name)
            counts = [model.removeprefix(MARGINALS) for model in found if model.startswith(f"{MARGINALS}, K")] or [""]
            for at in self.results.epsilons(part, name) or [None]:
                for more in counts:
                    ours = self.scores("relative", part, name, MARGINALS + more, at)
                    ours = ours or self.scores("relative", part, name, MARGINALS + more, None)
                    theirs = self.best("relative", part, name, at, [model + more for model in SHARING])
                    if ours and theirs:
                        where = f"{part}, {name}" if name != ALL else part
                        yield Duel(where + (f", {at:,.10g}" if at is not None else "") + more, ours, theirs)

    def duels_told(self) -> str:
        duels = list(self.duels())
        if not duels:
            return ""
        worth = [duel for duel in duels if min(duel.ours.average, duel.theirs.average) <= LEVELS[0]]
        ahead, behind = ([duel for duel in worth if duel.lead * sign > 2.0] for sign in (1.0, -1.0))
        lower = sum(duel.lead > 0.0 for duel in worth if duel not in ahead)
        told = "; ".join(f"{duel.where} ({duel.ours.average:.3f} against {duel.theirs.average:.3f})" for duel in behind)
        return (
            f"Both protocols were run in {len(duels)} settings of all figures. In {len(worth)} of them at least one"
            f" gets to a relative excess loss of {LEVELS[0]:g}. In these marginals is ahead by more than two standard"
            f" errors {len(ahead)} times, feature-sharing, with the best of its geometries in each, {len(behind)} times"
            f"{f': {told}' if told else ''}. In {len(worth) - len(ahead) - len(behind)} two standard errors do not tell"
            f" them apart (marginals has the lower mean in {lower} of these)."
        )

    # Tables by part

    def numbers(self) -> str:
        rows = {}
        for label, model in self.models("numbers").items():
            rows[label] = (model, "relative")
            if model == MARGINALS:
                rows[f"{label}, of the weights"] = (model, "linear")
        columns = named(self.results.sets("numbers"))
        return table(
            "relative excess loss", rows, columns, lambda row, name: self.scores(row[1], "numbers", name, row[0])
        )

    def numbers_sent(self) -> Iterator[dict[str, Any]]:
        for label, model in self.models("numbers").items():
            took = statistics.median(row.seconds[0] for row in self.results.rows("numbers") if row.model == model)
            sent, rounds = (self.sent("numbers", score, model) for score in ("uplink", "rounds"))
            yield {"label": label, "sent": sent, "rounds": rounds, "took": took}

    def correlated(self) -> str:
        def cell(model: str, name: str | None) -> Any:
            if name is None:
                return f"{self.sent('correlated', 'uplink', model):,.0f}"
            return self.scores("relative", "correlated", name, model)

        columns = named(self.results.sets("correlated")) | {"uplink, bytes": None}
        return table("relative excess loss, columns of a group at", self.models("correlated"), columns, cell)

    def overhead(self) -> Iterator[dict[str, Any]]:
        if self.results.rows("overhead"):
            yield {key: statistics.median(self.results.values(key, "overhead")) for key in ("round", "own", "rest")}

    def samplings(self) -> str:
        """Where the traces of Figure 1 end."""

        def cell(name: str, model: str) -> str:
            return f"{np.mean([r.scores['loss'][-1] for r in self.results.rows('figure 1', name, model)]):.2e}"

        pairs = {name: map(float, name.split(" / ")) for name in self.results.sets("figure 1")}
        rows = {f"{density:.1%}, {active:.1%}": name for name, (density, active) in pairs.items()}
        return table("entries, truth", rows, {label: model for model, (label, _) in blocks.samplings().items()}, cell)

    def promised(self) -> Iterator[dict[str, Any]]:
        """By rows."""
        for at in self.results.epsilons("promised"):
            (row,) = self.results.rows("promised", ALL, "paper", at)
            yield {"rows": at} | {score: values[0] for score, values in row.scores.items()}

    def sent_told(self) -> str:
        """What a party sends in the fits of Figure 4, and what the paper's formulas say."""
        rows = {LABELS[method]: (f"{method}, K = {PARTIES}", "uplink") for method in (MARGINALS, *SHARING)}
        rows |= {label: ("paper", score) for score, label in figures.SENT.items()}

        def cell(row: tuple[str, str], at: float) -> str:
            part = "promised" if row[0] == "paper" else "figure 4"
            found = self.scores(row[1], part, ALL, row[0], at)
            return f"{found.most:,.0f}"

        columns = {f"{at:,.10g}": at for at in self.results.epsilons("figure 4", ALL)}
        return table("bytes of a party, rows", rows, columns, cell) if self.results.rows("promised") else ""

    def workers(self) -> Iterator[dict[str, Any]]:
        """Where the traces of Figure 2 end."""
        for at in self.results.epsilons("figure 2"):
            ends = {}
            for key, model in (("printed", blocks.PRINTED), ("same", blocks.SAME)):
                (row,) = self.results.rows("figure 2", ALL, model, at)
                ends[key] = {score: values[-1] for score, values in row.scores.items()}
            yield {"at": at, **ends}

    def sets(self) -> str:
        return ", ".join(f"{name} in an l1 ball of {radius:g}" for name, (_, radius, _) in problems.REAL.items())

    def _sweep(self, part: str) -> Iterator[str]:
        """Of each case: a row for each method, a column for each value; then what is sent."""
        for name in self.results.sets(part):
            if name != ALL:
                size = "{:,} x {:,}".format(*self.results.size(part, name))
                yield f"### {name}, {size}" if part in REAL_PARTS else f"### {name}"

            def cell(model: str, at: float, name: str = name) -> str:
                alone = self._told(part, name, model, None)
                return alone if alone != "-" else self._told(part, name, model, at)

            def sent(model: str, at: float, name: str = name) -> str:
                return f"{self.scores('uplink', part, name, model, at).most:,.0f}"

            columns = {f"{at:,.10g}": at for at in self.results.epsilons(part, name)}
            yield table(AXES[part], self.models(part), columns, cell)
            if part == "figure 8":
                yield table("uplink, bytes", self.models(part), columns, sent)

    def _told(self, part: str, name: str, model: str, at: float | None) -> str:
        if part not in REAL_PARTS:
            return f"{self.scores('relative', part, name, model, at)}"
        loss, right = (self.scores(score, part, name, model, at) for score in ("loss", "accuracy"))
        return f"{loss:.3f}; {right:.3f}" if loss else "-"

    def figures(self, folder: Path) -> None:
        figures.draw(self, folder)
