"""For comparison only: the forms of the paper on DP-SCD. No rule picks them; `Dual(variant=...)` asks for one.

Privacy
-------
- `Published` noises the dual variables of a batch as well, with the noise that sqrt(2) C asks for, and v with the same.
  v alone is released, so what leaves a step has a public size, and the noise in a dual variable is that row's own
  secret, like its coins.
- `Sequential` lets the updates of a batch see each other, on fixed batches of L rows, one of which holds a given row:
  its batch's dual variables and v move by at most 2 C sqrt(L (L + 1)), once in a pass.
- `Primal` moves L weights at a time by at most C each, from all rows: 2 C sqrt(L).
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from tacit._types import Floats, Integers
from tacit.blocks import SHRINK, Bounded, Moves, Passes
from tacit.privacy import Gate, Release
from tacit.privacy.mechanisms import GaussianSequence, GaussianVector, Sensitivity, Tape
from tacit.problems.task import LinearTask
from tacit.solvers.base import Algorithm, Layout, Solution
from tacit.solvers.dual.rules import PASSES, Asked
from tacit.solvers.dual.steps import Duals, Sampled, added, mechanism, solution


@dataclass(frozen=True)
class Published(Sampled):
    """Steps on samples; dual variables get noise as well."""

    counts: ClassVar[bool] = False

    @classmethod
    def of(cls, task: LinearTask, asked: Asked) -> Self:
        """As in the paper, unless another damping or average was asked for: all of the batch, and the last iterate."""
        return super().of(task, asked._replace(damping=asked.damping or 1.0, averaging=asked.averaging or "last"))

    def run(self, data: Bounded, gate: Gate) -> Solution:
        """The mean of the last iterates. The noise in dual variables is state of each row, drawn for all of them."""
        task = self.task
        scale, clip = self._scale_and_clip(data)
        duals = Duals(task, data, newton=self.newton, scale=scale, least_norm=1.0)
        plain = mechanism(task, math.sqrt(2.0) * clip)
        deviation = gate.noise("updates", plain.sensitivity)
        v = mean = np.zeros((task.outputs, task.d + 1))
        for step in range(self.steps):
            rows = gate.sample("updates")
            moved = duals.move(rows, v * scale, self.damping, clip * SHRINK)
            noise = gate.secret_normals((task.n, task.outputs))
            duals.put(rows, duals.at(rows) + deviation * noise[rows])
            v = v + gate.release("updates", plain, moved)
            if step >= self.steps - self.tail:
                mean = mean + v / self.tail
        return solution(task, mean, scale, deviation * added(self.steps, self.tail))


@dataclass(frozen=True)
class Sequential(Sampled):
    """Updates of a batch see each other; batches are fixed, and all of them are seen once in a pass."""

    counts: ClassVar[bool] = False

    passes: int = PASSES

    @classmethod
    def of(cls, task: LinearTask, asked: Asked) -> Self:
        """From n, d, mu and what the user set."""
        usual = vars(Sampled.of(task, asked._replace(damping=1.0)))
        return cls(**usual, passes=max(1, round(asked.n_passes or PASSES)))

    def releases(self, share: float) -> tuple[Release, ...]:
        """The passes: a row's batch comes once in each."""
        return (Release("updates", "gaussian", share=share, count=self.passes),)

    def run(self, data: Bounded, gate: Gate) -> Solution:
        """The last iterate. There is no damping: one row at a time does not overshoot."""
        task = self.task
        scale, clip = self._scale_and_clip(data)
        duals = Duals(task, data, newton=self.newton, scale=scale, least_norm=1.0)
        size = math.ceil(self.batch)
        most = 2.0 * clip * math.sqrt(size * (size + 1.0))
        sequence = GaussianSequence(Moves(task.n, depth=task.n).apart(most, most, summed=clip), bound=task.n * clip)
        order = gate.publicly(task.n)
        batches = [order[start : start + size] for start in range(0, task.n, size)]
        v = np.zeros((task.outputs, task.d + 1))

        def walk(tape: Tape) -> Floats:
            nonlocal v
            at, released = 0, []
            for rows in batches:
                old, moved = duals.at(rows), np.zeros_like(v)
                for i in rows:  # summed by itself: beside a large v its rounding would count
                    moved += duals.move(np.array([i]), (v + moved) * scale, 1.0, clip * SHRINK)
                both = np.concatenate([(duals.at(rows) - old).ravel(), moved.ravel()])
                noisy = tape.put(both, at)
                at += both.size
                duals.put(rows, old + noisy[: old.size].reshape(old.shape))
                v = v + noisy[old.size :].reshape(v.shape)
                released.append(noisy)
            return np.concatenate(released)

        for _ in range(self.passes):
            gate.release("updates", sequence, task.n * task.outputs + len(batches) * v.size, walk)
        spread = gate.noise("updates", sequence.sensitivity) * math.sqrt(self.passes * len(batches))
        return solution(task, v, scale, spread)


@dataclass(frozen=True)
class Primal(Algorithm[LinearTask]):
    """Some weights at a time, each moved by at most the clip from all rows."""

    layout: ClassVar[Layout] = "short rows"

    steps: int
    batch: int  # weights in a step
    clip: float
    passes: float

    @classmethod
    def of(cls, task: LinearTask, asked: Asked) -> Self:
        """From d and what the user set."""
        if task.outputs > 1:
            raise ValueError("variant='primal' does not serve more than two classes; the others do")
        batch, passes = min(asked.batch_size or 10, task.width), asked.n_passes or PASSES
        steps = max(1, round(passes * math.ceil(task.width / batch)))
        return cls(task, steps, batch, asked.clip or 0.1, passes)

    def releases(self, share: float) -> tuple[Release, ...]:
        """The moves of weights."""
        return (Release("updates", "gaussian", share=share, count=self.steps),)

    def run(self, data: Bounded, gate: Gate) -> Solution:
        """The last iterate; margins are computed anew and stay secret."""
        task, clip = self.task, self.clip
        sensitivity = 2.0 * clip * math.sqrt(self.batch)
        moving = GaussianVector(Sensitivity(sensitivity, sensitivity), bound=clip)
        passes = Passes(task, data)
        curvature = task.loss.curvature * np.maximum(passes.squares(math.inf) / task.n, 1e-12)
        l2 = np.append(data.penalty.l2, 0.0)
        theta = np.zeros((1, task.d + 1))
        left: Integers = np.empty(0, dtype=np.int64)
        for _ in range(self.steps):
            if len(left) == 0:
                left = gate.publicly(task.width)
            now, left = left[: self.batch], left[self.batch :]
            slope = passes.gradient(theta, math.inf)[0] / task.n + l2 * theta[0]
            moves = np.clip(-slope[now] / (len(now) * curvature[now] + l2[now]), -clip, clip)
            theta[0, now] += gate.release("updates", moving, moves)
        spread = gate.multiplier("updates") * sensitivity * math.sqrt(self.passes)
        return Solution(theta, np.full_like(theta, spread))
