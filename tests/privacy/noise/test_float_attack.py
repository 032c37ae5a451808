"""Mironov's attack: low bits of naive noise give the value away with certainty; those of a release on a grid do not.

A test asks of an output whether it could have come from value 0, and whether from value 1. It fires where only one is
possible. That it is never wrong on naive noise is checked as well: "with certainty" is part of the claim.
"""

import numpy as np
import pytest
from scipy import special, stats

from tacit.privacy.noise import NoiseSource, gaussian
from tacit.privacy.noise.grid import Grid

from .support import FALSE_ALARM

SIZE = 400_000


def ziggurat(size):
    return np.random.default_rng(111).standard_normal(size)


def inverse_of_53_bits(size):
    return special.ndtri(np.random.default_rng(112).integers(1, 2**53, size) / 2.0**53)


def finer_than_world_1(outputs):
    """Certainly from value 0: every float of the form 1 + z is a multiple of 2^-53, and small z often are not."""
    fine = np.ldexp(outputs, 53)
    return fine != np.rint(fine)


def outside_world_0(outputs):
    """Certainly from value 1: not the inverse normal of any multiple of 2^-53."""
    near = np.rint(special.ndtr(outputs) * 2.0**53)
    found = np.zeros(len(outputs), dtype=bool)
    for step in range(-12, 13):
        found |= special.ndtri(np.clip(near + step, 1, 2.0**53 - 1) / 2.0**53) == outputs
    return ~found


def test_fires_on_naive_noise_of_numpy():
    zero, one = 0.0 + ziggurat(SIZE), 1.0 + ziggurat(SIZE)
    assert not np.any(finer_than_world_1(one))  # never wrong
    assert finer_than_world_1(zero).mean() > 0.2


def test_fires_on_naive_noise_by_inversion():
    zero, one = 0.0 + inverse_of_53_bits(SIZE // 8), 1.0 + inverse_of_53_bits(SIZE // 8)
    assert not np.any(finer_than_world_1(one) | outside_world_0(zero))  # never wrong
    certain = (np.mean(finer_than_world_1(zero)) + np.mean(outside_world_0(one))) / 2
    assert certain > 0.35


def released(value, seed, size=SIZE, mu=1.0, bound=None):
    outputs = gaussian(np.full(size, value), 1.0, mu, NoiseSource(seed), bound=bound)
    return outputs, Grid.for_noise(1.0, 1.0 / mu, size, bound, 0.5)


@pytest.mark.parametrize("mu", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("bound", [None, 10.0, 1e9])
def test_never_fires_on_the_grid(mu, bound):
    """Every output of either world is a point of one grid, inside the reach of the noise from both values."""
    for value, seed in ((0.0, 113), (1.0, 114)):
        outputs, grid = released(value, seed, mu=mu, bound=bound)
        whole = np.rint(outputs / grid.step).astype(np.int64)
        assert np.array_equal(whole.astype(float) * grid.step, outputs)
        possible = [np.abs(whole - np.rint(other / grid.step)) < 13.5 * 2.0**grid.bits for other in (0.0, 1.0)]
        assert not np.any(possible[0] ^ possible[1])


def test_the_grid_knows_only_public_numbers():
    """Whatever the data is, outputs lie on the grid of sensitivity, mu, size and bound."""
    step = Grid.for_noise(1.0, 1.0, 3, None, 0.5).step
    for values in ([0.0, 0.0, 0.0], [1.0, -1.0, 5.0], [1e6, 2e-300, np.nan]):
        outputs = gaussian(values, 1.0, 1.0, NoiseSource(115))
        assert np.array_equal(np.rint(outputs / step) * step, outputs)


def trailing_zeros_by_octave(outputs):
    """How many low bits of the significand are zero (0 .. 7), for outputs in [2^-k-1, 2^-k), k = 0 .. 4."""
    outputs = outputs[(outputs >= 2.0**-5) & (outputs < 1.0)]
    significand, exponent = np.frexp(outputs)
    digits = np.ldexp(significand, 53).astype(np.int64)
    zeros = np.minimum(np.log2(digits & -digits).astype(np.int64), 7)
    return np.array([np.bincount(zeros[exponent == -k], minlength=8) for k in range(5)])


def low_bits_tail(zero, one):
    """The least p-value, over octaves, of the hypothesis that low bits have one law in both worlds."""
    tails = []
    for pair in zip(trailing_zeros_by_octave(zero), trailing_zeros_by_octave(one), strict=True):
        counts = np.array(pair)
        tails.append(stats.chi2_contingency(counts[:, counts.sum(axis=0) > 0]).pvalue)
    return min(tails)


def test_low_bits_tell_naive_worlds_apart():
    assert low_bits_tail(ziggurat(SIZE), 1.0 + ziggurat(SIZE)[::-1]) < 1e-300


def test_low_bits_do_not_tell_worlds_apart_on_the_grid():
    (zero, _), (one, _) = released(0.0, 116), released(1.0, 117)
    assert low_bits_tail(zero, one) > FALSE_ALARM / 5
