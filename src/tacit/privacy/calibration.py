"""From a plan and a budget to noise multipliers.

The multipliers are `t` times fixed proportions. Calibration finds the smallest `t` that meets the budget:

- Gaussians alone: `t = 1/mu`, exact.
- With private selections or objective perturbation: `t = 1/sqrt(2 rho)`, exact for zCDP on the dense orders.
- With sampled or Laplace releases: a root search on the accountant's epsilon, which falls as `t` grows. The accountant
  rounds losses up, so a coarse spacing is sound. The search uses the coarsest that costs under half a percent.

What holds: the result costs at most the epsilon asked for, and at least 99% of it. Equal requests get equal
multipliers, from a cache.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from itertools import count

from dp_accounting import DpEvent
from scipy.optimize import brentq

from tacit.privacy import accounting, events, gdp
from tacit.privacy.budget import Budget
from tacit.privacy.estimate import estimated_epsilon
from tacit.privacy.plan import GAUSSIAN_EQUIVALENT, Plan, Release

_COARSER = (20, 5, 2, 1)  # spacings that a search may use, in units of the accountant's own
_SPACING_COST = 0.005  # stop refining when the discretisation costs less than this part of epsilon
_LANDING = 0.995  # the search ends between this part of the epsilon asked for and all of it
_FULL = 0.999  # fixed releases that take more than this leave too little to share out
_SMOOTH = 12  # evaluations after which a search that has not ended meets a jump, and halves
_JUMP = 1e-4  # part of the noise to which such a jump is found
_FARTHEST = 12.0  # a search goes no farther than a factor of exp(12) from its start


Multipliers = tuple[float, ...]


class _OutOfReachError(Exception):
    """A search ended at its limit: even with that much more noise, or that much less, epsilon is not met."""

    def __init__(self, more_noise: bool) -> None:
        super().__init__(more_noise)
        self.more_noise = more_noise


class BudgetExceededError(ValueError):
    """The releases with fixed multipliers cost more than the budget allows."""


@lru_cache(maxsize=256)
def calibrate(plan: Plan, budget: Budget) -> Multipliers:
    """The smallest multipliers, one for each release, in the proportions of the plan's shares, that meet the budget."""
    if budget.adjacency == "replace-one" and any(r.sampling < 1 for r in plan.releases):
        raise ValueError(
            "sampled releases are accounted for add-remove neighbours only;"
            " use adjacency='add-remove' or a solver without sampling"
        )
    budget = replace(budget, delta=budget.delta - plan.d0(budget.delta))  # what is left for the event
    proportions = _proportions(plan)
    if not budget.is_private:
        return _at_scale(plan, proportions, 0.0)
    if all(r.share is None for r in plan.releases):
        fixed = _at_scale(plan, proportions, 0.0)
        if accounting.epsilon_of(plan.event(fixed), budget.delta) > budget.epsilon:
            raise BudgetExceededError(_too_much(budget))
        return fixed
    kinds = {r.kind for r in plan.releases}
    if "laplace" in kinds or any(r.sampling < 1 for r in plan.releases):
        try:
            scale = _searched_scale(plan, budget, proportions)
        except _OutOfReachError as end:
            raise _refusal(plan, budget, end.more_noise) from None
    else:
        scale = _closed_form_scale(plan, budget)
    return _at_scale(plan, proportions, scale)


def _proportions(plan: Plan) -> Multipliers:
    """Multipliers at t = 1: a share f of mu^2 = 1 (2 rho = 1) for all `count` releases; 0 where one is fixed."""
    total = plan.shared
    return tuple(0.0 if r.share is None else _at_share(r, r.share / total) for r in plan.releases)


def _at_share(release: Release, share: float) -> float:
    # For sampled releases this is the central limit theorem where there is much noise.
    unit = math.sqrt(release.count / share) * release.sampling
    return unit / GAUSSIAN_EQUIVALENT.get(release.kind, 1.0)


def _at_scale(plan: Plan, proportions: Multipliers, scale: float) -> Multipliers:
    fixed = (r.multiplier for r in plan.releases)
    return tuple(p * scale if z is None else z for p, z in zip(proportions, fixed, strict=True))


