"""Writes the page of the DP-SCD benchmark from records; measures nothing."""

import math
import platform
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import dp_scd_problems as problems
import dp_scd_timing as timing
from dp_scd_figures import figures
from dp_scd_methods import EPOCHS, METHODS
from records import Record

INTRODUCTION = """\
# DP-SCD: the paper's figures again

`python benchmarks/dp_scd.py`, Python {python}, NumPy {numpy}; drawn from [dp_scd.jsonl](dp_scd.jsonl). The paper is
Damaskinos, Mendler-Dünner, Guerraoui, Papandreou and Parnell, "Differentially Private Stochastic Coordinate Descent"
(2021).

**Problems**, prepared as in the paper's appendix E: every column is divided by its largest absolute value and labels of
regressions are centred, both over all rows and *taken for public here, as there*; then every row is divided by its
norm, which depends on that row alone. Labels of regressions are in units of their deviation, and clipped to 3 of them
for training; scores are in the label's own units, on labels that were not clipped. {train:.0%} of the rows train, the
others test, another split for every seed. No intercept; lambda is the paper's, 1e-4, and 1e-5 for adult. In
place of YearPredictionMSD there is msd_subset_year: the same features of other and fewer songs. {epochs} epochs (the
paper: 50 for YearPredictionMSD), but where it says otherwise.

**Methods**, all with add-remove neighbours and calibrated by the library's accountant (privacy loss distributions):

- *ours, the whole estimator, untuned*: `LinearSVC(loss="hinge")`, `LogisticRegression` or `Ridge` with
  `solver="dual"` and `row_norm=1` (`Ridge`: and `y_bounds`) on the same rows; scales are found inside the budget. It
  has an intercept and its default penalty, on standardised columns, so it solves another problem than the paper's.
- *ours, untuned*: the solver by its rules (secret dual, noise on v alone), on the paper's problem. Where
  there is little noise its rules take up to 100 epochs, and penalise by 0.01 of a row's squared norm at least (ridge:
  0.003).
- *ours, tuned*, and *the published variant, tuned* (noise on the dual vector too, at sqrt(2) C): batch and clip.
- *sequential* (one epoch, because a row's batch is paid for once in each, at full price) and *primal*, accounted for
  what they really release; only the clip is tuned, at delta = 1e-3 alone.
- *DP-SGD*: Poisson samples, in NumPy, batch, clip and step tuned; the last iterate, or the mean of the second half.

**Tuning is for free here**, as in the paper, for every budget: one run of every point of the grid on a split that no
reported run uses, {runs} of the best {kept}, and the best mean test score wins. Reported are mean ± standard deviation
of {seeds} other splits. The standard error of such a mean is a third of the spread shown.
"""

QUICK = """\
**This was a quick run**: at most {rows:,} rows of every set, and fewer budgets, points and seeds than the text says.
"""

TARGETS = """\
## Numbers to reach

Verdicts are on ours alone, by the mean; the other methods are there to compare. What "not private" means depends on the
method: the whole estimator solves another problem than the paper's, and because it clips columns and labels it can be
better than scikit-learn, so that its own limit is the stricter measure.
"""

UTILITY = """\
## Utility against epsilon (Figure 1)

![Test scores against epsilon](dp_scd_figure_1.png)

The dashed line is the optimum of the paper's problem; what is far worse than no model at all is cut off. Bands are one
standard deviation.
"""

DUELS = """\
### Ours against the others

At how many budgets the mean score of ours is at or below that of another method:
"""

COUNTS = """\
## What tuning costs

Points that were tried for each problem and budget. The paper counts 156 for DP-SCD and 2,028 for DP-SGD. Tuning is not
free for anyone who has no second set of such rows. Where tuning often took the smallest or largest batch of the grid, a
wider grid may find better.
"""

CONVERGENCE = """\
## Convergence (Figure 2)

![Objective by epochs](dp_scd_figure_2.png)

The objective on the training rows above its optimum, as a part of the zero model's, along the runs that tuned best at
delta = 1e-3 (for the test score, not for the objective); mean, and minimum to maximum, of {seeds} seeds. After {epochs}
epochs:
"""

GRID = """\
## Batch against clip (Figure 3)

![Batch against clip](dp_scd_figure_3.png)

Mean test score of {seeds} seeds at epsilon = 1, delta = 1e-3; the star is the rule's point. The part of the cells
within 5% of the best one, and how far the rule's point is above it:
"""

TIME = """\
## Time

One epoch of batches of 300 (the slope between runs of 1 and of 11), against `X @ v` plus `X.T @ z` on the same rows in
float64; n = {n:,}, d = {d}, one BLAS thread; sparse rows have {density:.0%} of the entries and are not densified.
Medians of {rounds} rounds in turns; kernels compiled and noise calibrated before.
"""

