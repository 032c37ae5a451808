"""The solvers of PCA: what each releases, its rules, and how well it does on data with a known answer."""

import math

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import ArpackNoConvergence, svds
from sklearn.exceptions import ConvergenceWarning

import tacit
from tacit.metrics import captured_variance_ratio, principal_angles
from tacit.privacy import Gate, NoiseSource, Plan, Release
from tacit.solvers.pca import PCA_SOLVERS, Power, Stochastic, steps
from tacit.solvers.pca.directions import Directions, clip_of_lengths
from tacit.solvers.pca.spectrum import spectrum_of_packed, upright

from .support import centred, fitted, spiked, task_of

pytestmark = pytest.mark.filterwarnings("ignore:random_state is set:UserWarning")

SOLVERS = tuple(PCA_SOLVERS)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_finds_strong_directions(solver, kind):
    X = spiked()
    model = fitted(solver, kind(X), epsilon=8.0)
    assert captured_variance_ratio(model.components_, X, center=False) > 0.98
    truth = np.sum((X @ model.components_.T) ** 2, axis=0) / len(X)
    np.testing.assert_allclose(model.explained_variance_, truth, rtol=0.1)
    assert np.all(model.reliability_ > 0.8)
    assert 0.5 < model.explained_variance_ratio_.sum() <= 1.0


@pytest.mark.parametrize(
    ("solver", "names"),
    [
        ("gauss", ["second moments"]),
        ("mod-sulq", ["second moments"]),
        ("power", ["products", "small matrix", "total"]),
        ("stochastic", ["first product", "lengths", "steps", "small matrix", "total"]),
        ("variance-reduced", ["first product", "lengths", "snapshots", "corrections", "small matrix", "total"]),
    ],
)
def test_releases_are_those_of_the_docstring(solver, names):
    task = task_of(1000, 10, 2, center=False, row_norm=1.0)
    releases = PCA_SOLVERS[solver]().at(task).releases(0.6)
    assert [release.name for release in releases] == names
    assert sum(release.share for release in releases) == pytest.approx(0.6)
    assert all(release.kind == "gaussian" for release in releases)


def test_a_declared_clip_is_not_released_and_is_used():
    task = task_of(1000, 10, 2, center=False, row_norm=1.0)
    assert "lengths" not in [r.name for r in Stochastic(clip=0.2).at(task).releases(1.0)]
    X = spiked()
    tight, loose = (fitted(Stochastic(clip=clip), X, 0.5) for clip in (0.05, 1.0))
    assert tight.plan_ == loose.plan_
    assert not np.allclose(tight.components_, loose.components_)


def test_symmetric_noise_is_sqrt_two_below_that_of_the_triangle():
    X = spiked(500)
    gauss, plain = (fitted(solver, X, 0.3) for solver in ("gauss", "mod-sulq"))
    assert plain.noise_floor_ / gauss.noise_floor_ == pytest.approx(math.sqrt(2.0), rel=1e-9)
    s = gauss.plan_.multiplier("second moments")
    assert gauss.noise_floor_ == pytest.approx(s * math.sqrt(2 * 20) / 500, rel=1e-6)


def test_replace_one_costs_sqrt_two():
    X = spiked(500)
    one, other = (fitted("gauss", X, 0.3, adjacency=a) for a in ("add-remove", "replace-one"))
    assert other.noise_floor_ / one.noise_floor_ == pytest.approx(math.sqrt(2.0), rel=1e-6)


def test_reliability_of_iterative_solvers_is_about_the_squared_cosine():
    X = spiked(3000)
    exact = np.linalg.svd(X, full_matrices=False)[2][:2]
    for solver in ("power", "stochastic"):
        told, seen = [], []
        for seed in range(6):
            model = fitted(solver, X, 0.5, seed=seed)
            told.append(model.reliability_)
            seen.append(np.sum((model.components_ @ exact.T) ** 2, axis=1))
        # It is cautious: the edge of the noise counts as lost.
        assert np.all(np.mean(told, axis=0) <= np.mean(seen, axis=0) + 0.05)
        assert np.all(np.mean(told, axis=0) >= np.mean(seen, axis=0) - 0.35)


def test_pure_noise_is_not_reliable():
    X = np.zeros((200, 30))
    for solver in SOLVERS:
        model = fitted(solver, X, 0.5)
        assert np.all(model.reliability_ < 0.3), solver


def test_more_steps_where_there_is_less_noise():
    counts = [
        Power().at(task_of(n, 10, 2, epsilon, center=False)).steps
        for n, epsilon in ((100, 0.1), (10_000, 1.0), (10_000_000, 1.0), (100, math.inf))
    ]
    assert counts[0] == 4
    assert counts == sorted(counts)
    assert counts[-1] == 400


def test_the_clip_is_a_low_quantile_of_lengths():
    X = spiked()
    rows = centred(X, np.zeros(20), 1.0)
    V = np.linalg.svd(X, full_matrices=False)[2][:4].T
    task = task_of(6000, 20, 2, center=False)
    with Gate(
        Plan(Release("lengths", "gaussian", share=1.0)).calibrate(task.budget, task.unit, "test"), NoiseSource(0)
    ) as gate:
        clip = clip_of_lengths(task, rows, V, gate)
    lengths = np.linalg.norm(X, axis=1) * np.linalg.norm(X @ V, axis=1)
    assert 0.1 <= np.mean(lengths <= 2.0 * clip) < 0.3