def _closed_form_scale(plan: Plan, budget: Budget) -> float:
    """Spend what the fixed releases leave of mu^2, or of 2 rho where something is known by its zCDP only."""
    by_zcdp = any(r.kind in GAUSSIAN_EQUIVALENT for r in plan.releases)
    capacity = 2.0 * budget.rho if by_zcdp else _mu_for_recomputation(plan, budget) ** 2
    fixed = sum(r.spends(r.multiplier) for r in plan.releases if r.multiplier is not None)
    if fixed >= capacity:
        raise BudgetExceededError(_too_much(budget))
    return 1.0 / math.sqrt(capacity - fixed)


def _mu_for_recomputation(plan: Plan, budget: Budget) -> float:
    """The exact mu, less the little by which the PLD accountant at its default spacing overstates it.

    A reader may recompute a guarantee with that accountant, and must not find more than was promised. Its error grows
    with the number of different Gaussians and with 1/epsilon^2: about 3e-8 of epsilon for each at epsilon = 1, and 3e-6
    at 0.1. It also cuts off tails of 1e-15 at each convolution, and adds them to delta. Below an epsilon of 0.01 or a
    delta of 1e-12 to allow for all of it would cost too much. There only the exact mu holds to the last digit.
    """
    cut_off = min(0.01 * budget.delta, 2e-15 * (1 + len(plan.releases)))
    overstated = min(0.005, 1e-7 + 4e-8 * len(plan.releases) / budget.epsilon / budget.epsilon)
    return gdp.mu_from_budget(budget.epsilon * (1.0 - overstated), budget.delta - cut_off)


def _searched_scale(plan: Plan, budget: Budget, proportions: Multipliers) -> float:
    """A scale proposed by a fast estimate, then checked and adjusted with the accountant."""
    fixed = [r.event(r.multiplier) for r in plan.releases if r.multiplier is not None]
    taken = accounting.epsilon_of(events.composed(fixed), budget.delta) / budget.epsilon if fixed else 0.0
    if taken >= _FULL:
        raise BudgetExceededError(_too_much(budget))
    shared = [r for r in plan.releases if r.multiplier is None]
    if -math.expm1(sum(r.count * _log_left_out(r) for r in shared)) <= budget.delta:
        raise ValueError(_needs_no_noise(budget))
    landing = (max(_LANDING, (1.0 + taken) / 2), 1.0)  # epsilon cannot fall below what is taken

    def event_at(scale: float) -> DpEvent:
        return plan.event(_at_scale(plan, proportions, scale))

    def epsilon_at(scale: float, coarser: int = 1) -> float:
        return accounting.epsilon_at_spacing(event_at(scale), budget.delta, coarser)

    def estimate_at(scale: float) -> float:
        return estimated_epsilon(accounting.merged(event_at(scale)), budget.delta, budget.epsilon)

    guess = _central_limit_scale(plan, budget, proportions)
    if not accounting.uses_pld(event_at(guess), budget.delta):
        return _search(epsilon_at, budget, guess, landing)
    guess = _search(estimate_at, budget, guess, (0.99, 1.01))
    at_guess = max(estimate_at(guess), 1e-300)
    exponent = math.log(1.02) / max(0.01, math.log(at_guess / max(estimate_at(1.02 * guess), 1e-300)))
    # A spacing h overstates epsilon by about c h^2; one evaluation gives c, and c the coarsest spacing that will do.
    own = accounting.spacing_of(event_at(guess))
    coarse = next((k for k in _COARSER if k * own <= budget.epsilon / 100), 1)
    c = max(0.0, epsilon_at(guess, coarse) - at_guess) / coarse**2
    bearable = min(_SPACING_COST, (1.0 - taken) / 4) * budget.epsilon
    coarser = next((k for k in _COARSER if k <= coarse and c * k**2 <= bearable), 1)
    # A budget at the end of what the grid resolves must not throw the start far off.
    ratio = max(1e-300, (at_guess + c * coarser**2) / (sum(landing) / 2 * budget.epsilon))
    start = guess * math.exp(max(-1.0, min(1.0, exponent * math.log(ratio))))
    return _search(partial(epsilon_at, coarser=coarser), budget, start, landing, exponent)


