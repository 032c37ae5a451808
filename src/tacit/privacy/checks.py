"""Validation of public parameters, in one voice.

Every message names the parameter, the value it was given and what would be accepted. Only parameters
pass through here, never data: a message may be logged, and data may not.
"""

import math
from collections.abc import Sequence
from typing import Literal, get_args

Adjacency = Literal["add-remove", "replace-one"]

ADJACENCIES: tuple[Adjacency, ...] = get_args(Adjacency)


def real(name: str, value: object) -> float:
    """A number that is not NaN, as a float."""
    if isinstance(value, bool) or not hasattr(value, "__float__") or isinstance(value, str):
        raise TypeError(f"{name} must be a real number, got {value!r} of type {type(value).__name__}")
    number = float(value)
    if math.isnan(number):
        raise ValueError(f"{name} must be a number, got NaN")
    return number


def positive(name: str, value: object, *, finite: bool = True) -> float:
    """A number above zero; infinity only where `finite` is False."""
    number = real(name, value)
    if number <= 0:
        raise ValueError(f"{name} must be above 0, got {number!r}")
    if finite and math.isinf(number):
        raise ValueError(f"{name} must be finite, got {number!r}")
    return number


def non_negative(name: str, value: object) -> float:
    """A finite number, zero or above."""
    number = real(name, value)
    if number < 0 or math.isinf(number):
        raise ValueError(f"{name} must be finite and at least 0, got {number!r}")
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


def count(name: str, value: object, *, least: int = 1) -> int:
    """An integer of at least `least` (NumPy integers too, booleans not)."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be an integer, got {value!r} of type {type(value).__name__}")
    number = int(value.__index__())
    if number < least:
        raise ValueError(f"{name} must be at least {least}, got {number}")
    return number


def one_of(name: str, value: object, accepted: Sequence[str]) -> str:
    """One of a few words."""
    if not isinstance(value, str) or value not in accepted:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, accepted))}, got {value!r}")
    return value


def adjacency(value: object) -> Adjacency:
    """One of the two neighbour relations."""
    one_of("adjacency", value, ADJACENCIES)
    return "add-remove" if value == "add-remove" else "replace-one"
