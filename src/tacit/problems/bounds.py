"""What columns are declared to lie between: the parameter `bounds`, checked, and as two arrays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit._types import Flags, Floats
from tacit.privacy import checks
from tacit.problems.declared import interval
from tacit.problems.penalty import SMALLEST

_TRUTHS = ("bool", "boolean")  # in the words of NumPy, pandas, Arrow and polars
_ACCEPTED = "a pair (low, high), one pair for each column, or a dict of columns and their pairs"


@dataclass(frozen=True, eq=False)
class Bounds:
    """What each column is declared to lie between; infinite for a column of which nothing is declared."""

    low: Floats
    high: Floats

    @classmethod
    def of(
        cls,
        bounds: Any,
        d: int,
        names: Sequence[str] | None = None,
        truths: Sequence[int] = (),
        *,
        sparse: bool = False,
    ) -> "Bounds | None":
        """From the parameter, for `d` columns with these names, if they have any; None where nothing is declared.

        Of the columns `truths` their type says that they lie between 0 and 1, unless the parameter says more. Bounds
        of `sparse` rows must hold 0.
        """
        pairs = declared_pairs(bounds)
        if isinstance(pairs, tuple):
            pairs = dict.fromkeys(range(d), pairs)
        elif isinstance(bounds, Mapping):
            pairs = _by_place(pairs or {}, d, names)
        elif bounds is not None and len(bounds) != d:
            raise ValueError(f"bounds must hold one pair for each of {d} columns, got {len(bounds)}")
        pairs = dict.fromkeys(truths, (0.0, 1.0)) | (pairs or {})
        low, high = np.full(d, -np.inf), np.full(d, np.inf)
        for place, pair in pairs.items():
            low[place], high[place] = pair
        if sparse and np.any((low > 0.0) | (high < 0.0)):
            raise ValueError("bounds of sparse rows must hold 0, which is what most of their entries are")
        return cls(low, high) if pairs else None

    @property
    def declared(self) -> Flags:
        """Which columns have bounds."""
        return np.isfinite(self.low)

    @property
    def are_whole(self) -> bool:
        """Whether all columns have bounds."""
        return bool(self.declared.all())

    @property
    def reach(self) -> Floats:
        """The largest size of a value of each column."""
        return np.maximum(np.abs(self.low), np.abs(self.high))

    @property
    def middle(self) -> Floats:
        """Half way between the bounds of each column; 0 where there are none."""
        low, high = np.where(self.declared, self.low, 0.0), np.where(self.declared, self.high, 0.0)
        return np.asarray(low + (high - low) / 2)

    @property
    def farthest(self) -> float:
        """The largest size of a value of any declared column."""
        return float(self.reach[self.declared].max())

    @property
    def entry(self) -> float | None:
        """B, if every column is declared to lie in (-B, B): a bound on all entries alike."""
        first = float(self.high[0])
        return first if np.all(self.high == first) and np.all(self.low == -first) else None


def truths(X: Any, *, trusted: Any) -> tuple[int, ...]:
    """The columns of a table that hold truth values by their type, where types are `trusted` to be declared."""
    check_trust(trusted)
    if not trusted or len(getattr(X, "shape", ())) != 2:
        return ()
    if hasattr(X, "dtypes"):
        return tuple(k for k, kind in enumerate(X.dtypes) if str(kind).partition("[")[0].lower() in _TRUTHS)
    return tuple(range(X.shape[1])) if getattr(X, "dtype", None) == np.bool_ else ()


def check_trust(trusted: Any) -> None:
    """Refuse a `trust_dtypes` that is no truth value."""
    if not isinstance(trusted, bool | np.bool_):
        raise TypeError(f"trust_dtypes must be True or False, got {checks.shown(trusted)}")


def declared_pairs(bounds: Any) -> "tuple[float, float] | dict[Any, tuple[float, float]] | None":
    """One pair for all columns, or pairs by the name or the number of a column; refuses what no table could have."""
    if bounds is None:
        return None
    if isinstance(bounds, Mapping):
        for key in bounds:
            if isinstance(key, bool) or not isinstance(key, str | int | np.integer):
                raise TypeError(f"bounds must name columns by texts or whole numbers, got {checks.shown(key)}")
        return {key: interval(f"bounds[{key!r}]", pair, SMALLEST) for key, pair in bounds.items()}
    if isinstance(bounds, str) or not hasattr(bounds, "__len__"):
        raise TypeError(f"bounds must be {_ACCEPTED}, got {checks.shown(bounds)}")
    if len(bounds) == 2 and not any(part is None or hasattr(part, "__len__") for part in bounds):
        return interval("bounds", bounds, SMALLEST)
    pairs = enumerate(bounds)
    return {place: interval(f"bounds[{place}]", pair, SMALLEST) for place, pair in pairs if pair is not None}


def _by_place(pairs: dict[Any, Any], d: int, names: Sequence[str] | None) -> dict[int, Any]:
    """Pairs by the number of a column; a column that is not there, or is named twice, is refused."""
    places = {name: place for place, name in enumerate(names if names is not None else ())}
    found: dict[int, Any] = {}
    for key, pair in pairs.items():
        if isinstance(key, str) and key not in places:
            told = "which X does not have" if places else "and X has no names: use the numbers of columns"
            raise ValueError(f"bounds names the column {key!r}, {told}")
        place = places[key] if isinstance(key, str) else int(key)
        if not 0 <= place < d:
            raise ValueError(f"bounds names the column {place}, and X has the columns 0 to {d - 1}")
        if place in found:
            raise ValueError(f"bounds names the column {key!r} twice, by its name and by its number")
        found[place] = pair
    return found
