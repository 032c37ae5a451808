"""Whether a stated guarantee follows from its event.

A file may come from anyone, so its event may be a lie, or so large that an accountant would never end. A cheap estimate
first refuses what clearly costs more than is stated. What is left has a size in proportion to the stated epsilon. Then
the library's accountant bounds the cost from above, on coarse grids before fine ones: each is sound, and a coarse one
is quick. The statement holds as soon as one bound is at most the stated epsilon.
"""

import math
from functools import lru_cache
from typing import Any

from dp_accounting import DpEvent, GaussianDpEvent, LaplaceDpEvent, NonPrivateDpEvent, PoissonSampledDpEvent, ZCDpEvent

from tacit.privacy import Guarantee, Promise, accounting, checks, events
from tacit.privacy.estimate import estimated_epsilon

TOLERANCE = 1e-6
"""The part of epsilon by which a recomputed one may be above the stated one.

Accountants round up, and Fourier transforms round differently on different processors: by about 1e-9 of epsilon.
"""

_MOST_RELEASES = 10**12
_MOST_DIFFERENT = 100_000
_MOST_SAMPLED = 1_000_000  # sampled and Laplace releases; the time of their accountant grows faster than their number
_MOST_EPSILON = 1e6  # where there are any of them
_MOST_KINDS = 20  # of these that differ in their numbers; each is accounted by itself
_MOST_NOISE = 1e15  # over sensitivity, of these releases: no accountant has digits for more
_CLEARLY = 1.25  # the estimate is within a few percent; above this much of the stated epsilon no accountant is needed
_MOST_LOSS = 1_000.0  # that one release of each kind can give away together
_COARSER = (20, 5, 2, 1)  # grids to try, in units of the accountant's own, which is of bounded size

Parts = list[tuple[DpEvent, int]]


def check(guarantee: Guarantee) -> None:
    """Refuse a guarantee whose event costs more than it states; one that states infinity always holds.

    An event without a release is refused too: every fit has one, and without noise it still says so.
    """
    leaves = events.leaves(guarantee.event)
    if not leaves:
        raise ValueError("the guarantee's event holds no release, and the model was released")
    for leaf in leaves:
        if isinstance(leaf, PoissonSampledDpEvent):
            checks.probability("sampling_probability", leaf.sampling_probability)  # of 0 nothing would be released
    if len(leaves) > _MOST_DIFFERENT or sum(leaves.values()) > _MOST_RELEASES:
        raise ValueError(f"the guarantee's event has more than {_MOST_RELEASES:,} releases, or too many different ones")
    if guarantee.adjacency == "replace-one" and any(isinstance(leaf, PoissonSampledDpEvent) for leaf in leaves):
        raise ValueError("the guarantee is for replace-one neighbours, and sampled releases hold for add-remove only")
    if math.isfinite(guarantee.epsilon) and not _holds(guarantee):
        raise ValueError(
            f"the guarantee states epsilon = {guarantee.epsilon!r} at delta = {guarantee.delta!r}, and its event costs"
            " more"
        )


def check_parameters(model: Any, guarantee: Guarantee) -> None:
    """Refuse a model whose parameters ask for another budget than the guarantee states; a fit makes them equal."""
    default = float(guarantee.n_rows) ** -1.5  # rounded as the machine of the fit rounded it
    delta = checks.open_unit("delta", default if model.delta is None else model.delta)
    if checks.positive("epsilon", model.epsilon, finite=False) != guarantee.epsilon:
        raise ValueError("the parameter epsilon and the guarantee state different budgets")
    if not math.isclose(delta, guarantee.delta, rel_tol=1e-12):
        raise ValueError("the parameter delta and the guarantee state different budgets")
    if checks.one_of("adjacency", model.adjacency, checks.ADJACENCIES) != guarantee.adjacency:
        raise ValueError("the parameter adjacency and the guarantee are about different neighbours")
    solver = getattr(model, "solver", "auto")
    named = solver if isinstance(solver, str) else getattr(solver, "name", None)
    if named != "auto" and named != guarantee.solver:
        raise ValueError("the parameter solver and the guarantee name different solvers")


