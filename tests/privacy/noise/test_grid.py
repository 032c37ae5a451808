"""Releases on the grid: what they return, what they refuse, and that rounding never costs more privacy than asked."""

import math
from contextlib import nullcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tacit.privacy.noise import NoiseSource, gaussian, kernels, samplers
from tacit.privacy.noise.grid import MAX_BITS, Grid, float_sum_slack, noisy

from .support import FALSE_ALARM, binomial_tail, chi_square_tail, laplace_interval, normal_interval

repeatable = settings(derandomize=True, deadline=None, max_examples=400, database=None)
POWER = {"gaussian": 0.5, "laplace": 1.0}
DRAW = {"gaussian": samplers.normals, "laplace": samplers.laplaces}


def gaussian_grid(sensitivity, mu, size, bound=None):
    return Grid.for_noise(sensitivity, 1.0 / mu, size, bound, 0.5)


# What a release is


@pytest.mark.parametrize("value", [3.0, 5, [1.0, 2.0], [[1, 2, 3], [4, 5, 6]], np.ones((2, 3, 4)), np.float32(2.5)])
def test_keeps_the_shape(value):
    out = gaussian(value, 1.0, 1.0, NoiseSource(121))
    assert out.shape == np.shape(value)
    assert out.dtype == np.float64


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_empty_arrays(shape):
    assert gaussian(np.empty(shape), 1.0, 1.0, NoiseSource(122)).shape == shape


def test_reads_arrays_of_any_layout_and_leaves_them_alone():
    value = np.arange(12.0).reshape(3, 4)
    before = value.copy()
    for view in (value.T, value[::-1, ::2], np.asfortranarray(value)):
        plain = gaussian(np.ascontiguousarray(view), 1.0, 1.0, NoiseSource(123))
        assert np.array_equal(gaussian(view, 1.0, 1.0, NoiseSource(123)), plain)
    value.flags.writeable = False
    gaussian(value, 1.0, 1.0)
    assert np.array_equal(value, before)


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
@pytest.mark.parametrize("bound", [None, 50.0, 1e9, 1e14])
def test_is_the_documented_function_of_value_and_noise(law, bound):
    """(rint(v / g) + floor(N / 2^shift)) g."""
    values = np.random.default_rng(124).uniform(-40, 40, 1000)
    grid = Grid.for_noise(2.0, 0.7, 1000, bound, POWER[law])
    noise = DRAW[law](NoiseSource(124), 1000)
    whole = [round(v / grid.step) + (int(n) >> (MAX_BITS - grid.bits)) for v, n in zip(values, noise, strict=True)]
    out = noisy(values, 2.0, 0.7, NoiseSource(124), bound=bound, law=law)
    assert out.tolist() == [float(y) * grid.step for y in whole]


def test_successive_releases_of_one_source_differ():
    source = NoiseSource(125)
    assert gaussian(1.0, 1.0, 1.0, source) != gaussian(1.0, 1.0, 1.0, source)


def test_without_a_source_the_noise_is_fresh():
    assert gaussian(1.0, 1.0, 1.0) != gaussian(1.0, 1.0, 1.0)


@pytest.mark.parametrize(("sensitivity", "mu", "bound"), [(1.0, 1.0, None), (3.0, 0.2, 100.0), (1.0, 2.0, 1e8)])
def test_noise_has_the_standard_deviation_asked(sensitivity, mu, bound):
    size = 1_000_000
    noise = gaussian(np.full(size, 7.0), sensitivity, mu, NoiseSource(126), bound=bound) - 7.0
    grid = gaussian_grid(sensitivity, mu, size, bound)
    sigma, step = grid.scale, grid.step
    assert sensitivity / mu <= sigma < sensitivity / mu * 1.001
    assert abs(noise.mean() + step / 2) < 6 * sigma / math.sqrt(size) + step  # 2e-9
    assert abs(noise.std() / sigma - 1) < 6 / math.sqrt(2 * size)  # 2e-9
    cells = np.floor(np.clip(noise / sigma, -6, 6 - 1e-9) * 8).astype(int) + 48
    edges = np.arange(-48, 49) / 8.0
    edges[[0, -1]] = -np.inf, np.inf
    assert chi_square_tail(np.bincount(cells, minlength=96), normal_interval(edges[:-1], edges[1:])) > FALSE_ALARM


