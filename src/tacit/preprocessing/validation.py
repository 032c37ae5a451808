"""scikit-learn's validation, with messages that do not quote the data.

An error may end up in a log. scikit-learn prints the table when it is complex or has one dimension, and NumPy prints
the string that is not a number; what is raised here keeps the kind of error and what to do about it.
"""

import math
import re
from typing import Any

from sklearn.utils.validation import validate_data

from tacit.privacy import checks

_QUOTED = re.compile(r"""(?<!dtype\()(['"]).*\1""")
_RESHAPE = (
    " Reshape your data either using array.reshape(-1, 1) if it has a single feature"
    " or array.reshape(1, -1) if it holds a single row."
)
LARGEST, SMALLEST = 1e100, 1e-100  # of a declared number: squares and quotients of such numbers stay finite


def validated(estimator: Any, *data: Any, **options: Any) -> Any:
    """`validate_data`; its errors without the data."""
    try:
        return validate_data(estimator, *data, **options)
    except (TypeError, ValueError, OverflowError) as error:
        told = type(error) if type(error) in (TypeError, ValueError) else ValueError
        message = without_data(str(error))
    # Outside the handler, so that the error that quotes the data is not this one's context.
    raise told(message)


def without_data(message: str) -> str:
    """The first line, without what it quotes: tables come on later lines, strings in quotes."""
    if message.startswith("The feature names"):  # names of columns are public
        return message
    first = _QUOTED.sub("'...'", message.partition("\n")[0])
    return first.rstrip(":.") + "." + _RESHAPE if "Reshape your data" in message else first


def declared_size(name: str, value: object) -> float:
    """A declared positive number that arithmetic can carry."""
    number = checks.positive(name, value)
    if not SMALLEST <= number <= LARGEST:
        raise ValueError(f"{name} must lie between {SMALLEST:g} and {LARGEST:g}, got {number!r}")
    return number


def inverse_strength(name: str, value: object) -> float:
    """scikit-learn's C: above 0, infinity for no penalty; returns 1 / C."""
    strength = checks.positive(name, value, finite=False)
    if strength < SMALLEST:
        raise ValueError(f"{name} must be at least {SMALLEST:g}, got {strength!r}")
    return 0.0 if math.isinf(strength) else 1.0 / strength


def penalty_strength(name: str, value: object) -> float:
    """scikit-learn's alpha: at least 0."""
    strength = checks.non_negative(name, value)
    if strength > LARGEST:
        raise ValueError(f"{name} must be at most {LARGEST:g}, got {strength!r}")
    return strength


def target_bounds(bounds: Any) -> tuple[float, float] | None:
    """`y_bounds` as a pair (low, high)."""
    if bounds is None:
        return None
    try:
        first, second = bounds
    except (TypeError, ValueError):
        raise ValueError(f"y_bounds must be a pair (low, high), got {bounds!r}") from None
    low, high = checks.real("y_bounds[0]", first), checks.real("y_bounds[1]", second)
    if not -LARGEST <= low < high <= LARGEST:
        raise ValueError(f"y_bounds must lie within {LARGEST:g} of zero with low < high, got {bounds!r}")
    return low, high
