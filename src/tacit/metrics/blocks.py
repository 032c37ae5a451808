"""What metrics ask of rows in parts: the sums of each block, added up.

Privacy. A row adds what it adds to the sums of a table in memory. The sums of a block are rounded once, and the sums of
all blocks once more: the two roundings that `tacit.metrics.release.BoundedSums` has room for.
"""

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from tacit.blocks.reading import UNLIKE, ChangedRowsError, Reading
from tacit.blocks.validate import types_of
from tacit.metrics.predictions import Predictions
from tacit.metrics.release import Asked


def questions_of(reading: Reading, model: Any, shares: Mapping[Any, float], epsilon: float) -> list[Asked]:
    """What is asked of all rows, by each metric with its share of epsilon: a pass that counts rows, and another."""
    counts = [one for part in reading.place.run(_count, reading.parts) for one in part]
    n, whole = sum(rows for rows, _ in counts), sum(shares.values())
    if n < 2:
        raise ValueError(f"blocks must hold at least two rows together, got {n}")
    if len({types for rows, types in counts if rows}) > 1:  # by which a model may take the rows of a table differently
        raise ValueError(UNLIKE)
    parts = {metric: epsilon * share / whole for metric, share in shares.items()}
    found = [one for part in reading.place.run(partial(_asked, model, parts, n), reading.parts) for one in part]
    if sum(rows for rows, _ in found) != n:
        raise ChangedRowsError("the rows have changed between two readings; nothing was spent")
    questions = []
    for place, share in enumerate(shares.values()):
        asked = [questions[place] for _, questions in found]
        columns = zip(*(one.sums.tolist() for one in asked), strict=True)
        questions.append(Asked(asked[0].query, np.array([math.fsum(column) for column in columns]), share))
    return questions


def _count(part: Any) -> list[tuple[int, tuple[Any, ...]]]:
    """For each table, how many rows it has, and the types of its columns; arrays have one that models bring to one."""
    return [(X.shape[0], types_of(X) if hasattr(X, "columns") else ()) for X, _ in part.tables()]


def _asked(model: Any, parts: Mapping[Any, float], n: int, part: Any) -> list[tuple[int, list[Asked]]]:
    """For each table, how many rows it has, and what is asked of them."""
    found = []
    for X, y in part.tables():
        if X.shape[0] == 0:
            continue
        if y is None:
            raise ValueError("blocks must be pairs (X, y), or name the column to predict with `target`")
        predictions = Predictions(model, X)
        given = [(*metric.of(predictions), share) for metric, share in parts.items()]
        found.append((X.shape[0], [metric.asked(y, predicted, share, n) for metric, predicted, share in given]))
    return found