def test_laplace_noise_has_the_scale_asked():
    noise = noisy(np.zeros(500_000), 3.0, 2.0, NoiseSource(127), bound=None, law="laplace")
    scale = Grid.for_noise(3.0, 2.0, len(noise), None, 1.0).scale
    cells = np.floor(np.clip(noise / scale, -10, 10 - 1e-9) * 4).astype(int) + 40
    edges = np.arange(-40, 41) / 4.0
    edges[[0, -1]] = -np.inf, np.inf
    assert chi_square_tail(np.bincount(cells, minlength=80), laplace_interval(edges[:-1], edges[1:])) > FALSE_ALARM


@pytest.mark.parametrize("bound", [None, 2.0])
@pytest.mark.parametrize(("sensitivity", "mu"), [(0.0, 1.0), (1.0, math.inf), (0.0, math.inf)])
def test_nothing_to_hide_or_no_limit_releases_the_value(sensitivity, mu, bound):
    value = np.array([1.0, math.pi, -2.5e-7])
    out = gaussian(value, sensitivity, mu, bound=bound)
    assert np.array_equal(out, value)
    out[:] = 0
    assert value[0] == 1.0


# The grid


@pytest.mark.parametrize(
    ("ratio", "bits"),
    [
        (1e-3, 40),
        (1.0, 40),
        (2.0**22, 40),
        (2.0**22 * 1.001, 39),
        (2.0**23, 39),
        (2.0**30, 32),
        (3e12, 20),
        (2.0**50, 12),
    ],
)
def test_larger_bounds_leave_fewer_bits(ratio, bits):
    """K = min(40, floor(62 - log2(bound / sigma)))."""
    assert bits == min(40, math.floor(62 - math.log2(ratio)))
    grid = Grid.for_noise(1.0, 1.0, 1, ratio, 0.5)
    assert grid.bits == bits
    assert grid.bound / grid.step <= 2**62


def test_without_a_bound_values_reach_four_million_standard_deviations():
    grid = gaussian_grid(3.0, 2.0, 5)
    assert grid.bits == 40
    assert grid.bound == 1.5 * 2**22
    inside = gaussian([grid.bound, -grid.bound], 3.0, 2.0, NoiseSource(128))
    assert np.allclose(inside, [grid.bound, -grid.bound], rtol=1e-5)


@repeatable
@given(
    value=st.floats(allow_nan=True, allow_infinity=True),
    bound=st.floats(1e-6, 1e12),
    sensitivity=st.floats(1e-3, 1e3),
    mu=st.floats(1e-2, 1e2),
)
def test_released_values_are_grid_points_near_the_clipped_value(value, bound, sensitivity, mu):
    grid = gaussian_grid(sensitivity, mu, 1, bound)
    out = float(gaussian(value, sensitivity, mu, NoiseSource(129), bound=bound))
    whole = round(out / grid.step)
    assert abs(whole) < 2**63
    assert float(whole) * grid.step == out or abs(whole) >= 2**51  # beyond, a float cannot tell neighbouring points
    clipped = 0.0 if math.isnan(value) else min(max(value, -bound), bound)
    assert abs(out - clipped) < 13.5 * grid.scale + grid.step


@pytest.mark.parametrize(
    ("value", "centre"),
    [(1e300, 10.0), (-1e300, -10.0), (math.inf, 10.0), (-math.inf, -10.0), (math.nan, 0.0), (3.0, 3.0)],
)
def test_values_are_clipped_to_the_bound_and_nan_counts_as_zero(value, centre):
    out = gaussian([value, 1.0], 1e-3, 10.0, NoiseSource(130), bound=10.0)
    assert abs(out[0] - centre) < 0.01
    assert abs(out[1] - 1.0) < 0.01


