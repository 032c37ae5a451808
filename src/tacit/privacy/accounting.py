"""What a composed event costs, computed by the tightest sound accountant for its kinds.

| the event is made of                  | accountant                                                      |
|---------------------------------------|-----------------------------------------------------------------|
| Gaussians                             | exact Gaussian DP, closed form                                  |
| Gaussians, sampled Gaussians, Laplace | privacy loss distributions (PLD) of `dp_accounting`             |
| anything known by its zCDP            | Renyi DP of `dp_accounting` on a dense grid of orders           |

What holds: what is returned is never below the true cost. One accountant always sees the whole event; parts are never
accounted apart and added up. All Gaussians are first merged into one, exactly. Then either every part has a dominating
pair and the PLDs are convolved, or every part has a Renyi curve (zCDP with rho is `rho * order`) and the curves are
added.

A PLD is a grid of privacy losses. Its spacing is `DISCRETIZATION` where losses are moderate. Where they are large, from
an epsilon of about 10 on, it is a power of two times that, so that time and memory do not grow with epsilon
(`spacing_of`). Any spacing rounds losses up, so the bound stays a bound.

Two numerical errors are taken care of here. The PLD convolution raises a discrete Fourier transform to the power of the
number of steps. Its rounding error grows with that power, and is *unsound* below a delta of about 1e-16 per step:
`delta` is then too small by a factor of up to 15. A multiple of that error is taken off delta first; where little of
delta would remain the Renyi accountant is used. And the default orders of the Renyi accountant lose 5% of epsilon on
zCDP; the dense grid loses less than 0.1%.
"""

import math
from collections.abc import Iterator
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
"""The finest spacing of privacy losses in a PLD; a coarser multiple of it is sound, only less tight."""

_POINTS_OF_ONE = 1 << 18  # in the grid of a single release, whose points cost microseconds each
_POINTS_OF_ALL = 1 << 18  # in the grid of their composition
_TAIL = 10.0  # deviations to either side that a grid covers
# The PLD library takes exp of a Laplace release's epsilon and of the spacing, which overflows at 709. Above this,
# bounds take its place: a Laplace release's pure epsilon, which is about 1 too much; and for a spacing, which is this
# large where epsilon is above 1e7, bounds that ignore sampling.
_LARGEST_LOSS = 500.0

_FOURIER_ERROR_PER_STEP = 4e-16
_NEARLY_ALL = 1.0 - 1e-9  # samples of so large a part are accounted as all rows; log(1 - q) has few digits there

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
    return epsilon_at_spacing(event, delta)


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
    by_renyi = min(1.0, float(_renyi(event).get_delta(epsilon)))
    rest, pure = _without_large_laplace(event)
    spacing = spacing_of(rest)
    if spacing > _LARGEST_LOSS:
        mu, pure = _without_sampling(event)
        return min(by_renyi, gdp.delta_from_mu(mu, max(0.0, epsilon - pure)) if epsilon >= pure else 1.0)
    if epsilon < pure:
        return by_renyi
    by_pld = float(_pld(rest, spacing).get_delta(epsilon - pure)) if events.leaves(rest) else 0.0
    return min(by_renyi, by_pld + _fourier_slack(event))


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


def spacing_of(event: DpEvent) -> float:
    """The spacing of the event's PLD: the finest power of two times `DISCRETIZATION` with grids of bounded size."""
    parts = [(*_spread(leaf), times) for leaf, times in merged(event)]
    widest = max((width for width, _, _ in parts), default=0.0)
    composed = min(
        sum(width * times for width, _, times in parts),
        2.0 * _TAIL * math.hypot(*(deviation * math.sqrt(times) for _, deviation, times in parts)),
    )
    wanted = max(widest / _POINTS_OF_ONE, composed / _POINTS_OF_ALL, DISCRETIZATION)
    return DISCRETIZATION * 2.0 ** math.ceil(math.log2(wanted / DISCRETIZATION)) if wanted < math.inf else math.inf


def _spread(leaf: DpEvent) -> tuple[float, float]:
    """About how wide the grid of one release is, in both worlds, and the standard deviation of its losses."""
    if isinstance(leaf, LaplaceDpEvent):
        return 2.0 / leaf.noise_multiplier, 1.0 / leaf.noise_multiplier
    sampled = isinstance(leaf, PoissonSampledDpEvent)
    q = leaf.sampling_probability if sampled else 1.0
    z = (leaf.event if sampled else leaf).noise_multiplier
    # Losses log(1 - q + q exp((2x - 1) / (2 z^2))), for x from -10 z to 1 + 10 z.
    reach = (_TAIL * z + 0.5) / z / z
    if not 0.0 < q < 1.0 or math.isinf(reach):  # the accountant refuses what is no probability
        return 2.0 * reach, 1.0 / z
    lowest, highest = np.logaddexp(math.log1p(-q), math.log(q) + np.array([-reach, reach]))
    width = float(highest - lowest)
    return width, min(width, q * math.sqrt(math.expm1(min(1.0 / z / z, 500.0))))


