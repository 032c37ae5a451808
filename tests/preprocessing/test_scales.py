import math

import numpy as np
import pytest
from scipy.optimize import minimize

from tacit.blocks import Scaling
from tacit.bounding.norms import MomentScale, NormScale
from tacit.bounding.scales import MagnitudeScale
from tacit.bounding.target import LabelScale
from tacit.bounding.templates import Reader
from tacit.privacy import Budget, Gate, Plan
from tacit.privacy.mechanisms import Quantile, selection

from .support import neighbours, open_gate, spend, transcript

ADJACENCIES = ("add-remove", "replace-one")
both = pytest.mark.parametrize("adjacency", ADJACENCIES)
N, D = 40, 5


def table(seed=0, n=N, d=D):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * np.exp(rng.normal(size=d) * 3)


SCALES = {
    "magnitudes": (MagnitudeScale(N, D), table()),
    "moments": (MomentScale(N, D, 2.0), table()),
    "label": (LabelScale(N), table()[:, 0]),
    "label in noise": (LabelScale(N, noisy=True), table()[:, 0]),
    "declared label": (LabelScale(N, (-1.0, 5.0)), table()[:, 0]),
}


# --- the plan is kept --------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("epsilon", [0.05, 1.0, math.inf])
@pytest.mark.parametrize("name", ["magnitudes", "moments", "label", "label in noise"])
def test_a_run_makes_the_releases_of_its_plan(name, epsilon, adjacency):
    scale, data = SCALES[name]
    with transcript() as steps:
        result = spend(scale, data, epsilon, adjacency)
    assert [step.name for step in steps] == [r.name for r in scale.releases(1.0) for _ in range(r.count)]
    assert np.all(np.isfinite(result.centre))
    assert np.all((result.scale > 0) & np.isfinite(result.scale))


@both
def test_norm_run_makes_the_release_of_its_plan(adjacency):
    assert spend(NormScale(N, D), np.ones(N), adjacency=adjacency) > 0.0


def test_what_is_declared_costs_nothing():
    assert LabelScale(N, (-1.0, 5.0)).releases(1.0) == ()
    assert NormScale(N, D, row_norm=3.0).releases(1.0) == ()
    assert NormScale(N, D, row_norm=3.0).share(Budget(1.0, 1e-6), D) == 0.0
    other = open_gate(MagnitudeScale(N, D).releases(1.0))
    assert NormScale(N, D, row_norm=3.0).run(other, np.ones(N)) == 3.0
    result = LabelScale(N, (-1.0, 5.0)).run(other, np.ones(N))
    assert (result.low[0], result.high[0]) == (pytest.approx(-1.0), pytest.approx(5.0))
    assert other.left("scale: magnitudes") == 1


