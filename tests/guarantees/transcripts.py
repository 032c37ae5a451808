"""Transcripts: every release of a run with what it was made of, and the same history played again to other data.

The privacy of a fit is that of its transcript, of which everything it returns is a function. On a given history one row
moves a release by a distance that can be computed, so two questions have exact answers: does any row move a release
further than its noise covers, and how likely is a transcript in each of two worlds? The likelihood ratio is the best
test there is between two worlds, which makes it the sharpest audit.

A row that is absent is not in the table; the number of rows stays as declared. Samples, orders of rows and the secret
state of rows are kept for all declared rows, and a world without one is handed those of the rows it has (`Missing`).

What is public about a release (its name, the shape of its array, its sensitivity, the grid of its noise) must be the
same in both worlds; `Step.moved` refuses to compare releases that differ in it.

Sampled releases: two worlds see the same sample. The likelihood of a release is then that of a mixture over the coin of
the row that differs, which is row 0 here, given everybody else's coins.

Sequences: a walk computes its values one after the other. The other world's walk is asked for each value without noise,
on a copy, and then given the noise that leads to the value of the history; a walk that hands its values to the tape
gets those of the history from there. Public choices of the run, such as an order of coordinates, are part of the
history. Steps on samples that a solver makes at once are made one at a time here, and led in the same way.

Objective perturbation: what is released is the minimiser. The same history is the same minimiser, so the other world is
given the linear term that leads to it; how far apart the two searches stop is the distance that noise must cover.
"""

import copy
import inspect
import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import numpy as np

from tacit.privacy import Meter
from tacit.privacy.mechanisms import (
    Batches,
    GaussianMatrix,
    GaussianSequence,
    GaussianVector,
    LaplaceVector,
    ObjectivePerturbation,
    SampledSteps,
    Sensitivity,
    Tape,
    Vertices,
    selection,
)
from tacit.privacy.mechanisms.affine import AffineBucketSampler
from tacit.privacy.mechanisms.packed import PackedGaussianMatrix
from tacit.privacy.noise.affine import write_scores
from tacit.privacy.noise.grid import Grid
from tacit.privacy.plan import CalibratedPlan
from tacit.solvers import dual, objective
from tacit.solvers.columns import Columns

NAT = 2.0**32 / math.log(2.0)  # units in which vertices are scored


class LeakError(AssertionError):
    """Something public about a release depends on the data."""


@dataclass(frozen=True)
class Missing:
    """A row of the n declared ones that is not in the table: later rows stand one place further up there."""

    row: int
    n: int

    def places(self, declared):
        """Where these rows are in the table, without the missing one."""
        there = declared[declared != self.row]
        return there - (there > self.row)

    def order(self, declared):
        """An order of all rows; the missing one has the place after the last row of the table."""
        return np.where(declared == self.row, self.n - 1, declared - (declared > self.row))

    def state(self, declared):
        """A line for every row; that of the missing one comes last, where no row of the table stands."""
        return np.concatenate([np.delete(declared, self.row, axis=0), declared[self.row : self.row + 1]])


@dataclass(frozen=True, eq=False)
class Step:
    """One release: the exact array and the noisy one (a walk's values); for a selection, the scores and the choice."""

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
    tape: Tape | Batches | None = None  # of a sequence, or of a step on a sample
    prior: np.ndarray | float = 0.0  # public log-weights of a selection
    choices: tuple[np.ndarray, ...] = ()  # made before this release without data: orders, draws, state of rows
    grids: tuple[Grid, ...] = ()  # that noise was added on
    curvature: float = 0.0  # of a row, says the code; of objective perturbation

    @property
    def is_selection(self):
        return self.kind == "exponential"

    @property
    def noise(self):
        return self.multiplier * self.sensitivity

    @property
    def log_weights(self):
        """Of the candidates of a selection."""
        return self.exact / self.noise + self.prior

    @property
    def public(self):
        """What must be the same in two worlds that share a history: a size, a grid or a scale can tell of a row too."""
        facts = self.name, self.kind, np.shape(self.exact), self.sampling, self.sensitivity, self.multiplier
        return *facts, self.grids, self.curvature, np.asarray(self.prior).tobytes()

    def require_alike(self, other):
        """Raise where something public differs."""
        if self.public != other.public:
            raise LeakError(f"{self.name!r} is not made alike in two worlds: {self.public} and {other.public}")

    def moved(self, other):
        """How far the other world's row moves this release, as a part of what the code allows for."""
        self.require_alike(other)
        change = other.exact - self.exact
        if self.is_selection:
            return float(np.ptp(change)) / self.sensitivity
        if self.kind == "objective":  # the linear terms that lead to the same weights
            change = other.released - self.released
        return float(np.linalg.norm(change.ravel(), 1 if self.kind == "laplace" else 2)) / self.sensitivity

    def curved(self, other):
        """The same for the curvature that objective perturbation is told of: of the row that only one world has."""
        problem, w = self.problem
        twin, _ = other.problem

        def row(at):  # the gradient of that row's loss: all else cancels, but for linear terms
            return twin.gradient(at) - problem.gradient(at)

        there = row(w) - (other.released - self.released)
        length = float(np.linalg.norm(there))
        if length == 0.0:
            return 0.0
        step = 1e-4
        return float(np.linalg.norm(row(w + step * there / length) - row(w))) / step / self.curvature

    def log_density(self, released):
        """Of a Gaussian release, but for a constant; of a choice."""
        if self.is_selection:
            weights = self.log_weights
            return -math.log(np.exp(weights - weights[released]).sum())
        assert self.kind == "gaussian"
        return -float(np.sum(np.square(released - self.exact))) / (2 * self.noise**2)


