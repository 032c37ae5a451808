"""The coordinator's side of the protocol "marginals": from what the parties released to one model.

No data comes in here. A party's columns are in the units of its rows, which are clipped to norm 1, until the model is
solved for in the users' units.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tacit._types import Floats
from tacit.federated.protocols import moments
from tacit.federated.protocols.base import Arrays, Model, Question, Rounds
from tacit.federated.protocols.marginals import between
from tacit.federated.protocols.marginals.parts import Part, read_part, sketched_labels
from tacit.federated.protocols.marginals.rules import Agreement


def coordinate(agreed: Agreement) -> Rounds:
    """One to three rounds, then the solve."""
    study = agreed.study
    first: Mapping[str, Arrays] = {}
    if agreed.starts_with_bounds:
        first = yield agreed.bounds.questions()
    y_bounds = agreed.bounds.y_bounds(first)
    answers = yield {name: Question("marginals", _told(agreed, name, y_bounds, first)) for name in study.names}
    parts = [read_part(agreed, name, y_bounds, first, answers[name]) for name in study.names]
    mean = float(np.mean([part.target_mean for part in parts]))
    parts, covariance, cross = yield from between.joined(agreed, parts, mean, _square(agreed, first, mean))
    units = np.concatenate([np.full(len(part.selected), part.row_norm) for part in parts])
    found = Moments(
        covariance=moments.repaired(covariance, 0.0) * np.outer(units, units) / study.n_rows,
        slope=np.concatenate([part.slope(mean) for part in parts]) * units / study.n_rows,
        mean=np.concatenate([part.sums for part in parts]) * units / study.n_rows,
        target_mean=mean,
    )
    solved, intercept = found.solve(study.loss, study.l1_radius, study.n_rows, fit_intercept=study.fit_intercept)
    coefs = {}
    for member, part, own in zip(study.members, parts, _split(solved, parts), strict=True):
        coefs[member.name] = np.zeros(member.n_features)
        coefs[member.name][part.selected] = own
    named = dict(zip(study.names, parts, strict=True))
    facts = {
        "y_bounds": y_bounds,
        "features": {name: part.selected for name, part in named.items()},
        "row_norms": {name: part.norm_to_predict(study.n_rows) for name, part in named.items()},
        "cross": cross,
    }
    if study.entry_bound is not None:
        facts["entry_bounds"] = dict.fromkeys(study.names, study.entry_bound)
    return Model(coefs, intercept, facts)


@dataclass(frozen=True, eq=False)
class Moments:
    """Per row, in the users' units: of all parties' selected columns, one party after the other, and of the target."""

    covariance: Floats
    slope: Floats
    mean: Floats
    target_mean: float

    def solve(self, loss: str, radius: float, n: int, *, fit_intercept: bool) -> tuple[Floats, float]:
        """The weights of all columns and the intercept, |weights|_1 <= radius."""
        if loss == "squared":
            centred = self.covariance if fit_intercept else self.covariance + np.outer(self.mean, self.mean)
            weights = moments.least_squares(centred, self.slope, radius)
            return weights, self.target_mean - float(self.mean @ weights) if fit_intercept else 0.0
        if not fit_intercept:  # labels are -1 and 1, not centred: as if half of them were positive
            return moments.logistic(self.covariance, self.slope / 2.0, 0.5, radius, self.mean)[0], 0.0
        least = 0.5 / n
        positive = min(1.0 - least, max(least, (self.target_mean + 1.0) / 2.0))
        weights, centre = moments.logistic(self.covariance, self.slope / 2.0, positive, radius)
        return weights, centre - float(self.mean @ weights)


def _told(agreed: Agreement, name: str, y_bounds: tuple[float, float], first: Mapping[str, Arrays]) -> Arrays:
    """What a party is told for its marginals."""
    if agreed.label_sketch is None:
        return {"y bounds": np.array([*y_bounds, *(agreed.bounds.y_core(first) or ())])}
    holder = agreed.study.label_holder
    return {} if name == holder else {"labels": sketched_labels(agreed, first)}


def _square(agreed: Agreement, first: Mapping[str, Arrays], mean: float) -> float | None:
    """What the target varies by at most, per row; None if that was not found."""
    square = agreed.bounds.y_square(first)
    return square if agreed.study.loss == "squared" or square is None else square - mean**2


def _split(values: Floats, parts: Sequence[Part]) -> list[Floats]:
    return np.split(values, np.cumsum([len(part.selected) for part in parts])[:-1])
