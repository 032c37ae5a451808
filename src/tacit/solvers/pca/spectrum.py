"""What a solver of PCA returns, and how it tells noise from signal."""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh, qr
from scipy.linalg.blas import dspmv
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigsh
from sklearn.exceptions import ConvergenceWarning

from tacit._types import Floats
from tacit.kernels import moments
from tacit.solvers.pca.krylov import MANY, largest_by_blocks

FULL_MATRIX = 2_000  # columns up to which the matrix is unpacked
LAST_RESORT = 6_000  # the same where multiplying alone did not find its eigenvectors
_RESIDUAL = 1e-8  # of an eigenvector, over the largest eigenvalue
_NOISY_RESIDUAL = 0.01  # the same over the noise floor: noise has moved eigenvectors fifty times farther
_HIDDEN_RESIDUAL = 0.05  # of many that do not stand above the floor: all of them are noise, alone


@dataclass(frozen=True, eq=False)
class Spectrum:
    """What a solver returns: functions of what it released. All variances are sums over rows.

    `components` has shape (k, d). `captured` is the variance along each of them, NaN below `floor`, the largest
    eigenvalue that noise alone has. `reliability` estimates each one's squared cosine with the eigenvector it stands
    for. `total` is the variance along all columns together.
    """

    components: Floats
    captured: Floats
    reliability: Floats
    total: float
    floor: float

    def above_noise(self) -> "Spectrum":
        """The same with the components that stand above the noise alone, or with the first, if none does."""
        clear = np.flatnonzero((self.reliability > 0.0) & ~np.isnan(self.captured))
        kept = clear if len(clear) else np.array([0])
        return replace(
            self,
            components=self.components[kept],
            captured=self.captured[kept],
            reliability=self.reliability[kept],
        )


def spectrum_of_packed(packed: Floats, d: int, k: int, deviation: float) -> Spectrum:
    """Of a noisy symmetric matrix whose entries off the diagonal have noise of this standard deviation.

    Noise alone has eigenvalues up to 2 deviation sqrt(d). An isolated eigenvalue theta of the matrix shows as
    w = theta + deviation^2 d / theta, and its eigenvector keeps a squared cosine of 1 - deviation^2 d / theta^2 with
    the true one; what it captures is their product theta - deviation^2 d / theta = sqrt(w^2 - 4 deviation^2 d).
    """
    diagonal = np.empty(d)
    moments.packed_diagonal(packed, d, diagonal)
    total, floor = float(diagonal.sum()), 2.0 * deviation * math.sqrt(d)
    values, vectors = _leading(packed, d, k, total, floor)
    above = values > floor
    hidden = cleared(values, floor)
    theta = np.where(above, (values + hidden) / 2, 1.0)
    reliability = np.where(above, np.clip(1.0 - (floor / 2 / theta) ** 2, 0.0, 1.0), 0.0)
    captured = np.where(above, hidden, np.nan) if deviation > 0.0 else np.maximum(values, 0.0)
    return Spectrum(upright(vectors.T), captured, reliability, total, floor)


def cleared(values: Floats, floor: float) -> Floats:
    """sqrt(w^2 - floor^2) of values above the floor, 0 of others; as a product, as the squares may overflow."""
    above = np.where(values > floor, values, floor)
    return np.asarray(np.sqrt(above - floor) * np.sqrt(above + floor))


def upright(components: Floats) -> Floats:
    """Rows with signs such that the entry of largest absolute value is positive, as in scikit-learn."""
    largest = components[np.arange(len(components)), np.argmax(np.abs(components), axis=1)]
    return components * np.where(largest < 0.0, -1.0, 1.0)[:, None]


def _leading(packed: Floats, d: int, k: int, total: float, floor: float) -> tuple[Floats, Floats]:
    """The k largest eigenvalues, decreasing, and their eigenvectors as columns.

    Large matrices are only multiplied. Their eigenvectors are taken when the residuals are small: next to the largest
    eigenvalue or, as the eigenvalues of noise lie close together, next to the noise floor. The matrix was released and
    paid for, so this never raises: if a wider search does not converge either, the matrix is unpacked, and if it is too
    large for that a warning tells that the best vectors found were taken.
    """
    if d <= FULL_MATRIX or k > d // 5:
        return _of_full_matrix(packed, d, k)

    def allowed(values: Floats) -> Floats:
        clear = max(_RESIDUAL * float(np.abs(values).max()), _NOISY_RESIDUAL * floor)
        return np.where(values > floor, clear, max(clear, _HIDDEN_RESIDUAL * floor))

    if MANY <= k <= d // 10 and floor > 0.0:
        found = largest_by_blocks(packed, d, k, allowed)
        if found is not None:
            return found

    def times(v: Floats) -> Floats:  # the rows of an upper triangle are, for Fortran, the columns of a lower one
        return np.asarray(dspmv(d, 1.0, packed, v.ravel(), lower=1))

    tolerance = max(_RESIDUAL / 10, _NOISY_RESIDUAL / 4 * floor / (abs(total) + floor) if floor > 0.0 else 0.0)
    best, least = None, math.inf
    for width in (1, 3):
        values, vectors = _searched(times, d, k, min(d, width * max(6 * k, 100)), tolerance)
        off = max(float(np.linalg.norm(times(vectors[:, j]) - values[j] * vectors[:, j])) for j in range(k))
        if off <= max(_RESIDUAL * float(np.abs(values).max()), _NOISY_RESIDUAL * floor):
            return values, vectors
        if best is None or off < least:
            best, least = (values, vectors), off
    if d <= LAST_RESORT:
        return _of_full_matrix(packed, d, k)
    warnings.warn(
        "the eigenvectors of the released matrix did not converge; the best approximation was taken",
        ConvergenceWarning,
        stacklevel=6,  # whoever called `fit`
    )
    assert best is not None
    return best


def _of_full_matrix(packed: Floats, d: int, k: int) -> tuple[Floats, Floats]:
    square = np.empty((d, d))
    moments.unpacked(packed, d, square)
    values, vectors = eigh(square, subset_by_index=[d - k, d - 1], overwrite_a=True)
    return values[::-1], vectors[:, ::-1]


def _searched(times: Callable[[Floats], Floats], d: int, k: int, width: int, tolerance: float) -> tuple[Floats, Floats]:
    """Eigenvectors from a Krylov space; where some were not found, the best in their span and a few directions more."""
    operator = LinearOperator((d, d), matvec=times, dtype=np.float64)
    start = np.cos(np.arange(d) * 0.7 + 0.1)
    try:
        values, vectors = eigsh(operator, k, which="LA", v0=start, ncv=width, tol=tolerance)
    except ArpackNoConvergence as error:
        vectors = error.eigenvectors
    except ArpackError:
        vectors = np.empty((d, 0))
    if vectors.shape[1] < k:
        more = np.cos(np.outer(np.arange(d), 0.7 + np.arange(k)) + 0.1)
        basis = qr(np.hstack([vectors, more]), mode="economic")[0][:, :k]
        inner = basis.T @ np.column_stack([times(basis[:, j]) for j in range(k)])
        values, turn = eigh((inner + inner.T) / 2)
        vectors = basis @ turn
    order = np.argsort(-values)
    return values[order], vectors[:, order]
