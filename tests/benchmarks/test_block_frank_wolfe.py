"""Block-coordinate Frank-Wolfe: marginals, curvature, and convergence against scikit-learn and the bounds."""

import doctest
import itertools
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from sklearn.linear_model import Lasso

import benchmarks.federated.block_frank_wolfe
from benchmarks.federated.block_frank_wolfe import Balls, Custom, Domain, block_frank_wolfe
from benchmarks.federated.theory import gap_bound, inexactness
from tacit.federated.protocols.feature_sharing.samplings import (
    Distributed,
    Sampling,
    Subsets,
    TauNice,
    elementary,
    uniform_serial,
)
from tacit.privacy.public import PublicDraws

from .curvature import Intervals, counted_marginals, curvature_bound, sampled_curvature

Floats = NDArray[np.float64]


def coin_flips(source: PublicDraws) -> NDArray[np.int64]:
    """Block i of 6 is in with probability (i + 1) / 8, independently."""
    return np.flatnonzero(source.words(6) >> np.uint64(61) <= np.arange(6))


SAMPLINGS: dict[str, Sampling] = {
    "elementary": elementary(6),
    "uniform serial": uniform_serial(6),
    "tau-nice": TauNice(6, 4),
    "distributed": Distributed([[0, 2, 4], [1, 3, 5]], 2),
    "uneven parts": Distributed([[5], [0, 1, 2, 3, 4]], 1),
    "subsets": Subsets(6, [[0, 1, 2], [2, 3, 4, 5], [1]], [0.5, 0.3, 0.2]),
    "custom": Custom(coin_flips, (np.arange(6) + 1) / 8),
}
names = pytest.mark.parametrize("name", SAMPLINGS)


@names
def test_marginals_are_true(name: str) -> None:
    sampling = SAMPLINGS[name]
    draws = 4_000
    counted = counted_marginals(sampling, draws, PublicDraws(3))
    spread = np.sqrt(sampling.marginals * (1 - sampling.marginals) / draws)
    assert np.all(np.abs(counted - sampling.marginals) <= 4.5 * spread)  # false alarm below 1e-4 for all six


def test_the_distributed_marginal_is_not_squared() -> None:
    sampling = Distributed(np.arange(40).reshape(4, 10), 5)
    np.testing.assert_allclose(sampling.marginals, 4 * 5 / 40)
    drawn = sampling.draw(PublicDraws(0))
    assert [np.sum((drawn >= low) & (drawn < low + 10)) for low in (0, 10, 20, 30)] == [5, 5, 5, 5]


@pytest.mark.parametrize(
    "make",
    [
        lambda: TauNice(3, 4),
        lambda: Distributed([[0, 1], [1, 2]], 1),
        lambda: Distributed([[0], [1, 2]], 2),
        lambda: Subsets(3, [[0, 1]], [1.0]),  # the last block is never drawn
        lambda: Subsets(2, [[0], [1]], [0.5, 0.6]),
        lambda: Custom(lambda _: [0], [0.5, 0.0]),
        lambda: Intervals([1.0], [0.0]),
        lambda: Balls([[0, 2]], 1.0),
    ],
)
def test_improper_samplings_and_sets_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"must|needs|need|draws each"):
        make()


def _problem(seed: int = 0, n: int = 40) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, 6)) / np.sqrt(n)
    return A, A @ rng.normal(size=6) + 0.1 * rng.normal(size=n)


def _corners(domain: Domain) -> list[Floats]:
    """Every vertex of the difference of the domain with itself, up to sign."""
    per_block = [
        [sign * domain.widths[j] * np.eye(6)[j] for j in np.flatnonzero(domain.block_of == block) for sign in (1, -1)]
        for block in range(domain.n_blocks)
    ]
    return [np.sum(corner, axis=0) for corner in itertools.product(*per_block)]


@pytest.mark.parametrize("domain", [Intervals(-np.ones(6), np.arange(6)), Balls([[0, 3], [1, 4], [2, 5]], [1, 2, 0.5])])
def test_the_curvature_bounds_hold_and_are_tight_for_one_block(domain: Domain) -> None:
    A, _ = _problem()
    for sampling in [TauNice(domain.n_blocks, tau) for tau in range(1, domain.n_blocks + 1)] + [
        Distributed(np.arange(domain.n_blocks).reshape(3, -1), 1),
        Subsets(domain.n_blocks, [range(domain.n_blocks), [0]], [0.25, 0.75]),
    ]:
        bound = curvature_bound(A, domain, sampling)
        found = max(
            sampled_curvature(A, domain, sampling, np.zeros(6), corner, 40, PublicDraws(1))
            for corner in _corners(domain)
        )
        assert found <= bound * (1 + 1e-9)
        assert curvature_bound(sparse.csc_array(A), domain, sampling) == pytest.approx(bound)
    single = max(np.square(A @ corner).sum() for corner in np.diag(domain.widths))
    assert curvature_bound(A, domain, uniform_serial(domain.n_blocks)) == pytest.approx(single)


def test_sampled_curvature_averages_over_the_drawn_sets() -> None:
    A, _ = _problem()
    sampling = Subsets(6, [[0, 1, 2], [3, 4, 5]], [0.5, 0.5])
    move = np.arange(1.0, 7.0)
    exact = 0.5 * np.square(A[:, :3] @ move[:3]).sum() + 0.5 * np.square(A[:, 3:] @ move[3:]).sum()
    domain = Intervals(np.zeros(6), np.full(6, 9.0))
    found = sampled_curvature(A, domain, sampling, np.zeros(6), move, 4_000, PublicDraws(0))
    assert found == pytest.approx(exact, rel=0.05)


