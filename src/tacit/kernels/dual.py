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

import numpy as np

from tacit._types import Floats, Integers, Places, Table
from tacit.kernels.any_order import add_in_any_order
from tacit.privacy.noise.kernels import release_one
from tacit.problems.compiled import kernel
from tacit.problems.slopes import IS_HINGE, IS_SQUARED, IS_SQUARED_HINGE

EXACT, NEWTON = 0, 1
_EDGE = 1e-12  # dual variables of the logistic loss stay this far inside (0, 1)


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
        c = 1.0 / (1.0 + math.exp(-t))
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
    return 1.0 / (1.0 + math.exp(-t))


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
def _dot(row: Table, weights: Floats) -> float:
    total = 0.0
    for j in range(len(row)):
        total = add_in_any_order(total, row[j] * weights[j])
    return total


@kernel
def _add(row: Table, factor: float, out: Floats) -> None:
    for j in range(len(row)):
        out[j] += factor * row[j]


@kernel
def _moves(
    i: int,
    margins: Floats,
    targets: Floats,
    pulls: Floats,
    norms: Floats,
    alpha: Floats,
    damping: float,
    loss: int,
    inner: int,
    kink: float,
    clip: float,
    moves: Floats,
) -> bool:
    """Move row i's dual variables, by `moves`; whether they moved at all.

    With several outputs targets are class numbers, one class against the rest for each output.
    """
    outputs = len(margins)
    size = 0.0
    for k in range(outputs):
        target = targets[i] if outputs == 1 else (1.0 if targets[i] == k else -1.0)
        moves[k] = dual_step(alpha[i, k], margins[k], target, damping * pulls[i], loss, inner, kink)
        size += moves[k] * moves[k]
    size = math.sqrt(size) * norms[i]
    if not size < np.inf:
        return False
    factor = clip / size if size > clip else 1.0
    for k in range(outputs):
        moves[k] *= factor
        alpha[i, k] += moves[k]
    return True


@kernel
def _single(
    i: int,
    margin: float,
    targets: Floats,
    pulls: Floats,
    norms: Floats,
    alpha: Floats,
    damping: float,
    loss: int,
    inner: int,
    kink: float,
    clip: float,
) -> float:
    """`_moves` for one output: how far row i's dual variable moved."""
    move = dual_step(alpha[i, 0], margin, targets[i], damping * pulls[i], loss, inner, kink)
    size = abs(move) * norms[i]
    if not size < np.inf:
        return 0.0
    if size > clip:
        move *= clip / size
    alpha[i, 0] += move
    return move


@kernel
def dense_batch(
    Z: Table,
    bias: float,
    rows: Integers,
    targets: Floats,
    pulls: Floats,
    norms: Floats,
    theta: Floats,
    alpha: Floats,
    damping: float,
    loss: int,
    inner: int,
    kink: float,
    clip: float,
    out: Floats,
) -> None:
    """Move the dual variables of `rows`; out[k] is what they add to v of output k, the intercept's entry last."""
    outputs, d = theta.shape[0], theta.shape[1] - 1
    out[:] = 0.0
    if outputs == 1:
        weights, constant, total = theta[0, :d], bias * theta[0, d], out[0, :d]
        for p in range(len(rows)):
            i = rows[p]
            move = _single(
                i, _dot(Z[i], weights) + constant, targets, pulls, norms, alpha, damping, loss, inner, kink, clip
            )
            if move != 0.0:  # which a row that is not a number would spoil
                _add(Z[i], move, total)
                out[0, d] += bias * move
        return
    margins, moves = np.empty(outputs), np.empty(outputs)
    for p in range(len(rows)):
        i = rows[p]
        for k in range(outputs):
            margins[k] = _dot(Z[i], theta[k, :d]) + bias * theta[k, d]
        if _moves(i, margins, targets, pulls, norms, alpha, damping, loss, inner, kink, clip, moves):
            for k in range(outputs):
                _add(Z[i], moves[k], out[k, :d])
                out[k, d] += bias * moves[k]


@kernel
def sparse_batch(
    data: Table,
    indices: Places,
    indptr: Places,
    bias: float,
    rows: Integers,
    targets: Floats,
    pulls: Floats,
    norms: Floats,
    theta: Floats,
    alpha: Floats,
    damping: float,
    loss: int,
    inner: int,
    kink: float,
    clip: float,
    out: Floats,
) -> None:
    """`dense_batch` for CSR rows."""
    outputs, d = theta.shape[0], theta.shape[1] - 1
    margins, moves = np.empty(outputs), np.empty(outputs)
    out[:] = 0.0
    for p in range(len(rows)):
        i = rows[p]
        for k in range(outputs):
            total = bias * theta[k, d]
            for at in range(indptr[i], indptr[i + 1]):
                total += data[at] * theta[k, indices[at]]
            margins[k] = total
        if _moves(i, margins, targets, pulls, norms, alpha, damping, loss, inner, kink, clip, moves):
            for k in range(outputs):
                for at in range(indptr[i], indptr[i + 1]):
                    out[k, indices[at]] += moves[k] * data[at]
                out[k, d] += bias * moves[k]


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
def sparse_pulls(data: Table, indices: Places, indptr: Places, bias: float, scale: Floats, out: Floats) -> None:
    """`dense_pulls` for CSR rows."""
    for i in range(len(out)):
        total = bias * bias * scale[-1]
        for at in range(indptr[i], indptr[i + 1]):
            entry = np.float64(data[at])
            total += entry * entry * scale[indices[at]]
        out[i] = total


@kernel
def _put(total: Floats, noise: Integers, step: float, bound: float, v: Floats, released: Floats) -> None:
    """Release what a step adds to v, and add that."""
    at = 0
    for k in range(v.shape[0]):
        for j in range(v.shape[1]):
            released[at] = release_one(total[k, j], noise[at], step, bound)
            v[k, j] += released[at]
            at += 1


@kernel
def dense_steps(
    Z: Table,
    bias: float,
    rows: Integers,
    starts: Integers,
    targets: Floats,
    pulls: Floats,
    norms: Floats,
    scale: Floats,
    alpha: Floats,
    damping: float,
    loss: int,
    inner: int,
    kink: float,
    clip: float,
    noise: Integers,
    step: float,
    bound: float,
    v: Floats,
    released: Floats,
) -> None:
    """Steps on samples that follow each other in `rows`: move dual variables, release what that adds to v, add it."""
    total = np.empty_like(v)
    for t in range(len(starts) - 1):
        now = rows[starts[t] : starts[t + 1]]
        dense_batch(Z, bias, now, targets, pulls, norms, v * scale, alpha, damping, loss, inner, kink, clip, total)
        _put(total, noise[t], step, bound, v, released[t])


@kernel
def sparse_steps(
    data: Table,
    indices: Places,
    indptr: Places,
    bias: float,
    rows: Integers,
    starts: Integers,
    targets: Floats,
    pulls: Floats,
    norms: Floats,
    scale: Floats,
    alpha: Floats,
    damping: float,
    loss: int,
    inner: int,
    kink: float,
    clip: float,
    noise: Integers,
    step: float,
    bound: float,
    v: Floats,
    released: Floats,
) -> None:
    """`dense_steps` for CSR rows."""
    total = np.empty_like(v)
    for t in range(len(starts) - 1):
        now = rows[starts[t] : starts[t + 1]]
        sparse_batch(
            data,
            indices,
            indptr,
            bias,
            now,
            targets,
            pulls,
            norms,
            v * scale,
            alpha,
            damping,
            loss,
            inner,
            kink,
            clip,
            total,
        )
        _put(total, noise[t], step, bound, v, released[t])
