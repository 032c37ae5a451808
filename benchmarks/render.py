"""Writes the pages of the dense benchmark from records; measures nothing."""

import platform
import statistics
from collections.abc import Iterable
from pathlib import Path

import sklearn

from peers import grids, setup
from plots import plot
from records import Record
from tables import Part, table

TIMED = ("tacit", "scikit-learn")

PURE_EPSILON = """\
diffprivlib is pure epsilon (delta = 0) and its neighbours replace a row; opacus and ours are (epsilon, delta) with
delta = 1e-5 and add or remove a row. Both peers are tuned on the test set at no cost in privacy, which flatters them:
for each epsilon and score the point of their grid with the best mean over the seeds. Ours are not tuned. Grids:
diffprivlib, {diffprivlib}; opacus, {opacus}."""

LOGISTIC_GAPS = """\
diffprivlib's LogisticRegression is objective perturbation with three gaps, by its source (0.6.6): the intercept carries
no penalty, though the argument needs one on every weight; a row of norm R is taken to curve the loss by R / 4, where
R^2 / 4 is due (with the intercept R^2 = 2 here); and the minimiser is taken for exact, though lbfgs stops at a
tolerance."""

UNDER_NOISES = """\
**diffprivlib's LinearRegression under-noises, so its scores are not at the stated privacy.** By its source (0.6.6):
each entry of the diagonal of the second moments gets noise for the square of the column's *lower* bound alone (that
bound is read twice, the upper one never), so a column whose mean lies below the middle of its bounds gets too little,
and without an intercept a column in [0, 1] gets none; and the means of X and of y spend epsilon / (d + 1) each where
only one such part was set aside, so that a fit spends epsilon (1 + 1 / (d + 1)).
`benchmarks/peers/diffprivlib_check.py` shows both."""

INTRODUCTION = """\
# Test scores on real data

`python benchmarks/dense.py`, Python {python}, scikit-learn {sklearn}; drawn from [dense.jsonl](dense.jsonl) and
[dense_peers.jsonl](dense_peers.jsonl). Mean ± standard deviation over {seeds} seeds: 75/25 splits, stratified for
classes, fresh noise. "Not private" is scikit-learn's `LogisticRegression()` or `Ridge()` on standardised columns; after
**auto** stand the solvers that it took. AUC, log-loss and times are in [dense_details.md](dense_details.md).
"""

PUBLIC_CLASSES = """\
## Public bounds, next to the peers

Features are scaled by bounds that were known before the data, rows divided by their norm. Ours is
`LogisticRegression(epsilon=..., row_norm=1.0, delta=1e-5)` with the solver of that name. Accuracy:
"""

PUBLIC_REGRESSION = """\
Features and target are scaled to [-1, 1] by round bounds. Ours is
`LinearRegression(epsilon=..., row_norm=sqrt(d), y_bounds=(-1, 1), delta=1e-5)`. R2:
"""

RAW = """\
## Nothing declared

Data in its own units, nothing declared, nothing tuned, delta = n^-1.5. Sets that *chose* were in view when the
library's rules were chosen; the others only *judge*. No peer runs here: diffprivlib would read bounds from the data,
and is pure epsilon besides (its LinearRegression under-noises); opacus needs them given. Accuracy:
"""


def main_page(raw: Part, public: Part, records: Iterable[Record]) -> str:
    """Accuracy and R2 of everything, with what the reader must know of the peers."""
    versions = {"python": platform.python_version(), "sklearn": sklearn.__version__}
    lines = [
        INTRODUCTION.format(seeds=max(raw.seeds, public.seeds), **versions),
        PUBLIC_CLASSES,
        *table(public, ["classification"], "accuracy"),
        *verdict(public),
        *_about_peers(public, "classification", LOGISTIC_GAPS),
        PUBLIC_REGRESSION,
        *table(public, ["regression"], "r2"),
        *_about_peers(public, "regression", UNDER_NOISES),
        "![Score against epsilon, public bounds](dense_public.png)",
        "",
        *timing(records),
        RAW,
        *table(raw, ["classification"], "accuracy"),
        "R2:",
        "",
        *table(raw, ["regression"], "r2"),
        "![Score against epsilon, nothing declared](dense.png)",
        "",
        *refusals(records),
    ]
    return "\n".join(lines).rstrip() + "\n"


