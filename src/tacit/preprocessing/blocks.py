"""A table in parts, before anything is released of it: as `tacit.preprocessing.coding.Reading` has one in memory."""

import operator
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from tacit._types import Floats
from tacit.blocks.lazy import BlockTable
from tacit.blocks.reading import Seen
from tacit.preprocessing.coding import Coded, Reading, listed, votes_on
from tacit.preprocessing.frames import ArrayFrame, Frame, frame_of
from tacit.problems.bounds import truths


@dataclass(frozen=True, eq=False)
class BlockReading(Reading):
    """Rows in parts; `frame` has their names and no rows."""

    table: BlockTable

    @classmethod
    def of(cls, table: BlockTable, most: int) -> "BlockReading":
        """By what the first pass has seen."""
        columns: tuple[Coded, ...] = table.seen.kinds
        names = [column.name for column in columns]
        nothing = ArrayFrame(np.empty((0, len(names))), names)
        nothing.n = table.shape[0]
        return cls(nothing, columns, most, table)

    def votes(self) -> Floats:
        """Of all parts: whole numbers, whose sum is exact."""
        return np.asarray(self.table.total(partial(_votes, self.voted), operator.add))

    def ballots(self, columns: Sequence[Coded], places: Sequence[int]) -> Sequence[Any]:
        """How many rows vote for each text."""
        voting = partial(_tallies, [(place, columns[place]) for place in places])
        found: list[Counter[str]] = self.table.total(voting, _added)
        return found

    @property
    def known(self) -> Floats:
        """Two rows that stand for all: zeros, and NaN in a column where something is missing."""
        rows = np.zeros((2, len(self.columns)))
        rows[:, list(self.table.seen.holes)] = np.nan
        numbers = [k for k, column in enumerate(self.planned) if column.categories is None]
        return rows[:, numbers] if numbers else np.zeros((2, 1))


def look(encoder: Any, X: Any, typed: bool) -> Seen:
    """What a first pass tells of some rows, for an encoder; what is bad raises."""
    trusted = bool(encoder.trust_dtypes)
    frame = clone(encoder)._frame(X, reset=True, least=0)
    columns = encoder._coded(frame, trusted=trusted)
    numbers = [k for k, column in enumerate(columns) if not column.is_text and column.categories is None]
    holes = tuple(k for k in numbers if np.isnan(frame.numbers(k)).any())
    names = frame.names if all(isinstance(name, str) for name in getattr(X, "columns", [None])) else None
    return Seen(frame.n, len(columns), names, truths(X, trusted=typed or trusted), kinds=columns, holes=holes)


def texts_of(encoder: Any) -> tuple[Any, ...]:
    """Columns that are text, where nobody else says what columns are."""
    return (*listed("parse", encoder.parse), *(encoder.categories or ()))


def _frame(X: Any) -> Frame:
    return frame_of(X) or ArrayFrame(np.asarray(X))


def _votes(places: Sequence[int], X: Any) -> Floats:
    return votes_on(places, _frame(X))


def _tallies(columns: Sequence[tuple[int, Coded]], X: Any) -> list[Counter[str]]:
    frame = _frame(X)
    return [Counter(text for text in column.named(frame, place) if text is not None) for place, column in columns]


def _added(one: list[Counter[str]], other: list[Counter[str]]) -> list[Counter[str]]:
    for mine, theirs in zip(one, other, strict=True):
        mine.update(theirs)
    return one