def _central_limit_scale(plan: Plan, budget: Budget, proportions: Multipliers) -> float:
    """A first guess: a sampled Gaussian behaves like q sqrt(count (exp(1/z^2) - 1))-GDP for many steps.

    Where there is little noise, sampling changes little, and a Laplace release costs its pure epsilon.
    """

    def excess(log_scale: float) -> float:
        total = 0.0
        multipliers = _at_scale(plan, proportions, math.exp(log_scale))
        for release, z in zip(plan.releases, multipliers, strict=True):
            cost = release.spends(z)  # of a sample no more than of all rows
            if release.sampling < 1:
                cost = min(cost, release.sampling**2 * release.count * math.expm1(min(z**-2, 500.0)))
            elif release.kind == "laplace":  # which is (1/z)-DP, and mu^2 is about 2 epsilon where both are large
                cost = min(cost, 2.0 * release.count / z)
            total += cost
        return math.log(total) - 2 * math.log(budget.mu)

    if excess(30.0) >= 0:  # by this measure the fixed releases fill the budget
        return 1.0 / budget.mu
    if excess(-30.0) <= 0:
        raise ValueError(
            f"epsilon={budget.epsilon!r} is too large: it would allow releases with next to no noise; use float('inf')"
            " for the non-private limit"
        )
    return math.exp(float(brentq(excess, -30.0, 30.0, xtol=1e-3)))


def _search(
    epsilon_at: Callable[[float], float],
    budget: Budget,
    scale: float,
    zone: tuple[float, float],
    exponent: float = 0.6,
) -> float:
    """A scale whose epsilon lies in `zone` times the one asked for: false position on log-log axes (Illinois).

    The scale is roughly epsilon to the power of -`exponent`, which only sets the first step. Steps double until the
    zone lies between two of them.
    """
    epsilon = budget.epsilon
    aim = math.log(sum(zone) / 2)
    at = start = math.log(scale)
    stride = 1.05 * exponent
    ends: dict[bool, tuple[float, float]] = {}  # too much epsilon (True) and too little: position, gap
    side = None
    for evaluation in count():
        value = epsilon_at(math.exp(at))
        if zone[0] * epsilon <= value <= zone[1] * epsilon:
            return math.exp(at)
        gap = math.log(min(max(value / epsilon, 1e-3), 1e3)) - aim
        ends[gap > 0] = (at, gap)
        if len(ends) < 2:
            if abs(at - start) > _FARTHEST:
                raise _OutOfReachError(more_noise=at > start)
            at += max(-1.0, min(1.0, gap * stride))
            stride *= 2.0
            continue
        if side == (gap > 0):  # the same end moved twice: weigh the other one less
            ends[gap <= 0] = (ends[gap <= 0][0], ends[gap <= 0][1] / 2)
        side = gap > 0
        (low, over), (high, under) = ends[True], ends[False]
        if high - low < _JUMP:  # epsilon jumps across the zone: stay on its safe side
            return math.exp(high)
        part = over / (over - under) if evaluation < _SMOOTH else 0.5
        at = low + (high - low) * part
    raise AssertionError("unreachable")


def _log_left_out(release: Release) -> float:
    """Log of the probability that a row takes no part."""
    return math.log1p(-release.sampling) if release.sampling < 1.0 else -math.inf


def _refusal(plan: Plan, budget: Budget, more_noise: bool) -> ValueError:
    """What to tell of a search that found nothing."""
    if more_noise and any(r.multiplier is not None for r in plan.releases):
        return BudgetExceededError(_too_much(budget))
    if not more_noise and any(r.sampling < 1 for r in plan.releases):
        return ValueError(_needs_no_noise(budget))
    return ValueError(
        f"epsilon={budget.epsilon!r} at delta={budget.delta!r} is beyond what the accountant of these releases resolves"
        f"; {'raise' if more_noise else 'lower'} epsilon or delta"
    )


def _needs_no_noise(budget: Budget) -> str:
    return (
        f"delta={budget.delta!r} is at least the probability that a row is sampled at all, so it would allow releases"
        " without noise; lower delta"
    )


def _too_much(budget: Budget) -> str:
    return (
        f"the releases with fixed multipliers leave nothing of epsilon={budget.epsilon!r}, delta={budget.delta!r};"
        " raise their multipliers or the budget"
    )