def _without_large_laplace(event: DpEvent) -> tuple[DpEvent, float]:
    """The event without its Laplace releases of a large epsilon, and the sum of their epsilons.

    A Laplace release is epsilon-DP with epsilon = 1/multiplier and no delta, so that the sum may be added to what the
    rest costs.
    """
    rest, pure = [], 0.0
    for leaf, times in events.leaves(event).items():
        if isinstance(leaf, LaplaceDpEvent) and leaf.noise_multiplier * _LARGEST_LOSS < 1.0:
            pure += times / leaf.noise_multiplier
        else:
            rest.append(events.repeated(leaf, times))
    return events.composed(rest), pure * (1.0 + 1e-12)


def _without_sampling(event: DpEvent) -> tuple[float, float]:
    """Bounds for releases with next to no noise: the mu of all Gaussians, as if of all rows, and the pure epsilon.

    A release of a sample tells no more than one of all rows.
    """
    mu, pure = 0.0, 0.0
    for leaf, times in merged(event):
        if isinstance(leaf, LaplaceDpEvent):
            pure += times / leaf.noise_multiplier
        else:
            inner = leaf.event if isinstance(leaf, PoissonSampledDpEvent) else leaf
            mu = math.hypot(mu, math.sqrt(times) / inner.noise_multiplier)
    return mu, pure * (1.0 + 1e-12)


def _epsilon_without_sampling(event: DpEvent, delta: float) -> float:
    mu, pure = _without_sampling(event)
    return pure + gdp.epsilon_from_mu(mu, delta)


def epsilon_at_spacing(event: DpEvent, delta: float, coarser: int = 1) -> float:
    """`epsilon_of` with a spacing of the PLD that is this many times as coarse: as sound, and faster."""
    kinds, mu = _kinds(event)
    if NonPrivateDpEvent in kinds or math.isinf(mu):
        return math.inf
    if not kinds:
        return gdp.epsilon_from_mu(mu, delta)
    return _numerical_epsilon(events.composed(events.repeated(*part) for part in merged(event)), delta, coarser)


@lru_cache(maxsize=512)
def _numerical_epsilon(event: DpEvent, delta: float, coarser: int) -> float:
    if not uses_pld(event, delta):
        return float(_renyi(event).get_epsilon(delta))
    rest, pure = _without_large_laplace(event)
    if not events.leaves(rest):
        return pure
    spacing = spacing_of(rest)
    if spacing > _LARGEST_LOSS:
        return _epsilon_without_sampling(event, delta)
    spacing *= max(1, min(coarser, math.floor(_LARGEST_LOSS / spacing)))
    left = delta - _fourier_slack(event)
    by_pld = math.inf
    for doubled in (1.0, 2.0, 4.0, 8.0):
        if not math.isfinite(by_pld) and doubled * spacing <= _LARGEST_LOSS:  # a division in the library can overflow
            with np.errstate(all="ignore"):
                by_pld = float(_pld(rest, doubled * spacing).get_epsilon(left))
    bounds = (pure + by_pld, _epsilon_without_sampling(event, delta))
    return min(bound for bound in bounds if not math.isnan(bound))


def _walk(event: DpEvent) -> Iterator[tuple[DpEvent, int]]:
    """The elementary releases; one of a sample of nearly all rows counts as one of all rows, which costs no less."""
    for leaf, times in events.walk(event):
        nearly_all = isinstance(leaf, PoissonSampledDpEvent) and _NEARLY_ALL <= leaf.sampling_probability <= 1.0
        if nearly_all and isinstance(leaf.event, GaussianDpEvent):
            yield leaf.event, times
        else:
            yield leaf, times


def _kinds(event: DpEvent) -> tuple[frozenset[type], float]:
    """The kinds of release other than plain Gaussians, and the mu of the Gaussians."""
    kinds: set[type] = set()
    mu = 0.0
    for leaf, times in _walk(event):
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
    others: dict[DpEvent, int] = {}
    for leaf, times in _walk(event):
        if not isinstance(leaf, GaussianDpEvent):
            others[leaf] = others.get(leaf, 0) + times
    return list(others.items()) + ([(GaussianDpEvent(1.0 / mu), 1)] if mu > 0 else [])


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
