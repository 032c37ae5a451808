"""Models judged on people who were held out, with `products="masked"`.

Rounds, after those of the training:
    margins     each party is told which functions of its rows are asked for (`directions`), and remembers a digest of
                its block of them
    products    as in the training, of these blocks: each party's own moments, and its share of each product
    losses      (logistic loss) the holder of the labels releases the sum over its people of the log-loss that each has
                on average, given the party's own columns and the label

The squared error of each model is a function of these moments. The log-loss is not. Between models the coordinator
chooses by what it would be if margins were normal in each class, with the means and the variance that held-out moments
give them. Of the one that was chosen the holder of the labels tells the loss: its own columns and labels are as they
are, and the rest of the margin is what the training says of it by these columns, with the mean for each label and the
deviation that held-out moments give to what is left.

Privacy
-------
moments, products   as in the training, of other people: rows are clipped to norm 1 after the functions were taken,
                    whatever was asked. Masks and shares come from the same seeds under a transcript that holds all that
                    was asked of all parties, so they are other streams: under one mask there is one block.
losses              a loss clipped to a public interval, from its middle in units of half its width: 1, and 2. For any
                    question, as a loss depends on that row alone.
"""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit._types import Floats
from tacit.federated.members import Member
from tacit.federated.messages import write_arrays
from tacit.federated.protocols import columns, directions, moments
from tacit.federated.protocols.base import Answer, Arrays, Holding, Model, Question, RefusedError, largest_sum, taken
from tacit.federated.protocols.judged import Judge, Noisy
from tacit.federated.protocols.marginals.coordinator import Moments
from tacit.federated.protocols.marginals.masked import MaskedProtocol, party
from tacit.federated.protocols.marginals.masked.coordinator import opened
from tacit.federated.protocols.marginals.masked.losses import (
    HALF,
    MIDDLE,
    as_normal,
    errors_between,
    moved,
    within_interval,
)
from tacit.federated.protocols.marginals.masked.rules import MaskedAgreement
from tacit.federated.protocols.marginals.masked.slopes import LARGEST_ASKED
from tacit.federated.protocols.marginals.party import Target, bounded, slack, times
from tacit.federated.protocols.marginals.rules import SUMS, largest_target
from tacit.federated.protocols.parts import (
    HeldOutPart,
    Said,
    Scored,
    Scoring,
    Solution,
    Solved,
    centre_of,
    least,
    own_weights,
    weights_of,
)
from tacit.metrics.release import Reading
from tacit.privacy import Gate, Plan, Promise, Release, Unit
from tacit.privacy.apart import at_price_of
from tacit.privacy.mechanisms import GaussianVector, Sensitivity

MARGINS, LOSSES = "margins", "losses"  # the steps, beside "products"
DIRECTION, PLACE = "direction", "place"  # asked with
ASKED, FUNCTIONS, OFFSET = "asked", "functions", "offset"  # remembered
_OF_LOSSES = Sensitivity.vector(1.0)
_LOSSES_SHARE = 0.25  # of what is released about these people
_DOUBT = 2.0  # deviations of its noise that a variance is raised by, before anything is divided by it
_SINGULAR = 1e-10  # eigenvalues below this part of the largest are none

Split = tuple[Floats, Floats, Floats]


