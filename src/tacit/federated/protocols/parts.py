"""What a protocol does with the people who are held out, once there is a model: `HeldOutPart`."""

from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tacit._types import Floats
from tacit.federated.protocols.base import Answer, Arrays, Holding, Model, Question
from tacit.federated.protocols.judged import Judge
from tacit.federated.protocols.marginals.coordinator import Moments
from tacit.federated.study import Study
from tacit.metrics.release import Reading
from tacit.privacy import Gate, Promise

Solution = tuple[Mapping[str, Floats], float]  # a model, by the weights of each party's columns, and its intercept
Solved = Sequence[Solution]
Said = Mapping[str, tuple[Mapping[str, Question], Mapping[str, Arrays]]]  # by step: what was asked and answered


class Scored(NamedTuple):
    """The squared errors or log-losses of models, by which one is chosen, and what is told of that one.

    `forms` are the models' weights in the columns of the judge, and their intercepts.
    """

    judge: Judge
    forms: list[tuple[Floats, float]]
    errors: list[Reading]
    best: int
    told: Reading


Scoring = Generator[Mapping[str, Question], Mapping[str, Arrays], Scored]


class HeldOutPart(ABC):
    """Rounds about people who were held out, after those of the training.

    It has a promise of its own, at the price of the training's, whose names are without the prefix that `Evaluated`
    puts before them on the wire.
    """

    study: Study  # with so many rows as there are people held out
    beside: frozenset[str] = frozenset()
    fresh: frozenset[str] = frozenset()

    @property
    @abstractmethod
    def promise(self) -> Promise:
        """What a party may release of these people."""

    @abstractmethod
    def answer(self, holding: Holding, question: Question, gate: Gate, memory: Arrays) -> Answer:
        """A party's side of a round; `memory` has what it remembers of the training too."""

    @abstractmethod
    def settled(self, answers: Mapping[str, Arrays]) -> Mapping[str, Arrays]:
        """What a coordinator keeps of answers when the study is done."""

    @abstractmethod
    def scored(self, model: Model, said: Said, models: Solved) -> Scoring:
        """The coordinator's side; `said` is all of the training."""


DOUBT = 2.0  # how often the noise in an error counts against a model


def least(errors: Sequence[Reading]) -> int:
    """The place of the model that is best for sure: the least error with its noise twice, or the first of those.

    A model whose error is known badly is often one that noise made look good.
    """
    return min(range(len(errors)), key=lambda place: errors[place].value + DOUBT * errors[place].noise)


def own_weights(given: Moments, name: str, models: Solved) -> tuple[Floats, slice]:
    """The weights of a party's columns that moments are of, one model beside the other, and their places in moments."""
    names = list(given.features)
    start = sum(len(given.features[other]) for other in names[: names.index(name)])
    chosen = given.features[name]
    return np.column_stack([coefs[name][chosen] for coefs, _ in models]), slice(start, start + len(chosen))


def weights_of(given: Moments, model: Solution) -> Floats:
    """A model's weights in the order of the moments."""
    return np.concatenate([model[0][name][chosen] for name, chosen in given.features.items()])


def centre_of(given: Moments, model: Solution) -> float:
    """A model's mean margin, or prediction, by the means of the training."""
    return model[1] + float(given.mean @ weights_of(given, model))
