"""The step "bounds": what the parties must know of units before they can release anything else.

- An entry bound of each party, unless one is declared. Each row counts with one of its entries that are not zero: row i
  with number i modulo how many it has.
- The range of a regression's target. The party that holds it finds the centre as a fit does, with `LabelScale`, and
  then how far labels reach from it; within the declared range, if there is one.
- The core of the target, where a protocol asks for it: a width that half of the labels lie within, and the middle. This
  is Huber's location for that width. A first step with a wide clip corrects a centre of which only the size is known.

Privacy. Bounds are read off noisy histograms of magnitudes in which a row counts once, or not at all: sensitivity 1,
and sqrt(2) for replace-one. Each step to the middle has the sum of clipped distances, in widths, and the
number of labels within: sqrt(2), and twice that. Everything after is a function of what was released.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from tacit._types import Floats
from tacit.bounding import magnitudes
from tacit.bounding.target import LabelScale
from tacit.federated.protocols.base import Arrays, Holding, Question, RefusedError, taken
from tacit.federated.protocols.columns import one_entry_per_row
from tacit.federated.study import Study
from tacit.privacy import Gate, Release, float_sum_slack
from tacit.privacy.mechanisms import GaussianVector, Histogram, Sensitivity

STEP = "bounds"
# Half octaves, a millionth above powers of sqrt(2): columns of zeros and ones get a bound of one, not of the next edge.
_EDGES = tuple(float(v) for v in 2.0 ** (np.arange(-80, 81) / 2) * (1.0 + 2.0**-20))
SMALLEST_BOUND, LARGEST_BOUND = _EDGES[0], _EDGES[-1]  # that can be found
_ENTRY = "entry bound"
_LABEL = "label: reach"
_MIDDLE = "label: middle"
_STEPS = 2  # to the middle, after a first one by which the range is centred
_LEAST_RANGE = 1e-40  # of a target, and of its core: less cannot be found in what may be declared
_SHARE = 0.05  # of the budget, at least
_LABEL_WEIGHT = 3.0  # of a share, next to 1 for the entry bound of a party or for the middle of the labels
_DOUBT = 2.0  # deviations of noise that the mean square of the target may be above what is found
_LABELS_BEYOND = 1 / 32  # labels that are cut off, as a part of what may be of others: all columns suffer from them


@dataclass(frozen=True)
class Bounds:
    """The bounding step of a study: entry bounds and the range of the target, or with `core` more of the target alone.

    A range that was declared for it is then narrowed to what labels take up of it, where that costs little: noise goes
    with the range. For a model with an intercept the middle of the labels is found as well.
    """

    study: Study
    core: bool = False

    @cached_property
    def finds_entries(self) -> bool:
        """Whether every party looks for its entry bound."""
        return not self.core and self.study.entry_bound is None

    @cached_property
    def finds_labels(self) -> bool:
        """Whether the label holder looks for the range of the target."""
        if self.study.loss != "squared" or self.study.y_bounds is None:
            return self.study.loss == "squared"
        return self.core and self.study.budget.is_private and self._cost(_LABEL_WEIGHT) <= _SHARE

    @property
    def finds_middle(self) -> bool:
        """Whether the label holder looks for the middle of the labels."""
        return self.core and self.finds_labels and self.study.fit_intercept

    def _cost(self, weight: float) -> float:
        """The part of the budget at which so many bounds stand out of the noise."""
        return 700.0 * weight / (self.study.n_rows * self.study.budget.mu) ** 2

    @property
    def _label_weight(self) -> float:
        return self.finds_labels * _LABEL_WEIGHT + self.finds_middle

    @property
    def needed(self) -> bool:
        """Whether there is anything to find; if not, the step has no releases and no round."""
        return self.finds_entries or self.finds_labels

    @property
    def share(self) -> float:
        """The part of the budget it is worth: a twentieth, and more where few rows are left over from the noise."""
        budget = self.study.budget
        weight = self.finds_entries * len(self.study.members) + self._label_weight
        if not budget.is_private or not weight:
            return _SHARE * bool(weight)
        return min(0.40, max(_SHARE, self._cost(weight)))

    def releases(self) -> tuple[Release, ...]:
        """The releases of all parties, named `party/release`; their shares add up to `share`, of a whole of 1."""
        parties = self.study.names if self.finds_entries else ()
        unit = self.share / max(len(parties) + self._label_weight, 1.0)
        planned = [Release(f"{name}/{_ENTRY}", "gaussian", share=unit) for name in parties]
        if self.finds_labels:
            label = LabelScale(self.study.n_rows).releases((_LABEL_WEIGHT - 1.0) * unit)
            label += (Release(_LABEL, "gaussian", share=unit),)
            if self.finds_middle:
                label += (Release(_MIDDLE, "gaussian", share=unit, count=1 + _STEPS),)
            planned += [replace(release, name=f"{self.study.label_holder}/{release.name}") for release in label]
        return tuple(planned)

    def questions(self) -> dict[str, Question]:
        """The question of this step, the same for every party."""
        return {name: Question(STEP) for name in self.study.names}

    def answer(self, holding: Holding, question: Question, gate: Gate) -> dict[str, Any]:
        """What this party finds: releases only."""
        if not self.needed or question.arrays:
            raise RefusedError("the step 'bounds' is not part of this study, or was asked with arrays it does not take")
        found: dict[str, Any] = {}
        if self.finds_entries:
            entries = np.abs(one_entry_per_row(holding.X))
            sizes = Magnitudes.released(gate, _ENTRY, entries, self.study.n_rows)
            found[_ENTRY] = np.array([sizes.bound(part_beyond(self.study)) or 1.0])
        if self.finds_labels and holding.name == self.study.label_holder:
            assert holding.targets is not None
            found |= self._label_range(holding.targets, gate)
        return found

    def _label_range(self, targets: Floats, gate: Gate) -> dict[str, Floats]:
        declared = self.study.y_bounds or (-math.inf, math.inf)
        targets = np.clip(targets, *declared)
        scaling = LabelScale(self.study.n_rows).run(gate, targets)
        centre, fallback = float(scaling.centre[0]), scaling.limit * float(scaling.scale[0])
        if self.finds_middle:
            centre = _middle(gate, targets, self.study.n_rows, centre, fallback, 1)
        beyond = part_beyond(self.study) * _LABELS_BEYOND
        with np.errstate(over="ignore"):
            sizes = Magnitudes.released(gate, _LABEL, np.abs(targets - centre), self.study.n_rows)
        reach = sizes.bound(beyond) or fallback
        low, high = max(centre - reach, declared[0]), min(centre + reach, declared[1])
        square = min(1.0, (sizes.squares(reach) / reach**2 + _DOUBT * sizes.noise) / self.study.n_rows) * reach**2
        if not self.study.fit_intercept:
            square = (math.sqrt(square) + abs(centre)) ** 2
        low, high = (low, high) if low < high else declared
        found = {_LABEL: np.array([low, high, square, sizes.bound(0.5) or reach])}
        if self.finds_middle:
            width = float(found[_LABEL][3])
            found[_MIDDLE] = np.array([_middle(gate, targets, self.study.n_rows, centre, width, _STEPS)])
        return found

    def entry_bounds(self, answers: Mapping[str, Arrays]) -> dict[str, float]:
        """Each party's bound, from the answers to this step (none, if it was not needed)."""
        if not self.finds_entries:
            assert self.study.entry_bound is not None
            return dict.fromkeys(self.study.names, self.study.entry_bound)
        found = {name: float(taken(name, answers[name], _ENTRY, (1,), LARGEST_BOUND)[0]) for name in self.study.names}
        for name, bound in found.items():
            if bound < SMALLEST_BOUND:
                raise RefusedError(f"party {name!r} answered {_ENTRY!r} with numbers that no data gives")
        return found

    def y_bounds(self, answers: Mapping[str, Arrays]) -> tuple[float, float]:
        """What targets are clipped to, from the same; labels are -1 and 1."""
        if self.finds_labels:
            low, high, _, _ = self._label(answers)
            return low, high
        return self.study.y_bounds if self.study.y_bounds is not None else (-1.0, 1.0)

    def y_square(self, answers: Mapping[str, Arrays]) -> float | None:
        """What the mean square of targets, less their mean if there is an intercept, is hardly above; if known."""
        if self.finds_labels:
            return self._label(answers)[2]
        return None if self.study.loss == "squared" else 1.0

    def y_core(self, answers: Mapping[str, Arrays]) -> tuple[float, float] | None:
        """The middle of the targets, zero without an intercept, and the width of their core; if known."""
        if not self.finds_labels:
            return None
        holder, middle = self.study.label_holder, 0.0
        if self.finds_middle:
            middle = float(taken(holder, answers[holder], _MIDDLE, (1,), self._largest_label)[0])
        return middle, self._label(answers)[3]

    @property
    def _largest_label(self) -> float:
        """What no bound or middle of labels is beyond: a centre and some reaches from it."""
        return 8.0 * max(LARGEST_BOUND, *map(abs, self.study.y_bounds or (0.0,)))

    def _label(self, answers: Mapping[str, Arrays]) -> list[float]:
        """The range of the target, its mean square and the width of its core; what cannot be is refused."""
        holder = self.study.label_holder
        low, high, square, width = taken(holder, answers[holder], _LABEL, (4,), 4.0 * self._largest_label**2).tolist()
        within = max(-low, high, width) <= self._largest_label
        if not (within and high - low > _LEAST_RANGE and width > _LEAST_RANGE and square >= 0.0):
            raise RefusedError(f"party {holder!r} answered {_LABEL!r} with numbers that no data gives")
        return [low, high, square, width]


