"""Writes the page of the federated benchmark from records; measures nothing."""

import platform
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

import federated_blocks as blocks
import federated_timing as timing
from federated_figures import AXES, figures, label_of
from federated_methods import CENTRAL, DELTA, MARGINALS, METHODS, PARTIES, PLAIN, SHARING, SHORT
from federated_problems import CORRELATION, GROUPS, RADIUS, REAL
from records import Record

INTRODUCTION = """\
# Private learning between parties with different columns: the paper's figures again

`python benchmarks/federated.py`, Python {python}, NumPy {numpy}; drawn from [federated.jsonl](federated.jsonl). The
paper is Lou and Cheung, "An Uplink Communication-Efficient Approach to Featurewise Distributed Sparse Optimization With
Differential Privacy" (2020). Its noise does not give the privacy that it states (see below); here everything is
calibrated by the library's accountant, over all that crosses between the parties and the coordinator.

**Data** is the paper's: a share of entries is not zero and normal, so is the truth x, and y = A x + noise of variance
0.001. The radius of the l1 ball, which the paper does not state, is {radius:g} unless it says otherwise. **Privacy** is
add-remove, epsilon = 1 unless it says otherwise, delta = {delta:g}. No bounds are declared for the synthetic sets:
every method finds its own within the budget; only central Frank-Wolfe, whose radius is in units of the target's range,
is told that range. K = {parties} parties hold equal parts of the columns, and labels are shared.

**Scores** are on the training rows, as in the paper. The *relative excess loss* of a model x is (f(x) - f*) / (f(0) -
f*), with f* the least loss in the ball: 0 is the best model there is, 1 is no better than no model, and more is worse
than none. It is that of predictions, which clip rows as the fit did; *of the weights* is that of the linear function
alone, on rows as they are. Mean ± standard deviation over {seeds} seeds, each with data and noise of its own; without
a ± there was one seed. *Uplink* is what one party sends, in bytes of the wire format, greeting included; the largest
of the parties.
"""

QUICK = """\
**This was a quick run**: fewer rows, columns, iterations, budgets and seeds than the text says. Its scores say nothing
of full sizes.
"""

WINS = """\
## Which protocol wins when

- **Marginals** is ahead wherever a private model of this data is worth having at all, with fewer bytes and rounds. It
  serves the squared and the logistic loss.
- **Feature-sharing** needs an epsilon of 10 to 100 for what marginals gets with 1. It is the one for the squared hinge,
  and it does not rest on columns of different parties being uncorrelated.
- **Neither**, nor central Frank-Wolfe, is of use at epsilon = 1 on the few hundred or thousand rows that the paper has.
- **Correlated columns at several parties** are the weak place of marginals: of the moments between parties it knows
  little. On sparse columns it goes by what all parties together can explain at most, which keeps it from counting the
  same twice where they seem to explain more than there is (the rows "correlated" below), and only there.

What each method needs, and what it gets, from the measurements below (K = {parties}, epsilon = 1 but where epsilon is
asked for). Feature-sharing and central Frank-Wolfe stand with what is best for them in that row.
"""

TARGETS = """\
## Numbers to reach
"""

NUMBERS = """\
## 1% dense data, {size}

epsilon = 1, delta = {delta:g}, K = {parties}. The truth has few or many active columns; the radius is its own l1 norm
or {radius:g}. The {short} iterations of central Frank-Wolfe are a choice made for it with the data in view.
"""

CORRELATED = """\
## Correlated columns at different parties

The same size, but the truth is on {groups} groups of columns, one of each group at two of the parties or at all of
them; the columns of a group lie on the same rows and are correlated by {correlation:g} there. "Cross zero" takes
columns of different parties for uncorrelated, "cross sketched" releases a sketch of one score of the selected columns
of each party; without a word the protocol's rule decides, which asks for the products with the target again here.
"""

