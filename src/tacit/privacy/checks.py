"""Validation of public parameters, in one voice.

A message names the parameter, the value that it was given and what is accepted. Only parameters are checked here, never
data: a message may be logged, and data may not.
"""

import math
import warnings
from collections.abc import Sequence
from typing import Any, Literal, TypeVar, get_args

import numpy as np

Adjacency = Literal["add-remove", "replace-one"]

ADJACENCIES: tuple[Adjacency, ...] = get_args(Adjacency)

Word = TypeVar("Word", bound=str)

_LONGEST = 60  # characters of a value in a message

LONGEST_TEXT = 500
"""Characters of a text that is shown as a part of a sentence."""

MOST = 2**63 - 1
"""The largest count: what a 64-bit integer holds."""


def real(name: str, value: object) -> float:
    """A number that is not NaN, as a float.

    Python's and NumPy's integers and floats are taken, fractions and decimals too. A finite number beyond float64 is
    refused: an infinite epsilon would turn the noise off.
    """
    if isinstance(value, np.ndarray | np.generic):
        is_number = value.ndim == 0 and value.dtype.kind in "iuf"
    else:
        is_number = hasattr(value, "__float__") and not isinstance(value, bool | str | bytes | complex)
    try:
        number = float(value) if is_number else None  # type: ignore[arg-type]
    except OverflowError:
        raise ValueError(_beyond(name, value)) from None
    except Exception:  # a Decimal that signals, or whatever an object's own method raises
        number = None
    if number is None:
        raise TypeError(f"{name} must be a real number, got {shown(value)} of type {type(value).__name__}")
    if math.isnan(number):
        raise ValueError(f"{name} must be a number, got NaN")
    if math.isinf(number) and value != number:
        raise ValueError(_beyond(name, value))
    return number


def _beyond(name: str, value: object) -> str:
    return f"{name} must be within what float64 holds, about 1.8e308 in size, got {shown(value)}"


def shown(value: object) -> str:
    """A parameter as a message shows it: short, on one line and without control characters."""
    try:
        text = repr(value)
    except Exception:  # Python prints no integer of more than 4,300 digits, and an object's own method may fail
        return "an integer of more than 4,000 digits" if isinstance(value, int) else "what cannot be printed"
    line = "".join(character if character.isprintable() else "?" for character in text[: _LONGEST + 1])
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."


def positive(name: str, value: object, *, finite: bool = True) -> float:
    """A number above zero; infinity only where `finite` is False."""
    number = real(name, value)
    if number <= 0:
        raise ValueError(f"{name} must be above 0, got {number!r}")
    if finite and math.isinf(number):
        raise ValueError(f"{name} must be finite, got {number!r}")
    return number


def non_negative(name: str, value: object, *, finite: bool = True) -> float:
    """A number of at least zero; infinity only where `finite` is False."""
    number = real(name, value)
    if number < 0 or (finite and math.isinf(number)):
        raise ValueError(f"{name} must be {'finite and ' if finite else ''}at least 0, got {number!r}")
    return number


def open_unit(name: str, value: object) -> float:
    """A number strictly between 0 and 1."""
    number = real(name, value)
    if not 0 < number < 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1, got {number!r}")
    return number


def closed_unit(name: str, value: object) -> float:
    """A number from 0 to 1."""
    number = real(name, value)
    if not 0 <= number <= 1:
        raise ValueError(f"{name} must lie in [0, 1], got {number!r}")
    return number


def probability(name: str, value: object) -> float:
    """A number above 0 and at most 1."""
    number = real(name, value)
    if not 0 < number <= 1:
        raise ValueError(f"{name} must lie in (0, 1], got {number!r}")
    return number


def count(name: str, value: object, *, least: int = 1, most: int | None = MOST) -> int:
    """An integer of at least `least` and at most `most`, if any (NumPy integers too, booleans not)."""
    whole = value.dtype.kind in "iu" and value.ndim == 0 if isinstance(value, np.ndarray | np.generic) else True
    if isinstance(value, bool) or not whole or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be an integer, got {shown(value)} of type {type(value).__name__}")
    number = int(value) if isinstance(value, int | np.integer) else _index(name, value)
    if number < least:
        raise ValueError(f"{name} must be at least {least}, got {shown(number)}")
    if most is not None and number > most:
        raise ValueError(f"{name} must be at most {most:,}, got {shown(number)}")
    return number


def _index(name: str, value: Any) -> int:
    """What an object gives as its integer. For these alone: a timeout by a signal must not end as an error of type."""
    try:
        return int(value.__index__())
    except Exception:  # whatever its own method raises
        raise TypeError(f"{name} must be an integer, got {shown(value)} of type {type(value).__name__}") from None


def one_of(name: str, value: object, accepted: Sequence[Word]) -> Word:
    """One of a few words."""
    if not isinstance(value, str) or value not in accepted:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, accepted))}, got {shown(value)}")
    return accepted[accepted.index(value)]


def printable(name: str, value: object) -> str:
    """A text that a terminal shows as it is, on one line: not empty, and not long."""
    if not isinstance(value, str) or not value.isprintable() or not 0 < len(value) <= LONGEST_TEXT:
        raise ValueError(f"{name} must be a printable text of 1 to {LONGEST_TEXT} characters, got {shown(value)}")
    return value


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; a key given twice could say one thing to a reader and another to a parser."""
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("a key is given twice")
    return values


def warn_of_seed(*, stacklevel: int = 2) -> None:
    """Say once that noise made from a number is noise that those who know the number can subtract."""
    warnings.warn(
        "random_state is set: whoever knows it can subtract the noise; leave it None for data about real people",
        stacklevel=stacklevel + 1,
    )


def whole_seed(seed: object) -> int:
    """A seed as a number, or a clear refusal."""
    try:
        return count("random_state", seed, least=0, most=None)
    except TypeError:
        raise TypeError(
            f"random_state must be None or a whole number of at least 0, got {type(seed).__name__};"
            " generator objects of NumPy are refused because they are not cryptographic"
        ) from None
