"""Writes the page of the DP-CD benchmark from records; measures nothing."""

import platform
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

import dp_cd_problems as problems
import dp_cd_timing as timing
from dp_cd_figures import figures
from dp_cd_methods import METHODS, SGD
from dp_cd_paper import PASSES, TABLE_2, TABLE_3_AT_50_PASSES
from dp_cd_tuning import FULL, Effort
from dp_cd_untuned import RULES
from records import Record

INTRODUCTION = """\
# DP-CD: the paper's tables and figures again

`python benchmarks/dp_cd.py`, Python {python}, NumPy {numpy}; drawn from [dp_cd.jsonl](dp_cd.jsonl). The paper is
Mangold, Bellet, Salmon and Tommasi, "Differentially Private Coordinate Descent for Composite Empirical Risk
Minimization" (2022). Everywhere delta = 1/n^2; epsilon is 10 for the sparse problem and 1 for the others.

**Problems.** Electricity (elec2): logistic loss, l2 penalty lambda = 1/n. California housing: LASSO, lambda = 1.0 raw
("imbalanced") and 0.1 standardised ("balanced"). Sparse LASSO: n = p = 1,000 standard normal columns, 10 active,
lambda = 30; the paper does not print the size of its labels, and ours are scaled so that the zero model has the paper's
relative error of .7551. No intercept. Standardisation is not accounted for, here as there. The relative error is
(F(w) - F*) / F*, with F* from scikit-learn.

**Methods.**

- *paper's form, paper's accounting*: coordinates at random, derivatives clipped to C_j = sqrt(M_j / tr M) C, the last
  iterate; replace-one neighbours, sensitivity 2 C_j / n, Renyi DP by the paper's equations (16) and (18).
- *paper's form, our accounting*: the same with the library's default, add-remove neighbours and exact Gaussian DP: less
  noise, for neighbours that differ less.
- *ours*: row accounting, permuted order; the last iterate, or the average of the last half.
- *private constants*: ours, with the M_j found inside the budget, from columns divided by round public bounds. The
  other rows take the M_j for public, as the paper's do. Only imbalanced columns need it.
- *greedy*: the library's `greedy` solver, for the squared loss; one of its rounds counts as a pass, because it reads
  all columns once.
- *DP-SGD*: proximal, Poisson samples, calibrated by privacy loss distributions, written in NumPy. The paper does not
  print its batch size; here it is tuned too, over {batches}.
- The paper's DP-SCD is in a benchmark of its own, dp_scd.py.

**Tuning is for free here**, as in the paper: step and clip are chosen for every cell on the data itself, which no
private fit can do. The grid is the paper's: 10 steps (DP-CD and greedy: 0.01 to 10 over M_j; DP-SGD: 1e-6 to 1 over the
largest curvature, and one step beyond) and 100 clips from 1e-3 to 1e6, searched from coarse to fine: one run of every
step with every {apart}th clip, {runs} runs of the best {kept}, then of all clips next to the best {refined}. The paper
prints the mean of the five runs that chose. Ours are mean ± standard deviation of {seeds} fresh seeds at the chosen
setting, which is the stricter measure; the means of the runs that chose are at the end of this page. The standard error
of such a mean is a third of the spread shown, so cells "not reached" by less than that are undecided, and so are those
reached by less.
"""

SUMMARY = """\
## In short

Relative error at the number of passes (in brackets) that tuned best:
"""

QUICK = """\
**This was a quick run**: a part of the problems, on a coarser grid and with fewer seeds than the text says.
"""

UNTUNED = """\
## With the library's own rules

Nothing is tuned: passes, step and clip are the defaults, functions of n, p, epsilon and delta. The first rows are the
solvers on the problems above, labels in units of a public bound; the others are whole fits of `LogisticRegression` and
`Lasso` without an intercept, scales found inside the same budget unless declared. An estimator penalises standardised
columns, so imbalanced problems cannot be asked of it. And it clips rows to three scales, in `fit` and in `predict`,
while the objective here is that of rows as they are: California has entries a hundred scales out, on which a model that
never saw them is far off. Relative error, mean ± standard deviation of {seeds} seeds:
"""

