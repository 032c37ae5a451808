"""What a fit gives away: a frozen statement that can be read, stored, recomputed and composed.

What holds: the event costs at most the stated epsilon at the stated delta, by the accountants of `accounting`. A number
is never printed smaller than it is. What `to_dict` and `to_json` wrote is read back with every digit.
"""

import html
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from typing import Any

from dp_accounting import DpEvent

from tacit.privacy import accounting, checks, events
from tacit.privacy.checks import ADJACENCIES, Adjacency


@dataclass(frozen=True)
class Guarantee:
    """An (epsilon, delta)-DP statement about one fit, with the event it follows from.

    Attributes
    ----------
    epsilon, delta : float
        What was asked for and holds; `recompute()` gives at most `epsilon`.
    adjacency : {"add-remove", "replace-one"}
        The neighbours it holds for.
    solver : str
        What made the releases: a printable text of at most 500 characters.
    event : DpEvent
        All releases as one `dp_accounting` event, in multipliers of each release's sensitivity under `adjacency`.
        Read it with an accountant's default neighbour relation.
    n_rows : int
        The number of rows, which is public.
    seeded : bool
        Whether the noise can be reproduced from a number; the guarantee then only holds against those who do not
        know it.
    unit : {"row"}
        Whom it protects: neighbours differ in one of these.
    d0 : float
        The part of delta that thresholded counts take beside the event, which is accounted at `delta_of_event`.
    disclosed : str
        What others got to know exactly, beside the releases, and no noise covers: a printable text, or none.
    n_units : int
        How many of them there are: the number of rows.

    Examples
    --------
    >>> from dp_accounting import GaussianDpEvent
    >>> print(Guarantee(1.0, 1e-6, "add-remove", "gaussian mean", GaussianDpEvent(4.3), n_rows=569))
    (1.0, 1e-06)-DP, add-remove one row of 569; gaussian mean solver, 1 Gaussian release
    """

    epsilon: float
    delta: float
    adjacency: Adjacency
    solver: str
    event: DpEvent
    n_rows: int
    seeded: bool = False
    unit: str = "row"
    d0: float = 0.0
    disclosed: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checks.non_negative("epsilon", self.epsilon, finite=False))
        object.__setattr__(self, "delta", checks.open_unit("delta", self.delta))
        object.__setattr__(self, "adjacency", checks.one_of("adjacency", self.adjacency, ADJACENCIES))
        object.__setattr__(self, "n_rows", checks.count("n_rows", self.n_rows))
        checks.printable("solver", self.solver)  # it is shown, and may come from a file
        if not isinstance(self.event, DpEvent):
            raise TypeError(f"event must be a DpEvent, got {type(self.event).__name__}")
        object.__setattr__(self, "event", events.frozen(self.event))
        if not isinstance(self.seeded, bool):
            raise TypeError(f"seeded must be True or False, got {self.seeded!r}")
        checks.one_of("unit", self.unit, ("row",))
        object.__setattr__(self, "d0", checks.non_negative("d0", self.d0))
        if self.d0 >= self.delta:
            raise ValueError(f"d0 must be below delta={self.delta!r}, got {self.d0!r}")
        if self.disclosed != "":
            checks.printable("disclosed", self.disclosed)

    @property
    def n_units(self) -> int:
        """How many units there are, of which neighbours differ in one."""
        return self.n_rows

    @property
    def delta_of_event(self) -> float:
        """What is left of delta for the event: delta - d0."""
        return self.delta - self.d0

    def recompute(self) -> float:
        """The epsilon of the event at its delta, from the event alone: at most `epsilon`."""
        return accounting.epsilon_of(self.event, self.delta_of_event)

    @property
    def mu(self) -> float:
        """The exact mu of a guarantee made of Gaussian releases alone; others raise.

        With d0 above 0 there is none: what d0 covers may happen whatever the noise is, and mu-GDP has no such part.
        """
        if self.d0 > 0.0:
            raise accounting.UnsupportedEventError(
                f"Gaussian releases alone have an exact mu; thresholded counts take d0={self.d0!r} of delta beside them"
            )
        return accounting.mu_of(self.event)

    def __str__(self) -> str:
        relation = "add-remove" if self.adjacency == "add-remove" else "replace"
        sentence = (
            f"({self.epsilon!r}, {at_most(self.delta)})-DP, {relation} one row of {self.n_rows:,};"
            f" {self.solver} solver, {events.describe(self.event)}"
        )
        if math.isinf(self.epsilon):
            sentence += "; not private"
        if self.seeded:
            sentence += "; seeded, so only against those who do not know the seed"
        if self.disclosed:
            sentence += f"; {self.disclosed}"
        return sentence

    def to_dict(self) -> dict[str, Any]:
        """Plain values that JSON can carry; infinity is written "inf"."""
        return {
            "epsilon": "inf" if math.isinf(self.epsilon) else self.epsilon,
            "delta": self.delta,
            "adjacency": self.adjacency,
            "solver": self.solver,
            "event": events.to_dict(self.event),
            "unit": self.unit,
            "n_units": self.n_units,
            "n_rows": self.n_rows,
            "seeded": self.seeded,
            "d0": self.d0,
            "disclosed": self.disclosed,
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Guarantee":
        """The guarantee that `to_dict` wrote; older ones, without units, are about rows."""
        fields, later = (
            {"epsilon", "delta", "adjacency", "solver", "event", "n_rows", "seeded"},
            {"unit", "n_units", "d0", "disclosed"},
        )
        if not isinstance(values, dict) or set(values) - later != fields:
            raise ValueError(f"a guarantee has exactly the fields {', '.join(sorted(fields | later))}")
        if values.get("n_units", values["n_rows"]) != values["n_rows"]:
            raise ValueError("a guarantee about rows must have as many units as rows")
        told = {name: value for name, value in values.items() if name != "n_units"}
        told["epsilon"] = math.inf if values["epsilon"] == "inf" else values["epsilon"]
        try:
            return cls(**(told | {"event": events.from_dict(values["event"])}))
        except (TypeError, OverflowError, RecursionError) as error:  # what was read is wrong, not the call
            raise ValueError(f"not a guarantee: {error}") from error

    def to_json(self, *, indent: int | None = None) -> str:
        """As strict JSON; floats keep every digit."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "Guarantee":
        """The guarantee that `to_json` wrote."""
        try:
            return cls.from_dict(json.loads(text, object_pairs_hook=checks.unique_keys))
        except RecursionError as error:
            raise ValueError("not a guarantee: nested too deeply") from error

    def to_html(self) -> str:
        """As a small table that needs nothing from outside."""
        rows = {
            "Guarantee": f"({self.epsilon!r}, {at_most(self.delta)})-differential privacy",
            "Neighbours": {
                "add-remove": "one person's row is present, or contributes nothing",
                "replace-one": "one person's row is replaced by any other",
            }[self.adjacency],
            "Rows": f"{self.n_rows:,} (public)",
            "Solver": self.solver,
            "Releases": events.describe(self.event),
            "Noise": "reproducible from a seed: holds only against those who do not know it"
            if self.seeded
            else "fresh cryptographic randomness",
        }
        if self.disclosed:
            rows["Disclosed"] = self.disclosed
        body = "".join(f"<tr><th>{html.escape(k)}</th><td>{html.escape(v)}</td></tr>" for k, v in rows.items())
        return f'<table class="tacit-guarantee">{body}</table>'

    def _repr_html_(self) -> str:
        return self.to_html()


def compose(guarantees: Iterable[Guarantee], *, delta: float | None = None) -> Guarantee:
    """The joint guarantee of several fits that may have seen the same rows.

    The events are accounted together, which is tighter than adding epsilons. Where the sum of epsilons is lower it is
    taken: this can be so for fits of different kinds, each of which has an accountant of its own.

    It holds for a list of fits that was fixed beforehand: how many there are, and with which epsilon, delta and solver.
    What is fitted may be chosen after looking at earlier fits: columns, targets, penalties. How many fits there are,
    and how much each of them spends, may not. If earlier results decide when to stop, or what to spend next, then the
    list itself tells something of the data: delta can be more than ten times the one stated.

    So give the whole list that was fixed, with the fits that were not made after all. Where the list cannot be known
    beforehand, fix two totals: one of epsilon and one of delta. Fit no more when the next fit would take a sum beyond
    its total. State these two totals, and not what `compose` says of the fits that were made.

    Parameters
    ----------
    guarantees : iterable of Guarantee
        At least one, all for the same adjacency.
    delta : float, optional
        The delta of the joint statement; by default the sum of their deltas. Fixed beforehand as well.
    """
    parts = list(guarantees)
    if not parts:
        raise ValueError("compose needs at least one guarantee")
    relations = {part.adjacency for part in parts}
    if len(relations) > 1:
        raise ValueError(
            "guarantees for add-remove and for replace-one neighbours cannot be composed; refit with one of them"
        )
    total = math.fsum(part.delta for part in parts)
    joint_delta = checks.open_unit("delta", total if delta is None else delta)
    event = events.composed(part.event for part in parts)
    d0 = math.fsum(part.d0 for part in parts)
    if d0 >= joint_delta:
        raise ValueError(f"delta must be above {d0!r}, which the thresholded counts take; got {joint_delta!r}")
    epsilon = accounting.epsilon_of(event, joint_delta - d0)
    if total <= joint_delta:
        epsilon = min(epsilon, math.fsum(part.epsilon for part in parts))
    names = ", ".join(dict.fromkeys(part.solver for part in parts))
    title = parts[0].solver if len(parts) == 1 else f"{len(parts)} fits ({names})"
    return Guarantee(
        epsilon=epsilon,
        delta=joint_delta,
        adjacency=parts[0].adjacency,
        solver=title if len(title) <= checks.LONGEST_TEXT else f"{len(parts)} fits (several solvers)",
        event=event,
        n_rows=max(part.n_rows for part in parts),
        seeded=any(part.seeded for part in parts),
        d0=d0,
        disclosed="; ".join(dict.fromkeys(part.disclosed for part in parts if part.disclosed)),
    )


def at_most(delta: float) -> str:
    """Two digits, rounded up: a printed guarantee never claims more than holds."""
    return f"{float(Context(prec=2, rounding=ROUND_CEILING).create_decimal(repr(float(delta)))):.2g}"
