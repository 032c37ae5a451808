"""What is asked of people who were held out: linear functions of a party's columns, few of them, of about one size.

Models of several l1 radii differ little, and so do their margins. In place of a party's columns, or of the margins of
all models, it is asked for functions that span these margins: by the singular vectors of the margins' covariance, each
over the root of its singular value. Rows of them are clipped to norm 1. The noise in a model's error then goes with its
margins' variance times a few, whatever the number of models, and not with the squared norm of whole rows; and each
model's margin is still exactly a sum of these functions.
"""

import math
from typing import NamedTuple

import numpy as np

from tacit._types import Floats
from tacit.federated.protocols import columns
from tacit.federated.protocols.base import Arrays, RefusedError
from tacit.federated.study import Study

_REACH = 2.5  # of a row, in deviations of what the training says of it
_CALM = 2.0**12  # rows times mu from which on it may be longer
_NONE = 1e-9  # singular values below this part of the largest are none
_LARGEST = 1e100  # of what is asked: squares stay finite


class Functions(NamedTuple):
    """Directions in a party's rows of norm 1, what is taken off, and by how much of each a wanted function is made."""

    directions: Floats
    offset: Floats
    parts: Floats

    @classmethod
    def spanning(
        cls, wanted: Floats, covariance: Floats, mean: Floats, unit: float, count: int, reach: float
    ) -> "Functions":
        """Of functions of columns (by their weights, side by side), less their means; `unit` is the norm of a row."""
        values, vectors = np.linalg.eigh(covariance)
        root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        _, sizes, rest = np.linalg.svd(root @ wanted, full_matrices=False)
        found, parts = np.zeros((len(wanted), count)), np.zeros((count, wanted.shape[1]))
        kept = int(np.sum(sizes > _NONE * sizes[0])) if len(sizes) else 0
        scales = np.sqrt(sizes[:kept])
        found[:, :kept], parts[:kept] = wanted @ rest[:kept].T / scales, scales[:, None] * rest[:kept]
        offset = mean @ found
        furthest = unit * float(np.linalg.norm(found, 2)) + float(np.linalg.norm(offset))
        longest = min(furthest, reach * math.sqrt(float(sizes[:kept].sum()))) or 1.0
        return cls(unit * found / longest, offset / longest, longest * parts)


def reach_of(study: Study) -> float:
    """What rows are clipped to, in their deviations: the clip is lifted where there is less noise."""
    if not study.budget.is_private:
        return math.inf
    return _REACH * max(1.0, math.sqrt(study.n_rows * study.budget.mu / _CALM))


def asked(arrays: Arrays, party: int, shape: tuple[int, int]) -> tuple[Floats, Floats]:
    """The directions and what is taken off, for a party by its number; another form is refused."""
    found = []
    for name, expected in ((f"directions {party}", shape), (f"offset {party}", shape[1:])):
        array = arrays.get(name)
        if (
            array is None
            or array.dtype != np.float64
            or array.shape != expected
            or not np.all(np.abs(array) <= _LARGEST)
        ):
            raise RefusedError(f"the array {name!r} must hold {expected} numbers of any model's size")
        found.append(array)
    return found[0], found[1]


def applied(rows: Floats, directions: Floats, offset: Floats) -> Floats:
    """The functions of rows, each row by itself."""
    return np.column_stack([columns.images(rows, way) - off for way, off in zip(directions.T, offset, strict=True)])