class HeldOutMasked(MaskedProtocol, HeldOutPart):
    """Masked products of functions of columns, for people who were held out."""

    beside = frozenset({party.ROWS})
    fresh = frozenset({party.BLOCK})

    def __init__(self, training: MaskedAgreement, rows: int, models: int) -> None:
        self.training, self._models, self._tells_losses = training, models, training.has_slopes
        study = training.study
        twice = study.label_holder if self._tells_losses else None  # for what its columns say of the others' margins
        members = tuple(
            Member(m.name, min(models * (1 + (m.name == twice)), m.n_features), m.labels) for m in study.members
        )
        super().__init__(replace(study, n_rows=rows, members=members, entry_bound=None))

    @property
    def has_slopes(self) -> bool:
        """None of these people: losses are told in place of slopes."""
        return False

    @cached_property
    def promise(self) -> Promise:
        """As dear as the training's."""
        return at_price_of(self.training.promise, self.plan(), Unit("row", self.study.n_rows))

    def plan(self) -> Plan:
        """Moments and shares as in the training, and losses."""
        whole = super().plan()
        names = [release.name.split("/", 1)[1] for release in whole.releases]
        kept = [k for k, name in enumerate(names) if name == "moments" or name.startswith("products with")]
        plan = Plan(*(whole.releases[k] for k in kept), views=[[view[k] for k in kept] for view in whole.views])
        if not self._tells_losses:
            return plan
        holder = self.study.label_holder
        share = _LOSSES_SHARE / (1.0 - _LOSSES_SHARE) * plan.shared
        views = [
            [*view, 0.0 if holder in coalition else 1.0]
            for view, coalition in zip(plan.views, self.coalitions(), strict=True)
        ]
        return Plan(*plan.releases, Release(f"{holder}/{LOSSES}", "gaussian", share=share), views=views)

    def answer(self, holding: Holding, question: Question, gate: Gate, memory: Arrays) -> Answer:
        """The steps "margins", "products" and "losses"."""
        if party.SEED not in memory:
            raise RefusedError("the people who were held out come after the training, and before the study is done")
        if question.step == MARGINS:
            return self._margins(holding, question, memory)
        if question.step == party.PRODUCTS and ASKED in memory:
            step = f"held-out products {memory[ASKED].tobytes().hex()}"
            masks = party.Masks.of(self.training, holding, question, memory, step)
            rows, known = self._transformed(holding, memory)
            return party.shares(self, replace(masks, agreed=self), rows, gate, known)
        if question.step == LOSSES and self._tells_losses and self.holds_labels(holding.name):
            return self._losses(holding, question, gate, memory)
        raise RefusedError("this study has no such step, or not yet")

    def _margins(self, holding: Holding, question: Question, memory: Arrays) -> Answer:
        """What is asked of all parties, and of this one; a digest of its block, so that there is only one of it."""
        names = self.study.names
        expected = {f"{what} {k}" for k in range(1, len(names) + 1) for what in ("directions", "offset")}
        if set(question.arrays) != expected:
            raise RefusedError(f"the step {MARGINS!r} takes what is asked of each party")
        own = names.index(holding.name) + 1
        shape = self.training.study.member(holding.name).n_features, self.study.member(holding.name).n_features
        functions, offset = directions.asked(question.arrays, own, shape)
        kept: dict[str, NDArray[Any]] = {FUNCTIONS: functions, OFFSET: offset, ASKED: _digest(question.arrays)}
        block = party.whole_block(self, *self._transformed(holding, {**memory, **kept}))
        return Answer({}, {**kept, party.BLOCK: party.digest_of(block)})

    def _transformed(self, holding: Holding, memory: Arrays) -> tuple[Holding, Arrays]:
        """The functions of a party's rows, as rows that are clipped to norm 1."""
        found = directions.applied(self._rows(holding, memory), memory[FUNCTIONS], memory[OFFSET])
        return replace(holding, X=found), {**memory, "row norm": np.ones(1)}

    def _rows(self, holding: Holding, memory: Arrays) -> Floats:
        """Rows of norm 1 at most, as the training has them."""
        return columns.unit_rows(bounded(self.training.study, holding.X), float(memory["row norm"][0]))

    def _losses(self, holding: Holding, question: Question, gate: Gate, memory: Arrays) -> Answer:
        """The sum of the losses of one model."""
        rows = self._rows(holding, memory)
        direction, place = _asked(question, {DIRECTION: rows.shape[1], PLACE: 3})
        target = Target.of(holding.targets, tuple(memory["y bounds"].tolist()), float(memory["label mean"][0]))
        offset, by_label, deviation = place.tolist()
        centres = columns.images(rows, direction) + by_label * (target.values / target.bound) + offset
        n = self.study.n_rows
        noise = GaussianVector(times(_OF_LOSSES, slack(n)), bound=float(n))
        assert holding.targets is not None
        total = within_interval(centres, deviation, holding.targets).sum()
        return Answer({LOSSES: gate.release(LOSSES, noise, [total])})

    def scored(self, model: Model, said: Said, models: Solved) -> Scoring:
        """Two rounds, and one more for the logistic loss."""
        given = model.facts["moments"]
        given = given.given if self._tells_losses else given
        functions = {name: self._spanning(given, name, model, models) for name in self.study.names}
        told: dict[str, Floats] = {}
        for k, (ways, offset, _) in enumerate(functions.values(), 1):
            told |= {f"directions {k}": ways, f"offset {k}": offset}
        yield {name: Question(MARGINS, told) for name in self.study.names}
        asked, _ = said[party.PRODUCTS]
        answers = yield {name: Question(party.PRODUCTS, asked[name].arrays) for name in self.study.names}
        judge = self._judge(model, given, answers)
        weights = np.concatenate([parts[:, : len(models)] for _, _, parts in functions.values()])
        forms = [(one, centre_of(given, model)) for one, model in zip(weights.T, models, strict=True)]
        errors = [as_normal(judge, *form) if self._tells_losses else judge.squared_error(*form) for form in forms]
        best, holder = least(errors), self.study.label_holder
        if not self._tells_losses:
            return Scored(judge, forms, errors, best, errors[best])
        split = self._split(functions, best)
        answers = yield {holder: self._question(judge, given, model, models[best], split)}
        noise, n = self.noise(holder, LOSSES, _OF_LOSSES), self.study.n_rows
        (total,) = taken(holder, answers[holder], LOSSES, (1,), largest_sum(n, 1.0, noise)).tolist()
        value = MIDDLE + HALF * min(1.0, max(-1.0, total / n))
        doubt = moved(judge, *forms[best], *errors_between(judge, *split[:2]))
        return Scored(judge, forms, errors, best, Reading(value, math.hypot(HALF * noise / n, doubt)))

    def _spanning(self, given: Moments, name: str, model: Model, models: Solved) -> directions.Functions:
        """What a party is asked for: its margins, and of the holder for losses what it knows of the others'."""
        wanted, own = own_weights(given, name, models)
        if self._tells_losses and name == self.study.label_holder:
            regressed = [_regressed(given, own, weights_of(given, one)) for one in models]
            wanted = np.column_stack([wanted, *regressed])
        covariance, mean = given.covariance[own, own], given.mean[own]
        count, reach = self.study.member(name).n_features, directions.reach_of(self.study)
        return directions.Functions.spanning(wanted, covariance, mean, model.facts["row_norms"][name], count, reach)

    def _judge(self, model: Model, given: Moments, answers: Mapping[str, Arrays]) -> Judge:
        """The opened moments of these people."""
        names, n, d = self.study.names, self.study.n_rows, sum(m.n_features for m in self.study.members)
        found = opened(self, answers)
        matrix, noise = np.zeros((d + 2, d + 2)), []
        matrix[-1, -1] = 1.0
        starts = np.cumsum([0, *(member.n_features for member in self.study.members)])
        places = {
            m.name: np.append(np.arange(start, start + m.n_features), [d] * self.holds_labels(m.name)).astype(np.int64)
            for m, start in zip(self.study.members, starts, strict=False)
        }
        for name, own in places.items():
            matrix[np.ix_(own, own)] = found[name, name][:-1, :-1] / n
            matrix[own, -1] = matrix[-1, own] = found[name, name][:-1, -1] / (SUMS * n)
            deviation = self.noise(name, "moments", self.moments_of(name)) / n
            noise.append(Noisy(own, own, deviation))
            noise.append(Noisy(own, np.array([d + 1]), deviation / math.sqrt(2.0) / SUMS))
        share = math.sqrt(2.0) * math.ldexp(1.0, self.grid.bits) / self.grid.steps**2 / n
        for one, other in combinations(names, 2):
            matrix[np.ix_(places[one], places[other])] = found[one, other] / n
            matrix[np.ix_(places[other], places[one])] = found[other, one] / n
            noise.append(Noisy(places[one], places[other], share if self.study.budget.is_private else 0.0))
        unit = largest_target(model.facts["y_bounds"], given.target_mean) / self.label_weight
        return Judge(matrix, noise, given.target_mean, unit)

    def _split(self, functions: Mapping[str, directions.Functions], place: int) -> tuple[Floats, Floats, Floats]:
        """A model's margin at the holder of the labels, at all others, and what the holder's columns say of theirs."""
        holder = self.study.label_holder
        own = [f.parts[:, place] * (name == holder) for name, f in functions.items()]
        others = [f.parts[:, place] * (name != holder) for name, f in functions.items()]
        known = [f.parts[:, self._models + place] if n == holder else 0.0 * f.offset for n, f in functions.items()]
        return np.concatenate([*own, [0.0]]), np.concatenate([*others, [0.0]]), np.concatenate([*known, [0.0]])

    def _question(self, judge: Judge, given: Moments, model: Model, chosen: Solution, split: Split) -> Question:
        """What the rows and labels of their holder say of margins.

        A regression of the others' margin on the holder's own, on what the training knows of it by the holder's
        columns, and on the label; drawn to zero where noise is large.
        """
        own, others, known = split
        holder, covariance, means = self.study.label_holder, judge.covariance, judge.means
        basis = np.column_stack([own, known, np.append(np.zeros(len(own) - 1), 1.0)])
        noise = [_DOUBT * judge.deviation(np.append(one, 0.0)) for one in basis.T]
        among = moments.repaired(basis.T @ covariance @ basis, 0.0) + np.diag(noise)
        by = np.linalg.lstsq(among, basis.T @ covariance @ others, rcond=_SINGULAR)[0]
        left = others - basis @ by
        weights, places = own_weights(given, holder, [chosen])
        direction = (1.0 + by[0]) * weights[:, 0] + by[1] * _regressed(given, places, weights_of(given, chosen))
        offset = centre_of(given, chosen) - float(given.mean[places] @ direction) + float(means @ left)
        deviation = math.sqrt(max(float(left @ covariance @ left), 0.0))
        asked = {DIRECTION: model.facts["row_norms"][holder] * direction}
        return Question(LOSSES, asked | {PLACE: np.array([offset, by[2] * self.label_weight, deviation])})


