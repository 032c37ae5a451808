"""Frank-Wolfe on dense rows: all of them are looked at in every step, and those whose slope is off are put right.

`Entries` are the rows, the bound that their entries are clipped to, and which of them are present.
"""

import math

import numpy as np

from tacit._types import Flags, Floats, Integers, Table
from tacit.kernels.any_order import add_in_any_order
from tacit.kernels.frank_wolfe.follow import Changes
from tacit.kernels.frank_wolfe.rows import Rule, clipped, slope_at
from tacit.kernels.frank_wolfe.steps import Allowed, Path, Rows
from tacit.problems.compiled import kernel

Entries = tuple[Table, float, Flags]
State = tuple[Rows, Changes]

_BLOCK = 512  # rows: each adds at most twice 2^43 in absolute value, so a block adds up exactly in float64


@kernel
def dense_presence(Z: Table, targets: Floats, present: Flags) -> None:
    """Which rows have finite numbers, and a finite norm."""
    for i in range(len(present)):
        norm = 0.0
        for j in range(Z.shape[1]):
            norm = add_in_any_order(norm, np.float64(Z[i, j]) * np.float64(Z[i, j]))
        present[i] = math.isfinite(norm) and math.isfinite(targets[i])


@kernel
def dense_slopes(present: Flags, rule: Rule, slopes: Floats) -> None:
    """At margins of zero; absent rows have none."""
    for i in range(len(slopes)):
        slopes[i] = slope_at(i, 0.0, rule) if present[i] else 0.0


@kernel
def dense_look(
    t: int, j: int, gain: float, entries: Entries, rule: Rule, path: Path, allowed: Allowed, state: State
) -> int:
    """Iteration t: move all margins, and put slopes right that are off by more than what is allowed; how many are.

    Here all rows are looked at, so no slope is off by more at any time (see `steps`, also for the tuples).
    """
    Z, bound, present = entries
    _, scales, anew, _ = path
    (margins, slopes, anchors), (moved, were) = state
    curvature, spare = allowed
    scale, count = scales[t], 0
    factor, added = anew[t] if anew[t] != 0.0 else 1.0, gain / scale
    for i in range(len(margins)):
        if present[i]:
            margins[i] = factor * margins[i] + added * clipped(np.float64(Z[i, j]), bound)
            margin = scale * margins[i]
            if curvature * abs(margin - anchors[i]) > spare:
                steep = slope_at(i, margin, rule)
                if abs(steep - slopes[i]) > spare:
                    moved[count], were[count] = i, slopes[i]
                    slopes[i], anchors[i] = steep, margin
                    count += 1
    return count


@kernel
def _flush(block: Floats, scores: Integers) -> None:
    for j in range(len(block)):
        scores[j] += int(block[j])
        block[j] = 0.0


@kernel
def dense_sum(entries: Entries, unit: float, slopes: Floats, scores: Integers) -> None:
    """The whole gradient from all rows. Whole numbers add up exactly in float64 within a block of rows."""
    Z, bound, present = entries
    block = np.zeros(Z.shape[1])
    scores[:] = 0
    for i in range(len(present)):
        if present[i]:
            weight = unit * slopes[i]
            for j in range(Z.shape[1]):
                block[j] += math.trunc(weight * min(max(np.float64(Z[i, j]), -bound), bound))
        if i % _BLOCK == _BLOCK - 1:
            _flush(block, scores)
    _flush(block, scores)


@kernel
def dense_add(count: int, entries: Entries, unit: float, slopes: Floats, changes: Changes, scores: Integers) -> None:
    """The same by what the rows whose slopes changed add now, less what they added before."""
    Z, bound, _ = entries
    moved, were = changes
    block = np.zeros(Z.shape[1])
    for m in range(count):
        i = moved[m]
        old, new = unit * were[m], unit * slopes[i]
        for j in range(Z.shape[1]):
            x = min(max(np.float64(Z[i, j]), -bound), bound)
            block[j] += math.trunc(new * x) - math.trunc(old * x)
        if m % _BLOCK == _BLOCK - 1:
            _flush(block, scores)
    _flush(block, scores)


@kernel
def dense_margins(chosen: Integers, weights: Floats, entries: Entries, out: Floats) -> None:
    """Margins of rows for weights that are zero outside the chosen columns."""
    Z, bound, present = entries
    out[:] = 0.0
    for i in range(len(out)):
        if present[i]:
            for k in range(len(chosen)):
                out[i] += weights[k] * clipped(np.float64(Z[i, chosen[k]]), bound)
