"""An encoder as transformers of scikit-learn, which learn nothing from the made-up row that they are fitted on.

scikit-learn has no column of zeros, and two kinds of missing text, which are one here. Categories that no table has
stand for both: texts that begin with the character of code 0, which are never found here either.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from tacit.preprocessing.coding import Coded, size_of

Part = tuple[str, Any, list[int]]
_MISSING = "\0missing"


def plain_encoder(columns: Sequence[Coded], names: Sequence[str] | None) -> ColumnTransformer:
    """The same output columns, of a frame with these names, or of an array."""
    parts = [part for place, column in enumerate(columns) for part in _parts(place, column)]
    if all(step == "drop" for _, step, _ in parts):
        raise TypeError("no column has a category, and scikit-learn makes no table without columns")
    return ColumnTransformer(parts, sparse_threshold=0.0, verbose_feature_names_out=False).fit(_row(columns, names))


def _row(columns: Sequence[Coded], names: Sequence[str] | None) -> Any:
    """A row of the types that columns have."""
    cells = ["" if column.is_text else 0.0 for column in columns]
    if names is None:
        return np.array([cells], dtype=object if "" in cells else np.float64)
    from pandas import DataFrame

    return DataFrame({name: [cell] for name, cell in zip(names, cells, strict=True)})


def _parts(place: int, column: Coded) -> list[Part]:
    """The transformers of one input column, in the order of its output columns."""
    name = f"column {place}"
    if column.categories is not None:
        return [(name, _one_hot(column), [place])]
    if column.empty or (column.parsed and column.indicator):
        raise TypeError(
            f"column {column.name!r} is text of which a vote made a number, with columns of zeros or an indicator of"
            " cells that are none, which scikit-learn cannot make alike: give the column its type before the fit"
        )
    number: Part = (name, "passthrough", [place])
    indicator: Part = (f"{name} is missing", MissingIndicator(features="all"), [place])
    return [number, indicator] if column.indicator else [number]


def _one_hot(column: Coded) -> Any:
    """One output column for each category, of zeros for what was planned and not found, and perhaps an indicator."""
    if column.indicator and column.parsed:
        raise TypeError(
            f"column {column.name!r} is text by a vote, with an indicator that also says that a cell is a number:"
            " scikit-learn cannot tell these. Give the column its type before the fit"
        )
    values = list(column.categories or ()) if column.is_text else [size_of(text) for text in column.categories or ()]
    if math.inf in values:
        raise TypeError(f"column {column.name!r} holds numbers, and a declared category of it is none")
    zeros = [f"\0{k}" for k in range(column.spare + column.empty)]
    missing = [_MISSING if column.is_text else np.nan] if column.indicator else []
    values = [*zeros[: column.spare], *values, *zeros[column.spare :], *missing]
    if not values:
        return "drop"
    listed = np.array(values, dtype=object if column.is_text else np.float64)
    coded = OneHotEncoder(categories=[listed], handle_unknown="ignore", sparse_output=False)
    if not column.is_text or not column.indicator:
        return coded
    told: dict[str, Any] = {"strategy": "constant", "fill_value": _MISSING, "keep_empty_features": True}
    return make_pipeline(*(SimpleImputer(missing_values=value, **told) for value in (np.nan, None)), coded)
