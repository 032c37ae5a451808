import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax

from tacit.kernels import rows as kernels

from .support import FORMS, LOSSES, OBJECTS, SHAPE, SHRINK, csr, dense, problem, repeatable, sparse

every_loss = pytest.mark.parametrize("loss", LOSSES)
every_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
either_bias = pytest.mark.parametrize("bias", [0.0, 1.0], ids=["no intercept", "intercept"])


def derivative(loss, margins, targets, shape=SHAPE):
    """Of the losses with one margin, from their definitions."""
    if loss == "logistic":
        return -targets / (1.0 + np.exp(targets * margins))
    if loss == "hinge":  # rounded: quadratic over the width `shape` below a margin of 1, a line before that
        return -targets * np.clip((1.0 - targets * margins) / shape, 0.0, 1.0)
    if loss == "squared_hinge":
        return -2.0 * targets * np.maximum(1.0 - targets * margins, 0.0)
    residual = margins - targets
    return np.clip(residual, -shape, shape) if loss == "huber" else residual


def reference(Z, targets, W, loss, clip, bias):
    """Each row's clipped gradient, of shape (n, outputs, d + 1), from the definitions."""
    wide = np.hstack([Z, np.full((len(Z), 1), bias)])
    margins = wide @ W.T
    if loss == "multinomial":
        residual = softmax(margins, axis=1) - np.eye(len(W))[targets.astype(int)]
    else:
        residual = derivative(loss, margins, targets[:, None])
    gradients = residual[:, :, None] * wide[:, None, :]
    norms = np.linalg.norm(gradients, axis=(1, 2))
    return gradients * (np.minimum(norms, clip) / np.maximum(norms, 1e-300))[:, None, None]


def loss_sum(Z, targets, W, loss, bias):
    margins = np.hstack([Z, np.full((len(Z), 1), bias)]) @ W.T
    return OBJECTS[loss].value(margins if loss == "multinomial" else margins[:, 0], targets, SHAPE).sum()


def square_norm(array):
    """The exact squared norm of an array of floats."""
    return sum(Fraction(float(value)) ** 2 for value in array.ravel())


