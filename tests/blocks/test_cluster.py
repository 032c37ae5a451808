"""Fits on a real Dask cluster of two worker processes: the same bits, nothing that leaks, nothing that lingers."""

import asyncio
import os
import pickletools
import signal
import time
import warnings
from functools import cache

import cloudpickle
import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

from tacit import (
    PCA,
    Lasso,
    LinearRegression,
    LogisticRegression,
    PrivateEncoder,
    PrivateScaler,
    Ridge,
    load,
    make_private_pipeline,
)
from tacit.blocks import cluster as cluster_room
from tacit.blocks import partitions
from tacit.blocks.cluster import Cluster, WorkerError
from tacit.blocks.partitions import Partition, opened_lazily
from tacit.blocks.reading import ChangedRowsError, Reading, opened
from tacit.cli import main
from tacit.privacy import NoiseSource
from tacit.solvers import Sgd
from tacit.solvers.pca import PCA_SOLVERS

distributed = pytest.importorskip("distributed")

SEED = 0x5EED_0123_4567
N, D = 1_400, 4
SPENT = "count the whole budget as spent"


def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D)) * [1.0, 5.0, 0.1, 2.0] + 1.0
    return X, X @ [1.0, -0.2, 3.0, 0.0] + rng.normal(size=N)


X, T = table()
Y = (np.median(T) < T).astype(int)
FRAME = pd.DataFrame(X, columns=list("abcd")).assign(y=T)


@pytest.fixture(scope="module", autouse=True)
def client():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with (
            distributed.LocalCluster(
                n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit="1GiB", silence_logs=50
            ) as made,
            distributed.Client(made) as client,
        ):
            client.wait_for_workers(2)
            yield client


@pytest.fixture(autouse=True)
def short_parts(monkeypatch):
    """Bounded rows in many parts, though there are few rows."""
    monkeypatch.setattr(cluster_room, "AT_ONCE", 250)
    monkeypatch.setattr(cluster_room, "_ANSWERS", 2)


def model(**options):
    return LinearRegression(epsilon=2.0, random_state=SEED, solver="statistics", **options)


def weights(fitted):
    return np.append(fitted.coef_, fitted.intercept_)


@cache
def in_memory():
    return weights(model().fit(X, T))