def part_beyond(study: Study) -> float:
    """The part of values that a bound may cut off: a sixteenth, or less if noise is so low that the cut would matter.

    It is a power of two, and 0 without privacy.
    """
    budget = study.budget
    if not budget.is_private:
        return 0.0
    return 2.0 ** -max(4, math.floor(math.log2(study.n_rows * budget.mu / len(study.members))) - 8)


def _middle(gate: Gate, targets: Floats, n: int, start: float, width: float, steps: int) -> float:
    """The point from which distances, clipped to a width, add up to zero: noisy Newton steps. `n` is public."""
    middle = start
    change = math.sqrt(2.0) * (1.0 + float_sum_slack(n, 1.0))
    mechanism = GaussianVector(Sensitivity.vector(change), bound=float(n))
    for _ in range(steps):
        with np.errstate(over="ignore"):
            distances = np.clip((targets - middle) / width, -1.0, 1.0)
        total, within = gate.release(_MIDDLE, mechanism, [distances.sum(), np.sum(np.abs(distances) < 1.0)])
        middle += width * min(1.0, max(-1.0, float(total) / max(float(within), n / 20.0)))
    return middle


@dataclass(frozen=True, eq=False)
class Magnitudes:
    """A noisy histogram of positive values by half octaves, cleared of bins that may be noise.

    Each row counts in it at most once. Inside a bin values are taken as evenly spread.
    """

    masses: Floats
    noise: float  # the standard deviation in a bin

    @classmethod
    def released(cls, gate: Gate, name: str, values: Floats, rows: int) -> "Magnitudes":
        """The histogram of one value of each row; those not above 0 are left out. The number of rows is public."""
        histogram = Histogram(_EDGES, rows=rows)
        noise = gate.noise(name, histogram.sensitivity)
        counts = gate.release(name, histogram, np.where(values > 0.0, values, np.nan))
        return cls(np.where(magnitudes.surviving(counts, noise, 1), np.maximum(counts, 0.0), 0.0), noise)

    @property
    def count(self) -> float:
        """How many values there are."""
        return float(self.masses.sum())

    def bound(self, beyond: float) -> float | None:
        """The size that about a part `beyond` of the values exceeds; None if all are lost in noise."""
        below = np.cumsum(self.masses)
        if below[-1] <= 0.0:
            return None
        wanted = (1.0 - beyond) * below[-1]
        last = int(np.searchsorted(below, wanted))
        short = (below[last] - wanted) / self.masses[last]
        return _EDGES[last + 1] - float(short) * (_EDGES[last + 1] - _EDGES[last])

    def squares(self, limit: float) -> float:
        """The sum of the squares of all values, clipped to a limit."""
        edges = np.minimum(_EDGES, limit)
        low, high = edges[:-1], edges[1:]
        return float(self.masses @ (low**2 + low * high + high**2)) / 3.0
