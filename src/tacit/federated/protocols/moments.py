"""What a coordinator makes of released moments: a covariance without the worst of its noise, and a model.

Pure functions of released and public numbers: no data comes in here.

The squared loss depends on the data through second moments alone, so `least_squares` minimises it exactly over the l1
ball. The logistic loss does not; `logistic` minimises what it would be on average if the columns were normal with the
moments given. Its gradient is then Cov(x) w E[sigma'(z)] - Cov(x, t), by Stein's lemma, z being the row's margin: right
for normal columns, close where a margin is a sum of many of them, and a stated approximation elsewhere.
"""

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from tacit._types import Floats
from tacit.problems import L1Ball

Gradient = Callable[[Floats], Floats]

_GAP = 1e-12  # of the ball's radius times the largest slope at zero: where a solve ends
_MOST_STEPS = 20_000
_MOST_ALONE, _LEAST_EIGENVALUE = 0.99, 0.01  # of correlations of scores with the target, and with each other
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(101)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


def shrunk(values: Floats, variances: Floats, strictness: float = 2.0) -> Floats:
    """Noisy numbers, many of them near zero, less what their noise explains: v (1 - strictness variance / v^2), or 0.

    Numbers well above their noise are left nearly as they are; those within sqrt(strictness) deviations become zero.
    """
    squares = np.square(values)
    return values * np.maximum(0.0, 1.0 - strictness * variances / np.where(squares > 0.0, squares, 1.0))


def believed(values: Floats, variances: Floats) -> Floats:
    """How much of each noisy number to keep, from 0 to 1; times its variance, that is the error left in it.

    The larger of two rules. All together: s / (s + variance), with s the variance of the true numbers (their squares
    less the noise), which is best for normal ones. Each by itself: 1 - a variance / v^2 with a = 1.5 ln(how many),
    which noise alone rarely passes: it keeps the few that stand out among many zeros.
    """
    squares, strictness = np.square(values), max(2.0, 1.5 * math.log(len(values)))
    weights = 1.0 / np.square(np.where(variances > 0.0, variances, 1.0))
    spread = max(float(np.sum(weights * (squares - variances)) / np.sum(weights)), 0.0)
    together = spread / np.where(variances > 0.0, spread + variances, 1.0) if spread > 0.0 else np.zeros_like(values)
    clear = squares > strictness * variances
    alone = np.where(clear, 1.0 - strictness * variances / np.where(clear, squares, 1.0), 0.0)
    return np.where(variances > 0.0, np.maximum(together, alone), 1.0)


def towards_mean(values: Floats, variance: float) -> Floats:
    """Noisy numbers, moved towards their mean by what their noise explains of the distance (James and Stein)."""
    mean = float(values.mean())
    squares = float(np.square(values - mean).sum())
    explained = (len(values) - 3) * variance
    return mean + (values - mean) * (
        1.0 - explained / squares if squares > explained > 0.0 else float(explained <= 0.0)
    )


def towards_common(values: Floats, variance: float) -> Floats:
    """Noisy numbers that may have much in common: their mean, and their distances from it, less what noise explains."""
    mean = float(values.mean())
    apart = values - mean
    squares = float(apart @ apart)
    kept = max(0.0, 1.0 - variance * (len(values) - 1) / squares) if squares > 0.0 else 0.0
    return float(shrunk(np.array(mean), np.array(variance / len(values)), strictness=1.5)) + kept * apart


