"""Transcripts: every release of a run with what it was made of, and the same history played again to other data.

The privacy of a fit is that of its transcript, of which everything it returns is a function. On a given history one row
moves a release by a distance that can be computed, so two questions have exact answers: does any row move a release
further than its noise covers, and how likely is a transcript in each of two worlds? The likelihood ratio is the best
test there is between two worlds, which makes it the sharpest audit.
"""

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from unittest.mock import patch

import numpy as np

from tacit.privacy.mechanisms import GaussianMatrix, GaussianVector, selection
from tacit.privacy.plan import CalibratedPlan


@dataclass(frozen=True, eq=False)
class Step:
    """One release: the exact array and the noisy one; or, for a selection, the scores and the choice."""

    name: str
    exact: np.ndarray
    released: np.ndarray | int
    sensitivity: float  # the most that one row may move it, says the code; the spread of a selection's scores
    multiplier: float  # noise over sensitivity
    freedom: int = 0  # how many normals the noise is made of

    @property
    def is_selection(self):
        return self.freedom == 0

    @property
    def noise(self):
        return self.multiplier * self.sensitivity

    def moved(self, other):
        """How far the other world's row moves this release, as a part of what the code allows for."""
        assert (self.name, self.sensitivity, self.noise) == (other.name, other.sensitivity, other.noise)
        change = other.exact - self.exact
        return float(np.ptp(change) if self.is_selection else np.linalg.norm(change)) / self.sensitivity

    def evidence(self, other):
        """log of (likelihood here / likelihood in the other world) of what a Gaussian release gave."""
        here, there = (np.sum(np.square(self.released - world.exact)) for world in (self, other))
        return float(there - here) / (2 * self.noise**2)


@contextmanager
def transcript(history: list[Step] | None = None) -> Iterator[list[Step]]:
    """The releases made inside the block; given a history, its outputs are handed out in place of new ones."""
    steps: list[Step] = []
    pick = selection._pick

    def recorded(original):
        def release(self, meter, name, value):
            exact = np.array(value, dtype=np.float64)
            if isinstance(self, GaussianMatrix):
                exact = np.triu(exact) + np.triu(exact, 1).T
            if history is None:
                out = original(self, meter, name, value)
            else:
                meter.grant(name, self.kind)
                out = np.copy(history[len(steps)].released)
            freedom = len(exact) * (len(exact) + 1) // 2 if isinstance(self, GaussianMatrix) else exact.size
            sensitivity = self.sensitivity.under(meter.adjacency)
            steps.append(Step(name, exact, out.copy(), sensitivity, meter.multiplier(name), freedom))
            return out

        return release

    def recorded_pick(scores, spread, grant, prior=None):
        choice = pick(scores, spread, grant, prior) if history is None else history[len(steps)].released
        steps.append(Step("selection", np.array(scores), int(choice), spread, grant.multiplier))
        return choice

    with ExitStack() as stack:
        for kind in (GaussianVector, GaussianMatrix):
            stack.enter_context(patch.object(kind, "release", recorded(kind.release)))
        stack.enter_context(patch.object(selection, "_pick", recorded_pick))
        yield steps


def two_worlds(run, data, neighbour) -> list[tuple[Step, Step]]:
    """The releases of `run(data)`, each with what `run(neighbour)` would have made of the same history."""
    with transcript() as steps:
        run(data)
    with transcript(steps) as others:
        run(neighbour)
    return list(zip(steps, others, strict=True))


def mu_between(pairs: list[tuple[Step, Step]]) -> float:
    """What these two worlds give away on this history through Gaussian releases."""
    gaussian = [(step, step.moved(other)) for step, other in pairs if not step.is_selection]
    return math.hypot(*(part * step.sensitivity / step.noise for step, part in gaussian))


@contextmanager
def half_the_noise() -> Iterator[None]:
    """What a wrong constant would do."""
    honest = CalibratedPlan.multiplier
    with patch.object(CalibratedPlan, "multiplier", lambda plan, name: honest(plan, name) / 2):
        yield
