"""Dask arrays and frames without a cluster: cut into parts, refused where they would be pulled in, predicted lazily."""

from functools import cache

import dask
import dask.array as da
import dask.bag
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from tacit import (
    PCA,
    Lasso,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    PrivateEncoder,
    PrivateScaler,
    RowClipper,
    make_private_pipeline,
)
from tacit.blocks.partitions import active_client
from tacit.metrics import accuracy_score, evaluate
from tacit.preprocessing import private_mean, private_quantile

N, D = 600, 3
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, D)) * [1.0, 9.0, 0.2] + 2.0
T = X @ [1.0, 0.3, -2.0] + RNG.normal(size=N)
Y = np.where(T > 3.0, "yes", "no")
FRAME = pd.DataFrame(X, columns=list("abc")).assign(t=T)


def model(**options):
    return LinearRegression(epsilon=2.0, random_state=0, solver="statistics", **options)


def weights(fitted):
    return np.append(fitted.coef_, fitted.intercept_)


@cache
def in_memory():
    return weights(model().fit(X, T))


def never():
    raise AssertionError("a row was read")


UNREAD = da.from_delayed(dask.delayed(never)(), (N, D), float)


# ---- parts of a fit


def lazy_frame(parts=5):
    return dd.from_pandas(FRAME, npartitions=parts)


def with_empty_partitions():
    frame = dd.concat([lazy_frame()[lazy_frame()["a"] > 1e9], lazy_frame(), lazy_frame()[lazy_frame()["a"] > 1e9]])
    return frame[list("abc")], frame["t"]


CASES = {
    "arrays": lambda: (da.from_array(X, chunks=(200, D)), da.from_array(T, chunks=200)),
    "a partition per row": lambda: (da.from_array(X, chunks=(1, D)), da.from_array(T, chunks=1)),
    "cut by columns": lambda: (da.from_array(X, chunks=(200, 1)), da.from_array(T, chunks=200)),
    "cut differently": lambda: (da.from_array(X, chunks=(70, D)), da.from_array(T, chunks=131)),
    "frames": lambda: (lazy_frame()[list("abc")], lazy_frame()["t"]),
    "empty partitions": with_empty_partitions,
    "frame and array": lambda: (lazy_frame()[list("abc")], da.from_array(T, chunks=131)),
    "array and series": lambda: (da.from_array(X, chunks=(70, D)), lazy_frame()["t"]),
    "unknown chunks": lambda: (lazy_frame()[list("abc")].to_dask_array(), lazy_frame()["t"].to_dask_array()),
    "unknown, cut differently": lambda: (lazy_frame()[list("abc")].to_dask_array(), lazy_frame(3)["t"]),
    "divisions unknown": lambda: (lazy_frame().clear_divisions()[list("abc")], lazy_frame(3).clear_divisions()["t"]),
    "arrow's types": lambda: (lazy_frame()[list("abc")].astype("double[pyarrow]"), lazy_frame()["t"]),
    "sparse": lambda: (da.from_array(X, chunks=(200, D)).map_blocks(csr_array), da.from_array(T, chunks=200)),
}


@pytest.mark.whole
@pytest.mark.filterwarnings("ignore:.*is not deterministic")
@pytest.mark.parametrize("make", CASES.values(), ids=CASES)
def test_all_ways_to_cut_give_the_model_of_the_rows_in_memory(make):
    np.testing.assert_array_equal(weights(model().fit(*make())), in_memory())


def test_types_may_differ_between_partitions():
    whole = X.round()
    types = (np.float32, np.float64, np.int64, object)

    def typed(rows, block_info=None):
        return rows.astype(types[block_info[0]["chunk-location"][0]])

    mixed = da.from_array(whole, chunks=(150, D)).map_blocks(typed, dtype=float, meta=np.empty((0, 0)))
    np.testing.assert_array_equal(
        weights(model().fit(mixed, da.from_array(T, chunks=200))), weights(model().fit(whole, T))
    )


def test_labels_are_those_of_all_partitions():
    order = np.argsort(Y, kind="stable")  # most partitions hold one class
    rows, labels = da.from_array(X[order], chunks=(100, D)), da.from_array(Y[order], chunks=100)
    asked = LogisticRegression(epsilon=2.0, random_state=0)
    found = asked.fit(rows, labels)
    assert found.classes_.tolist() == ["no", "yes"]
    np.testing.assert_array_equal(weights(found), weights(asked.fit(X[order], Y[order])))