@contextmanager
def transcript(
    history: list[Step] | None = None,
    coin: bool | None = None,
    row: int = 0,
    missing: Missing | None = None,
    thin: bool = False,
) -> Iterator[list[Step]]:
    """The releases made inside the block; given a history, its outputs are handed out in place of new ones.

    `coin` puts a row into every sample (True) or leaves it out (False). `missing` names the row that the table of this
    world is without. `thin` leaves every other row of the history's samples out.
    """
    steps: list[Step] = []
    grids: list[Grid] = []  # since the last release
    samples: dict[str, np.ndarray] = {}
    choices: list[np.ndarray] = []  # public ones, since the last release
    asked: list[Any] = []  # name and multiplier of the selection being made
    pick, sample, draw = selection._pick, Meter.samples, ObjectivePerturbation.draw
    minimiser, walked, stepped = objective._Problem.minimiser, GaussianSequence.release, SampledSteps.release
    drawn, packed_release, for_noise = Vertices.release, PackedGaussianMatrix.release, Grid.for_noise

    def add(step):
        step = replace(step, choices=tuple(choices), grids=tuple(grids))
        if history is not None:
            history[len(steps)].require_alike(step)
        steps.append(step)
        choices.clear()
        grids.clear()

    def recorded_grid(*given, **named):
        grids.append(for_noise(*given, **named))
        return grids[-1]

    def recorded(original):
        def release(self, meter, name, value):
            exact = np.array(value, dtype=np.float64)
            if isinstance(self, GaussianMatrix):
                exact = np.triu(exact) + np.triu(exact, 1).T
            out = original(self, meter, name, value)
            if history is not None:
                out = np.copy(history[len(steps)].released)
            freedom = len(exact) * (len(exact) + 1) // 2 if isinstance(self, GaussianMatrix) else exact.size
            sensitivity = self.sensitivity.under(meter.adjacency)
            step = Step(name, exact, out.copy(), sensitivity, meter.multiplier(name), freedom, kind=self.kind)
            add(replace(step, sampling=meter._releases[name].sampling, sample=samples.pop(name, None)))
            return out

        return release

    def recorded_packed(self, meter, name, packed, d):
        """In the coordinates that noise is isotropic in."""
        weights = np.where(np.equal(*np.triu_indices(d)), 1.0, math.sqrt(2.0) if self.isotropic else 1.0)
        exact = packed * weights
        out = packed_release(self, meter, name, packed, d)
        if history is not None:
            out[:] = history[len(steps)].released / weights
        sensitivity = self.sensitivity.under(meter.adjacency)
        add(Step(name, exact, out * weights, sensitivity, meter.multiplier(name), freedom=exact.size))
        return out

    def recorded_walk(self, meter, name, size, walk):
        tapes = []

        def noted(tape):
            tapes.append(tape)
            return walk(tape) if history is None else np.empty(0)

        out = walked(self, meter, name, size, noted)
        if history is None:
            exact = out - tapes[0].noise * tapes[0].step
        else:
            tapes[0] = history[len(steps)].tape
            out, exact = walk_again(walk, tapes[0], history[len(steps)].released)
        assert len(out) == size
        sensitivity = self.sensitivity.under(meter.adjacency)
        add(Step(name, exact, out.copy(), sensitivity, meter.multiplier(name), freedom=size, tape=tapes[0]))
        return out

    def recorded_steps(self, meter, name, n, size, count, walk):
        return np.concatenate([recorded_step(self, meter, name, n, size, walk) for _ in range(count)])

    def recorded_step(self, meter, name, n, size, walk):
        tapes = []

        def noted(batches):
            tapes.append(batches)
            return walk(batches) if history is None else np.empty(0)

        out = stepped(self, meter, name, n, size, 1, noted)
        if history is None:
            exact = out - tapes[0].noise * tapes[0].step
        else:
            tapes[0] = replace(history[len(steps)].tape, rows=tapes[0].rows, starts=tapes[0].starts)
            out, exact = step_again(walk, tapes[0], history[len(steps)].released)
        sensitivity = self.sensitivity.under(meter.adjacency)
        step = Step(name, exact, out.copy(), sensitivity, meter.multiplier(name), freedom=size, tape=tapes[0])
        add(replace(step, sampling=meter._releases[name].sampling, sample=samples.pop(name)))
        return out

    def recorded_choice(original, handed_out):
        def choose(meter, *sizes):
            made = original(meter, *sizes)
            if history is not None:
                made = history[len(steps)].choices[len(choices)]
            choices.append(made)
            return handed_out(made) if missing is not None and len(made) == missing.n else made

        return choose

    def named(original):
        def release(self, meter, name, *values):
            asked[:] = name, meter.multiplier(name)
            return original(self, meter, name, *values)

        return release

    def recorded_pick(scores, spread, grant, prior=None):
        choice = pick(scores, spread, grant, prior) if history is None else history[len(steps)].released
        name, multiplier = asked
        step = Step(name, np.array(scores), int(choice), spread, multiplier, kind="exponential")
        add(step if prior is None else replace(step, prior=prior))
        return choice

    def recorded_vertex(self, meter, name):
        scores = whole_scores(self.sampler)
        if history is None:
            j, sign = drawn(self, meter, name)
            vertex = 2 * j + (sign < 0)
        else:
            meter.grant(name, self.kind)
            vertex = history[len(steps)].released
        multiplier = meter.multiplier(name)
        exact = np.stack([-scores, scores], axis=1).ravel().astype(np.float64)
        add(Step(name, exact, vertex, NAT / multiplier, multiplier, kind="exponential"))
        return vertex >> 1, 1 - 2 * (vertex & 1)

    def recorded_sample(meter, name, n, count):
        assert count == 1
        places, _ = sample(meter, name, n, count)
        if history is not None:
            places = history[len(steps)].sample[:: 2 if thin else 1]
        if coin is not None:
            places = np.concatenate([np.full(int(coin), row, dtype=np.int64), places[places != row]])
        samples[name] = places
        if missing is not None:
            places = missing.places(places)
        return places, np.array([0, len(places)])

    def recorded_draw(self, meter, name, size):
        linear = draw(self, meter, name, size)
        sensitivity = Sensitivity.vector(self.gradient).under(meter.adjacency)
        step = Step(name, np.zeros(size), linear, sensitivity, meter.multiplier(name), freedom=size, kind="objective")
        steps.append(replace(step, curvature=self.curvature))
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

    def moved_rows(duals, rows, *given):
        """A row that is not there moves nothing."""
        return move(duals, rows[rows < len(duals._targets)], *given)

    move = dual._Duals.move
    with ExitStack() as stack:
        for kind in (GaussianVector, GaussianMatrix, LaplaceVector):
            stack.enter_context(patch.object(kind, "release", recorded(kind.release)))
        stack.enter_context(patch.object(PackedGaussianMatrix, "release", recorded_packed))
        stack.enter_context(patch.object(Grid, "for_noise", recorded_grid))
        if missing is not None:
            stack.enter_context(patch.object(dual._Duals, "move", moved_rows))
        stack.enter_context(patch.object(GaussianSequence, "release", recorded_walk))
        stack.enter_context(patch.object(SampledSteps, "release", recorded_steps))
        handed_out = {
            "public_order": missing and missing.order,
            "public_draws": lambda made: made,
            "secret_normals": missing and missing.state,
        }
        for name, how in handed_out.items():
            stack.enter_context(patch.object(Meter, name, recorded_choice(getattr(Meter, name), how)))
        chosen = (selection.Quantile, selection.Selection, selection.SignedVertex, selection.Threshold, selection.TopK)
        for kind in chosen:
            stack.enter_context(patch.object(kind, "release", named(kind.release)))
        stack.enter_context(patch.object(selection, "_pick", recorded_pick))
        stack.enter_context(one_vertex_at_a_time(recorded_vertex))
        stack.enter_context(patch.object(Meter, "samples", recorded_sample))
        stack.enter_context(patch.object(ObjectivePerturbation, "draw", recorded_draw))
        stack.enter_context(patch.object(objective._Problem, "minimiser", recorded_minimiser))
        yield steps


