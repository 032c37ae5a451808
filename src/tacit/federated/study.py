"""`Study`: what the parties agreed on, before anything is computed. It never sees data.

Every party and the coordinator hold the same study; a digest of it is in every message, so that those who agreed on
different things never exchange more than that. The plan, the calibration and each party's part of the budget follow
from the study alone.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

from tacit.bounding.magnitudes import LIMIT
from tacit.federated.classes import agreed_classes
from tacit.federated.evaluation import Evaluation, agreed_evaluation, agreed_radii, check_evaluation
from tacit.federated.members import Member, check_name
from tacit.federated.options import (
    Marginals,
    ProtocolOptions,
    Sketching,
    agreed_protocol,
    agreed_sketch,
    refuse_unknown,
)
from tacit.federated.studyfiles import table_of, toml_table
from tacit.privacy import Budget, checks
from tacit.privacy.checks import Adjacency, whole_seed

LossName = Literal["squared", "logistic", "squared_hinge"]
Labels = Literal["shared", "sketched", "held"]
Membership = Literal["same", "agreed"]

WIRE_VERSION = 3  # of messages and of the meaning of a study; parties of different versions do not talk
MEMBERSHIPS: dict[str, Membership] = {"same": "same", "common": "agreed", "psi": "agreed"}  # by estimators' `align`
MATCHED = "protects the values of the N matched people; who matches, and N, are disclosed exactly"
_LARGEST, _SMALLEST = 1e20, 1e-20  # of declared numbers: sums over rows of products of several of them stay finite


@dataclass(frozen=True)
class Study:
    """What K organisations agree on before they train a model together.

    Parameters
    ----------
    name : str
        Of the study; the same agreement under another name is another study, with a budget of its own.
    loss : {"squared", "logistic", "squared_hinge"}
        Of the model.
    members : tuple of Member
        The parties, in the order of the coefficients.
    n_rows : int
        How many people the rows are about: public, and the same at every party.
    l1_radius : float or tuple of float
        The l1 norm that the coefficients may have together, in the users' units; several to choose from by an
        `evaluation`.
    epsilon, delta, adjacency
        The budget of everything that crosses the network; delta None is n_rows^-1.5. Rows have public places, the same
        at every party: under "add-remove" a row that is absent leaves its place empty, and the others stay in theirs.
    protocol : {"marginals", "feature-sharing"}, Marginals or FeatureSharing
        How the model is trained; an object for what its defaults leave open. The study keeps a copy that does not
        change.
    labels : {"shared", "sketched", "held"}
        "shared": every party holds the labels, and they are protected against the coordinator and the world but not
        against the parties. "sketched": only one party holds them and the others see a noisy sketch. "held": only one
        party holds them, and the others see the model alone; for `Marginals(products="masked")`, which needs it.
    entry_bound : float, optional
        A public bound that entries are clipped to; None spends budget on finding one for each party.
    y_bounds : (float, float), optional
        The same for a regression's target; None spends budget on it.
    classes : (label, label, ...), optional
        Of a classification; of two the first is the negative one. More than two are for the loss "logistic" and the
        protocol "marginals"; each then has weights of its own, with an l1 norm of at most `l1_radius`.
    fit_intercept : bool
        Whether the model has an intercept, which is not in the l1 ball.
    sketch : {"sparse-sign", "gaussian"} or Sketching
        The public matrix that compresses columns, kept in the same way.
    random_state : int, optional
        For tests and research: makes every party's noise reproducible by whoever knows the number.
    membership : {"same", "agreed"}
        "same": all parties hold the same people. "agreed": the people whom all parties have in common were found
        before, which told the parties who they are, and the coordinator how many; all agreed to that.
    evaluation : Evaluation, optional
        A share of the people that is held out, to judge models on.
    """

    name: str
    loss: LossName
    members: tuple[Member, ...]
    n_rows: int
    l1_radius: Any  # a number, or several in a tuple
    epsilon: float = 1.0
    delta: float | None = None
    adjacency: Adjacency = "add-remove"
    protocol: ProtocolOptions = field(default_factory=Marginals)
    labels: Labels = "shared"
    entry_bound: float | None = None
    y_bounds: tuple[float, float] | None = None
    classes: tuple[Any, ...] | None = None
    fit_intercept: bool = True
    sketch: Sketching = field(default_factory=Sketching)
    random_state: int | None = None
    membership: Membership = "same"
    evaluation: Evaluation | None = None

    def __post_init__(self) -> None:
        check_name("a study", self.name)
        checks.one_of("loss", self.loss, get_args(LossName))
        checks.one_of("labels", self.labels, get_args(Labels))
        checks.one_of("membership", self.membership, get_args(Membership))
        members = tuple(self.members)
        if not members or not all(isinstance(member, Member) for member in members):
            raise ValueError("a study needs at least one member, each of them a Member")
        names = [member.name for member in members]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"names of parties must be unique, got twice: {', '.join(twice)}")
        holders = sum(member.labels for member in members)
        if self.labels != "shared" and holders != 1:
            raise ValueError(f"labels={self.labels!r} needs exactly one party that holds the labels, got {holders}")
        if self.labels == "shared" and holders != len(members):
            raise ValueError(
                f"labels='shared' means that every party holds the labels; {len(members) - holders} of"
                f" {len(members)} do not. Give them the labels, or agree on labels='sketched'"
            )
        put = object.__setattr__
        put(self, "members", members)
        put(self, "protocol", agreed_protocol(self.protocol))
        if self.masked != (self.labels == "held"):
            raise ValueError("labels='held' and protocol=Marginals(products='masked') come together")
        if self.masked and len(members) < 2:
            raise ValueError("products='masked' is for products between parties: it needs at least two")
        put(self, "sketch", agreed_sketch(self.sketch))
        self._check_columns()
        self._check_optional()
        put(self, "n_rows", checks.count("n_rows", self.n_rows))
        put(self, "l1_radius", agreed_radii(self.l1_radius, _size))
        put(self, "evaluation", agreed_evaluation(self.evaluation))
        # n^-1.5 by operations that round the same way on every machine: it is in the digest.
        delta = 1.0 / (self.n_rows * math.sqrt(self.n_rows)) if self.delta is None else self.delta
        budget = Budget.for_rows(self.n_rows, self.epsilon, delta, self.adjacency, stacklevel=4)
        put(self, "epsilon", budget.epsilon)
        put(self, "delta", budget.delta)
        if self.by_name:
            put(self, "entry_bound", LIMIT)
        elif self.entry_bound is not None:
            put(self, "entry_bound", _size("entry_bound", self.entry_bound))
        if self.y_bounds is not None:
            low, high = (checks.real("y_bounds", value) for value in self.y_bounds)
            if not (max(-low, high) <= _LARGEST and high - low >= _SMALLEST):
                raise ValueError(f"y_bounds must be two numbers in order, at most {_LARGEST:g}, {_SMALLEST:g} apart")
            put(self, "y_bounds", (low, high))
        if not isinstance(self.fit_intercept, bool):
            raise TypeError(f"fit_intercept must be True or False, got {self.fit_intercept!r}")
        put(self, "classes", agreed_classes(self))
        check_evaluation(self.evaluation, self.radii, self.loss, self.labels, self.protocol, self.outputs)
        if self.random_state is not None:
            put(self, "random_state", whole_seed(self.random_state))

    def _check_columns(self) -> None:
        """Columns are declared of all parties or of none, and their units say what entries are clipped to."""
        if not self.by_name:
            return
        without = [member.name for member in self.members if not member.columns]
        if without:
            raise ValueError(f"columns are declared of some parties, and not of {', '.join(without)}")
        if self.entry_bound not in (None, LIMIT):
            raise ValueError("leave out entry_bound where columns are declared: each has bounds or a scale of its own")
        if not self.fit_intercept:
            raise ValueError("columns that are declared are centred, which needs fit_intercept=True")

    def _check_optional(self) -> None:
        """Who may leave: not the party that speaks for the labels, and only where the others can go on."""
        if not self.optional:
            return
        if not isinstance(self.protocol, Marginals) or self.masked:
            raise ValueError(
                "required=false is for protocol 'marginals' with products='local': others need all parties"
            )
        if self.label_holder in self.optional:
            raise ValueError(f"{self.label_holder!r} speaks for the labels: it is required. Name a party last that is")

    @property
    def radii(self) -> tuple[float, ...]:
        """The l1 radii of the study's models: one, or those to choose from."""
        return self.l1_radius if isinstance(self.l1_radius, tuple) else (self.l1_radius,)

    @property
    def optional(self) -> frozenset[str]:
        """The parties that the study can go on without."""
        return frozenset(member.name for member in self.members if not member.required)

    @property
    def outputs(self) -> int:
        """How many numbers a model says of a row: one, or one for each of more than two classes."""
        return 1 if self.classes is None or len(self.classes) == 2 else len(self.classes)

    @property
    def by_name(self) -> bool:
        """Whether columns are declared, by their names."""
        return any(member.columns for member in self.members)

    @cached_property
    def budget(self) -> Budget:
        """What everything that crosses the network may give away."""
        assert self.delta is not None  # since it was made
        return Budget(self.epsilon, self.delta, self.adjacency)

    @property
    def masked(self) -> bool:
        """Whether parties send their blocks under masks, which takes a secret that they share."""
        return isinstance(self.protocol, Marginals) and self.protocol.products == "masked"

    def member(self, name: str) -> Member:
        """The member of this name; an unknown one raises."""
        for member in self.members:
            if member.name == name:
                return member
        raise ValueError(f"no party named {name!r} in study {self.name!r}; it has {', '.join(self.names)}")

    @property
    def names(self) -> tuple[str, ...]:
        """The parties' names, in the order of the coefficients."""
        return tuple(member.name for member in self.members)

    @property
    def label_holder(self) -> str:
        """The party that speaks for the labels: the last one that holds them."""
        return [member.name for member in self.members if member.labels][-1]

    @property
    def disclosed(self) -> str:
        """What others get to know exactly, in the words of the guarantee."""
        return MATCHED if self.membership == "agreed" else ""

    @property
    def cautions(self) -> tuple[str, ...]:
        """What a party is to know before it takes part: why its rows would not be protected, if they would not."""
        told = []
        if not self.budget.is_private:
            told.append("epsilon is inf in this study: no noise is added, and nobody's data is protected")
        if self.masked:
            told.append(
                "products are masked in this study: the coordinator and any one party together could read every"
                " party's rows, so it must be run by none of them; and every party is trusted to clip its rows"
            )
        if self.random_state is not None:
            told.append("random_state is set in this study: whoever knows it can subtract the noise")
        return tuple(told)

    def to_dict(self) -> dict[str, Any]:
        """Plain values that JSON can carry, in a fixed form."""
        values = self._values()
        values["epsilon"] = "inf" if math.isinf(self.epsilon) else self.epsilon
        return json.loads(json.dumps(values))

    def _values(self) -> dict[str, Any]:
        """The values of all fields; the protocol's with its name, and no evaluation where there is none."""
        values = asdict(self)
        if self.evaluation is None:
            del values["evaluation"]
        return values | {"protocol": {"name": self.protocol.name} | values["protocol"]}

    @cached_property
    def digest(self) -> str:
        """A name for exactly this agreement, under this version of the protocols."""
        text = json.dumps({"version": WIRE_VERSION} | self.to_dict(), sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Study":
        """The study that `to_dict` wrote, or the `[study]` table of a file.

        A protocol or a sketch may be a table or a name. A member that does not say whether it holds the labels holds
        them if they are shared. The loss may be spelled "squared-hinge", as in older files.
        """
        refuse_unknown("a study", values, [known.name for known in fields(cls)])
        told = dict(values)
        if told.get("loss") == "squared-hinge":  # as it was first written
            told["loss"] = "squared_hinge"
        members = told.get("members", ())
        if not isinstance(members, list | tuple) or not all(isinstance(member, Mapping) for member in members):
            raise ValueError("members of a study must be a list of tables, each with a name and n_features")
        for member in members:
            refuse_unknown("a member of a study", member, [known.name for known in fields(Member)])
        shared = told.get("labels", "shared") == "shared"
        try:
            told["members"] = tuple(Member(**({"labels": shared} | dict(member))) for member in members)
            if told.get("epsilon") == "inf":
                told["epsilon"] = math.inf
            return cls(**told)
        except TypeError as error:  # what was read is wrong, not the call
            raise ValueError(f"not a study: {error}") from error

    @classmethod
    def from_toml(cls, path: Path | str) -> "Study":
        """The study in the `[study]` table of a file; tables beside it are not read.

        Its parties are in `[[study.members]]`, the options of its protocol, its sketch and its evaluation in
        `[study.protocol]`, `[study.sketch]` and `[study.evaluation]`.
        """
        agreed = table_of(path, "study")
        if not isinstance(agreed, dict):
            raise ValueError(f"{path} has no [study] table")
        return cls.from_dict(agreed)

    def to_toml(self) -> str:
        """The text that `from_toml` reads, with every agreed value written out."""
        values = self._values()
        tables = {
            f"[study.{name}]": values.pop(name) for name in ("protocol", "sketch", "evaluation") if name in values
        }
        members = values.pop("members")
        lines = toml_table("[study]", values)
        for header, content in tables.items():
            lines += ["", *toml_table(header, content)]
        for member, told in zip(self.members, members, strict=True):
            columns = {column.name: column.said for column in member.columns}
            hidden = {"columns", "n_features"} if columns else {"columns"}
            told = {name: value for name, value in told.items() if name not in hidden}
            lines += ["", *toml_table("[[study.members]]", told)]
            lines += toml_table("[study.members.columns]", columns) if columns else []
        return "\n".join(lines) + "\n"


def _size(name: str, value: object) -> float:
    """A declared positive number that products of several such numbers can carry."""
    number = checks.positive(name, value)
    if not _SMALLEST <= number <= _LARGEST:
        raise ValueError(f"{name} must lie between {_SMALLEST:g} and {_LARGEST:g}, got {number!r}")
    return number
