"""Adding a solver, as a worked example: a whole one, and what it must show before it is registered.

The algorithm: release sum z y over the bounded rows once, and take a ridge step from zero as if columns were
uncorrelated. Weights are the noisy mean of z y over 1 + l2.

Privacy. One release. A row has norm at most LIMIT sqrt(d'), and its target is at most LIMIT. So the row adds a vector
of norm at most LIMIT^2 sqrt(d'): that is the sensitivity, and twice that for replace-one. The sum is taken in float64;
its rounding is in the sensitivity.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import clone

from tacit import Ridge, solvers
from tacit.blocks import Bounded, Moves
from tacit.bounding.magnitudes import LIMIT
from tacit.privacy import Gate, Release
from tacit.privacy.mechanisms import GaussianVector
from tacit.problems import SQUARED
from tacit.problems.declared import declared_size
from tacit.problems.task import LinearTask
from tacit.solvers.base import Algorithm, Serves, Solution, Solver, option

from .support import bounded, rows, solved, task


@dataclass(eq=False, repr=False)
class Marginal(Solver):
    """The solver: an option, what it serves, and the algorithm for a task."""

    name: ClassVar[str] = "marginal"
    serves: ClassVar[Serves] = Serves(losses=(SQUARED,))

    shrink: float | None = option(None, declared_size)  # of all weights

    def at(self, task: LinearTask) -> "OneSum":
        return OneSum(task, self.check().shrink or 1.0)


@dataclass(frozen=True)
class OneSum(Algorithm[LinearTask]):
    """The algorithm: what it releases, and how it runs."""

    shrink: float

    def releases(self, share: float) -> tuple[Release, ...]:
        return (Release("sum", "gaussian", share=share),)

    def run(self, data: Bounded, gate: Gate) -> Solution:
        n, d = self.task.n, self.task.d
        most = LIMIT**2 * math.sqrt(self.task.width)
        sensitivity = Moves(n, depth=n).vector(most)
        bias = float(self.task.fit_intercept)
        total = np.zeros(d + 1)
        for z, target in zip(np.asarray(data.Z), data.targets, strict=True):
            total += np.append(z, bias) * target
        noisy = gate.release("sum", GaussianVector(sensitivity, bound=n * most), total)
        unit = self.shrink / (n * (1.0 + np.append(data.penalty.l2, 0.0)))
        return Solution((noisy * unit)[None, :], (gate.noise("sum", sensitivity) * unit)[None, :])


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setitem(solvers.SOLVERS, "marginal", Marginal)


def test_without_noise_it_is_the_mean_of_products():
    data = rows("squared", 50, 3)
    found = solved(Marginal(), task("squared", 50, 3, epsilon=math.inf), data)
    wide = np.hstack([data.Z, np.ones((50, 1))])
    np.testing.assert_allclose(found.weights[0], wide.T @ data.targets / 50, rtol=1e-12)
    assert np.all(found.noise == 0.0)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_no_row_moves_the_sum_further_than_is_stated(adjacency):
    problem = task("squared", 2, 3, epsilon=math.inf, adjacency=adjacency)
    far = np.full((1, 3), LIMIT)
    others = [np.zeros((1, 3)), -far] if adjacency == "replace-one" else [np.zeros((1, 3))]
    for other in others:
        pair = [
            bounded(np.vstack([z, np.ones((1, 3))]), np.array([LIMIT * (z[0, 0] != 0.0), 1.0])) for z in (far, other)
        ]
        one, two = (solved(Marginal(), problem, data).weights * 2 for data in pair)
        most = LIMIT**2 * math.sqrt(problem.width) * (1 if adjacency == "add-remove" else 2)
        assert np.linalg.norm(one - two) <= most * (1 + 1e-12)


@pytest.mark.usefixtures("registered")
def test_a_registered_solver_is_all_that_an_estimator_needs():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2_000, 3))
    y = X[:, 0] + 0.1 * rng.normal(size=2_000)
    for solver in ("marginal", Marginal(shrink=0.9)):
        model = clone(Ridge(epsilon=5.0, solver=solver, y_bounds=(-4.0, 4.0), random_state=0)).fit(X, y)
        assert model.guarantee_.solver == "marginal"
        assert model.guarantee_.recompute() <= 5.0
        assert np.argmax(np.abs(model.coef_)) == 0
    with pytest.raises(ValueError, match="shrink"):
        Ridge(solver=Marginal(shrink=-1.0)).fit(X, y)