def test_a_share_is_a_part_and_falls_with_the_rows():
    shares = [MagnitudeScale(n, 20).share(Budget(1.0, 1e-6), 20) for n in (50, 500, 2000, 100_000)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == 0.40
    assert 0.1 <= shares[-1] <= 0.2
    assert MagnitudeScale(50, 20).share(Budget(math.inf, 1e-6), 20) == shares[-1]
    assert NormScale(50, 20).share(Budget(1.0, 1e-6), 20) == MomentScale(50, 20, 1.0).share(Budget(1.0, 1e-6), 20)


# --- one row moves a release by no more than its stated sensitivity -----------------------------------------

ROWS = [
    np.zeros(D),
    np.full(D, 1e300),
    np.full(D, -1e300),
    np.full(D, 1e-300),
    np.array([math.nan, math.inf, -math.inf, 0.0, 1.0]),
    np.array([5.0, -5.0, 5.0, -5.0, 5.0]),
    np.array([1.0, 0.0, 0.0, 0.0, 0.0]),
]


@both
@pytest.mark.parametrize("name", ["magnitudes", "label", "label in noise"])
def test_histograms_and_means_move_by_at_most_their_sensitivity(name, adjacency):
    scale, data = SCALES[name]
    rng = np.random.default_rng(1)
    largest = 0.0
    for trial in range(40):
        other = data.copy()
        row = ROWS[trial % len(ROWS)] if trial < 20 else rng.normal(size=D) * 10.0 ** rng.integers(-8, 8, size=D)
        other[trial % N] = row if data.ndim == 2 else row[0]
        for one, two in neighbours(lambda X: spend(scale, X, 2.0, adjacency), data, other):
            apart = 1.0 if adjacency == "replace-one" else 2.0 if one.name == "label: mean" else math.sqrt(2.0)
            bound = apart * one.sensitivity
            assert one.distance(two) <= bound
            largest = max(largest, one.distance(two) / bound)
    assert largest == pytest.approx(1.0)  # and the bound is reached


def test_a_row_counts_once_in_each_column():
    with transcript() as steps:
        spend(MagnitudeScale(1, D), table(n=1))
    for step in steps:
        np.testing.assert_array_equal(step.value.sum(axis=1), 1.0)
        assert np.linalg.norm(step.value) <= step.sensitivity == math.sqrt(D)


def worst_moments(dimension, seed):
    """A pair of rows of norm at most 1 whose moments are far apart, by local search from a random start."""

    def rows(flat):
        pair = flat.reshape(2, dimension)
        return pair / np.maximum(np.linalg.norm(pair, axis=1, keepdims=True), 1.0)

    def closeness(flat):
        x, z = rows(flat)
        return -np.linalg.norm(np.concatenate([x - z, x**2 - z**2]))

    start = np.random.default_rng(seed).normal(size=2 * dimension)
    return rows(minimize(closeness, start, method="Nelder-Mead", options={"maxfev": 1500}).x)


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_moments_move_by_at_most_their_sensitivity(dimension):
    """The farthest pair is sqrt(4.5) apart, exactly what is stated; in one dimension it is 2."""
    scale = MomentScale(N, dimension, 2.0)
    data = table(2, d=dimension)
    rng = np.random.default_rng(3)
    pairs = [worst_moments(dimension, seed) * 2.0 for seed in range(4)]
    pairs += [rng.normal(size=(2, dimension)) * 10.0 ** rng.integers(-3, 4) for _ in range(20)]
    pairs += [np.vstack([np.full(dimension, 1e308), np.full(dimension, -1e308)])]
    largest = 0.0
    for x, z in pairs:
        one, other = data.copy(), data.copy()
        one[7], other[7] = x, z
        [(a, b)] = neighbours(lambda X: spend(scale, X, adjacency="replace-one"), one, other)
        assert a.distance(b) <= a.sensitivity
        largest = max(largest, a.distance(b) / a.sensitivity)
    expected = 1.0 if dimension > 1 else 2.0 / math.sqrt(4.5)
    assert largest == pytest.approx(expected, rel=1e-3)


def test_one_row_of_moments_is_within_the_add_remove_sensitivity():
    rng = np.random.default_rng(4)
    largest = 0.0
    for row in [np.array([[1.0, 0.0, 0.0]]), *(rng.normal(size=(1, 3)) * 10.0 ** rng.integers(-2, 200, 1))][:30]:
        with transcript() as steps:
            spend(MomentScale(1, 3, 1.0), row.reshape(1, 3))
        assert np.linalg.norm(steps[0].value) <= steps[0].sensitivity
        largest = max(largest, np.linalg.norm(steps[0].value) / steps[0].sensitivity)
    assert largest == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize("row", [[math.nan, 0.0], [math.inf, 1.0], [1e308, 1e308]])
def test_a_row_of_moments_that_is_not_finite_does_not_poison_the_rest(row):
    data = table(5, d=2)
    data[3] = row
    with transcript() as steps:
        spend(MomentScale(N, 2, 1.0), data)
    assert np.all(np.isfinite(steps[0].value))


@both
def test_norm_scores_move_by_at_most_their_spread(monkeypatch, adjacency):
    seen = []
    original = selection._pick

    def pick(scores, spread, *drawn):
        seen.append((scores.copy(), spread, drawn[-1].copy()))
        return original(scores, spread, *drawn)

    monkeypatch.setattr(selection, "_pick", pick)
    rng = np.random.default_rng(6)
    norms = np.abs(rng.normal(size=N)) * 10
    for value in (0.0, 1e-200, 0.5, 3.0, 1e9, math.inf, math.nan):
        other = norms.copy()
        other[5] = value
        seen.clear()
        for data in (norms, other):
            spend(NormScale(N, D), data, adjacency=adjacency)
        (one, spread, prior), (two, _, same_prior) = seen
        change = one - two
        assert change.max() - change.min() <= spread
        np.testing.assert_array_equal(prior, same_prior)


# --- what they find ----------------------------------------------------------------------------------------


def columns(n, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "lognormal": rng.lognormal(size=n),
        "uniform": rng.random(n),
        "one-hot": (rng.random(n) < 0.3) * 1.0,
        "rare": (rng.random(n) < 0.01) * 1.0,
        "two points": rng.choice([-1e6, 1e6], size=n),
        "small": rng.normal(size=n) * 1e-4,
        "normal": rng.normal(5.0, 2.0, size=n),
        "ages": rng.uniform(20.0, 90.0, size=n),
    }


@both
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_magnitudes_find_centres_and_scales(adjacency, dtype):
    X = np.column_stack(list(columns(20_000).values())).astype(dtype)
    for seed in range(3):
        found = spend(MagnitudeScale(*X.shape), X, 4.0, adjacency, seed)
        assert found.lost == 0
        deviation = X.std(axis=0, dtype=np.float64)
        assert np.all(np.abs(found.centre - X.mean(axis=0, dtype=np.float64)) <= 0.2 * deviation)
        deviation[3] = (1.0 - X[:, 3].mean()) / 3.0  # rare ones, which are not clipped
        np.testing.assert_allclose(found.scale, deviation, rtol=0.2)


def test_a_constant_column_keeps_a_scale():
    X = np.column_stack([np.full(5000, 7.0), np.zeros(5000), np.full(5000, -1e6), np.full(5000, 8.0)])
    found = spend(MagnitudeScale(5000, 4), X, 4.0)
    assert found.lost == 0
    np.testing.assert_array_equal(found.centre[[0, 1, 3]], [7.0, 0.0, 8.0])
    assert found.centre[2] == pytest.approx(-1e6, rel=0.1)
    assert np.all((found.scale > 0) & np.isfinite(found.scale))
    assert np.all(np.abs(found.transform(X)) < 3.0)  # inside the clip


def test_labels_are_found_like_a_column():
    y = np.random.default_rng(8).normal(150.0, 40.0, size=5000)
    found = spend(LabelScale(5000), y, 2.0)
    assert abs(found.centre[0] - y.mean()) <= 0.2 * y.std()
    assert found.scale[0] == pytest.approx(y.std(), rel=0.2)


@pytest.mark.parametrize("row_norm", [1.0, 100.0])
def test_moments_find_centres_and_scales(row_norm):
    rng = np.random.default_rng(9)
    X = rng.normal([0.1, -0.2, 0.0, 0.3], [0.2, 0.1, 0.15, 0.2], size=(20_000, 4))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    X *= row_norm
    found = spend(MomentScale(20_000, 4, row_norm), X, 2.0)
    assert np.all(np.abs(found.centre - X.mean(axis=0)) <= 0.2 * X.std(axis=0))
    np.testing.assert_allclose(found.scale, X.std(axis=0), rtol=0.2)


def test_moments_of_tiny_columns_are_numbers():
    X = np.column_stack([np.linspace(-1.0, 1.0, 50), np.full(50, 1e-170), np.zeros(50)])
    for epsilon in (1.0, math.inf):
        found = spend(MomentScale(50, 3, 1.0), X, epsilon)
        assert np.all(np.isfinite(found.centre))
        assert np.all((found.scale > 0) & np.isfinite(found.scale))


def test_moments_of_nothing_are_numbers():
    for epsilon in (0.01, math.inf):
        found = spend(MomentScale(30, 4, 1.0), np.zeros((30, 4)), epsilon)
        assert np.all(np.isfinite(found.centre))
        assert np.all((found.scale > 0) & np.isfinite(found.scale))


@both
@pytest.mark.parametrize("epsilon", [1e-3, 0.05, 0.5])
def test_columns_that_are_lost_in_noise_take_a_scale_all_the_same(epsilon, adjacency):
    lost = []
    for seed in range(15):
        X = table(seed, n=60, d=30)
        with transcript() as steps:
            found = spend(MagnitudeScale(60, 30), X, epsilon, adjacency, seed)
        lost.append(found.lost)
        assert np.all(np.isfinite(found.centre))
        assert np.all((found.scale > 0) & np.isfinite(found.scale))
        assert len(steps) == 2  # the second release is made whether or not columns were found
    assert max(lost) > 0


def test_a_lost_column_among_others_takes_a_pooled_scale():
    """Where bins are clear columns are read alone: one that is spread over all of them shows nothing in any."""
    rng = np.random.default_rng(13)
    X = rng.normal(0.0, 20.0, size=(3000, 4))
    X[:, 2] = rng.choice([-1.0, 1.0], 3000) * 2.0 ** rng.uniform(-24.0, 24.0, 3000)
    lost = 0
    for seed in range(8):
        found = spend(MagnitudeScale(3000, 4), X, 0.15, seed=seed)
        if found.lost:
            assert found.centre[2] == 0.0
            assert 20.0 / 2 < found.scale[2] < 20.0 * 2  # that of the others, in powers of two
            lost += found.lost
    assert 5 <= lost <= 8  # a bin of pure noise passes for a scale now and then


def test_a_lost_column_keeps_nothing_of_what_was_found_in_other_units():
    """Two values that stand out around a centre of zero, once the first histogram showed nothing."""
    n, d, lost = 20_000, 50, 0
    X = np.full((n, d), 2.0**-20)
    X[:, 0] = np.nan
    values = np.concatenate([np.repeat(2.0 ** np.arange(1, 25), 250), np.repeat(2.0 ** -np.arange(9.0, 25.0), 250)])
    X[: len(values), 0] = values
    for seed in range(6):
        found = spend(MagnitudeScale(n, d), X, 0.07, seed=seed)
        lost += found.lost
        assert found.limits.max() <= 3.0 + 1e-9
    assert lost > 0


def test_columns_far_from_zero_have_the_scale_of_what_they_differ_by():
    """Years: all of a column lies in one bin of the first histogram."""
    rng = np.random.default_rng(15)
    X = np.column_stack([rng.normal(2016.0, 6.0, size=(4000, 5)), rng.normal(0.0, 6.0, size=(4000, 15))])
    near = []
    for seed in range(4):
        found = spend(MagnitudeScale(4000, 20), X, 0.15, seed=seed)
        near += [*np.abs(np.log2(found.scale[:5] / 6.0)), *np.abs((found.centre[:5] - 2016.0) / 6.0)]
    assert np.mean(np.array(near) < 1.0) > 0.9


def test_a_skewed_column_above_zero_is_not_taken_for_a_narrow_one():
    """Prices from 42 on, among columns of 0 and 1. Most lie in two bins; read too narrow, a third would be clipped."""
    rng = np.random.default_rng(16)
    ratios = []
    for seed in range(20):
        X = (rng.random((4000, 20)) < 0.2).astype(np.float64)
        X[:, 0] = 42.0 + rng.exponential(40.0, size=4000)
        found = spend(MagnitudeScale(4000, 20), X, 0.15, seed=seed)
        ratios.append(math.log2(found.scale[0] / 40.0))
    assert np.mean(np.abs(ratios) < 1.0) > 0.9


def test_with_no_rows_to_speak_of_scales_are_what_is_believed_beforehand():
    middle = []
    for seed in range(10):
        found = spend(MagnitudeScale(2, 3), np.ones((2, 3)), 1e-3, seed=seed)
        assert found.lost >= 2  # a bin of pure noise passes for a scale now and then
        middle += np.log2(found.scale).tolist()
    assert abs(np.median(middle)) < 4.0


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 10.0])
def test_columns_of_zeros_and_ones_are_never_clipped(epsilon):
    rng = np.random.default_rng(11)
    often = np.geomspace(1e-3, 0.5, 40)
    X = (rng.random((3000, 40)) < often).astype(np.float64)
    for seed in range(4):
        found = spend(MagnitudeScale(3000, 40), X, epsilon, seed=seed)
        assert np.all(found.high >= 1.0 - 1e-12)
        assert np.all(found.low <= 1e-12)
        assert np.all(found.high[often > 0.1] <= 8.0)


