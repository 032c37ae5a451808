"""Sums over dense rows are exact: the same bits however rows are cut, and a row adds exactly its own term."""

import gc
import math
import os
import time
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier, Event
from types import SimpleNamespace

import numpy as np
import pytest
from joblib import Parallel, delayed, parallel_config
from threadpoolctl import threadpool_limits

from tacit.blocks import Bounded, ExactPasses, GridTable, Scaling, TableRows, exact, grid, products, sums
from tacit.blocks.grid import Part
from tacit.blocks.sums import Total, sum_over
from tacit.kernels import exact as kernels
from tacit.kernels import stored
from tacit.kernels.given import Block
from tacit.problems.bounds import Bounds
from tests.solvers.support import bounded, either, rows, task

SUMS = {
    "gradient": lambda passes, d: passes.gradient(_weights(passes, d), 1.3),
    "no clip": lambda passes, d: passes.gradient(_weights(passes, d), math.inf),
    "residuals": lambda passes, d: passes.residuals(_weights(passes, d)),
    "second moments": lambda passes, d: passes.second_moments(0.9 * math.sqrt(d)),
    "squares": lambda passes, d: passes.squares(0.9 * math.sqrt(d)),
    "curvature": lambda passes, d: passes.curvature_times(
        _unit(d + 1), np.linspace(0.3, 2.0, d + 1), 1.1 * math.sqrt(d)
    ),
}
every_sum = pytest.mark.parametrize("of", SUMS.values(), ids=SUMS)
every_loss = pytest.mark.parametrize("loss", ["squared", "logistic", "multinomial"])


def _unit(d):
    v = np.random.default_rng(5).normal(size=d)
    return v / np.linalg.norm(v)


def _weights(passes, d):
    return 0.4 * np.random.default_rng(4).normal(size=(passes._task.outputs, d + 1))


def passes_over(loss, data, weights=None, fit_intercept=True):
    n, d = data.Z.shape
    return ExactPasses(task(loss, max(n, 1), d, fit_intercept=fit_intercept), data, weights)


def weights_for(loss):
    return None if loss == "squared" else np.array([0.37, 2.9, 1.0])[: 2 if loss == "logistic" else 3]


