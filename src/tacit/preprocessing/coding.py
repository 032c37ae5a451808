"""How the columns of a table are encoded: what is declared of each, and what its output columns stand for."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from tacit._types import Floats
from tacit.blocks.reading import MISSING
from tacit.preprocessing.frames import Frame, as_text
from tacit.privacy import checks
from tacit.privacy.texts import harmless


class Source(NamedTuple):
    """Where an output column comes from: its input column, and the value that it stands for, if any."""

    column: str
    value: str | None
    missing: bool = False  # it says that the value is missing
    empty: bool = False  # it stands for nothing


@dataclass(frozen=True)
class Coded:
    """How one input column is encoded.

    `categories` is None for a number, which passes, and for a column whose categories are still to be found. Of a
    `parsed` column a vote decides whether it is a number; cells of the other kind are holes. `empty` columns of zeros
    stand for categories that were planned for and not found, and a `spare` one, which comes first, for a number.
    Categories are declared by the user, or they are `found`, or `typed`: declared by the type of the column.
    """

    name: str
    is_text: bool
    categories: tuple[str, ...] | None
    indicator: bool = False
    empty: int = 0
    parsed: bool = False
    spare: bool = False
    found: bool = False
    typed: bool = False

    @property
    def is_found(self) -> bool:
        """Whether its categories are left to be found."""
        return self.is_text and self.categories is None

    @property
    def sources(self) -> Iterator[Source]:
        """What its output columns stand for."""
        if self.categories is None or self.spare:
            yield Source(self.name, None, empty=self.spare)
        for value in self.categories or ():
            yield Source(self.name, value)
        for _ in range(self.empty):
            yield Source(self.name, None, empty=True)
        if self.indicator:
            yield Source(self.name, None, missing=True)

    @property
    def free(self) -> list[bool]:
        """Which output columns may hold any number; the others hold 0 or 1."""
        first = self.categories is None or self.spare
        return [first and k == 0 for k, _ in enumerate(self.sources)]

    def numbers(self, frame: Frame, place: int) -> Floats:
        """The values of a number."""
        if self.parsed:
            found = [as_number(text) for text in frame.texts(place)]
            return np.array([math.nan if value is None else value for value in found])
        if frame.kind(place) != "number":
            raise TypeError(f"column {self.name!r} was a number in fit, and is text now")
        return frame.numbers(place)

    def texts(self, frame: Frame, place: int) -> list[str | None]:
        """The values of a category."""
        texts = frame.texts(place)
        if not self.parsed:
            return texts
        return [None if text == "" or as_number(text) is not None else text for text in texts]

    def named(self, frame: Frame, place: int) -> list[str | None]:
        """What each row votes for; nothing where the text could not be shown, nor kept in a file."""
        return [text if text is not None and harmless(text) else None for text in self.texts(frame, place)]

    def write(self, frame: Frame, place: int, out: Floats) -> None:
        """Its output columns, into an array of zeros."""
        if self.categories is None:
            out[:, 0] = self.numbers(frame, place)
            missing = np.isnan(out[:, 0])
        else:
            start = int(self.spare)
            texts, places = self.texts(frame, place), {value: k for k, value in enumerate(self.categories, start)}
            codes = np.array([-1 if text is None else places.get(text, -1) for text in texts], dtype=np.int64)
            known = np.flatnonzero(codes >= 0)
            out[known, codes[known]] = 1.0
            missing = np.array([text is None for text in texts], dtype=np.bool_)
        if self.indicator:
            out[:, -1] = missing


@dataclass(frozen=True, eq=False)
class Reading:
    """A table before anything is released: how its columns will be encoded, all of it from what is declared."""

    frame: Frame
    columns: tuple[Coded, ...]
    most: int  # categories of a column that are found

    @property
    def found(self) -> list[int]:
        """The columns whose categories are left to be found."""
        return [place for place, column in enumerate(self.columns) if column.is_found]

    @property
    def voted(self) -> list[int]:
        """The columns of which a vote decides what they are."""
        return [place for place, column in enumerate(self.columns) if column.parsed]

    @property
    def planned(self) -> tuple[Coded, ...]:
        """The columns with the most output columns that each can have: public."""
        slots = tuple(f"\0{k}" for k in range(self.most))
        return tuple(replace(c, categories=slots, spare=c.parsed) if c.is_found else c for c in self.columns)

    def votes(self) -> Floats:
        """Numbers less texts among the cells of each column that is voted on: private, and only for a release."""
        return votes_on(self.voted, self.frame)

    def ballots(self, columns: Sequence[Coded], places: Sequence[int]) -> Sequence[Any]:
        """What rows vote for in some of the columns: private, and only for a release."""
        return [columns[place].named(self.frame, place) for place in places]

    @property
    def known(self) -> Floats:
        """The columns of numbers, for the checks of steps that follow; one of zeros where there are none."""
        numbers = [self.frame.numbers(k) for k, column in enumerate(self.planned) if column.categories is None]
        return np.column_stack(numbers) if numbers else np.zeros((self.frame.n, 1))

    def __repr__(self) -> str:
        return "Reading(private)"


def votes_on(places: Sequence[int], frame: Frame) -> Floats:
    """Numbers less texts among the cells of these columns."""
    return np.array([sum(map(_vote, frame.texts(place))) for place in places], dtype=np.float64)


def as_number(text: str | None) -> float | None:
    """A finite number, as a table has them; None for anything else."""
    if text is None or "_" in text:
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _vote(text: str | None) -> int:
    """One for a number, minus one for a text, nothing for a hole."""
    if text is None or text.strip() in MISSING:
        return 0
    return 1 if as_number(text) is not None else -1


def listed(parameter: str, columns: Any) -> dict[Any, None]:
    """A sequence of columns."""
    if columns is None:
        return {}
    if isinstance(columns, str) or not hasattr(columns, "__iter__"):
        raise TypeError(f"{parameter} must be a sequence of columns, got {checks.shown(columns)}")
    return dict.fromkeys(columns)


def by_place(parameter: str, told: Any, names: Sequence[str]) -> dict[int, Any]:
    """What is told of columns, by their numbers; refuses a column that is not there."""
    if told is None:
        return {}
    if not isinstance(told, Mapping):
        raise TypeError(f"{parameter} must be a dict of columns and their categories, got {checks.shown(told)}")
    places = {name: place for place, name in enumerate(names)}
    found: dict[int, Any] = {}
    for key, value in told.items():
        if isinstance(key, bool) or not isinstance(key, str | int | np.integer):
            raise TypeError(f"{parameter} must name columns by texts or whole numbers, got {checks.shown(key)}")
        place = places.get(key, -1) if isinstance(key, str) else int(key)
        if not 0 <= place < len(names):
            raise ValueError(f"{parameter} names the column {key!r}, which X does not have")
        if place in found:
            raise ValueError(f"{parameter} names the column {names[place]!r} twice, by its name and by its number")
        found[place] = value
    return found


def categories_of(name: str, values: Any, *, is_text: bool) -> tuple[str, ...]:
    """Declared categories as texts; those of a column of numbers by size."""
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise TypeError(f"the categories of column {name!r} must be a list, got {checks.shown(values)}")
    try:
        texts = [as_text(value) for value in values]
    except TypeError:
        raise TypeError(f"the categories of column {name!r} must be texts, numbers or truth values") from None
    if not texts or None in texts or len(set(texts)) < len(texts):
        raise ValueError(f"the categories of column {name!r} must be one or more, each once, and none of them missing")
    found = tuple(text for text in texts if text is not None)
    return found if is_text else tuple(sorted(found, key=size_of))


def size_of(text: str) -> float:
    """Of a category of a column of numbers; truth values count as numbers do."""
    try:
        return float({"True": "1", "False": "0"}.get(text, text))
    except ValueError:
        return math.inf