def test_what_other_columns_show_tells_the_unit_of_one():
    """A column that is lost in the noise is read as the others are; alone it would take any unit."""
    rng = np.random.default_rng(12)
    X = rng.normal(100.0, 20.0, size=(400, 50))
    near = []
    for seed in range(5):
        found = spend(MagnitudeScale(400, 50), X, 0.5, seed=seed)
        assert Reader.is_due(400, 50, math.sqrt(50.0) / (Budget(0.5, 1e-6).mu * math.sqrt(0.5)))
        near.append(np.mean(np.abs(np.log2(found.scale / 20.0)) < 1.5))
    assert np.mean(near) > 0.8


def test_scaling_clips_to_its_ends():
    scaling = Scaling(np.array([1.0, -2.0]), np.array([2.0, 0.5]), 3.0)
    np.testing.assert_array_equal(scaling.low, [-5.0, -3.5])
    np.testing.assert_array_equal(scaling.high, [7.0, -0.5])
    ends = np.array([scaling.low - 9.0, scaling.low, scaling.centre, scaling.high, scaling.high + 9.0])
    np.testing.assert_array_equal(scaling.transform(ends)[:, 0], [-3.0, -3.0, 0.0, 3.0, 3.0])


# --- row norms of sparse tables ----------------------------------------------------------------------------


