"""What a study comes to under the protocol "marginals": its rules and its plan. Functions of the study alone.

With 2 rho the budget as a squared Gaussian mean and K parties, a release of sensitivity 1 with a share f of a party's
part has noise sqrt(K / (2 rho f)). What counts in the rules is the strength n sqrt(2 rho / K): how many deviations of
such a noise the rows of the study add up to.
"""

import math
from collections.abc import Collection
from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from tacit._types import Floats
from tacit.federated.options import Marginals
from tacit.federated.protocols.base import Protocol
from tacit.federated.protocols.bounds import Bounds
from tacit.federated.sketches import Sketch, sketch_for
from tacit.federated.study import Study
from tacit.privacy import Plan, Release
from tacit.privacy.mechanisms import Sensitivity
from tacit.privacy.plan import Kind

SUMS = 0.25  # the weight of sums of columns next to their products with the target, in one release
PRODUCTS = Sensitivity.vector(math.hypot(1.0, SUMS))
AGAIN = Sensitivity.vector(1.0)  # of products with the target alone
SQUARES = Sensitivity.outer_product(1.0)
SCORE_CLIP = 2.0  # deviations that a party's score is clipped to, before it is sketched
SCORE_VARIANCE = 0.9205 / SCORE_CLIP**2  # of a normal score, clipped there, over the square of the clip

_SHARES = {
    "label mean": 0.02,
    "entry size": 0.02,
    "columns": 0.46,
    "row norm": 0.02,
    "correlations": 0.33,
    "moments": 0.15,
}
_LABELS_SHARE = 0.35
_DRAWN, _ENOUGH, _DRAWN_BEYOND = 0.18, 12, 0.11  # columns drawn over the square root of the strength, up to and beyond
_SPARED = 4 / 3  # columns may be so many times as many where all are taken, which spares the selection
_COLUMNS_SHARE, _COLUMNS_SIZE = 0.35, 100
_SCORE_SHARES, _SCORE_SIZE, _LEAST_SCORE_SIZE = (0.1, 0.35), 32, 8


@dataclass(frozen=True, eq=False)
class Cross:
    """How moments between parties are estimated: from sketches of all selected columns, or of one score per party."""

    columns: bool
    share: float
    sketch: Sketch


def options(study: Study) -> Marginals:
    """What the study leaves open, or sets, of this protocol."""
    assert isinstance(study.protocol, Marginals)
    return study.protocol


def strength(study: Study) -> float:
    """What the rules go by, n sqrt(2 rho / K)."""
    return study.n_rows * math.sqrt(2.0 * study.budget.rho / len(study.members))


def n_selected(study: Study) -> dict[str, int]:
    """How many columns each party selects: what the study says, or a number by a rule, or all if they are hardly more.

    The noise of k columns' second moments, as a matrix, grows like k^1.5 over the strength, and each column drawn costs
    a part of the selection's budget; beyond a dozen, columns are worth less. The numbers were set on text-like and on
    dense data of 10,000 to 100,000 rows.
    """
    most = options(study).n_selected
    if most is not None:
        return {member.name: min(member.n_features, most) for member in study.members}
    if not study.budget.is_private:
        return {member.name: member.n_features for member in study.members}
    root = math.sqrt(strength(study))
    drawn = max(1, round(min(_DRAWN * root, max(_ENOUGH, _DRAWN_BEYOND * root))))
    return {m.name: m.n_features if m.n_features <= _SPARED * drawn else drawn for m in study.members}


