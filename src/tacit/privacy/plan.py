"""A plan: every release a fit will make, fixed before the data is read.

A `Release` states a kind, a count and its part of the budget. A `Plan` is a tuple of releases; `calibrate` turns
it and a `Budget` into a `CalibratedPlan`, in which every release has its noise multiplier. Only that object can
open a `Meter`, and only a meter hands out noise. All of them are frozen values that never see data.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal, get_args

from dp_accounting import DpEvent

from tacit.privacy import checks, events
from tacit.privacy.budget import Budget

if TYPE_CHECKING:
    from tacit.privacy.meter import Meter, Progress
    from tacit.privacy.noise.source import NoiseSource

Kind = Literal["gaussian", "laplace", "exponential", "objective"]


@dataclass(frozen=True)
class Release:
    """A planned release, or several of the same kind and multiplier.

    Parameters
    ----------
    name : str
        Unique in its plan; the meter and the report use it.
    kind : {"gaussian", "laplace", "exponential", "objective"}
        The law of the noise, and where it enters: "objective" is Gaussian noise inside a problem that is then
        minimised.
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

    Examples
    --------
    >>> from tacit.privacy import Budget, Plan, Release
    >>> plan = Plan(Release("mean", "gaussian", share=0.1), Release("gradients", "gaussian", share=0.9, count=30))
    >>> calibrated = plan.calibrate(Budget(epsilon=1.0, delta=1e-6))
    >>> round(calibrated.multiplier("gradients"), 2)
    24.39
    """

    name: str
    kind: Kind
    share: float | None = None
    count: int = 1
    sampling: float = 1.0
    multiplier: float | None = None

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
        if (self.share is None) == (self.multiplier is None):
            raise ValueError(f"release {self.name!r} needs either a share or a multiplier")
        if self.share is not None:
            object.__setattr__(self, "share", checks.positive("share", self.share))
        if self.multiplier is not None:
            object.__setattr__(self, "multiplier", checks.positive("multiplier", self.multiplier))

    def event(self, multiplier: float) -> DpEvent:
        """What all `count` releases cost together at this noise multiplier."""
        if self.kind == "gaussian":
            one = events.gaussian(multiplier, self.sampling)
        elif self.kind == "laplace":
            one = events.laplace(multiplier)
        elif self.kind == "objective":
            one = events.objective(multiplier)
        else:
            one = events.exponential(1.0 / multiplier if multiplier > 0 else float("inf"))
        return events.repeated(one, self.count)


@dataclass(frozen=True, init=False)
class Plan:
    """The releases of one fit, in the order a reader should see them."""

    releases: tuple[Release, ...]

    def __init__(self, *releases: Release) -> None:
        if not releases:
            raise ValueError("a plan needs at least one release; one that releases nothing has nothing to calibrate")
        for release in releases:
            if not isinstance(release, Release):
                raise TypeError(f"a plan is made of Release objects, got {type(release).__name__}")
        counts = Counter(release.name for release in releases)
        twice = sorted(name for name, count in counts.items() if count > 1)
        if twice:
            raise ValueError(f"names in a plan must be unique, got twice: {', '.join(twice)}")
        object.__setattr__(self, "releases", tuple(releases))

    def __add__(self, other: "Plan") -> "Plan":
        if not isinstance(other, Plan):
            return NotImplemented
        return Plan(*self.releases, *other.releases)

    def calibrate(self, budget: Budget) -> "CalibratedPlan":
        """The smallest multipliers, in the proportions of the shares, that meet the budget."""
        from tacit.privacy.calibration import calibrate

        return calibrate(self, budget)


@dataclass(frozen=True)
class CalibratedPlan:
    """A plan whose every release has its noise multiplier."""

    plan: Plan
    budget: Budget
    multipliers: tuple[float, ...]
    event: DpEvent = field(init=False)

    def __post_init__(self) -> None:
        parts = (r.event(z) for r, z in zip(self.plan.releases, self.multipliers, strict=True))
        object.__setattr__(self, "event", events.composed(parts))

    @cached_property
    def _by_name(self) -> dict[str, float]:
        return {r.name: z for r, z in zip(self.plan.releases, self.multipliers, strict=True)}

    def multiplier(self, name: str) -> float:
        """Noise over sensitivity of the named release; 0 in the non-private limit."""
        if name not in self._by_name:
            raise KeyError(f"no release named {name!r} in the plan; it has {', '.join(self._by_name)}")
        return self._by_name[name]

    def meter(
        self,
        source: "NoiseSource",
        progress: "Progress | None" = None,
        made: Mapping[str, int] | None = None,
    ) -> "Meter":
        """The metered source that a solver draws its noise from; `made` were released before it was opened."""
        from tacit.privacy.meter import Meter

        return Meter(self, source, progress, made)
