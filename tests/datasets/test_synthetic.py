"""The generators: shapes, laws (with fixed seeds, so nothing here fails by chance), and what they refuse."""

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import kstest
from sklearn.linear_model import LogisticRegression

from tacit.datasets import (
    make_dp_cd,
    make_dp_pca,
    make_dp_scd,
    make_featurewise_frank_wolfe,
    make_sparse_frank_wolfe,
)

GENERATORS = {
    "dp_cd": lambda **options: make_dp_cd(60, 20, n_informative=3, **options),
    "dp_scd": lambda **options: make_dp_scd(60, 20, **options),
    "dp_scd classes": lambda **options: make_dp_scd(60, 20, task="classification", **options),
    "sparse": lambda **options: make_sparse_frank_wolfe(60, 200, row_nonzeros=9, n_informative=5, **options),
    "sparse with dense columns": lambda **options: make_sparse_frank_wolfe(60, 200, n_dense=4, **options),
    "featurewise": lambda **options: make_featurewise_frank_wolfe(60, 200, density=0.1, **options),
}


def dense(X):
    return X.toarray() if sparse.issparse(X) else X


def same(first, second):
    return all(np.array_equal(dense(a), dense(b)) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("make", GENERATORS.values(), ids=GENERATORS)
def test_the_same_seed_gives_the_same_data(make):
    assert same(make(random_state=3, coef=True), make(random_state=3, coef=True))
    assert same(make(random_state=3), make(random_state=3, coef=True)[:2])
    assert same(make(random_state=3), make(random_state=np.random.default_rng(3)))
    assert not same(make(random_state=3), make(random_state=4))
    assert not same(make(), make())


@pytest.mark.parametrize("make", GENERATORS.values(), ids=GENERATORS)
def test_shapes(make):
    X, y, w = make(random_state=0, coef=True)
    assert X.shape == (60, len(w))
    assert y.shape == (60,)
    assert np.isfinite(dense(X)).all()


def test_dp_cd_is_a_noisy_combination_of_a_few_normal_columns():
    X, y, w = make_dp_cd(random_state=0, coef=True)
    assert X.shape == (1000, 1000)
    assert (w != 0).sum() == 10
    assert kstest(X.ravel()[::97], "norm").pvalue > 0.01
    assert np.abs(np.corrcoef(X[:, :50].T) - np.eye(50)).max() < 0.15  # independent: deviation 0.032
    residual = y - X @ w
    assert kstest(residual / 0.1, "norm").pvalue > 0.01
    assert np.std(make_dp_cd(noise=0.0, random_state=0)[1] - X @ w) < 1e-12


def test_dp_cd_can_have_columns_on_log_normal_scales():
    X, y, w = make_dp_cd(500, 400, n_informative=400, noise=0.0, imbalance=2.0, coef=True, random_state=0)
    logs = np.log(X.std(axis=0))
    assert kstest(logs / 2.0, "norm").pvalue > 0.01
    np.testing.assert_allclose(X @ w, y, rtol=1e-9, atol=1e-9)
    balanced = make_dp_cd(500, 400, n_informative=400, noise=0.0, random_state=0)
    np.testing.assert_allclose(y, balanced[1])  # the same problem in other units


def test_dp_scd_has_rows_of_norm_one_and_centred_values():
    X, y, w = make_dp_scd(coef=True, random_state=0)
    assert X.shape == (10_000, 90)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1.0, rtol=1e-12)
    assert np.abs(X.mean(axis=0)).max() < 0.006  # deviation of a mean: 0.00105
    assert np.std(X @ w) == pytest.approx(1.0, abs=0.03)
    assert abs(y.mean()) < 0.05
    assert np.std(y - X @ w) == pytest.approx(0.1, rel=0.05)


def test_dp_scd_classes_follow_the_margin():
    X, y, w = make_dp_scd(task="classification", noise=0.5, coef=True, random_state=0)
    assert np.unique(y).tolist() == [-1, 1]
    assert abs(y.mean()) < 0.05
    chance = 1 / (1 + np.exp(-X @ w / 0.5))
    for low in np.arange(0.0, 1.0, 0.2):  # the share of class 1 is what the margin says
        at = (chance >= low) & (chance < low + 0.2)
        assert np.mean(y[at] == 1) == pytest.approx(chance[at].mean(), abs=0.05)
    X, y, w = make_dp_scd(task="classification", noise=0.0, coef=True, random_state=0)
    np.testing.assert_array_equal(y, np.sign(X @ w))


def test_sparse_rows_are_used_as_words_are():
    X, y, w = make_sparse_frank_wolfe(coef=True, random_state=0)
    assert isinstance(X, sparse.csr_array)
    assert X.shape == (1000, 10_000)
    assert X.has_canonical_format
    assert X.data.min() > 0
    assert X.data.max() <= 1
    used = np.diff(X.indptr)
    assert used.min() >= 1
    assert used.max() <= 50
    share = np.diff(X.tocsc().indptr) / 1000
    expected = 1 - (1 - (1 / np.arange(1, 101)) / (1 / np.arange(1, 10_001)).sum()) ** 50
    np.testing.assert_allclose(share[:100], expected, atol=0.07)  # four deviations of a share of 1,000
    assert np.unique(y).tolist() == [-1, 1]
    assert np.flatnonzero(w).tolist() == list(range(50))
    assert np.std(X @ w) == pytest.approx(1.0)


def test_sparse_classes_can_be_learned_and_without_noise_exactly():
    X, y, w = make_sparse_frank_wolfe(noise=0.0, coef=True, random_state=0)
    margin = X @ w
    np.testing.assert_array_equal(y, np.where(margin > margin.mean(), 1, -1))
    assert LogisticRegression().fit(X[:800], y[:800]).score(X[800:], y[800:]) > 0.85