LABELS = """\
## Labels that one party holds

With labels="shared" every party holds the labels; with "sketched" one party does, and releases one noisy sketch of them
for the others to work with. Relative excess loss of marginals, K = {parties}; 1% dense is the data above with the
fewest active columns and the radius of the truth, a9a and phishing are as in Figure 9.
"""

OVERHEAD = """\
## What a round costs in one process

Processor time of one round with {parties} parties, {rounds} rounds of feature-sharing on small data, journals in
memory; median of {runs} studies. "Besides" is what is left when the protocol's own work, on both sides, is taken off:
messages, checks, ledgers and journals.
"""

PRINTED = """\
## The true epsilon of the paper's noise

What the paper's Laplace scale (section IV-C) and its formula (17) are worth, by the library's accountant, where epsilon
is claimed. The noise of a shared feature has a 1/n in it that its sensitivity does not have.
"""

SAMPLINGS = """\
## Samplings without privacy (Figure 1)

![Loss by iterations for four samplings](federated_figure_1.png)

{size}; 100 groups of columns with an l1 ball each. The paper predicts that (K, tau)-distributed sampling is slowest,
from a probability of 0.16; a block is really drawn with probability 0.8, and with the step that belongs to it the
sampling is between elementary and tau-nice, or ahead of both. Stepping by 0.16 is what makes it slow. Loss at the end:
"""

WORKERS = """\
## More workers without privacy (Figure 2)

![Loss by iterations for K workers](federated_figure_2.png)

{size}, 1% of entries and of the truth. As printed (left), K workers have K balls of radius {radius:g}, and the larger K
is the more the model may do. With the same l1 norm for all (right) the speed-up is gone: the K balls of radius
{radius:g} / K are a smaller set than the ball, and the loss they can reach is higher.
"""

COMPARED = """\
## Against central DP Frank-Wolfe (Figure 3)

![Relative excess loss by iterations](federated_figure_3.png)

Each point is a fit of its own with that many iterations, which share the budget. Central Frank-Wolfe by its own rules
and marginals have no such number. So few rows give no private method, central or not, a model worth having.
"""

ROWS = """\
## Excess loss against rows (Figure 4)

![Excess loss against rows, in log-log](federated_figure_4.png)

{columns:,} columns, 1%; f(x) - f*. The grey line falls as n^(-2/3). The paper has 500 to 8,000 rows. Relative to
f(0) - f*:
"""

SWEEPS = {
    "figure 5": """\
## Parties (Figure 5)

![Relative excess loss by parties](federated_figure_5.png)

The paper finds that more parties do better; that is its larger ball. With the same ball, the parties share one budget.
""",
    "figure 6": """\
## Epsilon (Figure 6)

![Relative excess loss by epsilon](federated_figure_6.png)

The paper's losses do not depend on epsilon, from 0.001 to 10. With noise that is due, they do.
""",
    "figure 7": """\
## The split of the budget (Figure 7)

![Relative excess loss by the part of the budget for choosing columns](federated_figure_7.png)

The part of the budget that goes into choosing columns; the rest is for sketches (feature-sharing), or for products and
second moments (marginals).
""",
    "figure 8": """\
## The sketch (Figure 8)

![Relative excess loss by the size of the sketch](federated_figure_8.png)

A sketch with as many rows as the data compresses nothing. The noise of a sketched column does not depend on the size of
the sketch, which only adds an error of its own.
""",
    "figure 9": """\
## Real sets (Figure 9)

![Training loss by parties](federated_figure_9.png)

Logistic loss with an intercept: {sets}. rcv1 is not at hand; news20 stands in for it (hashed words, comp and sci
against the rest, rows of norm 1). Columns of the others are standardised, with the data, before all else. a9a and
phishing are not of the paper: tables with enough rows. Entries are clipped to 3 (news20: 0.1), which is declared.

Marginals minimises the logistic loss as it would be for normal columns; "without noise" shows what that costs alone.
The other way to it is by gradients in rounds, for which a party needs to know what the others' columns predict for each
row: that is feature-sharing. Training loss, and the part of training rows that are right:
""",
}

