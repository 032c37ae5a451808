"""Checks on the parameters of a problem: a message names the parameter, its value and what would be accepted.

Only parameters come here. A message may end up in a log, so nothing in this room quotes data.
"""

import math


def real(name: str, value: object) -> float:
    """Return `value` as a float; refuse what is not a number, and NaN."""
    if isinstance(value, bool | str) or not hasattr(value, "__float__"):
        raise TypeError(f"{name} must be a real number, got {value!r}")
    number = float(value)
    if math.isnan(number):
        raise ValueError(f"{name} must be a real number, got nan")
    return number


def positive(name: str, value: object) -> float:
    """Return `value` as a float if it is finite and above zero."""
    number = real(name, value)
    if not 0.0 < number < math.inf:
        raise ValueError(f"{name} must be a finite number above 0, got {number}")
    return number


def non_negative(name: str, value: object) -> float:
    """Return `value` as a float if it is finite and at least zero."""
    number = real(name, value)
    if not 0.0 <= number < math.inf:
        raise ValueError(f"{name} must be a finite number of at least 0, got {number}")
    return number


def fraction(name: str, value: object) -> float:
    """Return `value` as a float if it lies in [0, 1]."""
    number = real(name, value)
    if not 0.0 <= number <= 1.0:
        raise ValueError(f"{name} must lie between 0 and 1, both included, got {number}")
    return number


def at_least_two(name: str, value: object) -> int:
    """Return `value` as an int if it is an integer above one."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    number = int(value.__index__())
    if number < 2:
        raise ValueError(f"{name} must be an integer of at least 2, got {number}")
    return number
