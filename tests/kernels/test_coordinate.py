import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import expit

from tacit.kernels import columns
from tacit.kernels import coordinate as kernels
from tacit.kernels.given import Noise
from tacit.kernels.rows import BLOCK, sum_depth
from tacit.problems import Penalty

from .support import LOSSES, csc

LOSS_NAMES = ("squared", "logistic", "squared_hinge")
every_loss = pytest.mark.parametrize("loss", LOSS_NAMES)


# --- tables as the kernels take them ----------------------------------------------------------------------------------


class Dense:
    """Columns one after the other."""

    prefix = "dense"

    def __init__(self, Z, kind=np.float64):
        self.table = np.ascontiguousarray(Z.T, dtype=kind)
        self.ones = np.ones(len(Z), dtype=kind)

    def __call__(self, name, *args):
        room = kernels if name == "pass" else columns
        getattr(room, f"{self.prefix}_{name}")(self.table, *args)


class Single(Dense):
    def __init__(self, Z):
        super().__init__(Z, np.float32)


class Sparse(Dense):
    prefix = "sparse"

    def __init__(self, Z):
        self.table = csc(Z)
        self.ones = np.ones(len(Z))


FORMS = {"dense": Dense, "single precision": Single, "sparse": Sparse}
every_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


# --- the same, written plainly ----------------------------------------------------------------------------------------


def slope(loss, margins, targets):
    if loss == "squared":
        return margins - targets
    if loss == "logistic":
        return -targets * expit(-targets * margins)
    return -2.0 * targets * np.maximum(1.0 - targets * margins, 0.0)


def shrink(value, step, l1, l2, low, high):
    shrunk = math.copysign(max(abs(value) - step * l1, 0.0), value) / (1.0 + step * l2)
    return min(max(shrunk, low), high)


def descent(Z, targets, limits, loss, rules, order, noise, grid_step, bound, w):
    """Coordinate descent from its definition; margins are computed anew at every step."""
    wide = np.hstack([Z, np.ones((len(Z), 1))])
    w, released, changes = w.copy(), [], []
    for j, count in zip(order, noise, strict=True):
        cap, unit, step, l1, l2, low, high, _ = rules[j]
        own = limits[int(j == Z.shape[1])]
        clipped = np.clip(slope(loss, wide @ w, targets), -own, own)
        value = np.clip(np.clip(clipped * wide[:, j], -cap, cap).sum() / unit, -bound, bound)
        if grid_step > 0.0:
            value = (np.rint(value / grid_step) + count) * grid_step
        before = w[j]
        w[j] = shrink(before - step * value * unit / len(Z), step, l1, l2, low, high)
        released.append(value)
        changes.append(w[j] - before)
    return w, wide @ w, np.array(released), np.array(changes)