CHOSEN = """\
## What tuning chose

Mean test score of the runs that chose; in brackets batch, clip (ours and published: times the rule's for that batch;
sequential: the update of a row of norm 1 over its bound; primal: a weight on rows of norm sqrt(d); DP-SGD: over the
bound of a gradient) and, of DP-SGD, the step in units of 1 / curvature:
"""


class Results:
    """Records, found by table, problem, method and epsilon."""

    def __init__(self, records: Iterable[Record]) -> None:
        self._rows: dict[tuple[str, str, str, float | None], list[Record]] = {}
        for r in records:
            self._rows.setdefault((r.table, r.set, r.model, r.epsilon), []).append(r)

    def rows(self, table: str, problem: str, model: str, epsilon: float | None) -> list[Record]:
        """The records of that name."""
        return self._rows.get((table, problem, model, epsilon), [])

    def scores(self, table: str, problem: str, model: str, epsilon: float | None) -> list[float]:
        """Test scores over the seeds."""
        return [row.scores["score"][0] for row in self.rows(table, problem, model, epsilon)]

    def problems(self, table: str) -> list[str]:
        """Problems with records in that table, the paper's first."""
        found = {problem: None for name, problem, _, _ in self._rows if name == table}
        return [name for name in problems.NAMES if name in found] + [n for n in found if n not in problems.NAMES]

    def epsilons(self, table: str, problem: str) -> list[float]:
        """The budgets that were run."""
        return sorted({e for t, p, _, e in self._rows if (t, p) == (table, problem) and e is not None})

    def deltas(self, problem: str) -> list[str]:
        """The deltas that were run, by name."""
        found = (t.removeprefix("utility, ") for t, p, _, _ in self._rows if t.startswith("utility") and p == problem)
        return list(dict.fromkeys(found))

    def seeds(self, table: str) -> int:
        """The most seeds of any cell."""
        return max((len(rows) for (name, *_), rows in self._rows.items() if name == table), default=0)

    def tuning(self, model: str) -> list[Record]:
        """All tunings of a method."""
        return [r for (t, _, m, _), rows in self._rows.items() if t.startswith("tuning") and m == model for r in rows]

    def grid(self, problem: str, model: str) -> tuple[list[float], list[float], NDArray[np.float64]]:
        """Batches, clips, and mean scores by clip and batch."""
        rows = self.rows("grid", problem, model, 1.0)
        batches, clips = (sorted(set(rows[0].scores[key])) for key in ("batch", "clip"))
        means = np.mean([row.scores["score"] for row in rows], axis=0)
        return batches, clips, means.reshape(len(batches), len(clips)).T


def _number(value: float, near: float | None = None) -> str:
    """Four digits behind the point of errors, one of large numbers; of a spread, as many as its mean has."""
    return f"{value:.4f}" if (value if near is None else near) < 10 else f"{value:,.1f}"


def _cell(values: Sequence[float]) -> str:
    if not values:
        return "-"
    mean = float(np.mean(values))
    return f"{_number(mean)} ± {_number(float(np.std(values)), mean)}"


