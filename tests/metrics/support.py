"""Every query of the room with its worst pairs of neighbours, and what it releases, seen from inside.

A world is a list of rows: the number of rows is public and kept by the query, so a row that is zeroed out is simply
not in the list.
"""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from tacit.metrics.classification import Accuracy, LogLoss
from tacit.metrics.ranking import RocAuc
from tacit.metrics.regression import SquaredErrors
from tacit.metrics.release import Question, Reading, Terms, released_scores

LAWS = ("laplace", "gaussian")
ADJACENCIES = ("add-remove", "replace-one")
LAW_NORM = {"laplace": 1, "gaussian": 2}


@dataclass(frozen=True)
class Case:
    """A query, rows that both worlds share, one row, and the row that is furthest from it."""

    query: object
    others: list
    row: tuple
    opposite: tuple

    def sums(self, rows):
        columns = [np.array(column) for column in zip(*rows, strict=True)]
        return self.query.sums(*columns)

    def worlds(self, adjacency):
        """The rows of two neighbours, as far apart as they can be."""
        without = self.others if adjacency == "add-remove" else [*self.others, self.opposite]
        return [*self.others, self.row], without


N = 40
MIDDLING = [(0.0, 1.0), (2.0, 2.0)] * 10
CASES = {
    "accuracy": Case(Accuracy(N), [(0, 0), (1, 0)] * 10, (1, 1), (0, 1)),
    "log_loss": Case(LogLoss(N, 0.01), [(0.3,), (0.9,)] * 10, (0.0,), (1.0,)),
    "roc_auc": Case(RocAuc(N, (0.5,)), [(False, 0.2), (True, 0.7)] * 10, (True, 0.9), (False, 0.1)),
    "mean_squared_error": Case(SquaredErrors(N, -1.0, 3.0, r2=False), MIDDLING, (3.0, -1.0), (1.0, 1.0)),
    # Furthest apart in l1, and within a few parts in a thousand of it in l2.
    "r2": Case(SquaredErrors(N, -1.0, 3.0, r2=True), MIDDLING, (3.0, -1.0), (0.5, 0.5)),
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
    scores = released_scores([Question(seen, sums)], Terms(epsilon, delta, adjacency, law, seed))
    return seen.noisy, seen.deviation, scores["seen"].guarantee