def _regressed(given: Moments, own: slice, weights: Floats) -> Floats:
    """What some columns say of the others' margin where the label is known, by the moments of the training."""
    away = weights.copy()
    away[own] = 0.0
    known = np.zeros((own.stop - own.start + 1,) * 2)
    known[:-1, :-1], known[-1, -1] = given.covariance[own, own], 1.0 - given.target_mean**2
    known[:-1, -1] = known[-1, :-1] = given.slope[own]
    common = np.append(given.covariance[own] @ away, given.slope @ away)
    return np.asarray(np.linalg.lstsq(known, common, rcond=_SINGULAR)[0][:-1], dtype=np.float64)


def _asked(question: Question, sizes: Mapping[str, int]) -> list[Floats]:
    """The arrays of numbers of a question; others are refused, and what is too large to work with."""
    if set(question.arrays) != set(sizes):
        raise RefusedError(f"the step {LOSSES!r} takes the arrays {', '.join(map(repr, sizes))}")
    for name, size in sizes.items():
        array = question.arrays[name]
        if array.dtype != np.float64 or array.shape != (size,) or not np.all(np.abs(array) <= LARGEST_ASKED):
            raise RefusedError(
                f"the array {name!r} of the step {LOSSES!r} must hold {size} numbers of any model's size"
            )
    return [question.arrays[name] for name in sizes]


def _digest(arrays: Arrays) -> NDArray[np.uint8]:
    """Of all that was asked."""
    return np.frombuffer(hashlib.sha256(write_arrays(arrays)).digest(), dtype=np.uint8)