def arrays(parts=3, columns=D):
    return da.from_array(X, chunks=(-(-N // parts), columns)), da.from_array(T, chunks=-(-N // parts))


def frames(parts=4):
    whole = dd.from_pandas(FRAME, npartitions=parts)
    return whole.drop(columns="y"), whole["y"]


def unknown_chunks():
    rows, labels = frames(5)
    return rows.to_dask_array(), labels.to_dask_array()


def tasks_on(client):
    """What the scheduler still knows of, a moment after a fit."""
    for _ in range(100):
        found = client.run_on_scheduler(lambda dask_scheduler: [str(key) for key in dask_scheduler.tasks])
        if not found:
            break
        time.sleep(0.05)
    return found


# ---- the same bits


@pytest.mark.whole
@pytest.mark.parametrize(
    "make",
    [
        arrays,
        lambda: (arrays(7, columns=3)[0], da.from_array(T, chunks=333)),
        pytest.param(lambda: arrays(50), marks=pytest.mark.slow),
        frames,
        pytest.param(unknown_chunks, marks=pytest.mark.slow),
    ],
    ids=["3 partitions", "7, cut by columns, y cut differently", "50 partitions", "frames", "unknown chunks"],
)
def test_a_cluster_gives_the_model_of_the_rows_in_memory_to_the_last_bit(client, make):
    given = make()
    found = model().fit(*given)
    np.testing.assert_array_equal(weights(found), in_memory())
    del given
    assert tasks_on(client) == []  # nor are sums or rows left on the workers


@pytest.mark.slow
def test_samples_are_those_of_the_rows_in_memory():
    asked = Ridge(epsilon=2.0, random_state=SEED, solver=Sgd(n_passes=2, batch_size=100))
    wanted = weights(asked.fit(X, T))
    rows, targets = da.from_array(X, chunks=(301, 2)), da.from_array(T, chunks=477)
    np.testing.assert_array_equal(weights(asked.fit(rows, targets)), wanted)


def test_a_frame_with_its_target_and_files_give_the_same(client, tmp_path):
    found = model().fit_blocks(frames()[0].assign(y=frames()[1]), target="y")
    np.testing.assert_array_equal(weights(found), in_memory())
    assert found.feature_names_in_.tolist() == list("abcd")
    FRAME.to_parquet(tmp_path / "rows.parquet", row_group_size=300)
    reading = Reading(opened(str(tmp_path / "rows.parquet"), "y").parts, Cluster(client))
    np.testing.assert_array_equal(weights(model().fit_blocks(reading)), in_memory())


@pytest.mark.slow
def test_other_models_are_the_same_too():
    rows = arrays(5)[0]
    logistic = LogisticRegression(epsilon=2.0, random_state=SEED)
    three = np.digitize(T, np.quantile(T, [0.3, 0.6]))
    cases = [
        (Ridge(epsilon=2.0, random_state=SEED), T),
        (Ridge(epsilon=2.0, random_state=SEED, solver="statistics", y_bounds=(-9.0, 9.0)), T),
        (Lasso(epsilon=2.0, random_state=SEED, solver="sgd"), T),
        (logistic, Y),
        (clone(logistic).set_params(class_weight="balanced"), Y),
        (clone(logistic).set_params(row_norm=9.0), Y),
        (clone(logistic).set_params(bounds=(-20.0, 20.0)), np.array(["no", "yes"])[Y]),
        (logistic, three),
    ]
    for asked, y in cases:
        wanted = weights(asked.fit(X, y))
        np.testing.assert_array_equal(weights(asked.fit(rows, da.from_array(y, chunks=400))), wanted)


@pytest.mark.filterwarnings("ignore")
def test_scalers_encoders_and_pipelines_take_collections_too():
    words = pd.DataFrame({"word": np.random.default_rng(1).choice(["x", "y", "z"], size=N), "number": X[:, 0]})
    lazy = dd.from_pandas(words, npartitions=3)
    scaler = PrivateScaler(random_state=SEED)
    np.testing.assert_array_equal(scaler.fit(arrays()[0]).scale_.copy(), scaler.fit(X).scale_)
    names = PrivateEncoder(random_state=SEED).fit(lazy).get_feature_names_out().tolist()
    assert names == PrivateEncoder(random_state=SEED).fit(words).get_feature_names_out().tolist()
    pipeline = make_private_pipeline(
        PrivateEncoder(), LinearRegression(solver="statistics"), epsilon=5.0, random_state=SEED
    )
    found = weights(pipeline.fit(lazy, arrays(4)[1])[-1])
    np.testing.assert_array_equal(found, weights(pipeline.fit(words, T)[-1]))


@pytest.mark.filterwarnings("ignore")
def test_the_command_line_fits_on_a_cluster(client, tmp_path, capsys):
    words = FRAME.assign(word=np.random.default_rng(1).choice(["x", "y"], size=N))
    words.to_parquet(tmp_path / "rows.parquet", row_group_size=500)
    words.drop(columns="word").to_csv(tmp_path / "rows.csv", index=False)
    declared = ["--target", "y", "--epsilon", "2", "--seed", "3", "--task", "regression", "--solver", "statistics"]
    for data, more in (("rows.parquet", []), ("rows.csv", ["--numbers", "a,b,c,d"])):
        for place in ([], ["--workers", client.scheduler.address]):
            out = tmp_path / f"model{len(place)}.json"
            assert main(["fit", str(tmp_path / data), *declared, *more, "--out", str(out), *place]) == 0
        one, other = (load(tmp_path / f"model{k}.json").predict(words) for k in (0, 2))
        np.testing.assert_array_equal(one, other)
    with pytest.raises(SystemExit):
        main(["fit", str(tmp_path / data), *declared, *more, "--solver", "dual", *place])
    assert "does not serve rows that are not all in memory" in capsys.readouterr().err


def components(fitted):
    return np.vstack([fitted.components_, fitted.mean_, np.full(D, fitted.noise_variance_)])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "solver", ["gauss", "stochastic", *(pytest.param(s, marks=pytest.mark.slow) for s in ("power", "variance-reduced"))]
)
def test_components_are_those_of_the_rows_in_memory(client, solver):
    options = {"n_iter": 2} if solver in ("power", "stochastic") else {"n_snapshots": 2} if solver != "gauss" else {}
    asked = PCA(2, 2.0, random_state=SEED, solver=PCA_SOLVERS[solver](**options))
    wanted = components(asked.fit(X))
    given = arrays(5)[0]
    np.testing.assert_array_equal(components(asked.fit(given)), wanted)
    if solver == "gauss":
        del given
        assert tasks_on(client) == []
        pipeline = make_private_pipeline(PrivateScaler(), PCA(2), epsilon=2.0, random_state=SEED)
        last = components(pipeline.fit(arrays()[0])[-1])
        np.testing.assert_array_equal(last, components(pipeline.fit(X)[-1]))


def test_wide_sparse_rows_on_workers_are_not_fetched_for_a_pca():
    wide = da.from_array(np.zeros((6, 257)), chunks=(3, 257)).map_blocks(csr_array, dtype=float)
    with pytest.raises(TypeError, match="PCA of sparse rows with more than 256 columns reads rows where the fit runs"):
        PCA(n_components=2).fit(wide)


# ---- what can happen in the middle


def in_pass(monkeypatch, number, act):
    """Do something in the middle of a pass: after the first answers of it are there."""
    run, passes = Cluster.run, []

    def watched(self, function, parts):
        passes.append(1)
        acts = len(passes) == number
        for place, result in enumerate(run(self, function, parts)):
            yield result
            if acts and place == 0:
                act()

    monkeypatch.setattr(Cluster, "run", watched)


@pytest.mark.slow
def test_a_worker_killed_in_mid_pass_changes_no_bit(client, monkeypatch):
    before = client.run(os.getpid)
    in_pass(monkeypatch, 6, lambda: os.kill(next(iter(before.values())), signal.SIGKILL))
    np.testing.assert_array_equal(weights(model().fit(*arrays(7))), in_memory())
    client.wait_for_workers(2)
    assert set(client.run(os.getpid).values()) != set(before.values())


@pytest.mark.slow
def test_a_client_that_is_closed_in_mid_fit_ends_it_with_what_is_spent(client, monkeypatch):
    with distributed.Client(client.scheduler.address, set_as_default=False) as other, other.as_current():
        in_pass(monkeypatch, 6, other.close)
        with pytest.raises(WorkerError, match=r"Cancelled|Closed|Error") as caught:
            model().fit(*arrays())
    assert SPENT in caught.value.__notes__[0]
    assert caught.value.__context__ is None


@pytest.mark.slow
def test_a_partition_that_cannot_be_computed_again_ends_the_fit_with_what_is_spent(client, monkeypatch, tmp_path):
    kept = tmp_path / "rows.npy"
    np.save(kept, X)
    lazy = da.from_delayed(dask.delayed(np.load, pure=False)(str(kept)), X.shape, X.dtype)

    def lose():
        kept.unlink()
        client.restart_workers(client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.workers)))

    in_pass(monkeypatch, 6, lose)
    monkeypatch.setattr(cluster_room, "_ANSWERS", 1)
    with pytest.raises(WorkerError, match=r"FileNotFoundError|Cancelled|Killed") as caught:
        model().fit(da.concatenate([lazy[:700], lazy[700:]]), da.from_array(T, chunks=700))
    assert SPENT in caught.value.__notes__[0]
    client.wait_for_workers(2)


