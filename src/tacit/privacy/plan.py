"""A plan: every release that a fit will make, fixed before the data is read.

- A `Release` states a kind, a count and its part of the budget.
- A `Plan` is a tuple of releases.
- `Plan.calibrate` makes a `Promise` of a plan and a `Budget`. In it every release has its noise multiplier; it also
  says whom it protects and what will run.

What holds: all of them are frozen values that never see data. A `Gate` is opened on a promise, and only a gate hands
out noise.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from dp_accounting import DpEvent

from tacit.privacy import accounting, checks, events
from tacit.privacy.budget import Budget
from tacit.privacy.guarantee import Guarantee

Kind = Literal["gaussian", "laplace", "exponential", "objective", "thresholded"]

# Kinds known by their zCDP: what the multiplier times this would cost as the multiplier of a Gaussian. A selection is
# e0^2 / 8 = rho, and a Gaussian 1 / (2 z^2).
GAUSSIAN_EQUIVALENT = {"exponential": 2.0, "objective": 1.0 / math.sqrt(events.OBJECTIVE_COST)}

TAIL = 0.01
"""The part of delta that thresholded counts take beside their event."""


@dataclass(frozen=True)
class Release:
    """A planned release, or several of the same kind and multiplier.

    Parameters
    ----------
    name : str
        Unique in its plan; the gate and the report use it.
    kind : {"gaussian", "laplace", "exponential", "objective", "thresholded"}
        The law of the noise, and where it enters: "objective" is Gaussian noise inside a problem that is then
        minimised. "thresholded" is Gaussian noise on counts of values that come from the data: the one release whose
        size is not known beforehand.
    share : float, optional
        Part of the budget, relative to the other shares of the plan, for all `count` releases together. It is a
        share of mu^2 between Gaussians and of rho (zCDP) between mixed kinds, never of epsilon.
    count : int
        How many times it is made, each time on data that may depend on what was released before.
    sampling : float
        Each time, every row takes part with this probability (Gaussian only; 1: every row).
    multiplier : float, optional
        Instead of a share: the noise standard deviation (Laplace: scale) over the sensitivity; for the exponential
        mechanism 1/e0, where e0 bounds the range by which one row moves the log-weights.
    tail : float
        Of thresholded releases: the part of delta that all `count` of them may take beside their event. It bounds the
        probability that something shows which no noise covers.

    Examples
    --------
    >>> from tacit.privacy import Budget, Plan, Release, Unit
    >>> plan = Plan(Release("mean", "gaussian", share=0.1), Release("gradients", "gaussian", share=0.9, count=30))
    >>> promise = plan.calibrate(Budget(epsilon=1.0, delta=1e-6), Unit("row", 1000), "gradient")
    >>> round(promise.multiplier("gradients"), 2)
    24.39
    """

    name: str
    kind: Kind
    share: float | None = None
    count: int = 1
    sampling: float = 1.0
    multiplier: float | None = None
    tail: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ValueError(f"a release needs a name, got {self.name!r}")
        checks.one_of("kind", self.kind, get_args(Kind))
        object.__setattr__(self, "count", checks.count("count", self.count))
        object.__setattr__(self, "sampling", checks.probability("sampling", self.sampling))
        if self.sampling < 1.0 and self.kind != "gaussian":
            raise ValueError(
                f"only Gaussian releases can be sampled, got kind={self.kind!r}, sampling={self.sampling!r}"
            )
        object.__setattr__(self, "tail", checks.closed_unit("tail", self.tail))
        if (self.tail > 0.0) != (self.kind == "thresholded"):
            raise ValueError(f"thresholded releases have a tail and no others do, got {self.kind!r}, {self.tail!r}")
        if (self.share is None) == (self.multiplier is None):
            raise ValueError(f"release {self.name!r} needs either a share or a multiplier")
        if self.share is not None:
            object.__setattr__(self, "share", checks.positive("share", self.share))
        if self.multiplier is not None:
            object.__setattr__(self, "multiplier", checks.positive("multiplier", self.multiplier))

    def spends(self, multiplier: float) -> float:
        """What all `count` releases take of mu^2 at this noise multiplier; of 2 rho if it is known by its zCDP."""
        unit = multiplier * GAUSSIAN_EQUIVALENT.get(self.kind, 1.0)
        return self.count / unit / unit if unit > 0.0 else math.inf

    def event(self, multiplier: float) -> DpEvent:
        """What all `count` releases cost together at this noise multiplier."""
        if self.kind in ("gaussian", "thresholded"):
            one = events.gaussian(multiplier, self.sampling)
        elif self.kind == "laplace":
            one = events.laplace(multiplier)
        elif self.kind == "objective":
            one = events.objective(multiplier)
        else:
            one = events.exponential(1.0 / multiplier if multiplier > 0 else float("inf"))
        return events.repeated(one, self.count)


@dataclass(frozen=True)
class Unit:
    """Whom a guarantee protects: one of `n` rows. (Persons with several rows, of public weight, are to come.)

    Parameters
    ----------
    kind : {"row"}
        What may be present or absent, or be replaced.
    n : int
        How many there are, which is public. Samples are of these.
    weight : float
        The most that one of them counts in a sum, where a row counts 1.
    disclosed : str
        What others get to know of them exactly, and no guarantee covers, in the words of the guarantee.
    """

    kind: Literal["row", "person"]
    n: int
    weight: float = 1.0
    disclosed: str = ""

    def __post_init__(self) -> None:
        checks.one_of("kind", self.kind, ("row",))
        object.__setattr__(self, "n", checks.count("n", self.n))
        if checks.positive("weight", self.weight) != 1.0:
            raise ValueError(f"a row has weight 1, got {self.weight!r}")


@dataclass(frozen=True, init=False)
class Plan:
    """The releases of one fit, in the order a reader should see them.

    Parameters
    ----------
    *releases : Release
        With names of their own.
    views : sequence of sequences of float, optional
        For releases that nobody sees as they are, or that are not about everybody: for each of those who look, and for
        each group of people, the part of the cost (of mu^2) of every release that counts, from 0 to 1. The plan costs
        what the view costs that sees most. Parts between 0 and 1 are for Gaussian releases of all rows, with a share,
        and 0 is not for Laplace releases nor for samples. That a view sees no more is for its protocol to prove. None:
        everyone sees everything, and all of it is about the same people.
    """

    releases: tuple[Release, ...]
    views: tuple[tuple[float, ...], ...]

    def __init__(self, *releases: Release, views: Sequence[Sequence[float]] = ()) -> None:
        if not releases:
            raise ValueError("a plan needs at least one release; one that releases nothing has nothing to calibrate")
        once: set[str] = set()
        twice: set[str] = set()
        for release in releases:
            if not isinstance(release, Release):
                raise TypeError(f"a plan is made of Release objects, got {type(release).__name__}")
            (twice if release.name in once else once).add(release.name)
        if twice:
            raise ValueError(f"names in a plan must be unique, got twice: {', '.join(sorted(twice))}")
        if sum(release.tail for release in releases) > 0.5:
            raise ValueError("thresholded releases may take half of delta at most")
        object.__setattr__(self, "releases", releases)
        object.__setattr__(self, "views", tuple(tuple(map(float, view)) for view in views))
        for view in self.views:
            for release, part in zip(releases, view, strict=True):
                checks.closed_unit("a part of a view", part)
                shared = release.kind != "laplace" and release.sampling == 1.0 and release.share is not None
                if part < 1.0 and not (shared and (part == 0.0 or release.kind == "gaussian")):
                    raise ValueError(f"release {release.name!r} is not one that a view can see a part of")
        unseen = [r.name for r, *parts in zip(releases, *self.views, strict=True) if parts and not any(parts)]
        if unseen:
            raise ValueError(f"releases that count in no view would be free: {', '.join(unseen)}")

    def __add__(self, other: "Plan") -> "Plan":
        if not isinstance(other, Plan):
            return NotImplemented
        if self.views or other.views:
            raise ValueError("plans with views cannot be put together: their views are of different releases")
        return Plan(*self.releases, *other.releases)

    def event(self, multipliers: Sequence[float]) -> DpEvent:
        """What the whole plan costs with these noise multipliers, one for each release; in the view that sees most.

        The others cost no more in mu^2 and, if anything is known by its zCDP only, in rho. If that is in another view
        than the dearest, the event says no more of any than its zCDP, which is that of the dearest.
        """
        made = list(zip(self.releases, multipliers, strict=True))
        if not self.views:
            return events.composed(r.event(z) for r, z in made)
        view = self.views[self._dearest(multipliers)]
        seen = [(r, z / math.sqrt(part)) for (r, z), part in zip(made, view, strict=True) if part]
        by_zcdp = {r.kind for r in self.releases} & set(GAUSSIAN_EQUIVALENT)
        if by_zcdp and not by_zcdp & {r.kind for r, _ in seen}:
            return events.exponential(2.0 * math.sqrt(self.spends(multipliers)))
        return events.composed(r.event(z) for r, z in seen)

    def spends(self, multipliers: Sequence[float]) -> float:
        """What the view that sees most takes of mu^2; of 2 rho if it holds what is known by its zCDP."""
        return self._costs(multipliers)[self._dearest(multipliers)]

    def _dearest(self, multipliers: Sequence[float]) -> int:
        """The number of the view that sees most; the first of those that see as much."""
        costs = self._costs(multipliers)
        return costs.index(max(costs))

    def _costs(self, multipliers: Sequence[float]) -> list[float]:
        """What each view costs."""
        each = [release.spends(z) for release, z in zip(self.releases, multipliers, strict=True)]
        views = self.views or ((1.0,) * len(each),)
        return [math.fsum(part * cost for part, cost in zip(view, each, strict=True) if part) for view in views]

    @property
    def shared(self) -> float:
        """The sum of the shares, in the view in which they add up to most."""
        shares = [release.share or 0.0 for release in self.releases]
        views = self.views or ((1.0,) * len(shares),)
        return max(sum(part * share for part, share in zip(view, shares, strict=True)) for view in views)

    def d0(self, delta: float) -> float:
        """What thresholded releases take of this delta beside their event; the event is accounted at the rest."""
        return delta * math.fsum(release.tail for release in self.releases)

    def calibrate(self, budget: Budget, unit: Unit, solver: str) -> "Promise":
        """The promise with the smallest multipliers, in the proportions of the shares, that meet the budget.

        Parameters
        ----------
        budget : Budget
            What may be given away.
        unit : Unit
            Whose data it is.
        solver : str
            What will make the releases, in the words of the guarantee.
        """
        from tacit.privacy.calibration import calibrate

        return Promise(self, budget, unit, solver, calibrate(self, budget))


@dataclass(frozen=True)
class Promise:
    """A plan whose every release has its noise multiplier, and all that a guarantee says of it."""

    plan: Plan
    budget: Budget
    unit: Unit
    solver: str
    multipliers: tuple[float, ...]
    event: DpEvent = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "event", self.plan.event(self.multipliers))

    def multiplier(self, name: str) -> float:
        """Noise over sensitivity of the named release; 0 in the non-private limit."""
        for release, multiplier in zip(self.plan.releases, self.multipliers, strict=True):
            if release.name == name:
                return multiplier
        raise KeyError(f"no release named {name!r} in the plan; it has {', '.join(r.name for r in self.plan.releases)}")

    def part(self, prefix: str) -> "Promise":
        """The releases whose names begin with `prefix`, named without it; multipliers are those of the whole plan.

        Of views it keeps which releases are in one together: those of one owner are seen whole.
        """
        names = [release.name for release in self.plan.releases]
        own = self._some([place for place, name in enumerate(names) if name.startswith(prefix)])
        renamed = [replace(release, name=release.name.removeprefix(prefix)) for release in own.plan.releases]
        return replace(own, plan=Plan(*renamed, views=own.plan.views))

    def made(self, counts: Mapping[str, int]) -> "Promise":
        """The releases that were made so far, each so often."""
        own = self._some([place for place, release in enumerate(self.plan.releases) if counts.get(release.name)])
        renewed = [replace(release, count=counts[release.name]) for release in own.plan.releases]
        return replace(own, plan=Plan(*renewed, views=own.plan.views))

    def _some(self, places: Sequence[int]) -> "Promise":
        """The releases at these places of the plan."""
        seen = dict.fromkeys(tuple(float(view[place] > 0.0) for place in places) for view in self.plan.views)
        views = [view for view in seen if any(view) and not any(_within(view, other) for other in seen)]
        plan = Plan(*(self.plan.releases[place] for place in places), views=views if len(views) > 1 else ())
        return replace(self, plan=plan, multipliers=tuple(self.multipliers[place] for place in places))

    def guarantee(self, *, seeded: bool) -> Guarantee:
        """The statement that holds if no more than the plan is released; `seeded`: with noise from a seed."""
        budget = self.budget
        terms = budget.epsilon, budget.delta, budget.adjacency, self.solver, self.event
        unit, d0 = self.unit, self.plan.d0(budget.delta)
        return Guarantee(*terms, unit.n, seeded, unit.kind, d0, unit.disclosed)

    def spent(self, event: DpEvent, *, seeded: bool) -> Guarantee:
        """The same for a part of the plan, the event of all that was made so far: with the epsilon of that event."""
        whole = self.guarantee(seeded=seeded)
        epsilon = accounting.epsilon_of(event, whole.delta_of_event) if self.budget.is_private else whole.epsilon
        return replace(whole, epsilon=epsilon, event=event)


def _within(view: tuple[float, ...], other: tuple[float, ...]) -> bool:
    """Whether one view sees less than the other, and nothing else."""
    return view != other and all(part <= more for part, more in zip(view, other, strict=True))
