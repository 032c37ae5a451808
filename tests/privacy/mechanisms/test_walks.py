"""Values computed one after the other: the noise of a vector, drawn before any of them is known.

Seeds are fixed; a fresh seed would fail a statistical test with probability below 1e-6.
"""

import math

import numpy as np
import pytest
from scipy import stats

from tacit.privacy.mechanisms import GaussianSequence, GaussianVector, Sensitivity, Tape
from tacit.privacy.noise.grid import Grid
from tacit.privacy.noise.kernels import release_on_grid, release_one

from .test_additive import ADJACENCIES, ALARM, has_scale, open_gate


def plain(values, seen=None):
    """A walk whose values do not depend on each other."""

    def walk(tape):
        if seen is not None:
            seen.append(tape)
        pairs = zip(values, tape.noise, strict=True)
        return np.array([release_one(value, noise, tape.step, tape.bound) for value, noise in pairs])

    return walk


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_noise_level(adjacency):
    value = np.linspace(-5, 5, 40_000)
    gate = open_gate("gaussian", 2.5, adjacency, seed=1)
    mechanism = GaussianSequence(Sensitivity.vector(3.0), bound=100.0)
    noise = gate.release("r", mechanism, len(value), plain(value)) - value
    scale = 2.5 * (3.0 if adjacency == "add-remove" else 6.0)
    assert has_scale(noise, scale)
    assert not has_scale(noise, 1.05 * scale)
    assert stats.kstest(noise / scale, "norm").pvalue > ALARM
    assert gate.noise("r", mechanism.sensitivity) == scale


@pytest.mark.parametrize("bound", [10.0, 1e9, 1e16])
@pytest.mark.parametrize("multiplier", [0.3, 2.5])
def test_values_that_do_not_depend_on_each_other_are_released_as_a_vector(bound, multiplier):
    """Bit for bit: the same grid, the same noise, whatever the bound leaves of its bits."""
    value, sensitivity = np.array([1.0, -2.5, 1e3, 0.0, math.pi]), Sensitivity.vector(0.7)
    vector = open_gate("gaussian", multiplier).release("r", GaussianVector(sensitivity, bound), value)
    walked = open_gate("gaussian", multiplier).release("r", GaussianSequence(sensitivity, bound), 5, plain(value))
    np.testing.assert_array_equal(walked, vector)


def test_the_tape_is_drawn_before_the_walk_and_is_the_grids():
    tapes = []
    mechanism = GaussianSequence(Sensitivity.vector(1.0), bound=20.0)
    for value in ([0.0, 0.0, 0.0], [19.0, -5.0, 1.0]):
        open_gate("gaussian", 2.0, seed=3).release("r", mechanism, 3, plain(value, tapes))
    grid = Grid.for_noise(1.0, 2.0, 3, 20.0, power=0.5)
    for tape in tapes:
        assert (tape.step, tape.bound) == (grid.step, grid.bound)
        np.testing.assert_array_equal(tape.noise, tapes[0].noise)
        assert tape.noise.dtype == np.int64


def test_later_values_may_use_earlier_ones():
    def walk(tape):
        out = [release_one(1.0, tape.noise[0], tape.step, tape.bound)]
        out.append(release_one(10.0 * out[0], tape.noise[1], tape.step, tape.bound))
        return np.array(out)

    gate = open_gate("gaussian", 1e-3, count=2_000, seed=4)
    mechanism = GaussianSequence(Sensitivity.vector(1.0), bound=100.0)
    released = np.array([gate.release("r", mechanism, 2, walk) for _ in range(2_000)])
    assert has_scale(released[:, 0] - 1.0, 1e-3)
    assert has_scale(released[:, 1] - 10.0 * released[:, 0], 1e-3)


def test_a_walk_is_one_release():
    gate = open_gate("gaussian", count=2)
    mechanism = GaussianSequence(Sensitivity.vector(1.0), bound=5.0)
    gate.release("r", mechanism, 3, plain([1.0, 2.0, 3.0]))
    assert gate.left("r") == 1


def test_the_non_private_limit_has_a_tape_without_noise():
    tapes, value = [], [0.1, -2.0, 1e300]
    mechanism = GaussianSequence(Sensitivity.vector(1.0), bound=5.0)
    released = open_gate("gaussian", 0).release("r", mechanism, 3, plain(value, tapes))
    assert released.tolist() == [0.1, -2.0, 5.0]
    assert tapes[0].step == 0.0
    assert not tapes[0].noise.any()
    assert len(tapes[0].noise) == 3


def test_what_no_row_can_change_needs_no_noise():
    mechanism = GaussianSequence(Sensitivity(0.0, 1.0), bound=5.0)
    assert open_gate("gaussian").release("r", mechanism, 1, plain([0.3])) == [0.3]
    assert open_gate("gaussian", adjacency="replace-one").release("r", mechanism, 1, plain([0.3])) != [0.3]


@pytest.mark.parametrize("bound", [0.0, -1.0, math.inf, math.nan])
def test_a_bound_must_be_a_positive_number(bound):
    with pytest.raises(ValueError, match="bound must be"):
        open_gate("gaussian").release("r", GaussianSequence(Sensitivity.vector(1.0), bound), 1, plain([0.0]))


@pytest.mark.parametrize(("size", "error"), [(0, ValueError), (-1, ValueError), (1.5, TypeError)])
def test_a_size_must_be_a_count(size, error):
    with pytest.raises(error, match="size must be"):
        open_gate("gaussian").release("r", GaussianSequence(Sensitivity.vector(1.0), 1.0), size, plain([0.0]))


# --- one value on the grid --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "noise", "released"),
    [
        (0.9, 0, 1.0),
        (0.9, 3, 2.5),
        (-0.9, -1, -1.5),
        (0.25, 0, 0.0),  # halves go to even
        (0.75, 0, 1.0),
        (7.0, 1, 4.5),
        (-math.inf, 0, -4.0),
        (math.nan, 5, 2.5),
    ],
)
def test_a_value_is_clipped_rounded_and_moved_by_whole_steps(value, noise, released):
    assert release_one(value, noise, 0.5, 4.0) == released


def test_a_step_of_zero_stands_for_no_noise():
    assert release_one(0.1, 17, 0.0, 4.0) == 0.1
    assert release_one(1e9, 17, 0.0, 4.0) == 4.0
    assert release_one(math.nan, 17, 0.0, 4.0) == 0.0


def test_large_counts_do_not_wrap():
    step, bound = 2.0**-40, 2.0**22
    assert release_one(bound, 2**44, step, bound) == bound + 16.0
    assert release_one(-bound, -(2**44), step, bound) == -bound - 16.0


def test_arrays_are_released_value_by_value():
    rng = np.random.default_rng(0)
    values, noise, out = rng.normal(scale=3.0, size=500), rng.integers(-(2**20), 2**20, size=500), np.empty(500)
    values[:3] = math.inf, math.nan, -math.inf
    assert not release_on_grid(values, noise, 5.0, 1e-3, 7, out)
    assert out.tolist() == [
        release_one(value, count >> 7, 1e-3, 5.0) for value, count in zip(values, noise, strict=True)
    ]
    assert release_on_grid(np.array([math.nan, 1.0]), noise[:2], 5.0, 1e-3, 7, out[:2])  # no number is not too large


def test_a_tape_is_a_value():
    tape = Tape(np.zeros(2, dtype=np.int64), 0.5, 1.0)
    with pytest.raises(AttributeError):
        tape.step = 0.0