def repaired(matrix: Floats, floor: float) -> Floats:
    """The symmetric matrix with no eigenvalue below `floor`."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2.0)
    return (vectors * np.maximum(values, floor)) @ vectors.T


def possible(correlations: Floats, alone: Floats) -> Floats:
    """Correlations C of scores, raised as little as makes them possible beside r, `alone`, those with a target.

    Together, scores explain r.C^-1.r of the target's variance, which is at most 1. Where it seems more, C is moved
    towards r r^T where that is larger: scores that have nothing in common but the target.
    """
    r = np.clip(alone, 0.0, _MOST_ALONE)
    raised = np.maximum(np.outer(r, r) - correlations, 0.0)
    np.fill_diagonal(raised, 0.0)
    candidates = [repaired(correlations + part * raised, _LEAST_EIGENVALUE) for part in np.linspace(0.0, 1.0, 101)]
    explained = np.array([float(r @ np.linalg.solve(candidate, r)) for candidate in candidates])
    if explained[0] <= 1.0:
        return correlations
    return candidates[int(np.argmax(explained <= 1.0) if explained.min() <= 1.0 else np.argmin(explained))]


def least_squares(covariance: Floats, slope: Floats, radius: float) -> Floats:
    """Minimise w.covariance.w / 2 - slope.w over |w|_1 <= radius."""
    return _minimum(lambda w: covariance @ w - slope, _largest(covariance), slope, radius)


def logistic(
    covariance: Floats, slope: Floats, positive: float, radius: float, mean: Floats | None = None
) -> tuple[Floats, float]:
    """Minimise E[log(1 + exp(z)) - t z] over |w|_1 <= radius, for normal columns and z = w.(x - E x) + b.

    Parameters
    ----------
    covariance : array of shape (k, k)
        Of the columns, divided by the number of rows.
    slope : array of shape (k,)
        Covariances of the columns with t, which is 0 or 1.
    positive : float
        The part of the rows with t = 1.
    radius : float
        Of the l1 ball.
    mean : array of shape (k,), optional
        If given, b is not free but w.mean, which is a model without intercept.

    Returns
    -------
    weights, b
    """

    def centre(w: Floats, deviation: float) -> float:
        if mean is not None:
            return float(mean @ w)
        return _matching_centre(deviation, positive)

    def gradient(w: Floats) -> Floats:
        deviation = _deviation(covariance, w)
        b = centre(w, deviation)
        sigma = expit(b + deviation * _NODES)
        out = covariance @ w * float(_WEIGHTS @ (sigma * (1.0 - sigma))) - slope
        return out if mean is None else out + mean * (float(_WEIGHTS @ sigma) - positive)

    moment = covariance if mean is None else covariance + np.outer(mean, mean)
    weights = _minimum(gradient, _largest(moment) / 4.0, gradient(np.zeros(len(slope))), radius)
    return weights, centre(weights, _deviation(covariance, weights))


def curvature(covariance: Floats, weights: Floats, centre: float) -> float:
    """E sigma'(z) for normal columns and z = w.(x - E x) + centre."""
    sigma = expit(centre + _deviation(covariance, weights) * _NODES)
    return float(_WEIGHTS @ (sigma * (1.0 - sigma)))


def _deviation(covariance: Floats, weights: Floats) -> float:
    """The standard deviation of the margin."""
    return math.sqrt(max(float(weights @ covariance @ weights), 0.0))


def _matching_centre(deviation: float, positive: float) -> float:
    """The b for which sigma(b + deviation g), g normal, is `positive` on average."""
    wide = 40.0 + 10.0 * deviation
    return float(brentq(lambda b: float(_WEIGHTS @ expit(b + deviation * _NODES)) - positive, -wide, wide, xtol=1e-13))


def _largest(matrix: Floats) -> float:
    return float(np.linalg.eigvalsh(matrix)[-1]) if len(matrix) else 0.0


def _minimum(gradient: Gradient, curvature: float, scale: Floats, radius: float) -> Floats:
    """Accelerated projected gradient steps with restarts, until the Frank-Wolfe gap is nearly zero."""
    at = np.zeros(len(scale))
    if curvature <= 0.0:
        steepest = int(np.argmax(np.abs(scale)))
        at[steepest] = radius * np.sign(-gradient(at)[steepest])
        return at
    ball, ahead, momentum = L1Ball(radius), at, 1.0
    enough = _GAP * radius * float(np.abs(scale).max(initial=0.0))
    for _ in range(_MOST_STEPS):
        slope = gradient(ahead)
        gap = float(slope @ ahead) + radius * float(np.abs(slope).max(initial=0.0))
        if gap <= enough and float(np.abs(ahead).sum()) <= radius * (1.0 + 1e-12):
            return ahead
        moved = ball.project(ahead - slope / curvature)
        if float((ahead - moved) @ (moved - at)) > 0.0:  # the momentum points uphill
            momentum = 1.0
        grown = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
        ahead, at, momentum = moved + (momentum - 1.0) / grown * (moved - at), moved, grown
    return at
