"""What a composed event costs, computed by the tightest sound accountant for its kinds.

| the event is made of                  | accountant                                                      |
|---------------------------------------|-----------------------------------------------------------------|
| Gaussians                             | exact Gaussian DP, closed form                                  |
| Gaussians, sampled Gaussians, Laplace | privacy loss distributions (PLD) of `dp_accounting`             |
| anything known by its zCDP            | Renyi DP of `dp_accounting` on a dense grid of orders           |

Mixed kinds are sound because one accountant always sees the whole event: all Gaussians are first merged into one
(exactly), then either every part has a dominating pair and the PLDs are convolved, or every part has a Renyi
curve (zCDP with rho is `rho * order`) and the curves are added. Parts are never accounted apart and added up.

Two numerical traps are closed here. The PLD convolution raises a discrete Fourier transform to the power of the
number of steps; its rounding error grows with that power and turns *unsound* below a delta of about 1e-16 per
step (`delta` is then too small by a factor of up to 15). A multiple of that error is taken off delta first, and
where little of delta would remain the Renyi accountant takes over. And the default orders of the Renyi accountant
lose 5% of epsilon on zCDP; the dense grid loses less than 0.1%.
"""

import math
from functools import lru_cache

import numpy as np
from dp_accounting import (
    DpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NonPrivateDpEvent,
    PoissonSampledDpEvent,
    ZCDpEvent,
)
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

from tacit.privacy import checks, events, gdp

DISCRETIZATION = 1e-4
"""Spacing of privacy losses in a PLD; a coarser multiple of it is sound, only less tight."""

_FOURIER_ERROR_PER_STEP = 4e-16

# zCDP wants orders up to about sqrt(log(1/delta) / rho); the spacing of 1.5% costs less than 1e-4 of epsilon.
_DENSE_ORDERS = 1.0 + np.geomspace(0.02, 1e7, 1400)
# A sampled Gaussian's Renyi curve takes time in proportion to the order; its formula at whole orders is a sum of
# positive terms, so only the small orders, where the spacing matters, are fractional.
_WHOLE_ORDERS = np.concatenate([np.arange(2, 64), np.geomspace(64, 1100, 36).round()])
_SAMPLED_ORDERS = np.unique(np.concatenate([1.0 + np.geomspace(0.1, 0.95, 12), np.arange(2, 8, 0.25), _WHOLE_ORDERS]))
_FEW = 0.1  # above this sampling rate the series for fractional orders may not converge
# Rounding of that curve, for each step; added as a constant so that it can never come out too small.
_RENYI_ERROR_PER_STEP = 1e-13


class UnsupportedEventError(ValueError):
    """The event holds a release that no accountant here can bound."""


def epsilon_of(event: DpEvent, delta: float) -> float:
    """An upper bound on the epsilon of `event` at `delta`: exact for Gaussians, tight otherwise.

    Parameters
    ----------
    event : DpEvent
        Made of Gaussian, Poisson-sampled Gaussian, Laplace and zCDP events, composed in any way.
    delta : float
        Strictly between 0 and 1.
    """
    delta = checks.open_unit("delta", delta)
    return epsilon_at_spacing(event, delta, DISCRETIZATION)


def delta_of(event: DpEvent, epsilon: float) -> float:
    """An upper bound on the delta of `event` at `epsilon`, by the same accountants."""
    epsilon = checks.non_negative("epsilon", epsilon)
    kinds, mu = _kinds(event)
    if NonPrivateDpEvent in kinds or math.isinf(mu):
        return 1.0
    if not kinds:
        return gdp.delta_from_mu(mu, epsilon)
    if ZCDpEvent in kinds:
        return float(_renyi(event).get_delta(epsilon))
    slack = _fourier_slack(event)
    return min(
        1.0,
        float(_pld(event, DISCRETIZATION).get_delta(epsilon)) + slack,
        float(_renyi(event).get_delta(epsilon)),
    )


def mu_of(event: DpEvent) -> float:
    """The exact mu of an event made of Gaussians alone."""
    kinds, mu = _kinds(event)
    if kinds:
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise UnsupportedEventError(f"only Gaussian releases have an exact mu; this event also holds {names}")
    return mu


