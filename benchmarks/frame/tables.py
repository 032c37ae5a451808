"""Markdown tables and their cells."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

NONE = "-"


def lines(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; nothing if it has no rows."""
    body = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(["| " + " | ".join(head) + " |", "|---" * len(head) + "|", *body]) if body else ""


def table(
    corner: str | tuple[str, ...],
    rows: Mapping[Any, Any],
    columns: Mapping[str, Any],
    cell: Callable[[Any, Any], Any],
    whole: bool = False,
) -> str:
    """A cell for each row and column, which are named by their labels; empty rows are left out unless it is `whole`.

    Labels of rows are one word or several, as the corner has.
    """
    drawn = [(label, [f"{cell(row, column)}" for column in columns.values()]) for label, row in rows.items()]
    found = [[*_several(label), *cells] for label, cells in drawn if whole or set(cells) != {NONE}]
    return lines([*_several(corner), *columns], found)


def _several(label: str | tuple[str, ...]) -> tuple[str, ...]:
    return (label,) if isinstance(label, str) else label


def named(names: Iterable[str]) -> dict[str, str]:
    """Rows or columns that are called by their names."""
    return {name: name for name in names}


def by_epsilon(epsilons: Iterable[float]) -> dict[str, float]:
    """A column for each budget."""
    return {f"epsilon = {epsilon:g}": epsilon for epsilon in epsilons}


def spread(values: Sequence[float], digits: int = 3, scale: float = 1.0) -> str:
    """Mean ± standard deviation; a number that stands alone has none."""
    if len(values) < 2:
        return f"{scale * values[0]:.{digits}f}" if len(values) else NONE
    return f"{scale * np.mean(values):.{digits}f} ± {scale * np.std(values):.{digits}f}"


def number(value: float | None, form: str = ".3f") -> str:
    """A number, or that there is none."""
    return NONE if value is None else f"{value:{form}}"


def verdict(reached: Any) -> str:
    """Whether a number is what was asked for."""
    return "reached" if reached else "**not reached**"


def counted(pairs: Iterable[Sequence[Sequence[float]]], better: Callable[[Any, Any], Any]) -> str:
    """In how many pairs of scores over seeds the mean of the first is not behind."""
    means = [(np.mean(ours), np.mean(theirs)) for ours, theirs in pairs if ours and theirs]
    return f"{sum(better(*pair) for pair in means)} of {len(means)}" if means else NONE
