"""What the scores say: scikit-learn's numbers without noise, near them with it, and an honest `noise`."""

import doctest
import importlib
import math
import pickle
import pkgutil
from itertools import pairwise

import numpy as np
import pytest
from sklearn import metrics as plain
from sklearn.linear_model import LogisticRegression

import tacit.metrics
from tacit.metrics import (
    R2,
    Accuracy,
    LogLoss,
    MeanSquaredError,
    RocAuc,
    Score,
    accuracy_score,
    log_loss,
    mean_squared_error,
    r2_score,
    roc_auc_score,
)
from tacit.metrics.ranking import ClassCounts, chosen_bins
from tacit.metrics.regression import SquaredErrors
from tacit.privacy import Guarantee

from .support import asked, every_adjacency, every_law

INF = math.inf
N = 1_500


def problem(n=N, seed=0):
    """Labels, probabilities, targets and predictions of a fair model."""
    rng = np.random.default_rng(seed)
    margin = rng.normal(size=n) * 1.5
    p = 1 / (1 + np.exp(-margin))
    y = (rng.random(n) < p).astype(int)
    target = 2.0 + margin + rng.normal(size=n)
    return y, p, target, 2.0 + margin


Y, P, TARGET, GUESS = problem()
BOUNDS = (-6.0, 10.0)  # no target lies outside
CALLS = {
    "accuracy": lambda **terms: accuracy_score(Y, P > 0.5, **terms),
    "log_loss": lambda **terms: log_loss(Y, P, **terms),
    "roc_auc": lambda **terms: roc_auc_score(Y, P, **terms),
    "r2": lambda **terms: r2_score(TARGET, GUESS, y_bounds=BOUNDS, **terms),
    "mean_squared_error": lambda **terms: mean_squared_error(TARGET, GUESS, y_bounds=BOUNDS, **terms),
}
PLAIN = {
    "accuracy": plain.accuracy_score(Y, P > 0.5),
    "log_loss": plain.log_loss(Y, np.clip(P, 0.01, 0.99)),
    "roc_auc": plain.roc_auc_score(Y, P),
    "r2": plain.r2_score(TARGET, GUESS),
    "mean_squared_error": plain.mean_squared_error(TARGET, GUESS),
}
every_metric = pytest.mark.parametrize("metric", CALLS)


@every_metric
def test_without_noise_it_is_scikit_learns_score(metric):
    score = CALLS[metric](epsilon=INF)
    # Within one of 512 bins scores count as ties; everything else is exact.
    tolerance = {"abs": 1e-4} if metric == "roc_auc" else {"rel": 1e-12}
    assert score.value == pytest.approx(PLAIN[metric], **tolerance)
    assert (score.metric, score.noise) == (metric, 0.0)
    assert "not private" in str(score)


@every_metric
@every_law
@every_adjacency
def test_noise_is_the_spread_of_the_scores(metric, law, adjacency):
    scores = [
        CALLS[metric](epsilon=2.0, delta=1e-6, mechanism=law, adjacency=adjacency, random_state=seed)
        for seed in range(200)
    ]
    off = np.array([(score.value - PLAIN[metric]) / score.noise for score in scores])
    # Of 200 draws: a standard deviation is known to 5% (Gaussian) or 8% (Laplace), a mean to 0.07.
    assert 0.75 < np.std(off) < 1.25
    assert abs(np.mean(off)) < (0.6 if metric == "roc_auc" else 0.3)  # ties in a bin cost half a deviation here


METRICS = {
    "accuracy": (Accuracy(), [(1, 1), (1, 0)] * 100),
    "log_loss": (LogLoss(clip=0.05), [(1, 0.3), (1, 0.9), (0, 0.2)] * 100),
    "roc_auc": (RocAuc(bins=4), [(0, 0.1), (0, 0.4), (1, 0.6), (0, 0.8)] * 50),
    "mean_squared_error": (MeanSquaredError((0.0, 8.0)), [(0.0, 1.0), (3.0, 2.0)] * 100),
    "r2": (R2((0.0, 8.0)), [(0.0, 1.0), (3.0, 2.0)] * 100),
}


@every_metric
def test_noise_is_the_slope_times_the_deviation(metric):
    query, sums, _ = asked(*METRICS[metric])
    step = 1e-4
    up, down = (
        [query.scores(sums + move, 0.01)[metric].value for move in way * np.eye(query.size)] for way in (step, -step)
    )
    slope = np.linalg.norm(np.subtract(up, down)) / (2 * step)
    assert query.scores(sums, 0.01)[metric].noise == pytest.approx(0.01 * slope, rel=1e-5)


def test_statistics_are_clipped_whatever_they_hold():
    query = SquaredErrors(3, 0.0, 1.0, r2=True)
    wild = np.array([5.0, -0.25, -7.0])
    np.testing.assert_array_equal(query.weighted(wild, wild, wild[:1]), [-0.75, -0.25, 1.0])


