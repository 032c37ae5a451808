"""The tables and figures of the federated benchmark."""

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.federated import blocks, figures, methods, problems
from benchmarks.federated.figures import ALL, AXES
from benchmarks.federated.methods import CENTRAL, DELTA, LABELS, MARGINALS, METHODS, PARTIES, PLAIN, SHARING, SHORT
from benchmarks.federated.timing import LIMIT_MS
from benchmarks.frame.command import SPLIT
from benchmarks.frame.page import Found, Page, Seeds
from benchmarks.frame.records import Record
from benchmarks.frame.tables import lines, named, table, verdict

GROUPED = {"marginals": (MARGINALS,), "feature-sharing": SHARING, "central Frank-Wolfe": (CENTRAL, SHORT)}
LEVELS = (0.9, 0.5, 0.1)


def _by_value(record: Record) -> Record:
    """With the value of what is varied in place of epsilon; none for a method that does not depend on it."""
    name, _, at = record.set.partition(SPLIT)
    return replace(record, set=name, epsilon=float(at) if at not in ("", ALL) else None)


class FederatedPage(Page):
    """What stands in the template."""

    template = Path(__file__).with_name("page.md")
    radius, delta, parties, level = problems.RADIUS, DELTA, PARTIES, LEVELS[0]
    groups, correlation, limit, short = problems.GROUPS, problems.CORRELATION, LIMIT_MS, methods.SHORT_COUNT

    def __init__(self, records: Iterable[Record], *effort: Any) -> None:
        super().__init__(map(_by_value, records), *effort)
        self.sweep = Found(lambda part: "\n\n".join(self._sweep(part)))

    def models(self, part: str) -> dict[str, str]:
        """Private methods with records in that table, in the order of the page, by their labels."""
        found = self.results.distinct("model", part, order=METHODS)
        return {LABELS.get(model, model): model for model in found if model != PLAIN or part == "figure 9"}

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

    def duels(self) -> tuple[int, list[str], list[str]]:
        """In how many settings both protocols were run; where one of them has a model worth having, who is ahead."""
        parts = ("numbers", "correlated", *(f"figure {place}" for place in (3, 5, 6, 7)))
        cases = [(part, name) for part in parts for name in self.results.sets(part)]
        count, ahead, behind = 0, [], []
        for part, name, at in [(*case, at) for case in cases for at in self.results.epsilons(*case) or [None]]:
            ours = self.scores("relative", part, name, MARGINALS, at)
            ours = ours or self.scores("relative", part, name, MARGINALS, None)
            theirs = self.best("relative", part, name, at, SHARING)
            if ours and theirs:
                count, pair = count + 1, (ours.average, theirs.average)
                if min(pair) <= LEVELS[0]:
                    where = f"{part}, {name}" if at is None else f"{part}, {name}, {at:g}"
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
                yield f"### {name}, {size}" if part == "figure 9" else f"### {name}"

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
        if part != "figure 9":
            return f"{self.scores('relative', part, name, model, at)}"
        loss, right = (self.scores(score, part, name, model, at) for score in ("loss", "accuracy"))
        return f"{loss:.3f}; {right:.3f}" if loss else "-"

    def figures(self, folder: Path) -> None:
        figures.draw(self, folder)
