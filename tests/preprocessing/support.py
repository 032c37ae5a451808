"""Transcripts: every release of a run, what it was made of, and how far the code says one row can move it.

A second run may be given the outputs of a first one, so that both see the same history and only the data differs: this
is what the sensitivity of an adaptive release is about.
"""

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from unittest.mock import patch

import numpy as np

from tacit.privacy import Budget, NoiseSource, Plan
from tacit.privacy.mechanisms import GaussianMatrix, GaussianVector


@dataclass(frozen=True, eq=False)
class Step:
    name: str
    value: np.ndarray  # before noise
    sensitivity: float  # under the meter's adjacency
    released: np.ndarray

    def distance(self, other):
        assert self.name == other.name
        assert self.sensitivity == other.sensitivity
        return float(np.linalg.norm(self.value - other.value))


@contextmanager
def transcript(replay=None):
    """The Gaussian releases made inside the block; with `replay`, those of an earlier block are given out again."""
    steps = []

    def recorded(original):
        def release(self, meter, name, value):
            exact = np.array(value, dtype=np.float64)
            if isinstance(self, GaussianMatrix):
                exact = np.triu(exact) + np.triu(exact, 1).T
            out = original(self, meter, name, value)
            if replay is not None:
                out = replay[len(steps)].released.copy()
            steps.append(Step(name, exact, self.sensitivity.under(meter.adjacency), out.copy()))
            return out

        return release

    with ExitStack() as stack:
        for kind in (GaussianVector, GaussianMatrix):
            stack.enter_context(patch.object(kind, "release", recorded(kind.release)))
        yield steps


def meter(releases, epsilon=1.0, adjacency="add-remove", seed=0, delta=1e-6):
    return Plan(*releases).calibrate(Budget(epsilon, delta, adjacency)).meter(NoiseSource(seed))


def spend(scale, data, epsilon=1.0, adjacency="add-remove", seed=0):
    """Run one of the scales on the whole of a budget; the meter checks that the plan was kept."""
    releases = scale.releases(1.0)
    with meter(releases, epsilon, adjacency, seed) as open_meter:
        return scale.run(open_meter, data)


def neighbours(run, one, other):
    """The steps of two runs that share a history, in pairs."""
    with transcript() as first:
        run(one)
    with transcript(replay=first) as second:
        run(other)
    return list(zip(first, second, strict=True))
