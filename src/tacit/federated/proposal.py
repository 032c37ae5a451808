"""`Proposal`: a study of which nobody knows yet how many people it is about."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from tacit.federated.study import WIRE_VERSION, Study
from tacit.federated.studyfiles import table_of

SOME = 2  # rows of a study that stands for those of any number of rows


@dataclass(frozen=True)
class Proposal:
    """All that parties agree on but the number of people, which is found by matching their ids.

    Parameters
    ----------
    model : Study
        The study, with a number of rows that stands for any, and `membership="agreed"`.
    own_delta : bool
        Whether delta was declared; if not, it follows from the number of people.
    """

    model: Study
    own_delta: bool

    def __post_init__(self) -> None:
        if self.model.membership != "agreed":
            raise ValueError(
                "matching tells the parties who is at all of them, and the coordinator how many: the study must agree"
                ' to that, with membership = "agreed"'
            )

    @classmethod
    def from_toml(cls, path: Path | str) -> "Proposal":
        """The `[study]` table of a file that leaves out n_rows.

        It must declare delta: a coordinator that leaves people out could otherwise choose a large one.
        """
        agreed = table_of(path, "study")
        if not isinstance(agreed, Mapping):
            raise ValueError(f"{path} has no [study] table")
        if "n_rows" in agreed:
            raise ValueError("leave n_rows out of a study that is to be aligned: it is the number of people who match")
        if "delta" not in agreed:
            raise ValueError("declare delta in a study that is to be aligned: the number of people is not known yet")
        return cls(Study.from_dict({"n_rows": SOME} | dict(agreed)), own_delta=True)

    @property
    def names(self) -> tuple[str, ...]:
        """The parties' names."""
        return self.model.names

    @cached_property
    def digest(self) -> str:
        """A name for this agreement: no study has the same."""
        values: dict[str, Any] = self.model.to_dict() | {"n_rows": None}
        if not self.own_delta:
            values["delta"] = None
        text = json.dumps({"version": WIRE_VERSION, "proposal": values}, sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def study(self, n_rows: int) -> Study:
        """The study, about this many people."""
        return replace(self.model, n_rows=n_rows, delta=self.model.delta if self.own_delta else None)


def is_proposal(path: Path | str) -> bool:
    """Whether a study file leaves the number of people to be found."""
    agreed = table_of(path, "study")
    return isinstance(agreed, Mapping) and agreed.get("membership") == "agreed"
