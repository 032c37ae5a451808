"""Models of the squared loss judged on people who were held out, with `products="local"`.

One round, after those of the training:
    margins     each party is asked for functions of its rows (`directions`) and releases their products with the
                target, their sums, their second moments and a sketch of them; and the party that speaks for the labels
                the sums of the target and of its square

The squared error of each model is a function of these moments. Those of one party are known but for noise. Products
between parties come from the sketches, and as far as these are lost in noise from what the training believed; the error
that is told has room for both.

Privacy
-------
Rows are clipped to norm 1 after the functions were taken, whatever was asked; labels are clipped, less their released
mean, and divided by their bound Y.

correlations   the outer product of a row and (t / Y, b): sqrt(1 + b^2), and twice that
moments        the outer product of a row: 1, and sqrt(2)
cross          J times the rows, J the public sketch with column norms at most c_J: c_J, and twice that
label square   (t / Y, t^2 / Y^2): sqrt(2), and twice that
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag

from tacit._types import Floats
from tacit.federated.members import Member
from tacit.federated.protocols import columns, directions
from tacit.federated.protocols.base import Answer, Arrays, Holding, Model, Question, RefusedError, largest_sum, taken
from tacit.federated.protocols.judged import Judge, Noisy
from tacit.federated.protocols.marginals import MarginalsProtocol
from tacit.federated.protocols.marginals.parts import Part, read_part
from tacit.federated.protocols.marginals.party import Target, bounded, slack, times
from tacit.federated.protocols.marginals.rules import PRODUCTS, SQUARES, SUMS, Agreement
from tacit.federated.protocols.parts import HeldOutPart, Said, Scored, Scoring, Solved, centre_of, least, own_weights
from tacit.federated.sketches import sketch_for
from tacit.privacy import Gate, Plan, Promise, Release, Unit
from tacit.privacy.apart import at_price_of
from tacit.privacy.mechanisms import GaussianMatrix, GaussianVector, Sensitivity

MARGINS = "margins"
_SHARES = {"correlations": 0.3, "moments": 0.2, "cross": 0.5}
_LABEL_SHARE = 0.05
_LABEL_SQUARE = Sensitivity.vector(math.sqrt(2.0))
_UNSURE = 0.3  # of a correlation between parties, what the training may be wrong by
_LEAST_SIZE, _OF_A_ROW = 8, 0.1  # rows of a sketch; what a function's variance is about, in rows of norm 1
_ROUNDED_UP = 1.0 + 2.0**-40


class Told(NamedTuple):
    """What a party released of its functions, per row, and the deviations of the noise in it."""

    squares: Floats
    products: Floats
    sums: Floats
    sketch: Floats | None
    of_squares: float
    of_products: float
    of_sketch: float


class HeldOutMarginals(MarginalsProtocol, HeldOutPart):
    """Moments and sketches of functions of columns, for people who were held out."""

    def __init__(self, training: Agreement, rows: int, models: int) -> None:
        self.training, study = training, training.study
        members = tuple(Member(m.name, min(models, training.n_selected[m.name]), m.labels) for m in study.members)
        super().__init__(replace(study, n_rows=rows, members=members, entry_bound=None))
        size = None
        if study.budget.is_private:
            each = _SHARES["cross"] * self._price / len(members)
            size = max(_LEAST_SIZE, math.ceil(each * rows * _OF_A_ROW))
        self.sketch = sketch_for(self.study, size)

    @property
    def _price(self) -> float:
        """What of mu^2 these people's releases may take."""
        return self.training.promise.plan.spends(self.training.promise.multipliers)

    @cached_property
    def promise(self) -> Promise:
        """As dear as the training's."""
        return at_price_of(self.training.promise, self.plan(), Unit("row", self.study.n_rows))

    def plan(self) -> Plan:
        """The same of each party, and of the label at the one that speaks for it."""
        alone, names = len(self.study.members) == 1, self.study.names
        shares = {what: share for what, share in _SHARES.items() if what != "cross" or not alone}
        own = [
            Release(f"{n}/{what}", "gaussian", share=part / len(names)) for n in names for what, part in shares.items()
        ]
        return Plan(*own, Release(f"{self.study.label_holder}/label square", "gaussian", share=_LABEL_SHARE))

    def answer(self, holding: Holding, question: Question, gate: Gate, memory: Arrays) -> Answer:
        """The step "margins"."""
        if question.step != MARGINS or "selected" not in memory:
            raise RefusedError("this study has no such step, or not yet")
        name, n = holding.name, self.study.n_rows
        shape = self.training.n_selected[name], self.study.member(name).n_features
        if len(question.arrays) != 2:
            raise RefusedError(f"the step {MARGINS!r} takes two arrays")
        functions = directions.asked(question.arrays, self._number(name), shape)
        chosen = bounded(self.training.study, holding.X)[:, memory["selected"]]
        rows = columns.unit_rows(chosen, float(memory["row norm"][0]))
        rows = columns.unit_rows(directions.applied(rows, *functions), 1.0)
        target = Target.of(holding.targets, tuple(memory["y bounds"].tolist()), float(memory["label mean"][0]))
        scaled = np.clip(target.values / target.bound, -1.0, 1.0)
        sides = np.column_stack([scaled, np.full(len(scaled), SUMS)])
        products = GaussianVector(times(PRODUCTS, slack(n)), bound=float(n))
        squares = GaussianMatrix(times(SQUARES, slack(n)), bound=float(n))
        found = {
            "correlations": gate.release("correlations", products, columns.product(rows, sides)),
            "moments": gate.release("moments", squares, columns.product(rows, rows))[np.triu_indices(shape[1])],
        }
        if len(self.study.members) > 1:
            found["cross"] = self.sketch.release(gate, "cross", rows, 1.0, _ROUNDED_UP)
        if name == self.study.label_holder:
            labels = GaussianVector(times(_LABEL_SQUARE, slack(n)), bound=float(n))
            found["label square"] = gate.release("label square", labels, [scaled.sum(), np.square(scaled).sum()])
        return Answer(found)

    def _number(self, name: str) -> int:
        return self.study.names.index(name) + 1

    def settled(self, answers: Mapping[str, Arrays]) -> Mapping[str, Arrays]:
        """Everything."""
        return answers

    def scored(self, model: Model, said: Said, models: Solved) -> Scoring:
        """One round, with the parties in the model."""
        given, names = model.facts["moments"], list(model.coefs)
        agreed, (_, spoken) = self.training.of(names), said["marginals"]
        parts = {name: read_part(agreed, name, model.facts["y_bounds"], {}, spoken[name]) for name in names}
        functions = {}
        for name in names:
            wanted, own = own_weights(given, name, models)
            count, reach = self.study.member(name).n_features, directions.reach_of(self.study)
            covariance, mean, unit = given.covariance[own, own], given.mean[own], parts[name].row_norm
            functions[name] = directions.Functions.spanning(wanted, covariance, mean, unit, count, reach)
        answers = yield {
            name: Question(
                MARGINS, {f"directions {self._number(name)}": f.directions, f"offset {self._number(name)}": f.offset}
            )
            for name, f in functions.items()
        }
        if set(answers) < set(names):
            gone = ", ".join(sorted(set(names) - set(answers)))
            raise RefusedError(f"{gone} left when models were judged: the model has its columns, and is not told")
        ways = block_diag(*(f.directions / parts[name].row_norm for name, f in functions.items()))
        judge = self._judge(parts, answers, ways.T @ given.covariance @ ways)
        weights = np.concatenate([parts for _, _, parts in functions.values()])
        forms = [(one, centre_of(given, model)) for one, model in zip(weights.T, models, strict=True)]
        errors = [judge.squared_error(*form) for form in forms]
        return Scored(judge, forms, errors, least(errors), errors[least(errors)])

    def _judge(self, parts: Mapping[str, Part], answers: Mapping[str, Arrays], believed: Floats) -> Judge:
        """The moments of these people, as parties and sketches tell them; `believed`: covariances by the training."""
        told = {name: self._told(name, answers[name]) for name in parts}
        n, holder = self.study.n_rows, parts[self.study.label_holder]
        ends = np.cumsum([0, *(len(own.sums) for own in told.values())])
        d = int(ends[-1])
        places = {name: np.arange(*pair) for name, pair in zip(told, pairwise(ends), strict=True)}
        matrix, target, constant = np.zeros((d + 2, d + 2)), np.array([d]), np.array([d + 1])
        noise: list[Noisy] = []
        matrix[-1, -1] = 1.0
        for name, own in told.items():
            at, shift = places[name], parts[name].target_mean - holder.target_mean
            unit, shift = parts[name].target_bound / holder.target_bound, shift / holder.target_bound
            matrix[np.ix_(at, at)], matrix[at, -1] = own.squares, own.sums
            matrix[at, -2] = own.products * unit + shift * own.sums
            noise.append(Noisy(at, at, own.of_squares))
            noise.append(Noisy(at, target, own.of_products * math.hypot(unit, shift / SUMS)))
            noise.append(Noisy(at, constant, own.of_products / SUMS))
        error = self.noise(self.study.label_holder, "label square", _LABEL_SQUARE)
        spoken = answers[self.study.label_holder]
        mean, square = taken(self.study.label_holder, spoken, "label square", (2,), largest_sum(n, 1.0, error)) / n
        matrix[-2, -2], matrix[-2, -1] = square, mean
        noise += [Noisy(target, target, error / n), Noisy(target, constant, error / n)]
        for one, other in combinations(told, 2):
            left, right = (slice(places[name][0], places[name][-1] + 1) for name in (one, other))
            sizes = float(np.max(np.diag(believed)[left])), float(np.max(np.diag(believed)[right]))
            products, deviation = self._between(told[one], told[other], believed[left, right], sizes)
            matrix[np.ix_(places[one], places[other])] = products
            noise.append(Noisy(places[one], places[other], deviation))
        upper = np.triu(matrix)
        return Judge(upper + np.triu(matrix, 1).T, noise, float(holder.target_mean), holder.target_bound)

    def _told(self, name: str, answer: Arrays) -> Told:
        """A party's answer, read."""
        n, count = self.study.n_rows, self.study.member(name).n_features
        of_products, of_squares = self.noise(name, "correlations", PRODUCTS), self.noise(name, "moments", SQUARES)
        products = taken(name, answer, "correlations", (count, 2), largest_sum(n, 1.0, of_products)) / n
        squares = np.zeros((count, count))
        size = count * (count + 1) // 2
        squares[np.triu_indices(count)] = taken(name, answer, "moments", (size,), largest_sum(n, 1.0, of_squares)) / n
        squares += np.triu(squares, 1).T
        sketch, of_sketch = None, 0.0
        if len(self.study.members) > 1:
            sketch = self.taken_sketch(self.sketch, name, answer, "cross", columns=(count,))
            of_sketch = self.noise(name, "cross", self.sketch.sensitivity(1.0))
        sums = products[:, 1] / SUMS
        return Told(squares, products[:, 0], sums, sketch, of_squares / n, of_products / n, of_sketch)

    def _between(self, one: Told, other: Told, believed: Floats, sizes: tuple[float, float]) -> tuple[Floats, float]:
        """Products between two parties, and the error of an entry.

        The sketches' own error comes of their noise, of its square, and of the sketch; what the training believed may
        be off by a part of what it could be. Each counts by what the other leaves open. Sketches are of rows less their
        means, so that their error is that of covariances alone.
        """
        n, size = self.study.n_rows, self.sketch.size
        assert one.sketch is not None
        assert other.sketch is not None
        ones = self.sketch.apply(np.ones((n, 1)))
        sketched = (one.sketch - ones * one.sums).T @ (other.sketch - ones * other.sums) / n
        own, more = one.of_sketch**2 / n, other.of_sketch**2 / n
        variance = sizes[0] * more + sizes[1] * own + size * own * more
        variance += 0.0 if size >= n else sizes[0] * sizes[1] / size
        doubt = _UNSURE**2 * sizes[0] * sizes[1]
        weight = doubt / (doubt + variance) if variance > 0.0 else 1.0
        products = believed + weight * (sketched - believed) + np.outer(one.sums, other.sums)
        return products, math.sqrt(weight**2 * variance + (1.0 - weight) ** 2 * doubt)
