"""Frank-Wolfe on dense rows: the whole gradient, computed from all of them.

`Entries` are the rows, the bound that their entries are clipped to, and which of them are present.
"""

import math

import numpy as np

from tacit._types import Flags, Floats, Integers, Table
from tacit.kernels.frank_wolfe.rows import Rule, clipped, slope_at
from tacit.problems.compiled import kernel

Entries = tuple[Table, float, Flags]

_BLOCK = 1024


@kernel
def dense_presence(Z: Table, targets: Floats, present: Flags) -> None:
    """Which rows have finite numbers, and a finite norm."""
    for i in range(len(present)):
        norm = 0.0
        for j in range(Z.shape[1]):
            norm += np.float64(Z[i, j]) * np.float64(Z[i, j])
        present[i] = math.isfinite(norm) and math.isfinite(targets[i])


@kernel
def dense_move(j: int, keep: float, gain: float, entries: Entries, margins: Floats) -> None:
    """Shrink all weights, and add `gain` to weight j."""
    Z, bound, present = entries
    for i in range(len(margins)):
        if present[i]:
            margins[i] = keep * margins[i] + gain * clipped(Z[i, j], bound)


@kernel
def dense_gradient(entries: Entries, rule: Rule, margins: Floats, scores: Integers) -> None:
    """The whole gradient at these margins. Whole numbers add up exactly in float64 within a block of rows."""
    Z, bound, present = entries
    unit, d = rule[-1], Z.shape[1]
    block = np.empty(d)
    scores[:] = 0
    for start in range(0, len(present), _BLOCK):
        block[:] = 0.0
        for i in range(start, min(start + _BLOCK, len(present))):
            if present[i]:
                weight = unit * slope_at(i, margins[i], rule)
                for j in range(d):
                    block[j] += math.trunc(weight * min(max(np.float64(Z[i, j]), -bound), bound))
        for j in range(d):
            scores[j] += int(block[j])


@kernel
def dense_margins(chosen: Integers, weights: Floats, entries: Entries, out: Floats) -> None:
    """Margins of rows for weights that are zero outside the chosen columns."""
    Z, bound, present = entries
    out[:] = 0.0
    for i in range(len(out)):
        if present[i]:
            for k in range(len(chosen)):
                out[i] += weights[k] * clipped(Z[i, chosen[k]], bound)
