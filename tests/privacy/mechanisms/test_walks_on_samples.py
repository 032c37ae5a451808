"""Steps on samples: what a walk is handed, and that it is what single releases would be."""

import math

import numpy as np
import pytest

from tacit.privacy import Budget, Gate, NoiseSource, Plan, PlanViolationError, Release, Unit
from tacit.privacy.mechanisms import SampledSteps, Sensitivity
from tacit.privacy.noise import kernels

N, SIZE, COUNT = 200, 3, 40
ROWS = np.random.default_rng(0).normal(size=(N, SIZE))
STEPS = SampledSteps(Sensitivity.vector(2.0), bound=1e3)


def open_gate(epsilon=1.0, seed=1):
    plan = Plan(Release("steps", "gaussian", share=1.0, count=COUNT, sampling=0.2))
    return Gate(plan.calibrate(Budget(epsilon, 1e-5), Unit("row", N), "test"), NoiseSource(seed))


class Walk:
    """Sums over samples, less what was released so far."""

    def __init__(self):
        self.exact, self.sizes, self.total = [], [], np.zeros(SIZE)

    def __call__(self, batches):
        out = np.empty(batches.noise.shape)
        for t in range(len(out)):
            rows = batches.rows[batches.starts[t] : batches.starts[t + 1]]
            self.sizes.append(len(rows))
            self.exact.append(ROWS[rows].sum(axis=0) - self.total)
            for k in range(SIZE):
                out[t, k] = kernels.release_one(self.exact[-1][k], batches.noise[t, k], batches.step, batches.bound)
            self.total = self.total + out[t]
        return out


def test_noise_is_that_of_the_plan():
    gate, walk = open_gate(), Walk()
    out = np.concatenate([gate.release("steps", STEPS, SIZE, count, walk) for count in (1, 9, 30)])
    gate.finish()
    assert out.shape == (COUNT, SIZE)
    noise = (out - np.array(walk.exact)) / (2.0 * gate.multiplier("steps"))
    squares, freedom = float(np.sum(noise**2)), noise.size
    assert abs(squares - freedom) < 5 * math.sqrt(2 * freedom)
    assert np.all(noise != 0.0)
    assert abs(np.sum(walk.sizes) - COUNT * N * 0.2) < 5 * math.sqrt(COUNT * N * 0.16)
    assert len(set(walk.sizes)) > 5


def test_without_noise_values_are_as_they_are():
    gate, walk = open_gate(math.inf), Walk()
    out = gate.release("steps", STEPS, SIZE, COUNT, walk)
    np.testing.assert_array_equal(out, np.array(walk.exact))


def test_no_more_steps_than_planned():
    gate = open_gate()
    with pytest.raises(PlanViolationError, match="planned 40 times"):
        gate.release("steps", STEPS, SIZE, COUNT + 1, Walk())


def test_samples_do_not_print():
    seen = []
    open_gate().release("steps", STEPS, SIZE, 1, lambda batches: seen.append(repr(batches)) or np.zeros((1, SIZE)))
    assert seen == ["Batches(private)"]