def test_rows_that_are_others_when_they_are_computed_again_stop_the_fit(client, tmp_path):
    kept = tmp_path / "rows.npy"
    place, parts = Cluster(client), [Partition(dask.delayed(np.load, pure=False)(str(kept)), None, None)]
    np.save(kept, X)
    (remote,) = place.spooled(parts)
    count = lambda part: sum(len(table) for table, _ in part.tables())  # noqa: E731
    assert list(place.run(count, [remote])) == [N]
    place.close()  # the rows are gone, and computed again for the next pass
    assert tasks_on(client) == []
    assert list(place.run(count, [remote])) == [N]
    place.close()
    assert tasks_on(client) == []
    np.save(kept, X[::-1])  # the same rows, elsewhere
    with pytest.raises(ChangedRowsError, match="changed since the first pass"):
        list(place.run(count, [remote]))
    place.close()


def test_a_pass_is_one_task_for_each_worker_that_has_rows(client, monkeypatch):
    """Once it is known which rows each has: the first pass over them is a task for every part."""
    watched, place = Watched(client), Cluster(client)
    monkeypatch.setattr(place, "_client", watched)
    monkeypatch.setattr(cluster_room, "_ANSWERS", 64)
    parts = place.spooled([Partition(dask.delayed(X[k::9]), None, None) for k in range(9)])
    lengths = [len(X[k::9]) for k in range(9)]
    count = lambda part: sum(len(table) for table, _ in part.tables())  # noqa: E731
    for _ in range(3):
        assert list(place.run(count, parts)) == lengths  # in the order of the parts
    homes = {home.address for home in place._homes.values()}
    (_, (alone, _)), (_, (together, _)) = watched.sent[1], watched.sent[-1]
    assert [len(some) for some in alone] == [1] * 9
    assert len(together) == len(homes) <= 2
    monkeypatch.setattr(cluster_room, "_TASK", 2 * X[::9].nbytes)  # of long parts each task reads few
    assert list(place.run(count, parts)) == lengths
    assert max(len(some) for some in watched.sent[-1][1][0]) <= 2
    place.close()
    assert tasks_on(client) == []


