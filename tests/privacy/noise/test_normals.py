"""floor(2^40 Z) has the law of the rounded-down normal: in cells, in low bits, in the tails and from draw to draw.

Every test of fit would fail a fresh seed with probability `FALSE_ALARM` at most.
"""

import math

import numpy as np
import pytest
from scipy import stats

from tacit.privacy.noise import NoiseSource, exact, kernels, samplers

from .support import FALSE_ALARM, binomial_tail, chi_square_tail, normal_interval

UNIT = 2.0**40


@pytest.fixture(scope="module")
def draws():
    return samplers.normals(NoiseSource(71), 10_000_000)


def cell_tail(draws, shift):
    """Chi-square tail of the draws in cells of 2^shift units."""
    least = -(14 << (40 - shift))
    counts = np.bincount((draws >> shift) - least, minlength=-2 * least)
    edges = np.arange(least, -least + 1) * 2.0**shift / UNIT
    return chi_square_tail(counts, normal_interval(edges[:-1], edges[1:]))


@pytest.mark.parametrize("shift", [37, 35, 34, 31])
def test_cells(draws, shift):
    """Wide cells, the strips themselves, their halves, and 16 parts of each."""
    assert cell_tail(draws, shift) > FALSE_ALARM


@pytest.mark.parametrize("start", [0, 1, 32, 64, 96])
def test_places_inside_a_strip(draws, start):
    """Draws of four strips from `start` on, each in 64 parts: the slope inside a strip is the normal's."""
    for strip in range(start, start + 4):
        magnitude = np.where(draws < 0, ~draws, draws)
        inside = magnitude[magnitude >> 35 == strip] - (strip << 35)
        edges = (strip + np.arange(65) / 64) / 32
        parts = normal_interval(edges[:-1], edges[1:])
        assert chi_square_tail(np.bincount(inside >> 29, minlength=64), parts / parts.sum()) > FALSE_ALARM


def test_low_bits_are_uniform(draws):
    """The density changes by less than 2^-30 over 256 units, so the lowest 8 bits are uniform."""
    assert chi_square_tail(np.bincount(draws & 255, minlength=256), np.full(256, 1 / 256)) > FALSE_ALARM


@pytest.mark.parametrize("shift", range(0, 32, 4))
def test_four_bits_and_the_sign_are_independent(draws, shift):
    joint = (draws >> shift & 15) << 1 | (draws < 0)
    assert chi_square_tail(np.bincount(joint, minlength=32), np.full(32, 1 / 32)) > FALSE_ALARM


def test_low_bits_do_not_depend_on_the_strip(draws):
    """Two-way table of the strip (to 3 standard deviations) and the lowest 5 bits."""
    magnitude = np.where(draws < 0, ~draws, draws)
    strip, low = magnitude >> 35, magnitude & 31
    near = strip < 96
    counts = np.bincount(strip[near] << 5 | low[near], minlength=96 * 32).reshape(96, 32)
    assert stats.chi2_contingency(counts).pvalue > FALSE_ALARM


def tail_alarms(draws_by_part, size):
    """The least two-sided tail of the counts beyond 0.5 .. 6 standard deviations, each side."""
    tails = []
    for sigmas in np.arange(0.5, 6.01, 0.5):
        edge = math.floor(sigmas * UNIT)
        above = sum(int(np.count_nonzero(part >= edge)) for part in draws_by_part)
        below = sum(int(np.count_nonzero(part < -edge)) for part in draws_by_part)
        tails += [binomial_tail(count, size, float(stats.norm.sf(sigmas))) for count in (above, below)]
    return tails


def test_tails(draws):
    # 24 tests; at 6 standard deviations none is expected among 10^7, and 3 would already be an alarm
    assert min(tail_alarms([draws], len(draws))) > FALSE_ALARM / 24


def test_extremes_are_inside_the_strips(draws):
    assert np.abs(draws).max() < 6.5 * UNIT  # one beyond 6.5 standard deviations: 8e-4 for the seed chosen
    assert np.abs(draws).max() > 4.5 * UNIT  # none beyond 4.5: e^-68


def test_successive_draws_are_uncorrelated(draws):
    """Lag 1 and 2, of values, squares and signs: the correlation times sqrt(n) is standard normal."""
    z = draws / UNIT
    for series in (z, z * z, np.sign(z), (draws & 1).astype(float)):
        series = (series - series.mean()) / series.std()
        for lag in (1, 2):
            score = np.dot(series[:-lag], series[lag:]) / math.sqrt(len(series) - lag)
            assert abs(score) < 6.0  # 2e-9 each


