"""Studies that hold out a share of the people: any protocol on the rest, and releases about those held out beside it.

Rounds, after the greeting: those of the protocol, and then those of the part for the people held out (`HeldOutPart`),
whose steps, releases and memory have names that begin with "held-out". The protocol knows nothing of this: it is given
the study of the people of the training, and their rows.

Privacy
-------
Who is held out follows from public numbers and places of rows (`tacit.federated.evaluation`). A person is in the
releases about one of both parts only; these of the one part are a function of its rows and of what was released before.
So both parts together cost what the dearer one costs, and the part of those held out is made to cost no more than the
training (`privacy.apart`). Scores and the choice between models are functions of released numbers.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from tacit._types import Flags
from tacit.blocks.table import is_sparse
from tacit.federated.declared import Cells, texts_at
from tacit.federated.evaluation import HeldOut
from tacit.federated.protocols.base import Answer, Arrays, Holding, Model, Protocol, Question, RefusedError, Rounds
from tacit.federated.protocols.parts import HeldOutPart, Scored, Solved
from tacit.federated.protocols.prepared import remembered
from tacit.federated.study import Study
from tacit.federated.units import in_users_units
from tacit.privacy import Gate, Plan, Promise, Unit
from tacit.privacy.apart import beside

PREFIX = "held-out "


def training_study(study: Study) -> Study:
    """What the protocol is told: the people that are not held out, and the largest radius.

    Its name says which study it is part of, so that no key or mask is that of another study.
    """
    assert study.evaluation is not None
    rows = study.n_rows - study.evaluation.n_held_out(study.n_rows)
    return replace(study, name=study.digest, n_rows=rows, l1_radius=max(study.radii), evaluation=None)


class Evaluated(Protocol):
    """A protocol for the people of the training, and a part for those held out."""

    def __init__(self, study: Study, training: Protocol, part: HeldOutPart) -> None:
        super().__init__(study)
        self._training, self._part = training, part
        self.name = training.name
        self.beside = training.beside | {PREFIX + name for name in part.beside}
        self.fresh = training.fresh | {PREFIX + name for name in part.fresh}

    @cached_property
    def held_out(self) -> Flags:
        """The places of the people held out."""
        assert self.study.evaluation is not None
        return self.study.evaluation.held_out(self.study.n_rows)

    def plan(self) -> Plan:
        """Everything that is released, of both parts."""
        return self.promise.plan

    @cached_property
    def promise(self) -> Promise:  # type: ignore[override]
        """The training's, and that of the other part beside it."""
        part = self._part.promise
        releases = [replace(r, name=r.name.replace("/", f"/{PREFIX}", 1)) for r in part.plan.releases]
        renamed = replace(part, plan=Plan(*releases, views=part.plan.views))
        unit = Unit("row", self.study.n_rows, disclosed=self.study.disclosed)
        return replace(beside(self._training.promise, renamed), unit=unit)

    def coordinate(self) -> Rounds:
        """The rounds of the training, those of the other part, and a choice by what was released."""
        rounds = self._training.coordinate()
        said: dict[str, tuple[Mapping[str, Question], Mapping[str, Arrays]]] = {}
        questions = next(rounds)
        while True:
            answers = yield questions
            said[next(iter(questions.values())).step] = questions, answers
            try:
                questions = rounds.send(answers)
            except StopIteration as end:
                model: Model = end.value
                break
        given = model.facts["moments"]
        models = [given.at(radius) for radius in self.study.radii]
        scoring = self._part.scored(model, said, models)
        try:
            asked = next(scoring)
            while True:
                answers = yield {name: Question(PREFIX + q.step, q.arrays) for name, q in asked.items()}
                asked = scoring.send(_without_prefix(answers))
        except StopIteration as end:
            return self._chosen(model, models, end.value)

    def _chosen(self, model: Model, models: Solved, scored: Scored) -> Model:
        """The model that was best, and what was found of all."""
        assert self.study.evaluation is not None
        metric = self.study.evaluation.of(self.study.loss)
        if metric == "r2":
            scores = [scored.judge.r2(*form) for form in scored.forms]
            told = scores[scored.best]
        else:
            scores, told = [one._replace(value=max(one.value, 0.0)) for one in scored.errors], scored.told
            told = told._replace(value=max(told.value, 0.0))
        values, noises = zip(*((float(value), float(noise)) for value, noise in scores), strict=True)
        counted = self._part.study.n_rows
        found = HeldOut(
            metric, counted, float(told.value), float(told.noise), scored.best, self.study.radii, values, noises
        )
        chosen, facts = models[scored.best], {**model.facts, "evaluation": found}
        if "units" in facts:
            return Model(*in_users_units(*chosen, facts["units"]), facts)
        return Model(*chosen, facts)

    def settled(self, answers: Mapping[str, Arrays]) -> Mapping[str, Arrays]:
        """What both parts keep; an exchange is of one of them."""
        if not any(name.startswith(PREFIX) for arrays in answers.values() for name in arrays):
            return self._training.settled(answers)
        told = _without_prefix(answers)
        kept = self._part.settled(told)
        return answers if kept is told else {name: _with_prefix(arrays) for name, arrays in kept.items()}

    def answer(self, holding: Holding, question: Question, gate: Gate, memory: Arrays) -> Answer:
        """A step of the training, or one about the people held out."""
        if not question.step.startswith(PREFIX):
            return self._training.answer(rows_of(holding, ~self.held_out), question, gate, memory)
        asked = Question(question.step.removeprefix(PREFIX), question.arrays)
        known = {**memory} | {k.removeprefix(PREFIX): v for k, v in memory.items() if k.startswith(PREFIX)}
        told = self._part.answer(self._held(holding, memory), asked, gate.part(PREFIX), known)
        return Answer(*map(_with_prefix, (told.releases, told.memory, told.beside)))

    def _held(self, holding: Holding, memory: Arrays) -> Holding:
        """The rows of the people held out; where columns go by name, in the units that the training found."""
        own = rows_of(holding, self.held_out)
        if not self.study.by_name:
            return own
        try:
            known = remembered(self._training.study, own.name, memory)
        except ValueError:
            raise RefusedError("a study whose columns are to be found begins with the step 'columns'") from None
        return replace(own, X=known.transform(Cells(own.X, own.texts)), texts=())


def rows_of(holding: Holding, places: Flags) -> Holding:
    """A party's rows at some places."""
    X = holding.X[places]
    return replace(
        holding,
        X=sparse.csc_array(X) if is_sparse(X) else X,
        targets=None if holding.targets is None else holding.targets[places],
        texts=texts_at(holding.texts, np.flatnonzero(places)),
    )


def _with_prefix(arrays: Arrays) -> dict[str, Any]:
    return {PREFIX + name: values for name, values in arrays.items()}


def _without_prefix(answers: Mapping[str, Arrays]) -> dict[str, Arrays]:
    return {name: {k.removeprefix(PREFIX): v for k, v in arrays.items()} for name, arrays in answers.items()}