# ---- what is told, and to whom


def test_errors_come_back_by_their_kind_alone(client):
    def secret(_):
        raise KeyError("SECRET 987654")

    broken = da.from_array(X, chunks=(700, D)).map_blocks(secret, meta=np.empty((0, 0)), dtype=float)
    with pytest.raises(WorkerError, match="KeyError") as caught:
        model().fit(broken, arrays(2)[1])
    assert "SECRET" not in repr(caught.value)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None
    place = Cluster(client)
    with pytest.raises(WorkerError, match=r"a partition failed on a worker: KeyError$") as caught:
        list(place.run(secret, place.spooled([Partition(dask.delayed(X), None, None)])))
    assert caught.value.__context__ is None
    place.close()


def test_bad_rows_are_refused_as_they_are_in_memory():
    infinite = X.copy()
    infinite[900, 2] = np.inf
    with pytest.raises(ValueError, match="infinity") as caught:
        model().fit(da.from_array(infinite, chunks=(500, D)), da.from_array(T, chunks=500))
    assert not hasattr(caught.value, "__notes__")
    words = FRAME.assign(b="SECRET")
    lazy = dd.from_pandas(words, npartitions=2)
    with pytest.raises(ValueError, match="column 'b' of dtype") as caught:
        model().fit(lazy.drop(columns="y"), lazy["y"])
    assert "SECRET" not in str(caught.value)


class Watched:
    """A client that keeps what it is asked to send."""

    def __init__(self, client):
        self._client, self.sent = client, []

    def map(self, function, *given, **options):
        self.sent.append((function, given))
        return self._client.map(function, *given, **options)

    def compute(self, tasks):
        self.sent.append([dict(task.__dask_graph__()) for task in tasks])
        return self._client.compute(tasks)

    def __getattr__(self, name):
        return getattr(self._client, name)


