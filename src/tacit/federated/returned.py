"""The model, as it comes back to the parties in the farewell: each its own columns' part, or all of it.

Everything in it was released, so it costs nothing. What a party computes with its part for a person is *not* private: a
partial margin is a function of that person's columns, with no noise. `tacit federate score` says so, and keeps it as a
disclosure.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit._types import Floats
from tacit.federated import messages
from tacit.federated.messages import Farewell
from tacit.federated.party import table
from tacit.federated.protocols import columns, prepared
from tacit.federated.protocols.base import Model, RefusedError
from tacit.federated.study import Study
from tacit.federated.units import Units
from tacit.privacy import checks


@dataclass(frozen=True)
class Part:
    """What a party needs to do its share of a prediction.

    Parameters
    ----------
    study, party : str
        The digest of the study, and the party's name in it.
    coef : tuple of float
        Of its columns; of more than two classes, a tuple for each.
    features : tuple of int
        Its columns that are in the model.
    entry_bound, row_norm : float
        What entries, and then rows over those columns, are clipped to.
    intercept : float
        Of the whole model, or of each of more than two classes; it is added once.
    units : Units, optional
        Of columns that go by name.
    parties : tuple of str
        Those in the model, in their order; none: all of the study.
    """

    study: str
    party: str
    coef: tuple[Any, ...]
    features: tuple[int, ...]
    entry_bound: float
    row_norm: float
    intercept: Any
    units: Units | None = None
    parties: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.study, str) or not isinstance(self.party, str):
            raise ValueError("a part of a model names its study and its party")
        put = object.__setattr__
        put(self, "coef", _reals("coef", self.coef))
        put(self, "features", tuple(checks.count("features", value, least=0) for value in self.features))
        put(self, "intercept", _reals("intercept", self.intercept))
        classes = () if self.outputs == 1 else (self.outputs,)
        if np.shape(self.intercept) != classes or np.shape(self.coef) != (*classes, self.n_features):
            raise ValueError("coef must hold as many numbers for each class, and there must be an intercept for each")
        if not self.n_features or any(number >= self.n_features for number in self.features):
            raise ValueError("features must be numbers of the party's columns")
        put(self, "parties", tuple(self.parties))
        if not all(isinstance(name, str) for name in self.parties):
            raise ValueError("parties of a model go by their names")
        if isinstance(self.units, Mapping):
            put(self, "units", Units.from_dict(self.units))
        if self.units is not None and (not isinstance(self.units, Units) or len(self.units.scale) != self.n_features):
            raise ValueError("units must be of as many columns as there are in the part")
        for name in ("entry_bound", "row_norm"):
            value = getattr(self, name)
            number = math.inf if value == "inf" else value
            put(self, name, checks.non_negative(name, number, finite=False))

    @property
    def outputs(self) -> int:
        """How many numbers the model says of a row: one, or one for each of more than two classes."""
        return len(self.coef) if isinstance(self.coef[0], tuple) else 1

    @property
    def n_features(self) -> int:
        """How many columns the party has in the model."""
        return len(self.coef[0] if isinstance(self.coef[0], tuple) else self.coef)

    def margins(self, X: Any) -> Floats:
        """The party's share of the linear function, row by row, without the intercept; of a data frame, by name.

        Of more than two classes, a column for each.
        """
        if self.units is not None:
            limits = self.entry_bound, self.row_norm
            return prepared.margins(self.units, X, np.array(self.coef), list(self.features), limits)
        block = table(X)
        if block.shape[1] != self.n_features:
            raise ValueError(f"X has {block.shape[1]} columns, and the party's part of the model {self.n_features}")
        return columns.margins(block, np.array(self.coef), list(self.features), self.entry_bound, self.row_norm)

    def to_json(self) -> str:
        """As strict JSON; infinity is written "inf"."""
        told = {name: "inf" if value == math.inf else value for name, value in vars(self).items()}
        told["units"] = None if self.units is None else self.units.to_dict()
        return json.dumps(told, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "Part":
        """The part that `to_json` wrote; anything else raises ValueError."""
        try:
            told = json.loads(text, object_pairs_hook=checks.unique_keys)
            return cls(**told)
        except (TypeError, RecursionError, OverflowError) as error:
            raise ValueError(f"not a part of a model: {error}") from None


def _reals(name: str, value: Any, depth: int = 2) -> Any:
    """A finite number, or a tuple of them, or of such tuples; anything else raises."""
    if isinstance(value, list | tuple) and value and depth:
        return tuple(_reals(name, one, depth - 1) for one in value)
    return checks.real(name, value)


def farewells(study: Study, model: Model, file: bytes) -> dict[str, bytes]:
    """What each party is told at the end, by its name; `file` is that of the whole model."""
    facts, told = model.facts, {}
    for member in study.members:
        name = member.name
        if member.receives == "nothing" or name not in model.coefs:
            continue
        part = Part(
            study.digest,
            name,
            np.asarray(model.coefs[name]).tolist(),
            tuple(map(int, facts["features"][name])),
            float(facts.get("entry_bounds", {}).get(name, math.inf)),
            float(facts.get("row_norms", {}).get(name, math.inf)),
            np.asarray(model.intercept).tolist(),
            facts.get("units", {}).get(name),
            tuple(model.coefs),
        )
        arrays = {"part": np.frombuffer(part.to_json().encode(), dtype=np.uint8)}
        if member.receives == "all":
            arrays["model"] = np.frombuffer(file, dtype=np.uint8)
        told[name] = messages.write(Farewell(study.digest, name, 0, arrays))
    return told


@dataclass(frozen=True)
class Returned:
    """What a party was told at the end: its part, and the file of the whole model, if the study says so."""

    part: Part | None = None
    model: bytes | None = None

    @classmethod
    def read(cls, data: bytes, study: Study, party: str) -> "Returned | None":
        """The content of a farewell; None if it is no farewell, and nothing in it if that is not to be taken."""
        if data == b"":
            return cls()
        try:
            message = messages.read(data)
        except RefusedError:
            return None
        if not isinstance(message, Farewell) or (message.study, message.party) != (study.digest, party):
            return None
        try:
            return cls(*_content(message.arrays, study, party))
        except (RefusedError, ValueError):
            return cls()


def _content(arrays: Mapping[str, Any], study: Study, party: str) -> tuple[Part, bytes | None]:
    member = study.member(party)
    expected = {"own": {"part"}, "all": {"part", "model"}}.get(member.receives)  # None where nothing is to come
    if set(arrays) != expected or any(array.dtype != np.uint8 for array in arrays.values()):
        raise RefusedError("the farewell does not hold what the study says")
    part = Part.from_json(arrays["part"].tobytes().decode())
    own = () if part.units is None else part.units.columns
    if (part.study, part.party, part.n_features, own) != (study.digest, party, member.n_features, member.columns):
        raise RefusedError("the part of the model is another party's")
    if part.outputs != study.outputs:
        raise RefusedError("the part of the model is of other classes than the study's")
    if not set(part.parties) <= set(study.names) or (part.parties and party not in part.parties):
        raise RefusedError("the part of the model is of other parties than the study's")
    return part, arrays["model"].tobytes() if "model" in arrays else None
