"""Sums over rows for text: each row has one factor, which bounds its norm, and no table of scaled rows is made.

A row whose factor is zero is absent: it adds nothing to any sum. A row's margin and contribution come from a loop over
that row alone; contributions are added straight into the total, so the longest chain of additions is n.
"""

import math

import numpy as np
from numpy.typing import NDArray

from tacit._types import Floats, Places
from tacit.problems.compiled import kernel


@kernel
def weighted_norms(data: Floats, indices: Places, indptr: Places, weights: Floats, out: Floats) -> None:
    """The norm of each CSR row with its entries times the weights of their columns."""
    for i in range(len(out)):
        total = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            entry = data[p] * weights[indices[p]]
            total += entry * entry
        out[i] = math.sqrt(total)


@kernel
def sparse_sums(
    data: Floats, indices: Places, indptr: Places, factors: Floats, values: Floats, ratio: float, out: Floats
) -> None:
    """out[0] = sum of value x and out[1] = ratio times the sum of |x|, over CSR rows x times their factors."""
    out[:] = 0.0
    for i in range(len(factors)):
        if factors[i] > 0.0:
            signed, size = values[i] * factors[i], ratio * factors[i]
            for p in range(indptr[i], indptr[i + 1]):
                out[0, indices[p]] += signed * data[p]
                out[1, indices[p]] += size * abs(data[p])


@kernel
def dense_sums(Z: Floats, factors: Floats, values: Floats, ratio: float, out: Floats) -> None:
    """out[0] = sum of value x and out[1] = ratio times the sum of x^2, over rows x times their factors."""
    out[:] = 0.0
    for i in range(len(factors)):
        if factors[i] > 0.0:
            for j in range(Z.shape[1]):
                entry = Z[i, j] * factors[i]
                out[0, j] += values[i] * entry
                out[1, j] += ratio * entry * entry


@kernel
def residual_sums(
    data: Floats,
    indices: Places,
    indptr: Places,
    factors: Floats,
    positive: NDArray[np.bool_],
    weights: Floats,
    bias: float,
    offset: float,
    clip: float,
    out: Floats,
) -> float:
    """Sum residual x, into `out`, over CSR rows x times their factors; returns bias times the sum of residuals.

    A residual is the class, 1 or 0, less its probability by the weights on x and the offset; clipped.
    """
    out[:] = 0.0
    total = 0.0
    for i in range(len(factors)):
        if factors[i] > 0.0:
            margin = 0.0
            for p in range(indptr[i], indptr[i + 1]):
                margin += data[p] * weights[indices[p]]
            margin = margin * factors[i] + offset
            small = math.exp(-abs(margin))
            likely = 1.0 / (1.0 + small) if margin > 0.0 else small / (1.0 + small)
            residual = max(-clip, min(clip, (1.0 if positive[i] else 0.0) - likely))
            if math.isfinite(residual):
                total += residual * bias
                step = residual * factors[i]
                for p in range(indptr[i], indptr[i + 1]):
                    out[indices[p]] += step * data[p]
    return total