GROUPED = {"marginals": (MARGINALS,), "feature-sharing": SHARING, "central Frank-Wolfe": (CENTRAL, SHORT)}
LEVELS = (0.9, 0.5, 0.1)


class Results:
    """Records, found by table, case, value and method."""

    def __init__(self, records: Iterable[Record]) -> None:
        self._rows: dict[tuple[str, str, str, str], list[Record]] = {}
        for r in records:
            name, _, at = r.set.partition(" | ")
            self._rows.setdefault((r.table, name, at, r.model), []).append(r)

    def rows(self, table: str, name: str, at: str, model: str) -> list[Record]:
        """The records of that name."""
        return self._rows.get((table, name, at, model), [])

    def scores(self, table: str, name: str, at: str, model: str, score: str) -> list[float]:
        """One score over the seeds; none of those that a method does not have."""
        return [row.scores[score][0] for row in self.rows(table, name, at, model) if score in row.scores]

    def names(self, table: str) -> list[str]:
        """Cases of a table."""
        return list(dict.fromkeys(name for t, name, _, _ in self._rows if t == table))

    def values_of(self, table: str, name: str) -> list[str]:
        """The values of what is varied, in order; "all" comes first."""
        found = {at for t, n, at, _ in self._rows if (t, n) == (table, name)}
        return sorted(found, key=lambda at: -1.0 if at == "all" else float(at or 0.0))

    def models(self, table: str) -> list[str]:
        """Methods with records in that table, in the order of the page."""
        found = dict.fromkeys(model for t, _, _, model in self._rows if t == table)
        return [m for m in METHODS if m in found] + [m for m in found if m not in METHODS]

    def any(self, table: str) -> list[Record]:
        """All records of a table."""
        return [r for (t, *_), rows in self._rows.items() if t == table for r in rows]

    @property
    def seeds(self) -> str:
        """How many seeds the private fits had, where they had more than one."""
        fits = {len(rows) for (t, *_), rows in self._rows.items() if t not in ("overhead", "printed", "figure 1")}
        some = sorted(fits - {1}) or [1]
        return f"{some[0]}" if len(some) == 1 else f"{some[0]} to {some[-1]}"


def _cell(values: Sequence[float]) -> str:
    if len(values) > 1:
        return f"{np.mean(values):.3f} ± {np.std(values):.3f}"
    return f"{values[0]:.3f}" if values else "-"


def _bytes(values: Sequence[float]) -> str:
    return f"{max(values):,.0f}" if values else "-"


