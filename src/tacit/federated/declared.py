"""What a study says of a party's columns, by name; and a party's own copy of them.

What a column is stands in the study, and is never read off the rows: a column that is not named there is left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit._types import Floats
from tacit.preprocessing.frames import Frame, frame_of
from tacit.privacy import checks
from tacit.privacy.texts import HARMLESS, harmless

NUMBER, TEXT = "number", "text"
_MOST_AT_ALL = 10_000
MOST = 20  # categories of a column of text that are found, if the study does not say
_LARGEST, _NARROWEST = 1e20, 1e-20  # of bounds
_SAID = (
    '[low, high] for its bounds, a list of texts for its categories, "number" for a scale that is found, "text" for'
    " categories that are found, or {text = 50} for at most so many"
)


@dataclass(frozen=True)
class Declared:
    """A column of a party's table, as all parties know it. Of a number without bounds a scale is found.

    Parameters
    ----------
    name : str
        In the table.
    bounds : (float, float), optional
        What its numbers lie between.
    categories : tuple of str, optional
        Its texts: each of them is a column of zeros and ones in the model. Whole numbers are texts without a point.
    most : int, optional
        Of a column of texts that nobody declared: how many are found at most. The model has so many columns for it.
    """

    name: str
    bounds: tuple[float, float] | None = None
    categories: tuple[str, ...] | None = None
    most: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name or not harmless(self.name):
            raise ValueError(f"a column needs a name {HARMLESS}")
        if sum(said is not None for said in (self.bounds, self.categories, self.most)) > 1:
            raise ValueError(f"column {self.name!r} has bounds, categories or a number of them to find, and not two")
        put = object.__setattr__
        if self.bounds is not None:
            low, high = (checks.real(f"a bound of column {self.name!r}", value) for value in self.bounds)
            if not (max(-low, high) <= _LARGEST and high - low >= _NARROWEST):
                raise ValueError(f"the bounds of column {self.name!r} must be low < high, within {_LARGEST:g}")
            put(self, "bounds", (low, high))
        if self.categories is not None:
            values = tuple(self.categories)
            if not values or not all(isinstance(value, str) and harmless(value) for value in values):
                raise ValueError(f"the categories of column {self.name!r} must be texts {HARMLESS}")
            if len(set(values)) < len(values):
                raise ValueError(f"column {self.name!r} has a category twice")
            put(self, "categories", values)
        if self.most is not None:
            put(self, "most", checks.count(f"the categories of column {self.name!r}", self.most))
            if self.most > _MOST_AT_ALL:
                raise ValueError(f"at most {_MOST_AT_ALL:,} categories of column {self.name!r} can be found")

    @classmethod
    def of(cls, name: str, said: Any) -> "Declared":
        """From what a study file says of a column."""
        if said == NUMBER:
            return cls(name)
        if said == TEXT:
            return cls(name, most=MOST)
        if isinstance(said, Mapping) and set(said) == {TEXT}:
            return cls(name, most=said[TEXT])
        if isinstance(said, list | tuple) and said and all(isinstance(value, str) for value in said):
            return cls(name, categories=tuple(said))
        if isinstance(said, list | tuple) and len(said) == 2:
            return cls(name, bounds=(said[0], said[1]))
        raise ValueError(f"column {name!r} cannot be declared as {checks.shown(said)}: give {_SAID}")

    @property
    def said(self) -> Any:
        """What a study file says of it."""
        if self.most is not None:
            return {TEXT: self.most}
        return list(self.bounds or self.categories or ()) or NUMBER

    @property
    def width(self) -> int:
        """How many columns of the model come from it."""
        return self.most or len(self.categories or (None,))

    @property
    def is_text(self) -> bool:
        """Whether its cells are texts."""
        return self.categories is not None or self.most is not None

    @property
    def is_measured(self) -> bool:
        """Whether it is a number of which a scale is found."""
        return self.bounds is None and not self.is_text


Columns = tuple[Declared, ...]


def columns_of(said: Any) -> Columns:
    """From what a study says of a party's columns: a table by name, or a list as a study writes it."""
    if isinstance(said, Mapping):
        found = tuple(Declared.of(str(name), value) for name, value in said.items())
    elif isinstance(said, list | tuple):
        found = tuple(column if isinstance(column, Declared) else _read(column) for column in said)
    else:
        raise TypeError(f"columns go by name, as in columns={{'age': [0, 100]}}, got {checks.shown(said)}")
    if len({column.name for column in found}) < len(found):
        raise ValueError("a column is declared twice")
    return found


def _read(told: Any) -> Declared:
    if not isinstance(told, Mapping) or not set(told) <= set(Declared.__dataclass_fields__) or "name" not in told:
        raise ValueError("a column is not what a study writes of one")
    return Declared(**told)


def width_of(columns: Columns) -> int:
    """How many columns of the model a party has."""
    return sum(column.width for column in columns)


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of a party's columns: private.

    `values` has the columns of the model: numbers as they are and NaN where there is none, zeros and ones for declared
    categories, and zeros where categories are still to be found. `texts` are the cells of those.
    """

    values: Floats
    texts: tuple[tuple[str | None, ...], ...]

    @classmethod
    def of(cls, columns: Columns, X: Any) -> "Cells":
        """From a data frame, which has these columns, and may have others."""
        frame = frame_of(X)
        if frame is None:
            raise TypeError(f"columns go by name: give a data frame, got {type(X).__name__}")
        places = {name: place for place, name in enumerate(frame.names)}
        lacking = sorted({column.name for column in columns} - set(places))
        if lacking:
            raise ValueError(f"the table lacks columns of the study: {', '.join(map(repr, lacking))}")
        values, texts, start = np.zeros((frame.n, width_of(columns))), [], 0
        for column in columns:
            place, out = places[column.name], values[:, start : start + column.width]
            start += column.width
            if not column.is_text:
                out[:, 0] = _numbers(frame, place, column.name)
            elif column.categories is not None:
                write_ones(out, column.categories, frame.texts(place))
            else:
                texts.append(tuple(frame.texts(place)))
        values[np.isnan(values)] = np.nan  # of one spelling
        return cls(values, tuple(texts))

    def at(self, rows: Any) -> "Cells":
        """Those of some rows."""
        return Cells(self.values[rows], texts_at(self.texts, rows))

    def __repr__(self) -> str:
        return "Cells(private)"


def texts_at(texts: Sequence[Sequence[str | None]], rows: Any) -> tuple[tuple[str | None, ...], ...]:
    """The cells of some rows."""
    return tuple(tuple(column[row] for row in rows) for column in texts)


def write_ones(out: Floats, categories: Sequence[str], texts: Sequence[str | None]) -> None:
    """A one where a text is a category, into columns of zeros."""
    places = {value: k for k, value in enumerate(categories)}
    codes = np.array([-1 if text is None else places.get(text, -1) for text in texts], dtype=np.int64)
    known = np.flatnonzero(codes >= 0)
    out[known, codes[known]] = 1.0


def _numbers(frame: Frame, place: int, name: str) -> Floats:
    if frame.kind(place) != NUMBER:
        raise ValueError(f"column {name!r} is a number by the study, and its type is not one of numbers")
    return frame.numbers(place)