def test_nan_without_a_bound_counts_as_zero():
    assert abs(gaussian(math.nan, 1e-3, 10.0, NoiseSource(131))) < 0.01


@pytest.mark.parametrize("value", [98765.4321e9, -98765.4321e9, math.inf, -math.inf])
def test_a_value_off_the_grid_is_refused_without_naming_it(value):
    with pytest.raises(OverflowError, match="declare a public `bound`") as caught:
        gaussian([1.5, value], 1.0, 1.0, NoiseSource(132))
    assert not any(text in str(caught.value) for text in ("9876", "inf", "1.5"))


@pytest.mark.parametrize("bound", [1e20, 1e200, 1.7e308])
def test_a_bound_too_large_for_64_bits_is_refused(bound):
    with pytest.raises(OverflowError, match="lower the bound or split"):
        gaussian(1.0, 1.0, 1.0, bound=bound)


@pytest.mark.parametrize(("size", "power"), [(10**30, 0.5), (10**13, 1.0)])
def test_a_release_too_long_for_64_bits_is_refused(size, power):
    with pytest.raises(OverflowError, match="split the release"):
        Grid.for_noise(1.0, 1.0, size, None, power)


@pytest.mark.parametrize(
    ("sensitivity", "mu"),
    [(1e-200, 1e200), (1e-200, 1e90), (1e300, 1e-20), (1e307, 1.0), (1.0, 5e-324), (5e-324, 1.0), (1.0, 1.7e308)],
)
@pytest.mark.parametrize("bound", [None, 1.0, 1e300])
def test_noise_that_float64_cannot_carry_is_refused(sensitivity, mu, bound):
    with pytest.raises(OverflowError, match="outside what float64 can carry"):
        gaussian(1.0, sensitivity, mu, bound=bound)


@pytest.mark.parametrize("scale", [1e-250, 1e-100, 1e100, 1e250])
def test_noise_of_any_usual_size_is_carried(scale):
    out = gaussian(np.zeros(1000), scale, 1.0, NoiseSource(133), bound=scale * 1e3)
    assert 0.8 < np.std(out / scale) < 1.2


@pytest.mark.parametrize("sensitivity", [-1.0, math.inf, math.nan])
def test_sensitivities_that_are_not_are_refused(sensitivity):
    with pytest.raises(ValueError, match="sensitivity must be"):
        gaussian(1.0, sensitivity, 1.0)


@pytest.mark.parametrize("mu", [0.0, -1.0, -math.inf, math.nan])
def test_mu_must_be_above_zero(mu):
    with pytest.raises(ValueError, match="mu must be"):
        gaussian(1.0, 1.0, mu)


@pytest.mark.parametrize("bound", [0.0, -1.0, math.inf, math.nan])
def test_bounds_must_be_positive_and_finite(bound):
    with pytest.raises(ValueError, match="bound must be"):
        gaussian(1.0, 1.0, 1.0, bound=bound)


@pytest.mark.parametrize(
    "argument", [{"sensitivity": "1"}, {"mu": True}, {"mu": None}, {"bound": "10"}, {"sensitivity": [1]}]
)
def test_parameters_that_are_not_numbers_are_refused(argument):
    with pytest.raises(TypeError, match="must be a real number"):
        gaussian(1.0, **{"sensitivity": 1.0, "mu": 1.0} | argument)


# Privacy: neighbours at the sensitivity are never farther apart on the grid than mu allows


def on_grid(grid, values):
    """The whole numbers the kernel makes of values, checked against the kernel itself."""
    clipped = np.clip(values, -grid.bound, grid.bound)
    whole = np.rint(clipped / grid.step)
    none = np.zeros(values.size, dtype=np.int64)
    assert np.array_equal(grid.release(values, none, strict=False), whole * grid.step)
    outside = pytest.raises(OverflowError, match="declare a public `bound`")
    with nullcontext() if np.all(np.abs(values) <= grid.bound) else outside:
        assert np.array_equal(grid.release(values, none, strict=True), whole * grid.step)
    return [int(q) for q in whole]


