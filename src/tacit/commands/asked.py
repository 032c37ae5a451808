"""What is read of a table, by what is declared of its columns."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from tacit.commands.schema import Schema, number, quoted
from tacit.modelfiles.table import Categories, Column


@dataclass(frozen=True)
class Asked:
    """What is read of a file: public."""

    target: str
    features: tuple[str, ...]
    text: frozenset[str]  # columns that are read as text
    found: tuple[str, ...]
    learned: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """The columns that are read, the target last."""
        return [*self.features, self.target]

    def columns(self, schema: Schema, learned: dict[str, Categories] | None = None) -> tuple[Column, ...]:
        """How they are encoded: as declared, and as `learned` from the rows."""
        told = {**schema.columns, **(learned or {})}
        return tuple(
            Column(name, told.get(name), fill(name, told.get(name), schema.fill.get(name))) for name in self.features
        )


def asked(names: Sequence[str], schema: Schema, target: str, public: Collection[str] = ()) -> Asked:
    """What is to be read of a file with these columns; `public` ones may tell their categories."""
    for what, told in (("columns", schema.columns), ("drop", schema.drop), ("fill", schema.fill), ("public", public)):
        _known(what, told, set(names) - {target} if what != "drop" else set(names))
    features = [name for name in names if name != target and name not in schema.drop]
    if target in schema.drop:
        raise ValueError(f"the target {target!r} cannot be dropped")
    if not features:
        raise ValueError("no column is left to learn from")
    declared = [Column(name, schema.columns[name]) for name in features if name in schema.columns]
    text = {column.name for column in declared if column.is_text}
    if schema.classes is not None and isinstance(schema.classes[0], str):
        text.add(target)
    # A constant for missing values says what a column is, too.
    undeclared = [
        name for name in features if name not in schema.columns and (name in public or name not in schema.fill)
    ]
    learned = tuple(name for name in undeclared if name in public)
    found = tuple(name for name in undeclared if name not in public)
    return Asked(target, tuple(features), frozenset(text), found, learned)


def fill(name: str, categories: Categories | None, word: str | None) -> str | float | None:
    """The constant for a missing value, of the column's kind."""
    if word is None:
        return None
    value = word if categories and isinstance(categories[0], str) else number(word)
    if value is None:
        raise ValueError(f"--fill {name}={word}: the column holds numbers, and this is not a finite number")
    if categories is not None and value not in categories:
        raise ValueError(f"--fill {name}={word}: this is not one of its declared categories")
    return value


def _known(what: str, told: Iterable[str], names: set[str]) -> None:
    unknown = sorted(set(told) - names)
    if unknown:
        raise ValueError(f"declared under {what}, but no feature column of the table: {quoted(unknown)}")