def test_sparse_rows_can_have_dense_columns():
    X, y, w = make_sparse_frank_wolfe(n_dense=200, n_informative=200, coef=True, random_state=0)
    assert isinstance(X, sparse.csr_array)
    assert X.shape == (1000, 10_000)
    filled = np.diff(X.tocsc().indptr)
    assert np.all(filled[:200] == 1000)
    assert filled[200:].max() < 1000
    assert np.flatnonzero(w).tolist() == list(range(200))
    assert 0.3 < np.mean(y == 1) < 0.7


def test_sparse_rows_that_are_all_alike():
    X, y = make_sparse_frank_wolfe(1, 3, n_informative=1, row_nonzeros=1, noise=0.0, random_state=0)
    assert X.shape == (1, 3)
    assert y.tolist() == [-1]  # the margin is its own mean


def test_featurewise_follows_the_recipe():
    A, y, x = make_featurewise_frank_wolfe(coef=True, random_state=0)
    assert isinstance(A, sparse.csr_array)
    assert A.shape == (800, 8000)
    assert A.has_canonical_format
    assert A.nnz / (800 * 8000) == pytest.approx(0.01, rel=0.02)  # five deviations of the count
    assert kstest(A.data, "norm").pvalue > 0.01
    assert (x != 0).sum() == 80
    assert kstest(x[x != 0], "norm").pvalue > 0.01
    assert kstest((y - A @ x) / np.sqrt(0.001), "norm").pvalue > 0.01
    columns = np.diff(A.tocsc().indptr)
    assert columns.mean() == pytest.approx(8.0, rel=0.02)
    assert columns.var() == pytest.approx(8 * 0.99, rel=0.1)  # binomial: entries by themselves


def test_featurewise_ratios():
    A, _, x = make_featurewise_frank_wolfe(100, 1000, density=1.0, coef_density=1e-6, coef=True, random_state=0)
    assert A.nnz == 100_000
    assert (x != 0).sum() == 1


def test_dp_pca_has_the_principal_components_it_says():
    X, V = make_dp_pca(components=True, random_state=0)
    assert X.shape == (10_000, 100)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(V @ V.T, np.eye(10), atol=1e-12)
    values, vectors = np.linalg.eigh(X.T @ X / len(X))
    top = vectors[:, ::-1][:, :10]
    assert np.linalg.svd(V @ top, compute_uv=False).min() > 0.97  # the same subspace
    assert np.all(np.abs(np.diag(V @ top))[:4] > 0.9)  # in the same order
    assert values[-10] > 1.5 * values[-11]  # and it stands out
    variances = np.var(X @ V.T, axis=0)
    assert np.all(np.diff(variances) < 0)


def test_dp_pca_without_components_and_without_signal():
    X = make_dp_pca(2000, 5, n_components=2, signal=0.0, random_state=0)
    np.testing.assert_array_equal(
        X, make_dp_pca(2000, 5, n_components=2, signal=0.0, components=True, random_state=0)[0]
    )
    np.testing.assert_allclose(X.T @ X / len(X), np.eye(5) / 5, atol=0.02)  # no direction stands out
    assert not np.array_equal(X, make_dp_pca(2000, 5, n_components=2, signal=0.0, random_state=1))


def test_dp_pca_directions_are_drawn_evenly():
    firsts = np.array([make_dp_pca(1, 3, n_components=1, components=True, random_state=s)[1][0] for s in range(400)])
    assert np.abs(firsts.mean(axis=0)).max() < 0.13  # deviation 0.029
    for column in firsts.T:
        assert kstest(column, "uniform", args=(-1, 2)).pvalue > 0.01  # Archimedes: evenly on a sphere


@pytest.mark.parametrize(
    ("make", "options", "error", "message"),
    [
        (make_dp_cd, {"n_samples": 0}, ValueError, "n_samples == 0"),
        (make_dp_cd, {"n_features": 2.5}, TypeError, "n_features"),
        (make_dp_cd, {"n_informative": 1001}, ValueError, "n_informative == 1001"),
        (make_dp_cd, {"noise": -1.0}, ValueError, "noise == -1.0"),
        (make_dp_cd, {"imbalance": -0.1}, ValueError, "imbalance == -0.1"),
        (make_dp_scd, {"task": "ranking"}, ValueError, "task must be 'regression' or 'classification', got 'ranking'"),
        (make_dp_scd, {"noise": "loud"}, TypeError, "noise"),
        (make_sparse_frank_wolfe, {"row_nonzeros": 0}, ValueError, "row_nonzeros == 0"),
        (make_sparse_frank_wolfe, {"n_dense": 10_000}, ValueError, "n_dense == 10000"),
        (make_sparse_frank_wolfe, {"n_informative": 0}, ValueError, "n_informative == 0"),
        (make_featurewise_frank_wolfe, {"density": 0.0}, ValueError, "density == 0.0"),
        (make_featurewise_frank_wolfe, {"coef_density": 1.5}, ValueError, "coef_density == 1.5"),
        (make_featurewise_frank_wolfe, {"noise_variance": -1e-3}, ValueError, "noise_variance == -0.001"),
        (make_dp_pca, {"n_components": 101}, ValueError, "n_components == 101"),
        (make_dp_pca, {"decay": 0.0}, ValueError, "decay == 0.0"),
        (make_dp_pca, {"signal": -1.0}, ValueError, "signal == -1.0"),
    ],
)
def test_bad_parameters_are_named(make, options, error, message):
    with pytest.raises(error, match=message):
        make(**options, random_state=0)