def sparse_table(n, d, seed, stored=0.3):
    """Rows of a table with many entries alike, dense and sparse, on the grid."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < stored)
    centre, scale = 0.2 * rng.normal(size=d), 0.5 + rng.random(d)
    scaling = Scaling(centre, scale, 3.0)
    return scaling.transform(X, "grid"), scaling.transform(TableRows(X), "grid")


@every_sum
@every_loss
@either.intercept
def test_a_row_adds_exactly_its_own_term(of, loss, fit_intercept):
    n, d = 60, 5
    data = rows(loss, n, d, seed=3)
    whole = of(passes_over(loss, data, weights_for(loss), fit_intercept), d)
    for i in (0, 17, n - 1):
        without = data.some(np.delete(np.arange(n), i))
        alone = of(passes_over(loss, data.some(np.array([i])), weights_for(loss), fit_intercept), d)
        np.testing.assert_array_equal(
            whole - of(passes_over(loss, without, weights_for(loss), fit_intercept), d), alone
        )


@every_sum
@every_loss
def test_no_cut_and_no_order_of_the_rows_changes_a_bit(of, loss, monkeypatch):
    n, d = 3_000, 6
    data = rows(loss, n, d, seed=6)
    expected = of(passes_over(loss, data, weights_for(loss)), d)
    mixed = data.some(np.random.default_rng(7).permutation(n))
    monkeypatch.setattr(sums, "_LITTLE", 1)
    for block, threads, rows_here in ((1, 1, data.some(np.arange(n))), (7, 2, mixed), (2_048, 2, data)):
        monkeypatch.setattr(grid, "BLOCK", block)
        monkeypatch.setattr(sums, "BLOCK", block)
        monkeypatch.setattr(sums, "cores", lambda threads=threads: threads)
        np.testing.assert_array_equal(of(passes_over(loss, rows_here, weights_for(loss)), d), expected)


@every_sum
@every_loss
@pytest.mark.parametrize("stored", [0.3, 0.1])
def test_a_sparse_table_has_the_sums_of_the_dense_one(of, loss, stored):
    n, d = 2_100, 9
    dense, sparse = sparse_table(n, d, 8, stored)
    targets = rows(loss, n, d, seed=9).targets
    one, other = (of(passes_over(loss, bounded(Z, targets), weights_for(loss)), d) for Z in (dense, sparse))
    np.testing.assert_array_equal(one, other)
    assert np.abs(one).max() > 0.0


@every_loss
@either.intercept
@pytest.mark.parametrize("radius", [3.0, 8.0, 100.0])
def test_second_moments_of_many_sparse_columns_are_those_of_the_dense_table(loss, fit_intercept, radius, monkeypatch):
    """Rows that the clip leaves alone go by stored entries, in long blocks, the others by BLAS."""
    n, d = 3_000, 300
    dense, sparse = sparse_table(n, d, 8, stored=0.05)
    targets = rows(loss, n, 2, seed=9).targets
    for size in (kernels.LONG_BLOCK, 700):
        monkeypatch.setattr(exact, "LONG_BLOCK", size)
        of = [passes_over(loss, bounded(Z, targets), weights_for(loss), fit_intercept) for Z in (dense, sparse)]
        np.testing.assert_array_equal(*(passes.second_moments(radius) for passes in of))


def test_no_second_moment_of_a_long_sparse_block_overflows():
    """Rows of the largest entries, stored, where all others are as large with the other sign."""
    n, d = kernels.LONG_BLOCK, 16
    entries = 4.0 * np.eye(d)[np.arange(n) % d]
    at = np.arange(n) % d
    block = Block(
        stored.Zeros(
            entries[entries > 0].astype(np.float32),
            at.astype(np.int32),
            np.arange(n + 1, dtype=np.int64),
            np.full(d, -4.0, dtype=np.float32),
        ),
        1.0,
        np.ones(n),
        np.full(n, 16.0),
    )
    signs = np.where(np.eye(d)[np.arange(d)] > 0, 1, -1)
    expected = (signs.T @ signs) * (n // d) * 2**42
    found = exact._outer(block, math.inf, np.ones(2))
    assert [int(entry) for entry in found[:d, :d].ravel()] == [int(entry) for entry in expected.ravel()]
    assert found.max() == 2**57


@pytest.mark.parametrize(("n", "d"), [(1, 1), (127, 3), (2_049, 20), (2 * kernels.BLOCK + 129, kernels.SHORT)])
def test_second_moments_of_few_columns_are_those_of_scaled_rows(n, d):
    rng = np.random.default_rng(n)
    table = GridTable.of(rng.uniform(-4.0, 4.0, size=(n, d))).rows
    for bias, factors in ((1.0, rng.random(n)), (0.0, np.ones(n))):
        rows = kernels.scaled(table, bias, factors).astype(np.int64)
        np.testing.assert_array_equal(kernels.dense_outer(table, bias, factors), rows.T @ rows)


@every_loss
def test_sums_are_those_of_the_textbook(loss):
    n, d, clip = 2_500, 5, 1.3
    data = rows(loss, n, d, seed=10)
    passes = passes_over(loss, data, weights_for(loss))
    W = _weights(passes, d)
    wide = np.hstack([data.Z, np.ones((n, 1))])
    margins = wide @ W.T
    loss_of = passes._task.loss
    slopes = loss_of.derivative(margins if len(W) > 1 else margins[:, 0], data.targets).reshape(n, -1)
    heft = np.ones(n)
    if loss != "squared":
        heft = weights_for(loss)[(data.targets > 0 if loss == "logistic" else data.targets).astype(int)]
    length = np.linalg.norm(slopes, axis=1) * np.linalg.norm(wide, axis=1)
    clipped = slopes * (heft * np.minimum(1.0, clip / np.maximum(length, 1e-300)))[:, None]
    np.testing.assert_allclose(passes.gradient(W, clip), clipped.T @ wide, atol=n * 2.0**-18)
    np.testing.assert_allclose(passes.residuals(W), (heft[:, None] * slopes).sum(axis=0), atol=n * 2.0**-18)


# --- the limits ------------------------------------------------------------------------------------------------------


class Repeated:
    """A part of the same block many times: millions of rows, none of which is held."""

    def __init__(self, block, times):
        self.block, self.times = block, times

    def blocks(self):
        for _ in range(self.times):
            yield self.block


def largest(loss):
    """A block of rows with the largest entries that there are, and the longest gradients."""
    Z = GridTable.of(np.full((kernels.BLOCK, 2), 4.0))
    targets = np.full(kernels.BLOCK, {"logistic": -1.0, "multinomial": 0.0}[loss])
    return Part(Z, 1.0, targets, np.full(kernels.BLOCK, math.sqrt(33.0)), 0, kernels.BLOCK)


def exactly(total):
    return [int(high) * 2**32 + int(low) for high, low in zip(total.high.ravel(), total.low.ravel(), strict=True)]


@pytest.mark.parametrize("times", [1, 31, 33, 2_000])
def test_no_total_overflows_at_the_limits(times):
    """Four million rows of the largest entries: beyond an int64, in second moments and in gradients."""
    part = largest("logistic")
    (block,) = part.blocks()
    one = exact._outer(block, math.inf, np.ones(2))
    assert one.max() == 2**53
    total = sum_over([Repeated(block, times)] * 2, exact._outer, math.inf, np.ones(2))
    assert exactly(total) == [2 * times * int(entry) for entry in one.ravel()]
    rule = kernels.Rule(1, 1.0, math.inf, np.ones(2), 2.0**24, 2.0**24)
    far = np.full(3, 2.0**26)  # every margin is far on the wrong side
    one = kernels.dense_gradient(block, far, rule)
    assert one.max() == 2**56
    total = sum_over([Repeated(block, times)] * 2, kernels.dense_gradient, far, rule)
    assert exactly(total) == [2 * times * int(entry) for entry in one]


def test_negative_totals_are_carried_as_positive_ones_are():
    numbers = [-1, 1, -(2**62), 2**62, -(2**32), 5]
    kernel = lambda block: np.array([block])  # noqa: E731

    class Numbers:
        def blocks(self):
            return iter(numbers)

    total = sum_over([Numbers()] * 7, kernel)
    assert exactly(total) == [7 * sum(numbers)]
    assert Total(np.array([-1]), np.array([2**32 - 1])).floats(0)[0] == -1.0


def test_weights_that_are_not_finite_leave_no_row_a_margin():
    data = rows("logistic", 50, 3)
    w = np.array([[np.inf, 0.0, 1.0, 0.0]])
    assert not passes_over("logistic", data).gradient(w, 1.0).any()


def test_weights_whose_margins_could_overflow_have_no_gradient():
    """Whether a margin overflows on its way would depend on the order of additions, and that on the other rows."""
    Z = GridTable.of(np.random.default_rng(0).uniform(1.5, 4.0, size=(8, 33)))
    W = np.zeros((3, 34))
    W[0, :33] = np.random.default_rng(1).choice([-1.0, 1.0], size=33) * 1.7e308 / 33
    data = bounded(Z, np.ones(8))
    assert not passes_over("multinomial", data).gradient(W, 1.0).any()
    assert passes_over("multinomial", data).gradient(W * 2.0**-30, 1.0).any()


@pytest.mark.parametrize("store", [np.asarray, TableRows])
def test_nothing_beyond_four_scales_is_on_the_grid(store):
    """Exact sums rest on it, whatever bounds were found or declared."""
    X = np.array([[1e6, 0.0], [-1e6, 2.0], [0.0, 1.0]])
    wide = Bounds(np.array([-1e6, 0.0]), np.array([1e6, 2.0]))
    table = Scaling(np.zeros(2), np.ones(2), 3.0, bounds=wide).transform(store(X), "grid")
    largest = [np.abs(block.rows if store is np.asarray else stored.filled(block.rows, np.arange(3))).max() for block in
               Part(table, 1.0, np.ones(3), np.ones(3), 0, 3).blocks()]  # fmt: skip
    assert largest == [4.0]


def test_a_sample_without_rows_has_sums_of_zero():
    data = rows("logistic", 50, 3).some(np.array([], dtype=np.int64))
    passes = passes_over("logistic", data)
    for of in SUMS.values():
        assert not of(passes, 3).any()


def test_rows_come_to_the_grid_towards_zero_and_stay_there():
    Z = np.array([[1.0 + 2.0**-20, -1.0 - 2.0**-20, 9.0, np.nan]])
    table = GridTable.of(Z)
    np.testing.assert_array_equal(table.rows, [[1.0, -1.0, 4.0, 0.0]])
    assert GridTable.of(table) is table
    assert "1.0" not in repr(table)


# --- who adds --------------------------------------------------------------------------------------------------------


def test_limits_on_threads_are_kept(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert sums.cores() >= 1
    with threadpool_limits(1):
        assert sums.cores() == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "1,2")
    assert sums.cores() == 1


@pytest.mark.slow
def test_limits_that_joblib_sets_for_its_processes_are_kept(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    for limit in (1, 2):
        with parallel_config("loky", n_jobs=1, inner_max_num_threads=limit), Parallel(n_jobs=2) as pool:
            found = set(pool(delayed(sums.cores)() for _ in range(2)))
        assert found == {min(limit, len(os.sched_getaffinity(0)))}


def test_limits_are_as_before_after_passes_that_overlap():
    before = sums._libraries().info()
    first, second = sums._one_thread_each, sums._one_thread_each
    first.__enter__()
    second.__enter__()
    first.__exit__()
    assert {one["num_threads"] for one in sums._libraries().info() if one["user_api"] == "blas"} == {1}
    second.__exit__()
    assert sums._libraries().info() == before


def test_passes_inside_passes_and_next_to_them_do_not_wait_for_each_other(monkeypatch):
    """All of the threads that stay are taken, many times over."""
    monkeypatch.setattr(sums, "cores", lambda: 3)
    inner = partial(sums.on_threads, lambda part: part + 1)

    def outer():
        return sum(
            sum(found) for found in sums.on_threads(inner, [list(range(start, start + 5)) for start in range(9)])
        )

    expected = outer()
    with ThreadPoolExecutor(12) as pool:
        assert [one.result(timeout=60) for one in [pool.submit(outer) for _ in range(60)]] == [expected] * 60


def test_an_error_in_a_part_ends_the_pass_and_no_thread_goes_on(monkeypatch):
    monkeypatch.setattr(sums, "cores", lambda: 2)
    at_work, seen = set(), []

    def fails(part):
        at_work.add(part)
        try:
            seen.append(part)
            if part == 3:
                raise KeyError("three")
            time.sleep(0.01)
        finally:
            at_work.discard(part)

    with pytest.raises(KeyError):
        sums.on_threads(fails, range(1_000))
    assert not at_work
    assert len(seen) < 20


class Rows(list):
    """A part that can be watched."""


@pytest.mark.parametrize("trouble", ["no threads", "interrupt", "busy"])
def test_nothing_of_a_pass_stays_with_the_threads(trouble, monkeypatch):
    """Where a thread cannot be had, where the user stops in between, and where all of them work for others."""
    monkeypatch.setattr(sums, "cores", lambda: 3)
    pool, seen, end = ThreadPoolExecutor(1), [], Event()
    monkeypatch.setattr(sums, "_helpers", lambda _: pool)
    pool.submit(end.wait, 60)  # nothing that is queued begins before the pass is over
    submit = pool.submit

    def troubled(work):
        future = submit(work)
        if trouble == "busy":
            return future
        raise RuntimeError("can't start new thread") if trouble == "no threads" else KeyboardInterrupt

    monkeypatch.setattr(pool, "submit", troubled)
    parts = [Rows([number]) for number in range(8)]
    watched = [weakref.ref(part) for part in parts]

    def one_pass():
        return sums.on_threads(lambda part: seen.append(part[0]) or part[0], parts)

    if trouble == "interrupt":
        with pytest.raises(KeyboardInterrupt):
            one_pass()
    else:
        assert one_pass() == list(range(8))
    done = len(seen)
    del parts[:]
    gc.collect()
    assert [part() for part in watched] == [None] * 8
    end.set()
    pool.shutdown()
    assert len(seen) == done


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
def test_a_fork_has_threads_of_its_own(monkeypatch):
    monkeypatch.setattr(sums, "cores", lambda: 2)
    meet = Barrier(2)
    sums.on_threads(lambda _: meet.wait(60), range(2))  # the parent's are started
    meet = Barrier(2)
    child = os.fork()
    if child == 0:
        try:
            sums.on_threads(lambda _: meet.wait(20), range(2))
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_blas_is_exact_here_and_a_blas_that_is_not_is_replaced(monkeypatch):
    assert products.blas_is_exact()
    data = rows("multinomial", 300, 4, seed=12)
    expected = {name: of(passes_over("multinomial", data), 4) for name, of in SUMS.items()}
    monkeypatch.setattr(products, "blas_is_exact", lambda: False)
    products._is_exact.cache_clear()
    try:
        with pytest.warns(products.InexactBlasWarning, match="compiled loops"):
            passes_over("multinomial", data).gradient(_weights(passes_over("multinomial", data), 4), 1.0)
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # it is said once
            for name, of in SUMS.items():
                np.testing.assert_array_equal(of(passes_over("multinomial", data), 4), expected[name])
    finally:
        products._is_exact.cache_clear()


def test_a_blas_that_rounds_is_noticed(monkeypatch):
    monkeypatch.setattr(products, "np", SimpleNamespace(**vars(np) | {"float64": np.float32}))
    assert not products.blas_is_exact()


def test_a_blas_that_multiplies_wide_matrices_in_another_way_is_noticed(monkeypatch):
    """Strassen's way takes sums of entries for factors, which are longer."""

    class Quick(np.ndarray):
        def __matmul__(self, other):
            one, other = np.asarray(self), np.asarray(other)
            if one.shape[0] < 200:
                return one @ other
            half = one.shape[1] // 2
            a, b, c, d = one[:, :half], one[:, half:], other[:half], other[half:]
            return (a + b) @ (c + d) - a @ d - b @ c

    class Integers(np.ndarray):
        def astype(self, kind):
            return np.asarray(self).astype(kind).view(Quick)

    mixed = products._mixed
    monkeypatch.setattr(products, "_mixed", lambda count: mixed(count).view(Integers))
    assert not products.blas_is_exact()


def test_bounded_rows_show_nothing_of_themselves():
    assert "4711" not in repr(Total(np.array([1]), np.array([4711]))).partition(" at ")[0]  # which may be in an address
    assert "3.25" not in repr(Part(GridTable.of(np.ones((1, 1))), 1.0, np.array([3.25]), np.array([1.0]), 0, 1))
    assert repr(Bounded(GridTable.of(np.ones((2, 2))), np.ones(2), None)) == "Bounded(private)"