def rho_from_budget(epsilon: float, delta: float) -> float:
    """The largest rho such that rho-zCDP implies (epsilon, delta)-DP, over a dense grid of orders.

    Order a turns rho-zCDP into epsilon = rho a + log(1 - 1/a) - log(delta a)/(a - 1); solve for rho, take the best.
    """
    epsilon = checks.positive("epsilon", epsilon, finite=False)
    delta = checks.open_unit("delta", delta)
    if math.isinf(epsilon):
        return math.inf
    orders = _DENSE_ORDERS
    rho = (epsilon - np.log1p(-1.0 / orders) + np.log(delta * orders) / (orders - 1.0)) / orders
    best = float(rho.max())
    if best <= 0.0:
        raise ValueError(
            f"no zCDP budget fits epsilon={epsilon!r} at delta={delta!r};"
            " raise epsilon or delta, or use Gaussian releases"
        )
    return best * (1.0 - 1e-12)


def epsilon_at_spacing(event: DpEvent, delta: float, spacing: float) -> float:
    """`epsilon_of` with another spacing of the PLD: sound for every multiple of `DISCRETIZATION`, and faster."""
    kinds, mu = _kinds(event)
    if NonPrivateDpEvent in kinds or math.isinf(mu):
        return math.inf
    if not kinds:
        return gdp.epsilon_from_mu(mu, delta)
    return _numerical_epsilon(events.composed(events.repeated(*part) for part in merged(event)), delta, spacing)


@lru_cache(maxsize=512)
def _numerical_epsilon(event: DpEvent, delta: float, spacing: float) -> float:
    if not uses_pld(event, delta):
        return float(_renyi(event).get_epsilon(delta))
    return float(_pld(event, spacing).get_epsilon(delta - _fourier_slack(event)))


def _kinds(event: DpEvent) -> tuple[frozenset[type], float]:
    """The kinds of release other than plain Gaussians, and the mu of the Gaussians."""
    kinds: set[type] = set()
    mu = 0.0
    for leaf, times in events.walk(event):
        if isinstance(leaf, GaussianDpEvent):
            mu = math.hypot(mu, math.sqrt(times) / leaf.noise_multiplier if leaf.noise_multiplier > 0 else math.inf)
        elif isinstance(leaf, PoissonSampledDpEvent) and isinstance(leaf.event, GaussianDpEvent):
            kinds.add(PoissonSampledDpEvent if leaf.event.noise_multiplier > 0 else NonPrivateDpEvent)
        elif isinstance(leaf, LaplaceDpEvent):
            kinds.add(LaplaceDpEvent if leaf.noise_multiplier > 0 else NonPrivateDpEvent)
        elif isinstance(leaf, ZCDpEvent):
            kinds.add(ZCDpEvent if math.isfinite(leaf.rho + leaf.xi) else NonPrivateDpEvent)
        elif isinstance(leaf, NonPrivateDpEvent):
            kinds.add(NonPrivateDpEvent)
        else:
            raise UnsupportedEventError(
                f"cannot account for {type(leaf).__name__};"
                " supported are Gaussian, Poisson-sampled Gaussian, Laplace and zCDP"
            )
    return frozenset(kinds), mu


def uses_pld(event: DpEvent, delta: float) -> bool:
    """Whether the event is accounted by PLD: no selection in it, and delta well above the Fourier error."""
    return ZCDpEvent not in _kinds(event)[0] and delta >= 10.0 * _fourier_slack(event)


def merged(event: DpEvent) -> list[tuple[DpEvent, int]]:
    """The leaves, with all Gaussians merged into one: exact, and kinder to a discretised accountant."""
    _, mu = _kinds(event)
    others = [(leaf, n) for leaf, n in events.leaves(event).items() if not isinstance(leaf, GaussianDpEvent)]
    return others + ([(GaussianDpEvent(1.0 / mu), 1)] if mu > 0 else [])


def _pld(event: DpEvent, spacing: float) -> PLDAccountant:
    accountant = PLDAccountant(value_discretization_interval=spacing)
    for leaf, times in merged(event):
        accountant.compose(leaf, times)
    return accountant


def _renyi(event: DpEvent) -> RdpAccountant:
    parts = merged(event)
    rates = [leaf.sampling_probability for leaf, _ in parts if isinstance(leaf, PoissonSampledDpEvent)]
    sampled = bool(rates)
    sampled_orders = _SAMPLED_ORDERS if max(rates, default=0.0) <= _FEW else _WHOLE_ORDERS
    accountant = RdpAccountant(sampled_orders if sampled else _DENSE_ORDERS)
    for leaf, times in parts:
        accountant.compose(leaf, times)
    if sampled:
        accountant.compose(ZCDpEvent(rho=0.0, xi=_RENYI_ERROR_PER_STEP * sum(times for _, times in parts)))
    return accountant


def _fourier_slack(event: DpEvent) -> float:
    return _FOURIER_ERROR_PER_STEP * (1 + sum(times for _, times in merged(event)))