@every_metric
def test_noise_falls_as_epsilon_grows(metric):
    noises = [CALLS[metric](epsilon=epsilon, random_state=0).noise for epsilon in (0.1, 1.0, 10.0, 100.0)]
    assert all(before > 2 * after for before, after in pairwise(noises))
    last = CALLS[metric](epsilon=100.0, random_state=0)
    assert last.value == pytest.approx(PLAIN[metric], abs=0.002 + 6 * last.noise)


def test_scores_stay_in_their_range():
    y = np.arange(20) % 2
    for seed in range(30):
        terms = {"epsilon": 0.01, "delta": 1e-3, "random_state": seed}
        assert 0.0 <= accuracy_score(y, y, **terms).value <= 1.0
        assert -math.log(0.9) <= log_loss(y, y * 1.0, clip=0.1, **terms).value <= -math.log(0.1)
        assert 0.0 <= mean_squared_error(y, y, y_bounds=(0, 2), **terms).value <= 4.0
        area, explained = roc_auc_score(y, y, **terms).value, r2_score(y, y, y_bounds=(0, 1), **terms).value
        assert math.isnan(area) or 0.0 <= area <= 1.0
        assert math.isnan(explained) or explained <= 1.0


# --- classification ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y_true", "y_pred"),
    [
        (["a", "b", "b", "a"], ["a", "b", "a", "a"]),
        ([True, False, True, True], [1, 0, 1, 0]),
        ([1.0, 2.0, 3.0, 3.0], np.array([1, 2, 3, 4], dtype=np.int8)),
        (np.array(["a", 1, "b", "b"], dtype=object), np.array(["a", 1, "b", "c"], dtype=object)),
    ],
)
def test_labels_of_any_kind(y_true, y_pred):
    assert accuracy_score(y_true, y_pred, epsilon=INF).value == 0.75


def test_log_loss_of_several_classes():
    X, y = np.random.default_rng(0).normal(size=(600, 3)), np.arange(600) % 3
    names = np.array(["x", "y", "z"])
    table = LogisticRegression().fit(X + y[:, None], names[y]).predict_proba(X + y[:, None])
    assert np.min(table) > 1e-8
    exact = plain.log_loss(names[y], table)
    assert log_loss(names[y], table, labels=names, clip=1e-8, epsilon=INF).value == pytest.approx(exact, rel=1e-12)
    # Columns are in the order of the labels, whichever it is.
    turned = log_loss(names[y], table[:, ::-1], labels=names[::-1], clip=1e-8, epsilon=INF)
    assert turned.value == pytest.approx(exact, rel=1e-12)
    # Without names, classes are numbers.
    assert log_loss(y, table, clip=1e-8, epsilon=INF).value == pytest.approx(exact, rel=1e-12)


def test_log_loss_clips():
    y, p = [0, 1, 1, 1], [1.0, 0.0, 1.0, 0.5]
    exact = (2 * -math.log(0.1) - math.log(0.9) - math.log(0.5)) / 4
    assert log_loss(y, p, clip=0.1, epsilon=INF).value == pytest.approx(exact, rel=1e-12)
    wide, narrow = (log_loss(y, p, clip=clip, epsilon=1.0, delta=1e-3).noise for clip in (1e-4, 1e-2))
    assert wide / narrow == pytest.approx(math.log(1e4 - 1) / math.log(1e2 - 1), rel=1e-6)


# --- ranking -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.5, 0.02])
def test_ties_in_bins_cost_no_more_than_stated(rate):
    rng = np.random.default_rng(0)
    y = rng.random(20_000) < rate
    p = 1 / (1 + np.exp(-(1.5 * rng.normal(size=20_000) + 2 * y - 1 + math.log(rate / (1 - rate)))))
    exact = plain.roc_auc_score(y, p)
    for bins in (8, 32, 128):
        edges = np.sin(np.pi / 2 * np.arange(1, bins) / bins) ** 2
        shared = np.sum(ClassCounts(20_000, tuple(edges)).sums(y, p).reshape(2, bins).prod(axis=0)) / (
            y.sum() * (~y).sum()
        )
        value = roc_auc_score(y, p, labels=(False, True), bins=bins, epsilon=INF).value
        assert abs(exact - value) <= shared / 2
    assert abs(exact - value) < 0.001


def test_scores_of_any_range_are_ranked():
    margins = np.log(P / (1 - P))
    exact = roc_auc_score(Y, margins, score_bounds=(-8, 8), epsilon=INF).value
    assert exact == pytest.approx(PLAIN["roc_auc"], abs=5e-4)
    # Beyond the bounds all scores are equal.
    signs = roc_auc_score(Y, margins, score_bounds=(-1e-9, 1e-9), bins=2, epsilon=INF).value
    assert signs == pytest.approx(plain.roc_auc_score(Y, margins > 0), abs=1e-12)
    assert roc_auc_score(Y, -margins, score_bounds=(-8, 8), epsilon=INF).value == pytest.approx(1 - exact, abs=1e-4)