@every_form
@every_loss
@either_bias
@pytest.mark.parametrize("n", [1, 700, 2 * kernels.BLOCK + 37])
@pytest.mark.parametrize("clip", [0.3, 1e9], ids=["clipped", "not clipped"])
def test_is_the_sum_of_clipped_gradients(form, loss, bias, n, clip):
    Z, targets, W = problem(loss, n, d=7, K=4, seed=n, density=0.6)
    Z[:: max(n // 5, 2)] = 0.0  # empty rows
    expected = reference(Z, targets, W, loss, clip, bias).sum(axis=0)
    if bias == 0.0:
        assert not expected[:, -1].any()
    np.testing.assert_allclose(form(Z, targets, W, loss, clip, bias), expected, rtol=1e-11, atol=1e-11)


@every_form
@every_loss
@either_bias
def test_clipping_is_active_for_some_rows_and_not_for_others(form, loss, bias):
    Z, targets, W = problem(loss, 400, d=5, K=3, seed=1)
    norms = np.linalg.norm(reference(Z, targets, W, loss, math.inf, bias), axis=(1, 2))
    clip = float(np.median(norms))
    expected = reference(Z, targets, W, loss, clip, bias).sum(axis=0)
    np.testing.assert_allclose(form(Z, targets, W, loss, clip, bias), expected, rtol=1e-11, atol=1e-11)


@every_loss
@either_bias
@pytest.mark.parametrize("d", [1, 3, 4, 9])
def test_dense_and_sparse_agree(loss, bias, d):
    Z, targets, W = problem(loss, 300, d, seed=d, density=0.4)
    one, other = (form(Z, targets, W, loss, 0.8, bias) for form in (dense, sparse))
    np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@every_loss
@either_bias
@every_form
def test_is_the_gradient_of_the_loss(form, loss, bias):
    Z, targets, W = problem(loss, 40, d=4, seed=3)
    got = form(Z, targets, W, loss, 1e9, bias)
    h = 1e-5
    for k, j in np.ndindex(*W.shape):
        step = np.zeros_like(W)
        step[k, j] = h
        rise = loss_sum(Z, targets, W + step, loss, bias) - loss_sum(Z, targets, W - step, loss, bias)
        assert got[k, j] == pytest.approx(rise / (2 * h), rel=1e-6, abs=1e-6)


# --- losses with one number more, and the objects of `tacit.problems` --------------------------------------

shapes = st.floats(1e-3, 1e3)
margins_near = st.one_of(st.floats(-5.0, 5.0), st.sampled_from([0.0, 1.0, -1.0]), st.floats(-1e12, 1e12))


def slope(loss, margin, target, shape=1.0):
    """The derivative in the margin, as the kernel has it: the gradient of one row that is 1, in its one weight."""
    return dense(np.array([[1.0]]), np.array([target]), np.array([[margin, 0.0]]), loss, 1e300, 0.0, shape)[0, 0]


@given(margins_near, st.sampled_from([-1.0, 1.0]), shapes, st.floats(-3.0, 3.0))
@repeatable
def test_slopes_are_those_of_the_losses(margin, sign, shape, target):
    for loss, y in {"squared_hinge": sign, "logistic": sign, "squared": target, "huber": target, "hinge": sign}.items():
        found = slope(loss, margin, y, shape)
        expected = OBJECTS[loss].derivative(margin, y, shape)
        assert found == pytest.approx(expected, rel=1e-15, abs=0.0)  # each has its own exp
    assert slope("hinge", margin, sign, shape) == -sign * min(1.0, max(0.0, (1.0 - sign * margin) / shape))


@given(margins_near, st.sampled_from([-1.0, 1.0]), shapes)
@repeatable
def test_the_rounded_hinge_is_the_hinge_off_its_kink(margin, sign, shape):
    """Where 1 - z is negative or above the width; between them it climbs, and is never steeper than 1 / width."""
    slack = 1.0 - sign * margin
    found = slope("hinge", margin, sign, shape)
    if slack <= 0.0 or slack >= shape:
        assert found == (-sign if slack > 0.0 else 0.0)
    assert 0.0 <= -sign * found <= 1.0
    ahead = slope("hinge", margin + 0.1, sign, shape)
    assert -1e-9 <= ahead - found <= 0.1 / shape + 1e-9 * (1.0 + abs(margin) / shape)


@given(margins_near, st.sampled_from([-1.0, 1.0]), shapes)
@repeatable
def test_the_rounded_hinge_lies_below_the_hinge_by_at_most_half_its_width(margin, sign, shape):
    gap = max(0.0, 1.0 - sign * margin) - OBJECTS["hinge"].value(margin, sign, shape)
    assert -1e-12 * (1.0 + abs(margin)) <= gap <= shape / 2 + 1e-12 * (1.0 + abs(margin))


@every_form
@pytest.mark.parametrize("loss", ["squared", "logistic", "multinomial", "squared_hinge"])
def test_other_losses_do_not_read_the_shape(form, loss):
    Z, targets, W = problem(loss, 50, d=4, seed=11)
    first, *others = (form(Z, targets, W, loss, 0.8, 1.0, shape) for shape in (1.0, 1e-300, 1e300, math.nan))
    for other in others:
        np.testing.assert_array_equal(first, other)


# --- one row never touches another -------------------------------------------------------------------------


@every_loss
@either_bias
@pytest.mark.parametrize("n", [5, kernels.BLOCK, 2 * kernels.BLOCK + 11])
def test_dense_sum_is_bit_for_bit_that_of_rows_alone(loss, bias, n):
    Z, targets, W = problem(loss, n, d=6, seed=n)
    block, total = np.zeros_like(W), np.zeros_like(W)
    for i in range(n):
        block += dense(Z[i : i + 1], targets[i : i + 1], W, loss, 0.7, bias)
        if (i + 1) % kernels.BLOCK == 0 or i + 1 == n:
            total, block = total + block, np.zeros_like(W)
    np.testing.assert_array_equal(dense(Z, targets, W, loss, 0.7, bias), total)


@every_loss
@either_bias
def test_sparse_sum_is_bit_for_bit_that_of_rows_alone(loss, bias):
    Z, targets, W = problem(loss, 1500, d=6, seed=2, density=0.5)
    total = np.zeros_like(W)
    for i in range(len(Z)):
        total += sparse(Z[i : i + 1], targets[i : i + 1], W, loss, 0.7, bias)
    np.testing.assert_array_equal(sparse(Z, targets, W, loss, 0.7, bias), total)


@either_bias
def test_norms_are_bit_for_bit_those_of_rows_alone(bias):
    Z, _, _ = problem("squared", 200, d=11, seed=4, density=0.7)
    together, alone = np.empty(200), np.empty(1)
    kernels.dense_norms(Z, bias, together)
    np.testing.assert_allclose(together, np.sqrt((Z**2).sum(axis=1) + bias**2), rtol=1e-14)
    for i in range(200):
        kernels.dense_norms(Z[i : i + 1], bias, alone)
        assert alone[0] == together[i]


@either_bias
def test_sparse_norms_are_those_of_the_rows(bias):
    Z, _, _ = problem("squared", 100, d=8, seed=5, density=0.3)
    Z[10] = 0.0
    norms = np.empty(100)
    kernels.sparse_norms(csr(Z), bias, norms)
    np.testing.assert_allclose(norms, np.sqrt((Z**2).sum(axis=1) + bias**2), rtol=1e-14)
    assert norms[10] == bias


# --- what one row can contribute ---------------------------------------------------------------------------

wild = st.one_of(st.floats(-1e150, 1e150), st.floats(-10.0, 10.0), st.just(0.0), st.floats(-1e-150, 1e-150))


@every_loss
@every_form
@given(data=st.data(), d=st.integers(1, 6), clip=st.floats(1e-3, 1e3), bias=st.sampled_from([0.0, 1.0]))
@repeatable
def test_no_row_contributes_more_than_the_clip(form, loss, data, d, clip, bias):
    outputs = 3 if loss == "multinomial" else 1
    Z = np.array([data.draw(st.lists(wild, min_size=d, max_size=d))])
    W = np.array(data.draw(st.lists(st.floats(-1e5, 1e5), min_size=outputs * (d + 1), max_size=outputs * (d + 1))))
    signs = st.sampled_from([-1.0, 1.0])
    real = st.floats(-1e100, 1e100)
    targets = {"squared": real, "huber": real, "multinomial": st.sampled_from([0.0, 1.0, 2.0])}.get(loss, signs)
    got = form(Z, np.array([data.draw(targets)]), W.reshape(outputs, d + 1), loss, clip * SHRINK, bias)
    assert np.all(np.isfinite(got))
    assert square_norm(got) <= Fraction(clip) ** 2


@every_loss
@either_bias
def test_clipped_rows_come_close_to_the_clip(loss, bias):
    Z, targets, W = problem(loss, 200, d=5, seed=6)
    clip = 1e-4
    steep = np.linalg.norm(reference(Z, targets, W, loss, math.inf, bias), axis=(1, 2)) > clip
    assert steep.sum() > 50  # a hinge is flat for the others
    for i in np.flatnonzero(steep):
        got = dense(Z[i : i + 1], targets[i : i + 1], W, loss, clip * SHRINK, bias)
        assert Fraction(clip) ** 2 * (1 - Fraction(1, 2**28)) <= square_norm(got) <= Fraction(clip) ** 2


@every_loss
@every_form
@either_bias
@pytest.mark.parametrize("bad", [1e300, -1e300, math.inf, -math.inf, math.nan], ids=str)
def test_a_row_that_overflows_contributes_zero(form, loss, bias, bad):
    Z, targets, W = problem(loss, 60, d=4, seed=7)
    others = np.delete(np.arange(60), [0, 31, 59])
    for row in (0, 31, 59):
        Z[row, row % 4] = bad
    expected = form(Z[others], targets[others], W, loss, 0.5, bias)
    np.testing.assert_array_equal(form(Z, targets, W, loss, 0.5, bias), expected)
    assert np.all(np.isfinite(expected))


@every_form
@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan], ids=str)
def test_a_target_that_is_not_finite_contributes_zero(form, bad):
    Z, targets, W = problem("squared", 20, d=4, seed=8)
    expected = form(Z[1:], targets[1:], W, "squared", 0.5, 1.0)
    targets[0] = bad
    np.testing.assert_array_equal(form(Z, targets, W, "squared", 0.5, 1.0), expected)


