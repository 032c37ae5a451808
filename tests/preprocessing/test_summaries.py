import math

import numpy as np
import pytest
from scipy import stats

from tacit.preprocessing import private_mean, private_quantile
from tacit.privacy import gdp

ADJACENCIES = ("add-remove", "replace-one")
both = pytest.mark.parametrize("adjacency", ADJACENCIES)
FALSE_ALARM = 1e-7  # for each test; the seeds are fixed besides


# --- mean --------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_mean_has_the_noise_its_guarantee_needs(adjacency, epsilon):
    n, d, norm = 10, 20_000, 3.0
    value, guarantee = private_mean(np.zeros((n, d)), norm, epsilon, 1e-6, adjacency=adjacency, random_state=0)
    mu = gdp.mu_from_budget(epsilon, 1e-6)
    sensitivity = norm if adjacency == "add-remove" else 2.0 * norm
    squares = float(np.sum((value * n * mu / sensitivity) ** 2))
    low, high = stats.chi2.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], d)
    assert low * 0.999 < squares < high * 1.001
    assert guarantee.mu == pytest.approx(mu, rel=1e-5)
    assert guarantee.mu <= mu


def test_mean_is_that_of_clipped_rows():
    X = np.random.default_rng(0).normal(1.0, 2.0, size=(500, 3))
    clipped = X / np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    np.testing.assert_allclose(private_mean(X, 1.0, math.inf).value, clipped.mean(axis=0), rtol=1e-8)
    noisy = private_mean(X, 1.0, 5.0, random_state=1).value
    np.testing.assert_allclose(noisy, clipped.mean(axis=0), atol=0.02)


@both
def test_mean_guarantee(adjacency):
    guarantee = private_mean(np.ones((200, 2)), 2.0, 1.5, adjacency=adjacency).guarantee
    assert 0.99 * 1.5 <= guarantee.recompute() <= 1.5
    assert (guarantee.delta, guarantee.adjacency, guarantee.n_rows) == (200**-1.5, adjacency, 200)
    assert not guarantee.seeded


def test_mean_repeats_with_a_seed_only():
    X = np.ones((20, 2))
    np.testing.assert_array_equal(private_mean(X, 2.0, random_state=3)[0], private_mean(X, 2.0, random_state=3)[0])
    assert private_mean(X, 2.0, random_state=3).guarantee.seeded
    assert not np.array_equal(private_mean(X, 2.0).value, private_mean(X, 2.0).value)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones(5), "table of at least two rows"),
        (np.ones((1, 5)), "table of at least two rows"),
        ([[1.0, math.nan], [1.0, 2.0]], "NaN or infinity"),
        ([[1.0, math.inf], [1.0, 2.0]], "NaN or infinity"),
    ],
    ids=["vector", "one row", "nan", "inf"],
)
def test_mean_refuses_bad_tables(X, message):
    with pytest.raises(ValueError, match=message):
        private_mean(X, 1.0)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"row_norm": 0.0}, "row_norm must be above 0"),
        ({"row_norm": -1.0}, "row_norm must be above 0"),
        ({"epsilon": 0.0}, "epsilon must be above 0"),
        ({"delta": 0.0}, "delta must lie"),
        ({"adjacency": "other"}, "adjacency must be one of"),
        ({"random_state": -3}, "random_state must be"),
    ],
    ids=str,
)
def test_mean_refuses_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        private_mean(np.ones((9, 2)), **{"row_norm": 1.0, **parameters})


@pytest.mark.parametrize("call", [lambda v: private_mean([v, v], 1.0), lambda v: private_quantile(v, 0.5, [0.0, 1.0])])
def test_messages_do_not_quote_the_data(call):
    with pytest.raises(ValueError, match="real numbers") as caught:
        call(["1.5", "diagnosis: F32.1"])
    assert "F32" not in str(caught.value)
    assert caught.value.__suppress_context__


# --- quantile ----------------------------------------------------------------------------------------------


@both
def test_quantile_draws_by_the_exponential_mechanism(adjacency):
    """Two candidates whose ranks are off by 10 and by 0: log-odds e0 (10 - 0) / 2."""
    values = np.r_[np.zeros(10), np.full(10, 3.0), np.full(20, 9.0)]
    grid = [1.0, 5.0]  # ranks 10 and 20; the median's is 20
    draws = [
        private_quantile(values, 0.5, grid, 0.8, 1e-3, adjacency=adjacency, random_state=seed) for seed in range(3000)
    ]
    e0 = math.sqrt(8.0 * zcdp(draws[0].guarantee))
    probability = 1.0 / (1.0 + math.exp(-e0 * 10.0 / 2.0))
    assert 0.55 < probability < 0.95
    upper = sum(draw.value == 5.0 for draw in draws)
    assert stats.binomtest(upper, 3000, probability).pvalue > FALSE_ALARM


def zcdp(guarantee):
    """The rho of the single selection of a guarantee."""
    from dp_accounting import ZCDpEvent

    def events(event):
        return [event] if not hasattr(event, "events") else [e for part in event.events for e in events(part)]

    [event] = events(guarantee.event)
    assert isinstance(event, ZCDpEvent)
    return event.rho


@both
@pytest.mark.parametrize("q", [0.05, 0.5, 0.95])
def test_quantile_is_near_the_quantile(adjacency, q):
    values = np.random.default_rng(1).normal(size=5000)
    grid = np.linspace(-4.0, 4.0, 161)
    value, guarantee = private_quantile(values, q, grid, 1.0, adjacency=adjacency, random_state=0)
    assert value == pytest.approx(np.quantile(values, q), abs=0.3)
    assert 0.9 <= guarantee.recompute() <= 1.0
    assert (guarantee.n_rows, guarantee.adjacency, guarantee.seeded) == (5000, adjacency, True)


def test_quantile_without_privacy_is_the_nearest_candidate():
    assert private_quantile(np.arange(100.0), 0.5, np.arange(0.0, 101.0, 10.0), math.inf).value == 50.0


@pytest.mark.parametrize(
    ("values", "q", "grid", "message"),
    [
        ([1.0], 0.5, [0.0, 1.0], "vector of at least two"),
        ([[1.0, 2.0]], 0.5, [0.0, 1.0], "vector of at least two"),
        ([1.0, math.nan], 0.5, [0.0, 1.0], "NaN or infinity"),
        ([1.0, math.inf], 0.5, [0.0, 1.0], "NaN or infinity"),
        ([1.0, 2.0], 1.5, [0.0, 1.0], "q must lie in"),
        ([1.0, 2.0], 0.5, [1.0, 0.0], "increasing"),
        ([1.0, 2.0], 0.5, [], "at least one candidate"),
    ],
)
def test_quantile_refuses_bad_input(values, q, grid, message):
    with pytest.raises(ValueError, match=message):
        private_quantile(values, q, grid)


def test_quantile_refuses_bad_budgets():
    with pytest.raises(ValueError, match="epsilon must be above 0"):
        private_quantile([1.0, 2.0], 0.5, [1.0], epsilon=0.0)
    with pytest.raises(ValueError, match="adjacency must be one of"):
        private_quantile([1.0, 2.0], 0.5, [1.0], adjacency="add")