@both
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("law", ["normal", "heavy", "equal"])
def test_norm_bound_is_near_the_high_quantile(law, size, adjacency):
    rng = np.random.default_rng(10)
    norms = (
        size
        * {
            "normal": np.sqrt(rng.chisquare(20, size=2000)),
            "heavy": rng.lognormal(sigma=1.0, size=2000),
            "equal": np.ones(2000),
        }[law]
    )
    for seed in range(10):
        bound = spend(NormScale(2000, 50), norms, 1.0, adjacency, seed)
        assert 1 / 3 <= bound / np.quantile(norms, 0.95) <= 3.0


def test_norm_bound_on_a_small_part_of_a_budget():
    scale = NormScale(3000, 50)
    plan = (*scale.releases(0.05), *MagnitudeScale(3000, 1, "rest").releases(0.95))
    bounds = [scale.run(open_gate(plan, seed=seed), np.ones(3000)) for seed in range(20)]
    assert min(bounds) == 1.0
    assert np.median(bounds) <= 3.0
    assert max(bounds) <= 32.0  # of 2^20: candidates above the longest row are not drawn evenly


def test_norm_bound_without_privacy_is_the_quantile_on_the_grid():
    norms = np.linspace(0.0, 10.0, 1001)
    bound = spend(NormScale(1001, 50), norms, math.inf)
    assert 0.8 * 9.5 <= bound <= 1.25 * 9.5


def test_norm_bound_of_empty_rows_is_the_lowest_candidate():
    assert spend(NormScale(1000, 50), np.zeros(1000)) <= 2.0**-18


def test_norms_that_are_not_numbers_do_not_raise():
    norms = np.r_[np.ones(500), np.full(20, np.nan), np.full(10, np.inf)]
    assert 0.3 <= spend(NormScale(530, 50), norms, 5.0) <= 3.0


def test_norm_preference_does_not_depend_on_the_data():
    """Lower candidates are preferred by a public amount: the steepness comes from the plan alone."""
    seen = []

    def draw(self, grant, _):
        grant.take()
        seen.append(self.steepness)
        return 1.0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Quantile, "draw", draw)
        for norms in (np.zeros(N), np.full(N, 1e9)):
            scale = NormScale(N, D)
            scale.run(Gate(Plan(*scale.releases(1.0)).calibrate(Budget(1.0, 1e-6), ROWS, "test"), None), norms)
    assert seen[0] == seen[1] > 0
