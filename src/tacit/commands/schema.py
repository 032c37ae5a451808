"""What a user declares about a table before it is read: kinds of columns, categories, constants, classes.

Everything here is public by declaration, so it costs no budget.
"""

import csv
import json
import math
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tacit.modelfiles.table import Categories, Column

NUMBER, TRUTH = "number", "boolean"
_FIELDS = ("target", "classes", "y_bounds", "columns", "drop", "fill")


@dataclass(frozen=True)
class Schema:
    """Declarations: of columns (None for a number), of those to leave out, of constants for missing values, of y.

    `truths` are columns of truth values: numbers between 0 and 1.
    """

    columns: dict[str, Categories | None] = field(default_factory=dict)
    drop: tuple[str, ...] = ()
    fill: dict[str, str] = field(default_factory=dict)
    target: str | None = None
    classes: Categories | None = None
    y_bounds: tuple[float, float] | None = None
    truths: frozenset[str] = frozenset()

    @classmethod
    def load(cls, path: Path) -> "Schema":
        """From a TOML file, or JSON with the same fields."""
        try:
            if path.suffix == ".json":
                values = json.loads(path.read_text(encoding="utf8"))
            else:
                values = tomllib.loads(path.read_text(encoding="utf8"))
        except (json.JSONDecodeError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{path} is not a schema: {error}") from None
        if not isinstance(values, dict):
            raise ValueError(f"{path} must hold the fields {', '.join(_FIELDS)}")
        unknown = sorted(set(values) - set(_FIELDS))
        if unknown:
            raise ValueError(f"{path} has unknown fields {quoted(unknown)}; a schema has {', '.join(_FIELDS)}")
        columns = {name: _kind(name, value) for name, value in _table(values, "columns").items()}
        classes, y_bounds, target = values.get("classes"), values.get("y_bounds"), values.get("target")
        if target is not None and not isinstance(target, str):
            raise ValueError("target must be the name of a column")
        return cls(
            columns,
            tuple(_words("drop", values.get("drop", []))),
            {name: _constant(name, value) for name, value in _table(values, "fill").items()},
            target,
            None if classes is None else listed("classes", classes),
            None if y_bounds is None else _pair(y_bounds),
            frozenset(name for name, value in _table(values, "columns").items() if value == TRUTH),
        )

    def with_words(
        self,
        categories: Iterable[str],
        numbers: str | None,
        booleans: str | None,
        drop: str | None,
        fill: Iterable[str],
        classes: str | None,
    ) -> "Schema":
        """The same with what was said on the command line, which goes before the file."""
        told = dict(named("--categories", text) for text in categories)
        constants = dict(named("--fill", text) for text in fill)
        truths = split(booleans or "")
        known: dict[str, Categories | None] = dict.fromkeys([*split(numbers or ""), *truths])
        return Schema(
            self.columns | known | {name: parsed(f"--categories {name}", text) for name, text in told.items()},
            self.drop if drop is None else tuple(split(drop)),
            self.fill | constants,
            self.target,
            self.classes if classes is None else parsed("--classes", classes),
            self.y_bounds,
            (self.truths - set(known) | set(truths)) - set(told),
        )

    def bounds_of_features(self, columns: Sequence[Column]) -> dict[int, tuple[float, float]] | None:
        """The bounds of truth values, by the numbers of the features that the columns become."""
        features = [column.name if column.categories is None else None for column in columns for _ in column.features]
        return {k: (0.0, 1.0) for k, name in enumerate(features) if name in self.truths} or None


def split(text: str) -> list[str]:
    """The parts of a comma-separated list; a part with a comma in it stands in double quotes."""
    return [part for part in next(csv.reader([text], skipinitialspace=True), []) if part]


def named(flag: str, text: str) -> tuple[str, str]:
    """A column's name and what is said of it, from `name=...`."""
    name, mark, rest = text.partition("=")
    if not name or not mark:
        raise ValueError(f"{flag} takes column=value, got {text!r}")
    return name, rest


def parsed(what: str, text: str) -> Categories:
    """A comma-separated list: numbers if all of them are, else text."""
    words = split(text)
    numbers = [number(word) for word in words]
    return listed(what, words if None in numbers else numbers)


def number(word: str) -> float | None:
    """A finite number, or None."""
    try:
        value = float(word)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def listed(what: str, values: Any) -> Categories:
    """Distinct values, all text or all numbers; numbers in order."""
    text = isinstance(values, list) and all(isinstance(value, str) for value in values)
    if not text and not (isinstance(values, list) and all(_is_number(value) for value in values)):
        raise ValueError(f"{what} must be a list of texts or a list of finite numbers")
    if not values or len(set(values)) < len(values):
        raise ValueError(f"{what} must list at least one value, each of them once")
    return tuple(values) if text else tuple(sorted(float(value) for value in values))


def quoted(names: Iterable[str]) -> str:
    """Names of columns for a message."""
    return ", ".join(map(repr, names))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _kind(name: str, value: Any) -> Categories | None:
    if value in (NUMBER, TRUTH):
        return None
    if not isinstance(value, list):
        raise ValueError(f"columns.{name} must be {NUMBER!r}, {TRUTH!r} or the list of its categories")
    return listed(f"columns.{name}", value)


def _table(values: dict[str, Any], name: str) -> dict[str, Any]:
    table = values.get(name, {})
    if not isinstance(table, dict):
        raise ValueError(f"{name} must be a table of column names")
    return table


def _words(name: str, values: Any) -> list[str]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError(f"{name} must be a list of column names")
    return values


def _constant(name: str, value: Any) -> str:
    if not isinstance(value, str) and not _is_number(value):
        raise ValueError(f"fill.{name} must be a text or a finite number")
    return str(value)


def _pair(values: Any) -> tuple[float, float]:
    if not isinstance(values, list) or len(values) != 2 or not all(_is_number(value) for value in values):
        raise ValueError("y_bounds must be a pair [low, high] of finite numbers")
    return float(values[0]), float(values[1])
