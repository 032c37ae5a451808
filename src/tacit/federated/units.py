"""What a party's columns are brought to: units, declared or released, and the way back to the user's.

A number is clipped to its bounds, centred and scaled, so that it has a size of about 1 and lies within 3; a missing one
is the centre. A category is a column of zeros and ones; one that is not known, or missing, is zero in all of them. Of
columns with bounds or categories that are declared nothing is released (`bounding.declared` has their units). The
others are found by a party in one round, before anything else.

Privacy. Scales are found as in a fit: two histograms of d columns, in which a row counts once in each, sqrt(d) and
sqrt(2 d) (`bounding.scales`). The categories of all texts are one release of thresholded counts
(`privacy.mechanisms.thresholded`). Each party has its own releases, and all of them compose. What follows is a
function, of each row alone, of what was released; entries are within 3 whatever was.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tacit._types import Flags, Floats
from tacit.bounding.declared import DeclaredScale
from tacit.bounding.magnitudes import LIMIT
from tacit.bounding.scales import MagnitudeScale
from tacit.federated.declared import Cells, Columns, columns_of, write_ones
from tacit.federated.study import Study
from tacit.privacy import Gate, Plan, Release
from tacit.privacy.mechanisms import ThresholdedCounts
from tacit.privacy.plan import TAIL
from tacit.privacy.texts import harmless
from tacit.problems.bounds import Bounds

SCALE, CATEGORIES = "column scale", "categories"
SPREAD = f"{SCALE}: spread"  # the release that units are sent under
_TEXT_SHARE = 0.1  # of the budget, for the categories of all parties
_LARGEST = 2.0**60  # of a centre or a scale that is found

Found = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, eq=False)
class Units:
    """A party's columns, with the categories that were found of its texts; and for each column of the model its units.

    Values are clipped to [low, high], and then (value - centre) / scale is within 3.
    """

    columns: Columns
    found: Found
    centre: Floats
    scale: Floats
    low: Floats
    high: Floats

    @classmethod
    def declared(cls, columns: Columns) -> "Units":
        """What is known before anything is released; of columns that are to be found, nothing yet."""
        marks = _marks(columns)
        low, high = np.where(marks.text, 0.0, -np.inf), np.where(marks.text, 1.0, np.inf)
        for column, start in zip(columns, marks.starts, strict=True):
            if column.bounds is not None:
                low[start], high[start] = column.bounds
        bounded = ~marks.text & ~marks.measured
        known = DeclaredScale(2, Bounds(low[bounded], high[bounded]), None).known()
        centre, scale = np.zeros(len(low)), np.ones(len(low))
        centre[bounded], scale[bounded] = known.centre, known.scale
        return cls(columns, ((),) * sum(column.most is not None for column in columns), centre, scale, low, high)

    def with_found(self, numbers: Floats, categories: Found) -> "Units":
        """The same after the round that finds the rest: centre, scale, low and high, and categories."""
        measured = _marks(self.columns).measured
        own = [part.copy() for part in (self.centre, self.scale, self.low, self.high)]
        for part, values in zip(own, numbers, strict=True):
            part[measured] = values
        return Units(self.columns, categories, *own)

    def transform(self, cells: Cells) -> Floats:
        """The columns of the model: within 3, without holes; each row by itself."""
        out = (np.clip(cells.values, self.low, self.high) - self.centre) / self.scale
        out = np.where(np.isnan(out), 0.0, np.clip(out, -LIMIT, LIMIT))
        places = [start for column, start in zip(self.columns, _marks(self.columns).starts, strict=True) if column.most]
        for start, categories, texts in zip(places, self.found, cells.texts, strict=True):
            write_ones(out[:, start : start + len(categories)], categories, texts)
        return out

    @property
    def empty(self) -> Flags:
        """Which columns of the model stand for categories that were planned for and not found."""
        empty, left = np.zeros(len(self.scale), dtype=np.bool_), iter(self.found)
        for column, start in zip(self.columns, _marks(self.columns).starts, strict=True):
            if column.most is not None:
                empty[start + len(next(left)) : start + column.width] = True
        return empty

    @property
    def names(self) -> list[str]:
        """Of the columns of the model."""
        left, out = iter(self.found), []
        for column in self.columns:
            values = next(left) if column.most is not None else column.categories
            out += [column.name] if values is None else [f"{column.name}={value}" for value in values]
            out += [f"{column.name} is empty"] * (column.width - len(values)) if values is not None else []
        return out

    def to_dict(self) -> dict[str, Any]:
        """Plain values that JSON can carry: what was declared, and what was found."""
        measured = _marks(self.columns).measured
        own = [part[measured].tolist() for part in (self.centre, self.scale, self.low, self.high)]
        columns = {column.name: column.said for column in self.columns}
        return {"columns": columns, "found": [list(values) for values in self.found], "numbers": own}

    @classmethod
    def from_dict(cls, told: Any) -> "Units":
        """The units that `to_dict` wrote; anything else raises ValueError."""
        if not isinstance(told, Mapping) or set(told) != {"columns", "found", "numbers"}:
            raise ValueError("not the units of a party's columns")
        try:
            columns = columns_of(told["columns"])
            numbers = np.array(told["numbers"], dtype=np.float64)
        except TypeError as error:
            raise ValueError(f"not the units of a party's columns: {error}") from None
        units = cls.declared(columns)
        if not units.fits(numbers) or not isinstance(told["found"], list):
            raise ValueError("not the units of a party's columns")
        return units.with_found(numbers, units.categories(told["found"]))

    def fits(self, numbers: Floats) -> bool:
        """Whether these can be units of the numbers that are measured."""
        if numbers.shape != (4, int(_marks(self.columns).measured.sum())) or not np.all(np.abs(numbers) <= _LARGEST):
            return False
        _, scale, low, high = numbers
        return bool(np.all(scale >= 1.0 / _LARGEST) and np.all(low <= high))

    def categories(self, told: list[Any]) -> Found:
        """Categories of texts, of which each has so many at most, in order, each once; others raise ValueError."""
        limits = [column.most for column in self.columns if column.most is not None]
        if len(told) != len(limits):
            raise ValueError("categories are found of other columns than the study says")
        for values, most in zip(told, limits, strict=True):
            texts = isinstance(values, list) and all(isinstance(value, str) and harmless(value) for value in values)
            if not texts or len(values) > most or values != sorted(set(values)):
                raise ValueError("categories that are found are texts, in order, and no more than the study says")
        return tuple(map(tuple, told))


@dataclass(frozen=True, eq=False)
class _Marks:
    """Which columns of the model are of texts, and which are numbers of which a scale is found."""

    starts: list[int]
    text: Flags
    measured: Flags


def _marks(columns: Columns) -> _Marks:
    widths = [column.width for column in columns]
    text = np.repeat([column.is_text for column in columns], widths)
    measured = np.repeat([column.is_measured for column in columns], widths)
    return _Marks([sum(widths[:k]) for k in range(len(widths))], text, measured)


def measured(columns: Columns) -> int:
    """How many numbers there are of which a scale is found."""
    return sum(column.is_measured for column in columns)


def texts(columns: Columns) -> int:
    """How many columns there are of which categories are found."""
    return sum(column.most is not None for column in columns)


def finds(columns: Columns) -> bool:
    """Whether a party has anything to find of its columns."""
    return measured(columns) + texts(columns) > 0


def releases(study: Study) -> tuple[Release, ...]:
    """What all parties release of their columns, named `party/release`; shares are of a whole of 1."""
    out: list[Release] = []
    numbers = sum(measured(member.columns) for member in study.members)
    tellers = [member.name for member in study.members if texts(member.columns)]
    for member in study.members:
        own = measured(member.columns)
        if own:
            scale = MagnitudeScale(study.n_rows, own, SCALE)
            share = scale.share(study.budget, numbers) * own / numbers
            out += [replace(r, name=f"{member.name}/{r.name}") for r in scale.releases(share)]
        if member.name in tellers:
            count = len(tellers)
            name = f"{member.name}/{CATEGORIES}"
            out.append(Release(name, "thresholded", share=_TEXT_SHARE / count, tail=TAIL / count))
    return tuple(out)


def with_columns(study: Study, plan: Plan) -> Plan:
    """The plan of a protocol, after what is released of columns."""
    first = releases(study)
    if not first:
        return plan
    left = 1.0 - sum(release.share or 0.0 for release in first)
    ahead = [replace(r, share=(r.share or 0.0) / left * plan.shared) for r in first]
    return Plan(*ahead, *plan.releases, views=[[1.0] * len(ahead) + list(view) for view in plan.views])


def find(study: Study, name: str, cells: Cells, gate: Gate) -> dict[str, Any]:
    """What a party releases of its columns: their units, and categories as JSON."""
    columns = study.member(name).columns
    found: dict[str, Any] = {}
    if measured(columns):
        numbers = np.ascontiguousarray(cells.values[:, _marks(columns).measured])
        scaling = MagnitudeScale(study.n_rows, numbers.shape[1], SCALE).run(gate, numbers)
        found[SPREAD] = np.stack([scaling.centre, scaling.scale, scaling.low, scaling.high])
    if texts(columns):
        limits = [column.most for column in columns if column.most is not None]
        votes = [[text if text is not None and harmless(text) else None for text in column] for column in cells.texts]
        kept = gate.release(CATEGORIES, ThresholdedCounts(len(limits), study.n_rows, limits[0]), votes)
        found[CATEGORIES] = np.frombuffer(json.dumps(kept).encode(), dtype=np.uint8)
    return found


def told(study: Study, name: str, answer: Mapping[str, Any]) -> Units:
    """A party's units, from what it released; what cannot be raises ValueError."""
    columns = study.member(name).columns
    units = Units.declared(columns)
    numbers, categories = np.zeros((4, 0)), list(units.found)
    expected = {what for what, wanted in ((SPREAD, measured(columns)), (CATEGORIES, texts(columns))) if wanted}
    if set(answer) != expected:
        raise ValueError("units of other columns than the study says")
    if SPREAD in expected:
        numbers = answer[SPREAD]
    if CATEGORIES in expected:
        array = answer[CATEGORIES]
        if array.dtype != np.uint8 or array.ndim != 1:
            raise ValueError("categories are sent as text")
        try:
            categories = json.loads(array.tobytes().decode())
        except RecursionError:
            raise ValueError("categories are sent as lists of texts") from None
    if numbers.dtype != np.float64 or not units.fits(numbers) or not isinstance(categories, list):
        raise ValueError("units that no data gives")
    return units.with_found(numbers, units.categories([list(v) if isinstance(v, tuple) else v for v in categories]))


def in_users_units(
    coefs: Mapping[str, Floats], intercept: float | Floats, found: Mapping[str, Units]
) -> tuple[dict[str, Floats], float | Floats]:
    """A model of columns in units as one of columns as they are; columns that stand for nothing have no weight."""
    own = {name: np.where(found[name].empty, 0.0, coef / found[name].scale) for name, coef in coefs.items()}
    return own, intercept - sum(coef @ found[name].centre for name, coef in own.items())
