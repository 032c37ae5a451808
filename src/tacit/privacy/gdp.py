"""Gaussian differential privacy: the exact formulas, as pure functions.

A mechanism is mu-GDP when telling two neighbouring inputs apart is at least as hard as telling N(0, 1)
from N(mu, 1). K adaptive Gaussian releases with sensitivities D_i and standard deviations s_i are exactly
mu-GDP with `mu^2 = sum (D_i / s_i)^2`, and mu-GDP is (epsilon, delta)-DP exactly when

    delta >= Phi(-epsilon/mu + mu/2) - e^epsilon Phi(-epsilon/mu - mu/2).

Nothing is lost in either direction, so these are the formulas of every plan made of Gaussians alone. The
solvers of `mu` and `epsilon` return the safe side of the root: `delta_from_mu` never exceeds the delta asked.
"""

import math
from collections.abc import Callable

from scipy.optimize import brentq
from scipy.special import erfcx, log_ndtr, ndtr

from tacit.privacy import checks

_SQRT2 = math.sqrt(2.0)


def delta_from_mu(mu: float, epsilon: float) -> float:
    """The smallest delta for which mu-GDP gives (epsilon, delta)-DP."""
    if mu == 0.0:
        return 0.0
    if math.isinf(mu):
        return 1.0 if math.isfinite(epsilon) else 0.0
    if math.isinf(epsilon):
        return 0.0
    near = epsilon / mu - mu / 2
    far = epsilon / mu + mu / 2
    if near < -25.0:  # erfcx overflows here, and the two terms are far apart
        return float(ndtr(-near) - math.exp(epsilon + log_ndtr(-far)))
    # Both terms carry the factor phi(near); what remains is a difference of Mills ratios, which keeps its digits.
    return max(0.0, 0.5 * math.exp(-near * near / 2) * float(erfcx(near / _SQRT2) - erfcx(far / _SQRT2)))


def mu_from_budget(epsilon: float, delta: float) -> float:
    """The largest mu for which mu-GDP implies (epsilon, delta)-DP; infinite for an infinite epsilon."""
    epsilon = checks.real("epsilon", epsilon)
    if epsilon < 0:
        raise ValueError(f"epsilon must be at least 0, got {epsilon!r}")
    delta = checks.open_unit("delta", delta)
    if math.isinf(epsilon):
        return math.inf
    high = 1.0
    while delta_from_mu(high, epsilon) < delta:
        high *= 2.0
    low = high
    while delta_from_mu(low, epsilon) > delta:
        low /= 2.0
    return _safe_root(lambda mu: delta_from_mu(mu, epsilon) - delta, low, high, step=-1.0)


def epsilon_from_mu(mu: float, delta: float) -> float:
    """The smallest epsilon for which mu-GDP implies (epsilon, delta)-DP."""
    mu = checks.real("mu", mu)
    if mu < 0:
        raise ValueError(f"mu must be at least 0, got {mu!r}")
    delta = checks.open_unit("delta", delta)
    if delta_from_mu(mu, 0.0) <= delta:
        return 0.0
    if math.isinf(mu):
        return math.inf
    high = 1.0
    while delta_from_mu(mu, high) > delta:
        high *= 2.0
    return _safe_root(lambda epsilon: delta_from_mu(mu, epsilon) - delta, 0.0, high, step=1.0)


def compose_mu(*mus: float) -> float:
    """The mu of several adaptive Gaussian releases."""
    return math.hypot(*mus)


def _safe_root(excess: Callable[[float], float], low: float, high: float, *, step: float) -> float:
    """The root of `excess` in [low, high], moved in the direction of `step` until the excess is not positive."""
    if low == high:
        return low
    root = float(brentq(excess, low, high, xtol=1e-300, rtol=1e-14))
    nudge = 1e-14
    while excess(root) > 0:
        root *= 1.0 + step * nudge
        nudge *= 2.0
    return root
