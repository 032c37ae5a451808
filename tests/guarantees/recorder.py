"""The recorder at the gate: every release of a run, and the same history played again to other data.

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
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np

from tacit.privacy import Gate, Promise
from tacit.privacy.mechanisms import (
    Batches,
    Choice,
    GaussianMatrix,
    GaussianSequence,
    GaussianVector,
    Histogram,
    LaplaceVector,
    ObjectivePerturbation,
    SampledSteps,
    Tape,
    TopK,
    VertexWalk,
    Vertices,
)
from tacit.privacy.mechanisms.affine import AffineBucketSampler, write_scores
from tacit.privacy.mechanisms.packed import PackedGaussianMatrix
from tacit.privacy.noise.grid import Grid
from tacit.solvers.coordinate.columns import Columns
from tacit.solvers.dual.steps import Duals

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
            return twin.gradient(at, other.released) - problem.gradient(at, self.released)

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
    recorder = Recorder(history, coin, row, missing, thin)
    honest, grid, move = Gate.release, Grid.for_noise, Duals.move

    def patched(gate, name, mechanism, *values):
        return recorder.release(gate, honest, name, mechanism, *values)

    def noted_grid(*given, **named):
        recorder.grids.append(grid(*given, **named))
        return recorder.grids[-1]

    def of_those_there(duals, rows, *given):
        """A row that is not there moves nothing."""
        return move(duals, rows[rows < len(duals._targets)], *given)

    with ExitStack() as stack:
        stack.enter_context(patch.object(Gate, "release", patched))
        stack.enter_context(patch.object(Gate, "samples", recorder.samples(Gate.samples)))
        stack.enter_context(patch.object(Gate, "publicly", recorder.choice(Gate.publicly, Missing.order)))
        stack.enter_context(patch.object(Gate, "secret_normals", recorder.choice(Gate.secret_normals, Missing.state)))
        stack.enter_context(patch.object(Grid, "for_noise", noted_grid))  # what is public of noise, as it was made
        if missing is not None:
            stack.enter_context(patch.object(Duals, "move", of_those_there))
        yield recorder.steps


class Recorder:
    """Stands at the gate: notes what passes, and hands out a history where there is one."""

    def __init__(self, history, coin, row, missing, thin):
        self.history, self.missing = history, missing
        self.coin, self.row, self.thin = coin, row, thin
        self.steps: list[Step] = []
        self.grids: list[Grid] = []  # since the last release, as are the public choices
        self.choices: list[np.ndarray] = []
        self.sampled: dict[str, np.ndarray] = {}

    @property
    def past(self):
        """The step of the history that is being made again."""
        return None if self.history is None else self.history[len(self.steps)]

    def release(self, gate, honest, name, mechanism, *values):
        """As `Gate.release`, which is `honest`, by the form of the mechanism."""
        if isinstance(mechanism, VertexWalk):  # the same draws and steps, one at a time
            return VertexWalk.draw(replace(mechanism, vertices=At(gate, name, mechanism.vertices)), None, *values[:2])
        if isinstance(mechanism, SampledSteps) and values[1] > 1:
            size, count, walk = values
            return np.concatenate([gate.release(name, mechanism, size, 1, walk) for _ in range(count)])
        for kinds, record in self.FORMS:
            if isinstance(mechanism, kinds):
                return record(self, gate, partial(honest, gate, name), name, mechanism, *values)
        raise TypeError(f"no way to record a {type(mechanism).__name__}")

    def add(self, gate, name, mechanism, exact, released, **more):
        """Note a release, which must be made as it was in the history."""
        facts = {
            "kind": mechanism.kind,
            "sampling": gate._releases[name].sampling,
            "sample": self.sampled.pop(name, None),
        }
        facts |= {"choices": tuple(self.choices), "grids": tuple(self.grids)} | more
        if "sensitivity" not in facts:
            facts["sensitivity"] = mechanism.sensitivity.under(gate.adjacency)
        step = Step(name, exact, released, multiplier=gate.multiplier(name), **facts)
        if self.past is not None:
            self.past.require_alike(step)
        self.steps.append(step)
        self.choices, self.grids = [], []

    def additive(self, gate, released, name, mechanism, *values):
        """Noise on an array, in coordinates in which all of it has one size."""
        exact, weights, freedom = coordinates(mechanism, *values)
        out = released(mechanism, *values)
        if self.past is not None:
            if self.past.exact.shape != exact.shape:
                shapes = f"arrays of shape {self.past.exact.shape} and {exact.shape}"
                raise LeakError(f"{name!r} is not made alike in two worlds: {shapes}")
            out = np.reshape(self.past.released / weights, np.shape(out))
        self.add(gate, name, mechanism, exact, np.reshape(out * weights, exact.shape), freedom=freedom)
        return out

    def walk(self, gate, released, name, mechanism, size, *given):
        """Values one after the other, or a step on a sample: led again to what was released."""
        tapes, walk, past = [], given[-1], self.past

        def noted(tape):
            tapes.append(tape)
            return walk(tape) if past is None else np.empty(0)

        out = released(mechanism, size, *given[:-1], noted)
        (tape,) = tapes
        if past is None:
            exact = out - tape.noise * tape.step
        elif isinstance(tape, Batches):
            tape = replace(past.tape, rows=tape.rows, starts=tape.starts)
            out, exact = step_again(walk, tape, past.released)
        else:
            tape = past.tape
            out, exact = walk_again(walk, tape, past.released)
        assert out.size == size
        self.add(gate, name, mechanism, exact, out.copy(), freedom=size, tape=tape)
        return out

    def choice(self, original, handed_out):
        """Choices that see no data, of all declared rows."""

        def choose(gate, *sizes):
            made = original(gate, *sizes)
            if self.past is not None:
                made = self.past.choices[len(self.choices)]
            self.choices.append(made)
            return handed_out(self.missing, made) if self.missing and len(made) == self.missing.n else made

        return choose

    def samples(self, original):
        """Of all declared rows; a world without one is handed those it has."""

        def sampled(gate, name, count):
            assert count == 1
            places, _ = original(gate, name, count)
            if self.past is not None:
                places = self.past.sample[:: 2 if self.thin else 1]
            if self.coin is not None:
                row = np.full(int(self.coin), self.row, dtype=np.int64)
                places = np.concatenate([row, places[places != self.row]])
            self.sampled[name] = places
            if self.missing is not None:
                places = self.missing.places(places)
            return places, np.array([0, len(places)])

        return sampled

    def selection(self, gate, released, name, mechanism, *values):
        """A candidate, by its number."""
        scores, prior = mechanism.scored(*values)
        size = len(scores)
        if self.past is None:
            out = released(mechanism, *values)
            pick = next(k for k in range(size) if mechanism.chosen(k, size) == out)
        else:
            gate.skip(name)
            pick = self.past.released
            out = mechanism.chosen(pick, size)
        prior = {} if prior is None else {"prior": prior}
        self.add(gate, name, mechanism, scores, pick, sensitivity=mechanism.spread.under(gate.adjacency), **prior)
        return out

    def several(self, gate, released, name, mechanism, scores):
        """Candidates without replacement, one step each."""
        values, left = np.array(scores, dtype=np.float64), np.arange(len(scores))
        picks = iter(() if self.history is not None else released(mechanism, scores).tolist())
        out = []
        for _ in range(mechanism.k):
            place = next(picks, None)
            if place is None:
                gate.skip(name)
            place = self.past.released if place is None else int(np.flatnonzero(left == place)[0])
            self.add(gate, name, mechanism, values[left], place, sensitivity=mechanism.spread.under(gate.adjacency))
            out.append(left[place])
            left = np.delete(left, place)
        return np.array(out, dtype=np.int64)

    def vertex(self, gate, released, name, mechanism):
        """A vertex, by the scores that its sampler holds."""
        scores = whole_scores(mechanism.sampler)
        if self.past is None:
            j, sign = released(mechanism)
        else:
            gate.skip(name)
            j, sign = self.past.released >> 1, 1 - 2 * (self.past.released & 1)
        exact = np.stack([-scores, scores], axis=1).ravel().astype(np.float64)
        self.add(gate, name, mechanism, exact, 2 * j + (sign < 0), sensitivity=NAT / gate.multiplier(name))
        return j, sign

    def objective(self, gate, released, name, mechanism, size, problem):
        """A minimiser; the same one is found from the linear term that leads to it."""
        past, terms = self.past, []

        def found(linear):
            if past is not None:
                twin, w = past.problem
                linear = twin.gradient(w, past.released) - problem.gradient(w, np.zeros(size))
            terms.append(linear)
            return problem.minimiser(linear)

        out = released(mechanism, size, SimpleNamespace(minimiser=found))
        at = out if past is None else past.problem[1]
        more = {"freedom": size, "problem": (problem, at), "curvature": mechanism.curvature}
        self.add(gate, name, mechanism, np.zeros(size), terms[0], **more)
        return out

    FORMS = (
        ((GaussianVector, LaplaceVector, GaussianMatrix, PackedGaussianMatrix, Histogram), additive),
        ((GaussianSequence, SampledSteps), walk),
        (Choice, selection),
        (TopK, several),
        (Vertices, vertex),
        (ObjectivePerturbation, objective),
    )


@dataclass(frozen=True)
class At:
    """Vertices that are each released at the gate."""

    gate: Gate
    name: str
    vertices: Vertices

    def draw(self, grant):
        """The next one."""
        assert grant is None
        return self.gate.release(self.name, self.vertices)


def coordinates(mechanism, value, *shape):
    """The exact array where noise has one size, what brings a release there, and how many normals its noise has."""
    exact = np.array(value, dtype=np.float64)
    if isinstance(mechanism, Histogram):
        exact = mechanism.counts(value)
    elif isinstance(mechanism, GaussianMatrix):  # off the diagonal twice the entries, of half the variance
        exact = np.triu(exact) + np.triu(exact, 1).T
        return exact, 1.0, len(exact) * (len(exact) + 1) // 2
    elif isinstance(mechanism, PackedGaussianMatrix) and mechanism.isotropic:
        weights = np.where(np.equal(*np.triu_indices(*shape)), 1.0, math.sqrt(2.0))
        return exact * weights, weights, exact.size
    return exact, 1.0, exact.size


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
        if isinstance(value, np.ndarray | Columns | Duals):
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
    honest = Promise.multiplier
    with patch.object(Promise, "multiplier", lambda promise, name: honest(promise, name) / 2):
        yield