@pytest.mark.filterwarnings("ignore")
def test_other_estimators_take_collections_too():
    words = pd.DataFrame({"word": RNG.choice(["x", "y", "z"], size=N), "number": X[:, 0]})
    rows, lazy_words = da.from_array(X, chunks=(170, D)), dd.from_pandas(words, npartitions=3)
    scaler, pca = PrivateScaler(random_state=0), PCA(n_components=2, random_state=0, solver="gauss")
    np.testing.assert_array_equal(scaler.fit(rows).scale_, PrivateScaler(random_state=0).fit(X).scale_)
    np.testing.assert_array_equal(pca.fit(rows).components_.copy(), pca.fit(X).components_)
    encoder = PrivateEncoder(random_state=0)
    names = encoder.fit(lazy_words).get_feature_names_out().tolist()
    assert names == PrivateEncoder(random_state=0).fit(words).get_feature_names_out().tolist()
    pipeline = make_private_pipeline(PrivateEncoder(), LogisticRegression(), epsilon=5.0, random_state=0)
    found = weights(pipeline.fit(lazy_words, da.from_array(Y, chunks=111))[-1])
    np.testing.assert_array_equal(found, weights(pipeline.fit(words, Y)[-1]))


def test_rows_and_targets_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[600, 599\]"):
        model().fit(da.from_array(X), da.from_array(T[:-1]))
    rows, targets = lazy_frame()[list("abc")], lazy_frame()["t"]
    with pytest.raises(ValueError, match="a partition of y has more or fewer rows than that of X"):
        model().fit(rows[rows["a"] > 2.0], targets)


def test_what_is_no_table_is_refused():
    rows, targets = da.from_array(X), da.from_array(T)
    with pytest.raises(TypeError, match="both be Dask collections or both in memory, and y is a ndarray"):
        model().fit(rows, T)
    with pytest.raises(TypeError, match="and X is a ndarray"):
        model().fit(X, targets)
    with pytest.raises(TypeError, match="X is a Dask Bag"):
        model().fit(dask.bag.from_sequence([1, 2]), targets)
    with pytest.raises(ValueError, match="X must have 2 dimensions"):
        model().fit(targets, targets)
    with pytest.raises(ValueError, match="y must have 1 dimensions"):
        model().fit(rows, rows)
    with pytest.raises(ValueError, match="must be pairs"):
        model().fit_blocks(rows)
    with pytest.raises(TypeError, match="takes no Dask collections"):
        model().fit_blocks([(rows, targets)])


def test_an_error_of_a_partition_is_told_by_its_kind_alone():
    def secret(_):
        raise KeyError("SECRET")

    broken = da.from_array(X, chunks=(200, D)).map_blocks(secret, meta=np.empty((0, 0)))
    for y in (da.from_array(T, chunks=200), lazy_frame(2)["t"]):
        with pytest.raises(ValueError, match="a partition cannot be read: KeyError") as caught:
            model().fit(broken.copy(), y)
        assert caught.value.__context__ is None


def test_sequential_solvers_are_refused_before_a_row_is_read():
    asked = [
        (LogisticRegression(solver="dual"), "gradient, sgd"),
        (LogisticRegression(solver="coordinate"), "gradient, sgd"),
        (LogisticRegression(l1_radius=2.0), "gradient, sgd"),
        (LogisticRegression(solver="coordinate", l1_ratio=0.5), "sgd"),
        (Lasso(solver="greedy"), "sgd"),
        (LinearRegression(solver="objective"), "gradient, sgd, statistics"),
        (LinearSVC(solver="frank-wolfe"), "sgd"),
    ]
    for estimator, able in asked:
        with pytest.raises(ValueError, match=f"does not serve rows that are not all in memory; these do: {able}$"):
            estimator.fit(UNREAD, UNREAD[:, 0])
    with pytest.raises(ValueError, match=r"solver='auto' does not serve .*; no solver does"):
        Lasso(adjacency="replace-one").fit(UNREAD, UNREAD[:, 0])
    with pytest.raises(ValueError, match="epsilon"):
        LogisticRegression(epsilon=-1.0).fit(UNREAD, UNREAD[:, 0])


def test_there_is_no_client_here():
    assert active_client() is None


# ---- nothing is pulled in


