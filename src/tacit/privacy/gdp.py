"""Gaussian differential privacy: the exact formulas, as pure functions.

A mechanism is mu-GDP when telling two neighbouring inputs apart is at least as hard as telling N(0, 1) from N(mu, 1). K
adaptive Gaussian releases with sensitivities D_i and standard deviations s_i are exactly mu-GDP with
`mu^2 = sum (D_i / s_i)^2`, and mu-GDP is (epsilon, delta)-DP exactly when

    delta >= Phi(-epsilon/mu + mu/2) - e^epsilon Phi(-epsilon/mu - mu/2).

Nothing is lost in either direction. So these are the formulas of every plan that is made of Gaussians alone.

What holds: a mu or an epsilon that is solved for is on the safe side of the root. `delta_from_mu` of it never exceeds
the delta asked for.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import erfcx, ndtr

from tacit.privacy import checks

_SQRT2 = math.sqrt(2.0)
_SQRT_2PI = math.sqrt(2.0 * math.pi)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)


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
    # Both terms carry the factor phi(near); what remains is a difference of Mills ratios m(near) - m(far).
    density = math.exp(-near * near / 2) / _SQRT_2PI
    if mu <= 1.0:  # they are close: integrate -m'(x) = 1 - x m(x) between them, which keeps the digits
        x = near + (1.0 + _NODES) * (mu / 2)
        return max(0.0, density * (mu / 2) * float(_WEIGHTS @ (1.0 - x * _mills(x))))
    first = float(ndtr(-near)) if near < 0 else density * float(_mills(near))  # m overflows on the left
    return max(0.0, first - density * float(_mills(far)))


def mu_from_budget(epsilon: float, delta: float) -> float:
    """The largest mu for which mu-GDP implies (epsilon, delta)-DP; infinite for an infinite epsilon."""
    epsilon = checks.non_negative("epsilon", epsilon, finite=False)
    delta = checks.open_unit("delta", delta)
    if math.isinf(epsilon):
        return math.inf
    high = 1.0
    while delta_from_mu(high, epsilon) < delta:
        high *= 2.0
    while delta_from_mu(high / 2, epsilon) > delta:
        high /= 2.0
    return _safe_root(lambda mu: delta_from_mu(mu, epsilon) / delta - 1.0, high / 2, high, step=-1.0)


def epsilon_from_mu(mu: float, delta: float) -> float:
    """The smallest epsilon for which mu-GDP implies (epsilon, delta)-DP."""
    mu = checks.non_negative("mu", mu, finite=False)
    delta = checks.open_unit("delta", delta)
    if delta_from_mu(mu, 0.0) <= delta:
        return 0.0
    if math.isinf(mu):
        return math.inf
    high = 1.0
    while delta_from_mu(mu, high) > delta:
        high *= 2.0
    if math.isinf(high):
        return math.inf
    while delta_from_mu(mu, high / 2) <= delta:
        high /= 2.0
        if high < 1e-300:
            return high
    return _safe_root(lambda epsilon: delta_from_mu(mu, epsilon) / delta - 1.0, high / 2, high, step=1.0)


def _mills(x: Any) -> Any:
    """Phi(-x) / phi(x), for a number or an array."""
    return math.sqrt(math.pi / 2) * erfcx(x / _SQRT2)


def _safe_root(excess: Callable[[float], float], low: float, high: float, *, step: float) -> float:
    """The root of `excess` in [low, high], moved in the direction of `step` until the excess is not positive."""
    root = float(brentq(excess, low, high, xtol=5e-324, rtol=1e-14))
    nudge = 1e-14
    while excess(root) > 0:
        root *= 1.0 + step * nudge
        nudge *= 2.0
    return root