def test_a_custom_sampling_has_no_bound() -> None:
    A, _ = _problem()
    with pytest.raises(TypeError, match="sampled_curvature"):
        curvature_bound(A, Intervals(np.zeros(6), np.ones(6)), SAMPLINGS["custom"])


def _best(A: Floats, y: Floats, domain: Domain) -> float:
    """The optimum, from very many steps of another method: projected gradient."""
    x = domain.start()
    for _ in range(3_000):
        x = x - A.T @ (A @ x - y) / np.linalg.norm(A, 2) ** 2
        if isinstance(domain, Balls):
            for group, ball in zip(domain.groups, domain.balls, strict=True):
                x[group] = ball.project(x[group])
        elif isinstance(domain, Intervals):
            x = np.clip(x, domain.low, domain.high)
    return float(0.5 * np.square(A @ x - y).sum())


@names
def test_every_sampling_converges_within_its_bound(name: str) -> None:
    A, y = _problem()
    sampling = SAMPLINGS[name]
    domain = Intervals(np.full(6, -0.8), np.full(6, 0.8))
    # A sampling without a bound of its own has at most the curvature of all blocks together.
    bounded = elementary(6) if isinstance(sampling, Custom) else sampling
    C, p = curvature_bound(A, domain, bounded), sampling.least_marginal
    optimum, gaps = _best(A, y, domain), np.zeros((20, 151))
    for run, row in enumerate(gaps):

        def watch(t: int, x: Floats, row: Floats = row) -> None:
            row[t] = 0.5 * np.square(A @ x - y).sum() - optimum

        block_frank_wolfe(lambda x, at: A[:, at].T @ (A @ x - y), domain, sampling, 150, PublicDraws(run), watch=watch)
    allowed = np.array([gap_bound(gaps[:, 0].mean(), C, p, t) for t in range(151)])
    assert np.all(gaps.mean(axis=0) <= allowed)
    assert gaps[:, -1].mean() < 0.05 * gaps[:, 0].mean()  # and it does converge


def test_inexact_gradients_and_oracles_keep_the_bound() -> None:
    A, y = _problem()
    sampling = TauNice(3, 2)
    domain = Balls([[0, 1], [2, 3], [4, 5]], 0.7)
    C, p = curvature_bound(A, domain, sampling), sampling.least_marginal
    optimum, rng, step = _best(A, y, domain), np.random.default_rng(0), [1.0]
    gaps: list[float] = []

    def gradient(x: Floats, at: NDArray[np.int64]) -> Floats:  # off by at most step C / 2 in the dual norm
        return A[:, at].T @ (A @ x - y) + rng.uniform(-0.5, 0.5, len(at)) * step[0] * C

    def oracle(partial: Floats, blocks: NDArray[np.int64]) -> Floats:  # off by at most step C / 2
        best = domain.oracle(partial, blocks)
        worse = [
            -point if 2 * abs(part @ point) <= step[0] * C / 2 else point for point, part in _by_two(best, partial)
        ]
        return np.concatenate(worse)

    def watch(t: int, x: Floats) -> None:
        step[0] = 2 / (p * t + 2)
        gaps.append(float(0.5 * np.square(A @ x - y).sum() - optimum))

    block_frank_wolfe(gradient, domain, sampling, 300, PublicDraws(0), oracle=oracle, watch=watch)
    rho = inexactness(diameter=2 * 0.7 * 3, drawn=2, gradients=1.0, oracles=1.0)
    assert np.all(np.array(gaps) <= [gap_bound(gaps[0], C, p, t, rho) for t in range(301)])
    assert gaps[-1] < 0.2 * gaps[0]


def _by_two(best: Floats, partial: Floats) -> list[tuple[Floats, Floats]]:
    return list(zip(best.reshape(-1, 2), partial.reshape(-1, 2), strict=True))


def test_one_ball_reaches_the_lasso_of_scikit_learn() -> None:
    A, y = _problem(n=60)
    lasso = Lasso(alpha=0.002, fit_intercept=False, tol=1e-12, max_iter=100_000).fit(A, y)
    radius = float(np.abs(lasso.coef_).sum())
    x = block_frank_wolfe(
        lambda x, at: A[:, at].T @ (A @ x - y), Balls([range(6)], radius), elementary(1), 20_000, PublicDraws(0)
    )
    optimum, reached = (np.square(A @ w - y).sum() for w in (lasso.coef_, x))
    assert reached - optimum < 1e-3 * np.square(y).sum()
    assert np.abs(x).sum() <= radius * (1 + 1e-9)


def test_domain_and_sampling_must_have_the_same_blocks() -> None:
    with pytest.raises(ValueError, match="2 blocks"):
        block_frank_wolfe(lambda x, at: x[at], Intervals([0, 0], [1, 1]), elementary(3), 1, PublicDraws(0))
    with pytest.raises(ValueError, match="start"):
        block_frank_wolfe(lambda x, at: x[at], Intervals([0, 0], [1, 1]), elementary(2), 1, PublicDraws(0), start=[0.5])


def test_the_example_runs() -> None:
    assert doctest.testmod(benchmarks.federated.block_frank_wolfe) == (0, 8)
