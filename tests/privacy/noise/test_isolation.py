"""Threads, forks and workers never draw the same noise."""

import json
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import joblib
import pytest
from joblib.externals.loky import get_reusable_executor

from tacit.privacy.noise import NoiseSource, samplers
from tacit.privacy.noise import source as module

from .fork_family import draw


def fresh_words(_):
    return NoiseSource().words(4).tolist()


def all_differ(draws):
    """Whether no number occurs twice: by chance one would with probability below 2^-30, through the 42-bit normals."""
    numbers = [number for one in draws for number in one]
    return len(set(numbers)) == len(numbers)


# Threads


def in_another_thread(action):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(action).result()


@pytest.mark.parametrize(
    "use",
    [
        lambda source: source.words(1),
        lambda source: source.word(),
        lambda source: source.spawn(),
        lambda source: source.window(),
        lambda source: source.refill(),
        lambda source: samplers.normals(source, 1),
        lambda source: samplers.laplaces(source, 1),
    ],
)
def test_a_second_thread_is_refused(use):
    source = NoiseSource(1)
    source.word()
    with pytest.raises(RuntimeError, match="spawn"):
        in_another_thread(lambda: use(source))
    assert source.word() == NoiseSource(1).words(2)[1]  # and has used nothing up


def test_a_source_may_be_made_in_one_thread_and_used_in_another():
    source = NoiseSource(2)
    assert in_another_thread(source.word) == NoiseSource(2).word()
    with pytest.raises(RuntimeError, match="spawn"):
        source.word()


def test_spawned_sources_work_in_threads():
    source = NoiseSource(3)
    children = [source.spawn() for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        drawn = list(pool.map(lambda child: child.words(5000).tolist(), children))
    assert all_differ([*drawn, source.words(5000).tolist()])
    again = NoiseSource(3)
    assert drawn == [again.spawn().words(5000).tolist() for _ in range(8)]


def test_threads_that_race_for_a_source_leave_one_owner():
    for _ in range(50):
        source, start, drawn = NoiseSource(), threading.Barrier(4), []

        def race(source=source, start=start, drawn=drawn):
            start.wait()
            try:
                drawn.append(source.words(20).tolist())
            except RuntimeError:
                drawn.append([])

        threads = [threading.Thread(target=race) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(map(len, drawn)) == [0, 0, 0, 20]


# Forks


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_parent_and_children_differ_after_forks():
    """Also where words were buffered before the fork, and where the source was seeded."""
    script = [sys.executable, str(Path(__file__).with_name("fork_family.py"))]
    done = subprocess.run(script, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    families = json.loads(done.stdout)
    assert len(families) == 12
    for family in families:
        assert len(family["children"]) >= 4, family
        assert all_differ([family["parent"], *family["children"]]), family
        if family["seed"] is not None:
            alone = NoiseSource(family["seed"])
            alone.words(family["before"])
            assert family["parent"] == draw(alone)  # forks do not move the parent
            later = set(alone.words(2000).tolist())
            assert later.isdisjoint(number for one in family["children"] for number in one)
    children = [child for family in families for child in family["children"]]
    assert all_differ(children)


@pytest.mark.parametrize("seed", [None, 6])
def test_the_state_of_before_a_fork_is_dropped_in_the_child(monkeypatch, seed):
    """The same within one process, by moving the count of forks as the child would."""
    source = NoiseSource(seed)
    source.words(10)
    key, left = source._key, source._buffer[source._at :].tolist()
    monkeypatch.setattr(module, "_forks", module._forks)
    module._count_fork()
    words = in_another_thread(lambda: source.words(2 * len(left)))
    assert set(words.tolist()).isdisjoint(left)
    assert source._key != key
    assert source.seeded == (seed is not None)


# Workers


def test_spawned_processes_differ():
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        drawn = list(pool.map(fresh_words, range(6)))
        with pytest.raises(TypeError, match="cannot be pickled"):
            pool.submit(draw, NoiseSource()).result()
    assert all_differ(drawn)


@pytest.mark.slow
def test_joblib_processes_differ():
    try:
        assert all_differ(joblib.Parallel(n_jobs=2, backend="loky")(joblib.delayed(fresh_words)(i) for i in range(6)))
        with pytest.raises((TypeError, pickle.PicklingError), match=r"pickle"):
            joblib.Parallel(n_jobs=2, backend="loky")(joblib.delayed(draw)(source) for source in [NoiseSource()] * 2)
    finally:
        get_reusable_executor().shutdown(wait=True)


def test_joblib_threads_differ():
    parallel = joblib.Parallel(n_jobs=2, backend="threading")
    assert all_differ(parallel(joblib.delayed(fresh_words)(i) for i in range(50)))
    source = NoiseSource()
    children = [source.spawn() for _ in range(50)]  # a list: a generator would be read, and spawn, in the workers
    assert all_differ(parallel(joblib.delayed(draw)(child) for child in children))
    with pytest.raises(RuntimeError, match="spawn"):
        parallel(joblib.delayed(draw)(source) for _ in range(50))