def exact_distance(one, other, norm):
    """Squared l2 or plain l1 distance, exactly."""
    parts = [abs(Fraction(a) - Fraction(b)) for a, b in zip(one, other, strict=True)]
    return sum(part * part for part in parts) if norm == 2 else sum(parts)


def neighbour(values, direction, sensitivity, norm):
    """`values` moved along `direction` by as much of the sensitivity as floats allow, and never more."""
    length = math.sqrt(np.dot(direction, direction)) if norm == 2 else float(np.abs(direction).sum())
    limit = Fraction(sensitivity) ** norm
    shrink = 1.0
    while True:
        moved = values + direction * (sensitivity / length * shrink)
        if exact_distance(values.tolist(), moved.tolist(), norm) <= limit:
            return moved
        shrink -= 2.0**-52 if shrink > 1 - 2.0**-46 else 1 - shrink
        if shrink <= 0.5:
            return values


significands = st.floats(1.0, 2.0, exclude_max=True)


@st.composite
def releases(draw):
    """Sensitivity, mu, values, direction of the neighbour, and bound (or none)."""
    size = draw(st.integers(1, 6))
    sensitivity = math.ldexp(draw(significands), draw(st.integers(-40, 40)))
    mu = math.ldexp(draw(significands), draw(st.integers(-8, 24)))
    reach = math.ldexp(draw(significands), draw(st.integers(-3, 20)))  # of values, in units of the sensitivity
    values = sensitivity * reach * np.array(draw(st.lists(st.floats(-1, 1), min_size=size, max_size=size)))
    direction = np.array(draw(st.lists(st.floats(-1, 1), min_size=size, max_size=size)))
    assume(np.abs(direction).max() > 1e-3)
    bound = draw(st.sampled_from([None, 1.0, 0.5, 3.0]))
    return sensitivity, mu, values, direction, None if bound is None else bound * sensitivity * reach


HALFWAY = st.sampled_from([None, 0.5, 0.5 - 2.0**-20, 0.5 + 2.0**-20])


@repeatable
@given(releases(), HALFWAY)
@example((1.0, 1.0, np.array([0.5]), np.array([-1.0]), 0.5), None)
@example((1.0, 2.0**24, np.array([0.5]), np.array([-1.0]), 0.5), None)
@example((1.5, 1859.4879456727504, np.array([0.75]), np.array([-1.0]), 0.75), None)
@example(
    (0.5668420451367969, 1859.4879456727504, np.array([0.28342102256839845]), np.array([-1.0]), 0.28342102256839845),
    None,
)
def test_effective_mu_never_exceeds_the_one_asked(release, halfway):
    """|q - q'|_2 / 2^K <= mu in exact fractions, also where values sit at the points at which rounding turns over."""
    sensitivity, mu, values, direction, bound = release
    grid = gaussian_grid(sensitivity, mu, len(values), bound)
    if halfway is not None:
        values = (np.floor(values / grid.step) + halfway) * grid.step
    moved = neighbour(values, direction, sensitivity, 2)
    squared = sum((a - b) ** 2 for a, b in zip(on_grid(grid, values), on_grid(grid, moved), strict=True))
    assert squared <= Fraction(mu) ** 2 * 4**grid.bits


@repeatable
@given(releases(), HALFWAY)
def test_effective_epsilon_of_laplace_never_exceeds_the_one_asked(release, halfway):
    sensitivity, epsilon, values, direction, bound = release
    grid = Grid.for_noise(sensitivity, 1.0 / epsilon, len(values), bound, 1.0)
    if halfway is not None:
        values = (np.floor(values / grid.step) + halfway) * grid.step
    moved = neighbour(values, direction, sensitivity, 1)
    distance = sum(abs(a - b) for a, b in zip(on_grid(grid, values), on_grid(grid, moved), strict=True))
    assert distance <= Fraction(epsilon) * 2**grid.bits


