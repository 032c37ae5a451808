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
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np

from tacit.privacy import Gate
from tacit.privacy.mechanisms import (
    Batches,
    BestVertex,
    Choice,
    GaussianMatrix,
    GaussianSequence,
    GaussianVector,
    Histogram,
    LaplaceVector,
    ObjectivePerturbation,
    SampledSteps,
    Tape,
    ThresholdedCounts,
    TopK,
    VertexWalk,
    Vertices,
)
from tacit.privacy.mechanisms.affine import AffineBucketSampler, write_scores
from tacit.privacy.noise.grid import Grid
from tacit.solvers.coordinate.columns import Columns
from tacit.solvers.dual.steps import Duals

from .steps import LeakError, Missing, Step

PLACES = 64  # for values that come from the data
NAT = 2.0**32 / math.log(2.0)  # units in which vertices are scored


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
        return move(duals, rows[rows < len(duals.everyone)], *given)

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
        if isinstance(mechanism, BestVertex):  # of the non-private limit
            return honest(gate, name, mechanism, *values)
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
        past, noisy = self.past, np.reshape(out * weights, exact.shape)
        if past is not None and past.exact.shape != exact.shape:
            shapes = f"arrays of shape {past.exact.shape} and {exact.shape}"
            raise LeakError(f"{name!r} is not made alike in two worlds: {shapes}")
        self.add(gate, name, mechanism, exact, noisy if past is None else past.released, freedom=freedom)
        return out if past is None else np.reshape(past.released / weights, np.shape(out))

    def thresholded(self, gate, released, name, mechanism, votes):
        """Counts of values from the data, in places that the values decide: two worlds can be compared."""
        exact = np.zeros((mechanism.columns, PLACES))
        for line, column in zip(exact, mechanism.counts(votes), strict=True):
            for value, count in column.items():
                line[zlib.crc32(value.encode()) % PLACES] += count
        out, past = released(mechanism, votes), self.past
        self.add(gate, name, mechanism, exact, out if past is None else past.released)
        return out if past is None else past.released

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
                places = self.past.sample[::2].copy() if self.thin else self.past.sample
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
        ((GaussianVector, LaplaceVector, GaussianMatrix, Histogram), additive),
        ((GaussianSequence, SampledSteps), walk),
        (Choice, selection),
        (TopK, several),
        (ThresholdedCounts, thresholded),
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
    elif isinstance(mechanism, GaussianMatrix) and not shape:
        # Off the diagonal there are twice the entries, of half the variance.
        exact = np.triu(exact) + np.triu(exact, 1).T
        return exact, 1.0, len(exact) * (len(exact) + 1) // 2
    elif isinstance(mechanism, GaussianMatrix) and mechanism.isotropic:
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
