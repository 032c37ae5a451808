"""Transcripts: every release of a run with what it was made of, and the same history played again to other data.

The privacy of a fit is that of its transcript, of which everything it returns is a function. On a given history one row
moves a release by a distance that can be computed, so two questions have exact answers: does any row move a release
further than its noise covers, and how likely is a transcript in each of two worlds? The likelihood ratio is the best
test there is between two worlds, which makes it the sharpest audit.

Sampled releases: two worlds see the same sample. The likelihood of a release is then that of a mixture over the coin of
the row that differs, which is row 0 here, given everybody else's coins.

Objective perturbation: what is released is the minimiser. The same history is the same minimiser, so the other world is
given the linear term that leads to it; how far apart the two searches stop is the distance that noise must cover.
"""

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import numpy as np

from tacit.privacy import Meter
from tacit.privacy.mechanisms import GaussianMatrix, GaussianVector, ObjectivePerturbation, Sensitivity, selection
from tacit.privacy.plan import CalibratedPlan
from tacit.solvers import objective


@dataclass(frozen=True, eq=False)
class Step:
    """One release: the exact array and the noisy one; or, for a selection, the scores and the choice."""

    name: str
    exact: np.ndarray
    released: np.ndarray | int
    sensitivity: float  # the most that one row may move it, says the code; the spread of a selection's scores
    multiplier: float  # noise over sensitivity
    freedom: int = 0  # how many normals the noise is made of
    kind: str = "gaussian"
    sampling: float = 1.0
    sample: np.ndarray | None = None
    problem: Any = None  # of objective perturbation, with the weights found

    @property
    def is_selection(self):
        return self.kind == "exponential"

    @property
    def noise(self):
        return self.multiplier * self.sensitivity

    def moved(self, other):
        """How far the other world's row moves this release, as a part of what the code allows for."""
        assert (self.name, self.sensitivity, self.noise) == (other.name, other.sensitivity, other.noise)
        change = other.exact - self.exact
        return float(np.ptp(change) if self.is_selection else np.linalg.norm(change)) / self.sensitivity

    def log_density(self, released):
        """Of a Gaussian release, but for a constant."""
        assert self.kind == "gaussian"
        return -float(np.sum(np.square(released - self.exact))) / (2 * self.noise**2)


@contextmanager
def transcript(history: list[Step] | None = None, coin: bool | None = None) -> Iterator[list[Step]]:
    """The releases made inside the block; given a history, its outputs are handed out in place of new ones.

    `coin` puts row 0 into every sample (True) or leaves it out (False).
    """
    steps: list[Step] = []
    samples: dict[str, np.ndarray] = {}
    pick, sample, draw = selection._pick, Meter.sample, ObjectivePerturbation.draw
    minimiser = objective._Problem.minimiser

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
            step = Step(name, exact, out.copy(), sensitivity, meter.multiplier(name), freedom)
            steps.append(replace(step, sampling=meter._releases[name].sampling, sample=samples.pop(name, None)))
            return out

        return release

    def recorded_pick(scores, spread, grant, prior=None):
        choice = pick(scores, spread, grant, prior) if history is None else history[len(steps)].released
        steps.append(Step("selection", np.array(scores), int(choice), spread, grant.multiplier, kind="exponential"))
        return choice

    def recorded_sample(meter, name, n):
        places = sample(meter, name, n)
        if history is not None:
            places = history[len(steps)].sample
        if coin is not None:
            places = np.concatenate([np.zeros(int(coin), dtype=np.int64), places[places != 0]])
        samples[name] = places
        return places

    def recorded_draw(self, meter, name, size):
        linear = draw(self, meter, name, size)
        sensitivity = Sensitivity.vector(self.gradient).under(meter.adjacency)
        steps.append(
            Step(name, np.zeros(size), linear, sensitivity, meter.multiplier(name), freedom=size, kind="objective")
        )
        return linear

    def recorded_minimiser(problem, tolerance):
        step = steps.pop()
        if history is not None:  # the linear term that leads to the weights of the history
            twin, w = history[len(steps)].problem
            problem._linear = np.zeros_like(w)
            problem._linear = twin.gradient(w) - problem.gradient(w)
        found = minimiser(problem, tolerance)
        at = found if history is None else w
        steps.append(replace(step, released=problem._linear, problem=(problem, at)))
        return found

    with ExitStack() as stack:
        for kind in (GaussianVector, GaussianMatrix):
            stack.enter_context(patch.object(kind, "release", recorded(kind.release)))
        stack.enter_context(patch.object(selection, "_pick", recorded_pick))
        stack.enter_context(patch.object(Meter, "sample", recorded_sample))
        stack.enter_context(patch.object(ObjectivePerturbation, "draw", recorded_draw))
        stack.enter_context(patch.object(objective._Problem, "minimiser", recorded_minimiser))
        yield steps


def two_worlds(run, data, neighbour) -> list[tuple[Step, Step]]:
    """The releases of `run(data)`, each with what `run(neighbour)` would have made of the same history.

    Row 0 takes part in every sample.
    """
    with transcript(coin=True) as steps:
        run(data)
    with transcript(steps) as others:
        run(neighbour)
    return list(zip(steps, others, strict=True))


def mu_between(pairs: list[tuple[Step, Step]]) -> float:
    """What these two worlds give away on this history through Gaussian releases of all rows."""
    gaussian = [(step, step.moved(other)) for step, other in pairs if step.kind == "gaussian" and step.sampling == 1.0]
    return math.hypot(*(part * step.sensitivity / step.noise for step, part in gaussian))


def log_likelihood(run, history: list[Step], data) -> float:
    """Of this history in the world of `data`, but for a constant; the coin of row 0 is integrated out."""
    with transcript(history, coin=True) as taken:
        run(data)
    left = taken
    if any(step.sampling < 1.0 for step in history):
        with transcript(history, coin=False) as left:
            run(data)
    total = 0.0
    for step, one, other in zip(history, taken, left, strict=True):
        density = one.log_density(step.released)
        if step.sampling < 1.0:
            without = math.log1p(-step.sampling) + other.log_density(step.released)
            density = np.logaddexp(without, math.log(step.sampling) + density)
        total += density
    return float(total)


def evidence(run, one, other):
    """A mechanism from either of the two to the log likelihood ratio of its transcript: the best test between them."""

    def mechanism(world):
        with transcript() as steps:
            run(world)
        return log_likelihood(run, steps, one) - log_likelihood(run, steps, other)

    return mechanism


def wrong_noise(steps: list[Step]) -> set[str]:
    """Names of the releases whose Gaussian noise is not what it should be, by a chi-square test, or missing."""
    wrong = set()
    for name in {step.name for step in steps if not step.is_selection}:
        named = [step for step in steps if step.name == name]
        squares = sum(np.sum(np.square(step.released - step.exact)) / step.noise**2 for step in named)
        freedom = sum(step.freedom for step in named)
        if abs(squares - freedom) > 5 * math.sqrt(2 * freedom) or any(np.any(s.released == s.exact) for s in named):
            wrong.add(name)
    return wrong


@contextmanager
def half_the_noise() -> Iterator[None]:
    """What a wrong constant would do."""
    honest = CalibratedPlan.multiplier
    with patch.object(CalibratedPlan, "multiplier", lambda plan, name: honest(plan, name) / 2):
        yield
