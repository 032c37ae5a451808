"""One seed, one model: to the last bit for any order of rows, storage, blocks and number of threads."""

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from tacit import PCA, LinearRegression, LogisticRegression, Ridge
from tacit.blocks import centred, grid, sums
from tacit.solvers.pca import PCA_SOLVERS

N, D = 1_500, 6


def columns():
    rng = np.random.default_rng(0)
    X = random_array((N, D), density=0.3, rng=rng).toarray() + (rng.random((N, D)) < 0.2)
    return X, X @ rng.normal(size=D) + 0.3 * rng.normal(size=N)


X, Y = columns()
CLASSES = np.digitize(Y, np.quantile(Y, [0.4, 0.7]))
MODELS = {
    "logistic": (LogisticRegression(epsilon=2.0, classes=[0, 1]), (Y > 0.5).astype(int)),
    "weighted": (LogisticRegression(epsilon=2.0, classes=[0, 1], class_weight="balanced"), (Y > 0.5).astype(int)),
    "classes": (LogisticRegression(epsilon=2.0, classes=[0, 1, 2]), CLASSES),
    "ridge": (Ridge(epsilon=2.0), Y),
    "statistics": (LinearRegression(epsilon=2.0, solver="statistics"), Y),
    "sgd": (Ridge(epsilon=2.0, solver="sgd"), Y),
}


def fitted(model, X, y):
    model.set_params(random_state=0).fit(X, y)
    return np.append(model.coef_, model.intercept_)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("model", "y"), MODELS.values(), ids=MODELS)
def test_storage_order_blocks_and_threads_change_no_bit(model, y, tmp_path, monkeypatch):
    expected = fitted(model, X, y)
    np.save(tmp_path / "rows.npy", X)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    stored = csr_array(X)
    stored.indices = stored.indices.astype(np.int64)
    for same in (mapped, csr_array(X), stored, np.asfortranarray(X)):
        np.testing.assert_array_equal(fitted(model, same, y), expected)
    monkeypatch.setattr(sums, "_LITTLE", 1)
    for block, threads in ((5, 2), (2_048, 1), (300, 3)):
        monkeypatch.setattr(grid, "BLOCK", block)
        monkeypatch.setattr(sums, "BLOCK", block)
        monkeypatch.setattr(sums, "cores", lambda threads=threads: threads)
        np.testing.assert_array_equal(fitted(model, X, y), expected)
    if model.solver != "sgd":  # whose coins belong to places
        order = np.random.default_rng(1).permutation(N)
        np.testing.assert_array_equal(fitted(model, X[order], y[order]), expected)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("solver", ["text", "one-shot"])
def test_text_is_the_same_in_any_order(solver):
    rng = np.random.default_rng(0)
    words, y = random_array((400, 1_200), density=0.01, rng=rng).tocsr(), rng.integers(0, 2, size=400)
    model, order = LogisticRegression(epsilon=2.0, classes=[0, 1], solver=solver), rng.permutation(400)
    np.testing.assert_array_equal(fitted(model, words[order], y[order]), fitted(model, words, y))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("solver", PCA_SOLVERS)
def test_components_are_the_same_too(solver, tmp_path, monkeypatch):
    def components(rows, fit="fit"):
        model = getattr(PCA(2, 2.0, solver=solver, random_state=0), fit)(rows)
        return np.vstack([model.components_, model.mean_, np.full(D, model.radius_), np.full(D, model.noise_variance_)])

    expected = components(X)
    np.save(tmp_path / "rows.npy", X)
    stored = csr_array(X)
    stored.indices = stored.indices.astype(np.int64)
    for same in (np.load(tmp_path / "rows.npy", mmap_mode="r"), stored, np.asfortranarray(X)):
        np.testing.assert_array_equal(components(same), expected)
    for blocks in ([X[:1], X[1:1], X[1:700], X[700:]], [csr_array(X[:900]), csr_array(X[900:])]):
        np.testing.assert_array_equal(components(blocks, "fit_blocks"), expected)
    monkeypatch.setattr(sums, "_LITTLE", 1)
    for block, threads in ((5, 2), (300, 3)):
        monkeypatch.setattr(sums, "BLOCK", block)
        monkeypatch.setattr(centred, "BLOCK", block)
        monkeypatch.setattr(sums, "cores", lambda threads=threads: threads)
        np.testing.assert_array_equal(components(X), expected)
    if PCA_SOLVERS[solver].serves.streams:  # others sample: coins belong to places
        np.testing.assert_array_equal(components(X[np.random.default_rng(1).permutation(N)]), expected)


@pytest.mark.filterwarnings("ignore")
def test_a_sparse_table_with_holes_is_the_dense_one():
    holes = X.copy()
    holes[::7, 2] = np.nan
    model, y = MODELS["logistic"]
    np.testing.assert_array_equal(fitted(model, csr_array(holes), y), fitted(model, holes, y))


@pytest.mark.filterwarnings("ignore")
def test_a_sparse_table_is_not_made_dense(monkeypatch):
    def refused(*_, **__):
        raise AssertionError("a dense copy")

    monkeypatch.setattr(csr_array, "toarray", refused)
    model, y = MODELS["logistic"]
    fitted(model, csr_array(X), y)
    fitted(LogisticRegression(epsilon=2.0, classes=[0, 1], bounds={0: (0.0, 2.0)}), csr_array(X), y)
