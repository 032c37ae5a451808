"""The coordinator's side of the protocol "marginals": from what the parties released to one model.

No data comes in here. A party's columns are in the units of its rows, which are clipped to norm 1, until the model is
solved for in the users' units.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit._types import Floats
from tacit.federated.protocols import moments
from tacit.federated.protocols.base import Arrays, Model, Question, Rounds
from tacit.federated.protocols.marginals import between, several
from tacit.federated.protocols.marginals.parts import read_part, sketched_labels
from tacit.federated.protocols.marginals.rules import Agreement
from tacit.federated.study import Study


def coordinate(agreed: Agreement) -> Rounds:
    """One to three rounds, then the solve; of the parties that answered in all of them."""
    study = agreed.study
    first: Mapping[str, Arrays] = {}
    if agreed.starts_with_bounds:
        first = yield agreed.bounds.questions()
    y_bounds = agreed.bounds.y_bounds(first)
    answers = yield {name: Question("marginals", _told(agreed, name, y_bounds, first)) for name in study.names}
    agreed = agreed.of(answers)
    parts = [read_part(agreed, name, y_bounds, first, answers[name]) for name in agreed.study.names]
    mean: Any = np.mean(np.array([part.target_mean for part in parts]), axis=0)
    if study.outputs > 1:
        agreed, parts, covariance, cross = yield from several.joined(agreed, parts, mean)
    else:
        mean = float(mean)
        agreed, parts, covariance, cross = yield from between.joined(agreed, parts, mean, _square(agreed, first, mean))
    study = agreed.study
    units = np.concatenate([np.full(len(part.selected), part.row_norm) for part in parts])
    given = (Moments if study.outputs == 1 else ClassMoments)(
        study,
        moments.repaired(covariance, 0.0) * np.outer(units, units) / study.n_rows,
        (np.concatenate([part.slope(mean) for part in parts]).T * units).T / study.n_rows,
        np.concatenate([part.sums for part in parts]) * units / study.n_rows,
        mean,
        {name: part.selected for name, part in zip(study.names, parts, strict=True)},
    )
    named = dict(zip(study.names, parts, strict=True))
    facts = {
        "y_bounds": y_bounds,
        "features": given.features,
        "moments": given,
        "row_norms": {name: part.norm_to_predict(study.n_rows) for name, part in named.items()},
        "cross": cross,
    }
    if study.entry_bound is not None:
        facts["entry_bounds"] = dict.fromkeys(study.names, study.entry_bound)
    return Model(*given.at(study.l1_radius), facts)


@dataclass(frozen=True, eq=False)
class Moments:
    """Released moments per row, in the users' units, from which a model follows for any l1 radius.

    `features` are each party's columns that they are of, in the order of the parties.
    """

    study: Study
    covariance: Floats
    slope: Floats
    mean: Floats
    target_mean: Any
    features: Mapping[str, NDArray[Any]]

    def at(self, radius: float) -> tuple[dict[str, Floats], Any]:
        """The weights of each party's columns, all of them in the l1 ball, and the intercept."""
        intercept = self.study.fit_intercept
        if self.study.loss == "squared":
            squares = self.covariance if intercept else self.covariance + np.outer(self.mean, self.mean)
            weights, centre = moments.least_squares(squares, self.slope, radius), self.target_mean
        else:
            mean = None if intercept else self.mean
            weights, centre = moments.logistic(self.covariance, self.slope / 2.0, self.positive, radius, mean)
        return self.by_party(weights), self.intercept(weights, centre)

    def intercept(self, weights: Floats, centre: float) -> float:
        """That with which the mean margin, or prediction, is the centre; 0 in a model without one."""
        return centre - float(self.mean @ weights) if self.study.fit_intercept else 0.0

    @property
    def positive(self) -> float:
        """The part of labels that are positive, of two classes; half where there is no intercept to find it with."""
        if not self.study.fit_intercept:
            return 0.5
        least = 0.5 / self.study.n_rows
        return min(1.0 - least, max(least, (self.target_mean + 1.0) / 2.0))

    def by_party(self, weights: Floats) -> dict[str, Floats]:
        """Weights of the columns that moments are of, as those of each party's columns; in rows, if there are more."""
        ends = np.cumsum([len(columns) for columns in self.features.values()])
        coefs = {member.name: np.zeros((*weights.shape[:-1], member.n_features)) for member in self.study.members}
        for (name, columns), own in zip(self.features.items(), np.split(weights, ends[:-1], axis=-1), strict=True):
            coefs[name][..., columns] = own
        return coefs


class ClassMoments(Moments):
    """The same of more than two classes: covariances are within classes, and slopes have a column for each class.

    `target_mean` is what part of all rows each class has. A model has rows of weights, and as many intercepts.
    """

    def at(self, radius: float) -> tuple[dict[str, Floats], Floats]:
        """Each class in an l1 ball of its own: what is right where columns are normal within the classes."""
        means = (self.slope / self.target_mean).T
        weights = np.stack([moments.least_squares(self.covariance, mean, radius) for mean in means])
        halfway = np.sum(weights * means, axis=1) / 2.0
        return self.by_party(weights), np.log(self.target_mean) - halfway - weights @ self.mean


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