@every_loss
@every_form
def test_weights_that_overflow_leave_nothing(form, loss):
    Z, targets, W = problem(loss, 20, d=4, seed=9)
    W[:] = np.where(W > 0, 1e308, -1e308)
    got = form(Z * 10.0, targets, W, loss, 0.5, 1.0)
    assert np.all(np.isfinite(got))
    assert np.linalg.norm(got) <= 20 * 0.5


# --- the chain of additions --------------------------------------------------------------------------------


def longest_chain(n):
    """How many additions the sum's deepest term passes through, by doing them on depths."""
    block = total = 0
    for i in range(n):
        block += 1
        if (i + 1) % kernels.BLOCK == 0 or i + 1 == n:
            total, block = max(total, block) + 1, 0
    return total


@pytest.mark.parametrize("n", [1, 2, 1023, 1024, 1025, 2047, 2048, 2049, 5000, 100_000])
def test_sum_depth_is_the_longest_chain(n):
    assert kernels.sum_depth(n) == longest_chain(n)


def test_sum_error_is_within_the_depth_bound():
    Z, targets, W = problem("squared", 3000, d=3, seed=10)
    got = dense(Z, targets, W, "squared", 1e9, 1.0)
    rows = [dense(Z[i : i + 1], targets[i : i + 1], W, "squared", 1e9, 1.0) for i in range(3000)]
    unit = Fraction(kernels.sum_depth(3000), 2**53)
    for place in np.ndindex(*W.shape):
        terms = [Fraction(float(row[place])) for row in rows]
        error = abs(Fraction(float(got[place])) - sum(terms))
        assert error <= unit / (1 - unit) * sum(abs(term) for term in terms)
