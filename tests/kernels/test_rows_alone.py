"""No row's own value depends on where it stands or on who else is there, to the last bit.

Loops over rows become vector code: several rows at a time in the middle of an array, single ones at its end. A row that
is absent moves all rows after it from one to the other. So every value of a row is compared with that of the same row
in a table that is shifted, shortened, permuted, padded, alone, or placed elsewhere in memory.
"""

import itertools
import math

import numpy as np
import pytest

from tacit.kernels import centred, columns, coordinate, dual, exact, moments, rows
from tacit.kernels.given import Block, Noise
from tacit.kernels.sigmoid import falling_sigmoid
from tacit.problems import Penalty

from .support import LOSSES, csc, csr

N, D = 75, 5
W = np.array([0.3, -1.7, 0.9, 2.2, -0.4, 0.6])
V = np.linalg.qr(np.arange(10.0).reshape(5, 2) ** 2 + 1.0)[0]
CENTRE = np.array([0.1, 0.0, -2.0, 0.3, 1.0])


def rows_of_all_sizes(kind=np.float64):
    """Entries of many magnitudes, single-precision numbers, some of them zero; and targets."""
    rng = np.random.default_rng(0)
    sizes = 2.0 ** rng.integers(-30, 30, size=(N, 1)) * 2.0 ** rng.integers(-8, 8, size=(N, D))
    Z = rng.normal(size=(N, D)) * np.where(rng.random((N, 1)) < 0.5, 1.0, sizes) * (rng.random((N, D)) < 0.8)
    return Z.astype(np.float32).astype(kind), rng.choice([-1.0, 1.0], size=N)


def elsewhere(array):
    """The same array at another place in memory, off every boundary but that of its own numbers."""
    room = np.empty(array.size + 1, dtype=array.dtype)[1:].reshape(array.shape)
    room[...] = array
    return room


def choices():
    """Which rows stand in a table, in which order."""
    every = np.arange(N)
    yield from (every[k:] for k in (1, 2, 3, 5, 8))
    yield from (every[:-k] for k in (1, 2, 3, 4, 5, 6, 7, 9, 33))
    yield from (np.delete(every, k) for k in (10, 40, 73))
    yield every[::-1]
    yield np.random.default_rng(1).permutation(N)
    yield np.concatenate([every[60:], every, every[:20]])
    yield from (every[k : k + 1] for k in range(0, N, 6))


# --- values of rows, for a table and its targets ----------------------------------------------------------------------


def by_columns(name, sparse, *args):
    def values(Z, _):
        out = np.empty(len(Z))
        table = csc(Z) if sparse else elsewhere(np.ascontiguousarray(Z.T))
        getattr(columns, f"{'sparse' if sparse else 'dense'}_{name}")(table, *args, out)
        return out

    return values


def after_a_pass(loss, sparse, cap):
    """Margins after steps on all coordinates. Nothing of the sums is released: noise alone moves weights to a bound."""

    def values(Z, targets):
        n, order = len(Z), np.array([2, 0, 5, 1, 4, 3])
        margins, w = np.zeros(n), np.zeros(D + 1)
        out, ones = coordinate.Written(np.empty(6), np.empty(6)), np.ones(n, dtype=Z.dtype)
        rules = coordinate.rules(*np.tile([[cap, 1.0, 1e9]], (6, 1)).T, Penalty(low=-np.abs(W), high=np.abs(W)), n)
        noise = Noise(np.array([3, -7, 11, 5, -2, 9]), 0.7, 1e-300)
        rest = ones, coordinate.Slopes(margins, targets, np.ones((2, n)), LOSSES[loss]), rules, order, noise, w, out
        if sparse:
            coordinate.sparse_pass(csc(Z), *rest)
        else:
            coordinate.dense_pass(elsewhere(np.ascontiguousarray(Z.T)), *rest)
        assert np.all(out.released == noise.counts * 0.7)
        return margins

    return values


def slopes(loss):
    def values(Z, targets):
        out = np.empty(len(Z))
        margins = elsewhere(Z.sum(axis=1, dtype=np.float64))
        coordinate.clipped_slopes(coordinate.Slopes(margins, targets, np.ones((2, len(Z))), LOSSES[loss]), 0, out)
        return out

    return values