def test_weights_are_the_inverse_root_of_the_symmetric_factor():
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    V = np.linalg.qr(rng.normal(size=(50, 3)))[0]
    M = V @ (turn * [100.0, 25.0, 1e-3]) @ turn.T
    found = Directions.of(M, noise=8.0 / math.sqrt(50))  # nothing is told below half of 8
    np.testing.assert_allclose(found.V, V, atol=1e-6)
    np.testing.assert_allclose(found.weights, (turn * [0.2, 0.4, 1.0]) @ turn.T, atol=1e-9)
    np.testing.assert_allclose(found.weights @ found.inverse, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(found.weighed, 2), 1.0)
    np.testing.assert_allclose(Directions.of(M, 0.0).weights, np.eye(3), atol=1e-9)
    assert np.all(np.isfinite(Directions.of(np.zeros((5, 2)), 1.0).inverse))


def test_one_strong_direction_does_not_hide_the_others():
    # Rows that all share one direction, as text does: without weights it would take the whole clip.
    rng = np.random.default_rng(0)
    X = np.hstack([np.ones((8000, 1)), 0.3 * rng.normal(size=(8000, 3)), 0.05 * rng.normal(size=(8000, 196))])
    X /= np.linalg.norm(X, axis=1)[:, None]
    model = fitted("stochastic", X, 1.0, k=4)
    plain = fitted("power", X, 1.0, k=4)
    weak = X[:, 1:]
    kept, plainly = (captured_variance_ratio(m.components_[1:, 1:], weak, center=False) for m in (model, plain))
    assert kept > 0.95
    assert kept > plainly + 0.05


def test_polar_factor():
    M = np.random.default_rng(0).normal(size=(9, 3)) * 1e-200
    V = steps.orthonormal(M)
    np.testing.assert_allclose(V.T @ V, np.eye(3), atol=1e-12)
    inner = V.T @ (M * 1e200)  # symmetric and positive definite
    np.testing.assert_allclose(inner, inner.T, atol=1e-12)
    assert np.linalg.eigvalsh(inner).min() > 0.0
    assert np.all(np.isfinite(steps.orthonormal(np.zeros((9, 3)))))


def test_signs_are_scikit_learns():
    rows = upright(np.array([[0.1, -0.9, 0.3], [0.5, 0.2, -0.1]]))
    np.testing.assert_array_equal(rows, [[-0.1, 0.9, -0.3], [0.5, 0.2, -0.1]])


@pytest.mark.parametrize("center", [True, False], ids=["centred", "plain"])
def test_many_columns_take_the_krylov_path(center):
    rng = np.random.default_rng(0)
    strong = sparse.csr_array(rng.normal(size=(300, 3)) * [9.0, 6.0, 4.0])
    X = sparse.hstack([strong, sparse.random(300, 2_100, 0.01, random_state=rng)], format="csr")
    model = tacit.PCA(3, math.inf, center=center, solver="gauss").fit(X)
    dense = X.toarray() - (X.mean(axis=0) if center else 0.0)
    expected = svds(dense, 3, random_state=0)[2]
    assert principal_angles(model.components_, expected).max() < 1e-6
    private = tacit.PCA(3, 5.0, center=center, row_norm=30.0, solver="gauss", random_state=0).fit(X)
    np.testing.assert_allclose(private.components_ @ private.components_.T, np.eye(3), atol=1e-8)


def test_a_search_that_does_not_converge_never_raises(monkeypatch):
    exact = fitted("gauss", spiked(200))
    monkeypatch.setattr("tacit.solvers.pca.spectrum.FULL_MATRIX", 5)
    monkeypatch.setattr("tacit.solvers.pca.spectrum._NOISY_RESIDUAL", 0.0)
    monkeypatch.setattr("tacit.solvers.pca.spectrum._RESIDUAL", 0.0)
    unpacked = fitted("gauss", spiked(200))
    np.testing.assert_allclose(unpacked.components_, exact.components_, atol=1e-9)
    monkeypatch.setattr("tacit.solvers.pca.spectrum.LAST_RESORT", 5)
    with pytest.warns(ConvergenceWarning, match="best approximation"):
        found = fitted("gauss", spiked(200))
    np.testing.assert_allclose(found.components_, exact.components_, atol=1e-6)


@pytest.mark.parametrize("kept", [0, 1])
def test_what_the_search_found_is_kept_and_completed(kept, monkeypatch):
    A = np.diag(np.r_[5.0, 3.0, np.linspace(1.0, 0.1, 18)])

    def stops(*_, **__):
        raise ArpackNoConvergence("no", np.full(kept, 5.0), np.eye(20)[:, :kept])

    monkeypatch.setattr("tacit.solvers.pca.spectrum.eigsh", stops)
    monkeypatch.setattr("tacit.solvers.pca.spectrum.FULL_MATRIX", 5)
    monkeypatch.setattr("tacit.solvers.pca.spectrum.LAST_RESORT", 5)
    with pytest.warns(ConvergenceWarning):
        found = spectrum_of_packed(A[np.triu_indices(20)], 20, 2, 0.01)
    np.testing.assert_allclose(found.components @ found.components.T, np.eye(2), atol=1e-9)
    if kept:
        assert abs(found.components[0, 0]) == pytest.approx(1.0)