def test_bins_follow_from_public_numbers():
    assert chosen_bins(10, 1.0) == 8
    assert chosen_bins(10_000, 1.0) == chosen_bins(100_000, 0.1) == 40
    assert chosen_bins(10**9, 1.0) == chosen_bins(10, INF) == 512


@pytest.mark.parametrize("label", [0, 1])
def test_one_class_has_no_area(label):
    y = np.full(500, label)
    for epsilon in (1.0, INF):
        score = roc_auc_score(y, np.linspace(0, 1, 500), epsilon=epsilon, random_state=0)
        assert math.isnan(score.value)
        assert score.noise == INF
        assert "roc_auc undefined" in str(score)


def test_counts_below_zero_do_not_bias_the_area():
    """1,000 noisy areas of empty bins beside two full ones: clipping counts at zero would pull them to 1/2."""
    query = ClassCounts(800, tuple(np.arange(1, 40) / 40))
    exact = query.sums(np.arange(800) % 2 == 1, np.where(np.arange(800) % 2 == 1, 0.99, 0.01))
    noise = np.random.default_rng(0).normal(scale=10.0, size=(1_000, 80))
    areas = [query.scores(exact + row, 10.0)["roc_auc"].value for row in noise]
    assert np.mean(areas) > 0.9


# --- regression --------------------------------------------------------------------------------------------


def test_r2_is_that_of_clipped_numbers():
    low, high = 1.0, 3.0
    clipped = plain.r2_score(np.clip(TARGET, low, high), np.clip(GUESS, low, high))
    score = r2_score(TARGET, GUESS, y_bounds=(low, high), epsilon=INF)
    assert score.value == pytest.approx(clipped, rel=1e-10)
    assert score.value != pytest.approx(PLAIN["r2"], abs=0.01)


def test_scores_below_zero_are_said():
    y = np.linspace(0, 1, 400)
    assert r2_score(y, 1 - y, y_bounds=(0, 1), epsilon=INF).value == pytest.approx(-3.0)


def test_r2_of_equal_targets_is_undefined():
    y = np.full(500, 0.3)
    for epsilon in (1.0, INF):
        score = r2_score(y, y + 0.1, y_bounds=(0, 1), epsilon=epsilon, random_state=0)
        assert math.isnan(score.value)
        assert score.noise == INF


def test_weights_put_the_noise_where_it_matters():
    """The noise of R2 at R2 = 1/2 and a mean a quarter off the centre, against the best of a grid of weights."""

    def spread(weights, order):
        size = np.linalg.norm(weights, order)
        error, mean, square = (size / weight for weight in weights)
        return math.hypot(2 * error, 0.5 * square / 2, 0.5 * 2 * 0.25 * mean)

    query = SquaredErrors(10, 0.0, 1.0, r2=True)
    grid = np.linspace(0.2, 3.0, 40)
    for order in (1, 2):
        best = min(spread((3.0, b, d), order) for b in grid for d in grid)
        assert spread(query.weights, order) < 1.03 * best


# --- the score itself --------------------------------------------------------------------------------------


def test_a_score_reads_as_a_sentence_and_as_a_number():
    from dp_accounting import LaplaceDpEvent

    guarantee = Guarantee(1.0, 1e-6, "add-remove", "evaluation", LaplaceDpEvent(1.0), n_rows=569)
    score = Score("accuracy", 0.95312, 0.0021, guarantee)
    assert str(score) == (
        "accuracy 0.9531 ± 0.0021 from noise;"
        " (1.0, 1e-06)-DP, add-remove one row of 569; evaluation solver, 1 Laplace release"
    )
    assert repr(score) == f"Score({score})"
    assert float(score) == 0.95312
    assert f"{score:.2f}" == "0.95"
    assert f"{score}" == str(score)
    assert pickle.loads(pickle.dumps(score)) == score
    assert str(Score("mean_squared_error", 1234.6, 56.0, guarantee)).startswith("mean_squared_error 1235 ± 56 from")
    with pytest.raises(AttributeError):
        score.value = 1.0


@pytest.mark.parametrize(
    "name", [f"tacit.metrics.{module.name}" for module in pkgutil.iter_modules(tacit.metrics.__path__)]
)
def test_examples_in_docstrings_are_true(name):
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


def test_every_public_name_exists():
    assert len(set(tacit.metrics.__all__)) == len(tacit.metrics.__all__)
    for name in tacit.metrics.__all__:
        assert getattr(tacit.metrics, name).__doc__
