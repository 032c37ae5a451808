"""Dual steps against a search of the subproblem, and batches against a plain loop."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize_scalar
from scipy.special import expit, xlogy

from tacit.kernels import dual as kernels
from tacit.kernels.given import Block, Noise

from .support import LOSSES, csr, repeatable

SERVED = ("squared", "logistic", "hinge", "squared_hinge")
every_loss = pytest.mark.parametrize("loss", SERVED)
signs = st.sampled_from([-1.0, 1.0])
logarithms = st.floats(-6.0, 8.0)


def step(alpha, margin, target, s, loss, inner=kernels.EXACT, kink=0.0):
    return kernels.dual_step(alpha, margin, target, s, LOSSES[loss], inner, kink)


def conjugate(loss, alpha, target):
    """The conjugate of the loss of a margin, at -alpha; infinite where it has no value."""
    b = target * alpha
    if loss == "squared":
        return alpha**2 / 2 - target * alpha
    if loss == "logistic":
        return xlogy(b, b) + xlogy(1 - b, 1 - b) if 0.0 <= b <= 1.0 else math.inf
    if loss == "hinge":
        return -b if 0.0 <= b <= 1.0 else math.inf
    return b**2 / 4 - b if b >= 0.0 else math.inf


def subproblem(zeta, alpha, margin, target, s, loss):
    return conjugate(loss, alpha + zeta, target) + margin * zeta + s * zeta**2 / 2


# --- one row ---------------------------------------------------------------------------------------------------------


@every_loss
@repeatable
@given(st.floats(-4.0, 4.0), st.floats(-9.0, 9.0), signs, st.floats(-3.0, 3.0))
def test_a_conjugate_is_that_of_the_loss(loss, margin, slope, sign, target):
    # Fenchel and Young: loss(m) + conjugate(-alpha) >= -alpha m, with equality at alpha = -loss'(m).
    target = target if loss == "squared" else sign
    room = 1 - target * margin
    value, alpha = {
        "squared": ((margin - target) ** 2 / 2, target - margin),
        "logistic": (np.logaddexp(0.0, -target * margin), target * expit(-target * margin)),
        "hinge": (max(room, 0.0), target * (room > 0)),
        "squared_hinge": (max(room, 0.0) ** 2, 2 * target * max(room, 0.0)),
    }[loss]
    assert value + conjugate(loss, alpha, target) == pytest.approx(-alpha * margin, abs=1e-9)
    assert value + conjugate(loss, slope, target) >= -slope * margin - 1e-9


@every_loss
@repeatable
@given(st.floats(0.0, 1.0), st.floats(-20.0, 20.0), signs, st.floats(-3.0, 3.0), st.floats(-4.0, 4.0))
def test_a_step_minimises_the_subproblem(loss, share, margin, sign, value, power):
    s, target = 10.0**power, value if loss == "squared" else sign
    alpha = sign * share if loss != "squared" else 3 * (share - 0.5)
    zeta = step(alpha, margin, target, s, loss)
    if loss in ("logistic", "hinge"):
        sides = sorted((-alpha, target - alpha))
    else:
        sides = -alpha - 100.0, -alpha + 100.0
        if loss == "squared_hinge":
            sides = sorted((-alpha, -alpha + 100.0 * target))
    found = minimize_scalar(
        subproblem, bounds=sides, args=(alpha, margin, target, s, loss), method="bounded", options={"xatol": 1e-10}
    )
    assert sides[0] - 1e-12 <= zeta <= sides[1] + 1e-12
    ours = subproblem(zeta, alpha, margin, target, s, loss)
    assert ours <= found.fun + 1e-9 * max(1.0, abs(found.fun))


@repeatable
@given(st.floats(0.0, 1.0), st.floats(-5.0, 5.0), signs, st.floats(-4.0, 4.0), st.floats(-3.0, 0.5))
def test_a_step_of_a_rounded_hinge_minimises_its_subproblem(share, margin, target, power, wide):
    s, kink, alpha = 10.0**power, 10.0**wide, target * share
    zeta = step(alpha, margin, target, s, "hinge", kink=kink)

    def value(zeta):
        return subproblem(zeta, alpha, margin, target, s, "hinge") + kink * (alpha + zeta) ** 2 / 2

    found = minimize_scalar(value, bounds=sorted((-alpha, target - alpha)), method="bounded", options={"xatol": 1e-10})
    assert 0.0 <= target * (alpha + zeta) <= 1.0 + 1e-12
    inside = alpha + zeta if 0.0 <= target * (alpha + zeta) <= 1.0 else target
    assert value(inside - alpha) <= found.fun + 1e-9 * max(1.0, abs(found.fun))


@repeatable
@given(st.floats(-0.5, 1.5), st.floats(-50.0, 50.0), signs, logarithms)
def test_the_logistic_solve_converges_everywhere(share, margin, target, power):
    # A dual variable may be out of its range, where it was led there by momentum.
    s = 10.0**power
    zeta = step(target * share, margin, target, s, "logistic")
    new = share + target * zeta

    def slope(t):
        return t + target * margin + s * (expit(t) - share)

    reach = abs(margin) + 2 * s + 1
    root = brentq(slope, -reach, reach, xtol=1e-12, rtol=1e-14, maxiter=500)
    assert 0.0 <= new <= 1.0 + 1e-12
    assert new == pytest.approx(expit(root), abs=1e-9)


@repeatable
@given(st.floats(0.0, 1.0), st.floats(-50.0, 50.0), signs, logarithms)
def test_newtons_single_step_is_the_formula(share, margin, target, power):
    s = 10.0**power
    zeta = step(target * share, margin, target, s, "logistic", kernels.NEWTON)
    at = min(max(share, 1e-3), 1 - 1e-3)
    slope = math.log(at / (1 - at)) + target * margin + s * (at - share)
    wanted = at - slope / (1 / (at * (1 - at)) + s)
    assert share + target * zeta == pytest.approx(min(max(wanted, 0.0), 1.0), abs=1e-9)


def test_newtons_single_step_is_near_the_solution_where_the_step_is_short():
    for b in (0.1, 0.5, 0.9):
        exact, single = (step(b, 0.3, 1.0, 300.0, "logistic", inner) for inner in (kernels.EXACT, kernels.NEWTON))
        assert single == pytest.approx(exact, rel=0.02)
        assert single != exact


@pytest.mark.parametrize("loss", [loss for loss in SERVED if loss != "logistic"])
def test_newtons_single_step_is_exact_for_what_is_quadratic(loss):
    assert step(0.2, 0.4, 1.0, 3.0, loss, kernels.NEWTON) == step(0.2, 0.4, 1.0, 3.0, loss)


@every_loss
def test_a_step_of_a_row_without_entries_is_finite(loss):
    assert math.isfinite(step(0.0, 0.0, 1.0, 0.0, loss))


# --- batches ---------------------------------------------------------------------------------------------------------


def problem(loss, n=30, d=5, outputs=1, seed=0, density=0.6):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, d)) * (rng.random((n, d)) < density)
    Z[3] = 0.0
    if outputs > 1:
        targets = rng.integers(0, outputs, size=n).astype(np.float64)
    else:
        targets = rng.normal(size=n) if loss == "squared" else rng.choice([-1.0, 1.0], size=n)
    signed = class_signs(targets, outputs)
    alpha = rng.random((n, outputs)) * (np.sign(signed) if loss != "squared" else 1.0)
    return Z, targets, alpha, rng.normal(size=(outputs, d + 1)), rng.permutation(n)[: n // 2]


def class_signs(targets, outputs):
    if outputs == 1:
        return targets[:, None]
    return np.where(targets[:, None] == np.arange(outputs), 1.0, -1.0)


def norms_of(Z, bias):
    return np.sqrt(np.sum(Z**2, axis=1) + bias**2)


def dense(Z, bias, rows, targets, theta, alpha, damping, loss, inner, clip):
    alpha, out, norms = alpha.copy(), np.empty_like(theta), norms_of(Z, bias)
    own, rule = kernels.Alphas(alpha, norms**2 / 7.0), kernels.Rule(damping, LOSSES[loss], inner, KINK, clip)
    kernels.dense_batch(Block(Z, bias, targets, norms), own, rows, theta, rule, out)
    return alpha, out


def sparse(Z, bias, rows, targets, theta, alpha, damping, loss, inner, clip):
    alpha, out, norms = alpha.copy(), np.empty_like(theta), norms_of(Z, bias)
    own, rule = kernels.Alphas(alpha, norms**2 / 7.0), kernels.Rule(damping, LOSSES[loss], inner, KINK, clip)
    kernels.sparse_batch(Block(csr(Z, np.int32), bias, targets, norms), own, rows, theta, rule, out)
    return alpha, out


def plain(Z, bias, rows, targets, theta, alpha, damping, loss, inner, clip):
    alpha, out = alpha.copy(), np.zeros_like(theta)
    signed, outputs = class_signs(targets, len(theta)), len(theta)
    for i in rows:
        x = np.append(Z[i], bias)
        s = damping * x @ x / 7.0
        zeta = np.array([step(alpha[i, k], x @ theta[k], signed[i, k], s, loss, inner, KINK) for k in range(outputs)])
        size = np.linalg.norm(np.outer(zeta, x))
        zeta *= min(1.0, clip / size) if size > 0 else 1.0
        alpha[i] += zeta
        out += np.outer(zeta, x)
    return alpha, out


BATCHES = [(loss, 1) for loss in SERVED] + [("hinge", 3), ("squared_hinge", 3)]
KINK = 0.1


@pytest.mark.parametrize("batch", [dense, sparse])
@pytest.mark.parametrize("inner", [kernels.EXACT, kernels.NEWTON], ids=["exact", "newton"])
@pytest.mark.parametrize("clip", [0.2, 1e6])
@pytest.mark.parametrize("bias", [0.0, 1.0])
@pytest.mark.parametrize(("loss", "outputs"), BATCHES)
def test_a_batch_is_a_plain_loop(batch, loss, outputs, bias, clip, inner):
    Z, targets, alpha, theta, rows = problem(loss, outputs=outputs)
    given = Z, bias, rows, targets, theta, alpha, 4.0, loss, inner, clip
    for ours, wanted in zip(batch(*given), plain(*given), strict=True):
        np.testing.assert_allclose(ours, wanted, atol=1e-12)
    left = np.setdiff1d(np.arange(len(Z)), rows)
    np.testing.assert_array_equal(batch(*given)[0][left], alpha[left])


@pytest.mark.parametrize("batch", [dense, sparse])
@pytest.mark.parametrize(("loss", "outputs"), BATCHES)
@repeatable
@given(st.integers(0, 1_000), st.floats(-6.0, 2.0), st.sampled_from([0.0, 1.0]))
def test_what_a_row_adds_is_clipped_over_all_outputs_and_the_intercept(batch, loss, outputs, seed, power, bias):
    clip = 10.0**power
    Z, targets, alpha, theta, _ = problem(loss, n=6, outputs=outputs, seed=seed)
    at_bound = 0
    for i in range(6):
        _, out = batch(Z, bias, np.array([i]), targets, theta, alpha, 1.0, loss, kernels.EXACT, clip)
        assert np.linalg.norm(out) <= clip * (1 + 1e-14)
        at_bound += np.linalg.norm(out) >= clip * (1 - 1e-9)
    assert power > -3 or at_bound >= 3  # a tight clip is reached by most rows


@pytest.mark.parametrize("batch", [dense, sparse])
@pytest.mark.parametrize("bad", [1e200, math.inf, math.nan])
def test_what_is_not_a_number_adds_nothing(batch, bad):
    Z, targets, alpha, theta, _ = problem("squared", density=1.0)
    Z[0, 1] = bad
    with np.errstate(over="ignore"):
        moved, out = batch(Z, 1.0, np.array([0, 1]), targets, theta, alpha, 1.0, "squared", kernels.EXACT, 1.0)
        _, alone = batch(Z, 1.0, np.array([1]), targets, theta, alpha, 1.0, "squared", kernels.EXACT, 1.0)
    np.testing.assert_array_equal(out, alone)
    assert moved[0, 0] == alpha[0, 0]


def test_a_row_does_not_see_who_else_is_in_the_batch():
    Z, targets, alpha, theta, rows = problem("logistic")
    given = targets, theta, alpha, 4.0, "logistic", kernels.EXACT, 0.2
    together, _ = dense(Z, 1.0, rows, *given)
    for i in rows:
        assert dense(Z, 1.0, np.array([i]), *given)[0][i] == together[i]


def test_nobody_adds_nothing():
    Z, targets, alpha, theta, _ = problem("hinge")
    for batch in (dense, sparse):
        nobody = np.empty(0, dtype=np.int64)
        moved, out = batch(Z, 1.0, nobody, targets, theta, alpha, 1.0, "hinge", kernels.EXACT, 1.0)
        np.testing.assert_array_equal(moved, alpha)
        assert not out.any()


# --- steps on samples ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize(("loss", "outputs"), BATCHES)
def test_steps_are_batches_one_after_the_other_with_noise_in_between(kind, loss, outputs):
    Z, targets, alpha, theta, _ = problem(loss, outputs=outputs)
    table = Z if kind == "dense" else csr(Z, np.int32)
    rng = np.random.default_rng(1)
    samples = [rng.permutation(30)[:size] for size in (7, 0, 12)]
    starts, rows = np.cumsum([0, *map(len, samples)]), np.concatenate(samples)
    scale, v, bias, grid = rng.random(6), theta.copy(), 1.0, 2.0**-20
    noise = rng.integers(-(10**5), 10**5, size=(3, theta.size))
    pulls, norms, ones = np.empty(30), np.empty(30), np.ones(6)
    getattr(kernels, f"{kind}_pulls")(table, bias, scale, pulls)
    getattr(kernels, f"{kind}_pulls")(table, bias, ones, norms)
    np.testing.assert_allclose(pulls, Z**2 @ scale[:-1] + scale[-1])
    np.testing.assert_allclose(np.sqrt(norms), norms_of(Z, bias))
    rule, block = kernels.Rule(4.0, LOSSES[loss], kernels.EXACT, KINK, 0.5), Block(table, bias, targets, np.sqrt(norms))
    moved, released = alpha.copy(), np.empty((3, theta.size))
    own, tape = kernels.Alphas(moved, pulls), Noise(noise, grid, 1e3)
    getattr(kernels, f"{kind}_steps")(block, own, kernels.Samples(rows, starts), scale, rule, tape, v, released)
    plainly, at = alpha.copy(), theta.copy()
    for t, sample in enumerate(samples):
        out = np.empty_like(theta)
        own = kernels.Alphas(plainly, pulls)
        getattr(kernels, f"{kind}_batch")(block, own, sample, at * scale, rule, out)
        wanted = (np.rint(out.ravel() / grid) + noise[t]) * grid
        np.testing.assert_array_equal(released[t], wanted)
        at += wanted.reshape(at.shape)
    np.testing.assert_array_equal(moved, plainly)
    np.testing.assert_array_equal(v, at)


def test_norms_of_single_precision_rows_are_taken_in_double():
    Z = np.random.default_rng(0).normal(size=(50, 7)).astype(np.float32)
    out = np.empty(50)
    kernels.dense_pulls(Z, 0.0, np.ones(8), out)
    np.testing.assert_allclose(out, np.sum(Z.astype(np.float64) ** 2, axis=1), rtol=1e-14)
