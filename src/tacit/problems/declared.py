"""What a user declares, checked: sizes, strengths, bounds. Messages name the parameter and what would be accepted."""

import math
from collections.abc import Mapping, Set
from typing import Any, Literal

import numpy as np

from tacit._types import Floats
from tacit.privacy import checks
from tacit.problems.penalty import LARGEST, SMALLEST

AVERAGING = ("last", "tail", "periodic")


def declared_size(name: str, value: object) -> float:
    """A declared positive number that arithmetic can carry."""
    number = checks.positive(name, value)
    if not SMALLEST <= number <= LARGEST:
        raise ValueError(f"{name} must lie between {SMALLEST:g} and {LARGEST:g}, got {number!r}")
    return number


def class_weights(value: Any, classes: Any = None) -> tuple[float, ...] | Literal["balanced"] | None:
    """`class_weight`: None, "balanced", or {label: weight}; a class that is not named weighs 1, as in scikit-learn.

    With the labels of all classes, the weight of each.
    """
    if value is None or (isinstance(value, str) and value == "balanced"):
        return "balanced" if value is not None else None
    if not isinstance(value, Mapping) or not value:
        raise ValueError(f'class_weight must be None, "balanced" or a dict of weights, got {_described(value)}')
    for label, weight in value.items():
        declared_size(f"class_weight[{label!r}]", weight)
    if classes is None:
        return ()
    labels = np.asarray(classes).tolist()
    strange = [label for label in value if label not in labels]
    if strange:
        raise ValueError(f"class_weight has a weight for {strange[0]!r}, which is none of the classes")
    return tuple(float(value.get(label, 1.0)) for label in labels)


def inverse_strength(name: str, value: Any, d: int | None = None) -> Floats | float:
    """scikit-learn's C: above 0, infinity for no penalty; one for all, or one for each of `d` features. Is 1 / C."""
    single = _is_single(value)
    strength: Floats | float = checks.positive(name, value, finite=False) if single else per_feature(name, value, d)
    if not np.all(np.greater_equal(strength, SMALLEST)):
        raise ValueError(f"{name} must be at least {SMALLEST:g}, got {_described(value)}")
    return 1.0 / strength


def penalty_strength(name: str, value: Any, d: int | None = None) -> Floats | float:
    """scikit-learn's alpha: at least 0; one for all, or one for each of `d` features."""
    strength = checks.non_negative(name, value) if _is_single(value) else per_feature(name, value, d)
    if not (np.all(np.greater_equal(strength, 0.0)) and np.all(np.less_equal(strength, LARGEST))):
        raise ValueError(f"{name} must lie between 0 and {LARGEST:g}, got {_described(value)}")
    return strength


def interval(name: str, bounds: Any, least: float = 0.0) -> tuple[float, float]:
    """Bounds (low, high) of numbers such as a target, with `least` between them."""
    first, second = _pair(name, bounds)
    low, high = checks.real(f"{name}[0]", first), checks.real(f"{name}[1]", second)
    if not -LARGEST <= low < high <= LARGEST or high - low < least:
        apart = f"{least:g} apart or more, " if least else ""
        raise ValueError(f"{name} must lie within {LARGEST:g} of zero with low < high, {apart}got {bounds!r}")
    return low, high


def coefficient_bounds(bounds: Any, d: int | None = None) -> tuple[Floats | float, Floats | float] | None:
    """`coef_bounds` as a pair (low, high); None where no coefficient is bounded.

    Each side is a number, None or an array with one number for each of `d` features, as far as `d` is known.
    """
    if bounds is None:
        return None
    first, second = _pair("coef_bounds", bounds)
    low, high = _side("coef_bounds[0]", first, -math.inf, d), _side("coef_bounds[1]", second, math.inf, d)
    if np.size(low) != np.size(high) and min(np.ndim(low), np.ndim(high)) == 1:
        raise ValueError(
            f"coef_bounds must hold as many lower as upper bounds, got {np.size(low)} and {np.size(high)} numbers"
        )
    crossed = np.flatnonzero(np.greater(low, high))
    if len(crossed):
        where = "" if max(np.ndim(low), np.ndim(high)) == 0 else f" for feature {crossed[0]}"
        raise ValueError(f"coef_bounds must be a pair with low <= high, got low > high{where}")
    return None if np.all(np.isinf(low) & np.isinf(high)) else (low, high)