def test_neighbours_in_the_tests_use_the_whole_sensitivity():
    """Else the two tests above would test nothing."""
    values, direction = np.array([0.3, -2.0, 5.0]), np.array([0.1, 0.9, -0.4])
    moved = neighbour(values, direction, 1.7, 2)
    assert 1 - 1e-14 < float(exact_distance(values.tolist(), moved.tolist(), 2)) / 1.7**2 <= 1


def test_worst_rounding_is_paid_for():
    """Ten thousand coordinates that all round outwards exceed mu on a grid of sigma = sensitivity / mu, not on ours."""
    size, mu = 10_000, 1e-6

    def effective_mu(grid):
        steps = math.floor(1.0 / math.sqrt(size) / grid.step)  # of the sensitivity 1, in each coordinate
        low = np.full(size, -0.5 - 2.0**-20) * grid.step
        high = low + (steps + 2.0**-19) * grid.step
        assert exact_distance(low.tolist(), high.tolist(), 2) < 1
        squared = sum((a - b) ** 2 for a, b in zip(on_grid(grid, low), on_grid(grid, high), strict=True))
        return math.sqrt(squared) / 2**grid.bits

    assert effective_mu(Grid(scale=1.0 / mu, bits=40, bound=10.0)) > mu
    assert effective_mu(gaussian_grid(1.0, mu, size, 10.0)) <= mu


@pytest.mark.parametrize("power", [0.5, 1.0])
@pytest.mark.parametrize(("size", "bound"), [(1, None), (1, 3.0), (1000, 1e6), (10**6, 1e12)])
def test_noise_covers_the_documented_sensitivity(size, bound, power):
    """Sensitivity' = sensitivity + d^power (g + 2^-49 bound)."""
    grid = Grid.for_noise(2.0, 0.25, size, bound, power)
    wider = 2.0 + size**power * (grid.step + 2.0**-49 * grid.bound)
    assert grid.scale == pytest.approx(0.25 * wider, rel=1e-15)


def test_kernel_clips_and_counts():
    out = np.empty(5)
    values = np.array([1.0, 2.0, -7.0, np.nan, np.inf])
    inside = kernels.release_on_grid(values, np.zeros(5, dtype=np.int64), 4.0, 0.5, 0, out)
    assert not inside
    assert out.tolist() == [1.0, 2.0, -4.0, 0.0, 4.0]
    assert kernels.release_on_grid(np.array([np.nan, 4.0]), np.zeros(2, dtype=np.int64), 4.0, 0.5, 0, out[:2])


@pytest.mark.parametrize(("noise", "shift", "steps"), [(-1, 0, -1), (-1, 3, -1), (7, 3, 0), (8, 3, 1), (-9, 3, -2)])
def test_noise_is_rounded_down_to_coarser_grids(noise, shift, steps):
    out = np.empty(1)
    kernels.release_on_grid(np.zeros(1), np.array([noise]), 1.0, 0.25, shift, out)
    assert out[0] == steps * 0.25


# Float sums


@repeatable
@given(st.lists(st.floats(-1, 1), min_size=1, max_size=60), st.randoms(use_true_random=False), st.data())
def test_float_sums_change_by_no_more_than_contribution_and_slack(rows, shuffle, data):
    """One row present or zeroed, each world summed in an order of its own."""
    row = data.draw(st.integers(0, len(rows) - 1))
    with_row, without = list(rows), [0.0 if i == row else x for i, x in enumerate(rows)]
    shuffle.shuffle(with_row)
    shuffle.shuffle(without)
    largest = max(abs(x) for x in rows)
    change = abs(Fraction(running_sum(with_row)) - Fraction(running_sum(without)))
    assert change <= Fraction(largest) + Fraction(float_sum_slack(len(rows), largest))


