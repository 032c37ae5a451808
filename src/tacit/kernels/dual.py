"""Dual coordinate steps on batches of rows, with noise on what all of them add.

The problem is mean loss(x_i.theta) + sum_j l2_j / 2 theta_j^2. Every row has dual variables alpha_i, one for each
output, and theta_j = v_j / (n l2_j) where v = sum alpha_i x_i. A batch moves the alphas of its rows, each by itself on
the separable upper bound of the dual objective (equation 8 of the paper): with m the row's margin, s = damping times
sum_j x_ij^2 / (n l2_j), it minimises conjugate(-alpha - zeta) + m zeta + s zeta^2 / 2 over zeta. What the batch adds to
v is released with noise.

Nothing of alpha leaves: it is moved in place, and released numbers are functions of it only through clipped sums. A
row's update is a function of that row, of its own alpha and of released numbers; |zeta| |x_i| <= clip, all outputs
together. What is not a number adds nothing.
"""

import math
from typing import NamedTuple

import numpy as np

from tacit._types import Floats, Integers, Table
from tacit.kernels.any_order import dot_in_any_order
from tacit.kernels.given import Block, Csr, Noise
from tacit.kernels.rows import sparse_add_outer, sparse_outputs
from tacit.privacy.noise.kernels import release_one
from tacit.problems.compiled import kernel
from tacit.problems.slopes import IS_HINGE, IS_SQUARED, IS_SQUARED_HINGE, sigmoid

EXACT, NEWTON = 0, 1
_EDGE = 1e-12  # dual variables of the logistic loss stay this far inside (0, 1)


class Alphas(NamedTuple):
    """Alpha of every row, and how strongly each row pulls back on a move of its own."""

    alpha: Floats  # a column for each output
    pulls: Floats  # sum_j x_ij^2 / (n l2_j)


class Rule(NamedTuple):
    """How far dual variables move."""

    damping: float  # times the pull of a row is its s
    loss: int
    inner: int  # EXACT or NEWTON
    kink: float  # the width over which the corner of the hinge is rounded
    clip: float


class Samples(NamedTuple):
    """The rows of some steps: step t is made by places[starts[t] : starts[t + 1]]."""

    places: Integers
    starts: Integers


@kernel
def _logistic_share(b: float, margin: float, s: float, inner: int) -> float:
    """The new y alpha of the logistic loss from the old one, b: the root c of log(c / (1-c)) + margin + s (c - b) = 0.

    `margin` is y m. Halley's method in t = log(c / (1-c)), where the function is increasing with slope between 1 and
    1 + s / 4, inside a bracket that every step tightens. The paper's single step is Newton's in c from b.
    """
    if inner == NEWTON:
        at = min(max(b, 1e-3), 1.0 - 1e-3)
        slope = math.log(at / (1.0 - at)) + margin + s * (at - b)
        return min(max(at - slope / (1.0 / (at * (1.0 - at)) + s), _EDGE), 1.0 - _EDGE)
    low, high = -margin - s * (1.0 - b), -margin + s * b  # the last term lies between those of c = 1 and of c = 0
    edge = 3.0 / (s + 7.0)  # about as far as a root stays from 0 and 1
    at = min(max(b, edge), 1.0 - edge)
    t = min(max(math.log(at / (1.0 - at)), low), high)
    last = high - low
    for _ in range(100):
        c = sigmoid(t)
        value = t + margin + s * (c - b)
        if value > 0.0:
            high = t
        else:
            low = t
        bend = s * c * (1.0 - c)
        slope = 1.0 + bend
        after = t - value * slope / (slope * slope - 0.5 * value * bend * (1.0 - 2.0 * c))
        near = 1e-3  # where the next error is about the cube of this
        if not low <= after <= high or abs(after - t) > 0.5 * last:
            after, near = 0.5 * (low + high), 1e-9  # the step leaves the bracket, or gains too little
        last = abs(after - t)
        t = after
        if last <= near:
            break
    return sigmoid(t)


@kernel
def dual_step(alpha: float, margin: float, target: float, s: float, loss: int, inner: int, kink: float) -> float:
    """How far alpha moves: the minimiser over zeta. `kink` is the width over which the corner of the hinge is rounded.

    The square of a hinge has the dual of a hinge rounded over 1/2, but for the upper end.
    """
    if loss == IS_SQUARED:
        return (target - margin - alpha) / (1.0 + s)
    b = target * alpha
    room = 1.0 - target * margin
    if loss == IS_HINGE:
        free = b + (room - kink * b) / (s + kink) if s + kink > 0.0 else (1.0 if room > 0.0 else 0.0)
        return target * min(max(free, 0.0), 1.0) - alpha
    if loss == IS_SQUARED_HINGE:
        return target * max(b + (room - 0.5 * b) / (0.5 + s), 0.0) - alpha
    return target * _logistic_share(b, target * margin, s, inner) - alpha


@kernel
def _add(row: Table, factor: float, out: Floats) -> None:
    for j in range(len(row)):
        out[j] += factor * row[j]


