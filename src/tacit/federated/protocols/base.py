"""What a protocol is: a plan, the coordinator's side, and a party's side.

A protocol is written once and knows nothing of networks, disks or retries. The coordinator's side is a generator: it
yields what it asks the parties in a round and is sent their answers, and it sees nothing else, so that replaying the
stored answers brings a coordinator that died to where it was. The party's side is one function from (its data, a
question, what it remembers of its own earlier rounds) to an answer whose every data-dependent array is a planned
release. Questions come from a coordinator that is not trusted: any question of the right form must be safe to answer.
"""

from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit._types import Floats
from tacit.federated.sketches import Sketch
from tacit.federated.study import Study
from tacit.federated.units import with_columns
from tacit.privacy import Gate, Plan, Promise, Unit
from tacit.privacy.mechanisms import Sensitivity

Arrays = Mapping[str, NDArray[Any]]

_UNHEARD_OF = 50.0  # deviations of noise that are not seen in the life of the universe


class RefusedError(ValueError):
    """A question that a party will not answer, or an answer that a coordinator will not take; nothing was released."""


def taken(party: str, answer: Arrays, name: str, shape: tuple[int, ...], largest: float) -> Floats:
    """An array of a party's answer, in the coordinator's hands.

    Another form is refused, and so are numbers beyond `largest`, which no honest answer holds: sums and squares of
    what is taken stay finite.
    """
    array = answer.get(name)
    if array is None or array.dtype != np.float64 or array.shape != shape:
        raise RefusedError(f"party {party!r} did not answer with {name!r} as it should, numbers of shape {shape}")
    if not np.all(np.abs(array) <= largest):
        raise RefusedError(f"party {party!r} answered {name!r} with numbers that no data gives")
    return array


def largest_sum(n: int, term: float, noise: float) -> float:
    """What no honest sum of n terms of at most this size is beyond, with noise of this deviation."""
    return 2.0 * n * term + _UNHEARD_OF * noise


@dataclass(frozen=True, eq=False)
class Question:
    """What the coordinator asks one party in one round: the step's name and public arrays."""

    step: str
    arrays: Arrays = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Answer:
    """What a party sends back.

    `releases` are arrays that depend on its data, each under the name of the planned release (without the party's
    prefix) that made it. `memory` never leaves the party: it is kept on its disk, merged over what it remembered
    before. `beside` is sent like a release and tells nothing of the data to whoever lacks the parties' seeds: keys,
    and what masks hide. Nothing else in an answer depends on data.
    """

    releases: Arrays
    memory: Arrays = field(default_factory=dict)
    beside: Arrays = field(default_factory=dict)


@dataclass(frozen=True, eq=False, repr=False)
class Holding:
    """A party's own data, checked and in the order all parties agreed on; not yet bounded.

    `X` is a float64 array or a CSC array of finite numbers; where columns are declared by name it may have NaN, and
    `texts` has the cells of columns whose categories are to be found. `targets` are finite numbers (labels: -1 and 1),
    or None where the party has none. `secret` is what the parties share and the coordinator lacks, if they do.
    """

    name: str
    X: Any
    targets: Floats | None
    secret: bytes | None = None
    texts: tuple[tuple[str | None, ...], ...] = ()


@dataclass(frozen=True, eq=False)
class Model:
    """What a study ends with: each party's weights and the intercept, in the users' units.

    Of more than two classes, weights have a row for each, and there are as many intercepts.
    """

    coefs: Mapping[str, Floats]
    intercept: float | Floats
    facts: Mapping[str, Any] = field(default_factory=dict)  # other released numbers worth showing


Rounds = Generator[Mapping[str, Question], Mapping[str, Arrays], Model]


class Protocol(ABC):
    """One way for the parties of a study to train a model together."""

    name: str
    beside: frozenset[str] = frozenset()  # what answers may hold that is no release
    fresh: frozenset[str] = frozenset()  # of questions and memory: new in every run, and wiped when the study is done

    def __init__(self, study: Study) -> None:
        self.study = study

    @abstractmethod
    def plan(self) -> Plan:
        """Every release of every party, named `party/release`; a function of the study alone."""

    @cached_property
    def promise(self) -> Promise:
        """The plan with its noise; `promise.part("party/")` is what one party may release."""
        unit = Unit("row", self.study.n_rows, disclosed=self.study.disclosed)
        plan = with_columns(self.study, self.plan())
        return plan.calibrate(self.study.budget, unit, f"federated {self.name}")

    def noise(self, party: str, release: str, sensitivity: Sensitivity) -> float:
        """The standard deviation of the noise in a party's release."""
        return self.promise.multiplier(f"{party}/{release}") * sensitivity.under(self.study.adjacency)

    def taken_sketch(
        self, sketch: Sketch, party: str, answer: Arrays, name: str, bound: float = 1.0, columns: tuple[int, ...] = ()
    ) -> Floats:
        """A party's sketch of rows of norm at most `bound`, of one number or of several columns."""
        noise = self.noise(party, name, sketch.sensitivity(bound))
        most = largest_sum(sketch.n_rows, bound * sketch.column_norm, noise)
        return taken(party, answer, name, (sketch.size, *columns), most)

    @abstractmethod
    def coordinate(self) -> Rounds:
        """The coordinator's side: yields {party: question}, is sent {party: releases}, returns the model."""

    def settled(self, answers: Mapping[str, Arrays]) -> Mapping[str, Arrays]:
        """What a coordinator keeps of the answers of an exchange when the study is done."""
        return answers

    @abstractmethod
    def answer(self, holding: Holding, question: Question, gate: Gate, memory: Arrays) -> Answer:
        """A party's side of one round.

        The gate holds this party's releases, under their names without the prefix. Raises `RefusedError` before
        anything is released if the question has not the form that this step's questions have.
        """
