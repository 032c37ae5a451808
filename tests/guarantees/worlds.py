"""What two worlds that share a history tell apart, and whether noise is what it should be."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np

from tacit.privacy import Promise, gate

from .recorder import transcript
from .steps import Step


def two_worlds(run, data, neighbour, row=0) -> list[tuple[Step, Step]]:
    """The releases of `run(data)`, each with what `run(neighbour)` would have made of the same history.

    The row that differs takes part in every sample.
    """
    with transcript(coin=True, row=row) as steps:
        run(data)
    with transcript(steps) as others:
        run(neighbour)
    return list(zip(steps, others, strict=True))


def mu_between(pairs: list[tuple[Step, Step]]) -> float:
    """What these two worlds give away on this history through Gaussian releases of all rows, and selections.

    A selection whose log-weights move by a range e is e^2 / 8-zCDP, as a Gaussian release with mu = e / 2 is.
    """
    parts = []
    for step, other in pairs:
        if step.sampling == 1.0 and step.kind in ("gaussian", "exponential"):
            parts.append(step.moved(other) / step.multiplier / (2.0 if step.is_selection else 1.0))
    return math.hypot(*parts)


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
    """Names of the releases whose noise is not what it should be, or missing.

    Gaussian noise by a chi-square test, Laplace noise by its mean size; selections by the mean log-weight of what was
    drawn.
    """
    wrong = set()
    for name in {step.name for step in steps}:
        named = [step for step in steps if step.name == name]
        if named[0].is_selection:
            away, spread = choices(named)
        elif named[0].kind == "laplace":  # sizes over the scale are exponential, of mean and deviation 1
            sizes = sum(np.sum(np.abs(step.released - step.exact)) / step.noise for step in named)
            freedom = sum(step.freedom for step in named)
            away, spread = sizes - freedom, math.sqrt(freedom)
        else:
            squares = sum(np.sum(np.square(step.released - step.exact)) / step.noise**2 for step in named)
            freedom = sum(step.freedom for step in named)
            away, spread = squares - freedom, math.sqrt(2 * freedom)
        if abs(away) > 5 * spread or any(np.any(s.released == s.exact) for s in named if not s.is_selection):
            wrong.add(name)
    return wrong


def choices(steps: list[Step]) -> tuple[float, float]:
    """By how much the log-weights of what was drawn differ from what is expected, and the standard deviation of it."""
    away, variance = 0.0, 0.0
    for step in steps:
        weights = step.log_weights - step.log_weights.max()
        chances = np.exp(weights) / np.exp(weights).sum()
        away += weights[step.released] - chances @ weights
        variance += chances @ np.square(weights - chances @ weights)
    return away, math.sqrt(variance)


@contextmanager
def half_the_noise() -> Iterator[None]:
    """What a wrong constant would do."""
    honest = Promise.multiplier
    with patch.object(Promise, "multiplier", lambda promise, name: honest(promise, name) / 2):
        yield


@contextmanager
def half_of_every_grant() -> Iterator[None]:
    """Half the noise, where the guarantee and the solver are told of all of it."""

    class Halved(gate.Grant):
        def __init__(self, *given):
            super().__init__(*given)
            self.multiplier /= 2

    with patch.object(gate, "Grant", Halved):
        yield