def problem(loss, n, d, seed=0):
    """Rows of single-precision numbers (so that every form has the same), some of them and of their entries zero."""
    rng = np.random.default_rng(seed)
    Z = (rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)).astype(np.float32).astype(np.float64)
    Z[:: max(n // 5, 2)] = 0.0
    targets = rng.normal(size=n) if loss == "squared" else rng.choice([-1.0, 1.0], size=n)
    return Z, targets, rng


def some_rules(d, rng, capped, n):
    caps = rng.uniform(0.1, 0.6, size=d + 1) if capped else np.full(d + 1, math.inf)
    units, steps = rng.uniform(0.5, 2.0, size=(2, d + 1))
    l1, l2 = rng.uniform(0.0, 0.3, size=(2, d + 1))
    low, high = np.full(d + 1, -math.inf), np.full(d + 1, math.inf)
    low[0], high[-1] = -0.02, 0.01
    return kernels.rules(caps, units, steps, Penalty(l1, l2, low, high), n)


def offset(loss, targets):
    """What the kernels want taken off the margins beforehand."""
    return targets if loss == "squared" else 0.0


def run(form, Z, targets, limits, loss, rules, order, noise, grid_step, bound, w):
    w, margins = w.copy(), np.empty(len(Z))
    table = form(Z)
    table("margins", w, margins)
    with np.errstate(invalid="ignore"):
        margins -= offset(loss, targets)
    released, changes = np.empty(len(order)), np.empty(len(order))
    of, tape = kernels.Slopes(margins, targets, limits, LOSSES[loss]), Noise(noise.astype(np.int64), grid_step, bound)
    out = kernels.Written(released, changes)
    table("pass", table.ones, of, rules, order.astype(np.int64), tape, w, out)
    with np.errstate(invalid="ignore"):  # some tests have infinite targets
        return w, margins + offset(loss, targets), released, changes


def tolerance(loss, form):
    """The logistic function is in single precision, but for the entries of a sparse table."""
    return 1e-10 if loss != "logistic" else 3e-6 if form is Sparse else 1e-5


# --- passes -----------------------------------------------------------------------------------------------------------


@every_form
@every_loss
@pytest.mark.parametrize("n", [1, 40, 2 * BLOCK + 37])
@pytest.mark.parametrize("capped", [False, True], ids=["", "capped"])
def test_without_noise_a_pass_is_coordinate_descent(form, loss, n, capped):
    d = 6
    Z, targets, rng = problem(loss, n, d, seed=n)
    limits = np.where(rng.random((2, n)) < 0.5, [[0.4], [0.7]], 1e300)
    order = np.concatenate([rng.permutation(d + 1), rng.integers(d + 1, size=4)])
    w = rng.normal(size=d + 1)
    given = Z, targets, limits, loss, some_rules(d, rng, capped, n), order, np.zeros(len(order)), 0.0, 1e9, w
    for found, expected in zip(run(form, *given), descent(*given), strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance(loss, form) * max(1.0, n / 40))


@every_form
@every_loss
def test_noise_on_the_tape_is_added_on_the_grid(form, loss):
    n, d, step, bound = 50, 4, 2.0**-12, 3.0
    Z, targets, rng = problem(loss, n, d, seed=1)
    order, noise = rng.permutation(d + 1), rng.integers(-(2**15), 2**15, size=d + 1)
    given = (
        Z,
        targets,
        np.full((2, n), 1.0),
        loss,
        some_rules(d, rng, False, n),
        order,
        noise,
        step,
        bound,
        np.zeros(d + 1),
    )
    found, expected = run(form, *given), descent(*given)
    for ours, plain in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, plain, rtol=0, atol=1e-10)  # on the grid no rounding is left
    np.testing.assert_array_equal(found[2] / step, np.rint(found[2] / step))
    without = run(form, *given[:6], np.zeros(d + 1), *given[7:])[2]
    assert found[2][0] == without[0] + noise[0] * step


@every_form
def test_sums_are_clipped_to_the_bound_before_noise(form):
    Z, targets, rng = problem("squared", 30, 3, seed=2)
    rules, order = some_rules(3, rng, False, 30), np.arange(4)
    tape = np.array([5, -7, 0, 2]), 0.5, 1.0
    _, _, released, _ = run(form, 1e6 * Z, targets, np.full((2, 30), 1e300), "squared", rules, order, *tape, np.ones(4))
    assert np.all(np.abs(released[:3] / 0.5 - tape[0][:3]) == 2.0)  # one bound is two steps of the grid


@every_loss
def test_a_sparse_table_is_the_dense_one(loss):
    n, d = BLOCK + 100, 9
    Z, targets, rng = problem(loss, n, d, seed=3)
    order, noise = rng.permutation(d + 1), rng.integers(-50, 50, size=d + 1)
    rules, w = some_rules(d, rng, True, n), np.zeros(d + 1)
    given = Z, targets, np.full((2, n), 0.7), loss, rules, order, noise, 1e-3, 1e9, w
    for one, other in zip(run(Dense, *given), run(Sparse, *given), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-10)


@every_form
@every_loss
def test_a_pass_in_parts_is_the_whole_pass(form, loss):
    """Bit for bit, as one that is led through a history value by value must be."""
    n, d = 300, 5
    Z, targets, rng = problem(loss, n, d, seed=4)
    order, noise = rng.permutation(d + 1), rng.integers(-99, 99, size=d + 1)
    limits, rules, w = np.full((2, n), 0.7), some_rules(d, rng, False, n), rng.normal(size=d + 1)
    whole = run(form, Z, targets, limits, loss, rules, order, noise, 1e-3, 1e9, w)
    table, margins, parts = form(Z), np.empty(n), []
    table("margins", w, margins)
    margins -= offset(loss, targets)
    for k in range(d + 1):
        released, changes = np.empty(1), np.empty(1)
        of, tape = kernels.Slopes(margins, targets, limits, LOSSES[loss]), Noise(noise[k : k + 1], 1e-3, 1e9)
        out = kernels.Written(released, changes)
        table("pass", table.ones, of, rules, order[k : k + 1].astype(np.int64), tape, w, out)
        parts.append((released[0], changes[0]))
    np.testing.assert_array_equal(np.array(parts).T, whole[2:])
    np.testing.assert_array_equal(w, whole[0])
    np.testing.assert_array_equal(margins + offset(loss, targets), whole[1])


# --- one row never touches another ------------------------------------------------------------------------------------


@every_form
@every_loss
@pytest.mark.parametrize("capped", [False, True], ids=["", "capped"])
@pytest.mark.parametrize("bad", [1e300, 1e38, -3e38, math.inf, math.nan], ids=str)
def test_a_silenced_row_leaves_every_bit_of_the_others_as_it_was(form, loss, capped, bad):
    n, d = BLOCK + 50, 4
    Z, targets, rng = problem(loss, n, d, seed=5)
    limits, rules = np.full((2, n), 0.7), some_rules(d, rng, capped, n)
    limits[:, [3, BLOCK + 1]] = 0.0
    tape = rng.permutation(d + 1), rng.integers(-99, 99, size=d + 1), 1e-3, 1e9, rng.normal(size=d + 1)
    plain = run(form, Z, targets, limits, loss, rules, *tape)
    with np.errstate(over="ignore"):
        Z[3, 1] = Z[BLOCK + 1, 2] = bad
        found = run(form, Z, targets, limits, loss, rules, *tape)
    others = np.delete(np.arange(n), [3, BLOCK + 1])
    np.testing.assert_array_equal(found[2], plain[2])
    np.testing.assert_array_equal(found[1][others], plain[1][others])


@every_form
@every_loss
@pytest.mark.parametrize("where", ["entry", "target", "weight"])
@pytest.mark.parametrize("bad", [1e30, -1e30, math.inf, -math.inf, math.nan], ids=str)
@pytest.mark.parametrize("capped", [False, True], ids=["", "capped"])
def test_no_row_adds_more_than_its_bounds_whatever_it_holds(form, loss, where, bad, capped):
    """Against the same row, silenced: where its margin, target or an entry is huge, infinite or no number."""
    n, d = 20, 3
    Z, targets, rng = problem(loss, n, d, seed=6)
    limits, rules, w = np.full((2, n), 0.5), some_rules(d, rng, capped, n), rng.normal(size=d + 1)
    Z[1] = 0.5, -0.25, 0.125
    if where == "entry":  # rows that have no length are silenced, long ones have small limits
        Z[1, 0] = bad
        limits[0, 1] = 0.5 / abs(bad) if math.isfinite(bad) else 0.0
        limits[1, 1] = 0.5 if math.isfinite(bad) else 0.0
    elif where == "weight":
        w[0] = bad
    elif loss == "squared":
        targets[1] = bad
    silent = limits.copy()
    silent[:, 1] = 0.0
    for j in range(d + 1):
        tape = np.array([j]), np.zeros(1), 0.0, 1e9, w
        loud, quiet = (run(form, Z, targets, some, loss, rules, *tape)[2][0] for some in (limits, silent))
        entry = 1.0 if j == d else abs(Z[1, j])
        most = limits[int(j == d), 1] * entry if math.isfinite(entry) else 0.0
        assert abs(loud - quiet) * rules[j, kernels.UNIT] <= min(most, rules[j, kernels.CAP]) * (1 + 1e-6) + 1e-12


# --- what else is summed over rows or columns -------------------------------------------------------------------------


@every_form
@pytest.mark.parametrize("n", [1, 30, 2 * BLOCK + 11])
def test_helpers_are_what_they_say(form, n):
    d = 7
    Z, _, rng = problem("squared", n, d, seed=n)
    wide = np.hstack([Z, np.ones((n, 1))])
    table, weights, w = form(Z), rng.normal(size=d + 1), rng.normal(size=d + 1)
    w[2] = 0.0
    per_row, margins = np.empty(n), np.empty(n)
    table("square_norms", weights, per_row)
    np.testing.assert_allclose(per_row, ((wide * weights) ** 2).sum(axis=1), rtol=1e-13)
    table("largest", weights, per_row)
    np.testing.assert_allclose(per_row, np.abs(wide * weights).max(axis=1), rtol=1e-15)
    table("margins", w, margins)
    np.testing.assert_allclose(margins, wide @ w, rtol=1e-12, atol=1e-12)
    for j in (0, d - 1, d):
        moved = margins.copy()
        table("move", table.ones, j, 0.3, moved)
        np.testing.assert_allclose(moved, margins + 0.3 * wide[:, j], rtol=1e-12, atol=1e-12)
    factors, values = rng.random(n), rng.normal(size=n)
    squares, products = np.empty(d), np.empty(d + 1)
    table("squares", factors, 0.8, squares)
    np.testing.assert_allclose(squares, factors @ np.minimum(Z**2, 0.8), rtol=1e-12, atol=1e-15)
    table("products", values, products)
    np.testing.assert_allclose(products, wide.T @ values, rtol=1e-12, atol=1e-11)
    np.testing.assert_allclose(columns.block_sum(values), values.sum(), rtol=1e-12, atol=1e-12)


@every_loss
def test_slopes_are_derivatives_within_their_limits(loss):
    _, targets, rng = problem(loss, 200, 2, seed=7)
    margins, limits, out = rng.normal(scale=3.0, size=200), rng.choice([0.0, 0.3, 1e300], size=200), np.empty(200)
    margins[:3], limits[:3] = (math.inf, -math.inf, math.nan), 0.3
    of = kernels.Slopes(margins - offset(loss, targets), targets, np.vstack([np.ones(200), limits]), LOSSES[loss])
    kernels.clipped_slopes(of, 1, out)
    np.testing.assert_allclose(out[3:], np.clip(slope(loss, margins, targets), -limits, limits)[3:], rtol=1e-13)
    assert np.all(np.abs(out) <= limits)  # and no NaN


@pytest.mark.parametrize("form", [Dense, Single], ids=["dense", "single precision"])
def test_the_error_of_a_sum_is_within_the_bound_for_its_depth(form):
    """Whatever order the compiler sums in: at most gamma of the depth, times the sum of absolute values."""
    n = 2 * BLOCK + 300
    Z, targets, _ = problem("squared", n, 3, seed=8)
    rules = kernels.rules(*np.array([[math.inf, 1.0, 0.0]] * 4).T, Penalty(low=-1.0, high=1.0), n)
    tape = np.arange(3), np.zeros(3), 0.0, 1e9, np.zeros(4)
    _, _, released, _ = run(form, Z, targets, np.full((2, n), 1e300), "squared", rules, *tape)
    unit = Fraction(sum_depth(n), 2**53)
    for j in range(3):
        terms = [-Fraction(float(y)) * Fraction(float(z)) for y, z in zip(targets, Z[:, j], strict=True)]
        error = abs(Fraction(float(released[j])) - sum(terms))
        assert error <= (unit + Fraction(1, 2**53)) / (1 - unit) * sum(abs(term) for term in terms)