@contextmanager
def one_vertex_at_a_time(release) -> Iterator[None]:
    """Vertices are released by `release`, also those that a solver draws in a compiled walk.

    The walk is made of the same compiled draw and step, and comes to the same vertices from the same words
    (`tests/solvers/test_frank_wolfe.py`): what is seen here one draw at a time is what it draws from.
    """
    walk = Vertices.release_walk

    def stepwise(self, meter, name, count, step, rounds=None):  # noqa: ARG001
        return walk(self, meter, name, count, step)

    with patch.object(Vertices, "release", release), patch.object(Vertices, "release_walk", stepwise):
        yield


def whole_scores(sampler):
    """The whole gradient that vertices are drawn from, in units of 2^-32 octaves."""
    if not isinstance(sampler, AffineBucketSampler):
        return sampler._scores.copy()
    scores = np.empty_like(sampler._rates)
    write_scores(sampler._scale, sampler._rates, sampler._constants, scores)
    return scores


def walk_again(walk, tape, released):
    """Lead a walk through values that were released before; returns them, and its own before noise."""
    assert tape.step > 0.0
    exact = np.empty(len(released))
    if inspect.isfunction(walk):
        return walk(Replay(tape.noise, tape.step, tape.bound, released, exact)), exact
    none = Tape(np.zeros(1, dtype=np.int64), tape.step, tape.bound)
    for k, value in enumerate(released):
        exact[k] = twin(walk)(none)[0]
        noise = round(value / tape.step) - round(exact[k] / tape.step)
        again = walk(Tape(np.array([noise]), tape.step, tape.bound))
        assert abs(again[0] - value) <= 1e-15 * abs(value)
    return np.copy(released), exact


