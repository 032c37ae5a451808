"""Studies whose columns are declared by name: a round in which parties find units, and then any protocol.

Rounds, after the greeting:
    columns     where a party has numbers without bounds, or texts without categories: its units
    ...         those of the protocol, on columns in units, with entries within 3

The releases of the first round are in the plan of the protocol (`Protocol.promise`). A party remembers what it found,
and the coordinator brings the model back to the user's units.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tacit._types import Floats
from tacit.federated import units
from tacit.federated.declared import Cells
from tacit.federated.protocols import columns
from tacit.federated.protocols.base import Answer, Arrays, Holding, Model, Protocol, Question, RefusedError, Rounds
from tacit.federated.study import Study
from tacit.federated.units import CATEGORIES, SPREAD, Units, in_users_units
from tacit.privacy import Gate, Plan, Promise

STEP = "columns"


class Prepared(Protocol):
    """A protocol on columns that are in units; what it plans is the protocol's, with what columns cost."""

    def __init__(self, inner: Protocol) -> None:
        super().__init__(inner.study)
        self._inner = inner
        self.name, self.beside, self.fresh = inner.name, inner.beside, inner.fresh

    def plan(self) -> Plan:
        """That of the protocol, after what is released of columns."""
        return self._inner.promise.plan

    @property
    def promise(self) -> Promise:  # type: ignore[override]
        """The same with its noise."""
        return self._inner.promise

    def coordinate(self) -> Rounds:
        """Units, then the rounds of the protocol."""
        members = self.study.members
        answers: Mapping[str, Arrays] = {name: {} for name in self.study.names}
        if any(units.finds(member.columns) for member in members):
            answers = yield {name: Question(STEP) for name in self.study.names}
        found = {name: self._units(name, answer) for name, answer in answers.items()}
        model = yield from self._inner.coordinate()
        found = {name: found[name] for name in model.coefs}
        coefs, intercept = in_users_units(model.coefs, model.intercept, found)
        return Model(coefs, intercept, {**model.facts, "units": found})

    def settled(self, answers: Mapping[str, Arrays]) -> Mapping[str, Arrays]:
        """What the protocol keeps."""
        return self._inner.settled(answers)

    def answer(self, holding: Holding, question: Question, gate: Gate, memory: Arrays) -> Answer:
        """The step "columns", or one of the protocol's."""
        cells = Cells(holding.X, holding.texts)
        if question.step == STEP:
            if question.arrays:
                raise RefusedError("the step 'columns' takes no arrays")
            found = units.find(self.study, holding.name, cells, gate)
            return Answer(found, found)
        if not _own(memory) and units.finds(self.study.member(holding.name).columns):
            raise RefusedError("a study whose columns are to be found begins with the step 'columns'")
        rows = remembered(self.study, holding.name, memory).transform(cells)
        left = {name: values for name, values in memory.items() if name not in _own(memory)}
        return self._inner.answer(replace(holding, X=rows, texts=()), question, gate, left)

    def _units(self, name: str, answer: Arrays) -> Units:
        try:
            return units.told(self.study, name, answer)
        except ValueError:
            raise RefusedError(f"party {name!r} answered with units that no data gives") from None


def remembered(study: Study, name: str, memory: Arrays) -> Units:
    """A party's units, from what it remembers of its own round; ValueError where it had none yet."""
    return units.told(study, name, _own(memory))


def _own(memory: Arrays) -> dict[str, Any]:
    return {name: memory[name] for name in (SPREAD, CATEGORIES) if name in memory}


def margins(known: Units, X: Any, coef: Floats, features: Any, limits: tuple[float, float]) -> Floats:
    """A party's share of a model in the user's units, for the rows of a data frame; `limits` of entries and rows."""
    rows = known.transform(Cells.of(known.columns, X))
    return columns.margins(rows, coef * known.scale, features, *limits) + coef @ known.centre
