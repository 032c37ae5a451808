"""The target of a regression: how it is read in much noise and in little, and what that releases."""

import math
from unittest.mock import patch

import numpy as np
import pytest

from tacit.bounding import target
from tacit.bounding.target import LabelScale
from tacit.privacy import Budget
from tests.preprocessing.support import neighbours, spend, transcript


def off(y, epsilon, seeds=20):
    """How far the centre is from the mean in deviations, and the scale from the deviation in octaves."""
    found = [spend(LabelScale(len(y), noisy=True), y, epsilon, seed=seed) for seed in range(seeds)]
    centres = np.array([float(one.centre[0]) for one in found])
    scales = np.array([float(one.scale[0]) for one in found])
    return np.abs(centres - y.mean()) / y.std(), np.abs(np.log2(scales / y.std()))


def test_three_looks_are_planned_where_there_is_noise_and_two_where_there_is_not():
    calm, noisy = LabelScale.of(100_000, None, Budget(1.0, 1e-6)), LabelScale.of(500, None, Budget(1.0, 1e-6))
    assert [release.name for release in calm.releases(0.1)] == ["label: magnitudes", "label: spread"]
    names = [release.name for release in noisy.releases(0.1)]
    assert names == ["label: magnitudes", "label: spread", "label: mean"]
    for label in (calm, noisy):
        assert sum(release.share for release in label.releases(0.1)) == pytest.approx(0.1)
    assert LabelScale.of(500, (0.0, 1.0), Budget(1.0, 1e-6)).releases(0.1) == ()
    assert not LabelScale.of(500, None, Budget(math.inf, 1e-6)).noisy


@pytest.mark.parametrize("shape", ["normal", "skewed", "above zero"])
def test_the_mean_of_few_rows_is_found(shape):
    """Noise of a bin is an eighth of the rows or so; twenty deviations from zero, bins alone tell a mean to one."""
    rng = np.random.default_rng(14)
    values = {
        "normal": rng.normal(20.0, 1.0, 440),
        "skewed": rng.exponential(size=440),
        "above zero": rng.normal(2.0, 1.0, 440),
    }
    centres, scales = off(10.0 * values[shape], 0.16)
    assert np.median(centres) < 0.2
    assert np.mean(centres < 0.6) >= 0.85
    assert np.median(scales) < 1.0


def test_the_last_look_finds_the_mean_where_no_law_is_right():
    rng = np.random.default_rng(15)
    y = np.where(rng.uniform(size=2000) < 0.7, rng.normal(100.0, 1.0, 2000), rng.normal(112.0, 1.0, 2000))
    centres, _ = off(y, 0.5)
    assert np.mean(centres) < 0.15


def test_a_row_moves_the_last_look_by_one_at_most_and_huge_targets_are_numbers():
    n = 30
    y = np.random.default_rng(16).normal(size=n)
    for value in (1e308, -1e308, 0.0, 1e-308):
        y[3] = value
        with transcript() as steps:
            spend(LabelScale(n, noisy=True), y, 2.0)
        last = steps[-1]
        assert (last.name, last.sensitivity) == ("label: mean", 1.0)
        with transcript(steps) as others:
            spend(LabelScale(n, noisy=True), np.delete(y, 3), 2.0)  # the number of rows is declared
        assert last.distance(others[-1]) <= 1.0
        if abs(value) > 1.0:
            assert last.distance(others[-1]) == 1.0


def test_where_bins_are_faint_windows_of_them_find_the_unit():
    """Noise of a bin is a seventh of the rows, as for 330 of them at an epsilon of .1, and rows are in six bins."""
    epsilon = Budget.from_mu(math.sqrt(3.0) / 47.0, 1e-6).epsilon

    def is_lost(seed, faint):
        rng = np.random.default_rng(seed)
        y = 2.0 ** rng.uniform(-7, 17) * rng.normal(size=330)
        with patch.object(target, "_FAINT", faint):
            found = spend(LabelScale(330, noisy=True), y, epsilon, seed=seed)
        return abs(np.log2(found.scale[0] / y.std())) > 3.0

    windows, bins = (np.mean([is_lost(seed, faint) for seed in range(60)]) for faint in (0.1, np.inf))
    assert windows < 0.06
    assert bins > 0.09


def test_a_row_is_in_four_windows_of_the_first_look_and_in_two_of_the_second():
    with transcript() as steps:
        spend(LabelScale(1, noisy=True), np.array([50.0]), 2.0)
    for step, width in zip(steps, (4, 2), strict=False):
        assert np.count_nonzero(step.value) == step.value.sum() == width
        assert np.linalg.norm(step.value) == step.sensitivity == math.sqrt(width)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_a_row_moves_windows_by_no_more_than_is_stated(adjacency):
    """The sign, the size or both differ: rows whose bins are next to each other share windows, and are less far."""
    n = 12
    data = np.random.default_rng(18).normal(5.0, 1.0, n)
    largest = {"label: magnitudes": 0.0, "label: spread": 0.0}
    for value in (-5.0, 0.0, 2.5, 10.0, 1e-300, 1e300, -1e300, math.nan):
        other = np.append(data[1:], value) if adjacency == "replace-one" else data[1:]
        for one, two in neighbours(lambda y: spend(LabelScale(n, noisy=True), y, 2.0, adjacency), data, other):
            assert len(one.value) == len(two.value)
            assert one.distance(two) <= one.sensitivity
            if one.name in largest:
                largest[one.name] = max(largest[one.name], one.distance(two) / one.sensitivity)
    assert list(largest.values()) == pytest.approx([1.0, 1.0])


def test_whether_windows_are_counted_is_told_by_public_numbers_alone():
    """Noise of a bin of 100 rows is above a tenth of them at this epsilon, and below it at the next."""
    for epsilon, widths in ((0.7, (2.0, math.sqrt(2.0))), (1.1, (1.0, 1.0))):
        for y in (np.zeros(100), np.full(100, 1e300), np.random.default_rng(19).normal(size=100)):
            with transcript() as steps:
                spend(LabelScale(100, noisy=True), y, epsilon)
            assert (steps[0].sensitivity, steps[1].sensitivity) == widths


@pytest.mark.parametrize("seed", range(4))
def test_a_target_that_is_lost_is_said_to_be_and_has_a_scale_all_the_same(seed):
    found = spend(LabelScale(2, noisy=True), np.full(2, 50.0), 1e-3, seed=seed)
    assert found.lost == 1
    assert np.isfinite(found.centre[0])
    assert found.scale[0] > 0.0