def sent_names(sent):
    """Everything that a pickle names, and the whole of it."""
    blob = b"".join(cloudpickle.dumps(_without_futures(one)) for one in sent)
    words = [str(value) for _, value, _ in pickletools.genops(cloudpickle.dumps(_without_futures(sent))) if value]
    return blob, " ".join(words)


def _without_futures(value):
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return [_without_futures(one) for one in value]
    return None if isinstance(value, distributed.Future) else value


@pytest.mark.parametrize("solver", ["statistics", pytest.param("sgd", marks=pytest.mark.slow)])
def test_no_gate_no_noise_no_seed_and_no_model_go_to_workers(client, monkeypatch, solver):
    watched = Watched(client)
    monkeypatch.setattr(partitions, "active_client", lambda: watched)
    asked = Ridge(epsilon=2.0, random_state=SEED, solver=Sgd(n_passes=0.5) if solver == "sgd" else solver)
    asked.fit(*arrays())
    blob, names = sent_names(watched.sent)
    assert "tacit.blocks.exact" in names
    for secret in ("gate", "Gate", "NoiseSource", "tacit.privacy.noise", "Ridge", "random_state", str(SEED)):
        assert secret not in names
    assert SEED.to_bytes(6, "little") not in blob
    leaked, told = sent_names([asked])  # the patterns would find a model
    assert "Ridge" in told
    assert SEED.to_bytes(6, "little") in leaked


def test_a_source_of_noise_cannot_be_sent(client):
    with pytest.raises(TypeError, match="Could not serialize"):
        client.submit(len, NoiseSource(0), pure=False)


# ---- mutants


def break_noise_on_workers():
    from tacit.privacy import noise

    def refuse(*_, **__):
        raise AssertionError("noise on a worker")

    for name in ("words", "spawn", "__init__"):
        if not hasattr(noise.source.NoiseSource, "honest_" + name):
            setattr(noise.source.NoiseSource, "honest_" + name, getattr(noise.source.NoiseSource, name))
        setattr(noise.source.NoiseSource, name, refuse)


def mend_noise_on_workers():
    from tacit.privacy import noise

    for name in ("words", "spawn", "__init__"):
        setattr(noise.source.NoiseSource, name, getattr(noise.source.NoiseSource, "honest_" + name))


def noisy_length(part):
    return len(part.held) + NoiseSource(0).words(1)[0]


def test_no_noise_is_drawn_on_a_worker(client):
    client.run(break_noise_on_workers)
    try:
        np.testing.assert_array_equal(weights(model().fit(*arrays())), in_memory())
        place = Cluster(client)  # a mutant that draws there is caught
        with pytest.raises(WorkerError, match="AssertionError"):
            list(place.run(noisy_length, place.spooled([Partition(dask.delayed(X), None, None)])))
        place.close()
    finally:
        client.run(mend_noise_on_workers)


def test_a_partition_that_is_counted_twice_is_another_model(monkeypatch):
    run = Cluster.run

    def twice(self, function, parts):
        for place, result in enumerate(run(self, function, parts)):
            yield result
            if place == 0 and "_of_part" in repr(function):
                yield result

    monkeypatch.setattr(Cluster, "run", twice)
    assert np.any(weights(model().fit(*arrays())) != in_memory())


# ---- which client


def test_a_fit_inside_a_task_is_refused(client):
    def fit():
        try:
            LogisticRegression().fit(da.zeros((10, 2)), da.zeros(10))
        except RuntimeError as error:
            return str(error)

    assert "cannot run in a task of a worker" in client.submit(fit, pure=False).result()


def test_an_asynchronous_client_is_refused(client):
    async def fit():
        async with distributed.Client(client.scheduler.address, asynchronous=True, set_as_default=False) as other:
            with other.as_current(), pytest.raises(RuntimeError, match="asynchronous"):
                model().fit(*arrays())

    asyncio.run(fit())


def test_the_current_client_is_used_of_two(client):
    with distributed.Client(client.scheduler.address, set_as_default=False) as other:
        assert partitions.active_client() is client
        with other.as_current():
            assert opened_lazily(*arrays()).place._client is other
