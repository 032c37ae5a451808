"""One release as it was recorded, and the row that a world is without."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.privacy.mechanisms import Batches, Tape
from tacit.privacy.noise.grid import Grid


def counted(values):
    """As mechanisms count them: what is no number as zero, and infinity as the largest one."""
    return values if np.isfinite(values).all() else np.nan_to_num(values, nan=0.0)


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
        change = counted(other.exact) - counted(self.exact)
        if self.is_selection:
            return float(np.ptp(change)) / self.sensitivity
        if self.kind == "objective":  # the linear terms that lead to the same weights
            change = other.released - self.released
        return float(np.linalg.norm(change.ravel() / self.sensitivity, 1 if self.kind == "laplace" else 2))

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
