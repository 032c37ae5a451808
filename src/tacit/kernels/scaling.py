"""Centring, scaling and clipping of tables, and histograms of signed magnitudes."""

import math

import numpy as np
from numpy.typing import NDArray

from tacit._types import Floats, Places, Table
from tacit.compilation import compiled
from tacit.kernels.given import Csr
from tacit.problems.compiled import kernel
from tacit.problems.exponential import bits_of

_TILE = 64
without_gil = compiled(nogil=True)
# Added to the bits of a positive float64, this carries into the exponent from a mantissa of sqrt(2) on.
_TO_NEAREST = (1 << 52) - int(np.float64(math.sqrt(2.0)).view(np.int64) & ((1 << 52) - 1))


@kernel
def _standardized(
    value: float, low: float, high: float, centre: float, scale: float, limit: float, unit: float
) -> float:
    """clip((clip(value, low, high) - centre) / scale, -limit, limit); zero for no number.

    Towards zero to a whole multiple of 1 / unit, where there is one.
    """
    value = low if value < low else value
    value = high if value > high else value
    value = (value - centre) / scale
    value = limit if value > limit else value
    value = -limit if value < -limit else value
    value = value if value == value else 0.0
    return np.trunc(value * unit) / unit if unit > 0.0 else value


@without_gil
def standardize(
    X: NDArray[np.floating],
    bounds: tuple[Floats, Floats],
    centre: Floats,
    scale: Floats,
    limit: Floats,
    unit: float,
    out: NDArray[np.floating],
) -> None:
    """Out = the entries of X, each by itself: clipped to the bounds of its column, centred, scaled, clipped again.

    They are rounded to multiples of 1 / unit, unless that is 0.
    """
    n, d = X.shape
    for start in range(0, n, _TILE):  # tiles stay in the cache where X and out are stored differently
        for first in range(0, d, _TILE):
            last = min(first + _TILE, d)
            low, high, middle = bounds[0][first:last], bounds[1][first:last], centre[first:last]
            size, most = scale[first:last], limit[first:last]
            for i in range(start, min(start + _TILE, n)):
                row, to = X[i, first:last], out[i, first:last]
                for j in range(len(low)):
                    to[j] = _standardized(np.float64(row[j]), low[j], high[j], middle[j], size[j], most[j], unit)


@without_gil
def standardize_stored(
    rows: Csr,
    bounds: tuple[Floats, Floats],
    centre: Floats,
    scale: Floats,
    limit: Floats,
    unit: float,
    out: NDArray[np.floating],
) -> None:
    """`standardize` of the stored entries of CSR rows."""
    low, high = bounds
    for p in range(len(rows.data)):
        j = rows.indices[p]
        out[p] = _standardized(rows.data[p], low[j], high[j], centre[j], scale[j], limit[j], unit)


@kernel
def magnitude_bin(value: float, low: int, high: int) -> int:
    """The bin of sign(value) 2^e, e = round(log2 |value|): -2^high .. -2^low, 0, 2^low .. 2^high, from 0 on.

    Exponents above `high` count as `high`, and those below `low`, -1020 at least, as zero; so does what is no number.
    """
    size = bits_of(np.float64(abs(value)))
    above = max(min((size + _TO_NEAREST >> 52) - 1023, high) - low + 1, 0)  # zero is below all exponents
    above = above if value == value else 0
    return high - low + 1 + (above if value > 0.0 else -above)


@without_gil
def magnitude_histograms(
    X: NDArray[np.floating], shift: Floats, low: NDArray[np.int64], high: NDArray[np.int64], out: Floats
) -> None:
    """out[j] counts the magnitudes of column j less shift[j], between the exponents low[j] and high[j].

    What is missing, or no number, counts nowhere.
    """
    d, bins = out.shape
    counts, places = np.zeros(d * bins + 1, dtype=np.int64), np.empty(d, dtype=np.int64)
    for i in range(len(X)):
        row = X[i]
        for j in range(d):
            value = np.float64(row[j]) - shift[j]
            place = j * bins + magnitude_bin(value, low[j], high[j])
            places[j] = place if value == value else d * bins
        for j in range(d):
            counts[places[j]] += 1
    for j in range(d):
        for k in range(bins):
            out[j, k] = counts[j * bins + k]


@without_gil
def stored_histograms(rows: Csr, shift: Floats, low: Places, high: Places, out: Floats) -> None:
    """`magnitude_histograms` of CSR rows: entries that are not stored are zeros."""
    data, indices, indptr = rows
    out[:] = 0.0
    absent = np.full(len(out), len(indptr) - 1)
    for p in range(indptr[0], indptr[-1]):
        j = indices[p]
        absent[j] -= 1
        if data[p] == data[p]:
            out[j, magnitude_bin(data[p] - shift[j], low[j], high[j])] += 1.0
    for j in range(len(out)):
        out[j, magnitude_bin(-shift[j], low[j], high[j])] += absent[j]


@kernel
def pooled_magnitudes(X: NDArray[np.floating], low: int, high: int, out: NDArray[np.int64]) -> None:
    """Out counts the magnitudes of all entries, between the exponents low and high; but for what is no number."""
    out[:] = 0
    for i in range(len(X)):
        for j in range(X.shape[1]):
            if X[i, j] == X[i, j]:
                out[magnitude_bin(X[i, j], low, high)] += 1


@kernel
def row_norm(values: Table) -> float:
    """The l2 norm of one row, in float64; infinite if it overflows or a value is not finite."""
    total = 0.0
    for value in values:
        total += np.float64(value) * np.float64(value)
    if 1e-280 < total < 1e280:
        return math.sqrt(total)
    # Squares that overflow or vanish: |x| = m |x / m| with m the largest absolute value.
    largest = 0.0
    for value in values:
        if not math.isfinite(value):
            return math.inf
        largest = max(largest, abs(np.float64(value)))
    if largest == 0.0:
        return 0.0
    total = 0.0
    for value in values:
        ratio = value / largest
        total += ratio * ratio
    return largest * math.sqrt(total)
