"""Every metric with its worst pairs of neighbours, and what it releases, seen from inside.

A world is a list of rows, of a true and a predicted value each. The number of rows is public and kept by the query, so
a row that is zeroed out is simply not in the list.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

from tacit.metrics import R2, Accuracy, LogLoss, MeanSquaredError, RocAuc
from tacit.metrics.release import Asked, Reading, released_scores
from tacit.metrics.terms import Agreed

LAWS = ("laplace", "gaussian")
ADJACENCIES = ("add-remove", "replace-one")
LAW_NORM = {"laplace": 1, "gaussian": 2}


def asked(metric, rows):
    """What is released for rows of a true and a predicted value."""
    return metric.asked(*map(np.array, zip(*rows, strict=True)), 1.0)


@dataclass(frozen=True)
class Case:
    """A metric, rows that both worlds share, one row, and the row that is furthest from it."""

    metric: object
    others: list
    row: tuple
    opposite: tuple

    @property
    def query(self):
        """Of a table of the others and the row."""
        return replace(asked(self.metric, self.others).query, n=len(self.others) + 1)

    def sums(self, rows):
        return asked(self.metric, rows).sums

    def worlds(self, adjacency):
        """The rows of two neighbours, as far apart as they can be."""
        without = self.others if adjacency == "add-remove" else [*self.others, self.opposite]
        return [*self.others, self.row], without


MIDDLING = [(0.0, 1.0), (2.0, 2.0)] * 10
CASES = {
    "accuracy": Case(Accuracy(), [(0, 0), (1, 0)] * 10, (1, 1), (0, 1)),
    "log_loss": Case(LogLoss(), [(1, 0.3), (0, 0.1)] * 10, (1, 0.0), (1, 1.0)),
    "roc_auc": Case(RocAuc(bins=2), [(0, 0.2), (1, 0.7)] * 10, (1, 0.9), (0, 0.1)),
    "mean_squared_error": Case(MeanSquaredError((-1.0, 3.0)), MIDDLING, (3.0, -1.0), (1.0, 1.0)),
    # Furthest apart in l1, and within a few parts in a thousand of it in l2.
    "r2": Case(R2((-1.0, 3.0)), MIDDLING, (3.0, -1.0), (0.5, 0.5)),
}
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
every_law = pytest.mark.parametrize("law", LAWS)
every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)


class Seen:
    """A query that keeps the noisy sums it is given."""

    def __init__(self, query):
        self.query = query

    def __getattr__(self, name):
        return getattr(self.query, name)

    def scores(self, sums, deviation):
        self.noisy, self.deviation = sums, deviation
        return {"seen": Reading(math.nan, math.inf)}


def noisy_sums(query, sums, *, epsilon, law, adjacency="add-remove", delta=1e-6, seed=0):
    """What the room releases for these exact sums, and the guarantee that goes with it."""
    seen = Seen(query)
    scores = released_scores([Asked(seen, sums)], Agreed(epsilon, delta, adjacency, law, seed))
    return seen.noisy, seen.deviation, scores["seen"].guarantee