TIME = """\
## Time (Table 3)

Milliseconds of one pass of DP-CD (ours, squared or logistic by the problem; the slope between fits of 2 and of 22
passes), and how it compares: with one `X.T @ r` on the same columns in float64 and in float32 (DP-CD reads float32),
with one pass of DP-SGD of batch 256 in NumPy, and with the paper's ratio of the same two at 50 passes (both C++).
Greedy is one of its rounds. Medians of {rounds} rounds in turns; kernels compiled and noise calibrated before. The
kernels of DP-CD use one thread; BLAS has as many as the table says.
"""

FIGURES = """\
## Figures

Mean, and minimum to maximum, of {seeds} seeds along the run with the number of passes that tuned best.

![Relative error against passes, imbalanced problems](dp_cd_figure_1.png)

Figure 1: imbalanced problems.

![Relative error against passes, balanced problems](dp_cd_figure_2.png)

Figure 2: balanced problems.

![Relative error against seconds](dp_cd_figure_3.png)

Figure 3: the same against time. Our DP-CD and greedy are compiled, DP-SGD is NumPy with the batch that tuned best.
"""

CHOSEN = """\
## What tuning chose

Mean relative error of the runs that chose; in brackets step, clip (of the half squared loss) and, of DP-SGD, batch:
"""

_COLUMNS = {
    "paper": "DP-CD, paper's form and accounting",
    "form": "paper's form, our accounting",
    "ours": "**ours, last iterate**",
    "tail": "ours, tail average",
    "private": "ours, private constants",
    "greedy": "greedy",
    "sgd": "DP-SGD",
}


class Results:
    """Records, found by table, problem and method."""

    def __init__(self, records: Iterable[Record]) -> None:
        self._rows: dict[tuple[str, str, str], list[Record]] = {}
        for r in records:
            self._rows.setdefault((r.table, r.set, r.model), []).append(r)

    def rows(self, table: str, problem: str, model: str) -> list[Record]:
        """The records of that name."""
        return self._rows.get((table, problem, model), [])

    def problems(self, table: str) -> list[str]:
        """Problems with records in that table, the paper's first."""
        found = {problem: None for name, problem, _ in self._rows if name == table}
        return [name for name in problems.NAMES if name in found] + [n for n in found if n not in problems.NAMES]

    def seeds(self, table: str) -> int:
        """The most seeds of any cell."""
        return max((len(rows) for (name, _, _), rows in self._rows.items() if name == table), default=0)

    def errors(self, table: str, problem: str, model: str, passes: float | None = None) -> list[float]:
        """Relative errors over the seeds, at a number of passes if there are several."""
        rows = [r.scores for r in self.rows(table, problem, model)]
        if passes is None:
            return [scores["relative error"][0] for scores in rows]
        return [s["relative error"][s["passes"].index(passes)] for s in rows if passes in s["passes"]]

    def best(self, problem: str, model: str) -> tuple[int, list[float]] | None:
        """The number of passes that tuned best, and the errors of the fresh seeds there."""
        for record in self.rows("tuning", problem, model):
            scores = record.scores
            passes = min(zip(scores["relative error"], scores["passes"], strict=True))[1]
            return int(passes), self.errors("table", problem, model, passes)
        return None

    def passes(self, problem: str) -> list[int]:
        """The numbers of passes that were run."""
        found = {p for model in METHODS for r in self.rows("table", problem, model) for p in r.scores["passes"]}
        return sorted(map(int, found))


def _cell(values: Sequence[float]) -> str:
    if not values:
        return "-"
    return f"{np.mean(values):.4f} ± {np.std(values):.4f}"


