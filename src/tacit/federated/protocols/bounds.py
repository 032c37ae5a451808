"""The step "bounds": what the parties must know of units before they can release anything else.

An entry bound per party, unless one is declared. Each row speaks with one of its entries: row i with number i modulo
their count, among those that are not zero. The range of a regression's target: its holder finds the centre as a fit
does, with `LabelScale`, and then how far labels reach from it; inside the range that was declared, if one was.

Privacy. Bounds are read off noisy histograms of magnitudes in which a row counts once, or not at all: sensitivity 1,
and sqrt(2) for replace-one. Everything after is a function of noisy counts.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from tacit.federated.protocols.base import Arrays, Floats, Holding, Question, RefusedError
from tacit.federated.protocols.columns import is_sparse
from tacit.federated.study import Study
from tacit.preprocessing import magnitudes
from tacit.preprocessing.scales import LabelScale
from tacit.privacy import Meter, Release
from tacit.privacy.mechanisms import Histogram

STEP = "bounds"
# Half octaves, a millionth above powers of sqrt(2): columns of zeros and ones get a bound of one, not of the next edge.
_EDGES = tuple(float(v) for v in 2.0 ** (np.arange(-80, 81) / 2) * (1.0 + 2.0**-20))
_BLOCK = 1 << 14
_ENTRY = "entry bound"
_LABEL = "label: reach"
_SHARE = 0.05  # of the budget, at least
_LABEL_WEIGHT = 3.0  # of a share, next to 1 for the entry bound of a party
_LABELS_BEYOND = 1 / 32  # labels that are cut off, as a part of what may be of others: all columns suffer from them


@dataclass(frozen=True)
class Bounds:
    """The bounding step of a study.

    `entries` says whether the protocol needs entry bounds; `within`, whether a range that was declared for the target
    is narrowed to what labels take up of it, where that costs little: noise goes with the range.
    """

    study: Study
    entries: bool = True
    within: bool = False

    @cached_property
    def finds_entries(self) -> bool:
        """Whether every party looks for its entry bound."""
        return self.entries and self.study.entry_bound is None

    @cached_property
    def finds_labels(self) -> bool:
        """Whether the label holder looks for the range of the target."""
        if self.study.loss != "squared" or self.study.y_bounds is None:
            return self.study.loss == "squared"
        return self.within and self.study.budget.is_private and self._cost(_LABEL_WEIGHT) <= _SHARE

    def _cost(self, weight: float) -> float:
        """The part of the budget at which so many bounds stand out of the noise."""
        return 700.0 * weight / (self.study.n_rows * self.study.budget.mu) ** 2

    @property
    def needed(self) -> bool:
        """Whether there is anything to find; if not, the step has no releases and no round."""
        return self.finds_entries or self.finds_labels

    @property
    def share(self) -> float:
        """The part of the budget it is worth: a twentieth, and more where few rows are left over from the noise."""
        budget = self.study.budget
        weight = self.finds_entries * len(self.study.members) + self.finds_labels * _LABEL_WEIGHT
        if not budget.is_private or not weight:
            return _SHARE * bool(weight)
        return min(0.40, max(_SHARE, self._cost(weight)))

    def releases(self) -> tuple[Release, ...]:
        """Of all parties, named `party/release`; their shares add up to `share`, of a whole of 1."""
        parties = self.study.names if self.finds_entries else ()
        unit = self.share / max(len(parties) + self.finds_labels * _LABEL_WEIGHT, 1.0)
        planned = [Release(f"{name}/{_ENTRY}", "gaussian", share=unit) for name in parties]
        if self.finds_labels:
            label = LabelScale(self.study.n_rows).releases((_LABEL_WEIGHT - 1.0) * unit)
            label += (Release(_LABEL, "gaussian", share=unit),)
            planned += [Release(f"{self.study.label_holder}/{r.name}", r.kind, share=r.share) for r in label]
        return tuple(planned)

    def questions(self) -> dict[str, Question]:
        """The same for every party."""
        return {name: Question(STEP) for name in self.study.names}

    def answer(self, holding: Holding, question: Question, meter: Meter) -> dict[str, Any]:
        """What this party finds: releases only."""
        if not self.needed or question.arrays:
            raise RefusedError("the step 'bounds' is not part of this study, or was asked with arrays it does not take")
        found: dict[str, Any] = {}
        if self.finds_entries:
            entries = np.abs(one_entry_per_row(holding.X))
            found[_ENTRY] = np.array([magnitude_bound(meter, _ENTRY, entries, part_beyond(self.study)) or 1.0])
        if self.finds_labels and holding.name == self.study.label_holder:
            assert holding.targets is not None
            found[_LABEL] = self._label_range(holding.targets, meter)
        return found

    def _label_range(self, targets: Floats, meter: Meter) -> Floats:
        declared = self.study.y_bounds or (-math.inf, math.inf)
        targets = np.clip(targets, *declared)
        scaling = LabelScale(self.study.n_rows).run(meter, targets)
        centre, fallback = float(scaling.centre[0]), scaling.limit * float(scaling.scale[0])
        beyond = part_beyond(self.study) * _LABELS_BEYOND
        with np.errstate(over="ignore"):
            reach = magnitude_bound(meter, _LABEL, np.abs(targets - centre), beyond) or fallback
        low, high = max(centre - reach, declared[0]), min(centre + reach, declared[1])
        return np.array([low, high] if low < high else declared)

    def entry_bounds(self, answers: Mapping[str, Arrays]) -> dict[str, float]:
        """Of each party, from the answers to this step (none, if it was not needed)."""
        if not self.finds_entries:
            assert self.study.entry_bound is not None
            return dict.fromkeys(self.study.names, self.study.entry_bound)
        return {name: float(answers[name][_ENTRY][0]) for name in self.study.names}

    def y_bounds(self, answers: Mapping[str, Arrays]) -> tuple[float, float]:
        """What targets are clipped to, from the same; labels are -1 and 1."""
        if self.finds_labels:
            low, high = (float(value) for value in answers[self.study.label_holder][_LABEL])
            return low, high
        return self.study.y_bounds if self.study.y_bounds is not None else (-1.0, 1.0)


def part_beyond(study: Study) -> float:
    """The part of values that a bound may cut off: a sixteenth, and less where noise is so low that a cut would show.

    A power of two, and 0 in the non-private limit.
    """
    budget = study.budget
    if not budget.is_private:
        return 0.0
    return 2.0 ** -max(4, math.floor(math.log2(study.n_rows * budget.mu / len(study.members))) - 8)


def magnitude_bound(meter: Meter, name: str, values: Floats, beyond: float) -> float | None:
    """Release a bound that about a part `beyond` of the positive values lies beyond; None if all are lost in noise.

    A noisy histogram of half octaves, in which each row counts at most once, cleared of bins that may be noise. Inside
    a bin values are taken as evenly spread.
    """
    histogram = Histogram(_EDGES)
    noise = meter.multiplier(name) * histogram.sensitivity.under(meter.adjacency)
    counts = histogram.release(meter, name, np.where(values > 0.0, values, np.nan))
    masses = np.where(magnitudes.surviving(counts, noise, 1), np.maximum(counts, 0.0), 0.0)
    below = np.cumsum(masses)
    if below[-1] <= 0.0:
        return None
    wanted = (1.0 - beyond) * below[-1]
    last = int(np.searchsorted(below, wanted))
    short = (below[last] - wanted) / masses[last]
    return _EDGES[last + 1] - float(short) * (_EDGES[last + 1] - _EDGES[last])


def one_entry_per_row(X: Any) -> Floats:
    """Of row i its entry number i modulo their count, among those that are not zero; 0 for a row without any."""
    if not is_sparse(X):
        blocks = range(0, len(X), _BLOCK)
        return np.concatenate([_one_of_each(np.asarray(X[start : start + _BLOCK]), start) for start in blocks])
    by_row = sparse.csr_array(X, dtype=np.float64, copy=True)
    by_row.eliminate_zeros()
    counts = np.diff(by_row.indptr)
    filled = np.flatnonzero(counts)
    out = np.zeros(len(counts))
    out[filled] = by_row.data[by_row.indptr[filled] + filled % counts[filled]]
    return out


def _one_of_each(block: Floats, start: int) -> Floats:
    order = np.cumsum(block != 0.0, axis=1)
    number = np.arange(start, start + len(block)) % np.maximum(order[:, -1], 1)
    place = np.argmax(order == number[:, None] + 1, axis=1)
    return np.asarray(block[np.arange(len(block)), place], dtype=np.float64)