def _lines(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return ["| " + " | ".join(head) + " |", "|---" * len(head) + "|", *("| " + " | ".join(r) + " |" for r in rows), ""]


def _size(record: Record) -> str:
    return f"{record.size[0]:,} x {record.size[1]:,}"


def verdict(value: float, most: float) -> str:
    """Whether a number is as low as its target."""
    return "reached" if value <= most else "**not reached**"


def targets(results: Results) -> list[str]:
    """The numbers to reach, with what is reached."""
    rows = []
    for name in results.names("numbers"):
        relative = results.scores("numbers", name, "all", MARGINALS, "linear")
        what = f"marginals, {name}: relative excess loss of the weights"
        rows.append([what, "at most 0.05", _cell(relative), verdict(float(np.mean(relative)), 0.05)])
    sent = [row.scores["uplink"][0] for row in results.any("numbers") if row.model == MARGINALS]
    if sent:
        rows.append(["marginals: uplink of a party, bytes", "at most 2,000", _bytes(sent), verdict(max(sent), 2_000.0)])
    if results.any("overhead"):
        rest = statistics.median(row.scores["rest"][0] for row in results.any("overhead"))
        what = f"a round in process with {PARTIES} parties, besides the protocol's work"
        rows.append([what, f"below {timing.LIMIT_MS:g} ms", f"{rest:.2f} ms", verdict(rest, timing.LIMIT_MS)])
    return [TARGETS, *_lines(["what", "asked", "measured", ""], rows)] if rows else []


def first_below(results: Results, table: str, name: str, models: Sequence[str], most: float) -> str:
    """The smallest value of what is varied from which on the best of these methods has at most this loss."""
    reached = "not reached"
    for at in reversed([at for at in results.values_of(table, name) if at != "all"]):
        found = [results.scores(table, name, at, model, "relative") for model in models]
        means = [float(np.mean(values)) for values in found if values]
        if not means or min(means) > most:
            return reached
        reached = f"{float(at):,.10g}"
    return reached


def _needs(results: Results) -> list[list[str]]:
    """How many rows, and how large an epsilon, each group of methods needs."""
    rows = []
    for name in results.names("figure 4"):
        for most in LEVELS:
            told = [
                [model if "central" in model else f"{model}, K = {PARTIES}" for model in models]
                for models in GROUPED.values()
            ]
            cells = [first_below(results, "figure 4", name, models, most) for models in told]
            rows.append([f"rows for a relative excess loss of {most:g}", *cells])
    for name in results.names("figure 6"):
        for most in LEVELS:
            cells = [first_below(results, "figure 6", name, models, most) for models in GROUPED.values()]
            rows.append([f"epsilon for {most:g}, {name}", *cells])
    return rows


def _gets(results: Results) -> list[list[str]]:
    """The relative excess loss, or for real sets the accuracy, of the best of each group of methods."""
    cases = [("numbers", name, "all", f"relative excess loss, 1% dense, {name}") for name in results.names("numbers")]
    cases += [
        ("correlated", name, "", f"relative excess loss, correlated columns at {name}")
        for name in results.names("correlated")
    ]
    rows = [[what, *_best(results, table, name, at, "relative")] for table, name, at, what in cases]
    for name in results.names("figure 9"):
        pairs = zip(
            _best(results, "figure 9", name, str(PARTIES), "accuracy"),
            _best(results, "figure 9", name, "all", "accuracy"),
            strict=True,
        )
        rows.append([f"accuracy, {name}", *(one if one != "-" else other for one, other in pairs)])
    return rows


def _best(results: Results, table: str, name: str, at: str, score: str) -> list[str]:
    cells = []
    for models in GROUPED.values():
        found = [results.scores(table, name, at, model, score) for model in models]
        choose = max if score == "accuracy" else min
        cells.append(_cell(choose((values for values in found if values), key=np.mean, default=[])))
    return cells


def _sends(results: Results) -> list[list[str]]:
    """What crosses the network for the numbers to reach."""
    rows = []
    for score, what in (("uplink", "uplink of a party, bytes"), ("rounds", "rounds")):
        found = [
            [r.scores[score][0] for r in results.any("numbers") if r.model in models and score in r.scores]
            for models in GROUPED.values()
        ]
        rows.append([f"{what}, 1% dense", *(f"{min(v):,.0f} to {max(v):,.0f}" if v else "-" for v in found)])
    return rows if results.any("numbers") else []


def duels(results: Results) -> tuple[int, list[str], list[str]]:
    """In how many settings both protocols were run; where one of them has a model worth having, who is ahead."""
    count, ahead, behind = 0, [], []
    for table in ("numbers", "correlated", *(f"figure {number}" for number in (3, 5, 6, 7))):
        for name in results.names(table):
            for at in results.values_of(table, name):
                ours = results.scores(table, name, at, MARGINALS, "relative")
                ours = ours or results.scores(table, name, "all", MARGINALS, "relative")
                found = [results.scores(table, name, at, model, "relative") for model in SHARING]
                theirs = [float(np.mean(values)) for values in found if values]
                if ours and theirs:
                    count += 1
                    if min(*theirs, float(np.mean(ours))) <= LEVELS[0]:
                        where = ", ".join(part for part in (table, name, at) if part not in ("", "all"))
                        told = f"{where} ({np.mean(ours):.2f} against {min(theirs):.2f})"
                        (behind if min(theirs) < np.mean(ours) else ahead).append(told)
    return count, ahead, behind


def wins(results: Results) -> list[str]:
    """What each method needs and gets, in one table."""
    rows = [*_needs(results), *_gets(results), *_sends(results)]
    if not rows:
        return []
    count, ahead, behind = duels(results)
    told = (
        f"Both protocols were run in {count} settings. In {len(ahead) + len(behind)} of them at least one gets to a"
        f" relative excess loss of {LEVELS[0]:g}: marginals has the lower mean loss in {len(ahead)}, feature-sharing in"
        f" {len(behind)}"
    )
    listed = f": {'; '.join(behind)}." if behind else "."
    return [WINS.format(parties=PARTIES), *_lines(["", *GROUPED], rows), told + listed, ""]


def numbers(results: Results) -> list[str]:
    """Every method on every problem."""
    names = results.names("numbers")
    if not names:
        return []
    size = _size(results.any("numbers")[0])
    short = METHODS[SHORT].options["n_iter"]  # type: ignore[attr-defined]
    lines = [NUMBERS.format(size=size, delta=DELTA, parties=PARTIES, radius=RADIUS, short=short)]
    models = [model for model in results.models("numbers") if model != PLAIN]
    rows = []
    for model in models:
        found = [results.scores("numbers", name, "all", model, "relative") for name in names]
        rows.append([label_of(model), *map(_cell, found)])
        if model == MARGINALS:
            found = [results.scores("numbers", name, "all", model, "linear") for name in names]
            rows.append([f"{label_of(model)}, of the weights", *map(_cell, found)])
    lines += _lines(["relative excess loss", *names], rows)
    rows = []
    for model in models:
        records = [row for row in results.any("numbers") if row.model == model]
        sent = [row.scores["uplink"][0] for row in records if "uplink" in row.scores]
        rounds = [row.scores["rounds"][0] for row in records if "rounds" in row.scores]
        took = statistics.median(row.seconds[0] for row in records)
        rows.append([label_of(model), _bytes(sent), f"{max(rounds):.0f}" if rounds else "-", f"{took:.1f}"])
    return lines + _lines(["", "uplink, bytes", "rounds", "a fit, s"], rows)


def correlated(results: Results) -> list[str]:
    """Every method, and every way to cross moments."""
    names, rows = results.names("correlated"), []
    for model in results.models("correlated"):
        if model != PLAIN:
            cells = [_cell(results.scores("correlated", name, "", model, "relative")) for name in names]
            sent = [value for name in names for value in results.scores("correlated", name, "", model, "uplink")]
            rows.append([label_of(model), *cells, _bytes(sent)])
    told = CORRELATED.format(groups=GROUPS, correlation=CORRELATION)
    head = ["relative excess loss, columns of a group at", *names, "uplink, bytes"]
    return [told, *_lines(head, rows)] if rows else []


def overhead(results: Results) -> list[str]:
    """Milliseconds of a round."""
    records = results.any("overhead")
    if not records:
        return []
    told = OVERHEAD.format(parties=PARTIES, rounds=records[0].size[1], runs=len(records))
    cells = [f"{statistics.median(r.scores[key][0] for r in records):.2f}" for key in ("round", "own", "rest")]
    return [told, *_lines(["a round, ms", "the protocol's own work", "besides"], [cells])]


def printed(results: Results) -> list[str]:
    """What the paper's noise is worth."""
    records = results.any("printed")
    if not records:
        return []
    keys = list(records[0].scores)
    rows = [[r.set, *(f"{r.scores[key][0]:,.4g}" for key in keys)] for r in records]
    return [PRINTED, *_lines(["the paper's setting", *keys], rows)]


def samplings(results: Results) -> list[str]:
    """Where the traces of Figure 1 end."""
    if not results.names("figure 1"):
        return []
    rows = []
    for name in results.names("figure 1"):
        ends = [
            [row.scores["loss"][-1] for row in results.rows("figure 1", name, "", model)]
            for model in blocks.samplings()
        ]
        density, active = map(float, name.split(" / "))
        rows.append([f"{density:.1%}, {active:.1%}", *(f"{np.mean(end):.2e}" for end in ends)])
    head = ["entries, truth", *(label for label, _ in blocks.samplings().values())]
    return [SAMPLINGS.format(size=_size(results.any("figure 1")[0])), *_lines(head, rows)]


def workers(results: Results) -> list[str]:
    """Where the traces of Figure 2 end."""
    rows = []
    for at in results.values_of("figure 2", "all"):
        cells = []
        for model in (blocks.PRINTED, blocks.SAME):
            (row,) = results.rows("figure 2", "all", at, model)
            cells += [f"{row.scores['norm'][0]:g}", f"{row.scores['loss'][-1]:.4f}"]
        rows.append([at, *cells, f"{row.scores['best'][0]:.4f}"])
    head = ["K", "l1 norm as printed", "loss", "l1 norm", "loss", "least loss in the ball"]
    told = WORKERS.format(size=_size(results.any("figure 2")[0]), radius=RADIUS) if rows else ""
    return [told, *_lines(head, rows)] if rows else []


def sweep(results: Results, table: str, told: str) -> list[str]:
    """A table for each case: a row for each method, a column for each value; then what is sent."""
    names = results.names(table)
    if not names:
        return []
    lines = [told]
    for name in names:
        if name != "all":
            lines += [f"### {name}" if table != "figure 9" else f"### {name}, {_size(_one(results, table, name))}", ""]
        values = [at for at in results.values_of(table, name) if at != "all"]
        rows, sent = [], []
        for model in results.models(table):
            if model == PLAIN and table != "figure 9":
                continue
            level = _told(results, table, name, "all", model)
            cells = [_told(results, table, name, at, model) for at in values]
            if level != "-" or set(cells) != {"-"}:
                rows.append([label_of(model), *(level if level != "-" else cell for cell in cells)])
            found = [_bytes(results.scores(table, name, at, model, "uplink")) for at in values]
            if table == "figure 8" and set(found) != {"-"}:
                sent.append([label_of(model), *found])
        head = [f"{float(at):,.10g}" for at in values]
        lines += _lines([AXES[table], *head], rows)
        lines += _lines(["uplink, bytes", *head], sent) if sent else []
    return lines


def _one(results: Results, table: str, name: str) -> Record:
    return next(r for r in results.any(table) if r.set.split(" | ")[0] == name)


def _told(results: Results, table: str, name: str, at: str, model: str) -> str:
    if table != "figure 9":
        return _cell(results.scores(table, name, at, model, "relative"))
    loss, right = (results.scores(table, name, at, model, score) for score in ("loss", "accuracy"))
    return f"{np.mean(loss):.3f}; {np.mean(right):.3f}" if loss else "-"


def page(results: Results, quick: bool) -> str:
    """The whole page."""
    about = {"python": platform.python_version(), "numpy": np.__version__, "radius": RADIUS, "delta": DELTA}
    columns = results.any("figure 4")[0].size[1] if results.any("figure 4") else 0
    kinds = ", ".join(f"{name} in an l1 ball of {radius:g}" for name, (_, radius, _) in REAL.items())
    lines = [
        INTRODUCTION.format(**about, parties=PARTIES, seeds=results.seeds),
        *([QUICK] if quick else []),
        *wins(results),
        *targets(results),
        *numbers(results),
        *correlated(results),
        *sweep(results, "labels", LABELS.format(parties=PARTIES)),
        *overhead(results),
        *printed(results),
        *samplings(results),
        *workers(results),
        *sweep(results, "figure 3", COMPARED),
        *sweep(results, "figure 4", ROWS.format(columns=columns)),
        *(line for table, told in SWEEPS.items() for line in sweep(results, table, told.replace("{sets}", kinds))),
    ]
    return "\n".join(lines).rstrip() + "\n"


def pages(store: Iterable[Record], folder: Path, quick: bool) -> None:
    """Write federated.md and the figures."""
    results = Results(store)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "federated.md").write_text(page(results, quick), encoding="utf8")
    figures(results, folder)
