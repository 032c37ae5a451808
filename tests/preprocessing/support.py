"""Transcripts: every release of a run, what it was made of, and how far the code says one row can move it.

A second run may be given the outputs of a first one, so that both see the same history and only the data differs: this
is what the sensitivity of an adaptive release is about.
"""

from contextlib import contextmanager
from dataclasses import dataclass
from unittest.mock import patch

import numpy as np

from tacit.privacy import Budget, Gate, NoiseSource, Plan
from tacit.privacy.mechanisms import GaussianMatrix, GaussianVector
from tests.units import ROWS


@dataclass(frozen=True, eq=False)
class Step:
    name: str
    value: np.ndarray  # before noise
    sensitivity: float  # under the gate's adjacency
    released: np.ndarray

    def distance(self, other):
        assert self.name == other.name
        assert self.sensitivity == other.sensitivity
        return float(np.linalg.norm(self.value - other.value))


@contextmanager
def transcript(replay=None):
    """The Gaussian releases made inside the block; with `replay`, those of an earlier block are given out again."""
    steps = []

    release = Gate.release

    def recorded(gate, name, mechanism, *values):
        if not isinstance(mechanism, GaussianVector | GaussianMatrix):
            return release(gate, name, mechanism, *values)
        exact = np.array(values[0], dtype=np.float64)
        if isinstance(mechanism, GaussianMatrix):
            exact = np.triu(exact) + np.triu(exact, 1).T
        out = release(gate, name, mechanism, *values)
        if replay is not None:
            out = replay[len(steps)].released.copy()
        steps.append(Step(name, exact, mechanism.sensitivity.under(gate.adjacency), out.copy()))
        return out

    with patch.object(Gate, "release", recorded):
        yield steps


def open_gate(releases, epsilon=1.0, adjacency="add-remove", seed=0, delta=1e-6):
    return Gate(Plan(*releases).calibrate(Budget(epsilon, delta, adjacency), ROWS, "test"), NoiseSource(seed))


def spend(scale, data, epsilon=1.0, adjacency="add-remove", seed=0):
    """Run one of the scales on the whole of a budget; the gate checks that the plan was kept."""
    releases = scale.releases(1.0)
    with open_gate(releases, epsilon, adjacency, seed) as gate:
        return scale.run(gate, data)


def neighbours(run, one, other):
    """The steps of two runs that share a history, in pairs."""
    with transcript() as first:
        run(one)
    with transcript(replay=first) as second:
        run(other)
    return list(zip(first, second, strict=True))