def test_neighbouring_draws_are_independent_in_cells(draws):
    """Pairs of draws in a 16 by 16 table of equally probable cells."""
    edges = np.floor(stats.norm.ppf(np.arange(1, 16) / 16) * UNIT)
    cells = np.searchsorted(edges, draws[:4_000_000].astype(float), side="right")
    counts = np.bincount(cells[::2] * 16 + cells[1::2], minlength=256)
    assert chi_square_tail(counts, np.full(256, 1 / 256)) > FALSE_ALARM


def test_kolmogorov_smirnov(draws):
    """The floor moves a draw by 2^-40 at most, far below the resolution of 10^6 draws."""
    assert stats.kstest(draws[:1_000_000] / UNIT, "norm").pvalue > FALSE_ALARM


def test_mean_and_variance(draws):
    z = (draws + 0.5) / UNIT
    assert abs(z.mean()) * math.sqrt(len(z)) < 6.0  # 2e-9
    assert abs(z.var() - 1.0) * math.sqrt(len(z) / 2) < 6.0


# The slow path alone: exp(-gamma) at a place in a strip


PLACES = [(0, 2**35 - 1), (1, 2**34), (31, 2**35 - 1), (100, 2**33), (200, 2**35 - 1), (431, 2**35 - 1), (431, 0)]


def acceptance(strip, place):
    y = (place + 0.5) / 2**35
    return math.exp(-y * (2 * strip + y) / 2048)


@pytest.mark.parametrize(("strip", "place"), PLACES)
def test_slow_path_of_the_kernel_accepts_with_the_density_ratio(strip, place):
    """All 64 bits of U1 random, the leading 29 given as the kernel gives them."""
    size = 200_000
    source = NoiseSource(72 + strip)
    leading = source.words(size) >> np.uint64(35)
    words = source.words(40 * 1024)
    kept, at = 0, 0
    for u in leading:
        if at > len(words) - 100:
            words, at = source.words(40 * 1024), 0
        decision, at = kernels._strip_decision(words, at, np.uint64(strip), np.uint64(place), u)
        assert decision in (kernels._ACCEPT, kernels._REJECT)
        kept += decision == kernels._ACCEPT
    assert binomial_tail(kept, size, acceptance(strip, place)) > FALSE_ALARM


@pytest.mark.parametrize(("strip", "place"), PLACES)
def test_slow_path_of_the_exact_sampler_accepts_with_the_density_ratio(strip, place):
    size = 20_000
    source = NoiseSource(73 + strip)
    words = iter(source.words(10 * size).tolist())
    kept = 0
    for _ in range(size):
        x = exact.LazyUniform(words.__next__, 35, place)
        u = exact.LazyUniform(words.__next__, 29, next(words) >> 35)
        kept += exact._strip_accepts(words.__next__, strip, x, u)
    assert binomial_tail(kept, size, acceptance(strip, place)) > FALSE_ALARM


def test_acceptance_after_a_failed_quick_test_is_conditional():
    """Given that the quick test failed, u < b, a place is kept with probability (exp(-gamma) - (1 - b)) / b.

    A fresh coin of exp(-gamma) there, the classic mistake, would be wrong by up to 12%.
    """
    strip, place, size = 431, 2**35 - 2**33, 100_000
    least_quick = math.ceil((place + 1) * (2 * strip + 1) / 2**17)
    words = NoiseSource(74).words(12 * size)
    kept, at = 0, 0
    for u in np.random.default_rng(75).integers(0, least_quick, size, dtype=np.uint64):
        decision, at = kernels._strip_decision(words, at, np.uint64(strip), np.uint64(place), u)
        kept += decision == kernels._ACCEPT
    bound = least_quick / 2**29
    assert binomial_tail(kept, size, (acceptance(strip, place) - (1 - bound)) / bound) > FALSE_ALARM
    assert binomial_tail(kept, size, acceptance(strip, place)) < 1e-100


@pytest.mark.slow
def test_a_billion_in_fine_cells_and_far_tails():
    """Cells of 1/1024, and the tails to 6 standard deviations, where two draws are expected."""
    source, rounds, size, shift = NoiseSource(76), 100, 10_000_000, 30
    least = -(14 << (40 - shift))
    counts = np.zeros(-2 * least, dtype=np.int64)
    for _ in range(rounds):
        counts += np.bincount((samplers.normals(source, size) >> shift) - least, minlength=-2 * least)
    edges = np.arange(least, -least + 1) * 2.0**shift / UNIT
    assert chi_square_tail(counts, normal_interval(edges[:-1], edges[1:])) > FALSE_ALARM
    for sigmas in (4.0, 4.5, 5.0, 5.5, 6.0):
        beyond = counts[edges[:-1] >= sigmas].sum() + counts[edges[1:] <= -sigmas].sum()
        assert binomial_tail(beyond, rounds * size, 2 * float(stats.norm.sf(sigmas))) > FALSE_ALARM