def duals(loss, sparse):
    """Moved dual variables of all rows, in one batch."""

    def values(Z, targets):
        n = len(Z)
        alpha, ones, out = np.full((n, 1), 0.1) * targets[:, None], np.ones(n), np.empty((1, D + 1))
        batch = dual.sparse_batch if sparse else dual.dense_batch
        block = Block(csr(Z) if sparse else elsewhere(Z), 1.0, targets, ones)
        rule = dual.Rule(2.0, LOSSES[loss], dual.EXACT, 0.1, 0.5)
        batch(block, dual.Alphas(alpha, ones), np.arange(n), W[None], rule, out)
        return alpha[:, 0]

    return values


def by_rows(kernel, parts, width, *args):
    def values(Z, _):
        out = np.empty((len(Z), *width))
        kernel(parts(Z), *args, out)
        return out

    return values


def bounded(Z, _):
    out, norms = np.empty((len(Z), D)), np.empty(len(Z))
    centred.on_grid(elsewhere(Z), CENTRE, 3.0, 2.0**19, out, norms)
    lengths, clipped, images = np.empty(len(Z)), out @ np.rint(V * 2.0**20), out @ np.rint(V * 2.0**20)
    centred.lengths(images, norms, lengths)
    centred.clipped_products(clipped, norms, 0.5 * 2.0**38, 4.0)
    centred.bounded_images(images, 2.0**20)
    return np.column_stack([out, norms, lengths, clipped, images])


def sigmoids(Z, _):
    out = elsewhere(Z[:, 0].astype(np.float32))
    falling_sigmoid(out)
    return out


def coefficients(loss):
    """Of the rows of a table on a grid; clipped, with a weight for each class."""

    def values(Z, targets):
        rule = exact.Rule(LOSSES[loss], 0.5, 1.5, np.array([0.3, 2.1, 1.0]), 2.0**20, 2.0**21)
        out, norms = elsewhere(np.clip(np.outer(Z.sum(axis=1), [1.0, -0.3, 0.2]), -99.0, 99.0)), np.empty(len(Z))
        exact.dense_norms(elsewhere(Z), 1.0, norms)
        if loss == "multinomial":
            by_class = elsewhere(out.T)
            exact.class_coefficients(by_class, (targets > 0.0) + 1.0, norms, rule)
            return by_class.T
        one = out[:, 0].copy()
        exact.coefficients(one, targets, norms, rule)
        return one

    return values


def columns_on_a_grid(Z, targets):
    out = np.empty((D + 1, len(Z) + 1))
    exact._scaled_columns(elsewhere(Z), 1.0, 0.3 + 0.1 * targets, out)
    return out[:, :-1].T


VALUES = {
    **{f"coefficients {loss}": coefficients(loss) for loss in ("squared", "logistic", "hinge", "multinomial")},
    "rows on a grid": lambda Z, targets: exact.scaled(elsewhere(Z), 1.0, 0.3 + 0.1 * targets),
    "columns on a grid": columns_on_a_grid,
    "whitened rows": lambda Z, _: exact.whitened(elsewhere(Z), np.abs(W), 3.0, 2.0**19),
    **{
        f"{name} {'sparse' if sparse else 'dense'}": by_columns(name, sparse, W)
        for name in ("margins", "square_norms", "largest")
        for sparse in (False, True)
    },
    **{
        f"pass {loss} {'sparse' if sparse else 'dense'} {cap}": after_a_pass(loss, sparse, cap)
        for loss in ("squared", "logistic", "squared_hinge")
        for sparse in (False, True)
        for cap in (math.inf, 0.5)
    },
    **{f"slopes {loss}": slopes(loss) for loss in ("squared", "logistic", "squared_hinge")},
    **{
        f"dual {loss} {'sparse' if sparse else 'dense'}": duals(loss, sparse)
        for loss in ("squared", "logistic", "hinge", "squared_hinge")
        for sparse in (False, True)
    },
    "row margins dense": by_rows(rows.dense_margins, elsewhere, (), 1.0, W),
    "row margins sparse": by_rows(rows.sparse_margins, csr, (), 1.0, W),
    "row norms dense": by_rows(rows.dense_norms, elsewhere, (), 1.0),
    "pulls dense": by_rows(dual.dense_pulls, elsewhere, (), 1.0, W**2),
    "distances dense": by_rows(centred.distances, elsewhere, (), CENTRE),
    "distances sparse": by_rows(moments.sparse_distances, csr, (), CENTRE),
    "weighted norms": by_rows(rows.weighted_norms, csr, (), W),
    "bounded rows": bounded,
    "sigmoid": sigmoids,
}
IN_SINGLE = [name for name in VALUES if "dense" in name and name.split()[0] in ("margins", "pass", "dual")]