def _pair(name: str, bounds: Any) -> tuple[Any, Any]:
    try:
        if isinstance(bounds, Mapping | Set):
            raise TypeError("it has no order")
        low, high = bounds
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a pair (low, high), got {_described(bounds)}") from None
    return low, high


def _side(name: str, value: Any, none: float, d: int | None) -> Floats | float:
    """One side of `coef_bounds`; `none` is the infinity that bounds nothing."""
    if value is None:
        return none
    numbers = checks.real(name, value) if _is_single(value) else per_feature(name, value, d)
    if not np.all((np.abs(numbers) <= LARGEST) | np.equal(numbers, none)):
        raise ValueError(
            f"{name} must hold numbers within {LARGEST:g} of zero, or None or {none} for no bound, got"
            f" {_described(value)}"
        )
    return numbers


def smoothness_constants(value: Any, d: int | None = None) -> str | tuple[float, ...]:
    """`smoothness`: "private" or "laplace", or one positive number for each feature."""
    if isinstance(value, str) or _is_single(value):
        if not (isinstance(value, str) and value in ("private", "laplace")):
            raise ValueError(
                "smoothness must be 'private', 'laplace' or an array with one positive number for each feature, got"
                f" {value!r}"
            )
        return value
    numbers = per_feature("smoothness", value, d)
    if not np.all((numbers >= SMALLEST) & (numbers <= LARGEST)):
        raise ValueError(
            f"smoothness must hold positive numbers between {SMALLEST:g} and {LARGEST:g}, got {_described(value)}"
        )
    return tuple(numbers.tolist())


def initial_coef(value: Any, d: int | None = None) -> Floats | None:
    """`coef_init`: None, or one finite number for each feature."""
    if value is None:
        return None
    numbers = per_feature("coef_init", value, d)
    if not np.all(np.abs(numbers) <= LARGEST):
        raise ValueError(f"coef_init must hold numbers within {LARGEST:g} of zero, got {_described(value)}")
    return numbers


def initial_intercept(value: Any) -> float | None:
    """`intercept_init`: None, or a finite number."""
    if value is None:
        return None
    number = checks.real("intercept_init", value)
    if not abs(number) <= LARGEST:
        raise ValueError(f"intercept_init must lie within {LARGEST:g} of zero, got {number!r}")
    return number


def per_feature(name: str, value: Any, d: int | None = None) -> Floats:
    """An array of real numbers, one for each of `d` features; a copy."""
    try:
        array = np.asarray(value)
    except ValueError:  # rows of several lengths
        array = np.empty(0, dtype=object)
    if array.ndim != 1 or array.dtype.kind not in "fiu":
        raise ValueError(f"{name} must be an array with one real number for each feature, got {_described(value)}")
    if d is not None and len(array) != d:
        raise ValueError(f"{name} must hold one number for each of {d} features, got {len(array)}")
    numbers = array.astype(np.float64)
    if np.any(np.isnan(numbers)):
        raise ValueError(f"{name} must hold numbers, got NaN")
    return numbers


def averaging_rule(value: Any) -> str | int | None:
    """`averaging`: None for the solver's own, a word, or a number of outer loops."""
    if value is None or (isinstance(value, str) and value in AVERAGING):
        return value
    if isinstance(value, str):
        words = ", ".join(map(repr, AVERAGING))
        raise ValueError(f"averaging must be None, an integer of at least 1 or one of {words}, got {value!r}")
    return checks.count("averaging", value)


def _is_single(value: Any) -> bool:
    """Whether it is one thing and no list of things."""
    return isinstance(value, str) or not hasattr(value, "__len__") or (isinstance(value, np.ndarray) and not value.ndim)


def _described(value: Any) -> str:
    """A parameter as an error shows it: arrays by their shape, which may be long."""
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and type {value.dtype}"
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


def truth(name: str, value: Any) -> bool:
    """An option that is on or off."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {_described(value)}")
    return bool(value)
