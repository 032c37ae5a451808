"""Models of the squared loss judged on people who were held out, with `products="local"`.

In the rounds of the training, and beside what is about its people:
    marginals   held-out correlations, held-out moments: the same of the people held out, for the same columns with the
                same clips; and of the party that speaks for the labels the sums of the target and of its square
    cross       a sketch of the same columns, or of the same score of them

The squared error of a model is a function of the moments of all columns. Those of one party are known but for noise. Of
products between parties only that is known which the sketches tell: with scores, columns of two parties have in common
what they have with their party's scores. Where nothing was sketched they are taken as zero, as in the training.

Privacy
-------
correlations, moments, cross   as in the training, of other people
label square                   (t / Y, t^2 / Y^2) with |t| <= Y: sqrt(2), and twice that
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import combinations

import numpy as np

from tacit._types import Floats
from tacit.federated.protocols import columns
from tacit.federated.protocols.base import Answer, Arrays, Holding, Model, Question, RefusedError, largest_sum, taken
from tacit.federated.protocols.judged import Judge, Noisy
from tacit.federated.protocols.marginals import MarginalsProtocol, party
from tacit.federated.protocols.marginals.parts import read_part
from tacit.federated.protocols.marginals.party import Target, bounded, slack, times
from tacit.federated.protocols.marginals.rules import (
    PRODUCTS,
    SCORE_VARIANCE,
    SQUARES,
    SUMS,
    Agreement,
    Cross,
    strength,
)
from tacit.federated.protocols.parts import HeldOutPart, Said, Scored, Scoring, least
from tacit.federated.sketches import sketch_for
from tacit.privacy import Gate, Plan, Promise, Release, Unit
from tacit.privacy.apart import at_price_of
from tacit.privacy.mechanisms import GaussianMatrix, GaussianVector, Sensitivity

_SHARES = {"correlations": 0.35, "moments": 0.25, "cross": 0.4}
_LABELS_SHARE = 0.05
_LABELS = Sensitivity.vector(math.sqrt(2.0))
_LEAST_SIZE = 8  # rows of a sketch
_CLIPPED = 4.0 * SCORE_VARIANCE  # of a normal score's variance
_LEAST_SCORE = 0.05  # the least variance of a score of which the training said 1/4


class HeldOutMarginals(MarginalsProtocol, HeldOutPart):
    """What is released about people who were held out."""

    joined = frozenset({"marginals", "cross"})

    def __init__(self, training: Agreement, rows: int) -> None:
        self.training = training
        super().__init__(replace(training.study, n_rows=rows))
        self.n_selected, self.cross = training.n_selected, self._cross()

    def _cross(self) -> Cross | None:
        """What the training sketches, with as many rows as the noise is worth."""
        how = self.training.cross
        if how is None:
            return None
        size = None
        if self.study.budget.is_private:
            rows = _SHARES["cross"] * strength(self.study) ** 2 / self.study.n_rows
            rows *= 1.0 / (2.0 * max(self.n_selected.values())) if how.columns else SCORE_VARIANCE
            size = max(_LEAST_SIZE, math.ceil(rows))
        return Cross(how.columns, _SHARES["cross"], sketch_for(self.study, size))

    @cached_property
    def promise(self) -> Promise:
        """As dear as the training's."""
        return at_price_of(self.training.promise, self.plan(), Unit("row", self.study.n_rows))

    def plan(self) -> Plan:
        """The same of each party, and of the label at the one that speaks for it."""
        shares = {what: share for what, share in _SHARES.items() if what != "cross" or self.training.cross is not None}
        releases = [
            Release(f"{name}/{what}", "gaussian", share=share / len(self.study.names))
            for name in self.study.names
            for what, share in shares.items()
        ]
        return Plan(*releases, Release(f"{self.study.label_holder}/label square", "gaussian", share=_LABELS_SHARE))

    def joins(self, holding: Holding, question: Question, gate: Gate, memory: Arrays) -> Answer:
        """What these people add to a step of the training, after which `memory` is that of both."""
        if question.step == "cross":
            assert self.cross is not None  # or the training had refused
            return party.cross(self, self.cross, holding, question, gate, memory)
        n, count = self.study.n_rows, self.n_selected[holding.name]
        rows = columns.unit_rows(bounded(self.study, holding.X)[:, memory["selected"]], float(memory["row norm"][0]))
        target = Target.of(holding.targets, tuple(memory["y bounds"].tolist()), float(memory["label mean"][0]))
        scaled = np.clip(target.values / target.bound, -1.0, 1.0)
        sides = np.column_stack([scaled, np.full(len(scaled), SUMS)])
        products = GaussianVector(times(PRODUCTS, slack(n)), bound=float(n))
        squares = GaussianMatrix(times(SQUARES, slack(n)), bound=float(n))
        found = {
            "correlations": gate.release("correlations", products, columns.product(rows, sides)),
            "moments": gate.release("moments", squares, columns.product(rows, rows))[np.triu_indices(count)],
        }
        if holding.name == self.study.label_holder:
            sums = [scaled.sum(), np.square(scaled).sum()]
            labels = GaussianVector(times(_LABELS, slack(n)), bound=float(n))
            found["label square"] = gate.release("label square", labels, sums)
        return Answer(found)

    def answer(self, holding: Holding, question: Question, gate: Gate, memory: Arrays) -> Answer:
        """There are no rounds about these people alone."""
        raise RefusedError("this study has no such step")

    def settled(self, answers: Mapping[str, Arrays]) -> Mapping[str, Arrays]:
        """Everything."""
        return answers

    def scored(self, model: Model, said: Said, models: Sequence[tuple[Floats, float]]) -> Scoring:
        """The squared errors of models, from what was released."""
        yield from ()
        judge = self._judge(model, said)
        errors = [judge.squared_error(*one) for one in models]
        return Scored(judge, errors, least(errors), errors[least(errors)])

    def _judge(self, model: Model, said: Said) -> Judge:
        """The moments of these people, of the parties in the model."""
        names, n, y_bounds = list(model.coefs), self.study.n_rows, model.facts["y_bounds"]
        agreed, spoken = self.training.of(names), said["marginals"]
        parts = {name: read_part(agreed, name, y_bounds, {}, spoken.training[name]) for name in names}
        holder = parts[self.study.label_holder]
        d = sum(m.n_features for m in agreed.study.members)
        starts = np.cumsum([0, *(m.n_features for m in agreed.study.members)])
        places = {name: start + parts[name].selected for name, start in zip(names, starts, strict=False)}
        matrix, noise = np.zeros((d + 2, d + 2)), []
        matrix[-1, -1], target, constant = 1.0, np.array([d]), np.array([d + 1])
        for name, own in places.items():
            part, count = parts[name], len(own)
            error, of_squares = self.noise(name, "correlations", PRODUCTS), self.noise(name, "moments", SQUARES)
            answer = spoken.held_out[name]
            products = taken(name, answer, "correlations", (count, 2), largest_sum(n, 1.0, error)) / n
            upper = taken(name, answer, "moments", (count * (count + 1) // 2,), largest_sum(n, 1.0, of_squares)) / n
            squares = np.zeros((count, count))
            squares[np.triu_indices(count)] = upper
            sums = products[:, 1] / SUMS
            unit, shift = part.target_bound / holder.target_bound, part.target_mean - holder.target_mean
            shift /= holder.target_bound
            matrix[np.ix_(own, own)] = squares + np.triu(squares, 1).T
            matrix[own, -2] = matrix[-2, own] = products[:, 0] * unit + shift * sums
            matrix[own, -1] = matrix[-1, own] = sums
            noise.append(Noisy(own, own, of_squares / n))
            noise.append(Noisy(own, target, error / n * math.hypot(unit, shift / SUMS)))
            noise.append(Noisy(own, constant, error / SUMS / n))
        error = self.noise(self.study.label_holder, "label square", _LABELS)
        answer = spoken.held_out[self.study.label_holder]
        mean, square = taken(self.study.label_holder, answer, "label square", (2,), largest_sum(n, 1.0, error)) / n
        matrix[-2, -2], matrix[-2, -1], matrix[-1, -2] = square, mean, mean
        noise += [Noisy(target, target, error / n), Noisy(target, constant, error / n)]
        units = np.concatenate([np.full(m.n_features, parts[m.name].row_norm) for m in agreed.study.members])
        judge = Judge(matrix, noise, units, holder.target_mean, holder.target_bound)
        self._put_between(judge, noise, places, said)
        return judge

    def _put_between(self, judge: Judge, noise: list[Noisy], places: Mapping[str, np.ndarray], said: Said) -> None:
        """Second moments between parties: the products of means, and what sketches say of covariances."""
        names, matrix, means = list(places), judge.matrix, judge.means
        for one, other in combinations(names, 2):
            matrix[np.ix_(places[one], places[other])] = np.outer(means[places[one]], means[places[other]])
        if self.cross is not None and "cross" in said:
            between = self._from_columns if self.cross.columns else self._from_scores
            noise += between(self.cross, judge, places, said)
        for one, other in combinations(names, 2):
            matrix[np.ix_(places[other], places[one])] = matrix[np.ix_(places[one], places[other])].T

    def _from_scores(self, how: Cross, judge: Judge, places: Mapping[str, np.ndarray], said: Said) -> list[Noisy]:
        """Covariances that follow from the parties' scores, as the training asked for them."""
        n, size, covariance = self.study.n_rows, how.sketch.size, judge.covariance
        sketches, along, noises, found = {}, {}, {}, []
        for name, own in places.items():
            weights = said["cross"].questions[name].arrays["score"][:-1]
            towards = covariance[np.ix_(own, own)] @ weights
            along[name] = towards / max(float(weights @ towards), _LEAST_SCORE)
            answer = said["cross"].held_out[name]
            sketches[name] = self.taken_sketch(how.sketch, name, answer, "cross", columns=(1,))[:, 0]
            noises[name] = self.noise(name, "cross", how.sketch.sensitivity(1.0)) ** 2 / (n * SCORE_VARIANCE)
        for one, other in combinations(places, 2):
            common = float(sketches[one] @ sketches[other]) / (n * _CLIPPED)
            judge.matrix[np.ix_(places[one], places[other])] += common * np.outer(along[one], along[other])
            own, more = noises[one], noises[other]
            variance = own + more + size * own * more + (0.0 if size >= n else 1.0 / size)
            found.append(Noisy(places[one], places[other], 0.25 * math.sqrt(variance), (along[one], along[other])))
        return found

    def _from_columns(self, how: Cross, judge: Judge, places: Mapping[str, np.ndarray], said: Said) -> list[Noisy]:
        """Covariances from sketches of all columns."""
        n, size, means, squares = self.study.n_rows, how.sketch.size, judge.means, np.diag(judge.matrix)
        ones, found = how.sketch.apply(np.ones((n, 1))), []
        sketches, noises = {}, {}
        for name, own in places.items():
            answer = said["cross"].held_out[name]
            sketch = self.taken_sketch(how.sketch, name, answer, "cross", columns=(len(own),))
            sketches[name] = sketch - ones * means[own]
            noises[name] = self.noise(name, "cross", how.sketch.sensitivity(1.0)) ** 2
        for one, other in combinations(places, 2):
            judge.matrix[np.ix_(places[one], places[other])] += sketches[one].T @ sketches[other] / n
            left, right = (float(np.max(squares[places[name]], initial=0.0)) for name in (one, other))
            own, more = noises[one] / n, noises[other] / n
            variance = left * more + right * own + size * own * more + (0.0 if size >= n else left * right / size)
            found.append(Noisy(places[one], places[other], math.sqrt(max(variance, 0.0))))
        return found
