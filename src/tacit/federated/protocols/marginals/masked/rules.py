"""What a study comes to with `products="masked"`: its plan, the noise against every coalition, and the grid.

A party's block has rows of norm at most 1, in units of its row norm; at the party that holds the labels, it has one
column more for them, or one for each of more than two classes, of norm at most 1 together. In its own moments a party
takes a constant column too, for sums. C_k is the squared norm of a row in products between parties, O_k that of a row
in a party's own moments. There is noise s on a party's own moments and t on each share of a product. A coalition T of
parties (none: the coordinator) knows its own data and noise, and sees

    mu^2(T) =  sum of O_k^2 / s^2          over k not in T
             + sum of C_k C_l / t^2        over k not in T and l in T: the noise of l is known, that of k remains
             + sum of C_k C_l / (2 t^2)    over pairs k < l not in T: only the sum of both shares is open

             + q sum of 1 / r^2            over k not in T: slopes of the logistic loss, asked q times, in sensitivities

for add-remove neighbours. The plan is calibrated to the T that sees most. A pair is charged once.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tacit.federated.protocols.base import Arrays, Protocol
from tacit.federated.protocols.bounds import Bounds
from tacit.federated.protocols.marginals.rules import SUMS
from tacit.federated.study import Study
from tacit.privacy import Plan, Release
from tacit.privacy.mechanisms import GaussianWords, Sensitivity

_LABEL = 1.0  # the squared weight of the label next to a row of norm 1
_REACH = 3.0  # how far labels may be from their middle, in widths that half of them lie within
_CALM = 2.0**14  # rows times mu from which on they may be further
_ROW_NORM, _LABEL_MEAN = 0.01, 0.01  # shares of the budget; the first for each party
_CROSS = 2.0  # (s / t)^2
_SLOPES = 0.3  # of what is left for moments, what slopes of the logistic loss get
SLOPES_COUNT = 3  # how often parties are asked for them
SLOPES = Sensitivity.vector(0.5 * math.hypot(1.0, SUMS))  # a row times a number in [-1/2, 1/2]
_RANGE_BITS = 62  # sums and noise stay within, of the 64 of a word
_FINEST = 2.0**26  # steps to a row norm, where no noise says how many
SHRINK = 1.0 - 2.0**-30  # of rows before they are cut to whole numbers: what float64 may have rounded up
MOST_COLUMNS = 1 << 16


@dataclass(frozen=True)
class Grid:
    """Blocks are whole numbers, `steps` to a norm of 1; noise on a share has a standard deviation of 2^bits steps^2."""

    steps: float
    bits: int


class MaskedAgreement(Protocol):
    """The rules, worked out for a study."""

    name = "masked marginals"

    def __init__(self, study: Study) -> None:
        super().__init__(study)
        if study.loss == "squared_hinge":
            raise ValueError("products='masked' serves the losses 'squared' and 'logistic', not 'squared_hinge'")
        widest = max(self.width(name) for name in study.names)
        if widest > MOST_COLUMNS:
            raise ValueError(f"products='masked' takes at most {MOST_COLUMNS:,} columns of a party, got {widest:,}")
        self.bounds = Bounds(study, core=True)
        _ = self.grid  # refuses what has none

    def holds_labels(self, name: str) -> bool:
        """Whether labels are in this party's block."""
        return name == self.study.label_holder

    def label_range(self, found: Mapping[str, Arrays]) -> tuple[float, float]:
        """What labels are clipped to, from what their holder released: their range, or their core if that is less.

        Noise goes with the range. For a normal target three widths are two deviations; the clip takes a twentieth of
        the weights, and less where there are more rows.
        """
        low, high = self.bounds.y_bounds(found)
        core = self.bounds.y_core(found)
        if core is None or not self.study.budget.is_private:
            return low, high
        calm = self.study.n_rows * self.study.budget.mu / _CALM
        middle, reach = core[0], _REACH * max(1.0, math.sqrt(calm)) * core[1]
        narrow = max(low, middle - reach), min(high, middle + reach)
        return narrow if narrow[0] < narrow[1] else (low, high)

    def width(self, name: str) -> int:
        """The columns of a party's block in products between parties, with those of labels."""
        return self.study.member(name).n_features + self.study.outputs * self.holds_labels(name)

    @property
    def label_weight(self) -> float:
        """What the label is multiplied with, when it lies in [-1, 1]."""
        return math.sqrt(_LABEL)

    def norm(self, name: str) -> float:
        """Of a row of a party's block, at most."""
        return math.sqrt(1.0 + _LABEL * self.holds_labels(name))

    def own_norm(self, name: str) -> float:
        """The same with the constant column."""
        return math.hypot(self.norm(name), SUMS)

    def moments_of(self, name: str) -> Sensitivity:
        """Of a party's own second moments: the outer product of a row."""
        return Sensitivity.outer_product(self.own_norm(name))

    def products_of(self, one: str, other: str) -> Sensitivity:
        """Of the products between two parties: the outer product of the parts of a row, which may be anywhere."""
        return Sensitivity.vector(self.norm(one) * self.norm(other))

    @property
    def has_slopes(self) -> bool:
        """Whether parties release slopes after the moments: for two classes, where moments do not say all."""
        return self.study.loss == "logistic" and self.study.outputs == 1

    def share_name(self, other: str) -> str:
        """The release of a party's share in the products with another one."""
        return f"products with party {self.study.names.index(other) + 1}"

    def coalitions(self) -> Iterator[frozenset[str]]:
        """A coalition of each kind: by how many there are in it, and whether the holder of the labels is.

        Which of the others are in it makes no difference to mu^2(T): their rows have the same norm. Not all parties
        together: they hold everything.
        """
        holder = self.study.label_holder
        others = [name for name in self.study.names if name != holder]
        for count in range(len(others) + 1):
            yield frozenset(others[:count])
            if count < len(others):
                yield frozenset([*others[:count], holder])

    def plan(self) -> Plan:
        """Bounds, then each party's own moments and its shares, with noise of the same size in all of them."""
        names = self.study.names
        first = [*self.bounds.releases(), *(Release(f"{n}/row norm", "gaussian", share=_ROW_NORM) for n in names)]
        if self.study.fit_intercept:
            first.append(Release(f"{self.study.label_holder}/label mean", "gaussian", share=_LABEL_MEAN))
        left = 1.0 - sum(release.share or 0.0 for release in first)
        own = {name: self.own_norm(name) ** 4 for name in names}
        pairs = {(k, m): _CROSS * (self.norm(k) * self.norm(m)) ** 2 for k in names for m in names if k != m}
        views = [
            [0.0 if k in T else 1.0 for k in own]
            + [0.0 if k in T else 1.0 if m in T else 0.25 for k, m in pairs]  # 1 / (2 t^2) is a quarter of each share
            for T in self.coalitions()
        ]
        costs = [*own.values(), *pairs.values()]
        slopes = 0.0
        if self.has_slopes:
            slopes = _SLOPES / (1.0 - _SLOPES) * _worst(views, costs) / len(names)
            for view, T in zip(views, self.coalitions(), strict=True):
                view += [0.0 if k in T else 1.0 for k in names]
            costs += [slopes] * len(names)
        unit = left / _worst(views, costs)
        then = [Release(f"{name}/moments", "gaussian", share=unit * cost) for name, cost in own.items()]
        then += [Release(f"{k}/{self.share_name(m)}", "gaussian", share=unit * cost) for (k, m), cost in pairs.items()]
        if self.has_slopes:
            of_slopes = Release("slopes", "gaussian", share=unit * slopes, count=SLOPES_COUNT)
            then += [replace(of_slopes, name=f"{name}/{of_slopes.name}") for name in names]
        return Plan(*first, *then, views=[[1.0] * len(first) + view for view in views])

    @cached_property
    def grid(self) -> Grid:
        """The grid of all blocks, by the noise of the plan and what a word holds."""
        names, n = self.study.names, self.study.n_rows
        largest = n * max(self.norm(name) for name in names) ** 2
        noise = max(self.noise(k, self.share_name(m), self.products_of(k, m)) for k in names for m in names if k != m)
        finest = min(_FINEST, math.sqrt(math.ldexp(1.0, _RANGE_BITS) / largest))
        if noise == 0.0:
            return Grid(finest, 0)
        bits = math.floor(min(_RANGE_BITS - math.log2(largest / noise + 128.0), math.log2(finest**2 * noise)))
        if bits < GaussianWords.least_bits:
            raise ValueError("products='masked' has no room for so little noise on so many rows: lower epsilon")
        bits = min(GaussianWords.most_bits, bits)
        return Grid(min(finest, math.sqrt(math.ldexp(SHRINK, bits) / noise)), bits)


def _worst(views: Sequence[Sequence[float]], costs: Sequence[float]) -> float:
    """What the coalition that sees most sees of all costs."""
    return max(sum(part * cost for part, cost in zip(view, costs, strict=True)) for view in views)