@repeatable
@given(st.lists(st.floats(-1, 1), min_size=1, max_size=64), st.data())
def test_sums_of_known_depth_need_less_slack(rows, data):
    """Halves summed apart: a number passes through as many additions as n has halvings."""
    row = data.draw(st.integers(0, len(rows) - 1))
    without = [0.0 if i == row else x for i, x in enumerate(rows)]
    largest, depth = max(abs(x) for x in rows), max(1, math.ceil(math.log2(len(rows))))
    change = abs(Fraction(halved_sum(rows)) - Fraction(halved_sum(without)))
    slack = float_sum_slack(len(rows), largest, depth=depth)
    assert change <= Fraction(largest) + Fraction(slack)
    assert slack <= float_sum_slack(len(rows), largest)


def halved_sum(numbers):
    if len(numbers) == 1:
        return numbers[0]
    middle = (len(numbers) + 1) // 2
    return halved_sum(numbers[:middle]) + halved_sum(numbers[middle:])


def test_depth_replaces_the_number_of_rows_and_cannot_exceed_it():
    unit = 20 * 2.0**-53
    assert float_sum_slack(10**6, 3.0, depth=20) == pytest.approx(2e6 * 3.0 * unit / (1 - unit), rel=1e-14)
    assert float_sum_slack(10, 3.0, depth=1000) == float_sum_slack(10, 3.0)
    with pytest.raises(ValueError, match="depth must be at least 1"):
        float_sum_slack(10, 3.0, depth=0)


def running_sum(numbers):
    total = 0.0
    for x in numbers:
        total += x
    return total


@pytest.mark.parametrize("n", [2, 10, 100, 3000])
def test_slack_covers_sums_that_round_one_way(n):
    """1 followed by numbers just below half an ulp: every addition loses its term, the most that one order can."""
    rows = [1.0] + [2.0**-53] * (n - 1)
    exact = sum(Fraction(x) for x in rows)
    assert exact - Fraction(running_sum(rows)) == Fraction(n - 1, 2**53)
    assert Fraction(float_sum_slack(n, 1.0)) >= 2 * (exact - Fraction(running_sum(rows)))


@pytest.mark.parametrize("n", [1, 7, 10**5, 10**9, 2**51])
def test_slack_is_the_documented_bound(n):
    """2 n C gamma, gamma = n u / (1 - n u)."""
    gamma = Fraction(n, 2**53) / (1 - Fraction(n, 2**53))
    assert float_sum_slack(n, 3.0) == pytest.approx(float(2 * n * 3 * gamma), rel=1e-14)


def test_slack_of_nothing_is_nothing():
    assert float_sum_slack(1000, 0.0) == 0.0
    assert float_sum_slack(np.int64(1000), np.float64(2.0)) > 0


def test_slack_at_a_hundred_thousand_rows():
    assert float_sum_slack(100_000, 1.0) == pytest.approx(2e-6, rel=0.2)  # as documented


@pytest.mark.parametrize("n", [0, -5])
def test_slack_needs_rows(n):
    with pytest.raises(ValueError, match="n must be at least 1"):
        float_sum_slack(n, 1.0)


@pytest.mark.parametrize("n", [2.0, "3", True])
def test_slack_needs_a_count(n):
    with pytest.raises(TypeError, match="n must be an integer"):
        float_sum_slack(n, 1.0)


@pytest.mark.parametrize("contribution", [-1.0, math.nan, math.inf])
def test_slack_needs_a_contribution(contribution):
    with pytest.raises(ValueError, match="contribution must be"):
        float_sum_slack(10, contribution)


@pytest.mark.parametrize("n", [2**52, 2**60])
def test_slack_is_refused_where_it_means_nothing(n):
    with pytest.raises(OverflowError, match="no useful error bound"):
        float_sum_slack(n, 1.0)


def test_half_of_the_releases_lie_above_the_value():
    # two-sided binomial at FALSE_ALARM: a sign that depends on the value would show
    for value in (0.0, 1.0, -12345.678):
        out = gaussian(np.full(200_000, value), 1.0, 1.0, NoiseSource(134))
        assert binomial_tail(int(np.count_nonzero(out > value)), len(out), 0.5) > FALSE_ALARM