def details_page(raw: Part, public: Part) -> str:
    """The other scores, and times."""
    lines = ["# AUC, log-loss and times", "", "Made as, and with the remarks of, [dense.md](dense.md).", ""]
    for part, title in ((public, "Public bounds, next to the peers"), (raw, "Nothing declared")):
        lines += [f"## {title}", "", "AUC (of one class against the rest where there are more than two):", ""]
        lines += [
            *table(part, ["classification"], "auc"),
            "Log-loss:",
            "",
            *table(part, ["classification"], "log_loss"),
        ]
        lines += ["Median seconds of a fit (of a peer: of one point of its grid):", ""]
        lines += table(part, ["classification", "regression"], "seconds")
        if part is public:
            lines += _about_peers(public, "classification", UNDER_NOISES)
    return "\n".join(lines).rstrip() + "\n"


def verdict(public: Part, epsilons: tuple[float, ...] = (0.1, 1.0, 10.0)) -> list[str]:
    """In how many cells of the classification sets the default is at or above the better peer."""
    cells, behind = 0, []
    for name in public.sets("classification"):
        for epsilon in epsilons:
            ours = public.cell(name, "auto", epsilon, "accuracy")
            theirs = [public.cell(name, peer, epsilon, "accuracy") for peer in setup.PEERS]
            best = max((c.mean for c in theirs if c is not None), default=None)
            if ours is not None and best is not None:
                cells += 1
                if round(ours.mean, 3) < round(best, 3):
                    behind.append(f"{name} at {epsilon:g} ({ours.mean:.3f} against {best:.3f})")
    if not cells:
        return []
    rest = f"; behind on {', '.join(behind)}" if behind else ""
    told = ", ".join(f"{epsilon:g}" for epsilon in epsilons)
    return [f"At epsilon {told}, `auto` is at or above the better peer in {cells - len(behind)} of {cells}{rest}.", ""]


def timing(records: Iterable[Record]) -> list[str]:
    """The time of a fit on adult against scikit-learn's."""
    rows = [r for r in records if r.table == "timing"]
    if not rows:
        return []
    ours, plain = (statistics.median(r.seconds[0] for r in rows if r.model == model) for model in TIMED)
    n, d = rows[0].size
    return [
        "## Time",
        "",
        f"`LogisticRegression().fit` on adult ({n:,} x {d}, standardised, float64) takes {ours:.2f} s:"
        f" **{ours / plain:.2f} times** scikit-learn's",
        f"`LogisticRegression().fit` on the same array ({plain:.2f} s). Medians of {len(rows) // 2} rounds in turns,"
        " one BLAS thread, kernels compiled before.",
        "",
    ]


def refusals(records: Iterable[Record]) -> list[str]:
    """What a solver would not fit, and what it said."""
    said = dict.fromkeys(f"- {r.model} on {r.set}: {r.refused}" for r in records if r.refused)
    return ["Refused:", "", *said, ""] if said else []


def _about_peers(public: Part, kind: str, gaps: str) -> list[str]:
    """Who was skipped, and what the numbers of the others are worth."""
    absent = [peer for peer in setup.PEERS if peer not in public.models()]
    skipped = [f"skipped: {peer} ({setup.why_missing(peer) or 'not run'})" for peer in absent]
    described = {peer: grids.describe(peer, kind) for peer in setup.PEERS}
    return [*skipped, *([""] if skipped else []), PURE_EPSILON.format(**described), "", gaps, ""]


def pages(store: Iterable[Record], peers: Iterable[Record], folder: Path) -> None:
    """Write dense.md, dense_details.md and the two plots."""
    records = [*store, *peers]
    raw, public = Part("raw", records), Part("public", records)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "dense.md").write_text(main_page(raw, public, records), encoding="utf8")
    (folder / "dense_details.md").write_text(details_page(raw, public), encoding="utf8")
    plot(raw, folder / "dense.png")
    plot(public, folder / "dense_public.png")