def _lines(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return ["| " + " | ".join(head) + " |", "|---" * len(head) + "|", *("| " + " | ".join(r) + " |" for r in rows), ""]


def verdict(value: float, target: float) -> str:
    """Whether a number is at or below its target."""
    return "reached" if value <= target else "**not reached**"


_REFERENCES = {
    "optimum": "the optimum of the paper's problem",
    "standardised": "scikit-learn, standardised columns",
    "limit": "the same fit at an infinite epsilon",
}


def _references(results: Results, problem: str, model: str) -> dict[str, float]:
    """What a method is after, and its score."""
    names = ("standardised", "limit") if model == "fit" else ("optimum",)
    found = {name: results.scores("plain", problem, name, None) for name in names}
    return {name: float(np.mean(scores)) for name, scores in found.items() if scores}


def targets(results: Results) -> list[str]:
    """The numbers to reach, with what is reached; other methods next to them."""
    wanted = [
        ("Logistic, phishing", 0.1, "n^-2", 0.085, ("rule", "fit", "tuned"), "test error at most .085"),
        ("SVM, adult", 0.1, "1e-3", 0.17, ("rule", "fit"), "test error at most .17"),
        ("Ridge, california_housing", 1.0, "1e-3", None, ("rule", "fit", "tuned"), "MSE at most 2% above not private"),
    ]
    rows = []
    for problem, epsilon, delta, limit, judged, asked in wanted:
        where = f"{problem}, epsilon = {epsilon:g}, delta = {delta}"
        for model, method in METHODS.items():
            scores = results.scores(f"utility, {delta}", problem, model, epsilon)
            if not scores or model in ("sequential", "primal"):
                continue
            mean = float(np.mean(scores))
            for name, plain in _references(results, problem, model).items():
                told = verdict(mean, 1.02 * plain if limit is None else limit) if model in judged else ""
                above = f"{100 * (mean / plain - 1):+.2f}%"
                against = f"{_number(plain)}, {_REFERENCES[name]}"
                rows.append([where, asked, method.label, _cell(scores), against, above, told])
    for name in results.problems("timing"):
        taken, limit = _timed(results, name)
        if math.isfinite(limit):
            ratio = taken["epoch"] / taken["products"]
            asked = f"at most {limit:g} times the two products"
            rows.append([f"one epoch, {name}", asked, "ours", f"{ratio:.2f} times", "", "", verdict(ratio, limit)])
    head = ["where", "asked", "method", "score", "not private", "above it", ""]
    return [TARGETS, *_lines(head, rows)] if rows else []


def utility(results: Results) -> list[str]:
    """A table for each problem and delta."""
    names = [name for name in results.problems("plain") if results.deltas(name)]
    if not names:
        return []
    lines = [UTILITY]
    for name in names:
        (size, *_) = (r.size for r in results.rows("plain", name, "optimum", None))
        kind = "mean squared error" if problems.CASES[name][1] == "squared" else "part of wrong predictions"
        plain = {m: _cell(results.scores("plain", name, m, None)) for m in ("optimum", "standardised", "zero", "limit")}
        limit = "" if plain["limit"] == "-" else f" the whole estimator at an infinite epsilon: {plain['limit']};"
        lines += [
            f"### {name}",
            "",
            f"{size[0]:,} x {size[1]}; {kind} on the test rows. Not private: {plain['optimum']}; scikit-learn on"
            f" standardised columns, with an intercept: {plain['standardised']};{limit} no model: {plain['zero']}.",
            "",
        ]
        for delta in results.deltas(name):
            table = f"utility, {delta}"
            epsilons = results.epsilons(table, name)
            rows = []
            for model, method in METHODS.items():
                cells = [_cell(results.scores(table, name, model, epsilon)) for epsilon in epsilons]
                if any(cell != "-" for cell in cells):
                    rows.append([method.label, *cells])
            lines += _lines([f"delta = {delta}", *(f"epsilon = {e:g}" for e in epsilons)], rows)
    return lines


def duels(results: Results) -> list[str]:
    """At how many budgets each of ours has the lower mean, or the same."""
    others = ("published", "sgd", "tail")
    rows = []
    for name in results.problems("plain"):
        budgets = [(f"utility, {d}", e) for d in results.deltas(name) for e in results.epsilons(f"utility, {d}", name)]
        for model in ("fit", "rule", "tuned"):
            cells = []
            for other in others:
                pairs = [[results.scores(table, name, m, e) for m in (model, other)] for table, e in budgets]
                means = [(np.mean(ours), np.mean(theirs)) for ours, theirs in pairs if ours and theirs]
                cells.append(f"{sum(ours <= theirs for ours, theirs in means)} of {len(means)}" if means else "-")
            rows.append([name, METHODS[model].label, *cells])
    return [DUELS, *_lines(["problem", "", *(METHODS[m].label for m in others)], rows)] if rows else []


def counts(results: Results) -> list[str]:
    """How many points each method was tuned over."""
    rows = []
    for model, method in METHODS.items():
        records = results.tuning(model)
        tried = f"{max(r.scores['tried'][0] for r in records):.0f}" if records else "none"
        what = {"rule": "-", "fit": "-", "sequential": "clip", "primal": "clip"}.get(model, "batch, clip")
        what = "batch, clip, step" if model in ("sgd", "tail") else what
        ends = min((p.batch for p in method.grid), default=0), max((p.batch for p in method.grid), default=0)
        edge = [sum(r.scores["batch"][0] == end for r in records) for end in ends]
        tuned = f"{edge[0]} and {edge[1]} of {len(records)}" if records and ends[0] < ends[1] else "-"
        rows.append([method.label, what, tried, tuned])
    return [COUNTS, *_lines(["method", "tuned", "points", "took the smallest and largest batch"], rows)]


def convergence(results: Results) -> list[str]:
    """Where the runs of Figure 2 end."""
    names = results.problems("convergence")
    if not names:
        return []
    rows = []
    for name in names:
        for epsilon in (e for e in results.epsilons("convergence", name) if np.isfinite(e)):
            cells = []
            runs = [
                *((model, epsilon) for model in ("tuned", "published", "sgd")),
                (f"noiseless {epsilon:g}", math.inf),
            ]
            for model, at in runs:
                found = [r.scores for r in results.rows("convergence", name, model, at)]
                pairs = [(s["objective"][-1] - s["optimum"][0]) / (s["zero"][0] - s["optimum"][0]) for s in found]
                cells.append(f"{np.mean(pairs):.3f}" if pairs else "-")
            rows.append([name, f"{epsilon:g}", *cells])
    head = ["problem", "epsilon", "ours, tuned", "published, tuned", "DP-SGD, last iterate, tuned", "ours, no noise"]
    return [CONVERGENCE.format(seeds=results.seeds("convergence"), epochs=EPOCHS), *_lines(head, rows)]


def grids(results: Results) -> list[str]:
    """How flat the maps of Figure 3 are."""
    names = results.problems("grid")
    if not names:
        return []
    rows = []
    for name in names:
        for model, label in (("tuned", "ours"), ("published", "published")):
            batches, clips, values = results.grid(name, model)
            place = np.unravel_index(int(np.argmin(values)), values.shape)
            best = float(values.min())
            at = f"{_number(best)} (batch {batches[place[1]]:.0f}, clip {clips[place[0]]:g})"
            flat = f"{np.mean(values <= 1.05 * best):.0%}"
            rule = "-"
            if 300.0 in batches and 1.0 in clips:
                rule = f"{100 * (values[clips.index(1.0), batches.index(300.0)] / best - 1):+.1f}%"
            rows.append([name, label, at, flat, rule])
    head = ["problem", "variant", "best cell", "within 5%", "the rule's point"]
    return [GRID.format(seeds=results.seeds("grid")), *_lines(head, rows)]


def _timed(results: Results, name: str) -> tuple[dict[str, float], float]:
    """Median seconds, and the limit of their ratio; sparse rows have none."""
    rows = {model: results.rows("timing", name, model, None) for model in ("epoch", "products")}
    kind, loss = name.split(", ")
    taken = {model: statistics.median(r.seconds[0] for r in found) for model, found in rows.items()}
    return taken, timing.LIMITS[loss.replace(" ", "_")] if kind == "dense" else math.inf


def time_table(results: Results) -> list[str]:
    """One epoch against the two products."""
    names = results.problems("timing")
    if not names:
        return []
    (n, d) = results.rows("timing", names[0], "epoch", None)[0].size
    rows = []
    for name in names:
        taken, limit = _timed(results, name)
        asked = f"{limit:g}" if math.isfinite(limit) else "-"
        cells = [f"{1e3 * taken[model]:.3g}" for model in ("epoch", "products")]
        rows.append([name, *cells, f"{taken['epoch'] / taken['products']:.2f}", asked])
    told = TIME.format(n=n, d=d, density=timing.DENSITY, rounds=results.seeds("timing"))
    return [told, *_lines(["rows, loss", "epoch, ms", "products, ms", "ratio", "at most"], rows)]


def chosen(results: Results) -> list[str]:
    """What tuning chose."""
    rows = []
    for name in problems.NAMES:
        for delta in results.deltas(name):
            epsilons = results.epsilons(f"utility, {delta}", name)
            for model, method in METHODS.items():
                cells = []
                for epsilon in epsilons:
                    for record in results.rows(f"tuning, {delta}", name, model, epsilon):
                        score, batch, clip, step = (record.scores[k][0] for k in ("score", "batch", "clip", "step"))
                        last = f", {step:g}" if step else ""
                        cells.append(f"{epsilon:g}: {_number(score)} ({batch:.0f}, {clip:g}{last})")
                if cells:
                    rows.append([name, delta, method.label, "; ".join(cells)])
    return [CHOSEN, *_lines(["problem", "delta", "method", "by epsilon"], rows)] if rows else []


def page(results: Results, most_rows: int | None, kept: int, runs: int, seeds: int) -> str:
    """The whole page."""
    introduction = INTRODUCTION.format(
        python=platform.python_version(),
        numpy=np.__version__,
        train=problems.TRAIN_PART,
        epochs=EPOCHS,
        kept=kept,
        runs=runs,
        seeds=seeds,
    )
    lines = [
        introduction,
        *([QUICK.format(rows=most_rows)] if most_rows else []),
        *targets(results),
        *utility(results),
        *duels(results),
        *counts(results),
        *convergence(results),
        *grids(results),
        *time_table(results),
        *chosen(results),
    ]
    return "\n".join(lines).rstrip() + "\n"


def pages(store: Iterable[Record], folder: Path, most_rows: int | None, kept: int, runs: int, seeds: int) -> None:
    """Write dp_scd.md and the figures."""
    results = Results(store)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "dp_scd.md").write_text(page(results, most_rows, kept, runs, seeds), encoding="utf8")
    figures(results, folder)