def check(name, kind):
    Z, targets = rows_of_all_sizes(kind)
    whole = VALUES[name](Z, targets)
    assert np.all(np.isfinite(whole))
    for chosen in choices():
        np.testing.assert_array_equal(VALUES[name](Z[chosen], targets[chosen]), whole[chosen])


@pytest.mark.parametrize("name", VALUES)
def test_a_value_is_that_of_the_row_alone(name):
    check(name, np.float64)


@pytest.mark.parametrize("name", IN_SINGLE)
def test_a_value_of_a_single_precision_row_is_that_of_the_row_alone(name):
    check(name, np.float32)


# --- what a row adds to a sum -----------------------------------------------------------------------------------------


def silenced_pass(loss, sparse, cap):
    """The sums over each column, all rows but one having no room in theirs."""

    def sums(Z, targets, place):
        n, released = len(Z), np.empty(6)
        limits = np.zeros((2, n))
        limits[:, place] = 0.4, 0.3
        rules = coordinate.rules(*np.tile([[cap, 1.0, 0.0]], (6, 1)).T, Penalty(low=-9.0, high=9.0), n)
        margins = 0.1 * Z.sum(axis=1, dtype=np.float64)
        of, none = coordinate.Slopes(margins, targets, limits, LOSSES[loss]), np.zeros(6, dtype=np.int64)
        noise, out = Noise(none, 0.0, 1e300), coordinate.Written(released, np.empty(6))
        rest = np.ones(n, dtype=Z.dtype), of, rules, np.arange(6), noise, np.zeros(6), out
        if sparse:
            coordinate.sparse_pass(csc(Z), *rest)
        else:
            coordinate.dense_pass(np.ascontiguousarray(Z.T), *rest)
        return released

    return sums


def silenced_gradient(loss, sparse):
    """The gradient, all rows but one having no length."""

    def sums(Z, targets, place):
        norms, out = np.full(len(Z), math.inf), np.empty((1, 6))
        norms[place] = 2.0
        gradient = rows.sparse_gradient if sparse else rows.dense_gradient
        gradient(Block(csr(Z) if sparse else Z, 1.0, targets, norms), W[None], LOSSES[loss], 0.7, 0.5, out)
        return out

    return sums


SUMS = {
    **{
        f"pass {loss} {'sparse' if sparse else 'dense'} {cap}": silenced_pass(loss, sparse, cap)
        for loss in ("squared", "logistic", "squared_hinge")
        for sparse in (False, True)
        for cap in (math.inf, 0.01)
    },
    **{
        f"gradient {loss} {'sparse' if sparse else 'dense'}": silenced_gradient(loss, sparse)
        for loss in ("squared", "logistic", "huber", "hinge", "squared_hinge")
        for sparse in (False, True)
    },
}


@pytest.mark.parametrize("name", SUMS)
def test_what_a_row_adds_does_not_depend_on_its_place(name):
    """The row among others that add nothing, at every place of the table, and alone."""
    Z, targets = rows_of_all_sizes()
    for row in (4, 30):
        own, label = Z[row], targets[row]
        alone = SUMS[name](own[None], np.array([label]), 0)
        assert np.any(alone != 0.0)
        for place in range(N):
            table, labels = Z.copy(), targets.copy()
            table[place], labels[place] = own, label
            np.testing.assert_array_equal(SUMS[name](table, labels, place), alone)


@pytest.mark.parametrize("d", [16, 37, 100])
def test_dual_steps_of_wide_rows_do_not_depend_on_their_place(d):
    """Margins of rows that are long enough for vector code, at all places in memory."""
    rng = np.random.default_rng(d)
    Z, theta = rng.normal(size=(12, d)) * 2.0 ** rng.integers(-20, 20, size=(12, d)), rng.normal(size=(1, d + 1))

    def moved(some, shift):
        room = np.empty(some.size + shift)[shift:].reshape(some.shape)
        room[...] = some
        n, alpha, out = len(some), np.zeros((len(some), 1)), np.empty((1, d + 1))
        ones, rule = np.ones(n), dual.Rule(2.0, LOSSES["squared"], dual.EXACT, 0.1, 1e300)
        own = dual.Alphas(alpha, ones)
        dual.dense_batch(Block(room, 1.0, ones, ones), own, np.arange(n), theta, rule, out)
        return alpha

    whole = moved(Z, 0)
    for first, last, shift in itertools.product((0, 1, 5), (6, 11, 12), range(8)):
        np.testing.assert_array_equal(moved(Z[first:last], shift), whole[first:last])
