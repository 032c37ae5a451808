"""What a fitted federated model says of rows, before classes are made of it."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tacit._types import Floats
from tacit.federated.party import table
from tacit.federated.protocols import columns, prepared


def margins_of(model: Any, X: Any) -> Floats:
    """The linear function of clipped rows, or one for each of more than two classes.

    From one block per party or from all columns in one table; where columns go by name, from data frames.
    """
    check_is_fitted(model)
    blocks = _tables(model, X) if hasattr(model, "units_") else _blocks(model, X)
    total = _start(model)
    for place, (block, (name, coef)) in enumerate(zip(blocks, model.coefs_.items(), strict=True)):
        limits = model.entry_bounds_[name], model.row_norms_[name]
        if hasattr(model, "units_"):
            own = prepared.margins(model.units_[name], block, coef, model.features_[name], limits)
        else:
            own = columns.margins(block, coef, model.features_[name], *limits)
        if place and len(own) != len(total):
            raise ValueError("the tables of X must have the same rows")
        total = total + own
    return total


def _start(model: Any) -> Any:
    """The intercept, or those of more than two classes."""
    found = np.ravel(model.intercept_)
    return found if len(found) > 1 else float(found[0])


def _blocks(model: Any, X: Any) -> list[Any]:
    """Each party's columns of X, with as many rows."""
    sizes = [coef.shape[-1] for coef in model.coefs_.values()]
    if isinstance(X, list | tuple) and all(len(getattr(block, "shape", ())) == 2 for block in X):
        blocks = [table(block) for block in X]
        if [block.shape[1] for block in blocks] != sizes:
            raise ValueError(f"X must have one block for each party, with {sizes} columns")
    else:
        whole = table(X)
        if whole.shape[1] != model.n_features_in_:
            raise ValueError(f"X has {whole.shape[1]} columns, and the model has {model.n_features_in_}")
        ends = np.cumsum(sizes)
        blocks = [whole[:, end - size : end] for end, size in zip(ends, sizes, strict=True)]
    if len({block.shape[0] for block in blocks}) > 1:
        raise ValueError("the blocks of X must have the same rows")
    return blocks


def _tables(model: Any, X: Any) -> list[Any]:
    """A data frame for each party, or for all of them one with all columns."""
    tables = list(X) if isinstance(X, list | tuple) else [X] * len(model.coefs_)
    if len(tables) != len(model.coefs_):
        raise ValueError(f"X must be one data frame, or one for each of {len(model.coefs_)} parties")
    return tables