def cross_for(study: Study) -> Cross | None:
    """What is spent on moments between parties, and on what; None: they are taken as zero.

    Two columns of variance v, clipped to norm 1 and sketched with noise s, have their correlation estimated with an
    error of sqrt(2 / m + r / m^2 + 1 / r) by a sketch of r rows, m = n v / s^2: from the noise, from its square, from
    the sketch. It is least, 2 / sqrt(m), at r = m. Each of k columns of a party has v of about 1 / (2 k), and its one
    score more. So columns are sketched where that leaves an error of a fifth, and else scores, with as much of the
    budget as leaves an error of a third, but for the least and the most that they may cost. Of more than two classes
    there is no one score: columns, or nothing.
    """
    cross = options(study).cross
    if cross == "zero" or len(study.members) == 1:
        return None
    if not study.budget.is_private:
        return Cross(True, _COLUMNS_SHARE, sketch_for(study))
    rows = strength(study) ** 2 / study.n_rows
    size = _COLUMNS_SHARE * rows / (2.0 * max(n_selected(study).values()))
    if size >= _COLUMNS_SIZE or (study.outputs > 1 and cross == "sketched"):
        return Cross(True, _COLUMNS_SHARE, sketch_for(study, math.ceil(max(size, _LEAST_SCORE_SIZE))))
    if study.outputs > 1:
        return None
    least, most = _SCORE_SHARES
    share = min(most, max(least, _SCORE_SIZE / (SCORE_VARIANCE * rows)))
    size = share * rows * SCORE_VARIANCE
    if size < _LEAST_SCORE_SIZE and cross == "auto":
        return None
    return Cross(False, share, sketch_for(study, math.ceil(max(size, _LEAST_SCORE_SIZE))))


class Agreement(Protocol):
    """What the parties and the coordinator of a study all know."""

    name = Marginals.name

    def __init__(self, study: Study) -> None:
        super().__init__(study)
        if study.loss == "squared_hinge":
            raise ValueError(
                "protocol 'marginals' serves the losses 'squared' and 'logistic', which moments say something about;"
                " for 'squared_hinge' use protocol='feature-sharing'"
            )
        self.bounds = Bounds(study, core=True)
        self.n_selected = n_selected(study)
        self.cross = cross_for(study)
        self.label_sketch = sketch_for(study) if study.labels == "sketched" else None

    def of(self, names: Collection[str]) -> "Agreement":
        """What is agreed between the parties that stayed; the plan and its noise are those of all."""
        if set(self.study.names) <= set(names):
            return self
        _ = self.promise  # of all, which the copy keeps
        other = copy(self)
        other.study = replace(self.study, members=tuple(m for m in self.study.members if m.name in names))
        return other

    @property
    def starts_with_bounds(self) -> bool:
        """Whether there is a round before the marginals."""
        return self.bounds.needed or self.label_sketch is not None

    def selects(self, name: str) -> bool:
        """Whether a party draws columns; it takes all where it may have as many."""
        return self.n_selected[name] < self.study.member(name).n_features

    def finds_label_mean(self, name: str) -> bool:
        """Whether a party releases the mean of the labels."""
        sketched = self.label_sketch is not None
        return self.study.fit_intercept and (not sketched or name == self.study.label_holder)

    def plan(self) -> Plan:
        """Bounds, then what each party releases of its columns, each party with the same part of the budget."""
        first = list(self.bounds.releases())
        if self.label_sketch is not None:
            first.append(Release(f"{self.study.label_holder}/labels", "gaussian", share=_LABELS_SHARE))
        left = 1.0 - sum(release.share or 0.0 for release in first)
        between = 0.0 if self.cross is None else self.cross.share
        each = left / len(self.study.members)
        then = []
        for name in self.study.names:
            shares = self._shares(name)
            unit = each * (1.0 - between) / sum(shares.values())
            for what, share in shares.items():
                drawn = what == "columns"
                count = self.n_selected[name] if drawn else 1
                kind: Kind = "exponential" if drawn else "gaussian"
                then.append(Release(f"{name}/{what}", kind, share=share * unit, count=count))
            if between:
                then.append(Release(f"{name}/cross", "gaussian", share=each * between))
        return Plan(*first, *then)

    def _shares(self, name: str) -> dict[str, float]:
        """What a party releases of its columns, in their proportions."""
        left_out = set() if self.selects(name) else {"entry size", "columns"}
        left_out |= set() if self.finds_label_mean(name) else {"label mean"}
        return {what: share for what, share in _SHARES.items() if what not in left_out}


def largest_target(bounds: tuple[float, ...], mean: float | Floats) -> float:
    """The largest distance of a label within the bounds from the mean; of a one-hot label from the classes' parts."""
    if isinstance(mean, np.ndarray):
        return float(np.linalg.norm(np.eye(len(mean)) - mean, axis=1).max())
    return max(abs(bounds[1] - mean), abs(bounds[0] - mean))
