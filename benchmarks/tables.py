"""Records as Markdown tables: means and spreads over seeds, a row for each set and model."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

import scores
import sets
from peers import setup
from records import Record
from tacit.solvers import SOLVERS

LOWER_IS_BETTER = ("log_loss",)


@dataclass(frozen=True)
class Cell:
    """A score over the seeds; of times, the median."""

    mean: float
    spread: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} ± {self.spread:.3f}" if self.mean >= -1.0 else "below -1"


def cell(records: Iterable[Record], metric: str) -> Cell | None:
    """Mean and standard deviation over seeds, at the point of a peer's grid with the best mean."""
    rows = [r.seconds if metric == "seconds" else r.scores[metric] for r in records if not r.refused]
    if not rows:
        return None
    values = np.array(rows, dtype=np.float64)
    if metric == "seconds":
        return Cell(float(np.median(values)), float(values.std()))
    sign = -1.0 if metric in LOWER_IS_BETTER else 1.0
    finite = np.isfinite(values).all(axis=0)  # a peer may diverge
    if not finite.any():
        return Cell(-sign * math.inf, math.nan)
    best = int(np.where(finite, sign * values.mean(axis=0), -math.inf).argmax())
    return Cell(float(values[:, best].mean()), float(values[:, best].std()))


class Part:
    """The records of "raw" or "public", found by set, model and epsilon."""

    def __init__(self, name: str, records: Iterable[Record]) -> None:
        self.name = name
        self._rows: dict[tuple[str, str, float | None], list[Record]] = {}
        for r in records:
            if r.table == name:
                self._rows.setdefault((r.set, r.model, r.epsilon), []).append(r)

    @property
    def epsilons(self) -> list[float]:
        """All epsilons, smallest first."""
        return sorted({epsilon for _, _, epsilon in self._rows if epsilon is not None})

    @property
    def seeds(self) -> int:
        """The most seeds of any cell."""
        return max((len(rows) for rows in self._rows.values()), default=0)

    def sets(self, kind: str) -> list[str]:
        """The sets of that kind with results, in the order of `sets.py`."""
        kinds = sets.PUBLIC if self.name == "public" else {name: entry.kind for name, entry in sets.SETS.items()}
        found = {name for name, _, _ in self._rows}
        return [name for name in kinds if kinds[name] == kind and name in found]

    def models(self, name: str | None = None) -> list[str]:
        """Private models with results on a set, or on any: auto, our solvers, the peers."""
        found = {model for set_, model, _ in self._rows if name in (None, set_)}
        return [model for model in ("auto", *SOLVERS, *setup.PEERS) if model in found]

    def cell(self, name: str, model: str, epsilon: float | None, metric: str) -> Cell | None:
        """One cell, if it was measured."""
        return cell(self._rows.get((name, model, epsilon), []), metric)

    def taken(self, name: str) -> list[str]:
        """The solvers that "auto" took on a set, by growing epsilon."""
        rows = (r for epsilon in self.epsilons for r in self._rows.get((name, "auto", epsilon), ()) if r.note)
        return list(dict.fromkeys(r.note for r in rows))

    def about(self, name: str) -> list[str]:
        """The first columns of a table: what the set is, and in "raw" whether it chose or judges."""
        sizes = (r.size for (set_, _, _), rows in self._rows.items() if set_ == name for r in rows if r.size)
        rows, columns, classes = next(sizes, (0, 0, 0))
        size = f"{rows:,} x {columns}" + (f", {classes} classes" if classes > 2 else "") if rows else ""
        if self.name == "public":
            return [name, size]
        entry = sets.SETS[name]
        return [f"{name} ({entry.note})" if entry.note else name, size, "chose" if entry.chose else "judges"]


def table(part: Part, kinds: Iterable[str], metric: str) -> list[str]:
    """One score of all sets of these kinds: a column for each epsilon, and one for scikit-learn without privacy."""
    head = ["data", "rows x columns", *(["role"] if part.name == "raw" else []), "not private", "model"]
    head += [f"epsilon {epsilon:g}" for epsilon in part.epsilons]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for name in (name for kind in kinds for name in part.sets(kind)):
        first = [*part.about(name), _shown(part.cell(name, scores.PLAIN, None, metric), metric)]
        for model in part.models(name):
            cells = [_shown(part.cell(name, model, epsilon, metric), metric) for epsilon in part.epsilons]
            lines.append("| " + " | ".join([*first, _label(part, name, model), *cells]) + " |")
            first = [""] * len(first)
    return [*lines, ""]


def _shown(value: Cell | None, metric: str) -> str:
    return "-" if value is None else f"{value.mean:.3g}" if metric == "seconds" else str(value)


def _label(part: Part, name: str, model: str) -> str:
    """What a row is called; of diffprivlib it says what its numbers are worth."""
    if model == "diffprivlib":
        regression = part.name == "public" and sets.PUBLIC[name] == "regression"
        return "diffprivlib, pure epsilon" + (", under-noises" if regression else "")
    if model == "auto":
        return f"**auto** ({', '.join(part.taken(name))})"
    return {"opacus": "opacus, tuned DP-SGD"}.get(model, model)