@pytest.mark.parametrize(
    "act",
    [
        lambda: PCA().fit_blocks([UNREAD]),
        lambda: RowClipper().fit(UNREAD),
        lambda: private_mean(UNREAD, 1.0),
        lambda: private_quantile(UNREAD[:, 0], 0.5, [0.0, 1.0]),
        lambda: accuracy_score(UNREAD[:, 0], UNREAD[:, 0], epsilon=1.0),
        lambda: evaluate(model().fit(X, T), UNREAD, T, metrics="r2", epsilon=1.0),
        lambda: model().fit(X, T).score(UNREAD, T),
        lambda: PCA(random_state=0).fit(X).score(UNREAD),
    ],
)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.whole
def test_what_cannot_take_a_collection_refuses_it(act):
    with pytest.raises((TypeError, ValueError), match="takes no Dask collections"):
        act()


# ---- predictions


FITTED = LogisticRegression(epsilon=5.0, random_state=1234567).fit(FRAME[list("abc")], Y)


@pytest.mark.parametrize("method", ["predict", "decision_function", "predict_proba", "predict_log_proba"])
@pytest.mark.whole
def test_predictions_of_a_collection_are_lazy(method):
    plain = LogisticRegression(epsilon=5.0, random_state=0).fit(X, Y)
    wanted = getattr(plain, method)(X)
    for lazy in (da.from_array(X, chunks=(170, 2)), dd.from_pandas(pd.DataFrame(X), npartitions=3).to_dask_array()):
        found = getattr(plain, method)(lazy)
        assert found.ndim == wanted.ndim
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found.compute(), wanted)
    getattr(plain, method)(UNREAD)
    frame, names = FRAME[list("abc")], list("abc")
    of_frame = getattr(FITTED, method)(lazy_frame()[names])
    np.testing.assert_array_equal(of_frame.compute(), getattr(FITTED, method)(frame))
    few = lazy_frame()[names]
    np.testing.assert_array_equal(  # most partitions are empty
        getattr(FITTED, method)(few[few["b"] > 25.0]).compute(), getattr(FITTED, method)(frame[frame["b"] > 25.0])
    )


@pytest.mark.filterwarnings("ignore")
def test_transformers_and_pipelines_are_lazy_too():
    rows = da.from_array(X, chunks=(170, D))
    pipeline = make_private_pipeline(PrivateScaler(), LogisticRegression(), epsilon=5.0).fit(X, Y)
    assert isinstance(pipeline.predict(UNREAD), da.Array)
    np.testing.assert_array_equal(pipeline.predict(rows).compute(), pipeline.predict(X))
    for step in (PrivateScaler(), PCA(n_components=2), RowClipper()):
        step.fit(X)
        np.testing.assert_array_equal(step.transform(rows).compute(), step.transform(X))
        if hasattr(step, "inverse_transform"):
            moved = step.transform(X)
            lazy = da.from_array(moved, chunks=(99, 1))
            np.testing.assert_array_equal(step.inverse_transform(lazy).compute(), step.inverse_transform(moved))
    encoder = PrivateEncoder(categories={"word": ["x", "y"]}).fit(pd.DataFrame({"word": ["x", "y", "x"]}))
    words = pd.DataFrame({"word": ["y", "x", "y", "z"]})
    np.testing.assert_array_equal(
        encoder.transform(dd.from_pandas(words, npartitions=2)).compute(), encoder.transform(words)
    )
    with pytest.raises(TypeError, match="set_output"):
        PrivateScaler().set_output(transform="pandas").fit(FRAME).transform(lazy_frame())


def test_what_is_wrong_with_a_collection_is_said_at_once():
    with pytest.raises(ValueError, match="features"):
        LogisticRegression(random_state=0).fit(X, Y).predict(da.ones((10, 2)))
    with pytest.raises(ValueError, match="feature names"):
        FITTED.predict(lazy_frame()[["a", "b"]])
    with pytest.raises(TypeError, match="two dimensions"):
        FITTED.predict(da.ones(10))


def test_workers_get_a_model_without_its_seed():
    import cloudpickle

    lazy = FITTED.predict(lazy_frame()[list("abc")])
    assert (1234567).to_bytes(3, "little") in cloudpickle.dumps(FITTED)
    assert (1234567).to_bytes(3, "little") not in cloudpickle.dumps(dict(lazy.__dask_graph__()))
    assert FITTED.random_state == 1234567
