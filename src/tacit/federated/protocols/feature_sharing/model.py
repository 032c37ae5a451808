"""The coordinator's side of "feature-sharing": the model as everybody may see it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tacit._types import Floats
from tacit.federated.protocols.base import Arrays, Model, Protocol, Question, RefusedError, taken
from tacit.federated.protocols.bounds import LARGEST_BOUND, SMALLEST_BOUND
from tacit.federated.protocols.feature_sharing.residuals import half_width, middle
from tacit.federated.protocols.feature_sharing.rules import Block, options
from tacit.federated.sketches import Identity, Sketch
from tacit.federated.study import Study
from tacit.problems import LOSSES

LABELS, DRAW, SHARE = "labels", "draw", "share"  # the steps of questions
_NO_LIMIT = 2.0**100  # without privacy nothing is clipped
_FIRST_SLOPES = {"squared": 1.0, "logistic": 0.5, "squared_hinge": 2.0}  # of l' in y, at margin 0
_LARGEST = 1e150  # of numbers that are only compared, or divided and then clipped
_CORRELATION = 0.1  # between a column and the predictions of others, from which on it is worth correcting for


@dataclass(eq=False)
class SharedModel:
    """Weights, intercept and sketches, all of them public."""

    protocol: Protocol
    sketch: Sketch | None
    entry_bounds: dict[str, float]
    y_bounds: tuple[float, float]
    intercept: float = 0.0
    weights: dict[tuple[str, int], float] = field(default_factory=dict)
    sketches: dict[tuple[str, int], Floats] = field(default_factory=dict)
    labels: Floats | None = None
    label_noise: float = 0.0  # of what these say of one row
    reach: float | None = None  # what residuals are clipped to as long as nothing is off, for the squared loss

    def question(self, name: str, step: str) -> Question:
        """What one party is told of the model."""
        own = {column: weight for (party, column), weight in self.weights.items() if party == name}
        arrays: dict[str, Any] = {
            "columns": np.array(list(own), dtype=np.int32),
            "weights": np.array(list(own.values())),
        }
        spread = label_noise = 0.0
        if self.sketch is not None:
            arrays["others"], spread = self._others(name, self.sketch)
        if self.labels is not None and not self.study.member(name).labels:
            arrays["labels"], label_noise = self.labels, self.label_noise
        numbers = [self.entry_bounds[name], *self.y_bounds, self.intercept, self._limit(spread, label_noise)]
        return Question(step, arrays | {"numbers": np.array(numbers)})

    def ask_labels(self) -> dict[str, Question]:
        """The question to the label holder alone."""
        return {self.study.label_holder: self.question(self.study.label_holder, LABELS)}

    def share_question(self, name: str, column: int) -> Question:
        """The question for the sketch of one column."""
        arrays = {"bound": np.array([self.entry_bounds[name]]), "column": np.array([column], dtype=np.int32)}
        return Question(SHARE, arrays)

    def hear_labels(self, answer: Arrays) -> None:
        """Move the intercept by a step that the loss's curvature allows; take what is said of the labels once."""
        if self.study.labels == "sketched" and self.sketch is not None and self.labels is None:
            self.labels = self._sketch(self.study.label_holder, answer, "labels")
            self.label_noise = math.sqrt(float(np.mean(self.sketch.back(self.labels) ** 2)))
        if self.study.loss == "squared" and self.reach is None:
            self.reach = self._reach(answer)
        if self.study.fit_intercept:
            total = float(taken(self.study.label_holder, answer, "intercept", (1,), _LARGEST)[0])
            widest = (
                half_width(self.study, *self.y_bounds) if self.study.loss == "squared" else math.log(self.study.n_rows)
            )
            widest += self.study.l1_radius * max(self.entry_bounds.values())
            moved = self.intercept - total / (self.study.n_rows * LOSSES[self.study.loss].curvature)
            self.intercept = min(max(moved, -widest), widest)

    def move(self, answers: Mapping[Block, Arrays], step: float, n_blocks: int) -> list[tuple[str, int]]:
        """One step of Frank-Wolfe, of what the parties of these blocks drew; returns the columns that moved the model.

        A block of "product" moves in a ball of its own, and what moves otherwise is the whole model.
        """
        picks = {block: self._pick(block, answer) for block, answer in answers.items()}
        radius, geometry = self.study.l1_radius, options(self.study).geometry
        if geometry == "product":
            radius /= n_blocks
        elif geometry == "best" and len(picks) > 1:
            best = max(picks, key=lambda b: float(taken(b.party, answers[b], "value", (1,), _LARGEST)[0]))
            picks = {best: picks[best]}
        for block, (column, sign) in picks.items():
            if sign and "column" in answers[block]:
                self.keep_sketch(block.party, column, answers[block])
        picks = {block: pick for block, pick in picks.items() if pick[1]}
        if picks:
            moved = {key for key in self.weights if geometry != "product" or any(key in block for block in picks)}
            shrunk = {key: weight * (1.0 - step if key in moved else 1.0) for key, weight in self.weights.items()}
            self.weights = {key: weight for key, weight in shrunk.items() if key not in moved or step < 1.0}
        for block, (column, sign) in picks.items():
            key = block.party, column
            self.weights[key] = self.weights.get(key, 0.0) + step * sign * radius
        return [(block.party, column) for block, (column, _) in picks.items()]

    def keep_sketch(self, name: str, column: int, answer: Arrays) -> None:
        """Cache a column's sketch."""
        self.sketches.setdefault((name, column), self._sketch(name, answer, "column"))

    def final(self) -> Model:
        """Weights in the users' units."""
        coefs = {member.name: np.zeros(member.n_features) for member in self.study.members}
        for (name, column), weight in self.weights.items():
            coefs[name][column] = weight
        facts = {
            "entry_bounds": dict(self.entry_bounds),
            "y_bounds": self.y_bounds,
            "features": {name: np.flatnonzero(coef) for name, coef in coefs.items()},
        }
        return Model(coefs, self.intercept + middle(self.study, *self.y_bounds), facts)

    def _limit(self, spread: float, label_noise: float) -> float:
        """What residuals are clipped to, from public numbers.

        The residual of a model that predicts nothing: the reach of the targets, 1 for the logistic loss and 2 for
        squared_hinge; more where predictions or labels are off by known noise, which would otherwise be all that is
        left inside the limit. (The squared loss so clipped is Huber's.)
        """
        if not self.study.budget.is_private:
            return _NO_LIMIT
        loss = LOSSES[self.study.loss]
        plain = {"logistic": 1.0, "squared_hinge": 2.0}.get(self.study.loss, half_width(self.study, *self.y_bounds))
        plain = plain if self.reach is None else min(plain, self.reach)
        limit = math.hypot(plain, loss.curvature * spread, _FIRST_SLOPES[self.study.loss] * label_noise)
        return limit if label_noise else min(limit, loss.slope)

    @property
    def study(self) -> Study:
        """What was agreed."""
        return self.protocol.study

    def _sketch(self, name: str, answer: Arrays, what: str) -> Floats:
        """A party's sketch, of a column or of the labels."""
        assert self.sketch is not None
        bound = half_width(self.study, *self.y_bounds) if what == "labels" else self.entry_bounds[name]
        return self.protocol.taken_sketch(self.sketch, name, answer, what, bound)

    def _reach(self, answer: Arrays) -> float:
        """What few of the targets lie beyond."""
        holder, widest = self.study.label_holder, half_width(self.study, *self.y_bounds)
        reach = float(taken(holder, answer, "reach", (1,), max(widest, LARGEST_BOUND))[0])
        if reach < min(widest, SMALLEST_BOUND):
            raise RefusedError(f"party {holder!r} answered 'reach' with a number that no data gives")
        return reach

    def _pick(self, block: Block, answer: Arrays) -> tuple[int, int]:
        """(column, sign) of an answer; a party that names a column it does not have there is not believed."""
        index = np.asarray(answer.get("index"))
        if index.shape != (1,) or index.dtype.kind != "i":
            raise RefusedError(f"party {block.party!r} did not answer with one of its columns")
        signed = int(index[0])
        column = max(abs(signed) - 1, 0)
        if signed and (block.party, column) not in block:
            raise RefusedError(f"party {block.party!r} did not answer with one of its columns that it was asked for")
        return column, (signed > 0) - (signed < 0)

    def _others(self, name: str, sketch: Sketch) -> tuple[Floats, float]:
        """What the others' columns predict, sketched and shrunk, and by how much it is off in a row."""
        total, noise = np.zeros(sketch.size), 0.0
        for (party, column), weight in self.weights.items():
            if party != name:
                if (party, column) not in self.sketches:
                    raise RefusedError(f"party {party!r} did not answer with the sketch of a column that it drew")
                total += weight * self.sketches[party, column]
                change = sketch.sensitivity(self.entry_bounds[party])
                noise += (weight * self.protocol.noise(party, "column", change)) ** 2
        return shrinkage(total, noise, sketch)


def shrinkage(total: Floats, noise: float, sketch: Sketch) -> tuple[Floats, float]:
    """Sketched predictions p, J p + noise of this variance by entry, shrunk by a public factor; and their error by row.

    A row's part of J^T (J p + noise) is off by the noise and by what other rows leave in it, with variance
    v = noise + |p|^2 / m (no such remainder if nothing is compressed). In the score of a column a factor f leaves an
    error of f^2 v |a|^2, and a bias of up to (1 - f)^2 c^2 |p|^2 |a|^2 where c is the correlation of a and p. Their sum
    is smallest at f = c^2 |p|^2 / (c^2 |p|^2 + v), which is 1 without noise or compression; c is taken as 0.1.
    |p|^2 is estimated by |J p + noise|^2 less m times the noise.
    """
    size = max(float(total @ total) - sketch.size * noise, 0.0)
    variance = noise + (0.0 if isinstance(sketch, Identity) else size / sketch.size)
    if variance == 0.0:
        return total, 0.0
    factor = _CORRELATION**2 * size / (_CORRELATION**2 * size + variance)
    return factor * total, factor * math.sqrt(variance)