@kernel
def _moves(
    i: int, margins: Floats, target: float, norm: float, pull: float, rule: Rule, alpha: Floats, moves: Floats
) -> bool:
    """Move row i's dual variables, by `moves`; whether they moved at all.

    With several outputs targets are class numbers, one class against the rest for each output.
    """
    outputs = len(margins)
    size = 0.0
    for k in range(outputs):
        side = target if outputs == 1 else (1.0 if target == k else -1.0)
        moves[k] = dual_step(alpha[i, k], margins[k], side, rule.damping * pull, rule.loss, rule.inner, rule.kink)
        size += moves[k] * moves[k]
    size = math.sqrt(size) * norm
    if not size < np.inf:
        return False
    factor = rule.clip / size if size > rule.clip else 1.0
    for k in range(outputs):
        moves[k] *= factor
        alpha[i, k] += moves[k]
    return True


@kernel
def _move(alpha: float, margin: float, target: float, norm: float, pull: float, rule: Rule) -> float:
    """How far a row's dual variable moves, where there is one output."""
    move = dual_step(alpha, margin, target, rule.damping * pull, rule.loss, rule.inner, rule.kink)
    size = abs(move) * norm
    if not size < np.inf:
        return 0.0
    return move * (rule.clip / size) if size > rule.clip else move


@kernel
def dense_batch(block: Block[Table], own: Alphas, places: Integers, theta: Floats, rule: Rule, out: Floats) -> None:
    """Move the dual variables of the rows at these places, at the weights `theta`.

    out[k] is what they add to v of output k, the intercept's entry last.
    """
    Z, bias, targets, norms = block
    alpha, pulls = own
    outputs, d = theta.shape[0], theta.shape[1] - 1
    out[:] = 0.0
    if outputs == 1:
        weights, constant, total = theta[0, :d], bias * theta[0, d], out[0, :d]
        for p in range(len(places)):
            i = places[p]
            margin = dot_in_any_order(Z[i], weights) + constant
            move = _move(alpha[i, 0], margin, targets[i], norms[i], pulls[i], rule)
            if move != 0.0:  # which a row that is not a number would spoil
                alpha[i, 0] += move
                _add(Z[i], move, total)
                out[0, d] += bias * move
        return
    margins, moves = np.empty(outputs), np.empty(outputs)
    for p in range(len(places)):
        i = places[p]
        for k in range(outputs):
            margins[k] = dot_in_any_order(Z[i], theta[k, :d]) + bias * theta[k, d]
        if _moves(i, margins, targets[i], norms[i], pulls[i], rule, alpha, moves):
            for k in range(outputs):
                _add(Z[i], moves[k], out[k, :d])
                out[k, d] += bias * moves[k]


@kernel
def sparse_batch(block: Block[Csr], own: Alphas, places: Integers, theta: Floats, rule: Rule, out: Floats) -> None:
    """`dense_batch` for CSR rows."""
    (data, indices, indptr), bias, targets, norms = block
    alpha, pulls = own
    margins, moves = np.empty(len(theta)), np.empty(len(theta))
    out[:] = 0.0
    for p in range(len(places)):
        i = places[p]
        sparse_outputs(i, data, indices, indptr, bias, theta, margins)
        if _moves(i, margins, targets[i], norms[i], pulls[i], rule, alpha, moves):
            sparse_add_outer(i, data, indices, indptr, bias, moves, out)


@kernel
def dense_pulls(Z: Table, bias: float, scale: Floats, out: Floats) -> None:
    """The sum over a row of its squared entries times `scale`: how strongly it pulls back on its own move.

    With a scale of 1 that is its squared norm. Entries are squared in double precision.
    """
    d = Z.shape[1]
    for i in range(Z.shape[0]):
        total = bias * bias * scale[d]
        for j in range(d):
            entry = np.float64(Z[i, j])
            total += entry * entry * scale[j]
        out[i] = total


@kernel
def sparse_pulls(rows: Csr, bias: float, scale: Floats, out: Floats) -> None:
    """`dense_pulls` for CSR rows."""
    data, indices, indptr = rows
    for i in range(len(out)):
        total = bias * bias * scale[-1]
        for p in range(indptr[i], indptr[i + 1]):
            entry = np.float64(data[p])
            total += entry * entry * scale[indices[p]]
        out[i] = total


@kernel
def _put(t: int, total: Floats, noise: Noise, v: Floats, released: Floats) -> None:
    """Release what step t adds to v, and add that."""
    counts, step, bound = noise
    at = 0
    for k in range(v.shape[0]):
        for j in range(v.shape[1]):
            released[t, at] = release_one(total[k, j], counts[t, at], step, bound)
            v[k, j] += released[t, at]
            at += 1


@kernel
def dense_steps(
    block: Block[Table], own: Alphas, samples: Samples, scale: Floats, rule: Rule, noise: Noise, v: Floats, out: Floats
) -> None:
    """Steps on samples: move dual variables, release what that adds to v, add it; out[t] is what step t released.

    The weights are v times `scale`.
    """
    total = np.empty_like(v)
    for t in range(len(samples.starts) - 1):
        now = samples.places[samples.starts[t] : samples.starts[t + 1]]
        dense_batch(block, own, now, v * scale, rule, total)
        _put(t, total, noise, v, out)


@kernel
def sparse_steps(
    block: Block[Csr], own: Alphas, samples: Samples, scale: Floats, rule: Rule, noise: Noise, v: Floats, out: Floats
) -> None:
    """`dense_steps` for CSR rows."""
    total = np.empty_like(v)
    for t in range(len(samples.starts) - 1):
        now = samples.places[samples.starts[t] : samples.starts[t + 1]]
        sparse_batch(block, own, now, v * scale, rule, total)
        _put(t, total, noise, v, out)