def _lines(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return ["| " + " | ".join(head) + " |", "|---" * len(head) + "|", *("| " + " | ".join(r) + " |" for r in rows), ""]


def _printed(problem: str, method: str, passes: int) -> float | None:
    return TABLE_2[problem][method][PASSES.index(passes)] if passes in PASSES else None


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def error_table(results: Results, problem: str) -> list[str]:
    """One problem of Table 2: a row for each number of passes, ours next to what the paper prints."""
    models = [model for model in METHODS if results.rows("table", problem, model)]
    head = ["passes", "DP-CD, printed", *(_COLUMNS[m] for m in models if m != "sgd"), "DP-SGD, printed"]
    rows = []
    for passes in results.passes(problem):
        cells = {model: _cell(results.errors("table", problem, model, passes)) for model in models}
        sgd = [cells.pop("sgd")] if "sgd" in cells else []
        printed = _shown(_printed(problem, "DP-CD", passes)), _shown(_printed(problem, "DP-SGD", passes))
        rows.append([str(passes), printed[0], *cells.values(), printed[1], *sgd])
    return _lines([*head, *(["DP-SGD, here"] if "sgd" in models else [])], rows)


def verdict(results: Results, problem: str, model: str, method: str) -> str:
    """In which cells a row of ours is above what the paper prints."""
    cells, above = 0, []
    for passes in results.passes(problem):
        errors, printed = results.errors("table", problem, model, passes), _printed(problem, method, passes)
        if errors and printed is not None:
            cells += 1
            if round(statistics.mean(errors), 4) > printed:
                above.append(f"{passes} ({statistics.mean(errors):.4f} against {printed:.4f})")
    rest = f"; **not reached** at {', '.join(above)}" if above else ""
    return f"{cells - len(above)} of {cells} cells at or below the printed {method}{rest}"


def summary(results: Results) -> list[str]:
    """Every method at the number of passes that tuned best, next to the paper's best cells."""
    names = results.problems("tuning")
    if not names:
        return []
    rows = []
    for printed in ("DP-CD", "DP-SGD"):
        cells = [min(zip(TABLE_2[name][printed], PASSES, strict=True)) for name in names]
        rows.append([f"{printed}, printed in the paper", *(f"{error:.4f} ({passes})" for error, passes in cells)])
    for model, method in METHODS.items():
        found = [results.best(name, model) for name in names]
        rows.append([method.label, *("-" if f is None else f"{_cell(f[1])} ({f[0]})" for f in found)])
    return [SUMMARY, *_lines(["", *names], rows)]


def table_2(results: Results) -> list[str]:
    """All problems, each with what is reached."""
    lines = ["## Relative error (Table 2)", ""]
    for problem in results.problems("table"):
        data = problems.problem(problem)
        rows, columns = data.shape
        lines += [
            f"### {problem}",
            "",
            f"{rows:,} x {columns}, epsilon = {data.epsilon:g}; the zero model has {data.zero_error:.4f}.",
            "",
            *error_table(results, problem),
        ]
        for model in METHODS:
            if results.rows("table", problem, model):
                told = verdict(results, problem, model, "DP-SGD" if model == "sgd" else "DP-CD")
                lines.append(f"- {METHODS[model].label}: {told}.")
        for record in results.rows("noiseless", problem, "sgd"):
            pairs = zip(record.scores["relative error"], record.scores["passes"], strict=True)
            told = ", ".join(f"{error:.4f} ({passes:.0f})" for error, passes in pairs)
            lines.append(f"- The same SGD without noise and clipping, best step and batch: {told}.")
        lines.append("")
    return lines


def untuned(results: Results) -> list[str]:
    """The library's own rules, a row for each, a column for each problem."""
    names = results.problems("untuned")
    if not names:
        return []
    rows = []
    for rule, (label, _) in RULES.items():
        cells = [_cell(results.errors("untuned", problem, rule)) for problem in names]
        if any(cell != "-" for cell in cells):
            rows.append([label, *cells])
    for model in ("ours", "private", "greedy"):
        found = [results.best(name, model) for name in names]
        rows.append([f"*tuned: {METHODS[model].label}*", *("-" if f is None else _cell(f[1]) for f in found)])
    rows.append(["*zero model*", *(f"{problems.problem(name).zero_error:.4f}" for name in names)])
    return [UNTUNED.format(seeds=results.seeds("untuned")), *_lines(["rule", *names], rows)]


def time_table(results: Results) -> list[str]:
    """The time of a pass, as ratios."""
    tables = [f"timing, {n} thread{'s' if n > 1 else ''}" for n in range(1, 1_025)]
    tables = [table for table in tables if results.problems(table)]
    if not tables:
        return []
    lines = [TIME.format(rounds=results.seeds(tables[0]))]
    head = ["problem", "BLAS", "DP-CD, ms", "/ X.T @ r, float64", "/ X.T @ r, float32"]
    head += ["DP-SGD / DP-CD", "the paper's", "paper's form / ours", "greedy / X.T @ r, float64"]
    rows = []
    for problem in results.problems(tables[0]):
        for table in tables:
            taken = {m: [r.seconds[0] for r in results.rows(table, problem, m)] for m in timing.MODELS}
            t = {model: statistics.median(values) for model, values in taken.items() if values}
            theirs = TABLE_3_AT_50_PASSES.get(problem)
            rows.append(
                [
                    problem,
                    table.removeprefix("timing, "),
                    f"{1e3 * t['ours']:.3g}",
                    f"{t['ours'] / t['float64 product']:.1f}",
                    f"{t['ours'] / t['float32 product']:.1f}",
                    f"{t['sgd'] / t['ours']:.1f}",
                    f"{theirs['DP-SGD'] / theirs['DP-CD']:.1f}" if theirs else "-",
                    f"{t['form'] / t['ours']:.2f}",
                    f"{t['greedy'] / t['float64 product']:.1f}" if "greedy" in t else "-",
                ]
            )
    return [*lines, *_lines(head, rows)]


def chosen(results: Results) -> list[str]:
    """What tuning chose, and the mean of the runs that chose."""
    names = results.problems("tuning")
    passes = sorted({count for name in names for count in results.passes(name)})
    rows = []
    for name in names:
        for model in METHODS:
            for record in results.rows("tuning", name, model):
                s = record.scores
                batches = [f", {batch:.0f}" if batch else "" for batch in s["batch"]]
                columns = zip(s["passes"], s["relative error"], s["step"], s["clip"], batches, strict=True)
                cells = {int(p): f"{e:.4f} ({step:.2g}, {clip:.3g}{batch})" for p, e, step, clip, batch in columns}
                rows.append([name, METHODS[model].label, *(cells.get(count, "-") for count in passes)])
    return [CHOSEN, *_lines(["problem", "method", *(f"{count} passes" for count in passes)], rows)] if rows else []


def page(results: Results, effort: Effort) -> str:
    """The whole page."""
    sgd = METHODS["sgd"]
    assert isinstance(sgd, SGD)
    introduction = INTRODUCTION.format(
        python=platform.python_version(),
        numpy=np.__version__,
        apart=FULL.clips_apart,
        runs=FULL.runs,
        kept=FULL.kept,
        refined=FULL.refined,
        seeds=FULL.seeds,
        batches=" and ".join(map(str, sgd.batches)),
    )
    lines = [
        introduction,
        *([] if effort == FULL else [QUICK]),
        *summary(results),
        *table_2(results),
        *untuned(results),
        *time_table(results),
        *([FIGURES.format(seeds=results.seeds("trace"))] if results.problems("trace") else []),
        *chosen(results),
    ]
    return "\n".join(lines).rstrip() + "\n"


def pages(store: Iterable[Record], folder: Path, effort: Effort = FULL) -> None:
    """Write dp_cd.md and the figures."""
    results = Results(store)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "dp_cd.md").write_text(page(results, effort), encoding="utf8")
    figures(results, folder)