def step_again(walk, batches, released):
    """Lead a step on a sample to what was released before; returns that, and what it is without noise."""
    assert batches.step > 0.0
    exact = twin(walk)(replace(batches, noise=np.zeros_like(batches.noise)))
    noise = np.rint(released / batches.step) - np.rint(exact / batches.step)
    again = walk(replace(batches, noise=noise.astype(np.int64)))
    assert np.all(np.abs(again - released) <= 1e-15 * np.abs(released))
    return np.copy(released), exact


@dataclass(frozen=True, eq=False)
class Replay(Tape):
    """Hands out what was released before, and keeps what it is asked to release."""

    released: np.ndarray
    exact: np.ndarray

    def put(self, values, start):
        there = slice(start, start + len(values))
        self.exact[there] = values
        return np.copy(self.released[there])


def twin(thing):
    """A copy with arrays of its own; nothing else in it changes."""
    other = copy.copy(thing)
    for name, value in vars(thing).items():
        if isinstance(value, np.ndarray | Columns | dual._Duals):
            setattr(other, name, value.copy() if isinstance(value, np.ndarray) else twin(value))
    return other


def two_worlds(run, data, neighbour, row=0) -> list[tuple[Step, Step]]:
    """The releases of `run(data)`, each with what `run(neighbour)` would have made of the same history.

    The row that differs takes part in every sample.
    """
    with transcript(coin=True, row=row) as steps:
        run(data)
    with transcript(steps) as others:
        run(neighbour)
    return list(zip(steps, others, strict=True))


def with_and_without(run, table, rows, missing: Missing) -> Iterator[list[tuple[Step, Step]]]:
    """The releases of `run(table)`, a table without a row, each with what it would be with each of some rows put in.

    `rows` are tables with a row at that place. The history comes from the world without the row, so that rows can be
    chosen in view of it; where there is a row it takes part in every sample.
    """
    with transcript(coin=True, row=missing.row, missing=missing) as steps:
        run(table)
    for present in rows:
        with transcript(steps) as others:
            run(present)
        yield list(zip(steps, others, strict=True))


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

    Gaussian noise by a chi-square test; selections by the mean log-weight of what was drawn.
    """
    wrong = set()
    for name in {step.name for step in steps}:
        named = [step for step in steps if step.name == name]
        if named[0].is_selection:
            away, spread = choices(named)
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
    honest = CalibratedPlan.multiplier
    with patch.object(CalibratedPlan, "multiplier", lambda plan, name: honest(plan, name) / 2):
        yield