def check_plan(plan: Promise, guarantee: Guarantee) -> None:
    """Refuse a plan that is not the one that the guarantee is about."""
    budget = plan.budget
    if (budget.epsilon, budget.delta, budget.adjacency) != (guarantee.epsilon, guarantee.delta, guarantee.adjacency):
        raise ValueError("plan_ and the guarantee have different budgets")
    if not math.isclose(plan.plan.d0(budget.delta), guarantee.d0, rel_tol=1e-12):
        raise ValueError("plan_ and the guarantee keep different parts of delta for thresholded counts")
    if not _same(events.to_dict(plan.event), events.to_dict(guarantee.event)):
        raise ValueError("plan_ and the guarantee have different releases")


@lru_cache(maxsize=256)
def _holds(guarantee: Guarantee) -> bool:
    event, delta, stated = guarantee.event, guarantee.delta_of_event, guarantee.epsilon * (1.0 + TOLERANCE)
    by_pld = accounting.uses_pld(event, delta)  # raises if no accountant knows the event
    parts = accounting.merged(event)
    if all(isinstance(leaf, GaussianDpEvent | ZCDpEvent | NonPrivateDpEvent) for leaf, _ in parts):  # a closed form
        return accounting.epsilon_of(event, delta) <= stated
    if any(isinstance(leaf, ZCDpEvent) and math.isinf(leaf.rho + leaf.xi) for leaf, _ in parts):
        return False
    gridded: Parts = [(leaf, times) for leaf, times in parts if not isinstance(leaf, ZCDpEvent)]
    losses = [_largest_loss(leaf) for leaf, _ in gridded]
    if math.isinf(max(losses)):  # a release without noise
        return False
    many = (
        guarantee.epsilon > _MOST_EPSILON
        or len(gridded) > _MOST_KINDS
        or sum(times for _, times in gridded) > _MOST_SAMPLED
    )
    if many or min(losses) < 1.0 / _MOST_NOISE or sum(losses) > _MOST_LOSS:
        raise ValueError("the guarantee's event is too large to be accounted here")
    if _clearly_costs_more(gridded, delta, guarantee.epsilon):
        return False
    if not by_pld:
        return accounting.epsilon_of(event, delta) <= stated
    return any(accounting.epsilon_at_spacing(event, delta, coarser) <= stated for coarser in _COARSER)


def _clearly_costs_more(parts: Parts, delta: float, epsilon: float) -> bool:
    """Whether the parts alone cost far more than `epsilon`, by an estimate that takes the same time for any numbers.

    The estimate is on a ring of five epsilon to each side. The number of releases therefore doubles from one: where so
    many cost at most epsilon, the losses of twice as many do not go around the ring.
    """
    aim = max(epsilon, 1e-6)
    most = max(count for _, count in parts)
    for doubled in range(most.bit_length() + 1):
        some = [(leaf, min(count, 2**doubled)) for leaf, count in parts]
        if estimated_epsilon(some, delta, aim) > _CLEARLY * aim:
            return True
    return False


def _largest_loss(leaf: DpEvent) -> float:
    """What one release can give away, but for a chance below 1e-20."""
    inner = leaf.event if isinstance(leaf, PoissonSampledDpEvent) else leaf
    if not isinstance(inner, GaussianDpEvent | LaplaceDpEvent) or inner.noise_multiplier == 0.0:
        return math.inf
    mu = 1.0 / inner.noise_multiplier
    return mu if isinstance(inner, LaplaceDpEvent) else mu * mu / 2 + 10.0 * mu


def _same(one: Any, other: Any) -> bool:
    """Equal, but for the last digits of numbers."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-12)
    return bool(one == other)
